//! Commands at once on one article: they wait for one another where they write, say for whom, and
//! are never held up by one that was killed.

use crate::project::{Project, Ran};
use remeasure::record::lock::{Lock, Locking, try_lock};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

const ARTICLE: &str = "
---
title: T
postgres: {version: \"16.15\"}
params: {rows: 10}
profiles: {quick: {rows: 5}}
---

```sql experiment e
--| instruments: [time]
SELECT :rows AS n;
```

```sql claims c
--| n: {kind: exact}
SELECT max(n) FROM measured.e;
```

There are {{ n }} rows.
";

const ANSWERS: &str = "
answers:
  - match: SELECT pg_catalog.setseed(*)
    rows: [[null]]
  - sql: SELECT 10 AS n
    columns: [n]
    types: [integer]
    rows: [[10]]
  - sql: SELECT 5 AS n
    columns: [n]
    types: [integer]
    rows: [[5]]
  - sql: SELECT max(n) FROM measured.e
    types: [integer]
    rows: [[10]]
";

fn project() -> Project {
    let project = Project::new(ARTICLE);
    project.write("fake.yaml", ANSWERS);
    project
}

fn run(project: &Project, arguments: &[&str]) -> Ran {
    Ran::from(start(project, arguments).wait_with_output().unwrap())
}

fn start(project: &Project, arguments: &[&str]) -> Child {
    let mut command = project.command(arguments);
    if !["lint", "check"].contains(&arguments[0]) {
        command.args(["--engine", "fake:fake.yaml"]);
    }
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// This process measures the article, as far as others can tell.
fn measuring(project: &Project) -> Lock {
    fs::create_dir_all(project.path(".remeasure/a")).unwrap();
    match try_lock(&project.path(".remeasure/a/.lock")).unwrap() {
        Locking::Held(lock) => lock,
        Locking::Busy(holder) => panic!("{holder} holds it"),
    }
}

#[test]
fn a_build_and_an_accept_wait_for_who_measures_and_say_for_whom() {
    let project = project();
    for command in ["build", "accept"] {
        let lock = measuring(&project);
        let mut waiting = start(&project, &[command]);
        let mut stderr = BufReader::new(waiting.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert_eq!(
            line,
            format!(
                "a: another build of this article is measuring (process {}); waiting for it\n",
                std::process::id()
            )
        );
        assert!(waiting.try_wait().unwrap().is_none(), "it did not wait");
        drop(lock);
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).unwrap();
        assert_eq!(waiting.wait().unwrap().code(), Some(0), "{rest}");
    }
    assert!(project.path("articles/a/record.json").is_file());
}

#[test]
fn what_only_reads_never_waits() {
    let project = project();
    assert_eq!(run(&project, &["build"]).code, 0);
    assert_eq!(run(&project, &["accept"]).code, 0);
    let _lock = measuring(&project);
    for command in [
        &["status"][..],
        &["diff"],
        &["lint"],
        &["check", "--recorded"],
        // Nothing is left to measure.
        &["build"],
    ] {
        let ran = run(&project, command);
        assert_eq!(ran.code, 0, "{command:?} {}", ran.stderr);
        assert!(!ran.stderr.contains("waiting"), "{}", ran.stderr);
    }
}

/// A page is of one profile, whoever wrote it last.
#[test]
fn pages_of_two_profiles_do_not_mix() {
    let project = project();
    let profiles = ["full", "quick", "full", "quick"];
    let builds: Vec<Child> = profiles
        .iter()
        .map(|profile| start(&project, &["build", "--force", "--profile", profile]))
        .collect();
    for build in builds {
        let ran = Ran::from(build.wait_with_output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let record = project.record();
    let rows = if record.profile == "quick" { "5" } else { "10" };
    assert_eq!(record.params["rows"], rows);
    let csv = project.read("out/a/data/e.csv");
    assert!(csv.trim_end().ends_with(&format!(",{rows}")), "{csv}");
    assert_eq!(
        project.read("out/a/index.html").contains("quick"),
        record.profile == "quick"
    );
}
