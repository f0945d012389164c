//! Phases on sessions of their own, in the background, and waiting for one another.

use crate::project::{Project, built, column, experiment, measured, refused};

/// The same body on each version.
fn on(version: &str, body: &str) -> String {
    format!("---\ntitle: T\npostgres: {{version: \"{version}\"}}\n---\n{body}")
}

const VERSIONS: [&str; 2] = ["16.15", "18.6"];

/// A blocker that lets go once it sees that the measuring session waits.
const BLOCKED: &str = "
```sql experiment blocked
--| runs: 2
--| setup:
CREATE TABLE t AS SELECT 1 AS a;
--| measure: {in: blocker}
BEGIN;
LOCK TABLE t;
--| measure: {in: blocker, background: true, wait_until: \"EXISTS (SELECT FROM pg_locks WHERE pid = :subject_pid AND NOT granted)\"}
SELECT pg_sleep(0.2);
COMMIT;
--| measure:
UPDATE t SET a = a + 1;
--| sample: {every: 10ms, as: waits}
SELECT wait_event_type, wait_event, pg_blocking_pids(pid) = ARRAY[:blocker_pid] AS by_blocker
FROM pg_stat_activity WHERE pid = :subject_pid;
--| collect:
SELECT a, :subject_pid <> :blocker_pid AS two FROM t;
```
";

#[test]
fn a_blocker_holds_what_measure_waits_for_and_lets_go_when_it_waits() {
    for version in VERSIONS {
        let record = built(&on(version, BLOCKED));
        assert_eq!(measured(&record, "blocked", "a"), ["2", "3"]);
        assert_eq!(measured(&record, "blocked", "two"), ["true", "true"]);
        for elapsed in measured(&record, "blocked", "elapsed_ms") {
            assert!(elapsed.parse::<f64>().unwrap() >= 200.0, "{elapsed}");
        }
        let waits = &experiment(&record, "blocked").results["waits"];
        let names: Vec<&str> = waits.columns.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "run",
                "sample",
                "at_ms",
                "wait_event_type",
                "wait_event",
                "by_blocker"
            ]
        );
        // At least one of each run's samples saw the wait, and by whom.
        for run in ["1", "2"] {
            let seen = waits.rows.iter().any(|row| {
                row[0].to_string() == run
                    && row[3].to_string() == "Lock"
                    && row[4].to_string() == "relation"
                    && row[5].to_string() == "true"
            });
            assert!(seen, "{version} run {run}: {waits:?}");
        }
        // Sample k stands at its own time.
        for (number, at) in column(waits, "sample").iter().zip(column(waits, "at_ms")) {
            let (number, at) = (number.parse::<f64>().unwrap(), at.parse::<f64>().unwrap());
            assert!(
                at >= number * 10.0 && at < (number + 1.0) * 10.0 + 200.0,
                "{number} at {at}"
            );
        }
    }
}

#[test]
fn a_wait_that_does_not_end_is_told_with_who_waits_for_whom_and_nothing_is_left_running() {
    let body = "
```sql experiment hangs
--| timeout: 1s
--| setup:
CREATE TABLE t AS SELECT 1 AS a;
--| setup: {in: blocker}
BEGIN;
LOCK TABLE t;
--| measure:
SELECT a FROM t;
```

```sql experiment after
SELECT count(*) AS others FROM pg_stat_activity
WHERE backend_type = 'client backend' AND usename = 'author' AND state = 'idle in transaction';
```
";
    for version in VERSIONS {
        let said = refused(&on(version, body), 2);
        assert!(said.contains("ran longer than its timeout of 1s"), "{said}");
        assert!(
            said.contains(
                "the measuring session waits (relation) for session `blocker`, which is idle in \
                 transaction: `LOCK TABLE t`"
            ),
            "{said}"
        );
    }
}

