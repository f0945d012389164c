//! `wal`: what a window wrote ahead, between two insert positions.
//!
//! 1. Before: the insert position, read last of all instruments.
//! 2. After: the insert position again, read first of all.
//! 3. A transactional message forces everything up to there to be flushed; without that,
//!    `pg_get_wal_stats` answers for a part of the window and says nothing of it.
//! 4. `pg_get_wal_stats` counts records and image bytes by record type, at 0.1 µs a record, but not
//!    the images. `pg_stat_wal` has their number for nothing, and is believed only where its records
//!    and bytes are exactly those of the window: it lags, is cluster-wide, and counts what parallel
//!    vacuum workers wrote twice. Elsewhere `pg_get_wal_block_info` counts them, at 2 µs a block, in
//!    the parts of a large window that hold any.

use super::counters::flush_statistics;
use super::{ColumnDescription, Instrument, Probe, Reading, Sessions, Unreadable, Window};
use crate::engine::session::{Session, SessionError};
use crate::quantity::{Column, Table, Value};
use bigdecimal::BigDecimal;
use futures_util::future::{FutureExt, LocalBoxFuture};

pub const INSTRUMENT: Instrument = Instrument {
    name: "wal",
    description: "write-ahead log between the insert positions before and after `measure`, after \
                  a forced flush; by record type in `measured.<experiment>_wal`",
    minimum_version: 16,
    columns: &[
        ColumnDescription {
            name: "wal_bytes",
            type_name: "numeric",
            unit: "B",
            description: "difference of pg_current_wal_insert_lsn()",
        },
        ColumnDescription {
            name: "wal_bytes_without_fpi",
            type_name: "numeric",
            unit: "B",
            description: "wal_bytes less wal_fpi_bytes; a record with an image leaves its own \
                          data out, so this is a little below what it would be without images",
        },
        ColumnDescription {
            name: "wal_records",
            type_name: "numeric",
            unit: "records",
            description: "number of WAL records",
        },
        ColumnDescription {
            name: "wal_fpi",
            type_name: "numeric",
            unit: "images",
            description: "number of full-page images",
        },
        ColumnDescription {
            name: "wal_fpi_bytes",
            type_name: "numeric",
            unit: "B",
            description: "size of the full-page images, after removal of the hole and compression",
        },
    ],
    tables: &[(
        "wal",
        "each record type: record_type, count, record_bytes, fpi_bytes",
    )],
    options: &[],
    disturbed_by: "everything else that writes WAL in the cluster (it is one log for all \
                   databases): autovacuum, the background writer's record of running transactions \
                   every 15 s (about 50 B); a checkpoint just before makes each first touch of a \
                   page an image",
    probe: |_| Box::new(Wal::default()),
};

/// Above this many records a window is searched for images in parts.
const SMALL_WINDOW: u32 = 200_000;
const PARTS: u32 = 64;

#[derive(Default)]
struct Wal {
    start: String,
    /// What `pg_stat_wal` said at the start.
    counted: Option<Counted>,
}

/// The cluster's own count of what it wrote ahead.
#[derive(Clone)]
struct Counted {
    records: BigDecimal,
    bytes: BigDecimal,
    images: BigDecimal,
}

impl Probe for Wal {
    fn before<'a>(
        &'a mut self,
        sessions: &'a mut Sessions<'_>,
    ) -> LocalBoxFuture<'a, Result<(), Unreadable>> {
        async move {
            self.counted = counted(sessions).await?;
            self.start = insert_position(sessions.control).await?;
            Ok(())
        }
        .boxed_local()
    }

    fn after<'a>(
        &'a mut self,
        sessions: &'a mut Sessions<'_>,
        _: &'a Window,
    ) -> LocalBoxFuture<'a, Result<Reading, Unreadable>> {
        async move {
            let end = insert_position(sessions.control).await?;
            let counted = match (self.counted.take(), counted(sessions).await?) {
                (Some(before), Some(after)) => Some(Counted {
                    records: after.records - before.records,
                    bytes: after.bytes - before.bytes,
                    images: after.images - before.images,
                }),
                _ => None,
            };
            Ok(read(sessions.control, &self.start, &end, counted).await?)
        }
        .boxed_local()
    }
}

async fn insert_position(control: &mut Session) -> Result<String, SessionError> {
    scalar(control, "SELECT pg_catalog.pg_current_wal_insert_lsn()").await
}

async fn scalar(control: &mut Session, sql: &str) -> Result<String, SessionError> {
    let result = control.execute(sql).await?;
    Ok(result
        .rows
        .into_iter()
        .flatten()
        .flatten()
        .next()
        .unwrap_or_default())
}

/// Reads `pg_stat_wal` after the measuring session has handed in its part. In an open or failed
/// transaction it cannot; the difference then falls short of the window and is not believed.
async fn counted(sessions: &mut Sessions<'_>) -> Result<Option<Counted>, SessionError> {
    flush_statistics(sessions.subject).await?;
    let row = sessions
        .control
        .execute("SELECT wal_records, wal_bytes, wal_fpi FROM pg_catalog.pg_stat_wal")
        .await?
        .rows
        .into_iter()
        .next()
        .unwrap_or_default();
    let numbers: Option<Vec<BigDecimal>> = row
        .iter()
        .map(|cell| cell.as_deref()?.parse().ok())
        .collect();
    Ok(numbers
        .and_then(|numbers| <[BigDecimal; 3]>::try_from(numbers).ok())
        .map(|[records, bytes, images]| Counted {
            records,
            bytes,
            images,
        }))
}

