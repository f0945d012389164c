//! Where the server's programs come from: a folder named by `REMEASURE_POSTGRES`, the cache, or
//! else a download.

use super::user::User;
use super::{fetch, libraries, process};
use crate::diagnostic::Diagnostic;
use crate::engine::cache::Cache;
use crate::engine::pins::{self, Pin};
use crate::exit_code::Failure;
use std::io;
use std::path::{Path, PathBuf};

/// The variable that names a folder with `bin/postgres` in it.
pub const FOLDER_VARIABLE: &str = "REMEASURE_POSTGRES";

/// The programs of exactly the pinned version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    pub folder: PathBuf,
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The archive of this sha256.
    Pinned { sha256: String },
    /// A folder of the user's: the version is right, the content is not known.
    Folder,
}

/// The folder of an installation, also where its `bin` is named.
pub fn installation(folder: &Path) -> PathBuf {
    let named =
        folder.join("postgres").is_file() && folder.file_name().is_some_and(|it| it == "bin");
    match folder.parent() {
        Some(parent) if named => parent.to_owned(),
        _ => folder.to_owned(),
    }
}

impl Binaries {
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    /// What tells these binaries from others of the same version, in a folder's name.
    pub fn identity(&self) -> String {
        match &self.origin {
            Origin::Pinned { sha256 } => sha256[..16].to_owned(),
            Origin::Folder => {
                use std::hash::{DefaultHasher, Hash, Hasher};
                let mut hash = DefaultHasher::new();
                self.folder.hash(&mut hash);
                if let Ok(metadata) = std::fs::metadata(self.program("postgres")) {
                    metadata.len().hash(&mut hash);
                    metadata.modified().ok().hash(&mut hash);
                }
                format!("folder-{:016x}", hash.finish())
            }
        }
    }
}

/// What may be done to get the binaries.
pub struct Search<'a> {
    pub pin: &'a Pin,
    pub cache: &'a Cache,
    pub offline: bool,
    pub user: Option<&'a User>,
    pub folder: Option<PathBuf>,
    pub pips: &'a [fetch::Pip],
    pub progress: &'a dyn Fn(&str),
}

impl Search<'_> {
    pub fn run(&self) -> Result<Binaries, Failure> {
        match &self.folder {
            Some(folder) => self.in_folder(folder),
            None => self.pinned(),
        }
    }

    fn in_folder(&self, folder: &Path) -> Result<Binaries, Failure> {
        let wrong = |message: String| {
            Failure::Engine(Diagnostic::error(message).hint(format!(
                "{FOLDER_VARIABLE} names a folder with `bin/postgres` {} in it; unset it to have \
                 the pinned archive fetched",
                self.pin.version
            )))
        };
        let folder = std::fs::canonicalize(folder).map_err(|error| {
            wrong(format!(
                "{FOLDER_VARIABLE}: `{}`: {error}",
                folder.display()
            ))
        })?;
        let binaries = Binaries {
            folder: installation(&folder),
            origin: Origin::Folder,
        };
        self.check_entry(&binaries.folder)?;
        let version = self.version(&binaries)?;
        if version != self.pin.version {
            return Err(wrong(format!(
                "{FOLDER_VARIABLE}: `{}` holds Postgres {version}, not {}",
                binaries.folder.display(),
                self.pin.version
            )));
        }
        Ok(binaries)
    }

    fn pinned(&self) -> Result<Binaries, Failure> {
        let platform = pins::platform();
        let Some(archive) = self.pin.archives.get(&platform) else {
            let known: Vec<_> = self.pin.archives.keys().map(String::as_str).collect();
            return Err(Failure::Engine(
                Diagnostic::error(format!(
                    "no archive of Postgres {} for {platform} is pinned",
                    self.pin.version
                ))
                .note(format!("there is one for {}", known.join(", ")))
                .hint(format!(
                    "name a folder with Postgres of this version in {FOLDER_VARIABLE}"
                )),
            ));
        };
        let binaries = Binaries {
            folder: place(self.cache, self.pin, &archive.archive),
            origin: Origin::Pinned {
                sha256: archive.archive.clone(),
            },
        };
        self.check_entry(&self.cache.binaries())?;
        if binaries.folder.is_dir() {
            return Ok(binaries);
        }
        if self.offline {
            return Err(Failure::Engine(
                Diagnostic::error(format!(
                    "Postgres {} is not in the cache, and `--offline` forbids to fetch it",
                    self.pin.version
                ))
                .note(format!("looked for `{}`", binaries.folder.display()))
                .hint(format!(
                    "run once without `--offline`, or name a folder with Postgres of this version \
                     in {FOLDER_VARIABLE}"
                )),
            ));
        }
        (self.progress)(&format!(
            "fetching Postgres {} ({} {}, sha256 {}…)",
            self.pin.version,
            archive.package,
            archive.version,
            &archive.archive[..12]
        ));
        let broken = |error: io::Error| Failure::io("use the cache at", &binaries.folder, &error);
        let run = self.cache.run_directory().map_err(broken)?;
        let unpacked = fetch::fetch(self.pin, archive, run.path(), self.pips)?;
        let fetched = Binaries {
            folder: unpacked,
            origin: binaries.origin.clone(),
        };
        let version = self.version(&fetched)?;
        if version != self.pin.version {
            return Err(Failure::Engine(Diagnostic::error(format!(
                "pins.yaml says that `{}` is Postgres {}, but it is {version}",
                archive.file, self.pin.version
            ))));
        }
        self.cache
            .publish(&fetched.folder, &binaries.folder)
            .map_err(broken)?;
        Ok(binaries)
    }

    /// The user that the server runs as must get to it.
    fn check_entry(&self, folder: &Path) -> Result<(), Failure> {
        let Some(user) = self.user else {
            return Ok(());
        };
        match user.barred_from(folder) {
            None => Ok(()),
            Some(barrier) => Err(Failure::Engine(
                Diagnostic::error(format!(
                    "run as root, Postgres runs as the user `{}`, who may not enter `{}`",
                    user.name,
                    barrier.display()
                ))
                .hint("keep the cache in a folder that everyone may enter, or do not run as root"),
            )),
        }
    }

    /// Asks the server's program for its version, which also shows whether it runs at all.
    fn version(&self, binaries: &Binaries) -> Result<String, Failure> {
        let program = binaries.program("postgres");
        let mut command = process::command(&program, self.user);
        command.arg("--version");
        let finished = process::finish(&mut command).map_err(|error| {
            let diagnostic =
                Diagnostic::error(format!("cannot run `{}`: {error}", program.display()));
            // The file is there, and what it says it must be loaded with is not.
            if error.kind() == io::ErrorKind::NotFound && program.is_file() {
                Failure::Engine(diagnostic.hint(
                    "the pinned archives need glibc, which systems such as Alpine do not have; \
                     use another system, or REMEASURE_POSTGRES",
                ))
            } else {
                Failure::Engine(diagnostic)
            }
        })?;
        parse_version(&finished.output)
            .filter(|_| finished.success)
            .ok_or_else(|| self.cannot_run(binaries, &finished.output))
    }

    fn cannot_run(&self, binaries: &Binaries, output: &str) -> Failure {
        let bin = binaries.folder.join("bin");
        Failure::Engine(libraries::explain(&bin, output).unwrap_or_else(|| {
            Diagnostic::error(format!(
                "`{}` does not run",
                binaries.program("postgres").display()
            ))
            .note(output.trim())
        }))
    }
}

