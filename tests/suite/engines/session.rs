//! What a session answers, and how it fails. One server serves all checks, each in a database of
//! its own.

use super::{author_in, cell, sql_error, start, tool, value};
use remeasure::engine::{EngineChoice, Server};
use std::time::{Duration, Instant};

pub async fn sessions_answer(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    a_server_of_the_pinned_version_answers(&server, version).await;
    errors_tell_where(&server).await;
    notices_are_kept(&server).await;
    types_are_named_as_postgres_names_them(&server).await;
    a_copy_through_the_client_leaves_the_session_alive(&server).await;
    a_statement_that_takes_too_long_is_cancelled(&server).await;
    a_session_that_is_ended_alone_is_told_as_such(&server).await;
    server.stop().await.unwrap();
}
async fn a_server_of_the_pinned_version_answers(server: &Server, version: &str) {
    let mut session = tool(server).await;
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
}

async fn errors_tell_where(server: &Server) {
    let mut session = author_in(server, "errors_tell_where").await;
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
}

async fn notices_are_kept(server: &Server) {
    let mut session = author_in(server, "notices_are_kept").await;
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
}

async fn types_are_named_as_postgres_names_them(server: &Server) {
    let mut session = author_in(server, "types_are_named_as_postgres_names_them").await;
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
}

async fn a_copy_through_the_client_leaves_the_session_alive(server: &Server) {
    let mut session = author_in(server, "a_copy_through_the_client_leaves_the_ses").await;
    for sql in ["COPY pg_class TO STDOUT", "/* x */ copy t FROM\nstdin"] {
        let error = sql_error(session.execute(sql).await);
        assert_eq!(error.sqlstate, "0A000", "{error:?}");
        assert!(error.hint.is_some());
    }
    assert_eq!(value(&mut session, "SELECT 2").await, "2");
}

async fn a_statement_that_takes_too_long_is_cancelled(server: &Server) {
    let mut session = author_in(server, "a_statement_that_takes_too_long_is_cance").await;
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
}

async fn a_session_that_is_ended_alone_is_told_as_such(server: &Server) {
    let mut session = author_in(server, "a_session_that_is_ended_alone_is_told_as_such").await;
    let mut killer = tool(server).await;
    let terminate = format!("SELECT pg_terminate_backend({})", session.backend_pid());
    assert_eq!(value(&mut killer, &terminate).await, "t");
    // The server runs on, so it is no loss of it.
    let error = sql_error(session.execute("SELECT pg_sleep(5)").await);
    assert_eq!(error.sqlstate, "57P01");
    assert!(error.detail.unwrap().contains("the server runs on"));
    // A container's log comes a moment after what its client hears.
    let deadline = Instant::now() + Duration::from_secs(30);
    while !server.log_tail(5).contains("terminating connection") {
        assert!(Instant::now() < deadline, "{}", server.log_tail(20));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
