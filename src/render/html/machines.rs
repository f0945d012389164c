//! What a reader sees where there are several machines: what each is, and what each claim came to on
//! all of them, those that differ most first. On one machine none of it.

use super::{Document, claim_anchor};
use crate::article::{Claim, ClaimKind};
use crate::record::{ClaimRecord, HostEnvironment};
use crate::render::machines::{self, Column, Machines, Row, Standing};
use crate::render::state::State;
use bigdecimal::BigDecimal;
use serde::Serialize;

#[derive(Serialize)]
pub struct MachinesView<'a> {
    /// The author's CPU, where this page was measured on another one.
    author: Option<&'a str>,
    own: &'a str,
    columns: Vec<ColumnView<'a>>,
    /// What they are, fact by fact.
    facts: Vec<Fact>,
    /// Claims with another value on one of them, the farthest off first.
    differ: Vec<Difference<'a>>,
    any_published: bool,
    /// Claims with the same value to the last digit.
    same: Vec<Link<'a>>,
    /// How many claims are of the machine: shown, and not judged here.
    of_the_machine: usize,
    /// The author's profile, where that is another one: its values are then of something else.
    author_profile: Option<&'a str>,
}

#[derive(Serialize)]
struct ColumnView<'a> {
    title: &'a str,
    anchor: String,
    cpu: &'a str,
    /// It has a record of its own, beside the author's.
    beside: bool,
    /// Why its values are not compared, where they are not.
    note: Option<String>,
}

#[derive(Serialize)]
struct Fact {
    name: &'static str,
    values: Vec<String>,
    differs: bool,
}

#[derive(Serialize)]
struct Link<'a> {
    name: &'a str,
    anchor: String,
}

#[derive(Serialize)]
struct Difference<'a> {
    #[serde(flatten)]
    link: Link<'a>,
    cells: Vec<CellView>,
    published: Option<String>,
    published_ratio: Option<String>,
    state: &'static str,
    mark: &'static str,
    state_text: &'static str,
}

#[derive(Serialize)]
struct CellView {
    text: String,
    ratio: Option<String>,
    /// What is exact or bounded does not hold there.
    fails: bool,
    compared: bool,
}

/// What the author and this machine have of one claim.
pub struct Beside<'a> {
    author: &'a ClaimRecord,
    own: &'a ClaimRecord,
    /// own / author, where both are numbers of one unit.
    pub ratio: Option<BigDecimal>,
}

/// A claim whose value on the author's machine is another matter than the one measured here.
pub fn beside<'a>(document: &Document<'a>, claim: &Claim) -> Option<Beside<'a>> {
    if claim.machine.is_some() {
        return None;
    }
    let name = &claim.name.value;
    let (record, accepted) = (document.page.record, document.page.accepted?);
    let (own, author) = (record.claims.get(name)?, accepted.claims.get(name)?);
    let comparable = record.is_of_the_same_profile(accepted)
        && record.is_of_another_machine(accepted, &own.reads);
    comparable.then(|| Beside {
        author,
        own,
        ratio: machines::ratio(own, author),
    })
}

impl Beside<'_> {
    pub fn ratio_text(&self) -> Option<String> {
        self.ratio.as_ref().map(machines::ratio_text)
    }

    pub fn author_exact(&self) -> String {
        machines::exact_text(self.author)
    }

    /// The author's as the claim prints it; with more digits where that would hide a difference.
    pub fn author_text(&self, document: &Document, claim: &Claim) -> String {
        let bytes = document.page.article.front_matter.bytes;
        machines::texts(bytes, claim, &[Some(self.author), Some(self.own)])
            .into_iter()
            .next()
            .flatten()
            .unwrap_or_default()
    }
}

