//! Runs one phase on the measuring session, or by the client that it names.

use super::Request;
use super::program::Runner;
use super::repeat;
use super::script::{self, Aside, Explain, Ran, Rules, ScriptError};
use super::waiting::Watcher;
use crate::article::{Client, Phase, Variables};
use crate::engine::Server;
use crate::engine::program::Workspace;
use crate::engine::session::{Session, quote_literal};

/// One run of a phase, with what it needs of its state.
pub struct Running<'r> {
    pub server: &'r Server,
    pub request: &'r Request<'r>,
    /// The tool's own connection.
    pub control: &'r mut Session,
    pub name: &'r str,
    pub phase: &'r Phase,
    pub rules: Rules<'r>,
    pub database: &'r str,
    pub workspace: Option<&'r Workspace>,
    pub subject: &'r mut Session,
    pub variables: &'r mut Variables,
    pub watcher: Watcher<'r>,
    /// It is what is measured: the server's clock is read too, and a statement may be explained,
    /// where the measuring session runs it.
    pub measured: Option<Measured>,
}

pub struct Measured {
    pub explain: Option<Explain>,
}

impl Running<'_> {
    pub async fn run(self) -> Result<Ran, (Ran, ScriptError)> {
        let (phase, variables, rules) = (self.phase, self.variables, self.rules);
        let is_measured = self.measured.is_some();
        match (&phase.client, phase.script.statements.first()) {
            (Client::Repeat(repeat), Some(statement)) => {
                let clock = is_measured.then_some(self.control);
                let subject = self.subject;
                let repeated = repeat::run(subject, clock, repeat, statement, variables, rules);
                return Box::pin(repeated).await;
            }
            (Client::Psql(_) | Client::Pgbench(_), _) => {
                if let Some(workspace) = self.workspace {
                    let runner = Runner {
                        server: self.server,
                        article: self.request.article,
                        experiment: self.request.experiment,
                        workspace,
                        database: self.database,
                        variables,
                        rules,
                        name: self.name,
                        phase,
                    };
                    let ran = Box::pin(runner.run(self.control)).await?;
                    if !phase.client.initialises() {
                        return Ok(ran);
                    }
                }
            }
            _ => {}
        }
        let aside = Aside {
            server_clock: is_measured.then_some(self.control),
            watcher: Some(self.watcher),
        };
        let explain = self.measured.and_then(|measured| measured.explain);
        let script = &phase.script;
        // Each client on the heap: together they would not fit on the stack of a thread.
        Box::pin(script::run_explained(
            self.subject,
            script,
            explain.as_ref(),
            variables,
            rules,
            aside,
        ))
        .await
    }
}

/// What a phase is stopped with from another session. A program's sessions are not known one by one,
/// and it would go on with the next statement: it loses all of them.
pub fn stop_sql(phase: &Phase, subject: i32, database: &str) -> String {
    match phase.client.program() {
        None => format!("SELECT pg_catalog.pg_cancel_backend({subject})"),
        Some(_) => format!(
            "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity \
             WHERE datname = {} AND application_name IN ('psql', 'pgbench')",
            quote_literal(database)
        ),
    }
}
