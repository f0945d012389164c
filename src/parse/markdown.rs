//! The Markdown of an article's body. `{{ … }}` are masked while it is parsed, for an expression
//! may hold anything that means something to Markdown. Rendering parses with the same options and
//! the same mask, so that both see the same document.

use super::fences::{Fence, Finder};
use super::fill_in;
use super::inline::Reader;
use super::problems::Problems;
use crate::article::{FillIn, Prose};
use crate::source::Span;
use pulldown_cmark::{BrokenLink, CowStr, Options, Parser};
use std::cell::RefCell;
use std::ops::Range;

/// The Markdown an article is written in. Quotes are left straight: they may stand in `{{ }}`.
pub fn markdown_options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_GFM
}

/// Begins every mask; in the private use area, so that no article means it.
pub const MASK: char = '\u{e000}';

/// `text` with each of the ranges (ascending, at least three bytes long) overwritten by [`MASK`]
/// and as many `x` as keep its length. Markdown then sees one word wherever a value is filled in,
/// and all offsets stay true: a text event that covers a range's start is where its value goes.
pub fn mask(text: &str, ranges: impl IntoIterator<Item = Range<usize>>) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut at = 0;
    for range in ranges {
        masked.push_str(&text[at..range.start]);
        masked.push(MASK);
        masked.extend(std::iter::repeat_n('x', range.len() - MASK.len_utf8()));
        at = range.end;
    }
    masked.push_str(&text[at..]);
    masked
}

/// Masking changes what Markdown sees, which may change what is to be masked: repeated until
/// nothing changes, which the second round nearly always shows.
const ROUNDS: usize = 8;

/// `[76 bytes][name]` where `name` is defined nowhere: ordinary text to Markdown.
pub struct UndefinedLink {
    pub name: String,
    pub span: Span,
}

/// Reads the body, `text[start..]`.
pub fn read(
    text: &str,
    start: usize,
    problems: &Problems,
) -> (Vec<Fence>, Prose, Vec<UndefinedLink>) {
    let mut fill_ins: Vec<FillIn> = Vec::new();
    let mut rounds = 0;
    loop {
        rounds += 1;
        let found_here = Problems::new(problems.source);
        let (finder, reader, undefined) = parse(text, start, &fill_ins, &found_here);
        let verbatim: Vec<Range<usize>> = finder
            .verbatim
            .iter()
            .map(|(range, _)| range.start + start..range.end + start)
            .collect();
        let (found, wrong) = fill_in::find(text, start, &verbatim);
        if found != fill_ins && rounds < ROUNDS {
            fill_ins = found;
            continue;
        }
        for bad in wrong {
            problems.error(bad.range, bad.message, bad.hint);
        }
        let prose = reader.finish(start, &verbatim);
        let fences = finder.finish(text, start, problems);
        problems.extend(found_here.into_sorted());
        return (fences, prose, undefined);
    }
}

/// One parse of the body with these fill-ins masked.
fn parse<'a>(
    text: &'a str,
    start: usize,
    fill_ins: &'a [FillIn],
    problems: &'a Problems<'a>,
) -> (Finder, Reader<'a>, Vec<UndefinedLink>) {
    let masked = mask(
        &text[start..],
        fill_ins
            .iter()
            .map(|fill_in| fill_in.span.start - start..fill_in.span.end - start),
    );
    let undefined = RefCell::new(Vec::new());
    let on_broken = |link: BrokenLink| -> Option<(CowStr, CowStr)> {
        undefined.borrow_mut().push(UndefinedLink {
            span: Span::new(link.span.start + start, link.span.end + start),
            name: link.reference.into_string(),
        });
        None
    };
    let mut finder = Finder::default();
    let mut reader = Reader::new(text, fill_ins, problems);
    let parser =
        Parser::new_with_broken_link_callback(&masked, markdown_options(), Some(&on_broken));
    for (event, range) in parser.into_offset_iter() {
        finder.event(&event, &range);
        reader.event(event, range.start + start..range.end + start);
    }
    (finder, reader, undefined.take())
}
