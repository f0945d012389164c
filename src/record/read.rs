//! Reads `record.json`. Entry: [`read_record`]. What is no record, is of a newer format, or is not
//! as it was written is refused with its place; a record of an older format is brought to this one.

use super::format::{FORMAT, Record};
use super::integrity::{self, SEALED_SINCE};
use crate::diagnostic::Diagnostic;
use crate::exit_code::Failure;
use crate::source::Source;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// What the file says of itself.
#[derive(Deserialize)]
struct Heading {
    format: u32,
    /// Hash of each part, by its name.
    sha256: Option<BTreeMap<String, String>>,
}

const HINT: &str = "restore it from version control, or remove it and accept new measurements";

/// The accepted record; None where there is none.
pub fn read_record(path: &Path) -> Result<Option<Record>, Failure> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::io("read", path, &error)),
    };
    // What is no UTF-8 is no JSON either, and is told as such, at its place.
    let text = String::from_utf8_lossy(&bytes);
    parse_record(&path.display().to_string(), &text)
        .map(Some)
        .map_err(Failure::Record)
}

/// A record from its text; `name` is what the file is called in messages.
pub fn parse_record(name: &str, text: &str) -> Result<Record, Diagnostic> {
    let unreadable = |error: &serde_json::Error| {
        let source = Source::new(name, name, text.to_owned());
        let line_start = text
            .split_inclusive('\n')
            .take(error.line().saturating_sub(1))
            .map(str::len)
            .sum::<usize>();
        // Columns are counted in bytes, and may lie inside a character.
        let offset = text.floor_char_boundary(line_start + error.column().saturating_sub(1));
        Diagnostic::error(format!("this record cannot be read: {error}"))
            .at(&source, offset..offset)
            .hint(HINT)
    };
    let heading: Heading = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
    if heading.format > FORMAT {
        return Err(Diagnostic::error(format!(
            "`{name}` is a record of format {}, this build reads up to {FORMAT}",
            heading.format
        ))
        .hint(format!(
            "use the version of remeasure that wrote it, or a later one; this is {}",
            env!("CARGO_PKG_VERSION")
        )));
    }
    let mut record: Record = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
    let sealed = match heading.sha256 {
        Some(sealed) => sealed,
        None if heading.format < SEALED_SINCE => BTreeMap::new(),
        None => {
            return Err(Diagnostic::error(format!(
                "`{name}` is of format {} and has no `sha256`: it was cut or edited",
                heading.format
            ))
            .hint(HINT));
        }
    };
    let damage = integrity::damage(text, heading.format, &sealed);
    if let Some((first, others)) = damage.split_first() {
        let source = Source::new(name, name, text.to_owned());
        let mut diagnostic = Diagnostic::error(&first.message)
            .at(&source, first.place.clone())
            .hint(HINT);
        for other in others {
            diagnostic = diagnostic.note(&other.message);
        }
        return Err(diagnostic);
    }
    bring_up(&mut record);
    Ok(record)
}

/// Brings a record of an older format to this one.
fn bring_up(record: &mut Record) {
    if record.format < SEALED_SINCE {
        // The host's hash was of its whole description, down to the kernel's release.
        let host = &mut record.environment.host;
        let now = host.hash();
        let before = std::mem::replace(&mut host.sha256, now.clone());
        for experiment in record.experiments.values_mut() {
            if experiment.host == before {
                experiment.host.clone_from(&now);
            }
        }
    }
    record.format = FORMAT;
}
