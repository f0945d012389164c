//! What one run gives: a row of the experiment's table, and results of their own.

use super::Request;
use super::script::Ran;
use crate::diagnostic::Diagnostic;
use crate::engine::session::{KEPT_ROWS, Session, StatementResult};
use crate::exit_code::Failure;
use crate::quantity::{Column, Table, Value};
use crate::source::Span;
use std::collections::BTreeSet;

/// A result with its columns' types, asked of the same session. What cannot be described (a table
/// that the statement itself dropped) is text.
pub async fn typed(session: &mut Session, sql: &str, result: &StatementResult) -> Table {
    result.table(&session.column_types(sql).await.unwrap_or_default())
}

/// Each statement of `measure` with its own time and count.
pub fn statements_table(ran: &Ran) -> Table {
    let rows = ran
        .statements
        .iter()
        .enumerate()
        .map(|(index, statement)| {
            let double = |value: Option<f64>| {
                let text = value.map(|value| value.to_string());
                Value::from_postgres(text.as_deref(), "double precision")
            };
            let rows = statement.rows.map(|rows| rows.to_string());
            vec![
                Value::from_postgres(Some(&(index + 1).to_string()), "integer"),
                double(Some(statement.elapsed.as_nanos() as f64 / 1e6)),
                double(statement.server_ms),
                Value::from_postgres(rows.as_deref(), "numeric"),
            ]
        })
        .collect();
    Table {
        columns: vec![
            Column::new("statement", "integer"),
            Column::new("elapsed_ms", "double precision"),
            Column::new("server_ms", "double precision"),
            Column::new("rows", "numeric"),
        ],
        rows,
    }
}

/// One row of the experiment's table that grows column by column. A name that stands twice, or is
/// a key's, is the article's mistake.
pub struct RowBuilder<'r> {
    request: &'r Request<'r>,
    cells: Vec<(Column, Value)>,
}

impl<'r> RowBuilder<'r> {
    pub fn new(request: &'r Request<'r>) -> Self {
        Self {
            request,
            cells: Vec::new(),
        }
    }

    /// What an instrument or the protocol itself adds.
    pub fn push_own(&mut self, column: Column, value: Value) -> Result<(), Failure> {
        let experiment = self.request.experiment;
        let span = experiment.cells.span.unwrap_or(experiment.measure.span);
        let hint = "give the matrix column another name";
        self.push(column, value, span, hint)
    }

    /// What a query of the article, at `span`, adds.
    pub fn push_queried(
        &mut self,
        column: Column,
        value: Value,
        span: Span,
    ) -> Result<(), Failure> {
        self.push(column, value, span, "give it another name with AS")
    }

    fn push(
        &mut self,
        column: Column,
        value: Value,
        span: Span,
        hint: &str,
    ) -> Result<(), Failure> {
        let name = &column.name;
        let known = name == "run"
            || self.request.experiment.cells.columns.contains(name)
            || self.cells.iter().any(|(known, _)| known.name == *name);
        if known {
            let message = format!(
                "the column `{name}` is there already: an instrument, the matrix or another query \
                 has it"
            );
            let diagnostic = Diagnostic::error(message).at(&self.request.article.source, span);
            return Err(Failure::article(diagnostic.hint(hint)));
        }
        self.cells.push((column, value));
        Ok(())
    }

    pub fn table(self) -> Table {
        let (columns, row) = self.cells.into_iter().unzip();
        Table {
            columns,
            rows: vec![row],
        }
    }
}

/// What keeps a result from being a table of its own, if anything does.
pub fn unfit(table: &Table, result: &StatementResult) -> Option<String> {
    if result.rows_not_kept > 0 {
        let rows = result.rows.len() as u64 + result.rows_not_kept;
        return Some(format!(
            "this result has {rows} rows; {KEPT_ROWS} are kept at most"
        ));
    }
    let mut names = BTreeSet::new();
    let twice = table
        .columns
        .iter()
        .find(|column| !names.insert(&column.name));
    twice.map(|column| format!("this result has two columns `{}`", column.name))
}
