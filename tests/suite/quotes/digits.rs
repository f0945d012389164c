//! Each digit of each quote of the project's own articles is changed, one at a time, to each other
//! digit. Whether the changed figure still agrees is decided here, by a small reader and exact
//! arithmetic of its own, and the judge has to come to the same.

use super::own_articles;
use crate::articles::read;
use bigdecimal::BigDecimal;
use remeasure::article::{Article, BytesMeaning, Claim, Quote, Tolerance};
use remeasure::judge::{self, Context, Outcome, Subject};
use remeasure::quantity::Value;
use remeasure::record::store::read_record;
use std::collections::BTreeMap;

#[test]
fn every_changed_digit_that_leaves_the_tolerance_is_caught() {
    for path in own_articles() {
        let Ok(Some(record)) = read_record(&path.with_file_name("record.json")) else {
            panic!(
                "{}: no record: build it at full profile and accept it",
                path.display()
            );
        };
        let mut article = read(&path);
        let quotes = std::mem::take(&mut article.prose.quotes);
        let context = Context {
            profile: &record.profile,
            accepted: None,
            measured_here: false,
        };
        let changes: Vec<Vec<String>> = quotes.iter().map(|quote| changed(&quote.text)).collect();
        let rounds = changes.iter().map(Vec::len).max().unwrap_or(0);
        let (mut caught, mut within, mut wrong) = (0, 0, Vec::new());
        // The first round is the article as it stands; in each other every quote has one change.
        for round in 0..=rounds {
            let text = |index: usize| match round.checked_sub(1) {
                None => Some(&quotes[index].text),
                Some(round) => changes[index].get(round),
            };
            let with_text = |index: usize| {
                Some(Quote {
                    text: text(index)?.clone(),
                    ..quotes[index].clone()
                })
            };
            article.prose.quotes = (0..quotes.len()).filter_map(with_text).collect();
            for verdict in judge::judge(&article, &record, &context) {
                let Subject::Quote(index) = verdict.subject else {
                    continue;
                };
                let quote = &article.prose.quotes[index];
                let claim = claim(&article, quote);
                let measured = &record.claims[&claim.name.value].value;
                let agrees = agrees(&quote.text, claim, &article, measured);
                let holds = verdict.outcome == Outcome::Holds;
                if agrees != holds || (round == 0 && !holds) {
                    wrong.push(format!(
                        "[{}](claim:{}) {measured}: {:?}",
                        quote.text, quote.claim.value, verdict.outcome
                    ));
                }
                caught += usize::from(round > 0 && !holds);
                within += usize::from(round > 0 && holds);
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let digits = changes.iter().flatten().count();
        assert_eq!(caught + within, digits, "{}", path.display());
        assert!(digits == 0 || caught > within, "{caught} of {digits}");
    }
}

/// The text with one digit changed, for each digit that stands in no word and each other digit.
fn changed(text: &str) -> Vec<String> {
    let mut changed = Vec::new();
    for (at, before) in text.match_indices(|c: char| c.is_ascii_digit()) {
        for digit in ('0'..='9').filter(|digit| !before.starts_with(*digit)) {
            changed.push(format!("{}{digit}{}", &text[..at], &text[at + 1..]));
        }
    }
    changed
}

fn claim<'a>(article: &'a Article, quote: &Quote) -> &'a Claim {
    let mut claims = article.claims();
    claims
        .find(|claim| claim.name.value == quote.claim.value)
        .unwrap()
}

// ---- by hand ----------------------------------------------------------------------------------

