//! Why an experiment runs, as data and as the words a person reads.

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
    /// The only results are another machine's.
    OtherHost,
    /// The inputs that differ from the latest result, each with what happened to it.
    Changed(Vec<Difference>),
}

/// One input that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub input: String,
    pub before: Option<String>,
    pub now: Option<String>,
}

impl Difference {
    /// Words of the format are kept under their names in the code, which differ by the capital.
    fn as_written(&self, value: &str) -> String {
        match self.input.as_str() {
            "fresh" | "connect" | "order" => value.to_ascii_lowercase(),
            _ => value.to_owned(),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |text: &str| !text.contains('\n') && text.chars().count() <= 40;
        match (&self.before, &self.now) {
            (Some(before), Some(now)) if short(before) && short(now) => {
                let (before, now) = (self.as_written(before), self.as_written(now));
                write!(f, "{} changed from `{before}` to `{now}`", self.input)
            }
            (Some(_), Some(_)) => write!(f, "{} changed", self.input),
            (None, _) => write!(f, "{} is new", self.input),
            (_, None) => write!(f, "{} is gone", self.input),
        }
    }
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
