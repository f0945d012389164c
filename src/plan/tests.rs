//! Which edits of an article make which experiment run again, and in which words that is told.

use super::fingerprint::of_experiment;
use super::*;
use crate::parse::sample::article;
use crate::record::{Difference, Sample};
use std::collections::BTreeMap;

const ARTICLE: &str = r#"---
title: What an index costs
postgres: {version: "16.15", settings: {work_mem: 8MB}, extensions: [pageinspect]}
seed: 0.5
params: {rows: 1000, extra: 5, memory: 4MB, unused: 1}
profiles: {quick: {rows: 10, runs: 2, warmup: 1}}
---

Prose.

```sql fixture base
CREATE TABLE base AS SELECT generate_series(1, :rows) AS a;
```

```sql fixture grown
--| from: base
INSERT INTO base SELECT generate_series(1, :extra);
```

```sql fixture other
SELECT 'other';
```

```sql experiment e
--| fixture: grown
--| matrix: {k: [1, 2]}
--| runs: 3
--| warmup: 2
--| fresh: run
--| connect: run
--| instruments: [time, wal]
--| settings: {maintenance_work_mem: ":memory"}
--| session: {enable_seqscan: "off"}
--| timeout: 1min
--| caption: How it goes
--| setup:
CREATE TABLE t (a int);
--| measure:
INSERT INTO t SELECT a FROM base WHERE a % :k = 0;
--| collect:
SELECT count(*) AS n FROM t;
--| derive: {twice: 2 * n}
```

```sql claims c
--| twice: {kind: exact}
SELECT max(twice) FROM measured.e;
```

It is [1000](claim:twice).
"#;

fn server() -> ServerIdentity {
    ServerIdentity {
        version: "16.15".into(),
        digest: Some("sha256:ab".into()),
        engine: "embedded".into(),
    }
}

fn fingerprint_of(text: &str, profile: Option<&str>) -> Fingerprint {
    let article = article(text);
    let resolved = resolve(&article, profile).unwrap();
    let experiment = article.experiments().next().unwrap();
    of_experiment(&article, experiment, &resolved, &[server()])
}

/// The inputs that an edit changes.
fn changed_by(from: &str, to: &str) -> Vec<String> {
    assert!(ARTICLE.contains(from), "{from}");
    let before = fingerprint_of(ARTICLE, None);
    let after = fingerprint_of(&ARTICLE.replacen(from, to, 1), None);
    assert_eq!(before == after, before.sha256() == after.sha256());
    let changed = before.differences(&after);
    changed.into_iter().map(|found| found.input).collect()
}

#[test]
fn an_edit_of_what_no_result_depends_on_changes_nothing() {
    for (from, to) in [
        ("Prose.", "Other prose, with [1000](claim:twice)."),
        ("title: What", "title: All that"),
        (
            "caption: How it goes",
            "caption: How it went\n--| echo: false",
        ),
        ("timeout: 1min", "timeout: 2min"),
        ("{twice: 2 * n}", "{twice: 2 * n, thrice: 3 * n}"),
        ("unused: 1", "unused: 2"),
        ("kind: exact", "kind: bounded, tolerance: 1%"),
        ("SELECT max(twice)", "SELECT min(twice)"),
        ("SELECT 'other'", "SELECT 'another'"),
        ("quick: {rows: 10", "quick: {rows: 20"),
        ("connect: run", "connect: run\n--| order: sequential"),
    ] {
        assert_eq!(changed_by(from, to), Vec::<String>::new(), "{from}");
    }
    let with_cr = ARTICLE.replace('\n', "\r\n");
    assert_eq!(
        fingerprint_of(&with_cr, None),
        fingerprint_of(ARTICLE, None)
    );
}

