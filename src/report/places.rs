//! Where a problem is, as programs want to know it: files named from a folder that they know too,
//! lines and columns from 1.

use crate::diagnostic::Diagnostic;
use crate::source::{Source, Span};
use std::path::{Component, Path, PathBuf};

/// The folders that files are named from; all absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The working directory: paths of sources count from it.
    pub here: PathBuf,
    /// The folder that holds `articles/`.
    pub root: PathBuf,
    /// The checkout that the root is in, or else the root itself.
    pub repository: PathBuf,
}

/// From the first character to the one behind the last; columns count code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub line: usize,
    pub column: usize,
    pub end_line: usize,
    pub end_column: usize,
}

impl Region {
    pub fn of(source: &Source, span: Span) -> Self {
        let (line, column) = source.line_column(span.start);
        let (end_line, end_column) = source.line_column(span.end);
        Self {
            line,
            column,
            end_line,
            end_column,
        }
    }
}

impl Places {
    /// The path from the project's folder, or else the whole path.
    pub fn in_project(&self, file: &Path) -> String {
        self.below(&self.root, file)
    }

    /// The path from the checkout's folder, or else the whole path.
    pub fn in_repository(&self, file: &Path) -> String {
        self.below(&self.repository, file)
    }

    fn below(&self, folder: &Path, file: &Path) -> String {
        let file = without_dots(&self.here.join(file));
        let below = file.strip_prefix(without_dots(folder)).unwrap_or(&file);
        below.to_string_lossy().into_owned()
    }
}

/// The file and region that a problem is at, where it has a place.
pub(super) fn place_of(diagnostic: &Diagnostic) -> Option<(&Path, Region)> {
    let place = diagnostic.place.as_ref()?;
    Some((&place.source.path, Region::of(&place.source, place.span)))
}

/// Without `.` and `..`, by the letters alone.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_from_the_folder_asked_for_where_they_are_below_it() {
        let places = Places {
            here: "/home/a/docs/posts/articles".into(),
            root: "/home/a/docs/posts/articles/..".into(),
            repository: "/home/a".into(),
        };
        for (file, project, repository) in [
            (
                "a/article.md",
                "articles/a/article.md",
                "docs/posts/articles/a/article.md",
            ),
            (
                "./../articles/a/article.md",
                "articles/a/article.md",
                "docs/posts/articles/a/article.md",
            ),
            ("../../x.md", "/home/a/docs/x.md", "docs/x.md"),
            (
                "/elsewhere/a/article.md",
                "/elsewhere/a/article.md",
                "/elsewhere/a/article.md",
            ),
        ] {
            assert_eq!(places.in_project(Path::new(file)), project);
            assert_eq!(places.in_repository(Path::new(file)), repository);
        }
    }
}
