//! `accept` tells of quotes that do not hold against what it accepted, and `accept --quotes` writes
//! what was measured into them, touching nothing else.

use crate::project::{Project, Ran};
use std::fs;

/// With a byte order mark and Windows line ends, quoted from everywhere.
const ARTICLE: &str = "\u{feff}---\r
title: \"Loads \\\"[4 rows](claim:total)\\\"\"\r
description: >-\r
  It takes\r
  [9.50 kB](claim:bytes) for [4,000k](claim:many)\r
postgres: {version: \"16.15\"}\r
---\r
\r
```sql experiment load\r
--| instruments: [time]\r
--| caption: Loads [3 rows](claim:total)\r
SELECT 5 AS n;\r
```\r
\r
```sql claims c\r
--| total: {unit: rows, kind: exact}\r
SELECT sum(n) FROM measured.load;\r
--| bytes: {unit: B, kind: bounded, tolerance: 1%}\r
SELECT sum(n) * 2048 FROM measured.load;\r
--| many: {unit: rows, kind: bounded}\r
SELECT sum(n) * 1000000 FROM measured.load;\r
```\r
\r
| in | a table |  \r
|---|--:|\r
| [**7** rows](claim:total) | [5 rows](claim:total) |\r
\r
Trailing  \r
[8,023,5xx](claim:many) and [1\u{202f}000\u{202f}000 rows][many], [−4](claim:total)\t\r
[10 kB](claim:bytes)LABEL\r
\r
[many]: claim:many\r
";

const ANSWERS: &str = "
answers:
  - sql: SELECT 5 AS n
    columns: [n]
    types: [integer]
    rows: [[5]]
  - match: SELECT * FROM measured.\"load\"
    columns: [run, elapsed_ms, server_ms, rows_per_s, rows, n]
    types: [integer, double precision, double precision, double precision, numeric, integer]
    rows: [[1, 1, null, 1000, 1, 5]]
  - match: SELECT pg_catalog.setseed(*)
    rows: [[null]]
  - sql: SELECT sum(n) FROM measured.load
    types: [bigint]
    rows: [[5]]
  - sql: SELECT sum(n) * 2048 FROM measured.load
    types: [bigint]
    rows: [[10240]]
  - sql: SELECT sum(n) * 1000000 FROM measured.load
    types: [bigint]
    rows: [[5000000]]
  - sql: SELECT sum(n) > 7 FROM measured.load
    types: [boolean]
    rows: [[f]]
";

const FAKE: [&str; 2] = ["--engine", "fake:fake.yaml"];

/// `more`: what the article ends with.
fn project(more: &str) -> Project {
    let project = Project::empty();
    project.write("articles/a/article.md", &ARTICLE.replace("LABEL\r\n", more));
    project.write("fake.yaml", ANSWERS);
    let built = run(&project, &["build"]);
    assert_eq!(built.code, 3, "{}\n{}", built.stdout, built.stderr);
    project
}

fn run(project: &Project, arguments: &[&str]) -> Ran {
    project.run(&[arguments, &FAKE].concat())
}

fn article(project: &Project) -> String {
    project.read("articles/a/article.md")
}

/// Everything that holds stays, everything else in its own style.
fn expected(before: &str) -> String {
    let mut text = before.to_owned();
    for (old, new) in [
        ("[4 rows]", "[5 rows]"),
        ("[9.50 kB]", "[10.00 kB]"),
        ("[4,000k]", "[5,000k]"),
        ("[3 rows]", "[5 rows]"),
        ("[**7** rows]", "[**5** rows]"),
        ("[8,023,5xx]", "[5,000,0xx]"),
        (
            "[1\u{202f}000\u{202f}000 rows]",
            "[5\u{202f}000\u{202f}000 rows]",
        ),
        ("[−4]", "[5]"),
    ] {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        text = text.replace(old, new);
    }
    text
}

#[test]
fn quotes_are_rewritten_in_their_own_style_and_no_other_byte_is_touched() {
    let project = project("\r\n");
    let before = article(&project);
    let accepted = run(&project, &["accept", "--quotes"]);
    assert_eq!(accepted.code, 0, "{}", accepted.stderr);
    assert_eq!(accepted.stderr, "");
    assert_eq!(article(&project), expected(&before));
    for line in [
        "articles/a/article.md:2:18: 4 rows → 5 rows\n",
        "articles/a/article.md:5:4: 9.50 kB → 10.00 kB\n",
        "articles/a/article.md:26:4: 7 rows → 5 rows\n",
        "articles/a/article.md: 8 quotes rewritten\n",
    ] {
        assert!(accepted.stdout.contains(line), "{}", accepted.stdout);
    }

    // Prose is no input of any measurement: everything holds, and nothing runs.
    let holds = project.run(&["check", "--recorded"]);
    assert_eq!(holds.code, 0, "{}", holds.stderr);
    let again = run(&project, &["build"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stderr.contains("nothing changed"), "{}", again.stderr);

    let written = article(&project);
    let unchanged = run(&project, &["accept", "--quotes"]);
    assert_eq!(unchanged.code, 0, "{}", unchanged.stderr);
    assert!(unchanged.stdout.contains("no quote was rewritten"));
    assert_eq!(article(&project), written);
}

#[test]
fn accepting_alone_tells_of_quotes_that_do_not_hold_and_leaves_them() {
    let project = project("\r\n");
    let before = article(&project);
    let accepted = run(&project, &["accept"]);
    assert_eq!(accepted.code, 0, "{}", accepted.stderr);
    assert_eq!(article(&project), before);
    let told = &accepted.stderr;
    let warnings = told.matches("warning: the quote of").count();
    assert_eq!(warnings, 8, "{told}");
    for part in [
        "articles/a/article.md:2:18",
        "`remeasure accept a --quotes` writes what was measured",
    ] {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn what_only_the_author_can_rewrite_is_told_and_the_rest_is_rewritten() {
    let more = ", [more than seven](claim:ours), [6 rows][]\r\n\r\n[6 rows]: claim:total\r\n\r\n\
                ```sql claims d\r\n--| ours: {kind: exact}\r\nSELECT sum(n) > 7 FROM measured.load;\r\n```\r\n";
    let project = project(more);
    let before = article(&project);
    let accepted = run(&project, &["accept", "--quotes"]);
    assert_eq!(accepted.code, 3, "{}", accepted.stderr);
    assert_eq!(article(&project), expected(&before));
    assert!(
        accepted
            .stdout
            .contains("8 quotes rewritten, 2 left that cannot be"),
        "{}",
        accepted.stdout
    );
    // Where it stands in the file as it is now.
    let line = article(&project);
    let line = line.lines().nth(29).unwrap();
    let column = line[..line.find("more than").unwrap()].chars().count() + 1;
    let place = format!("articles/a/article.md:30:{column}");
    for part in [
        place.as_str(),
        "the quote of `ours` does not hold and cannot be rewritten",
        "the claim is false; write the sentence anew",
        "its text is the name of a link's definition too; write `[6 rows](claim:total)`",
    ] {
        assert!(accepted.stderr.contains(part), "{}", accepted.stderr);
    }
}

#[test]
#[cfg(unix)]
fn a_linked_file_stays_a_link_and_keeps_its_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let project = project("\r\n");
    let link = project.path("articles/a/article.md");
    let file = project.path("text.md");
    fs::rename(&link, &file).unwrap();
    symlink(&file, &link).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let accepted = run(&project, &["accept", "--quotes"]);
    assert_eq!(accepted.code, 0, "{}", accepted.stderr);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .contains("[−4]")
            .eq(&false)
    );
}