#[test]
fn an_edit_of_an_input_changes_that_input_alone() {
    for (from, to, inputs) in [
        ("rows: 1000", "rows: 1001", &["param `rows`"][..]),
        ("extra: 5", "extra: 6", &["param `extra`"]),
        ("memory: 4MB", "memory: 5MB", &["param `memory`"]),
        (
            "work_mem: 8MB",
            "work_mem: 9MB",
            &["server setting `work_mem`"],
        ),
        (
            "work_mem: 8MB",
            "jit: \"off\"",
            &["server setting `jit`", "server setting `work_mem`"],
        ),
        (
            "[pageinspect]",
            "[pageinspect, pgstattuple]",
            &["extension `pgstattuple`"],
        ),
        ("seed: 0.5", "seed: 0.25", &["seed"]),
        (
            "generate_series(1, :rows)",
            "generate_series(2, :rows)",
            &["fixture `base`"],
        ),
        (
            "generate_series(1, :extra)",
            "generate_series(0, :extra)",
            &["fixture `grown`"],
        ),
        (
            "fixture: grown",
            "fixture: base",
            &["fixture `grown`", "order of fixtures", "param `extra`"],
        ),
        (
            "settings: {work_mem: 8MB}",
            "memory: 2GB, cpus: 2, shm_size: 1GB, settings: {work_mem: 8MB}",
            &[
                "container limit `cpus`",
                "container limit `memory`",
                "container limit `shm_size`",
            ],
        ),
        (
            "settings: {work_mem: 8MB}",
            "platform: linux/arm64, settings: {work_mem: 8MB}",
            &["container platform"],
        ),
        ("k: [1, 2]", "k: [1, 3]", &["matrix"]),
        ("k: [1, 2]", "k: [1, \"2\"]", &["matrix"]),
        ("runs: 3", "runs: {min: 3, max: 5, until: 2%}", &["runs"]),
        ("warmup: 2", "warmup: 3", &["warmup runs"]),
        ("fresh: run", "fresh: cell", &["fresh"]),
        ("connect: run", "connect: cell", &["connect"]),
        (
            "fresh: run",
            "fresh: run\n--| order: interleave",
            &["order"],
        ),
        ("[time, wal]", "[time, wal, hot]", &["instruments"]),
        (
            "[time, wal]",
            "[time, {wal: {images: false}}]",
            &["instruments"],
        ),
        ("[time, wal]", "[time, {wal: {}}]", &[]),
        (
            "\":memory\"",
            "16MB",
            &["param `memory`", "setting `maintenance_work_mem`"],
        ),
        (
            "enable_seqscan: \"off\"",
            "enable_seqscan: \"on\"",
            &["session setting `enable_seqscan`"],
        ),
        ("t (a int)", "t (a bigint)", &["setup"]),
        ("a % :k = 0", "a % :k = 1", &["measure"]),
        ("a % :k = 0;", "a % :k = 0 \\gset x_", &["measure"]),
        ("count(*) AS n", "count(a) AS n", &["collect 1"]),
        ("--| collect:", "--| collect: {in: subject}", &["collect 1"]),
        (
            "--| derive:",
            "--| teardown:\nDROP TABLE t;\n--| derive:",
            &["teardown"],
        ),
        (
            "--| measure:",
            "--| warmup:\nSELECT 1;\n--| measure:",
            &["warmup"],
        ),
        (
            "timeout: 1min",
            "expect_error: \"23505\"",
            &["expect_error"],
        ),
    ] {
        assert_eq!(changed_by(from, to), inputs, "{from} → {to}");
    }
}

#[test]
fn fixtures_that_stand_on_one_another_the_other_way_round_are_another_input() {
    let turned = ARTICLE
        .replace("fixture base\n", "fixture base\n--| from: grown\n")
        .replace("fixture grown\n--| from: base\n", "fixture grown\n")
        .replace("fixture: grown", "fixture: base");
    let of = |text: &str| fingerprint_of(text, None);
    let changed = of(&turned).differences(&of(ARTICLE));
    let changed: Vec<String> = changed.iter().map(ToString::to_string).collect();
    assert_eq!(changed, ["order of fixtures is new"]);
    // What is in the order of its names has no field: records of before stay valid.
    assert!(!of(&turned).fields.contains_key("order of fixtures"));
    assert_eq!(of(ARTICLE).fields["order of fixtures"], "grown from base");
}

