//! Articles for the tests of later stages, read from text.

use super::{Known, KnownInstrument, parse};
use crate::article::{Article, InstrumentOption, OptionValue};
use crate::source::Source;
use std::path::Path;

/// With the one result that the real ones give where nothing is said of instruments.
pub const INSTRUMENTS: [KnownInstrument; 4] = [
    KnownInstrument::plain("time"),
    KnownInstrument {
        tables: &[("wal", "each record type")],
        options: &[InstrumentOption {
            name: "images",
            default: OptionValue::Boolean(true),
            words: &[],
            needs: None,
            minimum_version: 16,
            description: "of this catalogue alone",
        }],
        ..KnownInstrument::plain("wal")
    },
    KnownInstrument::plain("hot"),
    KnownInstrument::plain("tuples"),
];

/// The article of this text, which has nothing wrong with it.
pub(crate) fn article(text: &str) -> Article {
    let path = "articles/index-cost/article.md";
    let source = Source::new(path, path, text.to_owned());
    let known = Known {
        versions: &["16.15".to_owned(), "18.6".to_owned()],
        instruments: &INSTRUMENTS,
        charts: &["bar", "line", "scatter"],
        lint_rules: &["unbound"],
    };
    let folder = Path::new("articles/index-cost");
    parse(&source, "index-cost", folder, &known).unwrap_or_else(|problems| {
        let told: Vec<String> = problems.iter().map(|p| p.render(false)).collect();
        panic!("{}", told.join("\n"))
    })
}
