//! `tests/quotes/grammar.txt`: each case is probed at its ends, just inside and just outside.

use super::{alone, number, parsed, record, root};
use bigdecimal::{BigDecimal, RoundingMode};
use remeasure::article::Article;
use remeasure::judge::{self, Outcome};
use remeasure::quantity::Value;
use std::fs;

#[test]
fn every_case_of_the_grammar_allows_what_it_says() {
    let table = fs::read_to_string(root().join("tests/quotes/grammar.txt")).unwrap();
    let cases: Vec<&str> = table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .collect();
    assert!(cases.len() >= 150, "{}", cases.len());
    let wrong: Vec<String> = cases.into_iter().flat_map(wrong_in).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is not as the line says.
fn wrong_in(line: &str) -> Vec<String> {
    let columns: Vec<&str> = line.split(" | ").collect();
    let [text, unit, bytes, tolerance, allowed] = columns.as_slice() else {
        return vec![format!("five columns: {line}")];
    };
    let article = match parsed(&article_text(text, unit, bytes, tolerance)) {
        Ok(article) => article,
        Err(problems) => return vec![format!("{line}: {}", problems[0].message)],
    };
    assert_eq!(article.prose.quotes.len(), 1, "{line}");
    let wrong = match *allowed {
        "true" => words(&article),
        _ => match allowed.strip_prefix("none: ") {
            Some(why) => never(&article, why),
            None => between(&article, allowed),
        },
    };
    wrong
        .into_iter()
        .map(|what| format!("{line}: {what}"))
        .collect()
}

fn article_text(text: &str, unit: &str, bytes: &str, tolerance: &str) -> String {
    let mut text = text.to_owned();
    for space in ['\u{2009}', '\u{202f}', '\u{a0}'] {
        let escape = space.escape_unicode().to_string();
        text = text.replace(&escape, &space.to_string());
    }
    let mut options = vec!["kind: bounded".to_owned()];
    if unit != "-" {
        options.push(format!("unit: \"{unit}\""));
    }
    if tolerance != "-" {
        options.push(
            format!("tolerance: \"{tolerance}\"")
                .replace("\"[", "[")
                .replace("]\"", "]"),
        );
    }
    let options = options.join(", ");
    format!(
        "---\ntitle: T\nbytes: {bytes}\npostgres: {{version: \"16.15\"}}\n---\n\n\
         ```sql claims c\n--| x: {{{options}}}\nSELECT 1;\n```\n\n[{text}](claim:x)\n"
    )
}

fn outcome(article: &Article, value: Value) -> Outcome {
    let record = record(value);
    judge::judge(article, &record, &alone("full"))
        .remove(0)
        .outcome
}

fn holds(article: &Article, value: &BigDecimal) -> bool {
    outcome(article, number(value.clone())) == Outcome::Holds
}

fn words(article: &Article) -> Vec<String> {
    let mut wrong = Vec::new();
    for value in [true, false] {
        if (outcome(article, Value::Boolean(value)) == Outcome::Holds) != value {
            wrong.push(format!("of {value}"));
        }
    }
    wrong
}

/// No number holds, and one of them is told why.
fn never(article: &Article, why: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut reasons = Vec::new();
    for value in [
        "0", "0.005", "1", "3.4", "5", "8", "75", "76", "1000", "1000000",
    ] {
        match outcome(article, number(value.parse().unwrap())) {
            Outcome::DoesNotHold { difference } => reasons.push(difference),
            other => wrong.push(format!("{value}: {other:?}")),
        }
    }
    if !reasons.iter().any(|reason| reason.contains(why)) {
        wrong.push(format!("told {:?}", reasons.last()));
    }
    wrong
}

/// One end of what is allowed, and which side of it is.
struct End {
    /// Just on it, rounded to the inside.
    inside: BigDecimal,
    outside: BigDecimal,
    is_allowed: bool,
}

impl End {
    fn read(text: &str, is_allowed: bool, is_low: bool) -> Self {
        const PLACES: i64 = 40;
        let (above, below) = text.split_once('/').unwrap_or((text, "1"));
        let number = |text: &str| text.trim().parse::<BigDecimal>().unwrap();
        let exact = number(above) / number(below);
        let round = |up: bool| {
            let mode = if up {
                RoundingMode::Ceiling
            } else {
                RoundingMode::Floor
            };
            exact.with_scale_round(PLACES, mode)
        };
        let step = BigDecimal::new(1.into(), PLACES);
        let outside = if is_low {
            round(false) - &step
        } else {
            round(true) + &step
        };
        Self {
            inside: round(is_low),
            outside,
            is_allowed,
        }
    }

    fn wrong(&self, article: &Article) -> Vec<String> {
        let mut wrong = Vec::new();
        for (value, expected) in [(&self.inside, self.is_allowed), (&self.outside, false)] {
            if holds(article, value) != expected {
                let what = if expected { "does not hold" } else { "holds" };
                wrong.push(format!("{} {what}", value.normalized().to_plain_string()));
            }
        }
        wrong
    }
}

fn between(article: &Article, allowed: &str) -> Vec<String> {
    let far: BigDecimal = "1e30".parse().unwrap();
    if let Some(low) = allowed.strip_prefix(">= ") {
        let wrong = End::read(low, true, true).wrong(article);
        return if holds(article, &far) {
            wrong
        } else {
            vec!["not far above".to_owned()]
        };
    }
    if let Some(high) = allowed.strip_prefix("<= ") {
        let wrong = End::read(high, true, false).wrong(article);
        return if holds(article, &-far) {
            wrong
        } else {
            vec!["not far below".to_owned()]
        };
    }
    let (joint, low_allowed, high_allowed) = match allowed {
        _ if allowed.contains(" ..< ") => (" ..< ", true, false),
        _ if allowed.contains(" >.. ") => (" >.. ", false, true),
        _ => (" .. ", true, true),
    };
    let (low, high) = allowed.split_once(joint).unwrap();
    let low = End::read(low, low_allowed, true);
    let high = End::read(high, high_allowed, false);
    let middle = (&low.inside + &high.inside).half();
    let mut wrong = low.wrong(article);
    wrong.extend(high.wrong(article));
    if !holds(article, &middle) {
        wrong.push(format!("{middle} does not hold"));
    }
    wrong
}
