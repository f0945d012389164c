//! YAML as a tree in which every key and value knows its place in the article. Anchors, aliases,
//! tags and directives are refused, nesting and size are limited; scalars stay as written.

use super::problems::Problems;
use crate::diagnostic::Diagnostic;
use crate::source::{Extract, Places, Span, Spanned};
use granit_parser::{Event, Parser, ScalarStyle, ScanError};
use std::collections::HashMap;
use std::ops::Range;

const MAX_DEPTH: usize = 32;
const MAX_NODES: usize = 20_000;

#[derive(Clone, Debug)]
pub struct Node {
    pub span: Span,
    pub value: Value,
}

#[derive(Clone, Debug)]
pub enum Value {
    Scalar(Text),
    Sequence(Vec<Node>),
    Mapping(Vec<Entry>),
}

/// A scalar as written.
#[derive(Clone, Debug)]
pub struct Text {
    pub text: String,
    /// Without quotes, so that it may be a number, a boolean or nothing.
    pub plain: bool,
    /// Where it stands in the source.
    pub places: Places,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub key: Spanned<String>,
    pub value: Node,
}

impl Node {
    /// Nothing behind the key, `~` or `null`.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(text)
            if text.plain && matches!(text.text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }
}

/// The one mapping that `yaml` holds; nothing but blanks and comments is an empty one. What is
/// wrong goes to `problems`, and then there may be None.
pub fn mapping(yaml: &Extract, problems: &Problems) -> Option<Vec<Entry>> {
    let shielded = shield_comparisons(&yaml.text);
    let text = shielded.as_deref().unwrap_or(&yaml.text);
    let options = granit_parser::options! {
        disallow_directives: true,
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut builder = Builder {
        yaml,
        problems,
        shielded: shielded.is_some(),
        nodes: 0,
        events: Parser::new_from_str_with_options(text, options),
    };
    match builder.document() {
        Ok(None) => Some(Vec::new()),
        Ok(Some(Node {
            value: Value::Mapping(entries),
            ..
        })) => Some(entries),
        Ok(Some(node)) if node.is_null() => Some(Vec::new()),
        Ok(Some(node)) => {
            problems.error(
                node.span,
                format!("expected `key: value`, found {}", found(&node)),
                "a mapping has one `key: value` a line",
            );
            None
        }
        Err(problem) => {
            problems.push(problem);
            None
        }
    }
}

/// What a node is, for "expected …, found …".
pub fn found(node: &Node) -> String {
    match &node.value {
        _ if node.is_null() => "nothing".to_owned(),
        Value::Scalar(text) => format!("`{}`", text.text),
        Value::Sequence(_) => "a list".to_owned(),
        Value::Mapping(_) => "a mapping".to_owned(),
    }
}

/// Stands for `>=` while YAML is parsed.
const SHIELD: &str = "\u{7fe}";

/// A tolerance may be `>= 3`, but a value that begins with `>` is a folded block to YAML: such a
/// `>=` gets another face of the same length.
fn shield_comparisons(text: &str) -> Option<String> {
    if !text.contains(">=") || text.contains(SHIELD) {
        return None;
    }
    let mut shielded = String::with_capacity(text.len());
    let mut at = 0;
    for (position, operator) in text.match_indices(">=") {
        let before = text[..position].trim_end_matches([' ', '\t']);
        if before.ends_with(':') && before.len() < position {
            shielded.push_str(&text[at..position]);
            shielded.push_str(SHIELD);
            at = position + operator.len();
        }
    }
    shielded.push_str(&text[at..]);
    Some(shielded)
}

const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// Those that a rest of a scalar begins with.
struct Blanks {
    length: usize,
    /// There is a line break among them.
    folds: bool,
}

/// How one character of a scalar is written at the beginning of `rest`: what is skipped before it,
/// its length there, and whether it stands there as it is.
fn stands(c: char, rest: &str, blanks: &Blanks, style: ScalarStyle) -> (usize, usize, bool) {
    if style == ScalarStyle::DoubleQuoted && rest.starts_with('\\') {
        let mut behind = rest[1..].chars();
        let digits = match behind.next() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            Some('\n' | '\r') => {
                // The line goes on; its indentation is none of the text.
                let skipped = rest.len() - rest[1..].trim_start_matches(BLANKS).len();
                let none = Blanks {
                    length: 0,
                    folds: false,
                };
                let (more, length, same) = stands(c, &rest[skipped..], &none, style);
                return (skipped + more, length, same);
            }
            Some(_) => 0,
            None => return (0, 0, false),
        };
        let escape = rest.chars().take(2 + digits).map(char::len_utf8).sum();
        return (0, escape, false);
    }
    if matches!(c, ' ' | '\t' | '\n') {
        // The first of the blanks that a line break was read as takes all of it.
        return match blanks.folds {
            true => (blanks.length, 0, false),
            false if rest.starts_with(c) => (0, c.len_utf8(), true),
            false => (0, 0, false),
        };
    }
    let blank = blanks.length;
    let shown = &rest[blank..];
    if style == ScalarStyle::SingleQuoted && c == '\'' && shown.starts_with("''") {
        return (blank, 2, false);
    }
    match shown.starts_with(c) {
        true => (blank, c.len_utf8(), true),
        false => (0, 0, false),
    }
}

