//! `cpu`: processor time of the measuring backend, as the kernel of the server's machine counts it.
//! The server itself reads it from /proc, so that a container's own process ids fit.

use super::{ColumnDescription, Instrument, Probe, Reading, Sessions, Unreadable, Window};
use crate::engine::session::SessionError;
use crate::quantity::{Number, Value};
use bigdecimal::BigDecimal;
use futures_util::future::{FutureExt, LocalBoxFuture};

pub const INSTRUMENT: Instrument = Instrument {
    name: "cpu",
    description: "processor time of the measuring backend (/proc/<pid>/schedstat and stat of the \
                  server's machine, read by the server)",
    minimum_version: 14,
    columns: &[
        ColumnDescription {
            name: "cpu_ms",
            type_name: "double precision",
            unit: "ms",
            description: "time on a processor, by the scheduler's clock; NULL where the kernel \
                          has no schedstat",
        },
        ColumnDescription {
            name: "cpu_user_ms",
            type_name: "double precision",
            unit: "ms",
            description: "of it in Postgres's own code; in ticks of 10 ms",
        },
        ColumnDescription {
            name: "cpu_system_ms",
            type_name: "double precision",
            unit: "ms",
            description: "of it in the kernel: reading, writing; in ticks of 10 ms",
        },
    ],
    tables: &[],
    options: &[],
    disturbed_by: "parallel workers, the background writer and the checkpointer are processes of \
                   their own and not counted; processor frequency and what else uses its caches; \
                   windows of a few ticks say nothing of user and system apart",
    probe: |_| Box::new(Cpu::default()),
};

#[derive(Default)]
struct Cpu {
    before: Times,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Times {
    nanoseconds: Option<u64>,
    /// User, system.
    ticks: Option<(u64, u64)>,
}

/// Linux tells user space of ticks of 10 ms, whatever it counts in itself (USER_HZ).
const MS_A_TICK: u64 = 10;

impl Probe for Cpu {
    fn before<'a>(
        &'a mut self,
        sessions: &'a mut Sessions<'_>,
    ) -> LocalBoxFuture<'a, Result<(), Unreadable>> {
        async move {
            self.before = read(sessions).await?;
            Ok(())
        }
        .boxed_local()
    }

    fn after<'a>(
        &'a mut self,
        sessions: &'a mut Sessions<'_>,
        _: &'a Window,
    ) -> LocalBoxFuture<'a, Result<Reading, Unreadable>> {
        async move { Ok(INSTRUMENT.reading(read(sessions).await?.since(&self.before))) }
            .boxed_local()
    }
}

async fn read(sessions: &mut Sessions<'_>) -> Result<Times, Unreadable> {
    const KEPT_FROM_US: &str = "42501";
    const UNDEFINED_FILE: &str = "58P01";
    let pid = sessions.subject.backend_pid();
    let sql = format!(
        "SELECT pg_catalog.pg_read_file('/proc/{pid}/stat'), \
         pg_catalog.pg_read_file('/proc/{pid}/schedstat', 0, 100, true)"
    );
    let result = match sessions.control.execute(&sql).await {
        Err(SessionError::Sql(error))
            if [KEPT_FROM_US, UNDEFINED_FILE].contains(&error.sqlstate.as_str()) =>
        {
            return Err(Unreadable::Refused {
                message: format!(
                    "the processor time of the measuring backend cannot be read: {}",
                    error.message
                ),
                hint: "`cpu` needs a server on Linux that the tool is superuser of; leave it out \
                       here",
            });
        }
        result => result?,
    };
    let mut cells = result.rows.into_iter().flatten();
    let stat = cells.next().flatten().unwrap_or_default();
    let schedule = cells.next().flatten().unwrap_or_default();
    Ok(Times::parse(&stat, &schedule))
}

impl Times {
    /// `pid (name) state ppid …`: user and system time are the 14th and 15th fields; the name may
    /// hold spaces and parentheses.
    fn parse(stat: &str, schedule: &str) -> Self {
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let mut ticks = fields.split_whitespace().skip(11).map(str::parse);
        let ticks = match (ticks.next(), ticks.next()) {
            (Some(Ok(user)), Some(Ok(system))) => Some((user, system)),
            _ => None,
        };
        let first = schedule.split_whitespace().next();
        Self {
            nanoseconds: first.and_then(|text| text.parse().ok()),
            ticks,
        }
    }

    fn since(&self, before: &Self) -> Vec<Value> {
        let ms = |number: Option<BigDecimal>| {
            number.map_or(Value::Null, |ms| Value::Number(Number::Finite(ms)))
        };
        let nanoseconds = (self.nanoseconds.zip(before.nanoseconds))
            .and_then(|(after, before)| after.checked_sub(before))
            .map(|more| BigDecimal::new(more.into(), 6).normalized());
        let ticks = |of: fn((u64, u64)) -> u64| {
            let both = self.ticks.map(of).zip(before.ticks.map(of));
            both.and_then(|(after, before)| after.checked_sub(before))
                .map(|more| BigDecimal::from(more * MS_A_TICK))
        };
        vec![
            ms(nanoseconds),
            ms(ticks(|(user, _)| user)),
            ms(ticks(|(_, system)| system)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_the_name_whatever_is_in_it() {
        let stat = "17 (a) b (c)) R 1 17 17 0 -1 4194368 505 0 0 0 250 31 0 0 20 0 1 0\n";
        let times = Times::parse(stat, "2808608123 0 3\n");
        let expected = Times {
            nanoseconds: Some(2_808_608_123),
            ticks: Some((250, 31)),
        };
        assert_eq!(times, expected);
        assert_eq!(Times::parse("", ""), Times::default());
        assert_eq!(Times::parse("17 (a) R 1", "x"), Times::default());
    }

    #[test]
    fn what_is_not_known_is_null_and_never_nothing() {
        let times = |nanoseconds, ticks| Times { nanoseconds, ticks };
        let texts = |after: Times, before: Times| -> Vec<String> {
            after
                .since(&before)
                .iter()
                .map(ToString::to_string)
                .collect()
        };
        let before = times(Some(1_000_000), Some((10, 2)));
        assert_eq!(
            texts(times(Some(3_500_000), Some((25, 2))), before.clone()),
            ["2.5", "150", "0"]
        );
        let null = Value::Null.to_string();
        assert_eq!(
            texts(times(None, None), before),
            [null.clone(), null.clone(), null]
        );
    }
}
