//! Figures quoted in prose: what a quote says, that each of its digits counts, that writing back
//! touches nothing else, and `accept --quotes`.

mod accepting;
mod digits;
mod grammar;
mod identity;

use bigdecimal::BigDecimal;
use remeasure::article::Article;
use remeasure::chart::CHARTS;
use remeasure::diagnostic::Diagnostic;
use remeasure::judge::Context;
use remeasure::lint::RULES;
use remeasure::measure::instrument::INSTRUMENTS;
use remeasure::parse::{self, Known};
use remeasure::quantity::{Number, Value};
use remeasure::record::{ClaimRecord, Record};
use remeasure::source::Source;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn parsed(text: &str) -> Result<Article, Vec<Diagnostic>> {
    let known = Known {
        versions: &["16.15".to_owned(), "18.6".to_owned()],
        instruments: &INSTRUMENTS
            .iter()
            .map(|one| one.known())
            .collect::<Vec<_>>(),
        charts: &CHARTS.iter().map(|one| one.name).collect::<Vec<_>>(),
        lint_rules: &RULES.iter().map(|one| one.name).collect::<Vec<_>>(),
    };
    let source = Source::new("a/article.md", "a/article.md", text.to_owned());
    parse::parse(&source, "a", Path::new("a"), &known)
}

/// A record with one claim, `x`.
fn record(value: Value) -> Record {
    let claim = ClaimRecord {
        comparison: None,
        type_name: "numeric".to_owned(),
        value,
        unit: None,
        reads: Vec::new(),
    };
    Record {
        claims: [("x".to_owned(), claim)].into(),
        ..Record::default()
    }
}

fn number(value: BigDecimal) -> Value {
    Value::Number(Number::Finite(value))
}

fn alone(profile: &str) -> Context<'_> {
    Context {
        profile,
        accepted: None,
        measured_here: false,
    }
}

/// The project's own articles.
fn own_articles() -> Vec<PathBuf> {
    articles_in("articles")
}

fn articles_in(folder: &str) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("article.md"))
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}
