//! The article's text as a reader sees it: block by block, code and markup taken out, with the
//! way back to the source for every byte.

use super::claims_by_name;
use crate::article::{Article, BytesMeaning, Claim, FillIn};
use crate::parse::{MASK, markdown_options, mask};
use crate::quantity::{NumeralError, Unit, numeral};
use crate::source::{Extract, Span};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use std::collections::BTreeMap;
use std::ops::Range;

/// The text of one paragraph, heading or table cell.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub text: Extract,
    pub is_heading: bool,
    /// Parts of the text whose numbers are quoted, cited or linked to where they come from.
    pub bound: Vec<Range<usize>>,
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
            Event::Start(Tag::Heading { .. }) => {
                self.finish();
                self.run.is_heading = true;
            }
            Event::Text(text) if !self.code_block => self.run.text.push(&text, at),
            Event::SoftBreak | Event::HardBreak => self.run.text.push(" ", at),
            Event::Code(_)
            | Event::InlineHtml(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_) => {
                self.run.text.push(OBJECT.encode_utf8(&mut [0; 4]), at);
            }
            Event::Start(tag) if !is_inline(&tag.to_end()) => self.finish(),
            Event::End(tag) if !is_inline(&tag) => self.finish(),
            _ => {}
        }
    }

    fn finish(&mut self) {
        let run = std::mem::take(&mut self.run);
        if !run.text.text.trim().is_empty() {
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
            Some(claim) => self.quoted(claim, text),
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

fn is_inline(tag: &TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image
    )
}
