//! Which cells are measured, which are kept and what reaches the store, with canned answers in
//! place of a server.

use super::*;
use crate::engine::{self, EngineChoice, StartRequest, pins::Pin};
use crate::parse::sample::article;
use crate::plan::resolve;
use crate::record::{Doubt, Sample};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

const EXPERIMENT: &str = "--| instruments: [time]\n--| matrix: {k: [1, 2, 3]}\n--| runs: 2\n\
                          --| measure:\nSELECT 10 * :k AS n;";

const ANSWERS: &str = r#"
answers:
  - {match: "SELECT 10 * 1 AS n", columns: [n], types: [integer], rows: [[10]]}
  - {match: "SELECT 10 * 2 AS n", columns: [n], types: [integer], rows: [[20]]}
  - {match: "SELECT 10 * 3 AS n", columns: [n], types: [integer], rows: [[30]]}
  - {match: "SELECT pg_catalog.*", rows: [[x]]}
"#;

#[derive(Default)]
struct Heard {
    cells: RefCell<Vec<usize>>,
}

impl Progress for Heard {
    fn activity(&self, _: &str, _: &str, _: &str) {}

    fn unit_done(&self, _: &str, cell: usize, _: f64) {
        self.cells.borrow_mut().push(cell);
    }
}

fn experiment_text(content: &str) -> Article {
    article(&format!(
        "---\ntitle: T\npostgres: {{version: \"16.15\"}}\n---\n```sql experiment e\n{content}\n```\n"
    ))
}

/// Measures the article's experiment, and gives the cells that were measured.
async fn measured(
    article: &Article,
    answers: &str,
    kept: Option<&StoredExperiment>,
    folder: &Path,
) -> Result<Vec<usize>, Failure> {
    let file = folder.join("answers.yaml");
    std::fs::write(&file, answers).unwrap();
    let pin = Pin {
        version: "16.15".into(),
        image: None,
        archives: BTreeMap::new(),
    };
    let request = StartRequest {
        pin: &pin,
        settings: &BTreeMap::new(),
        limits: crate::engine::Limits::default(),
        cache: folder,
        offline: true,
        progress: &|_| {},
    };
    let mut server = engine::start(&EngineChoice::Fake(file), &request).await?;
    let heard = Heard::default();
    let request = Request {
        article,
        resolved: &resolve(article, None).unwrap(),
        experiment: article.experiments().next().unwrap(),
        version: None,
        inputs: &Fingerprint::default(),
        fingerprint: "f",
        host: "here",
        kept,
        store: &Store::new(folder, "a"),
    };
    measure(&mut server, &mut Fixtures::default(), &request, &heard).await?;
    Ok(heard.cells.into_inner())
}

fn stored(folder: &Path) -> StoredExperiment {
    let mut results = Store::new(folder, "a").results("e");
    assert_eq!(results.len(), 1);
    results.remove(0)
}

fn values(samples: &[Sample]) -> Vec<(usize, u32, String)> {
    samples
        .iter()
        .map(|sample| {
            let n = sample.row.column("n").unwrap();
            (sample.cell, sample.run, sample.row.rows[0][n].to_string())
        })
        .collect()
}

