//! Rule `unbound`: figures in prose that nothing checks.

use super::figures::{Context, figures};
use super::prose::{self, masked, runs, settings};
use super::yaml_texts;
use crate::article::{Article, Scalar};
use crate::diagnostic::Diagnostic;
use crate::quantity::{Shape, numeral};
use crate::source::Span;
use std::collections::BTreeSet;

pub(super) fn check(article: &Article) -> Vec<Diagnostic> {
    let settings = settings(article);
    let mut found = in_texts(article, &settings);
    for run in runs(article) {
        let context = Context {
            is_heading: run.heading.is_some(),
            is_label: run.is_label,
            versions: &versions(article),
            settings: &settings,
            bound: &run.bound,
        };
        let text = &run.text.text;
        for range in figures(text, &context) {
            let span = run.text.span(range.clone());
            found.push(diagnostic(article, &text[range], span));
        }
    }
    found
}

/// A version of the article's own is no figure.
fn versions(article: &Article) -> Vec<&str> {
    let all = article.front_matter.postgres.all_versions();
    all.map(|version| version.value.as_str()).collect()
}

/// Titles, captions and alt texts.
fn in_texts(article: &Article, settings: &BTreeSet<String>) -> Vec<Diagnostic> {
    yaml_texts(article)
        .into_iter()
        .flat_map(|text| {
            let bound: Vec<_> = text.links.iter().map(|link| link.range.clone()).collect();
            let context = Context {
                is_heading: true,
                is_label: false,
                versions: &versions(article),
                settings,
                bound: &bound,
            };
            let shown = masked(&text.text, &text.fill_ins);
            figures(&shown, &context)
                .into_iter()
                .map(|range| {
                    let place = text.places.covering(range.clone()).unwrap_or(text.span);
                    diagnostic(article, &shown[range], place)
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

fn diagnostic(article: &Article, figure: &str, span: Span) -> Diagnostic {
    let figure = figure.replace(prose::OBJECT, "");
    let hint = match param(article, &figure) {
        Some(name) => format!("fill it in: `{{{{ {name} }}}}`"),
        None => format!(
            "quote a claim, `[{figure}](claim:NAME)`, or say where it comes from, \
             `[{figure}](cite:source)`"
        ),
    };
    Diagnostic::warning(format!("unbound figure `{figure}`"))
        .at(&article.source, span)
        .label("neither quoted, filled in nor cited")
        .hint(hint)
}

/// The param that has this value.
fn param<'a>(article: &'a Article, figure: &str) -> Option<&'a str> {
    let read = numeral(figure, None, article.front_matter.bytes).ok()?;
    let Shape::Point { value, .. } = &read.shape else {
        return None;
    };
    let is_value = |scalar: &Scalar| matches!(scalar, Scalar::Number(number) if number == value);
    let mut params = article.front_matter.params.iter();
    params
        .find(|(_, scalar)| is_value(scalar))
        .map(|(name, _)| name.as_str())
}
