//! What makes a measurement less trustworthy than it looks: found around each window and over the
//! runs of each cell, kept in the record, shown beside the figures.

use super::instrument::Window;
use super::statistics::median;
use crate::article::Experiment;
use crate::engine::session::Session;
use crate::parse::sql::words;
use crate::quantity::Number;
use crate::record::{Doubt, Sample};
use bigdecimal::BigDecimal;
use std::collections::BTreeMap;
use std::fs;

/// Below this the clock and the round trip are a visible share of what is timed.
const TOO_SHORT_MS: f64 = 1.0;
/// Share of CPU time taken by other guests of the hypervisor.
const STEAL: f64 = 0.05;
/// Iglewicz and Hoaglin, "How to Detect and Handle Outliers", 1993: |modified z| above 3.5.
const OUTLIER: f64 = 3.5;
/// The median absolute deviation of a normal distribution, in standard deviations.
const MAD_TO_SIGMA: f64 = 0.6745;

/// What is watched around one window.
pub struct Watch {
    checkpoint: Option<String>,
    autovacuum: Option<String>,
    cpu: Option<CpuTimes>,
}

impl Watch {
    pub async fn begin(control: &mut Session, observer: &mut Session) -> Self {
        Self {
            checkpoint: checkpoint(control).await,
            autovacuum: autovacuum(observer).await,
            cpu: cpu_times(),
        }
    }

    /// The doubts about the window that just ended. `own_checkpoint`: `measure` itself asked for one.
    pub async fn end(
        self,
        control: &mut Session,
        observer: &mut Session,
        window: &Window,
        own_checkpoint: bool,
        place: &str,
    ) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        let mut doubt = |kind: &str, message: String, advice: &str| {
            doubts.push(Doubt {
                kind: kind.to_owned(),
                message: format!("{place}: {message}"),
                advice: advice.to_owned(),
            });
        };
        if !own_checkpoint && checkpoint(control).await != self.checkpoint {
            doubt(
                "checkpoint",
                "a checkpoint fell into the measured window".into(),
                "raise `max_wal_size` and `checkpoint_timeout`, or measure less at a time: after a \
                 checkpoint the first touch of each page writes its whole image",
            );
        }
        if autovacuum(observer).await != self.autovacuum {
            doubt(
                "autovacuum",
                "autovacuum worked on a table in the measured window".into(),
                "create the table WITH (autovacuum_enabled = off)",
            );
        }
        let elapsed_ms: f64 = window
            .statements
            .iter()
            .map(|statement| statement.elapsed.as_secs_f64() * 1000.0)
            .sum();
        if elapsed_ms < TOO_SHORT_MS && !window.statements.is_empty() {
            doubt(
                "too-short",
                format!("{elapsed_ms:.3} ms is too short to time"),
                "measure more rows, and do not quote this time",
            );
        }
        let steal = self
            .cpu
            .zip(cpu_times())
            .and_then(|(before, after)| after.steal_since(before));
        if let Some(share) = steal.filter(|share| *share > STEAL) {
            doubt(
                "cpu-steal",
                format!(
                    "the hypervisor gave {:.0} % of the CPU time away",
                    share * 100.0
                ),
                "measure timings again on a quieter machine",
            );
        }
        doubts
    }
}

/// Whether `measure` itself asks for a checkpoint, or for something that makes one.
pub fn own_checkpoint(experiment: &Experiment) -> bool {
    experiment
        .measure
        .script
        .statements
        .iter()
        .any(|statement| {
            let first: Vec<String> = words(&statement.text.text).take(2).collect();
            let first: Vec<&str> = first.iter().map(String::as_str).collect();
            matches!(
                first.as_slice(),
                ["checkpoint", ..] | ["create" | "drop", "database"]
            )
        })
}

async fn first_cell(session: &mut Session, sql: &str) -> Option<String> {
    let result = session.execute(sql).await.ok()?;
    result.rows.into_iter().next()?.into_iter().next()?
}

async fn checkpoint(control: &mut Session) -> Option<String> {
    first_cell(
        control,
        "SELECT checkpoint_lsn FROM pg_catalog.pg_control_checkpoint()",
    )
    .await
}

async fn autovacuum(observer: &mut Session) -> Option<String> {
    first_cell(
        observer,
        "SELECT coalesce(sum(autovacuum_count + autoanalyze_count), 0) \
         FROM pg_catalog.pg_stat_user_tables",
    )
    .await
}

#[derive(Clone, Copy)]
struct CpuTimes {
    total: u64,
    steal: u64,
}

impl CpuTimes {
    /// The share of the time between; None where it is too short to tell, or a counter went back.
    fn steal_since(self, before: Self) -> Option<f64> {
        let total = self.total.checked_sub(before.total)?;
        let steal = self.steal.checked_sub(before.steal)?;
        // A tick is 10 ms: below a hundred of them a share means nothing.
        (total >= 100).then(|| steal as f64 / total as f64)
    }
}

