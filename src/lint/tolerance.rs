//! Rule `tolerance_wide`: quotes with digits that their claim's tolerance does not vouch for.

use super::claims_by_name;
use crate::article::{Article, Claim, ClaimKind, Tolerance};
use crate::diagnostic::Diagnostic;
use crate::quantity::{Shape, Unit, numeral};
use bigdecimal::{BigDecimal, Zero};

/// Ten times is where a digit of the quote says nothing at all. Noisy claims are left out: their
/// authors give what one run showed, and the tolerance is about other runs.
pub(super) fn check(article: &Article) -> Vec<Diagnostic> {
    let claims = claims_by_name(article);
    let mut found = Vec::new();
    for quote in &article.prose.quotes {
        let name = &quote.claim.value;
        let Some(claim) = claims.get(name.as_str()) else {
            continue;
        };
        if claim.kind == ClaimKind::Noisy {
            continue;
        }
        if let Some((slack, half_step)) = slack_and_precision(article, claim, &quote.text)
            && slack > &half_step * BigDecimal::from(10)
        {
            let diagnostic = Diagnostic::warning(format!(
                "the tolerance of `{name}` is wider than the digits of its quote say"
            ))
            .at(&article.source, quote.text_span)
            .label(format!(
                "reads as ±{}, is held to ±{}",
                crate::quantity::format::significant(&half_step, 2),
                crate::quantity::format::significant(&slack, 2)
            ))
            .related(&article.source, claim.name.span, "claimed here")
            .hint("quote fewer digits, or narrow the tolerance");
            found.push(diagnostic);
        }
    }
    found
}

/// How far a tolerance lets the value stray, and half of what the last digit of the quote that is
/// no trailing zero is worth; both in the quote's unit.
fn slack_and_precision(
    article: &Article,
    claim: &Claim,
    text: &str,
) -> Option<(BigDecimal, BigDecimal)> {
    let bytes = claim.bytes.unwrap_or(article.front_matter.bytes);
    let unit = claim.unit.as_deref().map(|unit| Unit::new(unit, bytes));
    let read = numeral(text, unit.as_ref(), bytes).ok()?;
    let Shape::Point { value, step } = &read.shape else {
        return None;
    };
    let slack = match &claim.tolerance.as_ref()?.value {
        Tolerance::Relative(share) => value.abs() * share,
        Tolerance::Absolute(amount) => match (&read.unit, &unit) {
            (Some(quoted), Some(unit)) => {
                let conversion = quoted.leading_conversion(unit)?;
                amount * conversion.denominator / conversion.numerator
            }
            _ => amount.clone(),
        },
        _ => return None,
    };
    if value.is_zero() {
        return None;
    }
    // 754,000 claims no more than its three digits, 1.50 does claim its last.
    let shown = if step.normalized().fractional_digit_count() > 0 {
        step.clone()
    } else {
        BigDecimal::new(1.into(), value.normalized().fractional_digit_count())
    };
    Some((slack, shown.half()))
}
