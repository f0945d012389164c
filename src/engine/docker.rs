//! The docker engine: the pinned image in a container of Docker or Podman. The container has no
//! network, no capability and a read-only root; it is reached by a socket in a folder that it
//! shares with this machine, else by a port, and it dies with this program, also on `kill -9`.
//!
//! [`DockerServer::start`]: daemon → strays of dead runs removed → image (pulled where it is
//! missing) → container with a data directory → settings → server, ready once a login has answered.

pub(super) mod choice;
mod container;
mod dial;
pub(super) mod doctor;
pub(super) mod endpoint;
mod error;
mod guard;
mod image;
mod limits;
mod machine;
mod place;
mod program;
mod ssh;
pub(super) mod strays;
mod template;
mod tls;
pub(super) mod tunnel;

use super::cache::{Cache, RunDirectory};
use super::cause::{self, Known};
use super::machine::Machine;
use super::pins::Pin;
use super::session::{Address, Host, Role, Session, log_tail};
use super::settings::{check_settings, setting_complaints, settings_file};
use super::storage;
use super::{StartRequest, start_limit};
use crate::diagnostic::Diagnostic;
use crate::exit_code::Failure;
use container::{Container, Design, PORT, Reach, State};
use endpoint::Daemon;
use image::Image;
use limits::{ALL_GRANTED, Granted, Limits};
use place::Place;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tunnel::Tunnel;

/// A running server. Dropping it ends its container.
#[derive(Debug)]
pub struct DockerServer {
    container: Option<Container>,
    daemon: Daemon,
    image: Image,
    settings: BTreeMap<String, String>,
    address: Address,
    machine: Machine,
    /// What the container was granted, and what it runs.
    facts: BTreeMap<String, String>,
    place: Place,
    /// How many processes it may have.
    processes: i64,
    /// How often the server was started.
    starts: usize,
    // Last: its folder goes after the container.
    _run: Arc<RunDirectory>,
}

const LOG: &str = "log";
/// How long after its client's connection the server's log may be behind.
const LOG_DELAY: Duration = Duration::from_millis(500);
/// A daemon in trouble must not keep who waits for the reason.
const ASK_LIMIT: Duration = Duration::from_secs(10);

/// The machine that the containers of the daemon that answers run on.
pub async fn machine_of(
    pin: &Pin,
    platform: Option<&str>,
    cache: &Path,
    fetch: bool,
    progress: &dyn Fn(&str),
) -> Result<Machine, Failure> {
    let unknown = || Machine::Elsewhere(Box::default());
    let (daemon, _) = match endpoint::connect().await {
        Ok(found) => found,
        // What is measured already can be looked at without the daemon that it was measured by.
        Err(_) if !fetch && !endpoint::is_remote() => {
            let known =
                (endpoint::here().iter()).find_map(|endpoint| machine::last_known(endpoint, cache));
            return Ok(known.unwrap_or_else(|| Machine::Here {
                storage: "unknown".to_owned(),
            }));
        }
        Err(problem) => return Err(Failure::Engine(problem)),
    };
    let shared = place::shares_folders(&daemon).await;
    // Who only looks makes no container: what is not known yet is asked before something is measured.
    let image = match &pin.image {
        Some(pinned) if fetch && !shared => {
            Some(image::present(&daemon, pinned, platform, false, progress).await?)
        }
        _ => None,
    };
    let machine = DockerServer::machine(&daemon, image.as_ref(), cache, shared).await?;
    Ok(machine.unwrap_or_else(unknown))
}