#[test]
fn a_condition_that_does_not_come_true_is_told_at_its_place() {
    let said = refused(
        "
```sql experiment never
--| timeout: 300ms
--| measure: {wait_until: \"SELECT false\"}
SELECT 1;
```

```sql experiment wrong
--| measure: {in: b, wait_until: nonsense}
SELECT 0;
--| measure:
SELECT 1;
```
",
        2,
    );
    assert!(
        said.contains("`wait_until` did not come true within the timeout of 300ms"),
        "{said}"
    );
    assert!(said.contains("article.md:8:27"), "{said}");
    assert!(
        said.contains("column \"nonsense\" does not exist"),
        "{said}"
    );
}

#[test]
fn what_fails_in_the_background_is_told_at_its_place_and_ends_the_run() {
    let said = refused(
        "
```sql experiment broken
--| setup:
CREATE TABLE t AS SELECT 1 AS a;
--| measure: {in: blocker}
BEGIN;
LOCK TABLE t;
--| measure: {in: writer, background: true}
SELECT pg_sleep(0.1);
SELECT 1 / 0;
--| measure:
SELECT a FROM t;
```
",
        2,
    );
    assert!(said.contains("division by zero"), "{said}");
    assert!(said.contains("SELECT 1 / 0"), "{said}");
    assert!(said.contains("session `writer`"), "{said}");
    assert!(!said.contains("canceling"), "{said}");
}

/// Whichever session finds the deadlock, the measuring one has no patience at all.
#[test]
fn a_deadlock_is_an_error_that_can_be_expected() {
    let body = "
```sql experiment deadlock
--| expect_error: 40P01
--| session: {deadlock_timeout: 10ms}
--| setup:
CREATE TABLE a (n int);
CREATE TABLE b (n int);
--| measure: {in: other}
BEGIN;
SET LOCAL deadlock_timeout = '60s';
LOCK TABLE b;
--| measure: {in: other, background: true, wait_until: \"EXISTS (SELECT FROM pg_locks WHERE pid = :subject_pid AND relation = 'a'::regclass AND granted)\"}
LOCK TABLE a;
--| measure:
BEGIN;
LOCK TABLE a;
SELECT pg_sleep(0.3);
LOCK TABLE b;
--| collect: {in: other}
SELECT count(*) AS held FROM pg_locks WHERE pid = pg_backend_pid() AND relation IN ('a'::regclass, 'b'::regclass);
```
";
    for version in VERSIONS {
        let record = built(&on(version, body));
        assert_eq!(measured(&record, "deadlock", "held"), ["2"]);
    }
    // Postgres speaks of processes.
    let said = refused(&body.replace("--| expect_error: 40P01\n", ""), 2);
    assert!(said.contains("deadlock detected"), "{said}");
    assert!(said.contains(" is session `other`"), "{said}");
    assert!(said.contains(" is the measuring session"), "{said}");
}

#[test]
fn an_error_that_a_background_phase_must_raise_is_waited_for() {
    let record = built(
        "
```sql experiment raises
--| measure: {in: b, background: true, expect_error: 22012}
SELECT 1 / 0;
--| measure:
SELECT pg_sleep(0.1);
```
",
    );
    assert_eq!(measured(&record, "raises", "run"), ["1"]);
    let said = refused(
        "
```sql experiment silent
--| measure: {in: b, background: true, expect_error: 22012}
SELECT pg_sleep(600);
--| measure:
SELECT 1;
```
",
        2,
    );
    assert!(
        said.contains("raised no error, but SQLSTATE `22012` is expected"),
        "{said}"
    );
}

/// One writer that never ends by itself beside each run, one beside the whole cell.
#[test]
fn writers_in_the_background_end_with_their_run_or_their_state() {
    let body = "
```sql experiment beside
--| runs: 3
--| setup:
CREATE TABLE t (who text);
CREATE TABLE w (n int);
CREATE PROCEDURE write(who text) LANGUAGE plpgsql AS $$
BEGIN
  LOOP
    INSERT INTO t VALUES (who);
    COMMIT;
    PERFORM pg_sleep(0.005);
  END LOOP;
END $$;
--| setup: {in: steady, background: true}
CALL write('steady');
--| measure: {in: writer, background: true}
CALL write('writer');
--| measure: {wait_until: \"(SELECT count(DISTINCT who) = 2 FROM t)\"}
INSERT INTO w SELECT count(*) FROM t WHERE who = 'writer';
--| collect:
SELECT count(*) FILTER (WHERE state = 'active') AS active
FROM pg_stat_activity WHERE pid IN (:steady_pid, :writer_pid);
--| teardown:
SELECT pg_sleep(0);
```

```sql experiment after
SELECT count(*) AS sessions FROM pg_stat_activity
WHERE usename = 'author' AND datname = 'cell_0';
```
";
    for version in VERSIONS {
        let record = built(&on(version, body));
        // `active` counts a writer that sleeps too: both are in the middle of their CALL.
        assert_eq!(measured(&record, "beside", "active"), ["2", "2", "2"]);
        assert_eq!(measured(&record, "after", "sessions"), ["2"]);
    }
}

