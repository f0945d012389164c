//! Who runs the SQL of a phase: the session, over and over, or a program of the server's.

use crate::source::{Extract, Span, Spanned};

/// Who runs the SQL of a phase.
#[derive(Clone, Debug, Default)]
pub enum Client {
    /// The phase's session, statement by statement.
    #[default]
    Session,
    /// The same, its one statement over and over.
    Repeat(Repeat),
    /// The server's own psql.
    Psql(ProgramScript),
    /// The server's own pgbench.
    Pgbench(ProgramScript),
}

impl Client {
    /// Names of the `:params` that its arguments or its number of repetitions are, and where.
    pub fn params(&self) -> Vec<(&str, Span)> {
        let words = match self {
            Self::Session => &[],
            Self::Repeat(repeat) => std::slice::from_ref(&repeat.times),
            Self::Psql(script) | Self::Pgbench(script) => script.arguments.as_slice(),
        };
        words
            .iter()
            .filter_map(|word| Some((&word.value[param_in(&word.value)?][1..], word.span)))
            .collect()
    }

    /// Whether pgbench makes its tables; the phase's SQL is then the session's, after it.
    pub fn initialises(&self) -> bool {
        matches!(self, Self::Pgbench(script) if script.initialises)
    }

    /// What runs it, where that is no session of the tool's.
    pub fn program(&self) -> Option<&ProgramScript> {
        match self {
            Self::Psql(script) | Self::Pgbench(script) => Some(script),
            Self::Session | Self::Repeat(_) => None,
        }
    }
}

/// Where a word has a `:param` for its value: `:clients`, `--client=:clients`, `-c:clients`.
pub fn param_in(word: &str) -> Option<std::ops::Range<usize>> {
    let colon = word.find(':')?;
    let before = &word[..colon];
    let short = before.len() == 2 && before.starts_with('-') && before != "--";
    let value = &word[colon + 1..];
    let is_name = !value.starts_with(|c: char| c.is_ascii_digit())
        && !value.is_empty()
        && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_name && (before.is_empty() || before.ends_with('=') || short)).then_some(colon..word.len())
}

#[derive(Clone, Debug)]
pub struct Repeat {
    /// A whole number above zero, or a `:param` that is one.
    pub times: Spanned<String>,
    pub transaction: RepeatTransaction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatTransaction {
    /// Each execution commits by itself.
    Each,
    /// A single transaction around all.
    One,
}

/// A script that psql or pgbench runs.
#[derive(Clone, Debug, Default)]
pub struct ProgramScript {
    /// Checked; values may be `:params`.
    pub arguments: Vec<Spanned<String>>,
    /// pgbench is to make its tables: there is no `body`.
    pub initialises: bool,
    /// As it stands in the block.
    pub body: Extract,
    /// Ranges of `body` that the program does not get: what the tool sees to itself.
    pub blanked: Vec<std::ops::Range<usize>>,
    /// What the program counts as a command, in order: ranges of `body`.
    pub commands: Vec<std::ops::Range<usize>>,
    /// Files of the article's folder that it reads, as far as its text tells; one that is not there
    /// may be written by an earlier phase.
    pub files: Vec<Spanned<String>>,
}

impl ProgramScript {
    /// What the program gets, line by line as in the block.
    pub fn text(&self) -> String {
        let mut text = self.body.text.clone().into_bytes();
        for byte in self.blanked.iter().flat_map(|range| range.clone()) {
            if text[byte] != b'\n' && text[byte] != b'\r' {
                text[byte] = b' ';
            }
        }
        String::from_utf8(text).unwrap_or_else(|_| self.body.text.clone())
    }
}
