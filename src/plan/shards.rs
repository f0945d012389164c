//! Splits experiments into shards of about equal length, for as many machines. Entry: [`split`].
//! Every machine comes to the same split by itself, so it depends on nothing that one has and
//! another has not: on the articles and the accepted records alone.

use crate::article::{Article, BlockKind, Claims, Experiment, Runs};
use crate::diagnostic::Diagnostic;
use crate::exit_code::Failure;
use crate::plan::Resolved;
use crate::quantity::{Number, Value};
use crate::record::{ExperimentRecord, Record};
use bigdecimal::ToPrimitive;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Which of how many, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    pub shard: u32,
    pub shards: u32,
}

/// More machines than anybody has are a slip of the pen.
pub const MOST_SHARDS: u32 = 1_000;

impl Shard {
    /// `2/3`
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(shard, shards)| Some((number(shard)?, number(shards)?)));
        match numbers {
            Some((shard, shards)) => Self::new(shard, shards),
            None => Err(Failure::article(
                Diagnostic::error(format!("`{text}` names no shard"))
                    .hint("write which of how many, such as `2/3`"),
            )),
        }
    }

    pub fn new(shard: u32, shards: u32) -> Result<Self, Failure> {
        let problem = if shards == 0 || shards > MOST_SHARDS {
            Some(format!(
                "there can be 1 to {MOST_SHARDS} shards, not {shards}"
            ))
        } else if shard == 0 || shard > shards {
            Some(format!("there is no shard {shard} of {shards}"))
        } else {
            None
        };
        match problem {
            None => Ok(Self { shard, shards }),
            Some(problem) => Err(Failure::article(
                Diagnostic::error(problem).hint("shards are counted from 1"),
            )),
        }
    }
}

/// Digits alone: `+1` is no shard.
fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// An experiment and how long it takes. Times are whole microseconds: sums are the same in any
/// order and on any machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weighed {
    pub article: String,
    pub experiment: String,
    pub micros: u64,
    /// Starting states it needs, each built once where several experiments share it.
    pub fixtures: Vec<(String, u64)>,
}

/// A hundred days. What a file says is longer is no time; sums stay far from overflowing.
const LONGEST: u64 = 100 * 86_400 * 1_000_000;

/// Where an experiment's time is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The accepted record's, of this profile.
    Recorded,
    /// The accepted record's, of another profile: good for comparing, not for telling.
    OtherProfile,
    /// How many cells and runs there are, at the pace of what is recorded of the others.
    Cells,
    /// The same where nothing is recorded.
    Unknown,
}

/// The experiments of one article.
pub fn weigh(
    article: &Article,
    resolved: &Resolved,
    accepted: Option<&Record>,
) -> Vec<(Weighed, Basis)> {
    let recorded: BTreeMap<&str, u64> = (accepted.into_iter())
        .flat_map(|record| &record.experiments)
        .filter_map(|(id, experiment)| Some((id.as_str(), recorded_micros(experiment)?)))
        .collect();
    let known: Vec<(u64, u64)> = (article.experiments())
        .filter_map(|one| Some((*recorded.get(one.id.value.as_str())?, units(one, resolved))))
        .collect();
    let (micros, runs) = known
        .iter()
        .fold((0, 0), |(a, b), (micros, runs)| (a + micros, b + runs));
    // A second where nothing is known: only the proportions matter then.
    let pace = micros.checked_div(runs).unwrap_or(1_000_000).max(1);
    let same = accepted.is_some_and(|record| record.profile == resolved.profile);
    let measured: BTreeMap<&str, (u64, Basis)> = (article.experiments())
        .map(|experiment| {
            let id = experiment.id.value.as_str();
            let weight = match recorded.get(id) {
                Some(&micros) if same => (micros, Basis::Recorded),
                Some(&micros) => (micros, Basis::OtherProfile),
                None => (
                    pace.saturating_mul(units(experiment, resolved)),
                    match (runs, same) {
                        (0, _) => Basis::Unknown,
                        (_, true) => Basis::Cells,
                        (_, false) => Basis::OtherProfile,
                    },
                ),
            };
            (id, weight)
        })
        .collect();
    (article.experiments())
        .map(|experiment| {
            let id = &experiment.id.value;
            let (micros, basis) = measured[id.as_str()];
            let weighed = Weighed {
                article: article.slug.clone(),
                experiment: id.clone(),
                micros: micros.clamp(1, LONGEST),
                fixtures: fixtures(article, experiment, &measured),
            };
            (weighed, basis)
        })
        .collect()
}

