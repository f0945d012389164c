//! `plan`: what a build would measure, why, and how long that takes; or how the experiments are
//! split among several machines, as a document that a CI matrix takes as it is (described by
//! `docs/plan.schema.json`).

use super::build::runtime;
use super::options::BuildOptions;
use super::parts::{Selected, refuse_part};
use super::project::Project;
use super::record::{Context, record_path};
use super::terminal::{both, for_each, print, print_json};
use crate::article::Article;
use crate::diagnostic::Diagnostic;
use crate::engine::Engines;
use crate::exit_code::{Failure, Outcome};
use crate::plan::shards::{self, Basis, Shard, Weighed};
use crate::plan::{self, Decision, Force};
use crate::record::store::read_record;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What may be asked of a plan.
pub struct PlanOptions {
    pub profile: Option<String>,
    pub engine: Engines,
    pub shards: Option<u32>,
    /// This one alone.
    pub shard: Option<u32>,
    pub json: bool,
}

/// What GitHub's `fromJSON` makes a matrix of.
#[derive(Serialize)]
struct Matrix {
    include: Vec<ShardJson>,
}

#[derive(Serialize)]
struct ShardJson {
    shard: u32,
    shards: u32,
    /// How long it takes about; None where nothing is recorded of this profile.
    seconds: Option<u64>,
    /// `article/experiment`
    experiments: Vec<String>,
}

pub fn plan(
    project: &Project,
    names: &[String],
    options: &PlanOptions,
) -> Result<Outcome, Failure> {
    if options.shards.is_none() && !options.json {
        return what_would_run(project, names, options);
    }
    let all = Shard::new(1, options.shards.unwrap_or(1))?;
    let one = (options.shard)
        .map(|shard| Shard::new(shard, all.shards))
        .transpose()?;
    let (weighed, all_read) = weighed(project, names, options.profile.as_deref())?;
    all_read?;
    if weighed.is_empty() {
        return Err(Failure::article(
            Diagnostic::error("there is no experiment to plan")
                .hint("a CI matrix of nothing is refused by who runs it"),
        ));
    }
    let split = split(&weighed, all.shards);
    match (one, options.json) {
        (Some(one), true) => print_json(&split[one.shard as usize - 1])?,
        (None, true) => print_json(&Matrix {
            // A machine without work is one too many.
            include: (split.into_iter())
                .filter(|shard| !shard.experiments.is_empty())
                .collect(),
        })?,
        (one, false) => {
            let shown =
                (split.iter()).filter(|shard| one.is_none_or(|one| one.shard == shard.shard));
            for shard in shown {
                print(&text(shard, &weighed))?;
            }
        }
    }
    Ok(Outcome::Holds)
}

/// The experiments that one shard of these articles has.
pub fn selected(
    project: &Project,
    names: &[String],
    options: &BuildOptions,
    shard: Shard,
) -> Result<Selected, Failure> {
    // What cannot be read is told by who builds.
    let (weighed, _) = weighed(project, names, options.profile.as_deref())?;
    let only: Vec<Weighed> = weighed.into_iter().map(|(one, _)| one).collect();
    let mut experiments: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for &index in &shards::split(&only, shard.shards)[shard.shard as usize - 1] {
        let one = &only[index];
        let of_article = experiments.entry(one.article.clone()).or_default();
        of_article.insert(one.experiment.clone());
    }
    Ok(Selected { shard, experiments })
}

type AllWeighed = (Vec<(Weighed, Basis)>, Result<(), Failure>);

/// Every experiment of the articles that can be read, in order; then what is wrong with the others.
fn weighed(
    project: &Project,
    names: &[String],
    profile: Option<&str>,
) -> Result<AllWeighed, Failure> {
    let pins = project.pins()?;
    let (articles, all_read) = project.articles(names, &pins)?;
    let (weighed, all_done) = for_each(&articles, |article| {
        let resolved = plan::resolve(article, profile).map_err(Failure::article)?;
        let path = record_path(article);
        let accepted = read_record(&path)?;
        if let Some(record) = &accepted {
            refuse_part(&path, record)?;
        }
        Ok(shards::weigh(article, &resolved, accepted.as_ref()))
    });
    Ok((weighed.concat(), both(all_read, all_done)))
}

