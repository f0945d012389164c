//! Fetches a pinned archive with pip, checks it against its pin, and unpacks it.
//!
//! pip checks the wheel's hash itself; what counts is our own check, of the wheel and of the
//! archive inside it, before anything is unpacked.

use super::process::{self, Finished};
use crate::diagnostic::Diagnostic;
use crate::engine::pins::{Archive, Pin};
use crate::exit_code::Failure;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One way to call pip.
#[derive(Clone, Copy, Debug)]
pub struct Pip {
    pub program: &'static str,
    pub arguments: &'static [&'static str],
}

/// In the order they are tried.
pub const PIPS: [Pip; 3] = [
    Pip {
        program: "python3",
        arguments: &["-m", "pip"],
    },
    Pip {
        program: "pip3",
        arguments: &[],
    },
    Pip {
        program: "pip",
        arguments: &[],
    },
];

impl Pip {
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.args(self.arguments);
        // Nothing is installed, so the user's wish to install into environments only is kept.
        command.env("PIP_REQUIRE_VIRTUALENV", "0");
        command
    }

    pub fn name(&self) -> String {
        let mut words = vec![self.program];
        words.extend(self.arguments);
        words.join(" ")
    }
}

/// Fetches and unpacks into `folder`, which is empty and will be thrown away; returns the folder
/// in it that holds `bin`, `lib` and `share`.
pub fn fetch(
    pin: &Pin,
    archive: &Archive,
    folder: &Path,
    pips: &[Pip],
) -> Result<PathBuf, Failure> {
    let wheel = download(pin, archive, folder, pips)?;
    let unpacked = folder.join("unpacked");
    unpack(&wheel, archive, &unpacked)?;
    let _ = fs::remove_file(&wheel);
    only_folder(&unpacked).map_err(|error| Failure::io("read", &unpacked, &error))
}

fn download(pin: &Pin, archive: &Archive, folder: &Path, pips: &[Pip]) -> Result<PathBuf, Failure> {
    let requirements = folder.join("requirements.txt");
    let line = format!(
        "{}=={} --hash=sha256:{}\n",
        archive.package, archive.version, archive.wheel
    );
    fs::write(&requirements, line).map_err(|error| Failure::io("write", &requirements, &error))?;
    let mut tried = Vec::new();
    for pip in pips {
        let mut command = pip.command();
        command
            .args(["--disable-pip-version-check", "--no-input", "download"])
            .args(["--quiet", "--progress-bar", "off", "--retries", "2"])
            // The wheel is for any Python; its own declaration asks for one that need not be here.
            .args([
                "--no-deps",
                "--only-binary=:all:",
                "--python-version",
                "3.12",
            ])
            .args([
                "--platform",
                &archive.platform,
                "--require-hashes",
                "--requirement",
            ])
            .arg(&requirements)
            .arg("--dest")
            .arg(folder);
        match process::finish(&mut command) {
            Ok(finished) if finished.success => {
                let wheel = folder.join(&archive.file);
                if wheel.is_file() {
                    return Ok(wheel);
                }
                tried.push(format!("`{}` did not leave `{}`", pip.name(), archive.file));
            }
            Ok(finished) => tried.push(failed_pip(pip, &finished, archive)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tried.push(format!("`{}` is not installed", pip.program));
            }
            Err(error) => tried.push(format!("`{}` cannot be run: {error}", pip.program)),
        }
    }
    Err(no_client(pin, archive, tried))
}

/// What to note about a pip that failed, unless that settles the matter.
fn failed_pip(pip: &Pip, finished: &Finished, archive: &Archive) -> Result<String, Failure> {
    if finished.interrupted || finished.output.contains("Operation cancelled by user") {
        return Err(Failure::Interrupted {
            hint: "the download starts anew the next time".into(),
        });
    }
    if finished.output.contains("DO NOT MATCH THE HASHES") {
        let got = finished
            .output
            .lines()
            .find_map(|line| line.trim().strip_prefix("Got"));
        let got = got.map_or("another", str::trim);
        return Err(mismatch(&archive.file, &archive.wheel, got));
    }
    let lines: Vec<_> = finished
        .output
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("WARNING: Running pip as"))
        .collect();
    let end = lines[lines.len().saturating_sub(3)..].join("\n  ");
    Ok(format!("`{}` failed:\n  {end}", pip.name()))
}

