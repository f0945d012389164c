//! SQL as psql and Postgres read it: a script into statements ([`split`]), variables put in
//! ([`expand`]), the measured tables a query reads ([`measured_tables`]).

mod backslash;
pub mod lexer;
mod splitter;
#[cfg(test)]
mod tests;
mod variables;

pub use splitter::split;
pub use variables::{Expanded, expand, expand_text, unknown_variable, variables_of_text};

use crate::article::{Statement, Terminator};
use lexer::{Kind, Lexer, Token, identifier};

/// The tables of schema `measured` that `sql` names, in the order of their first mention.
pub fn measured_tables(sql: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (name, _) in measured_table_places(sql) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Every mention of a table of schema `measured`, with the range of the table's name.
pub fn measured_table_places(sql: &str) -> Vec<(String, std::ops::Range<usize>)> {
    let tokens: Vec<Token> = Lexer::new(sql).filter(Token::is_significant).collect();
    let mut places = Vec::new();
    for (index, window) in tokens.windows(3).enumerate() {
        let after_dot = index > 0 && tokens[index - 1].kind == Kind::Dot;
        if after_dot
            || window[1].kind != Kind::Dot
            || identifier(&window[0], sql).as_deref() != Some("measured")
        {
            continue;
        }
        if let Some(name) = identifier(&window[2], sql) {
            places.push((name, window[2].range.clone()));
        }
    }
    places
}

/// The words of a statement, folded as Postgres folds them; comments, strings and signs are left
/// out.
pub fn words(sql: &str) -> impl Iterator<Item = String> + '_ {
    Lexer::new(sql)
        .filter(Token::is_significant)
        .filter_map(|token| identifier(&token, sql))
}

/// Whether Postgres explains the statement and nothing else takes its result.
pub fn is_explainable(statement: &Statement) -> bool {
    let words: Vec<String> = words(&statement.text.text).collect();
    let first = words.first().map_or("", String::as_str);
    let kind = match first {
        "select" | "insert" | "update" | "delete" | "merge" | "values" | "table" | "with"
        | "execute" => true,
        // `CREATE TABLE … AS`; in a list of columns `as` stands for generated ones, behind ALWAYS.
        "create" => {
            let kind = words[1..].iter().find(|word| {
                !matches!(
                    word.as_str(),
                    "temp" | "temporary" | "unlogged" | "local" | "global"
                )
            });
            let query = words.windows(2).any(|pair| {
                pair[0] == "as"
                    && matches!(
                        pair[1].as_str(),
                        "select" | "with" | "values" | "table" | "execute"
                    )
            });
            query && kind.is_some_and(|kind| kind == "table" || kind == "materialized")
        }
        _ => false,
    };
    kind && statement.terminator == Terminator::Semicolon
}

/// Which variables a statement that ends in `\gset` may set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetVariables {
    /// With the prefix in front.
    Named(Vec<String>),
    /// The columns are known to the server alone; any name that begins so.
    AnyWithPrefix(String),
}

/// What `statement` sets, as far as its text tells: every name in it may be a column's, and a
/// `*` may be any.
pub fn set_by(statement: &Statement) -> Option<SetVariables> {
    let Terminator::Gset { prefix } = &statement.terminator else {
        return None;
    };
    let text = &statement.text.text;
    let tokens: Vec<Token> = Lexer::new(text).filter(Token::is_significant).collect();
    let star = tokens.iter().enumerate().any(|(index, token)| {
        let opened = index > 0 && tokens[index - 1].kind == Kind::OpenParenthesis;
        token.kind == Kind::Star && !opened
    });
    let names: Vec<String> = tokens
        .iter()
        .filter_map(|token| identifier(token, text))
        .collect();
    let lists_columns = names
        .iter()
        .any(|name| name == "select" || name == "returning");
    if star || !lists_columns {
        return Some(SetVariables::AnyWithPrefix(prefix.clone()));
    }
    Some(SetVariables::Named(
        names
            .into_iter()
            .map(|name| format!("{prefix}{name}"))
            .collect(),
    ))
}
