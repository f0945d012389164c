//! What is to be done on the servers of an article, one after the other: measuring what is missing on
//! each, and on the last one the analysis of everything.

use super::progress::Bar;
use super::record::{Context, StoredAnalysis, measurements};
use crate::analyse;
use crate::diagnostic::Diagnostic;
use crate::engine::Server;
use crate::exit_code::Failure;
use crate::measure::{self, Fixtures, Request};
use crate::plan::{Decision, Force, PlannedExperiment, ServerIdentity};
use crate::record::ServerEnvironment;
use crate::record::store::StoredExperiment;
use indexmap::IndexMap;
use std::collections::BTreeSet;

pub struct Work<'a> {
    pub context: &'a Context<'a>,
    pub bar: &'a Bar,
    /// Mistakes of experiments: one does not keep the others from being measured.
    pub problems: Vec<Diagnostic>,
    planned: &'a [PlannedExperiment<'a>],
    /// Experiments that were begun on an earlier server, and those that failed there.
    begun: BTreeSet<String>,
    failed: BTreeSet<String>,
    /// What the servers say of themselves, but for the last.
    environments: IndexMap<String, ServerEnvironment>,
}

impl<'a> Work<'a> {
    pub fn new(
        context: &'a Context<'a>,
        planned: &'a [PlannedExperiment<'a>],
        bar: &'a Bar,
    ) -> Self {
        Self {
            context,
            bar,
            problems: Vec::new(),
            planned,
            begun: BTreeSet::new(),
            failed: BTreeSet::new(),
            environments: IndexMap::new(),
        }
    }

    pub fn several(&self) -> bool {
        !self
            .context
            .article
            .front_matter
            .postgres
            .versions
            .is_empty()
    }

    /// Whether there is anything to do on this server that is not known without it.
    pub fn needs(&mut self, server: &ServerIdentity) -> bool {
        if self.is_last(server) {
            return true;
        }
        if self.context.given.is_some() {
            // What was measured elsewhere is analysed on the last one alone.
            return false;
        }
        let missing = (self.planned.iter()).any(|item| self.is_missing(item, server));
        match self.context.stored_server(server) {
            Some(environment) if !missing => {
                self.environments
                    .insert(server.version.clone(), environment);
                false
            }
            _ => true,
        }
    }

    /// The article's first version is the one that claims are evaluated on.
    fn is_last(&self, server: &ServerIdentity) -> bool {
        self.context.servers.first() == Some(server)
    }

    /// Measures what is missing on this server; on the last one everything is analysed.
    pub async fn on(
        &mut self,
        server: &mut Server,
        identity: &ServerIdentity,
    ) -> Result<(), Failure> {
        let context = self.context;
        let article = context.article;
        measure::prepare(server, article).await?;
        let mut environment = server.describe().await.map_err(Failure::from)?;
        if let Some(network) = &environment.network {
            self.bar.line(&format!(
                "  on {} · by {}, a round trip of {} ms, in no measured time",
                context.host.machine(),
                network.way,
                network.round_trip_ms
            ));
        }
        environment.engine_reason.clear();
        environment.sha256 = environment.hash();
        let mut fixtures = Fixtures::default();
        for item in self.planned {
            if self.is_missing(item, identity) {
                self.measure(server, identity, item, &mut fixtures).await?;
            }
        }
        if !self.is_last(identity) {
            self.context.store_server(identity, &environment);
            self.environments
                .insert(identity.version.clone(), environment);
            return Ok(());
        }
        if !self.problems.is_empty() {
            return Ok(());
        }
        self.analyse(server, environment).await
    }

    async fn measure(
        &mut self,
        server: &mut Server,
        identity: &ServerIdentity,
        item: &PlannedExperiment<'_>,
        fixtures: &mut Fixtures,
    ) -> Result<(), Failure> {
        let context = self.context;
        let id = &item.experiment.id.value;
        let kept = self.kept(item);
        self.begun.insert(id.clone());
        let request = Request {
            article: context.article,
            resolved: &context.resolved,
            experiment: item.experiment,
            version: self.several().then_some(identity.version.as_str()),
            inputs: &item.fingerprint,
            fingerprint: &item.fingerprint.sha256(),
            host: &context.host.sha256,
            kept: kept.as_ref(),
            store: &context.store,
        };
        match measure::measure(server, fixtures, &request, self.bar).await {
            Ok(()) => Ok(()),
            Err(Failure::Article(mut found)) => {
                self.failed.insert(id.clone());
                self.problems.append(&mut found);
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    /// Whether cells of an experiment are still to be measured on this server; on the last one,
    /// whether it is not whole yet.
    fn is_missing(&self, item: &PlannedExperiment<'_>, server: &ServerIdentity) -> bool {
        let experiment = item.experiment;
        let is_run = matches!(item.decision, Decision::Run { .. });
        if !is_run || self.failed.contains(&experiment.id.value) {
            return false;
        }
        let kept = self.kept(item);
        let has = |cell: usize| {
            let samples = kept.iter().flat_map(|kept| &kept.samples);
            samples.into_iter().any(|sample| sample.cell == cell)
        };
        let postgres = &self.context.article.front_matter.postgres;
        let is_on = |cell: usize| match experiment.version_of(postgres, cell) {
            Some(version) => version == server.version,
            None => true,
        };
        let mut cells = 0..experiment.cells.rows.len();
        let is_whole = self.begun.contains(&experiment.id.value) && kept.is_none();
        !is_whole && (self.is_last(server) || cells.any(|cell| is_on(cell) && !has(cell)))
    }

    /// The cells that are measured already: by an interrupted build, or on an earlier server of this
    /// one.
    fn kept(&self, item: &PlannedExperiment<'_>) -> Option<StoredExperiment> {
        let id = &item.experiment.id.value;
        if self.begun.contains(id) {
            let mut stored = self.context.store.results(id).into_iter();
            return stored.find(|stored| {
                stored.inputs == item.fingerprint
                    && stored.host == self.context.host.sha256
                    && !stored.finished
            });
        }
        match &item.decision {
            Decision::Run { kept, .. } => kept.as_deref().cloned(),
            Decision::Reuse(_) => None,
        }
    }

    async fn analyse(
        &mut self,
        server: &Server,
        environment: ServerEnvironment,
    ) -> Result<(), Failure> {
        let context = self.context;
        let planned = context.plan(&Force::Nothing);
        let measured = measurements(&planned).ok_or_else(|| {
            Failure::internal("an experiment was measured, but its result is missing")
        })?;
        self.bar.line("  claims, tables and charts are evaluated");
        let analysis =
            analyse::analyse(server, context.article, &context.resolved, &measured).await?;
        let stored = StoredAnalysis {
            server: environment,
            other_servers: std::mem::take(&mut self.environments),
            analysis,
        };
        context.store_analysis(&planned, &stored)
    }
}
