//! Rules for what an article defines and never uses: claims, charts, experiments, fixtures, params.

use super::yaml_texts;
use crate::article::{
    Article, BlockKind, Claim, Experiment, ReferenceKind, Script, Statement, Tolerance,
};
use crate::diagnostic::Diagnostic;
use crate::parse::sql::{measured_tables, variables_of_text};
use crate::source::{Span, Spanned};
use std::collections::BTreeSet;

// ---- unused_claim -----------------------------------------------------------------------------

pub(super) fn claims(article: &Article) -> Vec<Diagnostic> {
    let quoted = article
        .prose
        .quotes
        .iter()
        .map(|quote| quote.claim.value.as_str());
    let used: BTreeSet<&str> = quoted.chain(filled_in(article)).collect();
    article
        .claims()
        // One with limits is judged by itself, and so says something unquoted too.
        .filter(|claim| !used.contains(claim.name.value.as_str()) && !has_limits(claim))
        .map(|claim| {
            let name = &claim.name.value;
            unused(
                article,
                &claim.name,
                format!("claim `{name}` is never quoted nor filled in"),
                format!("quote it, `[…](claim:{name})`, or drop it"),
            )
        })
        .collect()
}

fn has_limits(claim: &Claim) -> bool {
    claim.tolerance.as_ref().is_some_and(|tolerance| {
        matches!(
            tolerance.value,
            Tolerance::AtLeast(_) | Tolerance::AtMost(_) | Tolerance::Range(..)
        )
    })
}

fn unused(
    article: &Article,
    name: &Spanned<String>,
    message: String,
    hint: impl Into<String>,
) -> Diagnostic {
    Diagnostic::warning(message)
        .at(&article.source, name.span)
        .label("unused")
        .hint(hint)
}

/// Every name that is filled in, in prose and in texts of YAML.
fn filled_in(article: &Article) -> impl Iterator<Item = &str> {
    let in_texts = yaml_texts(article)
        .into_iter()
        .flat_map(|text| &text.fill_ins);
    let fill_ins = article.prose.fill_ins.iter().chain(in_texts);
    fill_ins.flat_map(|fill_in| names_in(&fill_in.expression))
}

/// The names in an expression, its strings left out.
fn names_in(expression: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = expression;
    while let Some(start) = rest.find(|c: char| c.is_alphabetic() || "_\"'`".contains(c)) {
        let quote = rest[start..].chars().next().filter(|c| "\"'`".contains(*c));
        rest = &rest[start..];
        let end = match quote {
            Some(quote) => rest[1..].find(quote).map_or(rest.len(), |end| end + 2),
            None => rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len()),
        };
        if quote.is_none() {
            names.push(&rest[..end]);
        }
        rest = &rest[end..];
    }
    names
}

// ---- unshown_chart, unshown_table -------------------------------------------------------------

/// A chart stands where its block stands. What shows it to the reader is a sentence that says
/// "look at Figure 1".
pub(super) fn charts(article: &Article) -> Vec<Diagnostic> {
    let ids = article.charts().map(|chart| &chart.id);
    unshown(article, ReferenceKind::Chart, "chart", ids)
}

pub(super) fn tables(article: &Article) -> Vec<Diagnostic> {
    let ids = article.tables().map(|table| &table.id);
    unshown(article, ReferenceKind::Table, "table", ids)
}

fn unshown<'a>(
    article: &'a Article,
    kind: ReferenceKind,
    word: &str,
    ids: impl Iterator<Item = &'a Spanned<String>>,
) -> Vec<Diagnostic> {
    let references = article.prose.references.iter();
    let shown: BTreeSet<&str> = references
        .filter(|reference| reference.kind == kind)
        .map(|reference| reference.id.value.as_str())
        .collect();
    ids.filter(|id| !shown.contains(id.value.as_str()))
        .map(|id| {
            let name = &id.value;
            Diagnostic::warning(format!("the prose never shows {word} `{name}`"))
                .at(&article.source, id.span)
                .label(format!("no `[](…)` refers to this {word}"))
                .hint(format!(
                    "refer to it where it is spoken of, `[]({word}:{name})`, or drop it"
                ))
        })
        .collect()
}

// ---- unread_experiment ------------------------------------------------------------------------

