//! Which engine: what `--engine` names, and for `auto` the best that can be had here.
//!
//! [`Engines::choose`] decides once for each version in a run of this program, so that a plan, a
//! status and a build mean the same server. [`Engines::settle`] keeps a promise: an image that was
//! said to be had is pulled before anything is measured, and where that fails `auto` takes the other
//! engine after all.

use super::docker::choice::{self as docker, PassedOver, Taken};
use super::pins::Pin;
use super::{EngineChoice, embedded, url};
use crate::diagnostic::Diagnostic;
use crate::exit_code::Failure;
use crate::record::HostEnvironment;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Said beside what keeps docker from being used.
pub const TAKES_ITS_PLACE: &str =
    "the embedded engine takes its place, as `--engine auto` means it";

/// The engines of one run of this program. Clones share what is decided.
#[derive(Clone, Debug)]
pub struct Engines {
    /// What `--engine` names.
    pub asked: EngineChoice,
    /// Fetch nothing.
    pub offline: bool,
    /// Told what is waited for.
    tell: fn(&str),
    decided: Arc<Mutex<Decided>>,
}

#[derive(Debug, Default)]
struct Decided {
    /// By version, image and platform.
    identities: BTreeMap<String, Identity>,
    /// Why no version can have docker.
    no_daemon: Option<String>,
    warnings: Vec<Diagnostic>,
}

/// What a server will be, before one runs: results are reused by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub engine: &'static str,
    /// What [`super::start`] has to be asked for.
    pub choice: EngineChoice,
    /// Why this engine.
    pub reason: String,
    /// sha256 of the archive, or the image's digest; None: unpinned.
    pub digest: Option<String>,
    /// What runs, where that is not what is pinned.
    pub version: Option<String>,
    /// Where it runs, where that is known before it does.
    pub host: Option<HostEnvironment>,
    /// The engine that `auto` would rather have had, with why not.
    pub passed_over: Option<String>,
    /// The image is said to be had, and still has to be pulled.
    pub is_promised: bool,
}

impl Engines {
    pub fn new(asked: EngineChoice, offline: bool, tell: fn(&str)) -> Self {
        Self {
            asked,
            offline,
            tell,
            decided: Arc::default(),
        }
    }

    /// Decides on an engine for a version and says why. `platform`: what the article asks of a
    /// container, as in [`super::Limits`].
    pub async fn choose(&self, pin: &Pin, platform: Option<&str>) -> Result<Identity, Failure> {
        let key = key(pin, platform);
        let known = self.decided().identities.get(&key).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let identity = match &self.asked {
            EngineChoice::Auto => self.best(pin, platform).await?,
            named => named_identity(named, pin, platform)?,
        };
        self.remember(key, &identity);
        Ok(identity)
    }

    /// Pulls the image that `auto` counts on, and takes the embedded engine where that fails. What it
    /// came to, where something was left to settle.
    pub async fn settle(
        &self,
        pin: &Pin,
        platform: Option<&str>,
    ) -> Result<Option<Identity>, Failure> {
        let key = key(pin, platform);
        let known = self.decided().identities.get(&key).cloned();
        let Some(promised) = known.filter(|known| known.is_promised) else {
            return Ok(None);
        };
        let identity = match docker::pull(pin, platform, &self.tell).await {
            Ok(reason) => Identity {
                reason,
                is_promised: false,
                ..promised
            },
            Err(PassedOver {
                reason, warning, ..
            }) => {
                self.decided().warnings.extend(warning);
                instead(pin, platform, reason)?
            }
        };
        self.remember(key, &identity);
        Ok(Some(identity))
    }

