//! `locks`, `buffers`, `io`, `temp`, `statements` and `cpu` against what is known otherwise, and
//! what is doubted of them.

use crate::project::{built, column, experiment, measured, refused};

const VERSIONS: [&str; 2] = ["16.15", "18.6"];

fn front(version: &str, settings: &str) -> String {
    format!(
        "---\ntitle: T\npostgres: {{version: \"{version}\", settings: {{autovacuum: off{settings}}}}}\n---\n"
    )
}

/// A table and its 20 indexes are 21 relations that planning locks: 16 fit in the fast path of 16.15,
/// all in that of 18.6.
#[test]
fn locks_are_those_that_another_session_sees() {
    for version in VERSIONS {
        let record = built(&format!(
            "{}
```sql experiment planned
--| instruments: [locks]
--| setup:
CREATE TABLE t (id int PRIMARY KEY, k int);
SELECT format('CREATE INDEX i%s ON t (k)', i) FROM generate_series(1, 19) AS i \\gexec
--| measure:
BEGIN;
SELECT count(*) AS n FROM t WHERE id = 1;
UPDATE t SET k = 1 WHERE id = 1;
--| collect:
SELECT count(*) AS by_hand, count(*) FILTER (WHERE locktype = 'relation' AND fastpath) AS fast
FROM pg_locks WHERE pid = :subject_pid;
```
",
            front(version, "")
        ));
        let one = |name: &str| measured(&record, "planned", name).remove(0);
        assert_eq!(one("locks"), one("by_hand"), "{version}");
        assert_eq!(one("fastpath_relation_locks"), one("fast"), "{version}");
        // The table and its 20 indexes are read, and locked once more to be written.
        assert_eq!(one("access_share_locks"), "21");
        assert_eq!(one("row_exclusive_locks"), "21");
        let fast: u32 = one("fastpath_relation_locks").parse().unwrap();
        let expected = if version == "16.15" { 16 } else { 42 };
        assert_eq!(fast, expected, "{version}");
        assert_eq!(one("main_relation_locks"), (42 - fast).to_string());
        let each = &experiment(&record, "planned").results["locks"];
        assert_eq!(each.rows.len().to_string(), one("locks"));
        assert!(column(each, "relation").contains(&"t_pkey".to_owned()));
    }
    let said = refused(
        "
```sql experiment e
--| instruments: [time, locks]
SELECT 1;
```
",
        2,
    );
    assert!(said.contains("article.md:7:25"), "{said}");
    assert!(
        said.contains("the transaction of `measure` has ended"),
        "{said}"
    );
    assert!(said.contains("begin `measure` with `BEGIN;`"), "{said}");
}

/// A sequential scan asks for each page of the table once, an index scan of one row for the pages on
/// the way down and one of the table.
#[test]
fn pages_are_those_that_the_scan_went_through() {
    for version in VERSIONS {
        let record = built(&format!(
            "{}
```sql experiment scans
--| cases:
--|   - {{query: SELECT count(*) FROM t}}
--|   - {{query: SELECT pad FROM t WHERE id = 77}}
--|   - {{query: SELECT 1}}
--| runs: 3
--| warmup: 1
--| session: {{max_parallel_workers_per_gather: 0, enable_indexonlyscan: off, enable_bitmapscan: off}}
--| instruments: [buffers, io]
--| setup:
CREATE TABLE t (id int PRIMARY KEY, pad text);
INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 10000) AS g;
ANALYZE t;
--| measure:
SELECT :'query' \\gexec
--| collect:
-- What the observer reads for this is not handed in within the next run.
SELECT pg_relation_size('t') / 8192 AS pages, (SELECT count(*) FROM t) AS counted;
```

```sql experiment grown
--| instruments: [buffers, io]
--| setup:
CREATE TABLE t (pad text);
--| measure:
INSERT INTO t SELECT repeat('x', 1000) FROM generate_series(1, 2000) AS g;
--| collect:
SELECT pg_relation_size('t') AS bytes;
```
",
            front(version, "")
        ));
        let numbers = |id: &str, name: &str| -> Vec<u64> {
            let texts = measured(&record, id, name).into_iter();
            texts.map(|text| text.parse().unwrap()).collect()
        };
        let pages = numbers("scans", "pages")[0];
        let of = |name| numbers("scans", name);
        let asked = [pages, pages, pages, 1, 1, 1, 0, 0, 0];
        assert_eq!(of("heap_hit"), asked, "{version}");
        // Root and leaf.
        assert_eq!(of("index_hit"), [0, 0, 0, 2, 2, 2, 0, 0, 0], "{version}");
        let all = [pages, pages, pages, 3, 3, 3, 0, 0, 0];
        assert_eq!(of("buffers_hit"), all, "{version}");
        assert_eq!(of("io_hits"), all, "{version}");
        for name in ["heap_read", "buffers_read", "io_reads", "io_read_bytes"] {
            assert_eq!(of(name), [0; 9], "{version}: {name}");
        }
        // A bulk load extends by several pages at a time, the maps beside the table with it.
        let (bytes, extended) = (
            numbers("grown", "bytes")[0],
            numbers("grown", "io_extend_bytes")[0],
        );
        assert!(extended >= bytes, "{version}: {extended} {bytes}");
        assert!(
            extended < bytes + 64 * 8192,
            "{version}: {extended} {bytes}"
        );
        let kinds = column(&experiment(&record, "grown").results["io"], "backend_type");
        assert!(
            kinds.iter().any(|kind| kind == "client backend"),
            "{kinds:?}"
        );
    }
}