#[test]
fn a_blocker_of_setup_holds_over_all_runs_and_one_of_measure_over_its_own() {
    let record = built(
        "
```sql experiment held
--| runs: 2
--| setup:
CREATE TABLE a (n int);
CREATE TABLE b (n int);
--| setup: {in: steady}
BEGIN;
LOCK TABLE a;
--| measure: {in: own}
BEGIN;
LOCK TABLE b;
--| measure:
SELECT string_agg(relation::regclass::text, ' ' ORDER BY relation::regclass::text) AS locked
FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND pid IN (:steady_pid, :own_pid);
--| measure: {in: own}
ROLLBACK;
--| collect: {as: left}
SELECT relation::regclass::text AS locked FROM pg_locks WHERE pid = :steady_pid AND mode = 'AccessExclusiveLock'
UNION ALL
SELECT 'of own' FROM pg_locks WHERE pid = :own_pid;
```
",
    );
    assert_eq!(measured(&record, "held", "locked"), ["a b", "a b"]);
    let left = &experiment(&record, "held").results["left"];
    assert_eq!(column(left, "locked"), ["a", "a"]);
}

/// What over-indexing reads: the locks of a planner whose transaction is open, by fast path.
#[test]
fn what_an_open_transaction_holds_is_collected_from_outside() {
    let body = "
```sql experiment locks
--| setup:
CREATE TABLE test (id int PRIMARY KEY, v int);
SELECT format('CREATE INDEX idx%s ON test (v)', i) FROM generate_series(1, 20) i \\gexec
--| measure:
BEGIN;
EXPLAIN SELECT * FROM test WHERE id = 1;
--| collect: {as: held}
SELECT relation::regclass::text AS relation, fastpath FROM pg_locks
WHERE pid = :subject_pid AND locktype = 'relation' AND relation::regclass::text LIKE 'idx%' OR pid = :subject_pid AND relation IN ('test'::regclass, 'test_pkey'::regclass);
--| collect: {in: subject}
SELECT pg_backend_pid() = :pid AS same;
```
"
    .replace(":pid", "pg_backend_pid()");
    // 16 fast-path slots on 16; 18 has as many as `max_locks_per_transaction` asks for.
    for (version, fast) in [("16.15", 16), ("18.6", 22)] {
        let record = built(&on(version, &body));
        let held = &experiment(&record, "locks").results["held"];
        assert_eq!(held.rows.len(), 22, "{version}");
        let by_fast_path = column(held, "fastpath");
        let fast_here = by_fast_path.iter().filter(|fast| *fast == "true").count();
        assert_eq!(fast_here, fast, "{version}");
    }
}

#[test]
fn samples_that_cannot_be_asked_in_time_are_missed_and_told() {
    let record = built(
        "
```sql experiment slow
--| measure:
SELECT pg_sleep(1);
--| sample: {every: 20ms, as: slow}
SELECT pg_sleep(0.15) IS NULL AS slept, pg_stat_get_backend_pid(0) IS NULL AS none;
--| sample: {every: 250ms, as: empty}
SELECT 1 AS one WHERE false;
```
",
    );
    let of = |name: &str| -> u64 { measured(&record, "slow", name)[0].parse().unwrap() };
    // As many are due as the window had room for; each that is asked takes the time of seven more.
    let due = of("slow_samples") + of("slow_missed");
    let elapsed: f64 = measured(&record, "slow", "elapsed_ms")[0].parse().unwrap();
    let room = elapsed / 20.0;
    assert!((due as f64 - room).abs() <= 5.0, "{due} of {room}");
    assert!(
        of("slow_samples") >= 1 && of("slow_samples") < of("slow_missed"),
        "{}",
        of("slow_samples")
    );
    assert!(of("empty_samples") >= 1);
    let experiment = experiment(&record, "slow");
    let doubt = experiment
        .doubts
        .iter()
        .find(|doubt| doubt.kind == "missed-samples")
        .unwrap();
    assert!(
        doubt.message.contains("samples were missed"),
        "{}",
        doubt.message
    );
    let empty = &experiment.results["empty"];
    assert_eq!(empty.rows.len(), 0);
    assert_eq!(empty.columns[3].name, "one");
}

