//! `time`: how long the statements of `measure` took, by the client's and by the server's clock.

use super::{ColumnDescription, Instrument, Probe, Reading, Sessions, Unreadable, Window};
use crate::quantity::Value;
use futures_util::future::{FutureExt, LocalBoxFuture, ready};

pub const INSTRUMENT: Instrument = Instrument {
    name: "time",
    description: "elapsed time of the statements of `measure`, summed, without the gaps between \
                  them; each statement's own stands in `measured.<experiment>_statements`",
    minimum_version: 14,
    columns: &[
        ColumnDescription {
            name: "elapsed_ms",
            type_name: "double precision",
            unit: "ms",
            description: "by the client's monotonic clock, from sending to the end of the answer; on \
                          another machine server_ms, so that no network is in it",
        },
        ColumnDescription {
            name: "server_ms",
            type_name: "double precision",
            unit: "ms",
            description: "by the server's clock: state_change - query_start in pg_stat_activity; \
                          NULL beyond 100 statements on this machine",
        },
        ColumnDescription {
            name: "rows_per_s",
            type_name: "double precision",
            unit: "rows/s",
            description: "`rows` per second of elapsed_ms; NULL where no statement has a row count",
        },
    ],
    tables: &[],
    options: &[],
    disturbed_by: "other load on the machine, CPU frequency and steal, checkpoints and autovacuum \
                   in the window; compare ratios within one run rather than absolute times",
    probe: |_| Box::new(Time),
};

struct Time;

impl Probe for Time {
    fn before<'a>(
        &'a mut self,
        _: &'a mut Sessions<'_>,
    ) -> LocalBoxFuture<'a, Result<(), Unreadable>> {
        ready(Ok(())).boxed_local()
    }

    fn after<'a>(
        &'a mut self,
        _: &'a mut Sessions<'_>,
        window: &'a Window,
    ) -> LocalBoxFuture<'a, Result<Reading, Unreadable>> {
        ready(Ok(INSTRUMENT.reading(values(window)))).boxed_local()
    }
}

fn values(window: &Window) -> Vec<Value> {
    let elapsed_ms: f64 = window
        .statements
        .iter()
        .map(|statement| statement.elapsed)
        .sum::<std::time::Duration>()
        .as_nanos() as f64
        / 1e6;
    let server_ms: Option<f64> = window
        .statements
        .iter()
        .map(|statement| statement.server_ms)
        .sum();
    let rows_per_s = window
        .rows
        .filter(|_| elapsed_ms > 0.0)
        .map(|rows| rows as f64 * 1000.0 / elapsed_ms);
    vec![
        double(Some(elapsed_ms)),
        double(server_ms.filter(|_| !window.statements.is_empty())),
        double(rows_per_s),
    ]
}

/// The shortest decimal that reads back as the same double, as Postgres prints float8.
pub(super) fn double(value: Option<f64>) -> Value {
    let text = value.map(|value| value.to_string());
    Value::from_postgres(text.as_deref(), "double precision")
}

#[cfg(test)]
mod tests {
    use super::super::StatementTime;
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_add_up_and_a_rate_needs_rows() {
        let statement = |ms, server_ms| StatementTime {
            elapsed: Duration::from_millis(ms),
            server_ms,
            rows: None,
        };
        let window = Window {
            statements: vec![statement(100, Some(99.5)), statement(150, Some(149.0))],
            rows: Some(1000),
            ..Window::default()
        };
        let texts: Vec<String> = values(&window).iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["250", "248.5", "4000"]);
        let unknown = Window {
            statements: vec![statement(100, None)],
            ..Window::default()
        };
        assert_eq!(values(&unknown)[1..], [Value::Null, Value::Null]);
    }
}
