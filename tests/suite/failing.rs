//! A fault at each stage: no server, a fetch that fails, a server that dies, values that cannot be
//! drawn or filled in, a disk that is full, files in the way. Each ends with its exit code and a
//! message with its place, and leaves what was there before: pages, record and measurements.

use crate::project::{Project, Ran};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ARTICLE: &str = "---
title: T
postgres: {version: \"16.15\"}
---

```sql experiment e
--| instruments: [time]
--| matrix: {n: [1, 2]}
SELECT :n AS v;
```

```sql claims c
--| most: {kind: exact}
SELECT max(v) FROM measured.e;
```

```sql chart ch
--| type: bar
--| x: n
--| y: v
--| alt: Two bars
SELECT n, v FROM measured.e;
```

The most is [2](claim:most).
";

const ANSWERS: &str = "answers:
  - {sql: SELECT 1 AS v, columns: [v], types: [integer], rows: [[1]]}
  - {sql: SELECT 2 AS v, columns: [v], types: [integer], rows: [[2]]}
  - {sql: SELECT max(v) FROM measured.e, types: [integer], rows: [[2]]}
  - sql: SELECT n, v FROM measured.e
    columns: [n, v]
    types: [integer, integer]
    rows: [[1, 1], [2, 2]]
  - match: SELECT pg_catalog.setseed(*)
    rows: [[null]]
";

const FAKE: [&str; 3] = ["build", "--engine", "fake:fake.yaml"];

/// A project that was built and accepted, and what was there then.
struct Before {
    project: Project,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Before {
    fn new() -> Self {
        let project = Project::new(ARTICLE);
        project.write("fake.yaml", ANSWERS);
        let ran = project.run(&FAKE);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let accepted = project.run(&["accept", "--engine", "fake:fake.yaml"]);
        assert_eq!(accepted.code, 0, "{}", accepted.stderr);
        let files = published(&project);
        assert!(files.len() > 6, "{:?}", files.keys());
        Self { project, files }
    }

    /// Fails as it says, with pages and record as they were and nothing half-written.
    fn fails(&self, ran: &Ran, code: i32, told: &[&str]) {
        assert_eq!(ran.code, code, "{}\n{}", ran.stdout, ran.stderr);
        for told in told {
            assert!(ran.stderr.contains(told), "{told}\n{}", ran.stderr);
        }
        let now = published(&self.project);
        let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&now), names(&self.files));
        assert!(now == self.files, "a page or the record was changed");
    }

    /// As it was before the fault, nothing has to be measured.
    fn nothing_is_lost(&self, text: &str) {
        self.project.write("articles/a/article.md", text);
        self.project.write("fake.yaml", ANSWERS);
        let ran = self.project.run(&FAKE);
        assert_eq!((ran.code, &*ran.stderr), (0, "a: nothing changed\n"));
    }
}

/// Pages, records and whatever else lies beside them, but for the article's text.
fn published(project: &Project) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for folder in ["out", "articles/a"] {
        below(&project.path(folder), &mut files);
    }
    files.remove(&project.path("articles/a/article.md"));
    files
}

fn below(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            below(&path, files);
        } else {
            let content = fs::read(&path).unwrap();
            files.insert(path, content);
        }
    }
}

// ---- engine -----------------------------------------------------------------------------------

/// Pins whose archives nobody has.
fn pins_without_hash(wheel: bool, archive: bool) -> String {
    let pins = Path::new(env!("CARGO_MANIFEST_DIR")).join("articles/pins.yaml");
    let pins = fs::read_to_string(pins).unwrap();
    let changed = |line: &str| {
        let key = line.trim_start();
        let is = |name: &str, asked: bool| asked && key.starts_with(&format!("{name}: "));
        match is("wheel", wheel) || is("archive", archive) {
            true => format!("{}: {}\n", line.split(": ").next().unwrap(), "0".repeat(64)),
            false => format!("{line}\n"),
        }
    };
    pins.lines().map(changed).collect()
}

