//! Phases that psql or pgbench runs. Entry: [`Runner::run`], which puts the script beside what earlier
//! phases wrote, runs the program, and reads what it printed: [`psql`] statement times and counts,
//! [`pgbench`] its summary, progress and log. Mistakes come back at their place in the article.

mod pgbench;
mod place;
pub(super) mod psql;

pub use pgbench::{COLUMNS, PROGRESS, STATEMENTS};

use super::script::{Ran, Rules, ScriptError};
use crate::article::{Article, Client, Experiment, Phase, ProgramScript, Variables, param_in};
use crate::diagnostic::Diagnostic;
use crate::engine::Server;
use crate::engine::program::{Completed, Content, Invocation, Program, Workspace};
use crate::engine::session::{Session, SessionError, is_of_a_full_disk, quote_literal};
use crate::exit_code::Failure;
use crate::parse::sql::{expand_text, unknown_variable};
use std::time::Duration;

/// The article's own files cannot have such a name.
const FOLDER: &str = ".remeasure";

/// What a program's phase is run with.
pub struct Runner<'a> {
    pub server: &'a Server,
    pub article: &'a Article,
    pub experiment: &'a Experiment,
    pub workspace: &'a Workspace,
    pub database: &'a str,
    pub variables: &'a Variables,
    pub rules: Rules<'a>,
    /// Its name, and what it is.
    pub name: &'a str,
    pub phase: &'a Phase,
}

/// Whether any phase of an experiment needs a workspace.
pub fn needs_workspace(experiment: &Experiment) -> bool {
    let mut phases = experiment.phases();
    phases.any(|phase| phase.client.program().is_some())
}

/// A workspace with the files of the article that its scripts read, and folders for those that they
/// write.
pub async fn workspace(
    server: &Server,
    article: &Article,
    experiment: &Experiment,
) -> Result<Workspace, Failure> {
    let workspace = server.workspace().await?;
    let scripts = experiment
        .phases()
        .filter_map(|phase| phase.client.program());
    for name in scripts.flat_map(|script| &script.files) {
        if let Some((folder, _)) = name.value.rsplit_once('/') {
            let kept = format!("{folder}/{FOLDER}");
            server.put(&workspace, &kept, Content::Bytes(b"")).await?;
        }
    }
    for (name, file) in &article.files {
        let content = match &file.script {
            Some(script) => Content::Bytes(script.text.as_bytes()),
            None => Content::File(&file.path),
        };
        server.put(&workspace, name, content).await?;
    }
    Ok(workspace)
}

type Outcome = Result<Ran, (Ran, ScriptError)>;

