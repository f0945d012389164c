//! From a line of a script that psql names to the place in the article, or in the file beside it.

use super::psql::Problem;
use crate::article::{Article, ProgramScript};
use crate::diagnostic::Diagnostic;
use crate::source::{Source, Span};
use std::ops::Range;
use std::sync::Arc;

/// Where psql may say that something is.
pub struct Files<'a> {
    pub article: &'a Article,
    pub script: &'a ProgramScript,
    /// The name that the script has for psql.
    pub body: &'a str,
}

impl Files<'_> {
    /// Puts the problem where it is; `otherwise` where psql does not say.
    pub fn place(&self, diagnostic: Diagnostic, problem: &Problem, otherwise: Span) -> Diagnostic {
        let source = &self.article.source;
        if problem.file == self.body {
            let range = range(&self.script.body.text, problem);
            let span = range.map(|range| self.script.body.span(range));
            return diagnostic.at(source, span.unwrap_or(otherwise));
        }
        let included = self.article.files.get(&problem.file);
        let Some(included) = included.and_then(|file| file.script.as_ref()) else {
            return diagnostic.at(source, otherwise);
        };
        let source: &Arc<Source> = included;
        match range(&source.text, problem) {
            Some(range) => diagnostic.at(source, range),
            None => diagnostic.at(source, 0..0),
        }
    }
}

/// The source span of a line of a script, counted from one.
pub fn line(script: &ProgramScript, number: usize) -> Option<Span> {
    let range = line_range(&script.body.text, number)?;
    Some(script.body.span(range))
}

/// What the problem is about: the word that Postgres points at, where the line it shows is found at
/// or above the line psql stood at, else that line.
fn range(text: &str, problem: &Problem) -> Option<Range<usize>> {
    let last = line_range(text, problem.line)?;
    let pointed = problem.pointed.as_ref().and_then(|(shown, column)| {
        (1..=problem.line).rev().find_map(|number| {
            let range = whole_line(text, number)?;
            let line = &text[range.clone()];
            // The statement may begin in the middle of its first line.
            let at = line.find(shown.trim_end())?;
            let column = shown
                .char_indices()
                .nth(*column)
                .map_or(shown.len(), |(at, _)| at);
            Some(range.start + at + column)
        })
    });
    Some(match pointed {
        Some(start) => {
            let rest = &text[start..];
            let word = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            let one = rest.chars().next().map_or(0, char::len_utf8);
            start..start + word.max(one)
        }
        None => last,
    })
}

/// A line without the space around it.
fn line_range(text: &str, number: usize) -> Option<Range<usize>> {
    let whole = whole_line(text, number)?;
    let line = &text[whole.clone()];
    let end = whole.start + line.trim_end().len();
    let start = whole.start + line.len() - line.trim_start().len();
    Some(start.min(end)..end)
}

fn whole_line(text: &str, number: usize) -> Option<Range<usize>> {
    let mut at = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if index + 1 == number {
            return Some(at..at + line.len());
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_found_by_the_line_that_is_shown_or_by_its_number() {
        let text = "SELECT 1;\nSELECT 1,\n  µ, nope FROM\n  t;\n";
        let problem = |line, pointed: Option<(&str, usize)>| Problem {
            line,
            pointed: pointed.map(|(shown, column)| (shown.to_owned(), column)),
            ..Problem::default()
        };
        for (line, pointed, found) in [
            (4, Some(("  µ, nope FROM", 5)), Some("nope")),
            (4, Some(("  µ, nope FROM", 3)), Some(",")),
            (4, Some(("not there", 2)), Some("t;")),
            (2, None, Some("SELECT 1,")),
            (9, None, None),
        ] {
            let range = range(text, &problem(line, pointed));
            assert_eq!(range.map(|range| &text[range]), found, "{line} {pointed:?}");
        }
    }
}
