//! The accepted record: what is read, what is refused and with which words, and that every field of
//! it is documented.

use crate::project::{Project, Ran};
use remeasure::record::store::read_record;
use remeasure::record::{Record, parse_record, to_json};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn format_1(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records/format-1");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// The article of `tests/records/format-1`, whose record was accepted by a build of that format.
fn project(record: &str) -> Project {
    let project = Project::new(&format_1("article.md"));
    project.write("articles/a/record.json", record);
    project
}

fn of_this_format() -> String {
    to_json(&parse_record("record.json", &format_1("record.json")).unwrap())
}

/// What every command that reads the record must say, with exit code 5, touching nothing.
fn refused(record: &str, told: &str, place: Option<&str>) {
    let project = project(record);
    for command in [
        &["check", "--recorded"][..],
        &["check"],
        &["build"],
        &["status"],
        &["diff"],
        &["accept"],
    ] {
        let ran = project.run(command);
        assert_eq!(ran.code, 5, "{command:?} {}", ran.stderr);
        assert!(ran.stderr.contains(told), "{command:?} {}", ran.stderr);
        if let Some(place) = place {
            assert!(ran.stderr.contains(place), "{command:?} {}", ran.stderr);
        }
        assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
    }
    assert_eq!(project.read("articles/a/record.json"), record);
    assert!(!project.path("out/a").exists());
}

/// `articles/a/record.json:12:5`, of the line on which this stands first.
fn place(record: &str, text: &str) -> String {
    let at = record.find(text).unwrap_or_else(|| panic!("{text}"));
    let line = record[..at].matches('\n').count() + 1;
    let column = at - record[..at].rfind('\n').map_or(0, |end| end + 1) + 1;
    format!("articles/a/record.json:{line}:{column}\n")
}

fn edited(record: &str, from: &str, to: &str) -> String {
    assert!(record.contains(from), "{from}");
    record.replacen(from, to, 1)
}

#[test]
fn a_record_of_format_1_is_read_and_holds() {
    let old = format_1("record.json");
    assert!(old.starts_with("{\n  \"format\": 1,\n"));
    let project = project(&old);
    let ran = project.run(&["check", "--recorded"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.run(&["status"]).code, 0);
    assert_eq!(project.read("articles/a/record.json"), old);

    let record = parse_record("record.json", &old).unwrap();
    let host = &record.environment.host;
    assert_eq!(host.sha256, host.hash());
    assert_eq!(record.experiments["count"].host, host.sha256);

    // The first records had no queries.
    let queries = old.find("  \"queries\": {").unwrap();
    let end = old.find("  \"experiments\": {").unwrap();
    let first = format!("{}{}", &old[..queries], &old[end..]);
    let record: Record = parse_record("record.json", &first).unwrap();
    assert!(record.queries.fields.is_empty());
    project.write("articles/a/record.json", &first);
    assert_eq!(project.run(&["check", "--recorded"]).code, 0);
}

#[test]
fn a_wrong_hash_in_a_record_of_format_1_is_told_with_its_place() {
    let old = format_1("record.json");
    let measure = "\"measure\": \"SELECT count(*) AS n";
    for (from, to, told, at) in [
        (
            measure,
            "\"measure\": \"SELECT count(a) AS n",
            "the `fingerprint` of experiment `count` is not the hash of its `inputs`",
            "\"fingerprint\": ",
        ),
        (
            "\"cores\": ",
            "\"cores\": 1",
            "the `sha256` of the environment's `host` is not the hash of what stands there",
            "",
        ),
        (
            "\"encoding\": \"UTF8\"",
            "\"encoding\": \"SQL_ASCII\"",
            "the `sha256` of the environment's `server` is not the hash of what stands there",
            "",
        ),
    ] {
        let edited = edited(&old, from, to);
        let at = (!at.is_empty()).then(|| {
            let key = place(&edited, at);
            let (line, _) = key.rsplit_once(':').unwrap();
            format!("{line}:")
        });
        refused(&edited, told, at.as_deref());
    }
}

#[test]
fn a_record_that_was_edited_says_which_part_and_is_kept() {
    let record = of_this_format();
    for (from, to, part, key) in [
        (
            "\"value\": \"10\"",
            "\"value\": \"11\"",
            "`claims` has no longer the hash",
            "\"claims\": {",
        ),
        (
            "\"rows\": \"10\"",
            "\"rows\": \"11\"",
            "its heading has no longer the hash",
            "\"format\": 2",
        ),
        (
            "\"cores\": ",
            "\"cores\": 1",
            "the environment's `host` has no longer the hash",
            "\"host\": {",
        ),
        (
            "\"type\": \"numeric\" }",
            "\"type\": \"text\" }",
            "experiment `count` has no longer the hash",
            "\"count\": {",
        ),
        (
            "max(n) FROM measured.count\"",
            "min(n) FROM measured.count\"",
            "`queries` has no longer the hash",
            "\"queries\": {",
        ),
        (
            "\"count\": {",
            "\"counted\": {",
            "there was no experiment `counted`",
            "\"counted\": {",
        ),
    ] {
        let edited = edited(&record, from, to);
        refused(&edited, part, Some(&place(&edited, key)));
    }
}

#[test]
fn a_number_that_was_measured_cannot_be_edited_unnoticed() {
    let record = of_this_format();
    let json: Value = serde_json::from_str(&record).unwrap();
    let rows = json["experiments"]["count"]["measured"]["rows"]
        .as_array()
        .unwrap();
    assert!(rows.len() == 4);
    // Each digit of each measured cell, as it stands in the file.
    let start = record.find("\"measured\": {").unwrap();
    let end = start + record[start..].find("\"results\"").unwrap();
    let mut tried = 0;
    for (at, digit) in record[start..end].char_indices() {
        if !digit.is_ascii_digit() {
            continue;
        }
        let other = if digit == '9' { "8" } else { "9" };
        let mut edited = record.clone();
        edited.replace_range(start + at..=start + at, other);
        let told = parse_record("record.json", &edited).unwrap_err().message;
        assert!(told.contains("edited after it was written"), "{told}");
        tried += 1;
    }
    assert!(tried > 20);
}

#[test]
fn white_space_and_line_ends_are_no_edit() {
    let record = of_this_format();
    let read = parse_record("record.json", &record).unwrap();
    let json: Value = serde_json::from_str(&record).unwrap();
    for same in [
        record.replace('\n', "\r\n"),
        record.replace("\n", "\n  "),
        record.replace("\": ", "\":"),
    ] {
        assert_eq!(parse_record("record.json", &same).unwrap(), read);
        assert_eq!(serde_json::from_str::<Value>(&same).unwrap(), json);
        assert_eq!(to_json(&read), record);
    }
}

#[test]
fn a_record_that_was_cut_or_is_no_json_says_where() {
    let record = of_this_format();
    refused(
        &record[..record.len() / 2],
        "this record cannot be read",
        Some("record.json:"),
    );
    refused(
        "",
        "this record cannot be read: EOF",
        Some("record.json:1:1"),
    );
    refused(
        &edited(&record, "\"value\": \"10\"", "\"value\": 10"),
        "a value is a string, a boolean or null",
        None,
    );
    // The hashes themselves.
    let at = record.find(",\n  \"sha256\": {").unwrap();
    refused(
        &format!("{}\n}}\n", &record[..at]),
        "is of format 2 and has no `sha256`",
        None,
    );
    // With conflict markers, as a merge leaves them.
    let conflict = record.replacen("  \"claims\"", "<<<<<<< ours\n  \"claims\"", 1);
    refused(
        &conflict,
        "this record cannot be read",
        Some("record.json:"),
    );
}

#[test]
fn a_newer_record_says_its_version_ours_and_what_to_do() {
    let newer = edited(&of_this_format(), "\"format\": 2", "\"format\": 7");
    refused(
        &newer,
        "is a record of format 7, this build reads up to 2",
        None,
    );
    // Whatever else stands in it.
    refused(
        "{\"format\": 7, \"claims\": []}",
        "hint: use the version of remeasure that wrote it, or a later one",
        None,
    );
}

#[test]
fn a_missing_record_says_how_to_get_one() {
    let project = Project::new(&format_1("article.md"));
    let ran = project.run(&["check", "--recorded"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("`a` has no record"), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("remeasure build a && remeasure accept a")
    );
    let status = project.run(&["status"]);
    assert_eq!(status.code, 5);
    assert!(
        status.stdout.contains("record: there is no `"),
        "{}",
        status.stdout
    );
}

/// A change of prose asks nothing of Postgres: there is none to be had here.
#[test]
fn an_edit_of_prose_runs_nothing_and_passes() {
    let project = project(&format_1("record.json"));
    project.edit("There are [10 rows]", "Once more: there are [10 rows]");
    project.edit("title: How many", "title: Just how many");
    let mut check = project.command(&["check", "--recorded"]);
    check.env("REMEASURE_POSTGRES", "/nonexistent");
    let ran = Ran::from(check.output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr, "");
    assert!(!project.path(".remeasure").exists());

    project.edit("[10 rows]", "[12 rows]");
    let wrong = project.run(&["check", "--recorded"]);
    assert_eq!(wrong.code, 3, "{}", wrong.stderr);
}

#[test]
fn a_stale_record_names_the_input_that_changed() {
    let project = project(&format_1("record.json"));
    project.edit("a % :k = 0", "a % :k = 1");
    for command in [&["check", "--recorded"][..], &["status"]] {
        let ran = project.run(command);
        assert_eq!(ran.code, 5, "{}", ran.stderr);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let told = "the record of `count` is stale: measure changed";
        assert!(said.contains(told), "{said}");
    }
}

#[test]
fn a_record_of_binaries_that_are_not_pinned_any_more_is_stale() {
    let project = project(&format_1("record.json"));
    let pins = Path::new(env!("CARGO_MANIFEST_DIR")).join("articles/pins.yaml");
    let pins = fs::read_to_string(pins).unwrap();
    project.write("articles/pins.yaml", &pins);
    assert_eq!(project.run(&["check", "--recorded"]).code, 0);
    let record = parse_record("record.json", &format_1("record.json")).unwrap();
    let digest = record.environment.server.digest.unwrap();
    let archive = digest.strip_prefix("sha256:").unwrap();
    project.write(
        "articles/pins.yaml",
        &edited(&pins, archive, &"0".repeat(64)),
    );
    for command in [&["check", "--recorded"][..], &["status"]] {
        let ran = project.run(command);
        assert_eq!(ran.code, 5, "{}", ran.stderr);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(
            said.contains("binaries that are not pinned any more"),
            "{said}"
        );
    }
}

/// `docs/record-format.md` has every field of a record, and no field that there is none of.
#[test]
fn every_field_of_a_record_is_documented() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/record-format.md");
    let text = fs::read_to_string(docs).unwrap();
    let documented: BTreeSet<String> = text
        .lines()
        .filter_map(|line| {
            let cell = line.strip_prefix("| `")?;
            Some(cell.split_once('`')?.0.to_owned())
        })
        .collect();
    let mut fields = BTreeSet::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("articles/index-cost/record.json");
    let Ok(Some(own)) = read_record(&own) else {
        panic!("the article's own record cannot be read")
    };
    for record in [of_this_format(), to_json(&own)] {
        let json: Value = serde_json::from_str(&record).unwrap();
        walk("", &json, &mut fields);
    }
    // What neither of the two has an example of.
    for path in [
        "experiments.*.doubts[].kind",
        "experiments.*.doubts[].message",
        "experiments.*.doubts[].advice",
        "environment.server.container",
        "environment.server.container.*",
        "environment.other_servers",
        "environment.other_servers.*",
        "environment.server.network",
        "environment.server.network.way",
        "environment.server.network.round_trip_ms",
        "environment.server.differing",
        "environment.server.differing.*",
        "environment.server.differing.*.wanted",
        "environment.server.differing.*.has",
        "skipped",
        "skipped.*",
        "claims.*.comparison",
        "claims.*.comparison.interval",
        "claims.*.comparison.runs",
        "part",
        "part.shard",
        "part.shards",
        "part.experiments",
        "environments",
        "environments.*",
        "experiments.*.seconds",
    ] {
        fields.insert(path.to_owned());
    }
    let missing: Vec<&String> = fields.difference(&documented).collect();
    assert!(missing.is_empty(), "not documented: {missing:#?}");
    let unknown: Vec<&String> = documented.difference(&fields).collect();
    assert!(unknown.is_empty(), "in no record: {unknown:#?}");
}

/// Paths as the documentation writes them: `*` for a name that an article or a server gave, `[]`
/// for the items of a list.
fn walk(path: &str, json: &Value, fields: &mut BTreeSet<String>) {
    const NAMED: &[&str] = &[
        "params",
        "queries",
        "experiments",
        "claims",
        "tables",
        "charts",
        "results",
        "inputs",
        "settings",
        "differing",
        "skipped",
        "extensions",
        "cell",
        "columns",
        "sha256",
    ];
    match json {
        Value::Object(members) => {
            let last = path.rsplit('.').next().unwrap_or_default();
            for (name, value) in members {
                let name = if NAMED.contains(&last) { "*" } else { name };
                let path = match path {
                    "" => name.to_owned(),
                    path => format!("{path}.{name}"),
                };
                fields.insert(path.clone());
                walk(&path, value, fields);
            }
        }
        Value::Array(items) => {
            for item in items.iter().filter(|item| item.is_object()) {
                walk(&format!("{path}[]"), item, fields);
            }
        }
        _ => {}
    }
}
