//! The state that a cell is measured in: a database of its own, cloned from its fixture, the sessions
//! in it, and the settings of the server.

use super::Request;
use super::fixture::{self, author_session};
use super::program;
use super::protocol::Protocol;
use super::script;
use super::sessions::{NamedSessions, Opening};
use super::settings::tool_session;
use crate::article::Variables;
use crate::diagnostic::Diagnostic;
use crate::engine::program::Workspace;
use crate::engine::session::{Role, Session, SessionError, quote_literal};
use crate::exit_code::Failure;
use crate::parse::sql::expand_text;

/// A cell in progress: its database, connections and variables.
pub(super) struct State {
    pub(super) database: String,
    pub(super) subject: Session,
    pub(super) observer: Session,
    pub(super) variables: Variables,
    pub(super) named: NamedSessions,
    /// Where there are phases of psql or pgbench.
    pub(super) workspace: Option<Workspace>,
}

impl Protocol<'_> {
    /// Brings the server to the settings of a cell. Whether it was started anew for them comes back.
    pub(super) async fn settle(
        &mut self,
        cell: usize,
        variables: &Variables,
    ) -> Result<bool, Failure> {
        let Request {
            article,
            experiment,
            ..
        } = *self.request;
        if !self.settled.differs(experiment, variables) {
            return Ok(false);
        }
        self.activity(cell, "settings");
        self.settled
            .change(self.server, article, experiment, variables)
            .await?;
        if self.settled.restarts() {
            self.control = tool_session(self.server).await?;
        }
        Ok(self.settled.restarts())
    }

    pub(super) async fn fresh_state(
        &mut self,
        cell: usize,
        variables: Variables,
    ) -> Result<State, Failure> {
        self.activity(cell, "clone");
        let experiment = self.request.experiment;
        let database = format!("cell_{cell}");
        let article = self.request.article;
        let (resolved, from) = (self.request.resolved, experiment.fixture.as_ref());
        fixture::clone(self.server, article, resolved, &database, from).await?;
        let workspace = match program::needs_workspace(experiment) {
            true => Some(program::workspace(self.server, article, experiment).await?),
            false => None,
        };
        self.connect(database, variables, workspace).await
    }

    /// Opens the sessions of a state.
    pub(super) async fn connect(
        &mut self,
        database: String,
        variables: Variables,
        workspace: Option<Workspace>,
    ) -> Result<State, Failure> {
        let observer = author_session(self.server, self.request.article, &database).await?;
        let subject = self.subject(&database, &variables).await?;
        let names = self.request.experiment.session_names();
        let named = NamedSessions::open(self.opening(&database), &names).await?;
        self.opened.extend(named.pids());
        Ok(State {
            database,
            subject,
            observer,
            variables,
            named,
            workspace,
        })
    }

    pub(super) fn opening<'s>(&'s self, database: &'s str) -> Opening<'s> {
        Opening {
            server: self.server,
            article: self.request.article,
            database,
        }
    }

    /// Ends every named session of this experiment, also in the middle of a statement.
    pub(super) async fn end_all(&mut self) -> Result<(), Failure> {
        if self.opened.is_empty() {
            return Ok(());
        }
        let pids: Vec<String> = self.opened.iter().map(i32::to_string).collect();
        let sql = format!(
            "SELECT pg_catalog.pg_terminate_backend(pid, 5000) FROM pg_catalog.pg_stat_activity \
             WHERE pid IN ({}) AND usename IN ({}, current_user) AND backend_type = 'client backend'",
            pids.join(", "),
            quote_literal(Role::Author.name())
        );
        self.control
            .execute(&sql)
            .await
            .map(drop)
            .map_err(Failure::from)
    }

    /// A new measuring session with the experiment's session settings.
    pub(super) async fn subject(
        &self,
        database: &str,
        variables: &Variables,
    ) -> Result<Session, Failure> {
        let article = self.request.article;
        let mut session = author_session(self.server, article, database).await?;
        for (name, value) in &self.request.experiment.session {
            let place = |diagnostic: Diagnostic| {
                Failure::article(diagnostic.at(&article.source, value.span))
            };
            let text = expand_text(&value.value, variables).map_err(place)?;
            let set = format!(
                "SELECT pg_catalog.set_config({}, {}, false)",
                quote_literal(name),
                quote_literal(&text)
            );
            match session.execute(&set).await {
                Ok(_) => {}
                Err(SessionError::Sql(error)) => {
                    let diagnostic = Diagnostic::error(format!(
                        "Postgres: {} (SQLSTATE {})",
                        error.message, error.sqlstate
                    ));
                    return Err(place(script::with_postgres_words(diagnostic, &error, None)));
                }
                Err(lost) => return Err(lost.into()),
            }
        }
        Ok(session)
    }

    pub(super) async fn discard(&mut self, mut state: State) -> Result<(), Failure> {
        let workspace = state.workspace.take();
        let database = state.database.clone();
        drop(state);
        if let Some(workspace) = workspace {
            self.server.discard(workspace).await;
        }
        self.server
            .drop_database(&database)
            .await
            .map_err(Failure::from)
    }
}
