//! The quotes of an article whose record was accepted just now: those that do not hold against it
//! are told, or rewritten where that was asked for.
//!
//! The file is written at once and whole, after the new text was read and judged: each quote that
//! was changed holds, and every other says what it said before.

use super::project::parsed;
use super::terminal::{print, tell_diagnostics};
use crate::article::Article;
use crate::diagnostic::{Diagnostic, Severity};
use crate::engine::pins::Pins;
use crate::exit_code::{Failure, Outcome};
use crate::judge::rewrite::{self, Rewriting};
use crate::judge::{self, Context, Subject};
use crate::plan::FULL;
use crate::record::Record;
use crate::record::store::write_atomically;
use crate::source::Source;
use std::fs;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quotes {
    /// Say which do not hold.
    Tell,
    /// Write what was measured.
    Rewrite,
}

/// Exit code 3 says that quotes were to be rewritten, and some do not hold all the same.
pub fn requote(
    article: &Article,
    record: &Record,
    quotes: Quotes,
    pins: &Pins,
) -> Result<Outcome, Failure> {
    match quotes {
        Quotes::Tell => {
            tell(article, record);
            Ok(Outcome::Holds)
        }
        Quotes::Rewrite => {
            let rewriting = rewrite::rewrite(article, record, &context(record));
            let rewritten = write(article, record, &rewriting, pins)?;
            // Places are those of the file as it is now.
            let now = rewritten.as_ref().unwrap_or(article);
            report(article, now, &rewriting)?;
            tell_diagnostics(&left(now, &rewriting));
            Ok(match rewriting.left.is_empty() {
                true => Outcome::Holds,
                false => Outcome::DoesNotHold,
            })
        }
    }
}

/// The record by itself, as `check --recorded` judges it.
fn context(record: &Record) -> Context<'_> {
    Context {
        profile: &record.profile,
        accepted: None,
        measured_here: false,
    }
}

/// Accepting a record is no reason to change the text by itself, but one to look at it.
fn tell(article: &Article, record: &Record) {
    let verdicts = judge::judge(article, record, &context(record));
    let quotes = verdicts
        .iter()
        .filter(|verdict| matches!(verdict.subject, Subject::Quote(_)));
    let warnings: Vec<Diagnostic> = quotes
        .filter_map(|verdict| judge::explain(article, verdict))
        .map(|mut diagnostic| {
            diagnostic.severity = Severity::Warning;
            let profile = match record.profile.as_str() {
                FULL => String::new(),
                profile => format!(" --profile {profile}"),
            };
            diagnostic.hint(format!(
                "`remeasure accept {} --quotes{profile}` writes what was measured",
                article.slug
            ))
        })
        .collect();
    tell_diagnostics(&warnings);
}

// ---- rewriting --------------------------------------------------------------------------------

/// The article as it is then, where anything was to be written.
fn write(
    article: &Article,
    record: &Record,
    rewriting: &Rewriting,
    pins: &Pins,
) -> Result<Option<Article>, Failure> {
    if rewriting.changes.is_empty() {
        return Ok(None);
    }
    let source = &article.source;
    let text = rewrite::apply(&source.text, &rewriting.changes);
    let rewritten = as_meant(article, record, rewriting, &text, pins).ok_or_else(|| {
        Failure::internal(format!(
            "the rewritten quotes of `{}` do not read as they were meant; nothing was rewritten",
            source.name
        ))
    })?;
    // A link stays one, and leads to the new text.
    let path = fs::canonicalize(&source.path)
        .map_err(|error| Failure::io("find", &source.path, &error))?;
    let failed = |error: &std::io::Error| Failure::io("write", &path, error);
    let now = fs::read(&path).map_err(|error| Failure::io("read", &path, &error))?;
    if now != source.text.as_bytes() {
        return Err(Failure::article(
            Diagnostic::error(format!("`{}` was edited meanwhile", source.name))
                .hint("run the same command again"),
        ));
    }
    let permissions = fs::metadata(&path)
        .map_err(|error| failed(&error))?
        .permissions();
    write_atomically(&path, text.as_bytes()).map_err(|error| failed(&error))?;
    fs::set_permissions(&path, permissions).map_err(|error| failed(&error))?;
    Ok(Some(rewritten))
}

/// The article of the new text, if that has the same quotes, with what was written, and just those
/// left that do not hold.
fn as_meant(
    article: &Article,
    record: &Record,
    rewriting: &Rewriting,
    text: &str,
    pins: &Pins,
) -> Option<Article> {
    let source = &article.source;
    let source = Source::new(source.name.clone(), source.path.clone(), text.to_owned());
    let after = parsed(source, pins).ok()?;
    let mut meant: Vec<(&str, &str)> = article
        .prose
        .quotes
        .iter()
        .map(|quote| (quote.claim.value.as_str(), quote.text.as_str()))
        .collect();
    for change in &rewriting.changes {
        meant[change.quote].1 = &change.after;
    }
    let found = after
        .prose
        .quotes
        .iter()
        .map(|quote| (quote.claim.value.as_str(), quote.text.as_str()));
    let same = found.eq(meant);
    let expected = Rewriting {
        changes: Vec::new(),
        left: rewriting.left.clone(),
    };
    (same && rewrite::rewrite(&after, record, &context(record)) == expected).then_some(after)
}

/// A line for each change, with its place.
fn report(before: &Article, now: &Article, rewriting: &Rewriting) -> Result<(), Failure> {
    let source = &now.source;
    let mut lines = String::new();
    for change in &rewriting.changes {
        let quote = &now.prose.quotes[change.quote];
        let (line, column) = source.line_column(quote.text_span.start);
        let old = &before.prose.quotes[change.quote].text;
        let (name, new) = (&source.name, &change.after);
        lines.push_str(&format!("{name}:{line}:{column}: {old} → {new}\n"));
    }
    let count = match rewriting.changes.len() {
        0 => "no quote was rewritten".to_owned(),
        1 => "1 quote rewritten".to_owned(),
        count => format!("{count} quotes rewritten"),
    };
    let left = match rewriting.left.len() {
        0 => String::new(),
        1 => ", 1 left that cannot be rewritten".to_owned(),
        left => format!(", {left} left that cannot be rewritten"),
    };
    print(&format!("{lines}{}: {count}{left}\n", source.name))
}

fn left(article: &Article, rewriting: &Rewriting) -> Vec<Diagnostic> {
    rewriting
        .left
        .iter()
        .map(|left| {
            let quote = &article.prose.quotes[left.quote];
            Diagnostic::warning(format!(
                "the quote of `{}` does not hold and cannot be rewritten",
                quote.claim.value
            ))
            .at(&article.source, quote.text_span)
            .label(left.reason.clone())
            .hint("change it by hand, or the claim")
        })
        .collect()
}
