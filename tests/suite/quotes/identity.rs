//! Writing back without changes is the identity, and a change touches the bytes of its literal
//! alone: on every article there is, and on the examples of the CommonMark specification
//! (`tests/commonmark`, CC-BY-SA 4.0), with either line end, with and without a byte order mark.

use super::{alone, articles_in, number, own_articles, parsed, record, root};
use remeasure::article::Article;
use remeasure::judge::rewrite::{Change, apply, rewrite};
use remeasure::judge::{self, Outcome, Subject};
use remeasure::quantity::{Unit, numeral};
use remeasure::record::store::read_record;
use std::fs;

fn variants(text: &str) -> [String; 4] {
    let unix = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let windows = unix.replace('\n', "\r\n");
    let marked = |text: &str| format!("\u{feff}{text}");
    [marked(&unix), marked(&windows), unix, windows]
}

/// Each number of each quote, written over itself.
fn over_itself(article: &Article) -> Vec<Change> {
    let mut changes = Vec::new();
    for (index, quote) in article.prose.quotes.iter().enumerate() {
        let mut claims = article.claims();
        let claim = claims
            .find(|claim| claim.name.value == quote.claim.value)
            .unwrap();
        let bytes = claim.bytes.unwrap_or(article.front_matter.bytes);
        let unit = claim.unit.as_deref().map(|unit| Unit::new(unit, bytes));
        let parts = numeral(&quote.text, unit.as_ref(), bytes).map_or(Vec::new(), |one| one.parts);
        let edits = parts.into_iter().map(|part| {
            let span = quote.places.verbatim(part.range.clone());
            (
                span.expect("a number stands in one piece"),
                quote.text[part.range].to_owned(),
            )
        });
        changes.push(Change {
            quote: index,
            after: quote.text.clone(),
            edits: edits.collect(),
        });
    }
    changes
}

#[test]
fn every_article_written_back_is_the_same() {
    let mut read = 0;
    let mut numbers = 0;
    for path in own_articles()
        .into_iter()
        .chain(articles_in("tests/articles"))
    {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        for text in variants(&text) {
            // An article with a mistake is not written at all.
            let Ok(article) = parsed(&text) else {
                continue;
            };
            let changes = over_itself(&article);
            numbers += changes
                .iter()
                .map(|change| change.edits.len())
                .sum::<usize>();
            assert!(apply(&text, &changes) == text, "{}", path.display());
            read += 1;
        }
    }
    assert!(read >= 40 && numbers >= 200, "{read} {numbers}");
}

/// The first digit of each quote spoiled, and what was measured written back into it.
#[test]
fn spoiled_figures_are_written_back() {
    for path in own_articles() {
        let text = fs::read_to_string(&path).unwrap();
        let record = read_record(&path.with_file_name("record.json"));
        let record = record.unwrap().expect("an accepted record");
        let context = alone(&record.profile);
        let article = parsed(&text).unwrap();
        let spoiled: Vec<Change> = over_itself(&article)
            .into_iter()
            .map(|mut change| {
                change.edits.truncate(1);
                for (_, number) in &mut change.edits {
                    let at = number.find(|c: char| c.is_ascii_digit()).unwrap();
                    let digit = if number[at..].starts_with('9') {
                        "8"
                    } else {
                        "9"
                    };
                    number.replace_range(at..at + 1, digit);
                }
                change
            })
            .collect();
        let spoiled = apply(&text, &spoiled);
        let article = parsed(&spoiled).unwrap();
        let found = rewrite(&article, &record, &context);
        assert_eq!(found.left, [], "{}", path.display());
        let after = apply(&spoiled, &found.changes);
        let again = parsed(&after).unwrap();
        assert_eq!(rewrite(&again, &record, &context).changes, []);
        let verdicts = judge::judge(&again, &record, &context);
        for verdict in verdicts {
            let quote = matches!(verdict.subject, Subject::Quote(_));
            assert!(!quote || verdict.outcome == Outcome::Holds, "{verdict:?}");
        }
        // Lines without a spoiled figure are as they were, byte for byte.
        let changed: Vec<(&str, &str)> = text
            .split_inclusive('\n')
            .zip(after.split_inclusive('\n'))
            .filter(|(before, after)| before != after)
            .collect();
        assert_eq!(text.lines().count(), after.lines().count());
        assert!(changed.iter().all(|(before, _)| before.contains("(claim:")));
        // Without a tolerance the digits quoted are those measured: they come back as they were.
        let original = parsed(&text).unwrap();
        for (before, after) in original.prose.quotes.iter().zip(&again.prose.quotes) {
            let mut claims = original.claims();
            let claim = claims.find(|claim| claim.name.value == before.claim.value);
            if claim.unwrap().tolerance.is_none() {
                assert_eq!(before.text, after.text);
            }
        }
    }
}

