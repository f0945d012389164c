use super::super::{
    CellSummary, ClaimRecord, Comparison, Environment, FORMAT as RECORD_FORMAT, Record,
    ServerEnvironment, Summary, ToolEnvironment, parse_record, to_json,
};
use super::*;
use crate::quantity::Column;
use indexmap::IndexMap;

/// A table whose columns are `name type`, from Postgres's text output.
fn table(columns: &[&str], rows: &[&[Option<&str>]]) -> Table {
    let columns: Vec<Column> = columns
        .iter()
        .map(|column| {
            let (name, type_name) = column.split_once(' ').unwrap();
            Column::new(name, type_name)
        })
        .collect();
    let typed = |row: &&[Option<&str>]| {
        row.iter()
            .zip(&columns)
            .map(|(cell, column)| Value::from_postgres(*cell, &column.type_name))
            .collect()
    };
    Table {
        rows: rows.iter().map(typed).collect(),
        columns,
    }
}

fn sample(cell: usize, run: u32) -> Sample {
    Sample {
        cell,
        run,
        row: table(
            &["wal_bytes numeric"],
            &[&[Some("123456789012345678901234567890.10")]],
        ),
        results: IndexMap::new(),
    }
}

fn start() -> StoredExperiment {
    StoredExperiment {
        host: "h".repeat(64),
        measured_at: "2026-11-30T10:00:00Z".into(),
        ..StoredExperiment::default()
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
}

#[test]
fn an_interrupted_result_keeps_its_whole_cells_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path(), "post");
    let fingerprint = "f".repeat(64);
    let doubt = Doubt {
        kind: "checkpoint".into(),
        message: "run 1".into(),
        advice: "none".into(),
    };
    let mut writer = store.writer("insert", &fingerprint, &start()).unwrap();
    let samples = [sample(0, 1), sample(0, 2)];
    writer
        .unit(0, 1.5, &samples, std::slice::from_ref(&doubt))
        .unwrap();
    drop(writer);
    let path = files(&folder.path().join("post/insert")).remove(0);
    let mut torn = OpenOptions::new().append(true).open(&path).unwrap();
    torn.write_all(b"{\"unit\":{\"cell\":1,\"sec").unwrap();

    let found = store.results("insert").pop().unwrap();
    assert!(!found.finished);
    assert_eq!(found.samples, samples);
    assert_eq!(found.durations, [(0, 1.5)]);
    assert_eq!(found.cells_done(), 1);

    let mut writer = store.writer("insert", &fingerprint, &found).unwrap();
    writer.unit(1, 2.0, &[sample(1, 1)], &[]).unwrap();
    writer.finished(&[]).unwrap();
    let whole = store.results("insert").pop().unwrap();
    assert!(whole.finished);
    assert_eq!(whole.samples.len(), 3);
    assert_eq!(whole.durations, [(0, 1.5), (1, 2.0)]);
    assert_eq!(whole.doubts, [doubt]);
    assert_eq!(files(&folder.path().join("post/insert")).len(), 1);
}

#[test]
fn a_whole_result_stays_until_there_is_another_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path(), "post");
    let measured = |time: &str| StoredExperiment {
        measured_at: time.into(),
        ..start()
    };
    let whole = || -> Vec<String> {
        store
            .results("insert")
            .into_iter()
            .filter(|result| result.finished)
            .map(|result| result.measured_at)
            .collect()
    };
    let begin = |time| store.writer("insert", "f", &measured(time)).unwrap();
    begin("first").finished(&[]).unwrap();
    let mut again = begin("second");
    again.unit(0, 1.0, &[sample(0, 1)], &[]).unwrap();
    assert_eq!(whole(), ["first"]);
    drop(again);
    let again = begin("third");
    assert_eq!(whole(), ["first"]);
    again.finished(&[]).unwrap();
    assert_eq!(whole(), ["third"]);
}

#[test]
fn a_file_of_a_newer_format_counts_as_none() {
    let header = |format: u32| {
        let rest = "\"inputs\":{},\"host\":\"\",\"measured_at\":\"\",\"settings\":{}";
        parse(&format!("{{\"header\":{{\"format\":{format},{rest}}}}}\n"))
    };
    assert_eq!(header(FORMAT), Some(StoredExperiment::default()));
    assert_eq!(header(FORMAT + 1), None);
    assert_eq!(parse("{\"header\":"), None);
    assert_eq!(parse(""), None);
}

