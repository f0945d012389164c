//! What only containers have: that they are pulled by digest, limited, and gone with their maker.

mod failures;
mod leaving;

use super::{pin, start, tool, value};
use crate::project::Project;
use remeasure::engine::EngineChoice;
use remeasure::exit_code::Failure;
use std::process::Command;

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

/// A project with the article `a`, on the pins of these tests.
fn project(article: &str) -> Project {
    let project = Project::new(article);
    let pins = std::fs::read_to_string(super::pins_file()).unwrap();
    project.write("articles/pins.yaml", &pins);
    project
}

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
async fn there_may_be_processes_for_every_connection_that_settings_allow() {
    let choice = EngineChoice::Docker;
    let many = [("max_connections", "700")];
    let mut server = super::try_start(&choice, "16.15", &many).await.unwrap();
    let granted = |server: &remeasure::engine::Server| -> i64 {
        server.environment().container["processes"].parse().unwrap()
    };
    assert!(granted(&server) > 2 * 700);
    // More than the container was made for: it is allowed more.
    let more = super::settings(&[("max_connections", "3000")]);
    server.restart(&more).await.unwrap();
    let mut session = tool(&server).await;
    let allowed = "SELECT pg_read_file(name) FROM (VALUES ('/sys/fs/cgroup/pids.max'), \
                   ('/sys/fs/cgroup/pids/pids.max')) f (name) \
                   WHERE (pg_stat_file(name, true)).size IS NOT NULL";
    let allowed: i64 = value(&mut session, allowed).await.trim().parse().unwrap();
    assert!(allowed > 2 * 3000, "{allowed}");
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