async fn read(
    control: &mut Session,
    start: &str,
    end: &str,
    counted: Option<Counted>,
) -> Result<Reading, SessionError> {
    let bytes = number(
        control,
        &format!("SELECT '{end}'::pg_lsn - '{start}'::pg_lsn"),
    )
    .await?;
    if bytes == 0 {
        return Ok(reading(&bytes, Vec::new(), &BigDecimal::from(0)));
    }
    control
        .execute("SELECT pg_catalog.pg_logical_emit_message(true, 'remeasure', '')")
        .await?;
    let types = control
        .execute(&format!(
            "SELECT \"resource_manager/record_type\", count, record_size, fpi_size \
             FROM pg_get_wal_stats('{start}', '{end}', true) WHERE count > 0 ORDER BY 1"
        ))
        .await?
        .rows;
    let records = column_sum(&types, 1);
    let record_bytes = column_sum(&types, 2) + column_sum(&types, 3);
    let counted =
        counted.filter(|counted| counted.records == records && counted.bytes == record_bytes);
    let images = if column_sum(&types, 3) == 0 {
        BigDecimal::from(0)
    } else if let Some(counted) = counted {
        counted.images
    } else if records <= SMALL_WINDOW {
        number(
            control,
            &images_between(&format!("'{start}'::pg_lsn"), &format!("'{end}'::pg_lsn")),
        )
        .await?
    } else {
        number(control, &images_in_parts(start, end)).await?
    };
    Ok(reading(&bytes, types, &images))
}

async fn number(control: &mut Session, sql: &str) -> Result<BigDecimal, SessionError> {
    Ok(scalar(control, sql).await?.parse().unwrap_or_default())
}

fn images_between(start: &str, end: &str) -> String {
    format!(
        "SELECT count(*) FROM pg_get_wal_block_info({start}, {end}, false) \
         WHERE block_fpi_length > 0"
    )
}

/// Cuts the window at record boundaries (`pg_get_wal_record_info` finds the first record at or
/// after a position) and looks for images only in the parts that the cheap statistics say hold
/// some.
fn images_in_parts(start: &str, end: &str) -> String {
    format!(
        "WITH positions AS MATERIALIZED (\
           SELECT '{start}'::pg_lsn AS cut UNION \
           SELECT (pg_get_wal_record_info('{start}'::pg_lsn + part * \
             trunc(('{end}'::pg_lsn - '{start}'::pg_lsn) / {PARTS}))).start_lsn \
           FROM generate_series(1, {PARTS} - 1) AS part), \
         parts AS MATERIALIZED (\
           SELECT cut AS part_start, lead(cut, 1, '{end}'::pg_lsn) OVER (ORDER BY cut) AS part_end \
           FROM positions WHERE cut < '{end}'::pg_lsn), \
         holding AS MATERIALIZED (\
           SELECT part_start, part_end FROM parts WHERE \
             (SELECT sum(fpi_size) FROM pg_get_wal_stats(part_start, part_end)) > 0) \
         SELECT coalesce(sum(({})), 0) FROM holding",
        images_between("part_start", "part_end")
    )
}

fn column_sum(rows: &[Vec<Option<String>>], column: usize) -> BigDecimal {
    rows.iter()
        .filter_map(|row| row.get(column)?.as_deref()?.parse::<BigDecimal>().ok())
        .sum()
}

fn reading(bytes: &BigDecimal, types: Vec<Vec<Option<String>>>, images: &BigDecimal) -> Reading {
    let image_bytes = column_sum(&types, 3);
    let numeric =
        |number: &BigDecimal| Value::from_postgres(Some(&number.to_plain_string()), "numeric");
    let mut reading = INSTRUMENT.reading(vec![
        numeric(bytes),
        numeric(&(bytes - &image_bytes)),
        numeric(&column_sum(&types, 1)),
        numeric(images),
        numeric(&image_bytes),
    ]);
    let columns = vec![
        Column::new("record_type", "text"),
        Column::new("count", "numeric"),
        Column::new("record_bytes", "numeric"),
        Column::new("fpi_bytes", "numeric"),
    ];
    let rows = types
        .iter()
        .map(|row| {
            columns
                .iter()
                .zip(row)
                .map(|(column, cell)| Value::from_postgres(cell.as_deref(), &column.type_name))
                .collect()
        })
        .collect();
    reading
        .results
        .insert("wal".to_owned(), Table { columns, rows });
    reading
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_bytes_are_subtracted_and_types_kept() {
        let row = |cells: [&str; 4]| cells.map(|cell| Some(cell.to_owned())).to_vec();
        let reading = reading(
            &BigDecimal::from(10_000),
            vec![
                row(["Heap/INSERT", "100", "6000", "0"]),
                row(["Btree/INSERT_LEAF", "99", "3000", "800"]),
            ],
            &BigDecimal::from(2),
        );
        let texts: Vec<String> = reading
            .columns
            .iter()
            .map(|(column, value)| format!("{}={value}", column.name))
            .collect();
        assert_eq!(
            texts,
            [
                "wal_bytes=10000",
                "wal_bytes_without_fpi=9200",
                "wal_records=199",
                "wal_fpi=2",
                "wal_fpi_bytes=800"
            ]
        );
        assert_eq!(reading.results["wal"].rows.len(), 2);
    }
}
