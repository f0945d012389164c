//! What each claim rests on: query, exact value, tolerance, what was published, what the author
//! measured, and the samples.

use super::prose::Use;
use super::{Document, blocks, claim_anchor, explanation, short};
use crate::article::*;
use crate::judge::Verdict;
use crate::quantity::{Number, Value};
use crate::record::{ClaimRecord, ExperimentRecord};
use crate::render::state::State;
use crate::render::{csv, highlight, number_format};
use serde::Serialize;
use squawk_lexer::{TokenKind, tokenize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Serialize)]
pub struct ClaimView<'a> {
    name: String,
    anchor: String,
    kind: &'static str,
    kind_meaning: &'static str,
    state: &'static str,
    mark: &'static str,
    state_text: &'static str,
    /// Every digit that Postgres gave.
    exact: String,
    /// One a verdict; one at least.
    lines: Vec<Line>,
    pub published: Option<String>,
    published_ratio: Option<String>,
    pub author: Option<String>,
    author_ratio: Option<String>,
    profile: Option<String>,
    uses: Vec<Use>,
    query: String,
    samples: Vec<SampleView<'a>>,
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

#[derive(Serialize)]
struct SampleView<'a> {
    label: String,
    caption: Option<String>,
    anchor: String,
    cell_columns: Vec<String>,
    columns: Vec<SampleColumn>,
    doubts: Vec<DoubtView<'a>>,
    measured_at: String,
    host: Option<String>,
    fingerprint: String,
    short_fingerprint: String,
    csv: String,
}

#[derive(Serialize)]
struct SampleColumn {
    name: String,
    rows: Vec<SampleRow>,
}

#[derive(Serialize)]
struct SampleRow {
    cell: Vec<String>,
    runs: u32,
    median: String,
    min: String,
    max: String,
    interval: String,
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
pub fn claims<'a>(
    document: &Document<'a>,
    uses: &BTreeMap<String, Vec<Use>>,
) -> Vec<ClaimView<'a>> {
    (document.page.article.claims())
        .map(|claim| claim_view(document, claim, uses))
        .collect()
}

