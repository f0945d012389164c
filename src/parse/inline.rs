//! What the prose says that is checked or numbered: quotes, references and citations are links of
//! schemes of their own, which a Markdown parser finds in every form a link can have.

use super::markdown::MASK;
use super::problems::Problems;
use crate::article::{Citation, FillIn, Prose, Quote, Reference, ReferenceKind};
use crate::source::{Places, Span, Spanned};
use pulldown_cmark::{Event, LinkType, Tag, TagEnd};
use std::ops::Range;

/// The schemes that mean something to us.
pub const SCHEMES: [&str; 5] = ["claim:", "cite:", "chart:", "table:", "experiment:"];

/// Gathers what the prose says from the events of one parse of the body.
pub struct Reader<'a> {
    text: &'a str,
    problems: &'a Problems<'a>,
    fill_ins: &'a [FillIn],
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
    places: Places,
    /// The end of what stands inside the brackets so far.
    text_end: usize,
}

impl<'a> Reader<'a> {
    /// `fill_ins` are those that were masked; all places are offsets in `text`, the article.
    pub fn new(text: &'a str, fill_ins: &'a [FillIn], problems: &'a Problems<'a>) -> Self {
        Self {
            text,
            problems,
            fill_ins,
            prose: Prose::default(),
            open: Vec::new(),
            links: Vec::new(),
            shown: 0,
        }
    }

    /// The prose of the body, which begins at `start`; `verbatim` are its stretches that are no
    /// text, ascending.
    pub fn finish(mut self, start: usize, verbatim: &[Range<usize>]) -> Prose {
        for index in self.shown..self.fill_ins.len() {
            self.tell_not_shown(index);
        }
        self.tell_links_that_are_none(start, verbatim);
        self.prose.fill_ins = self.fill_ins.to_vec();
        self.prose
    }

    pub fn event(&mut self, event: Event, range: Range<usize>) {
        if let Event::End(TagEnd::Link | TagEnd::Image) = event {
            if let Some(link) = self.open.pop() {
                self.end(link);
            }
            return;
        }
        if let Some(link) = self.open.last_mut() {
            link.text_end = link.text_end.max(range.end.min(link.range.end));
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
                let same = self.text[range.clone()] == *text;
                self.add_text(&text, same.then_some(range.start));
            }
            Event::Code(text) => {
                let inside = self.text[range.clone()].find(&*text);
                self.add_text(&text, inside.map(|offset| range.start + offset));
            }
            Event::SoftBreak | Event::HardBreak => self.add_text(" ", None),
            _ => {}
        }
    }

    fn begin(&mut self, mut range: Range<usize>, kind: LinkType, destination: &str, image: bool) {
        // The parser leaves the `[]` of `[76 bytes][]` out.
        if kind == LinkType::Collapsed && self.text[range.end..].starts_with("[]") {
            range.end += 2;
        }
        self.links.push(range.clone());
        let opening = if image { 2 } else { 1 };
        self.open.push(OpenLink {
            text_end: (range.start + opening).min(range.end),
            range,
            destination: destination.to_owned(),
            kind,
            image,
            text: String::new(),
            places: Places::default(),
        });
    }

    /// `at`: where the text stands in the source, if it stands there as it is.
    fn add_text(&mut self, text: &str, at: Option<usize>) {
        if let Some(link) = self.open.last_mut() {
            link.places.push(link.text.len(), at);
            link.text.push_str(text);
        }
    }

    /// Text events come in the order of the text, and so do the fill-ins.
    fn show_fill_ins(&mut self, range: &Range<usize>) {
        while let Some(fill_in) = self.fill_ins.get(self.shown) {
            if fill_in.span.start >= range.end {
                break;
            }
            if fill_in.span.start < range.start {
                self.tell_not_shown(self.shown);
            }
            self.shown += 1;
        }
    }

    fn tell_not_shown(&self, index: usize) {
        self.problems.error(
            self.fill_ins[index].span,
            "nothing can be filled in here",
            "values go into text, headings, link texts and alt texts, not into a link's destination",
        );
    }

    fn end(&mut self, mut link: OpenLink) {
        let scheme = SCHEMES
            .iter()
            .find(|scheme| link.destination.starts_with(**scheme));
        if let Some(scheme) = scheme {
            self.tell_or_keep(&link, scheme);
        }
        // What an image's alt text holds, the link around it holds too.
        if let Some(around) = self.open.last_mut() {
            around.text_end = around.text_end.max(link.range.end);
            if around.text.is_empty() {
                std::mem::swap(&mut around.text, &mut link.text);
                std::mem::swap(&mut around.places, &mut link.places);
            } else {
                let at = around.text.len();
                around.places.append(at, &link.places, 0..link.text.len());
                around.text.push_str(&link.text);
            }
        }
    }

    fn tell_or_keep(&mut self, link: &OpenLink, scheme: &str) {
        let span = Span::from(link.range.clone());
        if link.image {
            self.problems.error(
                span,
                format!("an image cannot show `{}`", link.destination),
                "take out the `!` before the bracket",
            );
            return;
        }
        let text_span = self.text_span(link);
        let target = Spanned::new(
            link.destination[scheme.len()..].to_owned(),
            self.target_span(link, text_span, scheme),
        );
        let text = if matches!(link.kind, LinkType::Autolink) {
            String::new()
        } else {
            link.text.clone()
        };
        let kind = match scheme {
            "claim:" => {
                let quote = Quote {
                    claim: target,
                    text,
                    places: link.places.clone(),
                    text_is_label: matches!(link.kind, LinkType::Collapsed | LinkType::Shortcut),
                    text_span,
                    span,
                };
                if is_fit(&quote, quote.text.contains(MASK), self.problems) {
                    self.prose.quotes.push(quote);
                }
                return;
            }
            "cite:" => {
                self.prose.citations.push(Citation {
                    target,
                    text,
                    text_span,
                    span,
                });
                return;
            }
            "chart:" => ReferenceKind::Chart,
            "table:" => ReferenceKind::Table,
            _ => ReferenceKind::Experiment,
        };
        self.prose.references.push(Reference {
            kind,
            id: target,
            text,
            text_span,
            span,
        });
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
    fn tell_links_that_are_none(&self, start: usize, verbatim: &[Range<usize>]) {
        let mut links = self.links.iter().peekable();
        let mut verbatim = verbatim.iter().peekable();
        let mut reached = 0;
        for (found, _) in self.text[start..].match_indices("](") {
            let at = start + found;
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
            let hint = if self.text[at + 2..end].contains(' ') {
                format!(
                    "write the destination without spaces, `({scheme}{name})`, right behind `[…]`"
                )
            } else {
                "its brackets do not match; in a table a `|` ends the cell, so write `\\|`"
                    .to_owned()
            };
            self.problems
                .error(at + 2..end, "this is not a link to Markdown", hint);
        }
    }
}

/// Whether a quote has a text, and one that stands in the source; what is wrong is told.
pub fn is_fit(quote: &Quote, filled_in: bool, problems: &Problems) -> bool {
    let name = &quote.claim.value;
    if quote.text.trim().is_empty() {
        problems.error(
            quote.span,
            "a quote without a text",
            format!("write what is claimed, `[76 bytes](claim:{name})`, or have it filled in, `{{{{ {name} }}}}`"),
        );
        return false;
    }
    if filled_in {
        problems.error(
            quote.text_span,
            "a quote's text cannot be filled in",
            format!("write the number itself, or leave out the link: `{{{{ {name} }}}}`"),
        );
    }
    !filled_in
}
