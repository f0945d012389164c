//! Postgres's lexical rules plus psql's variables, as tokens with their ranges. squawk-lexer knows
//! the former; what psql adds (`:name`, backslash commands, where a slice is no variable) is here.

use crate::article::VariableQuoting;
use squawk_lexer::{LiteralKind, TokenKind};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Whitespace,
    LineComment,
    BlockComment,
    /// An identifier or keyword without quotes.
    Word,
    QuotedIdentifier,
    /// Any literal between quotes or dollars.
    String,
    Variable(VariableQuoting),
    Semicolon,
    Comma,
    Dot,
    Star,
    OpenParenthesis,
    CloseParenthesis,
    OpenBracket,
    CloseBracket,
    /// `\`: psql's command begins here; the lexer goes on behind the one character.
    Backslash,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub range: Range<usize>,
    /// What is not closed, for people, where the text ends inside it.
    pub unterminated: Option<&'static str>,
}

impl Token {
    /// Neither space nor comment.
    pub fn is_significant(&self) -> bool {
        !matches!(
            self.kind,
            Kind::Whitespace | Kind::LineComment | Kind::BlockComment
        )
    }

    /// The variable's name, out of the text the token was read from.
    pub fn variable_name<'t>(&self, text: &'t str) -> Option<&'t str> {
        let inside = &text[self.range.clone()];
        match self.kind {
            Kind::Variable(VariableQuoting::Plain) => Some(&inside[1..]),
            Kind::Variable(_) => Some(&inside[2..inside.len() - 1]),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Parenthesis,
    /// `a[1:2]`: a colon inside parts the bounds of a slice.
    Subscript,
    /// `ARRAY[…]`: has no slices.
    Constructor,
}

pub struct Lexer<'t> {
    text: &'t str,
    position: usize,
    brackets: Vec<Bracket>,
    /// How many of `brackets` are parentheses.
    parentheses: usize,
    /// The last significant token.
    previous: Option<Token>,
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Self {
        Self {
            text,
            position: 0,
            brackets: Vec::new(),
            parentheses: 0,
            previous: None,
        }
    }

    /// How deep in parentheses the lexer is; psql splits at no semicolon inside them.
    pub fn parenthesis_depth(&self) -> usize {
        self.parentheses
    }

    /// Goes on at `position` with a new statement.
    pub fn restart(&mut self, position: usize) {
        self.position = position;
        self.brackets.clear();
        self.parentheses = 0;
        self.previous = None;
    }

    fn follow_brackets(&mut self, kind: Kind) {
        match kind {
            Kind::OpenParenthesis => {
                self.brackets.push(Bracket::Parenthesis);
                self.parentheses += 1;
            }
            Kind::CloseParenthesis if self.parentheses > 0 => {
                while self.brackets.pop() != Some(Bracket::Parenthesis) {}
                self.parentheses -= 1;
            }
            Kind::OpenBracket => {
                let bracket = if self.opens_subscript() {
                    Bracket::Subscript
                } else {
                    Bracket::Constructor
                };
                self.brackets.push(bracket);
            }
            Kind::CloseBracket if self.brackets.last() != Some(&Bracket::Parenthesis) => {
                self.brackets.pop();
            }
            _ => {}
        }
    }

    /// Whether a `[` here follows something that can be indexed.
    fn opens_subscript(&self) -> bool {
        self.previous
            .as_ref()
            .is_some_and(|token| match token.kind {
                Kind::Word => !self.text[token.range.clone()].eq_ignore_ascii_case("array"),
                Kind::OpenParenthesis | Kind::OpenBracket | Kind::Comma => false,
                _ => true,
            })
    }

    /// The length and quoting of a psql variable that begins at the colon `rest` begins with.
    fn variable(&self, rest: &str) -> Option<(usize, VariableQuoting)> {
        let after = &rest[1..];
        let first = after.chars().next()?;
        let (quoting, opening) = match first {
            '\'' => (VariableQuoting::Literal, 1),
            '"' => (VariableQuoting::Identifier, 1),
            _ => (VariableQuoting::Plain, 0),
        };
        let name = &after[opening..];
        let length = name
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()))
            .unwrap_or(name.len());
        if length == 0 {
            return None;
        }
        if opening == 0 {
            if first.is_ascii_digit() || self.brackets.last() == Some(&Bracket::Subscript) {
                return None;
            }
            return Some((1 + length, quoting));
        }
        // A bound of a slice is hardly a string literal, but it may be a quoted column.
        if quoting == VariableQuoting::Identifier
            && self.brackets.last() == Some(&Bracket::Subscript)
        {
            return None;
        }
        name[length..]
            .starts_with(first)
            .then_some((length + 3, quoting))
    }

    fn colon(&self, rest: &str) -> (Kind, usize) {
        if rest.starts_with("::") || rest.starts_with(":=") {
            return (Kind::Other, 2);
        }
        match self.variable(rest) {
            Some((length, quoting)) => (Kind::Variable(quoting), length),
            None => (Kind::Other, 1),
        }
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let rest = &self.text[self.position..];
        let raw = squawk_lexer::tokenize(rest).next()?;
        let mut length = raw.len as usize;
        let mut unterminated = None;
        let kind = match raw.kind {
            TokenKind::Eof => return None,
            TokenKind::Colon => {
                let (kind, colon_length) = self.colon(rest);
                length = colon_length;
                kind
            }
            TokenKind::Unknown if rest.starts_with('\\') => Kind::Backslash,
            other => {
                unterminated = what_is_open(other);
                plain_kind(other)
            }
        };
        let token = Token {
            kind,
            range: self.position..self.position + length,
            unterminated,
        };
        self.position += length;
        self.follow_brackets(kind);
        if token.is_significant() {
            self.previous = Some(token.clone());
        }
        Some(token)
    }
}

