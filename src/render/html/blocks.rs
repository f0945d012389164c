//! A live block as it stands in the page: a listing, a table, a chart, a folded list of claims.

use super::evidence::{self, DoubtView};
use super::samples::{self, CellColumn};
use super::{Document, claim_anchor, short};
use crate::article::{
    Block, BlockKind, BytesMeaning, ChartBlock, Claims, Experiment, ReferenceKind, TableBlock,
};
use crate::diagnostic::Diagnostic;
use crate::record::{CellSummary, ExperimentRecord, Summary};
use crate::render::cells::{self, ShownTable};
use crate::render::{csv, highlight, markdown, templates};
use indexmap::IndexMap;
use serde::Serialize;

/// Columns shown of what an experiment measured; the CSV has all.
const MAIN_COLUMNS: usize = 6;

/// The id of a block's element.
pub fn anchor(block: &Block) -> String {
    let role = match block.kind {
        BlockKind::Fixture(_) => "fixture",
        BlockKind::Experiment(_) => "experiment",
        BlockKind::Claims(_) => "claims",
        BlockKind::Table(_) => "table",
        BlockKind::Chart(_) => "chart",
    };
    format!("{role}-{}", block.id.value)
}

/// `caption` is HTML.
pub fn render(
    document: &Document,
    block: &Block,
    caption: Option<String>,
) -> Result<String, Diagnostic> {
    if let Some((kind, reason)) = skipped(document, block) {
        return skipped_html(document, block, kind, reason, caption);
    }
    match &block.kind {
        BlockKind::Fixture(_) => templates::render(
            "html/fixture.html",
            &FixtureView {
                anchor: anchor(block),
                id: &block.id.value,
                code: highlight::block(block.content.text.trim_end()),
            },
        ),
        BlockKind::Experiment(experiment) => experiment_html(document, block, experiment, caption),
        BlockKind::Claims(claims) => claims_html(document, claims),
        BlockKind::Table(table) => table_html(document, block, table, caption),
        BlockKind::Chart(chart) => chart_html(document, block, chart, caption),
    }
}

#[derive(Serialize)]
struct FixtureView<'a> {
    anchor: String,
    id: &'a str,
    code: String,
}

// ---- skipped ----------------------------------------------------------------------------------

#[derive(Serialize)]
struct SkippedView<'a> {
    anchor: String,
    class: &'static str,
    label: String,
    caption: Option<String>,
    code: Option<String>,
    reason: &'a str,
}

/// Why an existing server gave nothing to show here, where it did not.
fn skipped<'a>(document: &Document<'a>, block: &Block) -> Option<(ReferenceKind, &'a str)> {
    let (kind, word) = match &block.kind {
        BlockKind::Experiment(_) => (ReferenceKind::Experiment, "experiment"),
        BlockKind::Table(_) => (ReferenceKind::Table, "table"),
        BlockKind::Chart(_) => (ReferenceKind::Chart, "chart"),
        BlockKind::Fixture(_) | BlockKind::Claims(_) => return None,
    };
    let record = document.page.record;
    Some((kind, record.skipped_because(word, &block.id.value)?))
}

fn skipped_html(
    document: &Document,
    block: &Block,
    kind: ReferenceKind,
    reason: &str,
    caption: Option<String>,
) -> Result<String, Diagnostic> {
    let echo = match &block.kind {
        BlockKind::Experiment(experiment) => experiment.echo,
        _ => false,
    };
    templates::render(
        "html/skipped.html",
        &SkippedView {
            anchor: anchor(block),
            class: match kind {
                ReferenceKind::Experiment => "listing",
                ReferenceKind::Table => "table",
                ReferenceKind::Chart => "chart",
            },
            label: label(document, kind, &block.id.value),
            caption,
            code: echo.then(|| highlight::block(block.content.text.trim_end())),
            reason,
        },
    )
}

// ---- experiment -------------------------------------------------------------------------------

#[derive(Serialize)]
struct ExperimentView<'a> {
    anchor: String,
    label: String,
    caption: Option<String>,
    /// None: the article hides it.
    code: Option<String>,
    doubts: Vec<DoubtView<'a>>,
    runs: String,
    cell_columns: Vec<CellColumn<'a>>,
    columns: Vec<&'a str>,
    rows: Vec<CellView<'a>>,
    plans: Vec<PlanView>,
    files: Vec<FileView>,
    measured_at: &'a str,
    host: Option<&'a str>,
    fingerprint: &'a str,
    short_fingerprint: String,
}

