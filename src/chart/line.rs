//! Points joined in the order of the rows, one line a series.

use super::axes::{self, Start};
use super::plot::{Meaning, Plot};
use super::{Chart, ChartType};
use crate::diagnostic::Diagnostic;
use crate::source::Source;
use charming::element::{LineStyle, LineStyleType, Symbol};
use charming::series::Line;
use std::sync::Arc;

pub const LINE: ChartType = ChartType {
    name: "line",
    description: "points joined in the order of the rows, a line for each series",
    build,
};

/// Lines differ in their marks too, for those who do not see their colours.
pub const SYMBOLS: [Symbol; 4] = [
    Symbol::Circle,
    Symbol::Rect,
    Symbol::Triangle,
    Symbol::Diamond,
];
/// draw.js has as many colours; after that they come again.
const COLOURS: usize = 8;
/// Above this, marks only thicken the line.
const MARKED_POINTS: usize = 60;

fn build(chart: &Chart, source: &Arc<Source>) -> Result<charming::Chart, Diagnostic> {
    let plot = Plot::read(chart, source, Meaning::Continuous)?;
    let mut drawing = axes::chart(chart, &plot, Start::NearData);
    for (index, series) in plot.series.iter().enumerate() {
        drawing = drawing.series(
            Line::new()
                .name(&series.name)
                .symbol(SYMBOLS[index % SYMBOLS.len()].clone())
                .line_style(LineStyle::new().type_(if index < COLOURS {
                    LineStyleType::Solid
                } else {
                    LineStyleType::Dashed
                }))
                .show_symbol(series.points.len() <= MARKED_POINTS)
                .data(axes::data(&series.points)),
        );
    }
    Ok(axes::with_error_bars(drawing, &plot))
}
