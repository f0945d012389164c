//! The order in which an experiment's cells and runs are measured. Serial: nothing else of ours
//! runs while a window is open.

use super::doubts::{self, Found, Watch};
use super::fixture::{self, author_session};
use super::instrument::{self, INSTRUMENTS, Instrument, Probe, Sessions, Unreadable, Window};
use super::program::{self, Runner};
use super::repeat;
use super::sample::{RowBuilder, statements_table, typed, unfit};
use super::script::{self, Ran, Rules, ScriptError};
use super::settings::tool_session;
use super::{Progress, Request};
use crate::article::{
    Client, Collect, CollectSession, Connect, Experiment, Fresh, InstrumentChoice, Order, Phase,
    Runs, Scalar, Variables,
};
use crate::diagnostic::Diagnostic;
use crate::engine::Server;
use crate::engine::program::Workspace;
use crate::engine::session::{Session, SessionError, StatementResult, quote_literal};
use crate::exit_code::Failure;
use crate::parse::sql::expand_text;
use crate::quantity::{Column, Table, Value};
use crate::record::Sample;
use crate::record::store::{ResultWriter, StoredExperiment};
use crate::source::{Span, Spanned};
use indexmap::IndexMap;
use std::collections::BTreeMap;
use std::time::Instant;

/// Measures every cell that `start` does not hold and hands each to the store.
pub async fn run(
    server: &Server,
    request: &Request<'_>,
    start: &StoredExperiment,
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
    let is_emulated = doubts::is_emulated(&mut control).await;
    let mut protocol = Protocol {
        server,
        request,
        control,
        major,
        is_emulated,
        progress,
        doubts: Vec::new(),
    };
    let mut samples = start.samples.clone();
    let cells: Vec<usize> = (0..request.experiment.cells.rows.len())
        .filter(|cell| start.samples.iter().all(|sample| sample.cell != *cell))
        .collect();
    let units = match request.experiment.order {
        Order::Sequential => protocol.sequential(&cells, &mut writer).await?,
        Order::Interleave => protocol.interleaved(&cells, &mut writer).await?,
    };
    samples.extend(units);
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

struct Protocol<'a> {
    server: &'a Server,
    request: &'a Request<'a>,
    /// The tool's own connection, as superuser, in the tool's database.
    control: Session,
    /// Major version of the server.
    major: u32,
    /// The server's program is for another processor than the machine has.
    is_emulated: bool,
    progress: &'a dyn Progress,
    /// Of cells that are not stored yet.
    doubts: Vec<Found>,
}

/// A cell in progress: its database, connections and variables.
struct State {
    database: String,
    subject: Session,
    observer: Session,
    variables: Variables,
    /// Where there are phases of psql or pgbench.
    workspace: Option<Workspace>,
}

