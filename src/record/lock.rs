//! Advisory locks, so that two commands at once do not harm each other. Entry: [`try_lock`] for a
//! file that says who holds it, [`try_lock_folder`] for a folder as it stands. The system gives a
//! lock back when its process ends, also on `kill -9`.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::Path;

/// Held until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Lock(#[expect(dead_code, reason = "the lock ends with the file")] File);

/// What came of asking for a lock.
#[derive(Debug)]
pub enum Locking {
    Held(Lock),
    /// By another process.
    Busy(Holder),
}

/// Who holds a lock, as far as it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    pub process: Option<u32>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "process {process}"),
            None => f.write_str("another process"),
        }
    }
}

/// Locks a file, and writes this process into it for those who wait.
pub fn try_lock(path: &Path) -> io::Result<Locking> {
    let mut options = OpenOptions::new();
    let mut file = options
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    Ok(match file.try_lock() {
        Ok(()) => {
            file.set_len(0)?;
            writeln!(file, "{}", std::process::id())?;
            Locking::Held(Lock(file))
        }
        Err(TryLockError::WouldBlock) => {
            let text = fs::read_to_string(path).unwrap_or_default();
            Locking::Busy(Holder {
                process: text.trim().parse().ok(),
            })
        }
        Err(TryLockError::Error(error)) => return Err(error),
    })
}

/// Locks a folder without a file of its own in it: what is published holds no trace. Where the
/// filesystem locks no folders (some of the network do not) it counts as held: a file is written
/// whole there, too.
pub fn try_lock_folder(path: &Path) -> io::Result<Locking> {
    let folder = File::open(path)?;
    Ok(match folder.try_lock() {
        Err(TryLockError::WouldBlock) => Locking::Busy(Holder::default()),
        Ok(()) | Err(TryLockError::Error(_)) => Locking::Held(Lock(folder)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_says_who_holds_it_and_is_free_once_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        // What an earlier holder left, of whatever length.
        fs::write(&path, "4294967295 and more").unwrap();
        let Locking::Held(held) = try_lock(&path).unwrap() else {
            panic!("it is free")
        };
        let Locking::Busy(holder) = try_lock(&path).unwrap() else {
            panic!("it is held")
        };
        let this = std::process::id();
        assert_eq!(holder.to_string(), format!("process {this}"));
        drop(held);
        assert!(matches!(try_lock(&path).unwrap(), Locking::Held(_)));
    }

    #[test]
    fn a_folder_is_locked_without_a_file_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let held = try_lock_folder(folder.path()).unwrap();
        assert!(matches!(held, Locking::Held(_)));
        assert!(matches!(
            try_lock_folder(folder.path()).unwrap(),
            Locking::Busy(Holder { process: None })
        ));
        drop(held);
        assert!(matches!(
            try_lock_folder(folder.path()).unwrap(),
            Locking::Held(_)
        ));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
