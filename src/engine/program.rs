//! psql and pgbench of the very server that is measured, on every engine: run as the article's role,
//! in a folder of their own ([`Workspace`]) that holds nothing but what was put there, with nothing of
//! our environment. How the server is reached, and with which password, never stands among their
//! arguments. None outlives this program.
//!
//! [`super::Server::workspace`] → [`super::Server::put`] → [`super::Server::run`] →
//! [`super::Server::take`] → [`super::Server::discard`].

use crate::exit_code::Failure;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A program that comes with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Psql,
    Pgbench,
}

impl Program {
    pub fn name(self) -> &'static str {
        match self {
            Self::Psql => "psql",
            Self::Pgbench => "pgbench",
        }
    }
}

/// A folder that programs run in, where the server is: gone with the server at the latest.
#[derive(Debug)]
pub struct Workspace {
    pub(super) folder: PathBuf,
}

/// What is put into a workspace.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    Bytes(&'a [u8]),
    /// A file of this machine.
    File(&'a Path),
}

/// One run of a program.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    pub program: Program,
    pub database: &'a str,
    pub arguments: &'a [String],
    /// Settings of its sessions.
    pub session: &'a [(String, String)],
    /// It is ended when it takes longer.
    pub timeout: Option<Duration>,
}

/// What came of it.
#[derive(Debug)]
pub struct Completed {
    /// None where a signal ended it.
    pub status: Option<i32>,
    pub timed_out: bool,
    /// From its beginning.
    pub stdout: File,
    /// The end of it, where there is very much.
    pub stderr: String,
}

impl Invocation<'_> {
    /// What libpq reads from the environment, but for where the server listens.
    pub(super) fn environment(&self) -> Vec<(String, String)> {
        let options: Vec<String> = self
            .session
            .iter()
            .map(|(name, value)| format!("-c {}={}", escaped(name), escaped(value)))
            .collect();
        [
            ("PGUSER", super::session::Role::Author.name().to_owned()),
            ("PGDATABASE", self.database.to_owned()),
            ("PGOPTIONS", options.join(" ")),
            ("PGCONNECT_TIMEOUT", "30".to_owned()),
            // None of these is looked for in anybody's home; libpq takes a missing one without a word.
            ("PGPASSFILE", "/nonexistent".to_owned()),
            ("PGSERVICEFILE", "/nonexistent".to_owned()),
            ("PSQL_HISTORY", "/dev/null".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

/// As the server takes its options apart: at white space without a backslash before it.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_whitespace() || c == '\\' {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// As much of what a program says as anybody reads.
const KEPT: u64 = 4 << 20;

/// The end of a file that a program has written to.
pub(super) fn end_of(mut file: File) -> io::Result<String> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(KEPT)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn failure(what: &str, folder: &Path, error: &io::Error) -> Failure {
    Failure::io(what, folder, error)
}

// ---- folders of this machine --------------------------------------------------------------------

/// Puts a file into a folder, with the folders on the way; gives all that was made.
pub(super) fn put_file(
    folder: &Path,
    name: &str,
    content: Content<'_>,
) -> io::Result<Vec<PathBuf>> {
    let path = folder.join(name);
    let mut made: Vec<PathBuf> = Vec::new();
    let above: Vec<&Path> = path
        .ancestors()
        .skip(1)
        .take_while(|above| *above != folder)
        .collect();
    for above in above.into_iter().rev() {
        if !above.is_dir() {
            fs::create_dir(above)?;
            made.push(above.to_owned());
        }
    }
    match content {
        Content::Bytes(bytes) => fs::write(&path, bytes)?,
        Content::File(from) => {
            fs::copy(from, &path)?;
        }
    }
    made.push(path);
    Ok(made)
}

/// Opens the files whose names begin with `prefix`, in their order, and takes their names away.
pub(super) fn take_files(folder: &Path, prefix: &str) -> io::Result<Vec<File>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let named = entry.file_name().to_string_lossy().starts_with(prefix);
        if named && entry.file_type()?.is_file() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        files.push(File::open(&path)?);
        fs::remove_file(&path)?;
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_reach_the_server_whatever_is_in_them() {
        let session = [
            ("work_mem".to_owned(), "5MB".to_owned()),
            ("my.own".to_owned(), "a b\\c".to_owned()),
        ];
        let invocation = Invocation {
            program: Program::Psql,
            database: "x y",
            arguments: &[],
            session: &session,
            timeout: None,
        };
        let environment = invocation.environment();
        let of = |name: &str| {
            let found = environment.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        assert_eq!(of("PGDATABASE"), Some("x y"));
        assert_eq!(of("PGUSER"), Some("author"));
        let options = Some("-c work_mem=5MB -c my.own=a\\ b\\\\c");
        assert_eq!(of("PGOPTIONS"), options);
    }

    #[test]
    fn files_are_put_below_a_folder_and_taken_by_their_prefix() {
        let folder = tempfile::tempdir().unwrap();
        let made = put_file(folder.path(), "a/b/c.sql", Content::Bytes(b"x")).unwrap();
        let below = |name: &str| folder.path().join(name);
        assert_eq!(made, [below("a"), below("a/b"), below("a/b/c.sql")]);
        put_file(folder.path(), "log.2", Content::Bytes(b"2")).unwrap();
        put_file(folder.path(), "log.1", Content::File(&below("a/b/c.sql"))).unwrap();
        let read = |mut file: File| {
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            text
        };
        let taken = take_files(folder.path(), "log.").unwrap();
        let texts: Vec<String> = taken.into_iter().map(read).collect();
        assert_eq!(texts, ["x", "2"]);
        assert!(take_files(folder.path(), "log.").unwrap().is_empty());
    }
}
