//! The engine stage: from a pinned version to a running server.
//!
//! [`start`] takes an [`EngineChoice`] and a [`StartRequest`] and gives a [`Server`]; what can be
//! done with one is the same for every engine. [`Server::connect`] opens a [`session::Session`],
//! as the tool (a superuser) or as the article's author (who is none, see `trust`).
//!
//! The runtime must run on the main thread (tokio's current-thread runtime): the server dies with
//! the thread that started it.

// A diagnostic is large, and made when nothing is fast any more.
#![allow(clippy::result_large_err)]

mod cache;
mod cause;
mod choice;
pub mod clean;
mod docker;
mod embedded;
mod fake;
mod machine;
pub mod pins;
pub mod program;
pub mod session;
mod settings;
mod statement;
mod storage;
mod system;
mod trust;
mod url;

pub use choice::{Engines, Identity};
pub use machine::{Facts, Machine};
pub use trust::{refuse_extension, refuse_setting};
pub use url::{Consent, Environment, Target};

use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::exit_code::Failure;
use crate::record::{Network, ServerEnvironment};
use docker::DockerServer;
use embedded::Embedded;
use fake::FakeServer;
use pins::{Pin, Pins};
use program::{Completed, Content, Invocation, Workspace};
use session::{Role, Session, SessionError, quote_identifier, quote_literal};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use url::{Unheld, UrlServer};

/// What `--engine` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineChoice {
    /// The best that can be had here.
    Auto,
    Docker,
    Embedded,
    /// A server that was there before.
    Url(Box<Target>),
    /// Answers from a file.
    Fake(PathBuf),
}

/// What a server is started with.
pub struct StartRequest<'a> {
    pub pin: &'a Pin,
    /// The article's server settings.
    pub settings: &'a BTreeMap<String, String>,
    pub limits: Limits<'a>,
    /// See [`default_cache`].
    pub cache: &'a Path,
    /// Fetch nothing.
    pub offline: bool,
    /// Told what takes long: `fetching Postgres 16.15 …`.
    pub progress: &'a dyn Fn(&str),
}

/// What the article lets a container use, as its front matter has it; None: what there is. Engines
/// without containers take no notice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits<'a> {
    pub memory: Option<&'a str>,
    pub cpus: Option<&'a str>,
    /// None: as the settings need.
    pub shm_size: Option<&'a str>,
    /// Of the image; None: the daemon's own, so that nothing is emulated.
    pub platform: Option<&'a str>,
}

/// How long a server may take until it answers: as long as recovery and a large shared memory need,
/// or so many seconds as `REMEASURE_START_LIMIT` says.
fn start_limit() -> Duration {
    const SECONDS: u64 = 120;
    let said = std::env::var("REMEASURE_START_LIMIT").ok();
    let seconds = said.and_then(|said| said.trim().parse().ok());
    Duration::from_secs(seconds.unwrap_or(SECONDS))
}

/// Where binaries and data directories are kept when nothing else is said.
pub fn default_cache() -> PathBuf {
    cache::default_directory()
}

/// A running server of one engine.
#[derive(Debug)]
pub struct Server {
    engine: Engine,
    version: String,
    reason: String,
    /// Name and version of what [`Server::create_extension`] has made.
    extensions: Mutex<BTreeMap<String, String>>,
    /// Extensions that an existing server does not have for us, with why.
    missing: Mutex<BTreeMap<String, String>>,
}

#[derive(Debug)]
enum Engine {
    Docker(Box<DockerServer>),
    Embedded(Box<Embedded>),
    Url(Box<UrlServer>),
    Fake(FakeServer),
}

/// The machine that a server of this engine and version will run on. Where that can only be asked
/// with an image that is missing, `fetch` says whether it may be pulled; the facts are empty else.
pub async fn machine(
    choice: &EngineChoice,
    pin: &Pin,
    platform: Option<&str>,
    cache: &Path,
    fetch: bool,
    progress: &dyn Fn(&str),
) -> Result<Machine, Failure> {
    match choice {
        EngineChoice::Docker => docker::machine_of(pin, platform, cache, fetch, progress).await,
        // What it tells is in the identity already.
        EngineChoice::Url(_) => Ok(Machine::Elsewhere(Box::default())),
        EngineChoice::Auto | EngineChoice::Embedded | EngineChoice::Fake(_) => Ok(Machine::Here {
            storage: storage::of(cache),
        }),
    }
}

