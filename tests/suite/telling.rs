//! What is kept, told and left alone where something goes wrong or something else is asked for.

use crate::project::{Project, Ran, built, column, experiment, measured};
use std::fs;
use std::process::Stdio;

const ARTICLE: &str = "
---
title: T
postgres: {version: \"16.15\"}
params: {rows: 10}
profiles: {quick: {rows: 10}}
---

```sql experiment e
--| timeout: 1min
SELECT :rows + 0 * length(pg_sleep(0.05)::text) AS n;
```

```sql claims c
--| n: {kind: exact, unit: B}
SELECT n FROM measured.e;
```

There are [10 bytes](claim:n).
";

#[test]
fn a_record_whose_queries_were_edited_since_is_stale() {
    let project = Project::new(ARTICLE);
    project.built();
    assert_eq!(project.run(&["accept"]).code, 0);
    assert_eq!(project.run(&["check", "--recorded"]).code, 0);

    project.edit("SELECT n FROM", "SELECT n + 1 FROM");
    let stale = project.run(&["check", "--recorded"]);
    assert_eq!(stale.code, 5, "{}", stale.stderr);
    let told = "the record's values are stale: claim `n` changed from `SELECT n FROM measured.e` \
                to `SELECT n + 1 FROM measured.e`";
    assert!(stale.stderr.contains(told), "{}", stale.stderr);
    assert_eq!(project.run(&["status"]).code, 5);
    // What was accepted of another query is no measure of this one.
    project.edit("[10 bytes]", "[11 bytes]");
    assert_eq!(project.build().code, 0);
}

#[test]
fn a_record_whose_queries_had_another_param_is_stale() {
    let project = Project::new(ARTICLE);
    project.edit("params: {rows: 10}", "params: {rows: 10, factor: 1}");
    project.edit("SELECT n FROM", "SELECT n * :factor FROM");
    project.built();
    assert_eq!(project.run(&["accept"]).code, 0);
    assert_eq!(project.run(&["check", "--recorded"]).code, 0);
    project.edit("factor: 1", "factor: 3");
    let stale = project.run(&["check", "--recorded"]);
    assert_eq!(stale.code, 5, "{}", stale.stderr);
    assert!(
        stale
            .stderr
            .contains("param `factor` changed from `1` to `3`"),
        "{}",
        stale.stderr
    );
}

#[test]
fn a_record_of_another_profile_takes_the_place_of_a_full_one_only_when_asked_for() {
    let project = Project::new(ARTICLE);
    project.built();
    assert_eq!(project.run(&["accept"]).code, 0);
    assert_eq!(project.run(&["build", "--profile", "quick"]).code, 0);
    let full = project.run(&["accept"]);
    assert!(
        full.stdout.contains("unchanged") && full.stdout.contains("profile full"),
        "{}",
        full.stdout
    );
    let quick = project.run(&["accept", "--profile", "quick"]);
    assert!(
        quick
            .stdout
            .contains("profile quick; instead of one of profile full"),
        "{}",
        quick.stdout
    );
    assert_eq!(project.run(&["check", "--recorded"]).code, 0);
    let other = project.run(&["check", "--recorded", "--profile", "full"]);
    assert_eq!(other.code, 5, "{}", other.stderr);

    project.edit("profiles: {quick: {rows: 10}}", "lang: en");
    let gone = project.run(&["check", "--recorded"]);
    assert_eq!(gone.code, 5, "{}", gone.stderr);
    assert!(
        gone.stderr
            .contains("profile `quick`, which the article has no longer"),
        "{}",
        gone.stderr
    );
}

#[test]
fn a_damaged_record_or_one_of_a_newer_format_is_told_and_kept() {
    let project = Project::new(ARTICLE);
    for (text, told) in [
        ("{\"format\": 1,", "this record cannot be read"),
        ("{\"format\": 99}", "a record of format 99"),
    ] {
        project.write("articles/a/record.json", text);
        for command in [
            &["check", "--recorded"][..],
            &["status"],
            &["build"],
            &["accept"],
        ] {
            let ran = project.run(command);
            assert_eq!(ran.code, 5, "{command:?} {}", ran.stderr);
            assert!(ran.stderr.contains(told), "{command:?} {}", ran.stderr);
        }
        assert_eq!(project.read("articles/a/record.json"), text);
    }
}

#[test]
fn a_forced_measurement_that_fails_leaves_the_one_before() {
    let project = Project::new(ARTICLE);
    let before = project.built();
    project.edit("timeout: 1min", "timeout: 1ms");
    let forced = project.run(&["build", "--force"]);
    assert_eq!(forced.code, 2, "{}", forced.stderr);
    assert!(
        forced.stderr.contains("timeout of 1ms"),
        "{}",
        forced.stderr
    );
    assert_eq!(project.build().stderr, "a: nothing changed\n");
    assert_eq!(project.record(), before);
}

#[test]
fn files_of_others_below_out_stay() {
    let project = Project::new(ARTICLE);
    // An article may have the name of a folder that every page has.
    let text = project.read("articles/a/article.md");
    project.write("articles/data/article.md", &text);
    for file in [
        "out/a/data/mine.csv",
        "out/a/charts/mine.svg",
        "out/charts/x",
    ] {
        project.write(file, "mine");
    }
    for _ in 0..2 {
        assert_eq!(project.build().code, 0);
        assert!(project.path("out/data/index.html").exists());
        assert!(project.path("out/a/data/e.csv").exists());
        for file in [
            "out/a/data/mine.csv",
            "out/a/charts/mine.svg",
            "out/charts/x",
        ] {
            assert_eq!(project.read(file), "mine");
        }
    }
    project.edit("sql experiment e", "sql experiment f");
    project.edit("FROM measured.e", "FROM measured.f");
    assert_eq!(project.run(&["build", "a"]).code, 0);
    assert!(project.path("out/a/data/f.csv").exists());
    assert!(!project.path("out/a/data/e.csv").exists());
}

#[test]
fn a_report_on_standard_output_has_it_to_itself() {
    let project = Project::new(ARTICLE);
    let ran = project.run(&["build", "--report", "json=-"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(report.is_object(), "{report}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_reader_that_goes_away_is_no_error_and_a_full_disk_is_one() {
    let project = Project::new(ARTICLE);
    let mut child = project
        .command(&["list", "instruments"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));

    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = project.command(&["list", "instruments"]);
    let ran = Ran::from(command.stdout(full).output().unwrap());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr
            .starts_with("error: cannot write to standard output: No space left"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_cannot_be_written_is_told_with_its_place() {
    let project = Project::new(ARTICLE);
    project.write("out", "a file where a folder has to be");
    let ran = project.build();
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("error: cannot create `./out`"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_fixture_that_fails_is_told_once_and_tried_once() {
    let project = Project::new(
        "
```sql fixture wrong
SELECT 1/0;
```

```sql fixture on_it
--| from: wrong
SELECT 1;
```

```sql experiment first
--| fixture: wrong
SELECT 1;
```

```sql experiment second
--| fixture: on_it
SELECT 1;
```

```sql experiment third
SELECT 1;
```
",
    );
    let ran = project.build();
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert_eq!(
        ran.stderr.matches("division by zero").count(),
        1,
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("not measured: fixture `wrong` failed"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("2 problems"), "{}", ran.stderr);
    assert!(ran.stderr.contains("third, cell 1"), "{}", ran.stderr);
}

#[test]
fn an_error_that_is_expected_has_its_time() {
    let record = built(
        "
```sql experiment e
--| expect_error: \"22012\"
DO $$ BEGIN PERFORM pg_sleep(0.2); PERFORM 1/0; END $$;
```
",
    );
    let elapsed: f64 = measured(&record, "e", "elapsed_ms")[0].parse().unwrap();
    assert!((200.0..2000.0).contains(&elapsed), "{elapsed}");
    assert_eq!(measured(&record, "e", "rows"), ["NULL"]);
}

#[test]
fn columns_called_like_results_keep_their_names_and_values() {
    let record = built(
        "
```sql experiment deriving
--| matrix: {k: [1, 2]}
--| runs: 2
--| measure:
SELECT :k AS result_k;
--| collect: {as: more}
SELECT 10 * :k AS k, 20 * :k AS result_rows;
--| derive: {twice: 2 * result_k, four: 2 * twice}
```
",
    );
    assert_eq!(
        measured(&record, "deriving", "result_k"),
        ["1", "1", "2", "2"]
    );
    assert_eq!(measured(&record, "deriving", "four"), ["4", "4", "8", "8"]);
    let more = &experiment(&record, "deriving").results["more"];
    assert_eq!(column(more, "result_k"), ["10", "10", "20", "20"]);
    assert_eq!(column(more, "result_rows"), ["20", "20", "40", "40"]);
}
