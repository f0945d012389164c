//! The url engine: a server that was there before, reached by a URL, on which nothing is pinned and
//! nothing is ours but the databases that are made here and dropped again.
//!
//! [`UrlServer::start`]: who we are there, and what that role could break ([`powers`]) → databases
//! of dead runs dropped ([`strays`]) → a database for the tool → the article's settings where one
//! database can have them ([`settings`]). A session of its own, the keeper, makes and drops
//! databases, and tells other runs that this one lives.

mod about;
mod error;
mod places;
mod powers;
mod settings;
mod strays;
mod target;
mod tls;

pub use about::About;
pub use places::Environment;
pub use target::{Consent, Target};
pub(super) use tls::Connector;

use super::session::{Address, Host, Role, Session, SessionError, quote_identifier, quote_literal};
use super::settings::check_settings;
use super::{MAINTENANCE_DATABASE, StartRequest};
use crate::diagnostic::Diagnostic;
use crate::exit_code::Failure;
use crate::record::{SettingDifference, sha256_of};
use settings::{Known, Settled};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use target::{Encryption, TargetHost};
use tokio_postgres::config::SslMode;

/// A server with what its connections are encrypted with.
#[derive(Debug)]
pub struct Reached {
    target: Target,
    connector: Connector,
}

impl Reached {
    fn new(target: &Target) -> Result<Arc<Self>, Failure> {
        Ok(Arc::new(Self {
            target: target.clone(),
            connector: tls::connector(target).map_err(Failure::Engine)?,
        }))
    }

    /// Without the database.
    pub fn config(&self) -> tokio_postgres::Config {
        let target = &self.target;
        let mut config = tokio_postgres::Config::new();
        match &target.host {
            TargetHost::Name(name) => config.host(name),
            TargetHost::Socket(folder) => config.host_path(folder),
        };
        config
            .port(target.port)
            .user(&target.user)
            .ssl_mode(match target.encryption {
                Encryption::Disable => SslMode::Disable,
                Encryption::Prefer => SslMode::Prefer,
                _ => SslMode::Require,
            })
            .channel_binding(target.channel_binding)
            .connect_timeout(target.connect_timeout)
            // A connection that a router forgot is noticed before a run is taken for dead.
            .keepalives_idle(std::time::Duration::from_secs(60));
        if let Some(password) = &target.password {
            config.password(password.reveal());
        }
        if let Some(options) = &target.options {
            config.options(options);
        }
        config
    }

    pub fn connector(&self) -> Connector {
        self.connector.clone()
    }

    /// The network on the way, where there is one.
    pub fn way(&self) -> Option<&'static str> {
        match (&self.target.host, self.target.encryption) {
            (TargetHost::Socket(_), _) => None,
            (TargetHost::Name(_), Encryption::Disable | Encryption::Prefer) => Some("tcp"),
            (TargetHost::Name(_), _) => Some("tcp with TLS"),
        }
    }

    fn address(self: &Arc<Self>) -> Address {
        Address {
            host: Host::Existing(Arc::clone(self)),
            contained: false,
            port: self.target.port,
            // Its log is not ours to read.
            log: PathBuf::new(),
        }
    }

    /// A session in the URL's own database, where nothing is done but asking.
    async fn session(self: &Arc<Self>) -> Result<Session, Failure> {
        Session::connect(&self.address(), &self.target.database, Role::Tool)
            .await
            .map_err(|error| Failure::Engine(error::unreachable(&self.target, &error)))
    }
}

/// What the server says of itself before anything is made on it.
pub fn about(target: &Target) -> Result<About, Failure> {
    // Asked from wherever a plan is made, within a runtime or without.
    let asked = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| Failure::internal(format!("cannot start the runtime: {error}")))?
                .block_on(async {
                    let mut session = Reached::new(target)?.session().await?;
                    let about = About::ask(&mut session, target).await?;
                    session.close().await;
                    Ok(about)
                })
        });
        asking.join()
    });
    asked.unwrap_or_else(|_| Err(Failure::internal("asking the server panicked")))
}

/// Drops what dead runs have left on the server; gives the names.
pub async fn clean(target: &Target) -> Result<Vec<String>, Failure> {
    let mut session = Reached::new(target)?.session().await?;
    let dropped = strays::drop_all(&mut session).await?;
    session.close().await;
    Ok(dropped)
}