/// Warm-ups take as long as what is recorded; of runs that stop when they agree the most count.
fn units(experiment: &Experiment, resolved: &Resolved) -> u64 {
    let runs = match resolved.runs(experiment) {
        Runs::Fixed(runs) => runs,
        Runs::Adaptive { max, .. } => max,
    };
    let each = u64::from(runs) + u64::from(resolved.warmup_runs(experiment));
    each.max(1) * experiment.cells.rows.len().max(1) as u64
}

/// What the record says of its time; of records of before the measured windows alone.
fn recorded_micros(experiment: &ExperimentRecord) -> Option<u64> {
    let micros = |seconds: f64| {
        (seconds * 1e6)
            .round()
            .to_u64()
            .filter(|micros| (1..=LONGEST).contains(micros))
    };
    if let Some(seconds) = &experiment.seconds {
        return micros(seconds.parse().ok()?);
    }
    let measured = &experiment.measured;
    let column = measured.column("elapsed_ms")?;
    let milliseconds = |row: &Vec<Value>| match &row[column] {
        Value::Number(Number::Finite(number)) => number.to_f64(),
        _ => None,
    };
    let sum: f64 = measured.rows.iter().filter_map(milliseconds).sum();
    micros(sum / 1e3)
}

/// A starting state takes about as long as a cell of those that start from it: that has it set up,
/// too. The nearest to the experiment comes first.
fn fixtures(
    article: &Article,
    experiment: &Experiment,
    measured: &BTreeMap<&str, (u64, Basis)>,
) -> Vec<(String, u64)> {
    let mut chain: Vec<(String, u64)> = Vec::new();
    let mut next = experiment.fixture.as_ref();
    while let Some(id) = next {
        let known = chain.iter().any(|(name, _)| *name == id.value);
        let Some(fixture) = (article.fixtures()).find(|one| one.id.value == id.value && !known)
        else {
            break;
        };
        let users = (article.experiments()).filter(|one| {
            one.fixture
                .as_ref()
                .is_some_and(|own| own.value == id.value)
        });
        let (micros, cells) = users.fold((0, 0), |(micros, cells), one| {
            let (own, _) = measured[one.id.value.as_str()];
            (
                micros + own.min(LONGEST),
                cells + one.cells.rows.len().max(1) as u64,
            )
        });
        // One that others are built from and no experiment starts from is as long as the next.
        let before = chain.last().map_or(1, |(_, micros)| *micros);
        let micros = micros.checked_div(cells).unwrap_or(before);
        chain.push((id.value.clone(), micros.clamp(1, LONGEST)));
        next = fixture.from.as_ref();
    }
    chain
}

/// The indexes of the experiments of each shard, ascending. The longest goes first, to where the
/// fewest starting states have to be built for it, as long as no shard gets longer than the
/// shortest limit that all fit in. While there are experiments enough no shard is empty.
pub fn split(experiments: &[Weighed], shards: u32) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..experiments.len()).collect();
    order.sort_by_key(|&index| (Reverse(alone(&experiments[index])), index));
    let mut split = within(experiments, &order, shards, u64::MAX).unwrap_or_default();
    let longest = |split: &[Load]| split.iter().map(|load| load.micros).max();
    let mut enough = longest(&split).unwrap_or_default();
    let mut short = order.first().map_or(0, |&first| alone(&experiments[first]));
    // That one limit does and a longer one does not is possible, and no matter.
    while short < enough {
        let limit = short + (enough - short) / 2;
        match within(experiments, &order, shards, limit) {
            Some(found) => {
                enough = longest(&found).unwrap_or_default();
                split = found;
            }
            None => short = limit + 1,
        }
    }
    let mut indexes: Vec<Vec<usize>> = split.into_iter().map(|load| load.indexes).collect();
    spread(experiments, &mut indexes);
    for shard in &mut indexes {
        shard.sort_unstable();
    }
    indexes
}

