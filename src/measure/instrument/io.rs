//! `io`: what sessions and background processes asked of files and of shared buffers.

use super::counters::{flush_statistics, hand_in};
use super::{
    ColumnDescription, Instrument, Probe, Reading, Sessions, Unreadable, Window, difference,
};
use crate::engine::session::SessionError;
use crate::quantity::{Column, Number, Table, Value};
use bigdecimal::BigDecimal;
use futures_util::future::{FutureExt, LocalBoxFuture};
use indexmap::IndexMap;

const fn counter(
    name: &'static str,
    unit: &'static str,
    description: &'static str,
) -> ColumnDescription {
    ColumnDescription {
        name,
        type_name: "numeric",
        unit,
        description,
    }
}

pub const INSTRUMENT: Instrument = Instrument {
    name: "io",
    description: "reads, writes and extensions of tables and indexes, temporary ones with them, by \
                  sessions and their parallel workers (pg_stat_io, handed in before it is read); \
                  of every kind of process, object and context in `measured.<experiment>_io`",
    minimum_version: 16,
    columns: &[
        counter("io_hits", "pages", "hits: found in shared or local buffers"),
        counter(
            "io_reads",
            "reads",
            "reads asked of the operating system; one is a page before PostgreSQL 18, and may be \
             several from then on",
        ),
        counter(
            "io_read_bytes",
            "B",
            "read_bytes; before 18 reads × op_bytes",
        ),
        counter(
            "io_writes",
            "writes",
            "writes of pages that had to make room",
        ),
        counter(
            "io_write_bytes",
            "B",
            "write_bytes; before 18 writes × op_bytes",
        ),
        counter(
            "io_extends",
            "extensions",
            "extensions of files; one is a page before PostgreSQL 18",
        ),
        counter(
            "io_extend_bytes",
            "B",
            "extend_bytes; before 18 extends × op_bytes",
        ),
        counter(
            "io_evictions",
            "pages",
            "evictions: pages put out of a buffer for another",
        ),
    ],
    tables: &[(
        "io",
        "each kind that did anything: backend_type, object, context, hits, reads, read_bytes, \
         writes, write_bytes, extends, extend_bytes, evictions, reuses, fsyncs (object `wal` from \
         18 on)",
    )],
    options: &[],
    disturbed_by: "it is of the whole cluster: other sessions in any database; with a transaction \
                   that `measure` leaves open all is NULL: it has not handed in its counts; the \
                   checkpointer and the background writer hand in theirs when they please",
    probe: |_| Box::new(Io::default()),
};

const COUNTERS: [&str; 10] = [
    "hits",
    "reads",
    "read_bytes",
    "writes",
    "write_bytes",
    "extends",
    "extend_bytes",
    "evictions",
    "reuses",
    "fsyncs",
];
/// Backend type, object, context.
const KEYS: [&str; 3] = ["backend_type", "object", "context"];

/// Counters by key.
type Counted = IndexMap<[String; 3], Vec<Value>>;

#[derive(Default)]
struct Io {
    before: Counted,
}

impl Probe for Io {
    fn before<'a>(
        &'a mut self,
        sessions: &'a mut Sessions<'_>,
    ) -> LocalBoxFuture<'a, Result<(), Unreadable>> {
        async move {
            // Asked once, so that looking the view up is over; then with all that was read for it.
            counted(sessions).await?;
            flush_statistics(sessions.control).await?;
            flush_statistics(sessions.control).await?;
            hand_in(sessions).await?;
            self.before = counted(sessions).await?;
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
                return Ok(INSTRUMENT.unknown());
            }
            flush_statistics(sessions.subject).await?;
            let after = counted(sessions).await?;
            Ok(reading(&changes(after, &self.before)))
        }
        .boxed_local()
    }
}

