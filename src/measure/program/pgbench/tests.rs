use super::*;
use std::io::{Seek, Write};

fn file(text: &str) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.rewind().unwrap();
    file
}

const THROTTLED: &str = "pgbench (16.15)
starting vacuum...end.
transaction type: <builtin: select only>
scaling factor: 1
query mode: simple
number of clients: 2
number of threads: 1
maximum number of tries: 3
duration: 2 s
number of transactions actually processed: 177
number of failed transactions: 2 (0.000%)
number of transactions retried: 4 (0.000%)
total number of retries: 5
number of transactions skipped: 3 (0.000%)
number of transactions above the 5.0 ms latency limit: 1/177 (0.565%)
latency average = 0.535 ms
latency stddev = 0.486 ms
rate limit schedule lag: avg 0.145 (max 1.431) ms
initial connection time = 7.553 ms
tps = 89.520081 (without initial connection time)
statement latencies in milliseconds, failures and retries:
         0.005           0           0  \\set aid random(1, 100000 * :scale)
         0.385           1          12  SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
";

/// As 18 prints them, without retries.
const PLAIN: &str = "pgbench (18.6)
number of transactions actually processed: 100/100
number of failed transactions: 0 (0.000%)
latency average = 1.021 ms
latency stddev = 0.414 ms
initial connection time = 5.535 ms
tps = 1642.413691 (without initial connection time)
statement latencies in milliseconds and failures:
         0.063           0 BEGIN;
         0.206           0 UPDATE t SET a = a + 1 WHERE id = 12;
";

fn texts(table: &Table) -> Vec<Vec<String>> {
    let row = |row: &Vec<Value>| row.iter().map(ToString::to_string).collect();
    table.rows.iter().map(row).collect()
}

#[test]
fn every_number_is_as_pgbench_prints_it() {
    let log = "0 1 1646 0 1796063236 211126 113\n0 2 636 0 1 2 3\n1 1 skipped 0 1 2 9\n1 2 failed 0 1 2 9\n";
    let stderr = "progress: 1.0 s, 85.0 tps, lat 0.525 ms stddev 0.275, 0 failed, lag 0.131 ms, 6 skipped\n\
                  progress: 2.0 s, 91.5 tps, lat 0.500 ms stddev 0.250, 1 failed\n";
    let ran = read(Printed {
        stdout: file(THROTTLED),
        stderr,
        log: vec![file(log), file("1 3 1541 0 1 2 3\n")],
    })
    .unwrap();
    let values: Vec<(String, String)> = ran
        .columns
        .iter()
        .map(|(column, value)| (column.name.clone(), value.to_string()))
        .collect();
    let expected = [
        ("tps", "89.520081"),
        ("latency_ms", "0.535"),
        ("latency_stddev_ms", "0.486"),
        ("latency_p50_ms", "1.541"),
        ("latency_p90_ms", "1.646"),
        ("latency_p95_ms", "1.646"),
        ("latency_p99_ms", "1.646"),
        ("latency_p999_ms", "1.646"),
        ("latency_max_ms", "1.646"),
        ("transactions", "177"),
        ("failed", "2"),
        ("retried", "4"),
        ("skipped", "3"),
        ("late", "1"),
        ("schedule_lag_ms", "0.145"),
        ("schedule_lag_max_ms", "1.431"),
        ("initial_connection_ms", "7.553"),
    ];
    let values: Vec<(&str, &str)> = values
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(values, expected);
    assert_eq!(
        texts(&ran.results["statements"]),
        [
            [
                "1",
                "1",
                "0.005",
                "0",
                "\\set aid random(1, 100000 * :scale)"
            ],
            [
                "1",
                "2",
                "0.385",
                "1",
                "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;"
            ],
        ]
    );
    assert_eq!(
        texts(&ran.results["progress"]),
        [
            ["1.0", "85.0", "0.525", "0.275", "0", "0.131", "6"],
            ["2.0", "91.5", "0.500", "0.250", "1", "NULL", "NULL"],
        ]
    );
    assert_eq!(ran.statements[0].elapsed.as_millis(), 1977);
}

