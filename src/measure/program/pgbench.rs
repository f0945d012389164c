//! What pgbench prints and logs, in the numbers that it prints: its summary becomes columns, `-r` and
//! `-P` results of their own, the log of every transaction the percentiles.

use crate::diagnostic::Diagnostic;
use crate::measure::instrument::{ColumnDescription, StatementTime};
use crate::measure::script::Ran;
use crate::parse::program_arguments::{Purpose, has, pgbench_problems};
use crate::quantity::{Column, Table, Value};
use crate::source::{Span, Spanned};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::time::Duration;

/// The prefix of its log's files.
pub const LOG: &str = ".remeasure-transactions";

const fn column(
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

/// Columns that join the experiment's.
pub const COLUMNS: &[ColumnDescription] = &[
    column(
        "tps",
        "1/s",
        "transactions per second, without the time to connect first; with `-C` connecting is part of it",
    ),
    column(
        "latency_ms",
        "ms",
        "average over transactions; with `-R` from when each was due",
    ),
    column("latency_stddev_ms", "ms", "standard deviation of the same"),
    column(
        "latency_p50_ms",
        "ms",
        "from the log of every transaction: the least latency that half of them do not exceed",
    ),
    column("latency_p90_ms", "ms", "likewise 90 %"),
    column("latency_p95_ms", "ms", "likewise 95 %"),
    column("latency_p99_ms", "ms", "likewise 99 %"),
    column("latency_p999_ms", "ms", "likewise 99.9 %"),
    column("latency_max_ms", "ms", "the greatest"),
    column("transactions", "1", "done"),
    column(
        "failed",
        "1",
        "given up for serialization failures or deadlocks",
    ),
    column("retried", "1", "tried again, with `--max-tries`; else NULL"),
    column(
        "skipped",
        "1",
        "not begun, as they were due too long ago: with `-R` and `-L`; else NULL",
    ),
    column(
        "late",
        "1",
        "done above the latency limit, with `-L`; else NULL",
    ),
    column(
        "schedule_lag_ms",
        "ms",
        "average of how late transactions began, with `-R`; else NULL",
    ),
    column("schedule_lag_max_ms", "ms", "the greatest of the same"),
    column(
        "initial_connection_ms",
        "ms",
        "to connect all clients at the beginning; with `-C` NULL",
    ),
];

/// Columns of `measured.<experiment>_statements`, with `-r`.
pub const STATEMENTS: &[ColumnDescription] = &[
    column(
        "script",
        "1",
        "1, and more where `-b` is given more than once",
    ),
    column(
        "statement",
        "1",
        "its number in the script, pgbench's own commands counted",
    ),
    column("latency_ms", "ms", "average of one execution"),
    column("failures", "1", "serialization failures and deadlocks"),
    ColumnDescription {
        name: "sql",
        type_name: "text",
        unit: "text",
        description: "its first line",
    },
];

/// Columns of `measured.<experiment>_progress`, with `-P`.
pub const PROGRESS: &[ColumnDescription] = &[
    column("seconds", "s", "since the beginning"),
    column("tps", "1/s", "since the line before, as all of these"),
    column("latency_ms", "ms", "average"),
    column("latency_stddev_ms", "ms", "standard deviation"),
    column("failed", "1", "transactions"),
    column("schedule_lag_ms", "ms", "average, with `-R`; else NULL"),
    column(
        "skipped",
        "1",
        "transactions, with `-R` and `-L`; else NULL",
    ),
];

pub fn only_initialises(given: &[Spanned<String>]) -> bool {
    has(given, "--initialize")
}

/// What pgbench is started with, the article's arguments among it; or what is wrong with those, now
/// that their values are known.
pub fn arguments(
    given: &[Spanned<String>],
    has_body: bool,
    seed: &str,
) -> (Vec<String>, Vec<(Span, Diagnostic)>) {
    let purpose = match (only_initialises(given), has_body) {
        (true, _) => Purpose::Initialise,
        (false, true) => Purpose::Script,
        (false, false) => Purpose::Builtin,
    };
    let problems = pgbench_problems(given, purpose);
    let mut arguments: Vec<String> = given.iter().map(|word| word.value.clone()).collect();
    if purpose == Purpose::Initialise {
        return (arguments, problems);
    }
    arguments.extend(["--log".to_owned(), format!("--log-prefix={LOG}")]);
    if !has(given, "--progress") {
        // It tells average and deviation of every transaction only where it is to tell of progress.
        arguments.push("--progress=86400".to_owned());
    }
    if !has(given, "--random-seed") {
        arguments.push(format!("--random-seed={seed}"));
    }
    // An article's own script need not have the tables that pgbench would vacuum.
    if has_body && !has(given, "--no-vacuum") && !has(given, "--vacuum-all") {
        arguments.push("--no-vacuum".to_owned());
    }
    (arguments, problems)
}

/// Where its numbers are.
pub struct Printed<'a> {
    pub stdout: File,
    pub stderr: &'a str,
    pub log: Vec<File>,
}

