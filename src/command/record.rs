//! From an article to its record: what is stored is planned against, measured where needed,
//! analysed, and put together with the environment.

use super::project::Project;
use crate::analyse::{self, Analysis};
use crate::article::{Article, Experiment};
use crate::diagnostic::Diagnostic;
use crate::engine::pins::{Pin, Pins};
use crate::engine::{self, EngineChoice};
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
use std::path::{Path, PathBuf};

/// One article in one profile on one engine, with everything that is known before a server runs.
pub struct Context<'a> {
    pub article: &'a Article,
    pub resolved: Resolved,
    /// One for each of the article's versions; claims are evaluated on the first.
    pub pins: Vec<&'a Pin>,
    pub servers: Vec<ServerIdentity>,
    pub engine_reason: String,
    pub host: HostEnvironment,
    pub store: Store,
    /// What the author accepted, where there is a record.
    pub accepted: Option<Record>,
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
    pub fn new(
        project: &Project,
        pins: &'a Pins,
        article: &'a Article,
        profile: Option<&str>,
        engine: &EngineChoice,
    ) -> Result<Self, Failure> {
        let resolved = plan::resolve(article, profile).map_err(Failure::article)?;
        let mut pinned = Vec::new();
        let mut servers = Vec::new();
        let mut engine_reason = String::new();
        for version in article.front_matter.postgres.all_versions() {
            let pin = pins.version(&version.value).ok_or_else(|| {
                Failure::article(
                    Diagnostic::error(format!("Postgres {} is not pinned", version.value))
                        .at(&article.source, version.span)
                        .hint(pins.hint_for_unknown(&version.value)),
                )
            })?;
            let identity = engine::identity(engine, pin)?;
            pinned.push(pin);
            servers.push(ServerIdentity {
                version: pin.version.clone(),
                digest: identity.digest,
                engine: identity.engine.to_owned(),
            });
            if engine_reason.is_empty() {
                engine_reason = identity.reason;
            }
        }
        let accepted = read_record(&record_path(article))?;
        Ok(Self {
            article,
            resolved,
            pins: pinned,
            servers,
            engine_reason,
            host: environment::host(&engine::storage(&engine::default_cache())),
            store: project.store(article),
            accepted,
        })
    }

    pub fn plan(&self, force: &Force) -> Vec<PlannedExperiment<'a>> {
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

    /// The server is part of the name: an analysis on another build says so in its record.
    fn analysis_file(&self, key: &str) -> String {
        match self.servers.as_slice() {
            [only] => sha256_of(format!("{key} {only:?}").as_bytes()),
            several => sha256_of(format!("{key} {several:?}").as_bytes()),
        }
    }

    /// Which engine runs; of several versions it is the same for all.
    pub fn engine(&self) -> &str {
        self.servers.first().map_or("none", |server| &server.engine)
    }

    fn assemble(&self, planned: &[PlannedExperiment<'a>], stored: StoredAnalysis) -> Record {
        let StoredAnalysis {
            mut server,
            mut other_servers,
            mut analysis,
        } = stored;
        for server in [&mut server].into_iter().chain(other_servers.values_mut()) {
            server.engine_reason.clone_from(&self.engine_reason);
        }
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
            environment: Environment {
                server,
                other_servers,
                host: self.host.clone(),
                tool: environment::tool(fingerprint::PROTOCOL),
            },
            queries: analyse::queries(self.article),
            experiments,
            claims: analysis.claims,
            tables: analysis.tables,
            charts: analysis.charts,
        }
    }
}

/// Every experiment with its finished result; None while one is missing.
pub fn measurements<'p>(
    planned: &'p [PlannedExperiment<'_>],
) -> Option<Vec<(&'p Experiment, &'p StoredExperiment)>> {
    planned
        .iter()
        .map(|item| match &item.decision {
            Decision::Reuse(stored) => Some((item.experiment, stored.as_ref())),
            Decision::Run { .. } => None,
        })
        .collect()
}
