//! What every figure came to, as text: for the terminal, for programs and for whoever runs builds
//! unattended. Entry: [`report`]. A report is pure: the command that asks for one writes it where it
//! belongs, whether everything was done or not: a [`Run`] holds what was planned, what came of it,
//! and why something was not done.

mod github;
mod json;
mod junit;
mod markdown;
mod places;
#[cfg(test)]
mod sample;
mod sarif;
mod terminal;

pub use places::{Places, Region};

use crate::article::{Article, Claim};
use crate::diagnostic::{Diagnostic, Severity};
use crate::exit_code::Failure;
use crate::judge::{Machine, Outcome, Subject, Verdict};
use crate::quantity::{self, Format, Unit, Value};
use crate::record::{Record, Unpinned};
use crate::source::{Source, Span};
use std::collections::BTreeSet;
use std::sync::Arc;

/// One article with its verdicts.
#[derive(Clone, Copy)]
pub struct Judged<'a> {
    pub article: &'a Article,
    /// What was judged.
    pub record: &'a Record,
    pub verdicts: &'a [Verdict],
    /// Further machines' records, beside it.
    pub machines: &'a [Machine],
}

impl Judged<'_> {
    /// Of an existing server, what is to be known of the figures; nothing of one that is pinned.
    fn notices(&self) -> Vec<String> {
        let pinned = &self.article.front_matter.postgres.version.value;
        let unpinned = Unpinned::of(self.record, pinned);
        unpinned.map_or_else(Vec::new, |unpinned| unpinned.lines())
    }
}

/// Everything that a command was asked for, and what came of it.
pub struct Run<'a> {
    /// `build` or `check`.
    pub command: &'a str,
    pub places: &'a Places,
    /// How the command ends.
    pub exit_code: u8,
    /// Those of no article: a name that is none, pins that cannot be read.
    pub problems: Vec<Problem>,
    /// Every article that was asked for, in that order.
    pub articles: Vec<Asked<'a>>,
}

/// One article that was asked for.
pub struct Asked<'a> {
    pub slug: String,
    /// The path of its file, as it was found.
    pub file: &'a std::path::Path,
    /// None: it could not be read.
    pub article: Option<&'a Article>,
    /// None: it did not come so far.
    pub judged: Option<Judged<'a>>,
    /// One for each verdict: what there is to say where it does not hold.
    pub explanations: Vec<Option<Diagnostic>>,
    pub problems: Vec<Problem>,
    pub status: Status,
}

/// What an article came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Holds,
    DoesNotHold,
    RecordStale,
    /// A problem kept it from being done.
    Failed,
    /// Never begun: what came before it would have met it too.
    NotDone,
}

/// Something that is wrong, and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub cause: Cause,
    pub diagnostic: Diagnostic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The author's to mend: text, SQL, arguments.
    Article,
    /// What `remeasure lint` finds.
    Lint,
    /// No Postgres could be had or kept running.
    Engine,
    /// The accepted record is missing, stale or damaged.
    Record,
    Interrupted,
    /// A bug of ours, or a broken machine.
    Internal,
}

impl Cause {
    /// As a rule and as a type of errors is named.
    const fn name(self) -> &'static str {
        match self {
            Self::Article => "article",
            Self::Lint => "lint",
            Self::Engine => "engine",
            Self::Record => "record",
            Self::Interrupted => "interrupted",
            Self::Internal => "internal",
        }
    }
}

impl Problem {
    /// Everything that a failure says.
    pub fn of(failure: &Failure) -> Vec<Self> {
        let one = |cause, diagnostic: &Diagnostic| {
            vec![Self {
                cause,
                diagnostic: diagnostic.clone(),
            }]
        };
        match failure {
            Failure::Article(all) => Self::all(Cause::Article, all),
            Failure::Engine(diagnostic) => one(Cause::Engine, diagnostic),
            Failure::Record(diagnostic) => one(Cause::Record, diagnostic),
            Failure::Internal(diagnostic) => one(Cause::Internal, diagnostic),
            Failure::Interrupted { hint } => one(
                Cause::Interrupted,
                &Diagnostic::error("interrupted").hint(hint.clone()),
            ),
        }
    }

    pub fn all(cause: Cause, diagnostics: &[Diagnostic]) -> Vec<Self> {
        let one = |diagnostic: &Diagnostic| Self {
            // What lint finds says so itself, whoever asked it.
            cause: if rule(diagnostic).is_some() {
                Cause::Lint
            } else {
                cause
            },
            diagnostic: diagnostic.clone(),
        };
        diagnostics.iter().map(one).collect()
    }

