//! What goes wrong in a container that runs: told with its reason, at its place, with what to do; and
//! the program ends.

use super::containers;
use crate::project::{Project, Ran};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// An article of one statement, on the pins of these tests.
fn article(postgres: &str, statement: &str) -> Project {
    let text = format!(
        "---\ntitle: T\npostgres: {{version: \"16.15\", {postgres}}}\n---\n\n\
         ```sql experiment e\nSELECT 1;\n{statement};\n```\n"
    );
    super::project(&text)
}

fn build(project: &Project) -> Ran {
    project.run(&["build", "a", "--engine", "docker"])
}

#[track_caller]
fn tells(ran: &Ran, code: i32, told: &[&str]) {
    assert_eq!(ran.code, code, "{}", ran.stderr);
    for told in told {
        assert!(ran.stderr.contains(told), "{told}\n{}", ran.stderr);
    }
}

#[test]
fn a_backend_that_is_killed_for_want_of_memory_is_told_with_the_limit_to_raise() {
    let project = article(
        "memory: 192MB, settings: {shared_buffers: 16MB}",
        "SELECT length(string_agg(repeat(md5(g::text), 100), '')) FROM generate_series(1, 300000) g",
    );
    tells(
        &build(&project),
        4,
        &[
            "article.md:8:1",
            "the server went away",
            "for want of memory",
            "was terminated by signal 9",
            "limited to 201326592 bytes: raise `postgres: memory`",
        ],
    );
}

#[test]
fn a_parallel_index_build_beyond_the_shared_memory_is_told_with_the_size_to_raise() {
    let project = article(
        "shm_size: 1088kB, settings: {max_parallel_maintenance_workers: 4, \
         min_parallel_table_scan_size: 0, maintenance_work_mem: 256MB}",
        "CREATE TABLE t AS SELECT g FROM generate_series(1, 10000) g;\nCREATE INDEX ON t (g)",
    );
    tells(
        &build(&project),
        2,
        &[
            "article.md:9:1",
            "SQLSTATE 53100",
            "could not resize shared memory segment",
            "raise `postgres: shm_size`",
        ],
    );
}

#[test]
fn a_server_that_has_too_little_shared_memory_to_start_is_told_with_the_size_to_raise() {
    let project = article("shm_size: 128kB", "SELECT 2");
    tells(
        &build(&project),
        4,
        &[
            "Postgres does not start",
            "could not resize shared memory segment",
            "raise `postgres: shm_size`",
        ],
    );
}

#[test]
fn a_container_that_somebody_removes_is_told_and_the_program_ends() {
    let project = article("memory: 1GB", "SELECT pg_sleep(600)");
    let mut command = project.command(&["build", "a", "--engine", "docker"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let container = loop {
        assert!(Instant::now() < deadline, "no container sleeps");
        if let [container] = containers().as_slice()
            && sleeps(container)
        {
            break container.clone();
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let removed = Command::new("docker")
        .args(["rm", "-f", &container])
        .output()
        .unwrap();
    assert!(removed.status.success(), "{removed:?}");
    let begun = Instant::now();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!(begun.elapsed() < Duration::from_secs(60));
    tells(
        &ran,
        4,
        &[
            "article.md:8:1",
            "the server went away",
            "the container is gone: somebody has removed it",
        ],
    );
}

/// Whether the article's last statement runs, which the title of its process tells.
fn sleeps(container: &str) -> bool {
    let titles = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '";
    let output = Command::new("docker")
        .args(["exec", container, "sh", "-c", titles])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).contains("SELECT")
}
