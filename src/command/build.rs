//! `build`: measures what has no valid result on this machine, analyses, judges, renders.
//!
//! 1. plan: what is stored, what has to run, and why
//! 2. engine, measure, analyse: only where something is missing
//! 3. record → judge → chart → render → report: pure, from the record

use super::asked::{Done, each_judged};
use super::interrupt;
use super::lock;
use super::machines;
use super::options::BuildOptions;
use super::output::{self, Written};
use super::parts::{Given, measure_part};
use super::plan::selected;
use super::progress::{Bar, Durations};
use super::project::Project;
use super::record::{Context, record_path};
use super::terminal::{self, say};
use super::work::Work;
use crate::article::Article;
use crate::chart::{self, Chart};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::engine::pins::Pins;
use crate::engine::{self, EngineChoice, StartRequest};
use crate::exit_code::{Failure, Outcome};
use crate::judge::{self, Machine, Verdict};
use crate::lint;
use crate::plan::shards::Shard;
use crate::plan::{Decision, Force, PlannedExperiment};
use crate::quantity::Table;
use crate::record::{Record, read_record};
use crate::render::{self, Filled, Page};
use crate::report::{self, Judged};
use indexmap::IndexMap;
use std::pin::{Pin, pin};

/// Builds the named articles, or all.
pub fn build(
    project: &Project,
    names: &[String],
    options: &BuildOptions,
) -> Result<Outcome, Failure> {
    let runtime = runtime()?;
    let shard = (options.shard)
        .map(|shard| selected(project, names, options, shard))
        .transpose()?;
    let given = Given::read(&options.records)?;
    let names = given.articles(names);
    each_judged(
        "build",
        project,
        &names,
        options,
        |pins, article| match &shard {
            Some(shard) => runtime.block_on(measure_part(project, pins, article, options, shard)),
            None => {
                let record = given.of(article, pins)?;
                runtime.block_on(build_one(project, pins, article, options, record))
            }
        },
        || match &shard {
            Some(_) => Ok(()),
            None => runtime.block_on(output::write_index(project, options)),
        },
    )
}

/// An experiment that is named to an option, and is in none of the articles, is a slip of the pen.
pub fn experiments_exist(
    option: &str,
    named: &[String],
    articles: &[&Article],
) -> Result<(), Failure> {
    let known: Vec<&str> = articles
        .iter()
        .flat_map(|article| article.experiments())
        .map(|experiment| experiment.id.value.as_str())
        .collect();
    let problems: Vec<Diagnostic> = named
        .iter()
        .filter(|id| !known.contains(&id.as_str()))
        .map(|id| {
            let hint = if articles.iter().any(|article| article.slug == *id) {
                format!("that is an article: name it before `{option}`")
            } else {
                did_you_mean(id, known.iter().copied())
                    .unwrap_or_else(|| format!("there are {}", known.join(", ")))
            };
            Diagnostic::error(format!("`{option} {id}`: there is no such experiment")).hint(hint)
        })
        .collect();
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Failure::Article(problems))
    }
}

/// One article that was measured and judged.
pub struct Built<'a> {
    pub article: &'a Article,
    pub record: Record,
    pub verdicts: Vec<Verdict>,
    /// Further machines' records, judged too.
    pub machines: Vec<Machine>,
}

impl Built<'_> {
    pub fn judged(&self) -> Judged<'_> {
        Judged {
            article: self.article,
            record: &self.record,
            verdicts: &self.verdicts,
            machines: &self.machines,
        }
    }

    /// What is true on every machine has to hold on each of them.
    pub fn outcome(&self) -> Outcome {
        match report::Count::of(&self.verdicts).does_not_hold {
            0 if !machines::any_fails(&self.machines) => Outcome::Holds,
            _ => Outcome::DoesNotHold,
        }
    }
}

/// One thread: the server dies with the thread that started it.
pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(format!("cannot start the runtime: {error}")))
}

