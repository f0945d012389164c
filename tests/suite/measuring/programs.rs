//! Phases that psql and pgbench of the pinned server run.

use crate::project::{Project, built, column, experiment, measured, refused};
use remeasure::record::Record;

/// An article of this version.
fn article(version: &str, params: &str, body: &str) -> String {
    format!("---\ntitle: T\npostgres: {{version: \"{version}\"}}\nparams: {params}\n---\n{body}")
}

fn statements(record: &Record, id: &str, name: &str) -> Vec<String> {
    column(&experiment(record, id).results["statements"], name)
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

const PSQL: &str = "
```sql experiment load
--| runs: 2
--| fresh: run
--| matrix: {more: [1, 3]}
--| session: {work_mem: 7MB}
--| setup: {via: psql}
CREATE TABLE t (a int, b text);
\\copy (SELECT g, 'Time: ' || g || '.000 ms' FROM generate_series(1, 100) g) TO 'data/rows.csv'
--| measure: {via: psql}
\\timing
\\i lib/some.sql
\\copy t FROM 'data/rows.csv'
INSERT INTO t SELECT a, b FROM t
 LIMIT :rows;
SELECT b FROM t ORDER BY a;
SELECT format('INSERT INTO t VALUES (%s)', g) FROM generate_series(1, :more) g \\gexec
SELECT 3 AS low, current_setting('work_mem') AS memory \\gset
SELECT 1 / (CASE :'memory' WHEN '7MB' THEN 1 ELSE 0 END);
COPY t FROM stdin;
900\tlast
\\.
SELECT random() AS r \\gset again_
DELETE FROM t WHERE a <= :'low';
--| collect:
SELECT count(*) AS left, max(a) AS most FROM t;
```
";

#[test]
fn psql_runs_phases_with_its_own_commands() {
    for version in ["16.15", "18.6"] {
        let project = Project::new(&article(version, "{rows: 100}", PSQL));
        project.write("articles/a/lib/some.sql", "VACUUM t;\n\\ir more.sql\n");
        project.write(
            "articles/a/lib/more.sql",
            "UPDATE t SET a = 0 WHERE a < 0 OR a = :rows + 1;\n",
        );
        let record = project.built();
        let rows = statements(&record, "load", "rows");
        let of_run = [
            "NULL", "0", "100", "100", "200", "1", "NULL", "NULL", "1", "1", "NULL", "7",
        ];
        assert_eq!(rows[..12], of_run, "{version}: {rows:?}");
        assert_eq!(rows[12..24], of_run, "{version}: {rows:?}");
        assert_eq!(rows.len(), 2 * 12 + 2 * 14, "{version}");
        assert_eq!(measured(&record, "load", "rows"), ["7", "7", "9", "9"]);
        assert_eq!(measured(&record, "load", "most"), ["900"; 4]);
        let times = statements(&record, "load", "elapsed_ms");
        assert!(times.iter().all(|ms| number(ms) > 0.0), "{times:?}");
        // As psql prints them: microseconds.
        let decimals = |ms: &String| ms.split_once('.').map_or(0, |(_, part)| part.len());
        assert!(times.iter().all(|ms| decimals(ms) <= 3), "{times:?}");
        let servers = statements(&record, "load", "server_ms");
        assert!(servers.iter().all(|ms| ms == "NULL"), "{servers:?}");
        let sum: f64 = times[..12].iter().map(|ms| number(ms)).sum();
        let elapsed = number(&measured(&record, "load", "elapsed_ms")[0]);
        assert!((sum - elapsed).abs() < 1e-6, "{sum} {elapsed}");
        let wal = measured(&record, "load", "wal_records");
        assert!(wal.iter().all(|records| number(records) > 105.0), "{wal:?}");
    }
}

#[test]
fn the_time_of_psqls_statements_is_without_its_start() {
    let record = built(
        "
```sql experiment slow
--| measure: {via: psql}
SELECT pg_sleep(0.2);
SELECT 1;
```

```sql experiment one
--| runs: 3
--| measure: {via: psql, args: \"--single-transaction\"}
CREATE TEMPORARY TABLE t ON COMMIT DROP AS SELECT 1;
SELECT * FROM t;
```
",
    );
    let times = statements(&record, "slow", "elapsed_ms");
    assert!(number(&times[0]) >= 200.0, "{times:?}");
    // To start psql and to connect takes longer than any statement that does nothing.
    assert!(number(&times[1]) < number(&times[0]), "{times:?}");
    assert_eq!(measured(&record, "one", "rows"), ["1"; 3]);
}

#[test]
fn what_is_wrong_in_psqls_script_is_told_at_its_place() {
    let body = |sql: &str| format!("```sql experiment e\n--| measure: {{via: psql}}\n{sql}\n```\n");
    for (sql, place, message) in [
        (
            "SELECT 1;\nSELECT 1,\n  nope;",
            "10:3",
            "Postgres: column \"nope\" does not exist (SQLSTATE 42703)",
        ),
        (
            "SELECT 1;\n\\copy t FROM 'none.csv'",
            "9:1",
            "none.csv: No such file or directory",
        ),
        (
            "SELEC 1;",
            "8:1",
            "Postgres: syntax error at or near \"SELEC\" (SQLSTATE 42601)",
        ),
        (
            "SELECT 'SELECT 1 / 0' \\gexec",
            "8:1",
            "Postgres: division by zero (SQLSTATE 22012)",
        ),
        (
            "\\copy (SELECT 1) TO PROGRAM 'id'",
            "8:21",
            "`\\copy … program` is refused: an article runs no programs",
        ),
    ] {
        let told = refused(&body(sql), 2);
        assert!(told.contains(message), "{sql}: {told}");
        let at = format!("articles/a/article.md:{place}\n");
        assert!(told.contains(&at), "{sql}: {told}");
    }
    let project = Project::new(&body("\\i lib.sql"));
    project.write("articles/a/lib.sql", "SELECT 1;\nSELECT nope;\n");
    let ran = project.build();
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("articles/a/lib.sql:2:8\n"),
        "{}",
        ran.stderr
    );
    // What a file says is an input of the result.
    project.write("articles/a/lib.sql", "SELECT 1;\n");
    project.built();
    assert_eq!(project.build().stderr, "a: nothing changed\n");
    project.write("articles/a/lib.sql", "SELECT 2;\n");
    let status = project.run(&["status"]);
    assert!(
        status.stdout.contains("file `lib.sql`"),
        "{}",
        status.stdout
    );
}

