//! The command line: arguments into options, results into an exit code. What commands do stands
//! in [`crate::command`].

use crate::command::{self, BuildOptions, Catalogue, CheckOptions, Project, Quotes, Verbosity};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::engine::EngineChoice;
use crate::exit_code::{Failure, Outcome, exit_code};
use crate::plan::Force;
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
    /// Where Postgres comes from: auto, embedded, or fake:FILE
    #[arg(long, default_value = "auto")]
    engine: String,
}

#[derive(Args)]
struct Measuring {
    #[command(flatten)]
    place: Place,
    /// Measure again, whatever is stored: everything, or the experiments named
    #[arg(long, value_name = "ID", num_args = 0.., value_delimiter = ',')]
    force: Option<Vec<String>>,
    /// Fetch nothing
    #[arg(long)]
    offline: bool,
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
        } => command::build(
            &project,
            &articles.articles,
            &build_options(arguments, measuring)?,
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
        Command::Status {
            articles,
            place,
            explain,
            json,
        } => command::status(
            &project,
            &articles.articles,
            place.profile.as_deref(),
            &engine(place)?,
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
            &engine(place)?,
            *json,
        ),
        Command::Accept {
            articles,
            place,
            quotes,
        } => command::accept(
            &project,
            &articles.articles,
            place.profile.as_deref(),
            &engine(place)?,
            if *quotes {
                Quotes::Rewrite
            } else {
                Quotes::Tell
            },
            std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str())),
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

fn engine(place: &Place) -> Result<EngineChoice, Failure> {
    EngineChoice::parse(&place.engine)
}

fn build_options(arguments: &Arguments, measuring: &Measuring) -> Result<BuildOptions, Failure> {
    let json = measuring.json.then_some("json");
    let reports = (measuring.report.iter().map(String::as_str))
        .chain(json)
        .map(report)
        .collect::<Result<_, _>>()?;
    Ok(BuildOptions {
        profile: measuring.place.profile.clone(),
        engine: engine(&measuring.place)?,
        force: match &measuring.force {
            None => Force::Nothing,
            Some(ids) if ids.is_empty() => Force::Everything,
            Some(ids) => Force::Experiments(ids.clone()),
        },
        offline: measuring.offline,
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
