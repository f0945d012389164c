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
    match claim.tolerance.as_ref().map(|tolerance| &tolerance.value) {
        None if figure.masked => low <= measured && measured < high,
        None => low <= measured && measured <= high,
        Some(Tolerance::Relative(share)) => {
            let value = &figure.value * &quoted;
            (&measured - &value).abs() <= value.abs() * share
        }
        Some(Tolerance::Absolute(amount)) => {
            (&measured - &figure.value * &quoted).abs() <= amount * claimed
        }
        Some(Tolerance::Range(from, to)) => {
            let limits = from * &claimed..=to * &claimed;
            limits.contains(&measured) && limits.contains(&(&figure.value * &quoted))
        }
        Some(Tolerance::AtLeast(least)) => {
            let least = least * &claimed;
            measured >= least && &figure.value * &quoted >= least
        }
        Some(Tolerance::AtMost(most)) => {
            let most = most * &claimed;
            measured <= most && &figure.value * &quoted <= most
        }
    }
}

/// One number with a unit, and between what its digits say it lies.
struct Figure {
    value: BigDecimal,
    low: BigDecimal,
    high: BigDecimal,
    masked: bool,
    unit: String,
}

impl Figure {
    /// None: it is no number as people write them, such as `0,123`.
    fn read(text: &str) -> Option<Self> {
        let start = text.find(|c: char| c.is_ascii_digit())?;
        let before = text[..start].chars().next_back();
        assert!(
            before.is_none_or(|c| c == ' '),
            "a form that this test does not read: {text}"
        );
        let is_place = |c: char| c.is_ascii_digit() || ",.x".contains(c);
        let length = text[start..]
            .find(|c| !is_place(c))
            .unwrap_or(text.len() - start);
        let number = text[start..start + length].trim_end_matches([',', '.']);
        let masked = number.contains("xx");
        let number = if masked {
            number
        } else {
            number.trim_end_matches('x')
        };
        let groups: Vec<&str> = number.split('.').next().unwrap().split(',').collect();
        if groups.len() > 1
            && (groups[1..].iter().any(|group| group.len() != 3)
                || !(1..=3).contains(&groups[0].len())
                || groups[0] == "0")
        {
            return None;
        }
        let digits = number.replace(',', "");
        let decimals = digits
            .split_once('.')
            .map_or(0, |(_, behind)| behind.len() as i64);
        let value: BigDecimal = digits.replace('x', "0").parse().unwrap();
        let step = BigDecimal::new(1.into(), decimals);
        let unit = text[start + number.len()..].trim_start_matches([' ', '-']);
        let unit: String = unit.chars().take_while(|c| !c.is_whitespace()).collect();
        assert!(
            !unit.contains(|c: char| c.is_ascii_digit()),
            "a form that this test does not read: {text}"
        );
        let half = step.half();
        let (low, high) = if masked {
            let hidden = digits.matches('x').count() as i64;
            let worth = BigDecimal::new(1.into(), decimals - hidden);
            (value.clone(), &value + worth)
        } else {
            (&value - &half, &value + &half)
        };
        Some(Self {
            value,
            low,
            high,
            masked,
            unit,
        })
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
