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

mod docker;
mod embedded;
mod fake;
pub mod pins;
pub mod program;
pub mod session;
mod settings;
mod statement;
mod trust;

pub use trust::{refuse_extension, refuse_setting};

use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::exit_code::Failure;
use crate::record::ServerEnvironment;
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

/// What `--engine` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineChoice {
    /// The best that can be had here.
    Auto,
    Docker,
    Embedded,
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
}

/// Where binaries and data directories are kept when nothing else is said.
pub fn default_cache() -> PathBuf {
    embedded::cache::default_directory()
}

/// A running server of one engine.
#[derive(Debug)]
pub struct Server {
    engine: Engine,
    version: String,
    reason: String,
    /// Name and version of what [`Server::create_extension`] has made.
    extensions: Mutex<BTreeMap<String, String>>,
}

#[derive(Debug)]
enum Engine {
    Docker(Box<DockerServer>),
    Embedded(Box<Embedded>),
    Fake(FakeServer),
}

/// What a server will be, before one runs: results are reused by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub engine: &'static str,
    /// Why this engine.
    pub reason: String,
    /// sha256 of the archive; None: unpinned.
    pub digest: Option<String>,
}

/// Decides on an engine and says why.
pub fn identity(choice: &EngineChoice, pin: &Pin) -> Result<Identity, Failure> {
    let embedded = |reason: &str| {
        Ok(Identity {
            engine: "embedded",
            reason: reason.to_owned(),
            digest: embedded::pinned_digest(pin)?,
        })
    };
    match choice {
        EngineChoice::Auto => embedded("docker is used when it is asked for"),
        EngineChoice::Embedded => embedded("asked for"),
        EngineChoice::Docker => Ok(Identity {
            engine: "docker",
            reason: "asked for".to_owned(),
            digest: pin.image.as_ref().map(|image| image.digest.clone()),
        }),
        EngineChoice::Fake(file) => Ok(Identity {
            engine: "fake",
            reason: format!("answers from {}", file.display()),
            digest: None,
        }),
    }
}

/// Filesystem and device that data directories lie on, such as `ext4 on /dev/vda`.
pub fn storage(cache: &Path) -> String {
    embedded::storage::of(cache)
}

/// Starts a server of the pinned version. A [`Failure::Article`] is about a setting and has no
/// place; the caller knows where the settings stand.
pub async fn start(choice: &EngineChoice, request: &StartRequest<'_>) -> Result<Server, Failure> {
    let reason = identity(choice, request.pin)?.reason;
    let engine = match choice {
        EngineChoice::Auto | EngineChoice::Embedded => {
            Engine::Embedded(Box::new(Embedded::start(request).await?))
        }
        EngineChoice::Docker => Engine::Docker(Box::new(DockerServer::start(request).await?)),
        EngineChoice::Fake(file) => Engine::Fake(FakeServer::read(file)?),
    };
    let version = match &engine {
        Engine::Fake(fake) => fake.version().unwrap_or(&request.pin.version).to_owned(),
        Engine::Embedded(_) | Engine::Docker(_) => request.pin.version.clone(),
    };
    Ok(Server {
        engine,
        version,
        reason,
        extensions: Mutex::default(),
    })
}

/// As the word after `--engine` is written.
impl fmt::Display for EngineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Embedded => f.write_str("embedded"),
            Self::Docker => f.write_str("docker"),
            Self::Fake(file) => write!(f, "fake:{}", file.display()),
        }
    }
}

impl EngineChoice {
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
            (known @ "url", _) => Err(Failure::Engine(
                Diagnostic::error(format!("engine `{known}` is not supported by this build"))
                    .hint("use `--engine embedded`, which needs no Docker"),
            )),
            _ => {
                let hint = did_you_mean(word, ["auto", "docker", "embedded", "fake"])
                    .unwrap_or_else(|| "engines are auto, docker, embedded and fake:FILE".into());
                Err(Failure::article(
                    Diagnostic::error(format!("unknown engine `{word}`")).hint(hint),
                ))
            }
        }
    }
}

