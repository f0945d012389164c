//! What was found, before it is a sentence: one of a kind for each cell, however many of its runs
//! have it.

use crate::record::Doubt;

/// What makes a run doubtful, and by how much where that has a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Checkpoint,
    Autovacuum,
    /// Milliseconds.
    TooShort,
    /// Per cent of the CPU time.
    CpuSteal,
    /// How often the container's CPU limit stopped it.
    Throttled,
    /// How often a core was slowed because of its heat.
    Overheated,
    /// Kilobytes of results that the server had to send through a network.
    SlowedByNetwork,
    /// Statements that the client's clock had to time, with a network in it.
    TimedWithNetwork,
    /// Times the cell's median.
    Outlier,
    /// By how many per cent the time changed over the runs.
    Drift,
    /// The container's programs are of another architecture than the machine.
    Emulated,
    /// A transaction is still open, and its counts were not handed in.
    StatisticsPending,
    /// Counters began anew.
    StatisticsReset,
    /// Pages of the catalog that planning read.
    FirstUse,
    /// How many parallel workers did not start.
    WorkersMissing,
    /// Buffers, which vary.
    ParallelBuffers,
    /// Another plan than in the first run.
    PlanChanged,
    /// How many samples were due while an earlier one was still asked.
    MissedSamples,
}

impl Kind {
    const ALL: [Self; 18] = [
        Self::Checkpoint,
        Self::Autovacuum,
        Self::TooShort,
        Self::CpuSteal,
        Self::Throttled,
        Self::Overheated,
        Self::SlowedByNetwork,
        Self::TimedWithNetwork,
        Self::Outlier,
        Self::Drift,
        Self::Emulated,
        Self::StatisticsPending,
        Self::StatisticsReset,
        Self::FirstUse,
        Self::WorkersMissing,
        Self::ParallelBuffers,
        Self::PlanChanged,
        Self::MissedSamples,
    ];

