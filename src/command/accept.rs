//! `accept`: promotes what is measured to the article's `record.json`, the figures that its prose
//! is checked against from then on. That is profile `full` unless another is asked for by name: a
//! quick measurement never takes the place of a full one unasked. Quotes that do not hold against it
//! are told, or rewritten: [`super::requote`].
//!
//! What another machine measured is accepted from its file, and may be put beside the author's
//! record in place of becoming it: [`super::machines`].

use super::build::runtime;
use super::check::staleness;
use super::diff::changes;
use super::lock;
use super::machines;
use super::parts::Given;
use super::project::Project;
use super::record::{Context, record_path};
use super::requote::{Quotes, requote};
use super::terminal::{both, for_each, print, tell, worst};
use crate::article::Article;
use crate::diagnostic::Diagnostic;
use crate::engine::Engines;
use crate::engine::pins::Pins;
use crate::exit_code::{Failure, Outcome};
use crate::judge;
use crate::plan::Force;
use crate::record::store::{read_record, write_atomically};
use crate::record::{Record, to_json};
use std::path::{Path, PathBuf};

/// What is accepted, and as what.
pub struct Accepting {
    pub profile: Option<String>,
    pub engine: Engines,
    pub quotes: Quotes,
    pub unpinned: Unpinned,
    /// A record that was measured elsewhere; None: what is measured here.
    pub record: Option<PathBuf>,
    pub place: Place,
    /// Nothing is accepted there.
    pub continuous_integration: bool,
}

/// Where an accepted record goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// `record.json`, which the prose is checked against.
    Author,
    /// `records/<name>.json`, shown beside it; None: the name of its CPU.
    Machine(Option<String>),
}

/// What becomes of figures of a server on which nothing is pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unpinned {
    Refuse,
    Accept,
}

pub fn accept(
    project: &Project,
    names: &[String],
    options: &Accepting,
) -> Result<Outcome, Failure> {
    if options.continuous_integration {
        return Err(Failure::article(
            Diagnostic::error("nothing is accepted under CI")
                .note("the environment sets CI")
                .hint("accept on the machine you measured on, and commit `record.json`"),
        ));
    }
    if let Place::Machine(Some(name)) = &options.place {
        machines::name_is_allowed(name).map_err(Failure::article)?;
    }
    let given = match &options.record {
        Some(file) => Given::read(std::slice::from_ref(file))?,
        None => Given::default(),
    };
    let names = given.articles(names);
    let pins = project.pins()?;
    let (articles, all_read) = project.articles(&names, &pins)?;
    let runtime = runtime()?;
    let (outcomes, all_done) = for_each(&articles, |article| {
        // What a build is measuring is accepted when it is whole.
        let store = project.store(article);
        let _lock = runtime.block_on(lock::article(&store, &article.slug, tell))?;
        let (record, before) = match given.of(article, &pins)? {
            Some(record) => {
                is_whole(article, &record, &pins)?;
                (record, read_record(&record_path(article))?)
            }
            None => {
                let profile = options.profile.as_deref();
                let context = Context::new(project, &pins, article, profile, &options.engine);
                let context = runtime.block_on(context)?;
                let record = measured(&context)?;
                (record, context.accepted)
            }
        };
        refuse_unfit(article, &record, options.unpinned)?;
        match &options.place {
            Place::Author => {
                print(&promote(article, &record, before.as_ref())?)?;
                let machines = machines::machines(article, Some(&record), &pins)?;
                let record =
                    judge::with_their_claims(article, &record, &machines).unwrap_or(record);
                requote(article, &record, options.quotes, &pins)
            }
            Place::Machine(name) => {
                print(&put_beside(
                    article,
                    &record,
                    name.as_deref(),
                    before.as_ref(),
                )?)?;
                Ok(Outcome::Holds)
            }
        }
    });
    both(all_read, all_done)?;
    Ok(worst(outcomes))
}

/// The complete record of this machine.
fn measured(context: &Context<'_>) -> Result<Record, Failure> {
    let article = context.article;
    let profile = &context.resolved.profile;
    let planned = context.plan(&Force::Nothing);
    context.stored_record(&planned).ok_or_else(|| {
        Failure::article(
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
                context.engine(),
                context.engine_reason()
            )),
        )
    })
}