/// What a function's rows are put aside in is written once, page after page.
#[test]
fn temporary_files_are_as_large_as_what_was_put_aside() {
    for version in VERSIONS {
        let record = built(&format!(
            "{}
```sql experiment spills
--| matrix: {{count: [10, 100000]}}
--| session: {{work_mem: 64kB}}
--| instruments: [temp, explain]
SELECT count(*) FROM generate_series(1, :count) AS g;
```
",
            front(version, "")
        ));
        assert_eq!(measured(&record, "spills", "temp_files"), ["0", "1"]);
        let numbers = |name: &str| -> Vec<u64> {
            let texts = measured(&record, "spills", name).into_iter();
            texts.map(|text| text.parse().unwrap()).collect()
        };
        let pages: Vec<u64> = (numbers("temp_bytes").iter())
            .map(|bytes| bytes.div_ceil(8192))
            .collect();
        assert_eq!(pages, numbers("temp_written"), "{version}");
        assert!(pages[1] > 100, "{pages:?}");
    }
}

#[test]
fn statements_are_counted_by_the_library_that_counts_them() {
    for version in VERSIONS {
        let settings = ", shared_preload_libraries: pg_stat_statements, wal_level: minimal, max_wal_senders: 0";
        let record = built(&format!(
            "{}
```sql experiment counted
--| runs: 2
--| instruments: [statements, wal]
--| setup:
CREATE TABLE t (id int, k int);
INSERT INTO t VALUES (0, 0);
--| measure:
BEGIN;
INSERT INTO t SELECT g, 1 FROM generate_series(1, 10) AS g;
INSERT INTO t SELECT g, 1 FROM generate_series(1, 20) AS g;
SELECT id FROM t LIMIT 5;
COMMIT;
```
",
            front(version, settings)
        ));
        let of = |name: &str| measured(&record, "counted", name);
        // BEGIN, two INSERTs of one kind, SELECT, COMMIT.
        assert_eq!(of("statement_calls"), ["5"; 2], "{version}");
        assert_eq!(of("statement_rows"), ["35"; 2], "{version}");
        // The commit's record is written after COMMIT was counted.
        let types = &experiment(&record, "counted").results["wal"];
        let kinds = column(types, "record_type");
        let commits = kinds.iter().filter(|kind| *kind == "Transaction/COMMIT");
        assert_eq!(commits.count(), 2, "{kinds:?}");
        let written: Vec<u64> = of("wal_records")
            .iter()
            .map(|n| n.parse().unwrap())
            .collect();
        let counted: Vec<u64> = (of("statement_wal_records").iter())
            .map(|n| n.parse().unwrap())
            .collect();
        assert_eq!(
            counted[1],
            written[1] - 1,
            "{version}: {counted:?} {written:?}"
        );
        let queries = &experiment(&record, "counted").results["queries"];
        let calls: Vec<String> = (column(queries, "query")
            .into_iter()
            .zip(column(queries, "calls")))
        .filter(|(query, _)| query.starts_with("INSERT"))
        .map(|(_, calls)| calls)
        .collect();
        assert_eq!(calls, ["2", "2"], "{version}");
    }
    let said = refused(
        "
```sql experiment e
--| instruments: [statements]
SELECT 1;
```
",
        2,
    );
    assert!(said.contains("article.md:7:19"), "{said}");
    assert!(
        said.contains("`pg_stat_statements` is not loaded"),
        "{said}"
    );
    assert!(
        said.contains("shared_preload_libraries: pg_stat_statements"),
        "{said}"
    );
}