#[test]
fn server_and_profile_are_inputs() {
    let article = article(ARTICLE);
    let experiment = article.experiments().next().unwrap();
    let full = resolve(&article, None).unwrap();
    let before = of_experiment(&article, experiment, &full, &[server()]);
    for other in [
        ServerIdentity {
            digest: None,
            ..server()
        },
        ServerIdentity {
            engine: "docker".into(),
            ..server()
        },
        ServerIdentity {
            version: "16.14".into(),
            ..server()
        },
    ] {
        let after = of_experiment(&article, experiment, &full, &[other]);
        let changed = before.differences(&after);
        assert_eq!(changed.len(), 1);
        assert_eq!(changed[0].input, "server");
    }
    let quick: Vec<String> = before
        .differences(&fingerprint_of(ARTICLE, Some("quick")))
        .into_iter()
        .map(|found| found.input)
        .collect();
    assert_eq!(quick, ["param `rows`", "runs", "warmup runs"]);
}

#[test]
fn a_profile_invents_no_warm_up_and_an_unknown_one_is_refused() {
    let article = article(&ARTICLE.replace("--| warmup: 2\n", ""));
    let experiment = article.experiments().next().unwrap();
    let quick = resolve(&article, Some("quick")).unwrap();
    assert_eq!(quick.warmup_runs(experiment), 0);
    assert_eq!(quick.runs(experiment), Runs::Fixed(2));
    let second = quick.variables(experiment, 1);
    assert_eq!(second["rows"].to_string(), "10");
    assert_eq!(second["k"].to_string(), "2");
    let unknown = resolve(&article, Some("quik")).unwrap_err();
    assert_eq!(unknown.hint.as_deref(), Some("did you mean `quick`?"));
}

/// What is stored of the article's experiment, measured on host `here` in cell after cell.
fn stored(article: &Article, finished: bool, cells: usize) -> StoredExperiment {
    let resolved = resolve(article, None).unwrap();
    let experiment = article.experiments().next().unwrap();
    StoredExperiment {
        inputs: of_experiment(article, experiment, &resolved, &[server()]),
        host: "here".into(),
        measured_at: "2026-11-30T10:00:00Z".into(),
        samples: (0..cells)
            .map(|cell| Sample {
                cell,
                run: 1,
                row: Default::default(),
                results: Default::default(),
            })
            .collect(),
        finished,
        ..StoredExperiment::default()
    }
}

fn decision(article: &Article, force: &Force, results: &[StoredExperiment]) -> Decision {
    let resolved = resolve(article, None).unwrap();
    let stored = |_: &Experiment| results.to_vec();
    let mut planned = plan(article, &resolved, &[server()], "here", force, &stored);
    assert_eq!(planned.len(), 1);
    planned.remove(0).decision
}

/// `reuse` and when that was measured, or the reason to run and how many cells are kept.
fn told(article: &Article, force: &Force, results: &[StoredExperiment]) -> String {
    match decision(article, force, results) {
        Decision::Reuse(result) => format!("reuse {}", result.measured_at),
        Decision::Run { reason, kept: None } => reason.to_string(),
        Decision::Run {
            reason,
            kept: Some(kept),
        } => format!("{reason} ({})", kept.cells_done()),
    }
}

#[test]
fn what_is_stored_decides_what_runs_and_the_reason_is_told() {
    let now = article(ARTICLE);
    let old = article(&ARTICLE.replace("rows: 1000", "rows: 999"));
    let whole = stored(&now, true, 2);
    let at = |time: &str, result: &StoredExperiment| StoredExperiment {
        measured_at: time.into(),
        ..result.clone()
    };
    let elsewhere = StoredExperiment {
        host: "there".into(),
        ..whole.clone()
    };
    let earlier = at("2026-11-30T09:00:00Z", &whole);
    let later_part = at("2026-11-30T11:00:00Z", &stored(&now, false, 1));
    let latest_old = at("2026-11-30T12:00:00Z", &stored(&old, true, 2));
    let older = article(&ARTICLE.replace("rows: 1000", "rows: 998"));
    for (results, expected) in [
        (vec![], "never measured"),
        (vec![whole.clone()], "reuse 2026-11-30T10:00:00Z"),
        (
            vec![whole.clone(), earlier.clone()],
            "reuse 2026-11-30T10:00:00Z",
        ),
        (vec![earlier, whole.clone()], "reuse 2026-11-30T10:00:00Z"),
        (
            vec![later_part.clone(), whole.clone()],
            "reuse 2026-11-30T10:00:00Z",
        ),
        (
            vec![whole.clone(), latest_old.clone()],
            "reuse 2026-11-30T10:00:00Z",
        ),
        (vec![elsewhere.clone()], "measured on another machine only"),
        (
            vec![later_part],
            "interrupted; goes on after its first cell (1)",
        ),
        (
            vec![stored(&now, false, 2), elsewhere],
            "interrupted; goes on after 2 cells (2)",
        ),
        (
            vec![stored(&now, false, 0)],
            "failed or was interrupted before its first cell",
        ),
        (
            vec![latest_old, stored(&older, true, 2)],
            "param `rows` changed from `999` to `1000`",
        ),
    ] {
        assert_eq!(told(&now, &Force::Nothing, &results), expected);
    }
    for force in [
        Force::Everything,
        Force::Experiments(vec!["x".into(), "e".into()]),
    ] {
        assert_eq!(told(&now, &force, std::slice::from_ref(&whole)), "forced");
    }
    let other = Force::Experiments(vec!["x".into()]);
    assert_eq!(told(&now, &other, &[whole]), "reuse 2026-11-30T10:00:00Z");
}

