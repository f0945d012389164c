//! Decides for each quote and each claim whether it holds, from the article and records alone.
//! Entry: [`judge`]; [`explain()`] makes a diagnostic of a verdict that does not hold.
//!
//! 1. [`quote`]: what each quote in the prose says against what was measured
//! 2. [`claim`]: what claims ask by themselves: truth, limits, the same as the accepted record
//! 3. [`comparison`]: what a ratio with an interval asks of both
//! 4. [`bounds`]: the arithmetic of both
//!
//! [`rewrite`] then writes what was measured into the quotes that do not hold, where that is asked.

mod bounds;
mod claim;
pub mod compare;
mod comparison;
mod explain;
mod machine;
mod quote;
pub mod rewrite;

pub use explain::explain;
pub use machine::{Machine, judge_machine, with_their_claims};

use crate::article::{Article, BytesMeaning, Claim, ClaimKind, Published};
use crate::quantity::format::{significant, thousands};
use crate::quantity::{Number, Shape, Unit, Value, numeral};
use crate::record::{ClaimRecord, Comparison, Record};
use crate::source::Span;
use bigdecimal::{BigDecimal, Zero};
use bounds::Scale;
use indexmap::IndexMap;
use std::collections::BTreeSet;

/// What one figure came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub subject: Subject,
    pub claim: String,
    pub kind: ClaimKind,
    /// Where the quote (or the claim's name) stands in the article.
    pub span: Span,
    /// As the prose has it; None for a claim judged by itself.
    pub quoted: Option<String>,
    pub measured: Value,
    /// `measured` for people, in the claim's unit or, for a quote, in the quote's.
    pub measured_text: String,
    /// The interval of `measured`, where it is a ratio that was measured with one.
    pub comparison: Option<Comparison>,
    /// For people: `±1%`, `75.5 to 76.5 (to the precision quoted)`, `≥ 3`, `true`.
    pub tolerance: String,
    /// What the source post says, for people, with its unit.
    pub published: Option<String>,
    /// measured / published, 3 significant digits.
    pub published_ratio: Option<String>,
    /// The accepted record's value where it is another machine's, and measured / recorded.
    pub recorded: Option<(String, String)>,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Index into `article.prose.quotes`.
    Quote(usize),
    /// The claim's own tolerance, truth or record, without a quote.
    Claim,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Holds,
    /// How far off, for people: `77.04 is 0.54 above 75.5 to 76.5`.
    DoesNotHold {
        difference: String,
    },
    /// Not judged, and why: another profile, or a noisy claim on another machine.
    Skipped {
        reason: String,
    },
}

/// What else a verdict depends on.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The profile that was measured; `full` where none was asked for.
    pub profile: &'a str,
    pub accepted: Option<&'a Record>,
    /// The record was measured on this machine now; it is not the accepted one read again.
    pub measured_here: bool,
}

/// One verdict for each quote, in the order of the prose; then one for each claim that can be
/// judged by itself, in the order of the document.
pub fn judge(article: &Article, record: &Record, context: &Context) -> Vec<Verdict> {
    let claims: IndexMap<&str, &Claim> = article
        .claims()
        .map(|claim| (claim.name.value.as_str(), claim))
        .collect();
    let bench = |claim| Bench::new(article, claim, record, context);
    let quotes = article
        .prose
        .quotes
        .iter()
        .enumerate()
        // Parsing has seen to it that there is a claim of each quoted name.
        .filter_map(|(index, quote)| {
            let claim = claims.get(quote.claim.value.as_str())?;
            Some(quote::judge(&bench(claim), index, quote))
        });
    let quoted: BTreeSet<&str> = (article.prose.quotes.iter())
        .map(|quote| quote.claim.value.as_str())
        .collect();
    let by_themselves = claims.iter().filter_map(|(name, claim)| {
        let bench = bench(claim);
        claim::judge(&bench).or_else(|| {
            // Shown beside the author's all the same.
            let beside = claim.kind == ClaimKind::Noisy && !quoted.contains(name);
            beside.then(|| claim::beside(&bench))?
        })
    });
    quotes.chain(by_themselves).collect()
}

/// The unit of a comparison that names none.
const RATIO: &str = "×";
const NOT_A_RATIO: &str = "a comparison is a ratio: its unit is ×";

/// Why a noisy claim is not judged against another machine's record.
pub const OF_THIS_MACHINE: &str = "noisy: of this machine, not judged here";