/// What keeps an article from being built before anything is measured.
pub fn refuse(article: &Article) -> Result<(), Failure> {
    let mut problems = render::check(article);
    problems.extend(lint::errors(article));
    match problems.as_slice() {
        [] => Ok(()),
        _ => Err(Failure::Article(problems)),
    }
}

/// `given`: a record whose measurements are built from, in place of this machine's.
async fn build_one<'a>(
    project: &Project,
    pins: &Pins,
    article: &'a Article,
    options: &BuildOptions,
    given: Option<Record>,
) -> Result<Done<'a>, Failure> {
    refuse(article)?;
    let profile = match &given {
        Some(record) => Some(record.profile.as_str()),
        None => options.profile.as_deref(),
    };
    let mut context = Context::new(project, pins, article, profile, &options.engine).await?;
    if let Some(record) = &given {
        context = context.with(record.clone());
    }
    let machines = machines::machines(article, context.accepted.as_ref(), pins)?;
    let measured = measured_record(&mut context, options).await?;
    let theirs = judge::with_their_claims(article, &measured, &machines);
    let record = theirs.as_ref().unwrap_or(&measured);
    let verdicts = judge::judge(
        article,
        record,
        &judge::Context {
            profile: &record.profile,
            accepted: context.accepted.as_ref(),
            measured_here: true,
        },
    );
    let filled = render::fill(article, record).map_err(Failure::Article)?;
    let charts = draw_charts(&context, record, &filled)?;
    let page = Page {
        article,
        record,
        measured: &measured,
        accepted: context.accepted.as_ref(),
        machines: &machines,
        verdicts: &verdicts,
        charts: &charts,
    };
    let folder = project.out.join(&article.slug);
    let written = Written {
        files: render::render(&page, &filled).map_err(Failure::article)?,
        entry: render::index_entry(&page, &filled),
    };
    output::write_article(&context, project, &folder, &written, options).await?;
    let built = Built {
        article,
        record: theirs.unwrap_or(measured),
        verdicts,
        machines,
    };
    terminal::tell_machines(&built.record, context.accepted.as_ref(), options);
    terminal::tell_verdicts(&built.judged(), Some(&folder.join("index.html")), options)?;
    Ok(built.into())
}

/// The record of this machine and profile: from what is stored, or measured now. Measuring, or
/// waiting for who measured, takes long enough to accept something: the accepted record is then read
/// again.
pub async fn measured_record(
    context: &mut Context<'_>,
    options: &BuildOptions,
) -> Result<Record, Failure> {
    let planned = planned(context, options);
    if let Some(record) = context.stored_record(&planned) {
        say(
            options,
            &format!("{}: nothing changed", context.article.slug),
        );
        return Ok(record);
    }
    let mut interrupt = pin!(interrupt::requested());
    let lock = tokio::select! {
        biased;
        () = &mut interrupt => return Err(interrupted(context, options)),
        lock = lock::article(&context.store, &context.article.slug, |line| say(options, line)) => lock?,
    };
    let tell = |line: &str| say(options, line);
    // What the other build has measured meanwhile need not be measured again.
    let settled = tokio::select! {
        biased;
        () = &mut interrupt => None,
        settled = context.settle(&options.engine) => Some(settled),
    };
    match settled {
        Some(settled) => settled?,
        None => return Err(interrupted(context, options)),
    }
    tokio::select! {
        biased;
        () = &mut interrupt => return Err(interrupted(context, options)),
        found = context.find_host(options.engine.offline, &tell) => found?,
    }
    let planned = self::planned(context, options);
    if let Some(record) = context.stored_record(&planned) {
        context.accepted = read_record(&record_path(context.article))?;
        return Ok(record);
    }
    let bar = announce(context, &planned, options);
    let result = on_servers(context, &planned, options, &bar, interrupt).await;
    bar.finish();
    result?;
    let planned = context.plan(&Force::Nothing);
    drop(lock);
    let record = context.stored_record(&planned).ok_or_else(|| {
        Failure::internal("what was measured is not what was planned: a result is missing")
    })?;
    context.accepted = read_record(&record_path(context.article))?;
    Ok(record)
}

