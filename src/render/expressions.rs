//! Fills in every `{{ expression }}` of an article: prose, title, description, captions, alt texts,
//! chart titles. Entry: [`fill`].
//!
//! An expression is one of Tera's over claims, params, `server` and `host`. Steps for each:
//! [`scan`] cuts it into tokens and refuses whatever would leave the expression, `names` checks
//! every name in it (Tera itself lets `nope == 1` pass), `evaluate` computes it: exactly where it
//! is a claim or a param with our own filters, by Tera otherwise.

mod evaluate;
mod names;
mod scan;

use crate::article::{Article, FillIn, TextWithFillIns};
use crate::diagnostic::Diagnostic;
use crate::record::Record;
use crate::source::Span;
use evaluate::Evaluator;
use std::collections::BTreeMap;
use std::ops::Range;

/// An article's texts with every value put in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    pub title: String,
    pub description: Option<String>,
    /// Fill-ins of the prose, by their place in the source.
    pub prose: BTreeMap<Span, FilledText>,
    /// Captions of experiments, tables and charts, by the block's id.
    pub captions: BTreeMap<String, String>,
    /// Titles of charts, by id.
    pub chart_titles: BTreeMap<String, String>,
    /// Alt texts of charts, by id.
    pub chart_alts: BTreeMap<String, String>,
}

/// What one fill-in became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilledText {
    pub text: String,
    /// The claim whose value this is, where the expression is nothing but one (formatted or not).
    pub claim: Option<String>,
}

/// What is wrong with an expression, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    message: String,
    range: Range<usize>,
    hint: Option<String>,
}

impl Problem {
    fn new(message: impl Into<String>, range: Range<usize>) -> Self {
        Self {
            message: message.into(),
            range,
            hint: None,
        }
    }

    fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

/// Fills in everything, or returns every expression that could not be resolved, with its place.
pub fn fill(article: &Article, record: &Record) -> Result<Filled, Vec<Diagnostic>> {
    let mut filler = Filler {
        article,
        evaluator: Evaluator::new(article, record),
        problems: Vec::new(),
    };
    let filled = filler.all();
    if filler.problems.is_empty() {
        Ok(filled)
    } else {
        filler
            .problems
            .sort_by_key(|problem| problem.place.as_ref().map(|place| place.span));
        Err(filler.problems)
    }
}

struct Filler<'a> {
    article: &'a Article,
    evaluator: Evaluator<'a>,
    problems: Vec<Diagnostic>,
}

impl Filler<'_> {
    fn all(&mut self) -> Filled {
        let article = self.article;
        let front_matter = &article.front_matter;
        let mut filled = Filled {
            title: self.text(&front_matter.title),
            description: front_matter.description.as_ref().map(|d| self.text(d)),
            ..Filled::default()
        };
        for fill_in in &article.prose.fill_ins {
            if let Some(text) = self.fill_in(fill_in, fill_in.span) {
                filled.prose.insert(fill_in.span, text);
            }
        }
        let captions = (article.experiments())
            .map(|experiment| (&experiment.id.value, &experiment.caption))
            .chain(article.tables().map(|t| (&t.id.value, &t.caption)))
            .chain(article.charts().map(|c| (&c.id.value, &c.caption)));
        for (id, caption) in captions {
            if let Some(caption) = caption {
                filled.captions.insert(id.clone(), self.text(caption));
            }
        }
        for chart in article.charts() {
            let id = &chart.id.value;
            if let Some(title) = &chart.title {
                filled.chart_titles.insert(id.clone(), self.text(title));
            }
            filled.chart_alts.insert(id.clone(), self.text(&chart.alt));
        }
        filled
    }

    /// A text of YAML with its values put in; what fails is noted and left out.
    fn text(&mut self, text: &TextWithFillIns) -> String {
        let mut filled = String::with_capacity(text.text.len());
        let mut at = 0;
        for fill_in in &text.fill_ins {
            filled.push_str(&unescape(&text.text[at..fill_in.span.start]));
            let place = self.place_in_yaml(text, fill_in.span);
            if let Some(value) = self.fill_in(fill_in, place) {
                filled.push_str(&value.text);
            }
            at = fill_in.span.end;
        }
        filled.push_str(&unescape(&text.text[at..]));
        filled
    }

    /// The place in the source of a range of a YAML text: exact where YAML has it verbatim.
    fn place_in_yaml(&self, text: &TextWithFillIns, range: Span) -> Span {
        let written = self.article.source.slice(text.span);
        let needle = &text.text[range.range()];
        let before = text.text[..range.start].matches(needle).count();
        written
            .match_indices(needle)
            .nth(before)
            .map_or(text.span, |(at, _)| {
                let start = text.span.start + at;
                Span::new(start, start + needle.len())
            })
    }

    /// `place` is where the fill-in, braces and all, stands in the source.
    fn fill_in(&mut self, fill_in: &FillIn, place: Span) -> Option<FilledText> {
        match self.evaluator.evaluate(&fill_in.expression) {
            Ok(text) => Some(text),
            Err(problems) => {
                let source = &self.article.source;
                let written = source.slice(place);
                let offset = written.find(&fill_in.expression);
                for problem in problems {
                    let span = offset.map_or(place, |offset| {
                        let start = place.start + offset;
                        Span::new(start + problem.range.start, start + problem.range.end)
                    });
                    let mut diagnostic = Diagnostic::error(problem.message).at(source, span);
                    diagnostic.hint = problem.hint;
                    self.problems.push(diagnostic);
                }
                None
            }
        }
    }
}

/// `\{{` is a literal.
fn unescape(text: &str) -> String {
    text.replace("\\{{", "{{")
}
