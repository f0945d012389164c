//! Starting states: built once a server, each in a database of its own, cloned for whatever names
//! them.

use super::script::{self, Rules};
use crate::article::{Article, Fixture};
use crate::diagnostic::Diagnostic;
use crate::engine::Server;
use crate::engine::session::{Role, Session, SessionError};
use crate::exit_code::Failure;
use crate::plan::Resolved;
use crate::source::Spanned;
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::time::Duration;

/// A fixture may take longer than a measured statement: it is built once.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// The fixtures that stand on the running server.
#[derive(Debug, Default)]
pub struct Fixtures {
    built: BTreeSet<String>,
    /// Those that are wrong, which was told; with those that are built from them.
    failed: BTreeSet<String>,
}

/// The database a fixture stands in.
pub fn database(fixture: &str) -> String {
    format!("fixture_{fixture}")
}

impl Fixtures {
    /// Builds a fixture and those it is built from, unless they stand already. One that failed
    /// for another experiment is not tried again.
    pub async fn build(
        &mut self,
        server: &Server,
        article: &Article,
        resolved: &Resolved,
        fixture: &Spanned<String>,
    ) -> Result<(), Failure> {
        let mut chain: Vec<&Fixture> = Vec::new();
        let mut next = Some(fixture.value.as_str());
        while let Some(id) = next.filter(|id| !self.built.contains(*id)) {
            let Some(fixture) = article.fixtures().find(|fixture| fixture.id.value == id) else {
                break;
            };
            chain.push(fixture);
            next = fixture.from.as_ref().map(|from| from.value.as_str());
        }
        let is_known_wrong = |link: &&Fixture| self.failed.contains(&link.id.value);
        if let Some(wrong) = chain.iter().find(|link| is_known_wrong(link)) {
            let message = format!("not measured: fixture `{}` failed", wrong.id.value);
            let diagnostic = Diagnostic::error(message).at(&article.source, fixture.span);
            return Err(Failure::article(diagnostic));
        }
        for fixture in chain.into_iter().rev() {
            let id = &fixture.id.value;
            match build_one(server, article, resolved, fixture).await {
                Ok(()) => self.built.insert(id.clone()),
                Err(failure) => {
                    self.failed.insert(id.clone());
                    return Err(failure);
                }
            };
        }
        Ok(())
    }
}

async fn build_one(
    server: &Server,
    article: &Article,
    resolved: &Resolved,
    fixture: &Fixture,
) -> Result<(), Failure> {
    let name = database(&fixture.id.value);
    let template = fixture.from.as_ref().map(|from| database(&from.value));
    create_database(server, article, &name, template.as_deref()).await?;
    let mut session = author_session(server, article, &name).await?;
    let mut variables = resolved.params.clone();
    let rules = Rules {
        source: &article.source,
        timeout: TIMEOUT,
    };
    let aside = script::Aside::default();
    let ran = script::run(&mut session, &fixture.script, &mut variables, rules, aside).await;
    // Nobody may be connected to what is about to be cloned.
    session.close().await;
    ran.map(drop).map_err(|(_, error)| {
        let note = format!("in fixture `{}`", fixture.id.value);
        failure(error, note)
    })
}

/// An error of a script as the failure it is, with where it happened.
pub fn failure(error: impl Borrow<script::ScriptError>, note: String) -> Failure {
    let error = error.borrow();
    let diagnostic = error.diagnostic().clone().note(note);
    match error {
        script::ScriptError::Lost(_) => Failure::Engine(diagnostic),
        _ => Failure::article(diagnostic),
    }
}

/// A database of the author's, with the article's extensions.
pub async fn create_database(
    server: &Server,
    article: &Article,
    name: &str,
    template: Option<&str>,
) -> Result<(), Failure> {
    server.drop_database(name).await.map_err(Failure::from)?;
    server
        .create_database(name, template)
        .await
        .map_err(Failure::from)?;
    if template.is_none() {
        for extension in &article.front_matter.postgres.extensions {
            server
                .create_extension(name, &extension.value)
                .await
                .map_err(|failure| failure.at(&article.source, extension.span))?;
        }
    }
    Ok(())
}

/// A session of the author's role that begins with the article's seed.
pub async fn author_session(
    server: &Server,
    article: &Article,
    database: &str,
) -> Result<Session, Failure> {
    let seeded = async {
        let mut session = server.connect(database, Role::Author).await?;
        let seed = article.front_matter.seed.to_plain_string();
        session
            .execute(&format!("SELECT pg_catalog.setseed({seed})"))
            .await?;
        Ok::<_, SessionError>(session)
    };
    seeded.await.map_err(Failure::from)
}
