//! An article measured in parts: the plan, the parts, and what is merged of them.

use crate::project::{Project, Ran, claim};
use crate::reports::schema::json_violations;
use remeasure::record::store::read_record;
use remeasure::record::{Record, to_json};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Three experiments of which two share a fixture; one claim reads two of them.
pub const ARTICLE: &str = "---
title: T
postgres: {version: \"16.15\"}
params: {rows: 500}
profiles: {quick: {rows: 50}}
---

```sql fixture src
CREATE TABLE src AS SELECT g AS id FROM generate_series(1, :rows) g;
```

```sql experiment counted
--| fixture: src
--| instruments: [time]
SELECT count(*) AS n FROM src;
```

```sql experiment times
--| fixture: src
--| matrix: {k: [1, 2]}
--| instruments: [time, wal]
SELECT count(*) * :k AS n FROM src;
--| derive: {twice: 2 * n}
```

```sql experiment alone
--| instruments: [time]
--| runs: 2
SELECT 3 AS n;
```

```sql claims c
--| rows_counted: {kind: exact}
SELECT n FROM measured.counted;
--| most: {kind: exact}
SELECT max(twice) FROM measured.times;
--| both: {kind: exact}
SELECT (SELECT n FROM measured.counted) + max(n) FROM measured.alone;
--| slow: {kind: noisy, unit: ms}
SELECT max(elapsed_ms) FROM measured.times;
```

```sql table t
SELECT k, n FROM measured.times ORDER BY k;
```

There are [500 rows](claim:rows_counted), [2000](claim:most) and [503](claim:both).
Our machine takes {{ slow }} ms.
";

pub fn read(project: &Project, path: &str) -> Record {
    match read_record(&project.path(path)) {
        Ok(Some(record)) => record,
        other => panic!("{path}: {other:?}"),
    }
}

pub fn ok(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    ran
}

fn part(shard: u32, shards: u32) -> String {
    format!("out/a/shard-{shard}-of-{shards}.json")
}

/// The parts of every shard, each measured in a project of its own, put into one.
pub fn measured_in_parts(shards: u32) -> Project {
    let project = Project::new(ARTICLE);
    for shard in 1..=shards {
        let machine = Project::new(ARTICLE);
        let asked = format!("{shard}/{shards}");
        ok(machine.run(&["build", "--shard", &asked]));
        let path = part(shard, shards);
        project.write(&path, &machine.read(&path));
        // A part is no page.
        assert!(!machine.path("out/a/index.html").exists());
        assert!(!machine.path("out/index.html").exists());
    }
    project
}

#[test]
fn what_is_merged_of_all_shards_is_what_a_whole_build_measures() {
    let whole = Project::new(ARTICLE).built();
    let project = measured_in_parts(3);
    let parts = [part(1, 3), part(2, 3), part(3, 3)];
    let merge = |order: [usize; 3], output: &str| {
        let [a, b, c] = order.map(|index| parts[index].as_str());
        ok(project.run(&["merge", a, b, c, "--output", output]));
        project.read(output)
    };
    let merged = merge([0, 1, 2], "one.json");
    assert_eq!(merged, merge([2, 0, 1], "other.json"));
    ok(project.run(&["merge", &parts[1], &parts[2], &parts[0]]));
    assert_eq!(merged, project.read("out/a/merged.json"));

    // It is not analysed yet, and so nothing to accept.
    let ran = project.run(&["accept", "--record", "one.json"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("the record has no claim `rows_counted`"),
        "{}",
        ran.stderr
    );

    let ran = ok(project.run(&["build", "--record", "one.json"]));
    assert!(!ran.stderr.contains("runs:"), "{}", ran.stderr);
    let record = project.record();
    assert!(record.experiments.keys().eq(whole.experiments.keys()));
    for (id, experiment) in &record.experiments {
        assert_eq!(
            experiment.fingerprint, whole.experiments[id].fingerprint,
            "{id}"
        );
        assert!(experiment.seconds.is_some(), "{id}");
    }
    for name in ["rows_counted", "most", "both"] {
        assert_eq!(claim(&record, name), claim(&whole, name), "{name}");
    }
    assert_eq!(record.tables, whole.tables);
    assert_eq!(record.part, None);
    assert!(project.path("out/a/index.html").exists());

    // From then on it is a record as any other; the page is made of it again without a server.
    ok(project.run(&["accept", "--record", "out/a/record.json"]));
    assert_eq!(
        project.read("articles/a/record.json"),
        project.read("out/a/record.json")
    );
    ok(project.run(&["check", "--recorded"]));
    let ran = ok(project.run(&["build", "--record", "articles/a/record.json"]));
    assert!(ran.stderr.contains("nothing changed"), "{}", ran.stderr);
    assert_eq!(project.record(), record);
    let planned = ok(project.run(&["plan"]));
    assert!(
        planned.stdout.contains("nothing to measure"),
        "{}",
        planned.stdout
    );
}

#[test]
fn a_part_judges_what_it_has_and_fails_for_nothing_else() {
    let text = ARTICLE.replace("[2000]", "[2001]");
    let project = Project::new(&text);
    let mut failed = 0;
    for shard in 1..=3 {
        let ran = project.run(&["build", "--shard", &format!("{shard}/3")]);
        let record = read(&project, &part(shard, 3));
        let has = record.experiments.contains_key("times");
        assert_eq!(ran.code, if has { 3 } else { 0 }, "{}", ran.stderr);
        failed += i32::from(has);
        // Over two experiments of two shards nothing can be said.
        assert!(!record.claims.contains_key("both") || record.experiments.len() > 1);
        let told = record.part.unwrap();
        assert_eq!((told.shard, told.shards), (shard, 3));
        assert_eq!(told.experiments, ["counted", "times", "alone"]);
    }
    assert_eq!(failed, 1);
}

#[test]
fn a_plan_is_a_matrix_in_which_each_experiment_is_once() {
    let project = Project::new(ARTICLE);
    project.write(
        "articles/b/article.md",
        &ARTICLE.replace("title: T", "title: Other"),
    );
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/plan.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(folder).unwrap()).unwrap();
    let json = |arguments: &[&str]| -> Value {
        let ran = ok(project.run(arguments));
        let document = serde_json::from_str(&ran.stdout).unwrap();
        let violations = json_violations(&schema, &document);
        assert!(violations.is_empty(), "{violations:?}");
        document
    };
    let all: BTreeSet<String> = ["a", "b"]
        .iter()
        .flat_map(|slug| ["counted", "times", "alone"].map(|id| format!("{slug}/{id}")))
        .collect();
    for shards in ["1", "2", "3", "6", "9"] {
        let matrix = json(&["plan", "--shards", shards, "--json"]);
        let include = matrix["include"].as_array().unwrap();
        let number: usize = shards.parse().unwrap();
        assert_eq!(include.len(), number.min(all.len()), "{shards}");
        let experiments: Vec<String> = (include.iter())
            .flat_map(|shard| shard["experiments"].as_array().unwrap())
            .map(|experiment| experiment.as_str().unwrap().to_owned())
            .collect();
        assert_eq!(experiments.len(), all.len(), "{shards}");
        assert_eq!(experiments.into_iter().collect::<BTreeSet<_>>(), all);
        for shard in include {
            let number = shard["shard"].to_string();
            let one = json(&["plan", "--shards", shards, "--shard", &number, "--json"]);
            assert_eq!(one, *shard);
        }
    }
    assert_eq!(
        json(&["plan", "--shards", "9", "--shard", "9", "--json"])["experiments"],
        Value::Array(Vec::new())
    );
    assert_eq!(
        json(&["plan", "--json"])["include"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let one = json(&["plan", "b", "--shards", "3", "--json"]);
    assert_eq!(one["include"].as_array().unwrap().len(), 3);
    let table = ok(project.run(&["plan", "--shards", "2"])).stdout;
    assert!(
        table.starts_with("shard 1/2: 3 experiments\n  a/"),
        "{table}"
    );
    let why = ok(project.run(&["plan", "a"])).stdout;
    assert!(why.contains("counted: would run: never measured"), "{why}");
    assert!(why.contains("3 to measure"), "{why}");
}

#[test]
fn shards_that_there_cannot_be_are_told() {
    let project = Project::new(ARTICLE);
    for (arguments, told) in [
        (
            &["plan", "--shards", "0"][..],
            "there can be 1 to 1000 shards, not 0",
        ),
        (&["plan", "--shards", "1001"], "not 1001"),
        (
            &["plan", "--shards", "2", "--shard", "3"],
            "there is no shard 3 of 2",
        ),
        (&["plan", "--shard", "1"], "--shards"),
        (&["build", "--shard", "3/2"], "there is no shard 3 of 2"),
        (&["build", "--shard", "2"], "`2` names no shard"),
        (
            &["build", "--shard", "1/2", "--record", "x.json"],
            "cannot be used with",
        ),
        (
            &["build", "--record", "x.json", "--force"],
            "cannot be used with",
        ),
        (
            &["build", "--record", "x.json"],
            "there is no record `x.json`",
        ),
        (&["merge"], "required"),
        (&["merge", "x.json"], "there is no record `x.json`"),
        (
            &["accept", "--as", "../x"],
            "cannot be the name of a machine",
        ),
        (&["accept", "--as", "x", "--quotes"], "cannot be used with"),
    ] {
        let ran = project.run(arguments);
        assert_eq!(ran.code, 2, "{arguments:?} {}", ran.stderr);
        assert!(ran.stderr.contains(told), "{arguments:?} {}", ran.stderr);
    }
    assert!(!project.path("out").exists());
}

#[test]
fn parts_that_do_not_belong_together_are_told() {
    let project = measured_in_parts(2);
    let (one, two) = (part(1, 2), part(2, 2));
    let refused = |arguments: &[&str], code: i32, told: &[&str]| {
        let ran = project.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?} {}", ran.stderr);
        for told in told {
            assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
        }
        assert!(!project.path("out/a/merged.json").exists());
        assert!(!project.path("out/a/index.html").exists());
    };
    refused(
        &["merge", &one],
        5,
        &["no record has experiment", "there is no part of shard 2/2"],
    );
    // A part is no record, wherever one is asked for.
    let alone = "has the experiments of shard 1/2 alone";
    refused(&["build", "--record", &one], 5, &[alone]);
    refused(&["accept", "--record", &one], 5, &[alone]);
    refused(
        &["build", "--record", &one, &two],
        2,
        &["are both records of `a`"],
    );

    let text = project.read(&two);
    let damaged = text.replacen("\"rows\": \"500\"", "\"rows\": \"501\"", 1);
    project.write("damaged.json", &damaged);
    refused(
        &["merge", &one, "damaged.json"],
        5,
        &["its heading has no longer the hash"],
    );
    project.write("cut.json", &text[..text.len() / 2]);
    refused(
        &["merge", &one, "cut.json"],
        5,
        &["this record cannot be read"],
    );

    let edited = |name: &str, edit: &dyn Fn(&mut Record)| {
        let mut record = read(&project, &two);
        edit(&mut record);
        project.write(name, &to_json(&record));
    };
    edited("quick.json", &|record| record.profile = "quick".into());
    refused(
        &["merge", &one, "quick.json"],
        2,
        &["cannot be joined: profile"],
    );
    edited("other.json", &|record| record.article = "../b".into());
    refused(&["merge", "other.json"], 5, &["no record has"]);
    refused(
        &["merge", &one, "other.json", "--output", "x.json"],
        2,
        &["the records are of 2 articles"],
    );

    // The article has gone on meanwhile.
    ok(project.run(&["merge", &one, &two, "--output", "whole.json"]));
    project.edit("SELECT 3 AS n;", "SELECT 4 AS n;");
    refused(
        &["build", "--record", "whole.json"],
        5,
        &["is not of this article as it is now", "measure changed"],
    );
    refused(
        &["build", "b", "--record", "whole.json"],
        2,
        &["there is no article `b`"],
    );
}

#[test]
fn another_profile_is_split_and_merged_by_its_name() {
    let project = Project::new(
        &ARTICLE
            .replace("[500 rows]", "{{ rows_counted }} [rows]")
            .replace("[rows](claim:rows_counted)", "rows")
            .replace("[2000](claim:most) and [503](claim:both)", "more"),
    );
    for shard in ["1/2", "2/2"] {
        ok(project.run(&["build", "--profile", "quick", "--shard", shard]));
    }
    ok(project.run(&["merge", &part(1, 2), &part(2, 2)]));
    ok(project.run(&["build", "--record", "out/a/merged.json"]));
    let record = project.record();
    assert_eq!(record.profile, "quick");
    assert_eq!(claim(&record, "rows_counted"), "50");
}

#[test]
fn parts_of_an_article_with_several_versions_are_merged_with_all_servers() {
    let article = "---
title: On {{ server.version }}
postgres: {versions: [\"16.15\", \"18.6\"]}
---

```sql experiment everywhere
--| instruments: [time]
SELECT current_setting('server_version_num')::int / 10000 AS major;
```

```sql experiment newest
--| instruments: [time]
--| matrix: {version: [\"18.6\"]}
SELECT current_setting('server_version_num')::int / 10000 AS major;
```

```sql claims c
--| sum: {kind: exact}
SELECT (SELECT sum(major) FROM measured.everywhere) + (SELECT max(major) FROM measured.newest);
```
";
    let project = Project::new(article);
    for shard in 1..=2 {
        let machine = Project::new(article);
        ok(machine.run(&["build", "--shard", &format!("{shard}/2")]));
        project.write(&part(shard, 2), &machine.read(&part(shard, 2)));
    }
    ok(project.run(&["merge", &part(1, 2), &part(2, 2)]));
    ok(project.run(&["build", "--record", "out/a/merged.json"]));
    let record = project.record();
    assert_eq!(claim(&record, "sum"), "52");
    let servers = record.environment.servers();
    let versions: Vec<&str> = servers.map(|server| server.version.as_str()).collect();
    assert_eq!(versions, ["16.15", "18.6"]);
    assert!(record.environments.is_empty());
    ok(project.run(&["accept", "--record", "out/a/record.json"]));
    let ran = ok(project.run(&["check", "--recorded"]));
    assert!(ran.stdout.contains("sum"), "{}", ran.stdout);
}
