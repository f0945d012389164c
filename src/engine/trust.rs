//! What an article may do to the server it is measured on. Its SQL runs as the role `author`,
//! which owns its databases, may watch and checkpoint the server, and can reach neither files nor
//! programs. This file lists what is granted beyond that, and what is refused:
//!
//! - [`prepare_server`]: SQL that creates the role; run once, in `template1`;
//! - [`refuse_extension`], [`grant_extension`]: extensions that stay inside the database;
//! - [`refuse_setting`]: server settings that name files, programs, libraries or networks.

use super::session::{Role, quote_literal};
use crate::diagnostic::{Diagnostic, did_you_mean};

/// Extensions of Postgres itself that reach neither files, programs nor other servers.
const EXTENSIONS: [&str; 39] = [
    "amcheck",
    "autoinc",
    "bloom",
    "btree_gin",
    "btree_gist",
    "citext",
    "cube",
    "dict_int",
    "dict_xsyn",
    "earthdistance",
    "fuzzystrmatch",
    "hstore",
    "insert_username",
    "intagg",
    "intarray",
    "isn",
    "lo",
    "ltree",
    "moddatetime",
    "pageinspect",
    "pg_buffercache",
    "pg_freespacemap",
    "pg_prewarm",
    "pg_stat_statements",
    "pg_trgm",
    "pg_visibility",
    "pg_walinspect",
    "pgcrypto",
    "pgrowlocks",
    "pgstattuple",
    "plpgsql",
    "refint",
    "seg",
    "tablefunc",
    "tcn",
    "tsm_system_rows",
    "tsm_system_time",
    "unaccent",
    "uuid-ossp",
];

/// Libraries that may be preloaded: those of the extensions above, and modules without one.
const LIBRARIES: [&str; 4] = [
    "auto_explain",
    "pg_overexplain",
    "pg_prewarm",
    "pg_stat_statements",
];

/// Settings that only a superuser may change in a session, and that do no more than measure or
/// tune.
const PARAMETERS: [&str; 16] = [
    "commit_delay",
    "compute_query_id",
    "deadlock_timeout",
    "log_duration",
    "log_lock_waits",
    "log_min_duration_statement",
    "log_statement",
    "session_replication_role",
    "temp_file_limit",
    "track_activities",
    "track_counts",
    "track_functions",
    "track_io_timing",
    "track_wal_io_timing",
    "wal_compression",
    "wal_init_zero",
];

/// Functions of `pg_catalog` that are kept from ordinary roles without reaching outside.
const FUNCTIONS: [&str; 8] = [
    "pg_create_restore_point",
    "pg_log_backend_memory_contexts",
    "pg_stat_reset",
    "pg_stat_reset_backend_stats",
    "pg_stat_reset_shared",
    "pg_stat_reset_single_table_counters",
    "pg_stat_reset_slru",
    "pg_switch_wal",
];

/// Extensions whose functions ask in C for a superuser. They become `SECURITY DEFINER`: they read
/// pages and buffers of any table, which is harmless in databases that hold nothing but the
/// article's own.
const ASK_FOR_SUPERUSER: [&str; 2] = ["pageinspect", "pg_buffercache"];

/// SQL for `template1`, statements separated by an empty line: the author's role, and what it is
/// granted in every database made from there.
pub(super) fn prepare_server() -> String {
    let author = Role::Author.name();
    let parameters = literals(&PARAMETERS);
    let functions = literals(&FUNCTIONS);
    format!(
        "CREATE ROLE {author} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION;

GRANT pg_monitor, pg_checkpoint TO {author};

REVOKE CONNECT, TEMPORARY ON DATABASE template1 FROM PUBLIC;

DO $$
DECLARE
    item text;
BEGIN
    FOR item IN SELECT name FROM pg_settings WHERE name IN ({parameters}) LOOP
        EXECUTE format('GRANT SET ON PARAMETER %I TO {author}', item);
    END LOOP;
    FOR item IN
        SELECT oid::regprocedure FROM pg_proc
        WHERE pronamespace = 'pg_catalog'::regnamespace AND proname IN ({functions})
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO {author}', item);
    END LOOP;
END $$;

"
    )
}

/// One statement that lets the author use everything in an extension.
pub(super) fn grant_extension(name: &str) -> String {
    let author = Role::Author.name();
    let extension = quote_literal(name);
    let as_superuser = if ASK_FOR_SUPERUSER.contains(&name) {
        "EXECUTE format('ALTER ROUTINE %s SECURITY DEFINER', item);"
    } else {
        ""
    };
    format!(
        "DO $$
DECLARE
    item text;
BEGIN
    FOR item IN
        SELECT p.oid::regprocedure FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid
        WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_extension'::regclass
            AND d.deptype = 'e' AND p.prokind IN ('f', 'p')
            AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = {extension})
    LOOP
        EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO {author}', item);
        {as_superuser}
    END LOOP;
    FOR item IN
        SELECT c.oid::regclass FROM pg_depend d JOIN pg_class c ON c.oid = d.objid
        WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_extension'::regclass
            AND d.deptype = 'e' AND c.relkind IN ('r', 'v', 'm')
            AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = {extension})
    LOOP
        EXECUTE format('GRANT SELECT ON %s TO {author}', item);
    END LOOP;