struct Builder<'a, 'y> {
    yaml: &'a Extract,
    problems: &'a Problems<'a>,
    shielded: bool,
    nodes: usize,
    events: Parser<'y, granit_parser::StrInput<'y>>,
}

impl<'y> Builder<'_, 'y> {
    fn document(&mut self) -> Result<Option<Node>, Diagnostic> {
        let mut root = None;
        loop {
            let (event, range) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                _ if root.is_some() => {
                    return Err(self.wrong(range, "a second YAML document", "take out the `---`"));
                }
                event => root = Some(self.node(event, range)?),
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'y>, Range<usize>), Diagnostic> {
        match self.events.next_event() {
            Some(Ok((event, span))) => Ok((event, span.byte_range().unwrap_or(0..0))),
            Some(Err(error)) => Err(self.syntax_error(&error)),
            None => Ok((Event::StreamEnd, self.yaml.text.len()..self.yaml.text.len())),
        }
    }

    /// The parser's own nesting limit bounds this recursion.
    fn node(&mut self, event: Event<'y>, range: Range<usize>) -> Result<Node, Diagnostic> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(self.wrong(
                range,
                format!("more than {MAX_NODES} YAML values"),
                "make them in SQL instead",
            ));
        }
        self.refuse_extras(&event, &range)?;
        match event {
            Event::Scalar(text, style, ..) => Ok(self.scalar(text.into_owned(), style, range)),
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, end) => {
                            return Ok(self.collection(Value::Sequence(items), range, end));
                        }
                        (event, range) => items.push(self.node(event, range)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut entries = Vec::new();
                loop {
                    match self.next()? {
                        (Event::MappingEnd, end) => {
                            let entries = self.without_duplicates(entries);
                            return Ok(self.collection(Value::Mapping(entries), range, end));
                        }
                        (event, range) => entries.push(self.entry(event, range)?),
                    }
                }
            }
            _ => Err(self.wrong(range, "not a YAML value", "write the value itself")),
        }
    }

    fn entry(&mut self, event: Event<'y>, range: Range<usize>) -> Result<Entry, Diagnostic> {
        let key = self.node(event, range.clone())?;
        let span = key.span;
        let Value::Scalar(name) = key.value else {
            return Err(self.wrong(
                range,
                "a key has to be a word",
                "quote a text that holds `{{ … }}`: `\"{{ … }}\"`",
            ));
        };
        let (event, range) = self.next()?;
        Ok(Entry {
            key: Spanned::new(name.text, span),
            value: self.node(event, range)?,
        })
    }

    fn scalar(&self, text: String, style: ScalarStyle, range: Range<usize>) -> Node {
        let plain = style == ScalarStyle::Plain;
        // The parser writes a missing value as `~`, at an empty place.
        let text = if range.is_empty() {
            String::new()
        } else {
            text
        };
        let text = if self.shielded {
            text.replace(SHIELD, ">=")
        } else {
            text
        };
        let places = self.places(&text, style, range.clone());
        let range = range.start..range.start + self.yaml.text[range].trim_end().len();
        Node {
            span: self.yaml.span(range),
            value: Value::Scalar(Text {
                text,
                plain,
                places,
            }),
        }
    }

    /// Where each byte of a scalar's text stands. What YAML writes otherwise stands nowhere: escapes,
    /// and the line breaks that it folds.
    fn places(&self, text: &str, style: ScalarStyle, range: Range<usize>) -> Places {
        let raw = &self.yaml.text[range.clone()];
        let mut at = match style {
            ScalarStyle::Plain => 0,
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => 1,
            // Behind the header, `>-`.
            _ if raw.starts_with(['>', '|']) => raw.find('\n').map_or(raw.len(), |end| end + 1),
            _ => 0,
        };
        let mut places = Places::default();
        // Nearly all: on one line, and written as they are.
        let first = range.start + at;
        let in_one_piece = || {
            let last = first + text.len() - 1;
            self.yaml.to_source(last) - self.yaml.to_source(first) == last - first
        };
        if !text.is_empty()
            && !text.contains(['\n', '\\', '\''])
            && raw.get(at..).is_some_and(|rest| rest.starts_with(text))
            && in_one_piece()
        {
            places.push(0, Some(self.yaml.to_source(first)));
            return places;
        }
        // The blanks that begin at `at` or before: where they end, and their last line break.
        let (mut blanks_end, mut line_break) = (0, None);
        for (offset, c) in text.char_indices() {
            let rest = &raw[at.min(raw.len())..];
            if at >= blanks_end {
                let blanks = rest.len() - rest.trim_start_matches(BLANKS).len();
                line_break = rest[..blanks].rfind('\n').map(|end| at + end);
                blanks_end = at + blanks;
            }
            let blanks = Blanks {
                length: blanks_end.saturating_sub(at),
                folds: line_break.is_some_and(|end| end >= at),
            };
            let (skipped, length, same) = stands(c, rest, &blanks, style);
            let source = same.then(|| self.yaml.to_source(range.start + at + skipped));
            places.push(offset, source);
            at += skipped + length;
        }
        places
    }

    /// A block collection's events are empty: its place is that of what it holds.
    fn collection(&self, value: Value, start: Range<usize>, end: Range<usize>) -> Node {
        let own = self.yaml.span(start.clone());
        let (first, last) = match &value {
            Value::Sequence(items) => (
                items.first().map(|item| item.span.start),
                items.last().map(|item| item.span.end),
            ),
            Value::Mapping(entries) => (
                entries.first().map(|entry| entry.key.span.start),
                entries.last().map(|entry| entry.value.span.end),
            ),
            Value::Scalar(_) => (None, None),
        };
        let span = if start.is_empty() {
            Span::new(first.unwrap_or(own.start), last.unwrap_or(own.end))
        } else {
            Span::new(own.start, self.yaml.span(end).end.max(own.end))
        };
        Node { span, value }
    }

    fn refuse_extras(&self, event: &Event, range: &Range<usize>) -> Result<(), Diagnostic> {
        if event.is_alias() || event.anchor_id().is_some_and(|id| id > 0) {
            return Err(self.wrong(
                range.clone(),
                "YAML anchors and aliases are not read",
                "write the value out, or quote a text that begins with `&` or `*`",
            ));
        }
        if event.tag().is_some() {
            return Err(self.wrong(
                range.clone(),
                "YAML tags are not read",
                "quote a text that begins with `!`",
            ));
        }
        Ok(())
    }

    /// Tells of every key that comes twice, and keeps the first.
    fn without_duplicates(&self, entries: Vec<Entry>) -> Vec<Entry> {
        let mut first: HashMap<String, Span> = HashMap::new();
        entries
            .into_iter()
            .filter(|entry| {
                let key = &entry.key;
                let Some(&earlier) = first.get(&key.value) else {
                    first.insert(key.value.clone(), key.span);
                    return true;
                };
                self.problems.duplicate(
                    key.span,
                    earlier,
                    format!("duplicate key `{}`", key.value),
                    "keep one of the two",
                );
                false
            })
            .collect()
    }

    fn wrong(
        &self,
        range: Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::error(message)
            .at(self.problems.source, self.yaml.span(range))
            .hint(hint)
    }

    fn syntax_error(&self, error: &ScanError) -> Diagnostic {
        let text = &self.yaml.text;
        let at = error.marker().byte_offset().unwrap_or(0).min(text.len());
        let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[at..]
            .find('\n')
            .map_or(text.len(), |length| at + length);
        let line = &text[line_start..line_end];
        let hint = if line.contains("{{") {
            "quote a text that holds `{{ … }}`: `\"{{ … }}\"`"
        } else if line.contains("--|") {
            "a `--|` belongs to the beginning of a line"
        } else {
            "quote a text that holds `: `, ` #`, or begins with one of `[]{}>|*&!%@`"
        };
        let message = error
            .info()
            .replace("unexpected character: `", "unexpected `");
        let message = message.replace("`'", "'").replace('\'', "`");
        self.wrong(at..at, format!("not valid YAML: {message}"), hint)
    }
}
