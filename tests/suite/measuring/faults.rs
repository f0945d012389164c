//! What goes wrong on a real server is told at its place, and nothing is written.

use crate::project::{Project, built, measured, refused};

#[test]
fn an_expected_error_is_a_success_and_its_absence_a_failure() {
    let record = built(
        "
```sql experiment e
--| expect_error: \"23505\"
--| runs: 2
--| setup:
CREATE TABLE t (a int PRIMARY KEY);
--| measure:
INSERT INTO t SELECT g % 5 FROM generate_series(1, 10) AS g;
--| collect:
SELECT count(*) AS n FROM t;
```

```sql experiment in_transaction
--| expect_error: \"23505\"
--| instruments: [time, wal, hot, tuples]
--| runs: 2
--| setup:
CREATE TABLE t (a int PRIMARY KEY);
--| measure:
BEGIN;
INSERT INTO t VALUES (1);
INSERT INTO t VALUES (1);
COMMIT;
--| collect:
SELECT count(*) AS n FROM t;
```
",
    );
    assert_eq!(measured(&record, "e", "n"), ["0", "0"]);
    assert_eq!(measured(&record, "in_transaction", "n"), ["0", "0"]);
    let said = refused(
        "
```sql experiment e
--| expect_error: \"23505\"
SELECT 1 AS one;
```

```sql experiment f
--| expect_error: \"23505\"
SELECT 1 / 0 AS one;
```
",
        2,
    );
    assert!(said.contains("article.md:7:19"), "{said}");
    assert!(said.contains("SQLSTATE `23505` is expected"), "{said}");
    assert!(said.contains("division by zero (SQLSTATE 22012)"), "{said}");
}

#[test]
fn a_statement_beyond_its_timeout_is_ended() {
    let said = refused(
        "
```sql experiment e
--| timeout: 150ms
SELECT 1;
SELECT pg_sleep(60);
```
",
        2,
    );
    assert!(said.contains("longer than its timeout of 150ms"), "{said}");
    assert!(said.contains("article.md:9:1"), "{said}");
}

