//! Turns an article, its record, the verdicts and the charts into files. Entry: [`fill`], which puts
//! every value in, then [`render`], which writes every format of [`FORMATS`]; [`index()`] lists the
//! articles that were built.

mod cells;
mod csv;
mod expressions;
mod highlight;
mod html;
mod index;
mod machines;
mod markdown;
mod masked;
mod number_format;
mod numbering;
mod record;
#[cfg(test)]
mod sample;
mod state;
mod templates;

pub use expressions::{Filled, FilledLink, FilledText, fill};
pub use index::{IndexEntry, index, index_entry};

use crate::article::Article;
use crate::diagnostic::Diagnostic;
use crate::judge::{Machine, Verdict};
use crate::record::Record;
use indexmap::IndexMap;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// One way to write an article down.
pub struct Format {
    pub name: &'static str,
    /// For the catalogue, one line.
    pub description: &'static str,
    pub render: fn(&Page, &Filled) -> Result<Vec<OutputFile>, Diagnostic>,
}

/// Every format, in the order of writing.
pub const FORMATS: &[Format] = &[
    Format {
        name: "html",
        description: "index.html: one self-contained page, each figure leading to its evidence",
        render: html::render,
    },
    Format {
        name: "markdown",
        description: "article.md and charts/*.svg: plain Markdown for any blog",
        render: markdown::render,
    },
    Format {
        name: "csv",
        description: "data/*.csv: every run, and the rows behind tables and charts",
        render: csv::render,
    },
    Format {
        name: "record",
        description: "record.json: everything measured, with its environment",
        render: record::render,
    },
];

/// What can be said of an article's pages before anything is measured.
pub fn check(article: &Article) -> Vec<Diagnostic> {
    let mut problems = expressions::check(article);
    problems.extend(csv::check(article));
    problems
}

/// All files of `out/<slug>/`.
pub fn render(page: &Page, filled: &Filled) -> Result<Vec<OutputFile>, Diagnostic> {
    let mut files: Vec<OutputFile> = Vec::new();
    let mut paths = BTreeSet::new();
    for format in FORMATS {
        for file in (format.render)(page, filled)? {
            if !paths.insert(file.path.clone()) {
                return Err(Diagnostic::error(format!(
                    "two files would be written to `{}`",
                    file.path.display()
                ))
                .hint("rename the block, the result or the asset"));
            }
            files.push(file);
        }
    }
    Ok(files)
}

/// Everything a page is made of.
pub struct Page<'a> {
    pub article: &'a Article,
    /// What this page shows: the measurements of this machine and profile.
    pub record: &'a Record,
    /// The same with this machine's own values alone, as it is written to `record.json`.
    pub measured: &'a Record,
    /// The author's accepted record, where there is one.
    pub accepted: Option<&'a Record>,
    /// Further machines' records, by name.
    pub machines: &'a [Machine],
    pub verdicts: &'a [Verdict],
    /// Chart id → SVG, fit for inlining and as a file.
    pub charts: &'a IndexMap<String, String>,
}

/// One file of `out/<slug>/`, by its path below that folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    pub path: PathBuf,
    pub content: Vec<u8>,
}

impl OutputFile {
    fn new(path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
        }
    }
}
