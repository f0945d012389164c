//! Rule `missing_alt`: pictures that say nothing, or nothing of their own, to those who cannot see
//! them. That a chart's `alt` is there and is not its caption, parsing has seen to.

use super::prose;
use crate::article::{Article, TextWithFillIns};
use crate::diagnostic::Diagnostic;

pub(super) fn check(article: &Article) -> Vec<Diagnostic> {
    let images = prose::images_without_alt(article).into_iter().map(|span| {
        Diagnostic::warning("image without an alt text")
            .at(&article.source, span)
            .hint("say between the brackets what the picture shows")
    });
    images.chain(charts(article)).collect()
}

fn charts(article: &Article) -> impl Iterator<Item = Diagnostic> {
    article.charts().filter_map(|chart| {
        let alt = words(&chart.alt);
        let beside = [("caption", &chart.caption), ("title", &chart.title)];
        let (what, text) = beside.into_iter().find_map(|(what, text)| {
            let text = text.as_ref()?;
            (words(text) == alt).then_some((what, text))
        })?;
        let problem = Diagnostic::warning(format!("`alt` says the same as `{what}`"))
            .at(&article.source, chart.alt.span)
            .related(&article.source, text.span, format!("the {what}"))
            .hint("let `alt` say what the picture shows, for whoever cannot see it");
        Some(problem)
    })
}

/// A text without what nobody hears: capitals, punctuation, spaces.
fn words(text: &TextWithFillIns) -> String {
    let heard = text.text.chars().filter(|c| c.is_alphanumeric());
    heard.flat_map(char::to_lowercase).collect()
}
