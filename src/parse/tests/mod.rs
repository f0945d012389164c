//! Whole articles: the format's own examples, and what each form is read as.

mod mistakes;
mod texts;

use super::*;
use crate::article::*;
use crate::source::Source;
use std::time::Duration;

const HEAD: &str = "\
---
title: T
postgres: {version: \"16.15\"}
params: {rows: 1000, name: x}
---
";

fn parse_text(text: &str) -> Result<Article, Vec<Diagnostic>> {
    let source = Source::new("a.md", "a.md", text.to_owned());
    let versions = ["16.15".to_owned(), "18.6".to_owned()];
    let known = Known {
        versions: &versions,
        instruments: &sample::INSTRUMENTS,
        charts: &["bar", "line", "scatter"],
        lint_rules: &["unbound", "unused", "alt"],
    };
    parse(&source, "a", Path::new("articles/a"), &known)
}

fn article(text: &str) -> Article {
    parse_text(text).unwrap_or_else(|problems| {
        let told: Vec<String> = problems.iter().map(|p| p.render(false)).collect();
        panic!("{text}\n{}", told.join("\n"))
    })
}

/// A block with its fences, below the usual front matter.
fn with_head(rest: &str) -> Article {
    article(&format!("{HEAD}{rest}"))
}

fn fenced(info: &str, content: &str) -> String {
    format!("```sql {info}\n{content}\n```\n")
}

const EXAMPLE: &str = r#"---
title: What does each extra index actually cost you?   # required
description: Each of {{ rows }} rows
date: 2026-11-30
updated: 2026-12-01
authors: [A. Author]
tags: [indexes, wal]
lang: en
draft: false
source: {title: Another post, url: "https://example.org/post", author: B, date: 2026-09-01}
postgres:
  version: "16.15"
  settings: {shared_buffers: 512MB, max_wal_size: 4GB, checkpoint_timeout: 30min}
  extensions: [pg_walinspect]
  shm_size: 1GB
  memory: 2GB
  cpus: 2
seed: 0
bytes: binary
params: {rows: 1000000}
profiles:
  quick: {rows: 100000, runs: 2, warmup: 1}
lint: {unbound: warn}
extra: {anything: [goes, {here: 1}]}
---
# Cost

```sql fixture src
CREATE TABLE src AS SELECT g AS id, (random() * 1000000)::int AS k1 FROM generate_series(1, :rows) g;
VACUUM ANALYZE src;
```

```sql experiment insert
--| fixture: src
--| matrix: {indexes: [0, 1, 2, 4, 8]}
--| runs: 8
--| setup:
CREATE TABLE t (LIKE src) WITH (autovacuum_enabled = off);
ALTER TABLE t ADD PRIMARY KEY (id);
SELECT format('CREATE INDEX ON t (k%s)', i) FROM generate_series(1, :indexes) i \gexec
CHECKPOINT;
--| measure:
INSERT INTO t SELECT * FROM src;
--| collect:
SELECT pg_indexes_size('t') AS index_bytes;
--| derive: {wal_per_row: wal_bytes / rows, us_per_row: 1000 * elapsed_ms / rows}
```

```sql experiment hot_update
UPDATE t SET a = 1;
```

```sql claims cost
--| index_wal: {unit: B, kind: bounded, tolerance: 1%, published: 76}
SELECT regr_slope(wal_per_row, indexes) FROM measured.insert;
--| hot_is_free: {kind: exact}
SELECT max(wal_per_row) - min(wal_per_row) < 0.1 FROM measured.hot_update;
--| base_rate: {unit: rows/s, kind: noisy, tolerance: 30%, published: 754000}
SELECT median(rows_per_s) FROM measured.insert WHERE indexes = 0;
```

```sql table insert_cost
--| caption: Bulk load of {{ rows }} rows
--| columns: {indexes: "Indexes", rows_per_s: {label: "rows/s", format: "1,000"}}
SELECT indexes, median(rows_per_s) AS rows_per_s FROM measured.insert GROUP BY 1 ORDER BY 1;
```
```sql chart insert_wal
--| type: bar
--| x: indexes
--| y: wal_per_row
--| title: WAL per inserted row
--| alt: Bars that grow by {{ index_wal }} bytes with each index
SELECT indexes, median(wal_per_row) AS wal_per_row FROM measured.insert GROUP BY 1 ORDER BY 1;
```

An index costs [76 bytes](claim:index_wal), {{ index_wal | fixed(n=1) }} to be exact, and HOT is
free [**byte** for `byte`](claim:hot_is_free). The post says [345 bytes](cite:source); see
[](chart:insert_wal), [](table:insert_cost) and [the experiment](experiment:insert) on {{ server.version }}.
"#;

#[test]
fn the_formats_own_examples_are_read() {
    let article = article(EXAMPLE);
    let front = &article.front_matter;
    assert_eq!(
        front.title.text,
        "What does each extra index actually cost you?"
    );
    assert_eq!(front.postgres.version.value, "16.15");
    assert_eq!(front.postgres.settings["shared_buffers"], "512MB");
    assert_eq!(front.postgres.cpus.as_deref(), Some("2"));
    assert_eq!(front.profiles["quick"].runs, Some(Runs::Fixed(2)));
    assert_eq!(front.profiles["quick"].params["rows"].to_string(), "100000");
    assert_eq!(front.lint["unbound"], LintLevel::Warn);
    let description = front.description.as_ref().expect("description");
    assert_eq!(description.fill_ins[0].expression, "rows");

    let ids: Vec<&str> = article
        .blocks
        .iter()
        .map(|block| block.id.value.as_str())
        .collect();
    assert_eq!(
        ids,
        [
            "src",
            "insert",
            "hot_update",
            "cost",
            "insert_cost",
            "insert_wal"
        ]
    );
    let insert = article.experiments().next().expect("insert");
    assert_eq!(
        insert.fixture.as_ref().map(|f| f.value.as_str()),
        Some("src")
    );
    assert_eq!(insert.cells.columns, ["indexes"]);
    assert_eq!(insert.cells.rows.len(), 5);
    assert_eq!(insert.runs, Runs::Fixed(8));
    assert_eq!(insert.timeout, Duration::from_secs(600));
    let setup = &insert.setup[0].phase;
    assert_eq!(setup.script.statements.len(), 4);
    assert_eq!(setup.script.statements[2].terminator, Terminator::Gexec);
    assert_eq!(
        insert.measure.script.statements[0].text.text,
        "INSERT INTO t SELECT * FROM src"
    );
    assert_eq!(insert.collects.len(), 1);
    assert_eq!(
        insert.derive["us_per_row"].value,
        "1000 * elapsed_ms / rows"
    );
    let names: Vec<&str> = insert
        .instruments
        .iter()
        .map(|i| i.value.name.as_str())
        .collect();
    assert_eq!(names, ["time", "wal"]);

    let claims: Vec<&Claim> = article.claims().collect();
    assert_eq!(claims[0].kind, ClaimKind::Bounded);
    let tolerance = claims[0].tolerance.as_ref().map(|t| t.value.clone());
    assert_eq!(
        tolerance,
        Some(Tolerance::Relative("0.01".parse().expect("number")))
    );
    assert_eq!(claims[0].published, Some(Published::Number(76.into())));
    assert_eq!(claims[2].unit.as_deref(), Some("rows/s"));
    let table = article.tables().next().expect("table");
    assert_eq!(table.columns["rows_per_s"].format.as_deref(), Some("1,000"));
    let chart = article.charts().next().expect("chart");
    assert_eq!(chart.y[0].value, "wal_per_row");
    assert_eq!(chart.alt.fill_ins.len(), 1);

    let prose = &article.prose;
    let quotes: Vec<(&str, &str)> = prose
        .quotes
        .iter()
        .map(|quote| (quote.claim.value.as_str(), quote.text.as_str()))
        .collect();
    assert_eq!(
        quotes,
        [("index_wal", "76 bytes"), ("hot_is_free", "byte for byte")]
    );
    assert_eq!(prose.fill_ins.len(), 2);
    assert_eq!(prose.references.len(), 3);
    assert_eq!(prose.references[2].text, "the experiment");
    assert_eq!(prose.citations[0].text, "345 bytes");
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_change_nothing() {
    let unix = article(EXAMPLE);
    let windows = article(&format!("\u{feff}{}", EXAMPLE.replace('\n', "\r\n")));
    let statements = |article: &Article| -> Vec<String> {
        let experiment = article.experiments().next().expect("an experiment");
        let script = experiment.setup[0].phase.script.clone();
        script
            .statements
            .iter()
            .map(|s| s.text.text.replace("\r\n", "\n"))
            .collect()
    };
    assert_eq!(statements(&unix), statements(&windows));
    assert_eq!(unix.prose.quotes.len(), windows.prose.quotes.len());
    let place = |article: &Article| {
        let query = &article.claims().next().expect("claim").query;
        article.source.line_column(query.text.to_source(0))
    };
    assert_eq!(place(&unix), place(&windows));
}

#[test]
fn every_place_leads_to_what_was_written() {
    let article = article(EXAMPLE);
    let source = &article.source;
    for quote in &article.prose.quotes {
        assert_eq!(source.slice(quote.claim.span), quote.claim.value);
        assert!(source.slice(quote.span).starts_with('['));
        assert!(source.slice(quote.span).ends_with(')'));
    }
    assert_eq!(
        source.slice(article.prose.quotes[1].text_span),
        "**byte** for `byte`"
    );
    for fill_in in &article.prose.fill_ins {
        let written = source.slice(fill_in.span);
        assert!(written.starts_with("{{") && written.ends_with("}}"));
    }
    for block in &article.blocks {
        assert_eq!(source.slice(block.id.span), block.id.value);
        assert!(source.slice(block.span).starts_with("```sql "));
    }
    for claim in article.claims() {
        assert_eq!(source.slice(claim.name.span), claim.name.value);
    }
}

#[test]
fn fences_are_live_wherever_markdown_has_them() {
    let article = with_head(
        "- item\n\n  ~~~sql fixture in_list\n  SELECT 1;\n  SELECT\n    2;\n  ~~~\n\n\
         > ```sql experiment in_quote\n> --| runs: 2\n> SELECT 3;\n> ```\n\n\
         1. ````sql fixture long\n   SELECT '```';\n   ````\n",
    );
    let ids: Vec<&str> = article
        .blocks
        .iter()
        .map(|block| block.id.value.as_str())
        .collect();
    assert_eq!(ids, ["in_list", "in_quote", "long"]);
    let fixture = article.fixtures().next().expect("fixture");
    assert_eq!(fixture.script.statements[1].text.text, "SELECT\n  2");
    assert_eq!(
        article
            .source
            .line_column(fixture.script.statements[1].text.to_source(0)),
        (10, 3)
    );
    assert_eq!(
        article
            .source
            .line_column(fixture.script.statements[1].text.to_source(9)),
        (11, 5)
    );
    let experiment = article.experiments().next().expect("experiment");
    assert_eq!(experiment.runs, Runs::Fixed(2));
}

#[test]
fn other_fences_are_left_alone() {
    let article = with_head(
        "```sql\nSELECT 'it;\n```\n```sql some words\n--| x: [\n```\n```\n{{ nope }} [1](claim:nope)\n```\n\
         ```python experiment x\n```\n    sql fixture y\n\n```sql no highlight\n\\d t\n```\n\
         <div>\n```sql fixture z\n</div>\n\n```sql {.numberLines}\n```\n",
    );
    assert!(article.blocks.is_empty());
    assert!(article.prose.quotes.is_empty());
}

#[test]
fn phases_are_cut_at_their_lines() {
    let article = with_head(&fenced(
        "experiment e",
        "--| warmup: 2\n--| setup:\nCREATE TABLE t (a int);\n--| warmup:\nSELECT 0;\n--| runs: {min: 3, max: 12, until: 2%}\n\
         --| measure:\nBEGIN;\nINSERT INTO t SELECT 1;\n--| collect: {as: waits}\nSELECT pid FROM x WHERE pid = :subject_pid;\n\
         --| collect: {in: subject}\nSELECT 1 AS a;\n--| collect:\nSELECT 2 AS b;\n--|   \n--| teardown:\nDROP TABLE t;\n\
         --| session: {work_mem: :rows}\n--| timeout: 1.5s\n--| expect_error: 23505\n--| fresh: run\n--| order: interleave\n--| echo: false",
    ));
    let e = article.experiments().next().expect("e");
    assert_eq!(e.warmup_runs, 2);
    assert_eq!(e.warmup.len(), 1);
    assert_eq!(e.warmup[0].phase.script.statements.len(), 1);
    assert_eq!(e.measure.script.statements.len(), 2);
    let until = "0.02".parse().expect("number");
    assert_eq!(
        e.runs,
        Runs::Adaptive {
            min: 3,
            max: 12,
            until
        }
    );
    let collects: Vec<(Option<&str>, CollectSession)> = e
        .collects
        .iter()
        .map(|collect| {
            (
                collect.name.as_ref().map(|n| n.value.as_str()),
                collect.session.clone(),
            )
        })
        .collect();
    assert_eq!(
        collects,
        [
            (Some("waits"), CollectSession::Observer),
            (None, CollectSession::Subject),
            (None, CollectSession::Observer)
        ]
    );
    assert_eq!(e.teardown.len(), 1);
    assert_eq!(e.session["work_mem"].value, ":rows");
    assert_eq!(e.timeout, Duration::from_millis(1500));
    assert_eq!(
        e.expect_error.as_ref().map(|s| s.value.as_str()),
        Some("23505")
    );
    assert_eq!(
        (e.fresh, e.order, e.echo),
        (Fresh::Run, Order::Interleave, false)
    );
}

#[test]
fn a_block_without_phases_is_all_measure() {
    let article = with_head(&fenced(
        "experiment e",
        "--| runs: 2\nSELECT 1;\n--| fresh: run\nSELECT 2;",
    ));
    let e = article.experiments().next().expect("e");
    assert_eq!(e.measure.script.statements.len(), 2);
    assert_eq!(e.fresh, Fresh::Run);
}

#[test]
fn a_matrix_is_every_combination_and_cases_are_listed() {
    let article = with_head(&format!(
        "{}{}",
        fenced("experiment a", "--| matrix:\n--|   n: [0, 010.5, 1e3]\n--|   kind: [x, \"1\", off, true]\nSELECT :n, :'kind';").replace("010.5", "10.50"),
        fenced("experiment b", "--| cases: [{n: 1, kind: x}, {kind: y, n: 2}]\nSELECT :n, :'kind';"),
    ));
    let mut experiments = article.experiments();
    let a = &experiments.next().expect("a").cells;
    assert_eq!(a.columns, ["n", "kind"]);
    assert_eq!(a.rows.len(), 12);
    let shown = |row: &[Scalar]| {
        row.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let rows: Vec<String> = a.rows.iter().map(|row| shown(row)).collect();
    assert_eq!(
        rows[..6],
        ["0 x", "0 1", "0 off", "0 true", "10.50 x", "10.50 1"]
    );
    assert_eq!(rows[8], "1000 x");
    assert_eq!(a.rows[0][1], Scalar::Text("x".into()));
    assert_eq!(a.rows[1][1], Scalar::Text("1".into()));
    assert_eq!(a.rows[3][1], Scalar::Boolean(true));
    let b = &experiments.next().expect("b").cells;
    assert_eq!(
        b.rows.iter().map(|row| shown(row)).collect::<Vec<_>>(),
        ["1 x", "2 y"]
    );
}

#[test]
fn tolerances_are_read_in_all_their_forms() {
    let number = |text: &str| text.parse().expect("number");
    for (written, expected) in [
        ("1%", Tolerance::Relative(number("0.01"))),
        ("2.5 %", Tolerance::Relative(number("0.025"))),
        ("0.5", Tolerance::Absolute(number("0.5"))),
        ("[70, 80]", Tolerance::Range(number("70"), number("80"))),
        (">= 3", Tolerance::AtLeast(number("3"))),
        ("\">=3\"", Tolerance::AtLeast(number("3"))),
        ("<= 10", Tolerance::AtMost(number("10"))),
    ] {
        let flow = format!("--| c: {{tolerance: {written}, unit: B}}\nSELECT 1;");
        let block = format!("--| c:\n--|   tolerance: {written}\n--|   unit: B\nSELECT 1;");
        for text in [flow, block] {
            let article = with_head(&fenced("claims c1", &text));
            let claim = article.claims().next().expect("claim");
            let found = claim.tolerance.as_ref().map(|t| &t.value);
            assert_eq!(found, Some(&expected), "{text}");
        }
    }
}

#[test]
fn quotes_are_found_in_every_place_and_form() {
    let claims = fenced("claims c", "--| a: {}\nSELECT 1;\n--| b:\nSELECT true;");
    let text = format!(
        "{claims}\n# Heading [1 B](claim:a)\n\n| x | y |\n|---|---|\n| [2 B](claim:a) | {{{{ a | fixed(n=1) }}}} |\n\n\
         - item [3 *B*](claim:a \"title\")\n\n> [4\nB](<claim:a>)\n\n[^1]: note [5 B](claim:a)\n\nText[^1] [6 B][ref] and [7&nbsp;B][].\n\n\
         ![alt [8 B](claim:a) {{{{ b }}}}](x.png)\n\n[ref]: claim:a\n[7&nbsp;B]: claim:b\n"
    );
    let article = with_head(&text);
    let texts: Vec<&str> = article
        .prose
        .quotes
        .iter()
        .map(|quote| quote.text.as_str())
        .collect();
    assert_eq!(
        texts,
        ["1 B", "2 B", "3 B", "4 B", "5 B", "6 B", "7\u{a0}B", "8 B"]
    );
    let spans: Vec<&str> = article
        .prose
        .quotes
        .iter()
        .map(|quote| article.source.slice(quote.text_span))
        .collect();
    assert_eq!(
        spans,
        [
            "1 B", "2 B", "3 *B*", "4\nB", "5 B", "6 B", "7&nbsp;B", "8 B"
        ]
    );
    assert_eq!(article.prose.fill_ins.len(), 2);
}

#[test]
fn fill_ins_survive_what_markdown_would_make_of_them() {
    let claims = fenced("claims c", "--| a: {}\nSELECT 1;");
    let text = format!(
        "{claims}\n{{{{ a ~ '<b>' }}}} {{{{ a ~ \"`\" }}}} and `code {{{{ no }}}}` {{{{ a * rows * a }}}} _x_ \\{{{{ literal }}}} \
         <!-- {{{{ no }}}} --> [{{{{ a }}}}](https://example.org)\n"
    );
    let article = with_head(&text);
    let expressions: Vec<&str> = article
        .prose
        .fill_ins
        .iter()
        .map(|fill_in| fill_in.expression.as_str())
        .collect();
    assert_eq!(expressions, ["a ~ '<b>'", "a ~ \"`\"", "a * rows * a", "a"]);
}

#[test]
fn masked_text_is_as_long_and_stays_one_word() {
    let text = "a {{ b | c }} d";
    let masked = mask(text, std::iter::once(2..13));
    assert_eq!(masked.len(), text.len());
    assert_eq!(masked, format!("a {MASK}xxxxxxxx d"));
}

#[test]
fn no_text_makes_the_parser_panic_or_point_outside() {
    let windows = EXAMPLE.replace('\n', "\r\n");
    let places: Vec<usize> = EXAMPLE.char_indices().map(|(at, _)| at).collect();
    for (round, &at) in places.iter().enumerate().step_by(13) {
        let cut = &EXAMPLE[at..];
        let inserted = ["`", "'", "\"", "{{", "}", "[", "--|", "\n", "$$", "/*", "µ"][round % 11];
        let texts = [
            EXAMPLE[..at].to_owned(),
            format!("{}{inserted}{cut}", &EXAMPLE[..at]),
            format!(
                "{}{}",
                &EXAMPLE[..at],
                cut.chars().skip(1).collect::<String>()
            ),
            windows.chars().take(round).collect(),
        ];
        for text in texts {
            for problem in parse_text(&text).err().unwrap_or_default() {
                let place = problem.place.as_ref().expect("every problem has a place");
                assert!(place.span.start <= place.span.end, "{problem:?}");
                assert!(text.get(place.span.range()).is_some(), "{problem:?}");
                assert!(problem.hint.is_some(), "{problem:?}");
            }
        }
    }
}

#[test]
fn a_long_article_is_read_in_linear_time() {
    let claims: String = (0..2000)
        .map(|index| format!("--| c{index}: {{unit: B}}\nSELECT {index} FROM measured.e;\n"))
        .collect();
    let prose: String = (0..2000)
        .map(|index| {
            let words = "The quick brown fox ](jumps) over `code` and *the* lazy dog. ".repeat(6);
            format!("{words} It takes [{index} bytes](claim:c{index}) of {{{{ c{index} }}}} B.\n\n")
        })
        .collect();
    let text = format!(
        "{HEAD}{}```sql claims c\n{claims}```\n\n{prose}",
        fenced("experiment e", "SELECT 1;")
    );
    assert!(text.len() > 900_000);
    let article = article(&text);
    assert_eq!(article.prose.quotes.len(), 2000);
    assert_eq!(article.prose.fill_ins.len(), 2000);
    assert_eq!(article.claims().count(), 2000);
}
