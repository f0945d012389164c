//! `sample`: a query asked again and again on a connection of its own while `measure` runs.
//!
//! Question k is due k times `every` after the window has begun. Where an answer takes longer the
//! questions that were due meanwhile are missed: they are counted, the others stay where they are.

use super::protocols::Description;
use super::sample::{typed, unfit};
use super::script::{self, Aside, Ran, Rules, ScriptError};
use super::sessions::{Opening, beside};
use crate::article::{Sampling, Variables};
use crate::diagnostic::Diagnostic;
use crate::engine::session::{KEPT_ROWS, Session, StatementResult};
use crate::exit_code::Failure;
use crate::quantity::{Column, Table, Value};
use crate::source::Source;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

pub const SAMPLE: Description = Description {
    name: "sample: {every: 100ms, as: NAME}",
    description: "asked again and again on a connection of its own while `measure` runs; question k is due k times `every` after the window has begun. Asked once before it, unrecorded. Each statement is a transaction of its own, so that statistics are never those of the question before",
    gives: "measured.<experiment>_NAME: sample [number k], at_ms [ms since the window began, client clock], the query's columns; in measured.<experiment>: NAME_samples and NAME_missed [count]",
    minimum_version: 16,
    disturbed_by: "a query that takes longer than `every`: the questions that were due meanwhile are missed, counted and a doubt; the sampling backend itself, which takes CPU time and shows in pg_stat_activity",
};

/// One `sample` of one window.
pub struct Sampler<'a> {
    sampling: &'a Sampling,
    session: Session,
    variables: Variables,
    rules: Rules<'a>,
    /// The columns of its result, from a first question before the window.
    columns: Vec<Column>,
    answers: Vec<Answer>,
    missed: u64,
    failed: Option<ScriptError>,
}

struct Answer {
    /// From 1: question k was due k times `every` after the beginning.
    number: u64,
    asked: Duration,
    result: StatementResult,
}

/// What a sampler adds to its run.
pub struct Sampled {
    pub table: Table,
    pub taken: u64,
    pub missed: u64,
}

/// Stands before the columns of the query.
const OWN_COLUMNS: [(&str, &str); 2] = [("sample", "integer"), ("at_ms", "double precision")];

impl<'a> Sampler<'a> {
    /// Opens its session and asks once, unrecorded: that warms its catalog caches, tells the types
    /// of its columns, and a mistake in it before anything is measured.
    pub async fn prepare(
        opening: Opening<'_>,
        sampling: &'a Sampling,
        variables: Variables,
        rules: Rules<'a>,
    ) -> Result<Self, Failure> {
        let mut sampler = Self {
            sampling,
            session: beside(opening).await?,
            variables,
            rules,
            columns: Vec::new(),
            answers: Vec::new(),
            missed: 0,
            failed: None,
        };
        let ran = sampler
            .ask()
            .await
            .map_err(|error| sampler.failure(&error))?;
        let (sql, result) = ran.last.unwrap_or_default();
        let first = StatementResult {
            rows: Vec::new(),
            ..result
        };
        sampler.columns = typed(&mut sampler.session, &sql, &first).await.columns;
        let names = || sampler.columns.iter().map(|column| column.name.as_str());
        let own = |name: &&str| OWN_COLUMNS.iter().any(|(own, _)| own == name);
        if let Some(name) = names().find(own) {
            let message = format!("every sample has a column `{name}` already");
            let hint = "give the query's column another name with AS";
            return Err(sampler.at_its_place(Diagnostic::error(message).hint(hint)));
        }
        if sampler.columns.is_empty() {
            let message = "the last statement of a `sample` has to give a result";
            return Err(sampler.at_its_place(Diagnostic::error(message)));
        }
        Ok(sampler)
    }

