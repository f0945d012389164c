//! `new`: a first article that builds as it stands.

use super::project::Project;
use super::terminal::print;
use crate::diagnostic::Diagnostic;
use crate::exit_code::{Failure, Outcome};
use std::fs::{self, OpenOptions};
use std::io::Write;

const TEMPLATE: &str = include_str!("../../templates/new/article.md");

/// Writes `articles/<slug>/article.md`; never over one that is there.
pub fn new(project: &Project, slug: &str) -> Result<Outcome, Failure> {
    let well_formed = slug.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && slug
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !well_formed {
        return Err(Failure::article(
            Diagnostic::error(format!("`{slug}` is no slug"))
                .hint("a slug is of lower case letters, digits and hyphens: `index-cost`"),
        ));
    }
    let folder = project.articles_folder().join(slug);
    fs::create_dir_all(&folder).map_err(|error| Failure::io("create", &folder, &error))?;
    let path = folder.join("article.md");
    let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(Failure::article(
                Diagnostic::error(format!("`{}` is there already", path.display()))
                    .hint("take another slug, or build it: `remeasure build`"),
            ));
        }
        Err(error) => return Err(Failure::io("write", &path, &error)),
    };
    file.write_all(TEMPLATE.as_bytes())
        .map_err(|error| Failure::io("write", &path, &error))?;
    print(&format!(
        "{}\nbuild it: remeasure build {slug} --profile quick\n",
        path.display()
    ))?;
    Ok(Outcome::Holds)
}