impl DockerServer {
    /// Where folders are shared the data directory is in the cache of this machine.
    async fn machine(
        daemon: &Daemon,
        image: Option<&Image>,
        cache: &Path,
        shared: bool,
    ) -> Result<Option<Machine>, Failure> {
        match shared {
            true => Ok(Some(Machine::Here {
                storage: storage::of(cache),
            })),
            false => machine::machine(daemon, image, cache).await,
        }
    }

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
        let strays = strays::find(&daemon)
            .await
            .map_err(|error| error::failure("tell of its containers", &error))?;
        strays::remove(&daemon, &strays).await;
        let image = image::present(
            &daemon,
            pinned,
            request.limits.platform,
            request.offline,
            request.progress,
        )
        .await?;
        let unusable = |error: std::io::Error| Failure::io("use", request.cache, &error);
        let cache = Cache::open(request.cache).map_err(unusable)?;
        let shared = place::shares_folders(&daemon).await;
        let (pin, progress) = (request.pin, request.progress);
        let template = template::template(&daemon, &image, pin, &cache, shared, progress).await?;
        let machine = Self::machine(&daemon, Some(&image), request.cache, shared).await?;
        let machine = machine.ok_or_else(|| Failure::internal("a machine is not asked"))?;
        let run = Arc::new(cache.run_directory().map_err(unusable)?);
        let place = Place::new(&image, &template, &run).map_err(unusable)?;
        let limits = Limits::asked(request)?;
        let reach = place.reach(daemon.is_here());
        let design = Design {
            image: &image,
            script: include_str!("docker/supervisor.sh"),
            arguments: arguments(reach),
            reach,
            user: place.user(),
            limits: limits.clone(),
        };
        let log = run.path().join(LOG);
        // The container starts at once and is filled meanwhile or afterwards: what is attached to
        // dies with us.
        let copying = {
            let (copying, run) = (place.copying(&template), Arc::clone(&run));
            tokio::task::spawn_blocking(move || {
                let copied = copying();
                // Not before, also where this program is interrupted: the folder goes with it.
                drop(run);
                copied
            })
        };
        let mut container = Container::create(&daemon, &design).await?;
        container.start(Some(&log)).await?;
        let copied = copying.await.map_err(std::io::Error::other);
        copied.flatten().map_err(unusable)?;
        place.unpack(&container, template).await?;
        let mut server = Self {
            settings: request.settings.clone(),
            address: Address {
                host: match (place.socket(), &daemon.dialer) {
                    (Some(directory), _) => Host::Socket(directory.to_owned()),
                    (None, None) => Host::Loopback {
                        password: password().map_err(unusable)?,
                    },
                    (None, Some(dialer)) => Host::Tunnel(Tunnel {
                        docker: daemon.docker.clone(),
                        container: container.name().to_owned(),
                        port: PORT,
                        dialer: dialer.clone(),
                    }),
                },
                contained: true,
                port: PORT,
                log,
            },
            container: Some(container),
            machine,
            daemon,
            image,
            facts: BTreeMap::new(),
            place,
            processes: limits.processes.unwrap_or(0),
            starts: 0,
            _run: run,
        };
        server.open_the_port().await?;
        server.launch(&BTreeMap::new()).await?;
        let granted = server.granted().await?;
        for line in granted.differs_from(&limits) {
            progress(&line);
        }
        server.facts = server.facts_with(&granted);
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
        let rules = "local all all trust\nhost all all all scram-sha-256\n";
        let files = [("pg_hba.conf", rules.to_owned())];
        self.place.write(container, &files).await?;
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

    /// The image's platform, and the one of the daemon that emulates it.
    pub fn emulation(&self) -> Option<(&str, &str)> {
        let on = self.image.emulated_on.as_deref()?;
        Some((&self.image.platform, on))
    }

    /// Filesystem and device of the data directory.
    pub fn storage(&self) -> &str {
        match &self.machine {
            Machine::Here { storage } => storage,
            Machine::Elsewhere(facts) => &facts.storage,
        }
    }

