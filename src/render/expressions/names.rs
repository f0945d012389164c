//! Checks every name in an expression, so that a misspelt one is an error wherever it stands. Tera
//! finds only those whose value is printed.

use super::Problem;
use super::evaluate::Root;
use super::scan::{Kind, Token};
use crate::diagnostic::did_you_mean;
use crate::quantity::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A filter of ours: its parameters, the first of which may be given without its name.
pub struct FilterSpec {
    pub name: &'static str,
    pub parameters: &'static [&'static str],
}

pub const FILTERS: &[FilterSpec] = &[
    FilterSpec {
        name: "fixed",
        parameters: &["n"],
    },
    FilterSpec {
        name: "significant",
        parameters: &["n"],
    },
    FilterSpec {
        name: "thousands",
        parameters: &["n"],
    },
    FilterSpec {
        name: "percent",
        parameters: &["n"],
    },
    FilterSpec {
        name: "bytes",
        parameters: &["n"],
    },
    FilterSpec {
        name: "duration",
        parameters: &["n", "unit"],
    },
];

/// Tera's own that make sense of a value in a sentence.
const TERA_FILTERS: &[&str] = &[
    "abs",
    "capitalize",
    "default",
    "first",
    "float",
    "get",
    "int",
    "join",
    "keys",
    "last",
    "length",
    "lower",
    "nth",
    "pluralize",
    "replace",
    "reverse",
    "round",
    "sort",
    "split",
    "str",
    "title",
    "trim",
    "trim_end",
    "trim_start",
    "truncate",
    "unique",
    "upper",
    "values",
];

const TERA_TESTS: &[&str] = &[
    "array",
    "bool",
    "containing",
    "defined",
    "divisible_by",
    "ending_with",
    "even",
    "float",
    "integer",
    "iterable",
    "map",
    "none",
    "number",
    "odd",
    "starting_with",
    "string",
    "undefined",
];

const TERA_FUNCTIONS: &[&str] = &["range"];

const WORD_OPERATORS: &[&str] = &[
    "and", "or", "not", "is", "in", "if", "else", "for", "true", "false", "True", "False", "none",
    "None", "null",
];

/// What a word stands for, by the tokens around it.
enum Role {
    Operator,
    Attribute,
    Argument,
    Filter,
    Test,
    Function,
    Variable,
}

pub fn check(tokens: &[Token], roots: &BTreeMap<&str, Root>) -> Vec<Problem> {
    let bound = loop_variables(tokens);
    let mut problems = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        if token.kind != Kind::Word {
            continue;
        }
        let name = token.text;
        let problem = match role(tokens, index) {
            Role::Operator | Role::Attribute | Role::Argument => None,
            Role::Filter => unknown("filter", token, filter_names()),
            Role::Test => unknown("test", token, TERA_TESTS.iter().copied()),
            Role::Function => unknown("function", token, TERA_FUNCTIONS.iter().copied()),
            Role::Variable if bound.contains(name) => None,
            Role::Variable => match roots.get(name) {
                Some(root) => {
                    check_value(root, token).or_else(|| check_path(root, &tokens[index..]))
                }
                None => Some(unknown_variable(token, roots)),
            },
        };
        problems.extend(problem);
    }
    problems
}

fn filter_names() -> impl Iterator<Item = &'static str> {
    (FILTERS.iter().map(|filter| filter.name)).chain(TERA_FILTERS.iter().copied())
}

/// A word is a variable unless its neighbours say otherwise.
fn role(tokens: &[Token], index: usize) -> Role {
    let before = |steps: usize| {
        let token = tokens.get(index.checked_sub(steps)?)?;
        Some(token.text)
    };
    let after = tokens.get(index + 1).map(|token| token.text);
    match (before(1), after) {
        (Some("." | "?."), _) => Role::Attribute,
        (Some("|"), _) => Role::Filter,
        (_, Some("=")) => Role::Argument,
        (Some("is"), _) if tokens[index].text != "not" => Role::Test,
        (Some("not"), _) if before(2) == Some("is") => Role::Test,
        _ if WORD_OPERATORS.contains(&tokens[index].text) => Role::Operator,
        (_, Some("(")) => Role::Function,
        _ => Role::Variable,
    }
}

