//! Runs the SQL of a phase as psql would: statement by statement, variables filled in, `\gexec`
//! and `\gset` applied. Every error of Postgres comes back at its place in the article.

use super::instrument::{Explained, StatementTime, explain};
use super::waiting::Watcher;
use crate::article::{Scalar, Script, Statement, Terminator, Variables};
use crate::diagnostic::Diagnostic;
use crate::engine::session::{Session, SessionError, SqlError, StatementResult};
use crate::parse::sql::{Expanded, expand, words};
use crate::quantity::{Column, Table, Value};
use crate::source::{Source, Span};
use indexmap::IndexMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What every statement of an article runs under.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    pub source: &'a Arc<Source>,
    /// For each statement.
    pub timeout: Duration,
}

/// What a script came to.
#[derive(Default)]
pub struct Ran {
    pub statements: Vec<StatementTime>,
    /// Row count of the last statement that has one.
    pub rows: Option<u64>,
    /// The last statement's SQL and result.
    pub last: Option<(String, StatementResult)>,
    /// The script left a transaction open.
    pub in_transaction: bool,
    /// The statement that was to be explained.
    pub explained: Option<Explained>,
    /// What a client other than the session adds to the experiment's row.
    pub columns: Vec<(Column, Value)>,
    /// Results of its own; one called `statements` in place of what the tool itself saw.
    pub results: IndexMap<String, Table>,
}

/// Which statement of a script is explained.
#[derive(Clone, Debug)]
pub struct Explain {
    pub statement: usize,
    /// `EXPLAIN (ANALYZE …) `, which then stands before it; None: it is run as it is, and noted.
    pub prefix: Option<String>,
}

/// Why a script stopped.
pub enum ScriptError {
    /// Postgres refused a statement: the article's to mend, unless the SQLSTATE was expected.
    Sql {
        sqlstate: String,
        /// The machine's to mend: its disk is full.
        machine: bool,
        diagnostic: Box<Diagnostic>,
    },
    /// Wrong before Postgres saw it.
    Article(Box<Diagnostic>),
    /// The connection or the server is gone.
    Lost(Box<Diagnostic>),
    /// Our bug, or the machine's.
    Broken(Box<Diagnostic>),
}

impl ScriptError {
    pub fn diagnostic(&self) -> &Diagnostic {
        match self {
            Self::Sql { diagnostic, .. }
            | Self::Article(diagnostic)
            | Self::Lost(diagnostic)
            | Self::Broken(diagnostic) => diagnostic,
        }
    }
}

impl ScriptError {
    /// Who waited for whom when the time was over, and whose processes Postgres speaks of.
    fn with_waits(mut self, waits: Vec<String>, watcher: Option<&Watcher<'_>>) -> Self {
        if let Self::Sql { diagnostic, .. } = &mut self {
            let mut told = (**diagnostic).clone();
            let processes = watcher.map(|watcher| watcher.named_in(&told.notes.join("\n")));
            for note in waits.into_iter().chain(processes.into_iter().flatten()) {
                told = told.note(note);
            }
            **diagnostic = told;
        }
        self
    }
}

/// Beyond this many statements the server's clock is not asked for each, unless a network is in the
/// client's.
const SERVER_CLOCK_STATEMENTS: usize = 100;

/// Other connections that a script is seen from while it runs.
#[derive(Default)]
pub struct Aside<'a> {
    /// The tool's: each statement's time by the server's clock is read after it, outside the
    /// statement's own time.
    pub server_clock: Option<&'a mut Session>,
    /// Tells who waits for whom when a statement takes too long.
    pub watcher: Option<Watcher<'a>>,
}

/// Runs `script`.
pub async fn run(
    session: &mut Session,
    script: &Script,
    variables: &mut Variables,
    rules: Rules<'_>,
    aside: Aside<'_>,
) -> Result<Ran, (Ran, ScriptError)> {
    run_explained(session, script, None, variables, rules, aside).await
}

/// Runs `script`, with one of its statements explained.
pub async fn run_explained(
    session: &mut Session,
    script: &Script,
    explain: Option<&Explain>,
    variables: &mut Variables,
    rules: Rules<'_>,
    mut aside: Aside<'_>,
) -> Result<Ran, (Ran, ScriptError)> {
    let mut ran = Ran::default();
    for (index, statement) in script.statements.iter().enumerate() {
        let done = match explain.filter(|explain| explain.statement == index) {
            Some(explain) => {
                explained(
                    session,
                    &mut aside,
                    (statement, explain),
                    variables,
                    rules,
                    &mut ran,
                )
                .await
            }
            None => step(session, &mut aside, statement, variables, rules, &mut ran).await,
        };
        if let Err(error) = done {
            return Err((ran, error));
        }
    }
    Ok(ran)
}

