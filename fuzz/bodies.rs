//! What has to hold of whatever is read, one function for each reader. Shared by the targets of
//! cargo-fuzz beside this file and by the mutations of `tests/suite/fuzz.rs`, which run on stable Rust.

use remeasure::article::BytesMeaning;
use remeasure::chart::CHARTS;
use remeasure::diagnostic::Diagnostic;
use remeasure::judge;
use remeasure::lint::{self, RULES};
use remeasure::measure::instrument::INSTRUMENTS;
use remeasure::parse::sql::{self, lexer::Lexer};
use remeasure::parse::{self, Known};
use remeasure::quantity::{Unit, numeral};
use remeasure::record::parse_record;
use remeasure::record::{Record, to_json};
use remeasure::render;
use remeasure::source::{Extract, Source};
use std::path::Path;

/// Panics where something does not hold of what is read from the bytes.
pub type Body = fn(&[u8]);

/// Every reader of text, by name.
pub const TARGETS: [(&str, Body); 4] = [
    ("article", article),
    ("sql", sql),
    ("quote", quote),
    ("record", record),
];

const FRONT_MATTER: &str = "---\ntitle: T\npostgres: {version: \"16.15\"}\nparams: {rows: 1}\n\
    source: {title: S}\nlint: {unbound: error, unshown_table: warn}\n---\n";

/// Parsing gives an article or problems, all of them at places that exist; an article can be linted
/// and judged.
pub fn article(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    one_article(text.clone().into_owned());
    if !text.starts_with("---") {
        one_article(format!("{FRONT_MATTER}{text}"));
    }
}

fn one_article(text: String) {
    let source = Source::new("a/article.md", "a/article.md", text);
    let known = Known {
        versions: &["16.15".to_owned()],
        instruments: &INSTRUMENTS
            .iter()
            .map(|one| one.known())
            .collect::<Vec<_>>(),
        charts: &CHARTS.iter().map(|one| one.name).collect::<Vec<_>>(),
        lint_rules: &RULES.iter().map(|one| one.name).collect::<Vec<_>>(),
    };
    let article = match parse::parse(&source, "a", Path::new("a"), &known) {
        Ok(article) => article,
        Err(problems) => {
            assert!(!problems.is_empty(), "refused without a reason");
            placed_well(&problems);
            return;
        }
    };
    for quote in &article.prose.quotes {
        assert!(source.text.get(quote.span.range()).is_some());
        assert!(source.text.get(quote.text_span.range()).is_some());
        assert!(quote.span.start <= quote.text_span.start && quote.text_span.end <= quote.span.end);
    }
    for fill_in in &article.prose.fill_ins {
        let written = source.slice(fill_in.span);
        assert!(written.starts_with("{{") && written.ends_with("}}"));
    }
    for block in &article.blocks {
        assert!(source.text.get(block.span.range()).is_some());
    }
    placed_well(&render::check(&article));
    placed_well(&lint::lint(&article));
    let record = Record::default();
    let context = judge::Context {
        profile: "full",
        accepted: None,
        measured_here: false,
    };
    let verdicts = judge::judge(&article, &record, &context);
    assert!(verdicts.len() >= article.prose.quotes.len());
    let explained = verdicts
        .iter()
        .filter_map(|verdict| judge::explain(&article, verdict));
    placed_well(&explained.collect::<Vec<_>>());
}

/// Every place is one of its source's, between characters, and what is printed leaves a terminal
/// alone.
fn placed_well(problems: &[Diagnostic]) {
    // What prints a few prints all.
    const PRINTED: usize = 10;
    for (number, problem) in problems.iter().enumerate() {
        for place in problem.place.iter().chain(&problem.related) {
            let text = &place.source.text;
            assert!(
                text.get(place.span.range()).is_some(),
                "{:?} of {} bytes: {}",
                place.span,
                text.len(),
                problem.message
            );
        }
        if number < PRINTED {
            let told = problem.render(false);
            let command = told.chars().find(|c| c.is_control() && *c != '\n');
            assert_eq!(command, None, "{}", problem.message);
        }
    }
}

/// The tokens are the text; statements stand in it one behind the other, variables inside them.
pub fn sql(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let tokens: Vec<_> = Lexer::new(&text).collect();
    let mut at = 0;
    for token in &tokens {
        assert_eq!(token.range.start, at, "a gap between tokens");
        assert!(text.get(token.range.clone()).is_some());
        at = token.range.end;
    }
    assert_eq!(at, text.len(), "tokens end before the text");
    sql::measured_tables(&text);
    sql::words(&text).for_each(drop);
    for variable in sql::variables_of_text(&text) {
        assert!(text[variable.range].starts_with(':'));
    }
    let source = Source::new("a.sql", "a.sql", text.clone());
    let mut extract = Extract::default();
    extract.push(&text, 0);
    match sql::split(&extract, &source) {
        Err(problems) => {
            assert!(!problems.is_empty(), "refused without a reason");
            placed_well(&problems);
        }
        Ok(script) => {
            let mut at = 0;
            for statement in &script.statements {
                let inside = &statement.text.text;
                let start = statement.text.to_source(0);
                assert!(start >= at, "statements overlap");
                assert_eq!(text.get(start..start + inside.len()), Some(inside.as_str()));
                at = start + inside.len();
                for variable in &statement.variables {
                    assert!(inside[variable.range.clone()].starts_with(':'));
                }
            }
        }
    }
}

/// A numeral's digits lie in its range, and that in the text, whatever the claim's unit.
pub fn quote(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for bytes in [BytesMeaning::Binary, BytesMeaning::Decimal] {
        for unit in ["", "B", "B/row", "rows/s", "ms", "%", "x"] {
            let unit = (!unit.is_empty()).then(|| Unit::new(unit, bytes));
            if let Ok(found) = numeral(&text, unit.as_ref(), bytes) {
                assert!(text.get(found.range.clone()).is_some());
                assert!(text.get(found.digits.clone()).is_some());
                assert!(!found.digits.is_empty());
                assert!(
                    found.range.start <= found.digits.start && found.digits.end <= found.range.end
                );
            }
        }
    }
}

/// What can be read is written and read as the same; what cannot, says where.
pub fn record(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match parse_record("record.json", &text) {
        Err(problem) => placed_well(&[problem]),
        Ok(read) => {
            let written = to_json(&read);
            let again = parse_record("record.json", &written);
            let again = again.unwrap_or_else(|problem| panic!("{}", problem.render(false)));
            assert!(again == read, "read differently once written:\n{written}");
            assert_eq!(to_json(&again), written);
        }
    }
}
