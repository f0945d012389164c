//! Reads the numeral that people write in prose: `76 bytes`, `−1,234.5`, `754k rows/s`, `65%`,
//! `8,023,5xx`, `1.3–1.8 µs`, `1 min 23 s`. Entry: [`numeral`]. It finds the first numeral of a
//! text, then what multiplies it and its unit ([`suffix`]), then a second numeral where the two are
//! a range or one length of time ([`pair`]).

mod pair;
mod suffix;

use super::unit::{Conversion, Unit};
use crate::article::BytesMeaning;
use bigdecimal::BigDecimal;
use std::ops::Range;

/// A number (or two) as a text has it. Values are in `unit`, multipliers applied.
#[derive(Clone, Debug)]
pub struct QuotedNumeral {
    pub shape: Shape,
    /// The unit that stands behind it; None: the claim's own.
    pub unit: Option<Unit>,
    /// The digits in the text, sign and multiplier with them, unit without; of both numerals,
    /// where there are two.
    pub digits: Range<usize>,
    /// The same with the unit.
    pub range: Range<usize>,
    /// The numbers one by one: both ends of a range, minutes and seconds.
    pub parts: Vec<Part>,
}

/// One run of digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// In the text, from the sign to the last digit; multiplier and unit are not in it.
    pub range: Range<usize>,
    /// From the number as it stands there to the numeral's unit.
    pub factor: Conversion,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `76`, and what one in its last digit is worth: 1.
    Point { value: BigDecimal, step: BigDecimal },
    /// `1.3 to 1.8`
    Range { low: BigDecimal, high: BigDecimal },
    /// `8,023,5xx`: from `low` up to but not including `high`, away from zero.
    Mask { low: BigDecimal, high: BigDecimal },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumeralError {
    #[error("no numeral")]
    Missing,
    #[error("`{text}` is no numeral: {why}")]
    Malformed {
        text: String,
        why: &'static str,
        range: Range<usize>,
    },
}

/// The first numeral of `text`. `unit` is the claim's: its words (`rows`) are known as units, and
/// one that it could not be (`[11,542 times]` of `rows`) is left alone.
pub fn numeral(
    text: &str,
    unit: Option<&Unit>,
    bytes: BytesMeaning,
) -> Result<QuotedNumeral, NumeralError> {
    let reader = Reader { text, unit, bytes };
    let first = reader.first()?;
    let suffix = reader.suffix(first.end);
    if let Some(length_of_time) = reader.length_of_time(&first, &suffix)? {
        return Ok(length_of_time);
    }
    if let Some((second, second_suffix)) = reader.second(&first, suffix.end)? {
        return reader.range(first, suffix, second, second_suffix);
    }
    let by = suffix.multiplier.clone().unwrap_or_else(|| 1.into());
    // `×3` says the same as `3×`.
    let times = text[..first.start].ends_with('×').then(suffix::times);
    Ok(QuotedNumeral {
        shape: first.shape(&by),
        digits: first.start..suffix.multiplier_end,
        range: first.start..suffix.end,
        parts: vec![first.part(by)],
        unit: suffix.unit.or(times),
    })
}

struct Reader<'a> {
    text: &'a str,
    unit: Option<&'a Unit>,
    bytes: BytesMeaning,
}

/// Digits as they were written.
struct Written {
    start: usize,
    end: usize,
    value: BigDecimal,
    step: BigDecimal,
    /// Where the last digits are `x`: one past the largest number that shows the same.
    masked_end: Option<BigDecimal>,
}

impl Written {
    fn part(&self, factor: BigDecimal) -> Part {
        Part {
            range: self.start..self.end,
            factor: Conversion {
                numerator: factor,
                denominator: 1.into(),
            },
        }
    }

    fn shape(&self, by: &BigDecimal) -> Shape {
        match &self.masked_end {
            Some(end) => Shape::Mask {
                low: &self.value * by,
                high: end * by,
            },
            None => Shape::Point {
                value: &self.value * by,
                step: &self.step * by,
            },
        }
    }
}

// ---- finding ----------------------------------------------------------------------------------

