//! `measure: {repeat: 200000}`: one statement over and over from the client, each time sent as text by
//! the simple protocol as any statement of an article is, and waited for before the next.

use super::instrument::{ColumnDescription, StatementTime};
use super::script::{self, Place, Ran, Rules, ScriptError};
use crate::article::{Repeat, RepeatTransaction, Statement, Variables};
use crate::diagnostic::Diagnostic;
use crate::engine::session::Session;
use crate::parse::repetitions;
use crate::parse::sql::{expand, expand_text};
use crate::quantity::{Column, Value};
use std::time::Instant;

const fn column(
    name: &'static str,
    unit: &'static str,
    description: &'static str,
) -> ColumnDescription {
    ColumnDescription {
        name,
        type_name: "numeric",
        unit,
        description,
    }
}

/// Columns that join the experiment's.
pub const COLUMNS: &[ColumnDescription] = &[
    column("executions", "1", "of the statement"),
    column(
        "execution_us",
        "µs",
        "average by the client's clock, from sending to the end of the answer",
    ),
    column(
        "execution_p50_us",
        "µs",
        "the least that half of them do not exceed",
    ),
    column("execution_p90_us", "µs", "likewise 90 %"),
    column("execution_p99_us", "µs", "likewise 99 %"),
    column("execution_max_us", "µs", "the longest"),
];

/// Runs the statement. The window has one time for all executions, and in a transaction of their own
/// those of `BEGIN` and `COMMIT`.
pub async fn run(
    session: &mut Session,
    mut server_clock: Option<&mut Session>,
    repeat: &Repeat,
    statement: &Statement,
    variables: &Variables,
    rules: Rules<'_>,
) -> Result<Ran, (Ran, ScriptError)> {
    let mistake = |problem: Diagnostic| (Ran::default(), ScriptError::Article(Box::new(problem)));
    let times = times(repeat, variables)
        .map_err(|problem| mistake(problem.at(rules.source, repeat.times.span)))?;
    let expanded = expand(statement, variables, rules.source).map_err(mistake)?;
    let place = Place {
        statement,
        expanded: &expanded,
        rules,
        generated: false,
        before: 0,
    };
    let mut ran = Ran::default();
    let one = repeat.transaction == RepeatTransaction::One;
    if one {
        let clock = server_clock.as_deref_mut();
        bracket(session, clock, "BEGIN", &place, &mut ran).await?;
    }
    let mut all = StatementTime::default();
    let mut executions: Vec<u64> = Vec::with_capacity(times as usize);
    for _ in 0..times {
        let began = Instant::now();
        match session.execute_within(&expanded.sql, rules.timeout).await {
            Ok(result) => {
                let clock = server_clock.as_deref_mut();
                let elapsed = script::without_way(session, clock, result.elapsed).await;
                all.elapsed += elapsed;
                if let Some(rows) = result.command_rows {
                    *all.rows.get_or_insert(0) += rows;
                }
                let nanoseconds = elapsed.as_nanos();
                executions.push(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
            }
            Err(error) => {
                // What is expected to fail took its time too.
                let clock = server_clock.as_deref_mut();
                all.elapsed += script::without_way(session, clock, began.elapsed()).await;
                ran.in_transaction = one;
                ran.statements.push(all);
                ran.columns = columns(&mut executions);
                return Err((ran, place.error(&expanded.sql, error)));
            }
        }
    }
    ran.rows = all.rows;
    ran.statements.push(all);
    ran.columns = columns(&mut executions);
    if one {
        bracket(session, server_clock, "COMMIT", &place, &mut ran).await?;
    }
    Ok(ran)
}

fn times(repeat: &Repeat, variables: &Variables) -> Result<u32, Diagnostic> {
    let text = expand_text(&repeat.times.value, variables)?;
    let wrong = |hint: String| {
        Diagnostic::error(format!("`{text}` is no number of repetitions")).hint(hint)
    };
    match repetitions(&text).map_err(wrong)? {
        Some(times) => Ok(times),
        None => Err(wrong("give the param a whole number".to_owned())),
    }
}

/// `BEGIN` and `COMMIT` around the repetition.
async fn bracket(
    session: &mut Session,
    server_clock: Option<&mut Session>,
    sql: &str,
    place: &Place<'_>,
    ran: &mut Ran,
) -> Result<(), (Ran, ScriptError)> {
    match session.execute_within(sql, place.rules.timeout).await {
        Ok(result) => {
            ran.statements.push(StatementTime {
                elapsed: script::without_way(session, server_clock, result.elapsed).await,
                ..StatementTime::default()
            });
            Ok(())
        }
        Err(error) => Err((std::mem::take(ran), place.error(sql, error))),
    }
}

/// What the executions, in nanoseconds, come to.
fn columns(executions: &mut [u64]) -> Vec<(Column, Value)> {
    executions.sort_unstable();
    let total: u128 = executions.iter().copied().map(u128::from).sum();
    let count = executions.len() as u128;
    let average = (count > 0).then(|| {
        let nanoseconds = (total + count / 2) / count;
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
    });
    let rank = |percent: usize| {
        let rank = (executions.len() * percent).div_ceil(100);
        executions.get(rank.saturating_sub(1)).copied()
    };
    let times = [
        average,
        rank(50),
        rank(90),
        rank(99),
        executions.last().copied(),
    ];
    let values = std::iter::once(Some(count.to_string()))
        .chain(times.map(|nanoseconds| nanoseconds.map(microseconds)));
    COLUMNS
        .iter()
        .zip(values)
        .map(|(column, value)| {
            let value = Value::from_postgres(value.as_deref(), column.type_name);
            (Column::new(column.name, column.type_name), value)
        })
        .collect()
}

fn microseconds(nanoseconds: u64) -> String {
    format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_told_by_average_and_ranks() {
        let texts = |executions: &mut [u64]| -> Vec<String> {
            let columns = columns(executions);
            columns.iter().map(|(_, value)| value.to_string()).collect()
        };
        let mut hundred: Vec<u64> = (1..=100).rev().map(|n| n * 1000).collect();
        assert_eq!(
            texts(&mut hundred),
            ["100", "50.500", "50.000", "90.000", "99.000", "100.000"]
        );
        assert_eq!(
            texts(&mut [1_234_567]),
            [
                "1", "1234.567", "1234.567", "1234.567", "1234.567", "1234.567"
            ]
        );
        assert_eq!(texts(&mut [])[..2], ["0", "NULL"]);
    }
}
