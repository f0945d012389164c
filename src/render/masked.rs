//! An article's Markdown as events, each with its place in the source. Fill-ins are masked while
//! it is parsed, so that `{{ a[0] | fixed(1) }}` is one word of text; [`pieces`] finds them again.

use crate::article::{Article, FillIn};
use crate::parse::{SCHEMES, markdown_options, mask};
use crate::source::Span;
use pulldown_cmark::{Event, Parser};
use std::ops::Range;

/// The body of an article, as the parse stage saw it.
pub struct Masked {
    text: String,
    /// Where the body begins in the source.
    start: usize,
}

impl Masked {
    pub fn new(article: &Article) -> Self {
        let start = article.front_matter.span.end;
        let mut fill_ins: Vec<Span> = (article.prose.fill_ins.iter())
            .map(|fill_in| fill_in.span)
            .collect();
        fill_ins.sort();
        let ranges = fill_ins
            .iter()
            .map(|span| span.start - start..span.end - start);
        Self {
            text: mask(&article.source.text[start..], ranges),
            start,
        }
    }

    /// Its events, each with its range in the source.
    pub fn events(&self) -> Vec<(Event<'_>, Range<usize>)> {
        Parser::new_ext(&self.text, markdown_options())
            .into_offset_iter()
            .map(|(event, range)| (event, range.start + self.start..range.end + self.start))
            .collect()
    }
}

impl Masked {
    /// Where names are defined for links of ours: `[wal]: claim:wal`.
    pub fn own_definitions(&self) -> Vec<Span> {
        let parser = Parser::new_ext(&self.text, markdown_options());
        let mut spans: Vec<Span> = parser
            .reference_definitions()
            .iter()
            .filter(|(_, definition)| SCHEMES.iter().any(|s| definition.dest.starts_with(s)))
            .map(|(_, definition)| {
                let span = &definition.span;
                Span::new(span.start + self.start, span.end + self.start)
            })
            .collect();
        spans.sort();
        spans
    }
}

/// A piece of a text event.
pub enum Piece<'a> {
    Text(&'a str),
    FillIn(Span),
}

/// Cuts a text event at the fill-ins (sorted) that stand in it.
pub fn pieces<'a>(text: &'a str, range: &Range<usize>, fill_ins: &[FillIn]) -> Vec<Piece<'a>> {
    if text.len() != range.len() {
        return vec![Piece::Text(text)];
    }
    let first = fill_ins.partition_point(|fill_in| fill_in.span.start < range.start);
    let mut pieces = Vec::new();
    let mut at = 0;
    for fill_in in &fill_ins[first..] {
        if fill_in.span.end > range.end {
            break;
        }
        let start = fill_in.span.start - range.start;
        if start > at {
            pieces.push(Piece::Text(&text[at..start]));
        }
        pieces.push(Piece::FillIn(fill_in.span));
        at = fill_in.span.end - range.start;
    }
    if at < text.len() {
        pieces.push(Piece::Text(&text[at..]));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample::Sample;

    #[test]
    fn every_fill_in_is_found_in_the_events() {
        let sample = Sample::new();
        let article = &sample.article;
        let masked = Masked::new(article);
        let mut found = Vec::new();
        for (event, range) in masked.events() {
            if let Event::Text(text) = event {
                for piece in pieces(&text, &range, &article.prose.fill_ins) {
                    if let Piece::FillIn(span) = piece {
                        found.push(span);
                    }
                }
            }
        }
        let written: Vec<Span> = article.prose.fill_ins.iter().map(|f| f.span).collect();
        assert_eq!(found, written);
        for span in found {
            assert!(article.source.slice(span).starts_with("{{"));
        }
    }
}
