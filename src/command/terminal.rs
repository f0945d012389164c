//! What commands print: results on standard output, everything else on standard error. A reader
//! that has gone away (`remeasure list functions | head`) is no error and no panic.

use super::options::{BuildOptions, Verbosity};
use crate::diagnostic::Diagnostic;
use crate::exit_code::{Failure, Outcome};
use crate::judge;
use crate::record::Record;
use crate::record::store::write_atomically;
use crate::report::{self, Color, Judged, Look};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;

/// Text on standard output, with its own line ends.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::internal(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// A line on standard error. There is nobody left to tell when that fails.
pub fn tell(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// A line on standard error for who did not ask for quiet.
pub fn say(options: &BuildOptions, text: &str) {
    if options.verbosity == Verbosity::Normal {
        tell(text);
    }
}

/// Each with an empty line below.
pub fn tell_diagnostics<'d>(diagnostics: impl IntoIterator<Item = &'d Diagnostic>) {
    let color = error_color();
    for diagnostic in diagnostics {
        tell(&format!("{}\n", diagnostic.render(color)));
    }
}

/// What went wrong, as the last thing that is said.
pub fn tell_failure(failure: &Failure) {
    let color = error_color();
    match failure {
        Failure::Article(diagnostics) => {
            tell_diagnostics(diagnostics);
            if let [_, _, ..] = diagnostics.as_slice() {
                tell(&format!("{} problems", diagnostics.len()));
            }
        }
        Failure::Engine(diagnostic)
        | Failure::Record(diagnostic)
        | Failure::Internal(diagnostic) => tell(&diagnostic.render(color)),
        Failure::Interrupted { hint } => {
            let diagnostic = Diagnostic::error("interrupted").hint(hint.clone());
            tell(&diagnostic.render(color));
        }
    }
}

/// The table of claims and the page's place on standard output, each figure that does not hold at
/// its place in the article.
pub fn tell_verdicts(
    judged: &Judged<'_>,
    page: Option<&Path>,
    options: &BuildOptions,
) -> Result<(), Failure> {
    // A report on standard output has it to itself.
    let taken = options.reports.iter().any(|(_, path)| is_output(path));
    if options.verbosity == Verbosity::Normal && !taken {
        let table = report::report("terminal").expect("the catalogue has the terminal");
        print(&format!("{}\n", (table.write)(&[*judged], options.look)))?;
        if let Some(page) = page {
            print(&format!("{}\n", page.display()))?;
        }
    }
    let found = judged
        .verdicts
        .iter()
        .filter_map(|verdict| judge::explain(judged.article, verdict));
    tell_diagnostics(&found.collect::<Vec<_>>());
    Ok(())
}

/// Where the accepted record is another machine's: both machines, and what that means.
pub fn tell_machines(record: &Record, accepted: Option<&Record>, options: &BuildOptions) {
    let own = &record.environment.host;
    let Some(author) = (accepted.map(|accepted| &accepted.environment.host))
        .filter(|author| author.sha256 != own.sha256)
    else {
        return;
    };
    say(
        options,
        &format!(
            "the accepted record is another machine's; noisy claims are shown beside it, not judged\n  \
             author's: {}\n  this one: {}",
            author.machine(),
            own.machine()
        ),
    );
}

/// The reports that were asked for, over all articles.
pub fn write_reports(all: &[Judged<'_>], options: &BuildOptions) -> Result<(), Failure> {
    for (report, path) in &options.reports {
        if is_output(path) {
            print(&(report.write)(all, options.look))?;
            continue;
        }
        let look = Look {
            color: Color::Plain,
            ..options.look
        };
        write_atomically(path, (report.write)(all, look).as_bytes())
            .map_err(|error| Failure::io("write", path, &error))?;
    }
    Ok(())
}

fn is_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// One thing done for each article. A failure of one does not keep the others from it, but for
/// those that would meet all: being interrupted, or a machine that is broken. The failure that is
/// given back weighs most; the others are told.
pub fn for_each<'a, A, T>(
    articles: &'a [A],
    mut one: impl FnMut(&'a A) -> Result<T, Failure>,
) -> (Vec<T>, Result<(), Failure>) {
    let mut done = Vec::new();
    let mut problems = Vec::new();
    let mut worst: Option<Failure> = None;
    for article in articles {
        match one(article) {
            Ok(one) => done.push(one),
            Err(Failure::Article(mut found)) => problems.append(&mut found),
            Err(failure) => {
                let last = !matches!(failure, Failure::Engine(_) | Failure::Record(_));
                if let Some(earlier) = worst.replace(failure) {
                    tell_failure(&earlier);
                }
                if last {
                    break;
                }
            }
        }
    }
    let result = match worst {
        None if problems.is_empty() => Ok(()),
        None => Err(Failure::Article(problems)),
        Some(failure) => {
            tell_diagnostics(&problems);
            Err(failure)
        }
    };
    (done, result)
}

/// A figure that does not hold outweighs a stale record.
pub fn worst(outcomes: impl IntoIterator<Item = Outcome>) -> Outcome {
    let weight = |outcome: &Outcome| match outcome {
        Outcome::Holds => 0,
        Outcome::RecordStale => 1,
        Outcome::DoesNotHold => 2,
    };
    outcomes
        .into_iter()
        .max_by_key(weight)
        .unwrap_or(Outcome::Holds)
}

/// Of standard output.
pub fn look() -> Look {
    const PAGE: usize = 120;
    let width = console::Term::stdout().size_checked();
    Look {
        color: if io::stdout().is_terminal() && no_color_unset() {
            Color::Ansi
        } else {
            Color::Plain
        },
        // A page's width where there is no terminal.
        width: width.map_or(PAGE, |(_, columns)| usize::from(columns)),
    }
}

fn error_color() -> bool {
    io::stderr().is_terminal() && no_color_unset()
}

fn no_color_unset() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit_code::number;

    fn failure(name: &str) -> Failure {
        match name {
            "article" => Failure::article(Diagnostic::error("a mistake")),
            "record" => Failure::Record(Diagnostic::error("damaged")),
            "engine" => Failure::Engine(Diagnostic::error("no engine")),
            "interrupted" => Failure::Interrupted {
                hint: String::new(),
            },
            _ => Failure::internal("a bug"),
        }
    }

    #[test]
    fn one_articles_failure_keeps_no_other_from_being_done_unless_it_would_meet_all() {
        for (articles, done, code) in [
            (vec!["", ""], 2, 0),
            (vec!["article", "", "article"], 1, 2),
            (vec!["article", "engine", ""], 1, 4),
            (vec!["engine", "article", ""], 1, 4),
            (vec!["article", "record", ""], 1, 5),
            (vec!["", "interrupted", ""], 1, 130),
            (vec!["article", "", "internal", ""], 1, 1),
        ] {
            let (built, result) = for_each(&articles, |name| match *name {
                "" => Ok(()),
                name => Err(failure(name)),
            });
            assert_eq!(built.len(), done, "{articles:?}");
            assert_eq!(
                number(&result.map(|()| Outcome::Holds)),
                code,
                "{articles:?}"
            );
        }
    }

    #[test]
    fn a_figure_that_does_not_hold_outweighs_a_stale_record() {
        use Outcome::{DoesNotHold, Holds, RecordStale};
        assert_eq!(worst([]), Holds);
        assert_eq!(worst([Holds, RecordStale, Holds]), RecordStale);
        assert_eq!(worst([DoesNotHold, RecordStale]), DoesNotHold);
    }
}
