//! `status --explain ID`: every input of an experiment, a fixture, or the query of a claim, table or
//! chart, with the hash they come to, and what of them is not as it was accepted, or measured last.

use crate::analyse;
use crate::article::Article;
use crate::command::record::Context;
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::exit_code::Failure;
use crate::parse::sql::variables_of_text;
use crate::plan::{Force, fingerprint, latest};
use crate::record::{Difference, Fingerprint, Record};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Serialize)]
pub struct Explained {
    id: String,
    kind: &'static str,
    /// Of the inputs.
    sha256: String,
    inputs: Fingerprint,
    /// Against the accepted record; None where it has nothing of this name.
    accepted: Option<Against>,
    /// Against the newest result in the store; experiments alone wait there.
    stored: Option<Against>,
}

/// What differs, from then to now.
#[derive(Serialize)]
struct Against {
    measured_at: Option<String>,
    changed: Vec<Difference>,
}

impl Against {
    fn new(before: &Fingerprint, now: &Fingerprint, measured_at: Option<&str>) -> Self {
        Self {
            measured_at: measured_at.map(str::to_owned),
            changed: before.differences(now),
        }
    }
}

/// An id that is in none of the articles is a slip of the pen.
pub fn exists(id: &str, articles: &[Article]) -> Result<(), Failure> {
    let known: Vec<&str> = articles.iter().flat_map(ids).collect();
    if known.contains(&id) {
        return Ok(());
    }
    let hint = if articles.iter().any(|article| article.slug == id) {
        "that is an article: name it before `--explain`".to_owned()
    } else {
        did_you_mean(id, known.iter().copied()).unwrap_or_else(|| {
            let experiments: Vec<&str> = (articles.iter().flat_map(Article::experiments))
                .map(|experiment| experiment.id.value.as_str())
                .collect();
            format!("there are the experiments {}", experiments.join(", "))
        })
    };
    let problem =
        format!("`--explain {id}`: there is no such experiment, fixture, claim, table or chart");
    Err(Failure::article(Diagnostic::error(problem).hint(hint)))
}

fn ids(article: &Article) -> impl Iterator<Item = &str> {
    let experiments = article.experiments().map(|one| &one.id);
    let fixtures = article.fixtures().map(|one| &one.id);
    let claims = article.claims().map(|one| &one.name);
    let tables = article.tables().map(|one| &one.id);
    let charts = article.charts().map(|one| &one.id);
    let all = experiments
        .chain(fixtures)
        .chain(claims)
        .chain(tables)
        .chain(charts);
    all.map(|id| id.value.as_str())
}

/// Everything of that name: a claim may be called as a block is.
pub fn explain(context: &Context<'_>, id: &str) -> Vec<Explained> {
    let article = context.article;
    let mut found: Vec<Explained> = experiment(context, id).into_iter().collect();
    if article.fixtures().any(|fixture| fixture.id.value == id) {
        found.push(fixture(context, id));
    }
    let queries = [
        ("claim", article.claims().any(|one| one.name.value == id)),
        ("table", article.tables().any(|one| one.id.value == id)),
        ("chart", article.charts().any(|one| one.id.value == id)),
    ];
    for (kind, _) in queries.into_iter().filter(|(_, there)| *there) {
        found.push(query(context, kind, id));
    }
    found
}

fn experiment(context: &Context<'_>, id: &str) -> Option<Explained> {
    let planned = context.plan(&Force::Nothing);
    let item = planned
        .into_iter()
        .find(|item| item.experiment.id.value == id)?;
    let now = item.fingerprint;
    let accepted = context
        .accepted
        .as_ref()
        .and_then(|record| record.experiments.get(id));
    let results = context.store.results(id);
    Some(Explained {
        accepted: accepted.map(|one| Against::new(&one.inputs, &now, Some(&one.measured_at))),
        stored: latest(&results, &now)
            .map(|one| Against::new(&one.inputs, &now, Some(&one.measured_at))),
        ..Explained::of(id, "experiment", now)
    })
}

