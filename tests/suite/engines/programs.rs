//! psql and pgbench of the very server, in a folder of their own.

use super::{author_in, start, tool, value};
use remeasure::engine::program::{Completed, Content, Invocation, Program, Workspace};
use remeasure::engine::session::Role;
use remeasure::engine::{EngineChoice, Server};
use std::io::Read;
use std::time::{Duration, Instant};

const DATABASE: &str = "of programs";

struct Ran {
    status: Option<i32>,
    timed_out: bool,
    stdout: String,
    stderr: String,
}

async fn run(
    server: &Server,
    workspace: &Workspace,
    program: Program,
    arguments: &[&str],
    timeout: Option<Duration>,
) -> Ran {
    let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
    let session = [
        ("work_mem".to_owned(), "5MB".to_owned()),
        ("my.own".to_owned(), "two words".to_owned()),
    ];
    let invocation = Invocation {
        program,
        database: DATABASE,
        arguments: &arguments,
        session: &session,
        timeout,
    };
    let Completed {
        status,
        timed_out,
        mut stdout,
        stderr,
    } = server.run(workspace, &invocation).await.unwrap();
    let mut text = String::new();
    stdout.read_to_string(&mut text).unwrap();
    Ran {
        status,
        timed_out,
        stdout: text,
        stderr,
    }
}

pub async fn programs_of_the_server_run_as_the_author(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    let mut session = author_in(&server, DATABASE).await;
    let workspace = server.workspace().await.unwrap();
    psql_runs_scripts(&server, &workspace, version).await;
    psql_reads_and_writes_its_files(&server, &workspace).await;
    psql_runs_nothing_else(&server, &workspace, &choice).await;
    pgbench_logs(&server, &workspace).await;
    let transactions = value(&mut session, "SELECT count(*) FROM pgbench_history").await;
    assert_eq!(transactions, "20");
    a_program_that_takes_too_long_is_ended(&server, &workspace).await;
    server.discard(workspace).await;
    server.stop().await.unwrap();
}

async fn psql_runs_scripts(server: &Server, workspace: &Workspace, version: &str) {
    let script = "SELECT current_user, current_setting('work_mem'), current_setting('my.own'),\n\
                  current_database(), current_setting('server_version') LIKE :'version' || '%';\n";
    let put = Content::Bytes(script.as_bytes());
    server.put(workspace, "a/b.sql", put).await.unwrap();
    let named = format!("version={version}");
    let arguments = ["-XAt", "-v", &named, "-f", "a/b.sql"];
    let ran = run(server, workspace, Program::Psql, &arguments, None).await;
    assert_eq!(ran.stderr, "");
    assert_eq!(ran.stdout, "author|5MB|two words|of programs|t\n");
    assert_eq!((ran.status, ran.timed_out), (Some(0), false));

    let version_of = ["--version"];
    for program in [Program::Psql, Program::Pgbench] {
        let ran = run(server, workspace, program, &version_of, None).await;
        assert!(
            ran.stdout.contains(&format!(" {version}")),
            "{}",
            ran.stdout
        );
    }
    let wrong = ["-X", "-c", "SELECT nope"];
    let ran = run(server, workspace, Program::Psql, &wrong, None).await;
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stderr.contains("column \"nope\" does not exist"),
        "{}",
        ran.stderr
    );
}

async fn psql_reads_and_writes_its_files(server: &Server, workspace: &Workspace) {
    let rows: String = (1..=200_000).map(|row| format!("{row}\tx\n")).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &rows).unwrap();
    let content = Content::File(file.path());
    server.put(workspace, "rows.txt", content).await.unwrap();
    let script = "CREATE TABLE t (a int, b text);\n\\copy t FROM 'rows.txt'\n\
                  \\copy (SELECT a, b FROM t ORDER BY a) TO 'again.txt'\n";
    let put = Content::Bytes(script.as_bytes());
    server.put(workspace, "copy.sql", put).await.unwrap();
    let arguments = ["-X", "-v", "ON_ERROR_STOP=1", "-f", "copy.sql"];
    let ran = run(server, workspace, Program::Psql, &arguments, None).await;
    assert_eq!(
        ran.stdout, "CREATE TABLE\nCOPY 200000\nCOPY 200000\n",
        "{}",
        ran.stderr
    );
    let mut again = String::new();
    for mut file in server.take(workspace, "again.txt").await.unwrap() {
        file.read_to_string(&mut again).unwrap();
    }
    assert!(again == rows, "{} bytes came back", again.len());
    let mut left = String::new();
    for mut file in server.take(workspace, "again.txt").await.unwrap() {
        file.read_to_string(&mut left).unwrap();
    }
    assert_eq!(left, "", "what is taken is gone");
}

