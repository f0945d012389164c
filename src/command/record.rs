//! From an article to its record: what is stored is planned against, measured where needed,
//! analysed, and put together with the environment.

use super::project::Project;
use super::terminal;
use crate::analyse::{self, Analysis};
use crate::article::{Article, Experiment, Statement, in_words};
use crate::diagnostic::Diagnostic;
use crate::engine::pins::{Pin, Pins};
use crate::engine::{self, Engines, Identity};
use crate::exit_code::Failure;
use crate::measure::{environment, statistics};
use crate::plan::{
    self, Decision, Force, PlannedExperiment, Resolved, ServerIdentity, fingerprint,
};
use crate::record::store::{Store, StoredExperiment, read_record};
use crate::record::{
    Environment, ExperimentRecord, FORMAT, HostEnvironment, Record, ServerEnvironment, sha256_of,
};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One article in one profile on one engine, with everything that is known before a server runs.
pub struct Context<'a> {
    pub article: &'a Article,
    pub resolved: Resolved,
    /// One for each of the article's versions; claims are evaluated on the first.
    pub pins: Vec<&'a Pin>,
    pub servers: Vec<ServerIdentity>,
    /// Which engine each of them has, and why.
    pub engines: Vec<Identity>,
    pub host: HostEnvironment,
    pub store: Store,
    /// What the author accepted, where there is a record.
    pub accepted: Option<Record>,
    /// What counts in place of everything stored, where a record was given to build from.
    pub given: Option<Record>,
}

/// What an analysis is stored with: the facts about the server that only a running one tells. Why
/// this engine was chosen is left out: that is another matter each time.
#[derive(Serialize, Deserialize)]
pub struct StoredAnalysis {
    pub server: ServerEnvironment,
    #[serde(default)]
    pub other_servers: IndexMap<String, ServerEnvironment>,
    pub analysis: Analysis,
}

const ANALYSIS: &str = "analysis";
const SERVERS: &str = "servers";

pub fn record_path(article: &Article) -> PathBuf {
    record_in(&article.directory)
}

/// Of the article in this file.
pub fn beside(article: &Path) -> PathBuf {
    record_in(article.parent().unwrap_or(Path::new("")))
}

fn record_in(directory: &Path) -> PathBuf {
    let path = directory.join("record.json");
    // As short as possible, for messages.
    path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)
}

impl<'a> Context<'a> {
    /// Says what the choice of an engine waits for, and warns of what it passes over.
    pub async fn new(
        project: &Project,
        pins: &'a Pins,
        article: &'a Article,
        profile: Option<&str>,
        engines: &Engines,
    ) -> Result<Self, Failure> {
        let resolved = plan::resolve(article, profile).map_err(Failure::article)?;
        let mut pinned = Vec::new();
        let mut identities = Vec::new();
        for version in article.front_matter.postgres.all_versions() {
            let pin = pins.version(&version.value).ok_or_else(|| {
                Failure::article(
                    Diagnostic::error(format!("Postgres {} is not pinned", version.value))
                        .at(&article.source, version.span)
                        .hint(pins.hint_for_unknown(&version.value)),
                )
            })?;
            let engine = engines.choose(pin, platform_of(article)).await?;
            refuse_versions_on(&engine, article)?;
            pinned.push(pin);
            identities.push(engine);
        }
        terminal::tell_diagnostics(&engines.warnings());
        let accepted = read_record(&record_path(article))?;
        Ok(Self {
            article,
            resolved,
            host: host_of(
                &identities[0],
                pinned[0],
                platform_of(article),
                false,
                &|_| {},
            )
            .await?,
            servers: servers_of(&pinned, &identities),
            pins: pinned,
            engines: identities,
            store: project.store(article),
            accepted,
            given: None,
        })
    }

    /// Before something is measured: the machine that it will be measured on, also where that can
    /// only be asked with an image that has to be fetched.
    pub async fn find_host(
        &mut self,
        offline: bool,
        progress: &dyn Fn(&str),
    ) -> Result<(), Failure> {
        if self.given.is_some() {
            return Ok(());
        }
        let mut known: Vec<(&Identity, HostEnvironment)> = Vec::new();
        for (engine, pin) in self.engines.iter().zip(&self.pins) {
            if known.iter().any(|(other, _)| other.choice == engine.choice) {
                continue;
            }
            let host = host_of(engine, pin, self.platform(), !offline, progress).await?;
            known.push((engine, host));
        }
        refuse_two_machines(&known)?;
        if let Some((_, host)) = known.into_iter().next() {
            self.host = host;
        }
        Ok(())
    }

