//! Every article that a command was asked for: those that can be read are done one after the other;
//! what came of all of them is told, reported and made an exit code of. Entry: [`each_judged`].
//!
//! 1. [`destinations`]: reports that could not be written are told before anything runs
//! 2. read: a mistake in one article does not keep the others from being done
//! 3. done one by one, until something breaks that would meet all
//! 4. [`combined`]: what weighs most is how the command ends
//! 5. reports: of everything that was planned, done or not

use super::build::{Built, experiments_exist};
use super::destinations;
use super::machines;
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
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// One article that was done.
pub struct Done<'a> {
    /// None: there was nothing to judge.
    pub built: Option<Built<'a>>,
    pub outcome: Outcome,
    /// What is wrong with the accepted record or a further machine's; told already.
    pub problems: Vec<Diagnostic>,
}

impl<'a> From<Built<'a>> for Done<'a> {
    /// What does not hold on another machine is a problem of its record.
    fn from(built: Built<'a>) -> Self {
        let problems = machines::findings(built.article, &built.machines);
        terminal::tell_diagnostics(&problems);
        Self {
            outcome: built.outcome(),
            built: Some(built),
            problems,
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
    let run = |problems, articles| Run {
        command,
        places: &places,
        exit_code: 0,
        problems,
        articles,
    };
    let found = (project.pins()).and_then(|pins| Ok((project.paths(names)?, pins)));
    let (paths, pins) = match found {
        Ok(found) => found,
        Err(failure) => {
            let run = run(Problem::of(&failure), Vec::new());
            return reported(run, Err(failure), options);
        }
    };
    destinations::are_no_articles(options, &paths)?;
    let articles = paths.iter().map(|path| project::read(path, &pins));
    let read: Vec<(&Path, Result<Article, Failure>)> =
        paths.iter().map(PathBuf::as_path).zip(articles).collect();
    forced_exist(options, &read)?;
    let mut work = Work::new(&read);
    work.run(&pins, one);
    let Work {
        entries,
        mut failures,
        unreadable,
    } = work;
    failures.extend(after().err());
    // The last thing said, unless something weighs more.
    failures.extend(unreadable.map(Failure::article));
    let outcome = worst(entries.iter().filter_map(|entry| match &entry.ended {
        Ended::Done(done) => Some(done.outcome),
        _ => None,
    }));
    let result = combined(failures, outcome);
    let articles = match options.reports.as_slice() {
        [] => Vec::new(),
        _ => entries.iter().map(asked).collect(),
    };
    reported(run(Vec::new(), articles), result, options)
}

/// Everything that was asked for, and how each has ended so far.
struct Work<'a> {
    entries: Vec<Entry<'a>>,
    failures: Vec<Failure>,
    /// What is told at the end of articles whose mistakes were told before the others were done.
    unreadable: Option<Diagnostic>,
}

struct Entry<'a> {
    file: &'a Path,
    article: Option<&'a Article>,
    ended: Ended<'a>,
}

enum Ended<'a> {
    Done(Box<Done<'a>>),
    Failed(Vec<Problem>),
    /// Not begun, for what came before it would meet it too.
    NotBegun,
}

impl<'a> Work<'a> {
    /// What is wrong with those that cannot be read is told at once where others take their time.
    fn new(read: &'a [(&'a Path, Result<Article, Failure>)]) -> Self {
        let mut work = Self {
            entries: Vec::new(),
            failures: Vec::new(),
            unreadable: None,
        };
        let mut problems = Vec::new();
        let mut slugs = Vec::new();
        for (file, article) in read {
            work.entries.push(Entry {
                file,
                article: article.as_ref().ok(),
                ended: match article {
                    Ok(_) => Ended::NotBegun,
                    Err(failure) => Ended::Failed(Problem::of(failure)),
                },
            });
            if let Err(failure) = article {
                problems.extend(
                    Problem::of(failure)
                        .into_iter()
                        .map(|problem| problem.diagnostic),
                );
                slugs.push(format!("`{}`", project::slug_of(file)));
            }
        }
        if problems.is_empty() {
            return work;
        }
        if slugs.len() == read.len() {
            work.failures.push(Failure::Article(problems));
            return work;
        }
        terminal::tell_diagnostics(&problems);
        let are = if slugs.len() == 1 { "is" } else { "are" };
        work.unreadable = Some(
            Diagnostic::error(format!(
                "{} of {} articles {are} wrong: {}",
                slugs.len(),
                read.len(),
                slugs.join(", ")
            ))
            .hint("what is wrong is told above, before anything was measured"),
        );
        work
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
            // The server goes as the stack unwinds; the panic has told its place.
            let done = catch_unwind(AssertUnwindSafe(|| one(pins, article)))
                .unwrap_or_else(|_| Err(Failure::internal("this is a bug of remeasure")));
            match done {
                Ok(done) => entry.ended = Ended::Done(Box::new(done)),
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
    read: &[(&Path, Result<Article, Failure>)],
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::sample;

    /// What each of three articles came to, where `one` does them.
    fn ended(one: impl FnMut(usize) -> Result<Outcome, Failure>) -> (Vec<&'static str>, u8) {
        let pins = Project::new(Some(Path::new(".")), None)
            .unwrap()
            .pins()
            .unwrap();
        let read: Vec<(&Path, Result<Article, Failure>)> =
            ["a/article.md", "b/article.md", "c/article.md"]
                .map(|file| (Path::new(file), Ok(sample::article("", Vec::new()))))
                .into();
        let mut work = Work::new(&read);
        let (mut one, mut next) = (one, 0..);
        work.run(&pins, |_, _| {
            one(next.next().unwrap()).map(|outcome| Done {
                built: None,
                outcome,
                problems: Vec::new(),
            })
        });
        let words = work.entries.iter().map(|entry| match &entry.ended {
            Ended::Done(_) => "done",
            Ended::Failed(_) => "failed",
            Ended::NotBegun => "not begun",
        });
        let words = words.collect();
        (
            words,
            number(&combined(work.failures, Outcome::DoesNotHold)),
        )
    }

    #[test]
    fn what_would_meet_all_ends_it_and_what_is_of_one_article_does_not() {
        let mistake = || Err(Failure::article(Diagnostic::error("a mistake")));
        assert_eq!(
            ended(|_| Ok(Outcome::Holds)),
            (vec!["done", "done", "done"], 3)
        );
        let second = |failure: fn() -> Result<Outcome, Failure>| {
            ended(move |index| {
                if index == 1 {
                    failure()
                } else {
                    Ok(Outcome::Holds)
                }
            })
        };
        assert_eq!(second(mistake), (vec!["done", "failed", "done"], 2));
        let engine = || Err(Failure::Engine(Diagnostic::error("no engine")));
        assert_eq!(second(engine), (vec!["done", "failed", "done"], 4));
        // Lighter than a figure that does not hold.
        let record = || Err(Failure::Record(Diagnostic::error("damaged")));
        assert_eq!(second(record), (vec!["done", "failed", "done"], 3));
        let broken = || Err(Failure::internal("disk full"));
        assert_eq!(second(broken), (vec!["done", "failed", "not begun"], 1));
        assert_eq!(
            second(|| panic!("a bug")),
            (vec!["done", "failed", "not begun"], 1)
        );
        let interrupted = || {
            Err(Failure::Interrupted {
                hint: String::new(),
            })
        };
        assert_eq!(
            second(interrupted),
            (vec!["done", "failed", "not begun"], 130)
        );
    }
}
