//! Why a server went away or could not go on, told by its log and by what Postgres said: the disk is
//! full, or one of its processes was killed. What the engine knows beside that goes with it.

use crate::diagnostic::Diagnostic;

/// Of a shared memory segment a full `/dev/shm` is told in the same words.
const NO_SPACE: &str = "No space left on device";
const SHARED_MEMORY: &str = "shared memory segment";

/// What to do about a full `/dev/shm`, in words for every engine.
pub const SHARED_MEMORY_HINT: &str = "`/dev/shm` is too small for this: raise `postgres: shm_size` \
     (of the docker engine; others have the machine's), or let fewer parallel workers ask for less";

/// Whether a line says that a disk is full.
pub fn tells_of_a_full_disk(text: &str) -> bool {
    let says = |line: &str| {
        (line.contains(NO_SPACE) && !line.contains(SHARED_MEMORY))
            || line.contains("Check free disk space")
    };
    text.lines().any(says)
}

/// Whether a line says that `/dev/shm` is full.
pub fn tells_of_full_shared_memory(text: &str) -> bool {
    let says = |line: &str| line.contains(NO_SPACE) && line.contains(SHARED_MEMORY);
    text.lines().any(says)
}

/// Whether the server's log says that the system killed one of its processes.
pub fn tells_of_a_kill(log: &str) -> bool {
    log.lines()
        .any(|line| line.contains("was terminated by signal 9"))
}

/// What an engine knows of its server when that failed.
pub struct Known {
    /// The end of the server's log.
    pub log: String,
    /// Where the data directory lies, and how full that is.
    pub disk: String,
    /// What to do when a process was killed, in words of the engine.
    pub memory_hint: String,
    /// What the engine sees of its own.
    pub seen: Vec<String>,
}

/// Adds to a failure what is known; its own hint stays where there is one.
pub fn explain(mut diagnostic: Diagnostic, known: Known) -> Diagnostic {
    let said = format!("{}\n{}", diagnostic.message, diagnostic.notes.join("\n"));
    let full = tells_of_a_full_disk(&said) || tells_of_a_full_disk(&known.log);
    let killed = tells_of_a_kill(&said) || tells_of_a_kill(&known.log);
    let shared = tells_of_full_shared_memory(&known.log);
    let mut hint = None;
    for seen in known.seen {
        diagnostic = diagnostic.note(seen);
    }
    if full {
        diagnostic = diagnostic.note(format!("the disk is full: {}", known.disk));
        hint = Some("make room there, or let the article make less".to_owned());
    } else if killed {
        hint = Some(known.memory_hint);
    } else if shared {
        hint = Some(SHARED_MEMORY_HINT.to_owned());
    }
    if !known.log.is_empty() && !said.contains("log ends with") {
        diagnostic = diagnostic.note(format!("the server's log ends with:\n{}", known.log));
    }
    if diagnostic.hint.is_none() || full {
        diagnostic.hint = hint.or(diagnostic.hint);
    }
    diagnostic
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_full_shared_memory() {
        for (line, disk, shared) in [
            (
                "ERROR:  could not extend file \"base/5/1\": No space left on device",
                true,
                false,
            ),
            ("HINT:  Check free disk space.", true, false),
            (
                "ERROR:  could not resize shared memory segment \"/PostgreSQL.1\" to 8 bytes: No space left on device",
                false,
                true,
            ),
            ("ERROR:  division by zero", false, false),
        ] {
            assert_eq!(tells_of_a_full_disk(line), disk, "{line}");
            assert_eq!(tells_of_full_shared_memory(line), shared, "{line}");
        }
    }

    #[test]
    fn what_the_log_tells_becomes_a_hint() {
        let known = |log: &str| Known {
            log: log.to_owned(),
            disk: "`/data`, ext4, has 1 of 8 MB".to_owned(),
            memory_hint: "raise it".to_owned(),
            seen: vec!["the container runs".to_owned()],
        };
        let lost = || Diagnostic::error("the server went away");
        let killed = explain(
            lost(),
            known("LOG:  server process (PID 7) was terminated by signal 9: Killed"),
        );
        assert_eq!(killed.hint.as_deref(), Some("raise it"));
        assert_eq!(killed.notes[0], "the container runs");
        assert!(killed.notes[1].starts_with("the server's log ends with:\nLOG"));

        let full = explain(
            lost(),
            known("PANIC:  could not write: No space left on device"),
        );
        assert!(full.notes[1].contains("`/data`, ext4"), "{full:?}");
        assert!(full.hint.unwrap().contains("room"));

        let start = "FATAL:  could not resize shared memory segment \"/P\" to 8 bytes: No space left on device";
        let shared = explain(lost(), known(start));
        assert!(shared.hint.unwrap().contains("shm_size"));

        let other = explain(lost().hint("do this"), known(""));
        assert_eq!(other.notes, ["the container runs"]);
        assert_eq!(other.hint.as_deref(), Some("do this"));
    }
}
