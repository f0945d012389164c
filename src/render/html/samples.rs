//! The samples that claims rest on, summarised a cell: once for each measured column that a claim
//! names, however many claims do.

use super::evidence::{self, DoubtView};
use super::{Document, short};
use crate::article::{Claim, Experiment, ReferenceKind};
use crate::quantity::Number;
use crate::record::{CellSummary, ExperimentRecord, Summary};
use crate::render::{csv, number_format};
use bigdecimal::BigDecimal;
use serde::Serialize;
use squawk_lexer::{TokenKind, tokenize};
use std::collections::BTreeSet;

/// Digits that show a spread of some per cent.
const DIGITS: i64 = 4;

/// What claims read of one experiment.
#[derive(Serialize)]
pub struct SamplesView<'a> {
    label: String,
    caption: Option<&'a str>,
    /// Of the experiment's listing.
    anchor: String,
    doubts: Vec<DoubtView<'a>>,
    columns: Vec<ColumnView<'a>>,
    measured_at: &'a str,
    host: Option<&'a str>,
    fingerprint: &'a str,
    short_fingerprint: String,
    csv: String,
}

#[derive(Serialize)]
struct ColumnView<'a> {
    anchor: String,
    name: &'a str,
    cell_columns: Vec<CellColumn<'a>>,
    rows: Vec<RowView<'a>>,
}

/// A column of the matrix.
#[derive(Serialize)]
pub struct CellColumn<'a> {
    name: &'a str,
    numeric: bool,
}

#[derive(Serialize)]
struct RowView<'a> {
    cell: Vec<&'a str>,
    runs: u32,
    median: String,
    min: String,
    max: String,
    interval: String,
}

/// In the order of the document.
pub fn samples<'a>(document: &Document<'a>) -> Vec<SamplesView<'a>> {
    let read: Vec<(&str, &str)> = (document.page.article.claims())
        .flat_map(|claim| read_by(document, claim))
        .flat_map(|(experiment, _, columns)| {
            let id = experiment.id.value.as_str();
            columns.into_iter().map(move |column| (id, column))
        })
        .collect();
    let read: BTreeSet<(&str, &str)> = read.into_iter().collect();
    (document.page.article.experiments())
        .filter_map(|experiment| {
            let id = experiment.id.value.as_str();
            let record = document.page.record.experiments.get(id)?;
            let names = record.summaries.first()?.columns.keys();
            let columns: Vec<&str> = (names.map(String::as_str))
                .filter(|name| read.contains(&(id, *name)))
                .collect();
            (!columns.is_empty()).then(|| samples_view(document, id, record, &columns))
        })
        .collect()
}

fn samples_view<'a>(
    document: &Document<'a>,
    id: &str,
    record: &'a ExperimentRecord,
    columns: &[&'a str],
) -> SamplesView<'a> {
    SamplesView {
        label: label(document, id),
        caption: document.filled.captions.get(id).map(String::as_str),
        anchor: format!("experiment-{id}"),
        doubts: evidence::doubts(record),
        columns: (columns.iter())
            .map(|&name| ColumnView {
                anchor: anchor(id, name),
                name,
                cell_columns: cell_columns(&record.summaries),
                rows: rows(&record.summaries, name),
            })
            .collect(),
        measured_at: &record.measured_at,
        host: document.host_name(&record.host),
        short_fingerprint: short(&record.fingerprint),
        fingerprint: &record.fingerprint,
        csv: csv::experiment_path(id, None),
    }
}

fn rows<'a>(summaries: &'a [CellSummary], column: &str) -> Vec<RowView<'a>> {
    (summaries.iter())
        .filter_map(|summary| Some((&summary.cell, summary.columns.get(column)?)))
        .map(|(cell, summary)| RowView {
            cell: cell.values().map(String::as_str).collect(),
            runs: summary.runs,
            median: number_text(&summary.median),
            min: number_text(&summary.min),
            max: number_text(&summary.max),
            interval: interval(summary),
        })
        .collect()
}

fn interval(summary: &Summary) -> String {
    match &summary.interval {
        Some((low, high)) => format!("{} – {}", number_text(low), number_text(high)),
        None => String::new(),
    }
}

