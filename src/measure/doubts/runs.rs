//! What the times of a cell's runs say of one another: runs that lie far off, and times that change
//! from run to run.

use super::found::{Found, Kind};
use crate::measure::statistics::median;
use crate::quantity::Number;
use crate::record::Sample;
use bigdecimal::BigDecimal;
use std::collections::BTreeMap;

/// Iglewicz and Hoaglin, "How to Detect and Handle Outliers", 1993: |modified z| above 3.5.
const OUTLIER: f64 = 3.5;
/// The median absolute deviation of a normal distribution, in standard deviations.
const MAD_TO_SIGMA: f64 = 0.6745;
/// Of fewer runs one cannot tell.
const RUNS_FOR_OUTLIERS: usize = 5;

/// Mann, "Nonparametric Tests Against Trend", 1945, and Kendall: |z| beyond this has a chance of 1 %
/// where there is no trend. Five runs never reach it.
const TREND: f64 = 2.576;
/// A smaller change of the median than this, from the first run to the last, moves no figure.
const DRIFT: f64 = 0.05;

/// Over all samples of an experiment.
pub fn doubts(samples: &[Sample]) -> Vec<Found> {
    let mut cells: BTreeMap<usize, Vec<(u32, BigDecimal)>> = BTreeMap::new();
    for sample in samples {
        let elapsed = sample
            .row
            .column("elapsed_ms")
            .and_then(|column| sample.row.rows.first()?[column].number()?.finite().cloned());
        if let Some(elapsed) = elapsed {
            let runs = cells.entry(sample.cell).or_default();
            runs.push((sample.run, elapsed));
        }
    }
    let mut found = Vec::new();
    for (cell, mut runs) in cells {
        runs.sort_by_key(|(run, _)| *run);
        let one = |kind, run, amount| Found {
            cell,
            run,
            kind,
            amount,
        };
        let outliers = outlying(&runs).into_iter();
        found.extend(outliers.map(|(run, factor)| one(Kind::Outlier, run, factor)));
        if let Some(change) = drift(&runs) {
            found.extend(
                runs.iter()
                    .map(|(run, _)| one(Kind::Drift, *run, change * 100.0)),
            );
        }
    }
    found
}

fn to_f64(value: &BigDecimal) -> f64 {
    Number::Finite(value.clone()).to_f64()
}

/// Runs far from the others, with their time as a multiple of the median.
fn outlying(runs: &[(u32, BigDecimal)]) -> Vec<(u32, f64)> {
    if runs.len() < RUNS_FOR_OUTLIERS {
        return Vec::new();
    }
    let values: Vec<BigDecimal> = runs.iter().map(|(_, value)| value.clone()).collect();
    let Some(middle) = median(&values) else {
        return Vec::new();
    };
    let deviations: Vec<BigDecimal> = values.iter().map(|v| (v - &middle).abs()).collect();
    let mad = median(&deviations).map_or(0.0, |mad| to_f64(&mad));
    if mad == 0.0 {
        return Vec::new();
    }
    runs.iter()
        .map(|(run, value)| (*run, to_f64(value)))
        .filter(|(_, value)| (MAD_TO_SIGMA * (value - to_f64(&middle)) / mad).abs() > OUTLIER)
        .map(|(run, value)| (run, value / to_f64(&middle)))
        .collect()
}

