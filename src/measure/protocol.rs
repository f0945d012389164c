//! The order in which an experiment's cells and runs are measured. Serial: nothing else of ours
//! runs while a window is open.

use super::doubts::{self, Found, Watch};
use super::fixture;
use super::instrument::{self, Window};
use super::phase::{Measured, Running, stop_sql};
use super::readings::{explain, probes, sessions};
use super::sample::{RowBuilder, statements_table};
use super::sampling::Sampler;
use super::script::{Ran, Rules, ScriptError};
use super::sessions::{Belongs, Under};
use super::settings::{Settled, tool_session};
use super::state::State;
use super::waiting::{self, Watcher};
use super::window::{self, Stop};
use super::{Progress, Request};
use crate::article::{Connect, Experiment, Fresh, Order, Phase, Runs, Step};
use crate::diagnostic::Diagnostic;
use crate::engine::Server;
use crate::engine::session::Session;
use crate::exit_code::Failure;
use crate::quantity::{Column, Value};
use crate::record::store::{ResultWriter, StoredExperiment};
use crate::record::{Sample, sha256_of};
use indexmap::IndexMap;
use std::collections::BTreeMap;
use std::time::Instant;

/// Measures every cell that `start` does not hold and hands each to the store.
pub async fn run(
    server: &mut Server,
    request: &Request<'_>,
    start: &StoredExperiment,
    settled: &mut Settled,
    mut writer: ResultWriter,
    progress: &dyn Progress,
) -> Result<(), Failure> {
    let experiment = request.experiment;
    let major = major(&server.environment().version);
    let refused = instrument::refused(&request.article.source, experiment, major);
    if !refused.is_empty() {
        return Err(Failure::Article(refused));
    }
    let mut control = tool_session(server).await?;
    // Elsewhere the processor is another one than this program's.
    let is_emulated = !control.is_elsewhere() && doubts::is_emulated(&mut control).await;
    let mut protocol = Protocol {
        server,
        request,
        control,
        major,
        is_emulated,
        progress,
        doubts: Vec::new(),
        settled,
        opened: Vec::new(),
        taken: start.samples.len() as u64,
    };
    let mut samples = start.samples.clone();
    let cells: Vec<usize> = (request.cells())
        .filter(|cell| start.samples.iter().all(|sample| sample.cell != *cell))
        .collect();
    let units = match experiment.order {
        Order::Sequential => protocol.sequential(&cells, &mut writer).await,
        Order::Interleave | Order::Shuffle => protocol.interleaved(&cells, &mut writer).await,
    };
    // What a failure left running would go on beside the next experiment.
    let ended = match &units {
        Ok(_) => Ok(()),
        Err(_) => protocol.end_all().await,
    };
    samples.extend(units.and_then(|units| ended.map(|()| units))?);
    let mut all = 0..experiment.cells.rows.len();
    if !all.all(|cell| samples.iter().any(|sample| sample.cell == cell)) {
        // The rest is measured on another server.
        return Ok(());
    }
    let mut found = doubts::of_runs(&samples);
    let warmups = request.resolved.warmup_runs(experiment);
    found.extend(doubts::of_plans(&samples, experiment, warmups));
    let late = doubts::sentences(&found, |cell| prefix(&cell_label(experiment, cell)));
    writer.finished(&late)
}

/// The `16` of `16.15`.
fn major(version: &str) -> u32 {
    let digits = version.split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// What the article's statements run under.
pub(super) fn rules<'a>(request: &Request<'a>) -> Rules<'a> {
    Rules {
        source: &request.article.source,
        timeout: request.experiment.timeout,
    }
}

/// `indexes=8 fillfactor=90`, or nothing where there is no matrix.
pub fn cell_label(experiment: &Experiment, cell: usize) -> String {
    let cells = &experiment.cells;
    let pairs: Vec<String> = cells
        .columns
        .iter()
        .zip(&cells.rows[cell])
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join(" ")
}

fn prefix(label: &str) -> String {
    if label.is_empty() {
        String::new()
    } else {
        format!("{label}, ")
    }
}

pub(super) struct Protocol<'a> {
    pub(super) server: &'a mut Server,
    pub(super) request: &'a Request<'a>,
    /// The tool's own connection, as superuser, in the tool's database.
    pub(super) control: Session,
    /// Major version of the server.
    major: u32,
    /// The server's program is for another processor than the machine has.
    is_emulated: bool,
    progress: &'a dyn Progress,
    /// Of cells that are not stored yet.
    pub(super) doubts: Vec<Found>,
    /// The experiment's settings, as they stand on the server.
    pub(super) settled: &'a mut Settled,
    /// Backends of named sessions, whether or not they have ended.
    pub(super) opened: Vec<i32>,
    /// How many runs were measured.
    taken: u64,
}

