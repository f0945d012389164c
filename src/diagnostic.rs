//! What is wrong, where, and what to do about it, as data. Stages return diagnostics, many at
//! once; only commands print them.

use crate::source::{Source, Span};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Warning,
    Error,
}

/// One problem. Messages are in lower case, literals in backticks, without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub message: String,
    pub place: Option<Place>,
    /// Other places that matter, each with what it is ("first defined here").
    pub related: Vec<Place>,
    /// Facts: Postgres's own detail, the values that were compared.
    pub notes: Vec<String>,
    /// What to do.
    pub hint: Option<String>,
    /// Postgres's own code of it, where Postgres raised it.
    pub sqlstate: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub source: Arc<Source>,
    pub span: Span,
    /// Stands beside the caret.
    pub label: String,
}

impl Diagnostic {
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            place: None,
            related: Vec::new(),
            notes: Vec::new(),
            hint: None,
            sqlstate: None,
        }
    }

    pub fn warning(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(message)
        }
    }

    pub fn at(mut self, source: &Arc<Source>, span: impl Into<Span>) -> Self {
        self.place = Some(Place {
            source: Arc::clone(source),
            span: span.into(),
            label: String::new(),
        });
        self
    }

    /// The words beside the caret.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        if let Some(place) = &mut self.place {
            place.label = label.into();
        }
        self
    }

    pub fn related(
        mut self,
        source: &Arc<Source>,
        span: impl Into<Span>,
        label: impl Into<String>,
    ) -> Self {
        self.related.push(Place {
            source: Arc::clone(source),
            span: span.into(),
            label: label.into(),
        });
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn sqlstate(mut self, sqlstate: impl Into<String>) -> Self {
        self.sqlstate = Some(sqlstate.into());
        self
    }

    /// `path:line:column` of the place, where there is one.
    pub fn location(&self) -> Option<String> {
        self.place.as_ref().map(|place| {
            let (line, column) = place.source.line_column(place.span.start);
            format!("{}:{line}:{column}", place.source.name)
        })
    }

    /// The long form: message, source line with caret, notes, hint.
    pub fn render(&self, color: bool) -> String {
        if self.place.is_none() && self.related.is_empty() {
            return self.render_without_place(color);
        }
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = Group::with_title(level.primary_title(visible(&self.message)));
        for excerpt in self.excerpts() {
            group = excerpt.add_to(group);
        }
        for note in &self.notes {
            group = group.element(Level::NOTE.message(visible(note)));
        }
        if let Some(hint) = &self.hint {
            group = group.element(Level::HELP.with_name("hint").message(visible(hint)));
        }
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        renderer.render(&[group])
    }
}

impl Diagnostic {
    /// There is no line to show: message, notes and hint under one another.
    fn render_without_place(&self, color: bool) -> String {
        let (word, code) = match self.severity {
            Severity::Error => ("error", "\u{1b}[1;31m"),
            Severity::Warning => ("warning", "\u{1b}[1;33m"),
        };
        let mut text = if color {
            format!("{code}{word}\u{1b}[0m: {}", visible(&self.message))
        } else {
            format!("{word}: {}", visible(&self.message))
        };
        let indented = |text: &str| visible(text).replace('\n', "\n        ");
        for note in &self.notes {
            text.push_str(&format!("\n  note: {}", indented(note)));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("\n  hint: {}", indented(hint)));
        }
        text
    }
}

impl Diagnostic {
    /// The places in excerpts of their sources, that of the problem itself first.
    fn excerpts(&self) -> Vec<Excerpt<'_>> {
        let mut excerpts: Vec<Excerpt<'_>> = Vec::new();
        let primary = self.place.iter().map(|p| (p, AnnotationKind::Primary));
        let related = self.related.iter().map(|p| (p, AnnotationKind::Context));
        for (place, kind) in primary.chain(related) {
            match excerpts.iter_mut().find(|excerpt| excerpt.is_near(place)) {
                Some(excerpt) => excerpt.push(place, kind),
                None => excerpts.push(Excerpt::new(place, kind)),
            }
        }
        excerpts
    }
}

/// The lines around places that stand near to one another. A renderer that was given the whole
/// text would read all of it again for each diagnostic.
struct Excerpt<'a> {
    source: &'a Source,
    /// Offsets in the source; a long line is cut at both sides.
    start: usize,
    end: usize,
    places: Vec<(&'a Place, AnnotationKind)>,
}

impl<'a> Excerpt<'a> {
    /// Of a line, on either side of a place; and how far apart places of one excerpt may be.
    const NEAR: usize = 2_000;

    fn new(place: &'a Place, kind: AnnotationKind) -> Self {
        let source = place.source.as_ref();
        let span = clamp(&source.text, place.span);
        Self {
            source,
            start: Self::start(&source.text, span),
            end: Self::end(&source.text, span),
            places: vec![(place, kind)],
        }
    }

    fn is_near(&self, place: &Place) -> bool {
        let span = clamp(&place.source.text, place.span);
        std::ptr::eq(self.source, place.source.as_ref())
            && span.start + Self::NEAR >= self.start
            && span.start <= self.end + Self::NEAR
    }

    fn push(&mut self, place: &'a Place, kind: AnnotationKind) {
        let span = clamp(&self.source.text, place.span);
        self.start = self.start.min(Self::start(&self.source.text, span));
        self.end = self.end.max(Self::end(&self.source.text, span));
        self.places.push((place, kind));
    }

    fn start(text: &str, span: Span) -> usize {
        let near = text.floor_char_boundary(span.start.saturating_sub(Self::NEAR));
        text[near..span.start]
            .rfind('\n')
            .map_or(near, |at| near + at + 1)
    }

