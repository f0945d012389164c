//! What charts on two axes have in common: title, axes, legend, error bars. How they look and
//! where they stand is draw.js's.

use super::Chart as Block;
use super::plot::{Horizontal, Plot, Point};
use super::svg::printable;
use charming::Chart;
use charming::component::{Axis, Legend, Title};
use charming::datatype::{CompositeValue, DataPoint};
use charming::element::{AxisType, DimensionEncode};
use charming::series::Custom;

/// Where the vertical axis begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Lengths are compared: at zero.
    Zero,
    /// Positions are compared: at zero unless that squeezes everything into the upper half.
    NearData,
}

/// A chart without series.
pub fn chart(block: &Block, plot: &Plot, start: Start) -> Chart {
    let vertical = Axis::new().name(vertical_title(block));
    let vertical = if plot.log_y && start == Start::Zero {
        // There is no zero to begin at, and ECharts would let bars hang from 1.
        let foot = decade_below(plot);
        vertical.type_(AxisType::Log).min(foot).start_value(foot)
    } else if plot.log_y {
        vertical.type_(AxisType::Log)
    } else {
        vertical
            .type_(AxisType::Value)
            .scale(start == Start::NearData && is_far_from_zero(plot))
    };
    with_legend(frame(block, plot), plot).y_axis(vertical)
}

/// Title and horizontal axis.
pub fn frame(block: &Block, plot: &Plot) -> Chart {
    let mut chart = Chart::new().x_axis(horizontal(block, plot));
    if let Some(title) = &block.title {
        chart = chart.title(Title::new().text(printable(title)));
    }
    chart
}

/// `y_label`, or else the column's name; several columns are named by the legend.
pub fn vertical_title(block: &Block) -> String {
    match (&block.block.y_label, block.block.y.as_slice()) {
        (Some(label), _) => printable(label).into_owned(),
        (None, [column]) => printable(&column.value).into_owned(),
        (None, _) => String::new(),
    }
}

fn horizontal(block: &Block, plot: &Plot) -> Axis {
    let label = block.block.x_label.as_ref().unwrap_or(&block.block.x.value);
    let axis = Axis::new().name(printable(label));
    match &plot.horizontal {
        Horizontal::Categories(names) => axis.type_(AxisType::Category).data(names.clone()),
        Horizontal::Times => axis.type_(AxisType::Time),
        Horizontal::Numbers { .. } if plot.log_x => axis.type_(AxisType::Log),
        Horizontal::Numbers { whole } => {
            let axis = axis.type_(AxisType::Value).scale(true);
            if *whole { axis.min_interval(1.0) } else { axis }
        }
    }
}

fn with_legend(chart: Chart, plot: &Plot) -> Chart {
    if plot.series.len() < 2 {
        return chart;
    }
    let names: Vec<&str> = plot
        .series
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    chart.legend(Legend::new().data(names))
}

/// The power of ten below everything, so that the smallest bar still has a height.
fn decade_below(plot: &Plot) -> f64 {
    let low = plot.heights().fold(f64::INFINITY, f64::min);
    let exponent = low.log10().ceil() - 1.0;
    10f64.powf(exponent)
}

fn is_far_from_zero(plot: &Plot) -> bool {
    let low = plot.heights().fold(f64::INFINITY, f64::min);
    let high = plot.heights().fold(f64::NEG_INFINITY, f64::max);
    low > 0.5 * high || high < 0.5 * low
}

/// A number as short as JSON has it.
pub fn number(value: f64) -> CompositeValue {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        (value as i64).into()
    } else {
        value.into()
    }
}

pub fn data(points: &[Point]) -> Vec<DataPoint> {
    points
        .iter()
        .map(|point| DataPoint::from(CompositeValue::from(vec![number(point.x), number(point.y)])))
        .collect()
}

/// Which of how many bars stand side by side; `of` 0 for marks that are no bars.
#[derive(Clone, Copy)]
pub struct Slot {
    pub index: usize,
    pub of: usize,
    /// Whether the value is printed above the error bar.
    pub printed: bool,
}

/// Error bars at the points themselves, where the chart has them.
pub fn with_error_bars(mut drawing: charming::Chart, plot: &Plot) -> charming::Chart {
    let slot = Slot {
        index: 0,
        of: 0,
        printed: false,
    };
    for series in plot.series.iter().filter(|_| plot.has_errors) {
        drawing = drawing.series(error_bars(&series.name, &series.points, slot));
    }
    drawing
}

/// The error bars of one series, drawn by `errorBar` in draw.js. The name is the series' own, so
/// that both have its colour.
pub fn error_bars(name: &str, points: &[Point], slot: Slot) -> Custom {
    let rows = points.iter().filter_map(|point| {
        let (low, high) = point.error?;
        let printed = if slot.printed {
            number(point.y)
        } else {
            "-".into()
        };
        Some(DataPoint::from(CompositeValue::from(vec![
            number(point.x),
            number(low),
            number(high),
            printed,
            number(slot.index as f64),
            number(slot.of as f64),
        ])))
    });
    Custom::new()
        .name(name)
        .encode(DimensionEncode::new().x(0).y(vec![1, 2]))
        .data(rows.collect::<Vec<_>>())
}
