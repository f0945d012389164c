//! From start to stop: settings, restarts, and that nothing is left, whatever ends the tool.

use super::{author_in, settings, start, tool, try_start, value};
use remeasure::engine::session::{Role, SessionError};
use remeasure::engine::{EngineChoice, Server};
use remeasure::exit_code::Failure;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
pub async fn settings_are_the_articles(choice: EngineChoice, version: &str) {
    let wanted = [
        ("shared_buffers", "64MB"),
        ("max_wal_size", "4GB"),
        ("checkpoint_timeout", "30min"),
        ("search_path", "\"it's\", public"),
        ("my.text", "a\\b\nc"),
    ];
    let server = try_start(&choice, version, &wanted).await.unwrap();
    let mut session = tool(&server).await;
    for (name, wanted) in wanted {
        assert_eq!(value(&mut session, &format!("SHOW {name}")).await, wanted);
    }
    // Nothing is silently relaxed.
    for name in ["fsync", "full_page_writes", "synchronous_commit"] {
        assert_eq!(value(&mut session, &format!("SHOW {name}")).await, "on");
    }
    let environment = server.describe().await.unwrap();
    assert_eq!(environment.settings["max_wal_size"], "4GB");
    assert_eq!(environment.settings["shared_buffers"], "64MB");
    server.stop().await.unwrap();
}

pub async fn a_wrong_setting_is_the_articles_mistake(choice: EngineChoice, version: &str) {
    for (name, wrong, says) in [
        (
            "shared_bufers",
            "64MB",
            "unrecognized configuration parameter \"shared_bufers\"",
        ),
        (
            "work_mem",
            "4 miles",
            "invalid value for parameter \"work_mem\": \"4 miles\"",
        ),
        ("max_wal_size", "1kB", "outside the valid range"),
        (
            "shared_preload_libraries",
            "pg_prewarm, /tmp/x",
            "not the article's to set",
        ),
        (
            "archive_command",
            "touch /tmp/x",
            "not the article's to set",
        ),
    ] {
        match try_start(&choice, version, &[(name, wrong)]).await {
            Err(Failure::Article(problems)) => {
                assert_eq!(problems.len(), 1, "{problems:?}");
                assert!(problems[0].message.contains(says), "{problems:?}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

pub async fn a_restart_changes_settings_and_takes_them_back(choice: EngineChoice, version: &str) {
    let article = [("shared_buffers", "64MB"), ("work_mem", "8MB")];
    let mut server = try_start(&choice, version, &article).await.unwrap();
    let mut session = author_in(&server, "d").await;
    session
        .execute("CREATE TABLE t AS SELECT 1 AS a")
        .await
        .unwrap();
    let mut admin = tool(&server).await;
    admin
        .execute("ALTER SYSTEM SET max_connections = 50")
        .await
        .unwrap();

    let other = settings(&[
        ("shared_buffers", "32MB"),
        ("wal_level", "minimal"),
        ("max_wal_senders", "0"),
    ]);
    server.restart(&other).await.unwrap();
    assert!(matches!(
        session.execute("SELECT 1").await,
        Err(SessionError::Lost { .. })
    ));
    let mut session = server.connect("d", Role::Author).await.unwrap();
    assert_eq!(value(&mut session, "SELECT a FROM t").await, "1");
    for (name, expected) in [
        ("shared_buffers", "32MB"),
        ("work_mem", "8MB"),
        ("wal_level", "minimal"),
        ("max_connections", "100"),
    ] {
        assert_eq!(value(&mut session, &format!("SHOW {name}")).await, expected);
    }

    // A wrong one leaves a server that can be started again.
    let wrong = server.restart(&settings(&[("work_mem", "much")])).await;
    assert!(matches!(wrong, Err(Failure::Article(_))), "{wrong:?}");
    server.restart(&BTreeMap::new()).await.unwrap();
    let mut session = server.connect("d", Role::Author).await.unwrap();
    assert_eq!(value(&mut session, "SHOW shared_buffers").await, "64MB");
    assert_eq!(value(&mut session, "SHOW wal_level").await, "replica");
    server.stop().await.unwrap();
}

pub async fn nothing_is_left_after_stop(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    let mut session = author_in(&server, "d").await;
    let (pid, folder) = whereabouts(&server).await;
    assert!(is_alive(pid) && folder.is_dir());
    // A session that is busy does not hold it up.
    let busy = tokio::spawn(async move { session.execute("SELECT pg_sleep(60)").await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.stop().await.unwrap();
    assert!(!is_alive(pid));
    assert!(!folder.exists());
    assert!(matches!(
        busy.await.unwrap(),
        Err(SessionError::Lost { .. })
    ));
}

pub async fn nothing_is_left_after_drop(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    let (pid, folder) = whereabouts(&server).await;
    drop(server);
    assert!(!is_alive(pid));
    assert!(!folder.exists());
}

/// The postmaster's process and the run's folder.
async fn whereabouts(server: &Server) -> (i32, PathBuf) {
    let mut session = tool(server).await;
    let data = PathBuf::from(value(&mut session, "SHOW data_directory").await);
    let file = std::fs::read_to_string(data.join("postmaster.pid")).unwrap();
    let pid = file.lines().next().unwrap().parse().unwrap();
    session.close().await;
    (pid, data.parent().unwrap().to_owned())
}

fn is_alive(pid: i32) -> bool {
    // Signal 0 only asks; `kill` is everywhere.
    let kill = std::process::Command::new("kill")
        .args(["-0", &pid.to_string()])
        .output();
    kill.unwrap().status.success()
}

/// Set in the process that [`no_server_outlives_a_killed_tool`] kills.
const VICTIM: &str = "REMEASURE_TEST_VICTIM";

#[tokio::test]
async fn no_server_outlives_a_killed_tool() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let choice = EngineChoice::Embedded;
    if std::env::var_os(VICTIM).is_some() {
        let server = start(&choice, "16.15").await;
        let (pid, folder) = whereabouts(&server).await;
        println!("\nvictim {pid} {}", folder.display());
        tokio::time::sleep(Duration::from_secs(60)).await;
        return;
    }
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "engines::lifetime::no_server_outlives_a_killed_tool",
            "--nocapture",
        ])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let line = lines
        .map(|line| line.unwrap())
        .find(|line| line.starts_with("victim "))
        .expect("the victim tells where its server is");
    let (pid, folder) = line["victim ".len()..].split_once(' ').unwrap();
    let (pid, folder): (i32, _) = (pid.parse().unwrap(), PathBuf::from(folder));
    assert!(is_alive(pid) && folder.is_dir());

    victim.kill().unwrap();
    victim.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    while is_alive(pid) {
        assert!(Instant::now() < deadline, "the server is still there");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The next start, of whichever test, clears its folder away.
    start(&choice, "16.15").await.stop().await.unwrap();
    assert!(!folder.exists());
}
