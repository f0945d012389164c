//! Why an experiment runs, as data and as the words a person reads.

use crate::record::Difference;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    NeverMeasured,
    Forced,
    /// Began before and left no finished cell.
    FailedBefore,
    Interrupted {
        cells_done: usize,
    },
    /// Interrupted, and no cell of it can be kept.
    StartsOver,
    /// An existing server refused it.
    SkippedBefore,
    /// The only results are another machine's.
    OtherHost,
    /// The inputs that differ from the latest result, each with what happened to it.
    Changed(Vec<Difference>),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverMeasured => f.write_str("never measured"),
            Self::Forced => f.write_str("forced"),
            Self::FailedBefore => f.write_str("failed or was interrupted before its first cell"),
            Self::Interrupted { cells_done: 1 } => {
                f.write_str("interrupted; goes on after its first cell")
            }
            Self::Interrupted { cells_done } => {
                write!(f, "interrupted; goes on after {cells_done} cells")
            }
            Self::StartsOver => f.write_str(
                "interrupted; starts over, as its cells build on one another or are interleaved",
            ),
            Self::SkippedBefore => f.write_str("the server refused it before; tried again"),
            Self::OtherHost => f.write_str("measured on another machine only"),
            Self::Changed(differences) => {
                const SHOWN: usize = 3;
                let shown: Vec<String> = differences
                    .iter()
                    .take(SHOWN)
                    .map(ToString::to_string)
                    .collect();
                f.write_str(&shown.join(", "))?;
                match differences.len().saturating_sub(SHOWN) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
        }
    }
}