/// Whether a quote agrees with what was measured. Every form that the articles use is read; one
/// that is not stops the test.
fn agrees(text: &str, claim: &Claim, article: &Article, measured: &Value) -> bool {
    if let Value::Boolean(value) = measured {
        return *value && !text.contains(|c: char| c.is_ascii_digit());
    }
    let measured = measured
        .number()
        .and_then(|number| number.finite())
        .unwrap();
    let bytes = claim.bytes.unwrap_or(article.front_matter.bytes);
    let Some(figure) = Figure::read(text) else {
        return false;
    };
    // All in the base of the unit: bytes, seconds, one.
    let base = |unit: &str| base(unit, bytes);
    let claimed = base(claim.unit.as_deref().unwrap_or(""));
    let quoted = match figure.unit.as_str() {
        "" => claimed.clone(),
        unit => base(unit),
    };
    let measured = measured * &claimed;
    let (low, high) = (&figure.low * &quoted, &figure.high * &quoted);
    let (from, to) = (&figure.from * &quoted, &figure.to * &quoted);
    let tolerance = claim.tolerance.as_ref().map(|tolerance| &tolerance.value);
    let limits = |least: Option<&BigDecimal>, most: Option<&BigDecimal>| {
        let keeps = |value: &BigDecimal| {
            least.is_none_or(|least| *value >= least * &claimed)
                && most.is_none_or(|most| *value <= most * &claimed)
        };
        let in_range = from == to || (from <= measured && measured <= to);
        keeps(&measured) && keeps(&from) && keeps(&to) && in_range
    };
    match tolerance {
        None if figure.masked => low <= measured && measured < high,
        None => low <= measured && measured <= high,
        Some(Tolerance::Relative(share)) => {
            let (below, above) = (from.abs() * share, to.abs() * share);
            from - below <= measured && measured <= to + above
        }
        Some(Tolerance::Absolute(amount)) => {
            let amount = amount * &claimed;
            from - &amount <= measured && measured <= to + &amount
        }
        Some(Tolerance::Range(least, most)) => limits(Some(least), Some(most)),
        Some(Tolerance::AtLeast(least)) => limits(Some(least), None),
        Some(Tolerance::AtMost(most)) => limits(None, Some(most)),
    }
}

/// What a text says: one number or the ends of a range, and between what their digits say they lie.
struct Figure {
    from: BigDecimal,
    to: BigDecimal,
    low: BigDecimal,
    high: BigDecimal,
    masked: bool,
    unit: String,
}

impl Figure {
    /// None: it is no number as people write them, such as `0,123`.
    fn read(text: &str) -> Option<Self> {
        let start = text
            .char_indices()
            .find(|&(at, c)| {
                let before = text[..at].chars().next_back();
                c.is_ascii_digit() && !before.is_some_and(char::is_alphanumeric)
            })?
            .0;
        let negative = text[..start].ends_with(['-', '−']);
        let first = One::read(&text[start..])?;
        let rest = first.rest.trim_start();
        let joiner = ["to ", "–", "-"].into_iter().find_map(|joiner| {
            let behind = rest.strip_prefix(joiner)?.trim_start();
            behind
                .starts_with(|c: char| c.is_ascii_digit())
                .then_some(behind)
        });
        let Some(behind) = joiner else {
            let signed = |value: &BigDecimal| match negative {
                true => -value,
                false => value.clone(),
            };
            let (low, high) = match negative {
                true => (signed(&first.high), signed(&first.low)),
                false => (first.low, first.high),
            };
            return Some(Self {
                from: signed(&first.value),
                to: signed(&first.value),
                low,
                high,
                masked: first.masked,
                unit: first.unit,
            });
        };
        let second = One::read(behind)?;
        assert!(
            !negative && first.unit.is_empty() && first.by == second.by,
            "a form that this test does not read: {text}"
        );
        if first.value > second.value {
            return None;
        }
        Some(Self {
            low: first.value.clone(),
            high: second.value.clone(),
            from: first.value,
            to: second.value,
            masked: false,
            unit: second.unit,
        })
    }
}

/// One number with what stands behind it.
struct One<'t> {
    value: BigDecimal,
    low: BigDecimal,
    high: BigDecimal,
    masked: bool,
    /// What `k` or `million` multiplies by.
    by: BigDecimal,
    unit: String,
    rest: &'t str,
}