impl Runner<'_> {
    /// Runs the phase, and returns once its sessions are gone and have handed in their statistics.
    pub async fn run(&self, control: &mut Session) -> Outcome {
        let outcome = match &self.phase.client {
            Client::Psql(script) => self.psql(script).await,
            Client::Pgbench(script) => self.pgbench(script).await,
            Client::Session | Client::Repeat(_) => Ok(Ran::default()),
        };
        sessions_have_ended(control, self.database).await;
        match outcome {
            // A program takes a server that is gone for a connection that is.
            Err((ran, error)) => match control.execute("SELECT 1").await {
                Err(lost @ SessionError::Lost { .. }) => {
                    let diagnostic = self
                        .at_phase("the server went away while this phase ran".to_owned())
                        .note(error.diagnostic().message.clone())
                        .note(lost.to_string());
                    Err((ran, ScriptError::Lost(Box::new(diagnostic))))
                }
                _ => Err((ran, error)),
            },
            ran => ran,
        }
    }

    async fn psql(&self, script: &ProgramScript) -> Outcome {
        let body = format!("{FOLDER}/{}.sql", self.name);
        let begin = format!("{FOLDER}/begin.sql");
        let mut arguments = words(&["-X", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"]);
        for (name, value) in self.named_values()? {
            if value.contains(['\\', '\0']) {
                return Err(mistake(self.at_phase(format!(
                    "the value of `:{name}` has a backslash, which psql would take for a command"
                ))));
            }
            arguments.extend(["-v".to_owned(), format!("{name}={value}")]);
        }
        arguments.extend(script.arguments.iter().map(|word| word.value.clone()));
        for file in [&begin, &body] {
            arguments.extend(["-f".to_owned(), file.clone()]);
        }
        let seed = self.article.front_matter.seed.to_plain_string();
        self.put(&begin, &psql::beginning(&seed)).await?;
        self.put(&body, &script.text()).await?;
        // A statement that takes too long is ended by the server, as psql goes on to the next.
        let milliseconds = self.rules.timeout.as_millis().to_string();
        let mut session = vec![("statement_timeout".to_owned(), milliseconds)];
        session.extend(self.session()?);
        let completed = self
            .start(Program::Psql, &arguments, &session, None)
            .await?;
        let ran = psql::read(&completed.stdout).map_err(|error| self.unread(&error))?;
        if completed.status == Some(0) {
            return Ok(ran);
        }
        let problem = psql::problem(&completed.stderr);
        Err((ran, self.psql_error(script, &body, problem, &completed)))
    }

    fn psql_error(
        &self,
        script: &ProgramScript,
        body: &str,
        problem: Option<psql::Problem>,
        completed: &Completed,
    ) -> ScriptError {
        let Some(problem) = problem else {
            let diagnostic = self
                .at_phase(format!("psql ended with {}", status(completed)))
                .note(completed.stderr.trim());
            return ScriptError::Article(Box::new(diagnostic));
        };
        let files = place::Files {
            article: self.article,
            script,
            body,
        };
        let diagnostic = match &problem.sqlstate {
            Some(state) => {
                Diagnostic::error(format!("Postgres: {} (SQLSTATE {state})", problem.message))
            }
            None => Diagnostic::error(format!("psql: {}", problem.message)),
        };
        let mut diagnostic = files.place(diagnostic, &problem, self.phase.span);
        for note in &problem.notes {
            diagnostic = diagnostic.note(note.clone());
        }
        if let Some(hint) = &problem.hint {
            diagnostic = diagnostic.hint(hint.clone());
        }
        match problem.sqlstate.as_deref() {
            Some("57014") => {
                let hint = "give the experiment a longer `timeout`, or less to do";
                ScriptError::Sql {
                    sqlstate: "57014".to_owned(),
                    machine: false,
                    diagnostic: Box::new(diagnostic.hint(hint)),
                }
            }
            Some(state) => ScriptError::Sql {
                sqlstate: state.to_owned(),
                machine: is_of_a_full_disk(state, &problem.message),
                diagnostic: Box::new(diagnostic),
            },
            None => ScriptError::Article(Box::new(diagnostic)),
        }
    }

    async fn pgbench(&self, script: &ProgramScript) -> Outcome {
        let mut given = Vec::new();
        for word in &script.arguments {
            let mut word = word.clone();
            if let Some(param) = param_in(&word.value) {
                let value = expand_text(&word.value[param.clone()], self.variables)
                    .map_err(|problem| mistake(problem.at(self.rules.source, word.span)))?;
                word.value.replace_range(param, &value);
            }
            given.push(word);
        }
        let has_body = !script.body.text.trim().is_empty();
        let (mut arguments, problems) = pgbench::arguments(&given, has_body, &self.seed());
        if let Some((span, problem)) = problems.into_iter().next() {
            return Err(mistake(problem.at(self.rules.source, span)));
        }
        let body = format!("{FOLDER}/{}.sql", self.name);
        if has_body {
            for (name, value) in self.named_values()? {
                arguments.extend(["-D".to_owned(), format!("{name}={value}")]);
            }
            arguments.extend(["-f".to_owned(), body.clone()]);
            self.put(&body, &script.text()).await?;
        }
        let limit = Some(self.rules.timeout);
        let session = self.session()?;
        let completed = self
            .start(Program::Pgbench, &arguments, &session, limit)
            .await?;
        if completed.timed_out {
            let message = format!(
                "pgbench ran longer than its timeout of {:?}",
                self.rules.timeout
            );
            let diagnostic = self
                .at_phase(message)
                .hint("give the experiment a longer `timeout`, or pgbench less to do");
            return Err(mistake(diagnostic));
        }
        if completed.status != Some(0) {
            let problem = pgbench::problem(&completed.stderr);
            let diagnostic = self.pgbench_error(script, &body, problem, &completed);
            return Err(mistake(diagnostic));
        }
        if pgbench::only_initialises(&given) {
            return Ok(Ran::default());
        }
        let log = self
            .server
            .take(self.workspace, pgbench::LOG)
            .await
            .map_err(broken)?;
        let printed = pgbench::Printed {
            stdout: completed.stdout,
            stderr: &completed.stderr,
            log,
        };
        match pgbench::read(printed) {
            Ok(ran) => Ok(ran),
            Err(why) => Err(broken(Failure::internal(format!(
                "what pgbench printed cannot be read: {why}"
            )))),
        }
    }

    fn pgbench_error(
        &self,
        script: &ProgramScript,
        body: &str,
        problem: Option<pgbench::Problem>,
        completed: &Completed,
    ) -> Diagnostic {
        let Some(problem) = problem else {
            return self
                .at_phase(format!("pgbench ended with {}", status(completed)))
                .note(completed.stderr.trim());
        };
        let span = match problem.place {
            Some(pgbench::Place::Command(index)) => script
                .commands
                .get(index)
                .map(|command| script.body.span(command.clone())),
            Some(pgbench::Place::Line(line)) => place::line(script, line),
            None => None,
        };
        let in_script = span.is_some();
        let span = span
            .or_else(|| Some(script.arguments.first()?.span))
            .unwrap_or(self.phase.span);
        let message = problem.message.replace(body, "the script");
        let mut diagnostic =
            Diagnostic::error(format!("pgbench: {message}")).at(self.rules.source, span);
        for note in &problem.notes {
            diagnostic = diagnostic.note(note.clone());
        }
        if !in_script && message.contains("pgbench_") && message.contains("does not exist") {
            diagnostic = diagnostic
                .hint("make pgbench's tables with `setup: {via: pgbench, args: \"-i -s 10\"}`");
        }
        diagnostic
    }

    async fn start(
        &self,
        program: Program,
        arguments: &[String],
        session: &[(String, String)],
        timeout: Option<Duration>,
    ) -> Result<Completed, (Ran, ScriptError)> {
        let invocation = Invocation {
            program,
            database: self.database,
            arguments,
            session,
            timeout,
        };
        self.server
            .run(self.workspace, &invocation)
            .await
            .map_err(broken)
    }

    async fn put(&self, name: &str, text: &str) -> Result<(), (Ran, ScriptError)> {
        self.server
            .put(self.workspace, name, Content::Bytes(text.as_bytes()))
            .await
            .map_err(broken)
    }

    /// Settings of the experiment's sessions, with their values.
    fn session(&self) -> Result<Vec<(String, String)>, (Ran, ScriptError)> {
        let settings = self.experiment.session.iter();
        settings
            .map(|(name, value)| {
                let text = expand_text(&value.value, self.variables)
                    .map_err(|problem| mistake(problem.at(self.rules.source, value.span)))?;
                Ok((name.clone(), text))
            })
            .collect()
    }

    /// The variables that the script fills in, with their values.
    fn named_values(&self) -> Result<Vec<(String, String)>, (Ran, ScriptError)> {
        let mut named: Vec<(String, String)> = Vec::new();
        let references = self.phase.script.statements.iter().flat_map(|statement| {
            let place = |range| statement.text.span(range);
            let variables = statement.variables.iter();
            variables.map(move |one| (one.name.as_str(), Some(place(one.range.clone()))))
        });
        let files = self.article.files.values();
        let included =
            files.flat_map(|file| file.variables.iter().map(|name| (name.as_str(), None)));
        for (name, span) in references.chain(included) {
            if named.iter().any(|(known, _)| known == name) {
                continue;
            }
            match (self.variables.get(name), span) {
                (Some(value), _) => named.push((name.to_owned(), value.to_string())),
                (None, Some(span)) => {
                    let known = self.variables.keys().map(String::as_str);
                    let problem = unknown_variable(name, known).at(self.rules.source, span);
                    return Err(mistake(problem));
                }
                // What an included file means by it is left to psql.
                (None, None) => {}
            }
        }
        Ok(named)
    }

    /// A seed of pgbench's kind, a whole number, from the article's.
    fn seed(&self) -> String {
        let seed = self
            .article
            .front_matter
            .seed
            .normalized()
            .to_plain_string();
        match seed.parse::<u32>() {
            Ok(seed) => seed.to_string(),
            Err(_) => {
                let hash = crate::record::sha256_of(seed.as_bytes());
                let number = u32::from_str_radix(&hash[..8], 16).unwrap_or_default();
                number.to_string()
            }
        }
    }

    fn at_phase(&self, message: String) -> Diagnostic {
        Diagnostic::error(message).at(self.rules.source, self.phase.span)
    }

    fn unread(&self, error: &std::io::Error) -> (Ran, ScriptError) {
        broken(Failure::internal(format!(
            "what psql printed cannot be read: {error}"
        )))
    }
}

/// The author's to mend.
fn mistake(diagnostic: Diagnostic) -> (Ran, ScriptError) {
    (Ran::default(), ScriptError::Article(Box::new(diagnostic)))
}

fn broken(failure: Failure) -> (Ran, ScriptError) {
    let error = match failure {
        Failure::Engine(diagnostic) => ScriptError::Lost(Box::new(diagnostic)),
        Failure::Internal(diagnostic) => ScriptError::Broken(Box::new(diagnostic)),
        Failure::Article(mut diagnostics) if !diagnostics.is_empty() => {
            ScriptError::Article(Box::new(diagnostics.remove(0)))
        }
        _ => ScriptError::Broken(Box::new(Diagnostic::error("a program could not be run"))),
    };
    (Ran::default(), error)
}

fn status(completed: &Completed) -> String {
    match completed.status {
        Some(status) => format!("status {status}"),
        None => "a signal".to_owned(),
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A backend ends some time after its client, and hands in its statistics last.
async fn sessions_have_ended(control: &mut Session, database: &str) {
    let sql = format!(
        "SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datname = {} \
         AND application_name IN ('psql', 'pgbench')",
        quote_literal(database)
    );
    for _ in 0..1000 {
        let left = control.execute(&sql).await.ok().and_then(|result| {
            let row = result.rows.into_iter().next()?;
            row.into_iter().next()?
        });
        // That it cannot be asked is told by whoever asks next.
        if left.is_none_or(|left| left == "0") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
