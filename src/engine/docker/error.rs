//! What a daemon answers when it does not do as it is asked, in words.

use crate::diagnostic::Diagnostic;
use crate::exit_code::Failure;
use bollard::errors::Error;

/// An error with what caused it.
pub fn full_text(error: &Error) -> String {
    // What the daemon says needs no word of ours before it.
    match error {
        Error::DockerResponseServerError { message, .. } => return message.trim().to_owned(),
        Error::DockerStreamError { error } => return error.trim().to_owned(),
        _ => {}
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
    let said = full_text(error);
    let problem = Diagnostic::error(format!("the container daemon does not {what}: {said}"));
    // The runtime's words for a program that an image does not have.
    let lacks = ["executable file not found", "no such file or directory"];
    Failure::Engine(match lacks.iter().any(|words| said.contains(words)) {
        true => problem.hint("pin the official image `postgres`, or one that is laid out as it is"),
        false => problem,
    })
}

/// What a failure says first, for a sentence of ours.
pub fn full_text_of(failure: &Failure) -> String {
    match failure {
        Failure::Engine(problem) | Failure::Internal(problem) | Failure::Record(problem) => {
            problem.message.clone()
        }
        Failure::Article(problems) => problems
            .first()
            .map_or_else(String::new, |problem| problem.message.clone()),
        Failure::Interrupted { .. } => "it was interrupted".to_owned(),
    }
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

/// What keeps an image from being pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullProblem {
    TooManyRequests,
    Login,
    Disk,
    NoSuchImage,
    OutOfReach,
}

impl PullProblem {
    /// By what the daemon says of it: it passes on the words of registries and of the system, and has
    /// no codes for them.
    pub fn of(why: &str) -> Self {
        let why = why.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| why.contains(word));
        if says(&["toomanyrequests", "rate limit"]) {
            Self::TooManyRequests
        } else if says(&["unauthorized", "denied", "authentication required"]) {
            Self::Login
        } else if says(&["no space left", "disk quota"]) {
            Self::Disk
        } else if says(&[
            "manifest unknown",
            "not found",
            "no matching manifest",
            "invalid reference",
            "not made for",
            "not for linux/",
        ]) {
            Self::NoSuchImage
        } else {
            Self::OutOfReach
        }
    }

    /// For records: what is said of it names hosts and addresses of this machine's network.
    pub fn words(self) -> &'static str {
        match self {
            Self::TooManyRequests => "the registry has had too many requests",
            Self::Login => "the registry wants a login",
            Self::Disk => "the daemon's disk is full",
            Self::NoSuchImage => "the registry has no such image",
            Self::OutOfReach => "the registry is out of reach",
        }
    }

    pub fn hint(self, reference: &str) -> String {
        let hint = match self {
            Self::TooManyRequests => "wait, or log in and pull it by hand".to_owned(),
            Self::Login => format!("`docker login`, then `docker pull {reference}`"),
            Self::Disk => {
                "make room where the daemon keeps its images: `docker system df` shows what is there"
                    .to_owned()
            }
            Self::NoSuchImage => "are name and digest right in pins.yaml?".to_owned(),
            Self::OutOfReach => format!(
                "is the registry within reach? `docker pull {reference}` shows it by hand"
            ),
        };
        format!("{hint}; `--engine embedded` needs no image")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_an_image_from_being_pulled_is_known_by_its_words() {
        for (why, problem) in [
            (
                "manifest for r@sha256:00 not found: manifest unknown: manifest unknown",
                PullProblem::NoSuchImage,
            ),
            (
                "Get \"http://127.0.0.1:1/v2/\": dial tcp 127.0.0.1:1: connect: connection refused",
                PullProblem::OutOfReach,
            ),
            (
                "Head \"https://registry-1.docker.io/v2/\": dial tcp: lookup registry-1.docker.io: no such host",
                PullProblem::OutOfReach,
            ),
            (
                "toomanyrequests: You have reached your pull rate limit",
                PullProblem::TooManyRequests,
            ),
            (
                "pull access denied for r, repository does not exist or may require 'docker login'",
                PullProblem::Login,
            ),
            ("write /x: no space left on device", PullProblem::Disk),
            (
                "no matching manifest for linux/s390x in the manifest list entries",
                PullProblem::NoSuchImage,
            ),
        ] {
            assert_eq!(PullProblem::of(why), problem, "{why}");
        }
    }
}