fn split(weighed: &[(Weighed, Basis)], shards: u32) -> Vec<ShardJson> {
    let only: Vec<Weighed> = weighed.iter().map(|(one, _)| one.clone()).collect();
    (1..)
        .zip(shards::split(&only, shards))
        .map(|(shard, indexes)| {
            let told = (indexes.iter())
                .all(|&index| matches!(weighed[index].1, Basis::Recorded | Basis::Cells));
            let micros = shards::length(indexes.iter().map(|&index| &only[index]));
            ShardJson {
                shard,
                shards,
                seconds: told.then(|| micros.div_ceil(1_000_000)),
                experiments: indexes.iter().map(|&index| name(&only[index])).collect(),
            }
        })
        .collect()
}

fn name(one: &Weighed) -> String {
    format!("{}/{}", one.article, one.experiment)
}

fn text(shard: &ShardJson, weighed: &[(Weighed, Basis)]) -> String {
    let count = shard.experiments.len();
    let about = shard
        .seconds
        .filter(|_| count > 0)
        .map(|seconds| format!(", about {}", duration(seconds)));
    let mut text = format!(
        "shard {}/{}: {count} experiment{}{}\n",
        shard.shard,
        shard.shards,
        if count == 1 { "" } else { "s" },
        about.unwrap_or_default()
    );
    for experiment in &shard.experiments {
        let found = weighed.iter().find(|(one, _)| name(one) == *experiment);
        let about = found.map_or_else(String::new, |(one, basis)| estimate(one, *basis));
        let _ = writeln!(text, "  {experiment}{about}");
    }
    text
}

/// `, about 35 s`; nothing where nothing is known.
fn estimate(one: &Weighed, basis: Basis) -> String {
    match basis {
        Basis::Recorded | Basis::Cells => {
            format!(", about {}", duration(one.micros.div_ceil(1_000_000)))
        }
        Basis::OtherProfile | Basis::Unknown => String::new(),
    }
}

fn duration(seconds: u64) -> String {
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// For each experiment what a build would do and why, and how long all takes.
fn what_would_run(
    project: &Project,
    names: &[String],
    options: &PlanOptions,
) -> Result<Outcome, Failure> {
    let pins = project.pins()?;
    let (articles, all_read) = project.articles(names, &pins)?;
    let runtime = runtime()?;
    let (_, all_done) = for_each(&articles, |article| {
        let profile = options.profile.as_deref();
        let context = Context::new(project, &pins, article, profile, &options.engine);
        let context = runtime.block_on(context)?;
        print(&article_text(article, &context))
    });
    both(all_read, all_done)?;
    Ok(Outcome::Holds)
}

fn article_text(article: &Article, context: &Context<'_>) -> String {
    let mut text = format!(
        "{} · profile {} · Postgres {} · engine {}: {}\n",
        article.slug,
        context.resolved.profile,
        context.versions(),
        context.engine(),
        context.engine_reason()
    );
    let weighed = shards::weigh(article, &context.resolved, context.accepted.as_ref());
    let planned = context.plan(&Force::Nothing);
    let mut running = Vec::new();
    for (item, (one, basis)) in planned.iter().zip(&weighed) {
        let what = match &item.decision {
            Decision::Reuse(result) => format!("fresh, measured {}", result.measured_at),
            Decision::Run { reason, .. } => {
                running.push((one, *basis));
                format!("would run: {reason}{}", estimate(one, *basis))
            }
        };
        let _ = writeln!(text, "  {}: {what}", item.experiment.id.value);
    }
    let told = |(_, basis): &(_, Basis)| matches!(basis, Basis::Recorded | Basis::Cells);
    let all = match running.as_slice() {
        [] => "nothing to measure".to_owned(),
        running if running.iter().all(told) => {
            let micros = shards::length(running.iter().map(|(one, _)| *one));
            let seconds = micros.div_ceil(1_000_000);
            format!("{} to measure, about {}", running.len(), duration(seconds))
        }
        running => format!(
            "{} to measure; how long it takes is not recorded",
            running.len()
        ),
    };
    let _ = writeln!(text, "  {all}");
    text
}