fn no_client(pin: &Pin, archive: &Archive, tried: Vec<String>) -> Failure {
    let mut diagnostic = Diagnostic::error(format!(
        "cannot fetch Postgres {} (`{}` {})",
        pin.version, archive.package, archive.version
    ));
    for attempt in tried {
        diagnostic = diagnostic.note(attempt);
    }
    Failure::Engine(diagnostic.hint(
        "install python3 with pip (Debian, Ubuntu: `apt-get install python3-pip`; Fedora: `dnf \
         install python3-pip`), or name a folder with Postgres of this version in \
         REMEASURE_POSTGRES",
    ))
}

fn mismatch(what: &str, expected: &str, got: &str) -> Failure {
    Failure::Engine(
        Diagnostic::error(format!(
            "`{what}` is not what pins.yaml names; it was thrown away"
        ))
        .note(format!("expected sha256 {expected}"))
        .note(format!("     got sha256 {got}"))
        .hint("fetch it again; if it is still another file, do not trust it"),
    )
}

/// Checks the wheel and the archive in it, then unpacks the archive below `into`.
fn unpack(wheel: &Path, archive: &Archive, into: &Path) -> Result<(), Failure> {
    let broken = |error: io::Error| Failure::io("unpack", wheel, &error);
    let got = sha256(&mut File::open(wheel).map_err(broken)?).map_err(broken)?;
    if got != archive.wheel {
        let _ = fs::remove_file(wheel);
        return Err(mismatch(&archive.file, &archive.wheel, &got));
    }
    let mut tar_gz = inner_archive(wheel).map_err(broken)?;
    let got = sha256(&mut tar_gz).map_err(broken)?;
    if got != archive.archive {
        let _ = fs::remove_file(wheel);
        let what = format!("the archive in {}", archive.file);
        return Err(mismatch(&what, &archive.archive, &got));
    }
    tar_gz.rewind().map_err(broken)?;
    unpack_tar(tar_gz, into).map_err(broken)
}

/// The one tar.gz in a wheel, in memory (11 MB).
fn inner_archive(wheel: &Path) -> io::Result<io::Cursor<Vec<u8>>> {
    let mut zip = zip::ZipArchive::new(File::open(wheel)?).map_err(io::Error::other)?;
    for index in 0..zip.len() {
        let mut file = zip.by_index(index).map_err(io::Error::other)?;
        let is_archive = file.name().map_err(io::Error::other)?.ends_with(".tar.gz");
        if is_archive {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            return Ok(io::Cursor::new(bytes));
        }
    }
    Err(io::Error::other("there is no tar.gz in it"))
}

fn unpack_tar(tar_gz: impl Read, into: &Path) -> io::Result<()> {
    fs::create_dir_all(into)?;
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(tar_gz));
    for entry in tar.entries()? {
        let mut entry = entry?;
        // Neither a path nor a link leads out of the folder.
        if !entry.unpack_in(into)? {
            let path = entry.path()?.display().to_string();
            return Err(io::Error::other(format!(
                "`{path}` leads out of the archive"
            )));
        }
    }
    make_readable(into)
}

/// Everyone may read, and run what was a program; nobody else may write.
fn make_readable(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            make_readable(&entry.path())?;
        } else if kind.is_file() {
            let runs = entry.metadata()?.permissions().mode() & 0o100 != 0;
            let mode = if runs { 0o755 } else { 0o644 };
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}

fn only_folder(directory: &Path) -> io::Result<PathBuf> {
    let folders: Vec<_> = fs::read_dir(directory)?
        .collect::<io::Result<Vec<_>>>()?
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.join("bin").is_dir())
        .collect();
    match <[PathBuf; 1]>::try_from(folders) {
        Ok([folder]) => Ok(folder),
        Err(_) => Err(io::Error::other("there is no one folder with `bin` in it")),
    }
}

