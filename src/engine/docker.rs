//! The docker engine: the pinned image in a container of Docker or Podman. The container has no
//! network, no capability and a read-only root; it is reached by a socket in a folder that it
//! shares with this machine, and it dies with this program, also on `kill -9`.
//!
//! [`DockerServer::start`]: daemon → strays of dead runs removed → image (pulled where it is
//! missing) → container with a data directory → settings → server, ready once a login has answered.

mod container;
pub(super) mod doctor;
mod endpoint;
mod error;
mod guard;
mod image;
mod program;
mod strays;
mod template;

use super::StartRequest;
use super::embedded::cache::{Cache, RunDirectory};
use super::session::{Address, Host, Role, Session, log_tail};
use super::settings::{check_settings, setting_complaints, settings_file};
use crate::diagnostic::Diagnostic;
use crate::exit_code::Failure;
use container::{Container, Design, Limits, PORT, Reach};
use endpoint::Daemon;
use image::Image;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A running server. Dropping it ends its container.
#[derive(Debug)]
pub struct DockerServer {
    container: Option<Container>,
    daemon: Daemon,
    image: Image,
    settings: BTreeMap<String, String>,
    address: Address,
    /// What the container was granted, as the daemon says, and what it runs.
    facts: BTreeMap<String, String>,
    /// Who the data directory belongs to.
    owner: (u32, u32),
    /// How often the server was started.
    starts: usize,
    // Last: its folder goes after the container.
    _run: RunDirectory,
}

const LOG: &str = "log";
const SOCKET: &str = "socket";
/// As long as recovery and a large shared memory may take.
const START_LIMIT: Duration = Duration::from_secs(120);
const ENDED: &str = "remeasure: the server ended with status";

impl DockerServer {
    pub async fn start(request: &StartRequest<'_>) -> Result<Self, Failure> {
        check_settings(request.settings)?;
        let Some(pinned) = &request.pin.image else {
            return Err(Failure::Engine(
                Diagnostic::error(format!(
                    "Postgres {} has no pinned image",
                    request.pin.version
                ))
                .hint("add `image:` with its digest to pins.yaml"),
            ));
        };
        let (daemon, _) = endpoint::connect().await.map_err(Failure::Engine)?;
        if !daemon.is_here() {
            return Err(Failure::Engine(
                Diagnostic::error(format!(
                    "a daemon at `{}` is not supported by this build",
                    daemon.endpoint.host
                ))
                .note("the server is reached by a socket or a port of this machine")
                .hint("use a daemon of this machine, or `--engine embedded`"),
            ));
        }
        strays::remove(&daemon)
            .await
            .map_err(|error| error::failure("tell of its containers", &error))?;
        let image = image::present(&daemon, pinned, request.offline, request.progress).await?;
        let unusable = |error: std::io::Error| Failure::io("use", request.cache, &error);
        let cache = Cache::open(request.cache).map_err(unusable)?;
        let template = template::template(
            &daemon,
            &image,
            request.pin,
            request.cache,
            request.progress,
        )
        .await?;
        let run = cache.run_directory().map_err(unusable)?;
        let socket = match shares_sockets(&daemon) {
            true => Some(socket_directory(&run, template.owner).map_err(unusable)?),
            false => None,
        };
        let container = Container::create(
            &daemon,
            &Design {
                image: &image,
                script: include_str!("docker/supervisor.sh"),
                arguments: arguments(socket.is_some()),
                reach: socket.as_deref().map_or(Reach::Port, Reach::Socket),
                limits: limits(request)?,
            },
        )
        .await?;
        let mut server = Self {
            container: Some(container),
            daemon,
            image,
            settings: request.settings.clone(),
            address: Address {
                host: match socket {
                    Some(directory) => Host::Socket(directory),
                    None => Host::Loopback {
                        password: password().map_err(unusable)?,
                    },
                },
                port: PORT,
                log: run.path().join(LOG),
            },
            facts: BTreeMap::new(),
            owner: template.owner,
            starts: 0,
            _run: run,
        };
        let log = server.address.log.clone();
        let container = server.container_mut()?;
        // The container starts at once and is filled afterwards: what is attached to dies with us.
        container.start(Some(&log)).await?;
        container.upload(&template.folder, template.tar).await?;
        server.open_the_port().await?;
        server.launch(&BTreeMap::new()).await?;
        server.facts = server.read_facts().await?;
        Ok(server)
    }