/// The fixture's script and those it stands on, as the experiments have them.
fn fixture(context: &Context<'_>, id: &str) -> Explained {
    let now = fingerprint::of_fixture(context.article, id, &context.resolved);
    let own = format!("fixture `{id}`");
    let accepted = context.accepted.as_ref().and_then(|record| {
        let used = |one: &&crate::record::ExperimentRecord| one.inputs.fields.contains_key(&own);
        let inputs = &record.experiments.values().find(used)?.inputs;
        let mut fields = inputs.fields.clone();
        // Further params are the experiment's own, further fixtures stand on this one.
        fields.retain(|name, _| now.fields.contains_key(name));
        Some(Against::new(&Fingerprint { fields }, &now, None))
    });
    Explained {
        accepted,
        ..Explained::of(id, "fixture", now)
    }
}

/// The query, its params, and for a claim its unit.
fn query(context: &Context<'_>, kind: &'static str, id: &str) -> Explained {
    let article = context.article;
    let name = match kind {
        "claim" => Record::claim_query(id),
        kind => format!("{kind} `{id}`"),
    };
    let mut fields = BTreeMap::new();
    let mut put = |name: String, value: Option<String>| {
        if let Some(value) = value {
            fields.insert(name, value);
        }
    };
    let sql = analyse::queries(article).fields.remove(&name);
    let variables: Vec<String> = sql
        .iter()
        .flat_map(|sql| variables_of_text(sql))
        .map(|variable| variable.name)
        .collect();
    put(name.clone(), sql);
    for param in &variables {
        let value = context.resolved.params.get(param);
        put(format!("param `{param}`"), value.map(ToString::to_string));
    }
    let claim = article
        .claims()
        .find(|one| kind == "claim" && one.name.value == id);
    put(
        "unit".to_owned(),
        claim.and_then(|claim| claim.unit.clone()),
    );
    let accepted = context.accepted.as_ref().and_then(|record| {
        let sql = record.queries.fields.get(&name)?;
        let mut fields = BTreeMap::from([(name.clone(), sql.clone())]);
        for variable in variables_of_text(sql) {
            if let Some(value) = record.params.get(&variable.name) {
                fields.insert(format!("param `{}`", variable.name), value.clone());
            }
        }
        let claim = record.claims.get(id).filter(|_| kind == "claim");
        if let Some(unit) = claim.and_then(|claim| claim.unit.clone()) {
            fields.insert("unit".to_owned(), unit);
        }
        Some(Fingerprint { fields })
    });
    let now = Fingerprint { fields };
    Explained {
        accepted: accepted.map(|before| Against::new(&before, &now, None)),
        ..Explained::of(id, kind, now)
    }
}

impl Explained {
    fn of(id: &str, kind: &'static str, inputs: Fingerprint) -> Self {
        Self {
            id: id.to_owned(),
            kind,
            sha256: inputs.sha256(),
            inputs,
            accepted: None,
            stored: None,
        }
    }

    pub fn text(&self) -> String {
        let mut text = format!("\n  {} {} {}\n", self.kind, self.id, self.sha256);
        for (what, against) in [
            ("what is accepted", &self.accepted),
            ("the newest stored result", &self.stored),
        ] {
            if let Some(against) = against {
                against.tell(what, &mut text);
            }
        }
        text.push_str("    inputs:\n");
        for (name, value) in &self.inputs.fields {
            let value = value.trim_end().replace('\n', "\n        ");
            let _ = writeln!(text, "      {name}: {value}");
        }
        text
    }
}

impl Against {
    fn tell(&self, what: &str, text: &mut String) {
        let when = match &self.measured_at {
            Some(at) => format!(", measured {at}"),
            None => String::new(),
        };
        let same = if self.changed.is_empty() {
            " the same"
        } else {
            ""
        };
        let _ = writeln!(text, "    against {what}{when}:{same}");
        for difference in &self.changed {
            let _ = writeln!(text, "      {difference}");
            if !difference.is_short() {
                for line in difference.lines() {
                    let _ = writeln!(text, "        {line}");
                }
            }
        }
    }
}
