//! Every article that a command was asked for: those that can be read are done one after the other;
//! what came of all of them is told, reported and made an exit code of. Entry: [`each_judged`].
//!
//! 1. [`destinations`]: reports that could not be written are told before anything runs
//! 2. read: a mistake in one article does not keep the others from being done
//! 3. done one by one, until something breaks that would meet all
//! 4. [`combined`]: what weighs most is how the command ends
//! 5. reports: of everything that was planned, done or not

use super::build::{Built, experiments_exist};
use super::options::BuildOptions;
use super::project::{self, Project};
use super::terminal::{self, gathered, worst};
use crate::article::Article;
use crate::diagnostic::Diagnostic;
use crate::engine::pins::Pins;
use crate::exit_code::{Failure, Outcome, number, weight};
use crate::judge;
use crate::lint;
use crate::plan::Force;
use crate::report::{Asked, Cause, Places, Problem, Run, Status};
use std::path::{Path, PathBuf};

/// One article that was done.
pub struct Done<'a> {
    /// None: there was nothing to judge.
    pub built: Option<Built<'a>>,
    pub outcome: Outcome,
    /// What is wrong with the accepted record; told already.
    pub problems: Vec<Diagnostic>,
}

impl<'a> From<Built<'a>> for Done<'a> {
    fn from(built: Built<'a>) -> Self {
        Self {
            outcome: built.outcome(),
            built: Some(built),
            problems: Vec::new(),
        }
    }
}

/// Does `one` for each article, `after` once at the end, and writes the reports.
pub fn each_judged(
    command: &str,
    project: &Project,
    names: &[String],
    options: &BuildOptions,
    one: impl for<'a> FnMut(&Pins, &'a Article) -> Result<Done<'a>, Failure>,
    after: impl FnOnce() -> Result<(), Failure>,
) -> Result<Outcome, Failure> {
    destinations::check(options)?;
    let places = places(project)?;
    let found = project
        .pins()
        .and_then(|pins| Ok((project.paths(names)?, pins)));
    let (paths, pins) = match found {
        Ok(found) => found,
        Err(failure) => {
            let run = Run {
                command,
                places: &places,
                exit_code: 0,
                problems: Problem::of(&failure),
                articles: Vec::new(),
            };
            return reported(run, Err(failure), options);
        }
    };
    destinations::are_no_articles(options, &paths)?;
    let read: Vec<(PathBuf, Result<Article, Failure>)> = paths
        .into_iter()
        .map(|path| {
            let article = project::read(&path, &pins);
            (path, article)
        })
        .collect();
    forced_exist(options, &read)?;
    let mut plan = Plan::new(&read);
    plan.run(&pins, one);
    plan.failures.extend(after().err());
    let outcome = worst(plan.entries.iter().filter_map(|entry| match &entry.ended {
        Ended::Done(done) => Some(done.outcome),
        _ => None,
    }));
    let result = combined(plan.failures, outcome);
    let run = Run {
        command,
        places: &places,
        exit_code: 0,
        problems: Vec::new(),
        articles: if options.reports.is_empty() {
            Vec::new()
        } else {
            plan.entries.iter().map(asked).collect()
        },
    };
    reported(run, result, options)
}

/// Everything that was asked for, and how each has ended so far.
struct Plan<'a> {
    entries: Vec<Entry<'a>>,
    failures: Vec<Failure>,
}

struct Entry<'a> {
    file: &'a Path,
    article: Option<&'a Article>,
    ended: Ended<'a>,
}

enum Ended<'a> {
    Done(Done<'a>),
    Failed(Vec<Problem>),
    /// Not begun, for what came before it would meet it too.
    NotBegun,
}

