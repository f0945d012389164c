//! Cells and runs, states and sessions, and the order of it all.

use crate::project::{Project, built, claim, column, experiment, measured};

#[test]
fn a_matrix_is_walked_in_order_and_cases_are_cells_one_by_one() {
    let record = built(
        "
```sql experiment grid
--| matrix: {a: [2, 1], b: [x, \"y's\"], c: [true]}
SELECT :a AS seen_a, :'b' AS seen_b, :c AS seen_c;
```

```sql experiment list
--| cases: [{a: 3, b: 0.50}, {a: 1, b: 7}]
SELECT :a + :b AS sum;
```
",
    );
    for (name, expected) in [
        ("a", ["2", "2", "1", "1"]),
        ("seen_a", ["2", "2", "1", "1"]),
        ("b", ["x", "y's", "x", "y's"]),
        ("seen_b", ["x", "y's", "x", "y's"]),
        ("seen_c", ["true"; 4]),
        ("run", ["1"; 4]),
    ] {
        assert_eq!(measured(&record, "grid", name), expected, "{name}");
    }
    assert_eq!(measured(&record, "list", "sum"), ["3.50", "8"]);
    let types: Vec<_> = experiment(&record, "grid").measured.columns[..4]
        .iter()
        .map(|column| (column.name.as_str(), column.type_name.as_str()))
        .collect();
    assert_eq!(
        types,
        [
            ("a", "numeric"),
            ("b", "text"),
            ("c", "boolean"),
            ("run", "integer")
        ]
    );
}

#[test]
fn runs_are_as_many_as_asked_for_and_adaptive_ones_within_their_bounds() {
    let record = built(
        "
```sql experiment fixed
--| matrix: {n: [1, 2]}
--| runs: 3
SELECT 1 AS one;
```

```sql experiment surely
--| runs: {min: 4, max: 9, until: 1000%}
SELECT pg_sleep(0.001);
```

```sql experiment never
--| runs: {min: 3, max: 7, until: 0.0001%}
SELECT pg_sleep(random() / 500);
```
",
    );
    assert_eq!(
        measured(&record, "fixed", "run"),
        ["1", "2", "3", "1", "2", "3"]
    );
    assert_eq!(measured(&record, "surely", "run"), ["1", "2", "3", "4"]);
    assert_eq!(measured(&record, "never", "run").len(), 7);
}

#[test]
fn warm_ups_are_not_recorded() {
    let record = built(
        "
```sql experiment times
--| warmup: 2
--| runs: 2
--| setup:
CREATE SEQUENCE s;
--| measure:
SELECT nextval('s') AS n;
```

```sql experiment own
--| runs: 2
--| setup:
CREATE SEQUENCE s;
--| warmup:
SELECT nextval('s') FROM generate_series(1, 10);
--| measure:
SELECT nextval('s') AS n;
```

```sql experiment both
--| warmup: 3
--| setup:
CREATE SEQUENCE s;
--| warmup:
SELECT nextval('s') FROM generate_series(1, 10);
--| measure:
SELECT nextval('s') AS n;
```

```sql experiment each
--| warmup: 1
--| runs: 2
--| fresh: run
--| setup:
CREATE SEQUENCE s;
--| measure:
SELECT nextval('s') AS n;
```
",
    );
    assert_eq!(measured(&record, "times", "n"), ["3", "4"]);
    assert_eq!(measured(&record, "own", "n"), ["11", "12"]);
    assert_eq!(measured(&record, "both", "n"), ["31"]);
    assert_eq!(measured(&record, "each", "n"), ["2", "2"]);
}

