//! How an experiment is measured: runs, instruments, timeout, the error that is expected.

use super::Known;
use super::fences::Fence;
use super::problems::{Problems, listed};
use super::read::{Fields, decimal, not_supported_yet, percent};
use super::yaml::{Node, Value};
use crate::article::{InstrumentChoice, Runs};
use crate::diagnostic::did_you_mean;
use crate::source::{Span, Spanned};
use bigdecimal::BigDecimal;
use std::time::Duration;

/// `8`, or `{min: 3, max: 12, until: 2%}`.
pub fn runs(node: &Node, problems: &Problems) -> Option<Runs> {
    let hint = "write a number, or `{min: 3, max: 12, until: 2%}`";
    if matches!(node.value, Value::Scalar(_)) {
        return problems.count_of(node, 1).map(Runs::Fixed);
    }
    let entries = problems.entries(node, hint)?;
    let mut fields = Fields::new(problems, "`runs`", entries);
    let before = problems.count();
    let min = fields
        .take("min")
        .and_then(|node| problems.count_of(node, 2));
    let max = fields
        .take("max")
        .and_then(|node| problems.count_of(node, 2));
    let until = fields.take("until").and_then(|node| {
        let text = problems.text(node)?;
        let share =
            percent(&text).filter(|share| share.sign() == bigdecimal::num_bigint::Sign::Plus);
        if share.is_none() {
            problems.error(
                node.span,
                format!("expected a percentage, found `{text}`"),
                "write it as `2%`",
            );
        }
        share
    });
    fields.finish(&[]);
    match (min, max, until) {
        (Some(min), Some(max), Some(_)) if min > max => {
            problems.error(
                node.span,
                format!("`min` is above `max`: {min} and {max}"),
                "exchange the two",
            );
            None
        }
        (Some(min), Some(max), Some(until)) => Some(Runs::Adaptive { min, max, until }),
        _ => {
            if problems.count() == before {
                problems.error(node.span, "`runs` needs `min`, `max` and `until`", hint);
            }
            None
        }
    }
}

/// The instruments the format knows, whether or not this version has them.
const FORMAT_INSTRUMENTS: [&str; 11] = [
    "time",
    "wal",
    "explain",
    "hot",
    "tuples",
    "locks",
    "io",
    "buffers",
    "temp",
    "statements",
    "cpu",
];

pub fn instruments(
    node: Option<&Node>,
    fence: &Fence,
    known: &Known,
    problems: &Problems,
) -> Vec<Spanned<InstrumentChoice>> {
    let choice = |name: &str, span: Span| {
        let name = name.to_owned();
        Spanned::new(InstrumentChoice { name }, span)
    };
    let Some(node) = node else {
        return vec![choice("time", fence.name), choice("wal", fence.name)];
    };
    let mut chosen: Vec<Spanned<InstrumentChoice>> = Vec::new();
    let hint = "write `instruments: [time, wal]`";
    for item in problems.items(node, hint).unwrap_or_default() {
        let Some(name) = instrument_name(item, problems) else {
            continue;
        };
        let earlier = chosen.iter().find(|choice| choice.value.name == name.value);
        if let Some(earlier) = earlier {
            problems.duplicate(
                name.span,
                earlier.span,
                format!("instrument `{}` comes twice", name.value),
                "name it once",
            );
        } else if known.instruments.contains(&name.value.as_str()) {
            chosen.push(choice(&name.value, name.span));
        } else if FORMAT_INSTRUMENTS.contains(&name.value.as_str()) {
            not_supported_yet(problems, name.span, &format!("instrument `{}`", name.value));
        } else {
            let hint = did_you_mean(&name.value, known.instruments.iter().copied())
                .unwrap_or_else(|| format!("there are {}", listed(known.instruments)));
            problems.error(
                name.span,
                format!("unknown instrument `{}`", name.value),
                hint,
            );
        }
    }
    chosen
}

/// `time`, or `{time: {}}`; options are for a later version.
fn instrument_name(item: &Node, problems: &Problems) -> Option<Spanned<String>> {
    let Value::Mapping(entries) = &item.value else {
        return problems.spanned_text(item);
    };
    let [entry] = entries.as_slice() else {
        problems.error(
            item.span,
            "one instrument an item",
            "write `[time, {explain: {…}}]`",
        );
        return None;
    };
    let empty = entry.value.is_null()
        || matches!(&entry.value.value, Value::Mapping(options) if options.is_empty());
    if !empty {
        let what = format!("an option of instrument `{}`", entry.key.value);
        not_supported_yet(problems, entry.value.span, &what);
    }
    Some(entry.key.clone())
}

/// A time with its unit, as Postgres's settings take it.
pub fn timeout(node: &Node, problems: &Problems) -> Option<Duration> {
    let text = problems.text(node)?;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let milliseconds = match &text[digits.len()..] {
        "ms" => Some(1),
        "s" => Some(1_000),
        "min" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    let total = milliseconds
        .zip(decimal(digits.trim_end()))
        .and_then(|(unit, number)| {
            let total = (number * BigDecimal::from(unit)).with_scale(0).to_string();
            total.parse::<u64>().ok()
        });
    match total {
        Some(total) if total > 0 => Some(Duration::from_millis(total)),
        _ => {
            problems.error(
                node.span,
                format!("expected a time above zero with its unit, found `{text}`"),
                "write it as `500ms`, `30s`, `10min` or `1h`",
            );
            None
        }
    }
}

pub fn sqlstate(node: &Node, problems: &Problems) -> Option<Spanned<String>> {
    let state = problems.spanned_text(node)?;
    let valid = state.value.len() == 5
        && state
            .value
            .chars()
            .all(|c| c.is_ascii_digit() || c.is_ascii_uppercase());
    if valid {
        return Some(state);
    }
    problems.error(
        state.span,
        format!("`{}` is not an SQLSTATE", state.value),
        "it has five digits or capital letters, such as `23505` for a unique violation",
    );
    None
}
