//! A run that is interrupted leaves no server, keeps what it has measured, and goes on from there.
#![cfg(target_os = "linux")]

use crate::project::{Project, Ran, measured};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The second cell takes long enough to be interrupted in.
pub const ARTICLE: &str = "
```sql experiment slow
--| matrix: {n: [1, 2, 3]}
SELECT pg_sleep(CASE :n WHEN 2 THEN 1.5 ELSE 0 END);
SELECT clock_timestamp()::text AS at;
```
";

/// A build that has measured its first cell and is in the middle of the second.
pub struct Started {
    build: Child,
    stderr: BufReader<std::process::ChildStderr>,
    /// The server and every process below it.
    pub server: Vec<u32>,
    folder: PathBuf,
}

impl Started {
    pub fn new(project: &Project) -> Self {
        let mut build = project
            .command(&[
                "build",
                "--engine",
                "embedded",
                "--report",
                "json=report.json",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(build.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("1/3 slow, cell 1") {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "the build ended");
        }
        let below_build = children(build.id());
        let server: Vec<u32> = below_build
            .iter()
            .copied()
            .filter(|pid| {
                command_line(*pid).starts_with("postgres")
                    || command_line(*pid).contains("/postgres")
            })
            .collect();
        assert_eq!(server.len(), 1, "{below_build:?}");
        let line = command_line(server[0]);
        let data = line
            .split_once("-D ")
            .unwrap()
            .1
            .split(" -")
            .next()
            .unwrap();
        let folder = Path::new(data).parent().unwrap().to_owned();
        assert!(folder.is_dir(), "{line}");
        let mut all = server.clone();
        all.extend(children(server[0]));
        assert!(all.len() > 3, "{all:?}");
        Self {
            build,
            stderr,
            server: all,
            folder,
        }
    }

    /// Sends the signal to the tool alone and waits for its end.
    fn signalled(self, signal: &str) -> (ExitStatus, String) {
        let pid = self.build.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.unwrap().success());
        let folder = self.folder.clone();
        let ended = self.ended();
        if signal != "KILL" {
            assert!(!folder.exists(), "{} is left", folder.display());
        }
        ended
    }

    /// Waits for its end, and sees that nothing of the server is left.
    pub fn ended(mut self) -> (ExitStatus, String) {
        let status = self.build.wait().unwrap();
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.server.iter().any(|pid| is_alive(*pid)) {
            assert!(Instant::now() < deadline, "a server process is left");
            std::thread::sleep(Duration::from_millis(10));
        }
        (status, said)
    }
}

pub fn children(parent: u32) -> Vec<u32> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name is in parentheses and may hold anything.
            let (_, fields) = stat.rsplit_once(") ")?;
            let found: u32 = fields.split(' ').nth(1)?.parse().ok()?;
            (found == parent).then_some(pid)
        })
        .collect()
}

pub fn command_line(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    text.trim_end().to_owned()
}

/// A process that has ended and is not waited for yet counts as gone.
pub fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, fields)| !fields.starts_with('Z'))
    })
}

/// The one file that holds what is measured of the experiment.
fn stored(project: &Project) -> PathBuf {
    let folder = project.path(".remeasure/a/slow");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

/// Builds on, and checks that only the cells that were missing are measured.
pub fn goes_on(project: &Project) {
    let before = fs::read_to_string(stored(project)).unwrap();
    let ran = project.build();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("slow  runs: interrupted; goes on after its first cell"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("1/2 slow, cell 2"), "{}", ran.stderr);
    let record = project.record();
    let at = measured(&record, "slow", "at");
    assert_eq!(at.len(), 3);
    assert!(before.contains(&at[0]), "the first cell was measured again");
    assert!(!before.contains(&at[1]));
    assert_eq!(project.build().stderr, "a: nothing changed\n");
}

#[test]
fn ctrl_c_stops_the_server_and_the_next_build_goes_on() {
    let project = Project::new(ARTICLE);
    let (status, said) = Started::new(&project).signalled("INT");
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("error: interrupted"), "{said}");
    assert!(
        said.contains("the same command goes on from there: remeasure build a --engine embedded"),
        "{said}"
    );
    assert!(!project.path("out").exists());
    let report: serde_json::Value = serde_json::from_str(&project.read("report.json")).unwrap();
    assert_eq!(report["exit_code"], 130);
    let article = &report["articles"][0];
    assert_eq!(article["status"], "failed");
    assert_eq!(article["problems"][0]["cause"], "interrupted");
    goes_on(&project);
}

#[test]
fn a_request_to_terminate_is_like_ctrl_c() {
    let project = Project::new(ARTICLE);
    let (status, said) = Started::new(&project).signalled("TERM");
    assert_eq!(status.code(), Some(130), "{said}");
    goes_on(&project);
}

#[test]
fn killed_in_the_middle_it_leaves_no_server_and_the_next_build_goes_on() {
    let project = Project::new(ARTICLE);
    let started = Started::new(&project);
    let folder = started.folder.clone();
    let (status, _) = started.signalled("KILL");
    assert_eq!(status.code(), None);
    // As if it had been killed while it wrote the second cell down.
    let file = stored(&project);
    let mut text = fs::read_to_string(&file).unwrap();
    let torn: String = text.lines().last().unwrap().chars().take(40).collect();
    text.push_str(&torn);
    fs::write(&file, text).unwrap();
    goes_on(&project);
    assert!(!folder.exists(), "{} is left", folder.display());
}

#[test]
fn a_build_that_waits_takes_over_from_one_that_is_killed() {
    let project = Project::new(ARTICLE);
    let first = Started::new(&project);
    let mut second = project
        .command(&["build"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(second.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let holder = format!("measuring (process {}); waiting", first.build.id());
    assert!(line.contains(&holder), "{line}");
    first.signalled("KILL");
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(0), "{said}");
    assert!(said.contains("goes on after its first cell"), "{said}");
    assert_eq!(measured(&project.record(), "slow", "at").len(), 3);
}

#[test]
fn cells_that_build_on_one_another_begin_again() {
    let article = ARTICLE.replace("--| matrix", "--| fresh: never\n--| matrix");
    let project = Project::new(&article);
    let (status, said) = Started::new(&project).signalled("INT");
    assert_eq!(status.code(), Some(130), "{said}");
    let before = fs::read_to_string(stored(&project)).unwrap();
    let ran = project.build();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("starts over"), "{}", ran.stderr);
    assert!(ran.stderr.contains("3/3 slow, cell 3"), "{}", ran.stderr);
    let at = measured(&project.record(), "slow", "at");
    assert!(at.iter().all(|at| !before.contains(at)), "{at:?}");
}

#[test]
fn two_builds_at_once_measure_once() {
    let project = Project::new(ARTICLE);
    let spawn = || {
        project
            .command(&["build"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let both = [spawn(), spawn()];
    let both = both.map(|build| Ran::from(build.wait_with_output().unwrap()));
    for ran in &both {
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let measuring = both
        .iter()
        .filter(|ran| ran.stderr.contains("3/3 slow"))
        .count();
    assert_eq!(measuring, 1, "{both:?}");
    let waiting = |ran: &&Ran| {
        ran.stderr
            .contains("another build of this article is measuring")
    };
    assert_eq!(both.iter().filter(waiting).count(), 1, "{both:?}");
    assert_eq!(both[0].stdout, both[1].stdout);
    assert_eq!(measured(&project.record(), "slow", "at").len(), 3);
}
