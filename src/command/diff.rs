//! `diff`: what is measured and not accepted yet beside what is accepted. Runs nothing, writes
//! nothing, waits for nobody. As with `git diff`, a difference is no failure: the exit code is 0
//! whether there is one or none.

mod text;

use super::build::runtime;
use super::check::staleness;
use super::project::Project;
use super::record::{Context, measurements, record_path};
use super::terminal::{both, for_each, look, print, print_json, worst};
use crate::article::Article;
use crate::diagnostic::Diagnostic;
use crate::engine::Engines;
use crate::engine::pins::Pins;
use crate::exit_code::{Failure, Outcome};
use crate::judge::compare::{Comparison, compare};
use crate::plan::Force;
use crate::record::Record;
use serde::Serialize;

pub use text::summary;

/// The version of the JSON document's shape.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    articles: &'a [Found],
}

pub fn diff(
    project: &Project,
    names: &[String],
    profile: Option<&str>,
    engines: &Engines,
    json: bool,
) -> Result<Outcome, Failure> {
    let pins = project.pins()?;
    let (articles, all_read) = project.articles(names, &pins)?;
    let runtime = runtime()?;
    let (found, all_done) = for_each(&articles, |article| {
        let context = Context::new(project, &pins, article, profile, engines);
        let context = runtime.block_on(context)?;
        let found = one(&context, &pins)?;
        if !json {
            print(&text::of(article, &found, look()))?;
        }
        Ok(found)
    });
    if json {
        print_json(&Document {
            format: FORMAT,
            articles: &found,
        })?;
    }
    both(all_read, all_done)?;
    Ok(worst(found.iter().map(|one| match one.state {
        State::NoRecord => Outcome::RecordStale,
        State::NothingPending | State::Compared => Outcome::Holds,
    })))
}

/// An article's two records side by side.
#[derive(Serialize)]
pub struct Found {
    article: String,
    profile: String,
    state: State,
    /// Of the accepted record.
    accepted_profile: Option<String>,
    #[serde(flatten)]
    comparison: Option<Comparison>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Compared,
    /// What is accepted is all there is.
    NothingPending,
    NoRecord,
}

fn one(context: &Context<'_>, pins: &Pins) -> Result<Found, Failure> {
    let article = context.article;
    let profile = &context.resolved.profile;
    let planned = context.plan(&Force::Nothing);
    let pending = context.stored_record(&planned);
    // In a fresh clone what is accepted is not analysed again.
    let all_accepted = context.accepted.as_ref().is_some_and(|accepted| {
        let all = measurements(&planned).filter(|_| staleness(article, accepted, pins).is_empty());
        all.is_some_and(|all| {
            all.iter().all(|(experiment, stored)| {
                let accepted = accepted.experiments.get(&experiment.id.value);
                accepted.is_some_and(|one| one.measured_at == stored.measured_at)
            })
        })
    });
    let (state, comparison) = match (&context.accepted, &pending) {
        (Some(accepted), Some(pending)) => (State::Compared, Some(compare(accepted, pending))),
        (Some(_), None) if all_accepted => (State::NothingPending, None),
        (None, Some(_)) => (State::NoRecord, None),
        (_, None) => return Err(nothing_measured(article, profile)),
    };
    Ok(Found {
        article: article.slug.clone(),
        profile: profile.clone(),
        state,
        accepted_profile: context.accepted.as_ref().map(|one| one.profile.clone()),
        comparison,
    })
}

fn nothing_measured(article: &Article, profile: &str) -> Failure {
    let slug = &article.slug;
    let record = record_path(article);
    let problem = Diagnostic::error(format!(
        "`{slug}` has no complete measurement in profile {profile} to compare"
    ));
    let problem = match record.exists() {
        true => problem,
        false => problem.note(format!("there is no `{}` either", record.display())),
    };
    Failure::article(problem.hint(format!(
        "measure it first: remeasure build {slug} --profile {profile}"
    )))
}

/// What changed from the accepted record to the one that takes its place, in a line each.
pub fn changes(accepted: Option<&Record>, now: &Record) -> Vec<String> {
    accepted.map_or_else(Vec::new, |accepted| summary(&compare(accepted, now)))
}