    /// Asks until it is told when the window ended.
    pub async fn run(&mut self, mut over: watch::Receiver<Option<Instant>>) {
        let began = Instant::now();
        let every = self.sampling.every;
        let mut due = 1;
        loop {
            let wait = every.saturating_mul(due).saturating_sub(began.elapsed());
            tokio::select! {
                biased;
                _ = over.wait_for(Option::is_some) => break,
                () = tokio::time::sleep(wait) => {}
            }
            let asked = began.elapsed();
            match self.ask().await {
                // What was answered afterwards may have seen what came afterwards.
                Ok(_) if over.borrow().is_some() => break,
                Ok(ran) => self.answers.push(Answer {
                    number: u64::from(due),
                    asked,
                    result: ran.last.map(|(_, result)| result).unwrap_or_default(),
                }),
                Err(error) => {
                    self.failed = Some(error);
                    return;
                }
            }
            let next = u32::try_from(began.elapsed().as_nanos() / every.as_nanos().max(1))
                .unwrap_or(u32::MAX)
                .saturating_add(1);
            self.missed += u64::from(next.saturating_sub(due + 1));
            due = next.max(due + 1);
        }
        // Those that were due within the window while the last question was still open.
        let ended = over.borrow().unwrap_or_else(Instant::now);
        let whole = ended.saturating_duration_since(began).as_nanos() / every.as_nanos().max(1);
        let due_in_all = u64::try_from(whole).unwrap_or(u64::MAX);
        self.missed += due_in_all.saturating_sub(u64::from(due) - 1);
    }

    /// Each statement is a transaction of its own, so that no statistics are those of the question
    /// before; a transaction that the script leaves open ends here.
    async fn ask(&mut self) -> Result<Ran, ScriptError> {
        let Self {
            session,
            sampling,
            variables,
            rules,
            ..
        } = self;
        let mut variables = variables.clone();
        let script = &sampling.phase.script;
        let ran = script::run(session, script, &mut variables, *rules, Aside::default()).await;
        let ran = ran.map_err(|(_, error)| error)?;
        if ran.in_transaction {
            // That it fails is told by the next question.
            let _ = session.execute("ROLLBACK").await;
        }
        Ok(ran)
    }

    /// What was asked and answered. `note` says where.
    pub async fn finish(mut self) -> Result<Sampled, Failure> {
        if let Some(error) = self.failed.take() {
            return Err(self.failure(&error));
        }
        let own = OWN_COLUMNS.map(|(name, type_name)| Column::new(name, type_name));
        let mut table = Table {
            columns: own.into_iter().chain(self.columns.clone()).collect(),
            rows: Vec::new(),
        };
        let mut not_kept = 0;
        for answer in &self.answers {
            not_kept += answer.result.rows_not_kept;
            let milliseconds = (answer.asked.as_secs_f64() * 1000.0).to_string();
            let key = [
                Value::from_postgres(Some(&answer.number.to_string()), "integer"),
                Value::from_postgres(Some(&milliseconds), "double precision"),
            ];
            for row in &answer.result.rows {
                let cells = row.iter().zip(&self.columns);
                let cells = cells
                    .map(|(cell, column)| Value::from_postgres(cell.as_deref(), &column.type_name));
                table.rows.push(key.iter().cloned().chain(cells).collect());
            }
        }
        not_kept += table.rows.len().saturating_sub(KEPT_ROWS) as u64;
        if not_kept > 0 {
            not_kept += table.rows.len().min(KEPT_ROWS) as u64;
        }
        let all = StatementResult {
            rows_not_kept: not_kept,
            ..StatementResult::default()
        };
        if let Some(problem) = unfit(&table, &all) {
            return Err(self.at_its_place(Diagnostic::error(problem)));
        }
        Ok(Sampled {
            taken: self.answers.len() as u64,
            missed: self.missed,
            table,
        })
    }

    fn source(&self) -> &Arc<Source> {
        self.rules.source
    }

    fn at_its_place(&self, diagnostic: Diagnostic) -> Failure {
        let name = &self.sampling.name.value;
        let diagnostic = diagnostic.at(self.source(), self.sampling.phase.span);
        Failure::article(diagnostic.note(format!("in `sample` `{name}`")))
    }

    fn failure(&self, error: &ScriptError) -> Failure {
        let name = &self.sampling.name.value;
        super::fixture::failure(error, format!("in `sample` `{name}`"))
    }
}
