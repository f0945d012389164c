//! Parts of a whole: filled lines, stacked where there are several series.

use super::axes::{self, Start};
use super::plot::{Meaning, Plot};
use super::{Chart, ChartType, refuse_missing, refuse_repeated};
use crate::diagnostic::Diagnostic;
use crate::source::Source;
use charming::element::{AreaStyle, LineStyle};
use charming::series::Line;
use std::sync::Arc;

pub const AREA: ChartType = ChartType {
    name: "area",
    description: "filled lines from zero, stacked where there are several series",
    build,
};

fn build(chart: &Chart, source: &Arc<Source>) -> Result<charming::Chart, Diagnostic> {
    let plot = Plot::read(chart, source, Meaning::Continuous)?;
    if let Some((low, _)) = &chart.block.error {
        return Err(Diagnostic::error("an area chart has no error bars")
            .at(source, low.span)
            .hint("draw a `line`, or leave `error` out"));
    }
    if plot.log_y {
        return Err(
            Diagnostic::error("areas cannot begin at zero on a logarithmic axis")
                .at(source, chart.block.chart_type.span)
                .hint("draw a `line`, or take `y` out of `log`"),
        );
    }
    refuse_repeated(chart, source, &plot)?;
    let stacked = plot.series.len() > 1;
    if stacked {
        refuse_missing(chart, source, &plot)?;
    }
    let mut drawing = axes::chart(chart, &plot, Start::Zero);
    for series in &plot.series {
        let mut line = Line::new()
            .name(&series.name)
            .show_symbol(false)
            .line_style(LineStyle::new().width(1.5))
            .area_style(AreaStyle::new().opacity(if stacked { 0.75 } else { 0.3 }))
            .data(axes::data(&series.points));
        if stacked {
            line = line.stack("all");
        }
        drawing = drawing.series(line);
    }
    Ok(drawing)
}
