//! The catalogue of who may run a phase other than the session itself, and what each gives.

use super::instrument::ColumnDescription;
use super::{program, repeat};
use crate::parse::program_arguments;

pub const CLIENTS: &[Client] = &[
    Client {
        name: "psql",
        written: "{via: psql}",
        phases: "setup, warmup, measure, teardown",
        description: "the pinned server's own psql runs the SQL as a script, stopping at the first \
                      error: `\\copy` (files in the run's folder), `\\i` (files beside the article), \
                      `\\gexec`, `\\gset`, `\\set`, `\\if` … Each statement's time is that of psql's own \
                      `\\timing`: from sending to the end of the answer, without psql's start, without \
                      connecting, without printing; server_ms is NULL",
        tables: &[],
        disturbed_by: "what disturbs `time`; `\\copy` reads its file within the time, from the page \
                       cache where a phase has just written it",
        arguments: || "--single-transaction".to_owned(),
    },
    Client {
        name: "pgbench",
        written: "{via: pgbench, args: \"-c 8 -j 8 -S -T 30\"}",
        phases: "setup (with -i), warmup, measure, teardown",
        description: "the pinned server's own pgbench; SQL below is its `-f` script. With `-i` it makes \
                      its tables, and SQL below runs after that on the phase's session. The article's \
                      seed is its random seed, `session` sets its sessions, `timeout` is for the whole \
                      run. elapsed_ms is transactions / tps, server_ms and rows are NULL. `wal` and other \
                      instruments frame the whole program, vacuuming before the run with it unless `-n` \
                      is given or there is a script below",
        tables: &[
            ("measured.<experiment>", program::COLUMNS),
            (
                "measured.<experiment>_statements, with -r",
                program::STATEMENTS,
            ),
            ("measured.<experiment>_progress, with -P", program::PROGRESS),
        ],
        disturbed_by: "pgbench runs on the server's machine and takes its share of the cores: leave it \
                       some; every transaction is logged, which costs less than a microsecond; \
                       `--sampling-rate` thins out the log, and then percentiles are of a sample",
        arguments: program_arguments::listed,
    },
    Client {
        name: "repeat",
        written: "{repeat: 200000, transaction: each}",
        phases: "measure",
        description: "one statement over and over from the tool's own client, on the measuring session: \
                      sent as text each time (simple protocol, not prepared), the next when the answer is \
                      there. With `transaction: one` a BEGIN before and a COMMIT after, which are \
                      statements of their own in `measured.<experiment>_statements`. rows is the sum over \
                      all executions, elapsed_ms that of their times; server_ms is NULL",
        tables: &[("measured.<experiment>", repeat::COLUMNS)],
        disturbed_by: "what disturbs `time`; each execution has a round trip in it, which a server does not have that loops by itself; with a network between, the server's clock is asked after each execution",
        arguments: String::new,
    },
];

pub struct Client {
    pub name: &'static str,
    /// As it stands behind a phase's name.
    pub written: &'static str,
    pub phases: &'static str,
    pub description: &'static str,
    /// Columns it adds, by table.
    pub tables: &'static [(&'static str, &'static [ColumnDescription])],
    /// What falsifies it, and what to do.
    pub disturbed_by: &'static str,
    /// The arguments it takes.
    pub arguments: fn() -> String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_client_is_documented_and_no_table_has_a_column_twice() {
        for client in CLIENTS {
            assert!(!client.description.is_empty(), "{}", client.name);
            assert!(!client.disturbed_by.is_empty(), "{}", client.name);
            for (table, columns) in client.tables {
                let mut names = BTreeSet::new();
                for column in *columns {
                    assert!(names.insert(column.name), "{table} {}", column.name);
                    assert!(!column.description.is_empty(), "{}", column.name);
                    assert!(!column.unit.is_empty(), "{}", column.name);
                }
            }
        }
    }
}
