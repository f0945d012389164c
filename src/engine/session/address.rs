//! Where a server listens, and how its connections get there.

use super::{LOG_LINES, Role, SessionError, log_tail};
use crate::engine::docker::tunnel::Tunnel;
use std::path::PathBuf;
use std::time::Duration;

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
}

impl Address {
    pub(super) fn config(&self, role: Role) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        match &self.host {
            Host::Socket(directory) => config.host_path(directory),
            Host::Loopback { password } => config.host("127.0.0.1").password(password),
            // What connects runs beside the server, where nobody is asked who he is.
            Host::Tunnel(_) => &mut config,
        };
        config.port(self.port).user(role.name());
        config
    }

    /// Whether the server runs on another machine, with a network between.
    pub(in crate::engine) fn is_elsewhere(&self) -> bool {
        matches!(self.host, Host::Tunnel(_))
    }

    /// Why the way to the server broke, where that is known.
    pub(super) fn last_words(&self) -> Option<String> {
        match &self.host {
            Host::Tunnel(tunnel) => tunnel.dialer.last_words(),
            Host::Socket(_) | Host::Loopback { .. } => None,
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