/// What is kept and what is measured. What a server refused is asked for again.
fn planned<'a>(context: &Context<'a>, options: &BuildOptions) -> Vec<PlannedExperiment<'a>> {
    let planned = context.plan(&options.force).into_iter();
    planned
        .map(|item| PlannedExperiment {
            decision: item.decision.tried_again(),
            ..item
        })
        .collect()
}

fn interrupted(context: &Context<'_>, options: &BuildOptions) -> Failure {
    let slug = &context.article.slug;
    let profile = match options.profile.as_deref() {
        Some(profile) => format!(" --profile {profile}"),
        None => String::new(),
    };
    let engine = match &options.engine.asked {
        EngineChoice::Auto => String::new(),
        named => format!(" --engine {named}"),
    };
    let shard = match options.shard {
        Some(Shard { shard, shards }) => format!(" --shard {shard}/{shards}"),
        None => String::new(),
    };
    let hint = if options.force == Force::Nothing {
        format!(
            "what is measured is kept; the same command goes on from there: \
             remeasure build {slug}{profile}{engine}{shard}"
        )
    } else {
        "what was measured before is kept; the same command starts over".to_owned()
    };
    Failure::Interrupted { hint }
}

/// Says which engine and why, and for each experiment what is done and why.
fn announce(
    context: &Context<'_>,
    planned: &[PlannedExperiment<'_>],
    options: &BuildOptions,
) -> Bar {
    let (slug, profile) = (&context.article.slug, &context.resolved.profile);
    let version = context.versions();
    if context.given.is_some() {
        let what = "measurements of the record that was given";
        say(
            options,
            &format!("{slug} · profile {profile} · Postgres {version} · {what}"),
        );
        return Bar::new(options.verbosity, Vec::new(), Durations::default());
    }
    say(
        options,
        &format!(
            "{slug} · profile {profile} · Postgres {version} · engine {}: {}",
            context.engine(),
            context.engine_reason()
        ),
    );
    let width = planned
        .iter()
        .map(|item| item.experiment.id.value.len())
        .max()
        .unwrap_or(0);
    let mut units = Vec::new();
    let mut durations = Durations::default();
    for item in planned {
        let id = &item.experiment.id.value;
        let cells = item.experiment.cells.rows.len();
        let what = match &item.decision {
            Decision::Reuse(_) => "kept: nothing it depends on changed".to_owned(),
            Decision::Run { reason, kept } => {
                let done = |cell: usize| {
                    kept.as_ref()
                        .is_some_and(|kept| kept.samples.iter().any(|s| s.cell == cell))
                };
                units.extend(
                    (0..cells)
                        .filter(|cell| !done(*cell))
                        .map(|cell| (id.clone(), cell)),
                );
                durations.learn(id, &context.stored(item.experiment));
                format!("runs: {reason}")
            }
        };
        say(options, &format!("  {id:width$}  {what}"));
    }
    Bar::new(options.verbosity, units, durations)
}

/// Measures on one server after the other, that of the first version last: what is measured on all
/// is analysed on it.
async fn on_servers(
    context: &Context<'_>,
    planned: &[PlannedExperiment<'_>],
    options: &BuildOptions,
    bar: &Bar,
    mut interrupt: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Failure> {
    let mut work = Work::new(context, planned, bar);
    for at in (1..context.servers.len()).chain([0]) {
        if !work.needs(&context.servers[at]) {
            continue;
        }
        if work.several() {
            bar.line(&format!("  on Postgres {}", context.pins[at].version));
        }
        on_server(&mut work, at, options, interrupt.as_mut()).await?;
    }
    match work.problems {
        problems if problems.is_empty() => Ok(()),
        problems => Err(Failure::Article(problems)),
    }
}

/// Starts the server of one version, does on it what is to be done, and stops it, whatever happens.
/// `at`: which of the article's versions.
async fn on_server(
    work: &mut Work<'_>,
    at: usize,
    options: &BuildOptions,
    mut interrupt: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Failure> {
    let (context, bar) = (work.context, work.bar);
    let (pin, chosen) = (context.pins[at], &context.engines[at]);
    let postgres = &context.article.front_matter.postgres;
    let request = StartRequest {
        pin,
        settings: &postgres.settings,
        limits: engine::Limits {
            memory: postgres.memory.as_deref(),
            cpus: postgres.cpus.as_deref(),
            shm_size: postgres.shm_size.as_deref(),
            platform: context.platform(),
        },
        cache: &engine::default_cache(),
        offline: options.engine.offline,
        progress: &|line: &str| bar.line(line),
    };
    let mut server = tokio::select! {
        biased;
        () = &mut interrupt => return Err(interrupted(context, options)),
        started = engine::start(&chosen.choice, &request) => {
            started.map_err(|failure| {
                let failure = chosen.with_both_reasons(failure);
                at_its_line(failure, context.article, &pin.version)
            })?
        }
    };
    let result = tokio::select! {
        biased;
        () = &mut interrupt => Err(interrupted(context, options)),
        result = work.on(&mut server, &context.servers[at]) => result,
    };
    let result = match result {
        Err(failure) => Err(server.explain(failure).await),
        done => done,
    };
    let stopped = server.stop().await;
    result.and(stopped).inspect_err(|_| {
        bar.finish();
        terminal::tell_diagnostics(&std::mem::take(&mut work.problems));
    })
}

/// A server that cannot start names the setting it is about; else it is the version.
fn at_its_line(failure: Failure, article: &Article, version: &str) -> Failure {
    let front = &article.front_matter;
    let text = article.source.slice(front.span);
    let place = |problem: Diagnostic| {
        let named = (front.postgres.settings.keys())
            .filter(|name| problem.message.contains(name.as_str()))
            .find_map(|name| Some((front.span.start + text.find(name.as_str())?, name.len())));
        match named {
            Some((start, length)) if problem.place.is_none() => {
                problem.at(&article.source, start..start + length)
            }
            _ => problem,
        }
    };
    let failure = match failure {
        Failure::Article(problems) => Failure::Article(problems.into_iter().map(place).collect()),
        other => other,
    };
    let named = front
        .postgres
        .all_versions()
        .find(|one| one.value == version);
    let named = named.unwrap_or(&front.postgres.version);
    failure.at(&article.source, named.span)
}

/// SVGs by chart id; a chart that was drawn before is taken from the store.
pub fn draw_charts(
    context: &Context<'_>,
    record: &Record,
    filled: &Filled,
) -> Result<IndexMap<String, String>, Failure> {
    const DRAWN: &str = "charts";
    let none = Table::default();
    let mut charts = IndexMap::new();
    let mut problems = Vec::new();
    for block in context.article.charts() {
        let id = &block.id.value;
        if record.skipped_because("chart", id).is_some() {
            continue;
        }
        let chart = Chart {
            block,
            table: record.charts.get(id).unwrap_or(&none),
            title: filled.chart_titles.get(id).cloned(),
            alt: filled.chart_alts.get(id).cloned().unwrap_or_default(),
            caption: filled.captions.get(id).cloned(),
        };
        let key = chart::cache_key(&chart);
        let svg = match context.store.cached(DRAWN, &key) {
            Some(svg) => svg,
            None => match chart::draw(&chart, &context.article.source) {
                Ok(svg) => {
                    // A cache that cannot be written only costs time.
                    let _ = context.store.cache(DRAWN, &key, &svg);
                    svg
                }
                Err(diagnostic) => {
                    problems.push(diagnostic);
                    continue;
                }
            },
        };
        charts.insert(id.clone(), svg);
    }
    if problems.is_empty() {
        Ok(charts)
    } else {
        Err(Failure::Article(problems))
    }
}
