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
        // Every engine that sets up its server has databases of this collation.
        let collation = (!server.collation.starts_with("C (") && !server.collation.is_empty())
            .then(|| {
                format!(
                    "texts sort by {} in {}, as the server has it, not by C in UTF8",
                    server.collation, server.encoding
                )
            });
        if collation.is_some() || !server.differing.is_empty() || !record.skipped.is_empty() {
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
            details: collation
                .into_iter()
                .chain(differing)
                .chain(skipped)
                .collect(),
        })
    }

    /// All of it, one thing a line.
    pub fn lines(self) -> Vec<String> {
        let details = self.details.into_iter().map(|detail| format!("- {detail}"));
        self.sentences.into_iter().chain(details).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::SettingDifference;
    use super::*;

    fn record(engine: &str) -> Record {
        let mut record = Record::default();
        let server = &mut record.environment.server;
        server.engine = engine.into();
        server.version = "16.4".into();
        server.collation = "C (libc)".into();
        record
    }

    #[test]
    fn only_of_an_existing_server_something_is_said() {
        for engine in ["embedded", "docker", "fake"] {
            assert_eq!(Unpinned::of(&record(engine), "16.15"), None);
        }
        let lines = |record: &Record, pinned| Unpinned::of(record, pinned).unwrap().lines();
        let mut record = record("url");
        assert_eq!(lines(&record, "16.4").len(), 1);
        assert!(lines(&record, "16.15")[1].contains("about 16.15, every figure here is of 16.4"));

        let server = &mut record.environment.server;
        server.collation = "en_US.UTF-8 (libc)".into();
        server.encoding = "UTF8".into();
        for (name, has) in [("a", Some("1")), ("b", None)] {
            let difference = SettingDifference {
                wanted: "2".into(),
                has: has.map(str::to_owned),
            };
            server.differing.insert(name.into(), difference);
        }
        for (kind, id) in [("experiment", "e"), ("claim", "c")] {
            let what = Record::called(kind, id);
            record.skipped.insert(what, "not permitted".into());
        }
        assert_eq!(
            lines(&record, "16.4")[1..],
            [
                "What is otherwise than the article has it:",
                "- texts sort by en_US.UTF-8 (libc) in UTF8, as the server has it, not by C in UTF8",
                "- setting a is 1, the article has 2",
                "- setting b is not known there, the article has 2",
                "- experiment e was skipped: not permitted",
            ]
        );
    }
}
