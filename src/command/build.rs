//! `build`: measures what has no valid result on this machine, analyses, judges, renders.
//!
//! 1. plan: what is stored, what has to run, and why
//! 2. engine, measure, analyse: only where something is missing
//! 3. record → judge → chart → render → report: pure, from the record

use super::interrupt;
use super::progress::{Bar, Durations, Verbosity};
use super::project::Project;
use super::record::{Context, StoredAnalysis, measurements};
use crate::analyse;
use crate::article::Article;
use crate::chart::{self, Chart};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::engine::pins::Pins;
use crate::engine::{self, EngineChoice, Server, StartRequest};
use crate::exit_code::{Failure, Outcome};
use crate::judge::{self, Verdict};
use crate::measure::{self, Fixtures, Request};
use crate::plan::{Decision, Force, PlannedExperiment, fingerprint};
use crate::quantity::Table;
use crate::record::Record;
use crate::record::store::{is_being_written, write_atomically, write_derived};
use crate::render::{self, Filled, IndexEntry, OutputFile, Page};
use crate::report::{self, Color, Judged, Look, Report};
use indexmap::IndexMap;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

#[derive(Clone)]
pub struct BuildOptions {
    /// None: `full`.
    pub profile: Option<String>,
    pub engine: EngineChoice,
    pub force: Force,
    /// Fetch nothing.
    pub offline: bool,
    pub verbosity: Verbosity,
    /// Of the table on standard output.
    pub look: Look,
    /// Further reports, each with the file it goes to (`-`: standard output).
    pub reports: Vec<(&'static Report, PathBuf)>,
}

/// Builds the named articles, or all.
pub fn build(
    project: &Project,
    names: &[String],
    options: &BuildOptions,
) -> Result<Outcome, Failure> {
    let pins = project.pins()?;
    let articles = project.articles(names, &pins)?;
    forced_exist(&articles, &options.force)?;
    let runtime = runtime()?;
    let mut built = Vec::new();
    let mut problems = Vec::new();
    for article in &articles {
        match runtime.block_on(build_one(project, &pins, article, options)) {
            Ok(one) => built.push(one),
            // The others are still built; the exit code tells.
            Err(Failure::Article(mut found)) => problems.append(&mut found),
            Err(failure) => return Err(failure),
        }
    }
    write_index(project)?;
    let judged: Vec<Judged<'_>> = built.iter().map(Built::judged).collect();
    write_reports(&judged, options)?;
    if !problems.is_empty() {
        return Err(Failure::Article(problems));
    }
    Ok(worst(built.iter().map(|one| one.outcome)))
}

/// An experiment that is to be forced, and is in none of the articles, is a slip of the pen.
pub fn forced_exist(articles: &[Article], force: &Force) -> Result<(), Failure> {
    let Force::Experiments(forced) = force else {
        return Ok(());
    };
    let known: Vec<&str> = articles
        .iter()
        .flat_map(Article::experiments)
        .map(|experiment| experiment.id.value.as_str())
        .collect();
    let problems: Vec<Diagnostic> = forced
        .iter()
        .filter(|id| !known.contains(&id.as_str()))
        .map(|id| {
            let hint = did_you_mean(id, known.iter().copied())
                .unwrap_or_else(|| format!("there are {}", known.join(", ")));
            Diagnostic::error(format!("`--force {id}`: there is no such experiment")).hint(hint)
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
    pub outcome: Outcome,
}

impl Built<'_> {
    pub fn judged(&self) -> Judged<'_> {
        Judged {
            article: self.article,
            record: &self.record,
            verdicts: &self.verdicts,
        }
    }
}

/// A figure that does not hold outweighs a stale record.
pub fn worst(outcomes: impl IntoIterator<Item = Outcome>) -> Outcome {
    let mut worst = Outcome::Holds;
    for outcome in outcomes {
        worst = match (worst, outcome) {
            (Outcome::DoesNotHold, _) | (_, Outcome::DoesNotHold) => Outcome::DoesNotHold,
            (Outcome::RecordStale, _) | (_, Outcome::RecordStale) => Outcome::RecordStale,
            (Outcome::Holds, Outcome::Holds) => Outcome::Holds,
        };
    }
    worst
}

/// One thread: the server dies with the thread that started it.
pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(format!("cannot start the runtime: {error}")))
}

