//! Where things are: the project's folders, and the articles a command was asked for.

use crate::article::Article;
use crate::chart::CHARTS;
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::engine::pins::Pins;
use crate::exit_code::Failure;
use crate::lint::RULES;
use crate::measure::instrument::{INSTRUMENTS, Instrument};
use crate::parse::{self, Known, KnownInstrument};
use crate::record::store::Store;
use crate::source::Source;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The pins this build came with, for articles outside any project.
const OWN_PINS: &str = include_str!("../../articles/pins.yaml");

/// An article's text may not be larger than this.
const ARTICLE_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct Project {
    pub root: PathBuf,
    pub out: PathBuf,
}

impl Project {
    /// `root`: the folder that holds `articles/`; the nearest one upwards unless given.
    pub fn new(root: Option<&Path>, out: Option<&Path>) -> Result<Self, Failure> {
        let root = match root {
            Some(root) if root.is_dir() => root.to_owned(),
            Some(root) => {
                return Err(Failure::article(
                    Diagnostic::error(format!("there is no folder `{}`", root.display()))
                        .hint("`--root` is the folder that holds `articles/`"),
                ));
            }
            None => nearest_root()?,
        };
        let out = out.map_or_else(|| root.join("out"), Path::to_owned);
        Ok(Self { root, out })
    }

    pub fn articles_folder(&self) -> PathBuf {
        self.root.join("articles")
    }

    /// The project's pins, or those of this build where it has none.
    pub fn pins(&self) -> Result<Pins, Failure> {
        let path = self.articles_folder().join("pins.yaml");
        if path.exists() {
            Pins::read(&path).map_err(Failure::Article)
        } else {
            Pins::parse(&Source::new("pins.yaml", "pins.yaml", OWN_PINS.to_owned()))
                .map_err(Failure::Article)
        }
    }

    /// The files of the articles named (slugs, folders or files), or of all the project's.
    pub fn paths(&self, names: &[String]) -> Result<Vec<PathBuf>, Failure> {
        if names.is_empty() {
            return distinct(self.all_articles()?);
        }
        let mut paths = Vec::new();
        let mut problems = Vec::new();
        for name in names {
            match self.find(name) {
                Ok(path) => paths.push(path),
                Err(Failure::Article(mut found)) => problems.append(&mut found),
                Err(failure) => return Err(failure),
            }
        }
        if problems.is_empty() {
            distinct(paths)
        } else {
            Err(Failure::Article(problems))
        }
    }

    /// The articles named, or all of the project's, that can be read; then what is wrong with the
    /// others, all of it together, which keeps none of these from being done.
    pub fn articles(
        &self,
        names: &[String],
        pins: &Pins,
    ) -> Result<(Vec<Article>, Result<(), Failure>), Failure> {
        let mut articles = Vec::new();
        let mut problems = Vec::new();
        for path in self.paths(names)? {
            match read(&path, pins) {
                Ok(article) => articles.push(article),
                Err(Failure::Article(mut found)) => problems.append(&mut found),
                Err(failure) => return Err(failure),
            }
        }
        let all_read = match problems.as_slice() {
            [] => Ok(()),
            _ => Err(Failure::Article(problems)),
        };
        Ok((articles, all_read))
    }

    /// What is measured of an article and not accepted yet, and drawn charts: in `.remeasure`
    /// beside the `articles` folder that the article lies in, whichever project and folder a
    /// command is given in; else beside the article. Deleting it loses nothing accepted.
    pub fn store(&self, article: &Article) -> Store {
        const STATE: &str = ".remeasure";
        let slug = &article.slug;
        let canonical = |path: &Path| fs::canonicalize(path).ok();
        let folder = canonical(&article.directory);
        // A link to a folder elsewhere is the project's, too.
        if folder.is_some() && canonical(&self.articles_folder().join(slug)) == folder {
            return Store::new(&self.root.join(STATE), slug);
        }
        let of_its_project = |folder: &Path| {
            let articles = folder.parent()?;
            let is_its = articles.file_name()? == "articles";
            is_its.then(|| articles.with_file_name(STATE))
        };
        let state = folder.as_deref().and_then(of_its_project);
        Store::new(
            &state.unwrap_or_else(|| article.directory.join(STATE)),
            slug,
        )
    }

    fn all_articles(&self) -> Result<Vec<PathBuf>, Failure> {
        let folder = self.articles_folder();
        let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().join("article.md"))
            .filter(|path| path.is_file())
            .collect();
        paths.sort();
        if paths.is_empty() {
            return Err(Failure::article(
                Diagnostic::error(format!("there is no article in `{}`", folder.display()))
                    .hint("`remeasure new <slug>` begins one; `--root` names another project"),
            ));
        }
        Ok(paths)
    }

    /// A folder with an `article.md`, a slug, or a file: a file that is called as an article is, in
    /// the folder where the command is given, is mostly something else.
    fn find(&self, name: &str) -> Result<PathBuf, Failure> {
        let given = Path::new(name);
        let candidates = [
            given.join("article.md"),
            self.articles_folder().join(name).join("article.md"),
            given.to_owned(),
        ];
        if let Some(found) = candidates.into_iter().find(|path| path.is_file()) {
            return Ok(found);
        }
        let slugs: Vec<String> = self
            .all_articles()
            .unwrap_or_default()
            .iter()
            .filter_map(|path| Some(path.parent()?.file_name()?.to_string_lossy().into_owned()))
            .collect();
        let hint = did_you_mean(name, slugs.iter().map(String::as_str)).unwrap_or_else(|| {
            format!(
                "an article is a slug, a folder with an `article.md`, or a file; the project has: {}",
                slugs.join(", ")
            )
        });
        Err(Failure::article(
            Diagnostic::error(format!("there is no article `{name}`")).hint(hint),
        ))
    }
}

