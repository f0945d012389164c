//! The article's Markdown as HTML, event by event. Quotes, fill-ins, references and citations
//! become links to what they rest on, live blocks what [`super::blocks`] makes of them, and
//! nothing of an article's raw HTML but a few harmless tags gets through.

mod footnotes;
mod texts;

use super::links::{self, Destination};
use super::{Document, blocks, escape, samples};
use crate::article::{Block, FillIn};
use crate::diagnostic::Diagnostic;
use crate::parse::outside_comments;
use crate::render::highlight;
use crate::render::masked::{self, Masked, Piece};
use crate::render::state::State;
use crate::source::Span;
use footnotes::Footnotes;
use pulldown_cmark::{Alignment, BlockQuoteKind, CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

type Events<'e> = [(Event<'e>, Range<usize>)];

/// The body of a page and what the rest of the page has to know of it.
pub struct Prose {
    pub html: String,
    /// The description, as HTML.
    pub lede: Option<String>,
    /// `<li>` elements.
    pub footnotes: String,
    pub headings: Vec<Heading>,
    /// Where each claim's value stands in the text.
    pub uses: BTreeMap<String, Vec<Use>>,
}

pub struct Heading {
    pub level: u8,
    pub id: String,
    pub text: String,
}

#[derive(Clone, serde::Serialize)]
pub struct Use {
    pub anchor: String,
    pub text: String,
}

pub fn render(document: &Document) -> Result<Prose, Diagnostic> {
    let article = document.page.article;
    let masked = Masked::new(article);
    let events = masked.events();
    let mut fill_ins = article.prose.fill_ins.clone();
    fill_ins.sort_by_key(|fill_in| fill_in.span);
    let mut writer = Writer {
        document,
        fill_ins,
        placed: BTreeSet::new(),
        html: String::with_capacity(article.source.text.len() * 2),
        ids: reserved_ids(document),
        headings: Vec::new(),
        heading_shift: heading_shift(&events),
        uses: BTreeMap::new(),
        footnotes: Footnotes::of(&events),
        inside_link: false,
        table: TableState::default(),
    };
    let filled = document.filled;
    let lede = (filled.description.as_ref())
        .map(|description| writer.linked(description, &filled.description_links));
    writer.write(&events)?;
    let footnotes = writer.write_footnotes(&events)?;
    writer.check_all_placed()?;
    Ok(Prose {
        html: writer.html,
        lede,
        footnotes,
        headings: writer.headings,
        uses: writer.uses,
    })
}

/// Ids of the page itself, which no heading may take.
fn reserved_ids(document: &Document) -> BTreeSet<String> {
    let article = document.page.article;
    let fixed = [
        "machines",
        "unpinned",
        "samples",
        "content",
        "evidence",
        "evidence-heading",
        "environment",
        "again",
    ];
    (fixed.into_iter().map(str::to_owned))
        .chain(super::machines::anchors(document))
        .chain(article.blocks.iter().map(blocks::anchor))
        .chain(article.charts().flat_map(|chart| {
            // Of the picture's own texts.
            ["title", "desc"].map(|part| format!("chart-{}-{part}", chart.id.value))
        }))
        .chain(article.claims().flat_map(|claim| {
            let anchor = super::claim_anchor(&claim.name.value);
            [format!("{anchor}-name"), anchor]
        }))
        .chain(
            article
                .claims()
                .flat_map(|claim| samples::anchors(document, claim)),
        )
        .collect()
}

/// The title is the page's `h1`; an article that has its own moves one level down.
fn heading_shift(events: &Events) -> u8 {
    let own = events.iter().any(|(event, _)| {
        matches!(event, Event::Start(Tag::Heading { level, .. }) if *level == HeadingLevel::H1)
    });
    u8::from(own)
}

struct Writer<'a> {
    document: &'a Document<'a>,
    /// Sorted by place.
    fill_ins: Vec<FillIn>,
    placed: BTreeSet<Span>,
    html: String,
    ids: BTreeSet<String>,
    headings: Vec<Heading>,
    heading_shift: u8,
    uses: BTreeMap<String, Vec<Use>>,
    footnotes: Footnotes,
    inside_link: bool,
    table: TableState,
}

#[derive(Default)]
struct TableState {
    alignments: Vec<Alignment>,
    in_head: bool,
    cell: usize,
}

