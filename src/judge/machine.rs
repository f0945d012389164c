//! Records of further machines, beside the author's. Entry: [`judge_machine`];
//! [`with_their_claims`] for what is claimed of one of them.

use super::{Context, Verdict, judge};
use crate::article::{Article, ClaimKind};
use crate::diagnostic::Diagnostic;
use crate::quantity::Value;
use crate::record::{ClaimRecord, Record};

/// One machine's record, and what came of judging it.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The author's name for it.
    pub name: String,
    pub record: Record,
    /// Why it is not of the article as it is now; it is not judged then.
    pub stale: Vec<Diagnostic>,
    pub verdicts: Vec<Verdict>,
}

impl Machine {
    pub fn is_stale(&self) -> bool {
        !self.stale.is_empty()
    }
}

/// Its quotes and claims beside the accepted record: what is exact or bounded holds on every
/// machine, what is noisy is skipped unless it is the author's.
pub fn judge_machine(
    article: &Article,
    machine: &Machine,
    accepted: Option<&Record>,
) -> Vec<Verdict> {
    if machine.is_stale() {
        return Vec::new();
    }
    let record = &machine.record;
    let mut verdicts = judge(
        article,
        record,
        &Context {
            profile: &record.profile,
            accepted,
            measured_here: true,
        },
    );
    // What is of one machine is judged with the article. Without an author's record nobody knows
    // whose machine the prose speaks of.
    let of_one: Vec<&str> = (article.claims())
        .filter(|claim| {
            claim.machine.is_some() || (accepted.is_none() && claim.kind == ClaimKind::Noisy)
        })
        .map(|claim| claim.name.value.as_str())
        .collect();
    verdicts.retain(|verdict| !of_one.contains(&verdict.claim.as_str()));
    verdicts
}

/// The record with the values of claims that are of one machine out of that machine's record: without
/// one, or with a stale one, they have no value. None where there are no such claims.
pub fn with_their_claims(
    article: &Article,
    record: &Record,
    machines: &[Machine],
) -> Option<Record> {
    let mut changed: Option<Record> = None;
    for claim in article.claims() {
        let Some(machine) = &claim.machine else {
            continue;
        };
        let name = &claim.name.value;
        let there = (machines.iter())
            .find(|one| one.name == machine.value && !one.is_stale())
            .and_then(|one| one.record.claims.get(name));
        let value = there.cloned().unwrap_or_else(|| ClaimRecord {
            type_name: "numeric".to_owned(),
            value: Value::Null,
            comparison: None,
            unit: claim.unit.clone(),
            reads: Vec::new(),
        });
        let changed = changed.get_or_insert_with(|| record.clone());
        changed.claims.insert(name.clone(), value);
    }
    changed
}

/// Why a claim of one machine is not judged.
pub(super) fn is_missing(machine: &str) -> String {
    format!("of machine `{machine}`: there is no record of it, or a stale one")
}
