//! The fake engine: canned answers in place of a server, so that the whole pipeline runs in tests
//! without Postgres.
//!
//! The answers stand in a YAML file, named by `--engine fake:FILE`:
//!
//! ```yaml
//! version: "16.15"        # default: the article's
//! settings: {shared_buffers: 128MB}   # what differs from its default, in the environment
//! answers:
//!   - sql: SELECT count(*) FROM t     # the whole statement; white space between words and a
//!                                     # final `;` do not matter
//!     columns: [count]
//!     types: [bigint]                 # as format_type names them; default: all `text`
//!     rows: [[3], [null]]             # scalars as Postgres prints them; null is NULL
//!     command_rows: 1                 # default: the number of rows, where the tag has a count
//!     elapsed_ms: 1.5                 # default: 1
//!     notices: ["NOTICE: hello"]
//!   - match: SELECT pg_*_size(*)      # `*` stands for any characters, everything else for itself
//!     rows: [[8192]]                  # columns default to `column1`, `column2` …
//!   - sql: SELECT 1 / 0
//!     error: {sqlstate: "22012", message: division by zero, detail: …, hint: …, position: 10}
//!   - sql: CRASH
//!     lost: server closed the connection unexpectedly
//! programs:               # what psql and pgbench come to; the first that fits, several in turn
//!   - program: pgbench
//!     arguments: "*-T 1*" # as in `match`, over its words; default: whatever they are
//!     status: 0           # default: 0
//!     stdout: "tps = …"
//!     stderr: ""
//!     files: {transactions.1: "0 1 2571 0 1796063236 141117"}   # what it writes
//! ```
//!
//! Several answers to the same `sql` (or the same `match`) are given in turn, over and over, by
//! all sessions together. An exact `sql` goes before any `match`, an earlier `match` before a
//! later one. A statement that no answer fits succeeds without a result, unless it asks for rows
//! (`SELECT`, `SHOW`, `EXPLAIN` …): that is an error naming the statement, so that no test passes
//! by accident.

use super::program::{self, Completed, Content, Invocation, Workspace};
use super::session::{Role, SessionError, SqlError, StatementResult};
use super::statement;
use crate::diagnostic::Diagnostic;
use crate::exit_code::Failure;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{Seek, Write};
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A server that knows its answers by heart.
#[derive(Debug)]
pub struct FakeServer {
    script: Arc<Script>,
    next_pid: AtomicI32,
    /// Those of programs, gone with the server.
    folders: Mutex<Vec<tempfile::TempDir>>,
}

#[derive(Debug)]
struct Script {
    version: Option<String>,
    settings: BTreeMap<String, String>,
    answers: Vec<Answer>,
    programs: Vec<CannedProgram>,
    /// How often each `sql` or `match` was asked for.
    asked: Mutex<HashMap<String, usize>>,
}

pub(super) struct FakeSession {
    script: Arc<Script>,
    pid: i32,
    notices: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: Option<String>,
    #[serde(default)]
    settings: BTreeMap<String, String>,
    answers: Vec<Answer>,
    #[serde(default)]
    programs: Vec<CannedProgram>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CannedProgram {
    program: String,
    #[serde(default = "any")]
    arguments: String,
    #[serde(default)]
    status: i32,
    #[serde(default)]
    stdout: String,
    #[serde(default)]
    stderr: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
}

fn any() -> String {
    "*".to_owned()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    sql: Option<String>,
    #[serde(rename = "match")]
    pattern: Option<String>,
    #[serde(default)]
    columns: Vec<String>,
    #[serde(default)]
    types: Vec<String>,
    #[serde(default)]
    rows: Vec<Vec<Option<String>>>,
    command_rows: Option<u64>,
    elapsed_ms: Option<f64>,
    #[serde(default)]
    notices: Vec<String>,
    error: Option<CannedError>,
    lost: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CannedError {
    sqlstate: String,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    position: Option<usize>,
}

impl FakeServer {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::article(
                Diagnostic::error(format!("cannot read `{}`: {error}", path.display()))
                    .hint("`--engine fake:FILE` takes the answers from FILE"),
            )
        })?;
        Self::parse(&text).map_err(|message| {
            Failure::article(Diagnostic::error(format!("{}: {message}", path.display())))
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let options = serde_yaml::options! { with_snippet: false };
        let file: File = serde_yaml::from_str_with_options(text, options)
            .map_err(|error| error.without_snippet().to_string())?;
        for (index, answer) in file.answers.iter().enumerate() {
            answer
                .check()
                .map_err(|problem| format!("answer {}: {problem}", index + 1))?;
        }
        Ok(Self {
            script: Arc::new(Script {
                version: file.version,
                settings: file.settings,
                answers: file.answers,
                programs: file.programs,
                asked: Mutex::default(),
            }),
            next_pid: AtomicI32::new(1001),
            folders: Mutex::default(),
        })
    }

    pub(super) fn version(&self) -> Option<&str> {
        self.script.version.as_deref()
    }

    pub(super) fn settings(&self) -> &BTreeMap<String, String> {
        &self.script.settings
    }

    pub(super) fn connect(&self, _role: Role) -> FakeSession {
        FakeSession {
            script: Arc::clone(&self.script),
            pid: self.next_pid.fetch_add(1, Ordering::Relaxed),
            notices: Vec::new(),
        }
    }
}

/// Programs run in folders of this machine, and do what the file says.
impl FakeServer {
    pub(super) fn workspace(&self) -> Result<Workspace, Failure> {
        let folder = tempfile::tempdir()
            .map_err(|error| program::failure("make a folder in", "/tmp".as_ref(), &error))?;
        let workspace = Workspace {
            folder: folder.path().to_owned(),
        };
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        folders.push(folder);
        Ok(workspace)
    }

