//! Articles with several versions of Postgres: each cell is measured on a server of its own.

use crate::project::{Project, column, experiment, measured, refused};

const FRONT: &str = "---
title: On {{ server.version }}
postgres: {versions: [\"16.15\", \"18.6\"], settings: {work_mem: 5MB}, extensions: [pageinspect]}
params: {rows: 10}
---
";

const BODY: &str = "
```sql fixture src
CREATE TABLE src AS SELECT g AS id FROM generate_series(1, :rows) g;
```

```sql experiment both
--| fixture: src
--| matrix: {k: [1, 2]}
SELECT :'version' AS asked, current_setting('server_version_num')::int / 10000 AS major, count(*) * :k AS n,
       current_setting('work_mem') AS work_mem
FROM src;
```

```sql experiment new
--| matrix: {version: [18.6]}
SELECT current_setting('server_version_num')::int / 10000 AS major, count(*) AS n
FROM pg_class WHERE relname = 'pg_aios';
```

```sql experiment old
--| cases: [{version: \"16.15\", a: 1}, {version: \"18.6\", a: 2}]
--| settings: {work_mem: 6MB}
--| order: shuffle
--| runs: 2
SELECT current_setting('server_version_num')::int / 10000 + :a AS sum;
```

```sql claims where
--| evaluated_on: {kind: exact}
SELECT current_setting('server_version_num')::int / 10000;
--| newer: {kind: exact}
SELECT max(major) FROM measured.both WHERE version = '18.6' AND n = 20;
```

Evaluated on [16](claim:evaluated_on), newer [18](claim:newer), on 16.15 and 18.6: {{ server.version }}.
";

fn article() -> String {
    format!("{FRONT}{BODY}")
}

#[test]
fn each_cell_is_measured_on_its_version_and_claims_on_the_first() {
    let project = Project::new(&article());
    let ran = project.build();
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains("Postgres 16.15 and 18.6"),
        "{}",
        ran.stderr
    );
    let record = project.record();
    let columns = |id: &str| -> Vec<(String, String)> {
        (experiment(&record, id).measured.columns.iter())
            .map(|column| (column.name.clone(), column.type_name.clone()))
            .collect()
    };
    assert_eq!(columns("both")[0], ("version".into(), "text".into()));
    assert_eq!(columns("both")[1].0, "k");
    assert_eq!(
        measured(&record, "both", "version"),
        ["16.15", "16.15", "18.6", "18.6"]
    );
    assert_eq!(
        measured(&record, "both", "asked"),
        ["16.15", "16.15", "18.6", "18.6"]
    );
    assert_eq!(measured(&record, "both", "major"), ["16", "16", "18", "18"]);
    assert_eq!(measured(&record, "both", "n"), ["10", "20", "10", "20"]);
    assert_eq!(measured(&record, "both", "work_mem"), ["5MB"; 4]);
    assert_eq!(measured(&record, "new", "version"), ["18.6"]);
    assert_eq!(measured(&record, "new", "n"), ["1"]);
    assert_eq!(measured(&record, "old", "sum"), ["17", "17", "20", "20"]);
    let statements = &experiment(&record, "both").results["statements"];
    assert_eq!(column(statements, "version").len(), 4);

    // The record knows both servers, and each experiment those it was measured on.
    let environment = &record.environment;
    assert_eq!(environment.server.version, "16.15");
    let other = &environment.other_servers["18.6"];
    assert!(
        other.version_string.starts_with("PostgreSQL 18.6"),
        "{other:?}"
    );
    assert_ne!(other.digest, environment.server.digest);
    assert_eq!(other.extensions["pageinspect"], "1.13", "{other:?}");
    assert_eq!(other.settings["work_mem"], "5MB");
    assert_eq!(other.sha256, other.hash());
    let inputs = |id: &str| -> Vec<String> {
        (experiment(&record, id).inputs.fields.keys())
            .filter(|name| name.starts_with("server `"))
            .cloned()
            .collect()
    };
    assert_eq!(inputs("both"), ["server `16.15`", "server `18.6`"]);
    assert_eq!(inputs("new"), ["server `18.6`"]);

    let page = project.read("out/a/index.html");
    assert!(page.contains("On 16.15 and 18.6"));
    assert!(page.contains("Postgres 16.15 and 18.6"));
    assert!(page.contains("PostgreSQL 18.6"));
    assert!(project.read("out/index.html").contains("16.15 and 18.6"));

    // Nothing is measured again, and a claim's edit starts the first server alone.
    assert!(project.build().stderr.contains("nothing changed"));
    project.edit("SELECT max(major)", "SELECT min(major)");
    let again = project.build();
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(
        !again.stderr.contains("on Postgres 18.6"),
        "{}",
        again.stderr
    );
    assert_eq!(project.record().environment.other_servers["18.6"], *other);

    // Accepted, checked against the record alone and afresh, and told what is stale.
    assert_eq!(project.run(&["accept", "a"]).code, 0);
    let recorded = project.run(&["check", "--recorded", "a"]);
    assert_eq!(recorded.code, 0, "{}{}", recorded.stdout, recorded.stderr);
    let status = project.run(&["status", "a"]);
    assert_eq!(status.code, 0, "{}{}", status.stdout, status.stderr);
    assert!(
        status.stdout.contains("Postgres 16.15 and 18.6"),
        "{}",
        status.stdout
    );
    std::fs::remove_dir_all(project.path(".remeasure")).unwrap();
    let afresh = project.run(&["check", "a", "--force"]);
    assert_eq!(afresh.code, 0, "{}{}", afresh.stdout, afresh.stderr);
    project.edit("[\"16.15\", \"18.6\"]", "[\"18.6\", \"16.15\"]");
    let swapped = project.run(&["check", "--recorded", "a"]);
    assert_eq!(swapped.code, 5, "{}{}", swapped.stdout, swapped.stderr);
}

#[test]
fn one_experiment_that_is_wrong_on_a_version_is_told_once_and_the_others_are_kept() {
    let project = Project::new(&article());
    project.edit(
        "SELECT :'version' AS asked",
        "SELECT nonsense, :'version' AS asked",
    );
    let ran = project.build();
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert_eq!(
        ran.stderr.matches("column \"nonsense\"").count(),
        1,
        "{}",
        ran.stderr
    );
    project.edit("SELECT nonsense, ", "SELECT ");
    let again = project.build();
    assert_eq!(again.code, 0, "{}", again.stderr);
    for kept in ["new   kept", "old   kept", "both  runs"] {
        assert!(again.stderr.contains(kept), "{}", again.stderr);
    }
}

#[test]
fn versions_that_make_no_sense_are_told() {
    let said = refused(
        "---
title: T
postgres: {version: \"16.15\", versions: [\"18.6\"]}
---

```sql experiment e
--| matrix: {version: [\"17.1\", 18.6]}
SELECT 1;
```
",
        2,
    );
    assert!(
        said.contains("`version` and `versions` in one article"),
        "{said}"
    );
    assert!(
        said.contains("`17.1` is not among the article's `versions`"),
        "{said}"
    );
    let said = refused(
        "---
title: T
postgres: {versions: [\"18.6\", \"18.6\", \"9.6\"]}
---
",
        2,
    );
    assert!(said.contains("version `18.6` comes twice"), "{said}");
    assert!(said.contains("Postgres `9.6` is not pinned"), "{said}");
    let said = refused("---\ntitle: T\npostgres: {versions: []}\n---\n", 2);
    assert!(
        said.contains("`versions` names no version of Postgres"),
        "{said}"
    );
}
