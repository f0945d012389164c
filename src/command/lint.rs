//! `lint`: everything about an article that needs no measuring.

use super::project::Project;
use crate::diagnostic::Severity;
use crate::exit_code::{Failure, Outcome};
use crate::lint;
use crate::render;

/// Prints every finding; those of severity error make the article wrong (exit code 2).
pub fn lint(project: &Project, names: &[String], color: bool) -> Result<Outcome, Failure> {
    let pins = project.pins()?;
    let mut errors = Vec::new();
    let mut warnings = 0;
    let articles = project.articles(names, &pins)?;
    for article in &articles {
        for finding in render::check(article)
            .into_iter()
            .chain(lint::lint(article))
        {
            if finding.severity == Severity::Error {
                errors.push(finding);
            } else {
                warnings += 1;
                eprintln!("{}\n", finding.render(color));
            }
        }
    }
    if errors.is_empty() {
        let of = articles.len();
        println!("{of} article(s), {warnings} warning(s)");
        Ok(Outcome::Holds)
    } else {
        Err(Failure::Article(errors))
    }
}
