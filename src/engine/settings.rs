//! The article's server settings on their way to a server that an engine starts: refused where they
//! are not the article's to set ([`check_settings`]), written as a file ([`settings_file`]), and what
//! the server's log says against them ([`setting_complaints`]). Before all of them: how every
//! engine initialises a data directory ([`initdb_arguments`]).

use super::session::Role;
use super::trust;
use crate::diagnostic::Diagnostic;
use crate::exit_code::Failure;
use std::collections::BTreeMap;

/// The same for every engine, beside the place: what is measured must not depend on which it is.
pub fn initdb_arguments(major: u32) -> Vec<&'static str> {
    let mut arguments = vec!["--username", Role::Tool.name(), "--auth", "trust"];
    arguments.extend(["--no-locale", "--encoding", "UTF8", "--no-sync"]);
    // initdb would try how much this machine allows; the same everywhere is better.
    arguments.extend([
        "--set",
        "shared_buffers=128MB",
        "--set",
        "max_connections=100",
    ]);
    if major >= 18 {
        // The default of 18, and not of earlier versions; said so that it stays.
        arguments.push("--data-checksums");
    }
    arguments
}

pub fn check_settings(settings: &BTreeMap<String, String>) -> Result<(), Failure> {
    let refused: Vec<_> = settings
        .iter()
        .filter_map(|(name, value)| trust::refuse_setting(name, value))
        .collect();
    if refused.is_empty() {
        Ok(())
    } else {
        Err(Failure::Article(refused))
    }
}

/// Names are checked before; values are quoted as configuration files want it.
pub fn settings_file(settings: &BTreeMap<String, String>) -> String {
    let mut text = String::from("# Written by remeasure at every start.\n");
    for (name, value) in settings {
        let quoted = value
            .replace('\\', "\\\\")
            .replace('\'', "''")
            .replace('\n', "\\n")
            .replace('\r', "\\r");
        text.push_str(&format!("{name} = '{quoted}'\n"));
    }
    text
}

/// What the server's log says against the article's settings.
pub fn setting_complaints(log: &str, settings: &BTreeMap<String, String>) -> Vec<Diagnostic> {
    const WORDS: [&str; 7] = [
        "unrecognized configuration parameter",
        "invalid value for parameter",
        "is outside the valid range",
        "requires a ",
        "cannot be changed",
        "must be ",
        "could not access file",
    ];
    let mut complaints: Vec<Diagnostic> = Vec::new();
    for line in log.lines() {
        let said = ["LOG:  ", "FATAL:  ", "WARNING:  "]
            .iter()
            .find_map(|level| line.split_once(level).map(|(_, said)| said));
        if let Some(said) = said {
            let about = settings.keys().find(|name| mentions(said, name));
            let library = said.starts_with("could not access file")
                && settings.contains_key("shared_preload_libraries");
            if (about.is_some() || library) && WORDS.iter().any(|word| said.contains(word)) {
                // The file and line are the tool's, not the author's.
                let message = said.split(" in file ").next().unwrap_or(said);
                complaints.push(Diagnostic::error(format!("Postgres says: {message}")));
            }
        } else if let Some((_, hint)) = line.split_once("HINT:  ")
            && let Some(last) = complaints.last_mut()
            && last.hint.is_none()
        {
            last.hint = Some(hint.to_owned());
        }
    }
    complaints
}

/// Whether a name stands in a line as a word of its own.
fn mentions(line: &str, name: &str) -> bool {
    line.to_ascii_lowercase()
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
        .any(|word| word == name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn values_are_quoted_as_configuration_files_want_it() {
        let text = settings_file(&settings(&[
            ("work_mem", "4MB"),
            ("search_path", "a'b\\c\nfsync = off"),
        ]));
        assert_eq!(
            text,
            "# Written by remeasure at every start.\n\
             search_path = 'a''b\\\\c\\nfsync = off'\nwork_mem = '4MB'\n"
        );
    }

    #[test]
    fn the_servers_complaints_about_settings_are_the_articles_mistakes() {
        let log = "\
2026-11-30 12:00:00.000 UTC [7] LOG:  unrecognized configuration parameter \"shared_bufers\" in file \"/x/remeasure.conf\" line 2\n\
2026-11-30 12:00:00.000 UTC [7] LOG:  invalid value for parameter \"work_mem\": \"4 miles\"\n\
2026-11-30 12:00:00.000 UTC [7] HINT:  Valid units for this parameter are \"B\", \"kB\".\n\
2026-11-30 12:00:00.000 UTC [7] FATAL:  configuration file \"/x/postgresql.conf\" contains errors\n";
        let given = settings(&[("shared_bufers", "1GB"), ("work_mem", "4 miles")]);
        let complaints = setting_complaints(log, &given);
        let messages: Vec<_> = complaints.iter().map(|c| c.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "Postgres says: unrecognized configuration parameter \"shared_bufers\"",
                "Postgres says: invalid value for parameter \"work_mem\": \"4 miles\"",
            ]
        );
        assert!(
            complaints[1]
                .hint
                .as_deref()
                .unwrap()
                .starts_with("Valid units")
        );
        assert!(setting_complaints(log, &settings(&[("fsync", "off")])).is_empty());
    }
}