#[test]
fn one_process_at_a_time_measures_an_article_and_an_experiment_may_be_called_lock() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path(), "post");
    let held = store.try_lock().unwrap();
    assert!(matches!(held, Locking::Held(_)));
    assert!(matches!(store.try_lock().unwrap(), Locking::Busy(_)));
    for id in ["lock", "analysis", "charts", "page"] {
        store.writer(id, "f", &start()).unwrap();
        store.cache(id, "key", "text").unwrap();
        assert_eq!(store.cached(id, "key").as_deref(), Some("text"));
        assert_eq!(store.results(id).len(), 1);
    }
    drop(held);
    assert!(matches!(store.try_lock().unwrap(), Locking::Held(_)));
}

#[test]
fn what_cannot_be_written_is_told_with_the_file() {
    let folder = tempfile::tempdir().unwrap();
    // A file where a folder has to be, as nothing else stops root from writing.
    fs::write(folder.path().join("post"), "").unwrap();
    let store = Store::new(folder.path(), "post");
    let told = |failure: Failure, file: &str| {
        let Failure::Internal(diagnostic) = failure else {
            panic!("{failure:?}")
        };
        assert!(
            diagnostic.message.contains(file),
            "{}: {}",
            file,
            diagnostic.message
        );
    };
    told(store.try_lock().err().unwrap(), "post/.lock");
    told(store.writer("e", "f", &start()).unwrap_err(), "post/e/f-");
    told(
        store.cache("charts", "key", "").unwrap_err(),
        "post/charts/key",
    );
}

/// Values that JSON or a binary number would not give back.
fn odd_values() -> Table {
    table(
        &["a numeric", "b text", "c double precision", "d boolean"],
        &[
            &[Some("NaN"), Some("NULL"), Some("Infinity"), Some("t")],
            &[None, None, None, None],
            &[
                Some("1234567890123456789012345678901234567890.10"),
                Some("true"),
                Some("1e-300"),
                Some("f"),
            ],
            &[Some("-0.00"), Some(""), Some("-Infinity"), Some("t")],
            &[Some("0"), Some("\"é\\\n\u{1f418}"), Some("NaN"), Some("f")],
        ],
    )
}

fn experiment_record(measured: Table, results: IndexMap<String, Table>) -> ExperimentRecord {
    ExperimentRecord {
        fingerprint: Fingerprint::default().sha256(),
        inputs: Fingerprint::default(),
        host: "here".into(),
        measured_at: "2026-11-30T10:00:00Z".into(),
        seconds: None,
        settings: [("work_mem".to_owned(), "4MB".to_owned())].into(),
        summaries: vec![CellSummary {
            cell: IndexMap::new(),
            columns: [(
                "a".to_owned(),
                Summary {
                    runs: 3,
                    median: "1.50".into(),
                    min: "1".into(),
                    max: "2".into(),
                    interval: Some(("1".into(), "2".into())),
                },
            )]
            .into(),
        }],
        doubts: Vec::new(),
        derived: vec!["twice".into()],
        measured,
        results,
    }
}