#[test]
fn cells_that_see_one_another_are_measured_from_the_first_again() {
    for options in ["fresh: never", "fresh: cell\n--| order: interleave"] {
        let article = article(&ARTICLE.replace("fresh: run", options));
        assert_eq!(
            told(&article, &Force::Nothing, &[stored(&article, false, 1)]),
            "interrupted; starts over, as its cells build on one another or are interleaved"
        );
    }
}

#[test]
fn a_change_is_told_with_its_values_where_they_are_short() {
    let difference = |before: Option<&str>, now: Option<&str>| Difference {
        input: "measure".into(),
        before: before.map(str::to_owned),
        now: now.map(str::to_owned),
    };
    let long = "x".repeat(41);
    for (before, now, text) in [
        (Some("1"), Some("2"), "measure changed from `1` to `2`"),
        (Some("1"), Some(&*long), "measure changed"),
        (Some("a\nb"), Some("c"), "measure changed"),
        (None, Some("2"), "measure is new"),
        (Some("1"), None, "measure is gone"),
    ] {
        assert_eq!(difference(before, now).to_string(), text);
    }
    let many = vec![difference(None, Some("2")); 5];
    assert_eq!(
        Reason::Changed(many).to_string(),
        "measure is new, measure is new, measure is new and 2 more"
    );
}

#[test]
fn differences_are_named_by_input_in_order() {
    let of = |fields: &[(&str, &str)]| Fingerprint {
        fields: fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<BTreeMap<_, _>>(),
    };
    let before = of(&[("a", "1"), ("b", "2"), ("c", "3")]);
    let after = of(&[("b", "4"), ("c", "3"), ("d", "5")]);
    let inputs: Vec<String> = before
        .differences(&after)
        .into_iter()
        .map(|found| found.input)
        .collect();
    assert_eq!(inputs, ["a", "b", "d"]);
}

#[test]
fn who_runs_a_phase_is_an_input_and_the_session_is_none() {
    let fields = |text: &str| fingerprint_of(text, None).fields;
    let before = fields(ARTICLE);
    assert!(before.keys().all(|name| !name.starts_with("client")));
    let repeated = ARTICLE.replace("measure:\n", "measure: {repeat: \":extra\"}\n");
    let repeated = fields(&repeated);
    assert_eq!(repeated["client of measure"], "repeat :extra Each");
    assert_eq!(repeated["param `extra`"], "5");
    assert_eq!(repeated.len(), before.len() + 1);
    let psql = "measure: {via: psql}\n-- why\n\\timing\n";
    let psql = fields(&ARTICLE.replace("measure:\n", psql));
    assert_eq!(psql["client of measure"], "psql");
    // The script as it stands: what psql makes of it is not known here.
    let script = "-- why\n\\timing\nINSERT INTO t SELECT a FROM base WHERE a % :k = 0;";
    assert_eq!(psql["measure"], script);
    let bench = "measure: {via: pgbench, args: \"-t :extra -D k=1\"}\n";
    let bench = fields(&ARTICLE.replace("measure:\n", bench));
    assert_eq!(bench["client of measure"], "pgbench -t :extra -D k=1");
    assert_eq!(bench["param `extra`"], "5");
}