/// With its starting states, on a machine that has none of them.
fn alone(one: &Weighed) -> u64 {
    one.micros + one.fixtures.iter().map(|(_, micros)| micros).sum::<u64>()
}

/// All experiments in shards that are no longer than the limit; None where that is not found.
fn within<'a>(
    experiments: &'a [Weighed],
    order: &[usize],
    shards: u32,
    limit: u64,
) -> Option<Vec<Load<'a>>> {
    let mut split: Vec<Load> = (0..shards).map(|_| Load::default()).collect();
    for &index in order {
        let one = &experiments[index];
        let fitting = (split.iter_mut()).filter(|load| load.with(one) <= limit);
        // Without a limit to where it ends soonest.
        let best = fitting.min_by_key(|load| match limit {
            u64::MAX => (load.with(one), 0),
            // Of equally many in the fullest, which leaves room for what is long.
            _ => (load.with(one) - load.micros, u64::MAX - load.micros),
        })?;
        best.add(index, one);
    }
    Some(split)
}

/// A machine that was asked for takes something over from the longest shard that has two.
fn spread(experiments: &[Weighed], split: &mut [Vec<usize>]) {
    while let Some(empty) = split.iter().position(Vec::is_empty) {
        let several = (0..split.len()).filter(|&shard| split[shard].len() > 1);
        let long = |&shard: &usize| {
            let all = split[shard].iter().map(|&index| &experiments[index]);
            (length(all), Reverse(shard))
        };
        let Some(longest) = several.max_by_key(long) else {
            break;
        };
        let moved = split[longest].pop();
        split[empty].extend(moved);
    }
}

/// How long the shard with these experiments takes, in microseconds.
pub fn length<'a>(experiments: impl IntoIterator<Item = &'a Weighed>) -> u64 {
    let mut load = Load::default();
    for one in experiments {
        load.add(0, one);
    }
    load.micros
}

#[derive(Default)]
struct Load<'a> {
    indexes: Vec<usize>,
    micros: u64,
    /// By article: two may have one of the same name.
    fixtures: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Load<'a> {
    fn with(&self, one: &Weighed) -> u64 {
        let missing = (one.fixtures.iter())
            .filter(|(name, _)| {
                !self
                    .fixtures
                    .contains(&(one.article.as_str(), name.as_str()))
            })
            .map(|(_, micros)| micros);
        self.micros + one.micros + missing.sum::<u64>()
    }

    fn add(&mut self, index: usize, one: &'a Weighed) {
        self.micros = self.with(one);
        let names = one.fixtures.iter().map(|(name, _)| name.as_str());
        self.fixtures
            .extend(names.map(|name| (one.article.as_str(), name)));
        self.indexes.push(index);
    }
}

/// The article with these experiments alone, and with the claims, tables and charts that read no
/// others. Its prose stays: what cannot be judged is not.
pub fn part(
    article: &Article,
    experiments: &BTreeSet<String>,
    reads: impl Fn(&str) -> Vec<String>,
) -> Article {
    let is_whole = |query: &str| reads(query).iter().all(|id| experiments.contains(id));
    let mut part = article.clone();
    part.blocks.retain_mut(|block| match &mut block.kind {
        BlockKind::Fixture(_) => true,
        BlockKind::Experiment(experiment) => experiments.contains(&experiment.id.value),
        BlockKind::Claims(Claims { claims, .. }) => {
            claims.retain(|claim| is_whole(&claim.query.text.text));
            !claims.is_empty()
        }
        BlockKind::Table(table) => is_whole(&table.query.text.text),
        BlockKind::Chart(chart) => is_whole(&chart.query.text.text),
    });
    part
}

#[cfg(test)]
mod tests;