#[test]
fn without_a_server_nothing_is_lost() {
    let before = Before::new();
    let project = &before.project;
    let run = |variables: &[(&str, PathBuf)], arguments: &[&str]| {
        let mut command =
            project.command(&[&["build", "--engine", "embedded"], arguments].concat());
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        Ran::from(command.output().unwrap())
    };
    let nowhere = project.path("nowhere");
    let ran = run(&[("REMEASURE_POSTGRES", nowhere.clone())], &[]);
    before.fails(
        &ran,
        4,
        &[
            "REMEASURE_POSTGRES: `",
            "nowhere`: No such file",
            "article.md:3:21",
            "hint: ",
        ],
    );

    // Neither pip's count of the wheel nor ours of the archive in it is the pin's.
    for (wheel, archive) in [(true, true), (false, true)] {
        project.write("articles/pins.yaml", &pins_without_hash(wheel, archive));
        let ran = run(&[], &[]);
        let told = "is not what pins.yaml names; it was thrown away";
        before.fails(&ran, 4, &[told, "expected sha256 0000", "article.md:3:21"]);
    }
    let ran = run(&[], &["--offline"]);
    before.fails(
        &ran,
        4,
        &[
            "`--offline` forbids to fetch it",
            "hint: run once without `--offline`",
        ],
    );
    let ran = run(&[("PATH", nowhere)], &[]);
    before.fails(
        &ran,
        4,
        &[
            "cannot fetch Postgres 16.15",
            "`python3` is not installed",
            "hint: install python3",
        ],
    );
    before.nothing_is_lost(ARTICLE);
}

