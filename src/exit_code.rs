//! How a command ends, and the number the shell sees. The table stands in the README; this match
//! is the only place that maps an outcome to a number.

use crate::diagnostic::Diagnostic;
use std::process::ExitCode;

/// What a command came to when nothing stopped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything planned was done, and every claim and quote holds.
    Holds,
    /// Everything planned was done, and a claim or a quote does not hold.
    DoesNotHold,
    /// The accepted record is missing, or not of the article as it is now.
    RecordStale,
}

/// Why a command could not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// The article or the arguments are wrong: the author's to mend.
    Article(Vec<Diagnostic>),
    /// No Postgres of the pinned version could be had or kept running.
    Engine(Diagnostic),
    /// The accepted record cannot be read: damaged, edited since it was written, or of a newer format.
    Record(Diagnostic),
    /// Asked to stop; what is measured is kept.
    Interrupted { hint: String },
    /// Our bug, or the machine's: a file that cannot be written, a protocol that broke.
    Internal(Diagnostic),
}

impl Failure {
    pub fn article(diagnostic: Diagnostic) -> Self {
        Self::Article(vec![diagnostic])
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal(Diagnostic::error(message))
    }

    /// The same failure with a place for those of its diagnostics that have none.
    #[must_use]
    pub fn at(
        self,
        source: &std::sync::Arc<crate::source::Source>,
        span: crate::source::Span,
    ) -> Self {
        let place = |diagnostic: Diagnostic| match diagnostic.place {
            None => diagnostic.at(source, span),
            Some(_) => diagnostic,
        };
        match self {
            Self::Article(diagnostics) => {
                Self::Article(diagnostics.into_iter().map(place).collect())
            }
            Self::Engine(diagnostic) => Self::Engine(place(diagnostic)),
            other => other,
        }
    }

    /// A file operation that failed, with the file.
    pub fn io(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::internal(format!("cannot {doing} `{}`: {error}", path.display()))
    }
}

pub fn number(result: &Result<Outcome, Failure>) -> u8 {
    match result {
        Ok(Outcome::Holds) => 0,
        Err(Failure::Internal(_)) => 1,
        Err(Failure::Article(_)) => 2,
        Ok(Outcome::DoesNotHold) => 3,
        Err(Failure::Engine(_)) => 4,
        Ok(Outcome::RecordStale) | Err(Failure::Record(_)) => 5,
        // 128 + SIGINT, as shells report it.
        Err(Failure::Interrupted { .. }) => 130,
    }
}

/// Of several results the heaviest is how a command ends: what kept something planned from being
/// done outweighs what was found, a machine outweighs an article. From the lightest:
const BY_WEIGHT: [u8; 7] = [0, 5, 3, 2, 4, 1, 130];

pub fn weight(number: u8) -> usize {
    let place = BY_WEIGHT.iter().position(|&code| code == number);
    place.unwrap_or(BY_WEIGHT.len())
}

pub fn exit_code(result: &Result<Outcome, Failure>) -> ExitCode {
    ExitCode::from(number(result))
}
