//! What each claim rests on: query, exact value, tolerance, what was published, what the author
//! measured, and where its samples are.

use super::prose::Use;
use super::{Document, claim_anchor, explanation, machines, samples};
use crate::article::{Claim, ClaimKind, Published};
use crate::judge::Verdict;
use crate::record::{Comparison, ExperimentRecord};
use crate::render::machines::{claim_text, exact_text, with_unit};
use crate::render::state::State;
use crate::render::{highlight, number_format};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
pub struct ClaimView {
    name: String,
    anchor: String,
    kind: &'static str,
    kind_meaning: &'static str,
    state: &'static str,
    mark: &'static str,
    state_text: &'static str,
    /// Every digit that Postgres gave.
    exact: String,
    /// Of a comparison, for people.
    interval: Option<String>,
    /// One a verdict; one at least.
    lines: Vec<Line>,
    pub published: Option<String>,
    published_ratio: Option<String>,
    pub author: Option<String>,
    author_ratio: Option<String>,
    profile: Option<String>,
    /// Whose value it is, where it is of one machine.
    machine: Option<String>,
    uses: Vec<Use>,
    query: String,
    samples: Vec<SampleLink>,
}

/// A verdict in the table of all figures.
#[derive(PartialEq, Serialize)]
struct Line {
    quoted: Option<String>,
    measured: String,
    tolerance: String,
    published: String,
    author: String,
    explanation: Option<String>,
    state: &'static str,
    mark: &'static str,
    state_text: &'static str,
}

/// Where the samples of a claim are.
#[derive(Serialize)]
struct SampleLink {
    text: String,
    anchor: String,
    /// `10 cells, 3 runs each`
    extent: String,
    doubts: usize,
}

#[derive(Serialize)]
pub struct DoubtView<'a> {
    message: &'a str,
    advice: &'a str,
}

pub fn doubts(record: &ExperimentRecord) -> Vec<DoubtView<'_>> {
    (record.doubts.iter())
        .map(|doubt| DoubtView {
            message: doubt.message.trim_end_matches('.'),
            advice: &doubt.advice,
        })
        .collect()
}

/// One view a claim, in the order of the document.
pub fn claims(document: &Document, uses: &BTreeMap<String, Vec<Use>>) -> Vec<ClaimView> {
    (document.page.article.claims())
        .map(|claim| claim_view(document, claim, uses))
        .collect()
}

fn claim_view(document: &Document, claim: &Claim, uses: &BTreeMap<String, Vec<Use>>) -> ClaimView {
    let name = &claim.name.value;
    let record = document.page.record.claims.get(name);
    let verdicts = document.verdicts_of(name);
    let state = document.claim_state(name);
    let (kind, kind_meaning) = kind(claim.kind);
    let (published, published_ratio) = published(claim, verdicts);
    let author = author(document, claim, verdicts);
    let lines = lines(
        document,
        claim,
        verdicts,
        with_ratio(published.as_deref(), published_ratio.as_deref()),
        author.as_ref().map_or_else(String::new, |author| {
            with_ratio(Some(&author.printed), author.ratio.as_deref())
        }),
    );
    ClaimView {
        anchor: claim_anchor(name),
        kind,
        kind_meaning,
        state: state.class(),
        mark: state.mark(),
        state_text: state.text(),
        exact: record.map_or_else(|| "no value".to_owned(), exact_text),
        interval: record
            .and_then(|record| record.comparison.as_ref())
            .map(Comparison::text),
        lines,
        published,
        published_ratio,
        author_ratio: author.as_ref().and_then(|author| author.ratio.clone()),
        author: author.map(|author| author.exact),
        profile: claim.profile.as_ref().map(|profile| profile.value.clone()),
        machine: claim.machine.as_ref().map(|machine| machine.value.clone()),
        uses: uses.get(name).cloned().unwrap_or_default(),
        query: highlight::sql(claim.query.text.text.trim()),
        samples: sample_links(document, claim),
        name: name.clone(),
    }
}

fn kind(kind: ClaimKind) -> (&'static str, &'static str) {
    match kind {
        ClaimKind::Exact => ("exact", "the same on every machine and run"),
        ClaimKind::Bounded => ("bounded", "the same on every machine, within the tolerance"),
        ClaimKind::Noisy => ("noisy", "of this machine, judged against it alone"),
    }
}

