//! What is wrong, where, and what to do about it, as data. Stages return diagnostics, many at
//! once; only commands print them.

use crate::source::{Source, Span};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
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
        let mut group = Group::with_title(level.primary_title(&self.message));
        let mut places: Vec<(&Place, AnnotationKind)> = Vec::new();
        if let Some(place) = &self.place {
            places.push((place, AnnotationKind::Primary));
        }
        places.extend(self.related.iter().map(|p| (p, AnnotationKind::Context)));
        while let Some((first, _)) = places.first() {
            let source = Arc::clone(&first.source);
            let (here, elsewhere): (Vec<_>, Vec<_>) = places
                .into_iter()
                .partition(|(place, _)| Arc::ptr_eq(&place.source, &source));
            group = group.element(
                Snippet::source(source.text.clone())
                    .path(source.name.clone())
                    .annotations(here.iter().map(|(place, kind)| {
                        kind.span(clamp(&source.text, place.span).range())
                            .label((!place.label.is_empty()).then(|| place.label.clone()))
                    })),
            );
            places = elsewhere;
        }
        for note in &self.notes {
            group = group.element(Level::NOTE.message(note));
        }
        if let Some(hint) = &self.hint {
            group = group.element(Level::HELP.with_name("hint").message(hint));
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
            format!("{code}{word}\u{1b}[0m: {}", self.message)
        } else {
            format!("{word}: {}", self.message)
        };
        let indented = |text: &str| text.replace('\n', "\n        ");
        for note in &self.notes {
            text.push_str(&format!("\n  note: {}", indented(note)));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("\n  hint: {}", indented(hint)));
        }
        text
    }
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
    fn a_suggestion_is_near_or_none() {
        assert_eq!(
            did_you_mean("fixtrue", ["fixture", "matrix"]).as_deref(),
            Some("did you mean `fixture`?")
        );
        assert_eq!(did_you_mean("zzz", ["fixture", "matrix"]), None);
        assert_eq!(did_you_mean("z", ["x", "y"]), None);
    }
}
