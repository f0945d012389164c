//! Starting states: built once a server, each in a database of its own, cloned for whatever names
//! them.

use super::script::{self, Rules};
use super::skipped;
use crate::article::{Article, Fixture};
use crate::diagnostic::Diagnostic;
use crate::engine::Server;
use crate::engine::session::{Role, Session, SessionError};
use crate::exit_code::Failure;
use crate::plan::Resolved;
use crate::source::Spanned;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A fixture may take longer than a measured statement: it is built once.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// The fixtures that stand on the running server.
#[derive(Debug, Default)]
pub struct Fixtures {
    built: BTreeSet<String>,
    /// Those that are wrong, which was told; with those that are built from them.
    failed: BTreeMap<String, Wrong>,
}

/// Why a fixture does not stand.
#[derive(Clone, Debug)]
enum Wrong {
    /// The article's mistake, which was told.
    Told,
    /// An existing server does not permit it: that is told of each experiment.
    NotPermitted(Vec<Diagnostic>),
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
        let missing = |link: &&Fixture| !self.built.contains(&link.id.value);
        let chain: Vec<&Fixture> = chain(article, &fixture.value)
            .into_iter()
            .take_while(missing)
            .collect();
        let known_wrong =
            |link: &&Fixture| Some((link.id.value.clone(), self.failed.get(&link.id.value)?));
        match chain.iter().find_map(known_wrong) {
            Some((id, Wrong::Told)) => {
                let message = format!("not measured: fixture `{id}` failed");
                let diagnostic = Diagnostic::error(message).at(&article.source, fixture.span);
                return Err(Failure::article(diagnostic));
            }
            Some((_, Wrong::NotPermitted(problems))) => {
                return Err(Failure::Article(problems.clone()));
            }
            None => {}
        }
        for fixture in chain.into_iter().rev() {
            let id = &fixture.id.value;
            match build_one(server, article, resolved, fixture).await {
                Ok(()) => self.built.insert(id.clone()),
                Err(failure) => {
                    let wrong = match &failure {
                        Failure::Article(problems)
                            if skipped::refusal(server, &failure).is_some() =>
                        {
                            Wrong::NotPermitted(problems.clone())
                        }
                        _ => Wrong::Told,
                    };
                    self.failed.insert(id.clone(), wrong);
                    return Err(failure);
                }
            };
        }
        Ok(())
    }
}

/// A fixture and those it is built from, which come after it.
fn chain<'a>(article: &'a Article, id: &'a str) -> Vec<&'a Fixture> {
    let mut chain: Vec<&Fixture> = Vec::new();
    let mut next = Some(id);
    while let Some(id) = next {
        let Some(fixture) = article.fixtures().find(|fixture| fixture.id.value == id) else {
            break;
        };
        chain.push(fixture);
        next = fixture.from.as_ref().map(|from| from.value.as_str());
    }
    chain
}

async fn build_one(
    server: &Server,
    article: &Article,
    resolved: &Resolved,
    fixture: &Fixture,
) -> Result<(), Failure> {
    let name = database(&fixture.id.value);
    clone(server, article, resolved, &name, fixture.from.as_ref()).await?;
    fill(server, article, resolved, fixture, &name).await
}

/// A database in a fixture's state, or an empty one. An existing server may not let a database be
/// copied: the fixture, which stands, is then built once more.
pub async fn clone(
    server: &Server,
    article: &Article,
    resolved: &Resolved,
    name: &str,
    fixture: Option<&Spanned<String>>,
) -> Result<(), Failure> {
    let template = fixture.map(|fixture| database(&fixture.value));
    let cloned = create_database(server, article, name, template.as_deref()).await;
    let (Err(failure), Some(fixture)) = (&cloned, fixture) else {
        return cloned;
    };
    if !skipped::is_not_copied(server, failure) {
        return cloned;
    }
    create_database(server, article, name, None).await?;
    for link in chain(article, &fixture.value).into_iter().rev() {
        fill(server, article, resolved, link, name).await?;
    }
    Ok(())
}

/// Runs a fixture's script in a database.
async fn fill(
    server: &Server,
    article: &Article,
    resolved: &Resolved,
    fixture: &Fixture,
    name: &str,
) -> Result<(), Failure> {
    let mut session = author_session(server, article, name).await?;
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
        script::ScriptError::Lost(_) | script::ScriptError::Sql { machine: true, .. } => {
            Failure::Engine(diagnostic)
        }
        script::ScriptError::Broken(_) => Failure::Internal(diagnostic),
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