async fn build_one<'a>(
    project: &Project,
    pins: &Pins,
    article: &'a Article,
    options: &BuildOptions,
) -> Result<Built<'a>, Failure> {
    let problems = render::check(article);
    if !problems.is_empty() {
        return Err(Failure::Article(problems));
    }
    let context = Context::new(
        project,
        pins,
        article,
        options.profile.as_deref(),
        &options.engine,
    )?;
    let record = measured_record(&context, options).await?;
    let verdicts = judge::judge(
        article,
        &record,
        &judge::Context {
            profile: &record.profile,
            accepted: context.accepted.as_ref(),
            measured_here: true,
        },
    );
    let filled = render::fill(article, &record).map_err(Failure::Article)?;
    let charts = draw_charts(&context, &record, &filled)?;
    let page = Page {
        article,
        record: &record,
        accepted: context.accepted.as_ref(),
        verdicts: &verdicts,
        charts: &charts,
    };
    let files = render::render(&page, &filled).map_err(Failure::article)?;
    let folder = project.out.join(&article.slug);
    write_files(&folder, &files)?;
    remember_entry(&context, &render::index_entry(&page, &filled))?;
    let mut built = Built {
        article,
        record,
        verdicts,
        outcome: Outcome::Holds,
    };
    built.outcome = tell(&built.judged(), Some(&folder.join("index.html")), options);
    Ok(built)
}

/// The record of this machine and profile: from what is stored, or measured now.
pub async fn measured_record(
    context: &Context<'_>,
    options: &BuildOptions,
) -> Result<Record, Failure> {
    let planned = context.plan(&options.force);
    if let Some(record) = context.stored_record(&planned) {
        say(
            options,
            &format!("{}: nothing changed", context.article.slug),
        );
        return Ok(record);
    }
    let lock = context
        .store
        .lock(|| {
            say(
                options,
                "another build of this article is measuring; waiting for it",
            )
        })
        .map_err(|error| Failure::internal(format!("cannot lock the results: {error}")))?;
    // What the other build has measured meanwhile need not be measured again.
    let planned = context.plan(&options.force);
    if let Some(record) = context.stored_record(&planned) {
        return Ok(record);
    }
    let bar = announce(context, &planned, options);
    let result = on_server(context, &planned, options, &bar).await;
    bar.finish();
    result?;
    let planned = context.plan(&Force::Nothing);
    drop(lock);
    context.stored_record(&planned).ok_or_else(|| {
        Failure::internal("what was measured is not what was planned: a result is missing")
    })
}