    /// Where the server is reached by a port: gives its roles their password, lets nobody in
    /// without it, and asks which port it is.
    async fn open_the_port(&mut self) -> Result<(), Failure> {
        let Host::Loopback { password } = &self.address.host else {
            return Ok(());
        };
        let container = self.container()?;
        // Only what Postgres keeps of a password is seen by others, among the processes.
        let kept = postgres_protocol::password::scram_sha_256(password.as_bytes());
        let sql: String = [Role::Tool, Role::Author]
            .map(|role| format!("ALTER ROLE {} PASSWORD '{kept}';\n\n", role.name()))
            .concat();
        let script = "chmod 0700 \"$PGDATA\" && printf '%s' \"$1\" | postgres --single -j -F -D \"$PGDATA\" template1";
        container
            .run(&["sh", "-c", script, "sh", &sql])
            .await
            .map_err(|said| {
                Failure::Engine(Diagnostic::error("no password can be set").note(said))
            })?;
        let (folder, below) = template::place(&self.image);
        let rules = "local all all trust\nhost all all all scram-sha-256\n";
        let tar =
            packed(&below, &[("pg_hba.conf", rules.to_owned())], self.owner).map_err(|error| {
                Failure::io("pack the rules of", Path::new(&self.image.data), &error)
            })?;
        container.upload(&folder, tar).await?;
        self.address.port = container.published_port().await?;
        Ok(())
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// As pinned: of the image's index.
    pub fn digest(&self) -> String {
        self.image.digest.clone()
    }

    /// Such as `overlay2`… is the daemon's matter; what is known is where it runs.
    pub fn storage(&self) -> String {
        format!("a volume of {}", self.daemon.version)
    }

    pub fn facts(&self) -> BTreeMap<String, String> {
        self.facts.clone()
    }

    async fn read_facts(&self) -> Result<BTreeMap<String, String>, Failure> {
        let granted = self.container()?.granted().await?;
        let amount = |value: Option<i64>| value.map(|value| value.to_string());
        let facts = [
            ("daemon", Some(self.daemon.version.clone())),
            ("image", Some(self.image.id.clone())),
            ("platform", Some(self.image.platform.clone())),
            ("memory_bytes", amount(granted.memory_bytes)),
            (
                "cpus",
                granted
                    .nano_cpus
                    .map(|nano| (nano as f64 / 1e9).to_string()),
            ),
            ("shm_bytes", amount(granted.shm_bytes)),
        ];
        Ok(facts
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect())
    }

    pub fn log_tail(&self, lines: usize) -> String {
        log_tail(&self.address.log, lines)
    }

    pub async fn restart(&mut self, settings: &BTreeMap<String, String>) -> Result<(), Failure> {
        check_settings(settings)?;
        self.shut_down().await?;
        self.launch(settings).await
    }

    /// Ends the server in the container, where it runs; a start that failed leaves none.
    async fn shut_down(&mut self) -> Result<(), Failure> {
        let before = self.ends();
        if before == self.starts {
            return Ok(());
        }
        let stop = [
            "pg_ctl",
            "--mode",
            "fast",
            "--wait",
            "--timeout",
            "300",
            "stop",
        ];
        self.container()?.run(&stop).await.map_err(|said| {
            Failure::Engine(Diagnostic::error("the server does not stop").note(said))
        })?;
        while self.ends() == before && !self.container()?.has_ended() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    pub async fn stop(mut self) -> Result<(), Failure> {
        match self.container.take() {
            Some(container) => container.remove().await,
            None => Ok(()),
        }
    }

    fn container(&self) -> Result<&Container, Failure> {
        let gone = || Failure::internal("the container is gone");
        self.container.as_ref().ok_or_else(gone)
    }

    fn container_mut(&mut self) -> Result<&mut Container, Failure> {
        let gone = || Failure::internal("the container is gone");
        self.container.as_mut().ok_or_else(gone)
    }

    /// How often the server has ended.
    fn ends(&self) -> usize {
        let printed = self.container.as_ref().map(Container::printed);
        printed.unwrap_or_default().matches(ENDED).count()
    }

    /// Writes the settings, starts the server, and waits until a login is answered.
    async fn launch(&mut self, more_settings: &BTreeMap<String, String>) -> Result<(), Failure> {
        let mut settings = self.settings.clone();
        settings.extend(
            more_settings
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        let data = self.image.data.clone();
        let (folder, below) = template::place(&self.image);
        let files = [
            ("remeasure.conf", settings_file(&settings)),
            // What `ALTER SYSTEM` has set since would go before them.
            ("postgresql.auto.conf", String::new()),
        ];
        let tar = packed(&below, &files, self.owner)
            .map_err(|error| Failure::io("pack the settings of", Path::new(&data), &error))?;
        let printed_before = self.container()?.printed().len();
        let ends_before = self.ends();
        self.container()?.upload(&folder, tar).await?;
        self.container_mut()?.write("start\n").await?;
        self.starts += 1;
        let deadline = Instant::now() + START_LIMIT;
        loop {
            if let Ok(session) = Session::connect(&self.address, "postgres", Role::Tool).await {
                session.close().await;
                return Ok(());
            }
            let ended = self.ends() > ends_before || self.container()?.has_ended();
            if ended || Instant::now() >= deadline {
                let why = if ended {
                    "it ended"
                } else {
                    "it was not ready in time"
                };
                return Err(self.start_failure(why, printed_before, &settings).await);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn start_failure(
        &self,
        why: &str,
        printed_before: usize,
        settings: &BTreeMap<String, String>,
    ) -> Failure {
        let Ok(container) = self.container() else {
            return Failure::internal("the container is gone");
        };
        let printed = container.printed();
        let log = printed.get(printed_before..).unwrap_or(&printed);
        let complaints = setting_complaints(log, settings);
        if !complaints.is_empty() {
            return Failure::Article(complaints);
        }
        let mut diagnostic = Diagnostic::error(format!("Postgres does not start: {why}"))
            .note(format!("its log ends with:\n{}", self.log_tail(20)));
        if container.ran_out_of_memory().await {
            diagnostic =
                diagnostic.hint("the container ran out of memory: raise `postgres: memory`");
        }
        Failure::Engine(diagnostic)
    }
}

fn arguments(socket: bool) -> Vec<String> {
    let listen = if socket {
        "listen_addresses="
    } else {
        "listen_addresses=*"
    };
    [
        "-k",
        "/var/run/postgresql",
        "-p",
        "5432",
        "-c",
        listen,
        "-c",
        "unix_socket_permissions=0777",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// A tar of small files.
fn packed(folder: &Path, files: &[(&str, String)], owner: (u32, u32)) -> std::io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_uid(owner.0.into());
        header.set_gid(owner.1.into());
        tar.append_data(&mut header, folder.join(name), content.as_bytes())?;
    }
    tar.into_inner()
}

/// The folder that the container's server makes its socket in: nobody else may enter it.
fn socket_directory(run: &RunDirectory, owner: (u32, u32)) -> std::io::Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let directory = run.directory_elsewhere()?.join(SOCKET);
    std::fs::create_dir(&directory)?;
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o700))?;
    std::os::unix::fs::chown(&directory, Some(owner.0), Some(owner.1))?;
    Ok(directory)
}

/// A socket in a shared folder is quicker than a port and needs no network, but only root can give
/// the folder to the container's user.
fn shares_sockets(daemon: &Daemon) -> bool {
    // SAFETY: takes nothing and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    cfg!(target_os = "linux") && root && daemon.endpoint.host.starts_with("unix://")
}

/// 128 random bits.
fn password() -> std::io::Result<String> {
    use std::io::Read;
    let mut bits = [0_u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bits)?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn limits(request: &StartRequest<'_>) -> Result<Limits, Failure> {
    let asked = &request.limits;
    let bytes = |name: &str, value: Option<&str>| match value {
        None => Ok(None),
        Some(value) => memory_bytes(value).map(Some).ok_or_else(|| {
            Failure::article(
                Diagnostic::error(format!("`{name}: {value}` is no size"))
                    .hint("write a number with kB, MB, GB or TB"),
            )
        }),
    };
    let shared = bytes("shm_size", asked.shm_size)?;
    let cpus = asked.cpus.and_then(|cpus| cpus.parse::<f64>().ok());
    Ok(Limits {
        memory_bytes: bytes("memory", asked.memory)?,
        nano_cpus: cpus.map(|cpus| (cpus * 1e9) as i64),
        shm_bytes: Some(shared.unwrap_or_else(|| shared_memory(request.settings))),
    })
}

/// What `/dev/shm` must hold: parallel workers share their memory there, an index build as much as
/// `maintenance_work_mem`, a hash join a multiple of `work_mem`.
fn shared_memory(settings: &BTreeMap<String, String>) -> i64 {
    const MEGABYTE: i64 = 1 << 20;
    let of = |name: &str, default: i64| {
        settings
            .get(name)
            .and_then(|value| memory_bytes(value))
            .unwrap_or(default)
    };
    let work = of("work_mem", 4 * MEGABYTE);
    let maintenance = of("maintenance_work_mem", 64 * MEGABYTE);
    64 * MEGABYTE + 2 * maintenance + 16 * work.max(4 * MEGABYTE)
}

/// `512MB` as Postgres means it; a number alone is in kB, as these settings have it.
fn memory_bytes(value: &str) -> Option<i64> {
    let value = value.trim();
    let digits = value
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(value.len());
    let number: i64 = value[..digits].parse().ok()?;
    let unit = match value[digits..].trim() {
        "B" => 1,
        "" | "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1_i64 << 40,
        _ => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_grows_with_the_settings() {
        let settings = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect()
        };
        let megabytes = |pairs: &[(&str, &str)]| shared_memory(&settings(pairs)) >> 20;
        assert_eq!(megabytes(&[]), 256);
        assert_eq!(
            megabytes(&[("maintenance_work_mem", "1GB")]),
            64 + 2048 + 64
        );
        assert_eq!(megabytes(&[("work_mem", "65536")]), 64 + 128 + 1024);
    }
}
