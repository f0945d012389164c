//! The same checks on every engine that runs a real server, for every pinned version. The first
//! run fetches the binaries.

use remeasure::engine::pins::{Pin, Pins};
use remeasure::engine::session::{Role, Session, SessionError, SqlError, StatementResult};
use remeasure::engine::{self, EngineChoice, Server, StartRequest};
use remeasure::exit_code::Failure;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// One test a line for each engine and version.
macro_rules! on_every_engine {
    ($($check:ident)*) => {
        mod embedded_16_15 {
            $(#[tokio::test]
            async fn $check() {
                super::$check(super::EngineChoice::Embedded, "16.15").await;
            })*
        }
        mod embedded_18_6 {
            $(#[tokio::test]
            async fn $check() {
                super::$check(super::EngineChoice::Embedded, "18.6").await;
            })*
        }
    };
}

on_every_engine! {
    a_server_of_the_pinned_version_answers
    settings_are_the_articles
    a_wrong_setting_is_the_articles_mistake
    errors_tell_where
    notices_are_kept
    types_are_named_as_postgres_names_them
    a_copy_through_the_client_leaves_the_session_alive
    a_statement_that_takes_too_long_is_cancelled
    a_crash_is_told_with_the_servers_log
    the_author_reaches_neither_files_nor_programs
    the_author_may_measure
    a_database_is_cloned_from_a_template
    extensions_are_created_for_the_author
    a_restart_changes_settings_and_takes_them_back
    nothing_is_left_after_stop
    nothing_is_left_after_drop
}

fn pin(version: &str) -> Pin {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("articles/pins.yaml");
    let pins = Pins::read(&path).expect("pins.yaml is right");
    pins.version(version)
        .expect("the version is pinned")
        .clone()
}

fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

async fn try_start(
    choice: &EngineChoice,
    version: &str,
    pairs: &[(&str, &str)],
) -> Result<Server, Failure> {
    engine::start(
        choice,
        &StartRequest {
            pin: &pin(version),
            settings: &settings(pairs),
            cache: &engine::default_cache(),
            offline: false,
            progress: &|line| println!("{line}"),
        },
    )
    .await
}

async fn start(choice: &EngineChoice, version: &str) -> Server {
    match try_start(choice, version, &[]).await {
        Ok(server) => server,
        Err(Failure::Engine(diagnostic)) => panic!("{}", diagnostic.render(false)),
        Err(other) => panic!("{other:?}"),
    }
}

async fn author_in(server: &Server, database: &str) -> Session {
    server.create_database(database, None).await.unwrap();
    server.connect(database, Role::Author).await.unwrap()
}

async fn tool(server: &Server) -> Session {
    server.connect("postgres", Role::Tool).await.unwrap()
}

fn cell(result: &StatementResult) -> Option<&str> {
    assert_eq!((result.rows.len(), result.rows[0].len()), (1, 1));
    result.rows[0][0].as_deref()
}

async fn value(session: &mut Session, sql: &str) -> String {
    let result = session.execute(sql).await.unwrap();
    cell(&result).expect("no NULL").to_owned()
}

fn sql_error(result: Result<impl std::fmt::Debug, SessionError>) -> SqlError {
    match result {
        Err(SessionError::Sql(error)) => *error,
        other => panic!("{other:?}"),
    }
}

async fn a_server_of_the_pinned_version_answers(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    let mut session = tool(&server).await;
    let answer = session
        .execute("SELECT 1 AS one, NULL AS nothing")
        .await
        .unwrap();
    assert_eq!(answer.columns, ["one", "nothing"]);
    assert_eq!(answer.rows, [[Some("1".to_owned()), None]]);
    assert_eq!(answer.command_rows, Some(1));
    assert!(answer.elapsed > Duration::ZERO);
    assert_eq!(value(&mut session, "SHOW server_version").await, version);
    let pid = value(&mut session, "SELECT pg_backend_pid()").await;
    assert_eq!(pid, session.backend_pid().to_string());

    let environment = server.describe().await.unwrap();
    assert_eq!(environment.version, version);
    assert!(
        environment
            .version_string
            .starts_with(&format!("PostgreSQL {version} "))
    );
    assert_eq!(environment.encoding, "UTF8");
    assert_eq!(environment.collation, "C (libc)");
    let checksums = if version.starts_with("16.") {
        "off"
    } else {
        "on"
    };
    assert_eq!(environment.data_checksums, checksums);
    assert!(environment.digest.unwrap().starts_with("sha256:"));
    assert!(!environment.libc.is_empty());
    assert_ne!(server.storage(), "unknown");
    // Nothing in it may change from run to run.
    for (name, value) in &environment.settings {
        assert!(!value.contains("/run-"), "{name} = {value}");
    }
    server.stop().await.unwrap();
}

