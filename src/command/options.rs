//! What a person may ask of a command that measures.

use crate::engine::Engines;
use crate::plan::Force;
use crate::report::{Look, Report};
use std::path::PathBuf;

#[derive(Clone)]
pub struct BuildOptions {
    /// None: `full`.
    pub profile: Option<String>,
    pub engine: Engines,
    pub force: Force,
    pub verbosity: Verbosity,
    /// Of the table on standard output.
    pub look: Look,
    /// Further reports, each with the file it goes to (`-`: standard output).
    pub reports: Vec<(&'static Report, PathBuf)>,
}

/// Who is told, and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    Quiet,
    Normal,
}