/// One that has to raise an error says what it has to say by raising it.
pub(super) fn experiments(article: &Article) -> Vec<Diagnostic> {
    let claims = article.claims().map(|claim| &claim.query);
    let tables = article.tables().map(|table| &table.query);
    let charts = article.charts().map(|chart| &chart.query);
    let read: BTreeSet<String> = (claims.chain(tables).chain(charts))
        .flat_map(|query| measured_tables(&query.text.text))
        .collect();
    article
        .experiments()
        .filter(|one| {
            one.expect_error.is_none() && !results(one).any(|table| read.contains(&table))
        })
        .map(|experiment| {
            let id = &experiment.id.value;
            Diagnostic::warning(format!("nothing reads the results of experiment `{id}`"))
                .at(&article.source, experiment.id.span)
                .label("measured for nothing")
                .hint(format!(
                    "claim, tabulate or draw something of `measured.{id}`, or make it an ordinary \
                     ` ```sql ` block"
                ))
        })
        .collect()
}

/// The tables of schema `measured` that an experiment gives.
fn results(experiment: &Experiment) -> impl Iterator<Item = String> {
    let id = &experiment.id.value;
    let named = experiment
        .collects
        .iter()
        .filter_map(|one| one.name.as_ref());
    let sampled = experiment.samples.iter().map(|one| &one.name);
    let named = named.chain(sampled);
    let named = named.map(move |name| format!("{id}_{}", name.value));
    ["", "_statements", "_wal", "_settings"]
        .map(|of| format!("{id}{of}"))
        .into_iter()
        .chain(named)
}

// ---- unused_fixture ---------------------------------------------------------------------------

pub(super) fn fixtures(article: &Article) -> Vec<Diagnostic> {
    let by_experiments = article.experiments().filter_map(|one| one.fixture.as_ref());
    let by_fixtures = article.fixtures().filter_map(|one| one.from.as_ref());
    let used: BTreeSet<&str> = by_experiments
        .chain(by_fixtures)
        .map(|name| name.value.as_str())
        .collect();
    article
        .fixtures()
        .filter(|fixture| !used.contains(fixture.id.value.as_str()))
        .map(|fixture| {
            let id = &fixture.id.value;
            unused(
                article,
                &fixture.id,
                format!("no experiment begins with fixture `{id}`"),
                format!("name it in an experiment, `--| fixture: {id}`, or drop it"),
            )
        })
        .collect()
}

// ---- unused_param -----------------------------------------------------------------------------

pub(super) fn params(article: &Article) -> Vec<Diagnostic> {
    let params = &article.front_matter.params;
    if params.is_empty() {
        return Vec::new();
    }
    let mut used: BTreeSet<String> = filled_in(article).map(str::to_owned).collect();
    for statement in statements(article) {
        used.extend(statement.variables.iter().map(|one| one.name.clone()));
    }
    let included = article.files.values();
    used.extend(included.flat_map(|file| file.variables.iter().cloned()));
    for experiment in article.experiments() {
        for phase in experiment.phases() {
            let params = phase.client.params();
            used.extend(params.into_iter().map(|(name, _)| name.to_owned()));
        }
        let settings = experiment.settings.values();
        let texts = settings.chain(experiment.session.values());
        for text in texts.chain(experiment.derive.values()) {
            used.extend(
                variables_of_text(&text.value)
                    .into_iter()
                    .map(|one| one.name),
            );
        }
    }
    let unused = params.keys().filter(|name| !used.contains(*name));
    unused
        .map(|name| {
            Diagnostic::warning(format!("param `{name}` is never used"))
                .at(&article.source, param_place(article, name))
                .hint(format!(
                    "name it in SQL, `:{name}`, fill it in, `{{{{ {name} }}}}`, or drop it"
                ))
        })
        .collect()
}

/// The key in the front matter; YAML's own order is that of the text.
fn param_place(article: &Article, name: &str) -> Span {
    let span = article.front_matter.span;
    let text = article.source.slice(span);
    let below = text.find("params:").unwrap_or(0);
    let is_key = |at: usize| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].trim_start_matches(['"', '\'', ' ']);
        after.starts_with(':') && before.is_none_or(|c| !(c.is_alphanumeric() || c == '_'))
    };
    let mut keys = text[below..].match_indices(name).map(|(at, _)| below + at);
    match keys.find(|&at| is_key(at)) {
        Some(at) => Span::new(span.start + at, span.start + at + name.len()),
        None => span,
    }
}

fn statements(article: &Article) -> Vec<&Statement> {
    fn of(script: &Script) -> impl Iterator<Item = &Statement> {
        script.statements.iter()
    }
    let mut found: Vec<&Statement> = Vec::new();
    for block in &article.blocks {
        match &block.kind {
            BlockKind::Fixture(fixture) => found.extend(of(&fixture.script)),
            BlockKind::Experiment(experiment) => {
                for phase in experiment.phases() {
                    found.extend(of(&phase.script));
                }
            }
            BlockKind::Claims(claims) => found.extend(claims.claims.iter().map(|one| &one.query)),
            BlockKind::Table(table) => found.push(&table.query),
            BlockKind::Chart(chart) => found.push(&chart.query),
        }
    }
    found
}