    /// As the record names it.
    fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Autovacuum => "autovacuum",
            Self::TooShort => "too-short",
            Self::CpuSteal => "cpu-steal",
            Self::Throttled => "cpu-throttled",
            Self::Overheated => "cpu-overheated",
            Self::SlowedByNetwork => "network-results",
            Self::TimedWithNetwork => "network-time",
            Self::Outlier => "outlier",
            Self::Drift => "drift",
            Self::Emulated => "emulated-platform",
            Self::StatisticsPending => "statistics-pending",
            Self::StatisticsReset => "statistics-reset",
            Self::FirstUse => "first-use",
            Self::WorkersMissing => "workers-missing",
            Self::ParallelBuffers => "parallel-buffers",
            Self::PlanChanged => "plan-changed",
            Self::MissedSamples => "missed-samples",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Checkpoint => {
                "raise `max_wal_size` and `checkpoint_timeout`, or measure less at a time: after a \
                 checkpoint the first touch of each page writes its whole image"
            }
            Self::Autovacuum => {
                "set `autovacuum: off`: without it the catalog is vacuumed too, whatever the tables say"
            }
            Self::TooShort => "measure more rows, and do not quote this time",
            Self::CpuSteal => "measure timings again on a quieter machine",
            Self::Throttled => "give the container more CPU, or measure timings outside of it",
            Self::Overheated => "let the machine cool down, and measure timings again",
            Self::SlowedByNetwork => {
                "return fewer rows (`count(*)`, `EXPLAIN ANALYZE`), or run remeasure on that machine"
            }
            Self::TimedWithNetwork => {
                "leave `track_activities` on: the server's clock is read from it"
            }
            Self::Outlier => "the median is not moved by one such run; more runs make it surer",
            Self::Drift => {
                "`fresh: run` starts each run alike and `warmup:` leaves the first ones out; with \
                 `order: interleave` what drifts meets all cells"
            }
            Self::Emulated => {
                "do not quote this time: measure on a machine of the image's own platform, or leave \
                 `postgres: {platform: …}` out"
            }
            Self::StatisticsPending => {
                "`buffers`, `io`, `temp`, `hot` and `tuples` see a transaction once it has ended: end \
                 it in `measure`, or ask pg_stat_xact_user_tables in `collect: {in: subject}`"
            }
            Self::StatisticsReset => "do not reset statistics while they are measured",
            Self::FirstUse => {
                "executing may read more, which counts to the plan's nodes: `warmup: 1` reads them \
                 before; with `connect: run` every run has them alike"
            }
            Self::WorkersMissing => {
                "give `max_parallel_workers` and `max_worker_processes` room, and let nothing else \
                 run in parallel"
            }
            Self::ParallelBuffers => {
                "`session: {max_parallel_workers_per_gather: 0}` makes them the same each time"
            }
            Self::PlanChanged => {
                "`ANALYZE` in `setup` and `autovacuum: off` keep what the planner knows the same"
            }
            Self::MissedSamples => {
                "give `sample` a longer `every`, or a query that is answered sooner; what is left \
                 still stands at its own time"
            }
        }
    }

    /// What is said of amounts from `low` to `high`.
    fn sentence(self, low: f64, high: f64) -> String {
        let range = |decimals: usize| {
            let (low, high) = (format!("{low:.decimals$}"), format!("{high:.decimals$}"));
            if low == high {
                (low, false)
            } else {
                (format!("{low} to {high}"), true)
            }
        };
        match self {
            Self::Checkpoint => "a checkpoint fell into the measured window".to_owned(),
            Self::Autovacuum => "autovacuum worked on a table in the measured window".to_owned(),
            Self::TooShort => {
                let (range, many) = range(3);
                format!(
                    "{range} ms {} too short to time",
                    if many { "are" } else { "is" }
                )
            }
            Self::CpuSteal => {
                format!("the hypervisor gave {} % of the CPU time away", range(0).0)
            }
            Self::Throttled => {
                let times = if high == 1.0 { "time" } else { "times" };
                format!(
                    "the CPU limit of the container stopped it {} {times}",
                    range(0).0
                )
            }
            Self::Overheated => {
                let times = if high == 1.0 { "time" } else { "times" };
                format!(
                    "the CPU was slowed {} {times} because of its heat",
                    range(0).0
                )
            }
            Self::SlowedByNetwork => format!(
                "the server sent {} kB of results through the network and may have waited for it",
                range(0).0
            ),
            Self::TimedWithNetwork => {
                format!("the network is in the time of {} statements", range(0).0)
            }
            Self::MissedSamples => {
                let were = if high == 1.0 {
                    "sample was"
                } else {
                    "samples were"
                };
                format!(
                    "{} {were} missed: the query took longer than `every`",
                    range(0).0
                )
            }
            Self::Outlier => format!("took {} times the cell's median", range(2).0),
            Self::Drift => {
                let word = if high > 0.0 { "grew" } else { "fell" };
                format!(
                    "the time {word} by {:.0} % from the first to the last",
                    high.abs()
                )
            }
            Self::Emulated => {
                "the server's platform is emulated: its times are not those of any machine"
                    .to_owned()
            }
            Self::StatisticsPending => {
                "the transaction is still open, and the counts of what it did are not handed in"
                    .to_owned()
            }
            Self::StatisticsReset => {
                "statistics were reset in the measured window: differences say nothing".to_owned()
            }
            Self::FirstUse => format!(
                "planning read {} pages of the catalog for the first time in its session",
                range(0).0
            ),
            Self::WorkersMissing => format!(
                "{} of the planned parallel workers did not start",
                range(0).0
            ),
            Self::ParallelBuffers => format!(
                "{} buffers, as parallel workers shared the work",
                range(0).0
            ),
            Self::PlanChanged => "the plan was another than in the first run".to_owned(),
        }
    }
}

/// One kind of doubt about one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    pub cell: usize,
    pub run: u32,
    pub kind: Kind,
    /// 0 where the kind has none.
    pub amount: f64,
}

impl Found {
    pub fn emulated(cell: usize, run: u32) -> Self {
        Self {
            cell,
            run,
            kind: Kind::Emulated,
            amount: 0.0,
        }
    }
}