    /// Pulls an image that the choice of the engine counts on; where that fails another engine is
    /// taken after all.
    pub async fn settle(&mut self, engines: &Engines) -> Result<(), Failure> {
        for (at, pin) in self.pins.iter().enumerate() {
            let settled = engines.settle(pin, platform_of(self.article)).await?;
            if let Some(engine) = settled.filter(|_| self.given.is_none()) {
                self.servers[at] = server_of(pin, &engine);
                self.engines[at] = engine;
            }
        }
        terminal::tell_diagnostics(&engines.warnings());
        Ok(())
    }

    /// What the article asks of a container's image.
    pub fn platform(&self) -> Option<&'a str> {
        platform_of(self.article)
    }

    /// The same with the measurements of a record in place of this machine's, which only analyses
    /// them.
    pub fn with(mut self, record: Record) -> Self {
        let environment = &record.environment;
        let is_alone = self.servers.len() == 1;
        for (identity, engine) in self.servers.iter_mut().zip(&mut self.engines) {
            let mut others = environment.servers();
            let server = match is_alone {
                true => Some(&environment.server),
                false => others.find(|server| server.version == identity.version),
            };
            if let Some(server) = server {
                identity.digest.clone_from(&server.digest);
                identity.engine.clone_from(&server.engine);
                engine.reason.clone_from(&server.engine_reason);
            }
        }
        self.host = record.environment.host.clone();
        self.given = Some(record);
        self
    }

    pub fn plan(&self, force: &Force) -> Vec<PlannedExperiment<'a>> {
        if let Some(record) = &self.given {
            return plan::of_record(self.article, &self.resolved, &self.servers, record);
        }
        plan::plan(
            self.article,
            &self.resolved,
            &self.servers,
            &self.host.sha256,
            force,
            &|experiment| self.stored(experiment),
        )
    }

    /// Those of the accepted record, and results waiting in the store.
    pub fn stored(&self, experiment: &Experiment) -> Vec<StoredExperiment> {
        let accepted = self
            .accepted
            .as_ref()
            .and_then(|record| record.experiments.get(&experiment.id.value))
            .and_then(|accepted| StoredExperiment::from_record(accepted, &experiment.cells));
        // Of two results of the same inputs the later one counts: the store's.
        accepted
            .into_iter()
            .chain(self.store.results(&experiment.id.value))
            .collect()
    }

    /// The whole record, where everything it needs is stored and analysed already.
    pub fn stored_record(&self, planned: &[PlannedExperiment<'a>]) -> Option<Record> {
        let measurements = measurements(planned)?;
        let key = analyse::key(self.article, &self.resolved, &measurements);
        let stored: StoredAnalysis =
            serde_json::from_str(&self.store.cached(ANALYSIS, &self.analysis_file(&key))?).ok()?;
        Some(self.assemble(planned, stored))
    }

    pub fn store_analysis(
        &self,
        planned: &[PlannedExperiment<'a>],
        stored: &StoredAnalysis,
    ) -> Result<(), Failure> {
        let measurements = measurements(planned).unwrap_or_default();
        let key = analyse::key(self.article, &self.resolved, &measurements);
        let json = serde_json::to_string(stored).expect("an analysis serialises");
        self.store.cache(ANALYSIS, &self.analysis_file(&key), &json)
    }

    /// What a server said of itself when something was last measured on it.
    pub fn stored_server(&self, server: &ServerIdentity) -> Option<ServerEnvironment> {
        let cached = self.store.cached(SERVERS, &self.server_file(server))?;
        serde_json::from_str(&cached).ok()
    }

    pub fn store_server(&self, server: &ServerIdentity, environment: &ServerEnvironment) {
        let json = serde_json::to_string(environment).expect("an environment serialises");
        // It can be asked again.
        let _ = self.store.cache(SERVERS, &self.server_file(server), &json);
    }

    /// All that what it says of itself depends on.
    fn server_file(&self, server: &ServerIdentity) -> String {
        let postgres = &self.article.front_matter.postgres;
        let extensions: Vec<&str> = (postgres.extensions.iter())
            .map(|extension| extension.value.as_str())
            .collect();
        let limits = (&postgres.memory, &postgres.cpus, &postgres.shm_size);
        let (settings, host) = (&postgres.settings, &self.host.sha256);
        sha256_of(format!("{server:?} {settings:?} {extensions:?} {limits:?} {host}").as_bytes())
    }

    /// The server is part of the name: an analysis on another build says so in its record. Of
    /// existing servers two are alike in everything but which they are.
    fn analysis_file(&self, key: &str) -> String {
        let which = match self.servers.first() {
            Some(server) if server.engine == "url" => self.host.sha256.as_str(),
            _ => "",
        };
        match self.servers.as_slice() {
            [only] => sha256_of(format!("{key} {only:?}{which}").as_bytes()),
            several => sha256_of(format!("{key} {several:?}").as_bytes()),
        }
    }

    /// Which engine runs; of several, one for each version that has another.
    pub fn engine(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for server in &self.servers {
            if !names.contains(&server.engine.as_str()) {
                names.push(&server.engine);
            }
        }
        in_words(&names)
    }

    /// Why; of several engines for each version.
    pub fn engine_reason(&self) -> String {
        let reasons: BTreeSet<&str> = (self.engines.iter())
            .map(|engine| engine.reason.as_str())
            .collect();
        if let Some(only) = reasons.first().filter(|_| reasons.len() == 1) {
            return (*only).to_owned();
        }
        let of_each = self.servers.iter().zip(&self.engines);
        let of_each: Vec<String> = of_each
            .map(|(server, engine)| {
                format!("{} {}: {}", server.version, server.engine, engine.reason)
            })
            .collect();
        of_each.join("; ")
    }

    /// `16.15`, `16.15 and 18.6`
    pub fn versions(&self) -> String {
        let versions = self.servers.iter().map(|server| server.version.as_str());
        in_words(&versions.collect::<Vec<_>>())
    }

    fn assemble(&self, planned: &[PlannedExperiment<'a>], stored: StoredAnalysis) -> Record {
        let StoredAnalysis {
            server,
            other_servers,
            mut analysis,
        } = stored;
        for claim in self.article.claims() {
            if let Some(record) = analysis.claims.get_mut(&claim.name.value) {
                record.unit.clone_from(&claim.unit);
            }
        }
        let experiments = planned
            .iter()
            .filter_map(|item| {
                let Decision::Reuse(result) = &item.decision else {
                    return None;
                };
                let id = &item.experiment.id.value;
                let analysed = analysis.experiments.shift_remove(id)?;
                let record = ExperimentRecord {
                    fingerprint: item.fingerprint.sha256(),
                    inputs: item.fingerprint.clone(),
                    host: result.host.clone(),
                    measured_at: result.measured_at.clone(),
                    seconds: result.seconds(),
                    settings: result.settings.clone(),
                    summaries: statistics::summaries(
                        &analysed.measured,
                        &item.experiment.cells.columns,
                    ),
                    doubts: result.doubts.clone(),
                    derived: analysed.derived,
                    measured: analysed.measured,
                    results: analysed.results,
                };
                Some((id.clone(), record))
            })
            .collect();
        Record {
            format: FORMAT,
            article: self.article.slug.clone(),
            profile: self.resolved.profile.clone(),
            params: self
                .resolved
                .params
                .iter()
                .map(|(name, value)| (name.clone(), value.to_string()))
                .collect(),
            part: None,
            environment: self.environment(server, other_servers),
            environments: (self.given.as_ref())
                .map_or_else(BTreeMap::new, |given| given.environments.clone()),
            queries: analyse::queries(self.article),
            experiments,
            claims: analysis.claims,
            tables: analysis.tables,
            charts: analysis.charts,
            skipped: self.skipped(planned),
        }
    }

    /// What an existing server refused: experiments, and all that reads what they would have
    /// measured.
    fn skipped(&self, planned: &[PlannedExperiment<'a>]) -> IndexMap<String, String> {
        let reasons: IndexMap<&str, &str> = planned
            .iter()
            .filter_map(|item| {
                let id = item.experiment.id.value.as_str();
                Some((id, item.decision.skipped()?))
            })
            .collect();
        let mut skipped: IndexMap<String, String> = (reasons.iter())
            .map(|(id, reason)| (Record::called("experiment", id), (*reason).to_owned()))
            .collect();
        if skipped.is_empty() {
            return skipped;
        }
        let article = self.article;
        let mut put = |kind: &str, id: &str, query: &Statement| {
            let reads = analyse::reads(article, &query.text.text);
            let missing = reads.iter().find(|id| reasons.contains_key(id.as_str()));
            if let Some(missing) = missing {
                let why = format!("experiment `{missing}` was skipped on this server");
                skipped.insert(Record::called(kind, id), why);
            }
        };
        for claim in article.claims() {
            put("claim", &claim.name.value, &claim.query);
        }
        for table in article.tables() {
            put("table", &table.id.value, &table.query);
        }
        for chart in article.charts() {
            put("chart", &chart.id.value, &chart.query);
        }
        skipped
    }

    /// What was measured on: of a record that was given its own, whatever it is analysed on.
    fn environment(
        &self,
        mut server: ServerEnvironment,
        mut other_servers: IndexMap<String, ServerEnvironment>,
    ) -> Environment {
        if let Some(given) = &self.given {
            return given.environment.clone();
        }
        for (at, (identity, engine)) in self.servers.iter().zip(&self.engines).enumerate() {
            let environment = match at {
                0 => Some(&mut server),
                _ => other_servers.get_mut(&identity.version),
            };
            if let Some(environment) = environment {
                environment.engine_reason.clone_from(&engine.reason);
            }
        }
        Environment {
            server,
            other_servers,
            host: self.host.clone(),
            tool: environment::tool(fingerprint::PROTOCOL),
        }
    }
}

async fn host_of(
    engine: &Identity,
    pin: &Pin,
    platform: Option<&str>,
    fetch: bool,
    progress: &dyn Fn(&str),
) -> Result<HostEnvironment, Failure> {
    if let Some(host) = &engine.host {
        return Ok(host.clone());
    }
    let cache = engine::default_cache();
    let machine = engine::machine(&engine.choice, pin, platform, &cache, fetch, progress).await?;
    Ok(environment::host(&machine))
}

/// Hosts that stand in a record once, so that all versions have to be measured on one.
fn refuse_two_machines(known: &[(&Identity, HostEnvironment)]) -> Result<(), Failure> {
    let is_of = |host: &HostEnvironment, other: &HostEnvironment| {
        (&host.cpu, host.cores, &host.kernel, &host.architecture)
            == (&other.cpu, other.cores, &other.kernel, &other.architecture)
    };
    let Some(((first, host), others)) = known.split_first() else {
        return Ok(());
    };
    let Some((other, elsewhere)) = others.iter().find(|(_, other)| !is_of(host, other)) else {
        return Ok(());
    };
    Err(Failure::Engine(
        Diagnostic::error("the versions of the article would be measured on two machines")
            .note(format!("{}: {}", first.engine, host.machine()))
            .note(format!("{}: {}", other.engine, elsewhere.machine()))
            .hint("name one engine for all of them: `--engine embedded` or `--engine docker`"),
    ))
}

/// An existing server is of one version, which is that of no cell in particular.
fn refuse_versions_on(engine: &Identity, article: &Article) -> Result<(), Failure> {
    let Some(first) = article.front_matter.postgres.versions.first() else {
        return Ok(());
    };
    if engine.engine != "url" {
        return Ok(());
    }
    Err(Failure::article(
        Diagnostic::error(
            "an existing server is of one version, and this article has each cell measured on its \
             own",
        )
        .at(&article.source, first.span)
        .hint("measure it on the pinned servers: `--engine embedded` or `--engine docker`"),
    ))
}

fn platform_of(article: &Article) -> Option<&str> {
    let platform = article.front_matter.postgres.platform.as_ref();
    platform.map(|platform| platform.value.as_str())
}

fn servers_of(pins: &[&Pin], engines: &[Identity]) -> Vec<ServerIdentity> {
    let pairs = pins.iter().zip(engines);
    pairs.map(|(pin, engine)| server_of(pin, engine)).collect()
}

fn server_of(pin: &Pin, engine: &Identity) -> ServerIdentity {
    ServerIdentity {
        version: engine.version.as_ref().unwrap_or(&pin.version).clone(),
        digest: engine.digest.clone(),
        engine: engine.engine.to_owned(),
    }
}

/// Every experiment with its finished result, but for those that were skipped; None while one is
/// missing.
pub fn measurements<'p>(
    planned: &'p [PlannedExperiment<'_>],
) -> Option<Vec<(&'p Experiment, &'p StoredExperiment)>> {
    planned
        .iter()
        .filter(|item| item.decision.skipped().is_none())
        .map(|item| match &item.decision {
            Decision::Reuse(stored) => Some((item.experiment, stored.as_ref())),
            Decision::Run { .. } => None,
        })
        .collect()
}