#[test]
fn a_state_is_fresh_for_each_cell_or_run_or_never() {
    let record = built(
        "
```sql fixture base
CREATE TABLE base AS SELECT 1 AS a;
CREATE SEQUENCE s;
```

```sql experiment cell
--| fixture: base
--| matrix: {n: [1, 2]}
--| runs: 2
SELECT nextval('s') AS n_seen;
```

```sql experiment run
--| fixture: base
--| matrix: {n: [1, 2]}
--| runs: 2
--| fresh: run
SELECT nextval('s') AS n_seen;
```

```sql experiment never
--| fixture: base
--| matrix: {n: [1, 2, 3]}
--| fresh: never
--| setup:
SELECT format('CREATE INDEX ON base (a, (a + %s))', :n) \\gexec
--| measure:
SELECT nextval('s') AS n_seen, (SELECT count(*) FROM pg_index WHERE indrelid = 'base'::regclass) AS indexes;
--| teardown:
INSERT INTO base VALUES (:n);
--| collect:
SELECT sum(a) AS total FROM base;
```
",
    );
    assert_eq!(measured(&record, "cell", "n_seen"), ["1", "2", "1", "2"]);
    assert_eq!(measured(&record, "run", "n_seen"), ["1"; 4]);
    assert_eq!(measured(&record, "never", "n_seen"), ["1", "2", "3"]);
    assert_eq!(measured(&record, "never", "indexes"), ["1", "2", "3"]);
    // The teardown of one cell is seen by the next.
    assert_eq!(measured(&record, "never", "total"), ["1", "2", "4"]);
}

#[test]
fn a_session_is_new_for_each_cell_or_each_run() {
    let record = built(
        "
```sql experiment cell
--| matrix: {n: [1, 2]}
--| runs: 2
SELECT pg_backend_pid() AS pid;
--| derive: {parity: pid % 2}
```

```sql experiment run
--| runs: 3
--| connect: run
SELECT pg_backend_pid() AS pid, random()::text AS drawn;
```
",
    );
    let pids = measured(&record, "cell", "pid");
    assert_eq!(pids[0], pids[1]);
    assert_eq!(pids[2], pids[3]);
    assert_ne!(pids[0], pids[2]);
    let mut pids = measured(&record, "run", "pid");
    pids.dedup();
    assert_eq!(pids.len(), 3);
    // Every session begins with the article's seed.
    let mut drawn = measured(&record, "run", "drawn");
    drawn.dedup();
    assert_eq!(drawn.len(), 1);
}

#[test]
fn interleaved_cells_take_turns() {
    let article = |order: &str| {
        format!(
            "
```sql experiment e
--| matrix: {{n: [1, 2, 3]}}
--| runs: 2
--| order: {order}
--| setup:
CREATE SEQUENCE s;
--| measure:
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS at, nextval('s') AS seen;
```
"
        )
    };
    let in_time = |order: &str| -> Vec<String> {
        let record = built(&article(order));
        let at = measured(&record, "e", "at");
        let n = measured(&record, "e", "n");
        let run = measured(&record, "e", "run");
        // Each cell has its own state, whatever the order.
        assert_eq!(
            measured(&record, "e", "seen"),
            ["1", "2", "1", "2", "1", "2"]
        );
        let mut rows: Vec<(i64, String)> = (0..at.len())
            .map(|i| (at[i].parse().unwrap(), format!("{}.{}", n[i], run[i])))
            .collect();
        rows.sort();
        rows.into_iter().map(|(_, row)| row).collect()
    };
    assert_eq!(
        in_time("sequential"),
        ["1.1", "1.2", "2.1", "2.2", "3.1", "3.2"]
    );
    assert_eq!(
        in_time("interleave"),
        ["1.1", "2.1", "3.1", "1.2", "2.2", "3.2"]
    );
}