    pub(super) fn put(
        &self,
        workspace: &Workspace,
        name: &str,
        content: Content<'_>,
    ) -> Result<(), Failure> {
        program::put_file(&workspace.folder, name, content)
            .map(drop)
            .map_err(|error| program::failure("put files in", &workspace.folder, &error))
    }

    pub(super) fn take(
        &self,
        workspace: &Workspace,
        prefix: &str,
    ) -> Result<Vec<fs::File>, Failure> {
        program::take_files(&workspace.folder, prefix)
            .map_err(|error| program::failure("read files in", &workspace.folder, &error))
    }

    pub(super) fn discard(&self, workspace: Workspace) {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        folders.retain(|folder| folder.path() != workspace.folder);
    }

    pub(super) fn run(
        &self,
        workspace: &Workspace,
        invocation: &Invocation<'_>,
    ) -> Result<Completed, Failure> {
        let name = invocation.program.name();
        let words = invocation.arguments.join(" ");
        let fitting: Vec<&CannedProgram> = self
            .script
            .programs
            .iter()
            .filter(|canned| canned.program == name && glob(&canned.arguments, &words))
            .collect();
        let Some(first) = fitting.first() else {
            return Err(Failure::Engine(
                Diagnostic::error(format!("the fake engine does not know `{name} {words}`"))
                    .hint("add an entry under `programs`"),
            ));
        };
        let key = format!("{name} {}", first.arguments);
        let mut asked = self
            .script
            .asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let times = asked.entry(key).or_default();
        let canned = fitting[*times % fitting.len()];
        *times += 1;
        for (name, content) in &canned.files {
            self.put(workspace, name, Content::Bytes(content.as_bytes()))?;
        }
        let printed = || {
            let mut file = tempfile::tempfile()?;
            file.write_all(canned.stdout.as_bytes())?;
            file.rewind()?;
            Ok(file)
        };
        let stdout = printed()
            .map_err(|error| program::failure("write files in", &workspace.folder, &error))?;
        Ok(Completed {
            status: Some(canned.status),
            timed_out: false,
            stdout,
            stderr: canned.stderr.clone(),
        })
    }
}

impl Answer {
    fn check(&self) -> Result<(), String> {
        if self.sql.is_some() == self.pattern.is_some() {
            return Err("give either `sql` or `match`".into());
        }
        let width = self.width();
        if self.rows.iter().any(|row| row.len() != width)
            || (!self.types.is_empty() && self.types.len() != width)
        {
            return Err(format!(
                "every row, `columns` and `types` need {width} entries"
            ));
        }
        Ok(())
    }

    fn width(&self) -> usize {
        let lengths = [self.columns.len(), self.types.len()];
        let given = lengths.into_iter().find(|&length| length > 0);
        given.or(self.rows.first().map(Vec::len)).unwrap_or(0)
    }

    fn key(&self) -> &str {
        self.sql
            .as_deref()
            .or(self.pattern.as_deref())
            .unwrap_or_default()
    }

