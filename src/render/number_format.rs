//! How a value is printed for people: by the claim's or column's `format`, by a filter, or by the
//! default (3 significant digits, thousands separated). All of it on exact decimals.

use crate::article::BytesMeaning;
use crate::quantity::{Number, Value};
use bigdecimal::{BigDecimal, RoundingMode, Zero};
use std::str::FromStr;

/// Digits that a number keeps where nothing else is said.
const DEFAULT_SIGNIFICANT: i64 = 3;

/// A value by its `format`, or by the default.
pub fn value(value: &Value, format: Option<&str>) -> Result<String, String> {
    match value {
        Value::Number(Number::Finite(number)) => match format {
            Some(format) => by_format(number, format),
            None => Ok(by_default(number)),
        },
        other => Ok(other.to_string()),
    }
}

/// 3 significant digits, thousands separated; an exact value that has fewer is printed as it is.
pub fn by_default(number: &BigDecimal) -> String {
    significant(number, DEFAULT_SIGNIFICANT)
}

/// Every digit, thousands separated.
pub fn exact(number: &BigDecimal) -> String {
    group_thousands(&number.normalized().to_plain_string())
}

/// `digits` decimals.
pub fn fixed(number: &BigDecimal, digits: i64) -> String {
    let rounded = number.with_scale_round(digits, RoundingMode::HalfUp);
    group_thousands(&without_negative_zero(rounded.to_plain_string()))
}

/// `digits` significant digits; digits before the decimal point are never left out, only zeroed.
pub fn significant(number: &BigDecimal, digits: i64) -> String {
    let number = number.normalized();
    if number.is_zero() || number.digits() as i64 <= digits {
        return exact(&number);
    }
    let rounded = round_significant(&number, digits);
    let decimals = (digits - integer_digits(&rounded)).max(0);
    group_thousands(&rounded.with_scale(decimals).to_plain_string())
}

/// 0.079 → `7.9%`; `decimals`: None keeps 3 significant digits.
pub fn percent(number: &BigDecimal, decimals: Option<i64>) -> String {
    let hundredfold = number * BigDecimal::from(100);
    let text = decimals.map_or_else(|| by_default(&hundredfold), |n| fixed(&hundredfold, n));
    format!("{text}%")
}

/// Bytes in the largest unit that leaves at least 1: `13.1 MB`.
pub fn bytes(number: &BigDecimal, meaning: BytesMeaning, decimals: Option<i64>) -> String {
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

/// By a pattern number: `1,000` groups thousands and keeps no decimals, `1000.0` keeps one and
/// groups none; what stands before and after it is printed too (`$1,000`, `0.0%` as it stands).
pub fn by_format(number: &BigDecimal, format: &str) -> Result<String, String> {
    let is_pattern = |c: char| c.is_ascii_digit() || c == ',' || c == '.';
    let start = format.find(|c: char| c.is_ascii_digit());
    let Some(start) = start else {
        return Err(format!("`{format}` is not a format: it shows no number"));
    };
    let length = format[start..]
        .find(|c| !is_pattern(c))
        .unwrap_or(format.len() - start);
    let pattern = format[start..start + length].trim_end_matches([',', '.']);
    let (integer, decimals) = pattern.split_once('.').unwrap_or((pattern, ""));
    if decimals.contains([',', '.']) {
        return Err(format!("`{format}` is not a format: two decimal points"));
    }
    let rounded = number.with_scale_round(decimals.len() as i64, RoundingMode::HalfUp);
    let text = without_negative_zero(rounded.to_plain_string());
    let text = if integer.contains(',') {
        group_thousands(&text)
    } else {
        text
    };
    let end = start + pattern.len();
    Ok(format!("{}{text}{}", &format[..start], &format[end..]))
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

fn round_significant(number: &BigDecimal, digits: i64) -> BigDecimal {
    number.with_scale_round(digits - integer_digits(number), RoundingMode::HalfUp)
}

/// Digits before the decimal point; 0.05 has -1.
fn integer_digits(number: &BigDecimal) -> i64 {
    let (_, scale) = number.as_bigint_and_exponent();
    number.digits() as i64 - scale
}

fn without_negative_zero(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| matches!(b, b'0' | b'.')) => rest.to_owned(),
        _ => text,
    }
}

/// `-1234567.891` → `-1,234,567.891`
fn group_thousands(text: &str) -> String {
    let (sign, rest) = text
        .strip_prefix('-')
        .map_or(("", text), |rest| ("-", rest));
    let (integer, fraction) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let mut grouped = String::with_capacity(text.len() + integer.len() / 3);
    grouped.push_str(sign);
    for (index, digit) in integer.char_indices() {
        if index > 0 && (integer.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped.push_str(fraction);
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> BigDecimal {
        text.parse().unwrap()
    }

    #[test]
    fn the_default_is_three_significant_digits_with_thousands() {
        for (input, expected) in [
            ("76.1834", "76.2"),
            ("75.96", "76.0"),
            ("8", "8"),
            ("8.000", "8"),
            ("0", "0"),
            ("0.00012345", "0.000123"),
            ("754321", "754,000"),
            ("999.6", "1,000"),
            ("-1234567.5", "-1,230,000"),
            ("1.5", "1.5"),
            ("99.95", "100"),
        ] {
            assert_eq!(by_default(&decimal(input)), expected, "{input}");
        }
    }

    #[test]
    fn filters_round_half_away_from_zero_and_stay_exact() {
        assert_eq!(fixed(&decimal("2.675"), 2), "2.68");
        assert_eq!(fixed(&decimal("-0.04"), 1), "0.0");
        assert_eq!(fixed(&decimal("1234.5"), 0), "1,235");
        assert_eq!(
            exact(&decimal("9007199254740993.1")),
            "9,007,199,254,740,993.1"
        );
        assert_eq!(percent(&decimal("0.079"), None), "7.9%");
        assert_eq!(percent(&decimal("0.079"), Some(0)), "8%");
        assert_eq!(
            bytes(&decimal("13736346"), BytesMeaning::Binary, None),
            "13.1 MB"
        );
        assert_eq!(
            bytes(&decimal("13736346"), BytesMeaning::Decimal, Some(0)),
            "14 MB"
        );
        assert_eq!(bytes(&decimal("76"), BytesMeaning::Binary, None), "76 B");
        assert_eq!(duration(&decimal("0.0015"), "ms", None).unwrap(), "1.5 µs");
        assert_eq!(duration(&decimal("90"), "s", None).unwrap(), "1.5 min");
        assert_eq!(duration(&decimal("90"), "rows", None), None);
    }

    #[test]
    fn a_pattern_number_says_grouping_and_decimals() {
        for (format, expected) in [
            ("1,000", "1,234,568"),
            ("1000", "1234568"),
            ("1,000.0", "1,234,567.9"),
            ("0.00", "1234567.89"),
            ("≈ 1,000 rows", "≈ 1,234,568 rows"),
        ] {
            assert_eq!(by_format(&decimal("1234567.89"), format).unwrap(), expected);
        }
        assert!(by_format(&decimal("1"), "short").is_err());
        assert!(by_format(&decimal("1"), "1.0.0").is_err());
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
