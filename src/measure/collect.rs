//! What is asked after a window: `collect` phases, and the columns of `measure`'s own last result.

use super::fixture;
use super::protocol::{Protocol, rules};
use super::protocols::Description;
use super::sample::{RowBuilder, typed, unfit};
use super::script::{self, Aside, Ran};
use super::state::State;
use super::waiting::{self, Watcher};
use crate::article::{Collect, CollectSession};
use crate::diagnostic::Diagnostic;
use crate::engine::session::{Session, StatementResult};
use crate::exit_code::Failure;
use crate::quantity::Table;
use indexmap::IndexMap;
use std::time::Duration;

pub const COLLECT: Description = Description {
    name: "collect: {as: NAME, in: subject}",
    description: "asked after each window: on an observer's session where `:subject_pid` is the measuring backend, with `in: subject` on the measuring one, inside a transaction that `measure` left open, with `in: NAME` on a session of that name. Without `as` it gives one row, with it any number",
    gives: "measured.<experiment>_NAME, or columns of measured.<experiment>: those of the query",
    minimum_version: 16,
    disturbed_by: "other sessions of the cluster, where the query asks for more than the measuring backend; cumulative statistics, which a backend hands in up to 1 s late",
};

impl Protocol<'_> {
    pub(super) async fn collect(
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
            let limit = experiment.timeout;
            let table = typed(session_of(collect, state, limit).await?, &sql, &result).await;
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
        let rules = rules(self.request);
        let mut variables = state.variables.clone();
        let pid = state.subject.backend_pid();
        state.named.name_in(&mut variables, pid);
        if let Some(condition) = &collect.phase.wait_until {
            let mut watcher = Watcher {
                session: &mut state.observer,
                backends: &state.named.backends(pid),
            };
            waiting::until(&mut watcher, condition, &variables, rules)
                .await
                .map_err(|diagnostic| waiting::failure(diagnostic, self.place(cell, "collect")))?;
        }
        let session = session_of(collect, state, rules.timeout).await?;
        let script = &collect.phase.script;
        let ran = script::run(session, script, &mut variables, rules, Aside::default())
            .await
            .map_err(|(_, error)| fixture::failure(error, self.place(cell, "collect")))?;
        Ok(ran.last.unwrap_or_default())
    }

    /// The columns of a one-row result of `measure`'s last statement.
    pub(super) async fn own_columns(
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
}

async fn session_of<'s>(
    collect: &Collect,
    state: &'s mut State,
    limit: Duration,
) -> Result<&'s mut Session, Failure> {
    match &collect.session {
        CollectSession::Subject => Ok(&mut state.subject),
        CollectSession::Observer => Ok(&mut state.observer),
        CollectSession::Named(name) => state.named.session(name, limit).await,
    }
}
