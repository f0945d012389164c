//! One quote of the prose against what was measured.

use super::bounds::{Bounds, Scale, ends, tolerance_text};
use super::{Bench, Outcome, Subject, Verdict, finite, no_number};
use crate::article::{Quote, Tolerance};
use crate::quantity::{NumeralError, QuotedNumeral, Shape, Unit, Value, numeral};
use crate::record::Comparison;
use bigdecimal::BigDecimal;

/// Begins what is told of a quote whose unit does not convert into the claim's.
pub(super) const ANOTHER_UNIT: &str = "quoted in ";

pub(super) fn judge(bench: &Bench, index: usize, quote: &Quote) -> Verdict {
    let value = bench.value();
    let read = numeral(&quote.text, bench.unit.as_ref(), bench.bytes);
    let scale = match &read {
        Ok(numeral) => scale(numeral, bench.unit.as_ref()),
        Err(_) => Ok(Scale::of_claim(bench.unit.clone())),
    };
    let (outcome, tolerance) = match (&value, &read) {
        (Value::Boolean(value), read) => (boolean(*value, read), "true".to_owned()),
        (_, Ok(numeral)) => match &scale {
            Ok(scale) => refused_without_difference(
                bench,
                number(bench, &value, numeral, scale, &quote.text),
            ),
            Err(difference) => (does_not_hold(difference), allowed(bench)),
        },
        (_, Err(NumeralError::Missing)) if bench.comparison().is_some() => {
            let words = bench.comparison().map_or(Outcome::Holds, Comparison::words);
            let asked = super::comparison::ASKED_OF_WORDS.to_owned();
            refused_without_difference(bench, (words, asked))
        }
        (value, Err(error)) => (does_not_hold(&unread(value, error)), allowed(bench)),
    };
    let shown = scale.unwrap_or_else(|_| Scale::of_claim(bench.unit.clone()));
    let outcome = match bench.skipped() {
        Some(reason) => Outcome::Skipped { reason },
        None => outcome,
    };
    let mut verdict = bench.verdict(Subject::Quote(index), quote.span, &shown, outcome);
    if let Ok(numeral) = &read {
        let decimals = decimals(&numeral.shape) + 2;
        verdict.measured_text = bench.measured_text(&value, &shown, Some(decimals));
    }
    verdict.quoted = Some(quote.text.clone());
    verdict.tolerance = tolerance;
    verdict
}

/// How the quote's unit stands to the claim's, or why it does not.
pub(super) fn scale(numeral: &QuotedNumeral, unit: Option<&Unit>) -> Result<Scale, String> {
    let Some(quoted) = &numeral.unit else {
        return Ok(Scale::of_claim(unit.cloned()));
    };
    let Some(unit) = unit else {
        // A claim without a unit is a plain number: `8%` of it is 0.08, and `76 bytes` is 76 of
        // whatever its author knows them to be.
        let plain = Unit::new("", Default::default());
        return Ok(match quoted.conversion(&plain) {
            Some(conversion) => Scale {
                conversion,
                unit: Some(quoted.clone()),
            },
            None => Scale::of_claim(None),
        });
    };
    let conversion = quoted
        .leading_conversion(unit)
        .ok_or_else(|| format!("{ANOTHER_UNIT}{quoted}, the claim is in {unit}"))?;
    let unit = if conversion.numerator == conversion.denominator {
        unit.clone()
    } else {
        quoted.completed_from(unit)
    };
    Ok(Scale {
        conversion,
        unit: Some(unit),
    })
}

fn boolean(value: bool, read: &Result<QuotedNumeral, NumeralError>) -> Outcome {
    match read {
        Err(NumeralError::Missing) if value => Outcome::Holds,
        Err(NumeralError::Missing) => does_not_hold("the claim is false"),
        Ok(_) | Err(NumeralError::Malformed { .. }) => {
            does_not_hold("a number is quoted of a claim that is true or false")
        }
    }
}

/// However well the number is quoted: a ratio that may as well be 1 says nothing.
fn refused_without_difference(
    bench: &Bench,
    (outcome, allowed): (Outcome, String),
) -> (Outcome, String) {
    match bench.refused() {
        Some(reason) => (does_not_hold(&reason), allowed),
        None => (outcome, allowed),
    }
}

