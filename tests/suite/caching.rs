//! An unchanged experiment is not run again, a changed one is, and the reason is told. What runs
//! is the same on every engine, so most of this is asked of the fake one.

use crate::project::{Project, Ran};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const ARTICLE: &str = "
---
title: T
postgres: {version: \"16.15\"}
params: {rows: 10, unused: 1}
---

```sql fixture base
CREATE TABLE base AS SELECT generate_series(1, :rows) AS a;
```

```sql fixture grown
--| from: base
INSERT INTO base SELECT generate_series(1, 5);
```

```sql experiment on_base
--| instruments: [time]
--| fixture: base
--| derive: {double: n * 2}
SELECT count(*) AS n FROM base;
```

```sql experiment on_grown
--| instruments: [time]
--| fixture: grown
SELECT count(*) AS n FROM base;
```

```sql experiment alone
--| instruments: [time]
--| matrix: {k: [1, 2]}
SELECT :k + 1 AS n;
```

```sql claims c
--| base_rows: {kind: exact}
SELECT double FROM measured.on_base;
```

```sql table t
--| caption: Rows
SELECT n FROM measured.on_grown;
```

```sql chart ch
--| type: bar
--| x: k
--| y: n
--| alt: Two bars
SELECT k, n FROM measured.alone;
```

There are [20](claim:base_rows) rows.
";

/// What the fake engine is asked, by the tool and by the article and its edits.
const ANSWERS: &str = r#"
answers:
  - match: SELECT pg_catalog.setseed(*)
    rows: [[null]]
  - sql: SELECT count(*) AS n FROM base
    columns: [n]
    types: [bigint]
    rows: [[10]]
  - match: SELECT 1 + * AS n
    columns: [n]
    types: [integer]
    rows: [[2]]
  - match: SELECT 2 + * AS n
    columns: [n]
    types: [integer]
    rows: [[3]]
  - sql: SELECT * FROM measured."on_base"
    columns: [run, elapsed_ms, n, double]
    types: [integer, double precision, bigint, bigint]
    rows: [[1, 1, 10, 20]]
  - match: SELECT double* FROM measured.on_base
    types: [bigint]
    rows: [[20]]
  - sql: SELECT n FROM measured.on_grown
    columns: [n]
    types: [bigint]
    rows: [[15]]
  - sql: SELECT n, n + 1 AS more FROM measured.on_grown
    columns: [n, more]
    types: [bigint, bigint]
    rows: [[15, 16]]
  - sql: SELECT k, n FROM measured.alone
    columns: [k, n]
    types: [numeric, integer]
    rows: [[1, 2], [2, 3]]
"#;

/// The article's project, with the fake engine's answers beside it.
fn project() -> Project {
    let project = Project::new(ARTICLE);
    project.write("fake.yaml", ANSWERS);
    project
}

fn run(project: &Project, arguments: &[&str]) -> Ran {
    let mut arguments = arguments.to_vec();
    arguments.extend(["--engine", "fake:fake.yaml"]);
    project.run(&arguments)
}

fn build(project: &Project) -> Ran {
    run(project, &["build"])
}

/// Builds, and everything must hold.
fn built(project: &Project) {
    let ran = build(project);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
}

/// Experiments that a build runs, each with its reason.
fn runs(ran: &Ran) -> BTreeMap<String, String> {
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    ran.stderr
        .lines()
        .filter_map(|line| {
            let (id, reason) = line.split_once(" runs: ")?;
            Some((id.trim().to_owned(), reason.trim().to_owned()))
        })
        .collect()
}

fn ids(ran: &Ran) -> Vec<String> {
    runs(ran).into_keys().collect()
}

/// Every file below `out/`.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                files.insert(name, fs::read(path).unwrap());
            }
        }
    }
    files
}

