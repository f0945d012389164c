//! Finds an article's fences and every other stretch that is no text, with a Markdown parser, so
//! that fences in lists and block quotes count and those in HTML do not. `{{ … }}` are masked
//! while Markdown is parsed: an expression may hold anything that means something to Markdown.

use super::fill_in::{self, BadFillIn};
use super::inline::{markdown_options, mask};
use super::problems::Problems;
use super::read::is_name;
use crate::article::FillIn;
use crate::diagnostic::did_you_mean;
use crate::source::{Extract, Span, Spanned};
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Fixture,
    Experiment,
    Claims,
    Table,
    Chart,
}

const ROLES: [(&str, Role); 5] = [
    ("fixture", Role::Fixture),
    ("experiment", Role::Experiment),
    ("claims", Role::Claims),
    ("table", Role::Table),
    ("chart", Role::Chart),
];

/// A live fence, not yet looked into.
#[derive(Debug)]
pub struct Fence {
    pub role: Role,
    pub id: Spanned<String>,
    /// Role and id in the opening line.
    pub name: Span,
    pub span: Span,
    pub content: Extract,
}

/// The body of an article, cut into what means something. All places are source offsets.
#[derive(Debug)]
pub struct Body {
    /// The body with every fill-in masked; as long as the body.
    pub masked: String,
    pub fences: Vec<Fence>,
    pub fill_ins: Vec<FillIn>,
    /// Code, HTML and live blocks, ascending.
    pub verbatim: Vec<Range<usize>>,
}

/// Masking changes what Markdown sees, which may change what is to be masked: repeated until
/// nothing changes, which the second round nearly always shows.
const ROUNDS: usize = 8;

/// Reads the body, `text[start..]`.
pub fn read(text: &str, start: usize, problems: &Problems) -> Body {
    let body = &text[start..];
    let mut fill_ins: Vec<FillIn> = Vec::new();
    let mut wrong: Vec<BadFillIn> = Vec::new();
    let mut masked = body.to_owned();
    let mut scan = scan(&masked);
    for _ in 0..ROUNDS {
        let ranges: Vec<Range<usize>> = scan
            .verbatim
            .iter()
            .map(|(range, _)| range.clone())
            .collect();
        let (found, bad) = fill_in::find(body, &ranges);
        wrong = bad;
        if found == fill_ins {
            break;
        }
        masked = mask(body, found.iter().map(|fill_in| fill_in.span.range()));
        fill_ins = found;
        scan = self::scan(&masked);
    }
    for bad in wrong {
        let range = start + bad.range.start..start + bad.range.end;
        problems.error(range, bad.message, bad.hint);
    }
    tell_fill_ins_in_html(body, start, &scan, problems);
    let fences = scan
        .fences
        .into_iter()
        .filter_map(|raw| fence(raw, text, start, problems))
        .collect();
    Body {
        masked,
        fences,
        fill_ins: fill_ins
            .into_iter()
            .map(|fill_in| FillIn {
                span: Span::new(fill_in.span.start + start, fill_in.span.end + start),
                ..fill_in
            })
            .collect(),
        verbatim: scan
            .verbatim
            .into_iter()
            .map(|(range, _)| range.start + start..range.end + start)
            .collect(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verbatim {
    Code,
    Html,
}

struct RawFence {
    info: String,
    range: Range<usize>,
    pieces: Vec<Range<usize>>,
}

struct Scan {
    verbatim: Vec<(Range<usize>, Verbatim)>,
    fences: Vec<RawFence>,
}

fn scan(masked: &str) -> Scan {
    let mut scan = Scan {
        verbatim: Vec::new(),
        fences: Vec::new(),
    };
    let mut open: Option<RawFence> = None;
    for (event, range) in Parser::new_ext(masked, markdown_options()).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                scan.verbatim.push((range.clone(), Verbatim::Code));
                if let CodeBlockKind::Fenced(info) = kind {
                    open = Some(RawFence {
                        info: info.into_string(),
                        range,
                        pieces: Vec::new(),
                    });
                }
            }
            Event::End(TagEnd::CodeBlock) => scan.fences.extend(open.take()),
            Event::Text(_) => {
                if let Some(fence) = &mut open {
                    fence.pieces.push(range);
                }
            }
            Event::Code(_) => scan.verbatim.push((range, Verbatim::Code)),
            Event::Html(_) | Event::InlineHtml(_) => {
                scan.verbatim.push((range, Verbatim::Html));
            }
            _ => {}
        }
    }
    scan
}