impl Protocol<'_> {
    fn experiment(&self) -> &Experiment {
        self.request.experiment
    }

    fn rules(&self) -> Rules<'_> {
        Rules {
            source: &self.request.article.source,
            timeout: self.request.experiment.timeout,
        }
    }

    fn activity(&self, cell: usize, phase: &str) {
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
            let mut state = self.begin_cell(cell, previous.take()).await?;
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

    /// Run 1 of every cell, then run 2 …: what drifts with time meets all cells alike.
    async fn interleaved(
        &mut self,
        cells: &[usize],
        writer: &mut ResultWriter,
    ) -> Result<Vec<Sample>, Failure> {
        let mut states: BTreeMap<usize, State> = BTreeMap::new();
        let mut samples: BTreeMap<usize, Vec<Sample>> = BTreeMap::new();
        let mut seconds: BTreeMap<usize, f64> = BTreeMap::new();
        loop {
            let mut measured = false;
            for &cell in cells {
                let done = samples.entry(cell).or_default();
                if !self.wants_more(done) {
                    continue;
                }
                measured = true;
                let run = u32::try_from(done.len()).unwrap_or(u32::MAX) + 1;
                let start = Instant::now();
                let mut state = match states.remove(&cell) {
                    Some(state) => self.renew(cell, run, state).await?,
                    None => self.begin_cell(cell, None).await?,
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
        let state = match previous {
            Some(previous) => {
                let subject = self.subject(&previous.database, &variables).await?;
                State {
                    subject,
                    variables,
                    ..previous
                }
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
            return self.begin_cell(cell, None).await;
        }
        Ok(state)
    }

    async fn fresh_state(&mut self, cell: usize, variables: Variables) -> Result<State, Failure> {
        self.activity(cell, "clone");
        let experiment = self.request.experiment;
        let database = format!("cell_{cell}");
        let article = self.request.article;
        let (resolved, from) = (self.request.resolved, experiment.fixture.as_ref());
        fixture::clone(self.server, article, resolved, &database, from).await?;
        let observer = author_session(self.server, article, &database).await?;
        let subject = self.subject(&database, &variables).await?;
        let workspace = match program::needs_workspace(experiment) {
            true => Some(program::workspace(self.server, article, experiment).await?),
            false => None,
        };
        Ok(State {
            database,
            subject,
            observer,
            variables,
            workspace,
        })
    }

    /// A new measuring session with the experiment's session settings.
    async fn subject(&self, database: &str, variables: &Variables) -> Result<Session, Failure> {
        let article = self.request.article;
        let mut session = author_session(self.server, article, database).await?;
        for (name, value) in &self.request.experiment.session {
            let place = |diagnostic: Diagnostic| {
                Failure::article(diagnostic.at(&article.source, value.span))
            };
            let text = expand_text(&value.value, variables).map_err(place)?;
            let set = format!(
                "SELECT pg_catalog.set_config({}, {}, false)",
                quote_literal(name),
                quote_literal(&text)
            );
            match session.execute(&set).await {
                Ok(_) => {}
                Err(SessionError::Sql(error)) => {
                    let diagnostic = Diagnostic::error(format!(
                        "Postgres: {} (SQLSTATE {})",
                        error.message, error.sqlstate
                    ));
                    return Err(place(script::with_postgres_words(diagnostic, &error, None)));
                }
                Err(lost) => return Err(lost.into()),
            }
        }
        Ok(session)
    }

    async fn set_up(&mut self, cell: usize, mut state: State) -> Result<State, Failure> {
        let experiment = self.request.experiment;
        if let Some(setup) = &experiment.setup {
            self.activity(cell, "setup");
            self.phase(cell, "setup", setup, &mut state).await?;
        }
        let warmups = self.request.resolved.warmup_runs(experiment);
        let (phase, times) = match &experiment.warmup {
            Some(warmup) => (warmup, warmups.max(1)),
            None => (&experiment.measure, warmups),
        };
        for number in 1..=times {
            self.activity(cell, &format!("warm-up {number} of {times}"));
            self.phase(cell, "warmup", phase, &mut state).await?;
        }
        Ok(state)
    }

    async fn phase(
        &mut self,
        cell: usize,
        name: &str,
        phase: &Phase,
        state: &mut State,
    ) -> Result<Ran, Failure> {
        let ran = self
            .run_by_its_client(name, phase, state, false)
            .await
            .map_err(|(_, error)| fixture::failure(error, self.place(cell, name)))?;
        if ran.in_transaction && name == "warmup" {
            script_rollback(&mut state.subject).await?;
        }
        Ok(ran)
    }

    /// Runs a phase by the client it names. `timed`: the server's clock is read too and a statement
    /// may be explained, where the measuring session runs it.
    async fn run_by_its_client(
        &mut self,
        name: &str,
        phase: &Phase,
        state: &mut State,
        timed: bool,
    ) -> Result<Ran, (Ran, ScriptError)> {
        let rules = Rules {
            source: &self.request.article.source,
            timeout: self.request.experiment.timeout,
        };
        let State {
            subject, variables, ..
        } = state;
        match (&phase.client, phase.script.statements.first()) {
            (Client::Repeat(repeat), Some(statement)) => {
                let clock = timed.then_some(&mut self.control);
                return repeat::run(subject, clock, repeat, statement, variables, rules).await;
            }
            (Client::Psql(_) | Client::Pgbench(_), _) => {
                if let Some(workspace) = &state.workspace {
                    let runner = Runner {
                        server: self.server,
                        article: self.request.article,
                        experiment: self.request.experiment,
                        workspace,
                        database: &state.database,
                        variables,
                        rules,
                        name,
                        phase,
                    };
                    let ran = runner.run(&mut self.control).await?;
                    if !phase.client.initialises() {
                        return Ok(ran);
                    }
                }
            }
            _ => {}
        }
        let clock = timed.then_some(&mut self.control);
        let explain = explain(self.request.experiment, self.major).filter(|_| timed);
        let script = &phase.script;
        script::run_explained(subject, clock, script, explain.as_ref(), variables, rules).await
    }

    fn place(&self, cell: usize, phase: &str) -> String {
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

    /// One measured window with everything around it.
    async fn one_run(
        &mut self,
        cell: usize,
        run: u32,
        state: &mut State,
    ) -> Result<Sample, Failure> {
        let experiment = self.request.experiment;
        if experiment.connect == Connect::Run {
            state.subject = self.subject(&state.database, &state.variables).await?;
        }
        self.activity(cell, &format!("run {run}"));
        let mut probes = probes(experiment);
        let watch = Watch::begin(&mut self.control, &mut state.observer, experiment).await;
        for (choice, probe) in probes.iter_mut().rev() {
            let mut sessions = sessions(&mut self.control, state, self.major);
            let before = probe.before(&mut sessions).await;
            before.map_err(|error| self.reading_failure(cell, run, choice.span, error))?;
        }
        let received = state.subject.received_bytes();
        let ran = self.window(cell, run, state).await?;
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
        for (column, value) in &ran.columns {
            row.push_own(column.clone(), value.clone())?;
        }
        results.insert("statements".to_owned(), statements_table(&ran));
        results.extend(ran.results.clone());
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
    async fn window(&mut self, cell: usize, run: u32, state: &mut State) -> Result<Ran, Failure> {
        let experiment = self.request.experiment;
        let measured = self
            .run_by_its_client("measure", &experiment.measure, state, true)
            .await;
        let rules = self.rules();
        let expected = experiment.expect_error.as_ref();
        match (measured, expected) {
            (Ok(ran), None) => Ok(ran),
            (Err((ran, ScriptError::Sql { sqlstate, .. })), Some(expected))
                if sqlstate == expected.value =>
            {
                Ok(ran)
            }
            (Ok(_), Some(expected)) => Err(Failure::article(
                Diagnostic::error(format!(
                    "`measure` raised no error, but SQLSTATE `{}` is expected",
                    expected.value
                ))
                .at(rules.source, expected.span)
                .note(self.place(cell, "measure")),
            )),
            (Err((_, error)), _) => Err(self.run_failure(cell, run, error)),
        }
    }

    /// That an instrument cannot read is our bug, unless the log is gone that it would read.
    fn reading_failure(
        &self,
        cell: usize,
        run: u32,
        instrument: Span,
        error: Unreadable,
    ) -> Failure {
        const UNDEFINED_FILE: &str = "58P01";
        match error {
            Unreadable::Refused { message, hint } => Failure::article(
                Diagnostic::error(message)
                    .at(&self.request.article.source, instrument)
                    .note(format!("{}, run {run}", self.place(cell, "measure")))
                    .hint(hint),
            ),
            Unreadable::Session(SessionError::Sql(error)) if error.sqlstate == UNDEFINED_FILE => {
                Failure::article(
                    Diagnostic::error(format!(
                        "the write-ahead log of this run is gone before it could be read: {}",
                        error.message
                    ))
                    .at(&self.request.article.source, self.experiment().measure.span)
                    .note(format!("{}, run {run}", self.place(cell, "measure")))
                    .hint(
                        "a checkpoint removed it: raise `max_wal_size` or `wal_keep_size` under \
                     `postgres: {settings: …}`",
                    ),
                )
            }
            Unreadable::Session(error) => error.into(),
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

    async fn collect(
        &mut self,
        cell: usize,
        run: u32,
        state: &mut State,
        row: &mut RowBuilder<'_>,
        results: &mut IndexMap<String, Table>,
    ) -> Result<(), Failure> {
        let experiment = self.request.experiment;
        for collect in &experiment.collects {
            let (sql, result) = self.collected(cell, run, collect, state).await?;
            let session = match collect.session {
                CollectSession::Subject => &mut state.subject,
                CollectSession::Observer => &mut state.observer,
            };
            let table = typed(session, &sql, &result).await;
            if let Some(name) = &collect.name {
                if let Some(problem) = unfit(&table, &result) {
                    let source = &self.request.article.source;
                    let diagnostic = Diagnostic::error(problem).at(source, collect.phase.span);
                    return Err(Failure::article(diagnostic));
                }
                results.insert(name.value.clone(), table);
                continue;
            }
            let [only] = table.rows.as_slice() else {
                return Err(Failure::article(
                    Diagnostic::error(format!(
                        "a `collect` without a name needs exactly one row, this one gave {}",
                        table.rows.len()
                    ))
                    .at(&self.request.article.source, collect.phase.span)
                    .hint("`collect: {as: name}` keeps any number of rows in a table of its own"),
                ));
            };
            for (column, value) in table.columns.iter().zip(only) {
                row.push_queried(column.clone(), value.clone(), collect.phase.span)?;
            }
        }
        Ok(())
    }

    /// Runs a collect and gives its last statement with its result.
    async fn collected(
        &self,
        cell: usize,
        run: u32,
        collect: &Collect,
        state: &mut State,
    ) -> Result<(String, StatementResult), Failure> {
        self.activity(cell, &format!("run {run}, collect"));
        let mut variables = state.variables.clone();
        let pid = state.subject.backend_pid();
        variables.insert("subject_pid".to_owned(), Scalar::Number(pid.into()));
        let session = match collect.session {
            CollectSession::Subject => &mut state.subject,
            CollectSession::Observer => &mut state.observer,
        };
        let script = &collect.phase.script;
        let ran = script::run(session, None, script, &mut variables, self.rules())
            .await
            .map_err(|(_, error)| fixture::failure(error, self.place(cell, "collect")))?;
        Ok(ran.last.unwrap_or_default())
    }

    /// The columns of a one-row result of `measure`'s last statement.
    async fn own_columns(
        &self,
        ran: &Ran,
        state: &mut State,
        row: &mut RowBuilder<'_>,
    ) -> Result<(), Failure> {
        let Some((sql, result)) = &ran.last else {
            return Ok(());
        };
        if result.rows.len() != 1 || result.columns.is_empty() {
            return Ok(());
        }
        let table = typed(&mut state.subject, sql, result).await;
        let span = self.experiment().measure.span;
        for (column, value) in table.columns.into_iter().zip(&table.rows[0]) {
            row.push_queried(column, value.clone(), span)?;
        }
        Ok(())
    }

    /// Tears a cell down. Gives the state back where the next cell builds on it.
    async fn end_cell(&mut self, cell: usize, mut state: State) -> Result<Option<State>, Failure> {
        if let Some(teardown) = &self.request.experiment.teardown {
            self.activity(cell, "teardown");
            self.phase(cell, "teardown", teardown, &mut state).await?;
        }
        if self.experiment().fresh == Fresh::Never {
            return Ok(Some(state));
        }
        self.discard(state).await?;
        Ok(None)
    }

    async fn discard(&mut self, mut state: State) -> Result<(), Failure> {
        let workspace = state.workspace.take();
        let database = state.database.clone();
        drop(state);
        if let Some(workspace) = workspace {
            self.server.discard(workspace).await;
        }
        self.server
            .drop_database(&database)
            .await
            .map_err(Failure::from)
    }
}

fn sessions<'s>(control: &'s mut Session, state: &'s mut State, major: u32) -> Sessions<'s> {
    Sessions {
        subject: &mut state.subject,
        control,
        observer: &mut state.observer,
        database: &state.database,
        major,
    }
}

/// One of each instrument the experiment reads, with its place in the article, in the order of the
/// catalogue.
fn probes(experiment: &Experiment) -> Vec<(&Spanned<InstrumentChoice>, Box<dyn Probe>)> {
    let chosen = |instrument: &Instrument| {
        let mut choices = experiment.instruments.iter();
        let choice = choices.find(|choice| choice.value.name == instrument.name)?;
        Some((choice, (instrument.probe)(&choice.value.options)))
    };
    INSTRUMENTS.iter().filter_map(chosen).collect()
}

/// The statement that `explain` is about, and what stands before it.
fn explain(experiment: &Experiment, major: u32) -> Option<script::Explain> {
    let options = experiment.instrument(instrument::explain::INSTRUMENT.name)?;
    let analyzes = instrument::explain::analyzes(options);
    Some(script::Explain {
        statement: instrument::explain::statement(&experiment.measure.script)?,
        prefix: analyzes.then(|| instrument::explain::prefix(options, major)),
    })
}

async fn script_rollback(session: &mut Session) -> Result<(), Failure> {
    session
        .execute("ROLLBACK")
        .await
        .map(drop)
        .map_err(Failure::from)
}
