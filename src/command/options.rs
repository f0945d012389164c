//! What a person may ask of a command that measures.

use crate::engine::Engines;
use crate::plan::Force;
use crate::plan::shards::Shard;
use crate::report::{Look, Report};
use std::path::PathBuf;

#[derive(Clone)]
pub struct BuildOptions {
    /// None: `full`.
    pub profile: Option<String>,
    pub engine: Engines,
    pub force: Force,
    /// Measure this part of the experiments alone; None: all.
    pub shard: Option<Shard>,
    /// Records whose measurements are taken in place of this machine's; empty: it measures.
    pub records: Vec<PathBuf>,
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
