//! Records of further machines, beside the author's. Entry: [`judge_machine`].

use super::{Context, Verdict, judge};
use crate::article::{Article, ClaimKind};
use crate::diagnostic::Diagnostic;
use crate::record::Record;

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
    if accepted.is_none() {
        // Whose machine the prose speaks of nobody knows.
        verdicts.retain(|verdict| verdict.kind != ClaimKind::Noisy);
    }
    verdicts
}