impl Protocol<'_> {
    pub(super) fn experiment(&self) -> &Experiment {
        self.request.experiment
    }

    pub(super) fn activity(&self, cell: usize, phase: &str) {
        let experiment = self.request.experiment;
        self.progress
            .activity(&experiment.id.value, &cell_label(experiment, cell), phase);
    }

    /// Cell after cell, each with all its runs.
    async fn sequential(
        &mut self,
        cells: &[usize],
        writer: &mut ResultWriter,
    ) -> Result<Vec<Sample>, Failure> {
        let mut all = Vec::new();
        let mut previous: Option<State> = None;
        for &cell in cells {
            let began = Instant::now();
            let mut state = Box::pin(self.begin_cell(cell, previous.take())).await?;
            let mut samples: Vec<Sample> = Vec::new();
            while self.wants_more(&samples) {
                let run = u32::try_from(samples.len()).unwrap_or(u32::MAX) + 1;
                state = self.renew(cell, run, state).await?;
                samples.push(self.one_run(cell, run, &mut state).await?);
            }
            previous = self.end_cell(cell, state).await?;
            self.store_cell(writer, cell, began.elapsed().as_secs_f64(), &samples)?;
            all.extend(samples);
        }
        if let Some(state) = previous {
            self.discard(state).await?;
        }
        Ok(all)
    }

    /// The cells in the order of this round: as they come, or shuffled by the seed, which is what
    /// the hash is for.
    fn order_of_round(&self, cells: &[usize], round: u32) -> Vec<usize> {
        let mut cells = cells.to_vec();
        if self.experiment().order == Order::Shuffle {
            let seed = self.request.article.front_matter.seed.to_plain_string();
            let id = &self.experiment().id.value;
            let place = |cell: &usize| sha256_of(format!("{seed} {id} {round} {cell}").as_bytes());
            cells.sort_by_cached_key(place);
        }
        cells
    }

    /// Run 1 of every cell, then run 2 …: what drifts with time meets all cells alike.
    async fn interleaved(
        &mut self,
        cells: &[usize],
        writer: &mut ResultWriter,
    ) -> Result<Vec<Sample>, Failure> {
        let mut states: BTreeMap<usize, State> = BTreeMap::new();
        let mut samples: BTreeMap<usize, Vec<Sample>> = BTreeMap::new();
        let mut seconds: BTreeMap<usize, f64> = BTreeMap::new();
        for round in 1_u32.. {
            let mut measured = false;
            for cell in self.order_of_round(cells, round) {
                let done = samples.entry(cell).or_default();
                if !self.wants_more(done) {
                    continue;
                }
                measured = true;
                let run = u32::try_from(done.len()).unwrap_or(u32::MAX) + 1;
                let start = Instant::now();
                let mut state = match states.remove(&cell) {
                    Some(state) => self.renew(cell, run, state).await?,
                    None => Box::pin(self.begin_cell(cell, None)).await?,
                };
                let sample = self.one_run(cell, run, &mut state).await?;
                samples.entry(cell).or_default().push(sample);
                *seconds.entry(cell).or_default() += start.elapsed().as_secs_f64();
                states.insert(cell, state);
            }
            if !measured {
                break;
            }
        }
        for (cell, state) in states {
            if let Some(state) = self.end_cell(cell, state).await? {
                self.discard(state).await?;
            }
        }
        for (&cell, samples) in &samples {
            let seconds = seconds.get(&cell).copied().unwrap_or_default();
            self.store_cell(writer, cell, seconds, samples)?;
        }
        Ok(samples.into_values().flatten().collect())
    }

    /// Hands a cell with all its runs, and the doubts about them, to the store.
    fn store_cell(
        &mut self,
        writer: &mut ResultWriter,
        cell: usize,
        seconds: f64,
        samples: &[Sample],
    ) -> Result<(), Failure> {
        let of_cell = |found: &mut Found| found.cell == cell;
        let found: Vec<Found> = self.doubts.extract_if(.., of_cell).collect();
        let label = prefix(&cell_label(self.request.experiment, cell));
        let doubts = doubts::sentences(&found, |_| label.clone());
        writer.unit(cell, seconds, samples, &doubts)?;
        let id = &self.request.experiment.id.value;
        self.progress.unit_done(id, cell, seconds);
        Ok(())
    }

    fn wants_more(&self, samples: &[Sample]) -> bool {
        let done = u32::try_from(samples.len()).unwrap_or(u32::MAX);
        match self.request.resolved.runs(self.experiment()) {
            Runs::Fixed(runs) => done < runs,
            Runs::Adaptive { min, max, until } => {
                if done < min || done >= max {
                    return done < min;
                }
                use bigdecimal::ToPrimitive;
                let elapsed: Vec<f64> = samples
                    .iter()
                    .filter_map(|sample| {
                        let column = sample.row.column("elapsed_ms")?;
                        Some(sample.row.rows.first()?[column].number()?.to_f64())
                    })
                    .collect();
                super::statistics::relative_half_width(&elapsed)
                    .is_none_or(|width| width > until.to_f64().unwrap_or(0.0))
            }
        }
    }

    /// The state a cell starts from, set up and warmed up. `previous` is the state that `fresh:
    /// never` builds on.
    async fn begin_cell(&mut self, cell: usize, previous: Option<State>) -> Result<State, Failure> {
        let variables = self.request.resolved.variables(self.experiment(), cell);
        let previous = previous.map(|previous| (previous.database.clone(), previous));
        let restarted = self.settle(cell, &variables).await?;
        let state = match previous {
            Some((database, previous)) if !restarted => {
                let subject = self.subject(&database, &variables).await?;
                State {
                    subject,
                    variables,
                    ..previous
                }
            }
            // Its sessions ended with the server.
            Some((database, mut previous)) => {
                let workspace = previous.workspace.take();
                self.connect(database, variables, workspace).await?
            }
            None => self.fresh_state(cell, variables).await?,
        };
        self.set_up(cell, state).await
    }

    /// Before run 2 and later: back to fixture and setup, or to a new session, as declared.
    async fn renew(&mut self, cell: usize, run: u32, state: State) -> Result<State, Failure> {
        if run == 1 {
            return Ok(state);
        }
        if self.experiment().fresh == Fresh::Run {
            if let Some(state) = self.end_cell(cell, state).await? {
                self.discard(state).await?;
            }
            return Box::pin(self.begin_cell(cell, None)).await;
        }
        Ok(state)
    }

    async fn set_up(&mut self, cell: usize, mut state: State) -> Result<State, Failure> {
        let experiment = self.request.experiment;
        state.named.name_others_in(&mut state.variables);
        for step in &experiment.setup {
            self.activity(cell, "setup");
            self.step(cell, "setup", step, &mut state).await?;
        }
        let warmups = self.request.resolved.warmup_runs(experiment);
        let times = match experiment.warmup.as_slice() {
            [] => warmups,
            _ => warmups.max(1),
        };
        for number in 1..=times {
            self.activity(cell, &format!("warm-up {number} of {times}"));
            for step in &experiment.warmup {
                self.step(cell, "warmup", step, &mut state).await?;
            }
            if experiment.warmup.is_empty() {
                self.rehearse(cell, &mut state).await?;
            }
        }
        Ok(state)
    }

    /// One phase beside the measured one, on its session.
    pub(super) async fn step(
        &mut self,
        cell: usize,
        name: &str,
        step: &Step,
        state: &mut State,
    ) -> Result<(), Failure> {
        let note = self.place(cell, name);
        let Some(session) = &step.session else {
            return self.phase(cell, name, &step.phase, state).await.map(drop);
        };
        if step.background {
            return self.begin(&[step], note, state, Belongs::ToState).await;
        }
        let subject = state.subject.backend_pid();
        let under = Under {
            variables: &mut state.variables,
            rules: rules(self.request),
            observer: &mut state.observer,
            subject,
            note,
        };
        state.named.run(session, step, under).await
    }

    /// Begins phases in the background.
    pub(super) async fn begin(
        &self,
        steps: &[&Step],
        note: String,
        state: &mut State,
        of: Belongs,
    ) -> Result<(), Failure> {
        let subject = state.subject.backend_pid();
        let under = Under {
            variables: &mut state.variables,
            rules: rules(self.request),
            observer: &mut state.observer,
            subject,
            note,
        };
        let opening = self.opening(&state.database);
        state.named.begin(opening, steps, under, of).await
    }

    /// A phase on the measuring session.
    pub(super) async fn phase(
        &mut self,
        cell: usize,
        name: &str,
        phase: &Phase,
        state: &mut State,
    ) -> Result<Ran, Failure> {
        let rules = rules(self.request);
        let backends = state.named.backends(state.subject.backend_pid());
        let mut watcher = Watcher {
            session: &mut state.observer,
            backends: &backends,
        };
        if let Some(condition) = &phase.wait_until {
            let mut variables = state.variables.clone();
            let pid = state.subject.backend_pid();
            state.named.name_in(&mut variables, pid);
            waiting::until(&mut watcher, condition, &variables, rules)
                .await
                .map_err(|diagnostic| waiting::failure(diagnostic, self.place(cell, name)))?;
        }
        let running = Running {
            server: self.server,
            request: self.request,
            control: &mut self.control,
            name,
            phase,
            rules,
            database: &state.database,
            workspace: state.workspace.as_ref(),
            subject: &mut state.subject,
            variables: &mut state.variables,
            watcher,
            measured: None,
        };
        let ran = Box::pin(running.run()).await;
        let ran = ran.map_err(|(_, error)| fixture::failure(error, self.place(cell, name)))?;
        if ran.in_transaction && name == "warmup" {
            script_rollback(&mut state.subject).await?;
        }
        Ok(ran)
    }

    pub(super) fn place(&self, cell: usize, phase: &str) -> String {
        let experiment = self.request.experiment;
        format!(
            "in `{phase}` of experiment `{}`{}",
            experiment.id.value,
            match cell_label(experiment, cell) {
                label if label.is_empty() => String::new(),
                label => format!(", cell {label}"),
            }
        )
    }

    /// One measured window with everything around it. What runs beside it in the background ends
    /// with it, however it ends.
    async fn one_run(
        &mut self,
        cell: usize,
        run: u32,
        state: &mut State,
    ) -> Result<Sample, Failure> {
        if self.experiment().connect == Connect::Run {
            state.subject = self.subject(&state.database, &state.variables).await?;
        }
        self.activity(cell, &format!("run {run}"));
        let measured = Box::pin(self.beside_others(cell, run, state)).await;
        self.ended(measured, state).await
    }

    /// The window, its readings, and what is collected after it.
    async fn beside_others(
        &mut self,
        cell: usize,
        run: u32,
        state: &mut State,
    ) -> Result<Sample, Stop> {
        let experiment = self.request.experiment;
        let note = format!("{}, run {run}", self.place(cell, "measure"));
        self.begin_beside(cell, note, state).await?;
        let mut samplers = self.samplers(state).await?;
        self.wait(cell, state).await?;
        let mut probes = probes(experiment);
        let watch = Watch::begin(&mut self.control, &mut state.observer, experiment).await;
        for (choice, probe) in probes.iter_mut().rev() {
            let mut sessions = sessions(&mut self.control, state, self.major);
            let before = probe.before(&mut sessions).await;
            before.map_err(|error| self.reading_failure(cell, run, choice.span, error))?;
        }
        let received = state.subject.received_bytes();
        let ran = self.window(cell, run, state, &mut samplers).await?;
        self.taken += 1;
        let window = Window {
            statements: ran.statements.clone(),
            rows: ran.rows,
            received_bytes: (state.subject.received_bytes().zip(received))
                .map(|(after, before)| after.saturating_sub(before)),
            in_transaction: ran.in_transaction,
            explained: ran.explained.clone(),
        };
        let mut row = RowBuilder::new(self.request);
        let mut results = IndexMap::new();
        for (choice, probe) in &mut probes {
            let mut sessions = sessions(&mut self.control, state, self.major);
            let reading = probe
                .after(&mut sessions, &window)
                .await
                .map_err(|error| self.reading_failure(cell, run, choice.span, error))?;
            for (column, value) in reading.columns {
                row.push_own(column, value)?;
            }
            results.extend(reading.results);
        }
        self.watched(watch, &window, cell, run, state).await;
        let rows = ran.rows.map(|rows| rows.to_string());
        row.push_own(
            Column::new("rows", "numeric"),
            Value::from_postgres(rows.as_deref(), "numeric"),
        )?;
        if experiment.order == Order::Shuffle {
            let position = self.taken.to_string();
            row.push_own(
                Column::new("position", "integer"),
                Value::from_postgres(Some(&position), "integer"),
            )?;
        }
        for (column, value) in &ran.columns {
            row.push_own(column.clone(), value.clone())?;
        }
        results.insert("statements".to_owned(), statements_table(&ran));
        results.extend(ran.results.clone());
        results.extend(self.settled.of_cell());
        self.sampled(samplers, (cell, run), &mut row, &mut results)
            .await?;
        for step in &experiment.after {
            self.step(cell, "measure", step, state).await?;
        }
        self.collect(cell, run, state, &mut row, &mut results)
            .await?;
        self.own_columns(&ran, state, &mut row).await?;
        if ran.in_transaction {
            script_rollback(&mut state.subject).await?;
        }
        Ok(Sample {
            cell,
            run,
            row: row.table(),
            results,
        })
    }

    /// Keeps the doubts about the window that just ended.
    async fn watched(
        &mut self,
        watch: Watch,
        window: &Window,
        cell: usize,
        run: u32,
        state: &mut State,
    ) {
        let experiment = self.request.experiment;
        let own_checkpoint = doubts::own_checkpoint(experiment);
        let (control, observer) = (&mut self.control, &mut state.observer);
        let found = watch.end(control, observer, window, own_checkpoint, (cell, run));
        self.doubts.extend(found.await);
        if self.is_emulated || self.server.emulation().is_some() {
            self.doubts.push(Found::emulated(cell, run));
        }
    }

    /// `measure` itself. An expected error ends it as a success does; its absence is a failure.
    async fn window(
        &mut self,
        cell: usize,
        run: u32,
        state: &mut State,
        samplers: &mut [Sampler<'_>],
    ) -> Result<Ran, Stop> {
        let experiment = self.request.experiment;
        let rules = rules(self.request);
        let pid = state.subject.backend_pid();
        let control = match state.named.is_empty() {
            true => None,
            false => Some(tool_session(self.server).await?),
        };
        let backends = state.named.backends(pid);
        // What is measured has the rest of the state to itself.
        let mut named = std::mem::take(&mut state.named);
        let stop = control.map(|control| {
            let sql = stop_sql(&experiment.measure, pid, &state.database);
            (control, sql)
        });
        let running = Running {
            server: self.server,
            request: self.request,
            control: &mut self.control,
            name: "measure",
            phase: &experiment.measure,
            rules,
            database: &state.database,
            workspace: state.workspace.as_ref(),
            subject: &mut state.subject,
            variables: &mut state.variables,
            watcher: Watcher {
                session: &mut state.observer,
                backends: &backends,
            },
            measured: Some(Measured {
                explain: explain(experiment, self.major),
            }),
        };
        let measured = Box::pin(running.run());
        let measured = window::alongside(measured, samplers, &mut named, stop).await;
        state.named = named;
        let measured = measured?;
        let expected = experiment.expect_error.as_ref();
        match (measured, expected) {
            (Ok(ran), None) => Ok(ran),
            (Err((ran, ScriptError::Sql { sqlstate, .. })), Some(expected))
                if sqlstate == expected.value =>
            {
                Ok(ran)
            }
            (Ok(_), Some(expected)) => Err(Stop::Failed(Failure::article(
                Diagnostic::error(format!(
                    "`measure` raised no error, but SQLSTATE `{}` is expected",
                    expected.value
                ))
                .at(rules.source, expected.span)
                .note(self.place(cell, "measure")),
            ))),
            (Err((_, error)), _) => Err(Stop::Failed(self.run_failure(cell, run, error))),
        }
    }

    fn run_failure(&self, cell: usize, run: u32, error: ScriptError) -> Failure {
        // Duplicate keys, or a table that is there already, on a later run: the state was kept.
        let kept_state = run > 1
            && self.experiment().fresh != Fresh::Run
            && matches!(&error, ScriptError::Sql { sqlstate, .. }
                if ["23505", "42P07", "42710"].contains(&sqlstate.as_str()));
        let note = format!("{}, run {run}", self.place(cell, "measure"));
        match fixture::failure(error, note) {
            Failure::Article(diagnostics) if kept_state => Failure::Article(
                diagnostics
                    .into_iter()
                    .map(|diagnostic| {
                        diagnostic.hint(
                            "each run sees what the one before it left; `fresh: run` goes back to \
                             fixture and setup for every run",
                        )
                    })
                    .collect(),
            ),
            failure => failure,
        }
    }

    /// Tears a cell down. Gives the state back where the next cell builds on it.
    async fn end_cell(&mut self, cell: usize, mut state: State) -> Result<Option<State>, Failure> {
        self.end_background(&mut state, Belongs::ToState).await?;
        for teardown in &self.request.experiment.teardown {
            self.activity(cell, "teardown");
            self.step(cell, "teardown", teardown, &mut state).await?;
        }
        if self.experiment().fresh == Fresh::Never {
            return Ok(Some(state));
        }
        self.discard(state).await?;
        Ok(None)
    }
}

pub(super) async fn script_rollback(session: &mut Session) -> Result<(), Failure> {
    session
        .execute("ROLLBACK")
        .await
        .map(drop)
        .map_err(Failure::from)
}
