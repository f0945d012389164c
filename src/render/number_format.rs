//! How a value is printed for people: by the claim's or column's `format`, by a filter, or by the
//! default. What [`mod@crate::quantity::format`] does is done there; filters add a number of decimals.

use crate::article::BytesMeaning;
use crate::quantity::{self, Format, Number, UnknownFormat, Value};
use bigdecimal::{BigDecimal, Zero};
use std::str::FromStr;

pub use crate::quantity::format::thousands as exact;

/// A value by its `format`, or by the default.
pub fn value(value: &Value, format: Option<&str>, bytes: BytesMeaning) -> Result<String, String> {
    let Value::Number(number) = value else {
        return Ok(value.to_string());
    };
    let format: Format = match format {
        Some(format) => format
            .parse()
            .map_err(|error: UnknownFormat| format!("{error}; {}", UnknownFormat::HINT))?,
        None => Format::default(),
    };
    Ok(quantity::format(number, &format, bytes))
}

/// 3 significant digits, thousands separated; an exact value that has fewer is printed as it is.
pub fn by_default(number: &BigDecimal) -> String {
    quantity::format(
        &Number::Finite(number.clone()),
        &Format::Default,
        BytesMeaning::default(),
    )
}

/// `digits` decimals.
pub fn fixed(number: &BigDecimal, digits: i64) -> String {
    quantity::format::fixed(number, u32::try_from(digits.max(0)).unwrap_or(u32::MAX))
}

/// `digits` significant digits; digits before the decimal point are never left out, only zeroed.
pub fn significant(number: &BigDecimal, digits: i64) -> String {
    quantity::format::significant(number, u32::try_from(digits.max(1)).unwrap_or(u32::MAX))
}

/// 0.079 → `7.9%`; `decimals`: None keeps 3 significant digits.
pub fn percent(number: &BigDecimal, decimals: Option<i64>) -> String {
    match decimals {
        None => quantity::format::percent(number),
        Some(decimals) => format!("{}%", fixed(&(number * BigDecimal::from(100)), decimals)),
    }
}

/// Bytes as `pg_size_pretty` prints them; with `decimals` in the largest unit that leaves at least
/// 1: `13.1 MB`.
pub fn bytes(number: &BigDecimal, meaning: BytesMeaning, decimals: Option<i64>) -> String {
    if decimals.is_none() {
        return quantity::format::bytes(number, meaning);
    }
    let step = match meaning {
        BytesMeaning::Binary => 1024,
        BytesMeaning::Decimal => 1000,
    };
    let steps = ["kB", "MB", "GB", "TB", "PB"].map(|unit| (unit, BigDecimal::from(step)));
    scaled(number, "B", &steps, decimals)
}

/// A time given in `unit`, in the largest unit that leaves at least 1. None: not a unit of time.
pub fn duration(number: &BigDecimal, unit: &str, decimals: Option<i64>) -> Option<String> {
    let nanoseconds = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" => 60_000_000_000_i64,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let steps = [
        ("µs", 1000),
        ("ms", 1000),
        ("s", 1000),
        ("min", 60),
        ("h", 60),
    ]
    .map(|(unit, factor)| (unit, BigDecimal::from(factor)));
    Some(scaled(
        &(number * BigDecimal::from(nanoseconds)),
        "ns",
        &steps,
        decimals,
    ))
}

fn scaled(
    number: &BigDecimal,
    base: &str,
    steps: &[(&str, BigDecimal)],
    decimals: Option<i64>,
) -> String {
    let (mut scaled, mut unit) = (number.clone(), base);
    for (next, factor) in steps {
        if scaled.abs() < *factor {
            break;
        }
        scaled = scaled / factor;
        unit = next;
    }
    let text = decimals.map_or_else(|| by_default(&scaled), |n| fixed(&scaled, n));
    format!("{text} {unit}")
}

/// Reads a number that was printed by one of these functions, so that filters can follow another.
pub fn read(text: &str) -> Option<BigDecimal> {
    BigDecimal::from_str(&text.trim().replace(',', "")).ok()
}

/// Decimals that show the smallest of these numbers with 4 significant digits: a column is
/// printed with the same number of decimals throughout.
pub fn column_decimals<'a>(numbers: impl Iterator<Item = &'a BigDecimal>) -> i64 {
    const MOST: i64 = 6;
    const SIGNIFICANT: i64 = 4;
    numbers
        .filter(|number| !number.is_zero())
        .map(|number| {
            let number = number.normalized();
            let (_, scale) = number.as_bigint_and_exponent();
            let wanted = SIGNIFICANT - integer_digits(&number);
            wanted.clamp(0, MOST).min(scale.max(0))
        })
        .max()
        .unwrap_or(0)
}

/// Digits before the decimal point; 0.05 has -1.
fn integer_digits(number: &BigDecimal) -> i64 {
    let (_, scale) = number.as_bigint_and_exponent();
    number.digits() as i64 - scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> BigDecimal {
        text.parse().unwrap()
    }

    #[test]
    fn filters_may_say_how_many_decimals() {
        assert_eq!(percent(&decimal("0.079"), None), "7.9%");
        assert_eq!(percent(&decimal("0.079"), Some(0)), "8%");
        assert_eq!(
            bytes(&decimal("13736346"), BytesMeaning::Binary, None),
            "13 MB"
        );
        assert_eq!(
            bytes(&decimal("13736346"), BytesMeaning::Decimal, Some(1)),
            "13.7 MB"
        );
        assert_eq!(duration(&decimal("0.0015"), "ms", None).unwrap(), "1.5 µs");
        assert_eq!(duration(&decimal("90"), "s", None).unwrap(), "1.5 min");
        assert_eq!(duration(&decimal("90"), "rows", None), None);
    }

    #[test]
    fn a_value_follows_its_format_and_an_unknown_one_is_told() {
        let number = Value::Number(Number::Finite(decimal("1234567.89")));
        let by = |format| value(&number, Some(format), BytesMeaning::Binary);
        assert_eq!(by("1,000.0").unwrap(), "1,234,567.9");
        assert_eq!(by("fixed(0)").unwrap(), "1,234,568");
        assert!(
            by("short")
                .unwrap_err()
                .contains("`short` is no number format")
        );
        assert_eq!(
            value(&Value::Null, None, BytesMeaning::Binary).unwrap(),
            "NULL"
        );
    }

    #[test]
    fn a_column_keeps_one_number_of_decimals() {
        let decimals = |texts: &[&str]| {
            let numbers: Vec<BigDecimal> = texts.iter().map(|t| decimal(t)).collect();
            column_decimals(numbers.iter())
        };
        assert_eq!(decimals(&["1.33333", "11.88"]), 3);
        assert_eq!(decimals(&["234.8123", "311"]), 1);
        assert_eq!(decimals(&["75.5", "8"]), 1);
        assert_eq!(decimals(&["1", "2"]), 0);
        assert_eq!(decimals(&[]), 0);
    }
}