/// Where a pinned archive is unpacked to.
pub fn place(cache: &Cache, pin: &Pin, sha256: &str) -> PathBuf {
    cache
        .binaries()
        .join(format!("{}-{}", pin.version, &sha256[..16]))
}

/// `postgres (PostgreSQL) 16.15 (Debian 16.15-1)` is 16.15.
fn parse_version(output: &str) -> Option<String> {
    let (_, rest) = output.split_once("(PostgreSQL) ")?;
    rest.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn pin() -> Pin {
        Pin {
            version: "16.15".into(),
            image: None,
            archives: Default::default(),
        }
    }

    fn search(pin: &Pin, folder: Option<PathBuf>, offline: bool) -> Result<Binaries, Failure> {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::open(root.path()).unwrap();
        let search = Search {
            pin,
            cache: &cache,
            offline,
            user: None,
            folder,
            pips: &[],
            progress: &|_| {},
        };
        search.run()
    }

    #[test]
    fn the_folder_of_the_programs_stands_for_its_installation() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        assert_eq!(installation(&bin), bin);
        std::fs::write(bin.join("postgres"), "").unwrap();
        assert_eq!(installation(&bin), root.path());
        assert_eq!(installation(root.path()), root.path());
    }

    fn message(result: Result<Binaries, Failure>) -> String {
        match result {
            Err(Failure::Engine(diagnostic)) => diagnostic.render(false),
            other => panic!("{other:?}"),
        }
    }

    /// A folder whose `postgres` is a shell script.
    fn folder_with(script: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("bin/postgres");
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    #[test]
    fn a_named_folder_is_taken_when_its_version_is_the_pinned_one() {
        let right = folder_with("echo 'postgres (PostgreSQL) 16.15 (Debian 16.15-1)'");
        let binaries = search(&pin(), Some(right.path().into()), true).unwrap();
        assert_eq!(binaries.origin, Origin::Folder);
        assert!(binaries.identity().starts_with("folder-"));

        let wrong = folder_with("echo 'postgres (PostgreSQL) 16.2'");
        let text = message(search(&pin(), Some(wrong.path().into()), true));
        assert!(text.contains("holds Postgres 16.2, not 16.15"), "{text}");

        let text = message(search(&pin(), Some("/no/such/folder".into()), true));
        assert!(text.contains("/no/such/folder"), "{text}");
    }

    #[test]
    fn binaries_that_lack_a_library_are_explained() {
        let folder = folder_with(
            "echo 'postgres: error while loading shared libraries: libxml2.so.2: cannot open' >&2; exit 127",
        );
        let text = message(search(&pin(), Some(folder.path().into()), true));
        assert!(text.contains("`libxml2.so.2`"), "{text}");
        assert!(text.contains("apt-get install libxml2"), "{text}");
    }

    #[test]
    fn offline_and_unpinned_platforms_are_said() {
        let text = message(search(&pin(), None, true));
        assert!(text.contains(&pins::platform()), "{text}");

        let mut pin = pin();
        let archive = crate::engine::pins::Archive {
            package: "p".into(),
            version: "1".into(),
            platform: "any".into(),
            file: "p.whl".into(),
            wheel: "0".repeat(64),
            archive: "0".repeat(64),
        };
        pin.archives.insert(pins::platform(), archive);
        let text = message(search(&pin, None, true));
        assert!(text.contains("`--offline` forbids"), "{text}");
        let text = message(search(&pin, None, false));
        assert!(text.contains("cannot fetch Postgres 16.15"), "{text}");
    }
}
