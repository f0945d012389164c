//! The same checks on every engine that runs a real server, for every pinned version. The first
//! run fetches the binaries.

#[cfg(feature = "container-tests")]
mod agreement;
mod author;
mod choosing;
#[cfg(feature = "container-tests")]
mod containers;
mod daemon;
mod existing;
mod fetching;
#[cfg(feature = "container-tests")]
mod images;
mod lifetime;
mod programs;
#[cfg(feature = "container-tests")]
mod remote;
mod session;

use remeasure::engine::pins::{Pin, Pins};
use remeasure::engine::session::{Role, Session, SessionError, SqlError, StatementResult};
use remeasure::engine::{self, EngineChoice, Server, StartRequest};
use remeasure::exit_code::Failure;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One test a line for each engine and version.
macro_rules! on_every_engine {
    ($($module:ident::$check:ident)*) => {
        #[cfg(feature = "container-tests")]
        mod docker_16_15 {
            $(#[tokio::test]
            async fn $check() {
                super::$module::$check(super::EngineChoice::Docker, "16.15").await;
            })*
        }
        #[cfg(feature = "container-tests")]
        mod docker_18_6 {
            $(#[tokio::test]
            async fn $check() {
                super::$module::$check(super::EngineChoice::Docker, "18.6").await;
            })*
        }
        mod embedded_16_15 {
            $(#[tokio::test]
            async fn $check() {
                super::$module::$check(super::EngineChoice::Embedded, "16.15").await;
            })*
        }
        mod embedded_18_6 {
            $(#[tokio::test]
            async fn $check() {
                super::$module::$check(super::EngineChoice::Embedded, "18.6").await;
            })*
        }
    };
}

on_every_engine! {
    session::sessions_answer
    author::the_author_is_kept_to_what_is_the_authors
    lifetime::settings_are_the_articles
    lifetime::a_wrong_setting_is_the_articles_mistake
    lifetime::a_restart_changes_settings_and_takes_them_back
    programs::programs_of_the_server_run_as_the_author
}

mod embedded {
    use super::{EngineChoice, lifetime};

    #[tokio::test]
    async fn nothing_is_left_after_stop() {
        for version in ["16.15", "18.6"] {
            lifetime::nothing_is_left_after_stop(EngineChoice::Embedded, version).await;
        }
    }

    #[tokio::test]
    async fn nothing_is_left_after_drop() {
        for version in ["16.15", "18.6"] {
            lifetime::nothing_is_left_after_drop(EngineChoice::Embedded, version).await;
        }
    }
}

/// Where the official images cannot be had, another file pins others that keep their contract.
fn pins_file() -> PathBuf {
    std::env::var_os("REMEASURE_TEST_PINS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("articles/pins.yaml"),
        PathBuf::from,
    )
}

/// Those of this build.
fn pins_text() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("articles/pins.yaml");
    std::fs::read_to_string(path).expect("the project has pins")
}

fn pin(version: &str) -> Pin {
    let path = pins_file();
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
            limits: remeasure::engine::Limits::default(),
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
