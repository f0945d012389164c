//! `accept`: promotes what is measured to the article's `record.json`, the figures that its prose
//! is checked against from then on. That is profile `full` unless another is asked for by name: a
//! quick measurement never takes the place of a full one unasked. Quotes that do not hold against it
//! are told, or rewritten: [`super::requote`].

use super::build::runtime;
use super::diff::changes;
use super::lock;
use super::project::Project;
use super::record::{Context, record_path};
use super::requote::{Quotes, requote};
use super::terminal::{both, for_each, print, tell, worst};
use crate::diagnostic::Diagnostic;
use crate::engine::Engines;
use crate::exit_code::{Failure, Outcome};
use crate::plan::Force;
use crate::record::store::write_atomically;
use crate::record::{Record, to_json};

/// What becomes of figures of a server on which nothing is pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unpinned {
    Refuse,
    Accept,
}

pub fn accept(
    project: &Project,
    names: &[String],
    profile: Option<&str>,
    engines: &Engines,
    quotes: Quotes,
    unpinned: Unpinned,
    continuous_integration: bool,
) -> Result<Outcome, Failure> {
    if continuous_integration {
        return Err(Failure::article(
            Diagnostic::error("nothing is accepted under CI")
                .note("the environment sets CI")
                .hint("accept on the machine you measured on, and commit `record.json`"),
        ));
    }
    let pins = project.pins()?;
    let (articles, all_read) = project.articles(names, &pins)?;
    let runtime = runtime()?;
    let (outcomes, all_done) = for_each(&articles, |article| {
        // What a build is measuring is accepted when it is whole.
        let store = project.store(article);
        let _lock = runtime.block_on(lock::article(&store, &article.slug, tell))?;
        let context = Context::new(project, &pins, article, profile, engines);
        let context = runtime.block_on(context)?;
        let (record, told) = accept_one(&context, unpinned)?;
        print(&told)?;
        requote(article, &record, quotes, &pins)
    });
    both(all_read, all_done)?;
    Ok(worst(outcomes))
}

/// Writes the record, and says what there is now.
fn accept_one(context: &Context<'_>, unpinned: Unpinned) -> Result<(Record, String), Failure> {
    let article = context.article;
    let profile = &context.resolved.profile;
    let planned = context.plan(&Force::Nothing);
    let Some(record) = context.stored_record(&planned) else {
        return Err(Failure::article(
            Diagnostic::error(format!(
                "`{}` has no complete measurement in profile {profile} to accept",
                article.slug
            ))
            .hint(format!(
                "measure it first: remeasure build {} --profile {profile}",
                article.slug
            ))
            .note(format!(
                "looked for results of engine {}: {}",
                context.server.engine, context.engine.reason
            )),
        ));
    };
    refuse_unfit(context, &record, unpinned)?;
    let path = record_path(article);
    let json = to_json(&record);
    let unchanged = std::fs::read_to_string(&path).is_ok_and(|old| old == json);
    if !unchanged {
        write_atomically(&path, json.as_bytes())
            .map_err(|error| Failure::io("write", &path, &error))?;
    }
    let before = context.accepted.as_ref().map(|record| &record.profile);
    let instead = match before.filter(|before| *before != profile) {
        Some(before) => format!("; instead of one of profile {before}"),
        None => String::new(),
    };
    let changes: String = changes(context.accepted.as_ref().filter(|_| !unchanged), &record)
        .iter()
        .map(|line| format!("  {line}\n"))
        .collect();
    let told = format!(
        "{}: {} ({} experiments, {} claims, profile {profile}{instead})\n{changes}",
        path.display(),
        if unchanged { "unchanged" } else { "accepted" },
        record.experiments.len(),
        record.claims.len(),
    );
    Ok((record, told))
}

/// A record is what everybody's figures are checked against: one of an existing server is accepted
/// only where that is asked for, and never one that is not of the whole article or of its version.
fn refuse_unfit(context: &Context<'_>, record: &Record, unpinned: Unpinned) -> Result<(), Failure> {
    let server = &record.environment.server;
    if !server.is_existing() {
        return Ok(());
    }
    let article = context.article;
    let version = &article.front_matter.postgres.version;
    let refuse = |what: String, hint: &str| {
        let diagnostic = Diagnostic::error(what).at(&article.source, version.span);
        Err(Failure::article(diagnostic.hint(hint)))
    };
    if server.version != context.pin.version {
        return refuse(
            format!(
                "measured on Postgres {}, which is not the article's {}",
                server.version, context.pin.version
            ),
            "a record is of the version that the article names: measure on that one",
        );
    }
    if let Some((skipped, _)) = record.skipped.first() {
        return refuse(
            format!(
                "{skipped} was skipped on this server: what is measured is not the whole article"
            ),
            "a record is of the whole article: measure it on the pinned Postgres",
        );
    }
    match unpinned {
        Unpinned::Accept => Ok(()),
        Unpinned::Refuse => refuse(
            "measured on an existing server, on which nothing is pinned".to_owned(),
            "nobody else can measure these figures again; `accept --unpinned` takes them all the \
             same",
        ),
    }
}
