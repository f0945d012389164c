//! `check`: judges quotes and claims, writing nothing. Afresh it measures first, and judges beside
//! the accepted record; `--recorded` asks that record alone and needs no Postgres.

use super::asked::{Done, each_judged};
use super::build::{Built, measured_record, runtime};
use super::lint;
use super::machines;
use super::options::BuildOptions;
use super::project::Project;
use super::record::{Context, beside, record_path};
use super::terminal::{self, worst};
use crate::analyse;
use crate::article::Article;
use crate::diagnostic::Diagnostic;
use crate::engine::pins::Pins;
use crate::exit_code::{Failure, Outcome};
use crate::judge::{self, Machine};
use crate::parse::sql::variables_of_text;
use crate::plan::{self, FULL, Force, Reason, fingerprint};
use crate::record::store::read_record;
use crate::record::{Fingerprint, Record};
use crate::render;
use crate::source::Spanned;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};

#[derive(Clone)]
pub struct CheckOptions {
    pub build: BuildOptions,
    /// Judge against the accepted record alone.
    pub recorded: bool,
}

pub fn check(
    project: &Project,
    names: &[String],
    options: &CheckOptions,
) -> Result<Outcome, Failure> {
    let mut records = options.recorded.then(|| Records::reading(project, names));
    each_judged(
        "check",
        project,
        names,
        &options.build,
        |pins, article| {
            lint::refuse(article)?;
            match &mut records {
                Some(records) => recorded(article, records.of(article), pins, options),
                None => afresh(project, pins, article, options),
            }
        },
        || Ok(()),
    )
}

/// The accepted records, read while the articles are: a record may be as large as its article.
struct Records {
    read: Receiver<(PathBuf, Accepted)>,
}

type Accepted = Result<Option<Record>, Failure>;

/// How many records wait for their articles at most.
const READ_AHEAD: usize = 4;

impl Records {
    fn reading(project: &Project, names: &[String]) -> Self {
        // What is wrong with the names is told by who reads the articles.
        let articles = project.paths(names).unwrap_or_default();
        let (send, read) = sync_channel(READ_AHEAD);
        std::thread::spawn(move || {
            for article in articles {
                let record = read_record(&beside(&article));
                if send.send((article, record)).is_err() {
                    break;
                }
            }
        });
        Self { read }
    }

    /// Articles come in the order of their records; those that could not be read are left out.
    fn of(&mut self, article: &Article) -> Accepted {
        let path = record_path(article);
        let found = self
            .read
            .iter()
            .find(|(article, _)| beside(article) == path);
        found.map_or_else(|| read_record(&path), |(_, record)| record)
    }
}

/// Measures everything again and judges it, beside the accepted record.
fn afresh<'a>(
    project: &Project,
    pins: &Pins,
    article: &'a Article,
    options: &CheckOptions,
) -> Result<Done<'a>, Failure> {
    let problems = render::check(article);
    if !problems.is_empty() {
        return Err(Failure::Article(problems));
    }
    let mut build = options.build.clone();
    let runtime = runtime()?;
    let context = Context::new(
        project,
        pins,
        article,
        build.profile.as_deref(),
        &build.engine,
    );
    let mut context = runtime.block_on(context)?;
    if build.force == Force::Nothing {
        build.force = Force::Everything;
    }
    let record = runtime.block_on(measured_record(&mut context, &build))?;
    let accepted = context.accepted.as_ref();
    let machines = machines::machines(article, accepted, pins)?;
    let built = judged(article, record, accepted, machines, true, options)?;
    Ok(built.into())
}