    /// How a daemon on another machine is reached.
    pub fn way(&self) -> Option<&'static str> {
        self.daemon.dialer.as_ref().map(dial::Dialer::name)
    }

    pub fn facts(&self) -> BTreeMap<String, String> {
        self.facts.clone()
    }

    /// As the container's first process has printed it, which is before the server's own words.
    async fn granted(&self) -> Result<Granted, Failure> {
        let container = self.container()?;
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            let printed = container.printed();
            if printed.contains(ALL_GRANTED) || Instant::now() >= deadline {
                return Ok(Granted::read(&printed));
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn facts_with(&self, granted: &Granted) -> BTreeMap<String, String> {
        let of_the_daemon = [
            ("daemon", Some(self.daemon.version.clone())),
            ("image", Some(self.image.id.clone())),
            ("config", self.image.config.clone()),
            ("manifest", self.image.manifest.clone()),
            ("platform", Some(self.image.platform.clone())),
            ("emulated_on", self.image.emulated_on.clone()),
        ];
        let of_the_daemon = of_the_daemon
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        (of_the_daemon.chain(granted.facts()))
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    pub fn log_tail(&self, lines: usize) -> String {
        log_tail(&self.address.log, lines)
    }

    /// Asks the daemon and the container what has become of them.
    pub async fn explain(&self, diagnostic: Diagnostic) -> Diagnostic {
        // What the server printed comes by way of the daemon.
        tokio::time::sleep(LOG_DELAY).await;
        let mut seen = Vec::new();
        let shared = self.place.volume();
        let mut disk = shared.map_or_else(|| self.storage().to_owned(), storage::room);
        let asked = async {
            let container = self.container.as_ref()?;
            let state = container.state().await;
            if state == State::Running {
                if let Some(kills) = container.kills_for_memory().await {
                    seen.push(kills);
                }
                if shared.is_none()
                    && let Some(room) = container.room(&self.image.data).await
                {
                    disk = format!("{disk}; {room}");
                }
            }
            Some(state)
        };
        match tokio::time::timeout(ASK_LIMIT, asked).await {
            Ok(Some(state)) => seen.extend(state.told()),
            Ok(None) => {}
            Err(_) => seen.push("the container daemon does not answer any more".to_owned()),
        }
        let known = Known {
            log: self.log_tail(20),
            disk,
            memory_hint: match self.facts.get("memory_bytes") {
                Some(bytes) => format!(
                    "the container ran out of memory, which is limited to {bytes} bytes: raise \
                     `postgres: memory`, or let the article use less"
                ),
                None => "a process is killed for want of memory: let the article use less, or see \
                         what else runs on the daemon's machine"
                    .to_owned(),
            },
            seen,
        };
        cause::explain(diagnostic, known)
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
        self.container.as_ref().map_or(0, Container::server_ends)
    }

    /// Writes the settings, starts the server, and waits until a login is answered.
    async fn launch(&mut self, more_settings: &BTreeMap<String, String>) -> Result<(), Failure> {
        let mut settings = self.settings.clone();
        settings.extend(
            more_settings
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        let files = [
            ("remeasure.conf", settings_file(&settings)),
            // What `ALTER SYSTEM` has set since would go before them.
            ("postgresql.auto.conf", String::new()),
        ];
        let container = self.container()?;
        let printed_before = container.printed_bytes();
        let ends_before = self.ends();
        match self.starts {
            0 => self.place.write_first(container, &files).await?,
            _ => self.place.write(container, &files).await?,
        }
        let processes = limits::processes(&settings);
        if processes > self.processes {
            container.allow_processes(processes).await?;
            self.processes = processes;
        }
        self.container_mut()?.write("start\n").await?;
        self.starts += 1;
        let limit = start_limit();
        let deadline = Instant::now() + limit;
        loop {
            // A container that stands still takes the connection and answers nothing.
            let login = Session::connect(&self.address, "postgres", Role::Tool);
            let login = tokio::time::timeout_at(deadline.into(), login).await;
            if let Ok(Ok(session)) = login {
                session.close().await;
                return Ok(());
            }
            let ended = self.ends() > ends_before || self.container()?.has_ended();
            if ended || Instant::now() >= deadline {
                let why = match ended {
                    true => "it ended".to_owned(),
                    false => format!("it was not ready within {limit:?}"),
                };
                return Err(self.start_failure(&why, printed_before, &settings).await);
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
        let log = container.printed_since(printed_before);
        let complaints = setting_complaints(&log, settings);
        if !complaints.is_empty() {
            return Failure::Article(complaints);
        }
        let diagnostic = Diagnostic::error(format!("Postgres does not start: {why}"))
            .note(format!("its log ends with:\n{}", self.log_tail(20)));
        Failure::Engine(self.explain(diagnostic).await)
    }
}

fn arguments(reach: Reach<'_>) -> Vec<String> {
    let listen = match reach {
        Reach::Folders { .. } => "listen_addresses=",
        Reach::Port => "listen_addresses=*",
        // Only of the container: it has no other interface, and what connects runs in it.
        Reach::Nowhere => "listen_addresses=127.0.0.1",
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

/// 128 random bits.
fn password() -> std::io::Result<String> {
    use std::io::Read;
    let mut bits = [0_u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bits)?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}
