//! Decides what has to run. Entry: [`plan`], a pure function of the article after its profile, the
//! server it is pinned to, and what is already measured.
//!
//! 1. [`resolve`] applies a profile to the article's params, runs and warm-ups.
//! 2. [`fingerprint::of_experiment`] names every input an experiment depends on.
//! 3. [`plan`] compares with what is stored and says for each experiment what to do, and why.

pub mod fingerprint;
mod reasons;
pub mod shards;

pub use reasons::Reason;

use crate::article::{Article, Experiment, Fresh, Order, Profile, Runs, Variables};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::record::store::StoredExperiment;
use crate::record::{Fingerprint, Record};
use std::cmp::Reverse;

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
    servers: &[ServerIdentity],
    host: &str,
    force: &Force,
    stored: &dyn Fn(&Experiment) -> Vec<StoredExperiment>,
) -> Vec<PlannedExperiment<'a>> {
    article
        .experiments()
        .map(|experiment| {
            let fingerprint = fingerprint::of_experiment(article, experiment, resolved, servers);
            let decision = if force.includes(&experiment.id.value) {
                Decision::run(Reason::Forced)
            } else {
                decide(experiment, &fingerprint, host, stored(experiment))
            };
            PlannedExperiment {
                experiment,
                fingerprint,
                decision,
            }
        })
        .collect()
}

/// The same for what was measured elsewhere: what the record has counts, whichever host it is of.
pub fn of_record<'a>(
    article: &'a Article,
    resolved: &Resolved,
    servers: &[ServerIdentity],
    record: &Record,
) -> Vec<PlannedExperiment<'a>> {
    (article.experiments())
        .map(|experiment| {
            let fingerprint = fingerprint::of_experiment(article, experiment, resolved, servers);
            let recorded = record.experiments.get(&experiment.id.value);
            let stored = recorded
                .and_then(|recorded| StoredExperiment::from_record(recorded, &experiment.cells));
            let host = stored.as_ref().map(|stored| stored.host.clone());
            let decision = decide(
                experiment,
                &fingerprint,
                &host.unwrap_or_default(),
                stored.into_iter().collect(),
            );
            PlannedExperiment {
                experiment,
                fingerprint,
                decision,
            }
        })
        .collect()
}

impl Decision {
    /// Why an existing server refused the experiment, where what is kept of it is that.
    pub fn skipped(&self) -> Option<&str> {
        match self {
            Self::Reuse(result) => result.skipped.as_deref(),
            Self::Run { .. } => None,
        }
    }

    /// A refusal is asked for again: the server's owner may have changed his mind.
    pub fn tried_again(self) -> Self {
        match self.skipped() {
            Some(_) => Self::run(Reason::SkippedBefore),
            None => self,
        }
    }

    fn run(reason: Reason) -> Self {
        Self::Run { reason, kept: None }
    }
}

/// Of several results of the same inputs a whole one counts before an interrupted one, then the
/// later one.
fn decide(
    experiment: &Experiment,
    fingerprint: &Fingerprint,
    host: &str,
    stored: Vec<StoredExperiment>,
) -> Decision {
    let (same, others): (Vec<_>, Vec<_>) = stored
        .into_iter()
        .partition(|result| result.inputs == *fingerprint);
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        same.into_iter().partition(|result| result.host == host);
    let best = here.into_iter().max_by(|a, b| {
        let by_worth = |result: &StoredExperiment| (result.finished, result.measured_at.clone());
        by_worth(a).cmp(&by_worth(b))
    });
    if let Some(result) = best {
        return if result.finished {
            Decision::Reuse(Box::new(result))
        } else if result.samples.is_empty() {
            Decision::run(Reason::FailedBefore)
        } else if !goes_on_by_cell(experiment) {
            Decision::run(Reason::StartsOver)
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
        return Decision::run(Reason::OtherHost);
    }
    let latest = latest(&others, fingerprint);
    Decision::run(match latest {
        Some(latest) => Reason::Changed(latest.inputs.differences(fingerprint)),
        None => Reason::NeverMeasured,
    })
}

/// The result that was measured last; of those that began in the same second the one that is most
/// like what is asked for.
pub fn latest<'s>(
    stored: &'s [StoredExperiment],
    fingerprint: &Fingerprint,
) -> Option<&'s StoredExperiment> {
    stored.iter().max_by_key(|result| {
        let differences = result.inputs.differences(fingerprint).len();
        (result.measured_at.clone(), Reverse(differences))
    })
}

/// Whether an interrupted run can go on at the next cell: where no cell sees another, in its state
/// or in its time.
fn goes_on_by_cell(experiment: &Experiment) -> bool {
    experiment.order == Order::Sequential && experiment.fresh != Fresh::Never
}

#[cfg(test)]
mod tests;