#[test]
fn a_record_comes_back_from_its_json_with_the_oddest_values() {
    let claim = |value: Option<&str>, type_name: &str| ClaimRecord {
        comparison: None,
        type_name: type_name.into(),
        value: Value::from_postgres(
            value,
            if type_name == "comparison" {
                "numeric"
            } else {
                type_name
            },
        ),
        unit: Some("B".into()),
        reads: vec!["e".into()],
    };
    let mut environment = Environment {
        other_servers: IndexMap::new(),
        server: ServerEnvironment::default(),
        host: super::super::HostEnvironment::default(),
        tool: ToolEnvironment::default(),
    };
    environment.server.sha256 = environment.server.hash();
    environment.tool.sha256 = environment.tool.hash();
    let record = Record {
        format: RECORD_FORMAT,
        article: "a".into(),
        profile: "full".into(),
        params: [
            ("b".to_owned(), "2".to_owned()),
            ("a".to_owned(), "1".to_owned()),
        ]
        .into(),
        part: None,
        environments: Default::default(),
        environment,
        queries: Fingerprint {
            fields: [("claim `x`".to_owned(), "SELECT 1".to_owned())].into(),
        },
        experiments: [(
            "e".to_owned(),
            experiment_record(odd_values(), IndexMap::new()),
        )]
        .into(),
        claims: [
            ("nan".to_owned(), claim(Some("NaN"), "numeric")),
            (
                "infinite".to_owned(),
                claim(Some("-Infinity"), "double precision"),
            ),
            (
                "long".to_owned(),
                claim(Some("12345678901234567890123456789012345678.9"), "numeric"),
            ),
            ("yes".to_owned(), claim(Some("t"), "boolean")),
            ("none".to_owned(), claim(None, "numeric")),
            (
                "compared".to_owned(),
                ClaimRecord {
                    comparison: Some(Comparison {
                        interval: ("0".parse().unwrap(), "Infinity".parse().unwrap()),
                        runs: (3, 8),
                    }),
                    ..claim(Some("2.5"), "comparison")
                },
            ),
        ]
        .into(),
        tables: [("t".to_owned(), odd_values())].into(),
        charts: IndexMap::new(),
        skipped: [("experiment `f`".to_owned(), "not permitted".to_owned())].into(),
    };
    let json = to_json(&record);
    assert_eq!(parse_record("record.json", &json).unwrap(), record);
    assert_eq!(to_json(&parse_record("record.json", &json).unwrap()), json);
    let values = &record.tables["t"].rows;
    assert_eq!(values[1][1], Value::Null);
    assert_eq!(values[0][1], Value::Text("NULL".into()));

    // Only a comparison has an interval, and one that cannot be read is not taken for none.
    assert_eq!(
        json.matches("\"interval\": [\"0\", \"Infinity\"]").count(),
        1
    );
    assert_eq!(json.matches("\"comparison\":").count(), 1);
    let broken = json.replacen("\"Infinity\"]", "\"much\"]", 1);
    assert!(parse_record("record.json", &broken).is_err());

    let newer = json.replacen("\"format\": 2", "\"format\": 3", 1);
    let refused = parse_record("record.json", &newer).unwrap_err();
    assert_eq!(
        refused.message,
        "`record.json` is a record of format 3, this build reads up to 2"
    );
    let cut = parse_record("record.json", &json[..json.len() / 2]).unwrap_err();
    assert!(
        cut.message.starts_with("this record cannot be read"),
        "{}",
        cut.message
    );
    assert!(cut.place.is_some());
    // The place is between characters, whatever byte the mistake is told at.
    let broken =
        parse_record("record.json", "{\"format\": 1, \"a\": \"\u{a0}\n\u{a0}\n").unwrap_err();
    let place = broken.place.unwrap();
    assert!(place.source.text.get(place.span.range()).is_some());
}

#[test]
fn an_accepted_result_gives_back_what_was_measured() {
    let cells = Cells {
        columns: vec!["k".into()],
        rows: vec![
            vec![Scalar::Text("x".into())],
            vec![Scalar::Number(2.into())],
        ],
        span: None,
    };
    let measured = table(
        &["k text", "run integer", "n numeric", "twice numeric"],
        &[
            &[Some("x"), Some("1"), Some("7.0"), Some("14.0")],
            &[Some("x"), Some("2"), None, None],
            &[Some("2"), Some("1"), Some("NaN"), Some("NaN")],
        ],
    );
    let waits = table(
        &["k text", "run integer", "wait text"],
        &[
            &[Some("x"), Some("1"), Some("a")],
            &[Some("x"), Some("1"), Some("b")],
            &[Some("2"), Some("1"), None],
        ],
    );
    let record = experiment_record(measured, [("waits".to_owned(), waits)].into());
    let stored = StoredExperiment::from_record(&record, &cells).unwrap();
    let sample = |cell, run, n: Option<&str>, waits: &[&[Option<&str>]]| Sample {
        cell,
        run,
        row: table(&["n numeric"], &[&[n]]),
        results: [("waits".to_owned(), table(&["wait text"], waits))].into(),
    };
    assert_eq!(
        stored.samples,
        [
            sample(0, 1, Some("7.0"), &[&[Some("a")], &[Some("b")]]),
            sample(0, 2, None, &[]),
            sample(1, 1, Some("NaN"), &[&[None]]),
        ]
    );
    assert!(stored.finished);
    assert_eq!(stored.settings, record.settings);

    // Of other cells there is nothing to give back, and nothing to trip over.
    let other = |columns: &[&str], rows: &[&[&str]]| {
        let text = |text: &&str| Scalar::Text((*text).to_owned());
        let cells = Cells {
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            rows: rows
                .iter()
                .map(|row| row.iter().map(text).collect())
                .collect(),
            span: None,
        };
        StoredExperiment::from_record(&record, &cells)
    };
    assert_eq!(other(&["j"], &[&["x"], &["2"]]), None);
    assert_eq!(other(&["k"], &[&["x"]]), None);
    assert_eq!(
        other(&["k", "j", "l", "m"], &[&["x", "1", "7", "14"]]),
        None
    );
    assert_eq!(other(&[], &[&[]]), None);
}