/// None where everything is of one machine.
pub fn machines<'a>(document: &Document<'a>) -> Option<MachinesView<'a>> {
    let Machines { columns, rows } = Machines::of(document.page)?;
    let author = super::author_host(document.page).map(|host| host.cpu.as_str());
    let (same, mut differ): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.same);
    differ.sort_by(|one, other| match (&one.off, &other.off) {
        (Some(one), Some(other)) => other.cmp(one),
        // Without a ratio it is another thing altogether: true there, false here.
        (one, other) => one.is_some().cmp(&other.is_some()),
    });
    let differ: Vec<Difference> = (differ.iter())
        .map(|row| difference(document, &columns, row))
        .collect();
    let claims = document.page.article.claims();
    Some(MachinesView {
        author,
        own: &document.page.record.environment.host.cpu,
        facts: facts(&columns),
        any_published: differ.iter().any(|row| row.published.is_some()),
        differ,
        same: same.iter().map(|row| link(row.claim)).collect(),
        of_the_machine: claims
            .filter(|claim| claim.kind == ClaimKind::Noisy)
            .count(),
        author_profile: (document.page.accepted)
            .filter(|_| author.is_some())
            .filter(|accepted| !accepted.is_of_the_same_profile(document.page.record))
            .map(|accepted| accepted.profile.as_str()),
        columns: columns.iter().map(column_view).collect(),
    })
}

/// Where each machine is described.
pub fn anchors(document: &Document) -> Vec<String> {
    let machines = Machines::of(document.page);
    let columns = machines.into_iter().flat_map(|machines| machines.columns);
    columns.map(|column| column.anchor()).collect()
}

fn column_view<'a>(column: &Column<'a>) -> ColumnView<'a> {
    ColumnView {
        title: column.title,
        anchor: column.anchor(),
        cpu: &column.record.environment.host.cpu,
        beside: column.machine.is_some(),
        note: match column.standing {
            Standing::Compared => None,
            Standing::Stale => Some("stale: measured with other inputs".to_owned()),
            Standing::OtherProfile => Some(format!(
                "profile {} or other params: not compared",
                column.record.profile
            )),
        },
    }
}

fn facts(columns: &[Column]) -> Vec<Fact> {
    let fact = |name, text: fn(&HostEnvironment) -> String| {
        let values: Vec<String> = (columns.iter())
            .map(|column| text(&column.record.environment.host))
            .collect();
        Fact {
            name,
            differs: values.windows(2).any(|two| two[0] != two[1]),
            values,
        }
    };
    let mut facts = vec![
        fact("CPU", |host| host.cpu.clone()),
        fact("Cores", |host| host.cores.to_string()),
        fact("Memory", HostEnvironment::memory_text),
        fact("Architecture", |host| host.architecture.clone()),
        fact("Kernel", |host| host.kernel.clone()),
        fact("Virtualization", |host| host.virtualization.clone()),
        fact("Storage", |host| host.storage.clone()),
    ];
    let server = |name, text: fn(&Column) -> String| {
        let values: Vec<String> = columns.iter().map(text).collect();
        let differs = values.windows(2).any(|two| two[0] != two[1]);
        differs.then_some(Fact {
            name,
            differs,
            values,
        })
    };
    // Two machines mostly run the same of these.
    facts.extend(server("Server", |column| {
        let server = &column.record.environment.server;
        format!("{} {}", server.version, server.engine)
    }));
    facts.extend(server("Profile", |column| column.record.profile.clone()));
    facts.extend(server("In part on", |column| {
        let others = column.record.environments.values();
        let names: Vec<&str> = others.map(|other| other.host.cpu.as_str()).collect();
        match names.as_slice() {
            [] => "–".to_owned(),
            names => names.join(", "),
        }
    }));
    facts
}

fn link(claim: &Claim) -> Link<'_> {
    Link {
        name: &claim.name.value,
        anchor: claim_anchor(&claim.name.value),
    }
}

fn difference<'a>(document: &Document, columns: &[Column], row: &Row<'a>) -> Difference<'a> {
    let claim = row.claim;
    let verdicts = document.verdicts_of(&claim.name.value);
    let state = document.claim_state(&claim.name.value);
    let (published, published_ratio) = super::evidence::published(claim, verdicts);
    let cells = (row.cells.iter().zip(columns))
        .map(|(cell, column)| CellView {
            text: cell.text.clone().unwrap_or_else(|| "–".to_owned()),
            ratio: cell.ratio.clone(),
            fails: cell.state == Some(State::Fails),
            compared: column.standing == Standing::Compared,
        })
        .collect();
    Difference {
        link: link(claim),
        cells,
        published,
        published_ratio,
        state: state.class(),
        mark: state.mark(),
        state_text: match (claim.kind, state) {
            (ClaimKind::Noisy, State::Skipped) => "of the machine",
            _ => state.text(),
        },
    }
}
