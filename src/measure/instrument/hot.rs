//! `hot`: how many updates took the heap-only path, from the cumulative statistics.

use super::counters::{Counters, Reader};
use super::{ColumnDescription, Instrument};

pub const INSTRUMENT: Instrument = Instrument {
    name: "hot",
    description: "updates by the path they took, over all tables of the experiment's database \
                  (pg_stat_user_tables, handed in before it is read)",
    minimum_version: 16,
    columns: &[
        ColumnDescription {
            name: "updated",
            type_name: "numeric",
            unit: "rows",
            description: "n_tup_upd: rows updated, heap-only or not",
        },
        ColumnDescription {
            name: "hot_updated",
            type_name: "numeric",
            unit: "rows",
            description: "n_tup_hot_upd: updates that needed no new index entry",
        },
        ColumnDescription {
            name: "newpage_updated",
            type_name: "numeric",
            unit: "rows",
            description: "n_tup_newpage_upd: updates whose new version went to another page",
        },
    ],
    tables: &[],
    options: &[],
    disturbed_by: "other sessions that update in the same database; with a transaction that \
                   `measure` leaves open all is NULL: it has not handed in its counts",
    probe: |_| Box::new(Counters::new(&INSTRUMENT, &[(Reader::Observer, SQL)])),
};

const SQL: &str = "SELECT coalesce(sum(n_tup_upd), 0), coalesce(sum(n_tup_hot_upd), 0), \
                   coalesce(sum(n_tup_newpage_upd), 0) FROM pg_catalog.pg_stat_user_tables";