/// Nothing is filled in inside HTML, and nothing that looks so is left in a page.
fn tell_fill_ins_in_html(body: &str, start: usize, scan: &Scan, problems: &Problems) {
    let html = scan
        .verbatim
        .iter()
        .filter(|(_, kind)| *kind == Verbatim::Html);
    for (range, _) in html {
        let text = &body[range.clone()];
        if text.starts_with("<!--") {
            continue;
        }
        let (found, _) = fill_in::find(text, &[]);
        for fill_in in found {
            let at = start + range.start;
            problems.error(
                at + fill_in.span.start..at + fill_in.span.end,
                "nothing can be filled in inside raw HTML",
                "write this part in Markdown",
            );
        }
    }
}

/// A fence of ours, if it is one.
fn fence(raw: RawFence, text: &str, start: usize, problems: &Problems) -> Option<Fence> {
    let range = raw.range.start + start..raw.range.end + start;
    let mut words = raw.info.split_whitespace();
    if words.next() != Some("sql") {
        return None;
    }
    let info = info_span(text, &range, &raw.info);
    let place = |word: &str| {
        let at = info.start + (word.as_ptr() as usize - raw.info.as_ptr() as usize);
        Span::new(at.min(info.end), (at + word.len()).min(info.end))
    };
    let role_word = words.next()?;
    let Some(&(_, role)) = ROLES.iter().find(|(name, _)| *name == role_word) else {
        tell_near_role(role_word, words.next(), place(role_word), problems);
        return None;
    };
    let Some(id) = words.next() else {
        problems.error(
            info,
            format!("a `{role_word}` block needs an id"),
            format!("write ` ```sql {role_word} some_name `"),
        );
        return None;
    };
    if let Some(extra) = words.next() {
        problems.error(
            place(extra),
            format!("`{extra}` behind the block's id"),
            "options stand inside the block, in lines that begin with `--|`",
        );
    }
    let id = Spanned::new(id.to_owned(), place(id));
    if !is_name(&id.value) {
        problems.error(
            id.span,
            format!("`{}` cannot be an id", id.value),
            "an id is made of lower-case letters, digits and `_`, and begins with a letter",
        );
    }
    tell_unclosed(text, &range, info, problems);
    Some(Fence {
        role,
        name: Span::new(place(role_word).start, id.span.end),
        id,
        content: content(&raw.pieces, text, start),
        span: range.into(),
    })
}

/// `sql` and more words is a highlighter's business, unless the second is a role with a slip.
fn tell_near_role(word: &str, id: Option<&str>, place: Span, problems: &Problems) {
    let names = ROLES.iter().map(|(name, _)| *name);
    let near = did_you_mean(&word.to_lowercase(), names)
        .filter(|_| word.len() > 3 && id.is_none_or(is_name));
    if let Some(near) = near {
        problems.error(place, format!("unknown role `{word}`"), near);
    }
}

/// Where the info string stands in the source.
fn info_span(text: &str, range: &Range<usize>, info: &str) -> Span {
    let line_end = text[range.clone()]
        .find('\n')
        .map_or(range.end, |length| range.start + length);
    let at = text[range.start..line_end]
        .find(info)
        .map_or(range.start, |offset| range.start + offset);
    Span::new(at, (at + info.len()).min(line_end))
}

/// A fence without its closing line takes the rest of the article with it.
fn tell_unclosed(text: &str, range: &Range<usize>, info: Span, problems: &Problems) {
    let fence = &text[range.clone()];
    let mark = if fence.starts_with('~') { '~' } else { '`' };
    let length = fence.chars().take_while(|&c| c == mark).count();
    let last = fence.trim_end().rsplit('\n').next().unwrap_or(fence);
    let last = last.trim_start_matches([' ', '\t', '>']).trim_end();
    let closed =
        fence.trim_end().contains('\n') && last.len() >= length && last.chars().all(|c| c == mark);
    if !closed {
        problems.error(
            Span::new(range.start, info.end),
            "the block is not closed",
            format!("end it with a line of {}", mark.to_string().repeat(length)),
        );
    }
}

fn content(pieces: &[Range<usize>], text: &str, start: usize) -> Extract {
    let mut content = Extract::default();
    for piece in pieces {
        let at = piece.start + start;
        content.push(&text[at..piece.end + start], at);
    }
    content
}
