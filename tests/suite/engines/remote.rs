//! A container daemon on another machine, by tcp, TLS and ssh: what runs there is measured and
//! described as there, and leaves nothing. `.ci/remote` stands for the machine.

mod proxy;

use super::{author_in, sql_error, start, tool, value};
use crate::project::{Project, Ran, experiment, measured};
use proxy::Proxy;
use remeasure::engine::EngineChoice;
use remeasure::engine::session::Role;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The folder that `.ci/remote start` has filled.
fn far() -> PathBuf {
    std::env::var_os("REMEASURE_TEST_REMOTE")
        .expect("`make test-remote` needs what `.ci/remote` starts")
        .into()
}

fn socket() -> PathBuf {
    far().join("docker.sock")
}

/// A way there: what the program is told of it.
struct Way {
    name: &'static str,
    variables: Vec<(&'static str, String)>,
}

impl Way {
    fn bare(proxy: &Proxy) -> Self {
        let host = format!("tcp://127.0.0.1:{}", proxy.port);
        Self {
            name: "tcp",
            variables: vec![("DOCKER_HOST", host)],
        }
    }

    fn tls() -> Self {
        let host = format!("tcp://127.0.0.1:{}", port("tls-port"));
        let certificates = far().join("certificates").display().to_string();
        Self {
            name: "tcp with TLS",
            variables: vec![
                ("DOCKER_HOST", host),
                ("DOCKER_TLS_VERIFY", "1".to_owned()),
                ("DOCKER_CERT_PATH", certificates),
            ],
        }
    }

    fn ssh() -> Self {
        Self {
            name: "ssh",
            variables: vec![
                (
                    "DOCKER_HOST",
                    format!("ssh://127.0.0.1:{}", port("ssh-port")),
                ),
                ("PATH", path_with(&far().join("bin"))),
            ],
        }
    }

    fn command(&self, project: &Project, more: &[&str]) -> Command {
        let mut arguments = vec!["build", "a", "--engine", "docker"];
        arguments.extend(more);
        let mut command = project.command(&arguments);
        for name in ["DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"] {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().cloned());
        command
    }