/// Each article once, however often it is named. Two with the same slug would write to the same
/// folder below `out/`.
fn distinct(paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, Failure> {
    let mut known: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut distinct = Vec::new();
    for path in paths {
        let canonical = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let slug = slug(folder_of(&path));
        match known.get(&slug) {
            Some(earlier) if *earlier == canonical => continue,
            Some(earlier) => {
                let (one, two) = (earlier.display(), canonical.display());
                return Err(Failure::article(
                    Diagnostic::error(format!("two articles are called `{slug}`"))
                        .note(format!("`{one}` and `{two}`"))
                        .hint("build them one by one, each with an `--out` of its own"),
                ));
            }
            None => known.insert(slug, canonical),
        };
        distinct.push(path);
    }
    Ok(distinct)
}

fn nearest_root() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().map_err(|error| {
        Failure::internal(format!("cannot tell the working directory: {error}"))
    })?;
    let root = here
        .ancestors()
        .find(|folder| folder.join("articles").is_dir())
        .unwrap_or(&here);
    // As short as possible, for messages.
    Ok(if root == here {
        PathBuf::from(".")
    } else {
        root.to_owned()
    })
}

/// The article in that file, or everything that is wrong with it.
pub fn read(path: &Path, pins: &Pins) -> Result<Article, Failure> {
    let name = path
        .strip_prefix(".")
        .unwrap_or(path)
        .to_string_lossy()
        .into_owned();
    let failed = |error: &std::io::Error| {
        Failure::article(Diagnostic::error(format!("cannot read `{name}`: {error}")))
    };
    let size = fs::metadata(path).map_err(|error| failed(&error))?.len();
    if size > ARTICLE_BYTES {
        return Err(Failure::article(Diagnostic::error(format!(
            "`{name}` has {size} bytes; an article may have {ARTICLE_BYTES}"
        ))));
    }
    let bytes = fs::read(path).map_err(|error| failed(&error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        Failure::article(
            Diagnostic::error(format!("`{name}` is not UTF-8: see line {line}"))
                .hint("save the article as UTF-8"),
        )
    })?;
    parsed(Source::new(name, path, text), pins)
}

/// The article of a text that may not be in its file yet.
pub fn parsed(source: Arc<Source>, pins: &Pins) -> Result<Article, Failure> {
    let directory = folder_of(&source.path).to_owned();
    let slug = slug(&directory);
    let instruments: Vec<KnownInstrument> = INSTRUMENTS.iter().map(Instrument::known).collect();
    let charts: Vec<&str> = CHARTS.iter().map(|entry| entry.name).collect();
    let rules: Vec<&str> = RULES.iter().map(|entry| entry.name).collect();
    let known = Known {
        versions: &pins.versions(),
        instruments: &instruments,
        charts: &charts,
        lint_rules: &rules,
    };
    parse::parse(&source, &slug, &directory, &known).map_err(Failure::Article)
}

/// What an article in that file is called.
pub fn slug_of(file: &Path) -> String {
    slug(folder_of(file))
}

/// `.` for a file that is named without a folder.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// The folder's name, made fit for a path below `out/`.
fn slug(directory: &Path) -> String {
    let canonical = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    let name = canonical
        .file_name()
        .map_or_else(|| "article".into(), |name| name.to_string_lossy());
    name.chars()
        .map(|c| if c.is_control() { '-' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_named_without_a_folder_is_in_this_one() {
        assert_eq!(folder_of(Path::new("article.md")), Path::new("."));
        assert_eq!(folder_of(Path::new("a/article.md")), Path::new("a"));
        let here = std::env::current_dir().unwrap();
        assert_eq!(slug(Path::new(".")), slug(&here));
    }

    #[test]
    fn an_article_named_twice_is_one_and_two_of_one_name_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let article = |path: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            path
        };
        let (a, b) = (article("x/a/article.md"), article("x/b/article.md"));
        let again = folder.path().join("x/b/../a/article.md");
        let found = distinct(vec![a.clone(), b.clone(), again]).unwrap();
        assert_eq!(found, [a.clone(), b]);
        let twin = article("y/a/article.md");
        let Err(Failure::Article(problems)) = distinct(vec![a, twin]) else {
            panic!("both are taken")
        };
        assert_eq!(problems[0].message, "two articles are called `a`");
    }
}