#[test]
fn each_sample_sees_the_statistics_of_its_own_time() {
    let record = built(
        "
```sql experiment grows
--| setup:
CREATE TABLE t (a int);
CREATE PROCEDURE fill() LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..20 LOOP
    INSERT INTO t VALUES (i);
    COMMIT;
    PERFORM pg_sleep(0.03);
  END LOOP;
END $$;
--| measure:
CALL fill();
--| sample: {every: 30ms, as: seen}
SELECT count(*) AS rows_seen, now() = statement_timestamp() AS own FROM t;
```
",
    );
    let seen = &experiment(&record, "grows").results["seen"];
    let rows: Vec<u32> = column(seen, "rows_seen")
        .iter()
        .map(|text| text.parse().unwrap())
        .collect();
    assert!(rows.len() > 2 && rows.is_sorted(), "{rows:?}");
    assert!(rows.first() < rows.last(), "{rows:?}");
    assert!(column(seen, "own").iter().all(|own| own == "true"));
}

#[test]
fn a_mistake_in_a_sample_is_told_before_anything_is_measured() {
    let said = refused(
        "
```sql experiment e
--| measure:
SELECT pg_sleep(600);
--| sample: {every: 20ms, as: s}
SELECT nonsense;
```

```sql experiment twice
--| measure:
SELECT pg_sleep(600);
--| sample: {every: 20ms, as: s}
SELECT 1 AS at_ms;
```
",
        2,
    );
    assert!(
        said.contains("column \"nonsense\" does not exist"),
        "{said}"
    );
    assert!(
        said.contains("every sample has a column `at_ms` already"),
        "{said}"
    );
}

#[test]
fn warm_ups_repeat_what_is_beside_measure_too() {
    let record = built(
        "
```sql experiment warm
--| warmup: 2
--| setup:
CREATE SEQUENCE s;
CREATE SEQUENCE t;
--| measure: {in: beside}
SELECT nextval('s');
--| measure:
SELECT nextval('t') AS n;
--| collect: {in: beside}
SELECT last_value AS beside FROM s;
```
",
    );
    assert_eq!(measured(&record, "warm", "n"), ["3"]);
    assert_eq!(measured(&record, "warm", "beside"), ["3"]);
}

#[test]
fn cells_are_shuffled_by_the_seed_in_each_round() {
    let body = |seed: &str| {
        format!(
            "---\ntitle: T\npostgres: {{version: \"16.15\"}}\nseed: {seed}\n---\n
```sql experiment mixed
--| matrix: {{k: [1, 2, 3, 4, 5, 6]}}
--| runs: 2
--| order: shuffle
--| instruments: [time]
SELECT :k AS seen;
```
"
        )
    };
    let positions =
        |seed: &str| -> Vec<String> { measured(&built(&body(seed)), "mixed", "position") };
    let first = positions("0");
    // Rows stand by cell, then run: both rounds are permutations of their own.
    let of_run = |run: usize| -> Vec<&str> {
        first
            .iter()
            .skip(run)
            .step_by(2)
            .map(String::as_str)
            .collect()
    };
    for (run, positions) in [(0, 1..=6), (1, 7..=12)] {
        let mut found: Vec<u32> = of_run(run)
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        assert!(!found.is_sorted(), "{found:?}");
        found.sort_unstable();
        assert_eq!(found, positions.collect::<Vec<u32>>());
    }
    assert_eq!(positions("0"), first);
    assert_ne!(positions("0.5"), first);
}

