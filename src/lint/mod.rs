//! What can be said of an article without measuring anything. Entry: [`lint`]; the rules are a
//! catalogue, [`RULES`].
//!
//! 1. [`prose`]: the article's text without code, markup and whatever is checked anyway
//! 2. [`figures`]: which numbers in a text are figures, and which are dates, versions and names
//! 3. one check a rule

mod figures;
mod prose;
mod unbound;

use crate::article::{
    Article, ChartBlock, Claim, ClaimKind, LintLevel, TextWithFillIns, Tolerance,
};
use crate::diagnostic::{Diagnostic, Severity};
use crate::quantity::{Shape, Unit, numeral};
use bigdecimal::{BigDecimal, Zero};
use std::collections::{BTreeMap, BTreeSet};

/// An entry of the catalogue.
pub struct Rule {
    /// As `lint:` in the front matter names it.
    pub name: &'static str,
    /// For `remeasure list rules`.
    pub about: &'static str,
    /// Where the front matter says nothing.
    pub level: LintLevel,
    check: fn(&Article) -> Vec<Diagnostic>,
}

/// Every rule there is; one more is a check and a line.
pub const RULES: &[Rule] = &[
    Rule {
        name: "unbound",
        about: "a number in prose that is neither quoted, filled in nor cited",
        level: LintLevel::Warn,
        check: unbound::check,
    },
    Rule {
        name: "unused_claim",
        about: "a claim that is never quoted nor filled in",
        level: LintLevel::Warn,
        check: unused_claims,
    },
    Rule {
        name: "missing_alt",
        about: "an image without a text for those who cannot see it",
        level: LintLevel::Warn,
        check: missing_alt,
    },
    Rule {
        name: "tolerance_wide",
        about: "a quote with digits that its claim's tolerance does not vouch for",
        level: LintLevel::Warn,
        check: wide_tolerances,
    },
];

/// Everything the rules find, in the order of the article, each with the severity that its front
/// matter gives the rule.
pub fn lint(article: &Article) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for rule in RULES {
        let levels = &article.front_matter.lint;
        let severity = match levels.get(rule.name).copied().unwrap_or(rule.level) {
            LintLevel::Ignore => continue,
            LintLevel::Warn => Severity::Warning,
            LintLevel::Error => Severity::Error,
        };
        found.extend((rule.check)(article).into_iter().map(|diagnostic| {
            let mut diagnostic = diagnostic.note(format!("rule: {}", rule.name));
            diagnostic.severity = severity;
            diagnostic
        }));
    }
    found.sort_by_key(|diagnostic| diagnostic.place.as_ref().map(|place| place.span));
    found
}

fn claims_by_name(article: &Article) -> BTreeMap<&str, &Claim> {
    article
        .claims()
        .map(|claim| (claim.name.value.as_str(), claim))
        .collect()
}

// ---- unused_claim -----------------------------------------------------------------------------

fn unused_claims(article: &Article) -> Vec<Diagnostic> {
    let quoted = article
        .prose
        .quotes
        .iter()
        .map(|quote| quote.claim.value.as_str());
    let mut used: BTreeSet<&str> = quoted.collect();
    let in_prose = article.prose.fill_ins.iter();
    let in_texts = yaml_texts(article)
        .into_iter()
        .flat_map(|text| &text.fill_ins);
    for fill_in in in_prose.chain(in_texts) {
        used.extend(names_in(&fill_in.expression));
    }
    article
        .claims()
        // One with limits is judged by itself, and so says something unquoted too.
        .filter(|claim| !used.contains(claim.name.value.as_str()) && !has_limits(claim))
        .map(|claim| {
            let name = &claim.name.value;
            Diagnostic::warning(format!("claim `{name}` is never quoted nor filled in"))
                .at(&article.source, claim.name.span)
                .label("unused")
                .hint(format!("quote it, `[…](claim:{name})`, or drop it"))
        })
        .collect()
}

fn has_limits(claim: &Claim) -> bool {
    claim.tolerance.as_ref().is_some_and(|tolerance| {
        matches!(
            tolerance.value,
            Tolerance::AtLeast(_) | Tolerance::AtMost(_) | Tolerance::Range(..)
        )
    })
}

/// Every text from YAML that values are filled into.
fn yaml_texts(article: &Article) -> Vec<&TextWithFillIns> {
    let mut texts = vec![&article.front_matter.title];
    texts.extend(&article.front_matter.description);
    texts.extend(article.experiments().filter_map(|one| one.caption.as_ref()));
    texts.extend(article.tables().filter_map(|table| table.caption.as_ref()));
    texts.extend(article.charts().flat_map(chart_texts));
    texts
}

fn chart_texts(chart: &ChartBlock) -> impl Iterator<Item = &TextWithFillIns> {
    [
        chart.title.as_ref(),
        Some(&chart.alt),
        chart.caption.as_ref(),
    ]
    .into_iter()
    .flatten()
}

/// The names in an expression, its strings left out.
fn names_in(expression: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = expression;
    while let Some(start) = rest.find(|c: char| c.is_alphabetic() || "_\"'`".contains(c)) {
        let quote = rest[start..].chars().next().filter(|c| "\"'`".contains(*c));
        rest = &rest[start..];
        let end = match quote {
            Some(quote) => rest[1..].find(quote).map_or(rest.len(), |end| end + 2),
            None => rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len()),
        };
        if quote.is_none() {
            names.push(&rest[..end]);
        }
        rest = &rest[end..];
    }
    names
}

// ---- missing_alt ------------------------------------------------------------------------------

fn missing_alt(article: &Article) -> Vec<Diagnostic> {
    prose::images_without_alt(article)
        .into_iter()
        .map(|span| {
            Diagnostic::warning("image without an alt text")
                .at(&article.source, span)
                .hint("say between the brackets what the picture shows")
        })
        .collect()
}

// ---- tolerance_wide ---------------------------------------------------------------------------

/// Ten times is where a digit of the quote says nothing at all. Noisy claims are left out: their
/// authors give what one run showed, and the tolerance is about other runs.
fn wide_tolerances(article: &Article) -> Vec<Diagnostic> {
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

#[cfg(test)]
mod tests;