/// Names that a comprehension binds: `[x for x in …]`.
fn loop_variables<'a>(tokens: &[Token<'a>]) -> BTreeSet<&'a str> {
    let mut bound = BTreeSet::new();
    let mut after_for = false;
    for token in tokens {
        match token.text {
            "for" => after_for = true,
            "in" => after_for = false,
            name if after_for && token.kind == Kind::Word => {
                bound.insert(name);
            }
            _ => {}
        }
    }
    bound
}

fn unknown(
    what: &str,
    token: &Token,
    known: impl Iterator<Item = &'static str>,
) -> Option<Problem> {
    let known: Vec<&str> = known.collect();
    (!known.contains(&token.text)).then(|| {
        let hint = did_you_mean(token.text, known.iter().copied())
            .unwrap_or_else(|| format!("there are {}", known.join(", ")));
        Problem::new(
            format!("unknown {what} `{}`", token.text),
            token.range.clone(),
        )
        .hint(Some(hint))
    })
}

fn unknown_variable(token: &Token, roots: &BTreeMap<&str, Root>) -> Problem {
    let hint = did_you_mean(token.text, roots.keys().copied())
        .unwrap_or_else(|| "a value is a claim, a param, `server.…` or `host.…`".to_owned());
    Problem::new(
        format!("`{}` is neither a claim nor a param", token.text),
        token.range.clone(),
    )
    .hint(Some(hint))
}

/// A claim that the record has no value for, or NULL, is never printed as anything.
fn check_value(root: &Root, token: &Token) -> Option<Problem> {
    let name = token.text;
    match root {
        Root::Claim { value: None, .. } => Some(
            Problem::new(
                format!("claim `{name}` has no value in the record"),
                token.range.clone(),
            )
            .hint(Some("build the article again".into())),
        ),
        Root::Claim {
            value: Some(Value::Null),
            ..
        } => Some(Problem::new(
            format!("claim `{name}` is NULL"),
            token.range.clone(),
        )),
        _ => None,
    }
}

/// Follows `.name` and `["name"]` as far as they are written out. `path[0]` is the root's name.
fn check_path(root: &Root, path: &[Token]) -> Option<Problem> {
    let Root::Map(map) = root else {
        let steps_in = path.get(1).is_some_and(|next| {
            matches!(next.text, "." | "?." | "[" | "?[") && next.kind == Kind::Symbol
        });
        return steps_in.then(|| {
            let message = format!("`{}` is a single value, it has no parts", path[0].text);
            Problem::new(message, path[1].range.clone())
        });
    };
    let mut map = map;
    let mut written = path[0].text.to_owned();
    let mut rest = &path[1..];
    loop {
        let (token, key) = match rest {
            [dot, key, after @ ..] if dot.is(".") || dot.is("?.") => {
                rest = after;
                (key, key.text)
            }
            [open, key, close, after @ ..]
                if (open.is("[") || open.is("?[")) && key.kind == Kind::Text && close.is("]") =>
            {
                rest = after;
                (key, &key.text[1..key.text.len() - 1])
            }
            _ => return None,
        };
        let Some(next) = map.get(key) else {
            let known = map.as_object().into_iter().flatten();
            let hint = did_you_mean(key, known.map(|(name, _)| name.as_str()));
            return Some(
                Problem::new(format!("`{written}` has no `{key}`"), token.range.clone())
                    .hint(hint.or_else(|| keys_hint(map))),
            );
        };
        written = format!("{written}.{key}");
        map = next;
    }
}

fn keys_hint(map: &serde_json::Value) -> Option<String> {
    let names: Vec<&str> = map.as_object()?.keys().map(String::as_str).collect();
    (!names.is_empty()).then(|| format!("it has {}", names.join(", ")))
}