END $$"
    )
}

fn literals(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| quote_literal(word)).collect();
    quoted.join(", ")
}

/// Why an article may not have this extension.
pub fn refuse_extension(name: &str) -> Option<Diagnostic> {
    if EXTENSIONS.contains(&name) {
        return None;
    }
    let hint = did_you_mean(name, EXTENSIONS)
        .unwrap_or_else(|| format!("extensions that may be used are {}", EXTENSIONS.join(", ")));
    Some(
        Diagnostic::error(format!(
            "extension `{name}` is not one that articles may use"
        ))
        .note("an article must not reach files, programs or other servers")
        .hint(hint),
    )
}

/// Why an article may not set this.
pub fn refuse_setting(name: &str, value: &str) -> Option<Diagnostic> {
    let lower = name.to_ascii_lowercase();
    let why = match lower.as_str() {
        _ if !is_setting_name(name) => "this cannot be the name of a setting",
        "archive_command"
        | "archive_cleanup_command"
        | "recovery_end_command"
        | "restore_command"
        | "ssl_passphrase_command" => "it names a program that the server would run",
        "archive_library"
        | "dynamic_library_path"
        | "extension_control_path"
        | "jit_provider"
        | "oauth_validator_libraries" => "it names code that the server would load",
        "shared_preload_libraries" | "session_preload_libraries" | "local_preload_libraries" => {
            if value.split(',').all(|library| {
                let library = library.trim().trim_matches('"');
                library.is_empty() || LIBRARIES.contains(&library)
            }) {
                return None;
            }
            "it names code that the server would load"
        }
        "config_file"
        | "data_directory"
        | "external_pid_file"
        | "hba_file"
        | "ident_file"
        | "krb_server_keyfile"
        | "log_directory"
        | "log_filename"
        | "log_file_mode"
        | "logging_collector"
        | "log_destination"
        | "stats_temp_directory" => "it says where the server keeps its files",
        "bonjour"
        | "bonjour_name"
        | "listen_addresses"
        | "port"
        | "primary_conninfo"
        | "primary_slot_name"
        | "ssl"
        | "unix_socket_directories"
        | "unix_socket_group"
        | "unix_socket_permissions" => "it says where the server is reached, or what it reaches",
        _ if lower.starts_with("ssl_") || lower.starts_with("syslog_") => {
            "it names files or services outside the server"
        }
        _ => return None,
    };
    let mut diagnostic =
        Diagnostic::error(format!("setting `{name}` is not the article's to set")).note(why);
    if lower.ends_with("_preload_libraries") {
        diagnostic = diagnostic.hint(format!("libraries are {}", LIBRARIES.join(", ")));
    }
    Some(diagnostic)
}

/// Letters, digits, `_`, and dots between the parts of an extension's setting.
fn is_setting_name(name: &str) -> bool {
    name.split('.').all(|part| {
        part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_$".contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_reach_outside_are_refused() {
        for (name, value, refused) in [
            ("shared_buffers", "512MB", false),
            ("pg_stat_statements.track", "all", false),
            (
                "shared_preload_libraries",
                "pg_stat_statements, auto_explain",
                false,
            ),
            ("shared_preload_libraries", "", false),
            (
                "shared_preload_libraries",
                "pg_stat_statements,/tmp/x",
                true,
            ),
            ("Archive_Command", "cp %p /x", true),
            ("listen_addresses", "*", true),
            ("ssl_cert_file", "x", true),
            ("data_directory", "/x", true),
            ("work_mem = '1'\narchive_command", "x", true),
            ("", "x", true),
            ("a..b", "x", true),
        ] {
            assert_eq!(refuse_setting(name, value).is_some(), refused, "{name}");
        }
    }

    #[test]
    fn extensions_that_reach_outside_are_refused_with_a_hint() {
        for name in ["pageinspect", "pg_walinspect", "uuid-ossp", "plpgsql"] {
            assert_eq!(refuse_extension(name), None, "{name}");
        }
        for name in [
            "file_fdw",
            "dblink",
            "plpython3u",
            "adminpack",
            "xml2",
            "postgres_fdw",
        ] {
            assert!(refuse_extension(name).is_some(), "{name}");
        }
        let near = refuse_extension("pg_walinspct").unwrap();
        assert_eq!(near.hint.as_deref(), Some("did you mean `pg_walinspect`?"));
    }

    #[test]
    fn every_list_is_sorted_and_without_repeats() {
        for list in [&EXTENSIONS[..], &LIBRARIES, &PARAMETERS, &FUNCTIONS] {
            assert!(list.windows(2).all(|pair| pair[0] < pair[1]), "{list:?}");
        }
    }
}