#[test]
fn an_error_that_psql_must_raise_is_expected_by_its_state() {
    let record = built(
        "
```sql experiment twice
--| expect_error: \"23505\"
--| setup:
CREATE TABLE t (a int PRIMARY KEY);
--| measure: {via: psql}
INSERT INTO t VALUES (1);
INSERT INTO t VALUES (1);
```

```sql experiment long
--| expect_error: \"57014\"
--| timeout: 200ms
--| measure: {via: psql}
SELECT 1;
SELECT pg_sleep(600);
```
",
    );
    assert_eq!(statements(&record, "twice", "rows"), ["1", "NULL"]);
    let times = statements(&record, "long", "elapsed_ms");
    assert!(number(&times[1]) >= 200.0, "{times:?}");
}

const PGBENCH: &str = "
```sql experiment bench
--| matrix: {clients: [1, 2]}
--| setup: {via: pgbench, args: \"-i -s 1 -q\"}
CREATE TABLE other (a int);
--| measure: {via: pgbench, args: \"-c :clients -j 2 -t 50 -r\"}
--| collect:
SELECT count(*) AS history FROM pgbench_history;
```

```sql experiment throttled
--| setup: {via: pgbench, args: \"-i -s 1 -q\"}
--| measure: {via: pgbench, args: \"-S -c 2 -T 3 -R 100 -L 1000 -P 1 -r --max-tries=3\"}
```

```sql experiment own
--| session: {work_mem: 7MB}
--| setup:
CREATE TABLE seen (a bigint, memory text);
--| measure: {via: pgbench, args: \"-c 2 -t 20 -r -M prepared\"}
\\set a random(1, 1000000) + :offset
INSERT INTO seen
 VALUES (:a, current_setting('work_mem'));
--| collect:
SELECT min(a) > 7000000 AS above, count(*) AS seen, sum(a) AS total, max(memory) AS memory FROM seen;
```
";