/// A server with databases of ours on it.
#[derive(Debug)]
pub struct UrlServer {
    address: Address,
    about: About,
    /// Part of the names of all databases of this run.
    run: String,
    keeper: tokio::sync::Mutex<Keeper>,
    /// The article's, which every database of ours has.
    own: BTreeMap<String, String>,
    /// The running experiment's, beside those.
    held: Mutex<BTreeMap<String, String>>,
    differing: BTreeMap<String, SettingDifference>,
}

/// The session that makes and drops databases.
struct Keeper(Session);

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keeper")
    }
}

/// Why a setting is not what an experiment needs.
pub enum Unheld {
    /// The server does not let it be, and why.
    Refused(Diagnostic),
    Failed(SessionError),
}

impl UrlServer {
    pub async fn start(target: &Target, request: &StartRequest<'_>) -> Result<Self, Failure> {
        check_settings(request.settings)?;
        let reached = Reached::new(target)?;
        let mut session = reached.session().await?;
        let about = About::ask(&mut session, target).await?;
        about.fits(&request.pin.version, target.consent)?;
        powers::refuse(&mut session, target).await?;
        let run = run_id()
            .map_err(|error| Failure::internal(format!("cannot read /dev/urandom: {error}")))?;
        for sql in strays::keep_alive(&run, about.major) {
            session.execute(&sql).await?;
        }
        for name in strays::drop_all(&mut session).await? {
            (request.progress)(&format!("dropped database `{name}` of a run that died"));
        }
        let mut server = Self {
            address: reached.address(),
            about,
            run,
            keeper: tokio::sync::Mutex::new(Keeper(session)),
            own: BTreeMap::new(),
            held: Mutex::default(),
            differing: BTreeMap::new(),
        };
        let made = server.create_database(MAINTENANCE_DATABASE, None).await;
        made.map_err(|error| Failure::Engine(error::no_database(target, &error)))?;
        match server.take_settings(request.settings).await {
            Ok(()) => Ok(server),
            Err(failure) => {
                server.stop().await?;
                Err(failure)
            }
        }
    }

    /// How it is reached, where that is through a network.
    pub fn way(&self) -> Option<&'static str> {
        self.address.way()
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    pub fn differing(&self) -> BTreeMap<String, SettingDifference> {
        self.differing.clone()
    }

    pub async fn connect(&self, database: &str, role: Role) -> Result<Session, SessionError> {
        Session::connect(&self.address, &self.name_of(database), role).await
    }

    /// What a database is called on the server.
    fn name_of(&self, database: &str) -> String {
        /// Of an identifier; Postgres would cut it.
        const LONGEST: usize = 63;
        let short = match database {
            MAINTENANCE_DATABASE => "tool",
            other => other,
        };
        let name = format!("{}{}_{short}", strays::PREFIX, self.run);
        if name.len() <= LONGEST {
            return name;
        }
        let hash = sha256_of(database.as_bytes());
        let kept = name.floor_char_boundary(LONGEST - 9);
        format!("{}_{}", &name[..kept], &hash[..8])
    }

    /// Makes a database of ours, with the settings that all of them have. One that comes after
    /// `CREATE DATABASE` and before its mark would be left for ever, so both are sent at once.
    pub async fn create_database(
        &self,
        database: &str,
        template: Option<&str>,
    ) -> Result<(), SessionError> {
        let name = quote_identifier(&self.name_of(database));
        let mut create = format!("CREATE DATABASE {name}");
        if let Some(template) = template {
            let template = quote_identifier(&self.name_of(template));
            create.push_str(&format!(" TEMPLATE {template}"));
            // Copied as files, as the other engines do; before 15 there is no other way.
            if self.about.major >= 15 {
                create.push_str(" STRATEGY FILE_COPY");
            }
        }
        let mark = format!(
            "COMMENT ON DATABASE {name} IS {}",
            quote_literal(&strays::mark(&self.run))
        );
        let held = self.held().clone();
        let mut keeper = self.keeper.lock().await;
        keeper.0.execute_both([&create, &mark]).await?;
        for (setting, value) in self.own.iter().chain(&held) {
            keeper
                .0
                .execute(&settings::set(&name, setting, value))
                .await?;
        }
        Ok(())
    }

    pub async fn drop_database(&self, database: &str) -> Result<(), SessionError> {
        let sql = strays::drop_sql(&self.name_of(database));
        self.keeper.lock().await.0.execute(&sql).await.map(drop)
    }

