//! Draws a chart block's rows as SVG through charming's option model and ECharts. Entry: [`draw`].
//!
//! 1. [`plot`] reads the rows into series of points, and refuses what cannot be drawn.
//! 2. The chart's type builds charming's chart of them; one file each, listed in [`CHARTS`].
//! 3. The block's own `option:` is merged into that, last.
//! 4. [`echarts`] draws it, in the look of draw.js.
//! 5. [`svg`] cleans the drawing and gives it title and description.

mod area;
mod axes;
mod bar;
mod boxplot;
mod echarts;
mod heatmap;
mod line;
mod merge;
mod plot;
mod scatter;
mod svg;
mod time;

use crate::article::ChartBlock;
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::quantity::Table;
use crate::record::sha256_of;
use crate::source::Source;
use plot::{Plot, row_name};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A chart block, the result of its query, and its texts with every value filled in.
pub struct Chart<'a> {
    pub block: &'a ChartBlock,
    pub table: &'a Table,
    pub title: Option<String>,
    pub alt: String,
    pub caption: Option<String>,
}

/// A kind of chart that a block may ask for by name.
pub struct ChartType {
    /// As `type:` has it.
    pub name: &'static str,
    pub description: &'static str,
    /// Reads and checks the rows, and makes charming's chart of them.
    pub build: fn(&Chart, &Arc<Source>) -> Result<charming::Chart, Diagnostic>,
}

/// Every kind of chart. One more is one more file and one more line.
pub const CHARTS: &[ChartType] = &[
    bar::BAR,
    line::LINE,
    scatter::SCATTER,
    boxplot::BOX,
    area::AREA,
    heatmap::HEATMAP,
];

/// Licences and notices of what draws the charts, which go with the binary.
pub const NOTICES: &str = include_str!("../../THIRD-PARTY-NOTICES.md");

/// The drawing's size in CSS pixels at its natural scale.
pub const WIDTH: u32 = 640;
pub const HEIGHT: u32 = 380;

/// Draws a chart: SVG without an XML declaration, fit to stand in a page and as a file of its own.
/// The same chart always comes to the same bytes.
pub fn draw(chart: &Chart, source: &Arc<Source>) -> Result<String, Diagnostic> {
    let failed = |message: String| {
        let diagnostic = Diagnostic::error(message).at(source, chart.block.id.span);
        match chart.block.option {
            Some(_) => diagnostic.hint("see whether it can be drawn without its `option:`"),
            None => diagnostic,
        }
    };
    let id = &chart.block.id.value;
    let request = json!({
        "width": WIDTH,
        "height": HEIGHT,
        "option": option(chart, source)?,
    });
    let drawn = echarts::svg(&request.to_string())
        .map_err(|error| failed(format!("chart `{id}` cannot be drawn: {error}")))?;
    if let Some(number) = ["NaN", "Infinity"]
        .iter()
        .find(|word| has_coordinate(&drawn, word))
    {
        return Err(failed(format!(
            "chart `{id}` cannot be drawn: a coordinate is {number}"
        )));
    }
    let about = svg::Description {
        id: &format!("chart-{id}"),
        title: chart.title.as_deref().or(chart.caption.as_deref()),
        description: &chart.alt,
    };
    svg::clean(&drawn, &about)
        .map_err(|error| failed(format!("the drawing of chart `{id}` is refused: {error}")))
}

/// The ECharts option, as JSON, with the block's own merged in; for drawing it elsewhere too.
pub fn option(chart: &Chart, source: &Arc<Source>) -> Result<Value, Diagnostic> {
    let wanted = &chart.block.chart_type;
    let Some(chart_type) = CHARTS.iter().find(|known| known.name == wanted.value) else {
        let names: Vec<String> = CHARTS
            .iter()
            .map(|known| format!("`{}`", known.name))
            .collect();
        let hint = did_you_mean(&wanted.value, CHARTS.iter().map(|known| known.name));
        return Err(
            Diagnostic::error(format!("no chart type is named `{}`", wanted.value))
                .at(source, wanted.span)
                .note(format!("chart types are {}", names.join(", ")))
                .hint(
                    hint.unwrap_or_else(|| "`remeasure list charts` says what each is for".into()),
                ),
        );
    };
    let drawing = (chart_type.build)(chart, source)?;
    let mut option = serde_json::to_value(&drawing).map_err(|error| {
        Diagnostic::error(format!(
            "chart `{}` has no JSON: {error}",
            chart.block.id.value
        ))
        .at(source, chart.block.id.span)
    })?;
    if let Some(own) = &chart.block.option {
        if !own.is_object() {
            let message = format!(
                "`option` of chart `{}` is not a mapping",
                chart.block.id.value
            );
            return Err(Diagnostic::error(message)
                .at(source, chart.block.id.span)
                .hint("it is an ECharts option, such as `option: {yAxis: {max: 100}}`"));
        }
        merge::merge(&mut option, own);
    }
    Ok(option)
}