    fn end(text: &str, span: Span) -> usize {
        let near = text.floor_char_boundary(span.end + Self::NEAR);
        text[span.end..near]
            .find('\n')
            .map_or(near, |length| span.end + length)
    }

    fn add_to(&self, group: Group<'a>) -> Group<'a> {
        let (line, column) = self.source.line_column(self.start);
        let name = visible(&self.source.name);
        let annotations = self.places.iter().map(|(place, kind)| {
            let span = clamp(&self.source.text, place.span);
            kind.span(span.start - self.start..span.end - self.start)
                .label((!place.label.is_empty()).then(|| visible(&place.label)))
        });
        let text = visible_in_place(&self.source.text[self.start..self.end]);
        let snippet = Snippet::source(text)
            .line_start(line)
            .annotations(annotations);
        if column == 1 {
            return group.element(snippet.path(name));
        }
        // The renderer would count columns from where the line is cut.
        let (line, column) = self.source.line_column(self.places[0].0.span.start);
        group
            .element(Origin::path(name).line(line).char_column(column))
            .element(snippet)
    }
}

/// Whether a terminal would act on this character, or show the text around it in another order.
fn commands_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` for a terminal: what would command it is shown as a picture of itself or as U+FFFD.
fn visible(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
            '\u{7f}' => '\u{2421}',
            c if commands_terminal(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// The same for an excerpt, in which every byte has to stay at its place. Control characters of
/// one byte are left to the renderer, which shows pictures of them.
fn visible_in_place(text: &str) -> String {
    text.chars()
        .map(|c| match c.len_utf8() {
            2 if commands_terminal(c) => '¿',
            3 if commands_terminal(c) => '\u{fffd}',
            _ => c,
        })
        .collect()
}

/// A span that annotates at least one character and cuts none in half.
fn clamp(text: &str, span: Span) -> Span {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = span.end.clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    Span::new(start, end)
}

/// "did you mean `x`?" for a word that is not one of `known`.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|&(distance, candidate)| {
            let near = distance <= 1 + candidate.len().min(word.len()) / 4;
            let alike = distance < candidate.len().max(word.len());
            (near && alike) || candidate.starts_with(word)
        })
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_shows_place_caret_note_and_hint() {
        let source = Source::new("a/article.md", "a/article.md", "one\ntwo three\n".into());
        let text = Diagnostic::error("unknown key `three`")
            .at(&source, 8..13)
            .label("not a key")
            .note("keys are one and two")
            .hint("did you mean `two`?")
            .render(false);
        assert!(text.contains("a/article.md:2:5"), "{text}");
        assert!(text.contains("^^^^^ not a key"), "{text}");
        assert!(text.contains("hint: did you mean `two`?"), "{text}");
    }

    #[test]
    fn nothing_that_is_quoted_commands_the_terminal() {
        let bad = "\u{1b}[31m\u{9b}2J\u{7}\u{7f}\u{202e}\u{61c}\u{200f}\r";
        let line = format!("µ{bad} here\n");
        let at = line.find("here").unwrap();
        let source = Source::new(format!("{bad}.md"), "a.md", line);
        let placed = Diagnostic::error(format!("unknown `{bad}`"))
            .at(&source, at..at + 4)
            .label(bad)
            .note(bad)
            .hint(bad);
        let mut placeless = placed.clone();
        placeless.place = None;
        for text in [placed.render(false), placeless.render(false)] {
            let commands: Vec<char> = text
                .chars()
                .filter(|&c| c != '\n' && commands_terminal(c))
                .collect();
            assert!(commands.is_empty(), "{text}");
            assert!(text.contains("unknown `␛[31m"), "{text}");
        }
        // Each of them is one column wide, and the caret stands where the word does.
        let told = placed.render(false);
        let lines: Vec<Vec<char>> = told.lines().map(|line| line.chars().collect()).collect();
        let column = |line: &[char], c: char| line.iter().rposition(|&at| at == c);
        let shown = lines
            .iter()
            .find(|line| line.ends_with(&['h', 'e', 'r', 'e']))
            .unwrap();
        let caret = lines.iter().find(|line| line.contains(&'^')).unwrap();
        let first_caret = caret.iter().position(|&c| c == '^');
        assert_eq!(first_caret, column(shown, 'h'), "{told}");
    }

    #[test]
    fn only_lines_near_a_place_are_shown_whatever_the_length_of_the_text() {
        let filler = "words and words\n".repeat(50_000);
        let text = format!(
            "first\n{filler}{}here{}\n",
            "µ ".repeat(5_000),
            " x".repeat(5_000)
        );
        let at = text.find("here").unwrap();
        let source = Source::new("a.md", "a.md", text);
        let found = Diagnostic::error("duplicate")
            .at(&source, at..at + 4)
            .related(&source, 0..5, "first defined here");
        let excerpts = found.excerpts();
        let bytes: usize = excerpts.iter().map(|one| one.end - one.start).sum();
        assert!(bytes < 3 * Excerpt::NEAR, "{bytes}");
        let told = found.render(false);
        assert!(told.contains("a.md:50002:10001"), "{told}");
        assert!(told.contains("a.md:1:1"), "{told}");
        assert!(told.contains("first defined here"), "{told}");
    }

    #[test]
    fn a_suggestion_is_near_or_none() {
        assert_eq!(
            did_you_mean("fixtrue", ["fixture", "matrix"]).as_deref(),
            Some("did you mean `fixture`?")
        );
        assert_eq!(did_you_mean("zzz", ["fixture", "matrix"]), None);
        assert_eq!(did_you_mean("z", ["x", "y"]), None);
    }
}