/// What an article cannot even say (it is refused when it is read) does not work either.
async fn psql_runs_nothing_else(server: &Server, workspace: &Workspace, choice: &EngineChoice) {
    if *choice == EngineChoice::Docker {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(outside.path(), open).unwrap();
    let at = outside.path().display();
    let script = format!(
        "\\! touch {at}/shell\nSELECT 1 \\g |touch {at}/pipe\n\
         \\copy (SELECT 1) TO program 'touch {at}/program'\n\\set x `touch {at}/backquote`\n\
         \\copy (SELECT 1) TO '{at}/file'\nCOPY (SELECT 1) TO PROGRAM 'touch {at}/server';\n\
         \\copy (SELECT 1) TO 'inside'\n"
    );
    let put = Content::Bytes(script.as_bytes());
    server.put(workspace, "bad.sql", put).await.unwrap();
    let ran = run(
        server,
        workspace,
        Program::Psql,
        &["-X", "-f", "bad.sql"],
        None,
    )
    .await;
    assert!(
        ran.stdout.ends_with("COPY 1\n"),
        "{}\n{}",
        ran.stdout,
        ran.stderr
    );
    let mut made: Vec<String> = std::fs::read_dir(outside.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    // An older kernel does not keep psql from writing where its user may write.
    if !confines() {
        made.retain(|name| name != "file");
    }
    assert!(made.is_empty(), "{made:?}: {}", ran.stderr);

    let put = Content::Bytes(b"\\setshell x touch shell\nSELECT 1;\n");
    server.put(workspace, "bad.sql", put).await.unwrap();
    let arguments = ["-n", "-t", "1", "-f", "bad.sql"];
    let ran = run(server, workspace, Program::Pgbench, &arguments, None).await;
    if confines() {
        assert_ne!(ran.status, Some(0), "{}", ran.stderr);
    }
}

/// Whether this kernel has Landlock.
fn confines() -> bool {
    if !cfg!(target_os = "linux") {
        return false;
    }
    // SAFETY: asks for the version of `landlock_create_ruleset`; there is no ruleset to read.
    unsafe { libc::syscall(444, std::ptr::null::<u8>(), 0, 1) > 0 }
}

async fn pgbench_logs(server: &Server, workspace: &Workspace) {
    let ran = run(server, workspace, Program::Pgbench, &["-i", "-q"], None).await;
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let arguments = ["-c", "2", "-j", "2", "-t", "10", "--log", "--log-prefix=tx"];
    let ran = run(server, workspace, Program::Pgbench, &arguments, None).await;
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let processed = "number of transactions actually processed: 20/20";
    assert!(ran.stdout.contains(processed), "{}", ran.stdout);
    let mut log = String::new();
    for mut file in server.take(workspace, "tx").await.unwrap() {
        file.read_to_string(&mut log).unwrap();
    }
    assert_eq!(log.lines().count(), 20, "{log}");
}

async fn a_program_that_takes_too_long_is_ended(server: &Server, workspace: &Workspace) {
    let put = Content::Bytes(b"SELECT pg_sleep(600);\n");
    server.put(workspace, "long.sql", put).await.unwrap();
    let limit = Some(Duration::from_secs(2));
    for (program, arguments) in [
        (Program::Psql, vec!["-X", "-f", "long.sql"]),
        (Program::Pgbench, vec!["-n", "-t", "1", "-f", "long.sql"]),
    ] {
        let began = Instant::now();
        let ran = run(server, workspace, program, &arguments, limit).await;
        assert!(ran.timed_out, "{}", ran.stderr);
        assert!(began.elapsed() < Duration::from_secs(120));
    }
    // The server notices that nobody listens once it has something to say: it is asked to.
    let mut tool = tool(server).await;
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
               WHERE application_name IN ('psql', 'pgbench')";
    tool.execute(end).await.unwrap();
    let mut author = server.connect(DATABASE, Role::Author).await.unwrap();
    assert_eq!(value(&mut author, "SELECT 1").await, "1");
}