impl Reader<'_> {
    fn rest(&self, at: usize) -> &str {
        &self.text[at..]
    }

    fn char_at(&self, at: usize) -> Option<char> {
        self.rest(at).chars().next()
    }

    fn char_before(&self, at: usize) -> Option<char> {
        self.text[..at].chars().next_back()
    }

    /// The first numeral that is part of no word (`int8`, `UTF-8`) and no ordinal (`8th`).
    fn first(&self) -> Result<Written, NumeralError> {
        let mut at = 0;
        while let Some(found) = self.rest(at).find(|c: char| c.is_ascii_digit()) {
            let digit = at + found;
            let before = self.char_before(digit);
            let in_word = before.is_some_and(|c| is_letter(c) || c.is_numeric() || c == '_');
            if in_word || self.follows_capitals(digit) {
                at = self.word_end(digit);
                continue;
            }
            let written = self.written(self.sign_start(digit))?;
            if !self.is_ordinal(written.end) {
                return Ok(written);
            }
            at = self.word_end(digit);
        }
        Err(NumeralError::Missing)
    }

    /// `UTF-8`, `ISO-8601`: capitals and a hyphen in front; `sub-5 ms` is a figure.
    fn follows_capitals(&self, digit: usize) -> bool {
        let Some(before) = self.text[..digit].strip_suffix('-') else {
            return false;
        };
        let word = before.rsplit(|c| !is_letter(c)).next().unwrap_or_default();
        word.chars().next().is_some() && word.chars().all(char::is_uppercase)
    }

    /// Where a numeral whose first digit is at `digit` begins: at its point, at its sign.
    fn sign_start(&self, digit: usize) -> usize {
        let outside = |at: usize| {
            self.char_before(at)
                .is_none_or(|c| c.is_whitespace() || "([{~≈<>≤≥=:\"'“‘*_".contains(c))
        };
        let signed = |start: usize| match self.char_before(start) {
            Some(sign @ ('+' | '-' | '−')) if outside(start - sign.len_utf8()) => {
                start - sign.len_utf8()
            }
            _ => start,
        };
        if self.text[..digit].ends_with('.') {
            let point = digit - 1;
            let start = signed(point);
            if start < point || outside(point) {
                return start;
            }
        }
        signed(digit)
    }

    fn word_end(&self, at: usize) -> usize {
        self.rest(at)
            .find(|c: char| !(is_letter(c) || c.is_numeric() || c == '_'))
            .map_or(self.text.len(), |length| at + length)
    }

    fn letters_at(&self, at: usize) -> &str {
        let rest = self.rest(at);
        let end = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
        &rest[..end]
    }

    fn is_ordinal(&self, end: usize) -> bool {
        matches!(self.letters_at(end), "st" | "nd" | "rd" | "th")
    }
}

/// A letter of a script that has capitals and puts spaces between words; in `约76字节` the number
/// stands by itself.
pub(crate) fn is_letter(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase()
}

// ---- digits -----------------------------------------------------------------------------------

fn is_group_separator(c: char) -> bool {
    // A comma, thin, narrow no-break, no-break and figure space, and what programmers write.
    matches!(
        c,
        ',' | '\u{2009}' | '\u{202f}' | '\u{a0}' | '\u{2007}' | '_'
    )
}

fn malformed(text: &str, why: &'static str, range: Range<usize>) -> NumeralError {
    NumeralError::Malformed {
        text: text[range.clone()].to_owned(),
        why,
        range,
    }
}

/// Digits of a numeral as they are read: masked places count as zeros.
#[derive(Default)]
struct Digits {
    text: String,
    decimals: i64,
    /// How many of the last places are masked.
    masked: u32,
}

