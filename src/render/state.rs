//! What became of a figure, as pages show it: a word, a mark and a CSS class, never a colour alone.

use crate::judge::{Outcome, Verdict};
use serde::Serialize;

/// Ordered by how much a reader has to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// A claim that no quote and no tolerance judges.
    Unjudged,
    Holds,
    Skipped,
    Fails,
}

impl State {
    pub fn of(verdict: &Verdict) -> Self {
        match verdict.outcome {
            Outcome::Holds => Self::Holds,
            Outcome::DoesNotHold { .. } => Self::Fails,
            Outcome::Skipped { .. } => Self::Skipped,
        }
    }

    /// The worst of them.
    pub fn of_all<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Self {
        (verdicts.into_iter().map(Self::of))
            .max()
            .unwrap_or(Self::Unjudged)
    }

    pub fn class(self) -> &'static str {
        match self {
            Self::Unjudged => "unjudged",
            Self::Holds => "holds",
            Self::Skipped => "skipped",
            Self::Fails => "fails",
        }
    }

    pub fn mark(self) -> &'static str {
        match self {
            Self::Unjudged => "·",
            Self::Holds => "✓",
            Self::Skipped => "○",
            Self::Fails => "✗",
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            Self::Unjudged => "not judged",
            Self::Holds => "holds",
            Self::Skipped => "skipped",
            Self::Fails => "does not hold",
        }
    }
}

/// One badge: how many figures came to what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Count {
    pub state: &'static str,
    pub mark: &'static str,
    pub text: String,
}

/// Badges of what there is; none for a state that nothing is in.
pub fn counts(holds: usize, fails: usize, skipped: usize) -> Vec<Count> {
    let plural = |count: usize, one: &str, many: &str| {
        format!("{count} {}", if count == 1 { one } else { many })
    };
    [
        (
            State::Holds,
            holds,
            plural(holds, "figure holds", "figures hold"),
        ),
        (
            State::Fails,
            fails,
            plural(fails, "does not hold", "do not hold"),
        ),
        (
            State::Skipped,
            skipped,
            plural(skipped, "skipped", "skipped"),
        ),
    ]
    .into_iter()
    .filter(|(_, count, _)| *count > 0)
    .map(|(state, _, text)| Count {
        state: state.class(),
        mark: state.mark(),
        text,
    })
    .collect()
}