/// By which share of the median the time changed from the first run to the last, where it did:
/// Kendall's test says whether, the median of all slopes (Theil 1950, Sen 1968) by how much.
fn drift(runs: &[(u32, BigDecimal)]) -> Option<f64> {
    let times: Vec<f64> = runs.iter().map(|(_, value)| to_f64(value)).collect();
    let count = times.len() as f64;
    let pairs = (0..times.len()).flat_map(|i| (i + 1..times.len()).map(move |j| (i, j)));
    let (mut sum, mut slopes) = (0.0, Vec::new());
    for (i, j) in pairs {
        let rise = times[j] - times[i];
        sum += if rise == 0.0 { 0.0 } else { rise.signum() };
        slopes.push(rise / (j - i) as f64);
    }
    let deviation = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
    if deviation == 0.0 || (sum.abs() - 1.0) / deviation <= TREND {
        return None;
    }
    slopes.sort_by(f64::total_cmp);
    // Of an even count the mean of the middle two.
    let slope = f64::midpoint(slopes[(slopes.len() - 1) / 2], slopes[slopes.len() / 2]);
    let values: Vec<BigDecimal> = runs.iter().map(|(_, value)| value.clone()).collect();
    let middle = to_f64(&median(&values)?);
    let change = slope * (count - 1.0) / middle;
    (change.abs() > DRIFT).then_some(change)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::doubts::found::sentences;
    use crate::quantity::{Column, Table, Value};
    use indexmap::IndexMap;

    fn samples(times: &[&str]) -> Vec<Sample> {
        let sample = |(run, elapsed): (u32, &&str)| Sample {
            cell: 0,
            run,
            row: Table {
                columns: vec![Column::new("elapsed_ms", "double precision")],
                rows: vec![vec![Value::from_postgres(
                    Some(elapsed),
                    "double precision",
                )]],
            },
            results: IndexMap::new(),
        };
        (1..).zip(times).map(sample).collect()
    }

    fn told(samples: &[Sample]) -> Vec<String> {
        sentences(&doubts(samples), |cell| format!("k={cell}, "))
            .into_iter()
            .map(|doubt| doubt.message)
            .collect()
    }

    #[test]
    fn an_outlier_is_told_with_its_cell_and_run() {
        let five = samples(&["100", "101", "99", "100", "300"]);
        let expected = ["k=0, run 5: took 3.00 times the cell's median"];
        assert_eq!(told(&five), expected);
        // Of four runs one cannot tell.
        assert!(told(&five[1..]).is_empty());
        let two = samples(&["100", "300", "101", "99", "100", "100.5", "250"]);
        let expected = ["k=0, runs 2 and 7: took 2.49 to 2.99 times the cell's median"];
        assert_eq!(told(&two), expected);
    }

    #[test]
    fn one_slow_run_among_five_is_an_outlier_and_equal_runs_are_none() {
        let runs = |values: [i32; 5]| -> Vec<(u32, BigDecimal)> {
            (1..).zip(values.map(BigDecimal::from)).collect()
        };
        assert_eq!(outlying(&runs([100, 101, 99, 100, 300])), [(5, 3.0)]);
        assert!(outlying(&runs([100; 5])).is_empty());
        assert!(outlying(&runs([98, 101, 99, 100, 103])).is_empty());
    }

    #[test]
    fn times_that_grow_or_fall_from_run_to_run_drift_and_noise_does_not() {
        let of = |times: &[i32]| {
            let runs: Vec<(u32, BigDecimal)> =
                (1..).zip(times.iter().map(|&time| time.into())).collect();
            drift(&runs).map(|change| (change * 1000.0).round() as i32)
        };
        for (times, per_mille) in [
            (&[100, 102, 104, 106, 108, 110][..], Some(95)),
            (&[110, 108, 106, 104, 102, 100], Some(-95)),
            (&[100, 103, 101, 107, 106, 111, 110, 116], Some(144)),
            // One out of six in another place may be chance.
            (&[100, 104, 102, 106, 108, 110], None),
            (&[100, 102, 104, 106, 108], None),
            (&[100, 97, 103, 99, 102, 98, 101, 100], None),
            // Sure, and too little to matter.
            (&[1000, 1001, 1002, 1003, 1004, 1005], None),
            (&[100; 8], None),
            (&[100], None),
            (&[], None),
        ] {
            assert_eq!(of(times), per_mille, "{times:?}");
        }
        let growing = samples(&["100", "110", "120", "130", "140", "150"]);
        let expected = ["k=0, runs 1 to 6: the time grew by 40 % from the first to the last"];
        assert_eq!(told(&growing), expected);
        let falling = samples(&["150", "140", "130", "120", "110", "100"]);
        let expected = ["k=0, runs 1 to 6: the time fell by 40 % from the first to the last"];
        assert_eq!(told(&falling), expected);
    }
}
