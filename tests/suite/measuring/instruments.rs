//! Instruments against what is known otherwise: `pg_waldump` reads the same log, and what a
//! statement did to a table is plain.

use crate::project::{built, claim, column, experiment, measured};
use bigdecimal::BigDecimal;
use remeasure::engine::pins::Pins;
use remeasure::engine::session::Role;
use remeasure::engine::{self, EngineChoice, Server, StartRequest};
use remeasure::measure::instrument::INSTRUMENTS;
use remeasure::measure::{self, Fixtures, Progress, Request};
use remeasure::parse::{self, Known};
use remeasure::plan;
use remeasure::quantity::Table;
use remeasure::record::store::Store;
use remeasure::source::Source;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Updates after a checkpoint, so that pages are logged whole, with an index, so that there are
/// records of several kinds. With `wal_level: minimal` nobody else writes to the log.
fn article(version: &str, rows: u32, begin: &str) -> String {
    format!(
        "---
title: T
postgres: {{version: \"{version}\", settings: {{wal_level: minimal, max_wal_senders: 0, max_wal_size: 4GB, wal_keep_size: 1GB, checkpoint_timeout: 1h}}}}
params: {{rows: {rows}}}
---

```sql experiment e
--| instruments: [wal]
--| setup:
CREATE TABLE t (id int PRIMARY KEY, k int) WITH (autovacuum_enabled = off);
CREATE INDEX ON t (k);
INSERT INTO t SELECT g, g FROM generate_series(1, :rows) AS g;
-- What the session has to look up for the first time may tidy pages of the catalog.
SELECT pg_current_wal_insert_lsn() AS begins \\gset
CHECKPOINT;
--| measure:
{begin}
SELECT pg_current_wal_insert_lsn() AS begins \\gset
UPDATE t SET k = k + 1;
SELECT pg_current_wal_insert_lsn() AS ends \\gset
--| collect:
SELECT :'begins' AS first, :'ends' AS last;
```
"
    )
}

#[tokio::test]
async fn wal_is_what_pg_waldump_reads_on_16() {
    wal_is_what_pg_waldump_reads("16.15", 2_000, "").await;
}

#[tokio::test]
async fn wal_is_what_pg_waldump_reads_on_18() {
    wal_is_what_pg_waldump_reads("18.6", 2_000, "").await;
}

/// What an open transaction wrote is not in `pg_stat_wal` yet: the log itself is searched for
/// images, beyond 200,000 records in parts of the window.
#[tokio::test]
async fn wal_of_an_open_transaction_is_what_pg_waldump_reads() {
    let begin = "BEGIN;";
    wal_is_what_pg_waldump_reads("16.15", 2_000, begin).await;
    let records = wal_is_what_pg_waldump_reads("16.15", 80_000, begin).await;
    assert!(records > 200_000, "{records}");
}

/// Gives the number of records.
async fn wal_is_what_pg_waldump_reads(version: &str, rows: u32, begin: &str) -> u64 {
    let (server, measured, by_type) = measure_on_a_server(&article(version, rows, begin)).await;
    let cell = |name: &str| measured.rows[0][measured.column(name).unwrap()].to_string();
    let number = |name: &str| cell(name).parse::<u64>().unwrap();

    let records = wal_dump(&server, &cell("first"), &cell("last")).await;
    let begins = position(&cell("first"));
    assert_eq!(number("wal_bytes"), position(&cell("last")) - begins);
    assert_eq!(number("wal_records"), records.len() as u64);
    let images: usize = records.iter().map(|record| record.images).sum();
    assert!(images > 10, "{images}");
    assert_eq!(number("wal_fpi"), images as u64);
    let image_bytes: u64 = records.iter().map(|record| record.image_bytes).sum();
    assert_eq!(number("wal_fpi_bytes"), image_bytes);
    assert_eq!(
        number("wal_bytes_without_fpi"),
        number("wal_bytes") - image_bytes
    );

    let of_type = |name: &str| records.iter().filter(|record| record.kind == name).count();
    let kinds = column(&by_type, "record_type");
    let counts = column(&by_type, "count");
    assert!(
        kinds.iter().any(|kind| kind == "Btree/INSERT_LEAF"),
        "{kinds:?}"
    );
    for (kind, count) in kinds.iter().zip(&counts) {
        assert_eq!(of_type(kind).to_string(), *count, "{kind}");
    }
    server.stop().await.unwrap();
    number("wal_records")
}

struct Silent;

impl Progress for Silent {
    fn activity(&self, _: &str, _: &str, _: &str) {}
    fn unit_done(&self, _: &str, _: usize, _: f64) {}
}

/// Measures the article's one experiment and leaves its server running.
async fn measure_on_a_server(text: &str) -> (Server, Table, Table) {
    let pins = Path::new(env!("CARGO_MANIFEST_DIR")).join("articles/pins.yaml");
    let pins = Pins::read(&pins).unwrap();
    let known = Known {
        versions: &pins.versions(),
        instruments: &INSTRUMENTS
            .iter()
            .map(|one| one.known())
            .collect::<Vec<_>>(),
        charts: &[],
        lint_rules: &[],
    };
    let source = Source::new("article.md", "article.md", text.to_owned());
    let article = parse::parse(&source, "a", Path::new("."), &known).unwrap();
    let resolved = plan::resolve(&article, None).unwrap();
    let postgres = &article.front_matter.postgres;
    let mut server = engine::start(
        &EngineChoice::Embedded,
        &StartRequest {
            pin: pins.version(&postgres.version.value).unwrap(),
            settings: &postgres.settings,
            limits: remeasure::engine::Limits::default(),
            cache: &engine::default_cache(),
            offline: false,
            progress: &|line| println!("{line}"),
        },
    )
    .await
    .unwrap();
    measure::prepare(&server, &article).await.unwrap();
    let state = tempfile::tempdir().unwrap();
    let store = Store::new(state.path(), "a");
    let request = Request {
        version: None,
        article: &article,
        resolved: &resolved,
        experiment: article.experiments().next().unwrap(),
        inputs: &Default::default(),
        fingerprint: "0123456789abcdef0123456789abcdef",
        host: "0123456789abcdef0123456789abcdef",
        kept: None,
        store: &store,
    };
    measure::measure(&mut server, &mut Fixtures::default(), &request, &Silent)
        .await
        .unwrap();
    let sample = store.results("e").remove(0).samples.remove(0);
    (server, sample.row, sample.results["wal"].clone())
}

/// One record as `pg_waldump --bkp-details` tells it.
struct DumpedRecord {
    /// Such as `Heap/UPDATE`.
    kind: String,
    images: usize,
    image_bytes: u64,
}

async fn wal_dump(server: &Server, begins: &str, ends: &str) -> Vec<DumpedRecord> {
    let mut session = server.connect("postgres", Role::Tool).await.unwrap();
    let shown = session.execute("SHOW data_directory").await.unwrap();
    let data = PathBuf::from(shown.rows[0][0].clone().unwrap());
    let programs = "SELECT setting FROM pg_config WHERE name = 'BINDIR'";
    let programs = session.execute(programs).await.unwrap();
    let programs = PathBuf::from(programs.rows[0][0].clone().unwrap());
    let output = Command::new(programs.join("pg_waldump"))
        .args(["--bkp-details", "--start", begins, "--end", ends, "--path"])
        .arg(data.join("pg_wal"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let mut records: Vec<DumpedRecord> = Vec::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        if let Some(rest) = line.strip_prefix("rmgr: ") {
            let manager = rest.split_whitespace().next().unwrap();
            // `desc: INSERT+INIT off: 1` is an INSERT; the statistics keep `+INIT` apart.
            let (_, description) = rest.split_once("desc: ").unwrap();
            let name = description.split([' ', ',']).next().unwrap();
            records.push(DumpedRecord {
                kind: format!("{manager}/{name}"),
                images: 0,
                image_bytes: 0,
            });
        } else if line.contains("(FPW") {
            // `blkref #0: rel … blk 3 (FPW); hole: offset: 300, length: 500`
            let (_, hole) = line.rsplit_once("length: ").unwrap();
            let hole: u64 = hole.split(',').next().unwrap().trim().parse().unwrap();
            let record = records.last_mut().unwrap();
            record.images += 1;
            record.image_bytes += 8192 - hole;
        }
    }
    records
}

/// `1/2A` in bytes.
fn position(lsn: &str) -> u64 {
    let (high, low) = lsn.split_once('/').unwrap();
    let part = |hex| u64::from_str_radix(hex, 16).unwrap();
    (part(high) << 32) + part(low)
}

#[test]
fn hot_counts_the_updates_that_stay_on_their_page() {
    for version in ["16.15", "18.6"] {
        let record = built(&format!(
            "---
title: T
postgres: {{version: \"{version}\"}}
---

```sql experiment e
--| instruments: [wal, hot]
--| cases:
--|   - {{case: room, fillfactor: 40, indexed: false}}
--|   - {{case: full, fillfactor: 100, indexed: false}}
--|   - {{case: index, fillfactor: 40, indexed: true}}
--| setup:
SELECT format('CREATE TABLE t (id int, v int, pad text) WITH (fillfactor = %s, autovacuum_enabled = off)', :fillfactor) \\gexec
INSERT INTO t SELECT g, 0, repeat('x', 100) FROM generate_series(1, 600) AS g;
SELECT 'CREATE INDEX ON t (v)' WHERE :indexed \\gexec
--| measure:
UPDATE t SET v = v + 1;
--| collect:
-- A row that stays on its page keeps the page's number; the old and the new are at one place.
SELECT pg_relation_size('t') / 8192 AS pages;
```

```sql claims c
--| hot_records: {{kind: exact}}
SELECT coalesce(sum(count), 0) FROM measured.e_wal WHERE record_type = 'Heap/HOT_UPDATE' AND \"case\" = 'room';
--| hot_records_full: {{kind: exact}}
SELECT coalesce(sum(count), 0) FROM measured.e_wal WHERE record_type = 'Heap/HOT_UPDATE' AND \"case\" = 'full';
```
"
        ));
        assert_eq!(measured(&record, "e", "updated"), ["600"; 3]);
        let hot = measured(&record, "e", "hot_updated");
        assert_eq!([&*hot[0], &*hot[2]], ["600", "0"], "{version}");
        // The last page of the full table had room for some.
        let full: u32 = hot[1].parse().unwrap();
        assert!(full < 100, "{version}: {full}");
        assert_eq!(claim(&record, "hot_records"), "600");
        assert_eq!(claim(&record, "hot_records_full"), hot[1]);
        let elsewhere = measured(&record, "e", "newpage_updated");
        assert_eq!(elsewhere[0], "0");
        assert_eq!(elsewhere[1], (600 - full).to_string());
    }
}

#[test]
fn tuples_are_those_that_the_statements_touched() {
    for version in ["16.15", "18.6"] {
        let record = built(&format!(
            "---
title: T
postgres: {{version: \"{version}\"}}
---

```sql experiment e
--| instruments: [tuples]
--| runs: 2
--| fresh: run
--| setup:
CREATE TABLE t (id int PRIMARY KEY) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT generate_series(1, 50);
--| measure:
INSERT INTO t SELECT generate_series(51, 500);
DELETE FROM t WHERE id % 5 = 0;
SELECT count(*) AS counted FROM t;
SET enable_seqscan = off;
SELECT count(*) AS by_index FROM t WHERE id = 7 OR id = 8;
--| collect:
SELECT count(*) AS left_over FROM t;
```
"
        ));
        for (name, expected) in [
            ("inserted", "450"),
            ("deleted", "100"),
            ("live_change", "350"),
            ("dead_change", "100"),
            // All rows for the delete, those that are left for the count.
            ("seq_tuples_read", "900"),
            ("index_tuples_fetched", "2"),
            ("left_over", "400"),
        ] {
            assert_eq!(
                measured(&record, "e", name),
                [expected; 2],
                "{version}: {name}"
            );
        }
    }
}

#[test]
fn both_clocks_agree_with_a_known_sleep() {
    let record = built(
        "
```sql experiment e
--| instruments: [time]
SELECT pg_sleep(0.05);
SELECT pg_sleep(0.03);
```
",
    );
    let number = |name: &str| -> f64 { measured(&record, "e", name)[0].parse().unwrap() };
    let (elapsed, server) = (number("elapsed_ms"), number("server_ms"));
    assert!((80.0..2000.0).contains(&server), "{server}");
    // The client waits for the server, and a round trip longer.
    assert!(elapsed >= server, "{elapsed} {server}");
    let statements = &experiment(&record, "e").results["statements"];
    let sum: BigDecimal = column(statements, "elapsed_ms")
        .iter()
        .map(|text| text.parse::<BigDecimal>().unwrap())
        .sum();
    assert!((sum.to_string().parse::<f64>().unwrap() - elapsed).abs() < 1e-6);
    let rate = number("rows_per_s");
    assert!((rate * elapsed / 1000.0 - 1.0).abs() < 1e-6, "{rate}");
}

#[test]
fn a_window_that_writes_nothing_has_no_log() {
    let record = built(
        "
---
title: T
postgres: {version: \"16.15\", settings: {wal_level: minimal, max_wal_senders: 0}}
---

```sql experiment e
--| instruments: [wal, hot, tuples, time]
SELECT 1 AS one;
```
",
    );
    for name in [
        "wal_bytes",
        "wal_bytes_without_fpi",
        "wal_records",
        "wal_fpi",
        "wal_fpi_bytes",
        "updated",
        "inserted",
    ] {
        assert_eq!(measured(&record, "e", name), ["0"], "{name}");
    }
}
