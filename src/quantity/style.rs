//! How an author writes a number (sign, groups, decimals, masked digits, exponent), read off one
//! that stands in the text and used to write another. Entries: [`Style::of`], [`Style::write`],
//! [`Style::write_masked`].

use super::format::{integer_digits, round};
use bigdecimal::{BigDecimal, RoundingMode, Signed, Zero};

/// What the numbers of a text have in common, for what one of them does not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habits {
    /// Between groups of three digits.
    pub separator: Option<char>,
    /// `-`, or the minus sign of typographers.
    pub minus: Option<char>,
}

impl Habits {
    /// Notes what one more number shows.
    pub fn learn(&mut self, written: &str) {
        let style = Style::of(written);
        if let Groups::Separated(separator) = style.groups {
            self.separator.get_or_insert(separator);
        }
        if let Some(minus) = style.sign.filter(|sign| *sign != '+') {
            self.minus.get_or_insert(minus);
        }
    }
}

/// How one number is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    sign: Option<char>,
    groups: Groups,
    /// `.5`
    bare_point: bool,
    /// Digits behind the point, masked ones with them.
    pub decimals: i64,
    /// `xx` at the end.
    pub masked: usize,
    /// Digits but for zeros in front; and in integers those at the end.
    pub significant: i64,
    /// An integer that ends with zeros, which may stand for digits not said.
    pub round: bool,
    /// As it is written, with its `e`.
    exponent: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Groups {
    Separated(char),
    /// Five digits or more in one run.
    Never,
    /// Four: longer ones may be separated yet.
    FromFive,
    /// Too short to tell.
    Unknown,
}

impl Style {
    /// Of a number as it is written: from its sign to its last digit.
    pub fn of(written: &str) -> Self {
        let sign = written.chars().next().filter(|c| "+-−".contains(*c));
        let unsigned = &written[sign.map_or(0, char::len_utf8)..];
        let (mantissa, exponent) =
            unsigned.split_at(unsigned.find(['e', 'E']).unwrap_or(unsigned.len()));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_place = |c: &char| c.is_ascii_digit() || *c == 'x';
        let places = whole.chars().filter(is_place).count();
        let groups = match whole.chars().find(|c| !is_place(c)) {
            Some(separator) => Groups::Separated(separator),
            None if places >= 5 => Groups::Never,
            None if places == 4 => Groups::FromFive,
            None => Groups::Unknown,
        };
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let leading = digits.trim_start_matches('0');
        let round = fraction.is_empty() && leading.len() > 1 && leading.ends_with('0');
        let significant = match round {
            true => leading.trim_end_matches('0').len(),
            false => leading.len(),
        };
        Self {
            sign,
            groups,
            bare_point: whole.is_empty(),
            decimals: fraction.chars().filter(is_place).count() as i64,
            masked: mantissa.chars().filter(|c| *c == 'x').count(),
            significant: significant as i64,
            round,
            exponent: exponent.to_owned(),
        }
    }

    /// `value` with `decimals` digits behind the point (as a plain number; an exponent takes its
    /// own away), rounded as said.
    pub fn write(
        &self,
        value: &BigDecimal,
        decimals: i64,
        rounding: RoundingMode,
        habits: &Habits,
    ) -> String {
        let mantissa = self.mantissa(value);
        let rounded = if decimals < 0 && rounding == RoundingMode::HalfUp {
            round(&mantissa, decimals)
        } else {
            mantissa.with_scale_round(decimals, rounding)
        };
        let plain = rounded.abs().with_scale(decimals.max(0)).to_plain_string();
        self.dress(&plain, &rounded, habits)
    }

    /// The digits that a mask shows of `value`, and its `xx`. None: nothing would be left to show.
    pub fn write_masked(&self, value: &BigDecimal, habits: &Habits) -> Option<String> {
        let mantissa = self.mantissa(value);
        let plain = mantissa
            .abs()
            .with_scale_round(self.decimals, RoundingMode::Down)
            .to_plain_string();
        let dressed = self.dress(&plain, &mantissa, habits);
        let mut left = self.masked;
        let masked: Vec<char> = dressed
            .chars()
            .rev()
            .map(|c| {
                let mask = left > 0 && c.is_ascii_digit();
                left -= usize::from(mask);
                if mask { 'x' } else { c }
            })
            .collect();
        let shows = left == 0 && masked.iter().any(char::is_ascii_digit);
        shows.then(|| masked.into_iter().rev().collect())
    }

    /// How many decimals show as many significant digits of `value` as asked for.
    pub fn decimals_for(&self, value: &BigDecimal, significant: i64) -> i64 {
        let mantissa = self.mantissa(value);
        let decimals = significant - integer_digits(&mantissa);
        // 9.96 has one integer digit, what it is rounded to has two.
        let rounded = round(&mantissa, decimals);
        significant - integer_digits(&rounded)
    }

    fn mantissa(&self, value: &BigDecimal) -> BigDecimal {
        let exponent = self.exponent.get(1..).unwrap_or("");
        match exponent.parse::<i64>() {
            Ok(exponent) => value * BigDecimal::new(1.into(), exponent),
            Err(_) => value.clone(),
        }
    }

