//! Who runs a phase: `via: psql`, `via: pgbench` with its `args`, `repeat` with its `transaction`.
//! Entry: [`read`], which takes these options of a phase and the SQL below it.
//!
//! An article is someone else's program. What psql and pgbench could run, read or write beyond the
//! server is refused here, at its place ([`psql`], [`pgbench`]); the engine keeps it from them once
//! more where the system can.

pub mod arguments;
mod files;
mod pgbench;
mod psql;

pub use files::included;

use super::experiment::split;
use super::problems::Problems;
use super::read::{Fields, not_supported_yet};
use super::yaml::{Node, Value};
use crate::article::{Client, ProgramScript, Repeat, RepeatTransaction, Script};
use crate::diagnostic::did_you_mean;
use crate::source::{Extract, Span, Spanned};
use arguments::Purpose;

/// A phase's SQL and who runs it. `phase` is its name, at `span`.
pub fn read(
    fields: &mut Fields<'_>,
    phase: &'static str,
    span: Span,
    sql: &Extract,
    problems: &Problems,
) -> (Script, Client) {
    let via = fields.take("via");
    let args = fields.take("args");
    let repeat = fields.take("repeat");
    let transaction = fields.take("transaction");
    let program = via.and_then(|node| program(node, phase, problems));
    if let (Some(_), Some(repeat)) = (via, repeat) {
        problems.error(
            repeat.span,
            "`repeat` is of the tool's own session: `via` is another client",
            "keep one of the two; pgbench repeats with `args: \"-t 200000\"`",
        );
    }
    if let (None, Some(args)) = (via, args) {
        problems.error(
            args.span,
            "`args` are those of a program, and none is named",
            "add `via: pgbench`",
        );
    }
    match program {
        Some(name) => run_by(name, phase, span, args, sql, problems),
        // Not to be taken for SQL of the session: that would only give more of the same mistake.
        None if via.is_some() => (Script::default(), Client::Psql(ProgramScript::default())),
        None => {
            let script = split(sql, problems);
            let client = repeated(phase, repeat, transaction, &script, problems);
            (script, client)
        }
    }
}

/// Whether a phase without SQL is one.
pub fn needs_no_sql(client: &Client) -> bool {
    matches!(client, Client::Pgbench(_))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Psql,
    Pgbench,
}

fn program(node: &Node, phase: &str, problems: &Problems) -> Option<Name> {
    if phase == "collect" {
        problems.error(
            node.span,
            "`collect` asks on a session of the tool's, whose rows it keeps",
            "leave `via` out; a program is for `setup`, `warmup`, `measure` and `teardown`",
        );
        return None;
    }
    let word = problems.text(node)?;
    match word.as_str() {
        "psql" => Some(Name::Psql),
        "pgbench" => Some(Name::Pgbench),
        other => {
            let hint = did_you_mean(other, ["psql", "pgbench"])
                .unwrap_or_else(|| "write `via: psql` or `via: pgbench`".to_owned());
            problems.error(
                node.span,
                format!("no program of the server's is `{other}`"),
                hint,
            );
            None
        }
    }
}

fn run_by(
    name: Name,
    phase: &'static str,
    span: Span,
    args: Option<&Node>,
    sql: &Extract,
    problems: &Problems,
) -> (Script, Client) {
    let before = problems.count();
    let words = args.map_or_else(Vec::new, |node| words(node, problems));
    if name == Name::Psql {
        arguments::check_psql(&words, problems);
        let (script, program) = psql::read(sql, problems);
        return (
            script,
            Client::Psql(ProgramScript {
                arguments: words,
                ..program
            }),
        );
    }
    let empty = sql.text.trim().is_empty();
    let purpose = if arguments::initialises(&words) {
        Purpose::Initialise
    } else if empty {
        Purpose::Builtin
    } else {
        Purpose::Script
    };
    arguments::check_pgbench(&words, purpose, problems);
    if purpose == Purpose::Initialise && phase == "measure" && problems.count() == before {
        problems.error(
            args.map_or(span, |node| node.span),
            "`-i` makes pgbench's tables, it measures nothing",
            "put it in `setup: {via: pgbench, args: \"-i -s 10\"}`",
        );
    }
    // What stands below an initialisation is SQL for the tables that it made.
    let (script, program) = match purpose {
        Purpose::Initialise => {
            let program = ProgramScript {
                initialises: true,
                ..ProgramScript::default()
            };
            (split(sql, problems), program)
        }
        Purpose::Builtin => (Script::default(), ProgramScript::default()),
        Purpose::Script => pgbench::read(sql, &arguments::defined(&words), problems),
    };
    (
        script,
        Client::Pgbench(ProgramScript {
            arguments: words,
            ..program
        }),
    )
}

