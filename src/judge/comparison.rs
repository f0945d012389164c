//! What a ratio with an interval asks: that it is not 1. A claim that something is faster is
//! refused where the runs show no difference, whatever its tolerance says.

use super::Outcome;
use crate::quantity::Number;
use crate::record::Comparison;
use bigdecimal::{BigDecimal, One};

/// What is asked of a comparison, for people.
pub(super) const ASKED: &str = "a 95 % interval without 1";
/// What words ask that quote one.
pub(super) const ASKED_OF_WORDS: &str = "a 95 % interval above 1";

impl Comparison {
    /// Whether all runs gave one ratio: sizes and counts can be exact, times never are.
    pub(super) fn is_exact(&self) -> bool {
        self.interval.0 == self.interval.1
    }

    /// Where the interval lies: below 1, above it, or neither.
    fn is_beyond_one(&self) -> Option<std::cmp::Ordering> {
        let one = BigDecimal::one();
        match &self.interval {
            (Number::Finite(low), _) if *low > one => Some(std::cmp::Ordering::Greater),
            (_, Number::Finite(high)) if *high < one => Some(std::cmp::Ordering::Less),
            _ => None,
        }
    }

    /// Why no difference was measured, where none was.
    pub(super) fn no_difference(&self) -> Option<String> {
        if self.is_unbounded() {
            return Some(format!(
                "{} are too few for a 95 % interval: no difference was measured",
                self.runs_text()
            ));
        }
        self.is_beyond_one().is_none().then(|| {
            format!(
                "the 95 % interval {} includes 1: no difference was measured ({})",
                self.interval_text(),
                self.runs_text()
            )
        })
    }

    /// What becomes of words that quote it, such as `[faster](claim:x)`.
    pub(super) fn words(&self) -> Outcome {
        let off = self.no_difference().or_else(|| {
            (self.is_beyond_one() == Some(std::cmp::Ordering::Less)).then(|| {
                format!(
                    "the 95 % interval {} lies below 1: it is the other way round ({})",
                    self.interval_text(),
                    self.runs_text()
                )
            })
        });
        off.map_or(Outcome::Holds, |difference| Outcome::DoesNotHold {
            difference,
        })
    }
}
