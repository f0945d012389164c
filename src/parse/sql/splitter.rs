//! A script into statements, as psql splits one: at semicolons outside of quotes, comments,
//! parentheses and the bodies of `BEGIN ATOMIC … END`, and at `\gexec` and `\gset`.

use super::backslash;
use super::lexer::{Kind, Lexer, Token};
use crate::article::{Script, Statement, Terminator, VariableReference};
use crate::diagnostic::Diagnostic;
use crate::source::{Extract, Source};
use std::ops::Range;
use std::sync::Arc;

/// Every statement of `extract`, or every problem in it. Comments between statements are dropped,
/// those inside stay.
pub fn split(extract: &Extract, source: &Arc<Source>) -> Result<Script, Vec<Diagnostic>> {
    let mut splitter = Splitter {
        extract,
        source,
        statements: Vec::new(),
        problems: Vec::new(),
        open: Open::default(),
    };
    splitter.run();
    if splitter.problems.is_empty() {
        Ok(Script {
            statements: splitter.statements,
        })
    } else {
        Err(splitter.problems)
    }
}

struct Splitter<'a> {
    extract: &'a Extract,
    source: &'a Arc<Source>,
    statements: Vec<Statement>,
    problems: Vec<Diagnostic>,
    open: Open,
}

/// The statement that is being read.
#[derive(Default)]
struct Open {
    /// From its first word to the end of its last.
    range: Option<Range<usize>>,
    /// A comment of the kind that pg_hint_plan reads, which belongs to the statement below it.
    hint_comment: Option<usize>,
    variables: Vec<VariableReference>,
    body: AtomicBody,
    copies: bool,
    /// `STDIN` or `STDOUT` in a `COPY`.
    copy_end: Option<Range<usize>>,
}

