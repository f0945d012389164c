//! `status`: for each experiment whether its result is fresh, stale or missing, and why; for each
//! figure whether the accepted record has it. Runs nothing.

use super::build::experiments_exist;
use super::check::staleness;
use super::project::Project;
use super::record::{Context, record_path};
use super::terminal::{for_each, print, worst};
use crate::article::Article;
use crate::engine::EngineChoice;
use crate::exit_code::{Failure, Outcome};
use crate::plan::{Decision, Force, fingerprint};
use std::fmt::Write;

/// Prints what a build would do. The outcome is that of the accepted record: exit code 5 where it
/// is missing or stale.
pub fn status(
    project: &Project,
    names: &[String],
    profile: Option<&str>,
    engine: &EngineChoice,
    explain: Option<&str>,
) -> Result<Outcome, Failure> {
    let pins = project.pins()?;
    let articles = project.articles(names, &pins)?;
    if let Some(id) = explain {
        let articles: Vec<&Article> = articles.iter().collect();
        experiments_exist("--explain", &[id.to_owned()], &articles)?;
    }
    let (outcomes, all_done) = for_each(&articles, |article| {
        let context = Context::new(project, &pins, article, profile, engine)?;
        let stale = match &context.accepted {
            Some(record) => staleness(article, record)
                .into_iter()
                .map(|problem| problem.message)
                .collect(),
            None => vec![format!("there is no `{}`", record_path(article).display())],
        };
        print(&describe(article, &context, &stale))?;
        if let Some(id) = explain {
            print(&explained(&context, id))?;
        }
        Ok(if stale.is_empty() {
            Outcome::Holds
        } else {
            Outcome::RecordStale
        })
    });
    all_done?;
    Ok(worst(outcomes))
}

fn describe(article: &Article, context: &Context<'_>, stale: &[String]) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} · profile {} · Postgres {} · engine {}: {}",
        article.slug,
        context.resolved.profile,
        context.server.version,
        context.server.engine,
        context.engine_reason
    );
    for item in context.plan(&Force::Nothing) {
        let state = match &item.decision {
            Decision::Reuse(result) => format!("fresh, measured {}", result.measured_at),
            Decision::Run { reason, .. } => format!("would run: {reason}"),
        };
        let _ = writeln!(text, "  {}: {state}", item.experiment.id.value);
    }
    match (&context.accepted, stale) {
        (Some(record), []) => {
            let _ = writeln!(
                text,
                "  record: current, profile {}, {} claims, host {}",
                record.profile,
                record.claims.len(),
                if record.environment.host.sha256 == context.host.sha256 {
                    "this machine"
                } else {
                    "another machine"
                }
            );
        }
        (_, problems) => {
            for problem in problems {
                let _ = writeln!(text, "  record: {problem}");
            }
        }
    }
    text
}

/// Every input of one experiment, with the hash they come to.
fn explained(context: &Context<'_>, id: &str) -> String {
    let mut text = String::new();
    for item in context.plan(&Force::Nothing) {
        if item.experiment.id.value != id {
            continue;
        }
        let _ = writeln!(text, "\n  {id} {}", fingerprint::sha256(&item.fingerprint));
        for (name, value) in &item.fingerprint.fields {
            let value = value.trim_end().replace('\n', "\n      ");
            let _ = writeln!(text, "    {name}: {value}");
        }
    }
    text
}
