//! Decides what has to run. Entry: [`plan`], a pure function of the article after its profile, the
//! server it is pinned to, and what is already measured.
//!
//! 1. [`resolve`] applies a profile to the article's params, runs and warm-ups.
//! 2. [`fingerprint::of_experiment`] names every input an experiment depends on.
//! 3. [`plan`] compares with what is stored and says for each experiment what to do, and why.

pub mod fingerprint;
mod reasons;

pub use reasons::Reason;

use crate::article::{Article, Experiment, Profile, Runs, Variables};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::record::Fingerprint;
use crate::record::store::StoredExperiment;

/// The name of the profile in which params stand as the article has them.
pub const FULL: &str = "full";

/// An article's params and repetitions after a profile.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub profile: String,
    pub params: Variables,
    runs: Option<Runs>,
    warmup: Option<u32>,
}

impl Resolved {
    pub fn runs(&self, experiment: &Experiment) -> Runs {
        self.runs.clone().unwrap_or_else(|| experiment.runs.clone())
    }

    pub fn warmup_runs(&self, experiment: &Experiment) -> u32 {
        // A profile thins out warm-ups that the experiment asks for; it invents none.
        match self.warmup {
            Some(warmup) if experiment.warmup_runs > 0 => warmup,
            _ => experiment.warmup_runs,
        }
    }

    /// Params with one cell's matrix values laid over them.
    pub fn variables(&self, experiment: &Experiment, cell: usize) -> Variables {
        let mut variables = self.params.clone();
        let cells = &experiment.cells;
        for (name, value) in cells.columns.iter().zip(&cells.rows[cell]) {
            variables.insert(name.clone(), value.clone());
        }
        variables
    }
}

/// Applies the profile called `name` (None: `full`).
pub fn resolve(article: &Article, name: Option<&str>) -> Result<Resolved, Diagnostic> {
    let front = &article.front_matter;
    let name = name.unwrap_or(FULL);
    let none = Profile::default();
    let profile =
        match front.profiles.get(name) {
            Some(profile) => profile,
            None if name == FULL => &none,
            None => {
                let known = || front.profiles.keys().map(String::as_str).chain([FULL]);
                return Err(Diagnostic::error(format!(
                    "`{}` has no profile `{name}`",
                    article.source.name
                ))
                .at(&article.source, front.span)
                .label("profiles are defined here")
                .hint(did_you_mean(name, known()).unwrap_or_else(|| {
                    format!("it has {}", known().collect::<Vec<_>>().join(", "))
                })));
            }
        };
    let mut params = front.params.clone();
    for (param, value) in &profile.params {
        params.insert(param.clone(), value.clone());
    }
    Ok(Resolved {
        profile: name.to_owned(),
        params,
        runs: profile.runs.clone(),
        warmup: profile.warmup,
    })
}

/// The server an article is pinned to, as far as results depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    pub version: String,
    /// sha256 of the archive or image; None: unpinned.
    pub digest: Option<String>,
    pub engine: String,
}

/// What a person may ask for against what is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Force {
    Nothing,
    Everything,
    Experiments(Vec<String>),
}

impl Force {
    fn includes(&self, id: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Experiments(ids) => ids.iter().any(|forced| forced == id),
        }
    }
}

#[derive(Debug)]
pub struct PlannedExperiment<'a> {
    pub experiment: &'a Experiment,
    pub fingerprint: Fingerprint,
    pub decision: Decision,
}

#[derive(Debug)]
pub enum Decision {
    /// The stored result is valid.
    Reuse(Box<StoredExperiment>),
    /// To be measured; `kept` holds the cells an interrupted run had finished.
    Run {
        reason: Reason,
        kept: Option<Box<StoredExperiment>>,
    },
}

/// One entry for each experiment, in the order of the document.
pub fn plan<'a>(
    article: &'a Article,
    resolved: &Resolved,
    server: &ServerIdentity,
    host: &str,
    force: &Force,
    stored: &dyn Fn(&Experiment) -> Vec<StoredExperiment>,
) -> Vec<PlannedExperiment<'a>> {
    article
        .experiments()
        .map(|experiment| {
            let fingerprint = fingerprint::of_experiment(article, experiment, resolved, server);
            let decision = decide(
                experiment,
                &fingerprint,
                host,
                force.includes(&experiment.id.value),
                stored(experiment),
            );
            PlannedExperiment {
                experiment,
                fingerprint,
                decision,
            }
        })
        .collect()
}

fn decide(
    experiment: &Experiment,
    fingerprint: &Fingerprint,
    host: &str,
    forced: bool,
    stored: Vec<StoredExperiment>,
) -> Decision {
    let run = |reason| Decision::Run { reason, kept: None };
    if forced {
        return run(Reason::Forced);
    }
    let (same, others): (Vec<_>, Vec<_>) = stored
        .into_iter()
        .partition(|result| result.inputs == *fingerprint);
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        same.into_iter().partition(|result| result.host == host);
    if let Some(result) = here.into_iter().max_by_key(|result| result.finished) {
        return if result.finished {
            Decision::Reuse(Box::new(result))
        } else if result.samples.is_empty() {
            run(Reason::FailedBefore)
        } else if !experiment.cells_stand_alone() {
            run(Reason::BeginsAgain)
        } else {
            Decision::Run {
                reason: Reason::Interrupted {
                    cells_done: result.cells_done(),
                },
                kept: Some(Box::new(result)),
            }
        };
    }
    if !elsewhere.is_empty() {
        return run(Reason::OtherHost);
    }
    match others
        .iter()
        .max_by(|a, b| a.measured_at.cmp(&b.measured_at))
    {
        Some(latest) => run(Reason::Changed(fingerprint::differences(
            &latest.inputs,
            fingerprint,
        ))),
        None => run(Reason::NeverMeasured),
    }
}
