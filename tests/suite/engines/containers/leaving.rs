//! That nothing is left, whatever ends the program; and what was left all the same is found by whom
//! it belongs to. These count all containers there are, so nothing else may run beside them.

use super::{containers, listed, project};
use crate::project::{Project, Ran};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

type Left = (Vec<String>, Vec<String>, Vec<String>);

fn left() -> Left {
    let volumes = listed(&["volume", "ls", "-q"]);
    (containers(), volumes, listed(&["network", "ls", "-q"]))
}

/// Waits until only what was there before is left, and prints how long that took: less than two
/// seconds on a machine that is not busy with other tests.
fn nothing_more_than(before: &Left, after_what: &str) {
    let begun = Instant::now();
    while left() != *before {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{after_what} leaves {:?}",
            left()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    println!(
        "{after_what}: gone after {} ms",
        begun.elapsed().as_millis()
    );
}

const ARTICLE: &str = "---
title: T
postgres: {version: \"16.15\"}
---

```sql experiment sleep
--| matrix: {n: [1, 2, 3, 4, 5, 6]}
SELECT pg_sleep(0.2);
```
";

fn build(project: &Project) -> Command {
    let mut command = project.command(&["build", "a", "--engine", "docker", "--force"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// As it is once the image is pulled and initialised.
fn ready() -> (Project, Left) {
    let project = project(ARTICLE);
    assert!(build(&project).status().unwrap().success());
    (project, left())
}

#[test]
fn sigkill_leaves_no_container() {
    signals_leave_no_container(&[libc::SIGKILL]);
}

#[test]
fn sigint_leaves_no_container() {
    signals_leave_no_container(&[libc::SIGINT]);
}

#[test]
fn sigint_twice_leaves_no_container() {
    signals_leave_no_container(&[libc::SIGINT, libc::SIGINT]);
}

#[test]
fn sigterm_leaves_no_container() {
    signals_leave_no_container(&[libc::SIGTERM]);
}

#[test]
fn an_abort_leaves_no_container() {
    signals_leave_no_container(&[libc::SIGABRT]);
}

/// Sent at every stage of a start, and while something is measured.
fn signals_leave_no_container(signals: &[libc::c_int]) {
    let (project, before) = ready();
    for milliseconds in [20, 80, 150, 250, 400, 700, 1200] {
        let mut child = build(&project).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        for signal in signals {
            // SAFETY: the process is a child of ours that is not waited for yet.
            unsafe { libc::kill(child.id() as libc::pid_t, *signal) };
            std::thread::sleep(Duration::from_millis(30));
        }
        child.wait().unwrap();
        nothing_more_than(&before, &format!("{signals:?} after {milliseconds} ms"));
    }
}

#[test]
fn a_start_that_takes_too_long_leaves_no_container() {
    let (project, before) = ready();
    let mut command = project.command(&["build", "a", "--engine", "docker", "--force"]);
    command.env("REMEASURE_START_LIMIT", "0");
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("it was not ready within 0"),
        "{}",
        ran.stderr
    );
    nothing_more_than(&before, "a start beyond its limit");
}

/// Set in the process that [`a_panic_leaves_no_container`] starts.
const VICTIM: &str = "REMEASURE_TEST_VICTIM";

#[tokio::test]
async fn a_panic_leaves_no_container() {
    if std::env::var_os(VICTIM).is_some() {
        let server = super::start(&super::EngineChoice::Docker, "16.15").await;
        assert_eq!(containers().len(), 1);
        println!("\nvictim {}", server.storage());
        panic!("with a server that runs");
    }
    let (_project, before) = ready();
    let name = "engines::containers::leaving::a_panic_leaves_no_container";
    let victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(VICTIM, "1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&victim.stdout);
    assert!(printed.contains("victim "), "{victim:?}");
    assert!(!victim.status.success());
    nothing_more_than(&before, "a panic");
}

/// A label as runs write it, of this boot or another.
fn label(boot: &str, pid: u32, beginning: &str) -> String {
    let numbers = std::fs::read_link("/proc/self/ns/pid").unwrap();
    format!(
        "org.remeasure.run={boot}/{}/{pid}/{beginning}",
        numbers.display()
    )
}

fn boot() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    boot.trim().to_owned()
}

fn beginning(pid: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_whitespace().nth(19).unwrap().to_owned()
}

/// A container that never started, as a run leaves one that is killed while it is created.
fn stray(name: &str, label: &str) {
    let image = super::pin("16.15").image.unwrap();
    let repository = image.name.rsplit_once(':').unwrap().0.to_owned();
    let image = format!("{repository}@{}", image.digest);
    listed(&["create", "--name", name, "--label", label, &image]);
}

#[test]
fn what_dead_runs_left_is_cleaned_and_what_others_have_is_not() {
    let (project, before) = ready();
    let ours = std::process::id();
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let begun = beginning(ours);
    let strays = [
        ("stray-dead", label(&boot(), dead.id(), &begun)),
        // Its process has ended, and the number is another's now.
        ("stray-number", label(&boot(), ours, "1")),
    ];
    let others = [
        ("lives", label(&boot(), ours, &begun)),
        ("elsewhere", label("another-boot", dead.id(), &begun)),
        ("older", "org.remeasure.run=1".to_owned()),
    ];
    for (name, label) in strays.iter().chain(&others) {
        stray(name, label);
    }
    listed(&["volume", "create", "--label", &strays[0].1, "stray-volume"]);
    let names = || listed(&["ps", "-a", "--format", "{{.Names}}"]);

    let ran = project.run(&["clean", "--dry-run", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        ran.stdout.matches("\"kind\": \"container\"").count(),
        2,
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("\"name\": \"stray-volume\""),
        "{}",
        ran.stdout
    );
    assert_eq!(names().len(), 5);

    let ran = project.run(&["clean"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut kept = names();
    kept.sort();
    assert_eq!(kept, ["elsewhere", "lives", "older"]);
    assert!(!listed(&["volume", "ls", "-q"]).contains(&"stray-volume".to_owned()));

    // The next start does the same.
    stray(strays[0].0, &strays[0].1);
    assert!(build(&project).status().unwrap().success());
    let mut kept = names();
    kept.sort();
    assert_eq!(kept, ["elsewhere", "lives", "older"]);
    listed(&["rm", "--force", "--volumes", "elsewhere", "lives", "older"]);
    nothing_more_than(&before, "what was made for this test");
}
