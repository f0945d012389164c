//! SARIF 2.1.0, for systems that show findings at the lines of a file. A result is a figure that
//! does not hold or a problem of an article; what is of no article is a notification.

use super::places::place_of;
use super::{Asked, Cause, Look, Places, Problem, Region, Report, Run, Status, rule};
use crate::diagnostic::{Diagnostic, Severity};
use crate::judge::Subject;
use crate::lint::RULES;
use serde_json::{Value, json};
use std::path::Path;

pub(super) const REPORT: Report = Report {
    name: "sarif",
    about: "SARIF 2.1.0: figures that do not hold, mistakes and lint at their places",
    write,
};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The folder that URIs count from.
const ROOT: &str = "%SRCROOT%";

/// What is found by another than a lint rule.
const FINDINGS: [(&str, &str); 7] = [
    ("quote", "a quoted figure is not what was measured"),
    ("claim", "a claim does not hold"),
    (Cause::Article.name(), "the article is wrong"),
    (Cause::Engine.name(), "no Postgres could be had"),
    (
        Cause::Record.name(),
        "the record is missing, stale or damaged",
    ),
    (Cause::Interrupted.name(), "the command was interrupted"),
    (
        Cause::Internal.name(),
        "a bug of remeasure, or a broken machine",
    ),
];

fn write(run: &Run, _: Look) -> String {
    let results: Vec<Value> = run
        .articles
        .iter()
        .flat_map(|asked| article(asked, run.places))
        .collect();
    let notifications: Vec<Value> = run.problems.iter().map(notification).collect();
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": env!("CARGO_PKG_NAME"),
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules(),
            }},
            "invocations": [{
                // Everything planned was done; what came of it is another matter.
                "executionSuccessful": matches!(run.exit_code, 0 | 3 | 5),
                "exitCode": run.exit_code,
                "toolExecutionNotifications": notifications,
            }],
            "originalUriBaseIds": {
                ROOT: {"description": {"text": "the folder that holds `articles/`"}},
            },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    let mut text = serde_json::to_string_pretty(&document)
        .expect("strings, numbers and lists are always JSON");
    text.push('\n');
    text
}

fn rules() -> Vec<Value> {
    let findings = FINDINGS.iter().map(|&(id, about)| (id, about, "error"));
    let lint = RULES.iter().map(|rule| (rule.name, rule.about, "warning"));
    let rule = |(id, about, level): (&str, &str, &str)| {
        json!({
            "id": id,
            "shortDescription": {"text": about},
            "defaultConfiguration": {"level": level},
        })
    };
    findings.chain(lint).map(rule).collect()
}

fn article(asked: &Asked, places: &Places) -> Vec<Value> {
    let mut results = Vec::new();
    for problem in &asked.problems {
        let id = rule(&problem.diagnostic).unwrap_or(problem.cause.name());
        results.push(result(id, &problem.diagnostic, asked.file, places));
    }
    for (verdict, explanation) in asked.verdicts().iter().zip(&asked.explanations) {
        let id = match verdict.subject {
            Subject::Quote(_) => "quote",
            Subject::Claim => "claim",
        };
        let explanation = explanation.as_ref();
        results.extend(explanation.map(|found| result(id, found, asked.file, places)));
    }
    if asked.status == Status::NotDone {
        let message = "not done: an earlier problem ended the command";
        let not_done = Diagnostic::warning(message);
        results.push(result(
            Cause::Interrupted.name(),
            &not_done,
            asked.file,
            places,
        ));
    }
    results
}

/// What has no place of its own is at its article.
fn result(id: &str, diagnostic: &Diagnostic, article: &Path, places: &Places) -> Value {
    let (file, region) =
        place_of(diagnostic).map_or((article, None), |(file, region)| (file, Some(region)));
    let mut result = json!({
        "ruleId": id,
        "level": level(diagnostic.severity),
        "message": {"text": message(diagnostic)},
        "locations": [location(file, region, places)],
    });
    let findings = FINDINGS.iter().map(|&(id, _)| id);
    let mut ids = findings.chain(RULES.iter().map(|rule| rule.name));
    if let Some(index) = ids.position(|known| known == id) {
        result["ruleIndex"] = index.into();
    }
    let related: Vec<Value> = (diagnostic.related.iter())
        .map(|place| {
            let region = Region::of(&place.source, place.span);
            let mut related = location(&place.source.path, Some(region), places);
            related["message"] = json!({"text": place.label});
            related
        })
        .collect();
    if !related.is_empty() {
        result["relatedLocations"] = related.into();
    }
    result
}

fn location(file: &Path, region: Option<Region>, places: &Places) -> Value {
    let path = places.in_project(file);
    let mut place = if path.starts_with('/') {
        json!({"artifactLocation": {"uri": format!("file://{}", uri(&path))}})
    } else {
        json!({"artifactLocation": {"uri": uri(&path), "uriBaseId": ROOT}})
    };
    place["region"] = match region {
        Some(region) => json!({
            "startLine": region.line,
            "startColumn": region.column,
            "endLine": region.end_line,
            "endColumn": region.end_column,
        }),
        // Systems that show findings at lines want one.
        None => json!({"startLine": 1}),
    };
    json!({"physicalLocation": place})
}

fn notification(problem: &Problem) -> Value {
    json!({
        "level": level(problem.diagnostic.severity),
        "message": {"text": message(&problem.diagnostic)},
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// Message, notes and hint under one another.
fn message(diagnostic: &Diagnostic) -> String {
    let mut lines = vec![diagnostic.message.clone()];
    lines.extend(diagnostic.notes.iter().cloned());
    lines.extend(diagnostic.hint.iter().map(|hint| format!("hint: {hint}")));
    lines.join("\n")
}

/// A path as the path of a URI, by RFC 3986.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{LOOK, with_run};

    #[test]
    fn what_is_wrong_stands_at_its_place_under_its_rule() {
        let text = with_run(|run| write(run, LOOK));
        let found: Value = serde_json::from_str(&text).unwrap();
        let run = &found["runs"][0];
        let results = run["results"].as_array().unwrap();
        let ids: Vec<_> = results
            .iter()
            .map(|result| result["ruleId"].as_str().unwrap())
            .collect();
        assert_eq!(ids, ["unbound", "quote", "engine", "interrupted"]);
        for result in results {
            let index = result["ruleIndex"].as_u64().unwrap() as usize;
            assert_eq!(
                run["tool"]["driver"]["rules"][index]["id"],
                result["ruleId"]
            );
        }
        let place = &results[1]["locations"][0]["physicalLocation"];
        let expected = json!({
            "artifactLocation": {"uri": "articles/sample/article.md", "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": 3, "startColumn": 6, "endLine": 3, "endColumn": 18},
        });
        assert_eq!(*place, expected);
        assert_eq!(
            results[1]["relatedLocations"][0]["message"]["text"],
            "claimed here"
        );
        assert_eq!(run["invocations"][0]["executionSuccessful"], false);
        let notification = &run["invocations"][0]["toolExecutionNotifications"][0];
        assert_eq!(notification["message"]["text"], "there is no article `z`");
    }

    #[test]
    fn a_path_is_a_uri() {
        for (path, expected) in [
            ("articles/a/article.md", "articles/a/article.md"),
            (
                "articles/100 % µ?#/article.md",
                "articles/100%20%25%20%C2%B5%3F%23/article.md",
            ),
        ] {
            assert_eq!(uri(path), expected);
        }
    }
}