#[test]
fn settings_are_of_one_cell_reloaded_or_restarted() {
    let body = "
```sql experiment reloaded
--| matrix: {memory: [1MB, 2MB]}
--| settings: {work_mem: \":memory\", maintenance_work_mem: 9MB}
--| runs: 2
SELECT current_setting('work_mem') AS work_mem, pg_postmaster_start_time()::text AS started;
```

```sql experiment restarted
--| matrix: {buffers: [16MB, 24MB]}
--| settings: {shared_buffers: \":buffers\"}
--| fresh: never
--| setup:
CREATE TABLE IF NOT EXISTS t (a int);
INSERT INTO t VALUES (1);
--| measure:
SELECT current_setting('shared_buffers') AS shared_buffers, count(*) AS n FROM t;
```

```sql experiment after
SELECT current_setting('work_mem') AS work_mem, current_setting('shared_buffers') AS shared_buffers;
```
";
    for version in VERSIONS {
        let record = built(&on(version, body));
        assert_eq!(
            measured(&record, "reloaded", "work_mem"),
            ["1MB", "1MB", "2MB", "2MB"]
        );
        let mut started = measured(&record, "reloaded", "started");
        started.dedup();
        assert_eq!(started.len(), 1);
        assert_eq!(
            measured(&record, "restarted", "shared_buffers"),
            ["16MB", "24MB"]
        );
        assert_eq!(measured(&record, "restarted", "n"), ["1", "2"]);
        assert_eq!(measured(&record, "after", "work_mem"), ["4MB"]);
        assert_eq!(measured(&record, "after", "shared_buffers"), ["128MB"]);
        let reloaded = experiment(&record, "reloaded");
        assert_eq!(reloaded.settings["maintenance_work_mem"], "9MB");
        assert!(!reloaded.settings.contains_key("work_mem"));
        let settings = &reloaded.results["settings"];
        let of_cells: Vec<String> = (settings.rows.iter())
            .filter(|row| row[2].to_string() == "work_mem")
            .map(|row| row[3].to_string())
            .collect();
        assert_eq!(of_cells, ["1MB", "1MB", "2MB", "2MB"]);
    }
}

#[test]
fn an_interrupted_run_leaves_no_session_of_it_running() {
    let project = Project::new(
        "
```sql experiment endless
--| setup: {in: steady, background: true}
SELECT pg_sleep(600);
--| measure: {in: writer, background: true}
SELECT pg_sleep(600);
--| measure:
SELECT pg_sleep(600);
--| sample: {every: 10ms, as: s}
SELECT 1 AS one;
```
",
    );
    for signal in ["-INT", "-KILL"] {
        let mut child = project.command(&["build"]).spawn().unwrap();
        let runs = format!("/proc/{}", child.id());
        // Its servers are its children; they run for at least as long as their sessions do.
        let servers = || -> Vec<String> {
            let tasks = std::fs::read_to_string(format!("{runs}/task/{}/children", child.id()));
            let pids = tasks.unwrap_or_default();
            pids.split_whitespace().map(str::to_owned).collect()
        };
        let mut seen = Vec::new();
        for _ in 0..600 {
            std::thread::sleep(std::time::Duration::from_millis(100));
            seen = servers();
            let busy = seen.iter().any(|pid| {
                let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
                let children = children.unwrap_or_default();
                let backends = children.split_whitespace().filter(|pid| {
                    std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
                        .is_ok_and(|line| line.contains("author") && line.contains("SELECT"))
                });
                backends.count() >= 3
            });
            if busy {
                break;
            }
        }
        assert!(!seen.is_empty());
        let killed = std::process::Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status()
            .unwrap();
        assert!(killed.success());
        child.wait().unwrap();
        for _ in 0..300 {
            if !seen
                .iter()
                .any(|pid| std::path::Path::new(&format!("/proc/{pid}")).exists())
            {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        for pid in &seen {
            assert!(
                !std::path::Path::new(&format!("/proc/{pid}")).exists(),
                "{signal}: {pid}"
            );
        }
    }
}
