//! What the prose says that is checked or numbered: quotes, references and citations are links of
//! schemes of their own, found by a Markdown parser. Rendering parses with the same options and
//! the same mask, so that both see the same document.

use super::fences::Body;
use super::problems::Problems;
use crate::article::{Citation, Prose, Quote, Reference, ReferenceKind};
use crate::source::{Span, Spanned};
use pulldown_cmark::{BrokenLink, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};
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

/// Reads the prose of the body, `text[start..]`.
pub fn read(text: &str, start: usize, body: Body, problems: &Problems) -> Prose {
    let broken = RefCell::new(Vec::new());
    let on_broken = |link: BrokenLink| -> Option<(CowStr, CowStr)> {
        broken
            .borrow_mut()
            .push((link.span, link.reference.into_string()));
        None
    };
    let mut reader = Reader {
        text,
        start,
        problems,
        body: &body,
        prose: Prose::default(),
        open: Vec::new(),
        links: Vec::new(),
        shown: 0,
    };
    let parser =
        Parser::new_with_broken_link_callback(&body.masked, markdown_options(), Some(&on_broken));
    for (event, range) in parser.into_offset_iter() {
        reader.event(event, range.start + start..range.end + start);
    }
    reader.tell_fill_ins_not_shown(body.fill_ins.len());
    reader.tell_links_that_are_none();
    let mut prose = reader.prose;
    for (span, reference) in broken.into_inner() {
        tell_undefined(span.start + start..span.end + start, &reference, problems);
    }
    prose.fill_ins = body.fill_ins;
    prose
}

/// The schemes that mean something to us.
const SCHEMES: [&str; 5] = ["claim:", "cite:", "chart:", "table:", "experiment:"];

struct Reader<'a> {
    text: &'a str,
    start: usize,
    problems: &'a Problems<'a>,
    body: &'a Body,
    prose: Prose,
    /// Links and images that are not ended yet, the innermost last.
    open: Vec<OpenLink>,
    /// All links and images, ascending by their start.
    links: Vec<Range<usize>>,
    /// How many fill-ins stand in a text so far; they come in order.
    shown: usize,
}

struct OpenLink {
    range: Range<usize>,
    destination: String,
    kind: LinkType,
    image: bool,
    text: String,
    /// The end of what stands inside the brackets so far.
    text_end: usize,
}

