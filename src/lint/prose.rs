//! The article's text as a reader sees it: block by block, code and markup taken out, with the
//! way back to the source for every byte.

use super::claims_by_name;
use crate::article::{Article, BytesMeaning, Claim, FillIn};
use crate::parse::{MASK, markdown_options, mask};
use crate::quantity::{NumeralError, Unit, numeral};
use crate::source::{Extract, Span};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What kind of block a run is part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    #[default]
    Paragraph,
    List,
    Table,
}

/// The text of one paragraph, heading or table cell.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub text: Extract,
    /// The heading's level, 1 to 6.
    pub heading: Option<usize>,
    /// The number of the outermost block (a whole list, a whole table) that it is part of.
    pub block: usize,
    pub place: Place,
    /// Numbers of the headings above it, outermost first, its own last.
    pub section: Vec<usize>,
    /// A cell of a column whose numbers name things: versions, dates, ports.
    pub is_label: bool,
    /// Claims that are quoted, each with its link's text.
    pub quotes: Vec<(String, Range<usize>)>,
    /// Parts of the text whose numbers are quoted, cited or linked to where they come from.
    pub bound: Vec<Range<usize>>,
}

impl Run {
    /// What is filled in between its first and its last byte.
    pub fn fill_ins<'a>(&self, article: &'a Article) -> impl Iterator<Item = &'a str> {
        let span = self.text.span(0..self.text.text.len());
        let all = &article.prose.fill_ins;
        let first = all.partition_point(|one| one.span.start < span.start);
        let here = all[first..].iter();
        here.take_while(move |one| one.span.start < span.end)
            .map(|one| one.expression.as_str())
    }
}

/// Stands for something that is no text: code, an image, a formula.
pub(super) const OBJECT: char = '\u{fffc}';

/// All runs in the order of the document, front matter and blocks left out.
pub(super) fn runs(article: &Article) -> Vec<Run> {
    let masked = masked(&article.source.text, &article.prose.fill_ins);
    let start = article.front_matter.span.end;
    let mut reader = Reader {
        claims: claims_by_name(article),
        bytes: article.front_matter.bytes,
        start,
        run: Run::default(),
        runs: Vec::new(),
        links: Vec::new(),
        code_block: false,
        depth: 0,
        blocks: 0,
        place: Place::Paragraph,
        headings: Vec::new(),
        headings_seen: 0,
        table: TableReader::default(),
        settings: settings(article),
    };
    for (event, range) in Parser::new_ext(&masked[start..], markdown_options()).into_offset_iter() {
        reader.event(event, range);
    }
    reader.finish();
    reader.runs
}

/// The places of images that say nothing between their brackets.
pub(super) fn images_without_alt(article: &Article) -> Vec<Span> {
    let masked = masked(&article.source.text, &article.prose.fill_ins);
    let start = article.front_matter.span.end;
    let mut found = Vec::new();
    let mut open: Option<(Range<usize>, bool)> = None;
    for (event, range) in Parser::new_ext(&masked[start..], markdown_options()).into_offset_iter() {
        match event {
            Event::Start(Tag::Image { .. }) => open = Some((range, false)),
            Event::Text(text) | Event::Code(text) if !text.trim().is_empty() => {
                if let Some((_, has_text)) = &mut open {
                    *has_text = true;
                }
            }
            Event::End(TagEnd::Image) => {
                if let Some((range, false)) = open.take() {
                    found.push(Span::new(start + range.start, start + range.end));
                }
            }
            _ => {}
        }
    }
    found
}

/// `text` with each `{{ … }}` overwritten by one word of the same length, so that Markdown sees
/// no markup in it and all offsets stay true.
pub(super) fn masked(text: &str, fill_ins: &[FillIn]) -> String {
    mask(text, fill_ins.iter().map(|fill_in| fill_in.span.range()))
        .replace(MASK, OBJECT.encode_utf8(&mut [0; 4]))
}

struct Reader<'a> {
    claims: BTreeMap<&'a str, &'a Claim>,
    bytes: BytesMeaning,
    /// Where the body begins in the source.
    start: usize,
    run: Run,
    runs: Vec<Run>,
    /// Open links: target, and where their text begins in the run.
    links: Vec<(String, usize)>,
    code_block: bool,
    /// How many blocks are open.
    depth: usize,
    /// Outermost blocks begun so far.
    blocks: usize,
    /// Of the outermost open block.
    place: Place,
    /// Headings above, outermost first: level and number.
    headings: Vec<(usize, usize)>,
    headings_seen: usize,
    table: TableReader,
    /// Names whose values are set and not measured.
    settings: BTreeSet<String>,
}

/// Which columns of the open table hold names of things.
#[derive(Default)]
struct TableReader {
    in_head: bool,
    column: usize,
    labels: Vec<bool>,
}