impl Reader<'_> {
    fn written(&self, start: usize) -> Result<Written, NumeralError> {
        let sign = self.char_at(start).filter(|c| matches!(c, '+' | '-' | '−'));
        let mut at = start + sign.map_or(0, char::len_utf8);
        let mut digits = Digits::default();
        at = self.whole(start, at, &mut digits)?;
        if self.rest(at).starts_with('.') && self.place_follows(at + 1) && digits.masked == 0 {
            at = self.decimals(at + 1, &mut digits);
        }
        let at = self.checked_end(start, at)?;
        let (exponent, end) = self.exponent(at);
        let scale = digits.decimals - exponent;
        let negative = matches!(sign, Some('-' | '−'));
        let signed = |mut magnitude: BigDecimal| {
            if negative {
                magnitude = -magnitude;
            }
            magnitude
        };
        let magnitude = decimal(&digits.text, scale)
            .ok_or_else(|| malformed(self.text, "it has too many digits", start..end))?;
        let unit_of = |place: i64| BigDecimal::new(1.into(), scale - place);
        Ok(Written {
            start,
            end,
            masked_end: (digits.masked > 0)
                .then(|| signed(&magnitude + unit_of(i64::from(digits.masked)))),
            value: signed(magnitude),
            step: unit_of(0),
        })
    }

    /// The places before the point, in groups of three or in one run.
    fn whole(&self, start: usize, from: usize, digits: &mut Digits) -> Result<usize, NumeralError> {
        let mut at = self.places(from, usize::MAX, digits);
        if at > from && self.is_mask(at) {
            at = self.masked(at, digits);
        }
        let first_group = digits.text.len();
        while let Some(separator) = self.char_at(at).filter(|&c| is_group_separator(c)) {
            let group = at + separator.len_utf8();
            if !self.place_follows(group) && !self.rest(group).starts_with("xxx") {
                break;
            }
            let (before, masked_before) = (digits.text.len(), digits.masked);
            let mut end = group;
            if digits.masked == 0 {
                end = self.places(group, 3, digits);
            }
            if self.rest(end).starts_with('x') && digits.text.len() < before + 3 {
                end = self.masked(end, digits);
            }
            let whole_group = digits.text.len() == before + 3 && !self.place_follows(end);
            if whole_group
                && first_group <= 3
                && !(first_group == 1 && digits.text.starts_with('0'))
            {
                at = end;
                continue;
            }
            if separator == ',' || separator == '_' {
                let end = self.places(end, usize::MAX, &mut Digits::default());
                let why = "groups have three digits, and decimals begin with a point";
                return Err(malformed(self.text, why, start..end));
            }
            // A no-break space between two numbers separates them, as any space does.
            digits.text.truncate(before);
            digits.masked = masked_before;
            break;
        }
        Ok(at)
    }

    fn decimals(&self, from: usize, digits: &mut Digits) -> usize {
        let before = digits.text.len();
        let mut at = self.places(from, usize::MAX, digits);
        if self.is_mask(at) {
            at = self.masked(at, digits);
        }
        digits.decimals = (digits.text.len() - before) as i64;
        at
    }

    fn place_follows(&self, at: usize) -> bool {
        self.char_at(at).is_some_and(|c| c.is_ascii_digit())
    }

    fn places(&self, from: usize, most: usize, digits: &mut Digits) -> usize {
        let run = self
            .rest(from)
            .bytes()
            .take_while(u8::is_ascii_digit)
            .take(most)
            .count();
        digits.text.push_str(&self.text[from..from + run]);
        from + run
    }

    /// Whether `xx` stands for digits; a single x behind ungrouped digits is "times".
    fn is_mask(&self, at: usize) -> bool {
        self.rest(at).starts_with("xx")
    }

    fn masked(&self, from: usize, digits: &mut Digits) -> usize {
        let run = self.rest(from).bytes().take_while(|&b| b == b'x').count();
        digits.text.extend(std::iter::repeat_n('0', run));
        digits.masked += run as u32;
        from + run
    }

    /// Refuses what only begins like a numeral: dates, versions, times, fractions.
    fn checked_end(&self, start: usize, at: usize) -> Result<usize, NumeralError> {
        let rest = self.rest(at);
        let why = match self.char_at(at) {
            Some(mark @ ('.' | ':' | '/')) if self.place_follows(at + 1) => match mark {
                '.' => "it has two points",
                ':' => "quote one number, not a proportion or a time",
                _ => "write a fraction as a decimal or a percentage",
            },
            Some(more) if more.is_numeric() && !more.is_ascii() => {
                let why = "write a fraction as a decimal, and no digits but 0 to 9";
                return Err(malformed(self.text, why, start..at + more.len_utf8()));
            }
            _ => return Ok(at),
        };
        let length = rest
            .find(|c: char| !(c.is_ascii_digit() || ".:/".contains(c)))
            .unwrap_or(rest.len());
        let text = rest[..length].trim_end_matches(['.', ':', '/']);
        Err(malformed(self.text, why, start..at + text.len()))
    }

    /// `e6`, of at most three digits.
    fn exponent(&self, at: usize) -> (i64, usize) {
        let rest = self.rest(at);
        let read = || {
            let body = rest.strip_prefix(['e', 'E'])?;
            let digits = body.strip_prefix(['+', '-']).unwrap_or(body);
            let length = digits.bytes().take_while(u8::is_ascii_digit).count();
            let after = digits[length..].chars().next();
            let end = rest.len() - digits.len() + length;
            ((1..=3).contains(&length) && !after.is_some_and(char::is_alphanumeric))
                .then(|| (rest[1..end].parse().ok(), at + end))
        };
        match read() {
            Some((Some(exponent), end)) => (exponent, end),
            _ => (0, at),
        }
    }
}

