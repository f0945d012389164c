//! The command line: arguments into options, results into an exit code. What commands do stands
//! in [`crate::command`].

use crate::command::{
    self, Accepting, BuildOptions, Catalogue, CheckOptions, PlanOptions, Project, Quotes, Unpinned,
    Verbosity,
};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::engine::{Consent, EngineChoice, Engines, Environment};
use crate::exit_code::{Failure, Outcome, exit_code};
use crate::plan::Force;
use crate::plan::shards::Shard;
use crate::report::{self, REPORTS, Report};
use clap::{Args, Parser, Subcommand};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;

/// Reproducible articles about Postgres: every figure measured on a pinned server and checked.
///
/// Exit codes: 0 holds, 1 a bug of remeasure or a broken machine, 2 the article or the arguments
/// are wrong, 3 a claim or quote does not hold, 4 no engine could be had, 5 the record is missing
/// or stale, 130 interrupted.
#[derive(Parser)]
#[command(name = "remeasure", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// Folder that holds `articles/` (default: the nearest one upwards)
    #[arg(long, global = true, value_name = "FOLDER")]
    root: Option<PathBuf>,

    /// Where pages go (default: `out` in the root)
    #[arg(long, global = true, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// Print problems only
    #[arg(long, short, global = true)]
    quiet: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Measure what has no valid result on this machine, judge, and write the pages
    Build {
        #[command(flatten)]
        articles: Articles,
        #[command(flatten)]
        measuring: Measuring,
        /// Measure one shard of the experiments alone, such as `2/3`, and leave a record of it at
        /// `out/<article>/shard-2-of-3.json` for `remeasure merge`
        #[arg(long, value_name = "I/N", conflicts_with = "record")]
        shard: Option<String>,
        /// Measure nothing: analyse and render the measurements of these records, one an article
        #[arg(
            long,
            value_name = "FILE",
            num_args = 1..,
            conflicts_with_all = ["force", "profile"]
        )]
        record: Vec<PathBuf>,
    },
    /// Measure afresh and judge quotes and claims; write no page
    Check {
        #[command(flatten)]
        articles: Articles,
        #[command(flatten)]
        measuring: Measuring,
        /// Judge against the accepted record alone; needs no Postgres
        #[arg(long)]
        recorded: bool,
    },
    /// What a build would measure, why and for how long; or the same split into shards
    Plan {
        #[command(flatten)]
        articles: Articles,
        #[command(flatten)]
        place: Place,
        /// Among how many machines
        #[arg(long, value_name = "N")]
        shards: Option<u32>,
        /// Print this shard alone, from 1
        #[arg(long, value_name = "I", requires = "shards")]
        shard: Option<u32>,
        /// Print one JSON document that a CI matrix takes as it is
        #[arg(long)]
        json: bool,
    },
    /// Join what several machines measured of an article
    Merge {
        /// What `build --shard` left on each
        #[arg(value_name = "RECORD", required = true)]
        records: Vec<PathBuf>,
        /// Where it goes (default: `out/<article>/merged.json`)
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// For each experiment: fresh, stale or never measured, and why
    Status {
        #[command(flatten)]
        articles: Articles,
        #[command(flatten)]
        place: Place,
        /// Print every input of this experiment, fixture, claim, table or chart, and what changed
        #[arg(long, value_name = "ID")]
        explain: Option<String>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// What is measured beside what is accepted
    Diff {
        #[command(flatten)]
        articles: Articles,
        #[command(flatten)]
        place: Place,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Promote what is measured to `record.json`
    Accept {
        #[command(flatten)]
        articles: Articles,
        #[command(flatten)]
        place: Place,
        /// Write what was measured into the quotes that do not hold
        #[arg(long)]
        quotes: bool,
        /// Accept figures of an existing server, on which nothing is pinned
        #[arg(long)]
        unpinned: bool,
        /// Promote this record, measured on another machine, in place of what is measured here
        #[arg(long, value_name = "FILE", conflicts_with = "profile")]
        record: Option<PathBuf>,
        /// Put it beside the author's record, at `records/<name>.json`, named after its CPU
        #[arg(long, conflicts_with = "quotes")]
        beside: bool,
        /// The same under this name
        #[arg(long = "as", value_name = "NAME", conflicts_with = "quotes")]
        name: Option<String>,
    },
    /// Unbound figures and everything else that needs no measuring
    Lint {
        #[command(flatten)]
        articles: Articles,
    },
    /// Begin an article that builds as it stands
    New {
        /// Its folder's name below `articles/`
        slug: String,
    },
    /// Print a catalogue
    List {
        #[arg(value_enum)]
        catalogue: Catalogue,
    },
    /// Which engines are found, tried where, and why not
    Doctor,
    /// Remove what runs that were killed have left: containers, volumes, servers, folders
    Clean {
        /// And what is kept to start quickly: Postgres's programs and prepared data directories
        #[arg(long)]
        cache: bool,
        /// Only tell what would be removed
        #[arg(long)]
        dry_run: bool,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
struct Articles {
    /// Slugs, folders or files; none means all
    #[arg(value_name = "ARTICLE")]
    articles: Vec<String>,
}

#[derive(Args)]
struct Place {
    /// A profile of the article's front matter (default: `full`, the article as it stands; of
    /// `check --recorded` the record's)
    #[arg(long)]
    profile: Option<String>,
    /// Where Postgres comes from: auto (docker where its image can be had, else embedded), docker,
    /// embedded, url, or fake:FILE (default: what REMEASURE_ENGINE says, else auto)
    #[arg(long)]
    engine: Option<String>,
    /// Fetch nothing
    #[arg(long)]
    offline: bool,
    /// An existing server to measure on, unpinned: postgresql://user@host:port/database?sslmode=…;
    /// what it leaves open, the password above all, is read from PGPASSWORD and the other variables
    /// and files of libpq
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Let the article's SQL have all that the role of `--server` may do, a superuser's too
    #[arg(long)]
    trust: bool,
    /// Measure on a server of another major version than the article's
    #[arg(long)]
    any_version: bool,
}

#[derive(Args)]
struct Measuring {
    #[command(flatten)]
    place: Place,
    /// Measure again, whatever is stored: everything, or the experiments named
    #[arg(long, value_name = "ID", num_args = 0.., value_delimiter = ',')]
    force: Option<Vec<String>>,
    /// Write a report to a file (without one, or `-`: standard output), also where something fails;
    /// see `remeasure list reports`
    #[arg(long, value_name = "KIND[=FILE]")]
    report: Vec<String>,
    /// The same as `--report json`
    #[arg(long)]
    json: bool,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no mistakes; everything else is exit code 2, as documented.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    // The server goes as the stack unwinds; the panic has told its place.
    let result = catch_unwind(AssertUnwindSafe(|| run(&arguments)))
        .unwrap_or_else(|_| Err(Failure::internal("this is a bug of remeasure")));
    if let Err(failure) = &result {
        command::tell_failure(failure);
    }
    exit_code(&result)
}

fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    let project = Project::new(arguments.root.as_deref(), arguments.out.as_deref())?;
    match &arguments.command {
        Command::Build {
            articles,
            measuring,
            shard,
            record,
        } => command::build(
            &project,
            &articles.articles,
            &BuildOptions {
                shard: shard.as_deref().map(Shard::parse).transpose()?,
                records: record.clone(),
                ..build_options(arguments, measuring)?
            },
        ),
        Command::Check {
            articles,
            measuring,
            recorded,
        } => command::check(
            &project,
            &articles.articles,
            &CheckOptions {
                build: build_options(arguments, measuring)?,
                recorded: *recorded,
            },
        ),
        Command::Plan {
            articles,
            place,
            shards,
            shard,
            json,
        } => command::plan(
            &project,
            &articles.articles,
            &PlanOptions {
                profile: place.profile.clone(),
                engine: engines(arguments, place)?,
                shards: *shards,
                shard: *shard,
                json: *json,
            },
        ),
        Command::Merge { records, output } => command::merge(&project, records, output.as_deref()),
        Command::Status {
            articles,
            place,
            explain,
            json,
        } => command::status(
            &project,
            &articles.articles,
            place.profile.as_deref(),
            &engines(arguments, place)?,
            explain.as_deref(),
            *json,
        ),
        Command::Diff {
            articles,
            place,
            json,
        } => command::diff(
            &project,
            &articles.articles,
            place.profile.as_deref(),
            &engines(arguments, place)?,
            *json,
        ),
        Command::Accept {
            articles,
            place,
            quotes,
            unpinned,
            record,
            beside,
            name,
        } => command::accept(
            &project,
            &articles.articles,
            &Accepting {
                profile: place.profile.clone(),
                engine: engines(arguments, place)?,
                quotes: if *quotes {
                    Quotes::Rewrite
                } else {
                    Quotes::Tell
                },
                unpinned: if *unpinned {
                    Unpinned::Accept
                } else {
                    Unpinned::Refuse
                },
                record: record.clone(),
                place: if *beside || name.is_some() {
                    command::Place::Machine(name.clone())
                } else {
                    command::Place::Author
                },
                continuous_integration: std::env::var("CI")
                    .is_ok_and(|value| !["", "0", "false"].contains(&value.as_str())),
            },
        ),
        Command::Lint { articles } => command::lint(&project, &articles.articles),
        Command::New { slug } => command::new(&project, slug),
        Command::List { catalogue } => command::list(&project, *catalogue),
        Command::Doctor => command::doctor(&project),
        Command::Clean {
            cache,
            dry_run,
            json,
        } => command::clean(*cache, *dry_run, *json),
    }
}

fn engines(arguments: &Arguments, place: &Place) -> Result<Engines, Failure> {
    // A server that is named is an engine's word by itself, whatever this machine has otherwise.
    let of_this_machine = || match &place.server {
        Some(_) => None,
        None => std::env::var("REMEASURE_ENGINE").ok(),
    };
    let word = place.engine.clone().or_else(of_this_machine);
    let word = word.filter(|word| !word.is_empty());
    let consent = Consent {
        powerful_role: place.trust,
        any_version: place.any_version,
    };
    let asked = EngineChoice::asked(
        word.as_deref().unwrap_or("auto"),
        place.server.as_deref(),
        consent,
        &Environment::of_process(),
    )?;
    if let EngineChoice::Url(target) = &asked
        && let Some(warning) = target.warning()
    {
        command::tell_diagnostics([&warning]);
    }
    let tell = if arguments.quiet {
        |_: &str| {}
    } else {
        command::tell
    };
    Ok(Engines::new(asked, place.offline, tell))
}

fn build_options(arguments: &Arguments, measuring: &Measuring) -> Result<BuildOptions, Failure> {
    let json = measuring.json.then_some("json");
    let reports = (measuring.report.iter().map(String::as_str))
        .chain(json)
        .map(report)
        .collect::<Result<_, _>>()?;
    Ok(BuildOptions {
        profile: measuring.place.profile.clone(),
        engine: engines(arguments, &measuring.place)?,
        force: match &measuring.force {
            None => Force::Nothing,
            Some(ids) if ids.is_empty() => Force::Everything,
            Some(ids) => Force::Experiments(ids.clone()),
        },
        shard: None,
        records: Vec::new(),
        verbosity: if arguments.quiet {
            Verbosity::Quiet
        } else {
            Verbosity::Normal
        },
        look: command::look(),
        reports,
    })
}

fn report(text: &str) -> Result<(&'static Report, PathBuf), Failure> {
    let names = || REPORTS.iter().map(|report| report.name);
    let (kind, path) = text.split_once('=').unwrap_or((text, "-"));
    if path.is_empty() {
        return Err(Failure::article(
            Diagnostic::error(format!("`--report {text}` names no file"))
                .hint("write it as KIND=FILE, such as `json=report.json`"),
        ));
    }
    report::report(kind)
        .map(|report| (report, path.into()))
        .ok_or_else(|| {
            Failure::article(
                Diagnostic::error(format!("there is no report `{kind}`")).hint(
                    did_you_mean(kind, names()).unwrap_or_else(|| {
                        format!("there are {}", names().collect::<Vec<_>>().join(", "))
                    }),
                ),
            )
        })
}
