//! Writes what was measured into the quotes that do not hold any more, in the author's own style,
//! and nowhere else. Pure: what comes out are changes of the text, each with its place, and the
//! quotes that nobody but the author can rewrite, with the reason. Entries: [`rewrite()`], [`apply`].
//!
//! For each quote that does not hold, in order of liking, numbers are written in its shape; the
//! first that holds, by the same judgement as any quote, is taken.

use super::bounds::Scale;
use super::{Bench, Context, Outcome, Subject, finite, no_number, quote};
use crate::article::{Article, Claim, Quote};
use crate::quantity::style::{Habits, Style};
use crate::quantity::{QuotedNumeral, Shape, Value, numeral};
use crate::record::Record;
use crate::source::{Source, Span};
use bigdecimal::{BigDecimal, RoundingMode, Zero};
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewriting {
    /// In the order of the prose.
    pub changes: Vec<Change>,
    pub left: Vec<Left>,
}

/// A quote that holds once its edits are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Index into `article.prose.quotes`.
    pub quote: usize,
    /// The quote's text afterwards.
    pub after: String,
    /// What comes in the place of which bytes of the source, ascending.
    pub edits: Vec<(Span, String)>,
}

/// A quote that does not hold and stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub quote: usize,
    pub reason: String,
}

pub fn rewrite(article: &Article, record: &Record, context: &Context) -> Rewriting {
    let verdicts = super::judge(article, record, context);
    let failing = verdicts
        .iter()
        .filter_map(|verdict| match (verdict.subject, &verdict.outcome) {
            (Subject::Quote(index), Outcome::DoesNotHold { difference }) => {
                Some((index, difference))
            }
            _ => None,
        });
    let mut rewriting = Rewriting::default();
    let mut failing = failing.peekable();
    if failing.peek().is_none() {
        return rewriting;
    }
    let claims: BTreeMap<&str, &Claim> = article
        .claims()
        .map(|claim| (claim.name.value.as_str(), claim))
        .collect();
    let habits = habits(article, &claims);
    for (index, difference) in failing {
        let quote = &article.prose.quotes[index];
        let claim = claims[quote.claim.value.as_str()];
        let bench = Bench::new(article, claim, record, context);
        let requoted = requoted(&bench, index, quote, difference, &habits)
            .and_then(|(after, edits)| Ok((after, edits_in(&article.source, quote, &edits)?)));
        match requoted {
            Ok((after, edits)) => rewriting.changes.push(Change {
                quote: index,
                after,
                edits,
            }),
            Err(reason) => rewriting.left.push(Left {
                quote: index,
                reason,
            }),
        }
    }
    rewriting
}

/// The text with all changes made, and not one other byte touched.
pub fn apply(text: &str, changes: &[Change]) -> String {
    let mut written = String::with_capacity(text.len() + 16 * changes.len());
    let mut at = 0;
    for (span, new) in changes.iter().flat_map(|change| &change.edits) {
        written.push_str(&text[at..span.start]);
        written.push_str(new);
        at = span.end;
    }
    written.push_str(&text[at..]);
    written
}

/// What the numbers of all quotes show of their author's habits.
fn habits(article: &Article, claims: &BTreeMap<&str, &Claim>) -> Habits {
    let mut habits = Habits::default();
    for quote in &article.prose.quotes {
        let Some(claim) = claims.get(quote.claim.value.as_str()) else {
            continue;
        };
        let bytes = claim.bytes.unwrap_or(article.front_matter.bytes);
        let unit = claim.unit.as_deref();
        let unit = unit.map(|unit| crate::quantity::Unit::new(unit, bytes));
        if let Ok(read) = numeral(&quote.text, unit.as_ref(), bytes) {
            for part in read.parts {
                habits.learn(&quote.text[part.range]);
            }
        }
    }
    habits
}

// ---- what to write ----------------------------------------------------------------------------

/// What comes in the place of which bytes of a quote's text.
type TextEdits = Vec<(Range<usize>, String)>;