/// Why a claim is not judged that the record, read again, says nothing of.
const NOT_RECORDED: &str = "the record has no value of it";

/// One claim with everything it is judged by.
struct Bench<'a> {
    claim: &'a Claim,
    unit: Option<Unit>,
    bytes: BytesMeaning,
    record: &'a Record,
    context: &'a Context<'a>,
}

impl<'a> Bench<'a> {
    fn new(
        article: &Article,
        claim: &'a Claim,
        record: &'a Record,
        context: &'a Context<'a>,
    ) -> Self {
        let bytes = claim.bytes.unwrap_or(article.front_matter.bytes);
        let measured = record.claims.get(&claim.name.value);
        let is_ratio = measured.is_some_and(|measured| measured.comparison.is_some());
        let unit = claim.unit.as_deref().or(is_ratio.then_some(RATIO));
        Self {
            claim,
            unit: unit.map(|unit| Unit::new(unit, bytes)),
            bytes,
            record,
            context,
        }
    }

    fn measured(&self) -> Option<&'a ClaimRecord> {
        self.record.claims.get(&self.claim.name.value)
    }

    fn value(&self) -> Value {
        self.measured()
            .map_or(Value::Null, |measured| measured.value.clone())
    }

    fn comparison(&self) -> Option<&'a Comparison> {
        self.measured()?.comparison.as_ref()
    }

    /// Why a comparison says nothing, where it does: no difference, or a unit that no ratio has.
    fn refused(&self) -> Option<String> {
        let comparison = self.comparison()?;
        let ratio = Unit::new(RATIO, self.bytes);
        let conversion = self.unit.as_ref()?.conversion(&ratio);
        match conversion {
            Some(factor) if factor.numerator == factor.denominator => comparison.no_difference(),
            _ => Some(format!(
                "{NOT_A_RATIO}, not {}",
                self.claim.unit.as_deref().unwrap_or_default()
            )),
        }
    }

    fn accepted(&self) -> Option<&'a ClaimRecord> {
        self.context.accepted?.claims.get(&self.claim.name.value)
    }

    /// Why this claim is not judged here, where it is not.
    fn skipped(&self) -> Option<String> {
        let name = &self.claim.name.value;
        if let Some(reason) = self.record.skipped_because("claim", name) {
            return Some(reason.to_owned());
        }
        if let Some(machine) = &self.claim.machine {
            let is_missing = (self.measured()).is_none_or(|one| one.value == Value::Null);
            return is_missing.then(|| machine::is_missing(&machine.value));
        }
        if let Some(only) = &self.claim.profile
            && only.value != self.context.profile
        {
            let (only, here) = (&only.value, self.context.profile);
            return Some(format!("holds in profile `{only}` only, this is `{here}`"));
        }
        // A claim that was written after the record; what was measured now has a value of each.
        if !self.context.measured_here && self.measured().is_none() {
            return Some(NOT_RECORDED.to_owned());
        }
        (self.claim.kind == ClaimKind::Noisy && self.is_elsewhere())
            .then(|| OF_THIS_MACHINE.to_owned())
    }

    /// Whether the accepted record's value is another machine's than the one measured now.
    fn is_elsewhere(&self) -> bool {
        let Some(accepted) = self.context.accepted.filter(|_| self.context.measured_here) else {
            return false;
        };
        if self.claim.machine.is_some() {
            return false;
        }
        let reads = self.measured().map_or(&[][..], |measured| &measured.reads);
        self.record.is_of_another_machine(accepted, reads)
    }

    /// A verdict with everything in it that does not depend on the outcome.
    fn verdict(&self, subject: Subject, span: Span, scale: &Scale, outcome: Outcome) -> Verdict {
        let measured = self.value();
        let (published, published_ratio) = self.published(&measured, scale);
        Verdict {
            subject,
            claim: self.claim.name.value.clone(),
            kind: self.claim.kind,
            span,
            quoted: None,
            measured_text: self.measured_text(&measured, scale, None),
            recorded: self.recorded(&measured, scale),
            measured,
            comparison: self.comparison().cloned(),
            tolerance: String::new(),
            published,
            published_ratio,
            outcome,
        }
    }

    /// A value for people. `decimals` are those that the quote's own digits ask for.
    fn measured_text(&self, value: &Value, scale: &Scale, decimals: Option<i64>) -> String {
        let Some(number) = finite(value) else {
            let name = &self.claim.name.value;
            return match self.record.skipped_because("claim", name) {
                Some(_) => "not measured".to_owned(),
                None => value.to_string(),
            };
        };
        let shown = scale.claim_to_quote(number);
        let text = match decimals {
            Some(decimals) => {
                let enough = 3 - crate::quantity::format::integer_digits(&shown);
                thousands(&crate::quantity::format::round(
                    &shown,
                    decimals.max(enough),
                ))
            }
            None if self.claim.kind == ClaimKind::Exact && self.is_exact() => bounds::exact(&shown),
            None => significant(&shown, 6),
        };
        scale.attach(&text)
    }

    fn published(&self, measured: &Value, scale: &Scale) -> (Option<String>, Option<String>) {
        let measured = finite(measured);
        match &self.claim.published {
            None => (None, None),
            Some(Published::Boolean(value)) => (Some(value.to_string()), None),
            Some(Published::Number(value)) => (
                Some(self.short(value, scale)),
                measured.and_then(|measured| ratio(measured, value)),
            ),
            Some(Published::Text(text)) => {
                let number = self.published_number(text);
                let both = measured.zip(number.as_ref());
                (Some(text.clone()), both.and_then(|(m, p)| ratio(m, p)))
            }
        }
    }

    /// `754,000` and `13.1 MB` are numbers even where YAML has to take them for text.
    fn published_number(&self, text: &str) -> Option<BigDecimal> {
        let unit = self.unit.as_ref();
        let found = numeral(text, unit, self.bytes).ok()?;
        let Shape::Point { value, .. } = &found.shape else {
            return None;
        };
        let scale = quote::scale(&found, unit).ok()?;
        Some(scale.quote_to_common(value) / &scale.conversion.denominator)
    }

    /// A number of the claim's unit in the quote's, where it is short there.
    fn short(&self, value: &BigDecimal, scale: &Scale) -> String {
        let converted = scale.claim_to_quote(value);
        if converted.normalized().digits() <= 6 {
            return scale.attach(&thousands(&converted));
        }
        Scale::of_claim(self.unit.clone()).attach(&bounds::exact(value))
    }

    /// Whether the value can be the same on every machine and run.
    fn is_exact(&self) -> bool {
        self.comparison().is_none_or(Comparison::is_exact)
    }

    fn recorded(&self, measured: &Value, scale: &Scale) -> Option<(String, String)> {
        const NO_RATIO: &str = "–";
        let comparable = |_: &&ClaimRecord| {
            let accepted = self.context.accepted;
            accepted.is_some_and(|accepted| accepted.is_of_the_same_profile(self.record))
                && self.is_elsewhere()
        };
        let accepted = self.accepted().filter(comparable)?;
        let Some(number) = finite(&accepted.value) else {
            return Some((accepted.value.to_string(), NO_RATIO.to_owned()));
        };
        if self
            .measured()
            .is_some_and(|measured| measured.unit != accepted.unit)
        {
            // Its unit was changed since: the two numbers are no longer of the same thing.
            let unit = Unit::new(accepted.unit.as_deref().unwrap_or_default(), self.bytes);
            return Some((unit.attach(&significant(number, 6)), NO_RATIO.to_owned()));
        }
        let text = scale.attach(&significant(&scale.claim_to_quote(number), 6));
        let ratio = match finite(measured) {
            // Two zeros too.
            Some(measured) if measured == number => Some("1".to_owned()),
            measured => measured.and_then(|measured| ratio(measured, number)),
        };
        Some((text, ratio.unwrap_or_else(|| NO_RATIO.to_owned())))
    }
}

/// The number of a value that is one.
fn finite(value: &Value) -> Option<&BigDecimal> {
    value.number().and_then(Number::finite)
}

/// `measured / reference` to 3 significant digits; none of zero.
fn ratio(measured: &BigDecimal, reference: &BigDecimal) -> Option<String> {
    (!reference.is_zero()).then(|| significant(&(measured / reference), 3))
}

/// Why a value can be compared with no number, where it is none.
fn no_number(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("there is no value".to_owned()),
        Value::Boolean(_) => Some("the value is true or false, no number".to_owned()),
        Value::Text(_) => Some("the value is text, no number".to_owned()),
        Value::Number(Number::Finite(_)) => None,
        Value::Number(other) => Some(format!("the value is {other}")),
    }
}

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
