//! Summaries of runs: exact medians, extremes, and bootstrap intervals. The resampling is seeded,
//! so that the same samples give the same interval.

use crate::quantity::{Number, Table, Value, is_numeric_type};
use crate::record::{CellSummary, Summary};
use bigdecimal::BigDecimal;
use indexmap::IndexMap;

const RESAMPLES: usize = 1000;

/// The exact median; of an even count the mean of the middle two. None of nothing.
pub fn median(values: &[BigDecimal]) -> Option<BigDecimal> {
    let mut sorted = values.to_vec();
    sorted.sort();
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle].clone()),
        _ => Some((&sorted[middle - 1] + &sorted[middle]) / BigDecimal::from(2)),
    }
}

/// 95 % percentile bootstrap interval of the median (Efron, "Bootstrap Methods", 1979). None below
/// three values: two cannot tell a spread from a fluke.
pub fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 3 {
        return None;
    }
    let mut random = SplitMix(0x5eed);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let mut sample: Vec<f64> = values
                .iter()
                .map(|_| values[random.below(values.len())])
                .collect();
            middle_of(&mut sample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    Some((
        medians[RESAMPLES * 25 / 1000],
        medians[RESAMPLES * 975 / 1000 - 1],
    ))
}

/// The median of doubles, of which there is at least one; sorts them.
fn middle_of(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

/// Half the width of the median's interval, as a share of the median.
pub fn relative_half_width(values: &[f64]) -> Option<f64> {
    let (low, high) = median_interval(values)?;
    let median = middle_of(&mut values.to_vec());
    (median != 0.0).then(|| ((high - low) / 2.0 / median).abs())
}

/// One summary for each cell and numeric column of a measured table, in order of appearance.
/// `keys` are the matrix columns; `run` is no measurement.
pub fn summaries(table: &Table, keys: &[String]) -> Vec<CellSummary> {
    let key_columns: Vec<usize> = keys.iter().filter_map(|key| table.column(key)).collect();
    let mut cells: IndexMap<Vec<String>, Vec<&Vec<Value>>> = IndexMap::new();
    for row in &table.rows {
        let key = key_columns.iter().map(|&i| row[i].to_string()).collect();
        cells.entry(key).or_default().push(row);
    }
    cells
        .into_iter()
        .map(|(key, rows)| CellSummary {
            cell: keys.iter().cloned().zip(key).collect(),
            columns: table
                .columns
                .iter()
                .enumerate()
                .filter(|(index, column)| {
                    is_numeric_type(&column.type_name)
                        && column.name != "run"
                        && !key_columns.contains(index)
                })
                .filter_map(|(index, column)| {
                    let values: Vec<BigDecimal> = rows
                        .iter()
                        .filter_map(|row| row[index].number().and_then(Number::finite).cloned())
                        .collect();
                    Some((column.name.clone(), summary(&values)?))
                })
                .collect(),
        })
        .collect()
}

fn summary(values: &[BigDecimal]) -> Option<Summary> {
    use bigdecimal::ToPrimitive;
    let doubles: Vec<f64> = values.iter().filter_map(BigDecimal::to_f64).collect();
    Some(Summary {
        runs: u32::try_from(values.len()).ok()?,
        median: median(values)?.to_plain_string(),
        min: values.iter().min()?.to_plain_string(),
        max: values.iter().max()?.to_plain_string(),
        interval: median_interval(&doubles).map(|(low, high)| (low.to_string(), high.to_string())),
    })
}

/// SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014): enough
/// for resampling, and the same on every machine.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        // The modulo's bias is below 2^-50 for any number of runs a person would wait for.
        usize::try_from(z % bound as u64).expect("below a usize")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::str::FromStr;

    fn decimals(texts: &[&str]) -> Vec<BigDecimal> {
        texts
            .iter()
            .map(|text| BigDecimal::from_str(text).unwrap())
            .collect()
    }

    #[test]
    fn medians_are_exact() {
        let exact = decimals(&["9007199254740993.1", "9007199254740993.3"]);
        assert_eq!(
            median(&exact).unwrap().to_plain_string(),
            "9007199254740993.2"
        );
        assert_eq!(
            median(&decimals(&["3", "1", "2"])),
            Some(BigDecimal::from(2))
        );
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn an_interval_holds_the_median_and_repeats() {
        let values = [10.0, 11.0, 10.5, 10.2, 30.0];
        let (low, high) = median_interval(&values).unwrap();
        assert!(low <= 10.5 && 10.5 <= high && low >= 10.0 && high <= 30.0);
        assert_eq!(median_interval(&values), Some((low, high)));
        assert_eq!(median_interval(&[1.0, 2.0]), None);
    }

    #[test]
    fn equal_values_have_no_width() {
        assert_eq!(relative_half_width(&[5.0; 4]), Some(0.0));
        assert_eq!(relative_half_width(&[0.0; 4]), None);
        assert_eq!(relative_half_width(&[1.0, 2.0]), None);
    }

    #[test]
    fn the_middle_of_an_even_count_lies_between_the_middle_two() {
        assert_eq!(middle_of(&mut [4.0, 1.0, 2.0, 100.0]), 3.0);
        assert_eq!(middle_of(&mut [4.0, 1.0, 2.0]), 2.0);
    }
}
