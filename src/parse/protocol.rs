//! How an experiment is measured: runs, instruments, timeout, the error that is expected.

use super::problems::Problems;
use super::read::{Fields, decimal, percent};
use super::yaml::{Node, Value};
use crate::article::Runs;
use crate::source::Spanned;
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
