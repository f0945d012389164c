//! What only containers have: that they are pulled by digest, limited, and gone with their maker.

mod failures;

use super::{pin, start, tool, value};
use crate::project::Project;
use remeasure::engine::EngineChoice;
use remeasure::exit_code::Failure;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What the daemon's own client lists.
fn listed(arguments: &[&str]) -> Vec<String> {
    let output = Command::new("docker").args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn containers() -> Vec<String> {
    listed(&["ps", "-aq", "--filter", "label=org.remeasure.run"])
}

fn left() -> (Vec<String>, Vec<String>, Vec<String>) {
    let volumes = listed(&["volume", "ls", "-q"]);
    (containers(), volumes, listed(&["network", "ls", "-q"]))
}

/// Waits until only what was there before is left: less than two seconds on a machine that is not
/// busy with other tests.
fn nothing_more_than(before: &(Vec<String>, Vec<String>, Vec<String>), after_what: &str) {
    let deadline = Instant::now() + Duration::from_secs(15);
    while left() != *before {
        assert!(
            Instant::now() < deadline,
            "{after_what} leaves {:?}",
            left()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A project with the article `a`, on the pins of these tests.
fn project(article: &str) -> Project {
    let project = Project::new(article);
    let pins = std::fs::read_to_string(super::pins_file()).unwrap();
    project.write("articles/pins.yaml", &pins);
    project
}

// One test, as it counts all containers there are.
#[test]
fn whatever_ends_the_program_no_container_is_left() {
    let project = project(ARTICLE);
    let build = |project: &Project| {
        let mut command = project.command(&["build", "a", "--engine", "docker", "--force"]);
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    // The image is pulled and initialised.
    assert!(build(&project).wait().unwrap().success());
    let before = left();
    for signal in [libc::SIGKILL, libc::SIGINT, libc::SIGTERM] {
        for milliseconds in [20, 60, 120, 200, 350, 600, 1000, 1500] {
            let mut child = build(&project);
            std::thread::sleep(Duration::from_millis(milliseconds));
            // SAFETY: the process is a child of ours that is not waited for yet.
            unsafe { libc::kill(child.id() as libc::pid_t, signal) };
            child.wait().unwrap();
            nothing_more_than(&before, &format!("signal {signal} after {milliseconds} ms"));
        }
    }
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

#[tokio::test]
async fn a_wrong_digest_is_told() {
    let mut pin = pin("16.15");
    pin.image.as_mut().unwrap().digest = format!("sha256:{}", "0".repeat(64));
    let request = remeasure::engine::StartRequest {
        pin: &pin,
        settings: &super::settings(&[]),
        limits: remeasure::engine::Limits::default(),
        cache: &remeasure::engine::default_cache(),
        offline: false,
        progress: &|_| {},
    };
    match remeasure::engine::start(&EngineChoice::Docker, &request).await {
        Err(Failure::Engine(problem)) => {
            let text = problem.render(false);
            assert!(text.contains("cannot be pulled"), "{text}");
            assert!(text.contains("pins.yaml"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn limits_are_granted_and_read_back() {
    let limits = remeasure::engine::Limits {
        memory: Some("1GB"),
        cpus: Some("1.5"),
        shm_size: Some("96MB"),
        ..remeasure::engine::Limits::default()
    };
    let request = remeasure::engine::StartRequest {
        pin: &pin("16.15"),
        settings: &super::settings(&[]),
        limits,
        cache: &remeasure::engine::default_cache(),
        offline: false,
        progress: &|_| {},
    };
    let server = remeasure::engine::start(&EngineChoice::Docker, &request)
        .await
        .unwrap();
    let container = server.environment().container;
    assert_eq!(container["memory_bytes"], (1_u64 << 30).to_string());
    assert_eq!(container["cpus"], "1.5");
    assert_eq!(container["shm_bytes"], (96_u64 << 20).to_string());
    assert!(container["image"].starts_with("sha256:"));
    server.stop().await.unwrap();
}

#[tokio::test]
async fn the_container_has_no_network_and_no_privilege() {
    let server = start(&EngineChoice::Docker, "16.15").await;
    let mut session = tool(&server).await;
    let read = |path: &str| format!("SELECT pg_read_file('{path}')");
    let status = value(&mut session, &read("/proc/self/status")).await;
    for (name, expected) in [("CapEff", "0000000000000000"), ("NoNewPrivs", "1")] {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.ends_with(expected), "{line}");
    }
    let interfaces = value(&mut session, &read("/proc/net/dev")).await;
    assert!(!interfaces.contains("eth0"), "{interfaces}");
    server.stop().await.unwrap();
}
