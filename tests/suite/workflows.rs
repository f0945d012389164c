//! The workflow files of the README: they are YAML with the keys their systems know, actions are
//! pinned, and what they run can be run.

use crate::project::Project;
use crate::readme::readme;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Small, so that it is soon measured.
const ARTICLE: &str = "---
title: T
postgres: {version: \"16.15\"}
params: {rows: 20}
profiles: {quick: {rows: 10}}
---

```sql experiment e
--| instruments: [time]
SELECT count(*) AS n FROM generate_series(1, :rows);
```

```sql claims c
--| rows_counted: {kind: exact, profile: full}
SELECT n FROM measured.e;
```

There are [20 rows](claim:rows_counted).
";

/// Every block of YAML that is a workflow, with the file it is for.
fn workflows() -> Vec<(String, Value)> {
    let readme = readme();
    let blocks = readme.split("\n```yaml\n").skip(1);
    let files = readme.split("\n```yaml\n").map(|before| {
        let line = before.trim_end().rsplit("\n\n").next().unwrap();
        line.split('`')
            .find(|word| word.ends_with(".yml"))
            .unwrap_or_default()
            .to_owned()
    });
    let text = |block: &str| block.split("\n```\n").next().unwrap().to_owned();
    let read = |(file, block): (String, &str)| {
        let content: Value =
            serde_yaml::from_str(&text(block)).unwrap_or_else(|error| panic!("{file}: {error}"));
        (file, content)
    };
    files.zip(blocks).map(read).collect()
}

/// The workflow that measures in parts.
const PARTS: &str = ".github/workflows/parts.yml";

/// Those that judge a change.
fn judging() -> Vec<(String, Value)> {
    let all = workflows();
    all.into_iter().filter(|(file, _)| file != PARTS).collect()
}

/// Every shell script in it.
fn scripts(value: &Value, found: &mut Vec<String>) {
    const KEYS: [&str; 4] = ["run", "before_script", "script", "after_script"];
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                match value {
                    Value::String(script) if KEYS.contains(&key.as_str()) => {
                        found.push(script.clone())
                    }
                    Value::Array(lines) if KEYS.contains(&key.as_str()) => {
                        found.extend(lines.iter().map(|line| line.as_str().unwrap().to_owned()));
                    }
                    other => scripts(other, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| scripts(item, found)),
        _ => {}
    }
}

/// The commands of the scripts of one workflow, one a line.
fn commands(workflow: &Value) -> Vec<String> {
    let mut found = Vec::new();
    scripts(workflow, &mut found);
    let joined = found.iter().map(|script| script.replace("\\\n", " "));
    let lines = joined.flat_map(|script| script.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.filter(|line| !line.trim().is_empty()).collect()
}

#[test]
fn there_is_one_for_each_system_for_changes_and_for_every_night() {
    let all = workflows();
    let files: Vec<&str> = all.iter().map(|(file, _)| file.as_str()).collect();
    assert_eq!(
        files,
        [".github/workflows/figures.yml", ".gitlab-ci.yml", PARTS]
    );
    let github = &all[0].1;
    for event in ["pull_request", "schedule"] {
        assert!(github["on"].get(event).is_some(), "{event}");
    }
    let profile = github["jobs"]["figures"]["env"]["PROFILE"]
        .as_str()
        .unwrap();
    assert!(
        profile.contains("'schedule' && 'full' || 'quick'"),
        "{profile}"
    );
    let jobs = [github, &all[2].1].map(|workflow| workflow["jobs"].as_object().unwrap());
    let steps = (jobs.into_iter().flat_map(|jobs| jobs.values()))
        .flat_map(|job| job["steps"].as_array().unwrap());
    for step in steps {
        assert!(
            step.get("uses").is_some() != step.get("run").is_some(),
            "{step}"
        );
        if let Some(action) = step["uses"].as_str() {
            let (name, version) = action.split_once("@v").unwrap();
            assert!(
                name.contains('/') && version.parse::<u32>().is_ok(),
                "{action}"
            );
        }
    }
    let gitlab = &all[1].1["figures"];
    let rules: Vec<_> = gitlab["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| {
            (
                rule["if"].as_str().unwrap(),
                rule["variables"]["PROFILE"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        rules,
        [
            ("$CI_PIPELINE_SOURCE == \"merge_request_event\"", "quick"),
            ("$CI_PIPELINE_SOURCE == \"schedule\"", "full"),
        ]
    );
    assert_eq!(gitlab["artifacts"]["reports"]["junit"], "junit.xml");
    assert_eq!(gitlab["artifacts"]["when"], "always");
}

#[test]
fn what_they_run_is_there() {
    let makefile =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Makefile")).unwrap();
    for (file, workflow) in judging() {
        let commands = commands(&workflow);
        let targets: Vec<&str> = commands
            .iter()
            .filter_map(|line| line.trim().strip_prefix("make "))
            .collect();
        assert!(!targets.is_empty(), "{file}");
        for target in targets {
            assert!(
                makefile.contains(&format!("\n{target}:")),
                "{file}: make {target}"
            );
        }
        // The program is where the Makefile builds it.
        let program = makefile
            .lines()
            .find_map(|line| line.strip_prefix("REMEASURE = "))
            .unwrap();
        let uses = commands
            .iter()
            .filter(|line| line.contains("remeasure check"));
        assert!(
            uses.clone().count() > 0 && uses.clone().all(|line| line.trim().starts_with(program))
        );
    }
}

#[test]
fn what_they_run_judges_an_article_and_writes_its_reports() {
    let project = Project::empty();
    project.write("articles/first/article.md", ARTICLE);
    assert_eq!(project.run(&["build", "--quiet"]).code, 0);
    assert_eq!(project.run(&["accept"]).code, 0);
    fs::remove_dir_all(project.path("out")).unwrap();
    for (file, workflow) in judging() {
        for profile in ["quick", "full"] {
            for line in commands(&workflow)
                .iter()
                .filter(|line| line.contains("remeasure check"))
            {
                project.write("summary.md", "");
                let program = env!("CARGO_BIN_EXE_remeasure");
                let line = line.replace("target/release/remeasure", &format!("'{program}'"));
                let mut command = Command::new("sh");
                command.args(["-euc", &line]).current_dir(project.path("."));
                command.env("PROFILE", profile).env("CI", "true");
                command.env("REMEASURE_ENGINE", "embedded");
                command.env("GITHUB_STEP_SUMMARY", project.path("summary.md"));
                let output = command.output().unwrap();
                let said = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.code(), Some(0), "{file}: {line}\n{said}");
                let reports: Vec<String> = fs::read_dir(project.path("."))
                    .unwrap()
                    .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
                    .filter(|name| name.contains('.') && name != ".remeasure")
                    .collect();
                assert!(reports.contains(&"junit.xml".to_owned()), "{reports:?}");
                for report in reports {
                    let text = project.read(&report);
                    let is_written = report != "summary.md" || file.contains("github");
                    // A finding is all that SARIF names an article for.
                    if is_written && !report.ends_with(".sarif") {
                        assert!(text.contains("first"), "{file}: {report}: {text}");
                    }
                    fs::remove_file(project.path(&report)).unwrap();
                }
            }
        }
    }
    // Nothing is written but reports and what was measured.
    assert!(!project.path("out").exists());
}

/// What a job of the workflow runs, in a shell as GitHub's.
fn run_in(project: &Project, script: &str, variables: &[(&str, &str)]) -> Output {
    let program = env!("CARGO_BIN_EXE_remeasure");
    let script = script
        .replace("chmod +x target/release/remeasure\n", "")
        .replace("target/release/remeasure", &format!("'{program}'"));
    let mut command = Command::new("bash");
    command.args(["-eo", "pipefail", "-c", &script]);
    command.current_dir(project.path(".")).env("CI", "true");
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{script}\n{said}");
    output
}

#[test]
fn parts_that_its_jobs_measure_become_pages() {
    let all = workflows();
    let (_, workflow) = all.iter().find(|(file, _)| file == PARTS).unwrap();
    let job = |name: &str| -> String {
        let mut found = Vec::new();
        scripts(&workflow["jobs"][name], &mut found);
        found.retain(|script| script.contains("remeasure ") && !script.starts_with("cargo "));
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        found.remove(0)
    };
    let checked_out = || {
        let project = Project::empty();
        for slug in ["first", "second"] {
            let path = format!("articles/{slug}/article.md");
            project.write(&path, ARTICLE);
        }
        project
    };
    let project = checked_out();
    project.write("output", "");
    let output = project.path("output");
    let variable = ("GITHUB_OUTPUT", output.to_str().unwrap());
    run_in(&project, &job("plan"), &[variable]);
    let written = project.read("output");
    let (name, matrix) = written.trim_end().split_once('=').unwrap();
    assert_eq!(name, "matrix");
    let matrix: Value = serde_json::from_str(matrix).unwrap();
    let include = matrix["include"].as_array().unwrap();
    // Four were asked for; there is work for two.
    assert_eq!(include.len(), 2);
    for shard in include {
        let machine = checked_out();
        let asked = format!("{}/{}", shard["shard"], shard["shards"]);
        run_in(&machine, &job("measure"), &[("SHARD", &asked)]);
        // As `upload-artifact` and `download-artifact` carry them over.
        let experiment = shard["experiments"][0].as_str().unwrap();
        let (slug, _) = experiment.split_once('/').unwrap();
        let file = format!("shard-{}.json", asked.replace('/', "-of-"));
        let part = machine.read(&format!("out/{slug}/{file}"));
        project.write(&format!("parts/part-{}/{file}", shard["shard"]), &part);
    }
    run_in(&project, &job("merge"), &[]);
    for slug in ["first", "second"] {
        assert!(project.path(&format!("out/{slug}/index.html")).exists());
    }
    assert!(project.path("out/index.html").exists());
}
