//! Parts of a whole: filled lines, stacked where there are several series.

use super::axes::{self, Start};
use super::plot::{Meaning, Plot, Series};
use super::{Chart, ChartType, refuse_missing, refuse_repeated};
use crate::diagnostic::Diagnostic;
use crate::source::Source;
use charming::element::{AreaStyle, LineStyle};
use charming::series::Line;
use std::collections::HashMap;
use std::sync::Arc;

pub const AREA: ChartType = ChartType {
    name: "area",
    description: "filled lines from zero, stacked where there are several series",
    build,
};

fn build(chart: &Chart, source: &Arc<Source>) -> Result<charming::Chart, Diagnostic> {
    let mut plot = Plot::read(chart, source, Meaning::Continuous)?;
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
    if stacked {
        stack(&mut plot.series);
    }
    // The uppermost layer lies undermost, so that each is seen from the top of the one below.
    let layers = plot.series.len();
    for (index, series) in plot.series.iter().enumerate() {
        let line = Line::new()
            .name(&series.name)
            .show_symbol(false)
            .z(i32::try_from(layers - index).unwrap_or(i32::MAX))
            .line_style(LineStyle::new().width(1.5))
            .area_style(AreaStyle::new().opacity(if stacked { 1.0 } else { 0.3 }))
            .data(axes::data(&series.points));
        drawing = drawing.series(line);
    }
    Ok(drawing)
}

/// Puts each series upon those before it, place by place. ECharts would do so along the horizontal
/// axis where that has numbers, and by the order of the rows.
fn stack(series: &mut [Series]) {
    let mut height: HashMap<u64, f64> = HashMap::new();
    for one in series {
        one.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        for point in &mut one.points {
            let below = height.entry(point.x.to_bits()).or_default();
            *below += point.y;
            point.y = *below;
        }
    }
}