/// Builds until the second of three cells, kills a process of the server, and goes on. `of` gives
/// the process: of the postmaster and the backend that measures.
#[cfg(target_os = "linux")]
fn a_server_that_dies(of: impl Fn(u32, u32) -> u32) {
    use crate::interrupted::{self, Started};
    let project = Project::new(interrupted::ARTICLE);
    let started = Started::new(&project);
    let postmaster = started.server[0];
    let deadline = Instant::now() + Duration::from_secs(20);
    let is_measuring = |pid: &u32| interrupted::command_line(*pid).ends_with("SELECT");
    let backend = loop {
        let backends = interrupted::children(postmaster);
        if let Some(backend) = backends.into_iter().find(is_measuring) {
            break backend;
        }
        assert!(Instant::now() < deadline, "no statement is run");
        std::thread::sleep(Duration::from_millis(5));
    };
    let victim = of(postmaster, backend).to_string();
    let kill = std::process::Command::new("kill")
        .args(["-s", "KILL", &victim])
        .status();
    assert!(kill.unwrap().success());
    let (status, said) = started.ended();
    assert_eq!(status.code(), Some(4), "{said}");
    // The postmaster's end may be noticed between two statements: then the experiment is told.
    let at_the_statement = [
        "the server went away",
        "article.md:8:1",
        "in `measure` of experiment `slow`",
    ];
    let at_the_experiment = ["the connection to Postgres is lost", "article.md:6:19"];
    let tells = |all: &[&str]| all.iter().all(|told| said.contains(told));
    assert!(
        tells(&at_the_statement) || tells(&at_the_experiment),
        "{said}"
    );
    assert!(!project.path("out").exists());
    interrupted::goes_on(&project);
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_that_is_killed_is_told_at_its_place_and_the_next_build_goes_on() {
    a_server_that_dies(|postmaster, _| postmaster);
}

#[test]
#[cfg(target_os = "linux")]
fn a_backend_that_is_killed_takes_the_run_with_it_and_the_next_build_goes_on() {
    a_server_that_dies(|_, backend| backend);
}

// ---- values -----------------------------------------------------------------------------------

#[test]
fn what_cannot_be_shown_is_told_at_its_place_and_its_measurement_is_kept() {
    let before = Before::new();
    let rows = "rows: [[1, 1], [2, 2]]";
    let claim = "SELECT max(v) FROM measured.e, types: [integer], rows: [[2]]";
    let faults = [
        (
            ("--| x: n\n", "--| x: n\n--| log: y\n"),
            (rows, "rows: [[1, 0], [2, 2]]"),
            &["article.md:21:8", "`v` is 0 in row 1"][..],
        ),
        (
            ("--| alt: Two bars", "--| alt: Two bars, drawn"),
            (rows, "rows: [[1, 1], [2, NaN]]"),
            &["article.md:20:8", "`v` is NaN in row 2"],
        ),
        (
            ("kind: exact", "kind: exact, unit: B"),
            (
                claim,
                "SELECT max(v) FROM measured.e, types: [integer], rows: [[null]]",
            ),
            &["article.md:13:5", "claim `most` gives NULL"],
        ),
        (
            ("The most", "{{ most | fixed(1) }} The most"),
            (
                claim,
                "SELECT max(v) FROM measured.e, types: [boolean], rows: [[t]]",
            ),
            &["article.md:25:"],
        ),
    ];
    for (index, (edit, answers, told)) in faults.into_iter().enumerate() {
        assert_eq!(ARTICLE.matches(edit.0).count(), 1, "{edit:?}");
        assert!(ANSWERS.contains(answers.0), "{answers:?}");
        let text = ARTICLE.replace(edit.0, edit.1);
        // Another query is another analysis.
        let from = format!("{}FROM", " ".repeat(index + 2));
        let text = text.replace(" FROM", &from);
        before.project.write("articles/a/article.md", &text);
        before
            .project
            .write("fake.yaml", &ANSWERS.replace(answers.0, answers.1));
        let ran = before.project.run(&FAKE);
        before.fails(&ran, 2, told);
        assert!(
            ran.stderr
                .contains("e  kept: nothing it depends on changed"),
            "{}",
            ran.stderr
        );
    }
    before.nothing_is_lost(ARTICLE);
}

// ---- disk -------------------------------------------------------------------------------------

/// What a disk says that is full, really or by a limit.
const FULL: [&str; 2] = ["No space left on device", "File too large"];

/// Runs the program twice in the project's folder: first when no file may grow beyond some ten kB,
/// then without a limit. The limit needs no rights, the small file system may.
fn on_a_full_disk(project: &Project, folder: &str, arguments: &[&str]) -> Vec<(Ran, Ran)> {
    let command = |script: &str| {
        let mut command = std::process::Command::new("sh");
        command
            .args(["-c", script, env!("CARGO_BIN_EXE_remeasure")])
            .args(arguments);
        command
    };
    let limited = "trap '' XFSZ; ulimit -f 32; exec \"$0\" \"$@\"";
    let free = "exec \"$0\" \"$@\"";
    let in_project = |mut command: std::process::Command| {
        let free_of_ci = command
            .current_dir(project.path("."))
            .env_remove("CI")
            .env("REMEASURE_ENGINE", "embedded")
            .env("NO_COLOR", "1");
        Ran::from(free_of_ci.output().unwrap())
    };
    let mut both = vec![(in_project(command(limited)), in_project(command(free)))];
    let may_mount = std::process::Command::new("unshare")
        .args(["-rm", "true"])
        .output();
    if may_mount.is_ok_and(|output| output.status.success()) {
        fs::remove_dir_all(project.path(folder)).ok();
        fs::create_dir_all(project.path(folder)).unwrap();
        let script = format!(
            "mount -t tmpfs -o size=32k none {folder} || exit 90
             \"$0\" \"$@\" >first.out 2>first.err; echo $? >first.code
             find {folder} -name '.writing-*' >left
             mount -o remount,size=64m {folder} || exit 91
             exec \"$0\" \"$@\""
        );
        let mut command = std::process::Command::new("unshare");
        command
            .args(["-rm", "sh", "-c", &script, env!("CARGO_BIN_EXE_remeasure")])
            .args(arguments);
        let second = in_project(command);
        assert!(!project.read("first.code").is_empty(), "{}", second.stderr);
        assert_eq!(project.read("left"), "");
        let first = Ran {
            code: project.read("first.code").trim().parse().unwrap(),
            stdout: project.read("first.out"),
            stderr: project.read("first.err"),
        };
        both.push((first, second));
    }
    both
}

fn is_told_full(ran: &Ran, file: &str) {
    assert_eq!(ran.code, 1, "{}\n{}", ran.stdout, ran.stderr);
    let told = ran.stderr.lines().any(|line| {
        line.starts_with("error: cannot write `")
            && line.contains(file)
            && FULL.iter().any(|why| line.contains(why))
    });
    assert!(told, "{}", ran.stderr);
}

#[test]
#[cfg(target_os = "linux")]
fn a_disk_that_is_full_while_measuring_keeps_the_cells_before() {
    let project = Project::new(ARTICLE);
    let wide = format!(
        "SELECT 2 AS v, columns: [v, pad], types: [integer, text], rows: [[2, {}]]",
        "x".repeat(100_000)
    );
    let answers = ANSWERS.replace(
        "SELECT 2 AS v, columns: [v], types: [integer], rows: [[2]]",
        &wide,
    );
    assert_ne!(answers, ANSWERS);
    // Both cells have the same columns.
    let answers = answers.replace(
        "SELECT 1 AS v, columns: [v], types: [integer], rows: [[1]]",
        "SELECT 1 AS v, columns: [v, pad], types: [integer, text], rows: [[1, x]]",
    );
    project.write("fake.yaml", &answers);
    for (full, after) in on_a_full_disk(&project, ".remeasure", &FAKE) {
        is_told_full(&full, ".measuring.jsonl`");
        assert_eq!(after.code, 0, "{}", after.stderr);
        let on = "e  runs: interrupted; goes on after its first cell";
        assert!(after.stderr.contains(on), "{}", after.stderr);
        fs::remove_dir_all(project.path("out")).ok();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_disk_that_is_full_while_pages_are_written_leaves_each_whole() {
    let before = Before::new();
    let project = &before.project;
    project.edit("The most is", "The very most is");
    // So that no page fits.
    let words = "word ".repeat(10_000);
    project.edit("The very most", &format!("{words}\n\nThe very most"));
    for (full, after) in on_a_full_disk(project, "out", &FAKE) {
        is_told_full(&full, "index.html`");
        assert_eq!(after.code, 0, "{}", after.stderr);
        assert!(
            after.stderr.contains("a: nothing changed"),
            "{}",
            after.stderr
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_record_that_cannot_be_written_is_the_one_before() {
    let before = Before::new();
    let project = &before.project;
    project.edit("kind: exact", "kind: exact, unit: B");
    assert_eq!(project.run(&FAKE).code, 0);
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" accept --engine fake:fake.yaml";
    let record = project.read("articles/a/record.json");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_remeasure")]);
    let ran = Ran::from(
        command
            .current_dir(project.path("."))
            .env_remove("CI")
            .output()
            .unwrap(),
    );
    is_told_full(&ran, "articles/a/record.json`");
    assert_eq!(project.read("articles/a/record.json"), record);
    let mut files = BTreeMap::new();
    below(&project.path("articles/a"), &mut files);
    assert_eq!(files.len(), 2, "{:?}", files.keys());
    assert_eq!(
        project.run(&["accept", "--engine", "fake:fake.yaml"]).code,
        0
    );
    assert_ne!(project.read("articles/a/record.json"), record);
}

#[test]
fn files_in_the_way_are_told_and_left() {
    let before = Before::new();
    let project = &before.project;
    project.edit("The most is", "The very most is");
    let page = project.path("out/a/index.html");
    let text = fs::read(&page).unwrap();
    fs::remove_file(&page).unwrap();
    project.write("out/a/index.html/mine", "mine");
    let ran = project.run(&FAKE);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("cannot write `./out/a/index.html`"),
        "{}",
        ran.stderr
    );
    assert_eq!(project.read("out/a/index.html/mine"), "mine");
    fs::remove_dir_all(&page).unwrap();
    fs::write(&page, text).unwrap();
    assert!(
        published(project) == before.files,
        "another page was changed"
    );

    project.write(".remeasure/a/e/x", "");
    fs::remove_dir_all(project.path(".remeasure/a/e")).unwrap();
    project.write(".remeasure/a/e", "a file where a folder has to be");
    let ran = project.run(&[&FAKE[..], &["--force"]].concat());
    before.fails(&ran, 1, &["cannot write `./.remeasure/a/e/"]);
    fs::remove_file(project.path(".remeasure/a/e")).unwrap();
    before.nothing_is_lost(ARTICLE);
}