#[test]
fn an_unchanged_article_runs_nothing_and_gives_the_same_bytes() {
    let project = Project::new(ARTICLE);
    let first = project.build();
    assert_eq!(ids(&first), ["alone", "on_base", "on_grown"]);
    assert!(
        runs(&first)
            .values()
            .all(|reason| reason == "never measured")
    );
    let written = files(&project.path("out"));
    assert!(written.contains_key("a/index.html") && written.contains_key("index.html"));
    assert!(written.contains_key("a/data/alone.csv"));

    // Nothing but this line: no engine, no experiment, no query.
    let again = project.build();
    assert_eq!(
        (again.code, again.stderr.as_str()),
        (0, "a: nothing changed\n")
    );
    assert_eq!(files(&project.path("out")), written);

    fs::remove_dir_all(project.path("out")).unwrap();
    assert_eq!(project.build().stderr, "a: nothing changed\n");
    assert_eq!(files(&project.path("out")), written);

    let elsewhere = project.run(&["build", "--out", "elsewhere"]);
    assert_eq!(elsewhere.stderr, "a: nothing changed\n");
    assert_eq!(files(&project.path("elsewhere")), written);
}

#[test]
fn other_binaries_are_another_server() {
    let project = Project::new(ARTICLE);
    project.built();
    let mut command = project.command(&["build"]);
    command.env("REMEASURE_POSTGRES", "/nonexistent");
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("runs: server changed"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("REMEASURE_POSTGRES"), "{}", ran.stderr);
}

#[test]
fn only_what_changed_and_what_depends_on_it_runs_again() {
    let project = project();
    built(&project);

    project.edit("There are [20]", "Yes, there are still [20]");
    let prose = build(&project);
    assert_eq!((prose.code, ids(&prose)), (0, Vec::<String>::new()));
    assert!(
        prose.stderr.contains("a: nothing changed"),
        "{}",
        prose.stderr
    );
    assert!(
        project
            .read("out/a/index.html")
            .contains("Yes, there are still")
    );

    project.edit("SELECT :k + 1 AS n", "SELECT :k + 2 AS n");
    let one = build(&project);
    assert_eq!(runs(&one), reasons(&[("alone", "measure changed")]));

    project.edit("generate_series(1, 5)", "generate_series(1, 6)");
    let fixture = build(&project);
    assert_eq!(
        runs(&fixture),
        reasons(&[("on_grown", "fixture `grown` changed")])
    );

    project.edit(
        "SELECT generate_series(1, :rows) AS a",
        "SELECT generate_series(1, :rows) AS a ORDER BY a",
    );
    let base = build(&project);
    assert_eq!(
        runs(&base),
        reasons(&[
            ("on_base", "fixture `base` changed"),
            ("on_grown", "fixture `base` changed")
        ])
    );

    project.edit("rows: 10, unused: 1", "rows: 10, unused: 2");
    assert_eq!(ids(&build(&project)), Vec::<String>::new());

    project.edit("rows: 10,", "rows: 11,");
    let param = build(&project);
    assert_eq!(
        runs(&param),
        reasons(&[
            ("on_base", "param `rows` changed from `10` to `11`"),
            ("on_grown", "param `rows` changed from `10` to `11`")
        ])
    );

    // What was measured before is found again.
    project.edit("rows: 11,", "rows: 10,");
    assert_eq!(ids(&build(&project)), Vec::<String>::new());
}

#[test]
fn derive_and_queries_are_evaluated_again_without_measuring() {
    let project = project();
    built(&project);

    project.edit("double: n * 2", "double: n * 3");
    let derive = build(&project);
    assert_eq!(ids(&derive), Vec::<String>::new());
    assert!(derive.stderr.contains("evaluated"), "{}", derive.stderr);

    project.edit("SELECT double FROM", "SELECT double + 1 FROM");
    assert_eq!(ids(&build(&project)), Vec::<String>::new());

    project.edit(
        "SELECT n FROM measured.on_grown",
        "SELECT n, n + 1 AS more FROM measured.on_grown",
    );
    assert_eq!(ids(&build(&project)), Vec::<String>::new());
    assert_eq!(project.record().tables["t"].columns.len(), 2);

    // Tolerances, units and captions ask nothing of Postgres.
    project.edit(
        "base_rows: {kind: exact}",
        "base_rows: {kind: bounded, tolerance: 10%}",
    );
    project.edit("caption: Rows", "caption: All rows");
    let nothing = build(&project);
    assert_eq!(nothing.stderr, "a: nothing changed\n");
}

