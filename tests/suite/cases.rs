//! A folder below `tests/articles/` is a test: an article, the command that is run on it, and
//! everything that comes out. `BLESS=1 cargo test --test suite cases` writes what came out as
//! expected; read the difference before it is committed.
//!
//! | file | what |
//! |---|---|
//! | `article.md` | the article; other files beside it are copied along |
//! | `command` | arguments, one a line; `{case}` is the article, `{fake}` the engine that answers from `fake.yaml`; default: `build` |
//! | `expected/exit_code`, `stdout`, `stderr` | what the process gave; a missing file expects nothing |
//! | `expected/out/…` | files of the article's output that must be as they are |

use crate::project::Project;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const THREADS: usize = 2;

/// What a fake server is asked by the tool itself, beside what the article asks.
const FAKE: &str = "
  - match: SELECT pg_catalog.setseed(*)
    rows: [[null]]
";

#[test]
fn every_case_gives_what_is_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/articles");
    let mut cases: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = differences(case);
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Runs one case and says what is not as expected.
fn differences(case: &Path) -> Vec<String> {
    let expected = case.join("expected");
    let mut given = run(case);
    if std::env::var_os("BLESS").is_some() {
        bless(&expected, &given);
    }
    let name = case.file_name().unwrap().to_string_lossy();
    let mut wrong = Vec::new();
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
        if let Some(text) = given.get(required).filter(|text| !text.is_empty()) {
            wrong.push(format!("{name}: {required} was not expected:\n{text}"));
        }
    }
    // A run that failed leaves nothing behind.
    let failed = fs::read_to_string(expected.join("exit_code")).is_ok_and(|code| code == "2\n");
    if failed && let Some(file) = given.keys().find(|name| name.starts_with("out/")) {
        wrong.push(format!("{name}: {file} was written though the run failed"));
    }
    wrong
}

/// What one case gave, by the name of its file below `expected/`.
fn run(case: &Path) -> BTreeMap<String, String> {
    let name = case.file_name().unwrap().to_str().unwrap();
    let project = Project::empty();
    let article = project.path("articles").join(name);
    copy_folder(case, &article);
    fs::remove_dir_all(article.join("expected")).ok();
    let answers = article.join("fake.yaml");
    if let Ok(text) = fs::read_to_string(&answers) {
        fs::write(&answers, format!("{}\n{FAKE}", text.trim_end())).unwrap();
    }
    let fake = format!("fake:articles/{name}/fake.yaml");
    let arguments = fs::read_to_string(case.join("command"))
        .unwrap_or_else(|_| "build\n{case}\n--engine\n{fake}\n".to_owned());
    let arguments: Vec<String> = arguments
        .lines()
        .map(|line| line.replace("{case}", name).replace("{fake}", &fake))
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = project.run(&arguments);
    let text = |text: &str| redacted(text, name);
    let mut given = BTreeMap::from([
        ("exit_code".to_owned(), format!("{}\n", ran.code)),
        ("stdout".to_owned(), text(&ran.stdout)),
        ("stderr".to_owned(), text(&ran.stderr)),
    ]);
    let out = project.path("out").join(name);
    for file in files_below(&out) {
        let relative = file.strip_prefix(&out).unwrap().display().to_string();
        let content = fs::read_to_string(&file).unwrap();
        given.insert(format!("out/{relative}"), text(&content));
    }
    given
}

/// What differs from run to run and machine to machine, and what stands for it in expected files.
fn redacted(text: &str, case: &str) -> String {
    let version = format!("remeasure {}", env!("CARGO_PKG_VERSION"));
    text.lines()
        .map(|line| {
            let mut line = line
                .replace(case, "{case}")
                .replace(&version, "remeasure {version}");
            // `  1/2 insert, cell 1: 0.3 s; 1 s so far, about 2 s left`
            if let Some((unit, _)) = line.split_once(" s; ")
                && let Some((unit, _)) = unit.rsplit_once(": ")
            {
                line = format!("{unit}: {{times}}");
            }
            if line.starts_with("  this one: ") {
                line = "  this one: {machine}".to_owned();
            }
            without_machine(&without_hashes(line.trim_end())) + "\n"
        })
        .collect()
}

/// Facts about the host, as a report in JSON has them.
fn without_machine(line: &str) -> String {
    const FACTS: [&str; 7] = [
        "cpu",
        "cores",
        "memory_bytes",
        "architecture",
        "kernel",
        "virtualization",
        "storage",
    ];
    let key = line
        .trim_start()
        .strip_prefix('"')
        .and_then(|rest| rest.split_once("\": "));
    match key {
        Some((key, _)) if FACTS.contains(&key) => {
            let indent = line.len() - line.trim_start().len();
            format!("{}\"{key}\": {{machine}}", &line[..indent])
        }
        _ => line.to_owned(),
    }
}

/// A sha256 in quotes is a host's or a server's.
fn without_hashes(line: &str) -> String {
    let is_hash = |part: &&str| part.len() == 64 && part.bytes().all(|b| b.is_ascii_hexdigit());
    let parts = line.split('"').map(|part| match is_hash(&part) {
        true => "{sha256}",
        false => part,
    });
    parts.collect::<Vec<_>>().join("\"")
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

/// Writes the process's output, and of `out/` the files that are expected already.
fn bless(expected: &Path, given: &BTreeMap<String, String>) {
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
