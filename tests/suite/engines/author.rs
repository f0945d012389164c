//! What the role of an article's SQL may do, and what it may not. One server serves all checks,
//! each in a database of its own.

use super::{author_in, sql_error, start, value};
use remeasure::engine::session::{Role, SessionError};
use remeasure::engine::{EngineChoice, Server};
use remeasure::exit_code::Failure;

pub async fn the_author_is_kept_to_what_is_the_authors(choice: EngineChoice, version: &str) {
    let server = start(&choice, version).await;
    the_author_reaches_neither_files_nor_programs(&server).await;
    the_author_may_measure(&server).await;
    a_database_is_cloned_from_a_template(&server).await;
    extensions_are_created_for_the_author(&server).await;
    server.stop().await.unwrap();
}
async fn the_author_reaches_neither_files_nor_programs(server: &Server) {
    let mut session = author_in(server, "the_author_reaches_neither_files_nor_pro").await;
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
}

async fn the_author_may_measure(server: &Server) {
    let mut session = author_in(server, "the_author_may_measure").await;
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
}

async fn a_database_is_cloned_from_a_template(server: &Server) {
    let mut session = author_in(server, "fixture \"src\"").await;
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
    match cell.execute("SELECT 1").await {
        Err(SessionError::Sql(error)) => assert_eq!(error.sqlstate, "57P01"),
        other => panic!("{other:?}"),
    }
    let mut again = server
        .connect("fixture \"src\"", Role::Author)
        .await
        .unwrap();
    assert_eq!(value(&mut again, "SELECT count(*) FROM src").await, "1000");
    let error = sql_error(server.create_database("fixture \"src\"", None).await);
    assert_eq!(error.sqlstate, "42P04");
}

async fn extensions_are_created_for_the_author(server: &Server) {
    let database = "extensions";
    let mut session = author_in(server, database).await;
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
        server.create_extension(database, name).await.unwrap();
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
            server.create_extension(database, refused).await,
            Err(Failure::Article(_))
        ));
    }
}
