//! What one run gives: a row of the experiment's table, and results of their own.

use super::Request;
use super::script::Ran;
use crate::diagnostic::Diagnostic;
use crate::engine::session::{Session, StatementResult};
use crate::exit_code::Failure;
use crate::quantity::{Column, Table, Value};
use crate::source::Span;

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
                double(Some(statement.elapsed.as_secs_f64() * 1000.0)),
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

/// One row that grows column by column; a name that stands twice is the article's mistake.
#[derive(Default)]
pub struct RowBuilder {
    cells: Vec<(Column, Value)>,
}

impl RowBuilder {
    pub fn push(
        &mut self,
        column: Column,
        value: Value,
        place: Option<(&Request<'_>, Span)>,
    ) -> Result<(), Failure> {
        if self
            .cells
            .iter()
            .any(|(known, _)| known.name == column.name)
            || ["run"].contains(&column.name.as_str())
            || place
                .is_some_and(|(request, _)| request.experiment.cells.columns.contains(&column.name))
        {
            let mut diagnostic = Diagnostic::error(format!(
                "the column `{}` is there already: an instrument, the matrix or another query has it",
                column.name
            ))
            .hint("give it another name with AS");
            if let Some((request, span)) = place {
                diagnostic = diagnostic.at(&request.article.source, span);
            }
            return Err(Failure::article(diagnostic));
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
