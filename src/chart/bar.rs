//! Bars from zero, one group a value of `x`, one bar a series.

use super::axes::{self, Slot, Start};
use super::plot::{Meaning, Plot};
use super::{Chart, ChartType, refuse_repeated};
use crate::diagnostic::Diagnostic;
use crate::source::Source;
use charming::element::Label;
use charming::series::Bar;
use std::sync::Arc;

pub const BAR: ChartType = ChartType {
    name: "bar",
    description: "bars from zero for each value of `x`, side by side for each series",
    build,
};

/// As many bars can carry their values without touching each other.
const PRINTED_BARS: usize = 12;

fn build(chart: &Chart, source: &Arc<Source>) -> Result<charming::Chart, Diagnostic> {
    let plot = Plot::read(chart, source, Meaning::Categories)?;
    refuse_repeated(chart, source, &plot)?;
    let bars: usize = plot.series.iter().map(|series| series.points.len()).sum();
    let printed = bars <= PRINTED_BARS;
    let mut drawing = axes::chart(chart, &plot, Start::Zero);
    for series in &plot.series {
        let label = Label::new().show(printed && !plot.has_errors);
        drawing = drawing.series(
            Bar::new()
                .name(&series.name)
                .label(label)
                .data(axes::data(&series.points)),
        );
    }
    if plot.has_errors {
        let of = plot.series.len();
        for (index, series) in plot.series.iter().enumerate() {
            let slot = Slot { index, of, printed };
            drawing = drawing.series(axes::error_bars(&series.name, &series.points, slot));
        }
    }
    Ok(drawing)
}