/// The experiments whose measured tables a claim reads, each with the columns that it names.
pub fn read_by<'a>(
    document: &Document<'a>,
    claim: &Claim,
) -> Vec<(&'a Experiment, &'a ExperimentRecord, Vec<&'a str>)> {
    let words = words(&claim.query.text.text);
    let Some(claim) = document.page.record.claims.get(&claim.name.value) else {
        return Vec::new();
    };
    (claim.reads.iter())
        .filter_map(|id| {
            let mut experiments = document.page.article.experiments();
            let experiment = experiments.find(|experiment| experiment.id.value == *id)?;
            let record = document.page.record.experiments.get(id)?;
            let columns = (record.summaries.iter().take(1))
                .flat_map(|summary| {
                    let measured = summary.columns.keys().map(String::as_str);
                    measured.filter(|name| !summary.cell.contains_key(*name))
                })
                .filter(|name| words.contains(*name) && *name != "run")
                .collect();
            Some((experiment, record, columns))
        })
        .collect()
}

/// The identifiers of a query.
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

pub fn label(document: &Document, experiment: &str) -> String {
    (document.numbering)
        .label(ReferenceKind::Experiment, experiment)
        .unwrap_or_default()
}

/// Where the samples that a claim rests on stand.
pub fn anchors(document: &Document, claim: &Claim) -> Vec<String> {
    let read = read_by(document, claim).into_iter();
    read.flat_map(|(experiment, _, columns)| {
        let columns = columns.into_iter();
        columns.map(|column| anchor(&experiment.id.value, column))
    })
    .collect()
}

pub fn anchor(experiment: &str, column: &str) -> String {
    format!("samples-{experiment}-{column}")
}

/// The columns of the matrix, and whether all their values are numbers.
pub fn cell_columns(summaries: &[CellSummary]) -> Vec<CellColumn<'_>> {
    let Some(first) = summaries.first() else {
        return Vec::new();
    };
    (first.cell.keys())
        .map(|name| CellColumn {
            name,
            numeric: (summaries.iter())
                .filter_map(|summary| summary.cell.get(name))
                .all(|value| value.parse::<Number>().is_ok()),
        })
        .collect()
}

/// `10 cells, 3 to 8 runs each`
pub fn extent(summaries: &[CellSummary]) -> String {
    match summaries.len() {
        1 => runs(summaries),
        cells => format!("{cells} cells, {} each", runs(summaries)),
    }
}

/// `1 run`, `3 to 8 runs`
pub fn runs(summaries: &[CellSummary]) -> String {
    let counts = (summaries.iter())
        .filter_map(|summary| summary.columns.values().map(|column| column.runs).max());
    match (counts.clone().min(), counts.max()) {
        (Some(1), Some(1)) => "1 run".to_owned(),
        (Some(least), Some(most)) if least == most => format!("{most} runs"),
        (Some(least), Some(most)) => format!("{least} to {most} runs"),
        _ => "no runs".to_owned(),
    }
}

/// A number of a summary for people: integers whole, others with digits enough for a spread.
pub fn number_text(text: &str) -> String {
    match text.parse::<Number>() {
        Ok(Number::Finite(number)) if number.is_integer() => number_format::exact(&number),
        Ok(Number::Finite(number)) => number_format::significant(&number, digits(&number)),
        _ => text.to_owned(),
    }
}

/// Digits before the decimal point are never rounded away.
fn digits(number: &BigDecimal) -> i64 {
    let integer_digits = number.with_scale(0).digits() as i64;
    DIGITS.max(integer_digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use indexmap::IndexMap;

    #[test]
    fn numbers_of_a_summary_keep_their_spread() {
        for (text, expected) in [
            ("1000000", "1,000,000"),
            ("234.812345", "234.8"),
            ("15820.11", "15,820"),
            ("1234567.8", "1,234,568"),
            ("0.000123456", "0.0001235"),
            ("-Infinity", "-Infinity"),
            ("text", "text"),
        ] {
            assert_eq!(number_text(text), expected);
        }
    }

    #[test]
    fn the_extent_counts_cells_and_runs() {
        let cell = |runs: u32| CellSummary {
            cell: IndexMap::new(),
            columns: [(
                "elapsed_ms".to_owned(),
                Summary {
                    runs,
                    median: "1".into(),
                    min: "1".into(),
                    max: "1".into(),
                    interval: None,
                },
            )]
            .into(),
        };
        assert_eq!(extent(&[cell(1)]), "1 run");
        assert_eq!(extent(&[cell(3), cell(3)]), "2 cells, 3 runs each");
        assert_eq!(extent(&[cell(3), cell(8)]), "2 cells, 3 to 8 runs each");
        assert_eq!(extent(&[]), "0 cells, no runs each");
    }

    #[test]
    fn the_words_of_a_query_are_its_identifiers() {
        let words = words("SELECT max(WAL_bytes) - \"Odd\" /* rows */ FROM x WHERE a = 'rows'");
        assert!(words.contains("wal_bytes") && words.contains("Odd"));
        assert!(!words.contains("rows"));
    }
}
