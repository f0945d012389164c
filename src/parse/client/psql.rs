//! A script that psql runs. Statements are found by psql's own rules, for what is said of statements
//! and variables; and psql's commands are read, for psql could do with them whatever its user may.
//!
//! A command that is not on the list is refused. Those that reach files, programs or other servers
//! are refused also where they seem to stand inside a string or a comment: whether they do is up to
//! psql, which reads by a setting that a statement can change. A variable that the script itself
//! sets may not be filled in as it is (`:name`): psql would take a backslash in its value for a
//! command.

use super::super::front_matter::is_variable;
use super::super::problems::Problems;
use super::super::sql::lexer::{Kind, Lexer, Token};
use super::super::sql::{SetVariables, set_by};
use crate::article::{
    ProgramScript, Script, Statement, Terminator, VariableQuoting, VariableReference,
};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::source::{Extract, Source, Spanned};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Commands that do no more than their words say, whatever stands behind them.
const PLAIN: [&str; 10] = [
    "if", "elif", "else", "endif", "gdesc", "gexec", "unset", "r", "reset", "bind",
];
/// What they print goes nowhere: psql does not get them.
const BLANKED: [&str; 4] = ["timing", "echo", "qecho", "warn"];
const INCLUDES: [&str; 4] = ["i", "include", "ir", "include_relative"];
/// Everything that is read here.
const COMMANDS: [&str; 23] = [
    "bind",
    "copy",
    "echo",
    "elif",
    "else",
    "endif",
    "g",
    "gdesc",
    "gexec",
    "gset",
    "gx",
    "i",
    "if",
    "include",
    "include_relative",
    "ir",
    "qecho",
    "r",
    "reset",
    "set",
    "timing",
    "unset",
    "warn",
];
/// Commands that reach beyond the connection, or change which one it is.
const REACHING: [&str; 37] = [
    "!",
    "c",
    "cd",
    "connect",
    "copy",
    "e",
    "edit",
    "ef",
    "ev",
    "g",
    "getenv",
    "gx",
    "i",
    "include",
    "include_relative",
    "ir",
    "lo_export",
    "lo_import",
    "lo_list",
    "lo_unlink",
    "o",
    "out",
    "password",
    "prompt",
    "restrict",
    "s",
    "set",
    "setenv",
    "sf",
    "sv",
    "unrestrict",
    "w",
    "write",
    "gset",
    "encoding",
    "q",
    "quit",
];
/// Variables that change how psql reads or reports.
const SPECIAL: [&str; 12] = [
    "ON_ERROR_STOP",
    "ON_ERROR_ROLLBACK",
    "VERBOSITY",
    "SINGLELINE",
    "SINGLESTEP",
    "ECHO",
    "ECHO_HIDDEN",
    "QUIET",
    "HISTFILE",
    "SHOW_CONTEXT",
    "SHELL_ERROR",
    "FETCH_COUNT",
];
/// What psql itself sets, to digits or letters.
const OF_PSQL: [&str; 5] = [
    "ERROR",
    "ROW_COUNT",
    "SQLSTATE",
    "LASTOID",
    "SERVER_VERSION_NUM",
];

/// The script of a phase.
pub fn read(sql: &Extract, problems: &Problems) -> (Script, ProgramScript) {
    let read = scan(sql, problems.source, "");
    problems.extend(read.problems);
    (read.script, read.program)
}

/// What was found in a script, of a phase or of a file.
pub struct Read {
    pub script: Script,
    pub program: ProgramScript,
    /// Of `program.files` those that are scripts.
    pub includes: Vec<String>,
    pub problems: Vec<Diagnostic>,
}

/// Reads a script. `folder`: of the file it stands in, in the article's folder, with `/` behind it.
pub fn scan(sql: &Extract, source: &Arc<Source>, folder: &str) -> Read {
    let mut scanner = Scanner {
        sql,
        source,
        folder,
        open: None,
        references: Vec::new(),
        set: Set::default(),
        read: Read {
            script: Script::default(),
            program: ProgramScript {
                body: sql.clone(),
                ..ProgramScript::default()
            },
            includes: Vec::new(),
            problems: Vec::new(),
        },
    };
    scanner.run();
    scanner.check_set_variables();
    scanner.read
}