    fn is_error(&self) -> bool {
        self.diagnostic.severity == Severity::Error
    }
}

/// The rule of `remeasure list rules` that found it.
fn rule(diagnostic: &Diagnostic) -> Option<&str> {
    let mut notes = diagnostic.notes.iter();
    notes.find_map(|note| note.strip_prefix("rule: "))
}

/// One figure that was planned to be judged: with its verdict, or why there is none.
pub struct Figure<'a> {
    pub claim: &'a str,
    pub subject: Subject,
    pub quoted: Option<&'a str>,
    pub span: Span,
    /// For people; None: it was not measured.
    pub measured: Option<String>,
    pub verdict: Option<&'a Verdict>,
    /// Of a verdict that does not hold.
    pub explanation: Option<&'a Diagnostic>,
    /// Why there is no verdict.
    pub not_judged: Option<String>,
}

impl<'a> Run<'a> {
    /// Those that came so far.
    fn judged(&self) -> Vec<Judged<'a>> {
        let articles = self.articles.iter();
        articles.filter_map(|asked| asked.judged).collect()
    }

    fn count(&self) -> Count {
        let judged = self.articles.iter().filter_map(|asked| asked.judged);
        Count::of(judged.flat_map(|judged| judged.verdicts))
    }
}

impl Asked<'_> {
    /// Everything that was planned to be judged: verdicts in their order, then what has none.
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let mut figures = Vec::new();
        let mut judged_claims = BTreeSet::new();
        for (index, verdict) in self.verdicts().iter().enumerate() {
            judged_claims.insert(verdict.claim.as_str());
            figures.push(Figure {
                claim: &verdict.claim,
                subject: verdict.subject,
                quoted: verdict.quoted.as_deref(),
                span: verdict.span,
                measured: Some(verdict.measured_text.clone()),
                verdict: Some(verdict),
                explanation: self.explanations.get(index).and_then(Option::as_ref),
                not_judged: None,
            });
        }
        let Some(article) = self.article else {
            return figures;
        };
        let not_judged = |claim, subject, quoted, span, why: &str| Figure {
            claim,
            subject,
            quoted,
            span,
            measured: None,
            verdict: None,
            explanation: None,
            not_judged: Some(why.to_owned()),
        };
        let why = match (self.judged, self.status) {
            (Some(_), _) => "measured, and neither quoted nor limited",
            (None, Status::RecordStale) => "there is no record",
            (None, Status::NotDone) => "the article was not done",
            (None, _) => "the article was not measured to its end",
        };
        if self.judged.is_none() {
            for (index, quote) in article.prose.quotes.iter().enumerate() {
                let claim = quote.claim.value.as_str();
                judged_claims.insert(claim);
                let subject = Subject::Quote(index);
                figures.push(not_judged(
                    claim,
                    subject,
                    Some(&quote.text),
                    quote.span,
                    why,
                ));
            }
        }
        let left = article.claims();
        let left = left.filter(|claim| !judged_claims.contains(claim.name.value.as_str()));
        figures.extend(left.map(|claim| {
            let name = &claim.name;
            Figure {
                measured: self.value_of(claim),
                ..not_judged(&name.value, Subject::Claim, None, name.span, why)
            }
        }));
        figures
    }

    /// A measured value for people, in its unit.
    fn value_of(&self, claim: &Claim) -> Option<String> {
        let judged = self.judged?;
        let measured = judged.record.claims.get(&claim.name.value)?;
        let Value::Number(number) = &measured.value else {
            return Some(measured.value.to_string());
        };
        let bytes = claim.bytes.unwrap_or(judged.article.front_matter.bytes);
        let unit = Unit::new(claim.unit.as_deref().unwrap_or_default(), bytes);
        Some(unit.attach(&quantity::format(number, &Format::Default, bytes)))
    }

    fn verdicts(&self) -> &[Verdict] {
        self.judged.map_or(&[][..], |judged| judged.verdicts)
    }

    fn source(&self) -> Option<&Arc<Source>> {
        self.article.map(|article| &article.source)
    }
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
    pub write: fn(&Run, Look) -> String,
}

/// Every report there is; one more is a file and a line.
pub const REPORTS: &[Report] = &[
    terminal::REPORT,
    json::REPORT,
    junit::REPORT,
    sarif::REPORT,
    markdown::REPORT,
    github::REPORT,
];

/// The report of that name.
pub fn report(name: &str) -> Option<&'static Report> {
    REPORTS.iter().find(|report| report.name == name)
}

/// The table of claims that a build ends with.
pub fn table(judged: &[Judged], look: Look) -> String {
    terminal::table(judged, look)
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
