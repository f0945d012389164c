//! What an existing server says of itself, which is all that is known of it and of its machine.

use super::target::{Consent, Target};
use crate::diagnostic::Diagnostic;
use crate::engine::session::{Session, SessionError};
use crate::exit_code::Failure;
use crate::record::HostEnvironment;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Such as `16.15`.
    pub version: String,
    pub major: u32,
    /// Of the machine: nothing but which server it is, and what `version()` tells.
    pub host: HostEnvironment,
    in_recovery: bool,
}

/// `DROP DATABASE … WITH (FORCE)` came with it.
const OLDEST: u32 = 13;

const ASKED: &str = "SELECT pg_catalog.current_setting('server_version'),
    pg_catalog.current_setting('server_version_num'), pg_catalog.version(),
    pg_catalog.pg_is_in_recovery()";
const IDENTIFIER: &str = "SELECT system_identifier FROM pg_catalog.pg_control_system()";

impl About {
    pub async fn ask(session: &mut Session, target: &Target) -> Result<Self, Failure> {
        let row = session.execute(ASKED).await?.rows.into_iter().next();
        let mut cells = row.unwrap_or_default().into_iter();
        let mut next = || cells.next().flatten().unwrap_or_default();
        let (version, number, string, in_recovery) = (next(), next(), next(), next());
        let identifier = match session.execute(IDENTIFIER).await {
            Ok(result) => result.rows.into_iter().flatten().flatten().next(),
            // Not everybody may ask.
            Err(SessionError::Sql(_)) => None,
            Err(lost) => return Err(lost.into()),
        };
        Ok(Self {
            version: (version.split(' ').next()).unwrap_or_default().to_owned(),
            major: number.parse::<u32>().unwrap_or(0) / 10_000,
            host: host(&string, identifier.as_deref(), target),
            in_recovery: in_recovery == "t",
        })
    }

    /// Whether an article of the pinned version can be measured here.
    pub fn fits(&self, pinned: &str, consent: Consent) -> Result<(), Failure> {
        let refuse =
            |what: String, hint: &str| Err(Failure::Engine(Diagnostic::error(what).hint(hint)));
        let version = &self.version;
        if self.in_recovery {
            return refuse(
                "the server is a standby: no database can be made on it".to_owned(),
                "name the primary",
            );
        }
        if self.major < OLDEST {
            return refuse(
                format!(
                    "the server is Postgres {version}; {OLDEST} is the oldest that can be used"
                ),
                "measure on a newer server",
            );
        }
        let pinned_major = pinned
            .split('.')
            .next()
            .and_then(|major| major.parse().ok());
        if pinned_major != Some(self.major) && !consent.any_version {
            return refuse(
                format!("the server is Postgres {version}, the article is about {pinned}"),
                "name a server of that major version, or measure on this one all the same with \
                 `--any-version`",
            );
        }
        Ok(())
    }
}

const UNKNOWN: &str = "unknown";

/// A cluster has an identifier that it got from initdb and that nobody can reach it by; only where
/// it is not told the address stands for it.
fn host(version: &str, identifier: Option<&str>, target: &Target) -> HostEnvironment {
    let which = match identifier {
        Some(identifier) => format!("system {identifier}"),
        None => target.address(),
    };
    // `PostgreSQL 16.15 on x86_64-pc-linux-gnu, compiled by …`
    let platform = version
        .split_once(" on ")
        .and_then(|(_, rest)| rest.split(',').next())
        .unwrap_or(UNKNOWN);
    let mut host = HostEnvironment {
        cpu: format!("an existing server ({which})"),
        cores: 0,
        memory_bytes: UNKNOWN.to_owned(),
        architecture: platform.to_owned(),
        kernel: UNKNOWN.to_owned(),
        virtualization: UNKNOWN.to_owned(),
        storage: UNKNOWN.to_owned(),
        sha256: String::new(),
    };
    host.sha256 = host.hash();
    host
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(version: &str, in_recovery: bool) -> About {
        About {
            version: version.into(),
            major: version.split('.').next().unwrap().parse().unwrap(),
            host: HostEnvironment::default(),
            in_recovery,
        }
    }

    #[test]
    fn another_major_version_is_measured_only_when_asked_for() {
        let consent = |any_version| Consent {
            any_version,
            ..Consent::default()
        };
        for (version, in_recovery, any_version, says) in [
            ("16.15", false, false, ""),
            ("16.2", false, false, ""),
            ("18.6", false, false, "the article is about 16.15"),
            ("18.6", false, true, ""),
            ("12.22", false, true, "oldest that can be used"),
            ("16.15", true, false, "is a standby"),
        ] {
            let told = match about(version, in_recovery).fits("16.15", consent(any_version)) {
                Ok(()) => String::new(),
                Err(Failure::Engine(told)) => told.render(false),
                Err(other) => panic!("{other:?}"),
            };
            assert_eq!(told.is_empty(), says.is_empty(), "{version}: {told}");
            assert!(told.contains(says), "{told}");
        }
    }
}
