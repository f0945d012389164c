//! A script that pgbench runs. Its commands begin with a backslash and end with their line; what
//! would run a program is refused wherever it stands.

use super::super::problems::Problems;
use super::super::sql::lexer::{Kind, Lexer, Token};
use super::super::sql::variables_of_text;
use crate::article::{ProgramScript, Script, Statement, Terminator, VariableReference};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::source::Extract;
use std::collections::BTreeSet;
use std::ops::Range;

const COMMANDS: [&str; 11] = [
    "aset",
    "elif",
    "else",
    "endif",
    "endpipeline",
    "gset",
    "if",
    "set",
    "sleep",
    "startpipeline",
    "syncpipeline",
];
const PROGRAMS: [&str; 2] = ["setshell", "shell"];
/// Variables that pgbench has of itself.
const OF_PGBENCH: [&str; 4] = ["client_id", "default_seed", "random_seed", "scale"];

/// `defined`: variables that its arguments give it.
pub fn read(sql: &Extract, defined: &[String], problems: &Problems) -> (Script, ProgramScript) {
    let own = OF_PGBENCH.map(str::to_owned);
    let mut scanner = Scanner {
        sql,
        problems,
        open: None,
        set: own.into_iter().chain(defined.iter().cloned()).collect(),
        anything_set: false,
        script: Script::default(),
        program: ProgramScript {
            body: sql.clone(),
            ..ProgramScript::default()
        },
    };
    scanner.refuse_programs();
    scanner.run();
    (scanner.script, scanner.program)
}

struct Scanner<'a> {
    sql: &'a Extract,
    problems: &'a Problems<'a>,
    open: Option<Range<usize>>,
    /// Variables that the script sets.
    set: BTreeSet<String>,
    /// `\gset` and `\aset` set what only the server knows.
    anything_set: bool,
    script: Script,
    program: ProgramScript,
}

impl Scanner<'_> {
    /// pgbench has no other way to a program than these two words behind a backslash.
    fn refuse_programs(&self) {
        let text = self.sql.text.as_str();
        for (at, _) in text.match_indices('\\') {
            let rest = text[at + 1..].trim_start_matches(|c: char| c.is_whitespace() || c == '\\');
            let word = rest
                .split(|c: char| c.is_whitespace() || c == '\\')
                .next()
                .unwrap_or_default();
            if PROGRAMS.contains(&word.to_ascii_lowercase().as_str()) {
                let end = text.len() - rest.len() + word.len();
                self.problems.error(
                    self.sql.span(at..end),
                    format!("`\\{word}` is refused: an article runs no programs"),
                    "leave it out",
                );
            }
        }
    }

    fn run(&mut self) {
        let text = self.sql.text.as_str();
        let mut lexer = Lexer::new(text);
        while let Some(token) = lexer.next() {
            if let Some(what) = token.unterminated {
                let at = token.range.start;
                let span = self.sql.span(at..at + 1);
                self.problems
                    .error(span, format!("unterminated {what}"), "close it");
            }
            match token.kind {
                Kind::Whitespace | Kind::LineComment | Kind::BlockComment => {}
                Kind::Semicolon if lexer.parenthesis_depth() == 0 => {
                    self.finish();
                    lexer.restart(token.range.end);
                }
                Kind::Backslash => {
                    let end = self.command(token.range.start);
                    lexer.restart(end);
                }
                _ => self.extend(&token),
            }
        }
        self.finish();
    }

    fn extend(&mut self, token: &Token) {
        let start = self
            .open
            .as_ref()
            .map_or(token.range.start, |open| open.start);
        self.open = Some(start..token.range.end);
    }

    fn finish(&mut self) {
        if let Some(range) = self.open.take() {
            self.push(range.clone(), range);
        }
    }

    /// One command, as pgbench counts them; variables are those of `text`.
    fn push(&mut self, command: Range<usize>, text: Range<usize>) {
        let text = self.sql.slice(text);
        let variables: Vec<VariableReference> = variables_of_text(&text.text)
            .into_iter()
            .filter(|reference| !self.anything_set && !self.set.contains(&reference.name))
            .collect();
        self.program.commands.push(command);
        self.script.statements.push(Statement {
            text,
            terminator: Terminator::Semicolon,
            variables,
        });
    }

    fn command(&mut self, at: usize) -> usize {
        let text = self.sql.text.as_str();
        let name: String = text[at + 1..]
            .chars()
            .take_while(|c| !c.is_whitespace() && *c != '\\')
            .collect();
        let name_end = at + 1 + name.len();
        let end = line_end(text, name_end);
        let lower = name.to_ascii_lowercase();
        if !COMMANDS.contains(&lower.as_str()) {
            if !PROGRAMS.contains(&lower.as_str()) {
                self.unknown(at..name_end, &name);
            }
            return end;
        }
        if ["gset", "aset"].contains(&lower.as_str()) {
            self.anything_set = true;
            self.finish();
            return end;
        }
        self.finish();
        let mut arguments = name_end..end;
        if lower == "set" {
            let raw = &text[arguments.clone()];
            let skipped = raw.len() - raw.trim_start().len();
            let variable = raw.trim_start().split(char::is_whitespace).next();
            let variable = variable.unwrap_or_default().to_owned();
            arguments.start += skipped + variable.len();
            self.push(at..end, arguments);
            self.set.insert(variable);
            return end;
        }
        self.push(at..end, arguments);
        end
    }

    fn unknown(&self, range: Range<usize>, name: &str) {
        let span = self.sql.span(range.start..range.end.max(range.start + 1));
        let listed = COMMANDS.map(|name| format!("`\\{name}`")).join(", ");
        let hint = did_you_mean(name, COMMANDS)
            .filter(|_| name.len() > 1)
            .map_or(format!("there are {listed}"), |near| {
                near.replacen('`', "`\\", 1)
            });
        let problem = Diagnostic::error(format!("pgbench has no command `\\{name}`"));
        self.problems
            .push(problem.at(self.problems.source, span).hint(hint));
    }
}

/// A command goes on behind a backslash at the end of its line.
fn line_end(text: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        let length = text[at..].find('\n').unwrap_or(text.len() - at);
        let line = &text[at..at + length];
        at += length;
        if !line.trim_end_matches('\r').ends_with('\\') || at >= text.len() {
            return at;
        }
        at += 1;
    }
}
