//! What can be said of an article without measuring anything. Entry: [`lint`]; the rules are a
//! catalogue, [`RULES`].
//!
//! 1. [`prose`]: the article's text without code, markup and whatever is checked anyway
//! 2. [`figures`]: which numbers in a text are figures, and which are dates, versions and names
//! 3. one check a rule

mod alt;
mod figures;
mod machine;
mod prose;
mod tolerance;
mod unbound;
mod unused;
mod words;

use crate::article::{Article, ChartBlock, Claim, LintLevel, TextWithFillIns};
use crate::diagnostic::{Diagnostic, Severity};
use std::collections::BTreeMap;

/// An entry of the catalogue.
pub struct Rule {
    /// As `lint:` in the front matter names it.
    pub name: &'static str,
    /// For `remeasure list rules`.
    pub about: &'static str,
    /// Where the front matter says nothing.
    pub level: LintLevel,
    check: fn(&Article) -> Vec<Diagnostic>,
}

/// Every rule there is; one more is a check and a line.
pub const RULES: &[Rule] = &[
    Rule {
        name: "unbound",
        about: "a number in prose that is neither quoted, filled in nor cited",
        level: LintLevel::Warn,
        check: unbound::check,
    },
    Rule {
        name: "noisy_fact",
        about: "a number of a noisy claim, quoted where nothing says whose machine it is of",
        level: LintLevel::Warn,
        check: machine::check,
    },
    Rule {
        name: "tolerance_wide",
        about: "a quote with digits that its claim's tolerance does not vouch for",
        level: LintLevel::Warn,
        check: tolerance::check,
    },
    Rule {
        name: "missing_alt",
        about: "an image without a text, or a chart without a text of its own, for those who cannot see it",
        level: LintLevel::Warn,
        check: alt::check,
    },
    Rule {
        name: "unused_claim",
        about: "a claim that is never quoted nor filled in, and has no limits to be judged by",
        level: LintLevel::Warn,
        check: unused::claims,
    },
    Rule {
        name: "unshown_chart",
        about: "a chart that no `[](chart:id)` refers to",
        level: LintLevel::Warn,
        check: unused::charts,
    },
    Rule {
        name: "unshown_table",
        about: "a table that no `[](table:id)` refers to; tables mostly stand where they are spoken of",
        level: LintLevel::Ignore,
        check: unused::tables,
    },
    Rule {
        name: "unread_experiment",
        about: "an experiment whose results no claim, table or chart reads",
        level: LintLevel::Warn,
        check: unused::experiments,
    },
    Rule {
        name: "unused_fixture",
        about: "a fixture that no experiment and no other fixture begins with",
        level: LintLevel::Warn,
        check: unused::fixtures,
    },
    Rule {
        name: "unused_param",
        about: "a param that neither SQL names nor prose fills in",
        level: LintLevel::Warn,
        check: unused::params,
    },
];

/// Everything the rules find, in the order of the article, each with the severity that its front
/// matter gives the rule.
pub fn lint(article: &Article) -> Vec<Diagnostic> {
    findings(article, |level| level != LintLevel::Ignore)
}

/// What the rules find that the front matter makes errors: with these an article is not built.
pub fn errors(article: &Article) -> Vec<Diagnostic> {
    findings(article, |level| level == LintLevel::Error)
}

/// Of the rules with such a level; no others are run.
fn findings(article: &Article, asked: impl Fn(LintLevel) -> bool) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for rule in RULES {
        let levels = &article.front_matter.lint;
        let level = levels.get(rule.name).copied().unwrap_or(rule.level);
        if !asked(level) {
            continue;
        }
        let severity = match level {
            LintLevel::Error => Severity::Error,
            LintLevel::Ignore | LintLevel::Warn => Severity::Warning,
        };
        found.extend((rule.check)(article).into_iter().map(|diagnostic| {
            let mut diagnostic = diagnostic.note(format!("rule: {}", rule.name));
            diagnostic.severity = severity;
            diagnostic
        }));
    }
    found.sort_by_key(|diagnostic| diagnostic.place.as_ref().map(|place| place.span));
    found
}

fn claims_by_name(article: &Article) -> BTreeMap<&str, &Claim> {
    article
        .claims()
        .map(|claim| (claim.name.value.as_str(), claim))
        .collect()
}

/// Every text from YAML that values are filled into.
fn yaml_texts(article: &Article) -> Vec<&TextWithFillIns> {
    let mut texts = vec![&article.front_matter.title];
    texts.extend(&article.front_matter.description);
    texts.extend(article.experiments().filter_map(|one| one.caption.as_ref()));
    texts.extend(article.tables().filter_map(|table| table.caption.as_ref()));
    texts.extend(article.charts().flat_map(chart_texts));
    texts
}

fn chart_texts(chart: &ChartBlock) -> impl Iterator<Item = &TextWithFillIns> {
    [
        chart.title.as_ref(),
        Some(&chart.alt),
        chart.caption.as_ref(),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests;
