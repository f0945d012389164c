//! `statements`: what `pg_stat_statements` counted of the statements in the window.

use super::{
    ColumnDescription, Instrument, Probe, Reading, Sessions, Unreadable, Window, difference,
};
use crate::engine::session::{Role, Session, SessionError, quote_literal};
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
    name: "statements",
    description: "what pg_stat_statements counted of the article's statements in the experiment's \
                  database, parallel workers with them; each in `measured.<experiment>_queries`",
    minimum_version: 14,
    columns: &[
        counter("statement_calls", "calls", "executions"),
        ColumnDescription {
            name: "statement_exec_ms",
            type_name: "double precision",
            unit: "ms",
            description: "total_exec_time: in the executor, without parsing and planning",
        },
        counter("statement_rows", "rows", "rows returned or written"),
        counter("statement_shared_hit", "pages", "shared_blks_hit"),
        counter("statement_shared_read", "pages", "shared_blks_read"),
        counter("statement_shared_dirtied", "pages", "shared_blks_dirtied"),
        counter("statement_shared_written", "pages", "shared_blks_written"),
        counter("statement_temp_read", "pages", "temp_blks_read"),
        counter("statement_temp_written", "pages", "temp_blks_written"),
        counter("statement_wal_records", "records", "wal_records"),
        counter("statement_wal_fpi", "images", "wal_fpi"),
        counter(
            "statement_wal_bytes",
            "B",
            "wal_bytes: of the records themselves, without page headers and alignment; not of \
             COMMIT",
        ),
    ],
    tables: &[(
        "queries",
        "each statement, constants taken out: query, toplevel, calls, exec_ms, rows, shared_hit, \
         shared_read, shared_dirtied, shared_written, temp_read, temp_written, wal_records, \
         wal_fpi, wal_bytes",
    )],
    options: &[],
    disturbed_by: "other sessions of the article in the same database; statements within functions \
                   count where pg_stat_statements.track is `all`, and then stand in the table \
                   alone; more than pg_stat_statements.max kinds of statements put out others",
    probe: |_| Box::new(Statements::default()),
};

/// In the order of the instrument's columns; names are the same from 14 to 18.
const COUNTERS: [&str; 12] = [
    "calls",
    "total_exec_time",
    "rows",
    "shared_blks_hit",
    "shared_blks_read",
    "shared_blks_dirtied",
    "shared_blks_written",
    "temp_blks_read",
    "temp_blks_written",
    "wal_records",
    "wal_fpi",
    "wal_bytes",
];

/// Query id, whether it is top level, text → counters.
type Counted = IndexMap<[String; 3], Vec<Value>>;

#[derive(Default)]
struct Statements {
    before: Counted,
}

impl Probe for Statements {
    fn before<'a>(
        &'a mut self,
        sessions: &'a mut Sessions<'_>,
    ) -> LocalBoxFuture<'a, Result<(), Unreadable>> {
        async move {
            prepare(sessions.control).await?;
            self.before = counted(sessions).await?;
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
            let after = counted(sessions).await?;
            Ok(reading(&changes(after, &self.before)))
        }
        .boxed_local()
    }
}

/// The library has to be loaded when the server starts; the view to it is made in the tool's own
/// database.
async fn prepare(control: &mut Session) -> Result<(), Unreadable> {
    let loaded = control.execute("SHOW shared_preload_libraries").await?;
    let loaded = loaded.rows.into_iter().flatten().flatten().next();
    let mut names = loaded.as_deref().unwrap_or_default().split(',');
    if !names.any(|name| name.trim().trim_matches('"') == "pg_stat_statements") {
        return Err(Unreadable::Refused {
            message: "`pg_stat_statements` is not loaded on this server".to_owned(),
            hint: "add `shared_preload_libraries: pg_stat_statements` to `settings`, of the \
                   experiment or under `postgres:`",
        });
    }
    control
        .execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        .await?;
    Ok(())
}