/// Starts a server of the pinned version. A [`Failure::Article`] is about a setting and has no
/// place; the caller knows where the settings stand.
pub async fn start(choice: &EngineChoice, request: &StartRequest<'_>) -> Result<Server, Failure> {
    let engines = Engines::new(choice.clone(), request.offline, |_| {});
    let platform = request.limits.platform;
    let identity = engines.choose(request.pin, platform).await?;
    let engine = match &identity.choice {
        EngineChoice::Auto | EngineChoice::Embedded => {
            let started = Embedded::start(request).await;
            let started = started.map_err(|failure| identity.with_both_reasons(failure))?;
            Engine::Embedded(Box::new(started))
        }
        EngineChoice::Docker => Engine::Docker(Box::new(DockerServer::start(request).await?)),
        EngineChoice::Url(target) => {
            Engine::Url(Box::new(UrlServer::start(target, request).await?))
        }
        EngineChoice::Fake(file) => Engine::Fake(FakeServer::read(file)?),
    };
    let version = match &engine {
        Engine::Fake(fake) => fake.version().unwrap_or(&request.pin.version).to_owned(),
        Engine::Url(server) => server.about().version.clone(),
        Engine::Embedded(_) | Engine::Docker(_) => request.pin.version.clone(),
    };
    let server = Server {
        engine,
        version,
        reason: identity.reason,
        extensions: Mutex::default(),
        missing: Mutex::default(),
    };
    match server.refuse_another_version().await {
        Ok(()) => Ok(server),
        Err(failure) => {
            server.stop().await?;
            Err(failure)
        }
    }
}

/// Drops what dead runs have left on an existing server; gives the databases' names.
pub async fn clean_server(target: &Target) -> Result<Vec<String>, Failure> {
    url::clean(target).await
}

/// As the word after `--engine` is written.
impl fmt::Display for EngineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Embedded => f.write_str("embedded"),
            Self::Docker => f.write_str("docker"),
            // As the whole command line has it.
            Self::Url(target) => write!(f, "url --server '{target}'{}", target.consent),
            Self::Fake(file) => write!(f, "fake:{}", file.display()),
        }
    }
}

impl EngineChoice {
    /// Reads what is asked for: the word after `--engine`, and the server, which is an engine's word
    /// by itself.
    pub fn asked(
        word: &str,
        server: Option<&str>,
        consent: Consent,
        environment: &Environment<'_>,
    ) -> Result<Self, Failure> {
        match (word, server) {
            ("url", server) | ("auto", server @ Some(_)) => {
                let target = Target::new(server, consent, environment)?;
                Ok(Self::Url(Box::new(target)))
            }
            (word, None) => Self::parse(word),
            (word, Some(_)) => Err(Failure::article(
                Diagnostic::error(format!("engine `{word}` takes no `--server`"))
                    .hint("leave `--engine` out: `--server` alone measures on that server"),
            )),
        }
    }

    /// Reads the word after `--engine`.
    pub fn parse(word: &str) -> Result<Self, Failure> {
        match word.split_once(':').unwrap_or((word, "")) {
            ("auto", "") => Ok(Self::Auto),
            ("embedded", "") => Ok(Self::Embedded),
            ("docker", "") => Ok(Self::Docker),
            ("fake", "") => Err(Failure::article(
                Diagnostic::error("engine `fake` needs a file with its answers")
                    .hint("write `--engine fake:FILE`"),
            )),
            ("fake", file) => Ok(Self::Fake(file.into())),
            _ => {
                let known = ["auto", "docker", "embedded", "fake", "url"];
                let hint = did_you_mean(word, known).unwrap_or_else(|| {
                    "engines are auto, docker, embedded, url and fake:FILE".into()
                });
                Err(Failure::article(
                    Diagnostic::error(format!("unknown engine `{word}`")).hint(hint),
                ))
            }
        }
    }
}

