//! One mark a row.

use super::axes::{self, Start};
use super::line::SYMBOLS;
use super::plot::{Meaning, Plot};
use super::{Chart, ChartType};
use crate::diagnostic::Diagnostic;
use crate::source::Source;
use charming::series::Scatter;
use std::sync::Arc;

pub const SCATTER: ChartType = ChartType {
    name: "scatter",
    description: "a mark for each row, such as every single run",
    build,
};

fn build(chart: &Chart, source: &Arc<Source>) -> Result<charming::Chart, Diagnostic> {
    let plot = Plot::read(chart, source, Meaning::Continuous)?;
    let mut drawing = axes::chart(chart, &plot, Start::NearData);
    for (index, series) in plot.series.iter().enumerate() {
        drawing = drawing.series(
            Scatter::new()
                .name(&series.name)
                .symbol(SYMBOLS[index % SYMBOLS.len()].clone())
                .data(axes::data(&series.points)),
        );
    }
    Ok(axes::with_error_bars(drawing, &plot))
}
