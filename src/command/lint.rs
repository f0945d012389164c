//! `lint`: everything about an article that needs no measuring.

use super::project::Project;
use super::terminal::{print, tell_diagnostics};
use crate::article::Article;
use crate::diagnostic::Severity;
use crate::exit_code::{Failure, Outcome};
use crate::lint;
use crate::render;

/// Prints every finding; those of severity error make the article wrong (exit code 2).
pub fn lint(project: &Project, names: &[String]) -> Result<Outcome, Failure> {
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
                tell_diagnostics([&finding]);
            }
        }
    }
    if errors.is_empty() {
        let of = articles.len();
        print(&format!("{of} article(s), {warnings} warning(s)\n"))?;
        Ok(Outcome::Holds)
    } else {
        Err(Failure::Article(errors))
    }
}

/// Refuses an article with findings that its front matter makes errors. `build` and `check` ask this
/// before anything is measured.
pub fn refuse(article: &Article) -> Result<(), Failure> {
    let errors = lint::errors(article);
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Failure::Article(errors))
    }
}
