//! What every figure came to, as text: for the terminal, and for machines. Entry: [`report`].
//! A report is pure: the command that asks for one writes it where it belongs.

mod json;
mod terminal;

use crate::article::Article;
use crate::judge::{Outcome, Verdict};
use crate::record::Record;

/// One article with its verdicts.
#[derive(Clone, Copy)]
pub struct Judged<'a> {
    pub article: &'a Article,
    /// What was judged.
    pub record: &'a Record,
    pub verdicts: &'a [Verdict],
}

/// How a report is to look; those that machines read take no notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub color: Color,
    /// Columns of the terminal.
    pub width: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    Plain,
    Ansi,
}

/// An entry of the catalogue.
pub struct Report {
    /// As `--report NAME=FILE` names it.
    pub name: &'static str,
    /// For `remeasure list reports`.
    pub about: &'static str,
    pub write: fn(&[Judged], Look) -> String,
}

/// Every report there is; one more is a file and a line.
pub const REPORTS: &[Report] = &[terminal::REPORT, json::REPORT];

/// The report of that name.
pub fn report(name: &str) -> Option<&'static Report> {
    REPORTS.iter().find(|report| report.name == name)
}

/// How many figures came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    pub holds: usize,
    pub does_not_hold: usize,
    pub skipped: usize,
}

impl Count {
    pub fn of<'v>(verdicts: impl IntoIterator<Item = &'v Verdict>) -> Self {
        let mut count = Self::default();
        for verdict in verdicts {
            match verdict.outcome {
                Outcome::Holds => count.holds += 1,
                Outcome::DoesNotHold { .. } => count.does_not_hold += 1,
                Outcome::Skipped { .. } => count.skipped += 1,
            }
        }
        count
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (hold, not) = match (self.holds, self.does_not_hold) {
            (1, 1) => ("holds", "does not hold"),
            (1, _) => ("holds", "do not hold"),
            (_, 1) => ("hold", "does not hold"),
            _ => ("hold", "do not hold"),
        };
        let (holds, off, skipped) = (self.holds, self.does_not_hold, self.skipped);
        write!(f, "{holds} {hold}, {off} {not}, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_has_a_name_of_its_own_and_says_what_it_is() {
        for (index, report) in REPORTS.iter().enumerate() {
            assert!(!report.about.is_empty());
            assert!(
                REPORTS[..index]
                    .iter()
                    .all(|other| other.name != report.name)
            );
            assert!(super::report(report.name).is_some_and(|found| found.about == report.about));
        }
        assert!(super::report("xml").is_none());
    }

    #[test]
    fn counts_read_as_a_sentence() {
        for (holds, does_not_hold, skipped, expected) in [
            (12, 3, 2, "12 hold, 3 do not hold, 2 skipped"),
            (1, 1, 0, "1 holds, 1 does not hold, 0 skipped"),
            (0, 0, 0, "0 hold, 0 do not hold, 0 skipped"),
        ] {
            let count = Count {
                holds,
                does_not_hold,
                skipped,
            };
            assert_eq!(count.to_string(), expected);
        }
    }
}