impl Server {
    /// An archive's programs are asked for their version as it is fetched; an image has a digest for
    /// a name, and its server says of itself what it is.
    async fn refuse_another_version(&self) -> Result<(), Failure> {
        let Engine::Docker(server) = &self.engine else {
            return Ok(());
        };
        let mut session = self.connect(MAINTENANCE_DATABASE, Role::Tool).await?;
        let said = session.execute("SHOW server_version").await?.rows;
        session.close().await;
        let said = said
            .into_iter()
            .flatten()
            .flatten()
            .next()
            .unwrap_or_default();
        // `16.15 (Debian 16.15-1.pgdg12+1)`
        if said.split(' ').next() == Some(self.version.as_str()) {
            return Ok(());
        }
        Err(Failure::Engine(
            Diagnostic::error(format!(
                "the image that is pinned for Postgres {} holds Postgres {said}",
                self.version
            ))
            .note(format!("its digest is {}", server.digest()))
            .hint("correct name and digest of this version's `image:` in pins.yaml"),
        ))
    }

    /// The platform of its container and the one it is emulated on, where it is.
    pub fn emulation(&self) -> Option<(&str, &str)> {
        match &self.engine {
            Engine::Docker(server) => server.emulation(),
            Engine::Embedded(_) | Engine::Url(_) | Engine::Fake(_) => None,
        }
    }

    /// What is known without asking the server; [`Server::describe`] fills in the rest.
    pub fn environment(&self) -> ServerEnvironment {
        let (engine, digest, libc) = match &self.engine {
            Engine::Embedded(server) => ("embedded", server.digest(), embedded::libc_version()),
            Engine::Docker(server) => ("docker", Some(server.digest()), "the image's".to_owned()),
            Engine::Url(_) => ("url", None, "the server's".to_owned()),
            Engine::Fake(_) => ("fake", None, "none".to_owned()),
        };
        ServerEnvironment {
            version: self.version.clone(),
            engine: engine.to_owned(),
            engine_reason: self.reason.clone(),
            digest,
            container: match &self.engine {
                Engine::Docker(server) => server.facts(),
                Engine::Embedded(_) | Engine::Url(_) | Engine::Fake(_) => BTreeMap::new(),
            },
            differing: match &self.engine {
                Engine::Url(server) => server.differing(),
                Engine::Docker(_) | Engine::Embedded(_) | Engine::Fake(_) => BTreeMap::new(),
            },
            libc,
            extensions: self
                .extensions
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            ..ServerEnvironment::default()
        }
    }

    /// The environment, with what the server says of itself. `sha256` is left to the caller.
    pub async fn describe(&self) -> Result<ServerEnvironment, SessionError> {
        let mut environment = self.environment();
        if let Engine::Fake(fake) = &self.engine {
            environment.version_string = format!("PostgreSQL {} (fake)", self.version);
            environment.encoding = "UTF8".into();
            environment.collation = "C".into();
            environment.data_checksums = "off".into();
            environment.settings = fake.settings().clone();
            return Ok(environment);
        }
        let mut session = self.connect(MAINTENANCE_DATABASE, Role::Tool).await?;
        let (about, settings) = match &self.engine {
            Engine::Url(server) if server.about().major < 15 => (ABOUT_BEFORE_15, OWN_SETTINGS),
            Engine::Url(_) => (ABOUT, OWN_SETTINGS),
            _ => (ABOUT, CHANGED_SETTINGS),
        };
        let about = session.execute(about).await?;
        let mut cells = about
            .rows
            .into_iter()
            .flatten()
            .map(Option::unwrap_or_default);
        environment.version_string = cells.next().unwrap_or_default();
        environment.encoding = cells.next().unwrap_or_default();
        environment.collation = cells.next().unwrap_or_default();
        environment.data_checksums = cells.next().unwrap_or_default();
        for row in session.execute(settings).await?.rows {
            if let [Some(name), value] = row.as_slice() {
                let value = value.clone().unwrap_or_default();
                environment.settings.insert(name.clone(), value);
            }
        }
        let way = match &self.engine {
            Engine::Docker(server) => server.way(),
            Engine::Url(server) => server.way(),
            Engine::Embedded(_) | Engine::Fake(_) => None,
        };
        if let Some(way) = way {
            environment.network = Some(Network {
                way: way.to_owned(),
                round_trip_ms: round_trip_ms(&mut session).await?,
            });
        }
        session.close().await;
        Ok(environment)
    }

    pub async fn connect(&self, database: &str, role: Role) -> Result<Session, SessionError> {
        match &self.engine {
            Engine::Embedded(server) => Session::connect(server.address(), database, role).await,
            Engine::Docker(server) => Session::connect(server.address(), database, role).await,
            Engine::Url(server) => server.connect(database, role).await,
            Engine::Fake(server) => Ok(Session::fake(server.connect(role))),
        }
    }

