//! `list`: the catalogues, each printed from the slice that the code itself uses.

use super::project::Project;
use super::terminal::print;
use crate::analyse::FUNCTIONS;
use crate::article::LintLevel;
use crate::chart::{CHARTS, NOTICES};
use crate::exit_code::{Failure, Outcome};
use crate::lint::{RULES, Rule};
use crate::measure::client::CLIENTS;
use crate::measure::instrument::{ColumnDescription, INSTRUMENTS};
use crate::measure::protocols::PROTOCOLS;
use crate::render::FORMATS;
use crate::report::REPORTS;
use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Catalogue {
    Articles,
    Instruments,
    Clients,
    Protocols,
    Functions,
    Charts,
    Formats,
    Reports,
    Rules,
    Versions,
    Notices,
}

pub fn list(project: &Project, catalogue: Catalogue) -> Result<Outcome, Failure> {
    let text = match catalogue {
        Catalogue::Articles => return articles(project),
        Catalogue::Instruments => instruments(),
        Catalogue::Clients => clients(),
        Catalogue::Protocols => protocols(),
        Catalogue::Functions => pairs(FUNCTIONS.iter().copied()),
        Catalogue::Charts => pairs(CHARTS.iter().map(|entry| (entry.name, entry.description))),
        Catalogue::Formats => pairs(FORMATS.iter().map(|entry| (entry.name, entry.description))),
        Catalogue::Reports => pairs(REPORTS.iter().map(|entry| (entry.name, entry.about))),
        Catalogue::Rules => rules(),
        Catalogue::Versions => project.pins()?.versions().join("\n") + "\n",
        Catalogue::Notices => NOTICES.to_owned(),
    };
    print(&text)?;
    Ok(Outcome::Holds)
}

fn articles(project: &Project) -> Result<Outcome, Failure> {
    let pins = project.pins()?;
    let mut text = String::new();
    let (articles, all_read) = project.articles(&[], &pins)?;
    for article in articles {
        let _ = writeln!(
            text,
            "{}  {} (Postgres {}, {} experiments, {} claims)",
            article.slug,
            article.front_matter.title.text,
            article.front_matter.postgres.versions_text(),
            article.experiments().count(),
            article.claims().count()
        );
    }
    print(&text)?;
    all_read.map(|()| Outcome::Holds)
}

fn instruments() -> String {
    let mut text = String::new();
    for instrument in INSTRUMENTS {
        let _ = writeln!(
            text,
            "{} (PostgreSQL {} and later)\n  {}",
            instrument.name, instrument.minimum_version, instrument.description
        );
        columns(&mut text, instrument.columns);
        for (name, rows) in instrument.tables {
            let _ = writeln!(text, "    measured.<experiment>_{name}: {rows}");
        }
        for option in instrument.options {
            let since = match option.minimum_version > instrument.minimum_version {
                true => format!(" (PostgreSQL {} and later)", option.minimum_version),
                false => String::new(),
            };
            let words = match option.words.is_empty() {
                true => "true or false".to_owned(),
                false => option.words.join(", "),
            };
            let _ = writeln!(
                text,
                "    option {}: {words}; {} unless said otherwise: {}{since}",
                option.name, option.default, option.description
            );
        }
        let _ = writeln!(text, "  disturbed by: {}\n", instrument.disturbed_by);
    }
    text
}

fn columns(text: &mut String, columns: &[ColumnDescription]) {
    for column in columns {
        let _ = writeln!(
            text,
            "    {} {} [{}]: {}",
            column.name, column.type_name, column.unit, column.description
        );
    }
}

/// Who runs a phase other than its session.
fn clients() -> String {
    let mut text = String::new();
    for client in CLIENTS {
        let _ = writeln!(
            text,
            "{}: `{}` behind {}\n  {}",
            client.name, client.written, client.phases, client.description
        );
        for (table, described) in client.tables {
            let _ = writeln!(text, "  {table}");
            columns(&mut text, described);
        }
        let arguments = (client.arguments)();
        if !arguments.is_empty() {
            let _ = writeln!(text, "  args: {arguments}");
        }
        let _ = writeln!(text, "  disturbed by: {}\n", client.disturbed_by);
    }
    text
}

fn protocols() -> String {
    let mut text = String::new();
    for protocol in PROTOCOLS {
        let _ = writeln!(
            text,
            "{} (PostgreSQL {} and later)\n  {}",
            protocol.name, protocol.minimum_version, protocol.description
        );
        if !protocol.gives.is_empty() {
            let _ = writeln!(text, "  gives: {}", protocol.gives);
        }
        let _ = writeln!(text, "  disturbed by: {}\n", protocol.disturbed_by);
    }
    text
}

fn rules() -> String {
    let level = |rule: &Rule| match rule.level {
        LintLevel::Ignore => "ignore",
        LintLevel::Warn => "warn",
        LintLevel::Error => "error",
    };
    RULES
        .iter()
        .map(|rule| format!("{} ({})\n  {}\n", rule.name, level(rule), rule.about))
        .collect()
}

fn pairs<'a>(entries: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    entries
        .map(|(name, description)| format!("{name}\n  {description}\n"))
        .collect()
}