fn sha256(reader: &mut impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer)? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    let mut hex = String::new();
    for byte in hash.finalize() {
        let _ = write!(hex, "{byte:02x}");
    }
    Ok(hex)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A wheel with a small tar.gz of these paths in it, and its pin.
    fn wheel(folder: &Path, paths: &[&str]) -> (PathBuf, Archive) {
        let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(
            Vec::new(),
            flate2::Compression::fast(),
        ));
        for path in paths {
            let mut header = tar::Header::new_gnu();
            header.set_size(2);
            header.set_mode(if path.contains("/bin/") { 0o700 } else { 0o666 });
            // The library refuses to write bad paths; the bytes go in by hand.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            tar.append(&header, &b"hi"[..]).unwrap();
        }
        let tar_gz = tar.into_inner().unwrap().finish().unwrap();
        let path = folder.join("p-1-py3-none-any.whl");
        let mut zip = zip::ZipWriter::new(File::create(&path).unwrap());
        zip.start_file("p/server.tar.gz", zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(&tar_gz).unwrap();
        zip.finish().unwrap();
        let archive = Archive {
            package: "p".into(),
            version: "1".into(),
            platform: "any".into(),
            file: "p-1-py3-none-any.whl".into(),
            wheel: sha256(&mut File::open(&path).unwrap()).unwrap(),
            archive: sha256(&mut tar_gz.as_slice()).unwrap(),
        };
        (path, archive)
    }

    fn engine_failure(result: Result<impl std::fmt::Debug, Failure>) -> Diagnostic {
        match result {
            Err(Failure::Engine(diagnostic)) => diagnostic,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_archive_that_is_what_was_pinned_is_unpacked_for_everyone_to_read() {
        let folder = tempfile::tempdir().unwrap();
        let (path, archive) = wheel(folder.path(), &["pg/bin/postgres", "pg/share/a.sql"]);
        let into = folder.path().join("unpacked");
        unpack(&path, &archive, &into).unwrap();
        assert_eq!(only_folder(&into).unwrap(), into.join("pg"));
        let mode = |path: &str| into.join(path).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("pg"), 0o755);
        assert_eq!(mode("pg/bin/postgres"), 0o755);
        assert_eq!(mode("pg/share/a.sql"), 0o644);
    }

    #[test]
    fn another_wheel_or_another_archive_is_thrown_away() {
        for inner in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let (path, mut archive) = wheel(folder.path(), &["pg/bin/postgres"]);
            let field = if inner {
                &mut archive.archive
            } else {
                &mut archive.wheel
            };
            let got = std::mem::replace(field, "0".repeat(64));
            let into = folder.path().join("unpacked");
            let diagnostic = engine_failure(unpack(&path, &archive, &into));
            assert!(
                diagnostic.notes[0].contains("expected sha256 000"),
                "{diagnostic:?}"
            );
            assert!(diagnostic.notes[1].contains(&got), "{diagnostic:?}");
            assert!(!path.exists());
            assert!(!into.exists());
        }
    }

    #[test]
    fn a_path_that_leads_out_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, archive) = wheel(folder.path(), &["pg/../../escaped"]);
        let into = folder.path().join("deep/unpacked");
        assert!(unpack(&path, &archive, &into).is_err());
        assert!(!folder.path().join("escaped").exists());
        assert!(!folder.path().join("deep/escaped").exists());
    }

    #[test]
    fn without_any_client_the_error_says_what_was_tried() {
        let folder = tempfile::tempdir().unwrap();
        let (_, archive) = wheel(folder.path(), &["pg/bin/postgres"]);
        let pin = Pin {
            version: "16.15".into(),
            image: None,
            archives: Default::default(),
        };
        let pips = [
            Pip {
                program: "no-such-python",
                arguments: &["-m", "pip"],
            },
            Pip {
                program: "false",
                arguments: &[],
            },
        ];
        let diagnostic = engine_failure(fetch(&pin, &archive, folder.path(), &pips));
        assert_eq!(diagnostic.message, "cannot fetch Postgres 16.15 (`p` 1)");
        assert_eq!(diagnostic.notes[0], "`no-such-python` is not installed");
        assert!(diagnostic.notes[1].starts_with("`false` failed"));
        assert!(diagnostic.hint.unwrap().contains("python3-pip"));
    }

    #[test]
    fn pips_own_complaint_about_a_hash_is_a_mismatch() {
        let folder = tempfile::tempdir().unwrap();
        let (_, archive) = wheel(folder.path(), &["pg/bin/postgres"]);
        let finished = Finished {
            success: false,
            interrupted: false,
            output: "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n        Expected sha256 0000\n             Got        93bad86e\n".into(),
        };
        let diagnostic = engine_failure(failed_pip(&PIPS[0], &finished, &archive));
        assert!(diagnostic.notes[1].ends_with("93bad86e"), "{diagnostic:?}");
    }
}