async fn step(
    session: &mut Session,
    aside: &mut Aside<'_>,
    statement: &Statement,
    variables: &mut Variables,
    rules: Rules<'_>,
    ran: &mut Ran,
) -> Result<(), ScriptError> {
    let expanded = expand(statement, variables, rules.source)
        .map_err(|diagnostic| ScriptError::Article(Box::new(diagnostic)))?;
    let place = Place {
        statement,
        expanded: &expanded,
        rules,
        generated: false,
        before: 0,
    };
    let result = timed(session, aside, &expanded.sql, &place, ran).await?;
    match &statement.terminator {
        Terminator::Semicolon => {}
        Terminator::Gset { prefix } => set_variables(&result, prefix, variables, &place)?,
        Terminator::Gexec => {
            let place = Place {
                generated: true,
                ..place
            };
            for cell in result.rows.iter().flatten().flatten() {
                timed(session, aside, cell, &place, ran).await?;
            }
            return Ok(());
        }
    }
    ran.last = Some((expanded.sql, result));
    Ok(())
}

/// A statement under EXPLAIN, or as it is with its text noted. What EXPLAIN gives is a plan and no
/// result of the statement; how many rows there were stands in the plan.
async fn explained(
    session: &mut Session,
    aside: &mut Aside<'_>,
    (statement, explain): (&Statement, &Explain),
    variables: &mut Variables,
    rules: Rules<'_>,
    ran: &mut Ran,
) -> Result<(), ScriptError> {
    let expanded = expand(statement, variables, rules.source)
        .map_err(|diagnostic| ScriptError::Article(Box::new(diagnostic)))?;
    let sql = expanded.sql.clone();
    let Some(prefix) = &explain.prefix else {
        step(session, aside, statement, variables, rules, ran).await?;
        ran.explained = Some(Explained { sql, plan: None });
        return Ok(());
    };
    let place = Place {
        statement,
        expanded: &expanded,
        rules,
        generated: false,
        before: prefix.chars().count(),
    };
    let explaining = format!("{prefix}{sql}");
    let result = timed(session, aside, &explaining, &place, ran).await?;
    let plan = explain::plan_text(&result.rows);
    let rows = explain::rows(&plan);
    if let Some(time) = ran.statements.last_mut() {
        time.rows = rows;
    }
    ran.rows = rows.or(ran.rows);
    ran.last = None;
    ran.explained = Some(Explained {
        sql,
        plan: Some(plan),
    });
    Ok(())
}

async fn timed(
    session: &mut Session,
    aside: &mut Aside<'_>,
    sql: &str,
    place: &Place<'_>,
    ran: &mut Ran,
) -> Result<StatementResult, ScriptError> {
    let mut waits = Vec::new();
    let late = async {
        if let Some(watcher) = &mut aside.watcher {
            waits = watcher.waits().await;
        }
    };
    let timeout = place.rules.timeout;
    let began = Instant::now();
    let result = session.execute_within_or(sql, timeout, late).await;
    let mut time = StatementTime {
        elapsed: began.elapsed(),
        ..StatementTime::default()
    };
    if let Some(clock) = &mut aside.server_clock
        && (ran.statements.len() < SERVER_CLOCK_STATEMENTS || session.is_elsewhere())
    {
        time.server_ms = server_ms(clock, session.backend_pid()).await;
    }
    let without_network = without_network(time.server_ms).filter(|_| session.is_elsewhere());
    let result = match result {
        Ok(result) => result,
        Err(error) => {
            // An error that is expected took its time too: that of a lock not had, say.
            time.elapsed = without_network.unwrap_or(time.elapsed);
            ran.statements.push(time);
            let who = aside.watcher.as_ref();
            return Err(place.error(sql, error).with_waits(waits, who));
        }
    };
    time.elapsed = without_network.unwrap_or(result.elapsed);
    time.rows = result.command_rows;
    ran.rows = result.command_rows.or(ran.rows);
    ran.statements.push(time);
    ran.in_transaction = transaction_after(sql, ran.in_transaction);
    if place.generated {
        ran.last = Some((sql.to_owned(), result));
        return Ok(StatementResult::default());
    }
    Ok(result)
}

/// How long the backend's latest statement took by the server's clock. Of the function, not of the
/// view pg_stat_activity: that reads two tables of the catalog, which `io` would count.
async fn server_ms(clock: &mut Session, pid: i32) -> Option<f64> {
    let sql = format!(
        "SELECT 1000 * extract(epoch FROM state_change - query_start) \
         FROM pg_catalog.pg_stat_get_activity({pid})"
    );
    let result = clock.execute(&sql).await.ok()?;
    result.rows.first()?.first()?.as_deref()?.parse().ok()
}

/// The server's clock as the time of a statement: from when the server has it whole to when it is
/// ready for the next. Reading that clock in the session itself would take snapshots in transactions
/// that have none yet, and fill its caches; another session reads it without touching this one.
fn without_network(server_ms: Option<f64>) -> Option<Duration> {
    Duration::try_from_secs_f64(server_ms? / 1000.0).ok()
}

/// The time of the backend's latest statement: by the server's clock where a network is in the
/// client's.
pub async fn without_way(
    session: &Session,
    server_clock: Option<&mut Session>,
    elapsed: Duration,
) -> Duration {
    match server_clock.filter(|_| session.is_elsewhere()) {
        Some(clock) => {
            without_network(server_ms(clock, session.backend_pid()).await).unwrap_or(elapsed)
        }
        None => elapsed,
    }
}

