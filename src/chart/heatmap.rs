//! A grid of cells whose colour is the value: columns are `x`, rows the series.

use super::axes::{self, number};
use super::plot::{Meaning, Plot};
use super::{Chart, ChartType, refuse_repeated};
use crate::diagnostic::Diagnostic;
use crate::source::Source;
use charming::component::{Axis, VisualMap};
use charming::datatype::DataPoint;
use charming::element::{AxisType, Label};
use charming::series::Heatmap;
use std::sync::Arc;

pub const HEATMAP: ChartType = ChartType {
    name: "heatmap",
    description: "a cell for each value of `x` and each series, coloured by `y`",
    build,
};

/// As many cells can carry their values.
const PRINTED_CELLS: usize = 80;
/// More columns than these leave no room for a value in a cell.
const PRINTED_COLUMNS: usize = 12;

fn build(chart: &Chart, source: &Arc<Source>) -> Result<charming::Chart, Diagnostic> {
    let plot = Plot::read(chart, source, Meaning::Categories)?;
    if plot.log_y || plot.has_errors {
        let what = if plot.log_y {
            "logarithms"
        } else {
            "error bars"
        };
        let hint = "leave the option out; a logarithm can be taken in the chart's query";
        return Err(Diagnostic::error(format!("a heatmap chart has no {what}"))
            .at(source, chart.block.chart_type.span)
            .hint(hint));
    }
    refuse_repeated(chart, source, &plot)?;
    let rows: Vec<&str> = plot
        .series
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    let cells: Vec<Vec<DataPoint>> = plot
        .series
        .iter()
        .enumerate()
        .flat_map(|(row, series)| series.points.iter().map(move |point| (row, point)))
        .map(|(row, point)| {
            [point.x, row as f64, point.y]
                .map(|n| number(n).into())
                .to_vec()
        })
        .collect();
    let printed = cells.len() <= PRINTED_CELLS && plot.categories().len() <= PRINTED_COLUMNS;
    let low = plot.heights().fold(f64::INFINITY, f64::min);
    let high = plot.heights().fold(f64::NEG_INFINITY, f64::max);
    // Colours need a range also where all values are the same.
    let high = if high > low { high } else { low + 1.0 };
    let vertical = Axis::new()
        .type_(AxisType::Category)
        .inverse(true)
        .name(title(chart))
        .data(rows);
    Ok(axes::frame(chart, &plot)
        .y_axis(vertical)
        .visual_map(VisualMap::new().min(low).max(high).calculable(false))
        .series(Heatmap::new().label(Label::new().show(printed)).data(cells)))
}

/// What the colour means, and what the rows are.
fn title(chart: &Chart) -> String {
    let value = axes::vertical_title(chart);
    match &chart.block.series {
        Some(series) if value.is_empty() => format!("by {}", series.value),
        Some(series) => format!("{value}, by {}", series.value),
        None => value,
    }
}