    /// Stops the server and starts it again with the article's settings and these, which go before
    /// them. Settings of an earlier restart and of `ALTER SYSTEM` are gone. Sessions are lost.
    pub async fn restart(&mut self, settings: &BTreeMap<String, String>) -> Result<(), Failure> {
        match &mut self.engine {
            Engine::Embedded(server) => server.restart(settings).await,
            Engine::Docker(server) => server.restart(settings).await,
            Engine::Url(_) => Err(Failure::internal("an existing server is not restarted")),
            Engine::Fake(_) => Ok(()),
        }
    }

    /// The end of the server's log.
    pub fn log_tail(&self, lines: usize) -> String {
        match &self.engine {
            Engine::Embedded(server) => server.log_tail(lines),
            Engine::Docker(server) => server.log_tail(lines),
            Engine::Url(_) | Engine::Fake(_) => String::new(),
        }
    }

    /// Adds to a failure of this server what its engine knows of the cause.
    pub async fn explain(&self, failure: Failure) -> Failure {
        let Failure::Engine(diagnostic) = failure else {
            return failure;
        };
        Failure::Engine(match &self.engine {
            Engine::Embedded(server) => server.explain(diagnostic).await,
            Engine::Docker(server) => server.explain(diagnostic).await,
            Engine::Url(_) | Engine::Fake(_) => diagnostic,
        })
    }

    /// File system and device of the data directory.
    pub fn storage(&self) -> String {
        match &self.engine {
            Engine::Embedded(server) => server.storage(),
            Engine::Docker(server) => server.storage().to_owned(),
            Engine::Url(server) => server.about().host.storage.clone(),
            Engine::Fake(_) => "none".into(),
        }
    }

    /// A folder for the server's own programs and their files.
    pub async fn workspace(&self) -> Result<Workspace, Failure> {
        match &self.engine {
            Engine::Embedded(server) => server.workspace(),
            Engine::Docker(server) => server.workspace().await,
            Engine::Url(_) => Err(no_programs()),
            Engine::Fake(server) => server.workspace(),
        }
    }

    /// Puts a file into a workspace, over one of that name; `name` may have folders in it.
    pub async fn put(
        &self,
        workspace: &Workspace,
        name: &str,
        content: Content<'_>,
    ) -> Result<(), Failure> {
        match &self.engine {
            Engine::Embedded(server) => server.put(workspace, name, content),
            Engine::Docker(server) => server.put(workspace, name, content).await,
            Engine::Url(_) => Err(no_programs()),
            Engine::Fake(server) => server.put(workspace, name, content),
        }
    }

    /// Runs a program in a workspace. Dropped before it is done, this ends the program.
    pub async fn run(
        &self,
        workspace: &Workspace,
        invocation: &Invocation<'_>,
    ) -> Result<Completed, Failure> {
        match &self.engine {
            Engine::Embedded(server) => server.run(workspace, invocation).await,
            Engine::Docker(server) => server.run(workspace, invocation).await,
            Engine::Url(_) => Err(no_programs()),
            Engine::Fake(server) => server.run(workspace, invocation),
        }
    }

    /// The files of a workspace whose names begin with `prefix`, in the order of their names; they are
    /// gone from there.
    pub async fn take(&self, workspace: &Workspace, prefix: &str) -> Result<Vec<File>, Failure> {
        match &self.engine {
            Engine::Embedded(server) => server.take(workspace, prefix),
            Engine::Docker(server) => server.take(workspace, prefix).await,
            Engine::Url(_) => Err(no_programs()),
            Engine::Fake(server) => server.take(workspace, prefix),
        }
    }

    pub async fn discard(&self, workspace: Workspace) {
        match &self.engine {
            Engine::Embedded(server) => server.discard(workspace),
            Engine::Docker(server) => server.discard(workspace).await,
            Engine::Url(_) => {}
            Engine::Fake(server) => server.discard(workspace),
        }
    }

    pub async fn stop(self) -> Result<(), Failure> {
        match self.engine {
            Engine::Embedded(server) => server.stop().await,
            Engine::Docker(server) => server.stop().await,
            Engine::Url(server) => server.stop().await,
            Engine::Fake(_) => Ok(()),
        }
    }

