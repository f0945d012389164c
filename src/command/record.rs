//! From an article to its record: what is stored is planned against, measured where needed,
//! analysed, and put together with the environment.

use super::project::Project;
use super::terminal;
use crate::analyse::{self, Analysis};
use crate::article::{Article, Experiment, Statement};
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
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One article in one profile on one engine, with everything that is known before a server runs.
pub struct Context<'a> {
    pub article: &'a Article,
    pub resolved: Resolved,
    pub pin: &'a Pin,
    pub server: ServerIdentity,
    /// Which engine, and why.
    pub engine: Identity,
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
    pub analysis: Analysis,
}

const ANALYSIS: &str = "analysis";

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
        let version = &article.front_matter.postgres.version;
        let pin = pins.version(&version.value).ok_or_else(|| {
            Failure::article(
                Diagnostic::error(format!("Postgres {} is not pinned", version.value))
                    .at(&article.source, version.span)
                    .hint(pins.hint_for_unknown(&version.value)),
            )
        })?;
        let engine = engines.choose(pin, platform_of(article)).await?;
        terminal::tell_diagnostics(&engines.warnings());
        let accepted = read_record(&record_path(article))?;
        Ok(Self {
            article,
            resolved,
            pin,
            host: host_of(&engine, pin, platform_of(article), false, &|_| {}).await?,
            server: server_of(pin, &engine),
            engine,
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
        self.host = host_of(&self.engine, self.pin, self.platform(), !offline, progress).await?;
        Ok(())
    }

    /// Pulls an image that the choice of the engine counts on; where that fails another engine is
    /// taken after all.
    pub async fn settle(&mut self, engines: &Engines) -> Result<(), Failure> {
        let settled = engines.settle(self.pin, self.platform()).await?;
        terminal::tell_diagnostics(&engines.warnings());
        if let Some(engine) = settled.filter(|_| self.given.is_none()) {
            self.server = server_of(self.pin, &engine);
            self.engine = engine;
        }
        Ok(())
    }

    /// What the article asks of a container's image.
    pub fn platform(&self) -> Option<&'a str> {
        platform_of(self.article)
    }

    /// The same with the measurements of a record in place of this machine's, which only analyses
    /// them.
    pub fn with(mut self, record: Record) -> Self {
        let server = &record.environment.server;
        self.server.digest.clone_from(&server.digest);
        self.server.engine.clone_from(&server.engine);
        self.engine.reason.clone_from(&server.engine_reason);
        self.host = record.environment.host.clone();
        self.given = Some(record);
        self
    }

    pub fn plan(&self, force: &Force) -> Vec<PlannedExperiment<'a>> {
        if let Some(record) = &self.given {
            return plan::of_record(self.article, &self.resolved, &self.server, record);
        }
        plan::plan(
            self.article,
            &self.resolved,
            &self.server,
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

    /// The server is part of the name: an analysis on another build says so in its record. Of
    /// existing servers two are alike in everything but which they are.
    fn analysis_file(&self, key: &str) -> String {
        let which = match self.server.engine.as_str() {
            "url" => self.host.sha256.as_str(),
            _ => "",
        };
        sha256_of(format!("{key} {:?}{which}", self.server).as_bytes())
    }

    fn assemble(&self, planned: &[PlannedExperiment<'a>], stored: StoredAnalysis) -> Record {
        let StoredAnalysis {
            server,
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
            environment: self.environment(server),
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
    fn environment(&self, mut server: ServerEnvironment) -> Environment {
        if let Some(given) = &self.given {
            return given.environment.clone();
        }
        server.engine_reason.clone_from(&self.engine.reason);
        Environment {
            server,
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

fn platform_of(article: &Article) -> Option<&str> {
    let platform = article.front_matter.postgres.platform.as_ref();
    platform.map(|platform| platform.value.as_str())
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
