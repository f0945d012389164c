//! Cuts an expression into Tera's tokens, as far as checking it needs them.

use super::Problem;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name or a word operator.
    Word,
    Number,
    /// With its quotes: `"`, `'` or a backtick.
    Text,
    /// An operator or a bracket.
    Symbol,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    pub range: Range<usize>,
}

impl Token<'_> {
    pub fn is(&self, symbol: &str) -> bool {
        matches!(self.kind, Kind::Symbol | Kind::Word) && self.text == symbol
    }
}

/// Longest first.
const SYMBOLS: &[&str] = &[
    "...", "//", "**", "==", "!=", ">=", "<=", "?.", "?[", "+", "-", "*", "/", "%", "!", ".", ",",
    ":", "~", "|", "=", ">", "<", "(", ")", "[", "]", "{", "}",
];

/// The tokens of `expression`. Whatever would end the expression early and begin another (`x) }}`)
/// is refused, so that it can stand inside a call.
pub fn tokens(expression: &str) -> Result<Vec<Token<'_>>, Problem> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = 0;
    while let Some(first) = expression[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (kind, length) = next_token(expression, at, first)?;
        let range = at..at + length;
        tokens.push(Token {
            kind,
            text: &expression[range.clone()],
            range,
        });
        at += length;
    }
    if tokens.is_empty() {
        return Err(
            Problem::new("an empty `{{ }}`", 0..expression.len()).hint(Some(
                "put a claim, a param, `server.…` or `host.…` in it".into(),
            )),
        );
    }
    check_brackets(&tokens)?;
    Ok(tokens)
}

fn next_token(expression: &str, at: usize, first: char) -> Result<(Kind, usize), Problem> {
    let rest = &expression[at..];
    if first == '_' || first.is_ascii_alphabetic() {
        let length = rest
            .find(|c: char| c != '_' && !c.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        return Ok((Kind::Word, length));
    }
    if first.is_ascii_digit() {
        return Ok((Kind::Number, number_length(rest)));
    }
    if matches!(first, '"' | '\'' | '`') {
        let length = quoted_length(rest, first).ok_or_else(|| {
            Problem::new(
                format!("the text that begins with {first} has no end"),
                at..expression.len(),
            )
        })?;
        return Ok((Kind::Text, length));
    }
    (SYMBOLS.iter())
        .find(|symbol| rest.starts_with(**symbol))
        .map(|symbol| (Kind::Symbol, symbol.len()))
        .ok_or_else(|| {
            Problem::new(
                format!("`{first}` has no meaning in an expression"),
                at..at + first.len_utf8(),
            )
        })
}

/// `12` or `1.5`; `1.` followed by a name is a number and an attribute.
fn number_length(rest: &str) -> usize {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let integer = digits(rest);
    match rest[integer..].strip_prefix('.').map(digits) {
        Some(fraction) if fraction > 0 => integer + 1 + fraction,
        _ => integer,
    }
}

fn quoted_length(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Brackets match, and nothing outside them separates or assigns.
fn check_brackets(tokens: &[Token]) -> Result<(), Problem> {
    let mut open: Vec<&Token> = Vec::new();
    for pair in tokens.windows(2) {
        let touching = pair[0].range.end == pair[1].range.start;
        if touching && matches!((pair[0].text, pair[1].text), ("}", "}") | ("{", "{" | "%")) {
            let range = pair[0].range.start..pair[1].range.end;
            return Err(
                Problem::new("`{{`, `{%` and `}}` end or begin an expression", range)
                    .hint(Some("put a space between nested brackets".into())),
            );
        }
    }
    for token in tokens {
        if token.kind != Kind::Symbol {
            continue;
        }
        match token.text {
            "(" | "[" | "{" | "?[" => open.push(token),
            ")" | "]" | "}" => {
                let matches = open.pop().is_some_and(|opening| {
                    matches!(
                        (opening.text, token.text),
                        ("(", ")") | ("[" | "?[", "]") | ("{", "}")
                    )
                });
                if !matches {
                    let message = format!("`{}` closes nothing", token.text);
                    return Err(Problem::new(message, token.range.clone()));
                }
            }
            "," | "=" if open.is_empty() => {
                let message = format!("`{}` has no place outside brackets", token.text);
                let hint = (token.text == "=").then(|| "`==` compares".to_owned());
                return Err(Problem::new(message, token.range.clone()).hint(hint));
            }
            _ => {}
        }
    }
    match open.pop() {
        Some(token) => Err(Problem::new(
            format!("`{}` is never closed", token.text),
            token.range.clone(),
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_keep_quotes_numbers_and_operators_whole() {
        let texts: Vec<&str> = tokens("a.b | f(n=1.5) ~ 'x | y\\'' // 2?.c")
            .unwrap()
            .iter()
            .map(|token| token.text)
            .collect();
        assert_eq!(
            texts,
            [
                "a",
                ".",
                "b",
                "|",
                "f",
                "(",
                "n",
                "=",
                "1.5",
                ")",
                "~",
                "'x | y\\''",
                "//",
                "2",
                "?.",
                "c"
            ]
        );
    }

    #[test]
    fn what_would_leave_the_expression_is_refused() {
        for (expression, range) in [
            ("base) }} {{ __out(v=n", 6..8),
            ("x }} tail {{ y", 2..4),
            ("base) + __out(v=n", 4..5),
            ("x, y=2", 1..2),
            ("x = 2", 2..3),
            ("(x", 0..1),
            ("x]", 1..2),
            ("'x", 0..2),
            ("x ; y", 2..3),
            ("", 0..0),
        ] {
            let problem = tokens(expression).unwrap_err();
            assert_eq!(problem.range, range, "{expression}: {}", problem.message);
        }
    }
}