/// The quote's text as it holds, and how it comes to that; or why it does not.
fn requoted(
    bench: &Bench,
    index: usize,
    quote: &Quote,
    difference: &str,
    habits: &Habits,
) -> Result<(String, TextEdits), String> {
    let value = bench.value();
    if let Value::Boolean(_) = value {
        return Err(format!("{difference}; write the sentence anew"));
    }
    let Some(value) = finite(&value) else {
        return Err(no_number(&value).unwrap_or_default());
    };
    let numeral = numeral(&quote.text, bench.unit.as_ref(), bench.bytes)
        .map_err(|_| difference.to_owned())?;
    let scale = quote::scale(&numeral, bench.unit.as_ref())?;
    let value = scale.claim_to_quote(value);
    let found = candidates(&quote.text, &numeral, &value, habits)?
        .into_iter()
        .map(|edits| (applied(&quote.text, &edits), edits))
        .find(|(after, _)| holds(bench, index, quote, after));
    found.ok_or_else(|| unfit(bench, &scale, difference))
}

fn holds(bench: &Bench, index: usize, quote: &Quote, text: &str) -> bool {
    let changed = Quote {
        text: text.to_owned(),
        ..quote.clone()
    };
    quote::judge(bench, index, &changed).outcome == Outcome::Holds
}

/// Why nothing that could be written holds: the claim's own limits mostly.
fn unfit(bench: &Bench, scale: &Scale, difference: &str) -> String {
    let limits = bench.claim.tolerance.as_ref();
    let value = bench.value();
    let outside = limits
        .and_then(|limits| super::bounds::Bounds::of_limits(&limits.value, scale))
        .zip(finite(&value))
        .and_then(|(bounds, value)| bounds.difference(&scale.claim_to_common(value), scale));
    match outside {
        Some(difference) => format!("no quote of this claim holds: {difference}"),
        None => format!("no number in this form holds: {difference}"),
    }
}

fn applied(text: &str, edits: &TextEdits) -> String {
    let mut applied = String::with_capacity(text.len() + 16);
    let mut at = 0;
    for (range, new) in edits {
        applied.push_str(&text[at..range.start]);
        applied.push_str(new);
        at = range.end;
    }
    applied.push_str(&text[at..]);
    applied
}

/// Ways to write `value`, which is in the quote's unit, the best first.
fn candidates(
    text: &str,
    numeral: &QuotedNumeral,
    value: &BigDecimal,
    habits: &Habits,
) -> Result<Vec<TextEdits>, String> {
    let style = |index: usize| Style::of(&text[numeral.parts[index].range.clone()]);
    let written = |index: usize| {
        let factor = &numeral.parts[index].factor;
        value * &factor.denominator / &factor.numerator
    };
    let only = |new: String| vec![(numeral.parts[0].range.clone(), new)];
    match (&numeral.shape, numeral.parts.len()) {
        (Shape::Point { .. }, 1) => {
            let points = points(&style(0), &written(0), habits);
            Ok(points.into_iter().map(only).collect())
        }
        (Shape::Point { .. }, _) => Ok(lengths_of_time(text, numeral, value, habits)),
        (Shape::Mask { .. }, _) => {
            let masked = style(0).write_masked(&written(0), habits);
            Ok(masked.into_iter().map(only).collect())
        }
        (Shape::Range { low, high }, _) => {
            let width = high - low;
            let (end, off, rounding) = if value > high {
                (1, value - high, RoundingMode::Ceiling)
            } else {
                (0, low - value, RoundingMode::Floor)
            };
            if off > width {
                return Err("it is further away than the range is wide; write a new one".to_owned());
            }
            let style = style(end);
            let new = style.write(&written(end), style.decimals, rounding, habits);
            Ok(vec![vec![(numeral.parts[end].range.clone(), new)]])
        }
    }
}

