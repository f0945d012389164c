//! The catalogue of instruments: what is read around `measure`. One file each; a new one is that
//! file and one line in [`INSTRUMENTS`].
//!
//! An instrument reads before and after on connections of the tool's own, so that it adds nothing
//! to the measuring session; the one exception is that sessions are asked to hand in their
//! cumulative statistics, outside the window.

mod counters;
mod hot;
mod time;
mod tuples;
mod wal;

use crate::engine::session::{Session, SessionError};
use crate::quantity::{Column, Table, Value};
use futures_util::future::LocalBoxFuture;
use indexmap::IndexMap;
use std::time::Duration;

pub const INSTRUMENTS: &[Instrument] = &[
    wal::INSTRUMENT,
    hot::INSTRUMENT,
    tuples::INSTRUMENT,
    time::INSTRUMENT,
];

pub struct Instrument {
    pub name: &'static str,
    pub description: &'static str,
    /// Lowest major version of the server.
    pub minimum_version: u32,
    pub columns: &'static [ColumnDescription],
    /// What falsifies it, and what to do.
    pub disturbed_by: &'static str,
    pub probe: fn() -> Box<dyn Probe>,
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
    ) -> LocalBoxFuture<'a, Result<(), SessionError>>;

    fn after<'a>(
        &'a mut self,
        sessions: &'a mut Sessions<'_>,
        window: &'a Window,
    ) -> LocalBoxFuture<'a, Result<Reading, SessionError>>;
}

/// The connections a probe may use.
pub struct Sessions<'s> {
    /// The measuring connection; only to ask it to hand in its statistics.
    pub subject: &'s mut Session,
    /// The tool's own, as superuser, in a database of its own.
    pub control: &'s mut Session,
    /// In the experiment's database.
    pub observer: &'s mut Session,
}

/// What the clock and the protocol saw between before and after.
#[derive(Clone, Debug, Default)]
pub struct Window {
    pub statements: Vec<StatementTime>,
    /// From the tag of the last statement with a row count.
    pub rows: Option<u64>,
    /// Bytes of results that came through a network; None where the server is on this machine.
    pub received_bytes: Option<u64>,
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
