//! What the README says is true: its article builds, its commands, flags, targets, exit codes and
//! files are there.

use crate::articles;
use crate::project::Project;
use remeasure::diagnostic::Diagnostic;
use remeasure::exit_code::{Failure, Outcome, number, weight};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

/// The content of the one fenced block that begins with `opening`.
fn block<'t>(text: &'t str, opening: &str) -> &'t str {
    let fence: String = opening.chars().take_while(|c| *c == '`').collect();
    let (_, rest) = text.split_once(&format!("\n{opening}\n")).expect(opening);
    let (content, _) = rest.split_once(&format!("\n{fence}\n")).unwrap();
    content
}

/// Rows of the table with this head, as cells.
fn table(text: &str, head: &str) -> Vec<Vec<String>> {
    text.lines()
        .skip_while(|line| *line != head)
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells = line.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect()
}

/// Everything in single backticks.
fn literals(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn its_article_builds_and_a_changed_digit_is_told_as_it_shows() {
    let readme = readme();
    let project = Project::empty();
    let path = "articles/example/article.md";
    let text = format!("{}\n", block(&readme, "````markdown"));
    project.write(path, &text);
    articles::read(&project.path(path));
    let holds = project.run(&["build"]);
    assert_eq!(holds.code, 0, "{}\n{}", holds.stdout, holds.stderr);
    let lint = project.run(&["lint"]);
    assert!(
        lint.stdout.contains("0 warnings") || lint.stdout.contains("0 warning(s)"),
        "{lint:?}"
    );

    assert_eq!(text.matches("[76 bytes]").count(), 1);
    project.write(path, &text.replace("[76 bytes]", "[96 bytes]"));
    let changed = project.run(&["build"]);
    assert_eq!(changed.code, 3, "{}", changed.stderr);
    let shown = block(&readme, "```text");
    assert!(
        changed.stderr.contains(shown),
        "{}\n{shown}",
        changed.stderr
    );
}

#[test]
fn its_commands_are_those_there_are() {
    let readme = readme();
    let project = Project::empty();
    let help = project.run(&["--help"]).stdout;
    let (_, listed) = help.split_once("Commands:\n").unwrap();
    let listed: Vec<&str> = listed
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    let rows = table(&readme, "| command | does |");
    let mut named = Vec::new();
    for row in &rows {
        let usage = row[0].trim_matches('`');
        let mut words = usage.split_whitespace();
        assert_eq!(words.next(), Some("remeasure"), "{usage}");
        let name = words.next().unwrap();
        named.push(name);
        let help = project.run(&[name, "--help"]);
        assert_eq!(help.code, 0, "{}", help.stderr);
        for literal in literals(&row[1]) {
            let flag = literal.split(' ').next().unwrap();
            let known = !flag.starts_with("--") || help.stdout.contains(flag);
            assert!(known, "{name} has no {flag}");
        }
    }
    let sorted = |mut names: Vec<&str>| {
        names.sort_unstable();
        names.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(sorted(named), sorted(listed));
    let catalogues = &rows.iter().find(|row| row[0].contains(" list ")).unwrap()[1];
    for catalogue in catalogues.split(", ") {
        let list = project.run(&["list", catalogue]);
        // A project without articles has none to list.
        assert!(list.code == 0 || catalogue == "articles", "{}", list.stderr);
    }
    for inline in literals(&readme) {
        if let Some(arguments) = inline.strip_prefix("remeasure list ")
            && arguments != "CATALOGUE"
        {
            assert_eq!(project.run(&["list", arguments]).code, 0, "{inline}");
        }
    }
}

#[test]
fn an_article_of_ones_own_comes_about_by_the_commands_shown() {
    let project = Project::empty();
    let readme = readme();
    let mut commands = Vec::new();
    for line in readme
        .lines()
        .filter_map(|line| line.strip_prefix("$ remeasure "))
    {
        let (command, _) = line.split_once('#').unwrap();
        let arguments: Vec<&str> = command.split_whitespace().collect();
        let ran = project.run(&arguments);
        assert_eq!(ran.code, 0, "{command}\n{}\n{}", ran.stdout, ran.stderr);
        match arguments[0] {
            "build" => assert!(ran.stdout.contains(" 0 do not hold"), "{}", ran.stdout),
            "lint" => assert!(ran.stdout.contains(" 0 warning"), "{}", ran.stdout),
            _ => (),
        }
        commands.push(arguments[0]);
    }
    assert_eq!(
        commands,
        ["new", "build", "lint", "build", "accept", "check"]
    );
    assert!(project.path("out/my-post/index.html").exists());
    assert!(project.path("articles/my-post/record.json").exists());
    // A second one of the same name would overwrite it.
    assert_eq!(project.run(&["new", "my-post"]).code, 2);
}

#[test]
fn its_make_targets_are_there() {
    let readme = readme();
    let makefile =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Makefile")).unwrap();
    let console = block(&readme, "```console");
    let shown = console.lines().filter_map(|line| line.strip_prefix("$ "));
    let named = literals(&readme)
        .into_iter()
        .filter(|word| word.starts_with("make "));
    let mut found = 0;
    for command in shown.chain(named) {
        let target = command.split_whitespace().nth(1).unwrap();
        assert!(makefile.contains(&format!("\n{target}:")), "{command}");
        found += 1;
    }
    assert!(found >= 3);
}

#[test]
fn its_exit_codes_are_those_of_the_program() {
    let codes: BTreeMap<u8, String> = table(&readme(), "| exit code | means |")
        .into_iter()
        .map(|row| (row[0].parse().unwrap(), row[1].clone()))
        .collect();
    let diagnostic = || Diagnostic::error("x");
    let interrupted = Failure::Interrupted {
        hint: String::new(),
    };
    let documented = [
        (Ok(Outcome::Holds), "everything holds"),
        (Err(Failure::Internal(diagnostic())), "a bug of ours"),
        (
            Err(Failure::article(diagnostic())),
            "the article or the arguments are wrong",
        ),
        (Ok(Outcome::DoesNotHold), "does not hold"),
        (Err(Failure::Engine(diagnostic())), "no Postgres"),
        (Ok(Outcome::RecordStale), "the record is missing or stale"),
        (Err(interrupted), "interrupted"),
    ];
    assert_eq!(codes.len(), documented.len());
    let mut heaviest: Vec<u8> = codes.keys().copied().collect();
    heaviest.sort_by_key(|code| std::cmp::Reverse(weight(*code)));
    let order: Vec<String> = heaviest.iter().map(u8::to_string).collect();
    assert!(
        readme().contains(&format!("\n{}.", order.join(", "))),
        "{order:?}"
    );
    for (result, words) in documented {
        let text = &codes[&number(&result)];
        assert!(text.contains(words), "{}: {text}", number(&result));
    }
}

#[test]
fn its_variables_and_paths_are_known() {
    let readme = readme();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for path in ["articles/pins.yaml", "articles/index-cost"] {
        assert!(readme.contains(path), "{path}");
        assert!(root.join(path).exists(), "{path}");
    }
    let help = Project::empty().run(&["doctor"]);
    assert_eq!(help.code, 0, "{}", help.stderr);
    assert!(readme.contains("`REMEASURE_POSTGRES`"));
}

#[test]
fn its_links_lead_to_files() {
    let readme = readme();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = 0;
    let mut missing = Vec::new();
    for (at, opening) in readme.match_indices("](") {
        let target = readme[at + opening.len()..].split(')').next().unwrap();
        // A quote of an example.
        if target.starts_with("claim:") {
            continue;
        }
        found += 1;
        if !root.join(target).exists() {
            missing.push(target);
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
    assert!(found >= 4);
}
