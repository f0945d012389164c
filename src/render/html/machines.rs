//! What a reader sees who builds on another machine than the author's: both machines, and what each
//! claim came to on either, those that differ most first. On the author's own machine none of it.

use super::{Document, claim_anchor};
use crate::article::{Claim, ClaimKind};
use crate::quantity::{Number, Value};
use crate::record::{ClaimRecord, HostEnvironment};
use crate::render::number_format;
use crate::render::state::State;
use bigdecimal::{BigDecimal, One, Zero};
use serde::Serialize;

#[derive(Serialize)]
pub struct MachinesView<'a> {
    author: &'a str,
    own: &'a str,
    /// What the two are, fact by fact.
    facts: Vec<Fact<'a>>,
    /// Claims with another value here, the farthest off first.
    differ: Vec<Difference<'a>>,
    any_published: bool,
    /// Claims with the author's value to the last digit.
    same: Vec<Link<'a>>,
    /// How many claims are of the machine: shown, and not judged here.
    of_the_machine: usize,
    /// The author's profile, where that is another one: its values are then of something else.
    author_profile: Option<&'a str>,
}

#[derive(Serialize)]
struct Fact<'a> {
    name: &'static str,
    author: std::borrow::Cow<'a, str>,
    own: std::borrow::Cow<'a, str>,
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
    author: String,
    own: String,
    ratio: Option<String>,
    published: Option<String>,
    published_ratio: Option<String>,
    state: &'static str,
    mark: &'static str,
    state_text: &'static str,
    /// The larger of the ratio and its reverse; None where there is no ratio.
    #[serde(skip)]
    off: Option<BigDecimal>,
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
    let name = &claim.name.value;
    let (record, accepted) = (document.page.record, document.page.accepted?);
    let (own, author) = (record.claims.get(name)?, accepted.claims.get(name)?);
    let comparable = record.is_of_the_same_profile(accepted)
        && record.is_of_another_machine(accepted, &own.reads);
    comparable.then(|| Beside {
        author,
        own,
        ratio: ratio(own, author),
    })
}

impl Beside<'_> {
    /// `0.579`; more digits where it is near 1.
    pub fn ratio_text(&self) -> Option<String> {
        let ratio = self.ratio.as_ref()?;
        let near = number_format::significant(ratio, 3) == "1.00";
        Some(number_format::significant(ratio, if near { 6 } else { 3 }))
    }

    pub fn author_exact(&self) -> String {
        super::evidence::exact_text(self.author)
    }

    /// As the claim prints them; with more digits where that would hide a difference.
    pub fn texts(&self, document: &Document, claim: &Claim) -> (String, String) {
        let print = |record: &ClaimRecord| super::evidence::claim_text(document, claim, record);
        let (author, own) = (print(self.author), print(self.own));
        if author != own || self.is_same() {
            return (author, own);
        }
        let precise = |record: &ClaimRecord| match finite(record) {
            Some(number) => super::evidence::with_unit(
                number_format::significant(number, 8),
                record.unit.as_deref(),
            ),
            None => record.value.to_string(),
        };
        (precise(self.author), precise(self.own))
    }

    fn is_same(&self) -> bool {
        self.author.value == self.own.value || self.ratio.as_ref().is_some_and(One::is_one)
    }
}

fn ratio(own: &ClaimRecord, author: &ClaimRecord) -> Option<BigDecimal> {
    let (own_number, author_number) = (finite(own)?, finite(author)?);
    (own.unit == author.unit && !author_number.is_zero()).then(|| own_number / author_number)
}

fn finite(record: &ClaimRecord) -> Option<&BigDecimal> {
    match &record.value {
        Value::Number(Number::Finite(number)) => Some(number),
        _ => None,
    }
}

/// None where the page is built on the author's machine.
pub fn machines<'a>(document: &Document<'a>) -> Option<MachinesView<'a>> {
    let author = super::author_host(document.page)?;
    let own = &document.page.record.environment.host;
    let (mut differ, mut same, mut of_the_machine) = (Vec::new(), Vec::new(), 0);
    for claim in document.page.article.claims() {
        of_the_machine += usize::from(claim.kind == ClaimKind::Noisy);
        let Some(beside) = beside(document, claim) else {
            continue;
        };
        if beside.is_same() {
            same.push(link(claim));
        } else {
            differ.push(difference(document, claim, &beside));
        }
    }
    differ.sort_by(|one, other| match (&one.off, &other.off) {
        (Some(one), Some(other)) => other.cmp(one),
        // Without a ratio it is another thing altogether: true there, false here.
        (one, other) => one.is_some().cmp(&other.is_some()),
    });
    Some(MachinesView {
        author: &author.cpu,
        own: &own.cpu,
        facts: facts(author, own),
        any_published: differ.iter().any(|row| row.published.is_some()),
        differ,
        same,
        of_the_machine,
        author_profile: (document.page.accepted)
            .filter(|accepted| !accepted.is_of_the_same_profile(document.page.record))
            .map(|accepted| accepted.profile.as_str()),
    })
}

fn facts<'a>(author: &'a HostEnvironment, own: &'a HostEnvironment) -> Vec<Fact<'a>> {
    let text = |name, author: &'a str, own: &'a str| Fact {
        name,
        differs: author != own,
        author: author.into(),
        own: own.into(),
    };
    let owned = |name, author: String, own: String| Fact {
        name,
        differs: author != own,
        author: author.into(),
        own: own.into(),
    };
    vec![
        text("CPU", &author.cpu, &own.cpu),
        owned("Cores", author.cores.to_string(), own.cores.to_string()),
        owned("Memory", author.memory_text(), own.memory_text()),
        text("Architecture", &author.architecture, &own.architecture),
        text("Kernel", &author.kernel, &own.kernel),
        text(
            "Virtualization",
            &author.virtualization,
            &own.virtualization,
        ),
        text("Storage", &author.storage, &own.storage),
    ]
}

fn link(claim: &Claim) -> Link<'_> {
    Link {
        name: &claim.name.value,
        anchor: claim_anchor(&claim.name.value),
    }
}

fn difference<'a>(document: &Document<'a>, claim: &'a Claim, beside: &Beside) -> Difference<'a> {
    let verdicts = document.verdicts_of(&claim.name.value);
    let state = document.claim_state(&claim.name.value);
    let (published, published_ratio) = super::evidence::published(claim, verdicts);
    let (author, own) = beside.texts(document, claim);
    Difference {
        link: link(claim),
        author,
        own,
        ratio: beside.ratio_text(),
        published,
        published_ratio,
        state: state.class(),
        mark: state.mark(),
        state_text: match (claim.kind, state) {
            (ClaimKind::Noisy, State::Skipped) => "of the machine",
            _ => state.text(),
        },
        off: beside.ratio.as_ref().map(|ratio| {
            let ratio = ratio.abs();
            if ratio.is_zero() || ratio > BigDecimal::one() {
                ratio
            } else {
                BigDecimal::one() / ratio
            }
        }),
    }
}
