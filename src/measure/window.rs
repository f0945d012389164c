//! What goes on beside a measured window: phases on named sessions, samples, and what happens when
//! one of them fails.

use super::doubts::{Found, Kind};
use super::protocol::{Protocol, rules};
use super::sample::RowBuilder;
use super::sampling::Sampler;
use super::sessions::{Belongs, NamedSessions, Opening};
use super::state::State;
use super::waiting::{self, Watcher};
use crate::engine::session::Session;
use crate::exit_code::Failure;
use crate::quantity::{Column, Table, Value};
use futures_util::future::join_all;
use indexmap::IndexMap;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Why a run came to nothing.
pub enum Stop {
    /// A background phase failed; its session knows why.
    Trouble,
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Runs what is measured with its samplers. When something in the background fails it is cancelled:
/// it may wait for that very thing. `stop` is where that is asked for and with what, of experiments
/// that name sessions.
pub async fn alongside<T>(
    measured: impl Future<Output = T>,
    samplers: &mut [Sampler<'_>],
    named: &mut NamedSessions,
    stop: Option<(Session, String)>,
) -> Result<T, Stop> {
    let (over, listens) = watch::channel(None);
    let measured = async {
        let mut measured = pin!(measured);
        let result = tokio::select! {
            biased;
            result = &mut measured => Ok(result),
            () = named.trouble() => {
                let Some((mut control, cancel)) = stop else {
                    return Err(Failure::internal("trouble without a session of that name").into());
                };
                loop {
                    control.execute(&cancel).await.map_err(Failure::from)?;
                    let wait = Duration::from_millis(500);
                    if tokio::time::timeout(wait, &mut measured).await.is_ok() {
                        break Err(Stop::Trouble);
                    }
                }
            }
        };
        // Without samplers nobody listens.
        let _ = over.send(Some(Instant::now()));
        result
    };
    let sampled = join_all(
        samplers
            .iter_mut()
            .map(|sampler| sampler.run(listens.clone())),
    );
    let (result, _) = tokio::join!(measured, sampled);
    result
}

impl<'a> Protocol<'a> {
    /// Phases of `measure` that begin before the window: those that are waited for, then those in
    /// the background.
    pub(super) async fn begin_beside(
        &mut self,
        cell: usize,
        note: String,
        state: &mut State,
    ) -> Result<(), Failure> {
        let experiment = self.request.experiment;
        state.named.name_others_in(&mut state.variables);
        for step in &experiment.before {
            self.step(cell, "measure", step, state).await?;
        }
        let background: Vec<_> = experiment.background.iter().collect();
        self.begin(&background, note, state, Belongs::ToRun).await
    }

    /// Waits until `measure` may begin.
    pub(super) async fn wait(&mut self, cell: usize, state: &mut State) -> Result<(), Stop> {
        let Some(condition) = &self.request.experiment.measure.wait_until else {
            return Ok(());
        };
        let pid = state.subject.backend_pid();
        let backends = state.named.backends(pid);
        let mut variables = state.variables.clone();
        state.named.name_in(&mut variables, pid);
        let mut watcher = Watcher {
            session: &mut state.observer,
            backends: &backends,
        };
        let rules = rules(self.request);
        let waited = tokio::select! {
            biased;
            () = state.named.trouble() => return Err(Stop::Trouble),
            waited = waiting::until(&mut watcher, condition, &variables, rules) => waited,
        };
        waited.map_err(|diagnostic| {
            Stop::Failed(waiting::failure(diagnostic, self.place(cell, "measure")))
        })
    }

    /// One `measure` that is not recorded, with all that belongs to it.
    pub(super) async fn rehearse(&mut self, cell: usize, state: &mut State) -> Result<(), Failure> {
        let rehearsed = self.rehearse_beside(cell, state).await;
        self.ended(rehearsed, state).await
    }

    async fn rehearse_beside(&mut self, cell: usize, state: &mut State) -> Result<(), Stop> {
        let note = self.place(cell, "warmup");
        self.begin_beside(cell, note, state).await?;
        let measure = &self.request.experiment.measure;
        self.phase(cell, "warmup", measure, state).await?;
        for step in &self.request.experiment.after {
            self.step(cell, "measure", step, state).await?;
        }
        Ok(())
    }

    /// Ends what ran beside a run, and says what it came to.
    pub(super) async fn ended<T>(
        &mut self,
        run: Result<T, Stop>,
        state: &mut State,
    ) -> Result<T, Failure> {
        // What failed in the background may be why the run did.
        let is_consequence = matches!(run, Err(Stop::Failed(_))) && state.named.is_in_trouble();
        let ended = self.end_background(state, Belongs::ToRun).await;
        match (run, ended) {
            (Ok(run), Ok(())) => Ok(run),
            (Err(Stop::Failed(_)), Err(failure)) if is_consequence => Err(failure),
            // What follows from a failure is not told beside it.
            (Err(Stop::Failed(failure)), _) | (_, Err(failure)) => Err(failure),
            (Err(Stop::Trouble), Ok(())) => {
                self.end_background(state, Belongs::ToState).await?;
                Err(Failure::internal(
                    "a background phase failed without a reason",
                ))
            }
        }
    }

    /// Ends what runs in the background, and the transactions that phases of a run left open.
    pub(super) async fn end_background(
        &mut self,
        state: &mut State,
        of: Belongs,
    ) -> Result<(), Failure> {
        if state.named.is_empty() {
            return Ok(());
        }
        let opening = Opening {
            server: self.server,
            article: self.request.article,
            database: &state.database,
        };
        state.named.end(opening, &mut self.control, of).await?;
        // One that was terminated is another now.
        let others = state.named.pids();
        let others: Vec<i32> = others.filter(|pid| !self.opened.contains(pid)).collect();
        self.opened.extend(others);
        let experiment = self.request.experiment;
        let of_run = [
            &experiment.before,
            &experiment.background,
            &experiment.after,
        ];
        let of_run = of_run.into_iter().flatten();
        let names = of_run.filter_map(|step| step.session.as_ref());
        state
            .named
            .roll_back(names.map(|name| name.value.as_str()))
            .await
    }

    /// One sampler for each `sample`, ready to ask.
    pub(super) async fn samplers(&self, state: &State) -> Result<Vec<Sampler<'a>>, Failure> {
        let mut samplers = Vec::new();
        for sampling in &self.request.experiment.samples {
            let mut variables = state.variables.clone();
            state
                .named
                .name_in(&mut variables, state.subject.backend_pid());
            let opening = self.opening(&state.database);
            let rules = rules(self.request);
            samplers.push(Sampler::prepare(opening, sampling, variables, rules).await?);
        }
        Ok(samplers)
    }

    /// The samples as tables, how many were taken and missed as columns, and a doubt about those
    /// that were missed.
    pub(super) async fn sampled(
        &mut self,
        samplers: Vec<Sampler<'_>>,
        (cell, run): (usize, u32),
        row: &mut RowBuilder<'_>,
        results: &mut IndexMap<String, Table>,
    ) -> Result<(), Failure> {
        for (sampling, sampler) in self.request.experiment.samples.iter().zip(samplers) {
            let name = &sampling.name.value;
            let sampled = sampler.finish().await?;
            for (what, count) in [("samples", sampled.taken), ("missed", sampled.missed)] {
                row.push_own(
                    Column::new(format!("{name}_{what}"), "numeric"),
                    Value::from_postgres(Some(&count.to_string()), "numeric"),
                )?;
            }
            if sampled.missed > 0 {
                self.doubts.push(Found {
                    cell,
                    run,
                    kind: Kind::MissedSamples,
                    amount: sampled.missed as f64,
                });
            }
            results.insert(name.clone(), sampled.table);
        }
        Ok(())
    }
}
