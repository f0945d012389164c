//! Whether `auto` can have the docker engine, asked in the order of what it costs: a socket that is
//! not there costs nothing, a daemon that has the image milliseconds, only a missing image a question
//! to its registry. Nothing is pulled here.

use super::endpoint::{self, Daemon, Refused};
use super::error::{PullProblem, full_text_of};
use super::image::{self, Offer, Presence};
use crate::diagnostic::Diagnostic;
use crate::engine::choice::TAKES_ITS_PLACE;
use crate::engine::pins::Pin;
use crate::exit_code::Failure;
use std::pin::pin;
use std::time::Duration;

/// The docker engine can be had.
pub struct Taken {
    pub reason: String,
    /// False: it has to be pulled first.
    pub image_is_here: bool,
}

/// It cannot. The reason goes into records: no path of this machine stands in it.
pub struct PassedOver {
    pub reason: String,
    /// Where a daemon was asked for by name, which is no small matter.
    pub warning: Option<Diagnostic>,
    /// No daemon answers: it is the same for every version.
    pub is_for_all: bool,
}

/// A wait that is longer is told.
const PATIENCE: Duration = Duration::from_millis(700);

pub async fn consider(
    pin: &Pin,
    platform: Option<&str>,
    offline: bool,
    tell: &dyn Fn(&str),
) -> Result<Taken, PassedOver> {
    let passed_over = |reason: String| PassedOver {
        reason,
        warning: None,
        is_for_all: false,
    };
    let Some(pinned) = &pin.image else {
        let reason = format!("no image of Postgres {} is pinned", pin.version);
        return Err(passed_over(reason));
    };
    let (daemon, _) = told_while(tell, "a container daemon", endpoint::first())
        .await
        .map_err(|refused| no_daemon(&refused))?;
    let name = name_of(&daemon);
    let missing = match image::look(&daemon, pinned, platform).await {
        Ok(Presence::Here(_)) => {
            return Ok(Taken {
                reason: has_it(name),
                image_is_here: true,
            });
        }
        Ok(Presence::Missing) => "the pinned image is not here".to_owned(),
        Ok(Presence::OtherPlatform(other)) => format!("the image that is here is for {other}"),
        Err(failure) => {
            let said = full_text_of(&failure);
            return Err(passed_over(format!("{name} answers, but {said}")));
        }
    };
    if offline {
        let reason = format!("{name} answers, but {missing}, and `--offline` fetches nothing");
        return Err(passed_over(reason));
    }
    let question = image::offered(&daemon, pinned, platform);
    let what = format!(
        "the registry of `{}`, to say whether it can be pulled",
        image::reference(pinned)
    );
    match told_while(tell, &what, question).await {
        Offer::Offered => Ok(Taken {
            reason: format!("{name} answers and can pull the pinned image"),
            image_is_here: false,
        }),
        Offer::NotKnown => Ok(Taken {
            reason: format!("{name} answers, and pulls the pinned image when it is needed"),
            image_is_here: false,
        }),
        Offer::NotOffered(why) => {
            tell(&format!("{missing}, and cannot be pulled: {why}"));
            let why = PullProblem::of(&why).words();
            Err(passed_over(format!(
                "{name} answers, but {missing}, and {why}"
            )))
        }
    }
}

/// Pulls the image where it is missing, as a start of the engine does. The reason to take docker is
/// then another; an error is a warning for who is content with the other engine.
pub async fn pull(
    pin: &Pin,
    platform: Option<&str>,
    tell: &dyn Fn(&str),
) -> Result<String, PassedOver> {
    let lost =
        |problem: Diagnostic| passed_over_for(problem, "no container daemon answers any more");
    let (daemon, _) = endpoint::connect().await.map_err(lost)?;
    let name = name_of(&daemon);
    let Some(pinned) = &pin.image else {
        return Ok(has_it(name));
    };
    match image::present(&daemon, pinned, platform, false, tell).await {
        Ok(_) => Ok(has_it(name)),
        Err(failure) => {
            let said = full_text_of(&failure);
            let why = PullProblem::of(&said).words();
            let reason = format!("{name} answers, but does not pull the pinned image: {why}");
            let problem = match failure {
                Failure::Engine(problem) => problem,
                _ => Diagnostic::error(said),
            };
            Err(passed_over_for(problem, &reason))
        }
    }
}

fn passed_over_for(problem: Diagnostic, reason: &str) -> PassedOver {
    let mut warning = Diagnostic::warning(problem.message).note(TAKES_ITS_PLACE);
    warning.notes.extend(problem.notes);
    warning.hint = problem.hint;
    PassedOver {
        reason: reason.to_owned(),
        warning: Some(warning),
        is_for_all: false,
    }
}