    fn columns(&self) -> Vec<String> {
        if self.columns.is_empty() {
            (1..=self.width()).map(|i| format!("column{i}")).collect()
        } else {
            self.columns.clone()
        }
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs_f64(self.elapsed_ms.unwrap_or(1.0).max(0.0) / 1000.0)
    }

    fn result(&self, sql: &str) -> Result<StatementResult, SessionError> {
        if let Some(error) = &self.error {
            return Err(SessionError::Sql(Box::new(SqlError {
                sqlstate: error.sqlstate.clone(),
                message: error.message.clone(),
                detail: error.detail.clone(),
                hint: error.hint.clone(),
                position: error.position,
                ..SqlError::default()
            })));
        }
        if let Some(message) = &self.lost {
            return Err(SessionError::Lost {
                message: message.clone(),
                log: String::new(),
            });
        }
        let count = statement::counts_rows(sql).then_some(self.rows.len() as u64);
        Ok(StatementResult {
            columns: self.columns(),
            rows: self.rows.clone(),
            command_rows: self.command_rows.or(count),
            elapsed: self.elapsed(),
            rows_not_kept: 0,
        })
    }
}

impl Script {
    /// The answers that fit, which are given in turn.
    fn candidates(&self, sql: &str) -> Vec<&Answer> {
        let asked = normalised(sql);
        let exact: Vec<_> = self
            .answers
            .iter()
            .filter(|answer| answer.sql.as_deref().map(normalised).as_ref() == Some(&asked))
            .collect();
        if !exact.is_empty() {
            return exact;
        }
        let matches = |answer: &&Answer| {
            let pattern = answer.pattern.as_deref().map(normalised);
            pattern.is_some_and(|pattern| glob(&pattern, &asked))
        };
        let Some(first) = self.answers.iter().find(matches) else {
            return Vec::new();
        };
        self.answers
            .iter()
            .filter(|answer| answer.pattern == first.pattern)
            .collect()
    }

    fn next(&self, sql: &str) -> Option<&Answer> {
        let candidates = self.candidates(sql);
        let first = candidates.first()?;
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let times = asked.entry(normalised(first.key())).or_default();
        let answer = candidates[*times % candidates.len()];
        *times += 1;
        Some(answer)
    }
}

impl FakeSession {
    pub fn execute(&mut self, sql: &str) -> Result<StatementResult, SessionError> {
        if let Some(answer) = self.script.next(sql) {
            self.notices.extend(answer.notices.iter().cloned());
            return answer.result(sql);
        }
        if statement::asks_for_rows(sql) {
            return Err(no_answer(sql));
        }
        Ok(StatementResult {
            command_rows: statement::counts_rows(sql).then_some(0),
            elapsed: Duration::from_millis(1),
            ..StatementResult::default()
        })
    }

    pub fn execute_within(
        &mut self,
        sql: &str,
        timeout: Duration,
    ) -> Result<StatementResult, SessionError> {
        let result = self.execute(sql)?;
        if result.elapsed > timeout {
            return Err(super::session::timed_out(SqlError::default(), timeout));
        }
        Ok(result)
    }

    pub fn column_types(&mut self, sql: &str) -> Result<Vec<String>, SessionError> {
        match self.script.candidates(sql).first() {
            Some(answer) if answer.error.is_some() => answer.result(sql).map(|_| Vec::new()),
            Some(answer) if answer.types.is_empty() => Ok(vec!["text".into(); answer.width()]),
            Some(answer) => Ok(answer.types.clone()),
            None if statement::asks_for_rows(sql) => Err(no_answer(sql)),
            None => Ok(Vec::new()),
        }
    }

    pub fn backend_pid(&self) -> i32 {
        self.pid
    }

    pub fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }
}

fn no_answer(sql: &str) -> SessionError {
    SessionError::Sql(Box::new(SqlError {
        sqlstate: "XX000".into(),
        message: format!("the fake engine has no answer to: {}", normalised(sql)),
        hint: Some("add an entry under `answers`".into()),
        ..SqlError::default()
    }))
}

/// One space between words, no `;` at the end.
fn normalised(sql: &str) -> String {
    let words: Vec<_> = sql.split_whitespace().collect();
    words.join(" ").trim_end_matches([';', ' ']).to_owned()
}

