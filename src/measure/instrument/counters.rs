//! Instruments that are the difference of one row of counters in the cumulative statistics.

use super::{Instrument, Probe, Reading, Sessions, Window};
use crate::engine::session::{Session, SessionError};
use crate::quantity::{Number, Value};
use futures_util::future::{FutureExt, LocalBoxFuture};

pub struct Counters {
    instrument: &'static Instrument,
    /// One row, one number for each of the instrument's columns.
    sql: &'static str,
    before: Vec<Value>,
}

impl Counters {
    pub fn new(instrument: &'static Instrument, sql: &'static str) -> Self {
        Self {
            instrument,
            sql,
            before: Vec::new(),
        }
    }
}

impl Probe for Counters {
    fn before<'a>(
        &'a mut self,
        sessions: &'a mut Sessions<'_>,
    ) -> LocalBoxFuture<'a, Result<(), SessionError>> {
        async move {
            flush_statistics(sessions.subject).await?;
            self.before = numbers(sessions.observer, self.sql).await?;
            Ok(())
        }
        .boxed_local()
    }

    fn after<'a>(
        &'a mut self,
        sessions: &'a mut Sessions<'_>,
        _: &'a Window,
    ) -> LocalBoxFuture<'a, Result<Reading, SessionError>> {
        async move {
            flush_statistics(sessions.subject).await?;
            let after = numbers(sessions.observer, self.sql).await?;
            let differences = after.iter().zip(&self.before);
            Ok(self.instrument.reading(
                differences
                    .map(|(after, before)| difference(after, before))
                    .collect(),
            ))
        }
        .boxed_local()
    }
}

/// Asks the measuring session to hand in its cumulative statistics at the end of this command
/// instead of up to a minute later (PostgreSQL 15 and later). In a failed transaction nothing can
/// be asked; the counts then miss that transaction, as they do everywhere in Postgres.
pub async fn flush_statistics(subject: &mut Session) -> Result<(), SessionError> {
    match subject
        .execute("SELECT pg_catalog.pg_stat_force_next_flush()")
        .await
    {
        Err(SessionError::Sql(error)) if error.sqlstate == "25P02" => Ok(()),
        result => result.map(drop),
    }
}

/// The single row of `sql` as numbers.
async fn numbers(session: &mut Session, sql: &str) -> Result<Vec<Value>, SessionError> {
    let result = session.execute(sql).await?;
    Ok(result
        .rows
        .into_iter()
        .next()
        .unwrap_or_default()
        .iter()
        .map(|cell| Value::from_postgres(cell.as_deref(), "numeric"))
        .collect())
}

/// `after - before`, NULL where either is.
fn difference(after: &Value, before: &Value) -> Value {
    match (
        after.number().and_then(Number::finite),
        before.number().and_then(Number::finite),
    ) {
        (Some(after), Some(before)) => Value::Number(Number::Finite(after - before)),
        _ => Value::Null,
    }
}
