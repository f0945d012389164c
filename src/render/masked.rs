//! An article's Markdown made fit for a Markdown parser: fill-ins and front matter are overwritten
//! with the same number of bytes, so that `{{ a[0] | fixed(1) }}` is one word of text and every
//! offset still is one of the source.

use crate::article::{Article, FillIn};
use crate::source::Span;
use pulldown_cmark::{Event, Options, Parser};
use std::ops::Range;

/// The Markdown that articles are written in.
pub fn markdown_options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_GFM
}

/// The source, of the same length, with placeholders for what is not Markdown.
pub fn mask(article: &Article) -> String {
    let text = &article.source.text;
    let mut masked = String::with_capacity(text.len());
    let mut at = 0;
    let front_matter = article.front_matter.span;
    let mut fill_ins: Vec<Span> = (article.prose.fill_ins.iter())
        .map(|fill_in| fill_in.span)
        .collect();
    fill_ins.sort();
    if front_matter.end > 0 {
        masked.push_str(&text[..front_matter.start]);
        masked.extend(std::iter::repeat_n(
            '\n',
            front_matter.end - front_matter.start,
        ));
        at = front_matter.end;
    }
    for span in fill_ins
        .into_iter()
        .filter(|span| span.start >= front_matter.end)
    {
        masked.push_str(&text[at..span.start]);
        masked.push(PLACEHOLDER);
        let rest = span.end - span.start - PLACEHOLDER.len_utf8();
        masked.extend(std::iter::repeat_n('x', rest));
        at = span.end;
    }
    masked.push_str(&text[at..]);
    masked
}

/// Of private use: neither space nor punctuation, so it is a word to Markdown.
const PLACEHOLDER: char = '\u{E000}';

/// The events of the masked text, each with its range in the source.
pub fn events(masked: &str) -> Vec<(Event<'_>, Range<usize>)> {
    Parser::new_ext(masked, markdown_options())
        .into_offset_iter()
        .collect()
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
    fn masking_keeps_every_offset() {
        let sample = Sample::new();
        let text = &sample.article.source.text;
        let masked = mask(&sample.article);
        assert_eq!(masked.len(), text.len());
        for fill_in in &sample.article.prose.fill_ins {
            assert!(masked[fill_in.span.range()].starts_with(PLACEHOLDER));
        }
        for (event, range) in events(&masked) {
            if let Event::Start(pulldown_cmark::Tag::CodeBlock(_)) = event {
                assert_eq!(&masked[range.start..range.start + 3], "```");
            }
        }
        assert!(masked.contains("\\{{ this }}"));
    }
}
