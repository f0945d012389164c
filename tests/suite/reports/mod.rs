//! Reports: each fits its schema whatever the command came to, goes where it is told, and tells
//! everything that was planned.

pub mod schema;

use crate::project::{Project, Ran};
use schema::{json_violations, xml_violations};
use serde_json::Value;
use std::fs;
use std::path::Path;

const FRONT: &str = "---\ntitle: T\npostgres: {version: \"16.15\"}\n---\n";

const BODY: &str = "
```sql experiment e
--| instruments: [time]
SELECT 1 AS one;
```

```sql claims c
--| one: {kind: exact}
SELECT max(one) FROM measured.e;
```
";

const ANSWERS: &str = "answers:
  - sql: SELECT 1 AS one
    columns: [one]
    types: [integer]
    rows: [[1]]
  - sql: SELECT max(one) FROM measured.e
    types: [integer]
    rows: [[1]]
  - sql: SELECT wrong
    error: {sqlstate: \"42703\", message: 'column \"wrong\" does not exist', position: 8}
  - sql: SELECT slow
    lost: the server is gone
  - match: SELECT pg_catalog.setseed(*)
    rows: [[null]]
";

const ALL: [&str; 6] = ["json", "junit", "sarif", "markdown", "github", "terminal"];

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// A project whose articles are their bodies below one experiment and one claim.
fn project(articles: &[(&str, &str)]) -> Project {
    let project = Project::empty();
    project.write("fake.yaml", ANSWERS);
    for (slug, prose) in articles {
        write(&project, slug, &format!("{FRONT}{BODY}\n{prose}\n"));
    }
    project
}

fn write(project: &Project, slug: &str, text: &str) {
    project.write(&format!("articles/{slug}/article.md"), text);
}

/// Runs it on the fake engine with every report there is, each of which must fit its schema.
fn reported(project: &Project, arguments: &[&str]) -> (Ran, Value) {
    let mut all = arguments.to_vec();
    let reports: Vec<String> = ALL
        .iter()
        .map(|name| format!("{name}=report.{name}"))
        .collect();
    for report in &reports {
        all.extend(["--report", report]);
    }
    let ran = project.run(&all);
    (ran, valid(project))
}

/// What the JSON report says, after each of the reports was seen to fit its schema.
fn valid(project: &Project) -> Value {
    let json = |name: &str| -> Value { serde_json::from_str(&project.read(name)).unwrap() };
    let schema = |name: &str| -> Value { serde_json::from_str(&read(name)).unwrap() };
    let report = json("report.json");
    let found = json_violations(&schema("docs/report.schema.json"), &report);
    assert!(found.is_empty(), "{}", found.join("\n"));
    let sarif = json("report.sarif");
    let found = json_violations(&schema("tests/schemas/sarif-2.1.0.json"), &sarif);
    assert!(found.is_empty(), "{}", found.join("\n"));
    let junit = project.read("report.junit");
    let found = xml_violations(&read("tests/schemas/junit-10.xsd"), &junit);
    assert!(found.is_empty(), "{}\n{junit}", found.join("\n"));
    for line in project.read("report.github").lines() {
        assert!(is_workflow_command(line), "{line}");
    }
    report
}

/// `::word key=value,key=value::message`, with nothing in a value that ends it.
fn is_workflow_command(line: &str) -> bool {
    let words = ["error", "warning", "notice"];
    let Some((command, _)) = line
        .strip_prefix("::")
        .and_then(|rest| rest.split_once("::"))
    else {
        return false;
    };
    let Some((word, properties)) = command.split_once(' ') else {
        return false;
    };
    let keys = ["file", "line", "endLine", "col", "endColumn", "title"];
    let known = |property: &str| {
        let pair = property.split_once('=');
        pair.is_some_and(|(key, value)| keys.contains(&key) && !value.contains(':'))
    };
    words.contains(&word) && properties.split(',').all(known)
}

fn statuses(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let articles = report["articles"].as_array().unwrap().iter();
    articles
        .map(|one| (text(&one["article"]), text(&one["status"])))
        .collect()
}

#[test]
fn one_article_that_is_wrong_keeps_no_other_from_being_done_and_all_is_told() {
    let project = project(&[("fine", "[1](claim:one)"), ("off", "[2](claim:one)")]);
    write(
        &project,
        "a-mistake",
        &format!("{FRONT}{BODY}\n[1](claim:none)\n"),
    );
    let sql = BODY.replace("SELECT 1 AS one", "SELECT wrong");
    write(&project, "sql", &format!("{FRONT}{sql}\n[1](claim:one)\n"));
    let (ran, report) = reported(&project, &["build", "--engine", "fake:fake.yaml"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let expected = [
        ("a-mistake", "failed"),
        ("fine", "holds"),
        ("off", "does_not_hold"),
        ("sql", "failed"),
    ];
    let expected = expected.map(|(slug, status)| (slug.to_owned(), status.to_owned()));
    assert_eq!(statuses(&report), expected);
    assert_eq!(report["exit_code"], 2);
    for slug in ["fine", "off"] {
        assert!(project.path(&format!("out/{slug}/index.html")).exists());
    }
    for told in [
        "unknown claim `none`",
        "the quote of `one` does not hold",
        "column \"wrong\" does not exist",
        "1 of 4 articles is wrong: `a-mistake`",
    ] {
        assert!(ran.stderr.contains(told), "{told}\n{}", ran.stderr);
    }
    // What is wrong with one is told before the others take their time.
    let told = |text: &str| ran.stderr.find(text).unwrap();
    assert!(told("unknown claim `none`") < told("fine · profile full"));
    let github = project.read("report.github");
    for line in [
        "::error file=articles/a-mistake/article.md,line=16,",
        "::error file=articles/off/article.md,line=16,col=2,endColumn=3,title=off::",
        "::error file=articles/sql/article.md,line=8,col=8,endColumn=13,title=sql::",
    ] {
        assert!(github.contains(line), "{line}\n{github}");
    }
    let junit = project.read("report.junit");
    for suite in [
        "<testsuite name=\"a-mistake\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\">",
        "<testsuite name=\"fine\" tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"0\">",
        "<testsuite name=\"off\" tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\">",
        "<testsuite name=\"sql\" tests=\"2\" failures=\"0\" errors=\"1\" skipped=\"1\">",
    ] {
        assert!(junit.contains(suite), "{suite}\n{junit}");
    }
}

#[test]
fn the_heaviest_exit_code_is_that_of_the_command() {
    let lost = BODY.replace("SELECT 1 AS one", "SELECT slow");
    let wrong = BODY.replace("SELECT 1 AS one", "SELECT wrong");
    let text = |body: &str, quoted: &str| format!("{FRONT}{body}\n[{quoted}](claim:one)\n");
    let articles = [
        ("fine", text(BODY, "1"), 0),
        ("off", text(BODY, "2"), 3),
        ("mistake", text(&wrong, "1"), 2),
        ("lost", text(&lost, "1"), 4),
    ];
    // By weight, as the README has them.
    let order = [0, 3, 2, 4];
    for (index, (one, first, code)) in articles.iter().enumerate() {
        for (other, second, other_code) in &articles[index..] {
            let project = project(&[]);
            write(&project, one, first);
            write(&project, other, second);
            let ran = project.run(&["build", "--engine", "fake:fake.yaml"]);
            let heaviest = [code, other_code]
                .into_iter()
                .max_by_key(|code| order.iter().position(|weight| weight == *code));
            assert_eq!(
                ran.code,
                *heaviest.unwrap(),
                "{one}, {other}: {}",
                ran.stderr
            );
        }
    }
}

#[test]
fn a_report_is_there_whatever_a_command_came_to() {
    let fake = ["--engine", "fake:fake.yaml"];
    let with = |arguments: &[&'static str]| [arguments, &fake].concat();
    type Change = fn(&Project);
    let cases: [(Vec<&str>, Change, i32, &str); 9] = [
        (with(&["check"]), |_| {}, 0, ""),
        (vec!["check", "--recorded"], |_| {}, 5, "record"),
        (
            vec!["check", "--recorded"],
            |project| project.write("articles/a/record.json", "{\"format\": 99}"),
            5,
            "record",
        ),
        (
            with(&["build"]),
            |project| project.write("out", "a file in the way"),
            1,
            "internal",
        ),
        (
            with(&["build"]),
            |project| project.edit("SELECT 1", "SELECT wrong,"),
            2,
            "article",
        ),
        (
            with(&["build"]),
            |project| project.edit("claim:one", "claim:two"),
            2,
            "article",
        ),
        (with(&["build", "b"]), |_| {}, 2, "article"),
        (
            with(&["build"]),
            |project| fs::remove_dir_all(project.path("articles")).unwrap(),
            2,
            "article",
        ),
        (vec!["build"], |_| {}, 4, "engine"),
    ];
    for (arguments, change, code, cause) in cases {
        let project = project(&[("a", "[1](claim:one)")]);
        change(&project);
        let mut command = project.command(&arguments);
        for name in ALL {
            command.args(["--report", &format!("{name}=report.{name}")]);
        }
        command.env("REMEASURE_POSTGRES", project.path("none"));
        let ran = Ran::from(command.output().unwrap());
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        let report = valid(&project);
        assert_eq!(report["exit_code"], code, "{arguments:?}");
        let of_article = report["articles"].as_array().unwrap().iter();
        let of_article = of_article.flat_map(|one| one["problems"].as_array().unwrap());
        let problems: Vec<&Value> = report["problems"]
            .as_array()
            .unwrap()
            .iter()
            .chain(of_article)
            .collect();
        let found = problems
            .first()
            .map_or("", |problem| problem["cause"].as_str().unwrap());
        assert_eq!(found, cause, "{arguments:?}: {report}");
    }
}

#[test]
fn figures_of_any_characters_are_told_whole() {
    let quote =
        "2 <b> & \"q\" 'a' ]]> %0A ::error::x, y=z \u{7}\u{1b}[31m \u{202e} 漢 😀 `c` \\| |";
    let prose = format!(
        "[{}](claim:one)",
        quote.replace('[', "\\[").replace(']', "\\]")
    );
    let project = project(&[("µ % #", &prose)]);
    let (ran, report) = reported(&project, &["check", "--engine", "fake:fake.yaml"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let quoted = report["articles"][0]["verdicts"][0]["quoted"]
        .as_str()
        .unwrap();
    assert!(
        quoted.contains("]]> %0A ::error::x, y=z \u{7}\u{1b}[31m"),
        "{quoted}"
    );
    let junit = project.read("report.junit");
    let document = roxmltree::Document::parse(&junit).unwrap();
    let case = document
        .descendants()
        .find(|node| node.has_tag_name("testcase"))
        .unwrap();
    let shown = quoted.replace(['\u{7}', '\u{1b}'], "\u{fffd}");
    assert_eq!(
        case.attribute("name").unwrap(),
        format!("quote of one: {shown}")
    );
    let sarif: Value = serde_json::from_str(&project.read("report.sarif")).unwrap();
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    let uri = place["artifactLocation"]["uri"].as_str().unwrap();
    assert_eq!(uri, "articles/%C2%B5%20%25%20%23/article.md");
    assert_eq!(place["region"]["startColumn"], 2);
}

#[test]
fn no_message_of_an_article_is_a_workflow_command() {
    let project = project(&[("a", "[1](claim:one)")]);
    let answers = ANSWERS.replace(
        "'column \"wrong\" does not exist'",
        "\"b\\n::error title=x::y\"",
    );
    assert_ne!(answers, ANSWERS);
    project.write("fake.yaml", &answers);
    project.edit("SELECT 1 AS one", "SELECT wrong");
    let arguments = ["build", "--engine", "fake:fake.yaml", "--report", "github"];
    let mut command = project.command(&arguments);
    let ran = Ran::from(command.env("GITHUB_ACTIONS", "true").output().unwrap());
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains(": :error title=x::y"), "{}", ran.stderr);
    let commands = |text: &str| {
        text.lines()
            .filter(|line| line.trim_start().starts_with("::"))
            .count()
    };
    assert_eq!(commands(&ran.stderr), 0, "{}", ran.stderr);
    // The one of the report, and the sum.
    assert_eq!(commands(&ran.stdout), 2, "{}", ran.stdout);
}

#[test]
fn a_report_on_standard_output_is_all_there_is_on_it() {
    let project = project(&[("a", "[2](claim:one)")]);
    let base = ["check", "--engine", "fake:fake.yaml", "--report"];
    for name in ALL {
        let to_file = project.run(&[&base[..], &[&format!("{name}=a.report")]].concat());
        assert_eq!(to_file.code, 3, "{}", to_file.stderr);
        let whole = project.read("a.report");
        for way in [name.to_owned(), format!("{name}=-"), "--json".to_owned()] {
            let (arguments, way) = match &*way {
                "--json" if name != "json" => continue,
                "--json" => (&base[..3], way),
                _ => (&base[..], way),
            };
            let ran = project.run(&[arguments, &[&way]].concat());
            assert_eq!((ran.code, ran.stdout), (3, whole.clone()), "{way}");
            assert!(
                ran.stderr.contains("the quote of `one` does not hold"),
                "{}",
                ran.stderr
            );
        }
    }
}

#[test]
fn a_report_that_cannot_be_written_is_told_before_anything_is_measured() {
    let project = project(&[("a", "[1](claim:one)")]);
    project.write("folder/x", "");
    for (reports, told) in [
        (
            &["json=-", "junit"][..],
            "`--report junit=-` and `--report json=-` go to one place",
        ),
        (
            &["json=a", "junit=./folder/../a"],
            "`--report json=a` go to one place",
        ),
        (
            &["json=none/a"],
            "`--report json=none/a`: there is no folder `none`",
        ),
        (&["json=folder"], "`--report json=folder`: this is a folder"),
        (&["json=folder/x/y"], "nothing can be written in"),
        (&["json=folder/.."], "this is a folder"),
        (&["json="], "`--report json=` names no file"),
        (&["jsn"], "did you mean `json`?"),
        (
            &["json=articles/a/article.md"],
            "would overwrite the article",
        ),
    ] {
        let mut arguments = vec!["build", "--engine", "fake:fake.yaml"];
        for report in reports {
            arguments.extend(["--report", report]);
        }
        let ran = project.run(&arguments);
        assert_eq!(ran.code, 2, "{reports:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(told), "{reports:?}: {}", ran.stderr);
        assert!(!project.path(".remeasure").exists() && !project.path("out").exists());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_report_goes_through_links_and_into_devices_and_a_full_one_is_told() {
    let project = project(&[("a", "[2](claim:one)")]);
    fs::write(project.path("target"), "before").unwrap();
    std::os::unix::fs::symlink("target", project.path("link")).unwrap();
    let run = |reports: [&str; 2]| {
        let engine = ["build", "--engine", "fake:fake.yaml"];
        let reports = reports.map(|report| ["--report", report]).concat();
        project.run(&[&engine[..], &reports].concat())
    };
    let ran = run(["markdown=link", "json=/dev/null"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(project.path("link").is_symlink());
    assert!(project.read("target").starts_with("**a**: "));
    assert!(!Path::new("/dev/null").is_file());
    // The other report is written all the same, and the figure that does not hold is told.
    let ran = run(["json=/dev/full", "markdown=other"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("cannot write `/dev/full`: No space left"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("the quote of `one` does not hold"),
        "{}",
        ran.stderr
    );
    assert_eq!(project.read("other"), project.read("target"));
}
