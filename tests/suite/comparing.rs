//! `diff`, `status --explain` and what `accept` says: what is accepted beside what is measured.

use crate::project::{Project, Ran};
use serde_json::Value;
use std::fs;

const ARTICLE: &str = "
---
title: T
postgres: {version: \"16.15\"}
params: {rows: 10}
profiles: {quick: {rows: 10}}
---

```sql fixture base
CREATE TABLE base AS
SELECT generate_series(1, :rows) AS a;
```

```sql experiment e
--| fixture: base
--| instruments: [time]
--| matrix: {k: [1, 2]}
--| runs: 3
SELECT :k AS n FROM base;
```

```sql experiment once
--| instruments: [time]
SELECT 7 AS n;
```

```sql claims c
--| slowest: {kind: noisy, unit: ms}
SELECT max(elapsed_ms) FROM measured.e;
--| total: {kind: exact}
SELECT sum(n) * :rows FROM measured.e;
--| same: {kind: exact}
SELECT max(n) = 2 FROM measured.e;
```

```sql table t
--| caption: T
SELECT n FROM measured.once;
```

It took {{ slowest }}, of {{ total }} rows.
";

/// Runs of a cell take `elapsed` ms one after another; the claims have these values.
fn answers(elapsed: [&str; 3], slowest: &str, rows: &str) -> String {
    let runs = |k: u8| -> String {
        elapsed
            .iter()
            .map(|ms| {
                format!(
                    "
  - sql: SELECT {k} AS n FROM base
    columns: [n]
    types: [integer]
    rows: [[{k}]]
    elapsed_ms: {ms}"
                )
            })
            .collect()
    };
    format!(
        "answers:{}{}
  - match: SELECT pg_catalog.setseed(*)
    rows: [[null]]
  - sql: SELECT 7 AS n
    columns: [n]
    types: [integer]
    rows: [[7]]
    elapsed_ms: {}
  - sql: SELECT max(elapsed_ms) FROM measured.e
    types: [double precision]
    rows: [[{slowest}]]
  - match: SELECT sum(n) * * FROM measured.e
    types: [numeric]
    rows: [[{rows}]]
  - sql: SELECT max(n) = 2 FROM measured.e
    types: [boolean]
    rows: [[t]]
  - sql: SELECT n FROM measured.once
    columns: [n]
    types: [integer]
    rows: [[7]]
",
        runs(1),
        runs(2),
        elapsed[0]
    )
}

fn project() -> Project {
    let project = Project::new(ARTICLE);
    project.write("fake.yaml", &answers(["10", "11", "12"], "12", "180"));
    project
}

fn run(project: &Project, arguments: &[&str]) -> Ran {
    let mut arguments = arguments.to_vec();
    arguments.extend(["--engine", "fake:fake.yaml"]);
    project.run(&arguments)
}

fn passes(project: &Project, arguments: &[&str]) -> String {
    let ran = run(project, arguments);
    assert_eq!(ran.code, 0, "{arguments:?} {}\n{}", ran.stdout, ran.stderr);
    ran.stdout
}

/// Accepted, and measured again with other answers.
fn measured_again(elapsed: [&str; 3], slowest: &str, rows: &str) -> Project {
    let project = project();
    passes(&project, &["build"]);
    passes(&project, &["accept"]);
    project.write("fake.yaml", &answers(elapsed, slowest, rows));
    // What is exact may be another than accepted.
    let ran = run(&project, &["build", "--force"]);
    assert!([0, 3].contains(&ran.code), "{}", ran.stderr);
    project
}

/// Times of measuring differ from run to run.
fn without_times(text: &str) -> String {
    text.split_inclusive(['\n', ' '])
        .map(|word| {
            let is_time = word.starts_with("20") && word.contains("Z");
            let end: String = word
                .chars()
                .rev()
                .take_while(|c| !c.is_ascii_alphanumeric())
                .collect();
            let end: String = end.chars().rev().collect();
            if is_time {
                format!("{{time}}{end}")
            } else {
                word.to_owned()
            }
        })
        .collect()
}

#[test]
fn what_moved_beyond_its_spread_is_told_from_what_did_not() {
    // The runs of `e` overlap with those accepted.
    let within = measured_again(["11", "11.5", "12.5"], "12.5", "180");
    let text = without_times(&passes(&within, &["diff"]));
    let expected = "\
a, profile full
  0 claims changed, 1 within the spread of their runs, 2 the same
  claim    accepted  pending  difference  ratio  spread of runs
  slowest     12 ms  12.5 ms        +0.5  ×1.04  18% of elapsed_ms
  experiment e: measured again {time}
    none of 8 values moved beyond the spread of their runs
  experiment once: measured again {time}
    2 of 4 values of a single run, which has no spread, differ: elapsed_ms, rows_per_s
";
    assert_eq!(text, expected);

    let beyond = measured_again(["20", "21", "22"], "22", "181");
    let text = without_times(&passes(&beyond, &["diff"]));
    for expected in [
        "  2 claims changed, 1 the same\n",
        "  slowest     12 ms    22 ms         +10  ×1.83  18% of elapsed_ms\n",
        "  total         180      181          +1  ×1.01  0% of n\n",
        "    k=1 elapsed_ms: 11 (10–12) → 21 (20–22), ×1.91\n",
        "    k=2 elapsed_ms: 11 (10–12) → 21 (20–22), ×1.91\n",
        "  experiment once: measured again {time}\n",
        " values of a single run, which has no spread, differ: elapsed_ms, rows_per_s\n",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn inputs_and_params_that_changed_are_named() {
    let project = project();
    passes(&project, &["build"]);
    passes(&project, &["accept"]);
    project.edit("params: {rows: 10}", "params: {rows: 12}");
    project.edit("SELECT 7 AS n", "SELECT 7 AS n, 8 AS m");
    let other = answers(["10", "11", "12"], "12", "216").replace(
        "  - sql: SELECT 7 AS n\n    columns: [n]\n    types: [integer]\n    rows: [[7]]",
        "  - sql: SELECT 7 AS n, 8 AS m\n    columns: [n, m]\n    types: [integer, integer]\n    rows: [[7, 8]]",
    );
    project.write("fake.yaml", &other);
    passes(&project, &["build"]);
    let text = passes(&project, &["diff"]);
    assert_eq!(text.matches(": measured again 20").count(), 2, "{text}");
    for expected in [
        "    param `rows` changed from `10` to `12`\n",
        "    measure changed\n",
        "  param rows changed from `10` to `12`\n",
        "  total       180      216         +36   ×1.2  0% of n\n",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let accepted = passes(&project, &["accept"]);
    for expected in [
        "  1 claim changed, 2 the same\n",
        "  changed: total\n",
        "  other inputs: e, once\n",
    ] {
        assert!(accepted.contains(expected), "{expected}\n{accepted}");
    }
    let again = passes(&project, &["accept"]);
    assert!(again.contains("unchanged"), "{again}");
    assert_eq!(again.lines().count(), 1, "{again}");
}

#[test]
fn a_difference_is_one_json_document_with_exact_decimals() {
    let project = measured_again(["20", "21", "22"], "22", "1800000");
    let document: Value = serde_json::from_str(&passes(&project, &["diff", "--json"])).unwrap();
    assert_eq!(document["format"], 1);
    let article = &document["articles"][0];
    assert_eq!(
        (&article["article"], &article["state"]),
        (&"a".into(), &"compared".into())
    );
    let claims = article["claims"].as_array().unwrap();
    let rows = claims
        .iter()
        .find(|claim| claim["claim"] == "total")
        .unwrap();
    assert_eq!(rows["change"], "changed");
    assert_eq!(rows["difference"], "1799820");
    assert_eq!(rows["ratio"], "10000");
    let slowest = claims
        .iter()
        .find(|claim| claim["claim"] == "slowest")
        .unwrap();
    assert_eq!(slowest["spread"]["column"], "elapsed_ms");
    assert_eq!(slowest["spread"]["runs"], 3);
    let moved = article["experiments"][0]["moved"].as_array().unwrap();
    assert_eq!(moved[0]["cell"]["k"], "1");
    assert_eq!(moved[0]["accepted"]["median"], "11");
}

#[test]
fn where_nothing_is_to_be_compared_it_says_how_to_get_it() {
    let project = project();
    let none = run(&project, &["diff"]);
    assert_eq!(none.code, 2, "{}", none.stderr);
    for told in [
        "`a` has no complete measurement in profile full to compare",
        "there is no `articles/a/record.json` either",
        "hint: measure it first: remeasure build a --profile full",
    ] {
        assert!(none.stderr.contains(told), "{told}\n{}", none.stderr);
    }
    passes(&project, &["build"]);
    let not_accepted = run(&project, &["diff"]);
    assert_eq!(not_accepted.code, 5);
    let told = "a: nothing is accepted yet; accept what is measured: remeasure accept a";
    assert!(
        not_accepted.stdout.starts_with(told),
        "{}",
        not_accepted.stdout
    );

    passes(&project, &["accept"]);
    let same = passes(&project, &["diff"]);
    assert_eq!(same, "a, profile full\n  0 claims changed, 3 the same\n");
    // As in a fresh clone.
    fs::remove_dir_all(project.path(".remeasure")).unwrap();
    let clone = passes(&project, &["diff"]);
    assert!(clone.starts_with("a: nothing is measured since"), "{clone}");
    let json: Value = serde_json::from_str(&passes(&project, &["diff", "--json"])).unwrap();
    assert_eq!(json["articles"][0]["state"], "nothing_pending");

    // What is accepted is of another query: there is something to evaluate.
    project.edit("max(n) = 2", "max(n) > 1");
    let other = run(&project, &["diff"]);
    assert_eq!(other.code, 2, "{}", other.stdout);
    assert!(
        other.stderr.contains("remeasure build a"),
        "{}",
        other.stderr
    );
    project.edit("max(n) > 1", "max(n) = 2");

    passes(&project, &["build", "--profile", "quick"]);
    let quick = passes(&project, &["diff", "--profile", "quick"]);
    assert!(quick.contains("  accepted is profile full\n"), "{quick}");
}

#[test]
fn an_explanation_names_each_input_and_what_changed_of_it() {
    let project = project();
    passes(&project, &["build"]);
    passes(&project, &["accept"]);
    let same = passes(&project, &["status", "--explain", "e"]);
    assert!(
        same.contains("    against what is accepted, measured "),
        "{same}"
    );
    assert!(same.contains(": the same\n"), "{same}");
    assert!(same.contains("      param `rows`: 10\n"), "{same}");

    project.edit(
        "SELECT generate_series(1, :rows) AS a;",
        "SELECT generate_series(1, 2 * :rows) AS a;",
    );
    for id in ["e", "base"] {
        let ran = run(&project, &["status", "--explain", id]);
        assert_eq!(ran.code, 5);
        let expected = "      fixture `base` changed
          CREATE TABLE base AS
        - SELECT generate_series(1, :rows) AS a;
        + SELECT generate_series(1, 2 * :rows) AS a;
";
        assert!(ran.stdout.contains(expected), "{id} {}", ran.stdout);
    }
    project.edit("unit: ms", "unit: s");
    project.edit(
        "SELECT n FROM measured.once",
        "SELECT n + 1 FROM measured.once",
    );
    project.edit("params: {rows: 10}", "params: {rows: 12}");
    for (id, expected) in [
        ("slowest", "      unit changed from `ms` to `s`\n"),
        ("total", "      param `rows` changed from `10` to `12`\n"),
        (
            "t",
            "      table `t` changed from `SELECT n FROM measured.once` to `SELECT n + 1 FROM measured.once`\n",
        ),
        ("same", "    against what is accepted: the same\n"),
    ] {
        let ran = run(&project, &["status", "--explain", id]);
        assert!(ran.stdout.contains(expected), "{id} {}", ran.stdout);
    }
    let unknown = run(&project, &["status", "--explain", "slow"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("did you mean `slowest`?"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn the_status_is_one_json_document() {
    let project = project();
    let before = run(&project, &["status", "--json"]);
    assert_eq!(before.code, 5);
    let document: Value = serde_json::from_str(&before.stdout).unwrap();
    assert_eq!(document["articles"][0]["record"]["state"], "missing");
    passes(&project, &["build"]);
    passes(&project, &["accept"]);
    project.edit("SELECT 7 AS n", "SELECT 8 AS n");
    let ran = run(&project, &["status", "--json", "--explain", "once"]);
    assert_eq!(ran.code, 5);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let article = &document["articles"][0];
    assert_eq!(article["experiments"][0]["fresh"], true);
    assert_eq!(article["experiments"][1]["fresh"], false);
    assert_eq!(article["record"]["state"], "stale");
    let explained = &article["explained"][0];
    assert_eq!(explained["kind"], "experiment");
    assert_eq!(explained["accepted"]["changed"][0]["input"], "measure");
    assert_eq!(explained["stored"]["changed"][0]["now"], "SELECT 8 AS n;\n");
    assert_eq!(
        explained["sha256"],
        article["experiments"][1]["fingerprint"]
    );
}

/// Wherever the command is given, and whatever project that folder is in.
#[test]
fn an_article_keeps_its_state_where_it_lies() {
    let project = project();
    let text = project.read("articles/a/article.md");
    project.write("elsewhere/post/article.md", &text);
    project.write("other/articles/b/article.md", &text);
    project.write("empty/fake.yaml", &project.read("fake.yaml"));
    let from = |folder: &str, arguments: &[&str]| -> Ran {
        let mut command = project.command(arguments);
        command
            .args(["--engine", "fake:fake.yaml"])
            .current_dir(project.path(folder));
        Ran::from(command.output().unwrap())
    };
    // Outside any project the nearest folder with `articles` is this one; a root says otherwise.
    for (folder, article, state) in [
        (
            "empty",
            "../elsewhere/post",
            "elsewhere/post/.remeasure/post",
        ),
        (
            "empty",
            "../other/articles/b/article.md",
            "other/.remeasure/b",
        ),
    ] {
        let built = from(folder, &["build", article, "--root", "."]);
        assert_eq!(built.code, 0, "{}", built.stderr);
        assert!(project.path(state).join("e").is_dir(), "{state}");
        assert!(!project.path("empty/.remeasure").exists());
        // From another folder its results are found.
        let name = article.trim_start_matches("../");
        let again = run(&project, &["build", name]);
        assert!(
            again.stderr.ends_with(": nothing changed\n"),
            "{}",
            again.stderr
        );
    }
    assert!(!project.path(".remeasure").exists());
    // Both pages are in the index of the folder they were written to.
    let index = project.read("empty/out/index.html");
    assert!(
        index.contains("post/index.html") && index.contains("b/index.html"),
        "{index}"
    );
}
