//! `locks`: what the measuring session holds when `measure` is over and its transaction is not.

use super::{ColumnDescription, Instrument, Probe, Reading, Sessions, Unreadable, Window};
use crate::quantity::{Column, Table, Value};
use futures_util::future::{FutureExt, LocalBoxFuture, ready};

const fn locks(name: &'static str, description: &'static str) -> ColumnDescription {
    ColumnDescription {
        name,
        type_name: "numeric",
        unit: "locks",
        description,
    }
}

pub const INSTRUMENT: Instrument = Instrument {
    name: "locks",
    description: "locks of the measuring session at the end of `measure`, which has to leave its \
                  transaction open (pg_locks, read by another session); each in \
                  `measured.<experiment>_locks`",
    minimum_version: 14,
    columns: &[
        locks(
            "locks",
            "all: relations, the virtual transaction id, others",
        ),
        locks("fastpath_locks", "of all, those taken by fast path"),
        locks("relation_locks", "on tables, indexes and other relations"),
        locks(
            "fastpath_relation_locks",
            "of those on relations, by fast path: up to 16 a session before PostgreSQL 18, from \
             then on as many as max_locks_per_transaction makes room for",
        ),
        locks(
            "main_relation_locks",
            "of those on relations, in the main lock table, which all sessions share",
        ),
        locks("access_share_locks", "on relations in mode AccessShareLock"),
        locks("row_share_locks", "on relations in mode RowShareLock"),
        locks(
            "row_exclusive_locks",
            "on relations in mode RowExclusiveLock",
        ),
        locks(
            "share_update_exclusive_locks",
            "on relations in mode ShareUpdateExclusiveLock",
        ),
        locks("share_locks", "on relations in mode ShareLock"),
        locks(
            "share_row_exclusive_locks",
            "on relations in mode ShareRowExclusiveLock",
        ),
        locks("exclusive_locks", "on relations in mode ExclusiveLock"),
        locks(
            "access_exclusive_locks",
            "on relations in mode AccessExclusiveLock",
        ),
    ],
    tables: &[(
        "locks",
        "each lock: locktype, relation, mode, fastpath, granted",
    )],
    options: &[],
    disturbed_by: "a lock that another session takes on the same table in a strong mode \
                   (autovacuum's truncation, DDL) moves those of the fast path to the main lock \
                   table",
    probe: |_| Box::new(Locks),
};

/// In the order of the columns for modes.
const MODES: [&str; 8] = [
    "AccessShareLock",
    "RowShareLock",
    "RowExclusiveLock",
    "ShareUpdateExclusiveLock",
    "ShareLock",
    "ShareRowExclusiveLock",
    "ExclusiveLock",
    "AccessExclusiveLock",
];

struct Locks;

impl Probe for Locks {
    fn before<'a>(
        &'a mut self,
        _: &'a mut Sessions<'_>,
    ) -> LocalBoxFuture<'a, Result<(), Unreadable>> {
        ready(Ok(())).boxed_local()
    }

    fn after<'a>(
        &'a mut self,
        sessions: &'a mut Sessions<'_>,
        window: &'a Window,
    ) -> LocalBoxFuture<'a, Result<Reading, Unreadable>> {
        async move {
            let pid = sessions.subject.backend_pid();
            if !window.in_transaction {
                return Err(Unreadable::Refused {
                    message: "`locks` finds none: the transaction of `measure` has ended, and its \
                              locks with it"
                        .to_owned(),
                    hint: "begin `measure` with `BEGIN;` and do not commit: what is left open is \
                           rolled back after the collects",
                });
            }
            let held = sessions.observer.execute(&held_by(pid)).await?;
            Ok(reading(held.table(&TYPES.map(str::to_owned))))
        }
        .boxed_local()
    }
}

const TYPES: [&str; 5] = ["text", "text", "text", "boolean", "boolean"];

fn held_by(pid: i32) -> String {
    format!(
        "SELECT locktype, relation::pg_catalog.regclass AS relation, mode, fastpath, granted \
         FROM pg_catalog.pg_locks WHERE pid = {pid} ORDER BY fastpath DESC, 1, 2, 3"
    )
}

fn reading(table: Table) -> Reading {
    let is = |row: &[Value], column: usize, text: &str| row[column].to_string() == text;
    let count = |wanted: &dyn Fn(&[Value]) -> bool| {
        let count = table.rows.iter().filter(|row| wanted(row)).count();
        Value::from_postgres(Some(&count.to_string()), "numeric")
    };
    let relation = |row: &[Value]| is(row, 0, "relation");
    let fast = |row: &[Value]| row[3] == Value::Boolean(true);
    let mut values = vec![
        count(&|_| true),
        count(&fast),
        count(&relation),
        count(&|row| relation(row) && fast(row)),
        count(&|row| relation(row) && !fast(row)),
    ];
    values.extend(MODES.map(|mode| count(&|row| relation(row) && is(row, 2, mode))));
    let mut reading = INSTRUMENT.reading(values);
    let names = ["locktype", "relation", "mode", "fastpath", "granted"];
    let columns = (names.into_iter().zip(TYPES))
        .map(|(name, type_name)| Column::new(name, type_name))
        .collect();
    let rows = table.rows;
    reading
        .results
        .insert("locks".to_owned(), Table { columns, rows });
    reading
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_counted_by_kind_path_and_mode() {
        let row = |cells: [&str; 5]| {
            (cells.iter().zip(TYPES))
                .map(|(cell, type_name)| Value::from_postgres(Some(cell), type_name))
                .collect()
        };
        let table = Table {
            columns: Vec::new(),
            rows: vec![
                row(["relation", "t", "AccessShareLock", "t", "t"]),
                row(["relation", "t_pkey", "AccessShareLock", "f", "t"]),
                row(["relation", "t", "RowExclusiveLock", "t", "t"]),
                row(["virtualxid", "", "ExclusiveLock", "t", "t"]),
                row(["transactionid", "", "ExclusiveLock", "f", "t"]),
            ],
        };
        let reading = reading(table);
        let counts: Vec<String> = (reading.columns.iter())
            .map(|(column, value)| format!("{}={value}", column.name))
            .filter(|text| !text.ends_with("=0"))
            .collect();
        assert_eq!(
            counts,
            [
                "locks=5",
                "fastpath_locks=3",
                "relation_locks=3",
                "fastpath_relation_locks=2",
                "main_relation_locks=1",
                "access_share_locks=2",
                "row_exclusive_locks=1",
            ]
        );
        assert_eq!(reading.results["locks"].rows.len(), 5);
    }
}
