//! The spread of many rows for each value of `x`.

use super::axes::{self, Start};
use super::plot::{Meaning, Plot};
use super::{Chart, ChartType};
use crate::diagnostic::Diagnostic;
use crate::source::Source;
use charming::datatype::{CompositeValue, DataPoint};
use charming::series::Boxplot;
use std::sync::Arc;

pub const BOX: ChartType = ChartType {
    name: "box",
    description: "the rows of each value of `x` as minimum, quartiles, median and maximum",
    build,
};

fn build(chart: &Chart, source: &Arc<Source>) -> Result<charming::Chart, Diagnostic> {
    let plot = Plot::read(chart, source, Meaning::Categories)?;
    if let Some((low, _)) = &chart.block.error {
        return Err(Diagnostic::error("a box chart has no error bars")
            .at(source, low.span)
            .hint("the box is the spread of the rows; leave `error` out"));
    }
    let mut drawing = axes::chart(chart, &plot, Start::NearData);
    for series in &plot.series {
        let mut samples = vec![Vec::new(); plot.categories().len()];
        for point in &series.points {
            samples[point.x as usize].push(point.y);
        }
        let boxes: Vec<DataPoint> = samples.into_iter().map(five_numbers).collect();
        drawing = drawing.series(Boxplot::new().name(&series.name).data(boxes));
    }
    Ok(drawing)
}

/// Minimum, quartiles and maximum; ECharts's sign for nothing where there are no samples.
fn five_numbers(mut samples: Vec<f64>) -> DataPoint {
    if samples.is_empty() {
        return "-".into();
    }
    samples.sort_by(f64::total_cmp);
    let five = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| axes::number(quantile(&samples, share)));
    CompositeValue::from(five.to_vec()).into()
}

/// As Postgres's `percentile_cont` has it: linear between the two nearest.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (
        sorted[place.floor() as usize],
        sorted[place.ceil() as usize],
    );
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_are_those_of_percentile_cont() {
        for (samples, share, expected) in [
            (&[5.0][..], 0.25, 5.0),
            (&[1.0, 2.0], 0.5, 1.5),
            (&[1.0, 2.0, 3.0, 4.0], 0.25, 1.75),
            (&[1.0, 2.0, 3.0, 4.0, 10.0], 0.75, 4.0),
            (&[1.0, 2.0, 3.0, 4.0, 10.0], 1.0, 10.0),
        ] {
            assert_eq!(quantile(samples, share), expected, "{samples:?} at {share}");
        }
    }
}
