//! Where reports go must be fit for one before anything is measured for it.

use super::options::BuildOptions;
use super::terminal::is_output;
use crate::diagnostic::Diagnostic;
use crate::exit_code::Failure;
use std::fs;
use std::path::{Path, PathBuf};

/// A file given twice or in no folder is a slip of the pen.
pub fn check(options: &BuildOptions) -> Result<(), Failure> {
    let mut problems = Vec::new();
    let mut seen: Vec<(String, PathBuf)> = Vec::new();
    for (report, path) in &options.reports {
        let argument = format!("{}={}", report.name, path.display());
        let whole = match whole_path(path) {
            Ok(whole) => whole,
            Err(problem) => {
                let message = format!("`--report {argument}`: {problem}");
                problems
                    .push(Diagnostic::error(message).hint("name a file in a folder that is there"));
                continue;
            }
        };
        match seen.iter().find(|(_, other)| *other == whole) {
            Some((other, _)) => problems.push(
                Diagnostic::error(format!(
                    "`--report {argument}` and `--report {other}` go to one place"
                ))
                .hint("give each report a file of its own"),
            ),
            None => seen.push((argument, whole)),
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Failure::Article(problems))
    }
}

/// A report must not take the place of what it is about.
pub fn are_no_articles(options: &BuildOptions, articles: &[PathBuf]) -> Result<(), Failure> {
    let sources = articles.iter().flat_map(|article| {
        let record = article.with_file_name("record.json");
        [article.clone(), record]
    });
    let sources: Vec<PathBuf> = sources
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    for (report, path) in &options.reports {
        if fs::canonicalize(path).is_ok_and(|path| sources.contains(&path)) {
            let (name, path) = (report.name, path.display());
            return Err(Failure::article(
                Diagnostic::error(format!(
                    "`--report {name}={path}` would overwrite the article"
                ))
                .hint("give the report a file of its own"),
            ));
        }
    }
    Ok(())
}

/// The one path that all ways to write it lead to, if a file can be written there.
fn whole_path(path: &Path) -> Result<PathBuf, String> {
    if is_output(path) {
        return Ok(path.to_owned());
    }
    if let Ok(whole) = fs::canonicalize(path) {
        if whole.is_dir() {
            return Err("this is a folder".to_owned());
        }
        if !whole.is_file() {
            // A device or a pipe is written to as it is.
            return Ok(whole);
        }
        return writable(whole);
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let Ok(whole) = fs::canonicalize(folder) else {
        return Err(format!("there is no folder `{}`", folder.display()));
    };
    match path.file_name() {
        Some(name) => writable(whole.join(name)),
        None => Err("this names no file".to_owned()),
    }
}

/// Tries what writing it will do.
fn writable(whole: PathBuf) -> Result<PathBuf, String> {
    let folder = whole.parent().unwrap_or(Path::new("/"));
    match tempfile::Builder::new()
        .prefix(".writing-")
        .tempfile_in(folder)
    {
        Ok(_) => Ok(whole),
        Err(error) => Err(format!(
            "nothing can be written in `{}`: {}",
            folder.display(),
            io_words(&error)
        )),
    }
}

/// Without the temporary file's name, which is nobody's.
fn io_words(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => std::io::Error::from_raw_os_error(code).to_string(),
        None => error.kind().to_string(),
    }
}
