//! What makes a measurement less trustworthy than it looks: found around each window ([`Watch`])
//! and over the runs of each cell ([`of_runs`]), kept in the record, shown beside the figures. What
//! many runs of a cell have is said once ([`sentences`]).

mod cpu;
mod emulated;
mod found;
mod plans;
mod runs;

pub use found::{Found, Kind, sentences};
pub use plans::doubts as of_plans;
pub use runs::doubts as of_runs;

use super::instrument::{CUMULATIVE, StatementTime, Window};
use crate::article::Experiment;
use crate::engine::session::Session;
use crate::parse::sql::words;
use cpu::CpuState;

/// Below this the clock and the round trip are a visible share of what is timed.
const TOO_SHORT_MS: f64 = 1.0;
/// More bytes than the buffers between server and network take: the server waits to send.
const BUFFERED_BYTES: u64 = 64 << 10;
/// Share of CPU time taken by other guests of the hypervisor.
const STEAL: f64 = 0.05;

/// What is watched around one window.
pub struct Watch {
    checkpoint: Option<String>,
    autovacuum: Option<Autovacuum>,
    /// When statistics were reset last; outer None: nothing reads them.
    statistics: Option<Option<String>>,
    cpu: CpuState,
}

impl Watch {
    pub async fn begin(
        control: &mut Session,
        observer: &mut Session,
        experiment: &Experiment,
    ) -> Self {
        let reads_statistics = CUMULATIVE
            .iter()
            .any(|name| experiment.instrument(name).is_some());
        Self {
            checkpoint: checkpoint(control).await,
            autovacuum: autovacuum(observer).await,
            statistics: match reads_statistics {
                true => Some(reset(observer).await),
                false => None,
            },
            cpu: CpuState::read(control).await,
        }
    }

    /// What there is to doubt about the window that just ended, of this cell and run.
    /// `own_checkpoint`: `measure` itself asked for one.
    pub async fn end(
        self,
        control: &mut Session,
        observer: &mut Session,
        window: &Window,
        own_checkpoint: bool,
        (cell, run): (usize, u32),
    ) -> Vec<Found> {
        let cpu = CpuState::read(control).await.since(self.cpu);
        let mut found = Vec::new();
        let mut doubt = |kind: Kind, amount: f64| {
            found.push(Found {
                cell,
                run,
                kind,
                amount,
            });
        };
        if !own_checkpoint && checkpoint(control).await != self.checkpoint {
            doubt(Kind::Checkpoint, 0.0);
        }
        let vacuumed = autovacuum(observer).await;
        let works = |at: &Option<Autovacuum>| at.as_ref().is_some_and(|at| at.works);
        if works(&self.autovacuum) || works(&vacuumed) || vacuumed != self.autovacuum {
            doubt(Kind::Autovacuum, 0.0);
        }
        if let Some(before) = self.statistics {
            if window.in_transaction {
                doubt(Kind::StatisticsPending, 0.0);
            }
            if reset(observer).await != before {
                doubt(Kind::StatisticsReset, 0.0);
            }
        }
        let elapsed_ms: f64 = window
            .statements
            .iter()
            .map(StatementTime::elapsed_ms)
            .sum();
        if elapsed_ms < TOO_SHORT_MS && !window.statements.is_empty() {
            doubt(Kind::TooShort, elapsed_ms);
        }
        if let Some(bytes) = window.received_bytes {
            if bytes > BUFFERED_BYTES {
                doubt(Kind::SlowedByNetwork, bytes as f64 / 1000.0);
            }
            let by_the_client = |statement: &&StatementTime| statement.server_ms.is_none();
            let with_network = window.statements.iter().filter(by_the_client).count();
            if with_network > 0 {
                doubt(Kind::TimedWithNetwork, with_network as f64);
            }
        }
        if let Some(share) = cpu.steal.filter(|share| *share > STEAL) {
            doubt(Kind::CpuSteal, share * 100.0);
        }
        if cpu.throttled > 0 {
            doubt(Kind::Throttled, cpu.throttled as f64);
        }
        if cpu.overheated > 0 {
            doubt(Kind::Overheated, cpu.overheated as f64);
        }
        found
    }
}

/// Whether the server's program is for another processor than this machine has.
pub async fn is_emulated(control: &mut Session) -> bool {
    let version = first_cell(control, "SELECT pg_catalog.version()").await;
    // The processor that counts is that of the server's machine.
    !control.is_elsewhere()
        && emulated::is_emulated(&version.unwrap_or_default(), std::env::consts::ARCH)
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

/// When the statistics of the experiment's database or of pg_stat_io were reset last.
async fn reset(observer: &mut Session) -> Option<String> {
    first_cell(
        observer,
        "SELECT concat(pg_catalog.pg_stat_get_db_stat_reset_time(oid), \
         (SELECT max(stats_reset) FROM pg_catalog.pg_stat_io)) \
         FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()",
    )
    .await
}

/// What autovacuum has done to the tables of the experiment's database, those of the catalog with
/// them, and whether it works anywhere in the cluster: the log is one for all. A worker that begins
/// and ends within the window in another database is not seen.
#[derive(PartialEq)]
struct Autovacuum {
    done: Option<String>,
    works: bool,
}

async fn autovacuum(observer: &mut Session) -> Option<Autovacuum> {
    let done = first_cell(
        observer,
        "SELECT coalesce(sum(autovacuum_count + autoanalyze_count), 0) \
         FROM pg_catalog.pg_stat_all_tables",
    )
    .await;
    let workers = first_cell(
        observer,
        "SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'autovacuum worker'",
    )
    .await;
    Some(Autovacuum {
        done,
        works: workers? != "0",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::sample::article;

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
}
