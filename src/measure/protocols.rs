//! The catalogue of protocols: how what is measured is arranged. What a phase may say stands beside
//! the code that does it, what an experiment says stands here; a new one is one line in [`PROTOCOLS`].

use super::{collect, sampling, sessions, settings, waiting};

pub const PROTOCOLS: &[Description] = &[
    RUNS,
    ORDER,
    FRESH,
    WARMUP,
    VERSIONS,
    settings::SETTINGS,
    collect::COLLECT,
    sampling::SAMPLE,
    sessions::IN,
    sessions::BACKGROUND,
    waiting::WAIT_UNTIL,
];

/// One way of measuring.
pub struct Description {
    /// As an article writes it.
    pub name: &'static str,
    pub description: &'static str,
    /// What it adds to the measured tables, with units; empty where nothing.
    pub gives: &'static str,
    /// Lowest major version of the server.
    pub minimum_version: u32,
    /// What falsifies it, and what to do.
    pub disturbed_by: &'static str,
}

const RUNS: Description = Description {
    name: "runs: N or {min, max, until}",
    description: "measured runs of each cell; adaptive ones go on until half the width of the 95 % interval of the median of elapsed_ms is below `until`",
    gives: "run [number from 1]",
    minimum_version: 16,
    disturbed_by: "drift: runs that grow or fall are a doubt, and no number of them makes the median right",
};

const ORDER: Description = Description {
    name: "order: sequential, interleave or shuffle",
    description: "cell after cell; or run 1 of every cell, then run 2 and so on; or the same with the cells of each round in an order that `seed` decides",
    gives: "shuffle: position [number from 1: in which place the run was measured]",
    minimum_version: 16,
    disturbed_by: "interleaved and shuffled cells stand at the same time, each in a database of its own: together they should fit where one alone does",
};

const FRESH: Description = Description {
    name: "fresh: cell, run or never; connect: cell or run",
    description: "how often the state is made anew from fixture and setup, and how often the measuring session is",
    gives: "",
    minimum_version: 16,
    disturbed_by: "a clone is copied as files: its pages are in the cache of the system, not in shared buffers",
};

const WARMUP: Description = Description {
    name: "warmup: N, or a phase of that name",
    description: "`measure` unrecorded before, with all phases beside it, or SQL of its own",
    gives: "",
    minimum_version: 16,
    disturbed_by: "pages that the warm-up does not touch: their first change after a checkpoint still writes a full-page image",
};

const VERSIONS: Description = Description {
    name: "postgres: {versions: [A, B]}",
    description: "each cell is measured on a server of its version, one server after the other; claims are evaluated on the first",
    gives: "version [text], a matrix column",
    minimum_version: 16,
    disturbed_by: "what one version does by default and another does not, such as data checksums",
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_protocol_is_documented_once() {
        let mut names = BTreeSet::new();
        for protocol in PROTOCOLS {
            assert!(names.insert(protocol.name), "{} twice", protocol.name);
            assert!(!protocol.description.is_empty(), "{}", protocol.name);
            assert!(!protocol.disturbed_by.is_empty(), "{}", protocol.name);
        }
    }
}