/// A sentence for each kind in each cell. `label` names a cell: `indexes=8, `, or nothing.
pub fn sentences(found: &[Found], label: impl Fn(usize) -> String) -> Vec<Doubt> {
    let mut cells: Vec<usize> = found.iter().map(|one| one.cell).collect();
    cells.sort_unstable();
    cells.dedup();
    let of = |cell, kind| -> Vec<&Found> {
        let same = found
            .iter()
            .filter(|one| one.cell == cell && one.kind == kind);
        same.collect()
    };
    cells
        .iter()
        .flat_map(|&cell| Kind::ALL.map(|kind| (cell, kind)))
        .filter_map(|(cell, kind)| {
            let same = of(cell, kind);
            let first = same.first()?;
            let least = same
                .iter()
                .fold(first.amount, |least, one| least.min(one.amount));
            let most = same
                .iter()
                .fold(first.amount, |most, one| most.max(one.amount));
            let runs: Vec<u32> = same.iter().map(|one| one.run).collect();
            let (place, sentence) = (runs_text(&runs), kind.sentence(least, most));
            Some(Doubt {
                kind: kind.name().to_owned(),
                message: format!("{}{place}: {sentence}", label(cell)),
                advice: kind.advice().to_owned(),
            })
        })
        .collect()
}

/// `run 3`, `runs 1, 2 and 5`, `runs 1 to 4 and 7`
fn runs_text(runs: &[u32]) -> String {
    let mut runs = runs.to_vec();
    runs.sort_unstable();
    runs.dedup();
    if let [only] = runs.as_slice() {
        return format!("run {only}");
    }
    let mut parts: Vec<String> = runs
        .chunk_by(|one, next| one + 1 == *next)
        .flat_map(|chunk| match chunk {
            [first, _, .., last] => vec![format!("{first} to {last}")],
            few => few.iter().map(u32::to_string).collect(),
        })
        .collect();
    match parts.pop() {
        Some(last) if !parts.is_empty() => format!("runs {} and {last}", parts.join(", ")),
        last => format!("runs {}", last.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_named_without_saying_each() {
        for (runs, expected) in [
            (&[3][..], "run 3"),
            (&[1, 2], "runs 1 and 2"),
            (&[1, 2, 3], "runs 1 to 3"),
            (&[5, 1, 2], "runs 1, 2 and 5"),
            (&[1, 2, 3, 4, 7], "runs 1 to 4 and 7"),
            (&[1, 3, 4, 5, 8, 9], "runs 1, 3 to 5, 8 and 9"),
            (&[2, 2], "run 2"),
        ] {
            assert_eq!(runs_text(runs), expected);
        }
    }

    #[test]
    fn what_many_runs_of_a_cell_have_is_one_sentence() {
        let found = |cell, run, kind, amount| Found {
            cell,
            run,
            kind,
            amount,
        };
        let all = [
            found(1, 1, Kind::TooShort, 0.62),
            found(0, 1, Kind::Checkpoint, 0.0),
            found(1, 2, Kind::TooShort, 0.5),
            found(1, 2, Kind::Checkpoint, 0.0),
            found(1, 3, Kind::TooShort, 0.777),
            found(0, 4, Kind::CpuSteal, 7.4),
            found(0, 5, Kind::CpuSteal, 12.0),
            found(0, 1, Kind::Throttled, 1.0),
            found(0, 2, Kind::Overheated, 3.0),
        ];
        let told: Vec<String> = sentences(&all, |cell| format!("k={cell}, "))
            .into_iter()
            .map(|doubt| format!("{} {}", doubt.kind, doubt.message))
            .collect();
        assert_eq!(
            told,
            [
                "checkpoint k=0, run 1: a checkpoint fell into the measured window",
                "cpu-steal k=0, runs 4 and 5: the hypervisor gave 7 to 12 % of the CPU time away",
                "cpu-throttled k=0, run 1: the CPU limit of the container stopped it 1 time",
                "cpu-overheated k=0, run 2: the CPU was slowed 3 times because of its heat",
                "checkpoint k=1, run 2: a checkpoint fell into the measured window",
                "too-short k=1, runs 1 to 3: 0.500 to 0.777 ms are too short to time",
            ]
        );
    }
}