/// Whether `text` fits `pattern`, in which `*` stands for any characters.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else {
        // No `*` at all.
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(text: &str) -> FakeSession {
        FakeServer::parse(text).unwrap().connect(Role::Author)
    }

    fn cells(result: &StatementResult) -> Vec<Option<&str>> {
        result.rows.iter().flatten().map(Option::as_deref).collect()
    }

    const ANSWERS: &str = r#"
version: "16.15"
answers:
  - sql: SELECT a, b
         FROM t
    columns: [a, b]
    types: [bigint, text]
    rows: [[1, x], [-2.50, null]]
    elapsed_ms: 2.5
    notices: ["NOTICE: read"]
  - sql: SELECT pg_current_wal_lsn()
    rows: [["0/10"]]
  - sql: SELECT pg_current_wal_lsn()
    rows: [["0/20"]]
  - match: SELECT pg_*_size('*')
    rows: [[8192]]
  - sql: SELECT 1 / 0
    error: {sqlstate: "22012", message: division by zero, position: 10}
  - sql: SELECT crash()
    lost: gone
  - sql: INSERT INTO t SELECT g FROM s
    command_rows: 1000
"#;

    #[test]
    fn an_answer_is_found_whatever_the_white_space() {
        let mut session = session(ANSWERS);
        let result = session.execute("SELECT  a, b\n FROM t ;").unwrap();
        assert_eq!(result.columns, ["a", "b"]);
        assert_eq!(cells(&result), [Some("1"), Some("x"), Some("-2.50"), None]);
        assert_eq!(result.command_rows, Some(2));
        assert_eq!(result.elapsed, Duration::from_micros(2500));
        assert_eq!(session.notices(), ["NOTICE: read"]);
        assert!(session.notices().is_empty());
        assert_eq!(
            session.column_types("SELECT a, b FROM t").unwrap(),
            ["bigint", "text"]
        );
    }

    #[test]
    fn several_answers_come_in_turn_over_and_over() {
        let mut session = session(ANSWERS);
        let mut seen = Vec::new();
        for _ in 0..3 {
            let result = session.execute("SELECT pg_current_wal_lsn()").unwrap();
            seen.push(result.rows[0][0].clone().unwrap());
        }
        assert_eq!(seen, ["0/10", "0/20", "0/10"]);
    }

    #[test]
    fn what_has_no_answer_succeeds_unless_it_asks_for_rows() {
        let mut session = session(ANSWERS);
        let created = session.execute("CREATE TABLE t (a int)").unwrap();
        assert_eq!((created.command_rows, created.rows.len()), (None, 0));
        let inserted = session.execute("INSERT INTO t SELECT g FROM s");
        assert_eq!(inserted.unwrap().command_rows, Some(1000));
        let size = session.execute("SELECT pg_table_size('t')").unwrap();
        assert_eq!(cells(&size), [Some("8192")]);
        let error = session.execute("SELECT  2").unwrap_err();
        assert!(
            error.to_string().contains("no answer to: SELECT 2"),
            "{error}"
        );
        assert!(session.column_types("SELECT 2").is_err());
    }

    #[test]
    fn errors_losses_and_timeouts_are_as_from_a_server() {
        let mut session = session(ANSWERS);
        match session.execute("SELECT 1 / 0") {
            Err(SessionError::Sql(error)) => {
                assert_eq!(
                    (error.sqlstate.as_str(), error.position),
                    ("22012", Some(10))
                );
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            session.execute("SELECT crash()"),
            Err(SessionError::Lost { .. })
        ));
        match session.execute_within("SELECT a, b FROM t", Duration::from_millis(2)) {
            Err(SessionError::Sql(error)) => assert!(error.timed_out),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_wrong_file_says_which_answer() {
        for (text, word) in [
            ("answers: [{rows: [[1]]}]", "answer 1: give either"),
            ("answers: [{sql: a, match: b}]", "answer 1: give either"),
            (
                "answers: [{sql: a}, {sql: b, columns: [x], rows: [[1, 2]]}]",
                "answer 2: every row",
            ),
            ("answers: [{sql: a, row: []}]", "row"),
            ("{}", "answers"),
        ] {
            let error = FakeServer::parse(text).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text, fits) in [
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "acd", false),
            ("*b*", "abc", true),
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("a*a", "a", false),
            ("*", "", true),
        ] {
            assert_eq!(glob(pattern, text), fits, "{pattern} {text}");
        }
    }
}
