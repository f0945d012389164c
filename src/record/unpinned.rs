//! What every page and report says that was measured on an existing server: that nothing is pinned there, and
//! what was otherwise than the article has it. Entry: [`Unpinned::of`].

use super::Record;
use serde::Serialize;

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Unpinned {
    pub sentences: Vec<String>,
    /// Settings that differ, and what was skipped.
    pub details: Vec<String>,
}

impl Unpinned {
    /// `pinned`: the version that the article names. None where the server was set up by the tool.
    pub fn of(record: &Record, pinned: &str) -> Option<Self> {
        let server = &record.environment.server;
        if !server.is_existing() {
            return None;
        }
        let version = &server.version;
        let mut sentences = vec![format!(
            "Measured on an existing server of Postgres {version}, not on the one that is pinned: what \
             else it is and does is not known, and nobody else can measure these figures again."
        )];
        if version != pinned {
            sentences.push(format!(
                "Its version differs: the article is about {pinned}, every figure here is of {version}."
            ));
        }
        if !server.differing.is_empty() || !record.skipped.is_empty() {
            sentences.push("What is otherwise than the article has it:".to_owned());
        }
        let differing = server.differing.iter().map(|(name, difference)| {
            let wanted = &difference.wanted;
            match &difference.has {
                Some(has) => format!("setting {name} is {has}, the article has {wanted}"),
                None => format!("setting {name} is not known there, the article has {wanted}"),
            }
        });
        let skipped = record
            .skipped
            .iter()
            .filter(|(what, _)| what.starts_with("experiment "))
            .map(|(what, reason)| format!("{} was skipped: {reason}", what.replace('`', "")));
        Some(Self {
            sentences,
            details: differing.chain(skipped).collect(),
        })
    }

    /// All of it, one thing a line.
    pub fn lines(self) -> Vec<String> {
        let details = self.details.into_iter().map(|detail| format!("- {detail}"));
        self.sentences.into_iter().chain(details).collect()
    }
}