/// One number: a round one stays round, another keeps its decimals; more digits where a tolerance
/// asks for them or nothing but zeros would be left.
fn points(style: &Style, value: &BigDecimal, habits: &Habits) -> Vec<String> {
    const LEAST_DIGITS: i64 = 3;
    const MORE_DECIMALS: i64 = 12;
    let mut decimals = Vec::new();
    if style.round {
        decimals.push(
            style
                .decimals_for(value, style.significant.max(LEAST_DIGITS))
                .min(0),
        );
    }
    let own = style.decimals_for(value, style.significant.max(1));
    let lost = !value.is_zero() && style.decimals_for(value, 1) > style.decimals;
    if lost && own > style.decimals {
        decimals.push(own);
    }
    let first = if lost {
        own.max(style.decimals)
    } else {
        style.decimals
    };
    decimals.extend(first..=first + MORE_DECIMALS);
    decimals
        .into_iter()
        .map(|decimals| style.write(value, decimals, RoundingMode::HalfUp, habits))
        .collect()
}

/// `1 min 23 s`: whole minutes, and the rest.
fn lengths_of_time(
    text: &str,
    numeral: &QuotedNumeral,
    value: &BigDecimal,
    habits: &Habits,
) -> Vec<TextEdits> {
    let [large, small] = numeral.parts.as_slice() else {
        return Vec::new();
    };
    let each = &large.factor.numerator / &large.factor.denominator;
    let (large_style, small_style) = (
        Style::of(&text[large.range.clone()]),
        Style::of(&text[small.range.clone()]),
    );
    let half_up = RoundingMode::HalfUp;
    let rounded = value.with_scale_round(small_style.decimals, half_up);
    let whole = (&rounded / &each).with_scale_round(0, RoundingMode::Down);
    let rest = rounded - &whole * &each;
    vec![vec![
        (
            large.range.clone(),
            large_style.write(&whole, 0, half_up, habits),
        ),
        (
            small.range.clone(),
            small_style.write(&rest, small_style.decimals, half_up, habits),
        ),
    ]]
}

// ---- where it stands --------------------------------------------------------------------------

/// The edits in the source, where every byte that changes stands there as it is read.
fn edits_in(
    source: &Source,
    quote: &Quote,
    edits: &TextEdits,
) -> Result<Vec<(Span, String)>, String> {
    if quote.text_is_label {
        return Err(format!(
            "its text is the name of a link's definition too; write `[{}](claim:{})`",
            quote.text, quote.claim.value
        ));
    }
    let mut found = Vec::new();
    for (range, new) in edits {
        let old = &quote.text[range.clone()];
        let whole = quote.places.verbatim(range.clone());
        match whole.filter(|span| source.slice(*span) == old) {
            Some(span) => found.push((span, new.clone())),
            None => found.extend(
                digit_by_digit(source, quote, range, new)
                    .ok_or("it is not written in one piece in the source")?,
            ),
        }
    }
    Ok(found)
}

