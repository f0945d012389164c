//! Footnotes: a number at each mention, the notes at the end of the article, and the ways between.

use super::super::escape;
use super::{Events, Writer, end_of};
use crate::diagnostic::Diagnostic;
use pulldown_cmark::{Event, Tag};
use std::collections::BTreeMap;
use std::ops::Range;

/// Footnotes are numbered by their first mention.
pub struct Footnotes {
    /// Name → range of events of its definition, without the definition's own start and end.
    definitions: BTreeMap<String, Range<usize>>,
    numbered: Vec<String>,
    mentions: BTreeMap<String, usize>,
}

impl Footnotes {
    pub fn of(events: &Events) -> Self {
        let mut definitions = BTreeMap::new();
        for (index, (event, _)) in events.iter().enumerate() {
            if let Event::Start(Tag::FootnoteDefinition(name)) = event {
                let end = end_of(events, index);
                definitions
                    .entry(name.to_string())
                    .or_insert(index + 1..end);
            }
        }
        Self {
            definitions,
            numbered: Vec::new(),
            mentions: BTreeMap::new(),
        }
    }

    fn number(&mut self, name: &str) -> usize {
        let known = self.numbered.iter().position(|n| n == name);
        known.unwrap_or_else(|| {
            self.numbered.push(name.to_owned());
            self.numbered.len() - 1
        }) + 1
    }
}

/// Whether it is of the form that notes and their mentions have, `footnote-1` and
/// `footnote-1-mention-2`: which of them there will be, the text tells only at its end.
pub fn is_id(id: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    id.strip_prefix("footnote-")
        .is_some_and(|rest| match rest.split_once("-mention-") {
            Some((note, mention)) => is_number(note) && is_number(mention),
            None => is_number(rest),
        })
}

impl Writer<'_> {
    pub fn footnote_reference(&mut self, name: &str) {
        if !self.footnotes.definitions.contains_key(name) {
            self.push(&escape(&format!("[^{name}]")));
            return;
        }
        let number = self.footnotes.number(name);
        let mention = self.footnotes.mentions.entry(name.to_owned()).or_default();
        *mention += 1;
        let mention = *mention;
        self.push(&format!(
            "<sup id=\"footnote-{number}-mention-{mention}\"><a href=\"#footnote-{number}\" role=\"doc-noteref\" aria-label=\"Footnote {number}\">{number}</a></sup>"
        ));
    }

    /// One list item a footnote; those never mentioned come last.
    pub fn write_footnotes(&mut self, events: &Events) -> Result<String, Diagnostic> {
        let body = std::mem::take(&mut self.html);
        let mut next = 0;
        loop {
            let name = match self.footnotes.numbered.get(next) {
                Some(name) => name.clone(),
                None => {
                    let numbered = &self.footnotes.numbered;
                    let mut names = self.footnotes.definitions.keys();
                    match names.find(|name| !numbered.contains(name)) {
                        Some(name) => {
                            let name = name.clone();
                            self.footnotes.number(&name);
                            name
                        }
                        None => break,
                    }
                }
            };
            next += 1;
            self.push(&format!("<li id=\"footnote-{next}\">"));
            let range = self.footnotes.definitions[&name].clone();
            self.write(&events[range])?;
            // The way back stands at the end of the note's last paragraph.
            let in_paragraph = self.html.ends_with("</p>\n");
            if in_paragraph {
                self.html.truncate(self.html.len() - "</p>\n".len());
            }
            let mentions = self.footnotes.mentions.get(&name).copied().unwrap_or(0);
            for mention in 1..=mentions {
                self.push(&format!(
                    " <a href=\"#footnote-{next}-mention-{mention}\" role=\"doc-backlink\" aria-label=\"Back to the text\">↩</a>"
                ));
            }
            self.push(if in_paragraph {
                "</p></li>\n"
            } else {
                "</li>\n"
            });
        }
        Ok(std::mem::replace(&mut self.html, body))
    }
}
