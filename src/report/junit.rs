//! JUnit's XML, for systems that show test results: a suite an article, a case for each figure and
//! each problem. What was planned and not judged is skipped, never passed.

use super::places::place_of;
use super::{Asked, Figure, Look, Problem, Report, Run, Status};
use crate::diagnostic::Diagnostic;
use crate::judge::{Outcome, Subject, Verdict};
use std::collections::BTreeMap;

pub(super) const REPORT: Report = Report {
    name: "junit",
    about: "JUnit XML: a test suite an article, a test case a figure",
    write,
};

struct Suite {
    name: String,
    properties: Vec<(&'static str, String)>,
    cases: Vec<Case>,
}

struct Case {
    name: String,
    result: CaseResult,
}

enum CaseResult {
    Passed,
    Skipped {
        reason: String,
    },
    Failed {
        message: String,
        text: String,
    },
    Error {
        kind: &'static str,
        message: String,
        text: String,
    },
}

fn write(run: &Run, _: Look) -> String {
    let mut suites: Vec<Suite> = run.articles.iter().map(|asked| suite(run, asked)).collect();
    if !run.problems.is_empty() {
        suites.push(Suite {
            name: format!("remeasure {}", run.command),
            properties: Vec::new(),
            cases: run.problems.iter().filter_map(problem_case).collect(),
        });
    }
    let totals = Totals::of(suites.iter().flat_map(|suite| &suite.cases));
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    text.push_str(&format!(
        "<testsuites name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n",
        attribute(&format!("remeasure {}", run.command)),
        totals.tests,
        totals.failures,
        totals.errors
    ));
    for mut suite in suites {
        number_namesakes(&mut suite.cases);
        text.push_str(&suite_text(&suite));
    }
    text.push_str("</testsuites>\n");
    text
}

fn suite(run: &Run, asked: &Asked) -> Suite {
    let mut properties = vec![("file", run.places.in_project(asked.file))];
    if let Some(judged) = asked.judged {
        let environment = &judged.record.environment;
        properties.push(("profile", judged.record.profile.clone()));
        properties.push(("postgres", environment.versions_text()));
        properties.push(("engine", environment.server.engine.clone()));
        properties.push(("host", environment.host.sha256.clone()));
        if environment.server.is_existing() {
            properties.push(("unpinned", judged.notices().join(" ")));
        }
    }
    let mut cases: Vec<Case> = asked.problems.iter().filter_map(problem_case).collect();
    cases.extend(asked.figures().iter().map(figure_case));
    if asked.status == Status::NotDone {
        cases.push(Case {
            name: "article".to_owned(),
            result: CaseResult::Skipped {
                reason: "not done: an earlier problem ended the command".to_owned(),
            },
        });
    }
    Suite {
        name: asked.slug.clone(),
        properties,
        cases,
    }
}

/// Warnings are no test results.
fn problem_case(problem: &Problem) -> Option<Case> {
    let diagnostic = &problem.diagnostic;
    problem.is_error().then(|| Case {
        name: format!(
            "{}: {}",
            problem.cause.name(),
            first_line(&diagnostic.message)
        ),
        result: CaseResult::Error {
            kind: problem.cause.name(),
            message: diagnostic.message.clone(),
            text: long(diagnostic),
        },
    })
}

fn figure_case(figure: &Figure) -> Case {
    let claim = figure.claim;
    let name = match (figure.subject, figure.quoted) {
        (Subject::Quote(_), Some(quoted)) => format!("quote of {claim}: {quoted}"),
        _ => format!("claim {claim}"),
    };
    let result = match figure.verdict.map(|verdict| (verdict, &verdict.outcome)) {
        Some((_, Outcome::Holds)) => CaseResult::Passed,
        Some((_, Outcome::Skipped { reason })) => CaseResult::Skipped {
            reason: reason.clone(),
        },
        Some((verdict, Outcome::DoesNotHold { difference })) => CaseResult::Failed {
            message: format!("{difference} ({})", compared(verdict)),
            text: figure.explanation.map(long).unwrap_or_default(),
        },
        None => CaseResult::Skipped {
            reason: figure.not_judged.clone().unwrap_or_default(),
        },
    };
    Case { name, result }
}

fn compared(verdict: &Verdict) -> String {
    let mut text = format!("measured {}", verdict.measured_text);
    if let Some(quoted) = &verdict.quoted {
        text = format!("quoted {quoted}, {text}");
    }
    if !verdict.tolerance.is_empty() {
        text.push_str(&format!(", tolerance {}", verdict.tolerance));
    }
    text
}

/// Place, notes and hint under one another.
fn long(diagnostic: &Diagnostic) -> String {
    let mut lines = vec![diagnostic.message.clone()];
    if let Some((_, region)) = place_of(diagnostic)
        && let Some(place) = &diagnostic.place
    {
        let name = &place.source.name;
        lines.push(format!("at {name}:{}:{}", region.line, region.column));
    }
    lines.extend(diagnostic.notes.iter().cloned());
    lines.extend(diagnostic.hint.iter().map(|hint| format!("hint: {hint}")));
    lines.join("\n")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Systems tell cases apart by their names alone.
fn number_namesakes(cases: &mut [Case]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for case in cases {
        let count = seen.entry(case.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            case.name.push_str(&format!(" ({count})"));
        }
    }
}

// ---- XML --------------------------------------------------------------------------------------

#[derive(Default)]
struct Totals {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
}

impl Totals {
    fn of<'c>(cases: impl Iterator<Item = &'c Case>) -> Self {
        let mut totals = Self::default();
        for case in cases {
            totals.tests += 1;
            match case.result {
                CaseResult::Passed => {}
                CaseResult::Skipped { .. } => totals.skipped += 1,
                CaseResult::Failed { .. } => totals.failures += 1,
                CaseResult::Error { .. } => totals.errors += 1,
            }
        }
        totals
    }
}

fn suite_text(suite: &Suite) -> String {
    let totals = Totals::of(suite.cases.iter());
    let name = attribute(&suite.name);
    let mut text = format!(
        "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
        totals.tests, totals.failures, totals.errors, totals.skipped
    );
    if !suite.properties.is_empty() {
        text.push_str("    <properties>\n");
        for (property, value) in &suite.properties {
            let value = attribute(value);
            text.push_str(&format!(
                "      <property name=\"{property}\" value=\"{value}\"/>\n"
            ));
        }
        text.push_str("    </properties>\n");
    }
    for case in &suite.cases {
        text.push_str(&case_text(case, &name));
    }
    text.push_str("  </testsuite>\n");
    text
}

/// `class` is escaped already.
fn case_text(case: &Case, class: &str) -> String {
    let open = format!(
        "    <testcase classname=\"{class}\" name=\"{}\"",
        attribute(&case.name)
    );
    let inside = match &case.result {
        CaseResult::Passed => return format!("{open}/>\n"),
        CaseResult::Skipped { reason } => format!("<skipped message=\"{}\"/>", attribute(reason)),
        CaseResult::Failed { message, text } => format!(
            "<failure type=\"does not hold\" message=\"{}\">{}</failure>",
            attribute(message),
            content(text)
        ),
        CaseResult::Error {
            kind,
            message,
            text,
        } => format!(
            "<error type=\"{kind}\" message=\"{}\">{}</error>",
            attribute(message),
            content(text)
        ),
    };
    format!("{open}>\n      {inside}\n    </testcase>\n")
}

/// Text between tags. `>` is escaped too, so that no `]]>` is left.
fn content(text: &str) -> String {
    escaped(text, false)
}

/// Text between double quotes: white space would become blanks.
fn attribute(text: &str) -> String {
    escaped(text, true)
}

fn escaped(text: &str, in_attribute: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // A reader would make a line feed of it.
            '\r' => escaped.push_str("&#13;"),
            '\n' | '\t' if in_attribute => escaped.push_str(&format!("&#{};", c as u32)),
            '\n' | '\t' => escaped.push(c),
            // What XML 1.0 has no way to write.
            '\0'..'\u{20}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{LOOK, with_run};

    #[test]
    fn a_suite_an_article_and_a_case_for_everything_planned() {
        let text = with_run(|run| write(run, LOOK));
        let document = roxmltree::Document::parse(&text).unwrap();
        let suites: Vec<_> = document
            .root_element()
            .children()
            .filter(|n| n.is_element())
            .collect();
        let counts = |suite: &roxmltree::Node| {
            ["name", "tests", "failures", "errors", "skipped"]
                .map(|name| suite.attribute(name).unwrap().to_owned())
        };
        let found: Vec<_> = suites.iter().map(counts).collect();
        assert_eq!(found[0], ["sample", "6", "1", "0", "2"]);
        assert_eq!(found[1], ["b", "6", "0", "1", "5"]);
        assert_eq!(found[2], ["c", "6", "0", "0", "6"]);
        assert_eq!(found[3], ["remeasure check", "1", "0", "1", "0"]);
        assert_eq!(found.len(), 4);
        let names: Vec<_> = suites[0]
            .descendants()
            .filter(|n| n.has_tag_name("testcase"))
            .map(|n| n.attribute("name").unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "quote of x: 76 <b>|bytes",
                "quote of y: 3 `]]>` &\u{fffd}\u{fffd}",
                "quote of same: same @all",
                "quote of slow: 9 s",
                "claim same",
                "claim unquoted",
            ]
        );
        let error = suites[1]
            .descendants()
            .find(|n| n.has_tag_name("error"))
            .unwrap();
        assert_eq!(
            error.attribute("message"),
            Some("no Postgres: 100%,\r\nof a:b")
        );
        assert_eq!(error.attribute("type"), Some("engine"));
    }

    #[test]
    fn every_character_comes_back_or_is_one_that_xml_cannot_have() {
        for (text, back) in [
            ("a]]>b & <c> \"d\" 'e'", "a]]>b & <c> \"d\" 'e'"),
            ("tab\tline\nreturn\r\n", "tab\tline\nreturn\r\n"),
            (
                "\0\u{1}\u{b}\u{1f}\u{fffe}",
                "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            ),
            ("µ 漢 😀 \u{85}\u{2028}", "µ 漢 😀 \u{85}\u{2028}"),
        ] {
            let xml = format!("<a b=\"{}\">{}</a>", attribute(text), content(text));
            let document = roxmltree::Document::parse(&xml).unwrap();
            let root = document.root_element();
            assert_eq!(root.attribute("b"), Some(back), "{xml}");
            assert_eq!(root.text(), Some(back), "{xml}");
        }
    }

    #[test]
    fn two_cases_of_one_name_are_told_apart() {
        let mut cases: Vec<Case> = ["a", "b", "a", "a"]
            .map(|name| Case {
                name: name.to_owned(),
                result: CaseResult::Passed,
            })
            .into();
        number_namesakes(&mut cases);
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "a (2)", "a (3)"]);
    }
}
