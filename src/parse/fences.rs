//! An article's fences, and every other stretch that is no text: what a Markdown parser says of
//! them, so that fences in lists and block quotes count and those in HTML do not.

use super::fill_in;
use super::inline::SCHEMES;
use super::problems::Problems;
use super::read::is_name;
use crate::diagnostic::did_you_mean;
use crate::source::{Extract, Span, Spanned};
use pulldown_cmark::{CodeBlockKind, Event, Tag, TagEnd};
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

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verbatim {
    Code,
    Html,
}

struct RawFence {
    info: String,
    range: Range<usize>,
    pieces: Vec<Range<usize>>,
}

/// Gathers fences and verbatim stretches from the events of one parse of the body.
#[derive(Default)]
pub struct Finder {
    /// Code, HTML and live blocks, ascending, as offsets in the body.
    pub verbatim: Vec<(Range<usize>, Verbatim)>,
    fences: Vec<RawFence>,
    open: Option<RawFence>,
}

impl Finder {
    pub fn event(&mut self, event: &Event, range: &Range<usize>) {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                self.verbatim.push((range.clone(), Verbatim::Code));
                if let CodeBlockKind::Fenced(info) = kind {
                    self.open = Some(RawFence {
                        info: info.to_string(),
                        range: range.clone(),
                        pieces: Vec::new(),
                    });
                }
            }
            Event::End(TagEnd::CodeBlock) => self.fences.extend(self.open.take()),
            Event::Text(_) => {
                if let Some(fence) = &mut self.open {
                    fence.pieces.push(range.clone());
                }
            }
            Event::Code(_) => self.verbatim.push((range.clone(), Verbatim::Code)),
            Event::Html(_) | Event::InlineHtml(_) => {
                self.verbatim.push((range.clone(), Verbatim::Html));
            }
            _ => {}
        }
    }

    /// The live fences of the body, `text[start..]`.
    pub fn finish(self, text: &str, start: usize, problems: &Problems) -> Vec<Fence> {
        tell_values_in_html(&text[start..], start, &self.verbatim, problems);
        self.fences
            .into_iter()
            .filter_map(|raw| fence(raw, text, start, problems))
            .collect()
    }
}

/// Nothing is filled in or quoted inside HTML, and nothing that looks so is left in a page.
fn tell_values_in_html(
    body: &str,
    start: usize,
    verbatim: &[(Range<usize>, Verbatim)],
    problems: &Problems,
) {
    // The parser gives a block of HTML line by line.
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for (range, kind) in verbatim {
        match blocks.last_mut() {
            _ if *kind != Verbatim::Html => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => blocks.push(range.clone()),
        }
    }
    const HINT: &str = "write this part in Markdown";
    for block in blocks {
        for shown in outside_comments(&body[block.clone()]) {
            let at = block.start + shown.start;
            let text = &body[at..block.start + shown.end];
            let at = start + at;
            for fill_in in fill_in::find(text, 0, &[]).0 {
                problems.error(
                    at + fill_in.span.start..at + fill_in.span.end,
                    "nothing can be filled in inside raw HTML",
                    HINT,
                );
            }
            for (found, _) in text.match_indices("](") {
                let destination = &text[found + 2..];
                if SCHEMES.iter().any(|scheme| destination.starts_with(scheme)) {
                    let end = destination.find([')', '\n']).unwrap_or(destination.len());
                    problems.error(
                        at + found..at + found + 2 + end,
                        "nothing can be quoted inside raw HTML",
                        HINT,
                    );
                }
            }
        }
    }
}

/// What a piece of HTML shows: everything but its comments.
pub fn outside_comments(html: &str) -> Vec<Range<usize>> {
    let mut shown = Vec::new();
    let mut at = 0;
    while let Some(opening) = html[at..].find("<!--").map(|found| at + found) {
        shown.push(at..opening);
        at = html[opening..]
            .find("-->")
            .map_or(html.len(), |length| opening + length + 3);
    }
    shown.push(at..html.len());
    shown.retain(|range| !range.is_empty());
    shown
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
