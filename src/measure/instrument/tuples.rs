//! `tuples`: rows inserted, deleted, read and fetched, from the cumulative statistics.

use super::counters::{Counters, Reader};
use super::{ColumnDescription, Instrument};

pub const INSTRUMENT: Instrument = Instrument {
    name: "tuples",
    description: "rows written and read, over all tables of the experiment's database \
                  (pg_stat_user_tables, handed in before it is read)",
    minimum_version: 15,
    columns: &[
        ColumnDescription {
            name: "inserted",
            type_name: "numeric",
            unit: "rows",
            description: "n_tup_ins: rows inserted",
        },
        ColumnDescription {
            name: "deleted",
            type_name: "numeric",
            unit: "rows",
            description: "n_tup_del: rows deleted",
        },
        ColumnDescription {
            name: "live_change",
            type_name: "numeric",
            unit: "rows",
            description: "change of n_live_tup, the estimate of live rows",
        },
        ColumnDescription {
            name: "dead_change",
            type_name: "numeric",
            unit: "rows",
            description: "change of n_dead_tup, the estimate of dead rows",
        },
        ColumnDescription {
            name: "seq_tuples_read",
            type_name: "numeric",
            unit: "rows",
            description: "seq_tup_read: live rows fetched by sequential scans",
        },
        ColumnDescription {
            name: "index_tuples_fetched",
            type_name: "numeric",
            unit: "rows",
            description: "idx_tup_fetch: live rows fetched by index scans",
        },
    ],
    tables: &[],
    options: &[],
    disturbed_by: "other sessions in the same database, autovacuum and ANALYZE (which correct \
                   the estimates); with a transaction that `measure` leaves open all is NULL: it \
                   has not handed in its counts",
    probe: |_| Box::new(Counters::new(&INSTRUMENT, &[(Reader::Observer, SQL)])),
};

const SQL: &str = "SELECT coalesce(sum(n_tup_ins), 0), coalesce(sum(n_tup_del), 0), \
                   coalesce(sum(n_live_tup), 0), coalesce(sum(n_dead_tup), 0), \
                   coalesce(sum(seq_tup_read), 0), coalesce(sum(idx_tup_fetch), 0) \
                   FROM pg_catalog.pg_stat_user_tables";