#[tokio::test]
async fn only_the_cells_that_are_missing_are_measured() {
    let article = experiment_text(EXPERIMENT);
    let folder = tempfile::tempdir().unwrap();
    let all = measured(&article, ANSWERS, None, folder.path())
        .await
        .unwrap();
    assert_eq!(all, [0, 1, 2]);
    let whole = stored(folder.path());
    assert!(whole.finished);
    assert_eq!((whole.host.as_str(), whole.cells_done()), ("here", 3));
    let expected: Vec<(usize, u32, String)> = (0..3)
        .flat_map(|cell| [1, 2].map(|run| (cell, run, (10 * (cell + 1)).to_string())))
        .collect();
    assert_eq!(values(&whole.samples), expected);

    let doubt = Doubt {
        kind: "checkpoint".into(),
        message: "k=2, run 1".into(),
        advice: String::new(),
    };
    let mut kept = whole.clone();
    kept.samples.retain(|sample| sample.cell == 1);
    kept.durations = vec![(1, 2.5)];
    kept.doubts = vec![doubt.clone()];
    kept.measured_at = "2026-01-01T00:00:00Z".into();
    kept.finished = false;
    let folder = tempfile::tempdir().unwrap();
    let rest = measured(&article, ANSWERS, Some(&kept), folder.path());
    assert_eq!(rest.await.unwrap(), [0, 2]);
    let again = stored(folder.path());
    assert!(again.finished);
    assert_eq!(again.measured_at, kept.measured_at);
    assert!(again.doubts.contains(&doubt) && again.durations.contains(&(1, 2.5)));
    let mut found = values(&again.samples);
    found.sort();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_cell_that_fails_leaves_those_before_it_in_the_store() {
    let article = experiment_text(EXPERIMENT);
    let folder = tempfile::tempdir().unwrap();
    let wrong = ANSWERS.replace(
        "columns: [n], types: [integer], rows: [[20]]",
        "error: {sqlstate: \"22012\", message: division by zero}",
    );
    let failed = measured(&article, &wrong, None, folder.path()).await;
    let Err(Failure::Article(problems)) = failed else {
        panic!("{failed:?}")
    };
    assert_eq!(
        problems[0].message,
        "Postgres: division by zero (SQLSTATE 22012)"
    );
    let notes = &problems[0].notes;
    assert!(
        notes.iter().any(|note| note.contains("cell k=2, run 1")),
        "{notes:?}"
    );
    let part = stored(folder.path());
    assert!(!part.finished);
    assert_eq!((part.cells_done(), part.samples.len()), (1, 2));
}

#[tokio::test]
async fn too_short_a_time_is_doubted_and_a_named_column_comes_once() {
    let folder = tempfile::tempdir().unwrap();
    let quick = "{match: \"SELECT 10 * 1 AS n\", elapsed_ms: 0.5,";
    let answers = ANSWERS.replace("{match: \"SELECT 10 * 1 AS n\",", quick);
    let article = experiment_text(EXPERIMENT);
    measured(&article, &answers, None, folder.path())
        .await
        .unwrap();
    let doubts = stored(folder.path()).doubts;
    let told: Vec<(&str, &str)> = doubts
        .iter()
        .map(|doubt| (doubt.kind.as_str(), doubt.message.as_str()))
        .collect();
    assert_eq!(
        told,
        [(
            "too-short",
            "k=1, runs 1 and 2: 0.500 ms is too short to time"
        )]
    );

    for column in ["k", "run", "rows", "elapsed_ms"] {
        let answers = ANSWERS.replace("columns: [n]", &format!("columns: [{column}]"));
        let failed = measured(&article, &answers, None, folder.path()).await;
        let Err(Failure::Article(problems)) = failed else {
            panic!("{column}: {failed:?}")
        };
        assert!(problems[0].message.contains(&format!("`{column}`")));
        assert!(problems[0].place.is_some());
    }
    for (experiment, told) in [
        (
            EXPERIMENT
                .replace("{k: [1, 2, 3]}", "{elapsed_ms: [1]}")
                .replace(":k", ":elapsed_ms"),
            "the column `elapsed_ms` is there already: an instrument, the matrix or another query has it",
        ),
        (
            format!("{EXPERIMENT}\n--| collect: {{as: more}}\nSELECT pg_catalog.twice();"),
            "this result has two columns `a`",
        ),
    ] {
        let twice = "{match: \"SELECT pg_catalog.twice()\", columns: [a, a], rows: [[1, 2]]}";
        let answers = ANSWERS.replace("answers:\n", &format!("answers:\n  - {twice}\n"));
        let failed = measured(&experiment_text(&experiment), &answers, None, folder.path()).await;
        let Err(Failure::Article(problems)) = failed else {
            panic!("{failed:?}")
        };
        assert_eq!(problems[0].message, told);
        assert!(problems[0].place.is_some());
    }
}

/// Kinds and sentences of the doubts about one cell whose runs take these milliseconds.
async fn told_of(times: &[&str], more: &str) -> Vec<(String, String)> {
    let answers: String = times
        .iter()
        .map(|time| {
            format!("  - {{sql: SELECT 1 AS n, columns: [n], rows: [[1]], elapsed_ms: {time}}}\n")
        })
        .collect();
    let answers =
        format!("answers:\n{answers}{more}\n  - {{match: \"SELECT pg_catalog.*\", rows: [[x]]}}");
    let article = experiment_text(&format!(
        "--| instruments: [time]\n--| runs: {}\n--| measure:\nSELECT 1 AS n;",
        times.len()
    ));
    let folder = tempfile::tempdir().unwrap();
    measured(&article, &answers, None, folder.path())
        .await
        .unwrap();
    let doubts = stored(folder.path()).doubts.into_iter();
    doubts.map(|doubt| (doubt.kind, doubt.message)).collect()
}

#[tokio::test]
async fn outliers_and_drift_are_doubted_from_the_times_of_the_runs() {
    let told = told_of(&["100", "101", "99", "100", "300"], "").await;
    let expected = "run 5: took 3.00 times the cell's median";
    assert_eq!(told, [("outlier".to_owned(), expected.to_owned())]);
    let told = told_of(&["100", "110", "120", "130", "140", "150"], "").await;
    let expected = "runs 1 to 6: the time grew by 40 % from the first to the last";
    assert_eq!(told, [("drift".to_owned(), expected.to_owned())]);
    assert!(
        told_of(&["100", "101", "99", "100", "102"], "")
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn a_server_that_runs_in_an_emulator_is_doubted() {
    let version = |machine: &str| {
        format!(
            "  - {{sql: SELECT pg_catalog.version(), rows: [[\"PostgreSQL 16.15 on {machine}-pc-linux-gnu, compiled\"]]}}"
        )
    };
    let own = std::env::consts::ARCH;
    let other = if own == "x86_64" { "aarch64" } else { "x86_64" };
    let told = told_of(&["100", "100"], &version(other)).await;
    let expected =
        "runs 1 and 2: the server's platform is emulated: its times are not those of any machine";
    assert_eq!(
        told,
        [("emulated-platform".to_owned(), expected.to_owned())]
    );
    assert!(told_of(&["100", "100"], &version(own)).await.is_empty());
}