#[test]
fn sql_errors_stand_at_their_place_in_postgres_words() {
    let said = refused(
        "
---
title: T
postgres: {version: \"16.15\"}
params: {column: 'µµµ'}
---

```sql fixture bad
CREATE TABLE t (a int);
INSERT INTO t VALUES
  (1), (x);
```

```sql experiment of_fixture
--| fixture: bad
SELECT 1;
```

```sql experiment e
--| setup:
CREATE TABLE t (a int);
--| measure:
SELECT :'column' AS c, aa FROM t;
```

```sql experiment generated
SELECT 'SELECT * FROM nowhere' \\gexec
```

```sql experiment collecting
--| measure:
SELECT 1 AS one;
--| collect:
SELECT one;
```

```sql experiment many
--| measure:
SELECT 1 AS one;
--| collect:
SELECT generate_series(1, 2) AS g;
```

```sql experiment twice
--| matrix: {n: [1]}
SELECT 1 AS n;
```

```sql experiment no_row
SELECT 1 AS one WHERE false \\gset
```
",
        2,
    );
    for expected in [
        "article.md:10:9",
        "column \"x\" does not exist",
        "in fixture `bad`",
        "article.md:22:24",
        "column \"aa\" does not exist",
        "Perhaps you meant to reference the column \"t.a\".",
        "article.md:26:1",
        "relation \"nowhere\" does not exist",
        "in the generated statement: SELECT * FROM nowhere",
        "article.md:33:8",
        "needs exactly one row, this one gave 2",
        "the column `n` is there already",
        "`\\gset` needs exactly one row, the query gave 0",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    assert!(said.contains("7 problems"), "{said}");
}

#[test]
fn errors_of_derive_claims_tables_and_charts_come_together() {
    let said = refused(
        "
```sql experiment e
--| derive: {twice: 2 * nope, by_zero: rows / 0}
SELECT 1 AS one;
```
",
        2,
    );
    assert!(said.contains("article.md:7:21"), "{said}");
    assert!(said.contains("column \"nope\" does not exist"), "{said}");
    assert!(said.contains("division by zero"), "{said}");
    let said = refused(
        "
```sql experiment e
SELECT 1 AS one;
```

```sql claims c
--| none: {kind: exact}
SELECT one FROM measured.e
WHERE oen = 1;
--| missing: {kind: exact}
SELECT max(one) FROM measured.e WHERE one > 1;
```

```sql table t
--| caption: T
SELECT two FROM measured.e;
```

```sql chart ch
--| type: bar
--| x: one
--| y: one
--| alt: A bar
SELECT µ FROM measured.e;
```
",
        2,
    );
    for expected in [
        "article.md:13:7",
        "column \"oen\" does not exist",
        "claim `missing` gives NULL",
        "column \"two\" does not exist",
        "article.md:28:8",
        "4 problems",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    let said = refused(
        "
```sql experiment e
SELECT 1 AS one;
```

```sql chart ch
--| type: bar
--| x: one
--| y: three
--| alt: A bar
SELECT one FROM measured.e;
```
",
        2,
    );
    assert!(said.contains("article.md:13:8"), "{said}");
    assert!(said.contains("three"), "{said}");
}

#[test]
fn an_article_reaches_neither_files_nor_programs_nor_the_superuser() {
    let attempts = [
        "COPY (SELECT 1) TO PROGRAM 'touch /tmp/remeasure-was-here'",
        "COPY (SELECT 1) TO '/tmp/remeasure-was-here'",
        "SELECT pg_read_file('/etc/passwd')",
        "CREATE ROLE admin SUPERUSER",
        "SET ROLE postgres",
        "ALTER SYSTEM SET archive_command = 'touch /tmp/remeasure-was-here'",
    ];
    let blocks: Vec<String> = attempts
        .iter()
        .enumerate()
        .map(|(number, sql)| format!("```sql experiment e{number}\n{sql};\n```\n"))
        .collect();
    let said = refused(&blocks.join("\n"), 2);
    assert_eq!(said.matches("permission denied").count(), 6, "{said}");
    assert!(!std::path::Path::new("/tmp/remeasure-was-here").exists());
    let said = refused(
        "
---
title: T
postgres: {version: \"16.15\", settings: {shared_preload_libraries: /tmp/x, work_mem: lots}}
---

```sql experiment e
SELECT 1;
```
",
        2,
    );
    assert!(said.contains("not the article's to set"), "{said}");
}

#[test]
fn settings_that_are_wrong_stand_at_their_place() {
    let said = refused(
        "
```sql experiment e
--| settings: {work_mm: 8MB}
SELECT 1;
```

```sql experiment f
--| settings: {work_mem: lots}
SELECT 1;
```

```sql experiment g
--| session: {work_mem: more}
SELECT 1;
```

```sql experiment h
--| settings: {shared_buffers: 1}
SELECT 1;
```

```sql experiment i
--| settings: {archive_command: rm}
SELECT 1;
```

```sql experiment last
SELECT current_setting('work_mem');
```
",
        2,
    );
    for expected in [
        "article.md:7:25",
        "did you mean `work_mem`?",
        "article.md:12:26",
        "invalid value for parameter \"work_mem\": \"lots\"",
        "article.md:17:25",
        "invalid value for parameter \"work_mem\": \"more\"",
        "article.md:22:",
        "article.md:27:",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
}

#[test]
fn a_session_that_the_article_ended_is_the_articles_mistake_and_the_others_are_kept() {
    let project = Project::new(
        "
```sql experiment kept
SELECT 1 AS one;
```

```sql experiment lost
SELECT pg_terminate_backend(pg_backend_pid());
```
",
    );
    let ran = project.build();
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    for told in [
        "article.md:11:1",
        "terminating connection due to administrator command (SQLSTATE 57P01)",
        "only this session was ended",
    ] {
        assert!(ran.stderr.contains(told), "{told}\n{}", ran.stderr);
    }
    assert!(!project.path("out").exists());
    let again = project.build();
    assert!(
        again.stderr.contains("kept  kept: nothing"),
        "{}",
        again.stderr
    );
}

#[test]
fn an_article_that_is_wrong_does_not_keep_another_from_being_built() {
    let project = Project::new("```sql experiment e\nSELECT 1 AS one;\n```\n");
    let wrong = project
        .read("articles/a/article.md")
        .replace("SELECT 1", "SELECT wrong");
    project.write("articles/b/article.md", &wrong);
    let ran = project.build();
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("articles/b/article.md"),
        "{}",
        ran.stderr
    );
    assert!(project.path("out/a/index.html").exists());
    assert!(!project.path("out/b").exists());
    let index = project.read("out/index.html");
    assert!(index.contains("a/index.html") && !index.contains("b/index.html"));
}

#[test]
fn a_session_that_a_timeout_of_the_article_ended_is_told_at_its_place() {
    let told = refused(
        "
```sql experiment idle
--| measure:
BEGIN;
SET idle_in_transaction_session_timeout = 50;
SELECT 1 AS one;
--| collect:
SELECT pg_sleep(0.3)::text AS slept;
```

```sql experiment wrong
SELECT 1 / 0;
```
",
        2,
    );
    assert!(told.contains("25P03"), "{told}");
    assert!(told.contains("sql experiment idle"), "{told}");
    // The other experiment's mistake is told as well.
    assert!(told.contains("division by zero"), "{told}");
}

#[test]
fn a_query_over_what_was_measured_cannot_change_it() {
    let told = refused(
        "
```sql experiment e
SELECT 1 AS one;
```

```sql claims c
--| gone: {kind: exact}
WITH gone AS (DELETE FROM measured.e RETURNING one) SELECT count(*) FROM gone;
```
",
        2,
    );
    assert!(told.contains("read-only transaction"), "{told}");
    assert!(told.contains("WITH gone AS"), "{told}");
}

#[test]
fn a_setting_of_the_article_that_the_server_refuses_is_told_at_its_place() {
    let article = |settings: &str| {
        format!(
            "---\ntitle: T\npostgres: {{version: \"16.15\", settings: {{{settings}}}}}\n---\n\n\
             ```sql experiment e\n--| settings: {{work_mem: 1kB, shared_buffers: lots}}\n\
             SELECT 1;\n```\n"
        )
    };
    for (settings, places) in [
        (
            "work_mem: 1MB, shared_buffers: lots",
            &["article.md:3:56"][..],
        ),
        ("work_mem: 1MB, archive_command: x", &["article.md:3:56"]),
        ("work_mem: 1MB", &["article.md:7:26", "article.md:7:47"]),
    ] {
        let said = refused(&article(settings), 2);
        for place in places {
            assert!(said.contains(place), "{place}\n{said}");
        }
    }
}
