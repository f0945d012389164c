//! Numbers for people: significant digits, thousands separated, patterns such as `1,000.0`.
//! Everything rounds exact decimals, half away from zero, as Postgres's `round(numeric)` does.

use super::Number;
use crate::article::BytesMeaning;
use bigdecimal::{BigDecimal, RoundingMode, Signed, Zero};
use std::str::FromStr;

/// How a number is printed: what `format:` of a claim or a table's column says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// 3 significant digits, thousands separated; integers below 1,000 whole.
    #[default]
    Default,
    /// `1,000`, `0.0`, `1,000.00`, `0%`, `+0.0%`, `0.0×`
    Pattern(Pattern),
    /// `fixed(2)`
    Fixed(u32),
    /// `significant(4)`
    Significant(u32),
    /// `thousands`: every digit, thousands separated.
    Thousands,
    /// `percent`
    Percent,
    /// `bytes`, as `pg_size_pretty`.
    Bytes,
    /// `duration`, of milliseconds.
    Duration,
}

/// What a pattern's characters ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// `+0`: a sign before positive numbers too.
    pub plus: bool,
    /// `1,000` rather than `0`.
    pub grouped: bool,
    /// As many as stand behind the point.
    pub decimals: u32,
    /// `%` shows hundred times the number.
    pub suffix: Suffix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suffix {
    None,
    Percent,
    Times,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no number format")]
pub struct UnknownFormat(pub String);

impl UnknownFormat {
    pub const HINT: &str = "formats are patterns such as `1,000`, `0.0`, `1,000.00`, `0%`, or \
        `fixed(2)`, `significant(4)`, `thousands`, `percent`, `bytes`, `duration`";
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(spec: &str) -> Result<Self, UnknownFormat> {
        let unknown = || UnknownFormat(spec.to_owned());
        let spec = spec.trim();
        let named = spec.strip_suffix(')').and_then(|open| open.split_once('('));
        match (spec, named) {
            ("thousands", _) => Ok(Self::Thousands),
            ("percent", _) => Ok(Self::Percent),
            ("bytes", _) => Ok(Self::Bytes),
            ("duration", _) => Ok(Self::Duration),
            (_, Some(("fixed", digits))) => digits
                .parse()
                .ok()
                .filter(|&digits| digits <= MOST_DIGITS)
                .map(Self::Fixed)
                .ok_or_else(unknown),
            (_, Some(("significant", digits))) => digits
                .parse()
                .ok()
                .filter(|digits| (1..=MOST_DIGITS).contains(digits))
                .map(Self::Significant)
                .ok_or_else(unknown),
            _ => pattern(spec).map(Self::Pattern).ok_or_else(unknown),
        }
    }
}

/// More would only print zeros, and a page full of them.
const MOST_DIGITS: u32 = 100;

fn pattern(spec: &str) -> Option<Pattern> {
    let (plus, rest) = match spec.strip_prefix('+') {
        Some(rest) => (true, rest),
        None => (false, spec),
    };
    let (suffix, rest) = match rest.strip_suffix(['%', '×', 'x']) {
        Some(body) if rest.ends_with('%') => (Suffix::Percent, body.trim_end()),
        Some(body) => (Suffix::Times, body.trim_end()),
        None => (Suffix::None, rest),
    };
    let (whole, decimals) = match rest.split_once('.') {
        Some((whole, decimals)) if !decimals.is_empty() => (whole, decimals),
        Some(_) => return None,
        None => (rest, ""),
    };
    let grouped = match whole {
        "1,000" | "0,000" => true,
        "0" | "1" | "1000" => false,
        _ => return None,
    };
    (decimals.chars().all(|digit| digit == '0') && decimals.len() <= MOST_DIGITS as usize)
        .then_some(Pattern {
            plus,
            grouped,
            decimals: decimals.len() as u32,
            suffix,
        })
}

/// Prints a number as `format` says. NaN and the infinities are printed as Postgres names them.
/// `bytes` says what kB means to [`Format::Bytes`].
pub fn format(number: &Number, format: &Format, bytes: BytesMeaning) -> String {
    let Number::Finite(value) = number else {
        return number.to_string();
    };
    match format {
        Format::Default => significant(value, 3),
        Format::Pattern(pattern) => by_pattern(value, pattern),
        Format::Fixed(decimals) => fixed(value, *decimals),
        Format::Significant(digits) => significant(value, *digits),
        Format::Thousands => thousands(value),
        Format::Percent => percent(value),
        Format::Bytes => self::bytes(value, bytes),
        Format::Duration => duration(value),
    }
}

/// Exactly `decimals` digits behind the point, thousands separated: 2436.81 → `2,436.8`.
pub fn fixed(value: &BigDecimal, decimals: u32) -> String {
    group(&plain(&round(value, i64::from(decimals)), decimals))
}

/// Rounded to `digits` significant digits, thousands separated: 754123 → `754,000`, 234.81 →
/// `235`, 0.04161 → `0.0416`. A value that needs fewer digits gets no zeros (0.5 → `0.5`); one
/// that was rounded keeps those that say how far (76.04 → `76.0`).
pub fn significant(value: &BigDecimal, digits: u32) -> String {
    let exact = value.normalized();
    if exact.digits() <= u64::from(digits) {
        return thousands(&exact);
    }
    let mut decimals = i64::from(digits) - integer_digits(value);
    let mut rounded = round(value, decimals);
    // 9.996 has one integer digit, what it is rounded to has two.
    if integer_digits(&rounded) > integer_digits(value) {
        decimals -= 1;
        rounded = round(value, decimals);
    }
    group(&plain(&rounded, decimals.max(0) as u32))
}

/// Every digit, thousands separated: 8023544.50 → `8,023,544.5`.
pub fn thousands(value: &BigDecimal) -> String {
    group(&value.normalized().to_plain_string())
}

/// A share as a percentage, 3 significant digits: 0.0416 → `4.16%`.
pub fn percent(value: &BigDecimal) -> String {
    format!("{}%", significant(&(value * BigDecimal::from(100)), 3))
}

/// A size as `pg_size_pretty` prints it: 13806600 → `13 MB`, 729088 → `712 kB`, 8192 →
/// `8192 bytes`. With decimal bytes the steps are of 1000.
pub fn bytes(value: &BigDecimal, meaning: BytesMeaning) -> String {
    let step: BigDecimal = match meaning {
        BytesMeaning::Binary => 1024.into(),
        BytesMeaning::Decimal => 1000.into(),
    };
    // Postgres goes up a unit from 10 of the next on, and rounds half away from zero.
    let limit = &step * BigDecimal::from(10);
    if value.abs() < limit {
        return format!(
            "{} bytes",
            round_away(value, 3).normalized().to_plain_string()
        );
    }
    let names = ["kB", "MB", "GB", "TB", "PB"];
    let mut size = value.clone();
    for (index, name) in names.into_iter().enumerate() {
        size = &size / &step;
        let rounded = round(&size, 0);
        if rounded.abs() < limit || index + 1 == names.len() {
            return format!("{} {name}", plain(&rounded, 0));
        }
    }
    unreachable!("the last unit takes every size")
}

/// A time given in milliseconds, in the unit that suits it: 0.00133 → `1.33 µs`, 2545 → `2.55 s`,
/// 83000 → `1 min 23 s`, 4500000 → `1 h 15 min`.
pub fn duration(milliseconds: &BigDecimal) -> String {
    let nanoseconds = milliseconds * BigDecimal::from(1_000_000);
    for (name, scale, below) in [
        ("ns", 1_i64, 1_000_i64),
        ("µs", 1_000, 1_000_000),
        ("ms", 1_000_000, 1_000_000_000),
        ("s", 1_000_000_000, 60_000_000_000),
    ] {
        // Compared after rounding, or 999.9 ms would be `1,000 ms`.
        let in_unit = &nanoseconds / BigDecimal::from(scale);
        let shown = in_unit.with_precision_round(PRECISION, RoundingMode::HalfUp);
        if shown.abs() < below / scale {
            return format!("{} {name}", significant(&in_unit, 3));
        }
    }
    let sign = if milliseconds.is_negative() { "-" } else { "" };
    let seconds = round(&(milliseconds.abs() / BigDecimal::from(1_000)), 0);
    let whole = |value: &BigDecimal| value.with_scale_round(0, RoundingMode::Down);
    let minutes = whole(&(&seconds / BigDecimal::from(60)));
    if minutes < 60 {
        let rest = &seconds - &minutes * BigDecimal::from(60);
        return format!("{sign}{} min {} s", plain(&minutes, 0), plain(&rest, 0));
    }
    let minutes = round(&(&seconds / BigDecimal::from(60)), 0);
    let hours = whole(&(&minutes / BigDecimal::from(60)));
    let rest = &minutes - &hours * BigDecimal::from(60);
    format!("{sign}{} h {} min", thousands(&hours), plain(&rest, 0))
}

const PRECISION: std::num::NonZeroU64 = std::num::NonZeroU64::new(3).unwrap();

/// Rounded to `decimals` digits behind the point (before it, where negative), half away from zero.
pub fn round(value: &BigDecimal, decimals: i64) -> BigDecimal {
    if value.is_zero() {
        return BigDecimal::zero();
    }
    value.with_scale_round(decimals, RoundingMode::HalfUp)
}

/// Rounded only where there are more decimals than that.
fn round_away(value: &BigDecimal, decimals: i64) -> BigDecimal {
    if value.normalized().fractional_digit_count() > decimals {
        round(value, decimals)
    } else {
        value.clone()
    }
}

/// Digits before the point; 0.0416 has -1, 0 has 1.
pub(crate) fn integer_digits(value: &BigDecimal) -> i64 {
    if value.is_zero() {
        return 1;
    }
    let (_, scale) = value.as_bigint_and_scale();
    value.digits() as i64 - scale
}

fn by_pattern(value: &BigDecimal, pattern: &Pattern) -> String {
    let scaled = match pattern.suffix {
        Suffix::Percent => value * BigDecimal::from(100),
        Suffix::None | Suffix::Times => value.clone(),
    };
    let digits = plain(
        &round(&scaled, i64::from(pattern.decimals)),
        pattern.decimals,
    );
    let digits = if pattern.grouped {
        group(&digits)
    } else {
        digits
    };
    let plus = if pattern.plus && value.is_positive() {
        "+"
    } else {
        ""
    };
    let suffix = match pattern.suffix {
        Suffix::None => "",
        Suffix::Percent => "%",
        Suffix::Times => "×",
    };
    format!("{plus}{digits}{suffix}")
}

/// All digits, `decimals` of them behind the point; what is rounded to zero has no sign.
fn plain(value: &BigDecimal, decimals: u32) -> String {
    value.with_scale(i64::from(decimals)).to_plain_string()
}

/// Commas between thousands.
fn group(plain: &str) -> String {
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", plain),
    };
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut grouped = String::with_capacity(plain.len() + whole.len() / 3);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        text.parse().unwrap()
    }

    fn decimal(text: &str) -> BigDecimal {
        text.parse().unwrap()
    }

    #[test]
    fn the_default_is_three_significant_digits_with_thousands_separated() {
        #[rustfmt::skip]
        let table = [
            ("234.81", "235"), ("754123", "754,000"), ("0.0416", "0.0416"), ("8023544", "8,020,000"),
            ("0", "0"), ("0.000", "0"), ("-0.0", "0"), ("1", "1"), ("76", "76"), ("999", "999"),
            ("1000", "1,000"), ("1103", "1,100"), ("1105", "1,110"), ("-1105", "-1,110"),
            ("76.12", "76.1"), ("76.04", "76.0"), ("76.05", "76.1"), ("76.00", "76"), ("76.5000", "76.5"),
            ("0.5", "0.5"), ("0.12345", "0.123"), ("0.00012345", "0.000123"), ("0.9996", "1.00"),
            ("9.996", "10.0"), ("99.96", "100"), ("999.6", "1,000"), ("999500", "1,000,000"), ("999499", "999,000"),
            ("2.345", "2.35"), ("-2.345", "-2.35"), ("1e3", "1,000"), ("1.5e-7", "0.00000015"),
            ("12345678901234567890.5", "12,300,000,000,000,000,000"),
            ("NaN", "NaN"), ("Infinity", "Infinity"), ("-Infinity", "-Infinity"),
        ];
        for (value, expected) in table {
            let found = format(&number(value), &Format::Default, BytesMeaning::Binary);
            assert_eq!(found, expected, "{value}");
        }
    }

    #[test]
    fn formats_print_what_their_spec_says() {
        #[rustfmt::skip]
        let table = [
            ("1,000", "754123.5", "754,124"), ("1,000", "-999.5", "-1,000"), ("1,000", "12", "12"),
            ("1,000", "0.4", "0"), ("1,000", "-0.4", "0"), ("0,000", "1234", "1,234"),
            ("0", "754123.4", "754123"), ("0", "0.5", "1"), ("0", "-0.5", "-1"), ("1", "2.5", "3"), ("1000", "754123.5", "754124"),
            ("0.0", "76.05", "76.1"), ("0.0", "76.04", "76.0"), ("0.0", "1234.5", "1234.5"),
            ("0.00", "1", "1.00"), ("0.000", "0.0005", "0.001"), ("1,000.00", "1234.5", "1,234.50"),
            ("1,000.0", "1234567.85", "1,234,567.9"),
            ("0%", "0.0416", "4%"), ("0.0%", "0.0416", "4.2%"), ("0.0 %", "0.0416", "4.2%"), ("0%", "1.5", "150%"),
            ("+0%", "0.11", "+11%"), ("+0.0", "-0.11", "-0.1"), ("+0", "0", "0"), ("0.0×", "14.62", "14.6×"), ("0x", "3.2", "3×"),
            ("fixed(1)", "2436.81", "2,436.8"), ("fixed(0)", "0.5", "1"), ("fixed(3)", "2", "2.000"), ("fixed(2)", "-0.001", "0.00"),
            ("significant(4)", "2436.81", "2,437"), ("significant(1)", "0.0416", "0.04"), ("significant(6)", "76.12", "76.12"),
            ("thousands", "8023544.50", "8,023,544.5"), ("thousands", "123", "123"), ("thousands", "-1234567", "-1,234,567"),
            ("percent", "0.0416", "4.16%"), ("percent", "0.5", "50%"), ("percent", "2", "200%"),
            ("bytes", "0", "0 bytes"), ("bytes", "8192", "8192 bytes"), ("bytes", "10239", "10239 bytes"), ("bytes", "10240", "10 kB"),
            ("bytes", "729088", "712 kB"), ("bytes", "14204928", "14 MB"), ("bytes", "141246464", "135 MB"),
            ("bytes", "10485247", "10239 kB"), ("bytes", "10485248", "10 MB"),
            ("bytes", "-729088", "-712 kB"), ("bytes", "56.17", "56.17 bytes"), ("bytes", "1e18", "888 PB"), ("bytes", "1e20", "88818 PB"),
            ("duration", "0.00133", "1.33 µs"), ("duration", "0.0000005", "0.5 ns"), ("duration", "7.1", "7.1 ms"),
            ("duration", "999.96", "1.00 s"), ("duration", "2545", "2.55 s"), ("duration", "59999", "1 min 0 s"),
            ("duration", "83000", "1 min 23 s"), ("duration", "3599600", "1 h 0 min"), ("duration", "4500000", "1 h 15 min"), ("duration", "-83000", "-1 min 23 s"),
            ("duration", "0", "0 ns"),
        ];
        for (spec, value, expected) in table {
            let spec_read: Format = spec.parse().unwrap();
            let found = format(&number(value), &spec_read, BytesMeaning::Binary);
            assert_eq!(found, expected, "{value} as {spec}");
        }
    }

    #[test]
    fn what_is_no_format_is_said_to_be_none() {
        for spec in [
            "",
            "%",
            "%d",
            "%.1f",
            "0.",
            ".0",
            "0.1",
            "10000",
            "1,00",
            "1,000,000",
            "0,0",
            "fixed",
            "fixed()",
            "fixed(x)",
            "fixed(-1)",
            "fixed(1000)",
            "significant(0)",
            "abc",
            "0 ms",
            "Thousands",
        ] {
            assert_eq!(
                spec.parse::<Format>(),
                Err(UnknownFormat(spec.to_owned())),
                "{spec}"
            );
        }
    }

    #[test]
    fn a_size_is_what_postgres_makes_of_it_when_bytes_are_decimal_too() {
        for (value, expected) in [
            ("9999", "9999 bytes"),
            ("10000", "10 kB"),
            ("13167000", "13 MB"),
            ("9999499", "9999 kB"),
            ("9999500", "10 MB"),
        ] {
            assert_eq!(
                bytes(&decimal(value), BytesMeaning::Decimal),
                expected,
                "{value}"
            );
        }
    }
}