#[test]
fn what_is_forced_runs_alone() {
    let project = project();
    built(&project);
    let one = run(&project, &["build", "--force", "alone"]);
    assert_eq!(runs(&one), reasons(&[("alone", "forced")]));
    let two = run(&project, &["build", "--force", "alone,on_base"]);
    assert_eq!(ids(&two), ["alone", "on_base"]);
    let all = run(&project, &["build", "--force"]);
    assert_eq!(ids(&all), ["alone", "on_base", "on_grown"]);
    assert_eq!(build(&project).stderr, "a: nothing changed\n");
}

#[test]
fn status_says_what_a_build_would_do() {
    let project = project();
    let before = run(&project, &["status"]);
    assert_eq!(before.code, 5, "{}", before.stderr);
    assert!(
        before.stdout.contains("alone: would run: never measured"),
        "{}",
        before.stdout
    );
    assert!(!project.path(".remeasure").exists() && !project.path("out").exists());

    built(&project);
    let accepted = run(&project, &["accept"]);
    assert_eq!(accepted.code, 0, "{}", accepted.stderr);
    let after = run(&project, &["status"]);
    assert_eq!(after.code, 0, "{}", after.stdout);
    assert!(after.stdout.contains("alone: fresh"), "{}", after.stdout);
    assert!(after.stdout.contains("record: current"), "{}", after.stdout);

    project.edit("SELECT :k + 1 AS n", "SELECT :k + 2 AS n");
    let changed = run(&project, &["status", "--explain", "alone"]);
    assert_eq!(changed.code, 5, "{}", changed.stdout);
    assert!(
        changed.stdout.contains("alone: would run: measure changed"),
        "{}",
        changed.stdout
    );
    assert!(
        changed.stdout.contains("measure: SELECT :k + 2 AS n;"),
        "{}",
        changed.stdout
    );
}

#[test]
fn an_accepted_record_is_judged_without_a_server_and_told_when_stale() {
    let project = project();
    let none = run(&project, &["check", "--recorded"]);
    assert_eq!(none.code, 5, "{}", none.stderr);
    built(&project);
    assert_eq!(run(&project, &["accept"]).code, 0);
    fs::remove_dir_all(project.path(".remeasure")).unwrap();

    let holds = run(&project, &["check", "--recorded"]);
    assert_eq!(holds.code, 0, "{}", holds.stderr);
    // A fresh clone reuses what its author measured on this machine.
    assert_eq!(ids(&build(&project)), Vec::<String>::new());

    project.edit("[20](claim", "[21](claim");
    let wrong = run(&project, &["check", "--recorded"]);
    assert_eq!(wrong.code, 3, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("measured 20"), "{}", wrong.stderr);

    project.edit("[21](claim", "[20](claim");
    project.edit("SELECT :k + 1 AS n", "SELECT :k + 2 AS n");
    let stale = run(&project, &["check", "--recorded"]);
    assert_eq!(stale.code, 5, "{}", stale.stderr);
    assert!(stale.stderr.contains("measure changed"), "{}", stale.stderr);

    let mut in_ci = project.command(&["accept", "--engine", "fake:fake.yaml"]);
    let refused = Ran::from(in_ci.env("CI", "true").output().unwrap());
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}

fn reasons(expected: &[(&str, &str)]) -> BTreeMap<String, String> {
    expected
        .iter()
        .map(|(id, reason)| ((*id).to_owned(), (*reason).to_owned()))
        .collect()
}