/// A record that was merged and not analysed yet, or of an older text, is none to accept.
fn is_whole(article: &Article, record: &Record, pins: &Pins) -> Result<(), Failure> {
    let problems = staleness(article, record, pins);
    let Some(first) = problems.first() else {
        return Ok(());
    };
    let mut problem = Diagnostic::error(format!(
        "the record is not complete, or not of `{}` as it is now: {}",
        article.slug, first.message
    ));
    problem.place.clone_from(&first.place);
    for other in &problems[1..] {
        problem = problem.note(&other.message);
    }
    Err(Failure::Record(problem.hint(format!(
        "have its queries evaluated first, and accept what comes out: remeasure build --record \
         FILE && remeasure accept --record out/{}/record.json",
        article.slug
    ))))
}

/// Puts a record beside the author's, and says so.
fn put_beside(
    article: &Article,
    record: &Record,
    name: Option<&str>,
    author: Option<&Record>,
) -> Result<String, Failure> {
    let host = &record.environment.host;
    let named = name.map_or_else(|| machines::default_name(host), str::to_owned);
    let path = machines::path(article, &named);
    let before = read_record(&path)?;
    if let Some(before) = &before
        && before.environment.host.sha256 != host.sha256
        && name.is_none()
    {
        return Err(Failure::article(
            Diagnostic::error(format!("`{}` is another machine's record", path.display()))
                .note(format!("there: {}", before.environment.host.machine()))
                .note(format!("now: {}", host.machine()))
                .hint("give this one a name: --as NAME"),
        ));
    }
    let folder = path.parent().unwrap_or(&article.directory);
    std::fs::create_dir_all(folder).map_err(|error| Failure::io("create", folder, &error))?;
    let unchanged = write(&path, record)?;
    let mut told = format!(
        "{}: {} ({} experiments, {} claims, profile {}), of {}\n",
        path.display(),
        if unchanged { "unchanged" } else { "accepted" },
        record.experiments.len(),
        record.claims.len(),
        record.profile,
        host.machine(),
    );
    if author.is_some_and(|author| author.environment.host.sha256 == host.sha256) {
        told.push_str("  it is of the same machine as record.json\n");
    }
    Ok(told)
}

/// True: the file had it already.
fn write(path: &Path, record: &Record) -> Result<bool, Failure> {
    let json = to_json(record);
    let unchanged = std::fs::read_to_string(path).is_ok_and(|old| old == json);
    if !unchanged {
        write_atomically(path, json.as_bytes())
            .map_err(|error| Failure::io("write", path, &error))?;
    }
    Ok(unchanged)
}

/// Writes the author's record, and says what there is now.
fn promote(
    article: &Article,
    record: &Record,
    accepted: Option<&Record>,
) -> Result<String, Failure> {
    let profile = &record.profile;
    let path = record_path(article);
    let unchanged = write(&path, record)?;
    let before = accepted.map(|record| &record.profile);
    let instead = match before.filter(|before| *before != profile) {
        Some(before) => format!("; instead of one of profile {before}"),
        None => String::new(),
    };
    let changes: String = changes(accepted.filter(|_| !unchanged), record)
        .iter()
        .map(|line| format!("  {line}\n"))
        .collect();
    Ok(format!(
        "{}: {} ({} experiments, {} claims, profile {profile}{instead})\n{changes}",
        path.display(),
        if unchanged { "unchanged" } else { "accepted" },
        record.experiments.len(),
        record.claims.len(),
    ))
}

/// A record is what everybody's figures are checked against: one of an existing server is accepted
/// only where that is asked for, and never one that is not of the whole article or of its version.
fn refuse_unfit(article: &Article, record: &Record, unpinned: Unpinned) -> Result<(), Failure> {
    let server = &record.environment.server;
    if !server.is_existing() {
        return Ok(());
    }
    let version = &article.front_matter.postgres.version;
    let refuse = |what: String, hint: &str| {
        let diagnostic = Diagnostic::error(what).at(&article.source, version.span);
        Err(Failure::article(diagnostic.hint(hint)))
    };
    if server.version != version.value {
        return refuse(
            format!(
                "measured on Postgres {}, which is not the article's {}",
                server.version, version.value
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
