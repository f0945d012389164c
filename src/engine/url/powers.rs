//! What the URL's role may do beyond measuring in databases of its own. The article's SQL is
//! somebody's program and runs as that role: one that could harm what others have on the server is
//! refused unless that was asked for.

use super::strays::PREFIX;
use super::target::Target;
use crate::diagnostic::Diagnostic;
use crate::engine::session::{Session, quote_literal};
use crate::exit_code::Failure;

/// Roles of Postgres itself that reach files, programs, networks or other people's sessions.
const REACHING_OUT: [&str; 6] = [
    "pg_create_subscription",
    "pg_execute_server_program",
    "pg_maintain",
    "pg_read_server_files",
    "pg_signal_backend",
    "pg_write_server_files",
];

pub async fn refuse(session: &mut Session, target: &Target) -> Result<(), Failure> {
    let roles: Vec<_> = REACHING_OUT
        .iter()
        .map(|role| quote_literal(role))
        .collect();
    let sql = format!(
        "SELECT r.rolsuper, r.rolcreatedb, r.rolcreaterole, r.rolreplication,
            (SELECT string_agg(p.rolname, ', ' ORDER BY p.rolname) FROM pg_catalog.pg_roles p
             WHERE p.rolname IN ({}) AND pg_has_role(r.oid, p.oid, 'MEMBER')),
            (SELECT string_agg(d.datname, ', ' ORDER BY d.datname) FROM pg_catalog.pg_database d
             WHERE d.datname !~ '^{PREFIX}[0-9a-f]{{12}}_' AND pg_has_role(r.oid, d.datdba, 'MEMBER'))
         FROM pg_catalog.pg_roles r WHERE r.rolname = current_user",
        roles.join(", ")
    );
    let row = session.execute(&sql).await?.rows.into_iter().next();
    let row = row.unwrap_or_default();
    let cell = |index: usize| row.get(index).cloned().flatten().unwrap_or_default();
    let is = |index: usize| cell(index) == "t";
    let role = &target.user;
    if !is(0) && !is(1) {
        return Err(Failure::Engine(
            Diagnostic::error(format!(
                "role `{role}` may not make a database on `{}`",
                target.address()
            ))
            .note("everything is measured in databases that are made for it and dropped again")
            .hint(format!("ALTER ROLE {role} CREATEDB")),
        ));
    }
    let powers = powers(is(0), is(2), is(3), &cell(4), &cell(5));
    if powers.is_empty() || target.consent.powerful_role {
        return Ok(());
    }
    Err(Failure::Engine(
        Diagnostic::error(format!(
            "role `{role}` can do more on this server than measure: {}",
            powers.join("; ")
        ))
        .note("the article's SQL runs as this role, and is somebody's program")
        .hint(
            "make a role for it: CREATE ROLE remeasure LOGIN CREATEDB PASSWORD '…'; `--trust` lets \
             the article have all that this one may do",
        ),
    ))
}

fn powers(
    superuser: bool,
    makes_roles: bool,
    replicates: bool,
    roles: &str,
    databases: &str,
) -> Vec<String> {
    if superuser {
        return vec!["it is a superuser".to_owned()];
    }
    let mut powers = Vec::new();
    if makes_roles {
        powers.push("it makes and drops roles".to_owned());
    }
    if replicates {
        powers.push("it may copy the whole cluster (REPLICATION)".to_owned());
    }
    if !roles.is_empty() {
        powers.push(format!("it is a member of {roles}"));
    }
    if !databases.is_empty() {
        powers.push(format!("it may drop {databases}"));
    }
    powers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_reaches_beyond_own_databases_is_named() {
        assert!(powers(false, false, false, "", "").is_empty());
        assert_eq!(
            powers(true, true, true, "pg_signal_backend", "postgres"),
            ["it is a superuser"]
        );
        assert_eq!(
            powers(false, true, true, "pg_signal_backend", "shop").join("; "),
            "it makes and drops roles; it may copy the whole cluster (REPLICATION); it is a member \
             of pg_signal_backend; it may drop shop"
        );
    }
}
