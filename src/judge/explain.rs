//! A diagnostic of a verdict that does not hold.

use super::comparison::ASKED_OF_WORDS;
use super::{NOT_A_RATIO, Outcome, Subject, Verdict};
use crate::article::{Article, Claim};
use crate::diagnostic::Diagnostic;
use crate::quantity::{NumeralError, Unit, Value, numeral};
use crate::source::Span;

/// Quoted, measured, tolerance and difference at the place of the quote (or of the claim's
/// name); None for a verdict that holds or was skipped.
pub fn explain(article: &Article, verdict: &Verdict) -> Option<Diagnostic> {
    let Outcome::DoesNotHold { difference } = &verdict.outcome else {
        return None;
    };
    let name = &verdict.claim;
    let claim = article.claims().find(|claim| claim.name.value == *name);
    let (message, span) = match verdict.subject {
        Subject::Quote(index) => (
            format!("the quote of `{name}` does not hold"),
            article.prose.quotes.get(index).map(|quote| quote.text_span),
        ),
        Subject::Claim => (format!("claim `{name}` does not hold"), None),
    };
    let mut diagnostic = Diagnostic::error(message)
        .at(&article.source, span.unwrap_or(verdict.span))
        .label(label(verdict, difference));
    if let Some(claim) = claim {
        diagnostic = match (&verdict.measured, verdict.subject) {
            (Value::Boolean(value), _) => {
                let gives = format!("this gives {value}");
                diagnostic.related(&article.source, first_line(claim), gives)
            }
            (_, Subject::Quote(_)) => {
                diagnostic.related(&article.source, claim.name.span, "claimed here")
            }
            (_, Subject::Claim) => diagnostic,
        };
    }
    for (what, text) in [
        ("quoted", verdict.quoted.as_deref()),
        ("measured", Some(measured_text(verdict).as_str())),
        ("tolerance", Some(verdict.tolerance.as_str())),
        ("difference", Some(difference.as_str())),
        ("published", verdict.published.as_deref()),
    ] {
        if let Some(text) = text {
            diagnostic = diagnostic.note(format!("{what}: {text}"));
        }
    }
    Some(diagnostic.hint(hint(article, verdict, claim)))
}

/// Of the claim's query: enough to find it.
fn first_line(claim: &Claim) -> Span {
    let query = &claim.query.text;
    let start = query.text.len() - query.text.trim_start().len();
    let line = query.text[start..].lines().next().unwrap_or_default();
    query.span(start..start + line.trim_end().len())
}

/// `1.93× (95 % interval 1.8 to 2.06, 8 runs each)`
fn measured_text(verdict: &Verdict) -> String {
    let value = &verdict.measured_text;
    match &verdict.comparison {
        Some(comparison) => format!("{value} ({})", comparison.text()),
        None => value.clone(),
    }
}

fn label(verdict: &Verdict, difference: &str) -> String {
    match &verdict.measured {
        Value::Number(_) => format!("measured {}", verdict.measured_text),
        _ => difference.to_owned(),
    }
}

fn hint(article: &Article, verdict: &Verdict, claim: Option<&Claim>) -> String {
    let by_itself = verdict.subject == Subject::Claim;
    if let Outcome::DoesNotHold { difference } = &verdict.outcome
        && difference.starts_with(NOT_A_RATIO)
    {
        return "leave the claim's `unit` out: a comparison has one".to_owned();
    }
    if let Some(comparison) = &verdict.comparison
        && comparison.no_difference().is_some()
    {
        return if comparison.is_unbounded() {
            "raise `runs` of what it compares to 4 or more; from 8 on the interval is narrower"
                .to_owned()
        } else {
            "raise `runs` of what it compares, or say that there is no difference".to_owned()
        };
    }
    match &verdict.measured {
        Value::Null => "the query of the claim has to give one value".to_owned(),
        Value::Number(_) if verdict.comparison.is_some() && verdict.tolerance == ASKED_OF_WORDS => {
            "compare the two the other way round, or change what the text says".to_owned()
        }
        Value::Boolean(_) if by_itself => "change the claim's query, or drop the claim".to_owned(),
        Value::Boolean(true) => "quote a claim that is true or false in words".to_owned(),
        Value::Boolean(false) => "change what the text says, or the claim's query".to_owned(),
        Value::Number(_) if by_itself && verdict.tolerance.ends_with("(recorded)") => {
            "accept the new measurement with `remeasure accept`, or change the claim's kind or \
             tolerance"
                .to_owned()
        }
        _ if by_itself => "change the claim's tolerance".to_owned(),
        _ => quote_hint(article, verdict, claim),
    }
}

fn quote_hint(article: &Article, verdict: &Verdict, claim: Option<&Claim>) -> String {
    let text = verdict.quoted.as_deref().unwrap_or_default();
    let bytes = article.front_matter.bytes;
    let unit = claim.and_then(|claim| claim.unit.as_deref());
    let read = numeral(
        text,
        unit.map(|unit| Unit::new(unit, bytes)).as_ref(),
        bytes,
    );
    match (read, unit) {
        (Err(NumeralError::Missing), _) => {
            "write the number into the link's text, or make the claim a comparison".to_owned()
        }
        (Err(NumeralError::Malformed { .. }), _) => {
            "write one numeral such as `1,234.5`, or two with `to` between them".to_owned()
        }
        (Ok(numeral), None) if numeral.unit.as_ref().is_some_and(|unit| unit.text() == "%") => {
            "the claim has no unit, so 1 is 100%; give it `unit: \"%\"` where its query gives percent"
                .to_owned()
        }
        (Ok(numeral), None) if numeral.unit.as_ref().is_some_and(|unit| !unit.is_ratio()) => {
            "the claim has no unit, so the quote's is not converted; give it a `unit:`".to_owned()
        }
        (Ok(_), Some(unit)) if is_of_another_unit(verdict) => {
            format!("quote it in {unit}, or in a unit that converts into it")
        }
        _ => "change the quote or the claim's tolerance".to_owned(),
    }
}

/// Whether the quote could not be compared at all.
fn is_of_another_unit(verdict: &Verdict) -> bool {
    matches!(&verdict.outcome, Outcome::DoesNotHold { difference }
        if difference.starts_with(super::quote::ANOTHER_UNIT))
}