/// Whether a transaction is open after a statement, by its first words.
fn transaction_after(sql: &str, before: bool) -> bool {
    let words: Vec<String> = words(sql).take(4).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["begin", ..] | ["start", "transaction", ..] => true,
        ["rollback", "to", ..] | ["rollback", "work" | "transaction", "to", ..] => before,
        ["commit" | "rollback", "prepared", ..] => before,
        ["commit" | "end" | "rollback" | "abort", rest @ ..] => {
            rest.contains(&"chain") && !rest.contains(&"no")
        }
        ["prepare", "transaction", ..] => false,
        _ => before,
    }
}

fn set_variables(
    result: &StatementResult,
    prefix: &str,
    variables: &mut Variables,
    place: &Place<'_>,
) -> Result<(), ScriptError> {
    let [row] = result.rows.as_slice() else {
        return Err(ScriptError::Article(Box::new(
            place
                .diagnostic(format!(
                    "`\\gset` needs exactly one row, the query gave {}",
                    result.rows.len()
                ))
                .hint("make the query return one row"),
        )));
    };
    for (column, cell) in result.columns.iter().zip(row) {
        let name = format!("{prefix}{column}");
        match cell {
            Some(text) => {
                variables.insert(name, Scalar::Text(text.clone()));
            }
            // As psql does: NULL unsets.
            None => {
                variables.shift_remove(&name);
            }
        }
    }
    Ok(())
}

/// Where in the article the SQL that runs came from.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub statement: &'a Statement,
    pub expanded: &'a Expanded,
    pub rules: Rules<'a>,
    /// By `\gexec`: positions are then in the generated text.
    pub generated: bool,
    /// Characters that were put before the statement.
    pub before: usize,
}

impl Place<'_> {
    fn span(&self) -> Span {
        let text = &self.statement.text;
        text.span(0..text.text.len())
    }

    fn diagnostic(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(message).at(self.rules.source, self.span())
    }

    pub fn error(&self, sql: &str, error: SessionError) -> ScriptError {
        match error {
            SessionError::Sql(error) => ScriptError::Sql {
                sqlstate: error.sqlstate.clone(),
                machine: error.is_of_a_full_disk(),
                diagnostic: Box::new(self.sql_diagnostic(sql, &error)),
            },
            lost => ScriptError::Lost(Box::new(
                self.diagnostic("the server went away while this statement ran")
                    .note(lost.to_string()),
            )),
        }
    }

    fn sql_diagnostic(&self, sql: &str, error: &SqlError) -> Diagnostic {
        if error.timed_out {
            return self
                .diagnostic(format!(
                    "this statement ran longer than its timeout of {}",
                    seconds(self.rules.timeout)
                ))
                .hint("give the experiment a longer `timeout`, or less to do");
        }
        let span = match error.position {
            Some(position) if !self.generated => {
                let position = position.saturating_sub(self.before);
                let start = self.expanded.source_offset(position);
                self.rules.source.word_at(start)
            }
            _ => self.span(),
        };
        with_postgres_words(
            Diagnostic::error(format!(
                "Postgres: {} (SQLSTATE {})",
                error.message, error.sqlstate
            ))
            .at(self.rules.source, span),
            error,
            self.generated.then_some(sql),
        )
    }
}

/// Adds Postgres's own detail and hint, and the SQL where it does not stand in the article.
pub fn with_postgres_words(
    mut diagnostic: Diagnostic,
    error: &SqlError,
    generated: Option<&str>,
) -> Diagnostic {
    diagnostic = diagnostic.sqlstate(&error.sqlstate);
    if let Some(sql) = generated {
        diagnostic = diagnostic.note(format!("in the generated statement: {sql}"));
    }
    if let Some(detail) = &error.detail {
        diagnostic = diagnostic.note(format!("detail: {detail}"));
    }
    match &error.hint {
        Some(hint) => diagnostic.hint(hint.clone()),
        None => diagnostic,
    }
}

pub fn seconds(timeout: Duration) -> String {
    let ms = timeout.as_millis();
    match ms {
        ms if ms % 60_000 == 0 => format!("{}min", ms / 60_000),
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_followed_by_their_words() {
        for (sql, before, after) in [
            ("BEGIN", false, true),
            (
                "start transaction isolation level serializable",
                false,
                true,
            ),
            ("UPDATE t SET a = 1", true, true),
            ("commit;", true, false),
            ("ROLLBACK TO SAVEPOINT s", true, true),
            ("rollback work to s", true, true),
            ("COMMIT AND CHAIN", true, true),
            ("commit work and no chain", true, false),
            ("ROLLBACK PREPARED 'x'", true, true),
            ("/* a */ -- b\nBEGIN", false, true),
            ("end;", true, false),
            ("select 1", false, false),
        ] {
            assert_eq!(transaction_after(sql, before), after, "{sql}");
        }
    }

    #[test]
    fn a_timeout_is_told_as_it_is_written() {
        assert_eq!(seconds(Duration::from_secs(600)), "10min");
        assert_eq!(seconds(Duration::from_millis(1500)), "1500ms");
    }
}