/// Names a drawing by all that it depends on: while the key is the same, so is the SVG.
pub fn cache_key(chart: &Chart) -> String {
    let block = chart.block;
    let texts = |columns: &[&crate::source::Spanned<String>]| -> Vec<String> {
        columns.iter().map(|column| column.value.clone()).collect()
    };
    let rows: Vec<Vec<Option<String>>> = chart
        .table
        .rows
        .iter()
        .map(|row| {
            row.iter()
                .map(crate::quantity::Value::to_postgres)
                .collect()
        })
        .collect();
    let inputs = json!({
        // Of ECharts, draw.js and everything in this folder; see build.rs.
        "drawing": env!("REMEASURE_DRAWING"),
        "id": block.id.value,
        "type": block.chart_type.value,
        "x": block.x.value,
        "y": texts(&block.y.iter().collect::<Vec<_>>()),
        "series": texts(&block.series.iter().collect::<Vec<_>>()),
        "error": texts(&block.error.iter().flat_map(|(low, high)| [low, high]).collect::<Vec<_>>()),
        "log": block.log.iter().map(|axis| format!("{axis:?}")).collect::<Vec<_>>(),
        "labels": [&block.x_label, &block.y_label],
        "option": block.option,
        "texts": [chart.title.as_ref(), Some(&chart.alt), chart.caption.as_ref()],
        "columns": chart.table.columns,
        "rows": rows,
    });
    sha256_of(inputs.to_string().as_bytes())
}

/// Whether a word that stands for no number is among a tag's attributes; in a text it may stand.
fn has_coordinate(svg: &str, word: &str) -> bool {
    svg.match_indices(word).any(|(at, _)| {
        let before = &svg[..at];
        before.rfind('<') > before.rfind('>')
    })
}

/// Two rows in one place would hide each other.
fn refuse_repeated(chart: &Chart, source: &Arc<Source>, plot: &Plot) -> Result<(), Diagnostic> {
    for series in &plot.series {
        let mut seen: HashMap<u64, usize> = HashMap::new();
        for point in &series.points {
            if let Some(first) = seen.insert(point.x.to_bits(), point.row) {
                let kind = &chart.block.chart_type.value;
                return Err(Diagnostic::error(format!(
                    "{} and {} have the same place in a {kind} chart",
                    row_name(chart, first),
                    row_name(chart, point.row)
                ))
                .at(source, chart.block.x.span)
                .hint(
                    "summarise them with `GROUP BY` in the query, or tell them apart by `series:`",
                ));
            }
        }
    }
    Ok(())
}

/// A stack needs every layer everywhere.
fn refuse_missing(chart: &Chart, source: &Arc<Source>, plot: &Plot) -> Result<(), Diagnostic> {
    let places = |points: &[plot::Point]| -> HashSet<u64> {
        points.iter().map(|point| point.x.to_bits()).collect()
    };
    for series in &plot.series {
        let here = places(&series.points);
        let elsewhere = plot.series.iter().flat_map(|other| &other.points);
        for point in elsewhere {
            if !here.contains(&point.x.to_bits()) {
                let row = &chart.table.rows[point.row];
                let x = chart
                    .table
                    .column(&chart.block.x.value)
                    .map(|column| &row[column]);
                return Err(Diagnostic::error(format!(
                    "series `{}` has no row where `{}` is {}, so it cannot be stacked",
                    series.name,
                    chart.block.x.value,
                    x.unwrap_or(&crate::quantity::Value::Null)
                ))
                .at(source, chart.block.x.span)
                .hint("fill the gap in the chart's query, or draw a `line`"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