fn unread(value: &Value, error: &NumeralError) -> String {
    match (no_number(value), error) {
        (Some(reason), _) => reason,
        (None, NumeralError::Missing) => "no numeral in the quote of a number".to_owned(),
        (None, malformed) => malformed.to_string(),
    }
}

/// Whether a number lies where the quote and the claim's tolerance have it, and where that is.
fn number(
    bench: &Bench,
    value: &Value,
    numeral: &QuotedNumeral,
    scale: &Scale,
    text: &str,
) -> (Outcome, String) {
    let tolerance = bench.claim.tolerance.as_ref().map(|spanned| &spanned.value);
    let shape = &numeral.shape;
    let allowed = match (tolerance, shape) {
        (Some(tolerance), _) => tolerance_text(tolerance, bench.unit.as_ref()),
        (None, Shape::Point { .. }) => format!(
            "{} (to the precision quoted)",
            scale.attach(&Bounds::of_quote(shape, scale).text(scale))
        ),
        (None, Shape::Range { .. }) => scale.attach(&Bounds::of_quote(shape, scale).text(scale)),
        (None, Shape::Mask { .. }) => {
            format!("{} (the digits shown)", &text[numeral.digits.clone()])
        }
    };
    let outcome = match finite(value) {
        None => no_number(value),
        Some(value) => {
            let value = scale.claim_to_common(value);
            difference(
                tolerance,
                shape,
                scale,
                &value,
                &text[numeral.digits.clone()],
            )
        }
    };
    (
        outcome.map_or(Outcome::Holds, |text| does_not_hold(&text)),
        allowed,
    )
}

fn difference(
    tolerance: Option<&Tolerance>,
    shape: &Shape,
    scale: &Scale,
    value: &BigDecimal,
    quoted: &str,
) -> Option<String> {
    match tolerance {
        None => match shape {
            Shape::Mask { low, high } => masked(low, high, scale, value, quoted),
            _ => Bounds::of_quote(shape, scale).difference(value, scale),
        },
        Some(tolerance @ (Tolerance::Relative(_) | Tolerance::Absolute(_))) => {
            Bounds::of_tolerance(tolerance, shape, scale).difference(value, scale)
        }
        Some(limits) => {
            let bounds = Bounds::of_tolerance(limits, shape, scale);
            let (low, high) = ends(shape);
            // What is quoted has to keep to the limits too, or the prose says something else
            // than the claim; and a quoted range is one of the value, whatever the limits.
            bounds
                .difference(value, scale)
                .or_else(|| {
                    [low, high].iter().find_map(|end| {
                        let off = bounds.difference(&scale.quote_to_common(end), scale)?;
                        Some(format!("the quoted {off}"))
                    })
                })
                .or_else(|| match shape {
                    Shape::Range { .. } => Bounds::of_quote(shape, scale).difference(value, scale),
                    Shape::Point { .. } | Shape::Mask { .. } => None,
                })
        }
    }
}

/// The end of a mask is not in it: 8,023,600 does not show `8,023,5xx`.
fn masked(
    low: &BigDecimal,
    high: &BigDecimal,
    scale: &Scale,
    value: &BigDecimal,
    quoted: &str,
) -> Option<String> {
    let (from, to) = (scale.quote_to_common(low), scale.quote_to_common(high));
    let shows = if from <= to {
        *value >= from && *value < to
    } else {
        *value <= from && *value > to
    };
    (!shows).then(|| {
        let value = super::bounds::exact(&scale.common_to_quote(value));
        format!("{value} does not show the digits of {quoted}")
    })
}

/// How many decimals the quote has; negative where its last digit is worth ten or more.
fn decimals(shape: &Shape) -> i64 {
    match shape {
        Shape::Point { step, .. } => step.normalized().fractional_digit_count(),
        Shape::Range { low, high } => low
            .normalized()
            .fractional_digit_count()
            .max(high.normalized().fractional_digit_count()),
        Shape::Mask { .. } => 0,
    }
}

fn allowed(bench: &Bench) -> String {
    bench.claim.tolerance.as_ref().map_or_else(
        || "to the precision quoted".to_owned(),
        |tolerance| tolerance_text(&tolerance.value, bench.unit.as_ref()),
    )
}

fn does_not_hold(difference: &str) -> Outcome {
    Outcome::DoesNotHold {
        difference: difference.to_owned(),
    }
}
