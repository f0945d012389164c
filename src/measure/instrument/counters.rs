//! Instruments that are the difference of rows of counters in the cumulative statistics.

use super::{Instrument, Probe, Reading, Sessions, Unreadable, Window, difference, numbers};
use crate::engine::session::{Session, SessionError, quote_literal};
use crate::quantity::Value;
use futures_util::future::{FutureExt, LocalBoxFuture};

/// Which session reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// That of the tool in a database of its own: it adds nothing to the counts of the
    /// experiment's, whose name stands for `{database}` in the query.
    Control,
    /// That in the experiment's database, whose tables are seen from there alone.
    Observer,
}

/// A query of one row, one number for each of the next columns of the instrument.
pub type Part = (Reader, &'static str);

pub struct Counters {
    instrument: &'static Instrument,
    /// In the order in which they are read after a window; before it the other way round.
    parts: &'static [Part],
    before: Vec<Vec<Value>>,
}

impl Counters {
    pub fn new(instrument: &'static Instrument, parts: &'static [Part]) -> Self {
        Self {
            instrument,
            parts,
            before: Vec::new(),
        }
    }
}

impl Probe for Counters {
    fn before<'a>(
        &'a mut self,
        sessions: &'a mut Sessions<'_>,
    ) -> LocalBoxFuture<'a, Result<(), Unreadable>> {
        async move {
            hand_in(sessions).await?;
            for part in self.parts.iter().rev() {
                self.before.push(read(sessions, *part).await?);
                if part.0 == Reader::Observer {
                    // What it read for this is handed in before the window begins.
                    flush_statistics(sessions.observer).await?;
                }
            }
            self.before.reverse();
            Ok(())
        }
        .boxed_local()
    }

    fn after<'a>(
        &'a mut self,
        sessions: &'a mut Sessions<'_>,
        window: &'a Window,
    ) -> LocalBoxFuture<'a, Result<Reading, Unreadable>> {
        async move {
            if window.in_transaction {
                return Ok(self.instrument.unknown());
            }
            flush_statistics(sessions.subject).await?;
            let mut differences = Vec::new();
            for (part, before) in self.parts.iter().zip(&self.before) {
                let after = read(sessions, *part).await?;
                let both = after.iter().zip(before);
                differences.extend(both.map(|(after, before)| difference(after, before)));
            }
            Ok(self.instrument.reading(differences))
        }
        .boxed_local()
    }
}

async fn read(
    sessions: &mut Sessions<'_>,
    (reader, sql): Part,
) -> Result<Vec<Value>, SessionError> {
    match reader {
        Reader::Observer => numbers(sessions.observer, sql).await,
        Reader::Control => {
            let sql = sql.replace("{database}", &quote_literal(sessions.database));
            numbers(sessions.control, &sql).await
        }
    }
}

/// Before a window: what the observer read for an earlier collect must not be handed in during it,
/// and neither what the measuring session did before. The first time the call itself looks its
/// function up; the second hands that in.
pub async fn hand_in(sessions: &mut Sessions<'_>) -> Result<(), SessionError> {
    for _ in 0..2 {
        flush_statistics(sessions.observer).await?;
        flush_statistics(sessions.subject).await?;
    }
    Ok(())
}

/// Asks a session to hand in its cumulative statistics at the end of this command instead of up to
/// a minute later (PostgreSQL 15 and later). In an open transaction it hands them in once that has
/// ended, and in a failed one nothing can be asked; the counts then miss that transaction.
pub async fn flush_statistics(session: &mut Session) -> Result<(), SessionError> {
    match session
        .execute("SELECT pg_catalog.pg_stat_force_next_flush()")
        .await
    {
        Err(SessionError::Sql(error)) if error.sqlstate == "25P02" => Ok(()),
        result => result.map(drop),
    }
}