impl<'t> One<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let is_separator = |c: char| c == ',' || c == '\u{2009}' || c == '\u{202f}';
        let is_place = |c: char| c.is_ascii_digit() || c == '.' || c == 'x' || is_separator(c);
        let length = text.find(|c| !is_place(c)).unwrap_or(text.len());
        let number = text[..length].trim_end_matches(|c| c == '.' || is_separator(c));
        let masked = number.contains("xx");
        let number = if masked {
            number
        } else {
            number.trim_end_matches('x')
        };
        let groups: Vec<&str> = number
            .split('.')
            .next()
            .unwrap()
            .split(is_separator)
            .collect();
        if groups.len() > 1
            && (groups[1..].iter().any(|group| group.len() != 3)
                || !(1..=3).contains(&groups[0].len())
                || groups[0] == "0")
        {
            return None;
        }
        let digits = number.replace(is_separator, "");
        let decimals = digits
            .split_once('.')
            .map_or(0, |(_, behind)| behind.len() as i64);
        let value: BigDecimal = digits.replace('x', "0").parse().unwrap();
        let half = BigDecimal::new(1.into(), decimals).half();
        let (low, high) = if masked {
            let hidden = digits.matches('x').count() as i64;
            (
                value.clone(),
                &value + BigDecimal::new(1.into(), decimals - hidden),
            )
        } else {
            (&value - &half, &value + &half)
        };
        let (by, rest) = multiplier(&text[number.len()..]);
        let unit = rest.trim_start_matches([' ', '-']);
        let is_joiner = |unit: &str| unit.starts_with(['–', '−']) || unit.starts_with("to ");
        let end = match is_joiner(unit) || unit.starts_with(|c: char| c.is_ascii_digit()) {
            true => 0,
            false => unit.find([' ', '–']).unwrap_or(unit.len()),
        };
        let unit_text = unit[..end].trim_end_matches([',', ';', ':', '.']);
        Some(Self {
            value: value * &by,
            low: low * &by,
            high: high * &by,
            masked,
            by,
            unit: unit_text.to_owned(),
            rest: if end == 0 { rest } else { &unit[end..] },
        })
    }
}

fn multiplier(rest: &str) -> (BigDecimal, &str) {
    for (word, exponent) in [
        ("thousand", 3),
        ("million", 6),
        ("billion", 9),
        ("k", 3),
        ("M", 6),
        ("bn", 9),
    ] {
        let behind = rest.trim_start().strip_prefix(word);
        if let Some(behind) = behind.filter(|behind| !behind.starts_with(char::is_alphabetic)) {
            return (BigDecimal::new(1.into(), -exponent), behind);
        }
    }
    (1.into(), rest)
}

#[test]
fn the_reader_of_this_test_reads_what_articles_say() {
    for (text, low, high, unit) in [
        ("76 bytes of WAL", "75.5", "76.5", "bytes"),
        ("about 754k rows/s", "753500", "754500", "rows/s"),
        ("2 million", "1500000", "2500000", ""),
        ("−1.5 ms", "-1.55", "-1.45", "ms"),
        ("1\u{2009}234.5", "1234.45", "1234.55", ""),
        ("8,023,5xx bytes", "8023500", "8023600", "bytes"),
        ("1.3 to 1.8 µs", "1.3", "1.8", "µs"),
        ("70–80%", "70", "80", "%"),
        ("3x", "2.5", "3.5", "x"),
        ("int8 takes 8 B", "7.5", "8.5", "B"),
    ] {
        let figure = Figure::read(text).unwrap();
        let number = |text: &str| text.parse::<BigDecimal>().unwrap();
        assert_eq!(
            (figure.low, figure.high),
            (number(low), number(high)),
            "{text}"
        );
        assert_eq!(figure.unit, unit, "{text}");
    }
}

/// What one of a unit is in its base.
fn base(unit: &str, bytes: BytesMeaning) -> BigDecimal {
    let kilo = match bytes {
        BytesMeaning::Binary => 1024,
        BytesMeaning::Decimal => 1000,
    };
    let power = |base: u64, exponent| BigDecimal::from(base.pow(exponent));
    let known: BTreeMap<&str, BigDecimal> = BTreeMap::from([
        ("kB", power(kilo, 1)),
        ("MB", power(kilo, 2)),
        ("GB", power(kilo, 3)),
        ("KiB", power(1024, 1)),
        ("MiB", power(1024, 2)),
        ("GiB", power(1024, 3)),
        ("ns", BigDecimal::new(1.into(), 9)),
        ("µs", BigDecimal::new(1.into(), 6)),
        ("ms", BigDecimal::new(1.into(), 3)),
        ("min", 60.into()),
        ("%", BigDecimal::new(1.into(), 2)),
    ]);
    // Bytes, seconds, and things that are counted.
    known.get(unit).cloned().unwrap_or_else(|| 1.into())
}