impl<'a> Plan<'a> {
    /// What is wrong with those that cannot be read is told at once where others take their time.
    fn new(read: &'a [(PathBuf, Result<Article, Failure>)]) -> Self {
        let (mut entries, mut failures) = (Vec::new(), Vec::new());
        let mut unreadable: Vec<(&Path, &Failure)> = Vec::new();
        for (file, article) in read {
            entries.push(Entry {
                file,
                article: article.as_ref().ok(),
                ended: match article {
                    Ok(_) => Ended::NotBegun,
                    Err(failure) => Ended::Failed(Problem::of(failure)),
                },
            });
            unreadable.extend(article.as_ref().err().map(|failure| (&**file, failure)));
        }
        if !unreadable.is_empty() && unreadable.len() < read.len() {
            for (_, failure) in &unreadable {
                terminal::tell_failure(failure);
            }
            let slugs: Vec<String> = unreadable
                .iter()
                .map(|(file, _)| format!("`{}`", project::slug_of(file)))
                .collect();
            let (are, many) = match slugs.len() {
                1 => ("is", "article"),
                _ => ("are", "articles"),
            };
            let summary = format!(
                "{} of {} articles {are} wrong: {}",
                slugs.len(),
                read.len(),
                slugs.join(", ")
            );
            let hint =
                format!("the mistakes of the {many} are told above, before anything was measured");
            failures.push(Failure::article(Diagnostic::error(summary).hint(hint)));
        } else {
            let problems = unreadable.iter().flat_map(|(_, failure)| match failure {
                Failure::Article(problems) => problems.clone(),
                _ => Vec::new(),
            });
            let problems: Vec<Diagnostic> = problems.collect();
            if !problems.is_empty() {
                failures.push(Failure::Article(problems));
            }
        }
        Self { entries, failures }
    }

    fn run(
        &mut self,
        pins: &Pins,
        mut one: impl for<'b> FnMut(&Pins, &'b Article) -> Result<Done<'b>, Failure>,
    ) {
        for entry in &mut self.entries {
            let (Some(article), Ended::NotBegun) = (entry.article, &entry.ended) else {
                continue;
            };
            match one(pins, article) {
                Ok(done) => entry.ended = Ended::Done(done),
                Err(failure) => {
                    entry.ended = Ended::Failed(Problem::of(&failure));
                    let meets_all = terminal::meets_all(&failure);
                    self.failures.push(failure);
                    if meets_all {
                        break;
                    }
                }
            }
        }
    }
}

/// An article as reports have it.
fn asked<'a>(entry: &'a Entry<'a>) -> Asked<'a> {
    let (built, mut problems, status) = match &entry.ended {
        Ended::NotBegun => (None, Vec::new(), Status::NotDone),
        Ended::Failed(problems) => (None, problems.clone(), Status::Failed),
        Ended::Done(done) => {
            let status = match done.outcome {
                Outcome::Holds => Status::Holds,
                Outcome::DoesNotHold => Status::DoesNotHold,
                Outcome::RecordStale => Status::RecordStale,
            };
            let problems = Problem::all(Cause::Record, &done.problems);
            (done.built.as_ref(), problems, status)
        }
    };
    // One of severity error may have been what the article failed for.
    for found in entry.article.map(lint::lint).unwrap_or_default() {
        if problems.iter().all(|problem| problem.diagnostic != found) {
            problems.extend(Problem::all(Cause::Lint, &[found]));
        }
    }
    Asked {
        slug: project::slug_of(entry.file),
        file: entry.file,
        article: entry.article,
        judged: built.map(Built::judged),
        explanations: built.map_or_else(Vec::new, |built| {
            let verdicts = built.verdicts.iter();
            verdicts
                .map(|verdict| judge::explain(built.article, verdict))
                .collect()
        }),
        problems,
        status,
    }
}

/// What weighs most is given back, the rest is told.
fn combined(failures: Vec<Failure>, outcome: Outcome) -> Result<Outcome, Failure> {
    match gathered(failures) {
        Ok(()) => Ok(outcome),
        Err(failure) => {
            let failed = Err(failure);
            if weight(number(&failed)) > weight(number(&Ok(outcome))) {
                return failed;
            }
            if let Err(failure) = failed {
                terminal::tell_failure(&failure);
            }
            Ok(outcome)
        }
    }
}

/// Writes the reports; that one cannot be written makes nothing else untold.
fn reported(
    mut run: Run<'_>,
    result: Result<Outcome, Failure>,
    options: &BuildOptions,
) -> Result<Outcome, Failure> {
    run.exit_code = number(&result);
    let mut failures = terminal::write_reports(&run, options);
    match result {
        Ok(outcome) => combined(failures, outcome),
        Err(failure) => {
            failures.insert(0, failure);
            combined(failures, Outcome::Holds)
        }
    }
}