impl Reader<'_> {
    fn event(&mut self, event: Event, range: Range<usize>) {
        // The end of a link is nothing inside it, but it is inside the one around.
        let ended = match event {
            Event::End(TagEnd::Link | TagEnd::Image) => self.open.pop(),
            _ => None,
        };
        for open in &mut self.open {
            open.text_end = open.text_end.max(range.end.min(open.range.end));
        }
        if let Some(link) = ended {
            return self.end(link);
        }
        match event {
            Event::Start(Tag::Link {
                link_type,
                dest_url,
                ..
            }) => {
                self.begin(range, link_type, &dest_url, false);
            }
            Event::Start(Tag::Image {
                link_type,
                dest_url,
                ..
            }) => {
                self.begin(range, link_type, &dest_url, true);
            }
            Event::Text(text) => {
                self.show_fill_ins(&range);
                self.add_text(&text);
            }
            Event::Code(text) => self.add_text(&text),
            Event::SoftBreak | Event::HardBreak => self.add_text(" "),
            _ => {}
        }
    }

    fn begin(&mut self, range: Range<usize>, kind: LinkType, destination: &str, image: bool) {
        self.links.push(range.clone());
        let opening = if image { 2 } else { 1 };
        self.open.push(OpenLink {
            text_end: (range.start + opening).min(range.end),
            range,
            destination: destination.to_owned(),
            kind,
            image,
            text: String::new(),
        });
    }

    fn add_text(&mut self, text: &str) {
        for open in &mut self.open {
            open.text.push_str(text);
        }
    }

    /// Text events come in the order of the text, and so do the fill-ins.
    fn show_fill_ins(&mut self, range: &Range<usize>) {
        while let Some(fill_in) = self.body.fill_ins.get(self.shown) {
            if fill_in.span.start >= range.end {
                break;
            }
            if fill_in.span.start < range.start {
                self.tell_not_shown(self.shown);
            }
            self.shown += 1;
        }
    }

    fn tell_fill_ins_not_shown(&mut self, count: usize) {
        for index in self.shown..count {
            self.tell_not_shown(index);
        }
    }

    fn tell_not_shown(&self, index: usize) {
        self.problems.error(
            self.body.fill_ins[index].span,
            "nothing can be filled in here",
            "values go into text, headings, link texts and alt texts, not into a link's destination",
        );
    }

    fn end(&mut self, link: OpenLink) {
        let Some(scheme) = SCHEMES
            .iter()
            .find(|scheme| link.destination.starts_with(**scheme))
        else {
            return;
        };
        let target = link.destination[scheme.len()..].to_owned();
        let span = Span::from(link.range.clone());
        if link.image {
            self.problems.error(
                span,
                format!("an image cannot show `{}`", link.destination),
                "take out the `!` before the bracket",
            );
            return;
        }
        let text_span = self.text_span(&link);
        let target = Spanned::new(target, self.target_span(&link, text_span, scheme));
        if *scheme == "claim:" {
            self.quote(link, target, text_span);
            return;
        }
        let text = if matches!(link.kind, LinkType::Autolink) {
            String::new()
        } else {
            link.text
        };
        let kind = match *scheme {
            "chart:" => ReferenceKind::Chart,
            "table:" => ReferenceKind::Table,
            "experiment:" => ReferenceKind::Experiment,
            _ => {
                self.prose.citations.push(Citation { target, text, span });
                return;
            }
        };
        self.prose.references.push(Reference {
            kind,
            id: target,
            text,
            span,
        });
    }

    fn quote(&mut self, link: OpenLink, claim: Spanned<String>, text_span: Span) {
        let span = Span::from(link.range.clone());
        let name = &claim.value;
        if matches!(link.kind, LinkType::Autolink) || link.text.trim().is_empty() {
            self.problems.error(
                span,
                "a quote without a text",
                format!("write what is claimed, `[76 bytes](claim:{name})`, or have it filled in, `{{{{ {name} }}}}`"),
            );
        } else if link.text.contains(MASK) {
            self.problems.error(
                text_span,
                "a quote's text cannot be filled in",
                format!("write the number itself, or leave out the link: `{{{{ {name} }}}}`"),
            );
        } else {
            self.prose.quotes.push(Quote {
                claim,
                text: link.text,
                text_span,
                span,
            });
        }
    }

    /// The inside of the brackets.
    fn text_span(&self, link: &OpenLink) -> Span {
        let opening = link.range.start + 1;
        let end = self.text[link.text_end..link.range.end]
            .find(']')
            .map_or(link.text_end, |length| link.text_end + length);
        Span::new(opening.min(end), end)
    }

    /// The name behind the scheme, or the whole link where the destination stands elsewhere.
    fn target_span(&self, link: &OpenLink, text_span: Span, scheme: &str) -> Span {
        let from = match link.kind {
            LinkType::Inline => text_span.end,
            LinkType::Autolink => link.range.start,
            _ => return link.range.clone().into(),
        };
        let rest = &self.text[from..link.range.end];
        let Some(found) = rest.find(scheme) else {
            return link.range.clone().into();
        };
        let name = &rest[found + scheme.len()..];
        let length = name
            .find(|c: char| c.is_whitespace() || matches!(c, ')' | '>'))
            .unwrap_or(name.len());
        let at = from + found + scheme.len();
        Span::new(at, at + length)
    }

    /// `[76](claim: x)` is no link to Markdown, and would stand in the page unchecked.
    fn tell_links_that_are_none(&self) {
        let mut links = self.links.iter().peekable();
        let mut verbatim = self.body.verbatim.iter().peekable();
        let mut reached = 0;
        for (found, _) in self.text[self.start..].match_indices("](") {
            let at = self.start + found;
            while let Some(link) = links.next_if(|link| link.start <= at) {
                reached = reached.max(link.end);
            }
            while verbatim.next_if(|range| range.end <= at).is_some() {}
            if at < reached || verbatim.peek().is_some_and(|range| range.start <= at) {
                continue;
            }
            let destination = self.text[at + 2..].trim_start_matches([' ', '<']);
            let Some(scheme) = SCHEMES
                .iter()
                .find(|scheme| destination.starts_with(**scheme))
            else {
                continue;
            };
            let end = destination.find([')', '\n']).unwrap_or(destination.len());
            let end = at + 2 + (self.text[at + 2..].len() - destination.len()) + end;
            let name: String = destination[scheme.len()..]
                .trim_start()
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect();
            self.problems.error(
                at + 2..end,
                "this is not a link to Markdown",
                format!(
                    "write the destination without spaces, `({scheme}{name})`, right behind `[…]`"
                ),
            );
        }
    }
}

/// `[76][claim:x]` without a definition of `claim:x` would stand in the page unchecked.
fn tell_undefined(span: Range<usize>, reference: &str, problems: &Problems) {
    let Some(scheme) = SCHEMES
        .iter()
        .find(|scheme| reference.starts_with(**scheme))
    else {
        return;
    };
    let name = reference[scheme.len()..].trim();
    problems.error(
        span,
        format!("`{reference}` is not defined"),
        format!("write the destination in parentheses: `[…]({scheme}{name})`"),
    );
}
