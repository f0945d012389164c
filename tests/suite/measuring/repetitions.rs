//! One statement over and over.

use crate::project::{built, column, experiment, measured, refused};

#[test]
fn a_statement_is_repeated_each_in_a_transaction_of_its_own_or_all_in_one() {
    let record = built(
        "
---
title: T
postgres: {version: \"18.6\"}
params: {times: 30}
---

```sql experiment each
--| runs: 2
--| setup:
CREATE TABLE t (a bigint);
--| measure: {repeat: \":times\"}
INSERT INTO t SELECT g FROM generate_series(1, 2) g;
--| collect:
SELECT count(*) AS n, count(DISTINCT xmin::text) AS transactions FROM t;
```

```sql experiment one
--| matrix: {n: [10, 20]}
--| setup:
CREATE TABLE t (a bigint);
--| measure: {repeat: \":n\", transaction: one}
INSERT INTO t VALUES (:n);
--| collect:
SELECT count(*) AS inserted, count(DISTINCT xmin::text) AS transactions FROM t;
```
",
    );
    let of = |id: &str, name: &str| measured(&record, id, name);
    assert_eq!(of("each", "executions"), ["30", "30"]);
    assert_eq!(of("each", "n"), ["60", "120"]);
    assert_eq!(of("each", "rows"), ["60", "60"]);
    assert_eq!(of("each", "transactions"), ["30", "60"]);
    assert_eq!(of("one", "executions"), ["10", "20"]);
    assert_eq!(of("one", "inserted"), ["10", "20"]);
    assert_eq!(of("one", "transactions"), ["1", "1"]);
    // Of the write-ahead log the same is known another way.
    let wal = &experiment(&record, "each").results["wal"];
    let types = column(wal, "record_type");
    let counts = column(wal, "count");
    let at = types.iter().position(|name| name == "Transaction/COMMIT");
    assert_eq!(counts[at.unwrap()], "30");

    let number = |text: &String| -> f64 { text.parse().unwrap() };
    for id in ["each", "one"] {
        let values: Vec<f64> = ["p50", "p90", "p99", "max"]
            .iter()
            .map(|name| number(&of(id, &format!("execution_{name}_us"))[0]))
            .collect();
        assert!(values.is_sorted() && values[0] > 0.0, "{values:?}");
        let total = number(&of(id, "execution_us")[0]) * number(&of(id, "executions")[0]);
        let elapsed = number(&of(id, "elapsed_ms")[0]) * 1000.0;
        // Of `one`, BEGIN and COMMIT are part of the elapsed time.
        assert!(total <= elapsed * 1.001, "{total} {elapsed}");
    }
    let statements = &experiment(&record, "one").results["statements"];
    assert_eq!(
        column(statements, "rows"),
        ["NULL", "10", "NULL", "NULL", "20", "NULL"]
    );
}

#[test]
fn an_error_in_a_repetition_is_told_at_its_place_or_expected() {
    let told = refused(
        "```sql experiment e\n--| measure: {repeat: 5}\nSELECT 1,\n 1 / 0;\n```\n",
        2,
    );
    assert!(
        told.contains("Postgres: division by zero (SQLSTATE 22012)"),
        "{told}"
    );
    assert!(told.contains("articles/a/article.md:8:1\n"), "{told}");
    let record = built(
        "
```sql experiment e
--| expect_error: \"23505\"
--| runs: 2
--| fresh: run
--| setup:
CREATE TABLE t (a int PRIMARY KEY);
--| measure: {repeat: 5, transaction: one}
INSERT INTO t SELECT count(*) / 2 FROM t;
--| collect:
SELECT count(*) AS n FROM t;
```
",
    );
    // Of what was rolled back nothing is left.
    assert_eq!(measured(&record, "e", "executions"), ["1", "1"]);
    assert_eq!(measured(&record, "e", "n"), ["0", "0"]);
}