impl Server {
    /// What is known without asking the server; [`Server::describe`] fills in the rest.
    pub fn environment(&self) -> ServerEnvironment {
        let (engine, digest, libc) = match &self.engine {
            Engine::Embedded(server) => ("embedded", server.digest(), embedded::libc_version()),
            Engine::Docker(server) => ("docker", Some(server.digest()), "the image's".to_owned()),
            Engine::Fake(_) => ("fake", None, "none".to_owned()),
        };
        ServerEnvironment {
            version: self.version.clone(),
            engine: engine.to_owned(),
            engine_reason: self.reason.clone(),
            digest,
            container: match &self.engine {
                Engine::Docker(server) => server.facts(),
                Engine::Embedded(_) | Engine::Fake(_) => BTreeMap::new(),
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
        let about = session.execute(ABOUT).await?;
        let mut cells = about
            .rows
            .into_iter()
            .flatten()
            .map(Option::unwrap_or_default);
        environment.version_string = cells.next().unwrap_or_default();
        environment.encoding = cells.next().unwrap_or_default();
        environment.collation = cells.next().unwrap_or_default();
        environment.data_checksums = cells.next().unwrap_or_default();
        for row in session.execute(CHANGED_SETTINGS).await?.rows {
            if let [Some(name), value] = row.as_slice() {
                let value = value.clone().unwrap_or_default();
                environment.settings.insert(name.clone(), value);
            }
        }
        session.close().await;
        Ok(environment)
    }

    pub async fn connect(&self, database: &str, role: Role) -> Result<Session, SessionError> {
        match &self.engine {
            Engine::Embedded(server) => Session::connect(server.address(), database, role).await,
            Engine::Docker(server) => Session::connect(server.address(), database, role).await,
            Engine::Fake(server) => Ok(Session::fake(server.connect(role))),
        }
    }

    /// Stops the server and starts it again with the article's settings and these, which go before
    /// them. Settings of an earlier restart and of `ALTER SYSTEM` are gone. Sessions are lost.
    pub async fn restart(&mut self, settings: &BTreeMap<String, String>) -> Result<(), Failure> {
        match &mut self.engine {
            Engine::Embedded(server) => server.restart(settings).await,
            Engine::Docker(server) => server.restart(settings).await,
            Engine::Fake(_) => Ok(()),
        }
    }

    /// The end of the server's log.
    pub fn log_tail(&self, lines: usize) -> String {
        match &self.engine {
            Engine::Embedded(server) => server.log_tail(lines),
            Engine::Docker(server) => server.log_tail(lines),
            Engine::Fake(_) => String::new(),
        }
    }

    /// File system and device of the data directory.
    pub fn storage(&self) -> String {
        match &self.engine {
            Engine::Embedded(server) => server.storage(),
            Engine::Docker(server) => server.storage(),
            Engine::Fake(_) => "none".into(),
        }
    }

    /// A folder for the server's own programs and their files.
    pub async fn workspace(&self) -> Result<Workspace, Failure> {
        match &self.engine {
            Engine::Embedded(server) => server.workspace(),
            Engine::Docker(server) => server.workspace().await,
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
            Engine::Fake(server) => server.run(workspace, invocation),
        }
    }

    /// The files of a workspace whose names begin with `prefix`, in the order of their names; they are
    /// gone from there.
    pub async fn take(&self, workspace: &Workspace, prefix: &str) -> Result<Vec<File>, Failure> {
        match &self.engine {
            Engine::Embedded(server) => server.take(workspace, prefix),
            Engine::Docker(server) => server.take(workspace, prefix).await,
            Engine::Fake(server) => server.take(workspace, prefix),
        }
    }

    pub async fn discard(&self, workspace: Workspace) {
        match &self.engine {
            Engine::Embedded(server) => server.discard(workspace),
            Engine::Docker(server) => server.discard(workspace).await,
            Engine::Fake(server) => server.discard(workspace),
        }
    }

    pub async fn stop(self) -> Result<(), Failure> {
        match self.engine {
            Engine::Embedded(server) => server.stop().await,
            Engine::Docker(server) => server.stop().await,
            Engine::Fake(_) => Ok(()),
        }
    }

    /// Makes a database that the author owns, empty or as a copy of another. Nobody may be
    /// connected to the template. What an earlier state of the article set for its role
    /// (`ALTER ROLE … SET`) is gone: roles are the cluster's, not the database's.
    pub async fn create_database(
        &self,
        name: &str,
        template: Option<&str>,
    ) -> Result<(), SessionError> {
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

    /// Creates an extension and lets the author use all of it; gives its version.
    pub async fn create_extension(&self, database: &str, name: &str) -> Result<String, Failure> {
        if let Some(refusal) = refuse_extension(name) {
            return Err(Failure::article(refusal));
        }
        let version = self
            .create_trusted_extension(database, name)
            .await
            .map_err(|error| match &error {
                SessionError::Sql(error) => Failure::article(error.diagnostic()),
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
        session.execute(&trust::grant_extension(name)).await?;
        let version = format!(
            "SELECT extversion FROM pg_catalog.pg_extension WHERE extname = {}",
            quote_literal(name)
        );
        let version = match &self.engine {
            Engine::Fake(_) => None,
            Engine::Embedded(_) | Engine::Docker(_) => {
                session.execute(&version).await?.rows.into_iter().next()
            }
        };
        session.close().await;
        let version = version.and_then(|row| row.into_iter().next().flatten());
        Ok(version.unwrap_or_else(|| "fake".into()))
    }
}

/// The database that nothing is measured in.
const MAINTENANCE_DATABASE: &str = "postgres";

const ABOUT: &str = "SELECT version(), current_setting('server_encoding'),
    (SELECT datcollate || ' (' || CASE datlocprovider
         WHEN 'c' THEN 'libc' WHEN 'i' THEN 'icu' ELSE 'builtin' END || ')'
     FROM pg_database WHERE datname = current_database()),
    current_setting('data_checksums')";

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
    findings.extend(embedded::doctor::findings(pins, cache));
    findings
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
            ("url", 4, "--engine embedded"),
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
