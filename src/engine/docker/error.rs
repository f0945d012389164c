//! What a daemon answers when it does not do as it is asked, in words.

use crate::diagnostic::Diagnostic;
use crate::exit_code::Failure;
use bollard::errors::Error;

/// An error with what caused it.
pub fn full_text(error: &Error) -> String {
    if let Error::DockerResponseServerError { message, .. } = error {
        return message.trim().to_owned();
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// `what` is what was asked for: `create a container`.
pub fn failure(what: &str, error: &Error) -> Failure {
    Failure::Engine(Diagnostic::error(format!(
        "the container daemon does not {what}: {}",
        full_text(error)
    )))
}

pub fn is_not_found(error: &Error) -> bool {
    matches!(
        error,
        Error::DockerResponseServerError {
            status_code: 404,
            ..
        }
    )
}