#[test]
fn pgbench_measures_and_its_numbers_are_columns() {
    for version in ["16.15", "18.6"] {
        let project = Project::new(&article(version, "{offset: 7000000}", PGBENCH));
        let record = project.built();
        let of = |id: &str, name: &str| measured(&record, id, name);
        // The server's own count of what was done.
        assert_eq!(of("bench", "history"), ["50", "100"], "{version}");
        assert_eq!(of("bench", "transactions"), ["50", "100"]);
        assert_eq!(of("bench", "failed"), ["0", "0"]);
        assert_eq!(of("bench", "retried"), ["NULL", "NULL"]);
        assert_eq!(of("bench", "schedule_lag_ms"), ["NULL", "NULL"]);
        assert_eq!(of("bench", "rows"), ["NULL", "NULL"]);
        for id in ["bench", "throttled", "own"] {
            percentiles_are_in_order(&record, id);
            let elapsed = number(&of(id, "elapsed_ms")[0]);
            let by_rate = 1000.0 * number(&of(id, "transactions")[0]) / number(&of(id, "tps")[0]);
            assert!(
                (elapsed / by_rate - 1.0).abs() < 1e-6,
                "{elapsed} {by_rate}"
            );
        }
        // One client does one transaction after the other: as long as they take is as long as it takes.
        let busy = number(&of("bench", "latency_ms")[0]) * 50.0;
        let elapsed = number(&of("bench", "elapsed_ms")[0]);
        assert!(
            busy <= elapsed * 1.01 && busy > elapsed * 0.5,
            "{busy} {elapsed}"
        );

        let sql = statements(&record, "bench", "sql");
        assert_eq!(sql.len(), 22, "{sql:?}");
        assert_eq!(sql[4], "BEGIN;");
        assert_eq!(sql[10], "END;");
        let latencies = statements(&record, "bench", "latency_ms");
        let sum: f64 = latencies[..11].iter().map(|ms| number(ms)).sum();
        let whole = number(&of("bench", "latency_ms")[0]);
        assert!(sum < whole * 1.1 && sum > whole * 0.5, "{sum} {whole}");

        assert_eq!(of("throttled", "retried"), ["0"]);
        assert_eq!(of("throttled", "late").len(), 1);
        assert!(number(&of("throttled", "skipped")[0]) >= 0.0);
        let lag = number(&of("throttled", "schedule_lag_ms")[0]);
        assert!(lag <= number(&of("throttled", "schedule_lag_max_ms")[0]));
        assert!(number(&of("throttled", "initial_connection_ms")[0]) > 0.0);
        let progress = &experiment(&record, "throttled").results["progress"];
        let seconds = column(progress, "seconds");
        assert!((1..=3).contains(&seconds.len()), "{seconds:?}");
        assert!(number(&seconds[0]) >= 1.0 && number(&column(progress, "tps")[0]) > 0.0);
        assert_eq!(statements(&record, "throttled", "statement"), ["1", "2"]);

        assert_eq!(of("own", "above"), ["true"]);
        assert_eq!(of("own", "seen"), ["40"]);
        assert_eq!(of("own", "memory"), ["7MB"]);
        assert_eq!(statements(&record, "own", "sql")[1], "INSERT INTO seen");
        // The article's seed is pgbench's, so what is drawn at random comes again.
        let total = of("own", "total");
        project.run(&["build", "--force", "own"]);
        assert_eq!(measured(&project.record(), "own", "total"), total);
    }
}

fn percentiles_are_in_order(record: &Record, id: &str) {
    let names = ["p50", "p90", "p95", "p99", "p999", "max"];
    let values: Vec<f64> = names
        .iter()
        .map(|name| number(&measured(record, id, &format!("latency_{name}_ms"))[0]))
        .collect();
    assert!(values.is_sorted(), "{id}: {values:?}");
    let average = number(&measured(record, id, "latency_ms")[0]);
    assert!(
        average <= values[5] && values[0] > 0.0,
        "{id}: {average} {values:?}"
    );
}

