//! psql variables put into a statement: `:name` as it is, `:'name'` as a literal, `:"name"` as an
//! identifier, with psql's own escaping; and the way back for the server's error positions.

use super::lexer::{Kind, Lexer};
use crate::article::{Statement, VariableQuoting, VariableReference, Variables};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::source::{Extract, Source};
use std::sync::Arc;

/// A statement ready for the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expanded {
    pub sql: String,
    /// The statement as it stands in the article.
    text: Extract,
    pieces: Vec<Piece>,
}

/// A stretch of `sql`, up to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// Byte offset in `sql`.
    start: usize,
    /// Byte offset in the statement's text.
    origin: usize,
    /// A variable's value: all of it comes from the one place.
    substituted: bool,
}

impl Expanded {
    /// The source byte offset of the `position`-th character, counted from one as the server
    /// counts; inside a variable's value, the place of the variable.
    pub fn source_offset(&self, position: usize) -> usize {
        let byte = self
            .sql
            .char_indices()
            .nth(position.saturating_sub(1))
            .map_or(self.sql.len(), |(at, _)| at);
        let index = self.pieces.partition_point(|piece| piece.start <= byte);
        match index.checked_sub(1).map(|index| self.pieces[index]) {
            Some(piece) if piece.substituted => self.text.to_source(piece.origin),
            Some(piece) => self.text.to_source(piece.origin + (byte - piece.start)),
            None => self.text.to_source(0),
        }
    }
}

/// Fills a statement's variables in. A variable that `variables` does not hold is an error.
pub fn expand(
    statement: &Statement,
    variables: &Variables,
    source: &Arc<Source>,
) -> Result<Expanded, Diagnostic> {
    let text = &statement.text.text;
    let mut sql = String::with_capacity(text.len() + 16);
    let mut pieces = Vec::with_capacity(2 * statement.variables.len() + 1);
    let mut at = 0;
    for variable in &statement.variables {
        push_verbatim(&mut sql, &mut pieces, text, at..variable.range.start);
        let value = value_of(variable, variables)
            .map_err(|problem| problem.at(source, statement.text.span(variable.range.clone())))?;
        pieces.push(Piece {
            start: sql.len(),
            origin: variable.range.start,
            substituted: true,
        });
        sql.push_str(&value);
        at = variable.range.end;
    }
    push_verbatim(&mut sql, &mut pieces, text, at..text.len());
    Ok(Expanded {
        sql,
        text: statement.text.clone(),
        pieces,
    })
}

/// Fills the variables of a text that is no statement (a setting's value, a `derive` expression)
/// by the same rules. The diagnostic has no place yet.
pub fn expand_text(text: &str, variables: &Variables) -> Result<String, Diagnostic> {
    let mut expanded = String::with_capacity(text.len());
    let mut at = 0;
    for variable in variables_of_text(text) {
        expanded.push_str(&text[at..variable.range.start]);
        expanded.push_str(&value_of(&variable, variables)?);
        at = variable.range.end;
    }
    expanded.push_str(&text[at..]);
    Ok(expanded)
}

/// The psql variables of a text that is no statement.
pub fn variables_of_text(text: &str) -> Vec<VariableReference> {
    Lexer::new(text)
        .filter_map(|token| match token.kind {
            Kind::Variable(quoting) => token.variable_name(text).map(|name| VariableReference {
                name: name.to_owned(),
                quoting,
                range: token.range.clone(),
            }),
            _ => None,
        })
        .collect()
}

/// "unknown variable", with what was probably meant, without a place.
pub fn unknown_variable<'n>(
    name: &str,
    known: impl IntoIterator<Item = &'n str> + Clone,
) -> Diagnostic {
    let problem = Diagnostic::error(format!("unknown variable `:{name}`"));
    if let Some(near) = did_you_mean(name, known.clone()) {
        return problem.hint(near);
    }
    let names: Vec<String> = known.into_iter().map(|name| format!("`{name}`")).collect();
    problem.hint(if names.is_empty() {
        "name it under `params:` or in the experiment's `matrix:`".to_owned()
    } else {
        format!(
            "known here: {}; add it under `params:` or in the experiment's `matrix:`",
            names.join(", ")
        )
    })
}

fn push_verbatim(
    sql: &mut String,
    pieces: &mut Vec<Piece>,
    text: &str,
    range: std::ops::Range<usize>,
) {
    if range.is_empty() {
        return;
    }
    pieces.push(Piece {
        start: sql.len(),
        origin: range.start,
        substituted: false,
    });
    sql.push_str(&text[range]);
}

fn value_of(variable: &VariableReference, variables: &Variables) -> Result<String, Diagnostic> {
    let value = variables
        .get(&variable.name)
        .ok_or_else(|| unknown_variable(&variable.name, variables.keys().map(String::as_str)))?
        .to_string();
    Ok(match variable.quoting {
        VariableQuoting::Plain => value,
        VariableQuoting::Literal => literal(&value),
        VariableQuoting::Identifier => format!("\"{}\"", value.replace('"', "\"\"")),
    })
}

/// As libpq's `PQescapeLiteral` writes it: a backslash asks for the E form, and a space keeps
/// that E apart from a word before it.
fn literal(value: &str) -> String {
    let quoted = value.replace('\'', "''");
    if quoted.contains('\\') {
        format!(" E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}