async fn settings_are_the_articles(choice: EngineChoice, version: &str) {
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

async fn a_wrong_setting_is_the_articles_mistake(choice: EngineChoice, version: &str) {
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

async fn errors_tell_where(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    let mut session = author_in(&server, "d").await;
    let error = sql_error(session.execute("SELECT 'µ', nope FROM pg_class").await);
    assert_eq!(error.sqlstate, "42703");
    assert_eq!(error.position, Some(13));
    assert!(!error.timed_out);
    let error = sql_error(session.execute("DO $$ BEGIN PERFORM nope; END $$").await);
    assert_eq!(error.internal, Some(("SELECT nope".to_owned(), 8)));
    // The session goes on.
    assert_eq!(value(&mut session, "SELECT 2").await, "2");
    let done = session
        .execute("CREATE TABLE t AS SELECT generate_series(1, 5)")
        .await;
    assert_eq!(done.unwrap().command_rows, Some(5));
    let done = session.execute("DELETE FROM t WHERE false").await.unwrap();
    assert_eq!(done.command_rows, Some(0));
    let done = session.execute("VACUUM t").await.unwrap();
    assert_eq!((done.command_rows, done.rows.len()), (None, 0));
    server.stop().await.unwrap();
}

async fn notices_are_kept(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    let mut session = author_in(&server, "d").await;
    session
        .execute("DROP TABLE IF EXISTS nothing")
        .await
        .unwrap();
    let warn = "DO $$ BEGIN RAISE WARNING 'careful' USING HINT = 'look'; END $$";
    session.execute(warn).await.unwrap();
    assert_eq!(
        session.notices(),
        [
            "NOTICE: table \"nothing\" does not exist, skipping",
            "WARNING: careful\nHINT: look"
        ]
    );
    assert!(session.notices().is_empty());
    server.stop().await.unwrap();
}

async fn types_are_named_as_postgres_names_them(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    let mut session = author_in(&server, "d").await;
    session
        .execute("CREATE TYPE mood AS ENUM ('good')")
        .await
        .unwrap();
    let sql = "SELECT 1, 1::int8, 1.5::numeric(4,2), 'a'::text, true, now(), 1.5::float8, \
               'a'::char(3), 'good'::mood, ARRAY[1], '0/0'::pg_lsn, 'a'::varchar(5)";
    let names = session.column_types(sql).await.unwrap();
    let expected = [
        "integer",
        "bigint",
        "numeric",
        "text",
        "boolean",
        "timestamp with time zone",
        "double precision",
        "bpchar",
        "mood",
        "integer[]",
        "pg_lsn",
        "character varying",
    ];
    assert_eq!(names, expected);
    let none = session
        .column_types("CREATE TABLE x (a int)")
        .await
        .unwrap();
    assert!(none.is_empty());
    assert_eq!(
        sql_error(session.column_types("SELECT nope").await).sqlstate,
        "42703"
    );
    // Asking for types runs nothing.
    assert_eq!(
        value(
            &mut session,
            "SELECT count(*) FROM pg_tables WHERE tablename = 'x'"
        )
        .await,
        "0"
    );
    server.stop().await.unwrap();
}

async fn a_copy_through_the_client_leaves_the_session_alive(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    let mut session = author_in(&server, "d").await;
    for sql in ["COPY pg_class TO STDOUT", "/* x */ copy t FROM\nstdin"] {
        let error = sql_error(session.execute(sql).await);
        assert_eq!(error.sqlstate, "0A000", "{error:?}");
        assert!(error.hint.is_some());
    }
    assert_eq!(value(&mut session, "SELECT 2").await, "2");
    server.stop().await.unwrap();
}

async fn a_statement_that_takes_too_long_is_cancelled(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    let mut session = author_in(&server, "d").await;
    let begin = Instant::now();
    let limit = Duration::from_millis(200);
    let error = sql_error(session.execute_within("SELECT pg_sleep(30)", limit).await);
    assert!(error.timed_out);
    assert_eq!(error.sqlstate, "57014");
    assert!(error.message.contains("200ms"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!(value(&mut session, "SELECT 2").await, "2");
    // Within the limit, and cancelled by someone else: no timeout.
    let result = session
        .execute_within("SELECT 3", Duration::from_secs(10))
        .await;
    assert_eq!(cell(&result.unwrap()), Some("3"));
    session
        .execute("SET statement_timeout = '100ms'")
        .await
        .unwrap();
    let limit = Duration::from_secs(10);
    let error = sql_error(session.execute_within("SELECT pg_sleep(30)", limit).await);
    assert!(!error.timed_out);
    server.stop().await.unwrap();
}

async fn a_crash_is_told_with_the_servers_log(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    let mut session = author_in(&server, "d").await;
    let mut killer = tool(&server).await;
    let terminate = format!("SELECT pg_terminate_backend({})", session.backend_pid());
    assert_eq!(value(&mut killer, &terminate).await, "t");
    match session.execute("SELECT pg_sleep(5)").await {
        Err(SessionError::Lost { message, log }) => {
            assert!(message.contains("57P01"), "{message}");
            assert!(log.contains("terminating connection"), "{log}");
        }
        other => panic!("{other:?}"),
    }
    assert!(server.log_tail(5).contains("terminating connection"));
    server.stop().await.unwrap();
}

async fn the_author_reaches_neither_files_nor_programs(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    let mut session = author_in(&server, "d").await;
    assert_eq!(value(&mut session, "SELECT current_user").await, "author");
    assert_eq!(
        value(&mut session, "SELECT current_setting('is_superuser')").await,
        "off"
    );
    for sql in [
        "COPY (SELECT 1) TO PROGRAM 'cat'",
        "COPY (SELECT 1) TO '/tmp/remeasure-author'",
        "COPY pg_class FROM '/etc/passwd'",
        "SELECT pg_read_file('postgresql.conf')",
        "SELECT pg_read_binary_file('/etc/passwd')",
        "SELECT pg_ls_dir('/')",
        "SELECT pg_stat_file('/etc/passwd')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT lo_export(lo_create(0), '/tmp/remeasure-author')",
        "CREATE EXTENSION file_fdw",
        "CREATE EXTENSION dblink",
        "CREATE EXTENSION pageinspect",
        "CREATE FUNCTION f() RETURNS int LANGUAGE c AS '/lib/x.so', 'f'",
        "LOAD '/lib/x.so'",
        "ALTER SYSTEM SET archive_command = 'touch /tmp/x'",
        "SET session_preload_libraries = '/lib/x.so'",
        "SET dynamic_library_path = '/tmp'",
        "CREATE TABLESPACE t LOCATION '/tmp'",
        "CREATE ROLE other SUPERUSER",
        "ALTER ROLE author SUPERUSER",
        "SET ROLE postgres",
        "SET SESSION AUTHORIZATION postgres",
        "GRANT pg_execute_server_program TO author",
        "CREATE SUBSCRIPTION s CONNECTION 'host=localhost' PUBLICATION p",
        "UPDATE pg_authid SET rolsuper = true",
    ] {
        let error = sql_error(session.execute(sql).await);
        // Not allowed, or not even there for this role.
        let refused = ["42501", "0LP01", "0A000"].contains(&error.sqlstate.as_str());
        assert!(refused, "{sql}: {error:?}");
    }
    assert!(server.connect("template1", Role::Author).await.is_err());
    server.stop().await.unwrap();
}

async fn the_author_may_measure(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    let mut session = author_in(&server, "d").await;
    for sql in [
        "CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 100) g",
        "CREATE SCHEMA s",
        "VACUUM (ANALYZE) t",
        "CHECKPOINT",
        "CREATE INDEX CONCURRENTLY ON t (id)",
        "EXPLAIN (ANALYZE, BUFFERS, WAL) SELECT * FROM t",
        "SELECT pg_stat_reset()",
        "SELECT pg_stat_reset_shared('bgwriter')",
        "SELECT pg_stat_reset_single_table_counters('t'::regclass)",
        "SELECT pg_switch_wal()",
        "SELECT * FROM pg_ls_waldir()",
        "SELECT query FROM pg_stat_activity",
        "SET track_io_timing = on",
        "SET wal_compression = on",
        "SET deadlock_timeout = '10ms'",
        "SHOW data_directory",
        "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",
    ] {
        if let Err(error) = session.execute(sql).await {
            panic!("{sql}: {error:?}");
        }
    }
    server.stop().await.unwrap();
}

async fn a_database_is_cloned_from_a_template(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    let mut session = author_in(&server, "fixture \"src\"").await;
    let fill = "CREATE TABLE src AS SELECT generate_series(1, 1000) AS id";
    session.execute(fill).await.unwrap();
    session.close().await;
    server
        .create_database("cell", Some("fixture \"src\""))
        .await
        .unwrap();
    let mut cell = server.connect("cell", Role::Author).await.unwrap();
    assert_eq!(value(&mut cell, "SELECT count(*) FROM src").await, "1000");
    cell.execute("DROP TABLE src").await.unwrap();
    cell.execute("CREATE TABLE own (a int)").await.unwrap();
    // A database in use goes too, and one that is not there is no error.
    server.drop_database("cell").await.unwrap();
    server.drop_database("cell").await.unwrap();
    assert!(matches!(
        cell.execute("SELECT 1").await,
        Err(SessionError::Lost { .. })
    ));
    let mut again = server
        .connect("fixture \"src\"", Role::Author)
        .await
        .unwrap();
    assert_eq!(value(&mut again, "SELECT count(*) FROM src").await, "1000");
    let error = sql_error(server.create_database("fixture \"src\"", None).await);
    assert_eq!(error.sqlstate, "42P04");
    server.stop().await.unwrap();
}

async fn extensions_are_created_for_the_author(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    let mut session = author_in(&server, "d").await;
    for name in [
        "pg_walinspect",
        "pageinspect",
        "pg_buffercache",
        "pg_visibility",
        "pgstattuple",
        "pg_freespacemap",
        "pg_prewarm",
        "amcheck",
        "pg_stat_statements",
        "earthdistance",
        "hstore",
    ] {
        server.create_extension("d", name).await.unwrap();
    }
    let environment = server.environment();
    assert!(environment.extensions["pageinspect"].starts_with("1."));
    session
        .execute("CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 100) g")
        .await
        .unwrap();
    session.execute("CREATE INDEX i ON t (id)").await.unwrap();
    for sql in [
        "SELECT * FROM pg_get_wal_stats(pg_current_wal_insert_lsn() - 1000, pg_current_wal_flush_lsn())",
        "SELECT lp, t_ctid FROM heap_page_items(get_raw_page('t', 0))",
        "SELECT * FROM bt_metap('i')",
        "SELECT count(*) FROM pg_buffercache",
        "SELECT * FROM pg_visibility_map_summary('t')",
        "SELECT * FROM pgstattuple('t')",
        "SELECT * FROM pg_freespace('t')",
        "SELECT pg_prewarm('t')",
        "SELECT bt_index_check('i')",
        "SELECT 'a=>1'::hstore",
        "SELECT earth()",
    ] {
        if let Err(error) = session.execute(sql).await {
            panic!("{sql}: {error:?}");
        }
    }
    for refused in ["file_fdw", "plpython3u", "no_such_extension"] {
        assert!(matches!(
            server.create_extension("d", refused).await,
            Err(Failure::Article(_))
        ));
    }
    server.stop().await.unwrap();
}

async fn a_restart_changes_settings_and_takes_them_back(choice: EngineChoice, version: &str) {
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

async fn nothing_is_left_after_stop(choice: EngineChoice, version: &str) {
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

async fn nothing_is_left_after_drop(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    let (pid, folder) = whereabouts(&server).await;
    drop(server);
    assert!(!is_alive(pid));
    assert!(!folder.exists());
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
        .args(["--exact", "no_server_outlives_a_killed_tool", "--nocapture"])
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

#[tokio::test]
async fn once_fetched_a_server_starts_offline() {
    let cache = engine::default_cache();
    start(&EngineChoice::Auto, "16.15")
        .await
        .stop()
        .await
        .unwrap();
    let server = engine::start(
        &EngineChoice::Auto,
        &StartRequest {
            pin: &pin("16.15"),
            settings: &BTreeMap::new(),
            cache: &cache,
            offline: true,
            progress: &|line| panic!("{line}"),
        },
    )
    .await
    .unwrap();
    let environment = server.environment();
    assert_eq!(environment.engine, "embedded");
    assert!(
        environment.engine_reason.contains("docker"),
        "{environment:?}"
    );
    server.stop().await.unwrap();
}

#[tokio::test]
async fn an_archive_with_another_hash_is_refused_and_not_kept() {
    let cache = tempfile::tempdir().unwrap();
    let mut pin = pin("16.15");
    for archive in pin.archives.values_mut() {
        archive.archive = "0".repeat(64);
    }
    let started = engine::start(
        &EngineChoice::Embedded,
        &StartRequest {
            pin: &pin,
            settings: &BTreeMap::new(),
            cache: cache.path(),
            offline: false,
            progress: &|line| println!("{line}"),
        },
    )
    .await;
    match started {
        Err(Failure::Engine(diagnostic)) => {
            let text = diagnostic.render(false);
            assert!(text.contains("expected sha256 0000"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    for folder in ["postgres", "runs"] {
        let left: Vec<_> = std::fs::read_dir(cache.path().join(folder))
            .unwrap()
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