#[derive(Serialize)]
struct CellView<'a> {
    cell: Vec<&'a str>,
    values: Vec<MedianView>,
}

/// The plan of a cell's last run, which is the one that follows most others.
#[derive(Serialize)]
struct PlanView {
    /// `indexes=8, run 3`
    label: String,
    text: String,
}

#[derive(Serialize)]
struct MedianView {
    median: String,
    range: Option<String>,
}

#[derive(Serialize)]
struct FileView {
    path: String,
    name: String,
}

fn experiment_html(
    document: &Document,
    block: &Block,
    experiment: &Experiment,
    caption: Option<String>,
) -> Result<String, Diagnostic> {
    let id = &experiment.id.value;
    let record = experiment_record(document, block, id)?;
    let columns = main_columns(record, experiment);
    let view = ExperimentView {
        anchor: anchor(block),
        label: label(document, ReferenceKind::Experiment, id),
        caption,
        code: (experiment.echo).then(|| highlight::block(block.content.text.trim_end())),
        doubts: evidence::doubts(record),
        runs: samples::runs(&record.summaries),
        cell_columns: samples::cell_columns(&record.summaries),
        rows: (record.summaries.iter())
            .map(|summary| cell_view(summary, &columns))
            .collect(),
        columns,
        plans: plans(record, experiment),
        files: std::iter::once((csv::experiment_path(id, None), format!("{id}.csv")))
            .chain(record.results.keys().map(|name| {
                (
                    csv::experiment_path(id, Some(name)),
                    format!("{id}_{name}.csv"),
                )
            }))
            .map(|(path, name)| FileView { path, name })
            .collect(),
        measured_at: &record.measured_at,
        host: document.host_name(&record.host),
        fingerprint: &record.fingerprint,
        short_fingerprint: short(&record.fingerprint),
    };
    templates::render("html/experiment.html", &view)
}

/// What the instrument `explain` kept, a cell: matrix columns, `run`, the plan.
fn plans(record: &ExperimentRecord, experiment: &Experiment) -> Vec<PlanView> {
    let explained = experiment
        .instrument("explain")
        .and(record.results.get("explain"));
    let Some(table) = explained else {
        return Vec::new();
    };
    let (Some(run), Some(text)) = (table.column("run"), table.column("text")) else {
        return Vec::new();
    };
    let mut last: IndexMap<String, PlanView> = IndexMap::new();
    for row in &table.rows {
        let cells = table.columns[..run].iter().zip(row);
        let cell: Vec<String> = cells
            .map(|(column, value)| format!("{}={value}", column.name))
            .collect();
        let cell = cell.join(" ");
        let run = format!("run {}", row[run]);
        let view = PlanView {
            label: match cell.is_empty() {
                true => run,
                false => format!("{cell}, {run}"),
            },
            text: row[text].to_string(),
        };
        last.insert(cell, view);
    }
    last.into_values().collect()
}

fn experiment_record<'a>(
    document: &Document<'a>,
    block: &Block,
    id: &str,
) -> Result<&'a ExperimentRecord, Diagnostic> {
    let record = document.page.record.experiments.get(id);
    record.ok_or_else(|| missing(document, block, "experiment", id))
}

fn missing(document: &Document, block: &Block, what: &str, id: &str) -> Diagnostic {
    Diagnostic::error(format!("the record has nothing of {what} `{id}`"))
        .at(&document.page.article.source, block.id.span)
        .hint("build the article again")
}

/// Which of the measured columns a reader wants first: what the author derived, then times, buffers,
/// WAL and rows, then the rest as measured.
fn main_columns<'a>(record: &'a ExperimentRecord, experiment: &Experiment) -> Vec<&'a str> {
    let Some(first) = record.summaries.first() else {
        return Vec::new();
    };
    let usual = ["elapsed_ms", "execution_ms", "buffers", "wal_bytes", "rows"];
    let wanted = experiment.derive.keys().map(String::as_str).chain(usual);
    let mut columns: Vec<&str> = Vec::new();
    for name in wanted.chain(first.columns.keys().map(String::as_str)) {
        let measured = first.columns.get_key_value(name);
        if let Some((name, _)) = measured
            && !columns.contains(&name.as_str())
            && !first.cell.contains_key(name)
            && name != "run"
        {
            columns.push(name);
        }
    }
    columns.truncate(MAIN_COLUMNS);
    columns
}

