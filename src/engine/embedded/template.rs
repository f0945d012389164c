//! Initialised data directories: one a version is made and kept in the cache, each start gets a
//! copy (40 ms instead of 600).

use super::binaries::Binaries;
use super::user::User;
use super::{libraries, process};
use crate::diagnostic::Diagnostic;
use crate::engine::cache::{Cache, DATA, copy};
use crate::engine::{pins::Pin, settings, trust};
use crate::exit_code::Failure;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Raised whenever what is done to a fresh data directory changes, so that old templates are not
/// used any more.
const LAYOUT: u32 = 1;

/// The file in a data directory that holds the article's settings.
pub const SETTINGS: &str = "remeasure.conf";

/// What makes data directories.
pub struct Templates<'a> {
    pub cache: &'a Cache,
    pub pin: &'a Pin,
    pub binaries: &'a Binaries,
    pub user: Option<&'a User>,
    pub progress: &'a dyn Fn(&str),
}

impl Templates<'_> {
    /// Puts a fresh data directory at `data`.
    pub fn copy_to(&self, data: &Path) -> Result<(), Failure> {
        let template = self.place();
        if !template.is_dir() {
            self.make(&template)?;
        }
        let owner = self.user.map(|user| (user.uid, user.gid));
        copy(&template, data, owner).map_err(|error| Failure::io("copy to", data, &error))
    }

    fn place(&self) -> PathBuf {
        let user = self.user.map_or("self", |user| user.name.as_str());
        self.cache.templates().join(format!(
            "{}-{}-{LAYOUT}-{user}",
            self.pin.version,
            self.binaries.identity()
        ))
    }

    fn make(&self, template: &Path) -> Result<(), Failure> {
        (self.progress)(&format!(
            "initialising a data directory for Postgres {}",
            self.pin.version
        ));
        let broken = |error: io::Error| Failure::io("make", template, &error);
        let run = self.cache.run_directory().map_err(broken)?;
        let data = run.path().join(DATA);
        fs::create_dir(&data).map_err(broken)?;
        if let Some(user) = self.user {
            user.own(&data).map_err(broken)?;
        }
        self.initdb(&data)?;
        self.prepare(&data)?;
        append_include(&data).map_err(broken)?;
        self.cache.publish(&data, template).map_err(broken)
    }

    fn initdb(&self, data: &Path) -> Result<(), Failure> {
        let mut command = process::command(&self.binaries.program("initdb"), self.user);
        command
            .arg("--pgdata")
            .arg(data)
            .args(settings::initdb_arguments(self.pin.major()));
        let finished = process::finish(&mut command)
            .map_err(|error| self.failed("initdb", &error.to_string()))?;
        if finished.success {
            Ok(())
        } else {
            Err(self.failed("initdb", &finished.output))
        }
    }

    /// Makes the author's role, with the server in single-user mode.
    fn prepare(&self, data: &Path) -> Result<(), Failure> {
        let mut command = process::command(&self.binaries.program("postgres"), self.user);
        command
            .args(["--single", "-j", "-F", "-D"])
            .arg(data)
            .arg("template1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut run = || -> io::Result<std::process::Output> {
            let mut child = command.spawn()?;
            if let Some(mut stdin) = child.stdin.take() {
                stdin.write_all(trust::prepare_server().as_bytes())?;
            }
            child.wait_with_output()
        };
        let output = run().map_err(|error| self.failed("postgres --single", &error.to_string()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        // Single-user mode goes on after an error.
        let wrong = ["ERROR:", "FATAL:", "PANIC:"]
            .iter()
            .any(|word| said.contains(word));
        if output.status.success() && !wrong {
            Ok(())
        } else {
            Err(self.failed("postgres --single", &said))
        }
    }

    fn failed(&self, program: &str, output: &str) -> Failure {
        let bin = self.binaries.folder.join("bin");
        Failure::Engine(libraries::explain(&bin, output).unwrap_or_else(|| {
            Diagnostic::error(format!(
                "`{program}` of Postgres {} failed",
                self.pin.version
            ))
            .note(output.trim())
        }))
    }
}

fn append_include(data: &Path) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(data.join("postgresql.conf"))?;
    writeln!(file, "\ninclude '{SETTINGS}'")?;
    fs::write(data.join(SETTINGS), "")
}