/// Against the accepted record: it must be there, and of the article as it is now.
fn recorded<'a>(
    article: &'a Article,
    record: Accepted,
    pins: &Pins,
    options: &CheckOptions,
) -> Result<Done<'a>, Failure> {
    let Some(record) = record? else {
        let profile = options.build.profile.as_deref().unwrap_or(FULL);
        let problem = Diagnostic::error(format!("`{}` has no record", article.slug))
            .hint(how_to_accept(article, profile));
        terminal::tell_diagnostics([&problem]);
        return Ok(Done {
            built: None,
            outcome: Outcome::RecordStale,
            problems: vec![problem],
        });
    };
    let mut problems = staleness(article, &record, pins);
    let asked = options.build.profile.as_ref();
    if let Some(profile) = asked.filter(|profile| **profile != record.profile) {
        problems.push(
            Diagnostic::error(format!(
                "the record of `{}` is of profile {}, not {profile}",
                article.slug, record.profile
            ))
            .hint(how_to_accept(article, profile)),
        );
    }
    let machines = machines::machines(article, Some(&record), pins)?;
    problems.extend(machines.iter().flat_map(|machine| machine.stale.clone()));
    terminal::tell_diagnostics(&problems);
    let mut done = Done::from(judged(article, record, None, machines, false, options)?);
    if !problems.is_empty() {
        done.outcome = worst([done.outcome, Outcome::RecordStale]);
        problems.append(&mut done.problems);
        done.problems = problems;
    }
    Ok(done)
}

/// Where the record is not of the article as it is written now. The record's own server counts as
/// the pinned one: which engine and platform it ran on is not the text's to say.
pub fn staleness(article: &Article, record: &Record, pins: &Pins) -> Vec<Diagnostic> {
    let hint = how_to_accept(article, &record.profile);
    let Ok(resolved) = plan::resolve(article, Some(&record.profile)) else {
        return vec![other_profile(article, record).hint(how_to_accept(article, FULL))];
    };
    let mut problems = stale_measurements(article, record, pins);
    for claim in article.claims() {
        let name = &claim.name.value;
        let problem = match record.claims.get(name) {
            None => format!("the record has no claim `{name}`"),
            // Its value is in the unit it was recorded with.
            Some(recorded) if recorded.unit != claim.unit => {
                let unit = |unit: &Option<String>| unit.clone().unwrap_or_else(|| "none".into());
                format!(
                    "the record's claim `{name}` is stale: its unit changed from `{}` to `{}`",
                    unit(&recorded.unit),
                    unit(&claim.unit)
                )
            }
            Some(_) => continue,
        };
        problems.push(Diagnostic::error(problem).at(&article.source, claim.name.span));
    }
    let queries = analyse::queries(article);
    problems.extend(other_queries(article, record, &queries));
    let used: BTreeSet<String> = (queries.fields.values())
        .flat_map(|sql| variables_of_text(sql))
        .map(|variable| variable.name)
        .collect();
    for name in used {
        let now = resolved.params.get(&name).map(ToString::to_string);
        let before = record.params.get(&name).cloned();
        if before != now {
            let of = |value: Option<String>| {
                let fields = value.map(|value| (format!("param `{name}`"), value));
                Fingerprint {
                    fields: fields.into_iter().collect(),
                }
            };
            problems.push(Diagnostic::error(format!(
                "the record's values are stale: {}",
                changed(&of(before), &of(now))
            )));
        }
    }
    problems
        .into_iter()
        .map(|problem| problem.hint(hint.clone()))
        .collect()
}

/// What of it was measured with other inputs than the article has now.
pub fn stale_measurements(article: &Article, record: &Record, pins: &Pins) -> Vec<Diagnostic> {
    let Ok(resolved) = plan::resolve(article, Some(&record.profile)) else {
        return vec![other_profile(article, record)];
    };
    let servers = recorded_servers(article, record);
    let mut problems = Vec::new();
    for version in article.front_matter.postgres.all_versions() {
        problems.extend(other_binaries(article, version, record, pins));
    }
    for experiment in article.experiments() {
        let id = &experiment.id;
        let now = fingerprint::of_experiment(article, experiment, &resolved, &servers);
        let problem = match record.experiments.get(&id.value) {
            None => format!("the record has no experiment `{}`", id.value),
            Some(recorded) if recorded.inputs != now => format!(
                "the record of `{}` is stale: {}",
                id.value,
                changed(&recorded.inputs, &now)
            ),
            Some(_) => continue,
        };
        problems.push(Diagnostic::error(problem).at(&article.source, id.span));
    }
    problems
}