    /// Settings for the databases that are made from now on, and for the tool's.
    pub async fn hold(&self, wanted: &BTreeMap<String, String>) -> Result<(), Unheld> {
        let known = self.known(wanted).await.map_err(Unheld::Failed)?;
        for (name, value) in wanted {
            match self.settle(name, value, known.get(name)).await {
                Ok(None) => {}
                Ok(Some(Settled::OnDatabases)) => {
                    self.held().insert(name.clone(), value.clone());
                }
                Ok(Some(Settled::Not(why))) => return Err(Unheld::Refused(why)),
                Err(error) => return Err(Unheld::Failed(error)),
            }
        }
        let has = self.known(wanted).await.map_err(Unheld::Failed)?;
        let mut nothing = wanted
            .iter()
            .filter_map(|(name, value)| settings::came_to_nothing(name, value, has.get(name)));
        nothing
            .next()
            .map_or(Ok(()), |why| Err(Unheld::Refused(why)))
    }

    /// As databases of ours have them.
    async fn known(
        &self,
        wanted: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, Known>, SessionError> {
        let mut session = self.connect(MAINTENANCE_DATABASE, Role::Tool).await?;
        let known = settings::known(&mut session, wanted).await?;
        session.close().await;
        Ok(known)
    }

    /// Brings one setting to what is wanted, in the tool's database; None where it is so already.
    async fn settle(
        &self,
        name: &str,
        wanted: &str,
        known: Option<&Known>,
    ) -> Result<Option<Settled>, SessionError> {
        if known.is_some_and(|known| known.has(wanted)) {
            return Ok(None);
        }
        if let Some(why) = settings::fixed(name, wanted, known) {
            return Ok(Some(Settled::Not(why)));
        }
        let database = quote_identifier(&self.name_of(MAINTENANCE_DATABASE));
        let sql = settings::set(&database, name, wanted);
        match self.keeper.lock().await.0.execute(&sql).await {
            Ok(_) => Ok(Some(Settled::OnDatabases)),
            Err(SessionError::Sql(error)) => {
                let why = settings::refused(name, wanted, known, &error);
                Ok(Some(Settled::Not(why)))
            }
            Err(lost) => Err(lost),
        }
    }

    /// Back to the article's settings.
    pub async fn let_go(&self) -> Result<(), SessionError> {
        let held = std::mem::take(&mut *self.held());
        let database = quote_identifier(&self.name_of(MAINTENANCE_DATABASE));
        let mut keeper = self.keeper.lock().await;
        for name in held.keys() {
            let sql = match self.own.get(name) {
                Some(value) => settings::set(&database, name, value),
                None => settings::reset(&database, name),
            };
            keeper.0.execute(&sql).await?;
        }
        Ok(())
    }

    /// The article's settings: had already, set in each database of ours, or other than they
    /// should be, which is said wherever the figures are.
    async fn take_settings(&mut self, wanted: &BTreeMap<String, String>) -> Result<(), Failure> {
        let known = self.known(wanted).await?;
        for (name, value) in wanted {
            match self.settle(name, value, known.get(name)).await? {
                Some(Settled::OnDatabases) => {
                    self.own.insert(name.clone(), value.clone());
                }
                // A value that no server takes is the article's mistake.
                Some(Settled::Not(why)) if settings::is_mistake(&why) => {
                    return Err(Failure::article(why));
                }
                None | Some(Settled::Not(_)) => {}
            }
        }
        let mut has = self.known(wanted).await?;
        for (name, value) in wanted {
            let known = has.remove(name);
            let set = self.own.contains_key(name);
            let as_wanted = match &known {
                _ if set => settings::came_to_nothing(name, value, known.as_ref()).is_none(),
                Some(known) => known.has(value),
                None => false,
            };
            if !as_wanted {
                let difference = SettingDifference {
                    wanted: value.clone(),
                    has: known.map(|known| known.shown),
                };
                self.differing.insert(name.clone(), difference);
            }
        }
        Ok(())
    }

    /// Drops every database of this run.
    pub async fn stop(self) -> Result<(), Failure> {
        let mut keeper = self.keeper.into_inner();
        let left = strays::drop_run(&mut keeper.0, &self.run).await?;
        keeper.0.close().await;
        match left.first() {
            None => Ok(()),
            Some((name, error)) => Err(Failure::Engine(
                Diagnostic::error(format!(
                    "database `{name}` cannot be dropped: {} (SQLSTATE {})",
                    error.message, error.sqlstate
                ))
                .note("what was measured is kept")
                .hint("the next run on this server tries again"),
            )),
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Twelve digits that no other run has.
fn run_id() -> std::io::Result<String> {
    use std::io::Read;
    let mut bits = [0_u8; 6];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bits)?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}
