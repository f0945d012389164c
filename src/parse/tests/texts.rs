//! What is quoted in texts from YAML, in every way YAML has to write them.

use super::*;

const BODY: &str = r#"
```sql claims c
--| a: {unit: B}
SELECT 1;
```

```sql table t
--| caption: Loads [3 B](claim:a) a row
SELECT 1 AS x;
```

Prose of [4 B](claim:a).

```sql chart k
--| type: bar
--| x: x
--| y: y
--| title: 'It''s [5 B](claim:a)'
--| alt: >-
--|   Bars of [6
--|   B](claim:a), one of
--|
--|   them [7 B](claim:a)
--| caption: |
--|   From [](table:t) [8 B](claim:a)
--|     with {{ a }}
SELECT 1 AS x, 1 AS y;
```
"#;

const FRONT: &str = r#"---
title: "Tab\there \"and\" [1 B](claim:a)"
description: >
  Folded \{{ and {{ rows }}
  to [2 B](claim:a)
postgres: {version: "16.15"}
params: {rows: 10}
---
"#;

#[test]
fn quotes_are_found_with_their_places_whatever_the_yaml_style() {
    let unix = format!("{FRONT}{BODY}");
    for text in [
        unix.clone(),
        unix.replace('\n', "\r\n"),
        format!("\u{feff}{unix}"),
    ] {
        let article = article(&text);
        let quotes = &article.prose.quotes;
        let shown: Vec<&str> = quotes.iter().map(|quote| quote.text.as_str()).collect();
        assert_eq!(
            shown,
            ["1 B", "2 B", "3 B", "4 B", "5 B", "6 B", "7 B", "8 B"]
        );
        for quote in quotes {
            let digit = quote.places.verbatim(0..1).expect("a digit has a place");
            assert_eq!(article.source.slice(digit), &quote.text[..1]);
            assert_eq!(article.source.slice(quote.claim.span), "a");
            let link = article.source.slice(quote.span);
            assert!(link.starts_with('[') && link.ends_with("](claim:a)"));
            assert!(
                article
                    .source
                    .slice(quote.text_span)
                    .starts_with(&quote.text[..1])
            );
        }
        assert_eq!(quotes[5].places.verbatim(0..3), None);
        assert_eq!(article.prose.references.len(), 1);
        assert_eq!(article.front_matter.title.text, "Tab\there \"and\" 1 B");
        let description = article.front_matter.description.as_ref().unwrap();
        assert_eq!(description.text, "Folded {{ and {{ rows }} to 2 B\n");
        let fill_in = description.fill_ins[0].span.range();
        assert_eq!(&description.text[fill_in.clone()], "{{ rows }}");
        let place = description.places.verbatim(fill_in).unwrap();
        assert_eq!(article.source.slice(place), "{{ rows }}");
    }
}

#[test]
fn escapes_and_folds_of_quoted_yaml_are_followed() {
    for (title, quoted) in [
        (r#""a \u00b5 \x41 \\ [76 B](claim:a)""#, "76 B"),
        ("\"a\n  b   \n  [76 B](claim:a)\"", "76 B"),
        ("\"a \\\n  b [76 B](claim:a)\"", "76 B"),
        ("'a\n\n  '' [76 B](claim:a)'", "76 B"),
        ("plain\n  on [76 B](claim:a)", "76 B"),
        ("|2-\n    deep [76 B](claim:a)\n  not", "76 B"),
        (">-\n  a\n\n   more\n  [76 B](claim:a)", "76 B"),
        (">- # comment\n  [76 B](claim:a)", "76 B"),
        (r#""[\x37\x36 B](claim:a)""#, ""),
    ] {
        let front = format!("---\ntitle: {title}\npostgres: {{version: \"16.15\"}}\n---\n");
        let article = article(&format!("{front}{BODY}"));
        let quote = &article.prose.quotes[0];
        assert_eq!(quote.text, "76 B", "{title}");
        let place = quote.places.verbatim(0..4);
        let found = place.map_or("", |place| article.source.slice(place));
        assert_eq!(found, quoted, "{title}");
    }
}

#[test]
fn what_is_wrong_with_a_quote_in_yaml_is_told_at_its_place() {
    for (title, place, message) in [
        ("'[76 B](claim:nope)'", "nope", "unknown claim `nope`"),
        ("'[76 B](claim: a)'", "](claim: a", "this is not a link"),
        ("'[](claim:a)'", "[](claim:a)", "a quote without a text"),
        (
            "'[{{ a }} B](claim:a)'",
            "{{ a }} B",
            "a quote's text cannot be filled in",
        ),
        ("'[](chart:nope)'", "nope", "unknown chart `nope`"),
        (
            "'[76](cite:source)'",
            "source",
            "the front matter names no `source` that could be cited",
        ),
        (">-\n  one\n  {{ nope }}", "nope", "unknown name `nope`"),
    ] {
        let front = format!("---\ntitle: {title}\npostgres: {{version: \"16.15\"}}\n---\n");
        let problems = parse_text(&format!("{front}{BODY}")).expect_err(title);
        let told = problems.iter().find(|one| one.message == message);
        let told = told.unwrap_or_else(|| panic!("{title}: {problems:?}"));
        let found = told.place.as_ref().unwrap();
        assert_eq!(found.source.slice(found.span), place, "{title}");
    }
}

#[test]
fn whatever_yaml_makes_of_a_text_its_places_hold_the_same_bytes() {
    let pieces = [
        "76",
        " ",
        "  ",
        "\n  ",
        "\n\n  ",
        "\n    ",
        "\\n",
        "\\x41",
        "\\\\",
        "\\\"",
        "''",
        "'",
        "\\\n  ",
        "µ",
        "é",
        "[7 B](claim:a)",
        "[",
        "](claim:a)",
        "{{ a }}",
        "\\{{",
        "{{",
        "#",
        " # ",
        ": ",
        "-",
        "\t",
        "\r\n  ",
        "x",
    ];
    let styles = [
        ("\"", "\""),
        ("'", "'"),
        ("", ""),
        (">-\n  ", ""),
        ("|\n  ", ""),
        (">+2\n   ", "\n"),
    ];
    // A small linear congruential generator: the same texts on every run.
    let mut state: u64 = 11;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut read, mut quotes) = (0, 0);
    for _ in 0..800 {
        let inside: String = (0..1 + next(9))
            .map(|_| pieces[next(pieces.len())])
            .collect();
        let (open, close) = styles[next(styles.len())];
        let front =
            format!("---\ntitle: {open}{inside}{close}\npostgres: {{version: \"16.15\"}}\n---\n");
        let Ok(article) = parse_text(&format!("{front}{BODY}")) else {
            continue;
        };
        read += 1;
        let title = &article.front_matter.title;
        for (offset, c) in title.text.char_indices() {
            if let Some(place) = title.places.verbatim(offset..offset + c.len_utf8()) {
                let written = article.source.text.get(place.range());
                assert_eq!(written, Some(c.to_string().as_str()), "{front}");
            }
        }
        for quote in &article.prose.quotes {
            quotes += usize::from(quote.span.start < front.len());
            assert_eq!(article.source.slice(quote.claim.span), "a", "{front}");
            if !quote.text.contains(['\\', '"']) && quote.text.starts_with('7') {
                let digit = quote.places.verbatim(0..1).unwrap();
                assert_eq!(article.source.slice(digit), "7", "{front}");
            }
        }
    }
    assert!(read > 150 && quotes > 60, "{read} {quotes}");
}