fn has_it(name: &str) -> String {
    format!("{name} answers and has the pinned image")
}

fn name_of(daemon: &Daemon) -> &str {
    daemon.version.split(' ').next().unwrap_or("Docker")
}

fn no_daemon(refused: &[Refused]) -> PassedOver {
    let asked_for = refused.iter().find(|one| one.endpoint.is_asked_for());
    let Some(one) = asked_for else {
        let unwilling = refused.iter().find(|one| one.why != endpoint::NO_SOCKET);
        return PassedOver {
            reason: unwilling.map_or_else(
                || "there is no container daemon".to_owned(),
                |one| match one.endpoint.host.starts_with("unix://") {
                    true => format!("no container daemon answers: {}", one.why),
                    // What is said of one elsewhere may name it.
                    false => "no container daemon answers".to_owned(),
                },
            ),
            warning: None,
            is_for_all: true,
        };
    };
    let by = &one.endpoint.named_by;
    let message = format!("the container daemon that {by} names does not answer");
    let at = match one.endpoint.host.as_str() {
        "" => one.why.clone(),
        host => format!("{host}: {}", one.why),
    };
    let variable = by.split(' ').next().unwrap_or(by);
    let mend = endpoint::access_hint(&one.endpoint).unwrap_or_else(|| "start it".to_owned());
    PassedOver {
        warning: Some(
            Diagnostic::warning(&message)
                .note(at)
                .note(TAKES_ITS_PLACE)
                .hint(format!(
                    "{mend}; or unset {variable}; or name the engine that you want: `--engine \
                     docker` fails here, `--engine embedded` asks for no daemon"
                )),
        ),
        reason: message,
        is_for_all: true,
    }
}

/// Says what is waited for, where that takes longer than a moment.
async fn told_while<T>(tell: &dyn Fn(&str), what: &str, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        done = &mut work => done,
        () = tokio::time::sleep(PATIENCE) => {
            tell(&format!("waiting for {what}"));
            work.await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::docker::endpoint::Endpoint;

    fn refused(places: &[(&str, &str, &str)]) -> PassedOver {
        let places: Vec<Refused> = places
            .iter()
            .map(|(host, named_by, why)| Refused {
                endpoint: Endpoint {
                    host: (*host).to_owned(),
                    named_by: (*named_by).to_owned(),
                },
                why: (*why).to_owned(),
            })
            .collect();
        no_daemon(&places)
    }

    #[test]
    fn a_daemon_that_nobody_asked_for_is_passed_over_without_a_warning() {
        let none = refused(&[("unix:///a", "known socket", endpoint::NO_SOCKET)]);
        assert_eq!(none.reason, "there is no container daemon");
        assert!(none.warning.is_none());
        let dead = refused(&[
            ("unix:///a", "known socket", endpoint::NO_SOCKET),
            ("unix:///b", "known socket", "nobody listens at this socket"),
        ]);
        assert_eq!(
            dead.reason,
            "no container daemon answers: nobody listens at this socket"
        );
        assert!(dead.warning.is_none());
    }

    #[test]
    fn a_daemon_that_was_asked_for_is_not_passed_over_in_silence() {
        for (host, named_by, variable) in [
            ("tcp://big:2375", "DOCKER_HOST", "unset DOCKER_HOST"),
            ("", "DOCKER_CONTEXT `work`", "unset DOCKER_CONTEXT"),
            ("unix:///p", "CONTAINER_HOST", "unset CONTAINER_HOST"),
        ] {
            let passed_over = refused(&[(host, named_by, "it does not answer")]);
            // Records hold no place of this machine.
            assert!(!passed_over.reason.contains("://"));
            let warning = passed_over.warning.unwrap().render(false);
            for said in [named_by, host, variable, "--engine embedded"] {
                assert!(warning.contains(said), "{warning}");
            }
        }
    }

    #[tokio::test]
    async fn only_a_long_wait_is_told() {
        let told = std::cell::RefCell::new(Vec::new());
        let tell = |line: &str| told.borrow_mut().push(line.to_owned());
        assert_eq!(told_while(&tell, "x", async { 1 }).await, 1);
        assert!(told.borrow().is_empty());
        let slow = tokio::time::sleep(PATIENCE * 2);
        told_while(&tell, "a registry", slow).await;
        assert_eq!(*told.borrow(), ["waiting for a registry"]);
    }
}