fn plain_kind(kind: TokenKind) -> Kind {
    match kind {
        TokenKind::Whitespace => Kind::Whitespace,
        TokenKind::LineComment => Kind::LineComment,
        TokenKind::BlockComment { .. } => Kind::BlockComment,
        TokenKind::Ident => Kind::Word,
        TokenKind::QuotedIdent { .. } => Kind::QuotedIdentifier,
        TokenKind::Literal {
            kind: LiteralKind::Int { .. } | LiteralKind::Numeric { .. },
        } => Kind::Other,
        TokenKind::Literal { .. } => Kind::String,
        TokenKind::Semi => Kind::Semicolon,
        TokenKind::Comma => Kind::Comma,
        TokenKind::Dot => Kind::Dot,
        TokenKind::Star => Kind::Star,
        TokenKind::OpenParen => Kind::OpenParenthesis,
        TokenKind::CloseParen => Kind::CloseParenthesis,
        TokenKind::OpenBracket => Kind::OpenBracket,
        TokenKind::CloseBracket => Kind::CloseBracket,
        _ => Kind::Other,
    }
}

fn what_is_open(kind: TokenKind) -> Option<&'static str> {
    match kind {
        TokenKind::BlockComment { terminated: false } => Some("comment"),
        TokenKind::QuotedIdent {
            terminated: false, ..
        } => Some("quoted identifier"),
        TokenKind::Literal { kind } => match kind {
            LiteralKind::DollarQuotedString { terminated: false } => Some("dollar quote"),
            LiteralKind::Str { terminated: false }
            | LiteralKind::NationalStr { terminated: false }
            | LiteralKind::ByteStr { terminated: false }
            | LiteralKind::BitStr { terminated: false }
            | LiteralKind::UnicodeEscStr { terminated: false }
            | LiteralKind::EscStr { terminated: false } => Some("string"),
            _ => None,
        },
        _ => None,
    }
}

/// An identifier as Postgres understands it: folded to lower case, or freed of its quotes.
pub fn identifier(token: &Token, text: &str) -> Option<String> {
    let raw = &text[token.range.clone()];
    match token.kind {
        Kind::Word => Some(raw.to_ascii_lowercase()),
        Kind::QuotedIdentifier if raw.starts_with('"') && token.unterminated.is_none() => {
            Some(raw[1..raw.len() - 1].replace("\"\"", "\""))
        }
        _ => None,
    }
}
