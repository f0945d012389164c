//! A project in a folder of its own, and the program run on it.

use remeasure::quantity::Table;
use remeasure::record::store::read_record;
use remeasure::record::{ExperimentRecord, Record};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A project with one article, `a`.
pub struct Project {
    folder: tempfile::TempDir,
}

/// What the program gave.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The front matter of an article that needs nothing special.
pub const FRONT: &str = "---\ntitle: T\npostgres: {version: \"16.15\"}\n---\n";

impl Project {
    pub fn empty() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// `text`: the whole article, or its body where there is no front matter.
    pub fn new(text: &str) -> Self {
        let project = Self::empty();
        let text = text.trim_start();
        project.write(
            "articles/a/article.md",
            &if text.starts_with("---") {
                text.to_owned()
            } else {
                format!("{FRONT}\n{text}")
            },
        );
        project
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Replaces the one place in the article where `before` stands.
    pub fn edit(&self, before: &str, after: &str) {
        let text = self.read("articles/a/article.md");
        assert_eq!(text.matches(before).count(), 1, "{before}");
        self.write("articles/a/article.md", &text.replace(before, after));
    }

    /// The program with its arguments, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_remeasure"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_remove("CI")
            // What a daemon of this machine has is no matter of a test that does not say so.
            .env("REMEASURE_ENGINE", "embedded")
            .env("NO_COLOR", "1");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// `build` on the embedded engine.
    pub fn build(&self) -> Ran {
        self.run(&["build"])
    }

    /// Builds, and everything must hold.
    pub fn built(&self) -> Record {
        let ran = self.build();
        assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
        self.record()
    }

    pub fn record(&self) -> Record {
        let path = self.path("out/a/record.json");
        match read_record(&path) {
            Ok(Some(record)) => record,
            other => panic!("{other:?}"),
        }
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Builds an article that must hold, and gives its record.
pub fn built(text: &str) -> Record {
    Project::new(text).built()
}

/// Builds an article that must fail with this code, and gives what it says.
pub fn refused(text: &str, code: i32) -> String {
    let project = Project::new(text);
    let ran = project.build();
    assert_eq!(ran.code, code, "{}\n{}", ran.stdout, ran.stderr);
    assert!(!project.path("out").exists());
    ran.stderr
}

pub fn experiment<'r>(record: &'r Record, id: &str) -> &'r ExperimentRecord {
    record
        .experiments
        .get(id)
        .unwrap_or_else(|| panic!("no experiment {id}"))
}

/// One column of `measured.<id>`, as text.
pub fn measured(record: &Record, id: &str, name: &str) -> Vec<String> {
    column(&experiment(record, id).measured, name)
}

pub fn column(table: &Table, name: &str) -> Vec<String> {
    let index = table
        .column(name)
        .unwrap_or_else(|| panic!("no column {name} in {:?}", table.columns));
    table
        .rows
        .iter()
        .map(|row| row[index].to_string())
        .collect()
}

pub fn claim(record: &Record, name: &str) -> String {
    record.claims[name].value.to_string()
}