async fn counted(sessions: &mut Sessions<'_>) -> Result<Counted, SessionError> {
    // Since 18 bytes are counted, for a read may be of several pages.
    let bytes = |name: &str| match sessions.major {
        ..18 => format!("{name}s * op_bytes"),
        _ => format!("{name}_bytes"),
    };
    let sql = format!(
        "SELECT backend_type, object, context, hits, reads, {}, writes, {}, extends, {}, \
         evictions, reuses, fsyncs FROM pg_catalog.pg_stat_io ORDER BY 1, 2, 3",
        bytes("read"),
        bytes("write"),
        bytes("extend"),
    );
    let rows = sessions.control.execute(&sql).await?.rows;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            let mut cells = row.into_iter();
            let mut key = || cells.next()?;
            let key = [key()?, key()?, key()?];
            let counters = cells
                .map(|cell| Value::from_postgres(cell.as_deref(), "numeric"))
                .collect();
            Some((key, counters))
        })
        .collect())
}

/// What is more than before, of the kinds that did anything.
fn changes(after: Counted, before: &Counted) -> Counted {
    let zero = || Value::Number(Number::Finite(BigDecimal::from(0)));
    let nothing = vec![zero(); COUNTERS.len()];
    after
        .into_iter()
        .map(|(key, after)| {
            let before = before.get(&key).unwrap_or(&nothing).iter();
            let more = after.iter().zip(before);
            let more = more.map(|(after, before)| difference(after, before));
            (key, more.collect::<Vec<Value>>())
        })
        .filter(|(_, more)| {
            more.iter()
                .any(|more| *more != Value::Null && *more != zero())
        })
        .collect()
}

fn reading(changes: &Counted) -> Reading {
    let of_sessions = |key: &[String; 3]| {
        ["client backend", "background worker"].contains(&key[0].as_str())
            && ["relation", "temp relation"].contains(&key[1].as_str())
    };
    let sums = COUNTERS[..INSTRUMENT.columns.len()]
        .iter()
        .enumerate()
        .map(|(index, _)| {
            let own = changes.iter().filter(|(key, _)| of_sessions(key));
            let sum: BigDecimal = own
                .filter_map(|(_, more)| more[index].number()?.finite().cloned())
                .sum();
            Value::Number(Number::Finite(sum))
        });
    let mut reading = INSTRUMENT.reading(sums.collect());
    let texts = KEYS.map(|name| Column::new(name, "text"));
    let columns = (texts.into_iter())
        .chain(COUNTERS.map(|name| Column::new(name, "numeric")))
        .collect();
    let rows = (changes.iter())
        .map(|(key, more)| {
            let key = key.iter().cloned().map(Value::Text);
            key.chain(more.iter().cloned()).collect()
        })
        .collect();
    reading
        .results
        .insert("io".to_owned(), Table { columns, rows });
    reading
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_summed_and_the_others_stand_in_the_table() {
        let row = |kind: [&str; 3], numbers: [Option<u32>; 10]| {
            let numbers = numbers.map(|number| {
                let text = number.map(|number| number.to_string());
                Value::from_postgres(text.as_deref(), "numeric")
            });
            (kind.map(str::to_owned), numbers.to_vec())
        };
        let all = |number| [Some(number); 10];
        let client = ["client backend", "relation", "normal"];
        let worker = ["background worker", "relation", "normal"];
        let idle = ["client backend", "temp relation", "normal"];
        let wal = ["client backend", "wal", "normal"];
        let mut some = all(5);
        some[9] = None;
        let before = Counted::from([row(client, some), row(idle, all(3)), row(wal, all(0))]);
        let mut more = all(7);
        more[9] = None;
        let after = Counted::from([
            row(client, more),
            row(worker, all(10)),
            row(idle, all(3)),
            row(wal, all(1)),
        ]);
        let reading = reading(&changes(after, &before));
        let texts: Vec<String> = (reading.columns.iter())
            .map(|(_, value)| value.to_string())
            .collect();
        assert_eq!(texts, ["12"; 8]);
        let table = &reading.results["io"];
        // What did nothing is left out, what is not counted stays NULL.
        assert_eq!(table.rows.len(), 3);
        assert_eq!(table.rows[0].last(), Some(&Value::Null));
    }
}
