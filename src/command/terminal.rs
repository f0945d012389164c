//! What commands print: results on standard output, everything else on standard error. A reader
//! that has gone away (`remeasure list functions | head`) is no error and no panic.

use super::options::{BuildOptions, Verbosity};
use crate::diagnostic::Diagnostic;
use crate::exit_code::{Failure, Outcome, number, weight};
use crate::judge;
use crate::record::Record;
use crate::record::store::write_atomically;
use crate::report::{self, Color, Judged, Look, Run};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;

/// A document for programs, on standard output.
pub fn print_json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).expect("strings and lists are JSON");
    print(&format!("{text}\n"))
}

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
    let obeyed = std::env::var_os("GITHUB_ACTIONS").is_some();
    let text = if obeyed {
        disarmed(text)
    } else {
        text.to_owned()
    };
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// The runner of GitHub Actions obeys lines of a log that begin with `::` or have `##[` in them,
/// and a message of Postgres may have any line: an article is someone else's text.
fn disarmed(text: &str) -> String {
    let line = |line: &str| {
        let indent = line.len() - line.trim_start().len();
        let (indent, rest) = line.split_at(indent);
        let rest = match rest.strip_prefix("::") {
            Some(command) => format!(": :{command}"),
            None => rest.to_owned(),
        };
        format!("{indent}{}", rest.replace("##[", "## ["))
    };
    // As the runner splits it.
    let lines: Vec<String> = text.replace("\r\n", "\n").split('\n').map(line).collect();
    lines.join("\n").replace("\r", "\u{fffd}")
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
        let table = report::table(&[*judged], options.look);
        print(&format!("{table}\n"))?;
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
    tell_engines(record, accepted, options);
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

/// Values of claims are the same on every engine, times are not.
fn tell_engines(record: &Record, accepted: Option<&Record>, options: &BuildOptions) {
    let own = &record.environment.server.engine;
    let author = accepted.map(|accepted| &accepted.environment.server.engine);
    if let Some(author) = author.filter(|author| *author != own) {
        say(
            options,
            &format!(
                "the accepted record was measured on engine {author}, this on {own}: times may \
                 differ, exact and bounded claims may not; `--engine {author}` measures as the \
                 record was"
            ),
        );
    }
}

/// The reports that were asked for; those that cannot be written do not keep the others from it.
pub fn write_reports(run: &Run<'_>, options: &BuildOptions) -> Vec<Failure> {
    let mut failures = Vec::new();
    for (report, path) in &options.reports {
        if is_output(path) {
            failures.extend(print(&(report.write)(run, options.look)).err());
            continue;
        }
        let look = Look {
            color: Color::Plain,
            ..options.look
        };
        let written = write_report(path, (report.write)(run, look).as_bytes());
        failures.extend(
            written
                .err()
                .map(|error| Failure::io("write", path, &error)),
        );
    }
    failures
}

/// A file is replaced as a whole, where a link leads to; a device or a pipe is written to.
fn write_report(path: &Path, content: &[u8]) -> io::Result<()> {
    match fs::canonicalize(path) {
        Ok(whole) if whole.is_file() => write_atomically(&whole, content),
        Ok(device) => OpenOptions::new()
            .write(true)
            .open(device)?
            .write_all(content),
        Err(_) => write_atomically(path, content),
    }
}

pub fn is_output(path: &Path) -> bool {
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
    let mut failures = Vec::new();
    for article in articles {
        match one(article) {
            Ok(one) => done.push(one),
            Err(failure) => {
                let last = meets_all(&failure);
                failures.push(failure);
                if last {
                    break;
                }
            }
        }
    }
    (done, gathered(failures))
}

/// What came of reading all articles and of doing those that could be read.
pub fn both(all_read: Result<(), Failure>, all_done: Result<(), Failure>) -> Result<(), Failure> {
    gathered(
        [all_read, all_done]
            .into_iter()
            .filter_map(Result::err)
            .collect(),
    )
}

/// Whether the articles that come after this one would meet it too.
pub fn meets_all(failure: &Failure) -> bool {
    matches!(failure, Failure::Internal(_) | Failure::Interrupted { .. })
}

/// The mistakes of all articles are one failure. Of several the heaviest is given back, the others
/// are told.
pub fn gathered(failures: Vec<Failure>) -> Result<(), Failure> {
    let mut problems = Vec::new();
    let mut others = Vec::new();
    for failure in failures {
        match failure {
            Failure::Article(mut found) => problems.append(&mut found),
            other => others.push(other),
        }
    }
    if !problems.is_empty() {
        others.push(Failure::Article(problems));
    }
    let mut heaviest: Option<Result<Outcome, Failure>> = None;
    for failure in others {
        let failed = Err(failure);
        let told = match &heaviest {
            Some(before) if weight(number(before)) >= weight(number(&failed)) => Some(failed),
            _ => heaviest.replace(failed),
        };
        if let Some(Err(failure)) = told {
            tell_failure(&failure);
            if !matches!(failure, Failure::Article(_)) {
                tell("");
            }
        }
    }
    heaviest.unwrap_or(Ok(Outcome::Holds)).map(drop)
}

/// A figure that does not hold outweighs a stale record.
pub fn worst(outcomes: impl IntoIterator<Item = Outcome>) -> Outcome {
    outcomes
        .into_iter()
        .max_by_key(|outcome| weight(number(&Ok(*outcome))))
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
            (vec!["article", "record", ""], 1, 2),
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
    fn no_line_of_an_article_is_one_that_a_runner_obeys() {
        for (text, expected) in [
            ("error: a::b", "error: a::b"),
            ("a\n  ::error::b\n::stop\n", "a\n  : :error::b\n: :stop\n"),
            ("a ##[error]b", "a ## [error]b"),
            ("a\r::error::b\r\nc", "a\u{fffd}::error::b\nc"),
            ("\u{2003}::error::b", "\u{2003}: :error::b"),
        ] {
            assert_eq!(disarmed(text), expected);
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