#[test]
fn what_is_not_printed_is_null() {
    let ran = read(Printed {
        stdout: file(PLAIN),
        stderr: "",
        log: Vec::new(),
    })
    .unwrap();
    let null = ran
        .columns
        .iter()
        .filter(|(_, value)| *value == Value::Null);
    let null: Vec<&str> = null.map(|(column, _)| column.name.as_str()).collect();
    assert_eq!(
        null,
        [
            "latency_p50_ms",
            "latency_p90_ms",
            "latency_p95_ms",
            "latency_p99_ms",
            "latency_p999_ms",
            "latency_max_ms",
            "retried",
            "skipped",
            "late",
            "schedule_lag_ms",
            "schedule_lag_max_ms"
        ]
    );
    let statements = texts(&ran.results["statements"]);
    assert_eq!(statements[1][4], "UPDATE t SET a = a + 1 WHERE id = 12;");
    assert!(
        read(Printed {
            stdout: file("pgbench (18.6)\n"),
            stderr: "",
            log: Vec::new()
        })
        .is_err()
    );
}

#[test]
fn percentiles_are_the_nearest_ranks() {
    let of = |latencies: &[u64]| {
        let lines: Vec<String> = latencies
            .iter()
            .map(|us| format!("0 1 {us} 0 1 2\n"))
            .collect();
        Latencies::read(vec![file(&lines.concat())]).unwrap()
    };
    assert_eq!(of(&[]).percentile(500), None);
    let one = of(&[7]);
    assert_eq!(
        (one.percentile(500), one.percentile(999)),
        (Some(7), Some(7))
    );
    let hundred: Vec<u64> = (1..=100).rev().collect();
    let hundred = of(&hundred);
    for (thousandths, expected) in [(500, 50), (900, 90), (990, 99), (999, 100), (1000, 100)] {
        assert_eq!(
            hundred.percentile(thousandths),
            Some(expected),
            "{thousandths}"
        );
    }
    assert_eq!(milliseconds(1_234_005), "1234.005");
}

#[test]
fn what_pgbench_complains_of_has_its_place_in_the_script() {
    let aborted = "pgbench (16.15)\npgbench: error: client 0 script 0 aborted in command 5 query 0: ERROR:  division by zero\n\
                   pgbench: error: Run was aborted; the above results are incomplete.\n";
    let found = problem(aborted).unwrap();
    assert_eq!(found.message, "Postgres: division by zero");
    assert_eq!(found.place, Some(Place::Command(5)));
    let found = problem("pgbench: error: .remeasure/measure.sql:3: unexpected \"(\" in command \"set\"\n\\set x (\n").unwrap();
    assert_eq!(found.place, Some(Place::Line(3)));
    assert_eq!(found.notes, ["\\set x ("]);
    assert_eq!(problem("pgbench (16.15)\n"), None);
}

#[test]
fn what_pgbench_is_started_with_has_what_the_columns_need() {
    let words = |text: &str| -> Vec<Spanned<String>> {
        let words = text.split_whitespace();
        words
            .map(|word| Spanned::new(word.to_owned(), 0..0))
            .collect()
    };
    let line = |given: &str, body| {
        let (arguments, problems) = arguments(&words(given), body, "42");
        assert!(problems.is_empty(), "{given}: {problems:?}");
        arguments.join(" ")
    };
    assert_eq!(line("-i -s 10", false), "-i -s 10");
    let log = "--log --log-prefix=.remeasure-transactions";
    assert_eq!(
        line("-S -T 1 -P 1", false),
        format!("-S -T 1 -P 1 {log} --random-seed=42")
    );
    assert_eq!(
        line("-c 2", true),
        format!("-c 2 {log} --progress=86400 --random-seed=42 --no-vacuum")
    );
    let (_, problems) = arguments(&words("-c 0"), true, "1");
    assert_eq!(problems.len(), 1);
}
