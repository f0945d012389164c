//! The catalogue of instruments: what is read around `measure`. One file each; a new one is that
//! file and one line in [`INSTRUMENTS`].
//!
//! An instrument reads before and after on connections of the tool's own, so that it adds nothing
//! to the measuring session; the one exception is that sessions are asked to hand in their
//! cumulative statistics, outside the window; and `explain`, which runs the measured statement in
//! another form.

mod buffers;
mod counters;
mod cpu;
pub mod explain;
mod hot;
mod io;
mod locks;
mod statements;
mod temp;
mod time;
mod tuples;
mod wal;

use crate::article::{Experiment, InstrumentOption, InstrumentOptions, OptionValue};
use crate::diagnostic::Diagnostic;
use crate::engine::session::{Session, SessionError};
use crate::parse::KnownInstrument;
use crate::quantity::{Column, Number, Table, Value};
use crate::source::Source;
use futures_util::future::LocalBoxFuture;
use indexmap::IndexMap;
use std::sync::Arc;
use std::time::Duration;

/// Read in this order after a window, and in the opposite one before it: what is disturbed most by
/// the reading of others is nearest to the window.
pub const INSTRUMENTS: &[Instrument] = &[
    cpu::INSTRUMENT,
    wal::INSTRUMENT,
    statements::INSTRUMENT,
    locks::INSTRUMENT,
    io::INSTRUMENT,
    buffers::INSTRUMENT,
    temp::INSTRUMENT,
    hot::INSTRUMENT,
    tuples::INSTRUMENT,
    time::INSTRUMENT,
    explain::INSTRUMENT,
];

/// Those that read cumulative statistics, which a session hands in between transactions.
pub const CUMULATIVE: [&str; 5] = ["buffers", "io", "temp", "hot", "tuples"];

pub struct Instrument {
    pub name: &'static str,
    pub description: &'static str,
    /// Lowest major version of the server.
    pub minimum_version: u32,
    pub columns: &'static [ColumnDescription],
    /// Results of its own: `measured.<experiment>_<name>`, and what they hold.
    pub tables: &'static [(&'static str, &'static str)],
    pub options: &'static [InstrumentOption],
    /// What falsifies it, and what to do.
    pub disturbed_by: &'static str,
    pub probe: fn(&InstrumentOptions) -> Box<dyn Probe>,
}

pub struct ColumnDescription {
    pub name: &'static str,
    pub type_name: &'static str,
    pub unit: &'static str,
    pub description: &'static str,
}

/// One use of an instrument around one window.
pub trait Probe {
    fn before<'a>(
        &'a mut self,
        sessions: &'a mut Sessions<'_>,
    ) -> LocalBoxFuture<'a, Result<(), Unreadable>>;

    fn after<'a>(
        &'a mut self,
        sessions: &'a mut Sessions<'_>,
        window: &'a Window,
    ) -> LocalBoxFuture<'a, Result<Reading, Unreadable>>;
}

/// Why an instrument has nothing to say.
#[derive(Debug)]
pub enum Unreadable {
    Session(SessionError),
    /// The experiment or its server is not made for it.
    Refused {
        message: String,
        hint: &'static str,
    },
}

impl From<SessionError> for Unreadable {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

/// The connections a probe may use.
pub struct Sessions<'s> {
    /// The measuring connection; only to ask it to hand in its statistics.
    pub subject: &'s mut Session,
    /// The tool's own, as superuser, in a database of its own.
    pub control: &'s mut Session,
    /// In the experiment's database.
    pub observer: &'s mut Session,
    /// The experiment's database.
    pub database: &'s str,
    /// The server's major version.
    pub major: u32,
}

/// What the clock and the protocol saw between before and after.
#[derive(Clone, Debug, Default)]
pub struct Window {
    pub statements: Vec<StatementTime>,
    /// From the tag of the last statement with a row count.
    pub rows: Option<u64>,
    /// Bytes of results that came through a network; None where the server is on this machine.
    pub received_bytes: Option<u64>,
    /// A transaction is still open: what it did is not in the cumulative statistics.
    pub in_transaction: bool,
    /// The statement that `explain` is about.
    pub explained: Option<Explained>,
}