/// `"-c 8 -T 30"`, or a list of words. Each word has its own place where it stands as it is read.
fn words(node: &Node, problems: &Problems) -> Vec<Spanned<String>> {
    let texts = match &node.value {
        Value::Sequence(_) => return problems.texts(node),
        _ => problems.spanned_text(node),
    };
    let Some(text) = texts else {
        return Vec::new();
    };
    let source = &problems.source.text[text.span.range()];
    let mut at = 0;
    text.value
        .split_whitespace()
        .map(|word| {
            let span = match source[at..].find(word) {
                Some(found) => {
                    let start = at + found;
                    at = start + word.len();
                    Span::new(text.span.start + start, text.span.start + at)
                }
                None => text.span,
            };
            Spanned::new(word.to_owned(), span)
        })
        .collect()
}

fn repeated(
    phase: &str,
    repeat: Option<&Node>,
    transaction: Option<&Node>,
    script: &Script,
    problems: &Problems,
) -> Client {
    let each = RepeatTransaction::Each;
    let choices = [("each", each), ("one", RepeatTransaction::One)];
    let chosen = transaction.and_then(|node| problems.choice(node, &choices));
    let Some(node) = repeat else {
        if let Some(node) = transaction {
            problems.error(
                node.span,
                "`transaction` says how a repetition commits, and nothing is repeated",
                "add `repeat: 1000`, or write `BEGIN` and `COMMIT`",
            );
        }
        return Client::Session;
    };
    if phase != "measure" {
        not_supported_yet(problems, node.span, &format!("`{phase}: {{repeat: …}}`"));
        return Client::Session;
    }
    let Some(times) = problems.spanned_text(node) else {
        return Client::Session;
    };
    if let Err(hint) = count(&times.value) {
        problems.error(
            times.span,
            format!("`{}` is no number of repetitions", times.value),
            hint,
        );
    }
    if let [_, second, ..] = script.statements.as_slice() {
        let text = &second.text;
        problems.error(
            text.span(0..text.text.lines().next().map_or(0, str::len)),
            "a repetition is of one statement, and this is the second",
            "write a function, or let pgbench run the script: `measure: {via: pgbench, args: \"-t 1000\"}`",
        );
    }
    if let [only] = script.statements.as_slice()
        && only.terminator != crate::article::Terminator::Semicolon
    {
        problems.error(
            only.text.span(0..only.text.text.len()),
            "what is repeated is one statement, without `\\gexec` or `\\gset`",
            "end it with `;`",
        );
    }
    Client::Repeat(Repeat {
        times,
        transaction: chosen.unwrap_or(each),
    })
}

/// More than this is taken for a mistake: the time of each execution is kept until the last.
pub const MOST_REPETITIONS: u32 = 10_000_000;

/// A number of repetitions, None where it is a `:param` still; else what to write instead.
pub fn count(text: &str) -> Result<Option<u32>, String> {
    if let Some(name) = text.strip_prefix(':')
        && super::front_matter::is_variable(name)
    {
        return Ok(None);
    }
    let digits = text.replace('_', "");
    match digits.parse::<u32>() {
        Ok(count) if (1..=MOST_REPETITIONS).contains(&count) => Ok(Some(count)),
        _ => Err(format!(
            "write a whole number from 1 to {MOST_REPETITIONS}, such as `repeat: 200000`, or a `:param`"
        )),
    }
}

#[cfg(test)]
mod tests;