    /// Puts sign, groups and exponent around the digits.
    fn dress(&self, plain: &str, value: &BigDecimal, habits: &Habits) -> String {
        let (whole, fraction) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
        let sign = if value.is_negative() {
            let own = self.sign.filter(|sign| *sign != '+');
            Some(own.or(habits.minus).unwrap_or('-'))
        } else {
            self.sign.filter(|sign| *sign == '+' && !value.is_zero())
        };
        let separator = match self.groups {
            Groups::Separated(separator) => Some(separator),
            Groups::Never => None,
            Groups::FromFive if whole.len() < 5 => None,
            Groups::FromFive | Groups::Unknown => Some(habits.separator.unwrap_or(',')),
        };
        let mut dressed = String::with_capacity(plain.len() * 2);
        dressed.extend(sign);
        if !(self.bare_point && whole == "0" && !fraction.is_empty()) {
            for (index, digit) in whole.chars().enumerate() {
                if index > 0 && (whole.len() - index).is_multiple_of(3) {
                    dressed.extend(separator);
                }
                dressed.push(digit);
            }
        }
        dressed.push_str(fraction);
        dressed.push_str(&self.exponent);
        dressed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::article::BytesMeaning;
    use crate::quantity::{Shape, numeral};

    #[test]
    fn a_number_is_written_as_the_one_before_it() {
        #[rustfmt::skip]
        let table = [
            ("76", "77.4", "77"), ("76.0", "77.44", "77.4"), ("8,023", "1234567", "1,234,567"),
            ("8\u{2009}023", "1234567", "1\u{2009}234\u{2009}567"), ("1_000", "999", "999"),
            ("10000", "123456", "123456"), ("8023", "9023", "9023"), ("8023", "19023", "19'023"),
            ("76", "1076", "1'076"), ("−5", "-6", "−6"), ("-5", "-6", "-6"), ("5", "-6", "−6"), ("-5", "6", "6"),
            ("+5", "6", "+6"), ("+5", "-6", "−6"), ("+5", "0", "0"), (".5", "0.62", ".6"), (".5", "1.62", "1.6"),
            ("1.5e-3", "0.00271", "2.7e-3"), ("2E6", "3400000", "3E6"), ("-0.1", "-0.04", "0.0"),
        ];
        let habits = Habits {
            separator: Some('\''),
            minus: Some('−'),
        };
        for (before, value, expected) in table {
            let style = Style::of(before);
            let value: BigDecimal = value.parse().unwrap();
            let found = style.write(&value, style.decimals, RoundingMode::HalfUp, &habits);
            assert_eq!(found, expected, "{before}");
        }
    }

    #[test]
    fn a_number_that_is_read_and_written_again_is_the_same() {
        // A small linear congruential generator: the same numbers on every run.
        let mut state: u64 = 7;
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..5_000 {
            let sign = ["", "", "-", "−", "+"][next(5) as usize];
            let separator = ["", ",", "\u{2009}", "\u{202f}", "_"][next(5) as usize];
            let places = 10_u64.pow(next(10) as u32);
            let plain = (1 + next(9 * places)).to_string();
            let mut whole = String::new();
            for (index, digit) in plain.chars().enumerate() {
                let begins = index > 0 && (plain.len() - index).is_multiple_of(3);
                whole.push_str(if begins { separator } else { "" });
                whole.push(digit);
            }
            let decimals: String = (0..next(4)).map(|_| next(10).to_string()).collect();
            let point = if decimals.is_empty() { "" } else { "." };
            let exponent = ["", "", "e3", "e-2"][next(4) as usize];
            let text = format!("{sign}{whole}{point}{decimals}{exponent}");
            let read = numeral(&text, None, BytesMeaning::Binary).unwrap();
            let Shape::Point { value, .. } = &read.shape else {
                panic!("{text}");
            };
            assert_eq!(read.parts[0].range, 0..text.len(), "{text}");
            let style = Style::of(&text);
            let mut habits = Habits::default();
            habits.learn(&text);
            let written = style.write(value, style.decimals, RoundingMode::HalfUp, &habits);
            assert_eq!(written, text);
        }
    }

    #[test]
    fn a_mask_shows_as_many_digits_less() {
        #[rustfmt::skip]
        let table = [
            ("8,023,5xx", "8023644", Some("8,023,6xx")), ("8,023,5xx", "12345678", Some("12,345,6xx")),
            ("8,0xx,xxx", "8199999", Some("8,1xx,xxx")), ("5xx", "1234", Some("1,2xx")), ("5xx", "99", None),
            ("-5xx", "-699.9", Some("-6xx")), ("1.3xx", "1.4321", Some("1.4xx")), ("1.3xx", "0.4321", Some("0.4xx")),
        ];
        for (before, value, expected) in table {
            let value: BigDecimal = value.parse().unwrap();
            let found = Style::of(before).write_masked(&value, &Habits::default());
            assert_eq!(found.as_deref(), expected, "{before}");
        }
    }

    #[test]
    fn significant_digits_leave_out_what_a_round_number_does_not_say() {
        for (written, significant, round) in [
            ("754,000", 3, true),
            ("754,123", 6, false),
            ("0.0416", 3, false),
            ("1.50", 3, false),
            ("0", 0, false),
            ("10", 1, true),
        ] {
            let style = Style::of(written);
            assert_eq!(
                (style.significant, style.round),
                (significant, round),
                "{written}"
            );
        }
    }
}
