//! Units as claims and quotes write them, and the exact factors between them: `B`, `kB`, `µs/row`,
//! `MB/s`, `B/row/index`. A word that is no known unit counts things (`rows`, `buffers`) and is
//! equal to itself alone.

use crate::article::BytesMeaning;
use bigdecimal::BigDecimal;
use std::fmt;

/// A unit with its denominators.
#[derive(Clone, Debug)]
pub struct Unit {
    text: String,
    numerator: Term,
    denominators: Vec<Term>,
}

/// The exact factor between two units: one of the first is `numerator / denominator` of the
/// second. Two numbers, because a second is no finite decimal of an hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    pub numerator: BigDecimal,
    pub denominator: BigDecimal,
}

/// One factor of a unit: `kB` is a thing of dimension bytes and scale 1024.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) dimension: Dimension,
    /// In the dimension's own unit: bytes, seconds, one.
    pub(super) scale: BigDecimal,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Dimension {
    Bytes,
    Time,
    Ratio,
    /// Things that are counted, by their name in the singular.
    Count(String),
}

impl Unit {
    /// Reads a unit such as `MB/s`, `bytes per row` or `heap fetches`; every text is one.
    pub fn new(text: &str, bytes: BytesMeaning) -> Self {
        let text = text.trim();
        let spelled = text.replace(" per ", "/");
        let mut words = spelled.split('/').map(str::trim);
        let first = words.next().unwrap_or_default();
        let mut denominators = Vec::new();
        let numerator = match first {
            "tps" | "TPS" => {
                denominators.push(term("s", bytes));
                Term::count("transactions")
            }
            _ => term(first, bytes),
        };
        denominators.extend(
            words
                .filter(|word| !word.is_empty())
                .map(|word| term(word, bytes)),
        );
        Self {
            text: text.to_owned(),
            numerator,
            denominators,
        }
    }