/// The Markdown of each example of the specification.
fn examples() -> Vec<String> {
    let fence = "`".repeat(32);
    let spec = fs::read_to_string(root().join("tests/commonmark/spec.txt")).unwrap();
    spec.split(&format!("\n{fence} example\n"))
        .skip(1)
        .map(|rest| rest.split("\n.\n").next().unwrap().replace('→', "\t"))
        .collect()
}

#[test]
fn a_rewritten_quote_touches_nothing_else_whatever_the_markdown_around_it() {
    let examples = examples();
    assert_eq!(examples.len(), 652);
    let front = "---\ntitle: Costs [76 bytes](claim:x)\npostgres: {version: \"16.15\"}\n---\n\n\
                 ```sql claims c\n--| x: {unit: B}\nSELECT 1;\n```\n\n";
    let same = record(number(76.into()));
    let other = record(number("1234.4".parse().unwrap()));
    for example in examples {
        let text = format!("{front}An index costs [**76** bytes](claim:x) a row.\n\n{example}\n");
        for text in variants(&text) {
            let article = parsed(&text).unwrap_or_else(|problems| {
                panic!("{example}\n{}", problems[0].render(false));
            });
            assert_eq!(article.source.text, text);
            assert!(apply(&text, &over_itself(&article)) == text, "{example}");
            assert_eq!(rewrite(&article, &same, &alone("full")).changes, []);
            let found = rewrite(&article, &other, &alone("full"));
            assert_eq!(found.left, [], "{example}");
            let expected = text
                .replacen("[76 bytes](claim:x)", "[1,234 bytes](claim:x)", 1)
                .replacen("[**76** bytes](claim:x)", "[**1,234** bytes](claim:x)", 1);
            assert!(apply(&text, &found.changes) == expected, "{example}");
        }
    }
}

#[test]
fn a_number_in_pieces_is_rewritten_digit_by_digit_where_it_can_be() {
    let front = "---\ntitle: T\npostgres: {version: \"16.15\"}\n---\n\n\
                 ```sql claims c\n--| x: {unit: B}\nSELECT 1;\n```\n\n";
    let left = "it is not written in one piece in the source";
    for (written, expected) in [
        ("8,0**23** B", Ok("8,0**45** B")),
        ("1&nbsp;234 B", Ok("8&nbsp;045 B")),
        ("`1,234` B", Ok("`8,045` B")),
        ("_1,234_\n> B", Ok("_8,045_\n> B")),
        ("![1,234](x.png) B", Ok("![8,045](x.png) B")),
        ("\\~1,234 B", Ok("\\~8,045 B")),
        ("**7**6 B", Err(left)),
        ("&#55;6 B", Err(left)),
        ("76&#x2009;000 B", Err(left)),
    ] {
        let text = format!("{front}> [{written}](claim:x)\n");
        let article = parsed(&text).unwrap_or_else(|problems| panic!("{problems:?}"));
        let found = rewrite(&article, &record(number(8045.into())), &alone("full"));
        let after = apply(&text, &found.changes);
        match expected {
            Ok(expected) => assert_eq!(after, text.replace(written, expected)),
            Err(reason) => assert_eq!(found.left[0].reason, reason, "{written}"),
        }
    }
}
