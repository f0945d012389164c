//! A folder below `tests/articles/` is a test: an article, the command that is run on it, and
//! everything that comes out. `BLESS=1 cargo test --test cases` writes what came out as expected.
//!
//! | file | what |
//! |---|---|
//! | `article.md` | the article; other files beside it are copied along |
//! | `command` | arguments, one a line; `{case}` is the article, `{fake}` the engine that answers from `fake.yaml` |
//! | `expected/exit_code`, `stdout`, `stderr` | what the process gave; a missing file expects nothing |
//! | `expected/out/…` | files of the article's output that must be as they are |

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What differs from machine to machine, and what stands for it in expected files.
fn redacted(text: &str, project: &Path) -> String {
    let text = text.replace(&project.display().to_string(), "{project}");
    let version = env!("CARGO_PKG_VERSION");
    text.lines()
        .map(|line| line.replace(&format!("remeasure {version}"), "remeasure {version}"))
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            files.extend(files_below(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files.sort();
    files
}

/// What one case gave, by the name of its file below `expected/`.
fn run(case: &Path) -> BTreeMap<String, String> {
    let name = case.file_name().unwrap().to_str().unwrap();
    let project = tempfile::tempdir().unwrap();
    let article = project.path().join("articles").join(name);
    copy_folder(case, &article);
    fs::remove_dir_all(article.join("expected")).ok();
    let fake = format!("fake:{}", article.join("fake.yaml").display());
    let arguments = fs::read_to_string(case.join("command"))
        .unwrap_or_else(|_| "build\n{case}\n--engine\n{fake}\n".to_owned());
    let output = Command::new(env!("CARGO_BIN_EXE_remeasure"))
        .args(
            arguments
                .lines()
                .map(|line| line.replace("{case}", name).replace("{fake}", &fake)),
        )
        .current_dir(project.path())
        .env_remove("CI")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| redacted(&String::from_utf8_lossy(bytes), project.path());
    let mut given = BTreeMap::from([
        (
            "exit_code".to_owned(),
            format!("{}\n", output.status.code().unwrap_or(-1)),
        ),
        ("stdout".to_owned(), text(&output.stdout)),
        ("stderr".to_owned(), text(&output.stderr)),
    ]);
    let out = project.path().join("out").join(name);
    for file in files_below(&out) {
        let relative = file.strip_prefix(&out).unwrap().display().to_string();
        given.insert(format!("out/{relative}"), text(&fs::read(&file).unwrap()));
    }
    given
}

#[test]
fn every_case_gives_what_is_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/articles");
    let bless = std::env::var_os("BLESS").is_some();
    let mut cases: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    let mut wrong = Vec::new();
    for case in &cases {
        let expected = case.join("expected");
        let mut given = run(case);
        if bless {
            bless_case(&expected, &given);
        }
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        for file in files_below(&expected) {
            let relative = file.strip_prefix(&expected).unwrap().display().to_string();
            let wanted = fs::read_to_string(&file).unwrap();
            match given.remove(&relative) {
                Some(text) if text == wanted => {}
                Some(text) => wrong.push(format!(
                    "{name}: {relative} differs\n--- expected\n{wanted}\n--- given\n{text}"
                )),
                // An expected file that nothing gives is a mistake too.
                None => wrong.push(format!("{name}: nothing gave {relative}")),
            }
        }
        for required in ["exit_code", "stdout", "stderr"] {
            if given.get(required).is_some_and(|text| !text.is_empty()) {
                wrong.push(format!(
                    "{name}: {required} was not expected:\n{}",
                    given[required]
                ));
            }
        }
        // A run that failed leaves nothing behind.
        let failed = fs::read_to_string(expected.join("exit_code")).is_ok_and(|code| code == "2\n");
        if failed && let Some((file, _)) = given.iter().find(|(name, _)| name.starts_with("out/")) {
            wrong.push(format!("{name}: {file} was written though the run failed"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Writes the process's output, and of `out/` the files that are expected already.
fn bless_case(expected: &Path, given: &BTreeMap<String, String>) {
    for (name, text) in given {
        let path = expected.join(name);
        let process = !name.starts_with("out/");
        if process && text.is_empty() {
            fs::remove_file(&path).ok();
        } else if process || path.exists() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
        }
    }
}