    pub(super) fn of_terms(text: String, numerator: Term, denominators: Vec<Term>) -> Self {
        Self {
            text,
            numerator,
            denominators,
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn numerator(&self) -> &Term {
        &self.numerator
    }

    /// Whether this is a plain share or multiple: `%`, `×`, `ratio`.
    pub fn is_ratio(&self) -> bool {
        self.numerator.dimension == Dimension::Ratio && self.denominators.is_empty()
    }

    /// A length of time and nothing else: `ms`, not `ms/row`.
    pub(super) fn is_time(&self) -> bool {
        self.numerator.dimension == Dimension::Time && self.denominators.is_empty()
    }

    /// How one of `self` is written in `other`; None where the dimensions differ.
    pub fn conversion(&self, other: &Self) -> Option<Conversion> {
        (self.denominators.len() == other.denominators.len())
            .then(|| self.leading_conversion(other))
            .flatten()
    }

    /// The same for a unit whose denominators may be left unsaid: `76 bytes` of `B/row`.
    pub fn leading_conversion(&self, other: &Self) -> Option<Conversion> {
        if self.numerator.dimension != other.numerator.dimension {
            return None;
        }
        let mut numerator = self.numerator.scale.clone();
        let mut denominator = other.numerator.scale.clone();
        let mut unmatched: Vec<&Term> = other.denominators.iter().collect();
        for below in &self.denominators {
            let at = unmatched
                .iter()
                .position(|candidate| candidate.dimension == below.dimension)?;
            numerator *= &unmatched.remove(at).scale;
            denominator *= &below.scale;
        }
        Some(Conversion {
            numerator,
            denominator,
        })
    }

    /// This unit with what `whole` divides by, where this one leaves it unsaid: `MB` of
    /// `B/index` is `MB/index`.
    pub fn completed_from(&self, whole: &Self) -> Self {
        let said = self.denominators.len();
        let below = whole.text.find('/').or_else(|| whole.text.find(" per "));
        match below {
            Some(at) if said == 0 => Self {
                text: format!("{}{}", self.text, &whole.text[at..]),
                numerator: self.numerator.clone(),
                denominators: whole.denominators.clone(),
            },
            _ => self.clone(),
        }
    }

    /// Puts the unit behind a number: `76 B/row`, `8%`, `14.6×`, `0.44` for a `ratio`.
    pub fn attach(&self, number: &str) -> String {
        match self.text.as_str() {
            "" | "1" | "ratio" => number.to_owned(),
            "%" => format!("{number}%"),
            "x" | "×" | "times" => format!("{number}×"),
            text if text.starts_with(['%', '/', '×']) => format!("{number}{text}"),
            text => format!("{number} {text}"),
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Conversion {
    pub fn identity() -> Self {
        Self {
            numerator: 1.into(),
            denominator: 1.into(),
        }
    }
}

impl Term {
    pub(super) fn count(word: &str) -> Self {
        Self {
            dimension: Dimension::Count(singular(word)),
            scale: 1.into(),
        }
    }
}

fn term(word: &str, bytes: BytesMeaning) -> Term {
    known(word, bytes).unwrap_or_else(|| Term::count(word))
}

/// A word that is a unit of bytes, of time or of a ratio.
pub(super) fn known(word: &str, bytes: BytesMeaning) -> Option<Term> {
    byte_scale(word, bytes)
        .map(|scale| (Dimension::Bytes, scale))
        .or_else(|| time_scale(word).map(|scale| (Dimension::Time, scale)))
        .or_else(|| ratio_scale(word).map(|scale| (Dimension::Ratio, scale)))
        .map(|(dimension, scale)| Term { dimension, scale })
}

fn byte_scale(word: &str, bytes: BytesMeaning) -> Option<BigDecimal> {
    let (base, power) = match (word, word.to_ascii_lowercase().as_str()) {
        ("B", _) | (_, "byte" | "bytes") => return Some(1.into()),
        ("kB" | "KB", _) | (_, "kilobyte" | "kilobytes") => (None, 1),
        ("MB", _) | (_, "megabyte" | "megabytes") => (None, 2),
        ("GB", _) | (_, "gigabyte" | "gigabytes") => (None, 3),
        ("TB", _) | (_, "terabyte" | "terabytes") => (None, 4),
        ("PB", _) | (_, "petabyte" | "petabytes") => (None, 5),
        ("KiB" | "kiB", _) | (_, "kibibyte" | "kibibytes") => (Some(1024_u64), 1),
        ("MiB", _) | (_, "mebibyte" | "mebibytes") => (Some(1024), 2),
        ("GiB", _) | (_, "gibibyte" | "gibibytes") => (Some(1024), 3),
        ("TiB", _) | (_, "tebibyte" | "tebibytes") => (Some(1024), 4),
        ("PiB", _) | (_, "pebibyte" | "pebibytes") => (Some(1024), 5),
        _ => return None,
    };
    let base = base.unwrap_or(match bytes {
        BytesMeaning::Binary => 1024,
        BytesMeaning::Decimal => 1000,
    });
    Some(base.pow(power).into())
}

fn time_scale(word: &str) -> Option<BigDecimal> {
    let thousandths = |exponent| Some(BigDecimal::new(1.into(), exponent));
    match word.to_lowercase().as_str() {
        _ if word.chars().count() == 1 && word != "s" && word != "h" && word != "d" => None,
        "ns" | "nanosecond" | "nanoseconds" => thousandths(9),
        // The micro sign, the Greek letter that looks like it, and plain u.
        "µs" | "μs" | "us" | "microsecond" | "microseconds" => {
            (word != "US" && word != "Us").then(|| BigDecimal::new(1.into(), 6))
        }
        "ms" | "msec" | "millisecond" | "milliseconds" => {
            (word != "MS" && word != "Ms").then(|| BigDecimal::new(1.into(), 3))
        }
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1.into()),
        "min" | "mins" | "minute" | "minutes" => Some(60.into()),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some(3600.into()),
        "d" | "day" | "days" => Some(86_400.into()),
        _ => None,
    }
}

fn ratio_scale(word: &str) -> Option<BigDecimal> {
    match word.to_lowercase().as_str() {
        "%" | "percent" => Some(BigDecimal::new(1.into(), 2)),
        "‰" => Some(BigDecimal::new(1.into(), 3)),
        "" | "1" | "×" | "x" | "times" | "fold" | "ratio" => Some(1.into()),
        _ => None,
    }
}

/// Enough English for `rows` to be many a `row`; what it makes of other words does not matter, as
/// both sides go through it. Postgres has more than one name for some things.
fn singular(word: &str) -> String {
    match word {
        "tuple" | "tuples" => return "row".to_owned(),
        "block" | "blocks" | "buffer" | "buffers" => return "page".to_owned(),
        "indices" => return "index".to_owned(),
        _ => {}
    }
    if let Some(stem) = word.strip_suffix("ies") {
        return format!("{stem}y");
    }
    for ending in ["xes", "ches", "shes", "sses"] {
        if word.ends_with(ending) {
            return word[..word.len() - 2].to_owned();
        }
    }
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with('s') => stem.to_owned(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BytesMeaning::{Binary, Decimal};

    #[test]
    fn units_convert_by_exact_factors() {
        #[rustfmt::skip]
        let table = [
            ("B", "B", Binary, Some(("1", "1"))),
            ("kB", "B", Binary, Some(("1024", "1"))),
            ("KB", "B", Binary, Some(("1024", "1"))),
            ("kB", "B", Decimal, Some(("1000", "1"))),
            ("KiB", "B", Decimal, Some(("1024", "1"))),
            ("MB", "kB", Binary, Some(("1048576", "1024"))),
            ("MB", "MiB", Decimal, Some(("1000000", "1048576"))),
            ("GB", "B", Binary, Some(("1073741824", "1"))),
            ("TB", "B", Decimal, Some(("1000000000000", "1"))),
            ("GiB", "B", Decimal, Some(("1073741824", "1"))),
            ("byte", "bytes", Binary, Some(("1", "1"))),
            ("megabytes", "MB", Binary, Some(("1048576", "1048576"))),
            ("ns", "s", Binary, Some(("0.000000001", "1"))),
            ("µs", "ms", Binary, Some(("0.000001", "0.001"))),
            ("μs", "us", Binary, Some(("0.000001", "0.000001"))),
            ("min", "s", Binary, Some(("60", "1"))),
            ("h", "min", Binary, Some(("3600", "60"))),
            ("seconds", "sec", Binary, Some(("1", "1"))),
            ("%", "ratio", Binary, Some(("0.01", "1"))),
            ("×", "x", Binary, Some(("1", "1"))),
            ("", "%", Binary, Some(("1", "0.01"))),
            ("rows", "row", Binary, Some(("1", "1"))),
            ("indexes", "index", Binary, Some(("1", "1"))),
            ("heap fetches", "heap fetch", Binary, Some(("1", "1"))),
            ("rows/s", "rows/min", Binary, Some(("60", "1"))),
            ("B/row", "B/row", Binary, Some(("1", "1"))),
            ("MB/s", "B/sec", Binary, Some(("1048576", "1"))),
            ("bytes per row", "B/row", Binary, Some(("1", "1"))),
            ("B/row/index", "B/index/row", Binary, Some(("1", "1"))),
            ("µs/row", "ms/row", Binary, Some(("0.000001", "0.001"))),
            ("tps", "transactions/s", Binary, Some(("1", "1"))),
            ("B/row", "B", Binary, None),
            ("B", "B/row", Binary, None),
            ("B", "ms", Binary, None),
            ("tuples", "rows", Binary, Some(("1", "1"))),
            ("buffers", "blocks", Binary, Some(("1", "1"))),
            ("pages", "buffer", Binary, Some(("1", "1"))),
            ("rows", "buffers", Binary, None),
            ("B/row", "B/page", Binary, None),
            ("%", "B", Binary, None),
            ("Mb", "MB", Binary, None),
            ("MS", "ms", Binary, None),
            ("S", "s", Binary, None),
        ];
        for (from, to, bytes, expected) in table {
            let found = Unit::new(from, bytes).conversion(&Unit::new(to, bytes));
            let expected = expected.map(|(numerator, denominator)| Conversion {
                numerator: numerator.parse().unwrap(),
                denominator: denominator.parse().unwrap(),
            });
            assert_eq!(found, expected, "{from} → {to}");
        }
    }

    #[test]
    fn a_quote_may_leave_denominators_unsaid_but_not_invent_them() {
        let convertible = |from, to| {
            Unit::new(from, Binary)
                .leading_conversion(&Unit::new(to, Binary))
                .is_some()
        };
        assert!(convertible("B", "B/row/index"));
        assert!(convertible("B/index", "B/row/index"));
        assert!(!convertible("B/page", "B/row/index"));
        assert!(!convertible("B/row", "B"));
    }

    #[test]
    fn a_unit_stands_behind_its_number_as_people_write_it() {
        for (unit, expected) in [
            ("B/row", "76 B/row"),
            ("%", "76%"),
            ("x", "76×"),
            ("ratio", "76"),
            ("", "76"),
            ("rows/s", "76 rows/s"),
            ("%/index", "76%/index"),
        ] {
            assert_eq!(Unit::new(unit, Binary).attach("76"), expected);
        }
    }
}