#[test]
fn what_is_wrong_with_a_pgbench_run_is_told_at_its_place() {
    let body = |args: &str, sql: &str| {
        format!(
            "```sql experiment e\n--| timeout: 2s\n--| measure: {{via: pgbench, args: \"{args}\"}}\n{sql}\n```\n"
        )
    };
    for (args, sql, place, message) in [
        (
            "-t 1",
            "\\set a 1\nSELECT 1;\nSELECT 1 / (:a - :a);",
            "11:1",
            "pgbench: Postgres: division by zero",
        ),
        (
            "-t 1",
            "SELECT 1;\n\\set a random(",
            "10:",
            "pgbench: the script:2: syntax error",
        ),
        (
            "-t 1",
            "SELECT pg_sleep(600);",
            "8:5",
            "pgbench ran longer than its timeout of 2s",
        ),
        (
            "-S -t 1",
            "",
            "8:36",
            "relation \"pgbench_branches\" does not exist",
        ),
        (
            "-t 1 -T 2",
            "SELECT 1;",
            "8:41",
            "`-t` and `-T` both say when to end",
        ),
    ] {
        let told = refused(&body(args, sql), 2);
        assert!(told.contains(message), "{args} {sql}: {told}");
        let at = format!("articles/a/article.md:{place}");
        assert!(told.contains(&at), "{args} {sql}: {told}");
    }
}

#[cfg(target_os = "linux")]
mod interrupted {
    use super::*;
    use crate::interrupted::command_line;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    /// Every process that runs in the folder of a run of this build.
    fn programs(build: u32) -> Vec<u32> {
        crate::interrupted::children(build)
            .into_iter()
            .filter(|pid| {
                let line = command_line(*pid);
                line.contains("bin/psql") || line.contains("bin/pgbench")
            })
            .collect()
    }

    #[test]
    fn no_program_outlives_a_build_that_is_interrupted_or_killed() {
        for (signal, phase, sql) in [
            ("INT", "via: psql", "SELECT pg_sleep(600);"),
            ("KILL", "via: psql", "SELECT pg_sleep(600);"),
            (
                "KILL",
                "via: pgbench, args: \"-c 2 -j 2 -t 1\"",
                "SELECT pg_sleep(600);",
            ),
        ] {
            let project = Project::new(&format!(
                "```sql experiment e\n--| matrix: {{n: [1, 2]}}\n--| setup:\nSELECT 1;\n--| measure: {{{phase}}}\n{sql}\n```\n"
            ));
            let mut build = project
                .command(&["build"])
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stderr = BufReader::new(build.stderr.take().unwrap());
            let mut line = String::new();
            stderr.read_line(&mut line).unwrap();
            let deadline = Instant::now() + Duration::from_secs(120);
            let found = loop {
                let found = programs(build.id());
                if !found.is_empty() {
                    break found;
                }
                assert!(Instant::now() < deadline, "no program was started: {line}");
                std::thread::sleep(Duration::from_millis(5));
            };
            let pid = build.id().to_string();
            let sent = Command::new("kill").args(["-s", signal, &pid]).status();
            assert!(sent.unwrap().success());
            build.wait().unwrap();
            let deadline = Instant::now() + Duration::from_secs(30);
            while found.iter().any(|pid| crate::interrupted::is_alive(*pid)) {
                assert!(
                    Instant::now() < deadline,
                    "{signal} {phase}: a program is left"
                );
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

#[test]
fn a_canned_program_needs_no_server() {
    let project = Project::new(
        "```sql experiment e\n--| instruments: [time]\n--| measure: {via: pgbench, args: \"-S -t 2\"}\n```\n\
         ```sql experiment p\n--| instruments: [time]\n--| measure: {via: psql}\nSELECT 1;\n```\n",
    );
    project.write(
        "fake.yaml",
        "answers:
  - {match: SELECT *, columns: [a], rows: [[0]]}
programs:
  - program: pgbench
    arguments: \"-S -t 2 --log *\"
    stdout: |
      number of transactions actually processed: 2/2
      number of failed transactions: 0 (0.000%)
      latency average = 1.500 ms
      latency stddev = 0.500 ms
      initial connection time = 7.1 ms
      tps = 12.500000 (without initial connection time)
    files: {.remeasure-transactions.1: \"0 1 1000 0 1 1\\n0 2 2000 0 1 1\\n\"}
  - program: psql
    stdout: |
      <p>INSERT 0 5</p>
      Time: 12.345 ms
",
    );
    let ran = project.run(&["build", "--engine", "fake:fake.yaml"]);
    assert_ne!(ran.code, 2, "{}", ran.stderr);
    let path = project.path("out/a/data/e.csv");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{}", ran.stderr));
    assert!(text.contains("12.500000,1.500,0.500,1.000,2.000"), "{text}");
    let text = project.read("out/a/data/p.csv");
    assert!(text.contains("12.345"), "{text}");
}
