//! What makes an analysis another one, and what a claim's query may give.

use super::*;
use crate::parse::sample::article;
use crate::plan::resolve;
use crate::quantity::Column;
use crate::record::Sample;

const ARTICLE: &str = r#"---
title: T
postgres: {version: "16.15", settings: {work_mem: 8MB}, extensions: [pageinspect]}
seed: 0.5
params: {rows: 1000}
profiles: {quick: {rows: 1000}}
---

Prose.

```sql experiment insert
--| matrix: {k: [1, 2]}
--| caption: How it goes
--| derive: {twice: 2 * n, four: 2 * twice}
SELECT :k AS n;
```

```sql experiment insert_more
SELECT 1 AS n;
```

```sql claims c
--| twice: {kind: exact, unit: B}
SELECT max(twice) FROM measured.insert;
--| rest: {kind: exact}
SELECT count(*) FROM measured.insert_more_statements, measured.insert_wal;
```

```sql table t
SELECT n FROM measured.insert;
```

```sql chart ch
--| type: bar
--| x: k
--| y: n
--| alt: Bars
SELECT k, n FROM measured.insert;
```
"#;

fn key_of(text: &str, profile: Option<&str>, value: &str) -> String {
    let article = article(text);
    let resolved = resolve(&article, profile).unwrap();
    let stored = StoredExperiment {
        samples: vec![Sample {
            cell: 0,
            run: 1,
            row: Table {
                columns: vec![Column::new("n", "numeric")],
                rows: vec![vec![Value::from_postgres(Some(value), "numeric")]],
            },
            results: IndexMap::new(),
        }],
        ..StoredExperiment::default()
    };
    let measurements: Vec<_> = article.experiments().map(|e| (e, &stored)).collect();
    key(&article, &resolved, &measurements)
}

#[test]
fn what_is_evaluated_and_what_over_makes_another_analysis_and_nothing_else_does() {
    let before = key_of(ARTICLE, None, "1");
    assert_eq!(key_of(ARTICLE, None, "1"), before);
    assert_ne!(key_of(ARTICLE, None, "1.0"), before);
    assert_ne!(key_of(ARTICLE, Some("quick"), "1"), before);
    for (from, to) in [
        ("rows: 1000}\nprofiles", "rows: 1001}\nprofiles"),
        ("work_mem: 8MB", "work_mem: 9MB"),
        ("[pageinspect]", "[]"),
        ("seed: 0.5", "seed: 0.4"),
        ("k: [1, 2]", "k: [1, 3]"),
        ("k: [1, 2]", "k: [1, \"2\"]"),
        ("2 * n,", "3 * n,"),
        (
            "twice: 2 * n, four: 2 * twice",
            "four: 2 * n, twice: 2 * four",
        ),
        ("max(twice)", "min(twice)"),
        ("rest: {kind: exact}", "rest: {kind: exact, profile: quick}"),
        ("SELECT n FROM", "SELECT n, 1 FROM"),
        ("SELECT k, n FROM", "SELECT k, n + 1 AS n FROM"),
    ] {
        assert!(ARTICLE.contains(from), "{from}");
        let after = key_of(&ARTICLE.replacen(from, to, 1), None, "1");
        assert_ne!(after, before, "{from} → {to}");
    }
    for (from, to) in [
        ("Prose.", "Other prose."),
        ("How it goes", "How it went"),
        ("unit: B", "unit: kB, tolerance: 1%, published: 3"),
        ("alt: Bars", "alt: Other bars"),
        ("title: T", "title: U"),
    ] {
        assert!(ARTICLE.contains(from), "{from}");
        let after = key_of(&ARTICLE.replacen(from, to, 1), None, "1");
        assert_eq!(after, before, "{from} → {to}");
    }
}

#[test]
fn queries_are_told_by_what_they_are_for() {
    let queries = queries(&article(ARTICLE));
    let names: Vec<&str> = queries.fields.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "chart `ch`",
            "claim `rest`",
            "claim `twice`",
            "derive 1 of `insert`, `twice`",
            "derive 2 of `insert`, `four`",
            "table `t`"
        ]
    );
    assert_eq!(
        queries.fields["claim `twice`"],
        "SELECT max(twice) FROM measured.insert"
    );
}

#[test]
fn a_claim_reads_the_experiments_whose_tables_it_names() {
    let article = article(ARTICLE);
    let read: Vec<Vec<String>> = article
        .claims()
        .map(|claim| reads(&article, &claim.query))
        .collect();
    assert_eq!(read, [vec!["insert"], vec!["insert", "insert_more"]]);
}

#[test]
fn a_claim_is_one_value_that_is_a_number_or_a_boolean() {
    let table = |types: &[&str], rows: &[&[Option<&str>]]| Table {
        columns: types.iter().map(|name| Column::new(*name, *name)).collect(),
        rows: rows
            .iter()
            .map(|row| {
                row.iter()
                    .zip(types)
                    .map(|(cell, type_name)| Value::from_postgres(*cell, type_name))
                    .collect()
            })
            .collect(),
    };
    for (types, rows, wrong) in [
        (&["numeric"][..], &[&[None][..]][..], "gives NULL"),
        (&["numeric"], &[], "gives no row"),
        (&["numeric"], &[&[Some("1")], &[Some("2")]], "gives 2 rows"),
        (
            &["numeric", "text"],
            &[&[Some("1"), None]],
            "gives 2 columns",
        ),
        (&[], &[&[]], "gives 0 columns"),
        (&["text"], &[&[Some("1")]], "gives text (`1`)"),
        (
            &["comparison"],
            &[&[None]],
            "gives NULL: one of the two that it compares has no runs",
        ),
        (
            &["text"],
            &[&[Some("(2,1,3,4,4)")]],
            "gives text (`(2,1,3,4,4)`)",
        ),
        (
            &["date"],
            &[&[Some("2026-11-30")]],
            "gives date (`2026-11-30`)",
        ),
    ] {
        assert_eq!(single_value(&table(types, rows)).unwrap_err(), wrong);
    }
    for (type_name, text) in [("numeric", "NaN"), ("boolean", "false"), ("real", "1e-7")] {
        let single = single_value(&table(&[type_name], &[&[Some(text)]])).unwrap();
        assert_eq!(single.type_name, type_name);
        assert_eq!(single.value, Value::from_postgres(Some(text), type_name));
        assert_eq!(single.comparison, None);
    }
    let compared = table(&["comparison"], &[&[Some("(2,1.5,3,4,5)")]]);
    let single = single_value(&compared).unwrap();
    assert_eq!(single.value, Value::from_postgres(Some("2"), "numeric"));
    let comparison = single.comparison.unwrap();
    assert_eq!(comparison.interval.0.to_string(), "1.5");
    assert_eq!(comparison.runs, (4, 5));
}