/// The first line of /proc/stat, in ticks; None where there is none.
fn cpu_times() -> Option<CpuTimes> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<u64> = stat
        .lines()
        .next()?
        .split_whitespace()
        .skip(1)
        .take(8)
        .filter_map(|field| field.parse().ok())
        .collect();
    Some(CpuTimes {
        total: ticks.iter().sum(),
        steal: *ticks.get(7)?,
    })
}

/// Runs whose time lies far from the others of their cell. `label` names a cell for people.
pub fn outliers(samples: &[Sample], label: impl Fn(usize) -> String) -> Vec<Doubt> {
    let mut cells: BTreeMap<usize, Vec<(u32, BigDecimal)>> = BTreeMap::new();
    for sample in samples {
        let elapsed = sample
            .row
            .column("elapsed_ms")
            .and_then(|column| sample.row.rows.first()?[column].number()?.finite().cloned());
        if let Some(elapsed) = elapsed {
            cells
                .entry(sample.cell)
                .or_default()
                .push((sample.run, elapsed));
        }
    }
    cells
        .into_iter()
        .filter(|(_, runs)| runs.len() >= 5)
        .flat_map(|(cell, runs)| {
            let label = label(cell);
            outlying(&runs).into_iter().map(move |(run, factor)| Doubt {
                kind: "outlier".to_owned(),
                message: format!("{label}run {run}: took {factor:.2} times the cell's median"),
                advice: "the median is not moved by one such run; more runs make it surer"
                    .to_owned(),
            })
        })
        .collect()
}

fn outlying(runs: &[(u32, BigDecimal)]) -> Vec<(u32, f64)> {
    let to_f64 = |value: &BigDecimal| Number::Finite(value.clone()).to_f64();
    let values: Vec<BigDecimal> = runs.iter().map(|(_, value)| value.clone()).collect();
    let Some(middle) = median(&values) else {
        return Vec::new();
    };
    let deviations: Vec<BigDecimal> = values.iter().map(|v| (v - &middle).abs()).collect();
    let mad = median(&deviations).map_or(0.0, |mad| to_f64(&mad));
    if mad == 0.0 {
        return Vec::new();
    }
    runs.iter()
        .map(|(run, value)| (*run, to_f64(value)))
        .filter(|(_, value)| (MAD_TO_SIGMA * (value - to_f64(&middle)) / mad).abs() > OUTLIER)
        .map(|(run, value)| (run, value / to_f64(&middle)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::sample::article;
    use crate::quantity::{Column, Table, Value};
    use indexmap::IndexMap;

    #[test]
    fn stolen_time_is_a_share_of_at_least_a_second() {
        let times = |total, steal| CpuTimes { total, steal };
        for (after, share) in [
            (times(1200, 70), Some(0.1)),
            (times(1200, 50), Some(0.0)),
            (times(1099, 90), None),
            // Some hypervisors take back what they counted.
            (times(1200, 49), None),
            (times(900, 50), None),
        ] {
            assert_eq!(after.steal_since(times(1000, 50)), share);
        }
    }

    #[test]
    fn a_measure_that_asks_for_a_checkpoint_is_told_from_one_that_meets_it() {
        for (measure, own) in [
            ("CHECKPOINT;", true),
            ("SELECT 1;\n-- now\nCHECKPOINT;", true),
            ("/* a */ create database d;", true),
            ("INSERT INTO checkpoint SELECT 1;", false),
        ] {
            let text = format!(
                "---\ntitle: T\npostgres: {{version: \"16.15\"}}\n---\n```sql experiment e\n{measure}\n```\n"
            );
            let article = article(&text);
            let experiment = article.experiments().next().unwrap();
            assert_eq!(own_checkpoint(experiment), own, "{measure}");
        }
    }

    #[test]
    fn an_outlier_is_told_with_its_cell_and_run() {
        let sample = |run, elapsed: &str| Sample {
            cell: 0,
            run,
            row: Table {
                columns: vec![Column::new("elapsed_ms", "double precision")],
                rows: vec![vec![Value::from_postgres(
                    Some(elapsed),
                    "double precision",
                )]],
            },
            results: IndexMap::new(),
        };
        let samples: Vec<Sample> = (1..)
            .zip(["100", "101", "99", "100", "300"])
            .map(|(run, elapsed)| sample(run, elapsed))
            .collect();
        let told = |samples| -> Vec<String> {
            outliers(samples, |cell| format!("k={cell}, "))
                .into_iter()
                .map(|doubt| doubt.message)
                .collect()
        };
        assert_eq!(
            told(&samples),
            ["k=0, run 5: took 3.00 times the cell's median"]
        );
        // Of four runs one cannot tell.
        assert!(told(&samples[1..]).is_empty());
    }

    #[test]
    fn one_slow_run_among_five_is_an_outlier_and_equal_runs_are_none() {
        let runs = |values: [i32; 5]| -> Vec<(u32, BigDecimal)> {
            (1..).zip(values.map(BigDecimal::from)).collect()
        };
        assert_eq!(outlying(&runs([100, 101, 99, 100, 300])), [(5, 3.0)]);
        assert!(outlying(&runs([100; 5])).is_empty());
        assert!(outlying(&runs([98, 101, 99, 100, 103])).is_empty());
    }
}