/// A statement of `measure`, and what came of `EXPLAIN ANALYZE` in its place.
#[derive(Clone, Debug, Default)]
pub struct Explained {
    /// With its variables filled in.
    pub sql: String,
    /// JSON; None where the statement itself was run.
    pub plan: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct StatementTime {
    /// Client clock, from sending to the last byte of the answer. Of a server on another machine
    /// the server's clock: no network is in it.
    pub elapsed: Duration,
    /// Server clock, from `query_start` to `state_change`.
    pub server_ms: Option<f64>,
    pub rows: Option<u64>,
}

impl StatementTime {
    /// Divided once, so that microseconds stay the decimals that they are.
    pub fn elapsed_ms(&self) -> f64 {
        self.elapsed.as_nanos() as f64 / 1e6
    }
}

/// What one instrument adds to the experiment's row, and results of its own.
#[derive(Default)]
pub struct Reading {
    pub columns: Vec<(Column, Value)>,
    pub results: IndexMap<String, Table>,
}

impl Instrument {
    /// What an article may say of it.
    pub fn known(&self) -> KnownInstrument {
        KnownInstrument {
            name: self.name,
            options: self.options,
            tables: self.tables,
            explains: self.name == explain::INSTRUMENT.name,
            of_backend: [cpu::INSTRUMENT.name, locks::INSTRUMENT.name].contains(&self.name),
        }
    }

    /// A reading of nothing but NULL.
    fn unknown(&self) -> Reading {
        self.reading(vec![Value::Null; self.columns.len()])
    }

    /// A reading of this instrument's documented columns, in their order.
    fn reading(&self, values: Vec<Value>) -> Reading {
        assert_eq!(values.len(), self.columns.len(), "{}", self.name);
        Reading {
            columns: self
                .columns
                .iter()
                .map(|column| Column::new(column.name, column.type_name))
                .zip(values)
                .collect(),
            results: IndexMap::new(),
        }
    }
}

/// An option's value, or what it is where it is left out.
fn option(
    known: &[InstrumentOption],
    given: &InstrumentOptions,
    name: &str,
) -> Option<OptionValue> {
    let default = known.iter().find(|option| option.name == name)?.default;
    Some(given.get(name).map_or(default, |value| value.value))
}

/// What the experiment's instruments ask for that a server of this major version has not.
pub fn refused(source: &Arc<Source>, experiment: &Experiment, major: u32) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    let mut tell = |what: String, minimum: u32, span| {
        if major < minimum {
            problems.push(
                Diagnostic::error(format!("{what} needs PostgreSQL {minimum} or later"))
                    .at(source, span)
                    .hint(format!("the server is of version {major}; take it away")),
            );
        }
    };
    for choice in &experiment.instruments {
        let name = choice.value.name.as_str();
        let Some(instrument) = INSTRUMENTS.iter().find(|one| one.name == name) else {
            continue;
        };
        let what = format!("instrument `{name}`");
        tell(what, instrument.minimum_version, choice.span);
        for option in instrument.options {
            if let Some(value) = choice.value.options.get(option.name) {
                let what = format!("option `{}` of instrument `{name}`", option.name);
                tell(what, option.minimum_version, value.span);
            }
        }
    }
    problems
}

/// One row of a query as numbers.
async fn numbers(session: &mut Session, sql: &str) -> Result<Vec<Value>, SessionError> {
    let result = session.execute(sql).await?;
    let row = result.rows.into_iter().next().unwrap_or_default();
    Ok(row
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_instrument_is_documented_and_no_two_share_a_column() {
        let mut columns = BTreeSet::new();
        for instrument in INSTRUMENTS {
            assert!(!instrument.description.is_empty(), "{}", instrument.name);
            assert!(!instrument.disturbed_by.is_empty(), "{}", instrument.name);
            for column in instrument.columns {
                assert!(columns.insert(column.name), "{} twice", column.name);
                assert!(!column.description.is_empty(), "{}", column.name);
                assert!(!column.unit.is_empty(), "{}", column.name);
            }
        }
    }
}
