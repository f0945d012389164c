//! Databases of ours on a server that is not: known by the prefix of their name and by the comment
//! on them, both with the run that made them. A run lives as long as its keeper is connected.

use crate::engine::session::{Session, SessionError, SqlError, quote_identifier, quote_literal};
use std::time::Duration;

/// Begins the name of every database of ours; the run and what it is for come after it.
pub const PREFIX: &str = "remeasure_";
const KEEPER: &str = "remeasure keeper ";

/// The comment on every database of a run. Its beginning is what it is known by.
pub fn mark(run: &str) -> String {
    format!(
        "{} dropped when the run ends, or by a later one",
        known_by(run)
    )
}

fn known_by(run: &str) -> String {
    format!("remeasure run {run}:")
}

/// What makes of a session the keeper of a run: other runs see its name, and it is not ended for
/// being idle.
pub fn keep_alive(run: &str, major: u32) -> Vec<String> {
    let name = quote_literal(&format!("{KEEPER}{run}"));
    let mut sql = vec![
        format!("SET application_name = {name}"),
        // The other end notices within two minutes when this machine is gone.
        "SET tcp_keepalives_idle = 60".to_owned(),
        "SET tcp_keepalives_interval = 10".to_owned(),
        "SET tcp_keepalives_count = 6".to_owned(),
        "SET statement_timeout = 0".to_owned(),
    ];
    if major >= 14 {
        sql.push("SET idle_session_timeout = 0".to_owned());
    }
    sql
}

pub fn drop_sql(name: &str) -> String {
    format!(
        "DROP DATABASE IF EXISTS {} WITH (FORCE)",
        quote_identifier(name)
    )
}

/// Databases with our prefix and our comment, both of the same run, whose keeper is gone. The run's
/// digits cannot hold anything that a pattern or a string means otherwise.
const OF_DEAD_RUNS: &str = "SELECT d.datname FROM pg_catalog.pg_database d
    WHERE d.datname ~ '^remeasure_[0-9a-f]{12}_'
      AND pg_catalog.starts_with(pg_catalog.shobj_description(d.oid, 'pg_database'),
            'remeasure run ' || substr(d.datname, 11, 12) || ':')
      AND pg_catalog.pg_has_role(d.datdba, 'USAGE')
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_activity a
            WHERE a.application_name = 'remeasure keeper ' || substr(d.datname, 11, 12))
    ORDER BY d.datname";

/// Drops the databases of runs that died, and gives their names. Two that clean up at the same time
/// do not disturb one another.
pub async fn drop_all(session: &mut Session) -> Result<Vec<String>, SessionError> {
    let mut dropped = Vec::new();
    for name in names(session, OF_DEAD_RUNS).await? {
        match session.execute(&drop_sql(&name)).await {
            Ok(_) => dropped.push(name),
            // Somebody is connected whom we may not end: the next run tries again.
            Err(SessionError::Sql(_)) => {}
            Err(lost) => return Err(lost),
        }
    }
    Ok(dropped)
}

/// What watches over a server may be connected to a database for a moment, and may not be ours to
/// end.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// Drops every database of one run; gives those that cannot be dropped, with why.
pub async fn drop_run(
    session: &mut Session,
    run: &str,
) -> Result<Vec<(String, SqlError)>, SessionError> {
    let sql = format!(
        "SELECT d.datname FROM pg_catalog.pg_database d
         WHERE d.datname ~ '^{PREFIX}{run}_' AND pg_catalog.starts_with(
             pg_catalog.shobj_description(d.oid, 'pg_database'), {}) ORDER BY d.datname",
        quote_literal(&known_by(run)),
    );
    let mut left = Vec::new();
    for attempt in 0..ATTEMPTS {
        left.clear();
        for name in names(session, &sql).await? {
            match session.execute(&drop_sql(&name)).await {
                Ok(_) => {}
                Err(SessionError::Sql(error)) => left.push((name, *error)),
                Err(lost) => return Err(lost),
            }
        }
        if left.is_empty() {
            break;
        }
        if attempt + 1 < ATTEMPTS {
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(left)
}

async fn names(session: &mut Session, sql: &str) -> Result<Vec<String>, SessionError> {
    let rows = session.execute(sql).await?.rows;
    Ok(rows.into_iter().flatten().flatten().collect())
}
