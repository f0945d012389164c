//! Text into an [`Article`], or every problem in it, each with its place and what to do. Pure: the
//! catalogues an article is checked against are handed in; beside the text only the files are read
//! that scripts of psql include.
//!
//! Entry: [`parse`]. Steps: the front matter ([`mod@front_matter`]); the body ([`markdown`]) into fences
//! ([`fences`]), fill-ins ([`fill_in`]) and the links of the prose ([`inline`]); of each block the
//! `--|` lines ([`directives`], [`yaml`], [`text`]), options and SQL ([`experiment`], [`results`], [`sql`]);
//! and at last whether everything named exists ([`references`]).

mod client;
mod directives;
mod experiment;
mod fences;
mod fill_in;
mod front_matter;
mod inline;
mod instruments;
mod markdown;
mod matrix;
mod problems;
mod protocol;
mod read;
mod references;
mod results;
#[cfg(test)]
pub(crate) mod sample;
pub mod sql;

pub use client::{arguments as program_arguments, count as repetitions};
#[cfg(test)]
mod tests;
mod text;
mod yaml;

pub use fences::outside_comments;
pub use front_matter::FULL_PROFILE;
pub use inline::SCHEMES;
pub use markdown::{MASK, markdown_options, mask};
pub use references::FILL_IN_ROOTS;

use crate::article::{
    Article, Block, BlockKind, FrontMatter, InstrumentOption, LinkTarget, Prose, TextWithFillIns,
    texts,
};
use crate::diagnostic::Diagnostic;
use crate::source::{Source, Span};
use directives::Sections;
use fences::{Fence, Role};
use problems::Problems;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;

/// What an article may name, out of the catalogues of other stages.
pub struct Known<'a> {
    pub versions: &'a [String],
    pub instruments: &'a [KnownInstrument],
    pub charts: &'a [&'a str],
    pub lint_rules: &'a [&'static str],
}

/// An instrument by its name, with the options it takes.
#[derive(Clone, Copy, Debug)]
pub struct KnownInstrument {
    pub name: &'static str,
    pub options: &'static [InstrumentOption],
    /// The results of its own, each with what it holds.
    pub tables: &'static [(&'static str, &'static str)],
    /// Whether it needs a statement that Postgres explains.
    pub explains: bool,
    /// Whether it reads of the measuring backend alone, which a program does not run on.
    pub of_backend: bool,
}

impl KnownInstrument {
    /// One without options.
    pub const fn plain(name: &'static str) -> Self {
        Self {
            name,
            options: &[],
            tables: &[],
            explains: false,
            of_backend: false,
        }
    }
}

/// Longer articles are taken for a mistake.
const MAX_BYTES: usize = 16 << 20;

/// Reads the article in `source`.
pub fn parse(
    source: &Arc<Source>,
    slug: &str,
    directory: &Path,
    known: &Known,
) -> Result<Article, Vec<Diagnostic>> {
    let problems = Problems::new(source);
    if source.text.len() > MAX_BYTES {
        let message = format!("the article is longer than {} MB", MAX_BYTES >> 20);
        problems.error(0..0, message, "keep data in files of their own");
        return Err(problems.into_sorted());
    }
    let (front_matter, start) = front_matter(&source.text, known, &problems);
    let (fences, mut prose, undefined) = markdown::read(&source.text, start, &problems);
    let (fences, mut blocks) = blocks(fences, known, &problems);
    if let Some(front_matter) = &front_matter {
        matrix::add_versions(&mut blocks, &front_matter.postgres, &problems);
    }
    add_links_of_texts(&mut prose, &texts(front_matter.as_ref(), &blocks));
    let names = references::Names::collect(&fences, &blocks, front_matter.as_ref(), &problems);
    names.check(&blocks, &prose, &undefined);
    let (files, unread) = client::included(&blocks, directory, source);
    problems.extend(unread);
    match front_matter {
        Some(front_matter) if problems.count() == 0 => Ok(Article {
            slug: slug.to_owned(),
            directory: directory.to_owned(),
            source: Arc::clone(source),
            front_matter,
            blocks,
            prose,
            files,
        }),
        _ => Err(problems.into_sorted()),
    }
}