#[test]
fn derived_columns_build_on_one_another_and_divide_without_truncating() {
    let record = built(
        "
---
title: T
postgres: {version: \"16.15\"}
params: {factor: 3}
---

```sql experiment e
--| instruments: [time]
--| setup:
CREATE TABLE t (a int);
--| measure:
INSERT INTO t SELECT generate_series(1, 7);
--| collect:
SELECT count(*) AS counted FROM t;
--| derive: {half: rows / 2, more: half + :factor, whole: counted / 2, rate: rows * 1000 / elapsed_ms}
```
",
    );
    assert_eq!(measured(&record, "e", "half"), ["3.5000000000000000"]);
    assert_eq!(measured(&record, "e", "more"), ["6.5000000000000000"]);
    // A column that comes from SQL keeps its type: bigint divides as Postgres has it.
    assert_eq!(measured(&record, "e", "whole"), ["3"]);
    assert_eq!(
        experiment(&record, "e").derived,
        ["half", "more", "whole", "rate"]
    );
    let rate: f64 = measured(&record, "e", "rate")[0].parse().unwrap();
    let rows_per_s: f64 = measured(&record, "e", "rows_per_s")[0].parse().unwrap();
    assert!((rate / rows_per_s - 1.0).abs() < 1e-9);
}

#[test]
fn variables_of_gset_reach_measure_and_collect_and_gexec_runs_what_is_made() {
    let record = built(
        "
```sql experiment e
--| matrix: {n: [3]}
--| setup:
SELECT format('CREATE TABLE t%s (a int)', i) FROM generate_series(1, :n) AS i \\gexec
SELECT 't' || :n AS name, 5 AS count \\gset my_
--| measure:
INSERT INTO :\"my_name\" SELECT generate_series(1, :my_count);
SELECT count(*) AS found, :'my_name' AS into_table FROM :my_name \\gset
SELECT :found * 2 AS twice;
--| collect:
SELECT :found AS found, :'into_table' AS into_table, (SELECT count(*) FROM pg_tables WHERE tablename LIKE 't_') AS tables;
```
",
    );
    assert_eq!(measured(&record, "e", "twice"), ["10"]);
    assert_eq!(measured(&record, "e", "found"), ["5"]);
    assert_eq!(measured(&record, "e", "into_table"), ["t3"]);
    assert_eq!(measured(&record, "e", "tables"), ["3"]);
}

#[test]
fn collects_see_what_their_session_sees() {
    let record = built(
        "
```sql experiment open
--| runs: 2
--| setup:
CREATE TABLE t (a int);
--| measure:
BEGIN;
INSERT INTO t SELECT generate_series(1, 4);
--| collect: {in: subject}
SELECT count(*) AS inside, pg_backend_pid() AS own_pid FROM t;
--| collect:
SELECT count(*) AS outside, :subject_pid AS subject_pid, pg_backend_pid() <> :subject_pid AS is_observer FROM t;
--| collect: {as: locks}
SELECT mode, granted FROM pg_locks
WHERE pid = :subject_pid AND relation = 't'::regclass AND mode LIKE 'Row%';
```

```sql claims open_claims
--| locks_held: {kind: exact}
SELECT count(*) FROM measured.open_locks WHERE granted;
```
",
    );
    // What a run leaves open is rolled back before the next.
    assert_eq!(measured(&record, "open", "inside"), ["4", "4"]);
    assert_eq!(measured(&record, "open", "outside"), ["0", "0"]);
    assert_eq!(
        measured(&record, "open", "own_pid"),
        measured(&record, "open", "subject_pid")
    );
    assert_eq!(measured(&record, "open", "is_observer"), ["true"; 2]);
    let locks = &experiment(&record, "open").results["locks"];
    assert_eq!(column(locks, "run"), ["1", "2"]);
    assert_eq!(column(locks, "mode"), ["RowExclusiveLock"; 2]);
    assert_eq!(claim(&record, "locks_held"), "2");
}

#[test]
fn nothing_is_seen_of_another_experiment() {
    let record = built(
        "
```sql fixture src
CREATE TABLE src AS SELECT 1 AS a;
```

```sql experiment first
--| fixture: src
CREATE TABLE mine (a int);
INSERT INTO src VALUES (2);
CREATE ROLE not_mine;
--| expect_error: \"42501\"
```

```sql experiment second
--| fixture: src
SELECT to_regclass('mine') IS NULL AS alone, (SELECT count(*) FROM src) AS rows_of_fixture;
```

```sql experiment third
SELECT to_regclass('src') IS NULL AS empty;
```
",
    );
    assert_eq!(measured(&record, "second", "alone"), ["true"]);
    assert_eq!(measured(&record, "second", "rows_of_fixture"), ["1"]);
    assert_eq!(measured(&record, "third", "empty"), ["true"]);
}

#[test]
fn random_data_comes_again_and_fixtures_build_on_fixtures() {
    let project = Project::new(
        "
```sql fixture base
CREATE TABLE base AS SELECT g, random() AS r FROM generate_series(1, 100) AS g;
```

```sql fixture more
--| from: base
ALTER TABLE base ADD COLUMN s float8;
UPDATE base SET s = random();
```

```sql experiment e
--| fixture: more
SELECT md5(string_agg(r::text, ',' ORDER BY g)) AS r, md5(string_agg(s::text, ',' ORDER BY g)) AS s,
       random()::text AS own FROM base;
```
",
    );
    let first = project.built();
    let again = project.run(&["build", "--force"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    for name in ["r", "s", "own"] {
        assert_eq!(
            measured(&first, "e", name),
            measured(&project.record(), "e", name),
            "{name}"
        );
    }
    project.edit("```sql fixture base", "text\n\n```sql fixture base");
    project.edit("version: \"16.15\"}", "version: \"16.15\"}\nseed: 0.5");
    let other = project.built();
    assert_ne!(measured(&first, "e", "r"), measured(&other, "e", "r"));
}

#[test]
fn a_profile_changes_params_runs_and_warm_ups() {
    let project = Project::new(
        "
---
title: T
postgres: {version: \"16.15\"}
params: {rows: 30, other: 1}
profiles:
  quick: {rows: 3, runs: 1, warmup: 1}
---

```sql experiment e
--| runs: 2
--| warmup: 2
--| setup:
CREATE SEQUENCE s;
--| measure:
SELECT :rows AS seen, nextval('s') AS n, :other AS other;
```

```sql claims c
--| seen: {kind: exact}
SELECT max(seen) FROM measured.e;
--| only_full: {kind: exact, profile: full}
SELECT max(seen) = 30 FROM measured.e;
```

[30](claim:seen)
",
    );
    let full = project.built();
    assert_eq!(full.profile, "full");
    assert_eq!(measured(&full, "e", "seen"), ["30", "30"]);
    assert_eq!(measured(&full, "e", "n"), ["3", "4"]);
    let ran = project.run(&["build", "--profile", "quick"]);
    // The quote is of the full profile, so it is told.
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let quick = project.record();
    assert_eq!(quick.profile, "quick");
    assert_eq!(measured(&quick, "e", "seen"), ["3"]);
    assert_eq!(measured(&quick, "e", "n"), ["2"]);
    assert!(ran.stdout.contains("1 skipped"), "{}", ran.stdout);
}

/// The log is one for all of the cluster, and the catalog is vacuumed whatever the tables say.
#[test]
fn autovacuum_of_the_catalog_in_a_window_is_doubted() {
    let experiment = |id: &str, settings: &str, measure: &str| {
        format!(
            "
```sql experiment {id}
--| settings: {settings}
--| measure:
{measure}
```
"
        )
    };
    // Counted from within the window: what was vacuumed before it opened is no matter.
    let until_vacuumed = "SELECT set_config('test.before', sum(autovacuum_count)::text, false)
FROM pg_stat_sys_tables;
DO $$
BEGIN
    FOR i IN 1..100 LOOP
        EXECUTE format('CREATE TABLE t%s (a int)', i);
        EXECUTE format('DROP TABLE t%s', i);
    END LOOP;
END $$;
DO $$
BEGIN
    FOR i IN 1..600 LOOP
        PERFORM pg_stat_clear_snapshot();
        EXIT WHEN (SELECT sum(autovacuum_count) FROM pg_stat_sys_tables)
            > current_setting('test.before')::int;
        PERFORM pg_sleep(0.1);
    END LOOP;
END $$;";
    let eager = "{autovacuum_naptime: 1s, autovacuum_vacuum_threshold: 1, \
                 autovacuum_vacuum_scale_factor: 0}";
    let record = built(&format!(
        "{}{}",
        experiment("vacuumed", eager, until_vacuumed),
        experiment("quiet", "{autovacuum: off}", "SELECT pg_sleep(0.5);"),
    ));
    let doubted = |id: &str| {
        let doubts = &record.experiments[id].doubts;
        doubts.iter().any(|doubt| doubt.kind == "autovacuum")
    };
    assert!(doubted("vacuumed"));
    assert!(!doubted("quiet"));
}
