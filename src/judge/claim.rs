//! What a claim asks without being quoted: that it is true, that its value keeps to the limits
//! of its tolerance, that it is what the accepted record has.

use super::bounds::{Bounds, Scale, exact, tolerance_text};
use super::{Bench, Outcome, Subject, Verdict, finite, no_number};
use crate::article::{ClaimKind, Tolerance};
use crate::quantity::format::significant;
use crate::quantity::{Shape, Value};
use crate::record::{Difference, ExperimentRecord, Record};
use bigdecimal::BigDecimal;

/// None: nothing is asked but what its quotes ask.
pub(super) fn judge(bench: &Bench) -> Option<Verdict> {
    let scale = Scale::of_claim(bench.unit.clone());
    let (tolerance, outcome) = asked(bench, &scale)?;
    let outcome = match bench.skipped() {
        Some(reason) => Outcome::Skipped { reason },
        None => outcome,
    };
    let mut verdict = bench.verdict(Subject::Claim, bench.claim.name.span, &scale, outcome);
    verdict.tolerance = tolerance;
    Some(verdict)
}

/// A claim that asks nothing, beside the accepted record of another machine.
pub(super) fn beside(bench: &Bench) -> Option<Verdict> {
    let outcome = Outcome::Skipped {
        reason: bench.skipped()?,
    };
    let scale = Scale::of_claim(bench.unit.clone());
    let verdict = bench.verdict(Subject::Claim, bench.claim.name.span, &scale, outcome);
    verdict.recorded.is_some().then_some(verdict)
}

/// What is asked, for people, and what came of it.
fn asked(bench: &Bench, scale: &Scale) -> Option<(String, Outcome)> {
    let value = bench.value();
    let number = match &value {
        Value::Boolean(value) => {
            let off = (!value).then(|| "the claim is false".to_owned());
            return Some(("true".to_owned(), outcome(off)));
        }
        value => match finite(value) {
            Some(number) => number,
            None => {
                let off = no_number(value);
                return Some(("a value".to_owned(), outcome(off)));
            }
        },
    };
    let all = [
        a_difference(bench),
        within_limits(bench, scale, number),
        as_recorded(bench, scale, number),
    ];
    all.into_iter().flatten().reduce(both)
}

/// Two things that are asked, as one: the first that does not hold, if any; what could not be
/// judged leaves the other as it is.
fn both(one: (String, Outcome), other: (String, Outcome)) -> (String, Outcome) {
    match (&one.1, &other.1) {
        (_, Outcome::Skipped { .. }) => one,
        (Outcome::Skipped { .. }, _) => other,
        (first, second) => {
            let worse = if *first == Outcome::Holds {
                second
            } else {
                first
            };
            (format!("{}; {}", one.0, other.0), worse.clone())
        }
    }
}

/// A comparison says by itself that there is a difference.
fn a_difference(bench: &Bench) -> Option<(String, Outcome)> {
    bench.comparison()?;
    let asked = super::comparison::ASKED.to_owned();
    Some((asked, outcome(bench.refused())))
}

/// `>= 3`, `<= 10` and `[70, 80]` say by themselves where the value lies.
fn within_limits(bench: &Bench, scale: &Scale, value: &BigDecimal) -> Option<(String, Outcome)> {
    let tolerance = &bench.claim.tolerance.as_ref()?.value;
    let bounds = Bounds::of_limits(tolerance, scale)?;
    let off = bounds.difference(&scale.claim_to_common(value), scale);
    Some((tolerance_text(tolerance, bench.unit.as_ref()), outcome(off)))
}

/// An exact claim has the accepted record's value, any other is within its tolerance of it. (A
/// noisy one too, where that record is this machine's; elsewhere it is skipped as a whole.)
fn as_recorded(bench: &Bench, scale: &Scale, value: &BigDecimal) -> Option<(String, Outcome)> {
    let tolerance = match (bench.claim.kind, bench.claim.tolerance.as_ref()) {
        (ClaimKind::Exact, _) if !bench.is_exact() => return None,
        (ClaimKind::Exact, _) => None,
        // Limits are the same for both records; without a tolerance only a quote says how near.
        (ClaimKind::Bounded | ClaimKind::Noisy, tolerance) => match &tolerance?.value {
            tolerance @ (Tolerance::Relative(_) | Tolerance::Absolute(_)) => Some(tolerance),
            _ => return None,
        },
    };
    let accepted = comparable(bench)?;
    let recorded = bench.accepted()?;
    if recorded.unit != bench.claim.unit {
        return None;
    }
    let recorded = finite(&recorded.value)?;
    let recorded_text = scale.attach(&exact(recorded));
    if let Some(reason) = inputs_differ(bench, accepted) {
        let text = format!("{recorded_text} (recorded)");
        return Some((text, Outcome::Skipped { reason }));
    }
    let Some(tolerance) = tolerance else {
        let off = (recorded != value)
            .then(|| format!("{} is not the {} recorded", exact(value), exact(recorded)));
        return Some((format!("exactly {recorded_text} (recorded)"), outcome(off)));
    };
    let shape = Shape::Range {
        low: recorded.clone(),
        high: recorded.clone(),
    };
    let bounds = Bounds::of_tolerance(tolerance, &shape, scale);
    let allowed = tolerance_text(tolerance, bench.unit.as_ref());
    // Within a tolerance nobody needs the last of twenty digits.
    let recorded_text = scale.attach(&significant(recorded, 6));
    Some((
        format!("{allowed} of {recorded_text} (recorded)"),
        outcome(bounds.difference(value, scale)),
    ))
}

/// The accepted record, where it was measured with the same params and is not the one judged.
fn comparable<'a>(bench: &Bench<'a>) -> Option<&'a Record> {
    bench.context.accepted.filter(|accepted| {
        bench.context.measured_here
            && bench.claim.machine.is_none()
            && accepted.is_of_the_same_profile(bench.record)
    })
}

/// An article that was edited since it was accepted measures something else; the two values
/// then say nothing about one another.
fn inputs_differ(bench: &Bench, accepted: &Record) -> Option<String> {
    let query = Record::claim_query(&bench.claim.name.value);
    let now = bench.record.queries.fields.get(&query);
    // A record of before has no queries.
    if let Some(then) = accepted.queries.fields.get(&query)
        && Some(then) != now
    {
        return Some("its query was changed since the record was accepted".to_owned());
    }
    bench.measured()?.reads.iter().find_map(|id| {
        let here = bench.record.experiments.get(id)?;
        let Some(there) = accepted.experiments.get(id) else {
            return Some(format!("experiment `{id}` is not in the accepted record"));
        };
        measured_otherwise(here, there)
            .then(|| format!("experiment `{id}` was changed since the record was accepted"))
    })
}

/// Whether two results are of other inputs. The same version from another archive or image is none:
/// what holds on every machine holds on every platform.
fn measured_otherwise(here: &ExperimentRecord, there: &ExperimentRecord) -> bool {
    let version = |server: &Option<String>| {
        let text = server.as_deref().unwrap_or_default();
        text.split(' ').next().map(str::to_owned)
    };
    let is_other =
        |one: &Difference| one.input != "server" || version(&one.before) != version(&one.now);
    let differences = there.inputs.differences(&here.inputs);
    here.fingerprint != there.fingerprint
        && (differences.is_empty() || differences.iter().any(is_other))
}

fn outcome(difference: Option<String>) -> Outcome {
    difference.map_or(Outcome::Holds, |difference| Outcome::DoesNotHold {
        difference,
    })
}