fn cell_view<'a>(summary: &'a CellSummary, columns: &[&str]) -> CellView<'a> {
    CellView {
        cell: summary.cell.values().map(String::as_str).collect(),
        values: (columns.iter())
            .map(|name| match summary.columns.get(*name) {
                Some(summary) => median_view(summary),
                None => MedianView {
                    median: String::new(),
                    range: None,
                },
            })
            .collect(),
    }
}

fn median_view(summary: &Summary) -> MedianView {
    MedianView {
        median: samples::number_text(&summary.median),
        range: (summary.min != summary.max).then(|| {
            format!(
                "{} – {}",
                samples::number_text(&summary.min),
                samples::number_text(&summary.max)
            )
        }),
    }
}

// ---- claims, table, chart ---------------------------------------------------------------------

#[derive(Serialize)]
struct ClaimsView<'a> {
    summary: String,
    claims: Vec<ClaimLine<'a>>,
}

#[derive(Serialize)]
struct ClaimLine<'a> {
    name: &'a str,
    anchor: String,
    measured: String,
    state: &'static str,
    mark: &'static str,
    state_text: &'static str,
}

fn claims_html(document: &Document, claims: &Claims) -> Result<String, Diagnostic> {
    let lines: Vec<ClaimLine> = (claims.claims.iter())
        .map(|claim| {
            let name = claim.name.value.as_str();
            let state = document.claim_state(name);
            ClaimLine {
                name,
                anchor: claim_anchor(name),
                measured: evidence::measured_text(document, claim),
                state: state.class(),
                mark: state.mark(),
                state_text: state.text(),
            }
        })
        .collect();
    let summary = match lines.len() {
        1 => "1 claim is checked here".to_owned(),
        count => format!("{count} claims are checked here"),
    };
    templates::render(
        "html/claims.html",
        &ClaimsView {
            summary,
            claims: lines,
        },
    )
}

#[derive(Serialize)]
struct TableView {
    anchor: String,
    label: String,
    caption: Option<String>,
    table: ShownTable,
    csv: String,
}

fn bytes(document: &Document) -> BytesMeaning {
    document.page.article.front_matter.bytes
}

fn table_html(
    document: &Document,
    block: &Block,
    table: &TableBlock,
    caption: Option<String>,
) -> Result<String, Diagnostic> {
    let id = &table.id.value;
    let rows = (document.page.record.tables.get(id))
        .ok_or_else(|| missing(document, block, "table", id))?;
    let shown = cells::shown(rows, &table.columns, bytes(document))
        .map_err(|message| wrong_column(document, block, message))?;
    templates::render(
        "html/table.html",
        &TableView {
            anchor: anchor(block),
            label: label(document, ReferenceKind::Table, id),
            caption,
            table: shown,
            csv: csv::table_path(id),
        },
    )
}

fn wrong_column(document: &Document, block: &Block, message: String) -> Diagnostic {
    Diagnostic::error(message).at(&document.page.article.source, block.id.span)
}

#[derive(Serialize)]
struct ChartView<'a> {
    anchor: String,
    label: String,
    caption: Option<String>,
    /// Only where the SVG does not say it itself.
    alt: Option<&'a str>,
    svg: &'a str,
    table: ShownTable,
    csv: String,
    file: String,
}

fn chart_html(
    document: &Document,
    block: &Block,
    chart: &ChartBlock,
    caption: Option<String>,
) -> Result<String, Diagnostic> {
    let id = &chart.id.value;
    let page = document.page;
    let rows = (page.record.charts.get(id)).ok_or_else(|| missing(document, block, "chart", id))?;
    let svg = (page.charts.get(id)).ok_or_else(|| missing(document, block, "chart", id))?;
    let shown = cells::shown(rows, &IndexMap::new(), bytes(document))
        .map_err(|message| wrong_column(document, block, message))?;
    let filled = document.filled;
    let alt = filled.chart_alts.get(id).map(String::as_str);
    templates::render(
        "html/chart.html",
        &ChartView {
            anchor: anchor(block),
            label: label(document, ReferenceKind::Chart, id),
            caption,
            alt: alt.filter(|_| !says_what_it_is(svg)),
            svg: svg.trim_start(),
            table: shown,
            csv: csv::chart_path(id),
            file: markdown::chart_path(id),
        },
    )
}

/// Whether the SVG element has a role and a name of its own.
fn says_what_it_is(svg: &str) -> bool {
    let element = svg.split_once('>').map_or(svg, |(element, _)| element);
    element.contains("role=\"img\"") && element.contains("aria-label")
}

fn label(document: &Document, kind: ReferenceKind, id: &str) -> String {
    document.numbering.label(kind, id).unwrap_or_default()
}
