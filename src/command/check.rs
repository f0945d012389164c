//! `check`: judges quotes and claims, writing nothing. Afresh it measures first; `--recorded` asks
//! the accepted record alone and needs no Postgres.

use super::build::{BuildOptions, measured_record, outcome, runtime, write_reports};
use super::progress::Verbosity;
use super::project::Project;
use super::record::{Context, record_path};
use crate::article::Article;
use crate::diagnostic::Diagnostic;
use crate::exit_code::{Failure, Outcome};
use crate::judge;
use crate::plan::{self, Force};
use crate::record::Record;
use crate::record::store::read_record;
use crate::report;

#[derive(Clone, Debug)]
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
    let pins = project.pins()?;
    let articles = project.articles(names, &pins)?;
    let mut result = Outcome::Holds;
    for article in &articles {
        let found = if options.recorded {
            recorded(article, options)?
        } else {
            let build = &options.build;
            let profile = build.profile.as_deref();
            let context = Context::new(project, &pins, article, profile, &build.engine)?;
            let mut afresh = build.clone();
            if afresh.force == Force::Nothing {
                afresh.force = Force::Everything;
            }
            let record = runtime()?.block_on(measured_record(&context, &afresh))?;
            judged(article, &record, context.accepted.as_ref(), true, options)?
        };
        if found != Outcome::Holds {
            result = found;
        }
    }
    Ok(result)
}

/// Against the accepted record: it must be there, and of the article as it is now.
fn recorded(article: &Article, options: &CheckOptions) -> Result<Outcome, Failure> {
    let path = record_path(article);
    let Some(record) = read_record(&path)? else {
        stale(
            options,
            Diagnostic::error(format!("`{}` has no record", article.slug)).hint(format!(
                "measure and accept it: remeasure build {0} && remeasure accept {0}",
                article.slug
            )),
        );
        return Ok(Outcome::RecordStale);
    };
    let problems = staleness(article, &record)?;
    let stale_record = !problems.is_empty();
    for problem in problems {
        stale(options, problem);
    }
    let judged = judged(article, &record, Some(&record), false, options)?;
    Ok(match judged {
        Outcome::Holds if stale_record => Outcome::RecordStale,
        other => other,
    })
}

/// Where the record is not of the article as it is written now. The record's own server counts as
/// the pinned one: which engine and platform it ran on is not the text's to say.
pub fn staleness(article: &Article, record: &Record) -> Result<Vec<Diagnostic>, Failure> {
    let resolved = plan::resolve(article, Some(&record.profile)).map_err(Failure::article)?;
    let server = &record.environment.server;
    let identity = plan::ServerIdentity {
        version: article.front_matter.postgres.version.value.clone(),
        digest: server.digest.clone(),
        engine: server.engine.clone(),
    };
    let mut problems = Vec::new();
    for experiment in article.experiments() {
        let id = &experiment.id;
        let now = plan::fingerprint::of_experiment(article, experiment, &resolved, &identity);
        let problem = match record.experiments.get(&id.value) {
            None => format!("the record has no experiment `{}`", id.value),
            Some(recorded) if recorded.inputs != now => {
                let differences = plan::fingerprint::differences(&recorded.inputs, &now);
                format!(
                    "the record of `{}` is stale: {}",
                    id.value,
                    plan::Reason::Changed(differences)
                )
            }
            Some(_) => continue,
        };
        problems.push(
            Diagnostic::error(problem)
                .at(&article.source, id.span)
                .hint(format!(
                    "measure and accept it: remeasure build {0} && remeasure accept {0}",
                    article.slug
                )),
        );
    }
    for claim in article.claims() {
        if !record.claims.contains_key(&claim.name.value) {
            problems.push(
                Diagnostic::error(format!("the record has no claim `{}`", claim.name.value))
                    .at(&article.source, claim.name.span)
                    .hint("build and accept the article again"),
            );
        }
    }
    Ok(problems)
}

fn stale(options: &CheckOptions, diagnostic: Diagnostic) {
    eprintln!("{}\n", diagnostic.render(options.build.color));
}

fn judged(
    article: &Article,
    record: &Record,
    accepted: Option<&Record>,
    measured_here: bool,
    options: &CheckOptions,
) -> Result<Outcome, Failure> {
    let verdicts = judge::judge(
        article,
        record,
        &judge::Context {
            profile: &record.profile,
            accepted,
            measured_here,
        },
    );
    if options.build.verbosity == Verbosity::Normal {
        println!(
            "{}",
            report::terminal::table(&verdicts, options.build.width, options.build.color)
        );
    }
    write_reports(article, &verdicts, &options.build)?;
    outcome(article, &verdicts, &options.build)
}