fn other_profile(article: &Article, record: &Record) -> Diagnostic {
    let problem = format!(
        "the record is of profile `{}`, which the article has no longer",
        record.profile
    );
    Diagnostic::error(problem).at(&article.source, article.front_matter.span)
}

/// One for each of the article's versions; one that the record has not is of no engine.
fn recorded_servers(article: &Article, record: &Record) -> Vec<plan::ServerIdentity> {
    let environment = &record.environment;
    let postgres = &article.front_matter.postgres;
    let only = postgres.versions.is_empty().then_some(&environment.server);
    postgres
        .all_versions()
        .map(|version| {
            let of_version = || {
                environment
                    .servers()
                    .find(|one| one.version == version.value)
            };
            let server = only.or_else(of_version);
            plan::ServerIdentity {
                version: version.value.clone(),
                digest: server.and_then(|server| server.digest.clone()),
                engine: server.map_or_else(String::new, |server| server.engine.clone()),
            }
        })
        .collect()
}

/// Queries that were edited since, each at its place. Of records that have none nothing is known.
fn other_queries(article: &Article, record: &Record, now: &Fingerprint) -> Vec<Diagnostic> {
    if record.queries.fields.is_empty() {
        return Vec::new();
    }
    let places = analyse::query_places(article);
    let differences = record.queries.differences(now).into_iter();
    differences
        // A claim without a value is told as such.
        .filter(|difference| {
            difference.before.is_some()
                || !(article.claims().map(|claim| &claim.name.value)).any(|name| {
                    Record::claim_query(name) == difference.input
                        && !record.claims.contains_key(name)
                })
        })
        .map(|difference| {
            let place = places.get(&difference.input).copied();
            let problem = format!("the record's values are stale: {difference}");
            match place {
                Some(span) => Diagnostic::error(problem).at(&article.source, span),
                None => Diagnostic::error(problem),
            }
        })
        .collect()
}

/// Binaries that are pinned no longer. Every platform's archive is one that is; what a record of
/// another engine ran on, or of a folder of the author's, is not pins.yaml's to say.
fn other_binaries(
    article: &Article,
    version: &Spanned<String>,
    record: &Record,
    pins: &Pins,
) -> Option<Diagnostic> {
    // Another version is told by each experiment.
    let mut servers = record.environment.servers();
    let server = servers.find(|server| server.version == version.value)?;
    let digest = server
        .digest
        .as_ref()
        .filter(|_| server.engine == "embedded")?;
    let pin = pins.version(&version.value)?;
    let mut pinned = pin
        .archives
        .values()
        .map(|archive| format!("sha256:{}", archive.archive));
    (!pinned.any(|pinned| pinned == *digest)).then(|| {
        Diagnostic::error(format!(
            "the record is stale: its Postgres {} is of binaries that are not pinned any more",
            server.version
        ))
        .at(&article.source, version.span)
        .note(format!("measured on `{digest}`"))
    })
}

fn changed(before: &Fingerprint, now: &Fingerprint) -> Reason {
    Reason::Changed(before.differences(now))
}

fn how_to_accept(article: &Article, profile: &str) -> String {
    let slug = &article.slug;
    let profile = match profile {
        FULL => String::new(),
        profile => format!(" --profile {profile}"),
    };
    format!(
        "measure and accept it: remeasure build {slug}{profile} && remeasure accept {slug}{profile}"
    )
}

fn judged<'a>(
    article: &'a Article,
    record: Record,
    accepted: Option<&Record>,
    machines: Vec<Machine>,
    measured_here: bool,
    options: &CheckOptions,
) -> Result<Built<'a>, Failure> {
    let record = judge::with_their_claims(article, &record, &machines).unwrap_or(record);
    let context = judge::Context {
        profile: &record.profile,
        accepted,
        measured_here,
    };
    let verdicts = judge::judge(article, &record, &context);
    let built = Built {
        article,
        record,
        verdicts,
        machines,
    };
    terminal::tell_machines(&built.record, accepted, &options.build);
    terminal::tell_verdicts(&built.judged(), None, &options.build)?;
    Ok(built)
}