    /// Whether it was somebody's server before: it is not ours to set up, and may refuse what a
    /// measurement needs.
    pub fn is_existing(&self) -> bool {
        matches!(self.engine, Engine::Url(_))
    }

    /// Whether it runs, or may run, on another machine than this program.
    pub fn is_remote(&self) -> bool {
        matches!(self.engine, Engine::Url(_))
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// Brings the databases that are made from now on to these settings, and the tool's own; only on
    /// an existing server, where no other way is open. What it refuses is an article's diagnostic
    /// with Postgres's code.
    pub async fn hold_settings(&self, wanted: &BTreeMap<String, String>) -> Result<(), Failure> {
        match &self.engine {
            Engine::Url(server) => match server.hold(wanted).await {
                Ok(()) => Ok(()),
                Err(Unheld::Refused(why)) => Err(Failure::article(why)),
                Err(Unheld::Failed(error)) => Err(error.into()),
            },
            _ => Err(Failure::internal("only an existing server holds settings")),
        }
    }

    /// Back to the article's own settings.
    pub async fn let_go_of_settings(&self) -> Result<(), SessionError> {
        match &self.engine {
            Engine::Url(server) => server.let_go().await,
            _ => Ok(()),
        }
    }

    /// Why an existing server does not have an extension for us, where it does not.
    pub fn missing_extension(&self, name: &str) -> Option<String> {
        let missing = self.missing.lock();
        let missing = missing.unwrap_or_else(PoisonError::into_inner);
        missing.get(name).cloned()
    }

    /// Makes a database that the author owns, empty or as a copy of another. Nobody may be
    /// connected to the template. What an earlier state of the article set for its role
    /// (`ALTER ROLE … SET`) is gone: roles are the cluster's, not the database's.
    pub async fn create_database(
        &self,
        name: &str,
        template: Option<&str>,
    ) -> Result<(), SessionError> {
        if let Engine::Url(server) = &self.engine {
            return server.create_database(name, template).await;
        }
        let name = quote_identifier(name);
        let author = Role::Author.name();
        let mut sql = format!("CREATE DATABASE {name} OWNER {author}");
        if let Some(template) = template {
            // Copied as files, not through WAL and shared buffers.
            let template = quote_identifier(template);
            sql.push_str(&format!(" TEMPLATE {template} STRATEGY FILE_COPY"));
        }
        let forget = format!("ALTER ROLE {author} RESET ALL");
        self.maintain(&[&forget, &sql]).await
    }

    /// Drops a database if it is there, and ends the sessions in it.
    pub async fn drop_database(&self, name: &str) -> Result<(), SessionError> {
        if let Engine::Url(server) = &self.engine {
            return server.drop_database(name).await;
        }
        let name = quote_identifier(name);
        let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        self.maintain(&[&sql]).await
    }

    async fn maintain(&self, statements: &[&str]) -> Result<(), SessionError> {
        let mut session = self.connect(MAINTENANCE_DATABASE, Role::Tool).await?;
        let mut result = Ok(());
        for sql in statements {
            result = session.execute(sql).await.map(drop);
            if result.is_err() {
                break;
            }
        }
        session.close().await;
        result
    }

    /// Creates an extension and lets the author use all of it; gives its version. One that an
    /// existing server refuses is remembered ([`Server::missing_extension`]).
    pub async fn create_extension(&self, database: &str, name: &str) -> Result<String, Failure> {
        if let Some(refusal) = refuse_extension(name) {
            return Err(Failure::article(refusal));
        }
        let version = self
            .create_trusted_extension(database, name)
            .await
            .map_err(|error| match &error {
                SessionError::Sql(error) => {
                    if self.is_existing() {
                        let said =
                            format!("Postgres: {} (SQLSTATE {})", error.message, error.sqlstate);
                        let mut missing =
                            self.missing.lock().unwrap_or_else(PoisonError::into_inner);
                        missing.insert(name.to_owned(), said);
                    }
                    Failure::article(error.diagnostic())
                }
                SessionError::Lost { .. } => Failure::Engine(error.diagnostic()),
            })?;
        self.extensions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.to_owned(), version.clone());
        Ok(version)
    }