fn claim_view<'a>(
    document: &Document<'a>,
    claim: &Claim,
    uses: &BTreeMap<String, Vec<Use>>,
) -> ClaimView<'a> {
    let name = &claim.name.value;
    let record = document.page.record.claims.get(name);
    let verdicts = document.verdicts_of(name);
    let state = document.claim_state(name);
    let (kind, kind_meaning) = kind(claim.kind);
    let published = (verdicts
        .iter()
        .find_map(|verdict| verdict.published.clone()))
    .or_else(|| claim.published.as_ref().map(|p| published_text(claim, p)));
    let published_ratio = verdicts.iter().find_map(|v| v.published_ratio.clone());
    let (author, author_ratio) = author(document, claim, verdicts);
    let lines = lines(
        document,
        claim,
        verdicts,
        with_ratio(published.as_deref(), published_ratio.as_deref()),
        with_ratio(author.as_deref(), author_ratio.as_deref()),
    );
    ClaimView {
        anchor: claim_anchor(name),
        kind,
        kind_meaning,
        state: state.class(),
        mark: state.mark(),
        state_text: state.text(),
        exact: record.map_or_else(
            || "no value".to_owned(),
            |record| exact_text(&record.value, record.unit.as_deref()),
        ),
        lines,
        published,
        published_ratio,
        author,
        author_ratio,
        profile: claim.profile.as_ref().map(|profile| profile.value.clone()),
        uses: uses.get(name).cloned().unwrap_or_default(),
        query: highlight::sql(claim.query.text.text.trim()),
        samples: samples(document, claim, record),
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

fn exact_text(value: &Value, unit: Option<&str>) -> String {
    let text = match value {
        Value::Number(Number::Finite(number)) => number_format::exact(number),
        other => other.to_string(),
    };
    with_unit(text, unit)
}

fn with_unit(text: String, unit: Option<&str>) -> String {
    match unit {
        Some(unit) if !unit.is_empty() => format!("{text} {unit}"),
        _ => text,
    }
}

/// The value as the claim prints it, with its unit.
pub fn measured_text(document: &Document, claim: &Claim) -> String {
    if let Some(verdict) = document.verdicts_of(&claim.name.value).first() {
        return verdict.measured_text.clone();
    }
    match document.page.record.claims.get(&claim.name.value) {
        Some(record) => {
            let text = number_format::value(&record.value, claim.format.as_deref())
                .unwrap_or_else(|_| record.value.to_string());
            with_unit(text, claim.unit.as_deref())
        }
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

/// The accepted record's value, where it is another machine's.
fn author(
    document: &Document,
    claim: &Claim,
    verdicts: &[&Verdict],
) -> (Option<String>, Option<String>) {
    if let Some((value, ratio)) = verdicts.iter().find_map(|v| v.recorded.clone()) {
        return (Some(value), Some(ratio).filter(|ratio| !ratio.is_empty()));
    }
    let value = super::author_host(document.page)
        .and(document.page.accepted)
        .and_then(|accepted| accepted.claims.get(&claim.name.value))
        .map(|record| {
            let text = number_format::value(&record.value, claim.format.as_deref())
                .unwrap_or_else(|_| record.value.to_string());
            with_unit(text, record.unit.as_deref())
        });
    (value, None)
}

fn with_ratio(value: Option<&str>, ratio: Option<&str>) -> String {
    match (value, ratio) {
        (Some(value), Some(ratio)) => format!("{value} (× {ratio})"),
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

// ---- samples ----------------------------------------------------------------------------------

fn samples<'a>(
    document: &Document<'a>,
    claim: &Claim,
    record: Option<&ClaimRecord>,
) -> Vec<SampleView<'a>> {
    let words = words(&claim.query.text.text);
    let reads = record.map_or(&[][..], |record| &record.reads);
    (reads.iter())
        .filter_map(|id| {
            let experiment = document
                .page
                .article
                .experiments()
                .find(|e| e.id.value == *id)?;
            let record = document.page.record.experiments.get(id)?;
            Some(sample_view(document, experiment, record, &words))
        })
        .collect()
}

/// The identifiers of a query: a claim's samples are of the columns that it names.
fn words(sql: &str) -> BTreeSet<String> {
    let mut at = 0;
    let mut words = BTreeSet::new();
    for token in tokenize(sql) {
        let text = &sql[at..at + token.len as usize];
        match token.kind {
            TokenKind::Ident => words.insert(text.to_lowercase()),
            TokenKind::QuotedIdent { .. } => words.insert(text.trim_matches('"').to_owned()),
            TokenKind::Eof => break,
            _ => false,
        };
        at += token.len as usize;
    }
    words
}

fn sample_view<'a>(
    document: &Document<'a>,
    experiment: &Experiment,
    record: &'a ExperimentRecord,
    words: &BTreeSet<String>,
) -> SampleView<'a> {
    let id = &experiment.id.value;
    let first = record.summaries.first();
    let mut columns: Vec<&str> = (first.iter())
        .flat_map(|summary| summary.columns.keys().map(move |name| (summary, name)))
        .filter(|(summary, name)| words.contains(*name) && !summary.cell.contains_key(*name))
        .map(|(_, name)| name.as_str())
        .collect();
    if columns.is_empty() {
        columns = blocks::main_columns(record, experiment);
    }
    SampleView {
        label: (document.numbering)
            .label(ReferenceKind::Experiment, id)
            .unwrap_or_default(),
        caption: document.filled.captions.get(id).cloned(),
        anchor: format!("experiment-{id}"),
        cell_columns: first.map_or_else(Vec::new, |s| s.cell.keys().cloned().collect()),
        columns: (columns.iter())
            .map(|name| SampleColumn {
                name: (*name).to_owned(),
                rows: sample_rows(record, name),
            })
            .collect(),
        doubts: doubts(record),
        measured_at: record.measured_at.clone(),
        host: document.host_name(&record.host).map(str::to_owned),
        short_fingerprint: short(&record.fingerprint),
        fingerprint: record.fingerprint.clone(),
        csv: csv::experiment_path(id, None),
    }
}

fn sample_rows(record: &ExperimentRecord, column: &str) -> Vec<SampleRow> {
    (record.summaries.iter())
        .filter_map(|summary| Some((&summary.cell, summary.columns.get(column)?)))
        .map(|(cell, summary)| SampleRow {
            cell: cell.values().cloned().collect(),
            runs: summary.runs,
            median: blocks::sample_text(&summary.median),
            min: blocks::sample_text(&summary.min),
            max: blocks::sample_text(&summary.max),
            interval: (summary.interval.as_ref())
                .map(|(low, high)| {
                    format!(
                        "{} – {}",
                        blocks::sample_text(low),
                        blocks::sample_text(high)
                    )
                })
                .unwrap_or_default(),
        })
        .collect()
}
