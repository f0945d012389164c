//! `accept`: promotes what is measured to the article's `record.json`, the figures that its prose
//! is checked against from then on.

use super::project::Project;
use super::record::{Context, record_path};
use crate::diagnostic::Diagnostic;
use crate::engine::EngineChoice;
use crate::exit_code::{Failure, Outcome};
use crate::plan::Force;
use crate::record::store::write_atomically;
use crate::record::to_json;

pub fn accept(
    project: &Project,
    names: &[String],
    profile: Option<&str>,
    engine: &EngineChoice,
    continuous_integration: bool,
) -> Result<Outcome, Failure> {
    if continuous_integration {
        return Err(Failure::article(
            Diagnostic::error("nothing is accepted under CI")
                .note("the environment has CI=true")
                .hint("accept on the machine you measured on, and commit `record.json`"),
        ));
    }
    let pins = project.pins()?;
    for article in &project.articles(names, &pins)? {
        let context = Context::new(project, &pins, article, profile, engine)?;
        let planned = context.plan(&Force::Nothing);
        let Some(record) = context.stored_record(&planned) else {
            return Err(Failure::article(
                Diagnostic::error(format!(
                    "`{}` has no complete measurement in profile {} to accept",
                    article.slug, context.resolved.profile
                ))
                .hint(format!(
                    "measure it first: remeasure build {} --profile {}",
                    article.slug, context.resolved.profile
                )),
            ));
        };
        let path = record_path(article);
        let json = to_json(&record);
        let unchanged = std::fs::read_to_string(&path).is_ok_and(|old| old == json);
        if !unchanged {
            write_atomically(&path, json.as_bytes())
                .map_err(|error| Failure::io("write", &path, &error))?;
        }
        println!(
            "{}: {} ({} experiments, {} claims, profile {})",
            path.display(),
            if unchanged { "unchanged" } else { "accepted" },
            record.experiments.len(),
            record.claims.len(),
            record.profile
        );
    }
    Ok(Outcome::Holds)
}
