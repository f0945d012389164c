//! What the person at the terminal sees while experiments run: a bar with what runs now and how
//! long it will still take; plain lines where there is no terminal.

use crate::measure::Progress;
use crate::record::store::StoredExperiment;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Who is told, and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    Quiet,
    Normal,
}

/// Seconds that each cell of each experiment took before, on any inputs.
#[derive(Clone, Debug, Default)]
pub struct Durations(BTreeMap<(String, usize), f64>);

impl Durations {
    /// Later results overwrite earlier ones.
    pub fn learn(&mut self, experiment: &str, stored: &[StoredExperiment]) {
        let mut results: Vec<&StoredExperiment> = stored.iter().collect();
        results.sort_by(|a, b| a.measured_at.cmp(&b.measured_at));
        for (cell, seconds) in results.iter().flat_map(|result| &result.durations) {
            self.0.insert((experiment.to_owned(), *cell), *seconds);
        }
    }

    fn of(&self, unit: &(String, usize)) -> Option<f64> {
        self.0.get(unit).copied()
    }
}

/// What this run has measured so far.
#[derive(Clone, Copy, Default)]
struct Done {
    units: u32,
    seconds: f64,
    /// What the units that were measured before had taken then, and what they took now.
    expected: f64,
    seconds_of_expected: f64,
}

/// The bar over all units that are to be measured.
pub struct Bar {
    bar: ProgressBar,
    verbosity: Verbosity,
    began: Instant,
    terminal: bool,
    durations: Durations,
    waiting: RefCell<Vec<(String, usize)>>,
    done: Cell<Done>,
    total: usize,
}

impl Bar {
    pub fn new(verbosity: Verbosity, units: Vec<(String, usize)>, durations: Durations) -> Self {
        let terminal = std::io::stderr().is_terminal() && verbosity == Verbosity::Normal;
        let total = units.len();
        let bar = ProgressBar::with_draw_target(
            Some(total as u64),
            if terminal {
                ProgressDrawTarget::stderr()
            } else {
                ProgressDrawTarget::hidden()
            },
        );
        bar.set_style(
            ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {wide_msg}")
                .expect("the template is fixed")
                .progress_chars("━╸─"),
        );
        if terminal {
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        Self {
            bar,
            verbosity,
            began: Instant::now(),
            terminal,
            durations,
            waiting: RefCell::new(units),
            done: Cell::default(),
            total,
        }
    }

    /// A line above the bar, or on its own.
    pub fn line(&self, text: &str) {
        if self.verbosity == Verbosity::Normal {
            if self.terminal {
                self.bar.println(text);
            } else {
                eprintln!("{text}");
            }
        }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// How long the rest will take: what it took before, scaled by how this run compares with
    /// that so far (another profile, a slower hour), else the mean of this run.
    fn remaining(&self) -> Option<Duration> {
        let done = self.done.get();
        let mean = (done.units > 0).then(|| done.seconds / f64::from(done.units));
        let scale = if done.expected > 0.0 {
            done.seconds_of_expected / done.expected
        } else {
            1.0
        };
        self.waiting
            .borrow()
            .iter()
            .map(|unit| {
                self.durations
                    .of(unit)
                    .map(|seconds| seconds * scale)
                    .or(mean)
            })
            .sum::<Option<f64>>()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }

    fn left(&self) -> String {
        match self.remaining() {
            Some(left) => format!("about {} left", for_people(left)),
            None => String::new(),
        }
    }
}

impl Progress for Bar {
    fn activity(&self, experiment: &str, cell: &str, phase: &str) {
        let parts: Vec<String> = [
            experiment.to_owned(),
            cell.to_owned(),
            phase.to_owned(),
            self.left(),
        ]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
        self.bar.set_message(parts.join(" · "));
    }

    fn unit_done(&self, experiment: &str, cell: usize, seconds: f64) {
        let unit = (experiment.to_owned(), cell);
        self.waiting.borrow_mut().retain(|waiting| *waiting != unit);
        let mut done = self.done.get();
        done.units += 1;
        done.seconds += seconds;
        if let Some(expected) = self.durations.of(&unit) {
            done.expected += expected;
            done.seconds_of_expected += seconds;
        }
        self.done.set(done);
        self.bar.inc(1);
        if !self.terminal && self.verbosity == Verbosity::Normal {
            let done = self.total - self.waiting.borrow().len();
            eprintln!(
                "  {done}/{} {experiment}, cell {}: {seconds:.1} s; {} so far{}",
                self.total,
                cell + 1,
                for_people(self.began.elapsed()),
                match self.left() {
                    left if left.is_empty() => left,
                    left => format!(", {left}"),
                }
            );
        }
    }
}

/// `45 s`, `3 min 20 s`
pub fn for_people(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    match seconds {
        0..=89 => format!("{seconds} s"),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}
