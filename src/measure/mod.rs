//! Runs one experiment on one server. Entry: [`measure`].
//!
//! 1. [`settings`] brings the server to the experiment's settings.
//! 2. [`fixture`] builds the starting state once and clones it for each fresh state.
//! 3. [`protocol`] walks cells and runs: setup, warm-up, the measured window, collects. [`phase`] runs
//!    a phase by its client: [`script`] its statements, [`repeat`] one over and over, [`program`] what
//!    is psql's or pgbench's.
//! 4. [`instrument`]s read around the window; [`doubts`] watch it.
//! 5. After each cell the samples are handed to the store.

pub mod client;
pub mod clock;
mod collect;
mod doubts;
pub mod environment;
mod fixture;
pub mod instrument;
mod phase;
pub mod program;
mod protocol;
pub mod protocols;
mod readings;
pub mod repeat;
mod sample;
mod sampling;
mod script;
mod sessions;
mod settings;
mod skipped;
mod state;
pub mod statistics;
mod waiting;
mod window;

pub use fixture::Fixtures;
use settings::Settled;

use crate::article::{Article, Experiment};
use crate::engine::Server;
use crate::exit_code::Failure;
use crate::plan::Resolved;
use crate::record::Fingerprint;
use crate::record::store::{Store, StoredExperiment};

/// What one experiment is measured with.
pub struct Request<'a> {
    pub article: &'a Article,
    pub resolved: &'a Resolved,
    pub experiment: &'a Experiment,
    /// Where the article has several: only cells of this one, which the server is of.
    pub version: Option<&'a str>,
    pub inputs: &'a Fingerprint,
    /// sha256 of `inputs`.
    pub fingerprint: &'a str,
    /// sha256 of the host.
    pub host: &'a str,
    /// What an interrupted run had finished.
    pub kept: Option<&'a StoredExperiment>,
    pub store: &'a Store,
}

impl Request<'_> {
    /// The cells that belong on this server.
    pub fn cells(&self) -> impl Iterator<Item = usize> {
        let postgres = &self.article.front_matter.postgres;
        (0..self.experiment.cells.rows.len()).filter(move |cell| {
            let version = self.experiment.version_of(postgres, *cell);
            self.version.is_none() || self.version == version.as_deref()
        })
    }
}

/// Told what happens, as it happens.
pub trait Progress {
    /// What runs now: an experiment's cell ("indexes=8") and phase.
    fn activity(&self, experiment: &str, cell: &str, phase: &str);
    /// All runs of a cell are measured and stored.
    fn unit_done(&self, experiment: &str, cell: usize, seconds: f64);
    /// Nothing of it is measured: the server refuses it.
    fn skipped(&self, _experiment: &str, _reason: &str) {}
}

/// Measures what is still missing of an experiment on this server; every cell of it is in the store
/// when it returns. What an existing server refuses is no mistake of the article: the store then has
/// why nothing was measured.
pub async fn measure(
    server: &mut Server,
    fixtures: &mut Fixtures,
    request: &Request<'_>,
    progress: &dyn Progress,
) -> Result<(), Failure> {
    let before = skipped::beforehand(server, request.article, request.experiment);
    let reason = match before {
        Some(reason) => reason,
        None => {
            let Err(failure) = measure_cells(server, fixtures, request, progress).await else {
                return Ok(());
            };
            match skipped::refusal(server, &failure) {
                Some(reason) => reason,
                None => return Err(failure),
            }
        }
    };
    let id = &request.experiment.id.value;
    progress.skipped(id, &reason);
    let stored = StoredExperiment {
        inputs: request.inputs.clone(),
        host: request.host.to_owned(),
        measured_at: clock::now(),
        skipped: Some(reason),
        ..StoredExperiment::default()
    };
    request.store.skip(id, request.fingerprint, &stored)
}

async fn measure_cells(
    server: &mut Server,
    fixtures: &mut Fixtures,
    request: &Request<'_>,
    progress: &dyn Progress,
) -> Result<(), Failure> {
    let Request {
        article,
        resolved,
        experiment,
        ..
    } = *request;
    if let Some(fixture) = &experiment.fixture {
        progress.activity(
            &experiment.id.value,
            "",
            &format!("fixture {}", fixture.value),
        );
        fixtures.build(server, article, resolved, fixture).await?;
    }
    let mut settled = {
        // Those of a cell are applied as it begins: the first comes first.
        let first = request.cells().next().unwrap_or(0);
        let variables = resolved.variables(experiment, first);
        Settled::begin(server, article, experiment, &variables).await?
    };
    let start = StoredExperiment {
        inputs: request.inputs.clone(),
        host: request.host.to_owned(),
        settings: settled.of_all_cells(experiment),
        ..request.kept.cloned().unwrap_or_else(|| StoredExperiment {
            measured_at: clock::now(),
            ..StoredExperiment::default()
        })
    };
    let writer = request
        .store
        .writer(&experiment.id.value, request.fingerprint, &start);
    let result = match writer {
        Ok(writer) => protocol::run(server, request, &start, &mut settled, writer, progress)
            .await
            .map_err(|failure| failure.at(&article.source, experiment.id.span)),
        Err(failure) => Err(failure),
    };
    let undone = settled.undo(server).await;
    result.and(undone)
}

/// Makes the extensions that the tool reads with, and those of the article, in the tool's own
/// database: so that their versions are known before anything is measured, and one that cannot be
/// had is told once.
pub async fn prepare(server: &Server, article: &Article) -> Result<(), Failure> {
    let database = settings::TOOL_DATABASE;
    let own = server.create_extension(database, skipped::WAL_READER).await;
    if let Err(failure) = own
        && server.missing_extension(skipped::WAL_READER).is_none()
    {
        return Err(failure);
    }
    let mut problems = Vec::new();
    for extension in &article.front_matter.postgres.extensions {
        match server.create_extension(database, &extension.value).await {
            Ok(_) => {}
            // Told of each experiment.
            Err(_) if server.missing_extension(&extension.value).is_some() => {}
            Err(failure) => match failure.at(&article.source, extension.span) {
                Failure::Article(mut found) => problems.append(&mut found),
                other => return Err(other),
            },
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Failure::Article(problems))
    }
}

#[cfg(test)]
mod tests;