pub fn read(printed: Printed<'_>) -> Result<Ran, String> {
    let mut text = String::new();
    let unread = |error: io::Error| error.to_string();
    { printed.stdout }
        .read_to_string(&mut text)
        .map_err(unread)?;
    let summary = Summary::read(&text)?;
    let latencies = Latencies::read(printed.log).map_err(unread)?;
    let mut ran = Ran {
        columns: summary.columns(&latencies),
        ..Ran::default()
    };
    if let Some(elapsed) = summary.elapsed() {
        ran.statements.push(StatementTime {
            elapsed,
            ..StatementTime::default()
        });
    }
    let statements = table(STATEMENTS, statements(&text));
    ran.results.insert("statements".to_owned(), statements);
    let progress = table(PROGRESS, progress(printed.stderr));
    ran.results.insert("progress".to_owned(), progress);
    Ok(ran)
}

fn table(columns: &[ColumnDescription], rows: Vec<Vec<Option<String>>>) -> Table {
    let typed = |row: Vec<Option<String>>| {
        row.iter()
            .zip(columns)
            .map(|(cell, column)| Value::from_postgres(cell.as_deref(), column.type_name))
            .collect()
    };
    Table {
        columns: columns
            .iter()
            .map(|column| Column::new(column.name, column.type_name))
            .collect(),
        rows: rows.into_iter().map(typed).collect(),
    }
}

/// The numbers below `tps`, as they are printed.
#[derive(Debug, Default)]
struct Summary<'t> {
    tps: Option<&'t str>,
    latency: Option<&'t str>,
    deviation: Option<&'t str>,
    transactions: Option<&'t str>,
    failed: Option<&'t str>,
    retried: Option<&'t str>,
    skipped: Option<&'t str>,
    late: Option<&'t str>,
    lag: Option<&'t str>,
    lag_max: Option<&'t str>,
    connection: Option<&'t str>,
}

impl<'t> Summary<'t> {
    fn read(text: &'t str) -> Result<Self, String> {
        let mut summary = Self::default();
        for line in text.lines() {
            summary.line(line);
        }
        match (summary.tps, summary.transactions) {
            (Some(_), Some(_)) => Ok(summary),
            _ => Err(format!("there is no `tps` in: {}", text.trim())),
        }
    }

    fn line(&mut self, line: &'t str) {
        let after = |prefix: &str| line.strip_prefix(prefix).and_then(number);
        let fields: [(&str, &mut Option<&'t str>); 10] = [
            ("tps = ", &mut self.tps),
            ("latency average = ", &mut self.latency),
            ("latency stddev = ", &mut self.deviation),
            (
                "number of transactions actually processed: ",
                &mut self.transactions,
            ),
            ("number of failed transactions: ", &mut self.failed),
            ("number of transactions retried: ", &mut self.retried),
            ("number of transactions skipped: ", &mut self.skipped),
            ("number of transactions above the ", &mut self.late),
            ("rate limit schedule lag: avg ", &mut self.lag),
            ("initial connection time = ", &mut self.connection),
        ];
        for (prefix, field) in fields {
            if let Some(value) = after(prefix) {
                *field = Some(value);
            }
        }
        // `number of transactions above the 5.0 ms latency limit: 1/177 (0.565%)`
        if line.starts_with("number of transactions above the ") {
            self.late = line
                .split_once("limit: ")
                .and_then(|(_, rest)| number(rest));
        }
        if line.starts_with("rate limit schedule lag: ") {
            self.lag_max = line.split_once("(max ").and_then(|(_, rest)| number(rest));
        }
    }

    /// How long it measured.
    fn elapsed(&self) -> Option<Duration> {
        let tps: f64 = self.tps?.parse().ok()?;
        let transactions: f64 = self.transactions?.parse().ok()?;
        Duration::try_from_secs_f64(transactions / tps).ok()
    }

    fn columns(&self, latencies: &Latencies) -> Vec<(Column, Value)> {
        let percentile = |thousandths| latencies.percentile(thousandths).map(milliseconds);
        let of = |field: Option<&str>| field.map(str::to_owned);
        let values = [
            of(self.tps),
            of(self.latency),
            of(self.deviation),
            percentile(500),
            percentile(900),
            percentile(950),
            percentile(990),
            percentile(999),
            percentile(1000),
            of(self.transactions),
            of(self.failed),
            of(self.retried),
            of(self.skipped),
            of(self.late),
            of(self.lag),
            of(self.lag_max),
            of(self.connection),
        ];
        COLUMNS
            .iter()
            .zip(values)
            .map(|(column, value)| {
                let value = Value::from_postgres(value.as_deref(), column.type_name);
                (Column::new(column.name, column.type_name), value)
            })
            .collect()
    }
}

/// The number that a text begins with.
fn number(text: &str) -> Option<&str> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    (end > 0).then(|| &text[..end])
}

/// `1234` as `1.234`.
fn milliseconds(microseconds: u64) -> String {
    format!("{}.{:03}", microseconds / 1000, microseconds % 1000)
}

/// How often each latency was logged, in microseconds: a log may have millions of lines, and far
/// fewer latencies.
#[derive(Debug, Default)]
struct Latencies {
    counts: BTreeMap<u64, u64>,
    total: u64,
}

