//! What an experiment says of an instrument.

use super::Experiment;
use crate::source::Spanned;
use indexmap::IndexMap;

/// `wal`, or with options `{explain: {analyze: true, timing: false}}`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstrumentChoice {
    pub name: String,
    pub options: InstrumentOptions,
    /// The results of their own it gives: `measured.<experiment>_<name>`.
    pub tables: Vec<&'static str>,
}

/// Those that were written down, in the order of the instrument's catalogue.
pub type InstrumentOptions = IndexMap<String, Spanned<OptionValue>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionValue {
    Boolean(bool),
    /// One of the option's words.
    Word(&'static str),
}

impl std::fmt::Display for OptionValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// An option that an instrument knows.
#[derive(Clone, Copy, Debug)]
pub struct InstrumentOption {
    pub name: &'static str,
    pub default: OptionValue,
    /// What it may be; empty: true or false.
    pub words: &'static [&'static str],
    /// An option that has to be on for this one to mean anything.
    pub needs: Option<&'static str>,
    /// Lowest major version of the server.
    pub minimum_version: u32,
    pub description: &'static str,
}

impl Experiment {
    /// The options of an instrument that the experiment reads.
    pub fn instrument(&self, name: &str) -> Option<&InstrumentOptions> {
        let mut choices = self.instruments.iter();
        let choice = choices.find(|choice| choice.value.name == name)?;
        Some(&choice.value.options)
    }
}
