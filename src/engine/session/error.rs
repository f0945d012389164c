//! What can go wrong on a connection: an error that Postgres raised, as data, or the connection is
//! gone.

use super::{ADMIN_SHUTDOWN, ended_by_setting};
use crate::diagnostic::Diagnostic;
use crate::engine::cause;
use crate::exit_code::Failure;
use std::fmt;
use tokio_postgres::error::{DbError, ErrorPosition};

/// SQLSTATE of a full disk, and of a full `/dev/shm`.
const DISK_FULL: &str = "53100";

/// An error that Postgres raised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SqlError {
    /// Such as `42P01`.
    pub sqlstate: String,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// In characters from the start of the statement, the first being 1.
    pub position: Option<usize>,
    /// A statement that Postgres ran on its own (in a function), and the position in it.
    pub internal: Option<(String, usize)>,
    /// The stack of functions and statements it was raised in.
    pub context: Option<String>,
    /// Stopped by [`super::Session::execute_within`].
    pub timed_out: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionError {
    Sql(Box<SqlError>),
    /// The connection or the server is gone; `log` is the end of the server's log.
    Lost {
        message: String,
        log: String,
    },
}

impl From<SessionError> for Failure {
    /// For statements of the tool's own: that one of them fails is not the article's fault.
    fn from(error: SessionError) -> Self {
        match error {
            // Where the server itself stops, the session is lost.
            SessionError::Sql(error) if error.sqlstate == ADMIN_SHUTDOWN => {
                Self::article(error.diagnostic())
            }
            SessionError::Sql(error) if ended_by_setting(&error.sqlstate) => Self::article(
                error
                    .diagnostic()
                    .note("a setting of the article ended its own session"),
            ),
            SessionError::Sql(error) if error.is_of_a_full_disk() => {
                Self::Engine(error.diagnostic())
            }
            SessionError::Sql(error) if keeps_out(&error.sqlstate) => {
                Self::Engine(error.diagnostic())
            }
            SessionError::Sql(error) => Self::Internal(
                Diagnostic::error(format!(
                    "a statement of the tool's own failed: {} (SQLSTATE {})",
                    error.message, error.sqlstate
                ))
                .sqlstate(&error.sqlstate),
            ),
            SessionError::Lost { .. } => Self::Engine(Diagnostic::error(error.to_string())),
        }
    }
}

/// Whether a server gave no connection: too many of them, or not for this role. Only a server that
/// was there before has reasons to.
fn keeps_out(sqlstate: &str) -> bool {
    sqlstate == "53300" || sqlstate.starts_with("28")
}

impl From<&DbError> for SqlError {
    fn from(error: &DbError) -> Self {
        let (position, internal) = match error.position() {
            Some(ErrorPosition::Original(at)) => (Some(*at as usize), None),
            Some(ErrorPosition::Internal { position, query }) => {
                (None, Some((query.clone(), *position as usize)))
            }
            None => (None, None),
        };
        let hint = cause::tells_of_full_shared_memory(error.message())
            .then(|| cause::SHARED_MEMORY_HINT.to_owned());
        Self {
            sqlstate: error.code().code().to_owned(),
            message: error.message().to_owned(),
            detail: error.detail().map(str::to_owned),
            hint: error.hint().map(str::to_owned).or(hint),
            position,
            internal,
            context: error.where_().map(str::to_owned),
            timed_out: false,
        }
    }
}

/// Whether an error is the machine's fault, not the statement's.
pub fn is_of_a_full_disk(sqlstate: &str, message: &str) -> bool {
    sqlstate == DISK_FULL && !cause::tells_of_full_shared_memory(message)
}

impl SqlError {
    /// The machine's fault, not the statement's.
    pub fn is_of_a_full_disk(&self) -> bool {
        is_of_a_full_disk(&self.sqlstate, &self.message)
    }

    /// Postgres's own message, detail, context and hint; the caller knows the place.
    pub fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Diagnostic::error(format!("{} ({})", self.message, self.sqlstate))
            .sqlstate(&self.sqlstate);
        if let Some(detail) = &self.detail {
            diagnostic = diagnostic.note(detail);
        }
        if let Some((query, position)) = &self.internal {
            diagnostic = diagnostic.note(format!("at character {position} of: {query}"));
        }
        if let Some(context) = &self.context {
            diagnostic = diagnostic.note(context);
        }
        match &self.hint {
            Some(hint) => diagnostic.hint(hint),
            None => diagnostic,
        }
    }
}

impl SessionError {
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::Sql(error) => error.diagnostic(),
            Self::Lost { message, log } => {
                let diagnostic =
                    Diagnostic::error(format!("the connection to Postgres is lost: {message}"));
                if log.is_empty() {
                    diagnostic
                } else {
                    diagnostic.note(format!("the server's log ends with:\n{log}"))
                }
            }
        }
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.sqlstate)
    }
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sql(error) => error.fmt(f),
            Self::Lost { message, .. } => {
                write!(f, "the connection to Postgres is lost: {message}")
            }
        }
    }
}

impl std::error::Error for SqlError {}
impl std::error::Error for SessionError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_sql_error_keeps_what_postgres_said() {
        let error = SqlError {
            sqlstate: "42703".into(),
            message: "column \"x\" does not exist".into(),
            detail: Some("there is a column".into()),
            hint: Some("perhaps y".into()),
            internal: Some(("SELECT x".into(), 8)),
            ..SqlError::default()
        };
        let diagnostic = error.diagnostic();
        assert_eq!(diagnostic.message, "column \"x\" does not exist (42703)");
        assert_eq!(
            diagnostic.notes,
            ["there is a column", "at character 8 of: SELECT x"]
        );
        assert_eq!(diagnostic.hint.as_deref(), Some("perhaps y"));
    }
}
