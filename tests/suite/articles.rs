//! The project's own articles: they parse, nothing in them is unbound by mistake, and every figure
//! of the post they measure again is one of their claims.

use bigdecimal::BigDecimal;
use remeasure::article::{Article, Published};
use remeasure::chart::CHARTS;
use remeasure::diagnostic::{Diagnostic, Severity};
use remeasure::engine::pins::Pins;
use remeasure::lint::{self, RULES};
use remeasure::measure::instrument::INSTRUMENTS;
use remeasure::parse::{self, Known};
use remeasure::source::Source;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Reads an article as the program does.
pub fn read(path: &Path) -> Article {
    let pins = Pins::read(&root().join("articles/pins.yaml")).unwrap();
    let known = Known {
        versions: &pins.versions(),
        instruments: &INSTRUMENTS
            .iter()
            .map(|one| one.known())
            .collect::<Vec<_>>(),
        charts: &CHARTS.iter().map(|one| one.name).collect::<Vec<_>>(),
        lint_rules: &RULES.iter().map(|one| one.name).collect::<Vec<_>>(),
    };
    let text = fs::read_to_string(path).unwrap();
    let source = Source::new(path.display().to_string(), path, text);
    let folder = path.parent().unwrap();
    let slug = folder.file_name().unwrap().to_str().unwrap();
    parse::parse(&source, slug, folder, &known)
        .unwrap_or_else(|problems| panic!("{}", told(&problems)))
}

fn told(problems: &[Diagnostic]) -> String {
    let texts: Vec<String> = problems.iter().map(|one| one.render(false)).collect();
    texts.join("\n\n")
}

fn all() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(root().join("articles"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("article.md"))
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

#[test]
fn every_article_parses_and_lint_finds_no_error() {
    for path in all() {
        let mut found = lint::lint(&read(&path));
        found.retain(|one| one.severity == Severity::Error);
        assert!(found.is_empty(), "{}", told(&found));
    }
}

/// `tests/articles-figures/<slug>.csv` lists the figures of the post that an article measures
/// again, as published.
#[test]
fn every_figure_of_the_post_is_a_claim() {
    let folder = root().join("tests/articles-figures");
    let mut lists = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let list = entry.unwrap().path();
        let slug = list.file_stem().unwrap();
        let article = read(&root().join("articles").join(slug).join("article.md"));
        let claims: BTreeMap<&str, Option<&Published>> = article
            .claims()
            .map(|claim| (claim.name.value.as_str(), claim.published.as_ref()))
            .collect();
        let mut wrong = Vec::new();
        let mut reader = csv::Reader::from_path(&list).unwrap();
        assert_eq!(
            reader.headers().unwrap(),
            ["id", "published", "unit", "kind"].as_slice()
        );
        for row in reader.records() {
            let row = row.unwrap();
            let (id, published) = (&row[0], &row[1]);
            let same = |claimed: &Published| match claimed {
                Published::Number(number) => published
                    .parse()
                    .is_ok_and(|value: BigDecimal| *number == value),
                Published::Text(text) => text == published,
                Published::Boolean(_) => false,
            };
            match claims.get(id) {
                None => wrong.push(format!("{id}: no claim")),
                Some(Some(claimed)) if same(claimed) => {}
                Some(claimed) => {
                    wrong.push(format!("{id}: {published} published, not {claimed:?}"))
                }
            }
            lists += 1;
        }
        assert!(
            wrong.is_empty(),
            "{}:\n{}",
            list.display(),
            wrong.join("\n")
        );
    }
    assert!(lists > 0);
}