async fn counted(sessions: &mut Sessions<'_>) -> Result<Counted, SessionError> {
    let sql = format!(
        "SELECT queryid, toplevel, query, {} FROM pg_stat_statements \
         WHERE dbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = {}) \
         AND userid = {}::pg_catalog.regrole \
         AND query NOT LIKE '%pg_stat_force_next_flush%' ORDER BY query, queryid, toplevel",
        COUNTERS.join(", "),
        quote_literal(sessions.database),
        quote_literal(Role::Author.name()),
    );
    let rows = sessions.control.execute(&sql).await?.rows;
    Ok(rows
        .into_iter()
        .map(|row| {
            let mut cells = row.into_iter();
            let mut key = || cells.next().flatten().unwrap_or_default();
            let key = [key(), key(), key()];
            let counters = cells
                .map(|cell| Value::from_postgres(cell.as_deref(), "numeric"))
                .collect();
            (key, counters)
        })
        .collect())
}

/// Of the statements that were called since.
fn changes(after: Counted, before: &Counted) -> Counted {
    let zero = || Value::Number(Number::Finite(BigDecimal::from(0)));
    let nothing = vec![zero(); COUNTERS.len()];
    let calls = |counters: &[Value]| counters[0].number().map(Number::to_f64).unwrap_or_default();
    after
        .into_iter()
        .map(|(key, after)| {
            // Fewer calls than before: it was put out meanwhile, and came again.
            let known = before
                .get(&key)
                .filter(|known| calls(known) <= calls(&after));
            let more = after.iter().zip(known.unwrap_or(&nothing));
            let more = more.map(|(after, before)| nanoseconds(difference(after, before)));
            (key, more.collect::<Vec<Value>>())
        })
        .filter(|(_, more)| more[0] != zero())
        .collect()
}

/// A time is a double of milliseconds; the difference of two has more digits than the clock.
fn nanoseconds(value: Value) -> Value {
    match value {
        Value::Number(Number::Finite(number)) => {
            Value::Number(Number::Finite(number.round(6).normalized()))
        }
        other => other,
    }
}

fn reading(changes: &Counted) -> Reading {
    let sums = (0..COUNTERS.len()).map(|index| {
        let top = changes.iter().filter(|(key, _)| key[1] == "t");
        let sum: BigDecimal = top
            .filter_map(|(_, more)| more[index].number()?.finite().cloned())
            .sum();
        Value::Number(Number::Finite(sum))
    });
    let mut reading = INSTRUMENT.reading(sums.collect());
    let mut columns = vec![
        Column::new("query", "text"),
        Column::new("toplevel", "boolean"),
    ];
    columns.extend(INSTRUMENT.columns.iter().map(|column| {
        let name = column.name.trim_start_matches("statement_");
        Column::new(name, column.type_name)
    }));
    let rows = (changes.iter())
        .map(|([_, toplevel, query], more)| {
            let key = [Value::Text(query.clone()), Value::Boolean(toplevel == "t")];
            key.into_iter().chain(more.iter().cloned()).collect()
        })
        .collect();
    reading
        .results
        .insert("queries".to_owned(), Table { columns, rows });
    reading
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_the_window_are_told_and_summed_at_the_top_level() {
        let row = |id: &str, toplevel: &str, number: u32| {
            let number = Value::from_postgres(Some(&number.to_string()), "numeric");
            let key = [id, toplevel, "SELECT $1"].map(str::to_owned);
            (key, vec![number; COUNTERS.len()])
        };
        let before = Counted::from([row("1", "t", 4), row("2", "t", 9), row("3", "t", 5)]);
        let after = Counted::from([
            row("1", "t", 6),
            row("1", "f", 100),
            row("2", "t", 9),
            // Put out and counted anew.
            row("3", "t", 1),
        ]);
        let reading = reading(&changes(after, &before));
        let texts: Vec<String> = (reading.columns.iter())
            .map(|(_, value)| value.to_string())
            .collect();
        assert_eq!(texts, ["3"; 12]);
        let table = &reading.results["queries"];
        assert_eq!(table.rows.len(), 3);
        assert_eq!(table.columns[3].name, "exec_ms");
        assert_eq!(table.columns[3].type_name, "double precision");
    }
}