impl Latencies {
    fn read(logs: Vec<File>) -> io::Result<Self> {
        let mut latencies = Self::default();
        for log in logs {
            let mut reader = BufReader::with_capacity(1 << 18, log);
            let mut line = String::new();
            while reader.read_line(&mut line)? > 0 {
                // `client transaction time script …`; of one that was not done `time` is a word.
                let time = line.split(' ').nth(2).and_then(|time| time.parse().ok());
                if let Some(time) = time {
                    *latencies.counts.entry(time).or_default() += 1;
                    latencies.total += 1;
                }
                line.clear();
            }
        }
        Ok(latencies)
    }

    /// The least latency that so many thousandths of all do not exceed (the nearest rank).
    fn percentile(&self, thousandths: u64) -> Option<u64> {
        let rank = (self.total * thousandths).div_ceil(1000).max(1);
        let mut seen = 0;
        self.counts.iter().find_map(|(&latency, &count)| {
            seen += count;
            (seen >= rank).then_some(latency)
        })
    }
}

/// What `-r` lists, script after script.
fn statements(stdout: &str) -> Vec<Vec<Option<String>>> {
    let mut rows = Vec::new();
    let (mut script, mut statement, mut failures) = (0, 0, false);
    let mut listing = false;
    for line in stdout.lines() {
        if line.contains("statement latencies in milliseconds") {
            (listing, script, statement) = (true, script + 1, 0);
            failures = line.contains("failures");
            // With retries there is one more column.
            continue;
        }
        if !listing {
            continue;
        }
        let Some((latency, rest)) = leading_number(line) else {
            listing = false;
            continue;
        };
        let (failed, mut sql) = match leading_number(rest).filter(|_| failures) {
            Some((failed, rest)) => (Some(failed), rest),
            None => (None, rest),
        };
        if stdout.contains("failures and retries:")
            && let Some((_, rest)) = leading_number(sql)
        {
            sql = rest;
        }
        statement += 1;
        rows.push(vec![
            Some(script.to_string()),
            Some(statement.to_string()),
            Some(latency.to_owned()),
            failed.map(str::to_owned),
            Some(sql.trim().to_owned()),
        ]);
    }
    rows
}

/// A number between spaces, and what stands behind it.
fn leading_number(line: &str) -> Option<(&str, &str)> {
    let text = line.strip_prefix(' ')?.trim_start();
    let number = number(text)?;
    text[number.len()..]
        .starts_with(' ')
        .then_some((number, &text[number.len()..]))
}

/// `progress: 1.0 s, 85.0 tps, lat 0.525 ms stddev 0.275, 0 failed, lag 0.131 ms, 0 skipped`
fn progress(stderr: &str) -> Vec<Vec<Option<String>>> {
    let lines = stderr.lines().filter_map(|line| {
        let parts: Vec<&str> = line.strip_prefix("progress: ")?.split(", ").collect();
        let ending = |unit: &str| {
            let part = parts.iter().find(|part| part.ends_with(unit))?;
            number(part.strip_suffix(unit)?).map(str::to_owned)
        };
        let behind = |word: &str| {
            let part = parts.iter().find_map(|part| part.split_once(word))?;
            number(part.1).map(str::to_owned)
        };
        Some(vec![
            Some(number(parts.first()?)?.to_owned()),
            ending(" tps"),
            behind("lat "),
            behind("stddev "),
            ending(" failed"),
            behind("lag "),
            ending(" skipped"),
        ])
    });
    lines.collect()
}

/// Why pgbench stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    pub message: String,
    pub place: Option<Place>,
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Of the script, from zero.
    Command(usize),
    /// From one.
    Line(usize),
}

/// The first thing that pgbench complained about.
pub fn problem(stderr: &str) -> Option<Problem> {
    let lines: Vec<&str> = stderr.lines().collect();
    let index = lines.iter().position(|line| said(line).is_some())?;
    let mut problem = Problem {
        message: said(lines[index])?.to_owned(),
        ..Problem::default()
    };
    if let Some((_, rest)) = problem.message.split_once(" aborted in command ")
        && let Some((command, error)) = rest.split_once(' ')
    {
        problem.place = command.parse().ok().map(Place::Command);
        if let Some((_, error)) = error.split_once(": ") {
            problem.message = error.replacen("ERROR:  ", "Postgres: ", 1);
        }
    } else if let Some((_, rest)) = problem.message.split_once(".sql:") {
        let line: String = rest.chars().take_while(char::is_ascii_digit).collect();
        problem.place = line.parse().ok().map(Place::Line);
    }
    problem.notes = lines[index + 1..]
        .iter()
        .take_while(|line| said(line).is_none() && !line.starts_with("progress: "))
        .map(|line| (*line).to_owned())
        .collect();
    Some(problem)
}

fn said(line: &str) -> Option<&str> {
    let said = line.strip_prefix("pgbench: ")?;
    ["error: ", "fatal: "]
        .iter()
        .find_map(|word| said.strip_prefix(word))
}

#[cfg(test)]
mod tests;
