//! `check`: judges quotes and claims, writing nothing. Afresh it measures first; `--recorded` asks
//! the accepted record alone and needs no Postgres.

use super::build::{
    BuildOptions, Built, forced_exist, measured_record, runtime, tell, worst, write_reports,
};
use super::project::Project;
use super::record::{Context, record_path};
use crate::article::Article;
use crate::diagnostic::Diagnostic;
use crate::engine::pins::Pins;
use crate::exit_code::{Failure, Outcome};
use crate::judge;
use crate::plan::{self, Force};
use crate::record::Record;
use crate::record::store::read_record;
use crate::report::{Color, Judged};

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
    let pins = project.pins()?;
    let articles = project.articles(names, &pins)?;
    forced_exist(&articles, &options.build.force)?;
    let mut checked = Vec::new();
    let mut outcomes = Vec::new();
    for article in &articles {
        let one = if options.recorded {
            recorded(article, options)?
        } else {
            afresh(project, &pins, article, options)?
        };
        match one {
            Some(one) => {
                outcomes.push(one.outcome);
                checked.push(one);
            }
            None => outcomes.push(Outcome::RecordStale),
        }
    }
    let judged: Vec<Judged<'_>> = checked.iter().map(Built::judged).collect();
    write_reports(&judged, &options.build)?;
    Ok(worst(outcomes))
}

/// Measures everything again and judges it, beside the accepted record.
fn afresh<'a>(
    project: &Project,
    pins: &Pins,
    article: &'a Article,
    options: &CheckOptions,
) -> Result<Option<Built<'a>>, Failure> {
    let mut build = options.build.clone();
    let context = Context::new(
        project,
        pins,
        article,
        build.profile.as_deref(),
        &build.engine,
    )?;
    if build.force == Force::Nothing {
        build.force = Force::Everything;
    }
    let record = runtime()?.block_on(measured_record(&context, &build))?;
    Ok(Some(judged(
        article,
        record,
        context.accepted.as_ref(),
        true,
        options,
    )))
}

/// Against the accepted record: it must be there, and of the article as it is now.
/// None where there is none.
fn recorded<'a>(
    article: &'a Article,
    options: &CheckOptions,
) -> Result<Option<Built<'a>>, Failure> {
    let path = record_path(article);
    let Some(record) = read_record(&path)? else {
        stale(
            options,
            Diagnostic::error(format!("`{}` has no record", article.slug)).hint(format!(
                "measure and accept it: remeasure build {0} && remeasure accept {0}",
                article.slug
            )),
        );
        return Ok(None);
    };
    let problems = staleness(article, &record)?;
    let stale_record = !problems.is_empty();
    for problem in problems {
        stale(options, problem);
    }
    let accepted = record.clone();
    let mut checked = judged(article, record, Some(&accepted), false, options);
    if stale_record {
        checked.outcome = worst([checked.outcome, Outcome::RecordStale]);
    }
    Ok(Some(checked))
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
    eprintln!(
        "{}\n",
        diagnostic.render(options.build.look.color == Color::Ansi)
    );
}

fn judged<'a>(
    article: &'a Article,
    record: Record,
    accepted: Option<&Record>,
    measured_here: bool,
    options: &CheckOptions,
) -> Built<'a> {
    let context = judge::Context {
        profile: &record.profile,
        accepted,
        measured_here,
    };
    let verdicts = judge::judge(article, &record, &context);
    let mut built = Built {
        article,
        record,
        verdicts,
        outcome: Outcome::Holds,
    };
    built.outcome = tell(&built.judged(), None, &options.build);
    built
}
