//! Turns an article, its record, the verdicts and the charts into files. Entry: [`render`].

use crate::article::Article;
use crate::judge::Verdict;
use crate::record::Record;
use indexmap::IndexMap;
use std::path::PathBuf;

/// Everything a page is made of.
pub struct Page<'a> {
    pub article: &'a Article,
    /// What this page shows: the measurements of this machine and profile.
    pub record: &'a Record,
    /// The author's accepted record, where there is one.
    pub accepted: Option<&'a Record>,
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