    async fn create_trusted_extension(
        &self,
        database: &str,
        name: &str,
    ) -> Result<String, SessionError> {
        let mut session = self.connect(database, Role::Tool).await?;
        let identifier = quote_identifier(name);
        // What it needs in turn (cube for earthdistance) may be used as well.
        let create = format!("CREATE EXTENSION IF NOT EXISTS {identifier} CASCADE");
        session.execute(&create).await?;
        // On an existing server the author is who made it.
        if !self.is_existing() {
            session.execute(&trust::grant_extension(name)).await?;
        }
        let version = format!(
            "SELECT extversion FROM pg_catalog.pg_extension WHERE extname = {}",
            quote_literal(name)
        );
        let version = match &self.engine {
            Engine::Fake(_) => None,
            Engine::Embedded(_) | Engine::Docker(_) | Engine::Url(_) => {
                session.execute(&version).await?.rows.into_iter().next()
            }
        };
        session.close().await;
        let version = version.and_then(|row| row.into_iter().next().flatten());
        Ok(version.unwrap_or_else(|| "fake".into()))
    }
}

/// An experiment that needs them is skipped there.
fn no_programs() -> Failure {
    Failure::internal("an existing server has no programs of ours")
}

/// The median of some round trips, in milliseconds with three decimals.
async fn round_trip_ms(session: &mut Session) -> Result<String, SessionError> {
    const TIMES: usize = 21;
    let mut microseconds = Vec::new();
    for _ in 0..TIMES {
        microseconds.push(session.execute("SELECT 1").await?.elapsed.as_micros());
    }
    microseconds.sort_unstable();
    let median = microseconds[TIMES / 2];
    Ok(format!("{}.{:03}", median / 1000, median % 1000))
}

/// The database that nothing is measured in.
const MAINTENANCE_DATABASE: &str = "postgres";

const ABOUT: &str = "SELECT version(), current_setting('server_encoding'),
    (SELECT datcollate || ' (' || CASE datlocprovider
         WHEN 'c' THEN 'libc' WHEN 'i' THEN 'icu' ELSE 'builtin' END || ')'
     FROM pg_database WHERE datname = current_database()),
    current_setting('data_checksums')";

/// The provider of a database's collation came with 15.
const ABOUT_BEFORE_15: &str = "SELECT version(), current_setting('server_encoding'),
    (SELECT datcollate || ' (libc)' FROM pg_database WHERE datname = current_database()),
    current_setting('data_checksums')";

/// The same of a server that is not ours: what says where it keeps its files, how it is reached and
/// whom it copies to is its owner's business, and a record is published.
const OWN_SETTINGS: &str = "SELECT name, current_setting(name) FROM pg_settings
    WHERE source NOT IN ('default', 'session', 'override')
        AND setting IS DISTINCT FROM boot_val
        AND name NOT IN ('application_name', 'client_encoding')
        AND category !~ '^(File Locations|Connections|Reporting|Replication|Customized)'
        AND category !~ '(Archiv|Recovery)'
        AND name !~ '(_command|_conninfo|_name|_file|_directory)$'
    ORDER BY name";

/// Settings that differ from their built-in defaults, but for those that only say where this run
/// keeps its files.
const CHANGED_SETTINGS: &str = "SELECT name, current_setting(name) FROM pg_settings
    WHERE source NOT IN ('default', 'client', 'session', 'override')
        AND setting IS DISTINCT FROM boot_val
        AND name NOT IN ('config_file', 'data_directory', 'external_pid_file', 'hba_file',
            'ident_file', 'listen_addresses', 'port', 'unix_socket_directories',
            'unix_socket_permissions')
    ORDER BY name";

/// One thing that `doctor` looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub what: String,
    pub ok: bool,
    pub detail: String,
    /// What to do where it is not ok.
    pub hint: Option<String>,
    pub need: Need,
}

/// What a finding that is not ok means for measuring here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Required,
    /// One of those with the same word will do.
    OneOf(&'static str),
    Optional,
}

impl Finding {
    fn good(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            ok: true,
            detail: detail.into(),
            hint: None,
            need: Need::Required,
        }
    }

    fn needed(self, need: Need) -> Self {
        Self { need, ..self }
    }

    fn bad(what: impl Into<String>, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            ok: false,
            detail: detail.into(),
            hint: Some(hint.into()),
            need: Need::Required,
        }
    }
}

