//! What the person at the terminal sees while experiments run: a bar with what runs now and how
//! long it will still take; plain lines where there is no terminal.

use super::options::Verbosity;
use super::terminal::tell;
use crate::measure::Progress;
use crate::record::store::StoredExperiment;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

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
                tell(text);
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

    fn skipped(&self, experiment: &str, reason: &str) {
        self.waiting.borrow_mut().retain(|(id, _)| id != experiment);
        self.line(&format!("  {experiment}: skipped: {reason}"));
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
            tell(&format!(
                "  {done}/{} {experiment}, cell {}: {seconds:.1} s; {} so far{}",
                self.total,
                cell + 1,
                for_people(self.began.elapsed()),
                match self.left() {
                    left if left.is_empty() => left,
                    left => format!(", {left}"),
                }
            ));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(cell: usize) -> (String, usize) {
        ("e".to_owned(), cell)
    }

    /// A bar over three cells, of which the first `known` took ten seconds each before.
    fn bar(known: usize) -> Bar {
        let stored = StoredExperiment {
            durations: (0..known).map(|cell| (cell, 10.0)).collect(),
            ..StoredExperiment::default()
        };
        let mut durations = Durations::default();
        durations.learn("e", &[stored]);
        Bar::new(Verbosity::Quiet, (0..3).map(unit).collect(), durations)
    }

    fn remaining(bar: &Bar) -> Option<u64> {
        bar.remaining().map(|left| left.as_secs())
    }

    #[test]
    fn what_it_took_before_is_scaled_by_the_pace_of_this_run() {
        let bar = bar(3);
        assert_eq!(remaining(&bar), Some(30));
        bar.unit_done("e", 0, 5.0);
        assert_eq!(remaining(&bar), Some(10));
        bar.unit_done("e", 1, 25.0);
        assert_eq!(remaining(&bar), Some(15));
        bar.unit_done("e", 2, 1.0);
        assert_eq!(remaining(&bar), Some(0));
    }

    #[test]
    fn without_a_measurement_of_before_the_mean_of_this_run_is_all_that_is_known() {
        let unknown = bar(0);
        assert_eq!((remaining(&unknown), unknown.left()), (None, String::new()));
        unknown.unit_done("e", 1, 4.0);
        assert_eq!(remaining(&unknown), Some(8));
        assert_eq!(unknown.left(), "about 8 s left");

        let partly = bar(1);
        assert_eq!(remaining(&partly), None);
        partly.unit_done("e", 1, 4.0);
        assert_eq!(remaining(&partly), Some(14));
    }

    #[test]
    fn the_latest_measurement_is_what_is_expected() {
        let result = |measured_at: &str, seconds| StoredExperiment {
            measured_at: measured_at.into(),
            durations: vec![(0, seconds)],
            ..StoredExperiment::default()
        };
        let mut durations = Durations::default();
        let (new, old) = (
            result("2026-11-30T11:00:00Z", 3.0),
            result("2026-11-30T10:00:00Z", 9.0),
        );
        durations.learn("e", &[new, old]);
        assert_eq!(durations.of(&unit(0)), Some(3.0));
        assert_eq!(durations.of(&("other".to_owned(), 0)), None);
    }

    #[test]
    fn durations_are_said_as_people_say_them() {
        for (seconds, text) in [
            (0.4, "0 s"),
            (44.5, "45 s"),
            (89.4, "89 s"),
            (89.6, "1 min 30 s"),
            (200.0, "3 min 20 s"),
            (7200.0, "120 min 0 s"),
        ] {
            assert_eq!(for_people(Duration::from_secs_f64(seconds)), text);
        }
    }
}
