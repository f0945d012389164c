//! The inside of a live block: runs of `--|` lines, each one YAML mapping, and the SQL below each.

use super::problems::Problems;
use super::yaml::{self, Entry};
use crate::source::{Extract, Span};
use std::ops::Range;

pub const MARK: &str = "--|";

/// A run of `--|` lines (none before a block's leading SQL) and the SQL up to the next run.
pub struct Section {
    pub entries: Vec<Entry>,
    /// From the first `--|` of the run to the end of its last line; None without a run.
    pub directives: Option<Span>,
    pub sql: Extract,
}

/// A block's sections, in order. A run that is no mapping is told and gives a section without
/// entries; `complete` is false then.
pub struct Sections {
    pub sections: Vec<Section>,
    pub complete: bool,
}

pub fn sections(content: &Extract, problems: &Problems) -> Sections {
    let mut sections = Vec::new();
    let mut complete = true;
    for piece in pieces(&content.text) {
        tell_indented_marks(content, piece.sql.clone(), problems);
        let sql = content.slice(piece.sql);
        let (entries, directives) = if piece.yaml.is_empty() {
            (Vec::new(), None)
        } else {
            let mut text = Extract::default();
            for line in &piece.yaml {
                let line = content.slice(line.clone());
                text.push(&line.text, line.to_source(0));
            }
            let entries = yaml::mapping(&text, problems);
            complete &= entries.is_some();
            (entries.unwrap_or_default(), Some(content.span(piece.run)))
        };
        sections.push(Section {
            entries,
            directives,
            sql,
        });
    }
    Sections { sections, complete }
}

/// Ranges of a section in a block's content.
struct Piece {
    /// What each `--|` line holds behind the mark and one space, with its newline.
    yaml: Vec<Range<usize>>,
    run: Range<usize>,
    sql: Range<usize>,
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = 0;
    let mut in_run = false;
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        if let Some(yaml) = line.strip_prefix(MARK) {
            let space = usize::from(yaml.starts_with(' '));
            let yaml = range.start + MARK.len() + space..range.end;
            let end = range.start + line.trim_end().len();
            match pieces.last_mut() {
                Some(piece) if in_run => {
                    piece.yaml.push(yaml);
                    piece.run.end = end;
                    piece.sql = range.end..range.end;
                }
                _ => pieces.push(Piece {
                    yaml: vec![yaml],
                    run: range.start..end,
                    sql: range.end..range.end,
                }),
            }
            in_run = true;
        } else {
            in_run = false;
            match pieces.last_mut() {
                Some(piece) => piece.sql.end = range.end,
                None => pieces.push(Piece {
                    yaml: Vec::new(),
                    run: range.start..range.start,
                    sql: range,
                }),
            }
        }
    }
    pieces
}

/// An indented mark would be an ordinary comment to Postgres, and its options silently lost.
fn tell_indented_marks(content: &Extract, sql: Range<usize>, problems: &Problems) {
    let mut at = sql.start;
    for line in content.text[sql].split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        if line[indent..].starts_with(MARK) {
            problems.error(
                content.span(at + indent..at + indent + MARK.len()),
                "`--|` is not at the beginning of its line",
                "move it to the beginning of the line",
            );
        }
        at += line.len();
    }
}
