//! What phases, sessions, programs, instruments and versions make of one another.

use crate::project::{Project, built, column, experiment, measured, refused};

/// psql waits for a lock of a session beside it, while it is sampled, on two versions.
const BLOCKED_PSQL: &str = "---
title: T
postgres: {versions: [\"16.15\", \"18.6\"]}
---

```sql experiment blocked
--| setup: {via: psql}
CREATE TABLE t AS SELECT 1 AS a;
\\copy t TO 'kept.csv'
--| setup: {in: blocker}
SET application_name = 'blocker';
--| measure: {in: blocker}
BEGIN;
LOCK TABLE t;
--| measure: {in: blocker, background: true, wait_until: \"EXISTS (SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND application_name = 'psql')\"}
SELECT pg_sleep(0.2);
COMMIT;
--| measure: {via: psql, wait_until: \"EXISTS (SELECT FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock' AND pid = :blocker_pid)\"}
\\copy t FROM 'kept.csv'
--| sample: {every: 10ms, as: waits}
SELECT count(*) AS waiting FROM pg_stat_activity WHERE :blocker_pid = ANY (pg_blocking_pids(pid));
--| collect: {in: blocker}
SELECT count(*) AS n, current_setting('application_name') AS who FROM t;
```

```sql experiment planned
--| instruments: [time, {explain: {timing: false}}]
SELECT count(*) FROM pg_class WHERE relname = 'pg_class';
```

```sql claims c
--| same: {kind: exact}
SELECT count(DISTINCT rows) FROM measured.planned;
```
";

#[test]
fn psql_waits_for_a_session_beside_it_is_sampled_and_plans_are_kept_on_each_version() {
    let record = built(BLOCKED_PSQL);
    assert_eq!(measured(&record, "blocked", "version"), ["16.15", "18.6"]);
    assert_eq!(measured(&record, "blocked", "n"), ["2", "2"]);
    assert_eq!(measured(&record, "blocked", "who"), ["blocker", "blocker"]);
    for elapsed in measured(&record, "blocked", "elapsed_ms") {
        assert!(elapsed.parse::<f64>().unwrap() >= 190.0, "{elapsed}");
    }
    let waits = &experiment(&record, "blocked").results["waits"];
    for version in ["16.15", "18.6"] {
        let seen = waits.rows.iter().any(|row| {
            let last = row.last().map(ToString::to_string);
            row[0].to_string() == version && last.as_deref() == Some("1")
        });
        assert!(seen, "{version}: {waits:?}");
    }
    let plan = &experiment(&record, "planned").results["plan"];
    assert_eq!(column(plan, "version").first().unwrap(), "16.15");
    assert_eq!(column(plan, "version").last().unwrap(), "18.6");
    assert_eq!(measured(&record, "planned", "rows").len(), 2);
}

#[test]
fn an_error_in_the_background_ends_the_programs_that_wait_for_it() {
    for (client, sql) in [
        ("psql", "SELECT FROM t;"),
        ("pgbench, args: \"-t 1\"", "UPDATE t SET a = 1;"),
    ] {
        let article = format!(
            "---\ntitle: T\npostgres: {{version: \"16.15\"}}\n---
```sql experiment ends
--| timeout: 60s
--| setup:
CREATE TABLE t AS SELECT 1 AS a;
--| measure: {{in: blocker}}
BEGIN;
LOCK TABLE t;
--| measure: {{in: other, background: true, wait_until: \"EXISTS (SELECT FROM pg_locks WHERE NOT granted)\"}}
SELECT 1 / 0;
--| measure: {{via: {client}}}
{sql}
```
"
        );
        let said = refused(&article, 2);
        assert!(said.contains("division by zero"), "{client}: {said}");
        assert!(!said.contains("57P01"), "{client}: {said}");
    }
}

#[test]
fn shuffled_cells_with_a_warmup_are_measured_by_pgbench_and_sampled() {
    let record = built(
        "---
title: T
postgres: {version: \"18.6\"}
---
```sql experiment load
--| matrix: {clients: [1, 2]}
--| order: shuffle
--| runs: 2
--| warmup: 1
--| setup: {via: pgbench, args: \"-i -s 1 -q\"}
CREATE TABLE seen (n int);
--| setup: {in: watcher}
INSERT INTO seen VALUES (1);
--| measure: {via: pgbench, args: \"-S -n -c :clients -t 20\"}
--| sample: {every: 5ms, as: active}
SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'pgbench';
--| measure: {in: watcher}
INSERT INTO seen VALUES (2);
--| collect:
SELECT sum(n) AS sum FROM seen;
```
",
    );
    assert_eq!(
        measured(&record, "load", "transactions"),
        ["20", "20", "40", "40"]
    );
    let mut positions = measured(&record, "load", "position");
    positions.sort();
    assert_eq!(positions, ["1", "2", "3", "4"]);
    // One for setup, two for the warm-up and each run.
    assert_eq!(measured(&record, "load", "sum"), ["5", "7", "5", "7"]);
}

#[test]
fn settings_of_cells_that_need_a_restart_leave_the_files_of_programs_where_they_are() {
    let project = Project::new(
        "---
title: T
postgres: {version: \"16.15\"}
---
```sql experiment kept
--| matrix: {connections: [30, 31]}
--| settings: {max_connections: \":connections\"}
--| fresh: never
--| setup: {via: psql}
CREATE TABLE IF NOT EXISTS t (a int);
\\copy (SELECT 1 UNION ALL SELECT * FROM t) TO 'more.csv'
--| measure: {via: psql}
\\copy t FROM 'more.csv'
--| collect:
SELECT count(*) AS n, current_setting('max_connections') AS has FROM t;
```
",
    );
    let record = project.built();
    assert_eq!(measured(&record, "kept", "has"), ["30", "31"]);
    assert_eq!(measured(&record, "kept", "n"), ["1", "3"]);
}

#[test]
fn an_instrument_of_the_measuring_session_is_refused_where_another_client_measures() {
    for (instrument, client, told) in [
        (
            "explain",
            "via: psql",
            "`explain` takes one execution of a statement, and `measure` is run by psql",
        ),
        (
            "explain",
            "repeat: 5",
            "`explain` takes one execution of a statement, and `measure` is a repetition",
        ),
        (
            "locks",
            "via: psql",
            "`locks` reads of the measuring session, and `measure` is run by psql",
        ),
        (
            "cpu",
            "via: pgbench, args: \"-t 1\"",
            "`cpu` reads of the measuring session, and `measure` is run by pgbench",
        ),
    ] {
        let article = format!(
            "---\ntitle: T\npostgres: {{version: \"16.15\"}}\n---
```sql experiment e
--| instruments: [time, {instrument}]
--| measure: {{{client}}}
SELECT 1;
```
"
        );
        let said = refused(&article, 2);
        assert!(said.contains(told), "{said}");
        assert!(said.contains("a/article.md:6:25"), "{said}");
    }
}
