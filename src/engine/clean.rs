//! What runs that were killed have left, and what is kept to start quickly: found, and removed.
//!
//! [`clean`]: containers and volumes on the daemon that answers → run folders in the cache → with
//! [`Request::cache`] the cache itself. What belongs to a living run, or to a run on another machine, is
//! left alone.

use super::cache::{self, Cache};
use super::docker::{endpoint, strays};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What is to be cleaned.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// See [`super::default_cache`].
    pub cache: &'a Path,
    /// The programs and data directories in it too.
    pub all_of_it: bool,
    /// Only look.
    pub dry_run: bool,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Such as `container` or `data directory`.
    pub kind: &'static str,
    /// Its name, or its path.
    pub name: String,
    /// On the disk; None: only the daemon knows.
    pub bytes: Option<u64>,
    /// Why it is still there, where it should not be.
    pub kept: Option<String>,
}

impl Found {
    /// One that was dropped on an existing server, which has its bytes.
    pub fn database(name: String) -> Self {
        Self {
            kind: "database",
            name,
            bytes: None,
            kept: None,
        }
    }
}

/// What was found and done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    pub found: Vec<Found>,
    /// Why no daemon was asked.
    pub no_daemon: Option<String>,
    /// Runs that use the cache now.
    pub living: usize,
}

const USED: &str = "a run uses it now";

pub async fn clean(request: Request<'_>) -> Result<Cleaned, io::Error> {
    let mut cleaned = Cleaned::default();
    // First the containers: some write to the folders of their runs.
    match endpoint::connect().await {
        Ok((daemon, _)) => match containers(&daemon, request.dry_run).await {
            Ok(mut found) => cleaned.found.append(&mut found),
            Err(error) => cleaned.no_daemon = Some(error.to_string()),
        },
        Err(diagnostic) => cleaned.no_daemon = Some(diagnostic.message),
    }
    let cache = Cache::at(request.cache);
    if cache.exists() {
        cleaned.living = cache.with_runs(|runs| {
            folders(&cache, &runs, request, &mut cleaned.found);
            runs.living
        })?;
    }
    Ok(cleaned)
}

async fn containers(
    daemon: &endpoint::Daemon,
    dry_run: bool,
) -> Result<Vec<Found>, bollard::errors::Error> {
    let strays = strays::find(daemon).await?;
    let removed = match dry_run {
        true => strays.clone(),
        false => strays::remove(daemon, &strays).await,
    };
    let of = |kind, all: Vec<String>, gone: Vec<String>| {
        all.into_iter().map(move |name| Found {
            kind,
            bytes: None,
            kept: (!gone.contains(&name)).then(|| "the daemon does not remove it".to_owned()),
            name,
        })
    };
    Ok(of("container", strays.containers, removed.containers)
        .chain(of("volume", strays.volumes, removed.volumes))
        .collect())
}

fn folders(cache: &Cache, runs: &cache::Runs, request: Request<'_>, found: &mut Vec<Found>) {
    for path in &runs.dead {
        let bytes = size(path);
        if !request.dry_run {
            cache::remove_run(path);
        }
        let kept = !request.dry_run && path.exists();
        found.push(Found {
            kind: "folder of a dead run",
            name: path.display().to_string(),
            bytes: Some(bytes),
            kept: kept.then(|| "it cannot be removed".to_owned()),
        });
    }
    if !request.all_of_it {
        return;
    }
    for (kind, room) in [
        ("programs of Postgres", cache.binaries()),
        ("data directory", cache.templates()),
        ("packed data directory", cache.images()),
    ] {
        for path in entries(&room) {
            let bytes = size(&path);
            let kept = match (request.dry_run, runs.living) {
                (true, 0) => None,
                (false, 0) => remove(&path).err().map(|error| error.to_string()),
                _ => Some(USED.to_owned()),
            };
            found.push(Found {
                kind,
                name: path.display().to_string(),
                bytes: Some(bytes),
                kept,
            });
        }
    }
}

/// In order of their names; none where there is no such folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = read.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn remove(path: &Path) -> io::Result<()> {
    match path.symlink_metadata()?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

/// What a folder takes on the disk, links not followed.
fn size(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(about) = path.symlink_metadata() else {
        return 0;
    };
    let own = about.blocks() * 512;
    match about.is_dir() {
        true => own + entries(path).iter().map(|path| size(path)).sum::<u64>(),
        false => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache with programs, a data directory and the folder of a dead run.
    fn cache() -> (tempfile::TempDir, Cache) {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::open(root.path()).unwrap();
        for folder in [
            cache.binaries().join("16.15-a"),
            cache.templates().join("16.15-a-1"),
            root.path().join("runs/run-dead"),
        ] {
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("file"), [7; 10_000]).unwrap();
        }
        fs::create_dir(cache.images()).unwrap();
        fs::write(cache.images().join("16.15-b.tar.gz"), "x").unwrap();
        (root, cache)
    }

    fn cleaned(cache: &Cache, root: &Path, all_of_it: bool, dry_run: bool) -> Vec<Found> {
        let request = Request {
            cache: root,
            all_of_it,
            dry_run,
        };
        let mut found = Vec::new();
        cache
            .with_runs(|runs| folders(cache, &runs, request, &mut found))
            .unwrap();
        found
    }

    fn kinds(found: &[Found]) -> Vec<&str> {
        found.iter().map(|found| found.kind).collect()
    }

    #[test]
    fn only_what_dead_runs_left_goes_unless_the_cache_is_asked_for() {
        let (root, cache) = cache();
        let dead = root.path().join("runs/run-dead");
        let looked = cleaned(&cache, root.path(), false, true);
        assert_eq!(kinds(&looked), ["folder of a dead run"]);
        assert!(looked[0].bytes.unwrap() >= 10_000);
        assert!(dead.exists());

        assert_eq!(cleaned(&cache, root.path(), false, false), looked);
        assert!(!dead.exists());
        assert!(cache.binaries().join("16.15-a/file").exists());
        assert_eq!(cleaned(&cache, root.path(), false, false), []);

        let all = cleaned(&cache, root.path(), true, false);
        let expected = [
            "programs of Postgres",
            "data directory",
            "packed data directory",
        ];
        assert_eq!(kinds(&all), expected);
        assert!(all.iter().all(|found| found.kept.is_none()));
        assert_eq!(cleaned(&cache, root.path(), true, false), []);
        // It can be used again as it is.
        Cache::open(root.path()).unwrap();
    }

    #[test]
    fn what_a_living_run_uses_stays() {
        let (root, cache) = cache();
        let living = cache.run_directory().unwrap();
        for dry_run in [true, false] {
            let all = cleaned(&cache, root.path(), true, dry_run);
            assert_eq!(kinds(&all)[0], "folder of a dead run");
            assert_eq!(all[0].kept, None);
            assert!(
                all[1..]
                    .iter()
                    .all(|found| found.kept.as_deref() == Some(USED))
            );
        }
        assert!(living.path().exists());
        assert!(cache.binaries().join("16.15-a/file").exists());
    }
}
