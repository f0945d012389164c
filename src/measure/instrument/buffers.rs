//! `buffers`: pages found in shared buffers and pages asked of the operating system.
//!
//! Where they come from: hits and reads of the whole database stand in `pg_stat_database`, parallel
//! workers' with them, and the tool reads that from another database. Those of the experiment's own
//! tables and indexes stand in `pg_statio_user_tables`; the rest is the catalog. Which pages were
//! dirtied Postgres counts for a statement alone (`explain`, `statements`), which were written, for
//! whoever had to write them (`io`).

use super::counters::{Counters, Part, Reader};
use super::{ColumnDescription, Instrument};

const fn pages(name: &'static str, description: &'static str) -> ColumnDescription {
    ColumnDescription {
        name,
        type_name: "numeric",
        unit: "pages",
        description,
    }
}

pub const INSTRUMENT: Instrument = Instrument {
    name: "buffers",
    description: "pages found in shared buffers and pages read, in the experiment's database and \
                  of its tables (pg_stat_database, pg_statio_user_tables, handed in before they \
                  are read)",
    minimum_version: 15,
    columns: &[
        pages(
            "buffers_hit",
            "blks_hit: found in shared buffers, the catalog's with them but for what all databases share",
        ),
        pages(
            "buffers_read",
            "blks_read: asked of the operating system, which may have them in memory",
        ),
        pages("heap_hit", "heap_blks_hit of all the experiment's tables"),
        pages("heap_read", "heap_blks_read of all the experiment's tables"),
        pages("index_hit", "idx_blks_hit of all the experiment's tables"),
        pages("index_read", "idx_blks_read of all the experiment's tables"),
        pages(
            "toast_hit",
            "toast_blks_hit + tidx_blks_hit: their TOAST tables and indexes",
        ),
        pages("toast_read", "toast_blks_read + tidx_blks_read"),
    ],
    tables: &[],
    options: &[],
    disturbed_by: "other sessions in the same database and autovacuum; a first use in a session \
                   reads the catalog; what a dropped table had is gone; with a transaction that \
                   `measure` leaves open all is NULL: it has not handed in its counts",
    probe: |_| Box::new(Counters::new(&INSTRUMENT, PARTS)),
};

const PARTS: &[Part] = &[
    (
        Reader::Control,
        "SELECT blks_hit, blks_read FROM pg_catalog.pg_stat_database WHERE datname = {database}",
    ),
    (
        Reader::Observer,
        "SELECT coalesce(sum(heap_blks_hit), 0), coalesce(sum(heap_blks_read), 0), \
         coalesce(sum(idx_blks_hit), 0), coalesce(sum(idx_blks_read), 0), \
         coalesce(sum(coalesce(toast_blks_hit, 0) + coalesce(tidx_blks_hit, 0)), 0), \
         coalesce(sum(coalesce(toast_blks_read, 0) + coalesce(tidx_blks_read, 0)), 0) \
         FROM pg_catalog.pg_statio_user_tables",
    ),
];