/// Below this many fences a second thread costs more than it saves.
const FENCES_A_THREAD: usize = 32;

/// Reads the blocks in the fences, of a long article on several threads: no block depends on
/// another.
fn blocks(
    fences: Vec<Fence>,
    known: &Known,
    problems: &Problems,
) -> (Vec<(Fence, Sections)>, Vec<Block>) {
    let read = |fences: &[Fence]| {
        let problems = Problems::new(problems.source);
        let read: Vec<(Sections, Option<Block>)> = fences
            .iter()
            .map(|fence| {
                let sections = directives::sections(&fence.content, &problems);
                let block = block(fence, &sections, known, &problems);
                (sections, block)
            })
            .collect();
        (read, problems.into_sorted())
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let part = fences.len().div_ceil(threads).max(FENCES_A_THREAD);
    let parts: Vec<_> = std::thread::scope(|scope| {
        let mut parts = fences.chunks(part);
        let own = parts.next().unwrap_or_default();
        let others: Vec<_> = parts.map(|part| scope.spawn(move || read(part))).collect();
        let joined = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        std::iter::once(read(own)).chain(joined).collect()
    });
    let mut all = Vec::with_capacity(fences.len());
    let mut blocks = Vec::new();
    let mut fences = fences.into_iter();
    for (read, found) in parts {
        problems.extend(found);
        for ((sections, block), fence) in read.into_iter().zip(&mut fences) {
            all.push((fence, sections));
            blocks.extend(block);
        }
    }
    (all, blocks)
}

/// What titles, captions and alt texts quote is prose as well, in its place among the rest.
fn add_links_of_texts(prose: &mut Prose, texts: &[&TextWithFillIns]) {
    for link in texts.iter().flat_map(|text| &text.links) {
        match &link.target {
            LinkTarget::Quote(quote) => prose.quotes.push(quote.clone()),
            LinkTarget::Citation(citation) => prose.citations.push(citation.clone()),
            LinkTarget::Reference(reference) => prose.references.push(reference.clone()),
        }
    }
    prose.quotes.sort_by_key(|quote| quote.span);
    prose.citations.sort_by_key(|citation| citation.span);
    prose.references.sort_by_key(|reference| reference.span);
}

/// The front matter, where it can be read, and where the body begins.
fn front_matter(text: &str, known: &Known, problems: &Problems) -> (Option<FrontMatter>, usize) {
    if let Some((yaml, span)) = front_matter::find(text) {
        return (front_matter::read(&yaml, span, known, problems), span.end);
    }
    let begin = text.len() - text.trim_start_matches('\u{feff}').len();
    let first_line = text[begin..].lines().next().unwrap_or_default();
    let first = Span::new(begin, begin + first_line.trim_end().len());
    if first_line.trim_end() == "---" {
        problems.error(
            first,
            "the front matter is not closed",
            "end it with a line `---`",
        );
        (None, text.len())
    } else {
        problems.error(
            first,
            "the article does not begin with its front matter",
            "begin with a line `---`, then `title: …` and `postgres: {version: \"…\"}`, then a line `---`",
        );
        (None, begin)
    }
}

fn block(fence: &Fence, sections: &Sections, known: &Known, problems: &Problems) -> Option<Block> {
    let kind = match fence.role {
        Role::Fixture => BlockKind::Fixture(experiment::fixture(fence, sections, problems)),
        Role::Experiment => BlockKind::Experiment(Box::new(experiment::experiment(
            fence, sections, known, problems,
        ))),
        Role::Claims => BlockKind::Claims(results::claims(fence, sections, problems)),
        Role::Table => BlockKind::Table(Box::new(results::table(fence, sections, problems)?)),
        Role::Chart => {
            BlockKind::Chart(Box::new(results::chart(fence, sections, known, problems)?))
        }
    };
    Some(Block {
        id: fence.id.clone(),
        span: fence.span,
        content: fence.content.clone(),
        kind,
    })
}