fn forced_exist(
    options: &BuildOptions,
    read: &[(PathBuf, Result<Article, Failure>)],
) -> Result<(), Failure> {
    let Force::Experiments(forced) = &options.force else {
        return Ok(());
    };
    // It may be in one that cannot be read.
    let articles: Option<Vec<&Article>> = read
        .iter()
        .map(|(_, article)| article.as_ref().ok())
        .collect();
    match articles {
        Some(articles) => experiments_exist("--force", forced, &articles),
        None => Ok(()),
    }
}

/// Absolute, as far as the letters of the paths say.
fn places(project: &Project) -> Result<Places, Failure> {
    let here = std::env::current_dir().map_err(|error| {
        Failure::internal(format!("cannot tell the working directory: {error}"))
    })?;
    let root = here.join(&project.root);
    let canonical = std::fs::canonicalize(&root).unwrap_or_else(|_| root.clone());
    let repository = canonical
        .ancestors()
        .find(|folder| folder.join(".git").exists())
        .unwrap_or(&canonical)
        .to_owned();
    Ok(Places {
        here,
        root,
        repository,
    })
}

mod destinations {
    //! Where reports go must be fit for one before anything is measured for it.

    use super::*;
    use crate::command::terminal::is_output;
    use std::fs;

    /// A file given twice or in no folder is a slip of the pen.
    pub fn check(options: &BuildOptions) -> Result<(), Failure> {
        let mut problems = Vec::new();
        let mut seen: Vec<(String, PathBuf)> = Vec::new();
        for (report, path) in &options.reports {
            let argument = format!("{}={}", report.name, path.display());
            let whole = match whole_path(path) {
                Ok(whole) => whole,
                Err(problem) => {
                    let message = format!("`--report {argument}`: {problem}");
                    problems.push(
                        Diagnostic::error(message).hint("name a file in a folder that is there"),
                    );
                    continue;
                }
            };
            match seen.iter().find(|(_, other)| *other == whole) {
                Some((other, _)) => problems.push(
                    Diagnostic::error(format!(
                        "`--report {argument}` and `--report {other}` go to one place"
                    ))
                    .hint("give each report a file of its own"),
                ),
                None => seen.push((argument, whole)),
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Failure::Article(problems))
        }
    }

    /// A report must not take the place of what it is about.
    pub fn are_no_articles(options: &BuildOptions, articles: &[PathBuf]) -> Result<(), Failure> {
        let sources = articles.iter().flat_map(|article| {
            let record = article.with_file_name("record.json");
            [article.clone(), record]
        });
        let sources: Vec<PathBuf> = sources
            .filter_map(|path| fs::canonicalize(path).ok())
            .collect();
        for (report, path) in &options.reports {
            if fs::canonicalize(path).is_ok_and(|path| sources.contains(&path)) {
                let (name, path) = (report.name, path.display());
                return Err(Failure::article(
                    Diagnostic::error(format!(
                        "`--report {name}={path}` would overwrite the article"
                    ))
                    .hint("give the report a file of its own"),
                ));
            }
        }
        Ok(())
    }

    /// The one path that all ways to write it lead to, if a file can be written there.
    fn whole_path(path: &Path) -> Result<PathBuf, String> {
        if is_output(path) {
            return Ok(path.to_owned());
        }
        if let Ok(whole) = fs::canonicalize(path) {
            if whole.is_dir() {
                return Err("this is a folder".to_owned());
            }
            if !whole.is_file() {
                // A device or a pipe is written to as it is.
                return Ok(whole);
            }
            return writable(whole);
        }
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let Ok(whole) = fs::canonicalize(folder) else {
            return Err(format!("there is no folder `{}`", folder.display()));
        };
        match path.file_name() {
            Some(name) => writable(whole.join(name)),
            None => Err("this names no file".to_owned()),
        }
    }

    /// Tries what writing it will do.
    fn writable(whole: PathBuf) -> Result<PathBuf, String> {
        let folder = whole.parent().unwrap_or(Path::new("/"));
        match tempfile::Builder::new()
            .prefix(".writing-")
            .tempfile_in(folder)
        {
            Ok(_) => Ok(whole),
            Err(error) => Err(format!(
                "nothing can be written in `{}`: {}",
                folder.display(),
                io_words(&error)
            )),
        }
    }

    /// Without the temporary file's name, which is nobody's.
    fn io_words(error: &std::io::Error) -> String {
        match error.raw_os_error() {
            Some(code) => std::io::Error::from_raw_os_error(code).to_string(),
            None => error.kind().to_string(),
        }
    }
}