fn decimal(digits: &str, scale: i64) -> Option<BigDecimal> {
    // Postgres itself reads no number longer than this.
    const MOST_DIGITS: usize = 1_000;
    let digits = if digits.is_empty() { "0" } else { digits };
    (digits.len() <= MOST_DIGITS)
        .then(|| digits.parse().ok())
        .flatten()
        .map(|whole| BigDecimal::new(whole, scale))
}

#[cfg(test)]
mod tests {
    use super::*;
    use BytesMeaning::Binary;

    #[test]
    fn ranges_say_where_digits_and_unit_stand() {
        #[rustfmt::skip]
        let table = [
            ("cost 76 bytes of WAL", "B", "76", "76 bytes"),
            ("−1,234.5 ms!", "ms", "−1,234.5", "−1,234.5 ms"),
            ("about 754k rows/s", "rows/s", "754k", "754k rows/s"),
            ("2 million rows", "rows", "2 million", "2 million rows"),
            ("a 40-byte row", "B", "40", "40-byte"),
            ("1.3–1.8 µs", "µs", "1.3–1.8", "1.3–1.8 µs"),
            ("8,023,5xx bytes", "B", "8,023,5xx", "8,023,5xx bytes"),
            ("65%", "%", "65", "65%"),
            ("3 MB/s of it", "B/s", "3", "3 MB/s"),
            ("76 bytes per second", "B/s", "76", "76 bytes per second"),
            ("76 bytes per row", "B/row", "76", "76 bytes"),
            ("76, then 77", "B", "76", "76"),
        ];
        for (text, unit, digits, range) in table {
            let found = numeral(text, Some(&Unit::new(unit, Binary)), Binary).unwrap();
            assert_eq!(&text[found.digits], digits, "{text}");
            assert_eq!(&text[found.range], range, "{text}");
        }
    }

    #[test]
    fn no_text_whatever_makes_it_panic() {
        let pieces = [
            "1", "23", "000", "x", "xx", ",", ".", " ", "\u{a0}", "\u{2009}", "-", "−", "–", "+",
            "k", "M", "e", "E", "%", "×", "µ", "s", "B", "/", "per ", "to ", "and ", "between ",
            "rows", "row", "_", "(", "million", "é", "行", "\u{fffc}", "th", ":", "¹", "٣", "min",
            "h ", "dead ", "tps", "½", "UTF-",
        ];
        let units =
            ["", "B/row", "rows/s", "heap fetches", "%", "tps"].map(|unit| Unit::new(unit, Binary));
        // A small linear congruential generator: the same texts on every run.
        let mut state: u64 = 42;
        let mut next = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..20_000 {
            let length = 1 + next(10);
            let text: String = (0..length).map(|_| pieces[next(pieces.len())]).collect();
            let unit = &units[next(units.len())];
            match numeral(&text, Some(unit), Binary) {
                Ok(found) => {
                    assert!(
                        text[found.digits.clone()].contains(|c: char| c.is_ascii_digit()),
                        "{text}"
                    );
                    assert!(found.digits.end <= found.range.end, "{text}");
                }
                Err(NumeralError::Malformed { range, .. }) => {
                    assert!(text.get(range).is_some(), "{text}")
                }
                Err(NumeralError::Missing) => {}
            }
        }
    }
}