/// The value as the claim prints it, with its unit.
pub fn measured_text(document: &Document, claim: &Claim) -> String {
    if let Some(verdict) = document.verdicts_of(&claim.name.value).first() {
        return verdict.measured_text.clone();
    }
    match document.page.record.claims.get(&claim.name.value) {
        Some(record) => claim_text(document.page.article.front_matter.bytes, claim, record),
        None => "no value".to_owned(),
    }
}

fn published_text(claim: &Claim, published: &Published) -> String {
    match published {
        Published::Number(number) => with_unit(number_format::exact(number), claim.unit.as_deref()),
        Published::Boolean(value) => value.to_string(),
        Published::Text(text) => text.clone(),
    }
}

/// What the source says, and measured / published.
pub fn published(claim: &Claim, verdicts: &[&Verdict]) -> (Option<String>, Option<String>) {
    let text = (verdicts.iter())
        .find_map(|verdict| verdict.published.clone())
        .or_else(|| claim.published.as_ref().map(|p| published_text(claim, p)));
    let ratio = verdicts.iter().find_map(|v| v.published_ratio.clone());
    (text, ratio)
}

/// The accepted record's value, where it is another machine's.
struct Author {
    /// Beside what was measured here with every digit.
    exact: String,
    /// As the claim prints it.
    printed: String,
    ratio: Option<String>,
}

fn author(document: &Document, claim: &Claim, verdicts: &[&Verdict]) -> Option<Author> {
    if let Some(beside) = machines::beside(document, claim) {
        return Some(Author {
            exact: beside.author_exact(),
            printed: beside.author_text(document, claim),
            ratio: beside.ratio_text(),
        });
    }
    // Where there is no value of this machine to set it beside.
    let (value, ratio) = verdicts.iter().find_map(|v| v.recorded.clone())?;
    Some(Author {
        exact: value.clone(),
        printed: value,
        ratio: Some(ratio).filter(|ratio| ratio != "–"),
    })
}

fn with_ratio(value: Option<&str>, ratio: Option<&str>) -> String {
    match (value, ratio) {
        (Some(value), Some(ratio)) => format!("{value} (×{ratio})"),
        (Some(value), None) => value.to_owned(),
        (None, _) => String::new(),
    }
}

fn lines(
    document: &Document,
    claim: &Claim,
    verdicts: &[&Verdict],
    published: String,
    author: String,
) -> Vec<Line> {
    let line = |verdict: Option<&Verdict>, state: State| Line {
        quoted: verdict.and_then(|verdict| verdict.quoted.clone()),
        measured: verdict.map_or_else(
            || measured_text(document, claim),
            |verdict| verdict.measured_text.clone(),
        ),
        tolerance: verdict.map_or_else(String::new, |verdict| verdict.tolerance.clone()),
        published: published.clone(),
        author: author.clone(),
        explanation: verdict.and_then(explanation).map(str::to_owned),
        state: state.class(),
        mark: state.mark(),
        state_text: state.text(),
    };
    if verdicts.is_empty() {
        return vec![line(None, State::Unjudged)];
    }
    let mut lines: Vec<Line> = Vec::new();
    for verdict in verdicts {
        let line = line(Some(verdict), State::of(verdict));
        // The same quote twice says nothing more.
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Of a claim of another machine the samples are in that machine's record.
fn sample_links(document: &Document, claim: &Claim) -> Vec<SampleLink> {
    if claim.machine.is_some() {
        return Vec::new();
    }
    samples::read_by(document, claim)
        .into_iter()
        .flat_map(|(experiment, record, columns)| {
            let id = &experiment.id.value;
            let label = samples::label(document, id);
            let link = |text: String, anchor: String| SampleLink {
                text,
                anchor,
                extent: samples::extent(&record.summaries),
                doubts: record.doubts.len(),
            };
            if columns.is_empty() {
                return vec![link(label, format!("experiment-{id}"))];
            }
            (columns.into_iter())
                .map(|column| {
                    let anchor = samples::anchor(id, column);
                    link(format!("{column} of {label}"), anchor)
                })
                .collect()
        })
        .collect()
}