/// `8,0**23**` or `1&nbsp;234`: only digits change, and each stands by itself.
fn digit_by_digit(
    source: &Source,
    quote: &Quote,
    range: &Range<usize>,
    new: &str,
) -> Option<Vec<(Span, String)>> {
    let old = &quote.text[range.clone()];
    if old.len() != new.len() {
        return None;
    }
    let mut edits = Vec::new();
    for ((offset, before), after) in old.char_indices().zip(new.chars()) {
        if before == after {
            continue;
        }
        let at = range.start + offset;
        let span = quote.places.verbatim(at..at + before.len_utf8())?;
        let digits = before.is_ascii_digit() && after.is_ascii_digit();
        if !digits || !source.slice(span).starts_with(before) {
            return None;
        }
        edits.push((span, after.to_string()));
    }
    Some(edits)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{article, claim, record};
    use super::*;

    /// The quote of claim `x` as it is rewritten, or why it is not.
    fn rewritten(text: &str, measured: &str, unit: &str, tolerance: &str) -> String {
        let markdown = format!("\u{feff}So [{text}](claim:x).\r\n");
        let article = article(&markdown, vec![claim("x", unit, tolerance)]);
        let context = Context {
            profile: "full",
            accepted: None,
            measured_here: false,
        };
        let found = rewrite(&article, &record("a", &[("x", measured)]), &context);
        if let [left] = found.left.as_slice() {
            return left.reason.clone();
        }
        let after = apply(&markdown, &found.changes);
        let after = after.strip_prefix("\u{feff}So [").unwrap();
        after.strip_suffix("](claim:x).\r\n").unwrap().to_owned()
    }

    #[test]
    fn quotes_are_rewritten_in_their_own_style() {
        #[rustfmt::skip]
        let table = [
            // What holds stays.
            ("76 bytes", "76.2", "B", "", "76 bytes"),
            ("80 bytes", "76.2", "B", "10%", "80 bytes"),
            // Decimals.
            ("76 bytes", "77.4", "B", "", "77 bytes"),
            ("about 76.0 bytes of WAL", "77.44", "B/row", "", "about 77.4 bytes of WAL"),
            ("1.50 s", "2.3456", "s", "", "2.35 s"),
            ("76", "0.0432", "ms", "", "0.043"),
            ("1.5", "0.0044", "ms", "", "0.0044"),
            (".5", "0.62", "", "", ".6"),
            ("76", "77.4", "B", "0.1%", "77.4"),
            ("76", "77.44", "B", "0.01%", "77.44"),
            ("99.9%", "1", "", "", "100.0%"),
            ("9.9", "9.96", "", "", "10.0"),
            // Round numbers.
            ("754,000 rows/s", "436312.7", "rows/s", "30%", "436,000 rows/s"),
            ("754,000 rows/s", "436312.7", "rows/s", "", "436,313 rows/s"),
            ("1,000,000", "1599876", "rows", "30%", "1,600,000"),
            ("100 bytes", "234.4", "B", "10%", "234 bytes"),
            ("80", "93.4", "B", "1%", "93"),
            // Groups.
            ("8,023,544", "9123456", "B", "", "9,123,456"),
            ("8\u{2009}023\u{2009}544", "912345", "B", "", "912\u{2009}345"),
            ("1\u{202f}023", "8023544", "B", "", "8\u{202f}023\u{202f}544"),
            ("10000", "123456", "B", "", "123456"),
            ("999", "1000", "B", "", "1,000"),
            // Signs.
            ("−5%", "-0.07", "", "", "−7%"),
            ("by −5%", "0.07", "", "", "by 7%"),
            ("+11%", "0.124", "", "", "+12%"),
            ("5", "-7", "", "", "-7"),
            // Multipliers and units stay as written.
            ("754k rows/s", "436312", "rows/s", "", "436k rows/s"),
            ("1.2M", "2345678", "rows", "", "2.3M"),
            ("2 million", "3600000", "rows", "", "4 million"),
            ("1.5bn", "2490000000", "", "", "2.5bn"),
            ("24 kB", "25600", "B", "", "25 kB"),
            ("13.1 MB", "20971520", "B/index", "", "20.0 MB"),
            ("1.5 µs", "0.0023", "ms", "", "2.3 µs"),
            ("2 min", "200", "s", "", "3 min"),
            ("20 s", "0.01", "h", "", "36 s"),
            ("65%", "0.712", "", "", "71%"),
            ("3x", "4.4", "x", "", "4x"),
            ("×3", "4.4", "x", "", "×4"),
            ("1.5e-3 s", "0.0027", "s", "", "2.7e-3 s"),
            ("1 min 23 s", "95.4", "s", "", "1 min 35 s"),
            ("1 min 23 s", "59.7", "s", "", "1 min 0 s"),
            // Masks and ranges.
            ("8,023,5xx bytes", "8123612", "B", "", "8,123,6xx bytes"),
            ("5xx", "1234", "B", "", "1,2xx"),
            ("5xx", "12", "B", "", "no number in this form holds: 12 does not show the digits of 5xx"),
            ("1.3 to 1.8 µs", "1.93", "µs", "", "1.3 to 2.0 µs"),
            ("1.3–1.8 µs", "1.17", "µs", "", "1.1–1.8 µs"),
            ("1 to 2 million", "2600000", "rows", "", "1 to 3 million"),
            ("1.3 to 1.8 µs", "7.2", "µs", "", "it is further away than the range is wide; write a new one"),
            // Limits: what is quoted has to keep to them.
            ("2x", "3.4", "x", ">= 3", "3x"),
            ("69", "75", "B", "[70, 80]", "75"),
            ("76", "81", "B", "[70, 80]", "no quote of this claim holds: 81 is 1 above 70 to 80"),
            // What only the author can say.
            ("byte for byte", "false", "", "", "the claim is false; write the sentence anew"),
            ("half", "0.4", "", "", "no numeral in the quote of a number"),
            ("76 rows", "77", "B", "", "quoted in rows, the claim is in B"),
            ("1/8", "0.2", "", "", "`1/8` is no numeral: write a fraction as a decimal or a percentage"),
            ("76", "NULL", "B", "", "there is no value"),
            ("76", "NaN", "B", "", "the value is NaN"),
        ];
        let mut wrong = Vec::new();
        for (text, measured, unit, tolerance, expected) in table {
            let found = rewritten(text, measured, unit, tolerance);
            if found != expected {
                wrong.push(format!(
                    "[{text}] of {measured}: {found:?}, not {expected:?}"
                ));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn the_habits_of_other_quotes_decide_what_one_does_not_show() {
        let markdown = "[999](claim:x) and [1\u{2009}000](claim:y) and [−1](claim:y)";
        let article = article(markdown, vec![claim("x", "", ""), claim("y", "", "")]);
        let context = Context {
            profile: "full",
            accepted: None,
            measured_here: false,
        };
        let record = record("a", &[("x", "-1234567"), ("y", "1000")]);
        let found = rewrite(&article, &record, &context);
        assert_eq!(found.changes[0].after, "−1\u{2009}234\u{2009}567");
    }

    #[test]
    fn whatever_is_rewritten_holds() {
        let texts = [
            "76",
            "0.5",
            "754,000",
            "8k",
            "12%",
            "3x",
            "1.5e3",
            "1 min 23 s",
            "24 kB",
            "5xx",
            "1,0xx",
            "10 to 20",
            "−4.0",
            "+4",
            ".25",
            "1\u{202f}000.0",
        ];
        let values = [
            "0",
            "0.0004",
            "0.5",
            "-0.5",
            "1",
            "9.95",
            "9.995",
            "99.5",
            "-99.95",
            "123.456",
            "1023.5",
            "99999.5",
            "0.33333333333333333333333333333333",
            "-7654321.1",
            "1e15",
        ];
        let context = Context {
            profile: "full",
            accepted: None,
            measured_here: false,
        };
        let mut held = 0;
        for (text, unit) in texts.iter().zip([
            "B", "", "rows/s", "rows", "%", "x", "", "s", "B", "", "", "ms", "", "", "", "",
        ]) {
            for value in values {
                for tolerance in ["", "1%", "0.01", "0%"] {
                    let claims = || vec![claim("x", unit, tolerance)];
                    let markdown = format!("[{text}](claim:x)");
                    let before = article(&markdown, claims());
                    let record = record("a", &[("x", value)]);
                    let found = rewrite(&before, &record, &context);
                    let after = article(&apply(&markdown, &found.changes), claims());
                    let again = rewrite(&after, &record, &context);
                    assert!(again.changes.is_empty(), "[{text}] of {value} {tolerance}");
                    assert_eq!(again.left, found.left);
                    held += usize::from(again.left.is_empty());
                }
            }
        }
        assert!(held > 500, "{held}");
    }
}
