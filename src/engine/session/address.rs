//! Where a server listens, and how its connections get there.

use super::{Role, SessionError};
use crate::engine::docker::tunnel::Tunnel;
use crate::engine::url::{Connector, Reached};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::config::SslMode;

/// Where a server listens, and its log.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Address {
    pub host: Host,
    /// In a container, whose limits and system files are not this process's.
    pub contained: bool,
    pub port: u16,
    pub log: PathBuf,
}

#[derive(Clone, Debug)]
pub(in crate::engine) enum Host {
    /// A folder with the socket; who may enter it may connect.
    Socket(PathBuf),
    /// A port of this machine's loopback interface, with the password of all roles.
    Loopback { password: String },
    /// Through the container daemon of another machine.
    Tunnel(Tunnel),
    /// Wherever a URL leads to, as whom it says.
    Existing(Arc<Reached>),
}

impl Address {
    pub(super) fn config(&self, role: Role) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        match &self.host {
            Host::Socket(directory) => config.host_path(directory),
            Host::Loopback { password } => config.host("127.0.0.1").password(password),
            // What connects runs beside the server, where nobody is asked who he is.
            Host::Tunnel(_) => &mut config,
            Host::Existing(reached) => return reached.config(),
        };
        config
            .port(self.port)
            .user(role.name())
            .ssl_mode(SslMode::Disable)
            .connect_timeout(Duration::from_secs(30));
        config
    }

    pub(super) fn connector(&self) -> Connector {
        match &self.host {
            Host::Existing(reached) => reached.connector(),
            Host::Socket(_) | Host::Loopback { .. } | Host::Tunnel(_) => Connector::default(),
        }
    }

    /// Whether the server runs on another machine, with a network between.
    pub(in crate::engine) fn is_elsewhere(&self) -> bool {
        match &self.host {
            Host::Socket(_) | Host::Loopback { .. } => false,
            Host::Tunnel(_) => true,
            Host::Existing(reached) => reached.way().is_some(),
        }
    }

    /// The network that leads to an existing server.
    pub(in crate::engine) fn way(&self) -> Option<&'static str> {
        match &self.host {
            Host::Existing(reached) => reached.way(),
            Host::Socket(_) | Host::Loopback { .. } | Host::Tunnel(_) => None,
        }
    }

    /// Why the way to the server broke, where that is known.
    pub(super) fn last_words(&self) -> Option<String> {
        match &self.host {
            Host::Tunnel(tunnel) => tunnel.dialer.last_words(),
            Host::Socket(_) | Host::Loopback { .. } | Host::Existing(_) => None,
        }
    }

    /// How long after a request to cancel it is asked again.
    pub(super) fn patience(&self) -> Duration {
        Duration::from_millis(if self.is_elsewhere() { 2000 } else { 500 })
    }

    pub(super) fn unreached(&self, error: &std::io::Error) -> SessionError {
        let log = log_tail(&self.log, LOG_LINES);
        let message = format!("no connection through the container daemon: {error}");
        SessionError::Lost { message, log }
    }

    /// Process id, data directory and time of start, as the postmaster writes them beside its
    /// socket: another server at the same place has others. None where there is no socket.
    pub(super) fn postmaster(&self) -> Option<String> {
        let Host::Socket(directory) = &self.host else {
            return None;
        };
        let file = format!(".s.PGSQL.{}.lock", self.port);
        std::fs::read_to_string(directory.join(file)).ok()
    }
}

/// Lines of the server's log that go with an error.
pub(super) const LOG_LINES: usize = 20;

/// The last lines of a log file; empty where there is none.
pub(in crate::engine) fn log_tail(path: &Path, lines: usize) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(path)?;
        let length = file.metadata()?.len();
        // Lines of a log are short; 64 KiB hold more than anyone asks for.
        file.seek(SeekFrom::Start(length.saturating_sub(64 << 10)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    // A container's first process prints what is for us alone.
    let ours = |line: &&str| line.starts_with("remeasure: ");
    let all: Vec<_> = text.lines().filter(|line| !ours(line)).collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