impl Splitter<'_> {
    fn run(&mut self) {
        let extract = self.extract;
        let text = extract.text.as_str();
        let mut lexer = Lexer::new(text);
        while let Some(token) = lexer.next() {
            if let Some(what) = token.unterminated {
                self.problems.push(self.unterminated(what, &token));
            }
            match token.kind {
                Kind::Whitespace | Kind::LineComment => {}
                Kind::BlockComment => {
                    if self.open.range.is_none() && text[token.range.clone()].starts_with("/*+") {
                        self.open.hint_comment.get_or_insert(token.range.start);
                    }
                }
                Kind::Semicolon if lexer.parenthesis_depth() == 0 && !self.open.body.is_open() => {
                    self.finish(Terminator::Semicolon);
                    lexer.restart(token.range.end);
                }
                Kind::Backslash => {
                    let end = self.backslash(token.range.start);
                    lexer.restart(end);
                }
                _ => self.extend(&token, lexer.parenthesis_depth()),
            }
        }
        self.finish(Terminator::Semicolon);
    }

    fn extend(&mut self, token: &Token, parenthesis_depth: usize) {
        let text = &self.extract.text;
        let start = match &self.open.range {
            Some(range) => range.start,
            None => self.open.hint_comment.unwrap_or(token.range.start),
        };
        if token.kind == Kind::Word {
            let word = &text[token.range.clone()];
            if self.open.range.is_none() {
                self.open.copies = word.eq_ignore_ascii_case("copy");
            } else if self.open.copies
                && (word.eq_ignore_ascii_case("stdin") || word.eq_ignore_ascii_case("stdout"))
                && parenthesis_depth == 0
            {
                self.open.copy_end.get_or_insert(token.range.clone());
            }
            self.open.body.word(word, parenthesis_depth);
        }
        if let (Kind::Variable(quoting), Some(name)) = (token.kind, token.variable_name(text)) {
            self.open.variables.push(VariableReference {
                name: name.to_owned(),
                quoting,
                range: token.range.start - start..token.range.end - start,
            });
        }
        self.open.range = Some(start..token.range.end);
    }

    fn finish(&mut self, terminator: Terminator) {
        let open = std::mem::take(&mut self.open);
        let Some(range) = open.range else { return };
        if let Some(copy) = open.copy_end {
            let which = self.extract.text[copy.clone()].to_uppercase();
            self.problems.push(
                Diagnostic::error(format!("`COPY` cannot use `{which}` here"))
                    .at(self.source, self.extract.span(copy))
                    .hint("make the rows with `INSERT … SELECT … FROM generate_series(…)`"),
            );
        }
        self.statements.push(Statement {
            text: self.extract.slice(range),
            terminator,
            variables: open.variables,
        });
    }

    /// Ends the statement with the command at `at`; gives where to go on.
    fn backslash(&mut self, at: usize) -> usize {
        match backslash::read(&self.extract.text, at) {
            Ok(command) => {
                if self.open.range.is_some() {
                    self.finish(command.terminator);
                } else {
                    let name = match command.terminator {
                        Terminator::Gset { .. } => "gset",
                        _ => "gexec",
                    };
                    let span = self.extract.span(at..at + 1 + name.len());
                    self.problems.push(
                        Diagnostic::error(format!("`\\{name}` has no statement before it"))
                            .at(self.source, span)
                            .hint("it ends a statement in place of the `;`"),
                    );
                }
                command.range.end
            }
            Err(bad) => {
                let span = self.extract.span(bad.range.clone());
                let mut diagnostic = bad.diagnostic.at(self.source, span);
                if self.extract.text[bad.range.clone()].ends_with("\\.") {
                    diagnostic = diagnostic
                        .hint("rows for `COPY … FROM STDIN` cannot stand in a script here");
                }
                self.problems.push(diagnostic);
                self.open = Open::default();
                let end = bad.range.end;
                self.extract.text[end..]
                    .find('\n')
                    .map_or(self.extract.text.len(), |length| end + length)
            }
        }
    }

    fn unterminated(&self, what: &str, token: &Token) -> Diagnostic {
        let text = &self.extract.text[token.range.clone()];
        let opening = match what {
            "comment" => "/*",
            "quoted identifier" => "\"",
            "string" => "'",
            _ => {
                let tag = text[1..].find('$').map_or(0, |length| length + 1);
                &text[..=tag]
            }
        };
        let closing = if opening == "/*" { "*/" } else { opening };
        let opening_end = text.find(opening).unwrap_or(0) + opening.len();
        let span = (token.range.start)..(token.range.start + opening_end);
        Diagnostic::error(format!("unterminated {what}"))
            .at(self.source, self.extract.span(span))
            .label("opens here")
            .hint(format!("close it with `{closing}`"))
    }
}

/// Follows `CREATE [OR REPLACE] FUNCTION|PROCEDURE … BEGIN ATOMIC … END`, by psql's own rule: in
/// such a statement every `BEGIN`, and every `CASE` inside one, waits for its `END`.
#[derive(Default)]
struct AtomicBody {
    /// The first letters of the first four words, where they are ones that matter.
    words: [u8; 4],
    count: usize,
    depth: usize,
}

impl AtomicBody {
    fn is_open(&self) -> bool {
        self.depth > 0
    }

    fn word(&mut self, word: &str, parenthesis_depth: usize) {
        let is = |other: &str| word.eq_ignore_ascii_case(other);
        if self.count < self.words.len()
            && ["create", "function", "procedure", "or", "replace"]
                .iter()
                .any(|known| is(known))
        {
            self.words[self.count] = word.as_bytes()[0].to_ascii_lowercase();
        }
        self.count += 1;
        let makes_routine = matches!(
            self.words,
            [b'c', b'f' | b'p', ..] | [b'c', b'o', b'r', b'f' | b'p']
        );
        if !makes_routine || parenthesis_depth > 0 {
            return;
        }
        if is("begin") || (is("case") && self.depth > 0) {
            self.depth += 1;
        } else if is("end") {
            self.depth = self.depth.saturating_sub(1);
        }
    }
}