/// Says which engine and why, and for each experiment what is done and why.
fn announce(
    context: &Context<'_>,
    planned: &[PlannedExperiment<'_>],
    options: &BuildOptions,
) -> Bar {
    say(
        options,
        &format!(
            "{} · profile {} · Postgres {} · engine {}: {}",
            context.article.slug,
            context.resolved.profile,
            context.server.version,
            context.server.engine,
            context.engine_reason
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

/// Starts the server, measures and analyses on it, and stops it, whatever happens.
async fn on_server(
    context: &Context<'_>,
    planned: &[PlannedExperiment<'_>],
    options: &BuildOptions,
    bar: &Bar,
) -> Result<(), Failure> {
    let request = StartRequest {
        pin: context.pin,
        settings: &context.article.front_matter.postgres.settings,
        cache: &engine::default_cache(),
        offline: options.offline,
        progress: &|line: &str| bar.line(line),
    };
    let front = &context.article.front_matter;
    let interrupted = || Failure::Interrupted {
        hint: format!(
            "what is measured is kept; the same command goes on from there: remeasure build {}",
            context.article.slug
        ),
    };
    let mut server = tokio::select! {
        started = engine::start(&options.engine, &request) => {
            started.map_err(|failure| failure.at(&context.article.source, front.postgres.version.span))?
        }
        () = interrupt::requested() => return Err(interrupted()),
    };
    let result = tokio::select! {
        result = measure_and_analyse(context, planned, &mut server, bar) => result,
        () = interrupt::requested() => Err(interrupted()),
    };
    let stopped = server.stop().await;
    result.and(stopped)
}

async fn measure_and_analyse(
    context: &Context<'_>,
    planned: &[PlannedExperiment<'_>],
    server: &mut Server,
    bar: &Bar,
) -> Result<(), Failure> {
    measure::prepare(server, context.article).await?;
    let mut environment = server.describe().await.map_err(Failure::from)?;
    environment.engine_reason.clone_from(&context.engine_reason);
    environment.sha256 = measure::environment::sha256(&environment);
    let mut fixtures = Fixtures::default();
    let mut problems = Vec::new();
    for item in planned {
        let Decision::Run { kept, .. } = &item.decision else {
            continue;
        };
        let request = Request {
            article: context.article,
            resolved: &context.resolved,
            experiment: item.experiment,
            inputs: &item.fingerprint,
            fingerprint: &fingerprint::sha256(&item.fingerprint),
            host: &context.host.sha256,
            kept: kept.as_deref(),
            store: &context.store,
        };
        match measure::measure(server, &mut fixtures, &request, bar).await {
            Ok(()) => {}
            // One experiment's mistake does not keep the others from being measured.
            Err(Failure::Article(mut found)) => problems.append(&mut found),
            Err(failure) => return Err(failure),
        }
    }
    if !problems.is_empty() {
        return Err(Failure::Article(problems));
    }
    let planned = context.plan(&Force::Nothing);
    let measured = measurements(&planned).ok_or_else(|| {
        Failure::internal("an experiment was measured, but its result is missing")
    })?;
    bar.line("  claims, tables and charts are evaluated");
    let analysis = analyse::analyse(server, context.article, &context.resolved, &measured).await?;
    context.store_analysis(
        &planned,
        &StoredAnalysis {
            server: environment,
            analysis,
        },
    )
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

/// Writes what differs and removes what an earlier build left in the folders that are all ours.
fn write_files(folder: &Path, files: &[OutputFile]) -> Result<(), Failure> {
    let mut written = BTreeSet::new();
    for file in files {
        let path = folder.join(&file.path);
        if fs::read(&path).ok().as_deref() != Some(&file.content) {
            let parent = path.parent().unwrap_or(folder);
            fs::create_dir_all(parent).map_err(|error| Failure::io("create", parent, &error))?;
            write_derived(&path, &file.content)
                .map_err(|error| Failure::io("write", &path, &error))?;
        }
        written.insert(path);
    }
    for ours in ["data", "charts"] {
        for entry in fs::read_dir(folder.join(ours))
            .into_iter()
            .flatten()
            .flatten()
        {
            let path = entry.path();
            // Another build of the article may be writing, or removing the same.
            let other_build = is_being_written(&path);
            if !written.contains(&path) && !other_build {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        return Err(Failure::io("remove", &path, &error));
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

fn say(options: &BuildOptions, text: &str) {
    if options.verbosity == Verbosity::Normal {
        eprintln!("{text}");
    }
}

/// Where an article's line of the index waits for the next build of another article.
const ENTRY: (&str, &str) = ("page", "entry.json");

fn remember_entry(context: &Context<'_>, entry: &IndexEntry) -> Result<(), Failure> {
    let json = serde_json::to_string(entry).expect("an entry serialises");
    context
        .store
        .cache(ENTRY.0, ENTRY.1, &json)
        .map_err(|error| Failure::internal(format!("cannot store the index entry: {error}")))
}

/// `out/index.html` over every article whose page is there.
fn write_index(project: &Project) -> Result<(), Failure> {
    let mut entries: Vec<IndexEntry> = fs::read_dir(project.state())
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|state| {
            let json = fs::read_to_string(state.path().join(ENTRY.0).join(ENTRY.1)).ok()?;
            serde_json::from_str::<IndexEntry>(&json).ok()
        })
        .filter(|entry| project.out.join(&entry.slug).join("index.html").is_file())
        .collect();
    if entries.is_empty() {
        return Ok(());
    }
    entries.sort_by(|a, b| a.slug.cmp(&b.slug));
    entries.dedup_by(|a, b| a.slug == b.slug);
    let file = render::index(&entries).map_err(Failure::Internal)?;
    write_files(&project.out, &[file])
}

/// The table of claims and the page's place on standard output, each figure that does not hold at
/// its place in the article.
pub fn tell(judged: &Judged<'_>, page: Option<&Path>, options: &BuildOptions) -> Outcome {
    if options.verbosity == Verbosity::Normal {
        let table = report::report("terminal").expect("the catalogue has the terminal");
        println!("{}", (table.write)(&[*judged], options.look));
        if let Some(page) = page {
            println!("{}", page.display());
        }
    }
    let mut outcome = Outcome::Holds;
    for verdict in judged.verdicts {
        if let Some(diagnostic) = judge::explain(judged.article, verdict) {
            let color = options.look.color == Color::Ansi;
            eprintln!("{}\n", diagnostic.render(color));
            outcome = Outcome::DoesNotHold;
        }
    }
    outcome
}

/// The reports that were asked for, over all articles.
pub fn write_reports(all: &[Judged<'_>], options: &BuildOptions) -> Result<(), Failure> {
    for (report, path) in &options.reports {
        let text = (report.write)(all, options.look);
        if path == Path::new("-") {
            print!("{text}");
        } else {
            write_atomically(path, text.as_bytes())
                .map_err(|error| Failure::io("write", path, &error))?;
        }
    }
    Ok(())
}