/// Variables that the script sets, to values that are not known here.
#[derive(Default)]
struct Set {
    unknown: BTreeSet<String>,
    /// To values without anything that psql would read again.
    known: BTreeSet<String>,
    prefixes: Vec<String>,
}

impl Set {
    fn may_set(&self, name: &str) -> bool {
        self.unknown.contains(name)
            || self
                .prefixes
                .iter()
                .any(|prefix| name.starts_with(prefix.as_str()))
    }
}

struct Scanner<'a> {
    sql: &'a Extract,
    source: &'a Arc<Source>,
    folder: &'a str,
    /// The statement that is being read.
    open: Option<Range<usize>>,
    references: Vec<(VariableQuoting, String, Range<usize>)>,
    set: Set,
    read: Read,
}

impl Scanner<'_> {
    fn run(&mut self) {
        let text = self.sql.text.as_str();
        let mut lexer = Lexer::new(text);
        while let Some(token) = lexer.next() {
            match token.kind {
                Kind::Whitespace => {}
                Kind::LineComment | Kind::BlockComment | Kind::String | Kind::QuotedIdentifier => {
                    self.quoted(token.range.clone());
                    if let Some(what) = token.unterminated {
                        let opening = token.range.start..token.range.start + 1;
                        self.error(opening, format!("unterminated {what}"), "close it");
                    }
                    if matches!(token.kind, Kind::String | Kind::QuotedIdentifier) {
                        self.extend(&token);
                    }
                }
                Kind::Semicolon if lexer.parenthesis_depth() == 0 => {
                    let copies = self.copies_from_stdin();
                    self.finish();
                    let mut end = token.range.end;
                    if copies {
                        end = self.rows(end);
                    }
                    lexer.restart(end);
                }
                Kind::Backslash if text[token.range.end..].starts_with([';', ':']) => {
                    self.extend(&token);
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

    fn error(&mut self, range: Range<usize>, message: impl Into<String>, hint: impl Into<String>) {
        let diagnostic = Diagnostic::error(message)
            .at(self.source, self.sql.span(range))
            .hint(hint);
        self.read.problems.push(diagnostic);
    }

    fn extend(&mut self, token: &Token) {
        if let (Kind::Variable(quoting), Some(name)) =
            (token.kind, token.variable_name(&self.sql.text))
        {
            let reference = (quoting, name.to_owned(), token.range.clone());
            self.references.push(reference);
        }
        let start = self
            .open
            .as_ref()
            .map_or(token.range.start, |open| open.start);
        self.open = Some(start..token.range.end);
    }

    fn finish(&mut self) {
        let Some(range) = self.open.take() else {
            return;
        };
        let variables = std::mem::take(&mut self.references)
            .into_iter()
            .filter(|(_, name, _)| !self.is_set_here(name))
            .map(|(quoting, name, at)| VariableReference {
                name,
                quoting,
                range: at.start - range.start..at.end - range.start,
            })
            .collect();
        self.read.program.commands.push(range.clone());
        self.read.script.statements.push(Statement {
            text: self.sql.slice(range),
            terminator: Terminator::Semicolon,
            variables,
        });
    }

    fn is_set_here(&self, name: &str) -> bool {
        self.set.known.contains(name) || self.set.may_set(name) || OF_PSQL.contains(&name)
    }

    /// Whether rows for the statement that ends here follow it.
    fn copies_from_stdin(&self) -> bool {
        let Some(range) = &self.open else {
            return false;
        };
        let words: Vec<String> = super::super::sql::words(&self.sql.text[range.clone()]).collect();
        words.first().is_some_and(|word| word == "copy")
            && words
                .windows(2)
                .any(|pair| pair[0] == "from" && pair[1] == "stdin")
    }

    /// The rows of a `COPY … FROM STDIN`, up to their `\.`; gives where the script goes on.
    fn rows(&mut self, start: usize) -> usize {
        let text = self.sql.text.as_str();
        let mut at = start;
        for line in text[start..].split_inclusive('\n') {
            at += line.len();
            if line.trim_end_matches(['\n', '\r']) == "\\." {
                break;
            }
        }
        self.quoted(start..at);
        at
    }

    /// What seems not to be psql's to read: nothing in it may be a command that reaches out.
    fn quoted(&mut self, range: Range<usize>) {
        let text = &self.sql.text[range.clone()];
        let found: Vec<(usize, String)> = text
            .match_indices('\\')
            .filter_map(|(at, _)| {
                let name = command_name(&text[at + 1..]);
                let line = text[at..].lines().next().unwrap_or_default();
                let runs = line.contains('`') && COMMANDS.contains(&name);
                (REACHING.contains(&name) || runs).then(|| (at, name.to_owned()))
            })
            .collect();
        for (at, name) in found {
            let at = range.start + at;
            self.error(
                at..at + 1 + name.len(),
                format!("`\\{name}` may not stand here, not even in a string or a comment"),
                "psql could come to read it as a command; put something between the two, such as `[[:space:]]` for `\\s`",
            );
        }
    }

    /// Reads the command whose backslash stands at `at`; gives where the script goes on.
    fn command(&mut self, at: usize) -> usize {
        let text = self.sql.text.as_str();
        let rest = &text[at + 1..];
        let name = command_name(rest);
        let name_end = at + 1 + name.len();
        let line = text[name_end..]
            .split(['\n', '\r'])
            .next()
            .unwrap_or_default();
        let end = name_end + line.len();
        let name_range = at..name_end.max(at + 1);
        let arguments = line.trim();
        if name == "copy" {
            self.copy(at, name_end..end);
            return end;
        }
        if !COMMANDS.contains(&name) {
            self.unknown(name_range, name);
            return end;
        }
        if let Some(found) = line.find(['`', '\\']) {
            let what = match &line[found..=found] {
                "\\" => "a second command on the line",
                _ => "a program",
            };
            self.error(
                name_end + found..name_end + found + 1,
                format!("this would be {what}"),
                "an article runs no programs; write one command a line",
            );
            return end;
        }
        self.check(name, name_range, name_end..end, arguments);
        end
    }

    fn check(&mut self, name: &str, named: Range<usize>, line: Range<usize>, arguments: &str) {
        match name {
            _ if PLAIN.contains(&name) => {
                self.use_variables(line);
            }
            _ if BLANKED.contains(&name) => {
                self.read.program.blanked.push(named.start..line.end);
                return;
            }
            _ if INCLUDES.contains(&name) => {
                let place = self.place(&line, arguments);
                let relative = name == "ir" || name == "include_relative";
                self.include(arguments, place, relative);
                return;
            }
            "set" => self.set(line, arguments),
            "gset" => {
                self.gset(&named, arguments);
                return;
            }
            _ if !arguments.is_empty() => {
                let place = self.place(&line, arguments);
                self.error(
                    place,
                    format!("`\\{name}` takes nothing behind it here"),
                    "leave it out: results are not shown",
                );
            }
            _ => {}
        }
        if ["g", "gx", "gexec", "gdesc", "bind"].contains(&name) {
            self.finish();
        } else if ["r", "reset"].contains(&name) {
            self.open = None;
            self.references.clear();
        }
    }

    fn place(&self, line: &Range<usize>, arguments: &str) -> Range<usize> {
        let at = self.sql.text[line.clone()].find(arguments).unwrap_or(0);
        let start = line.start + at;
        start..(start + arguments.len()).max(start + usize::from(start < self.sql.text.len()))
    }

    fn unknown(&mut self, range: Range<usize>, name: &str) {
        if REACHING.contains(&name) {
            let why = match name {
                "!" | "e" | "edit" | "ef" | "ev" => "an article runs no programs",
                "c" | "connect" | "password" => "an article has the connection that it is given",
                _ => "an article reads and writes no files but with `\\copy` and `\\i`",
            };
            self.error(
                range,
                format!("`\\{name}` is refused: {why}"),
                "leave it out",
            );
            return;
        }
        let near = did_you_mean(name, COMMANDS).filter(|_| name.len() > 1);
        let hint = near.map_or_else(
            || {
                format!(
                    "there are {}",
                    COMMANDS.map(|name| format!("`\\{name}`")).join(", ")
                )
            },
            |near| near.replacen('`', "`\\", 1),
        );
        self.error(
            range,
            format!("`\\{name}` is no command that psql is given here"),
            hint,
        );
    }

    fn use_variables(&mut self, line: Range<usize>) {
        let text = &self.sql.text[line.clone()];
        let references = super::super::sql::variables_of_text(text);
        if references.is_empty() {
            return;
        }
        let variables = references
            .into_iter()
            .filter(|reference| !self.is_set_here(&reference.name))
            .collect();
        self.read.script.statements.push(Statement {
            text: self.sql.slice(line),
            terminator: Terminator::Semicolon,
            variables,
        });
    }

    fn set(&mut self, line: Range<usize>, arguments: &str) {
        let (name, value) = arguments
            .split_once(char::is_whitespace)
            .unwrap_or((arguments, ""));
        let place = self.place(&line, name);
        if !is_variable(name) {
            self.error(
                place,
                format!("`{name}` cannot be the name of a variable"),
                "write `\\set name value`",
            );
            return;
        }
        if SPECIAL.contains(&name) {
            self.error(
                place,
                format!("`{name}` is the tool's to set"),
                "leave it out",
            );
            return;
        }
        self.use_variables(line);
        if value.contains(':') {
            self.set.unknown.insert(name.to_owned());
        } else {
            self.set.known.insert(name.to_owned());
        }
    }

    fn gset(&mut self, named: &Range<usize>, prefix: &str) {
        let valid = prefix.is_empty() || is_variable(prefix);
        if !valid {
            self.error(
                named.clone(),
                format!("`{prefix}` cannot be the prefix of `\\gset`"),
                "a prefix is made of letters, digits and underscores",
            );
        }
        let Some(range) = self.open.clone() else {
            self.error(
                named.clone(),
                "`\\gset` has no statement before it",
                "it ends a statement in place of the `;`",
            );
            return;
        };
        let text = self.sql.slice(range);
        // A name can be written in ways that are not seen here.
        let clear = !text.text.contains('\\') && !text.text.to_ascii_lowercase().contains("u&");
        let statement = Statement {
            text,
            terminator: Terminator::Gset {
                prefix: prefix.to_owned(),
            },
            variables: Vec::new(),
        };
        self.finish();
        match set_by(&statement) {
            Some(SetVariables::Named(names)) if clear => self.set.unknown.extend(names),
            _ => self.set.prefixes.push(prefix.to_owned()),
        }
    }

    /// No variable of the script's own may be filled in as it is, wherever it seems to stand.
    fn check_set_variables(&mut self) {
        let text = self.sql.text.clone();
        let mut at = 0;
        while let Some(found) = text[at..].find(':') {
            let colons = at + found;
            let after =
                colons + text[colons..].len() - text[colons..].trim_start_matches(':').len();
            at = after;
            let name: String = text[after..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            // Of `::name` psql makes a cast.
            let cast = (after - colons).is_multiple_of(2);
            if name.is_empty() || cast || !self.set.may_set(&name) {
                continue;
            }
            self.error(
                after - 1..after + name.len(),
                format!("`:{name}` cannot be filled in as it is: the script sets it to what is not known here"),
                format!("write `:'{name}'` or `:\"{name}\"`; psql takes a backslash in the value of `:{name}` for a command"),
            );
        }
    }

    fn include(&mut self, argument: &str, place: Range<usize>, relative: bool) {
        let name = argument.trim_matches('\'');
        let folder = if relative { self.folder } else { "" };
        let Some(name) = file_name(&format!("{folder}{name}")) else {
            self.error(
                place,
                format!("`{argument}` is no file of the article's folder"),
                FILE_HINT,
            );
            return;
        };
        self.read.includes.push(name.clone());
        let span = self.sql.span(place);
        self.read.program.files.push(Spanned::new(name, span));
    }

    /// `\copy`: to and from files of the run's folder alone. What its words mean is up to psql, so
    /// every word behind a FROM or TO may be the file's.
    fn copy(&mut self, at: usize, line: Range<usize>) {
        let text = self.sql.text[line.clone()].to_owned();
        let lower = text.to_ascii_lowercase();
        if let Some(program) = word_places(&lower, "program").first() {
            let start = line.start + program;
            self.error(
                start..start + "program".len(),
                "`\\copy … program` is refused: an article runs no programs",
                "copy to or from a file: `\\copy t from 'rows.csv'`",
            );
            return;
        }
        if text.contains('`') {
            self.error(
                at..line.end,
                "`\\copy` with a backquote is refused",
                "leave the backquote out",
            );
            return;
        }
        let mut places = word_places(&lower, "from");
        places.extend(word_places(&lower, "to"));
        for place in places {
            let word = if lower[place..].starts_with("from") {
                4
            } else {
                2
            };
            let behind = &text[place + word..];
            let skipped = behind.len() - behind.trim_start().len();
            let start = place + word + skipped;
            let behind = behind.trim_start();
            let raw = match behind.strip_prefix('\'') {
                Some(quoted) => quoted.split('\'').next().unwrap_or_default(),
                None => behind
                    .split([' ', '\t', ';', ')'])
                    .next()
                    .unwrap_or_default(),
            };
            let range = line.start + start
                ..line.start + start + raw.len() + usize::from(behind.starts_with('\''));
            let outside = raw.starts_with(['/', '~'])
                || raw.contains('\\')
                || raw.split('/').any(|part| part == "..");
            if outside {
                self.error(
                    range,
                    format!("`{raw}` is no file of the run's folder"),
                    FILE_HINT,
                );
            } else if let Some(name) = file_name(raw) {
                let span = self.sql.span(range);
                self.read.program.files.push(Spanned::new(name, span));
            }
        }
        if let Some(variable) = super::super::sql::variables_of_text(&text).first() {
            let range = line.start + variable.range.start..line.start + variable.range.end;
            self.error(
                range,
                format!(
                    "psql fills no variables in `\\copy`, so `:{}` stays as it is",
                    variable.name
                ),
                "make a table or view of the rows first, and copy that",
            );
        }
        self.read.program.commands.push(at..line.end);
    }
}

const FILE_HINT: &str = "name it without folders above, as in `rows.csv` or `data/rows.csv`: files are those beside the article, and those an earlier phase has written";

/// The command's name, from behind the backslash.
fn command_name(rest: &str) -> &str {
    let end = rest
        .find(|c: char| c.is_whitespace() || c == '\\')
        .unwrap_or(rest.len());
    &rest[..end]
}

/// A path inside the folder, of plain characters.
pub fn file_name(raw: &str) -> Option<String> {
    let plain = |c: char| c.is_alphanumeric() || "._-/".contains(c);
    let inside = |part: &str| !part.is_empty() && !part.starts_with('.');
    let fits = !raw.is_empty()
        && raw.len() < 200
        && raw.chars().all(plain)
        && raw.split('/').all(inside)
        && !raw.starts_with('-');
    fits.then(|| raw.to_owned())
}

/// Where `word` stands by itself in `lower`.
fn word_places(lower: &str, word: &str) -> Vec<usize> {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    lower
        .match_indices(word)
        .map(|(at, _)| at)
        .filter(|&at| {
            !lower[..at].ends_with(part_of_word)
                && !lower[at + word.len()..].starts_with(part_of_word)
        })
        .collect()
}
