//! What `build` writes below `out/`: an article's files, and the index over all.

use super::interrupt;
use super::lock;
use super::options::BuildOptions;
use super::project::Project;
use super::record::Context;
use super::terminal::say;
use crate::exit_code::Failure;
use crate::record::lock::Lock;
use crate::record::sha256_of;
use crate::record::store::{Store, write_derived};
use crate::render::{self, IndexEntry, OutputFile};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where the store keeps which files were written.
const PAGE: &str = "page";
/// Below `out/`: each article's line of the index, which waits there for the next build of another
/// article, from whichever project.
const ENTRIES: &str = ".index";

/// Held while files below `out/` are written: pages of two builds, of two profiles perhaps, do not
/// mix.
async fn lock(project: &Project, options: &BuildOptions) -> Result<Lock, Failure> {
    let out = &project.out;
    fs::create_dir_all(out).map_err(|error| Failure::io("create", out, &error))?;
    tokio::select! {
        biased;
        // Nothing measured is lost: the next build writes the pages.
        () = interrupt::requested() => Err(Failure::Interrupted {
            hint: "what is measured is kept; the same command writes the pages".to_owned(),
        }),
        lock = lock::folder(out, |line| say(options, line)) => lock,
    }
}

/// Writes an article's files where they differ, and removes those that its last build wrote to
/// this folder and this one does not. What somebody else put there stays.
pub async fn write_article(
    context: &Context<'_>,
    project: &Project,
    folder: &Path,
    page: &Written,
    options: &BuildOptions,
) -> Result<(), Failure> {
    let _lock = lock(project, options).await?;
    write_files(folder, &page.files)?;
    remove_gone(&context.store, folder, &page.files)?;
    let entry = OutputFile {
        path: PathBuf::from(ENTRIES).join(format!("{}.json", page.entry.slug)),
        content: serde_json::to_vec(&page.entry).expect("an entry serialises"),
    };
    write_files(&project.out, &[entry])
}

/// What one shard measured: beside the pages, which stay as they are.
pub async fn write_part(
    project: &Project,
    slug: &str,
    name: &str,
    content: &str,
    options: &BuildOptions,
) -> Result<PathBuf, Failure> {
    let _lock = lock(project, options).await?;
    let folder = project.out.join(slug);
    let file = OutputFile {
        path: name.into(),
        content: content.as_bytes().to_vec(),
    };
    write_files(&folder, &[file])?;
    Ok(folder.join(name))
}

/// An article's files, and its line of the index.
pub struct Written {
    pub files: Vec<OutputFile>,
    pub entry: IndexEntry,
}

/// `out/index.html` over every article whose page is there.
pub async fn write_index(project: &Project, options: &BuildOptions) -> Result<(), Failure> {
    if !project.out.join(ENTRIES).is_dir() {
        return Ok(());
    }
    let _lock = lock(project, options).await?;
    let mut entries: Vec<IndexEntry> = fs::read_dir(project.out.join(ENTRIES))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            serde_json::from_slice::<IndexEntry>(&fs::read(entry.path()).ok()?).ok()
        })
        .filter(|entry| project.out.join(&entry.slug).join("index.html").is_file())
        .collect();
    if entries.is_empty() {
        return Ok(());
    }
    entries.sort_by(|a, b| a.slug.cmp(&b.slug));
    let file = render::index(&entries).map_err(Failure::Internal)?;
    write_files(&project.out, &[file])
}

fn write_files(folder: &Path, files: &[OutputFile]) -> Result<(), Failure> {
    for file in files {
        let path = folder.join(&file.path);
        if fs::read(&path).ok().as_deref() == Some(&file.content) {
            continue;
        }
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|error| Failure::io("create", parent, &error))?;
        write_derived(&path, &file.content).map_err(|error| Failure::io("write", &path, &error))?;
    }
    Ok(())
}

fn remove_gone(store: &Store, folder: &Path, files: &[OutputFile]) -> Result<(), Failure> {
    let path = fs::canonicalize(folder).map_err(|error| Failure::io("read", folder, &error))?;
    let list = format!(
        "files-{}",
        &sha256_of(path.as_os_str().as_encoded_bytes())[..16]
    );
    let before = store.cached(PAGE, &list).unwrap_or_default();
    let now: BTreeSet<String> = files
        .iter()
        .map(|file| file.path.to_string_lossy().into_owned())
        .collect();
    for gone in before.lines().filter(|path| !now.contains(*path)) {
        let path = folder.join(gone);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Failure::io("remove", &path, &error));
            }
            _ => {}
        }
    }
    let now: String = now.iter().map(|path| format!("{path}\n")).collect();
    if now == before {
        return Ok(());
    }
    store.cache(PAGE, &list, &now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_last_build_wrote_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(&folder.path().join("state"), "a");
        let out = folder.path().join("out");
        let write = |paths: &[&str]| {
            let files: Vec<OutputFile> = paths
                .iter()
                .map(|path| OutputFile {
                    path: path.into(),
                    content: path.as_bytes().to_vec(),
                })
                .collect();
            write_files(&out, &files).unwrap();
            remove_gone(&store, &out, &files).unwrap();
        };
        write(&["index.html", "data/old.csv", "charts/old.svg"]);
        fs::write(out.join("data/mine.csv"), "mine").unwrap();
        fs::create_dir(out.join("charts/mine")).unwrap();
        // Gone already: no error.
        fs::remove_file(out.join("charts/old.svg")).unwrap();
        write(&["index.html", "data/new.csv"]);
        let there = |path: &str| out.join(path).exists();
        assert!(there("index.html") && there("data/new.csv"));
        assert!(there("data/mine.csv") && there("charts/mine"));
        assert!(!there("data/old.csv"));
    }
}