    fn build(&self, project: &Project) -> Ran {
        Ran::from(self.command(project, &[]).output().unwrap())
    }
}

fn path_with(folder: &Path) -> String {
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

fn port(name: &str) -> String {
    let text = std::fs::read_to_string(far().join(name)).unwrap();
    text.trim().to_owned()
}

fn project(article: &str) -> Project {
    let project = Project::new(article);
    let pins = std::fs::read_to_string(super::pins_file()).unwrap();
    project.write("articles/pins.yaml", &pins);
    project
}

/// Containers and volumes there.
fn left() -> Vec<String> {
    let listed = |arguments: &[&str]| {
        let output = Command::new("docker")
            .arg("--host")
            .arg(format!("unix://{}", socket().display()))
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut all = listed(&["ps", "-aq"]);
    all.extend(listed(&["volume", "ls", "-q"]));
    all
}

/// Two seconds on a machine that is not busy with other tests.
fn nothing_is_left(after_what: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !left().is_empty() {
        assert!(
            Instant::now() < deadline,
            "{after_what} leaves {:?}",
            left()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn every_way_leads_to_the_same_machine_which_is_not_this_one() {
    let proxy = Proxy::new(&socket(), Duration::ZERO);
    let mut hosts = Vec::new();
    for way in [Way::bare(&proxy), Way::tls(), Way::ssh()] {
        let project = project("```sql experiment e\nSELECT 1;\n```\n");
        let ran = way.build(&project);
        assert_eq!(ran.code, 0, "{}: {}", way.name, ran.stderr);
        assert!(ran.stderr.contains("a round trip of"), "{}", ran.stderr);
        let environment = project.record().environment;
        assert_eq!(environment.server.network.unwrap().way, way.name);
        // The data lies there on a file system of that name, and nowhere else.
        assert_eq!(environment.host.storage, "tmpfs on remeasure-remote");
        assert_ne!(environment.host.cpu, "unknown");
        assert!(environment.host.cores > 0);
        hosts.push(environment.host.sha256);
        nothing_is_left(way.name);
    }
    hosts.dedup();
    assert_eq!(hosts.len(), 1, "{hosts:?}");
}

#[test]
fn a_login_that_forwards_no_sockets_runs_a_program_for_each_connection() {
    let folder = tempfile::tempdir().unwrap();
    // What asks to forward fails, as it does where the server does not allow it.
    let ssh = far().join("bin/ssh");
    let script = format!(
        "#!/bin/sh\nfor word; do [ \"$word\" != forward ] || exit 1; done\nexec {} \"$@\"\n",
        ssh.display()
    );
    let program = folder.path().join("ssh");
    std::fs::write(&program, script).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, executable).unwrap();
    let mut way = Way::ssh();
    way.variables.push(("PATH", path_with(folder.path())));
    let project = project("```sql experiment e\nSELECT 1;\n```\n");
    let ran = way.build(&project);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    nothing_is_left("ssh without forwarding");
}

#[test]
fn no_measured_time_has_the_network_in_it() {
    let proxy = Proxy::new(&socket(), Duration::from_millis(30));
    let project = project(TIMED);
    let ran = Way::bare(&proxy).build(&project);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record = project.record();
    let network = record.environment.server.network.as_ref().unwrap();
    let round_trip: f64 = network.round_trip_ms.parse().unwrap();
    assert!(round_trip >= 60.0, "{network:?}");
    let page = project.read("out/a/index.html");
    assert!(page.contains(&format!("a round trip of {} ms", network.round_trip_ms)));

    let times = |id: &str, column: &str| -> Vec<f64> {
        let texts = measured(&record, id, column);
        texts.iter().map(|text| text.parse().unwrap()).collect()
    };
    for (id, statements) in [
        ("nothing", 1.0),
        ("open", 3.0),
        ("fails", 1.0),
        ("many", 103.0),
    ] {
        for elapsed in times(id, "elapsed_ms") {
            assert!(elapsed > 0.0, "{id}");
            let trips = round_trip * statements;
            assert!(elapsed * 4.0 < trips, "{id}: {elapsed} of {trips} ms");
        }
    }
    let doubts = |id: &str| -> Vec<String> {
        let doubts = &experiment(&record, id).doubts;
        doubts.iter().map(|doubt| doubt.kind.clone()).collect()
    };
    for (id, kind, doubted) in [
        ("large", "network-results", true),
        ("nothing", "network-results", false),
        ("unwatched", "network-time", true),
        ("many", "network-time", false),
    ] {
        assert_eq!(doubts(id).contains(&kind.to_owned()), doubted, "{id}");
    }
    // Where only the client's clock is left, it is told with the network in it.
    assert!(times("unwatched", "elapsed_ms")[0] >= round_trip / 2.0);
}

const TIMED: &str = "
```sql experiment nothing
--| runs: 3
SELECT 1;
```
```sql experiment open
BEGIN;
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
SELECT 1;
```
```sql experiment fails
--| expect_error: \"22012\"
SELECT 1 / 0;
```
```sql experiment many
SELECT format('SELECT %s', i) FROM generate_series(1, 102) i \\gexec
```
```sql experiment large
SELECT repeat('x', 1000) FROM generate_series(1, 200);
```
```sql experiment unwatched
--| settings: {track_activities: off}
SELECT 1;
```
";

#[test]
fn a_network_that_breaks_is_told_keeps_what_is_measured_and_leaves_nothing() {
    let project = project(
        "```sql experiment slow\n--| matrix: {n: [1, 2, 3, 4]}\nSELECT pg_sleep(0.5);\n```\n",
    );
    let proxy = Proxy::new(&socket(), Duration::ZERO);
    let mut child = Way::bare(&proxy)
        .command(&project, &[])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    for line in lines.by_ref() {
        said.push_str(&line.unwrap());
        if said.contains("1/4 slow") {
            break;
        }
    }
    proxy.cut();
    said.extend(lines.map(|line| line.unwrap() + "\n"));
    assert_eq!(child.wait().unwrap().code(), Some(4), "{said}");
    assert!(said.contains("connection"), "{said}");
    nothing_is_left("a network that broke");

    let ran = Way::bare(&Proxy::new(&socket(), Duration::ZERO)).build(&project);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("1/4 slow"), "{}", ran.stderr);
    assert_eq!(
        measured(&project.record(), "slow", "n"),
        ["1", "2", "3", "4"]
    );
}

#[test]
fn whatever_ends_the_program_nothing_is_left_there() {
    let proxy = Proxy::new(&socket(), Duration::from_millis(5));
    let project =
        project("```sql experiment e\n--| matrix: {n: [1, 2, 3, 4]}\nSELECT pg_sleep(0.2);\n```\n");
    for way in [Way::bare(&proxy), Way::tls(), Way::ssh()] {
        let build = || {
            way.command(&project, &["--force"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        for (signal, after) in [
            (libc::SIGKILL, 250),
            (libc::SIGKILL, 500),
            (libc::SIGKILL, 900),
            (libc::SIGKILL, 1500),
            (libc::SIGINT, 700),
            (libc::SIGTERM, 2000),
        ] {
            let mut child = build();
            std::thread::sleep(Duration::from_millis(after));
            // SAFETY: the process is a child of ours that is not waited for yet.
            unsafe { libc::kill(child.id() as libc::pid_t, signal) };
            child.wait().unwrap();
            nothing_is_left(&format!("{}, signal {signal} after {after} ms", way.name));
        }
    }
}

#[test]
fn a_machine_that_is_not_reached_is_told_and_not_replaced() {
    let other = tempfile::tempdir().unwrap();
    for file in ["cert.pem", "key.pem"] {
        std::fs::copy(
            far().join("certificates").join(file),
            other.path().join(file),
        )
        .unwrap();
    }
    // Not who has signed the daemon's.
    std::fs::copy(
        far().join("certificates/client.pem"),
        other.path().join("ca.pem"),
    )
    .unwrap();
    let tls = port("tls-port");
    let plain = format!("tcp://127.0.0.1:{tls}");
    let certificates = other.path().display().to_string();
    let nowhere = tempfile::tempdir().unwrap();
    let without = nowhere.path().display().to_string();
    for (variables, said) in [
        (vec![("DOCKER_HOST", "tcp://127.0.0.1:1")], "refused"),
        (
            vec![("DOCKER_HOST", "ssh://127.0.0.1:1")],
            "ssh: connect to host",
        ),
        (vec![("DOCKER_HOST", "ssh://me:secret@big")], "use a key"),
        (vec![("DOCKER_HOST", plain.as_str())], "HTTPS server"),
        (
            vec![
                ("DOCKER_HOST", plain.as_str()),
                ("DOCKER_CERT_PATH", &certificates),
            ],
            "certificate",
        ),
        (
            vec![
                ("DOCKER_HOST", plain.as_str()),
                ("DOCKER_CERT_PATH", &without),
            ],
            "ca.pem",
        ),
    ] {
        let way = Way {
            name: "none",
            variables: (variables.into_iter())
                .map(|(name, value)| (name, value.to_owned()))
                .collect(),
        };
        let project = project("```sql experiment e\nSELECT 1;\n```\n");
        let ran = way.build(&project);
        assert_eq!(ran.code, 4, "{}", ran.stderr);
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
        assert!(!project.path("out").exists());
    }
}

#[tokio::test]
async fn many_sessions_go_through_the_daemon_and_end_with_their_owners() {
    const PROCESSES: &str =
        "SELECT count(*) FROM pg_ls_dir('/proc') AS name WHERE name ~ '^[0-9]+$'";
    const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'author'";
    for version in ["16.15", "18.6"] {
        let server = start(&EngineChoice::Docker, version).await;
        let mut observer = tool(&server).await;
        let mut first = author_in(&server, "d").await;
        assert!(first.is_elsewhere() && first.is_contained());
        let processes: u32 = value(&mut observer, PROCESSES).await.parse().unwrap();

        let mut sessions = Vec::new();
        for _ in 0..80 {
            sessions.push(server.connect("d", Role::Author).await.unwrap());
        }
        for (number, session) in sessions.iter_mut().enumerate() {
            let answer = value(session, &format!("SELECT {number}")).await;
            assert_eq!(answer, number.to_string());
        }
        assert_eq!(value(&mut observer, SESSIONS).await, "81");

        // A large result comes whole, and a statement that takes too long is stopped there.
        let large = "SELECT repeat(chr(64 + g % 60), 1000) FROM generate_series(1, 20000) AS g";
        let result = first.execute(large).await.unwrap();
        assert_eq!(result.rows.len(), 20_000);
        let rows = result.rows.iter().flatten().flatten();
        assert!(
            rows.zip(1_u8..=255)
                .all(|(row, g)| row.len() == 1000 && row.bytes().all(|byte| byte == 64 + g % 60))
        );
        assert!(first.received_bytes().unwrap() > 20_000_000);
        let stopped = first.execute_within("SELECT pg_sleep(600)", Duration::from_millis(200));
        let error = sql_error(stopped.await);
        assert!(error.timed_out && error.sqlstate == "57014");
        assert_eq!(value(&mut first, "SELECT 1").await, "1");

        drop(sessions);
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let open = value(&mut observer, SESSIONS).await;
            let now: u32 = value(&mut observer, PROCESSES).await.parse().unwrap();
            // A worker of the server may have come or gone.
            if open == "1" && now <= processes + 2 {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "{open} sessions, {now} processes"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        server.stop().await.unwrap();
    }
}
