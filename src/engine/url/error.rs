//! Why no session was to be had on an existing server, or no database, and what to do about it.

use super::target::Target;
use crate::diagnostic::Diagnostic;
use crate::engine::session::SessionError;

/// The first connection failed.
pub fn unreachable(target: &Target, error: &SessionError) -> Diagnostic {
    let server = target.address();
    match error {
        SessionError::Sql(error) => {
            let said = format!("Postgres: {} (SQLSTATE {})", error.message, error.sqlstate);
            let (user, database) = (&target.user, &target.database);
            let diagnostic =
                Diagnostic::error(format!("`{server}` lets nobody in as `{user}`: {said}"));
            match error.sqlstate.as_str() {
                "28P01" => diagnostic.hint(
                    "PGPASSWORD, PGPASSFILE or ~/.pgpass hold the password; is it this role's?",
                ),
                "28000" => diagnostic.hint(
                    "the role, its right to log in, or this machine's entry in pg_hba.conf is \
                     missing; some servers want `sslmode=require`",
                ),
                "3D000" => Diagnostic::error(format!("`{server}` has no database `{database}`: {said}"))
                    .hint("end the URL with one that is there; nothing is done in it, such as `/postgres`"),
                "53300" => diagnostic.hint("end some of its connections and try again"),
                "57P03" => diagnostic.hint("it is starting or stopping: try again"),
                _ => diagnostic,
            }
        }
        SessionError::Lost { message, .. } => {
            let diagnostic = Diagnostic::error(format!("`{server}` cannot be reached: {message}"));
            match hint(message) {
                Some(hint) => diagnostic.hint(hint),
                None => diagnostic,
            }
        }
    }
}

/// What the words of the client library ask for.
fn hint(message: &str) -> Option<&'static str> {
    const HINTS: [(&str, &str); 9] = [
        (
            "password missing",
            "set PGPASSWORD, or put the password into ~/.pgpass",
        ),
        (
            "server does not support TLS",
            "`sslmode=prefer` goes without encryption where the server has none",
        ),
        (
            "UnknownIssuer",
            "name the certificate of who signed the server's with `sslrootcert=FILE`",
        ),
        (
            "not valid for name",
            "reach it by the name in its certificate, or verify only who signed it: \
             `sslmode=verify-ca`",
        ),
        ("NotValidForName", "reach it by the name in its certificate"),
        (
            "UnsupportedCertVersion",
            "the server's certificate is of version 1: make one of version 3",
        ),
        (
            "channel binding",
            "the server cannot bind a login to TLS: `channel_binding=prefer`",
        ),
        (
            "refused",
            "is a server listening there, and is the port right?",
        ),
        (
            "timed out",
            "is the name right, and does a firewall let this machine through?",
        ),
    ];
    let found = HINTS.iter().find(|(words, _)| message.contains(words));
    found.map(|(_, hint)| *hint)
}

/// The first database could not be made.
pub fn no_database(target: &Target, error: &SessionError) -> Diagnostic {
    let diagnostic = error.diagnostic();
    let said = &diagnostic.message;
    let told = Diagnostic::error(format!(
        "no database can be made on `{}`: {said}",
        target.address()
    ));
    match &error {
        SessionError::Sql(error) if error.sqlstate == "55006" => {
            told.hint("somebody is connected to its database `template1`: try again")
        }
        _ => told,
    }
}