/// The index of the end event that belongs to the start event at `start`.
fn end_of(events: &Events, start: usize) -> usize {
    let mut depth = 0;
    for (index, (event, _)) in events.iter().enumerate().skip(start) {
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index;
        }
    }
    events.len() - 1
}

impl Writer<'_> {
    fn write(&mut self, events: &Events) -> Result<(), Diagnostic> {
        let mut index = 0;
        while index < events.len() {
            let (event, range) = &events[index];
            match event {
                Event::Start(tag) => {
                    let end = end_of(events, index);
                    if self.start_whole(tag, &events[index..=end])? {
                        index = end + 1;
                        continue;
                    }
                    self.start(tag);
                }
                Event::End(tag) => self.end(tag),
                Event::Text(text) => self.text(text, range),
                Event::Code(code) => self.push(&format!("<code>{}</code>", escape(code))),
                Event::InlineHtml(html) => self.raw_html(html),
                Event::Html(html) => self.raw_html(html.trim_end()),
                Event::SoftBreak => self.push("\n"),
                Event::HardBreak => self.push("<br>\n"),
                Event::Rule => self.push("<hr>\n"),
                Event::FootnoteReference(name) => self.footnote_reference(name),
                Event::TaskListMarker(done) => self.task_marker(*done),
                Event::InlineMath(text) | Event::DisplayMath(text) => self.push(&escape(text)),
            }
            index += 1;
        }
        Ok(())
    }

    fn push(&mut self, html: &str) {
        self.html.push_str(html);
    }

    /// Writes the elements that are known only as a whole; true: it is written.
    fn start_whole(&mut self, tag: &Tag, events: &Events) -> Result<bool, Diagnostic> {
        let range = &events[0].1;
        let inner = &events[1..events.len() - 1];
        match tag {
            Tag::Heading {
                level, id, classes, ..
            } => self.heading(*level as u8, id.as_deref(), classes, inner)?,
            Tag::CodeBlock(kind) => self.code_block(kind, range, inner)?,
            Tag::Link {
                dest_url, title, ..
            } => self.link(dest_url, title, range, inner)?,
            Tag::Image {
                dest_url, title, ..
            } => self.image(dest_url, title, range, inner)?,
            Tag::HtmlBlock => self.html_block(inner),
            Tag::FootnoteDefinition(_) | Tag::MetadataBlock(_) => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn start(&mut self, tag: &Tag) {
        match tag {
            Tag::Paragraph => self.push("<p>"),
            Tag::BlockQuote(None) => self.push("<blockquote>\n"),
            Tag::BlockQuote(Some(kind)) => {
                let (class, title) = alert(*kind);
                self.push(&format!(
                    "<div class=\"alert alert-{class}\" role=\"note\">\n<p class=\"alert-title\">{title}</p>\n"
                ));
            }
            Tag::List(None) => self.push("<ul>\n"),
            Tag::List(Some(1)) => self.push("<ol>\n"),
            Tag::List(Some(start)) => self.push(&format!("<ol start=\"{start}\">\n")),
            Tag::Item => self.push("<li>"),
            Tag::Table(alignments) => {
                self.table.alignments.clone_from(alignments);
                self.push(
                    "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table\">\n<table>\n",
                );
            }
            Tag::TableHead => {
                self.table.in_head = true;
                self.table.cell = 0;
                self.push("<thead><tr>");
            }
            Tag::TableRow => {
                self.table.cell = 0;
                self.push("<tr>");
            }
            Tag::TableCell => {
                let alignment = self.table.alignments.get(self.table.cell);
                let class = match alignment {
                    Some(Alignment::Right) => " class=\"number\"",
                    Some(Alignment::Center) => " style=\"text-align: center\"",
                    _ => "",
                };
                let cell = if self.table.in_head {
                    "th scope=\"col\""
                } else {
                    "td"
                };
                self.push(&format!("<{cell}{class}>"));
            }
            Tag::Emphasis => self.push("<em>"),
            Tag::Strong => self.push("<strong>"),
            Tag::Strikethrough => self.push("<del>"),
            _ => {}
        }
    }

    fn end(&mut self, tag: &TagEnd) {
        let html = match tag {
            TagEnd::Paragraph => "</p>\n",
            TagEnd::BlockQuote(None) => "</blockquote>\n",
            TagEnd::BlockQuote(Some(_)) => "</div>\n",
            TagEnd::List(true) => "</ol>\n",
            TagEnd::List(false) => "</ul>\n",
            TagEnd::Item => "</li>\n",
            TagEnd::Table => "</tbody>\n</table>\n</div>\n",
            TagEnd::TableHead => {
                self.table.in_head = false;
                "</tr></thead>\n<tbody>\n"
            }
            TagEnd::TableRow => "</tr>\n",
            TagEnd::TableCell => {
                self.table.cell += 1;
                if self.table.in_head { "</th>" } else { "</td>" }
            }
            TagEnd::Emphasis => "</em>",
            TagEnd::Strong => "</strong>",
            TagEnd::Strikethrough => "</del>",
            _ => "",
        };
        self.push(html);
    }

    // ---- text ---------------------------------------------------------------------------------

    fn text(&mut self, text: &str, range: &Range<usize>) {
        for piece in masked::pieces(text, range, &self.fill_ins) {
            match piece {
                Piece::Text(text) => self.html.push_str(&escape(text)),
                Piece::FillIn(span) => self.fill_in(span),
            }
        }
    }

    fn fill_in(&mut self, span: Span) {
        let document = self.document;
        let Some(filled) = document.filled.prose.get(&span) else {
            return;
        };
        let first_time = self.placed.insert(span);
        let text = escape(&filled.text);
        match &filled.claim {
            Some(claim) if !self.inside_link && first_time => {
                let state = document.value_state(claim);
                let anchor = self.add_use(claim, "value", &filled.text);
                let title = document.claim_title(claim, state);
                let html = value_link(claim, &anchor, state, &title, &text);
                self.push(&html);
            }
            _ => self.push(&text),
        }
    }

    /// Notes that a claim's value stands here; the anchor to come back to.
    fn add_use(&mut self, claim: &str, kind: &str, text: &str) -> String {
        let count = self.uses.get(claim).map_or(0, Vec::len);
        let anchor = self.unique_id(&format!("{kind}-{claim}-{}", count + 1));
        self.uses.entry(claim.to_owned()).or_default().push(Use {
            anchor: anchor.clone(),
            text: text.to_owned(),
        });
        anchor
    }

    /// The text of events without any markup, fill-ins put in, for headings and alt texts.
    fn plain(&mut self, events: &Events) -> String {
        let mut plain = String::new();
        for (event, range) in events {
            match event {
                Event::Text(text) => {
                    for piece in masked::pieces(text, range, &self.fill_ins) {
                        match piece {
                            Piece::Text(text) => plain.push_str(text),
                            Piece::FillIn(span) => {
                                if let Some(filled) = self.document.filled.prose.get(&span) {
                                    plain.push_str(&filled.text);
                                }
                            }
                        }
                    }
                }
                Event::Code(code) => plain.push_str(code),
                Event::SoftBreak | Event::HardBreak => plain.push(' '),
                _ => {}
            }
        }
        plain
    }

    /// A few tags without attributes; comments vanish, everything else is shown as it was typed.
    fn raw_html(&mut self, html: &str) {
        const HARMLESS: &[&str] = &[
            "<br>", "<br/>", "<br />", "<wbr>", "<sub>", "</sub>", "<sup>", "</sup>", "<kbd>",
            "</kbd>", "<mark>", "</mark>",
        ];
        if HARMLESS.contains(&html) {
            self.push(html);
        } else if !html.starts_with("<!--") {
            self.push(&escape(html));
        }
    }

    /// Its lines come one by one, and a comment may go over several.
    fn html_block(&mut self, inner: &Events) {
        let html: String = (inner.iter())
            .filter_map(|(event, _)| match event {
                Event::Html(line) | Event::Text(line) => Some(line.as_ref()),
                _ => None,
            })
            .collect();
        for shown in outside_comments(&html) {
            for line in html[shown].lines() {
                self.raw_html(line.trim_end());
            }
        }
        self.push("\n");
    }

    fn task_marker(&mut self, done: bool) {
        let (checked, label) = if done {
            (" checked", "done")
        } else {
            ("", "to do")
        };
        self.push(&format!(
            "<input type=\"checkbox\" disabled{checked} aria-label=\"{label}\">"
        ));
    }

    // ---- headings and code --------------------------------------------------------------------

    fn heading(
        &mut self,
        level: u8,
        id: Option<&str>,
        classes: &[pulldown_cmark::CowStr],
        inner: &Events,
    ) -> Result<(), Diagnostic> {
        let text = self.plain(inner);
        let title = &self.document.filled.title;
        if level == 1 && text.trim() == title.trim() && self.headings.is_empty() {
            self.note_placed(inner);
            return Ok(());
        }
        let wanted = id.map_or_else(|| self.slug(inner), str::to_owned);
        let id = self.unique_id(&wanted);
        let level = (level + self.heading_shift).min(6);
        let class = if classes.is_empty() {
            String::new()
        } else {
            format!(" class=\"{}\"", escape(&classes.join(" ")))
        };
        let escaped = escape(&id);
        self.push(&format!("<h{level} id=\"{escaped}\"{class}>"));
        self.write(inner)?;
        self.push(&format!(
            " <a class=\"anchor\" href=\"#{escaped}\" aria-label=\"Link to this section\">#</a></h{level}>\n"
        ));
        self.headings.push(Heading { level, id, text });
        Ok(())
    }

    /// As GitHub makes them. Measured values are left out: an anchor outlives them.
    fn slug(&self, inner: &Events) -> String {
        let mut heading = String::new();
        for (event, range) in inner {
            let text = match event {
                Event::Text(text) => masked::pieces(text, range, &self.fill_ins)
                    .into_iter()
                    .map(|piece| match piece {
                        Piece::Text(text) => text,
                        Piece::FillIn(_) => "",
                    })
                    .collect(),
                Event::Code(code) => code.to_string(),
                Event::SoftBreak | Event::HardBreak => " ".to_owned(),
                _ => continue,
            };
            heading.push_str(&text);
        }
        let mut slug = String::new();
        for c in heading.trim().chars().flat_map(char::to_lowercase) {
            match c {
                ' ' => slug.push('-'),
                c if c.is_alphanumeric() || matches!(c, '-' | '_') => slug.push(c),
                _ => {}
            }
        }
        if slug.is_empty() {
            "section".to_owned()
        } else {
            slug
        }
    }

    fn unique_id(&mut self, wanted: &str) -> String {
        let mut id = wanted.to_owned();
        let mut count = 0;
        while footnotes::is_id(&id) || !self.ids.insert(id.clone()) {
            count += 1;
            id = format!("{wanted}-{count}");
        }
        id
    }

    fn code_block(
        &mut self,
        kind: &CodeBlockKind,
        range: &Range<usize>,
        inner: &Events,
    ) -> Result<(), Diagnostic> {
        if let Some(block) = live_block(self.document, range) {
            let caption = self.caption(&block.id.value);
            let html = blocks::render(self.document, block, caption)?;
            self.push(&html);
            return Ok(());
        }
        let code: String = (inner.iter())
            .filter_map(|(event, _)| match event {
                Event::Text(text) => Some(text.as_ref()),
                _ => None,
            })
            .collect();
        let language = match kind {
            CodeBlockKind::Fenced(info) => info.split_whitespace().next().unwrap_or(""),
            CodeBlockKind::Indented => "",
        };
        let html = match language {
            "sql" | "psql" | "pgsql" | "postgresql" => highlight::sql(&code),
            _ => escape(&code),
        };
        let class = if language.is_empty() {
            String::new()
        } else {
            format!(" class=\"language-{}\"", escape(language))
        };
        self.push(&format!(
            "<pre tabindex=\"0\"><code{class}>{html}</code></pre>\n"
        ));
        Ok(())
    }

    // ---- links --------------------------------------------------------------------------------

    fn link(
        &mut self,
        destination: &str,
        title: &str,
        range: &Range<usize>,
        inner: &Events,
    ) -> Result<(), Diagnostic> {
        let document = self.document;
        match links::classify(destination) {
            Destination::Claim(claim) => return self.quote(claim, range, inner),
            Destination::Reference(kind, id) => {
                let Some(label) = document.numbering.label(kind, id) else {
                    return self.write(inner);
                };
                self.push(&texts::reference(kind, id));
                if inner.is_empty() {
                    self.push(&escape(&label));
                }
            }
            Destination::Citation => self.push(&texts::citation(document)),
            Destination::Safe(url) => {
                let title = if title.is_empty() {
                    String::new()
                } else {
                    format!(" title=\"{}\"", escape(title))
                };
                self.push(&format!("<a href=\"{}\"{title}>", escape(&url)));
            }
            Destination::Unsafe => return self.write(inner),
        }
        self.inside_link = true;
        let written = self.write(inner);
        self.inside_link = false;
        self.push("</a>");
        written
    }

    fn quote(
        &mut self,
        claim: &str,
        range: &Range<usize>,
        inner: &Events,
    ) -> Result<(), Diagnostic> {
        let document = self.document;
        let state = document.quote_state(claim, Span::from(range.clone()));
        let title = document.claim_title(claim, state);
        let text = self.plain(inner);
        let anchor = self.add_use(claim, "quote", &text);
        let outer = std::mem::take(&mut self.html);
        self.inside_link = true;
        let written = self.write(inner);
        self.inside_link = false;
        let text = std::mem::replace(&mut self.html, outer);
        let html = value_link(claim, &anchor, state, &title, &text);
        self.push(&html);
        written
    }

    fn image(
        &mut self,
        destination: &str,
        title: &str,
        range: &Range<usize>,
        inner: &Events,
    ) -> Result<(), Diagnostic> {
        let alt = self.plain(inner);
        self.note_placed(inner);
        match links::image(self.document.page.article, destination, range)? {
            Some(data) => {
                let title = if title.is_empty() {
                    String::new()
                } else {
                    format!(" title=\"{}\"", escape(title))
                };
                self.push(&format!(
                    "<img src=\"{data}\" alt=\"{}\"{title}>",
                    escape(&alt)
                ));
            }
            // Nothing is loaded from elsewhere: a link, for who wants it.
            None if links::is_safe(destination) => self.push(&format!(
                "<a href=\"{}\">{}</a>",
                escape(destination),
                escape(if alt.is_empty() { destination } else { &alt })
            )),
            None => self.push(&escape(&alt)),
        }
        Ok(())
    }

    // ---- nothing is left out ------------------------------------------------------------------

    fn note_placed(&mut self, events: &Events) {
        for (event, range) in events {
            if let Event::Text(text) = event {
                for piece in masked::pieces(text, range, &self.fill_ins) {
                    if let Piece::FillIn(span) = piece {
                        self.placed.insert(span);
                    }
                }
            }
        }
    }

    /// A fill-in that Markdown took for something else than text would be lost without a word.
    fn check_all_placed(&self) -> Result<(), Diagnostic> {
        let lost = (self.fill_ins.iter()).find(|fill_in| !self.placed.contains(&fill_in.span));
        match lost {
            None => Ok(()),
            Some(fill_in) => Err(Diagnostic::error("a value cannot be filled in here")
                .at(&self.document.page.article.source, fill_in.span)
                .hint("it can stand in text, headings, link texts and alt texts")),
        }
    }
}

/// The live block whose fence a code block event is.
fn live_block<'a>(document: &Document<'a>, range: &Range<usize>) -> Option<&'a Block> {
    let mut blocks = document.page.article.blocks.iter();
    blocks.find(|block| block.span.start < range.end && range.start < block.span.end)
}

fn alert(kind: BlockQuoteKind) -> (&'static str, &'static str) {
    match kind {
        BlockQuoteKind::Note => ("note", "Note"),
        BlockQuoteKind::Tip => ("tip", "Tip"),
        BlockQuoteKind::Important => ("important", "Important"),
        BlockQuoteKind::Warning => ("warning", "Warning"),
        BlockQuoteKind::Caution => ("caution", "Caution"),
    }
}

/// `text` is HTML, the rest is not.
fn value_link(claim: &str, anchor: &str, state: State, title: &str, text: &str) -> String {
    let mark = match state {
        State::Fails | State::Skipped => format!(
            "<span class=\"mark\" aria-hidden=\"true\">{}</span><span class=\"hidden\"> ({})</span>",
            state.mark(),
            state.text()
        ),
        State::Holds | State::Unjudged => String::new(),
    };
    format!(
        "<a class=\"value {}\" id=\"{}\" href=\"#{}\" title=\"{}\">{text}{mark}</a>",
        state.class(),
        escape(anchor),
        escape(&super::claim_anchor(claim)),
        escape(title),
    )
}