/// Which engines there are, what each finds on this machine, and why not.
pub async fn doctor(pins: &Pins, cache: &Path) -> Vec<Finding> {
    let mut findings = vec![Finding::good("cache", format!("`{}`", cache.display()))];
    findings.extend(docker::doctor::findings(pins).await);
    let versions = pins.versions();
    let engines = Engines::new(EngineChoice::Auto, false, |_| {});
    let mut chosen = Vec::new();
    for pin in versions.iter().filter_map(|version| pins.version(version)) {
        chosen.push(auto(&engines, pin).await);
    }
    // What the embedded engine lacks stands in nobody's way where every version has an image.
    let only_docker = chosen.iter().all(|(engine, _)| *engine == Some("docker"));
    let of_embedded = embedded::doctor::findings(pins, cache).into_iter();
    findings.extend(of_embedded.map(|finding| match only_docker {
        true => finding.needed(Need::Optional),
        false => finding,
    }));
    findings.extend(chosen.into_iter().map(|(_, finding)| finding));
    findings
}

/// What `--engine auto` comes to for a version.
async fn auto(engines: &Engines, pin: &Pin) -> (Option<&'static str>, Finding) {
    let what = format!("`--engine auto` for Postgres {}", pin.version);
    match engines.choose(pin, None).await {
        Ok(identity) => {
            let detail = format!("{}: {}", identity.engine, identity.reason);
            (Some(identity.engine), Finding::good(what, detail))
        }
        Err(failure) => {
            let (message, hint) = match failure {
                Failure::Engine(problem) => (
                    format!("{}: {}", problem.message, problem.notes.join("; ")),
                    problem.hint.unwrap_or_default(),
                ),
                failure => (format!("{failure:?}"), "this is a bug".to_owned()),
            };
            (None, Finding::bad(what, message, hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_after_engine_is_read() {
        assert_eq!(EngineChoice::parse("auto").unwrap(), EngineChoice::Auto);
        assert_eq!(
            EngineChoice::parse("embedded").unwrap(),
            EngineChoice::Embedded
        );
        assert_eq!(
            EngineChoice::parse("fake:a/b.yaml").unwrap(),
            EngineChoice::Fake("a/b.yaml".into())
        );
        for word in ["auto", "embedded", "fake:a/b.yaml"] {
            assert_eq!(EngineChoice::parse(word).unwrap().to_string(), word);
        }
        for (word, exit_code, hint) in [
            ("fake", 2, "fake:FILE"),
            ("embeded", 2, "did you mean `embedded`?"),
            ("oracle", 2, "engines are"),
            ("embedded:x", 2, "did you mean `embedded`?"),
        ] {
            let failure = EngineChoice::parse(word).unwrap_err();
            let text = match &failure {
                Failure::Article(all) => all[0].render(false),
                Failure::Engine(one) => one.render(false),
                other => panic!("{other:?}"),
            };
            assert!(text.contains(hint), "{text}");
            assert_eq!(crate::exit_code::number(&Err(failure)), exit_code, "{word}");
        }
    }

    #[tokio::test]
    async fn the_fake_engine_is_a_server_like_any_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("answers.yaml");
        std::fs::write(
            &file,
            "answers: [{sql: SELECT 1, rows: [[1]], types: [integer]}]",
        )
        .unwrap();
        let pin = Pin {
            version: "16.15".into(),
            image: None,
            archives: BTreeMap::new(),
        };
        let settings = BTreeMap::new();
        let request = StartRequest {
            pin: &pin,
            settings: &settings,
            limits: Limits::default(),
            cache: folder.path(),
            offline: true,
            progress: &|_| {},
        };
        let choice = EngineChoice::Fake(file);
        let mut server = start(&choice, &request).await.unwrap();
        server.create_database("d", None).await.unwrap();
        let version = server.create_extension("d", "pageinspect").await.unwrap();
        assert_eq!(version, "fake");
        assert!(server.create_extension("d", "dblink").await.is_err());
        let mut session = server.connect("d", Role::Author).await.unwrap();
        let result = session.execute("SELECT 1").await.unwrap();
        assert_eq!(result.rows, [[Some("1".to_owned())]]);
        session.close().await;
        server.restart(&settings).await.unwrap();
        let environment = server.describe().await.unwrap();
        assert_eq!(environment.engine, "fake");
        assert_eq!(environment.version, "16.15");
        assert_eq!(environment.extensions["pageinspect"], "fake");
        server.stop().await.unwrap();
    }
}