    /// What was passed over and should not be in silence; each is given once.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.decided().warnings)
    }

    async fn best(&self, pin: &Pin, platform: Option<&str>) -> Result<Identity, Failure> {
        if embedded::is_a_folder_named() {
            let mut identity = named_identity(&EngineChoice::Embedded, pin, platform)?;
            identity.reason = format!("{} names its programs", embedded::FOLDER_VARIABLE);
            return Ok(identity);
        }
        let no_daemon = self.decided().no_daemon.clone();
        if let Some(reason) = no_daemon {
            return instead(pin, platform, reason);
        }
        match docker::consider(pin, platform, self.offline, &self.tell).await {
            Ok(Taken {
                reason,
                image_is_here,
            }) => Ok(Identity {
                reason,
                is_promised: !image_is_here,
                ..named_identity(&EngineChoice::Docker, pin, platform)?
            }),
            Err(PassedOver {
                reason,
                warning,
                is_for_all,
            }) => {
                let mut decided = self.decided();
                decided.warnings.extend(warning);
                decided.no_daemon = is_for_all.then(|| reason.clone());
                drop(decided);
                instead(pin, platform, reason)
            }
        }
    }

    fn remember(&self, key: String, identity: &Identity) {
        self.decided().identities.insert(key, identity.clone());
    }

    fn decided(&self) -> std::sync::MutexGuard<'_, Decided> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Identity {
    /// What is told where the server of this engine cannot be had: also why no other engine is.
    pub fn with_both_reasons(&self, failure: Failure) -> Failure {
        match (failure, &self.passed_over) {
            (Failure::Engine(problem), Some(reason)) => {
                Failure::Engine(problem.note(format!("the docker engine is not used: {reason}")))
            }
            (Failure::Engine(problem), None)
                if self.choice == EngineChoice::Docker && problem.hint.is_none() =>
            {
                Failure::Engine(problem.hint("`--engine embedded` needs no container"))
            }
            (failure, _) => failure,
        }
    }
}

fn key(pin: &Pin, platform: Option<&str>) -> String {
    let digest = pin.image.as_ref().map(|image| image.digest.as_str());
    format!(
        "{} {} {}",
        pin.version,
        digest.unwrap_or_default(),
        platform.unwrap_or_default()
    )
}

/// The embedded engine, where docker cannot be had; or why neither can.
fn instead(pin: &Pin, platform: Option<&str>, docker: String) -> Result<Identity, Failure> {
    match named_identity(&EngineChoice::Embedded, pin, platform) {
        Ok(identity) => Ok(Identity {
            reason: docker.clone(),
            passed_over: Some(docker),
            ..identity
        }),
        Err(Failure::Engine(problem)) => {
            let both =
                Diagnostic::error(format!("no engine can be had for Postgres {}", pin.version))
                    .note(format!("docker: {docker}"))
                    .note(format!("embedded: {}", problem.message));
            let start = "start Docker or Podman (`remeasure doctor` tells what was tried)";
            Err(Failure::Engine(match problem.hint {
                Some(hint) => both.hint(format!("{start}; or {hint}")),
                None => both.hint(start),
            }))
        }
        Err(failure) => Err(failure),
    }
}

/// Of an engine that is named; nothing is asked for it.
fn named_identity(
    choice: &EngineChoice,
    pin: &Pin,
    platform: Option<&str>,
) -> Result<Identity, Failure> {
    let (mut version, mut host) = (None, None);
    let (engine, reason, digest) = match choice {
        EngineChoice::Auto | EngineChoice::Embedded => {
            embedded::refuse_platform(platform)?;
            (
                "embedded",
                "asked for".to_owned(),
                embedded::pinned_digest(pin)?,
            )
        }
        EngineChoice::Docker => {
            let digest = pin.image.as_ref().map(|image| image.digest.clone());
            ("docker", "asked for".to_owned(), digest)
        }
        EngineChoice::Url(target) => {
            let about = url::about(target)?;
            version = Some(about.version);
            host = Some(about.host);
            let reason = "an existing server was asked for".to_owned();
            ("url", reason, None)
        }
        EngineChoice::Fake(file) => ("fake", format!("answers from {}", file.display()), None),
    };
    Ok(Identity {
        engine,
        choice: match choice {
            EngineChoice::Auto => EngineChoice::Embedded,
            named => named.clone(),
        },
        reason,
        digest,
        version,
        host,
        passed_over: None,
        is_promised: false,
    })
}