impl Reader<'_> {
    fn event(&mut self, event: Event, range: Range<usize>) {
        let at = self.start + range.start;
        match event {
            Event::Start(Tag::CodeBlock(_)) => self.code_block = true,
            Event::End(TagEnd::CodeBlock) => self.code_block = false,
            Event::Start(Tag::Link { dest_url, .. }) => {
                self.links
                    .push((dest_url.into_string(), self.run.text.text.len()));
            }
            Event::End(TagEnd::Link) => self.close_link(),
            Event::Start(Tag::Heading { level, .. }) => {
                self.finish();
                self.begin_block(Place::Paragraph);
                self.begin_heading(level as usize);
            }
            Event::Text(text) if !self.code_block => self.run.text.push(&text, at),
            Event::SoftBreak | Event::HardBreak => self.run.text.push(" ", at),
            // `work_mem` at 4 MB is set and not measured.
            Event::Code(name) if self.settings.contains(name.as_ref()) => {
                self.run.text.push(&name, at + 1);
            }
            Event::Code(_)
            | Event::InlineHtml(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_) => {
                self.run.text.push(OBJECT.encode_utf8(&mut [0; 4]), at);
            }
            Event::Start(tag) if !is_inline(&tag.to_end()) => {
                self.finish();
                self.begin_block(match tag {
                    Tag::List(_) => Place::List,
                    Tag::Table(_) => Place::Table,
                    _ => Place::Paragraph,
                });
                match tag {
                    Tag::Table(_) => self.table = TableReader::default(),
                    Tag::TableHead => self.table.in_head = true,
                    Tag::TableRow => self.table.column = 0,
                    _ => {}
                }
            }
            Event::End(tag) if !is_inline(&tag) => {
                if tag == TagEnd::TableCell {
                    self.end_cell();
                }
                self.finish();
                self.depth = self.depth.saturating_sub(1);
                if tag == TagEnd::TableHead {
                    self.table.in_head = false;
                }
            }
            _ => {}
        }
    }

    fn begin_block(&mut self, place: Place) {
        if self.depth == 0 {
            self.blocks += 1;
            self.place = place;
        }
        self.depth += 1;
    }

    fn begin_heading(&mut self, level: usize) {
        self.run.heading = Some(level);
        self.headings.retain(|&(above, _)| above < level);
        self.headings_seen += 1;
        self.headings.push((level, self.headings_seen));
    }

    /// The first row of a table says what its columns are of.
    fn end_cell(&mut self) {
        if self.table.in_head {
            let labels = super::figures::heads_labels(&self.run.text.text);
            self.table.labels.push(labels);
        } else {
            let labels = self.table.labels.get(self.table.column);
            self.run.is_label = labels.copied().unwrap_or(false);
        }
        self.table.column += 1;
    }

    fn finish(&mut self) {
        let mut run = std::mem::take(&mut self.run);
        if !run.text.text.trim().is_empty() {
            run.block = self.blocks;
            run.place = self.place;
            run.section = self.headings.iter().map(|&(_, number)| number).collect();
            self.runs.push(run);
        }
        self.links.clear();
    }

    /// What a link binds: all of its text, or of a quote the numeral that is compared.
    fn close_link(&mut self) {
        let Some((target, start)) = self.links.pop() else {
            return;
        };
        let end = self.run.text.text.len();
        let text = &self.run.text.text[start..end];
        let bound = match target.strip_prefix("claim:") {
            Some(claim) => {
                let bound = self.quoted(claim, text);
                self.run.quotes.push((claim.to_owned(), start..end));
                bound
            }
            None => 0..text.len(),
        };
        self.run.bound.push(start + bound.start..start + bound.end);
    }

    fn quoted(&self, claim: &str, text: &str) -> Range<usize> {
        let claim = self.claims.get(claim);
        let bytes = claim.and_then(|claim| claim.bytes).unwrap_or(self.bytes);
        let unit = claim
            .and_then(|claim| claim.unit.as_deref())
            .map(|unit| Unit::new(unit, bytes));
        match numeral(text, unit.as_ref(), bytes) {
            Ok(numeral) => numeral.range,
            Err(NumeralError::Missing) => 0..0,
            // The quote will be told about by itself.
            Err(NumeralError::Malformed { .. }) => 0..text.len(),
        }
    }
}

/// Settings that posts about Postgres name, and those that the article sets itself.
pub(super) fn settings(article: &Article) -> BTreeSet<String> {
    let common = super::words::SETTINGS.iter().map(|&name| name.to_owned());
    let of_server = article.front_matter.postgres.settings.keys().cloned();
    let experiments = article.experiments();
    let of_experiments =
        experiments.flat_map(|one| one.settings.keys().chain(one.session.keys()).cloned());
    common.chain(of_server).chain(of_experiments).collect()
}

fn is_inline(tag: &TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image
    )
}
