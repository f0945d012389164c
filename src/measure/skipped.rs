//! What an existing server does not let be measured: settings, rights, extensions and functions that
//! only its owner can give. Such an experiment is skipped with the reason, and shown as skipped.

use super::instrument::INSTRUMENTS;
use super::settings;
use crate::article::{Article, Client, Experiment, Fresh};
use crate::engine::Server;
use crate::exit_code::Failure;

/// What the tool reads the write-ahead log with.
pub const WAL_READER: &str = "pg_walinspect";

/// Instruments that read by an extension.
const READ_BY: [(&str, &str); 1] = [("wal", WAL_READER)];

/// Postgres's codes for what a role may not do (insufficient_privilege), and for a setting that
/// cannot be changed (cant_change_runtime_param).
const NOT_PERMITTED: [&str; 2] = ["42501", "55P02"];

/// Codes that say of a statement of the tool's own that the server does not have what it asks for:
/// an undefined function, table, column or object, a feature that is not supported.
const NOT_THERE: [&str; 5] = ["42883", "42P01", "42703", "42704", "0A000"];

/// Codes that say that a database is not copied: not by this role (insufficient_privilege), not on
/// this server (feature_not_supported, syntax_error), or not while somebody, such as what watches
/// over the server, is connected to it (object_in_use).
const NOT_COPIED: [&str; 4] = ["42501", "0A000", "42601", "55006"];

/// Whether an existing server refused to copy a database, where a failure is that.
pub fn is_not_copied(server: &Server, failure: &Failure) -> bool {
    let Failure::Internal(problem) = failure else {
        return false;
    };
    let code = problem.sqlstate.as_deref();
    server.is_existing() && code.is_some_and(|code| NOT_COPIED.contains(&code))
}

/// Why an experiment cannot be measured here, where that is known before it begins.
pub fn beforehand(server: &Server, article: &Article, experiment: &Experiment) -> Option<String> {
    if !server.is_existing() {
        return None;
    }
    for extension in &article.front_matter.postgres.extensions {
        let name = &extension.value;
        if let Some(why) = server.missing_extension(name) {
            return Some(format!("extension `{name}` cannot be had: {why}"));
        }
    }
    let mut clients = experiment.phases().map(|phase| &phase.client);
    if let Some(client) = clients.find(|client| client.program().is_some()) {
        let program = match client {
            Client::Psql(_) => "psql",
            _ => "pgbench",
        };
        return Some(format!(
            "{program} is that of a pinned server, which this is none of"
        ));
    }
    if experiment.fresh == Fresh::Never && settings::are_of_cells(experiment) {
        return Some(
            "settings of cells are those of each cell's own databases here, and with `fresh: never` \
             there is one for all"
                .to_owned(),
        );
    }
    let version = server.version();
    let major: u32 = version.split('.').next()?.parse().ok()?;
    for choice in &experiment.instruments {
        let name = choice.value.name.as_str();
        let instrument = INSTRUMENTS.iter().find(|known| known.name == name)?;
        let minimum = instrument.minimum_version;
        if major < minimum {
            let why = format!("instrument `{name}` needs Postgres {minimum}, this is {version}");
            return Some(why);
        }
        for (_, extension) in READ_BY.iter().filter(|(reader, _)| *reader == name) {
            if let Some(why) = server.missing_extension(extension) {
                return Some(format!(
                    "instrument `{name}` reads by extension `{extension}`, which cannot be had: {why}"
                ));
            }
        }
    }
    None
}

/// What an existing server refused, where a failure is that.
pub fn refusal(server: &Server, failure: &Failure) -> Option<String> {
    if !server.is_existing() {
        return None;
    }
    let (problems, codes) = match failure {
        Failure::Article(problems) => (problems.as_slice(), &NOT_PERMITTED[..]),
        Failure::Internal(problem) => (
            std::slice::from_ref(problem),
            &[NOT_PERMITTED.as_slice(), &NOT_THERE].concat()[..],
        ),
        _ => return None,
    };
    let refused = |code: &String| codes.contains(&code.as_str());
    let all = problems
        .iter()
        .all(|problem| problem.sqlstate.as_ref().is_some_and(refused));
    let first = problems.first().filter(|_| all)?;
    let words = std::iter::once(&first.message).chain(&first.notes);
    let words: Vec<&str> = words.map(|part| part.trim_end_matches('.')).collect();
    Some(words.join("; "))
}
