//! `temp`: files that statements put aside on disk.

use super::counters::{Counters, Part, Reader};
use super::{ColumnDescription, Instrument};

pub const INSTRUMENT: Instrument = Instrument {
    name: "temp",
    description: "temporary files of sorts, hashes and materialized results in the experiment's \
                  database (pg_stat_database, handed in before it is read)",
    minimum_version: 15,
    columns: &[
        ColumnDescription {
            name: "temp_files",
            type_name: "numeric",
            unit: "files",
            description: "temporary files that were removed again, parallel workers' with them",
        },
        ColumnDescription {
            name: "temp_bytes",
            type_name: "numeric",
            unit: "B",
            description: "their size when they were removed",
        },
    ],
    tables: &[],
    options: &[],
    disturbed_by: "other sessions in the same database; a file counts once it is removed, so not \
                   that of a cursor that is still open; with a transaction that `measure` leaves \
                   open all is NULL: it has not handed in its counts",
    probe: |_| Box::new(Counters::new(&INSTRUMENT, PARTS)),
};

const PARTS: &[Part] = &[(
    Reader::Control,
    "SELECT temp_files, temp_bytes FROM pg_catalog.pg_stat_database WHERE datname = {database}",
)];