#[test]
fn processor_time_is_that_of_the_backend_that_works() {
    for version in VERSIONS {
        let record = built(&format!(
            "{}
```sql experiment works
--| cases:
--|   - {{query: \"SELECT count(*) FROM generate_series(1, 2000000)\"}}
--|   - {{query: SELECT pg_sleep(0.3)}}
--| instruments: [cpu, time]
SELECT :'query' \\gexec
```
",
            front(version, "")
        ));
        let of = |name: &str| -> Vec<f64> {
            let texts = measured(&record, "works", name).into_iter();
            texts.map(|text| text.parse().unwrap()).collect()
        };
        let (busy, elapsed) = (of("cpu_ms"), of("elapsed_ms"));
        assert!(busy[0] > 10.0, "{version}: {busy:?}");
        // It works for no longer than it takes, but for the reading itself.
        assert!(
            busy[0] < elapsed[0] + 20.0,
            "{version}: {busy:?} {elapsed:?}"
        );
        assert!(
            busy[1] < elapsed[1] / 2.0,
            "{version}: {busy:?} {elapsed:?}"
        );
        let (user, system) = (of("cpu_user_ms"), of("cpu_system_ms"));
        let ticks = user[0] + system[0];
        assert!(
            (ticks - busy[0]).abs() <= 30.0,
            "{version}: {ticks} {busy:?}"
        );
    }
}

fn doubts(record: &remeasure::record::Record, id: &str) -> Vec<String> {
    let doubts = &experiment(record, id).doubts;
    doubts.iter().map(|doubt| doubt.kind.clone()).collect()
}

#[test]
fn counts_that_were_not_handed_in_are_null_and_doubted() {
    let record = built(
        "
```sql experiment open
--| instruments: [buffers, io, temp, hot, tuples]
--| setup:
CREATE TABLE t (a int);
--| measure:
BEGIN;
INSERT INTO t VALUES (1);
```

```sql experiment ended
--| instruments: [tuples]
--| setup:
CREATE TABLE t (a int);
--| measure:
INSERT INTO t VALUES (1);
```

```sql experiment reset
--| instruments: [tuples]
--| setup:
CREATE TABLE t (a int);
--| measure:
INSERT INTO t VALUES (1);
SELECT pg_stat_reset();
```
",
    );
    for name in [
        "buffers_hit",
        "heap_hit",
        "io_hits",
        "temp_files",
        "updated",
        "inserted",
    ] {
        assert_eq!(measured(&record, "open", name), ["NULL"], "{name}");
    }
    assert!(doubts(&record, "open").contains(&"statistics-pending".to_owned()));
    assert_eq!(measured(&record, "ended", "inserted"), ["1"]);
    let of_statistics = |id: &str| -> Vec<String> {
        let doubts = doubts(&record, id).into_iter();
        doubts
            .filter(|kind| kind.starts_with("statistics"))
            .collect()
    };
    assert!(of_statistics("ended").is_empty());
    assert_eq!(of_statistics("reset"), ["statistics-reset"]);
}

/// Writing more than `max_wal_size` asks for a checkpoint; the window lasts until there was one.
#[test]
fn a_checkpoint_in_the_window_is_doubted_and_one_that_is_asked_for_is_not() {
    let settings = ", max_wal_size: 32MB, min_wal_size: 32MB, checkpoint_completion_target: 0";
    let record = built(&format!(
        "{}
```sql experiment met
--| instruments: [time]
DO $$
DECLARE
    before pg_lsn := (SELECT checkpoint_lsn FROM pg_control_checkpoint());
BEGIN
    FOR i IN 1..600 LOOP
        PERFORM pg_logical_emit_message(false, 'x', repeat('x', 1000000));
        EXIT WHEN (SELECT checkpoint_lsn FROM pg_control_checkpoint()) <> before;
        PERFORM pg_sleep(0.1);
    END LOOP;
END $$;
```

```sql experiment own
--| instruments: [time]
CHECKPOINT;
```
",
        front("18.6", settings)
    ));
    assert!(doubts(&record, "met").contains(&"checkpoint".to_owned()));
    assert!(!doubts(&record, "own").contains(&"checkpoint".to_owned()));
}
