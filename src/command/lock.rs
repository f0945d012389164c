//! Waiting for another command that works on the same article, or writes to the same folder, and
//! saying so. Reading commands (`status`, `diff`, `lint`, `check --recorded`) never wait.

use crate::exit_code::Failure;
use crate::record::lock::{Lock, Locking, try_lock_folder};
use crate::record::store::Store;
use std::path::Path;
use std::time::Duration;

const AGAIN: Duration = Duration::from_millis(100);

/// Waits until no other process measures this article or accepts it.
pub async fn article(store: &Store, slug: &str, tell: impl Fn(&str)) -> Result<Lock, Failure> {
    let mut told = false;
    loop {
        let holder = match store.try_lock()? {
            Locking::Held(lock) => return Ok(lock),
            Locking::Busy(holder) => holder,
        };
        if !told {
            tell(&format!(
                "{slug}: another build of this article is measuring ({holder}); waiting for it"
            ));
            told = true;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Waits until no other process writes to this folder, which is never long.
pub async fn folder(path: &Path, tell: impl Fn(&str)) -> Result<Lock, Failure> {
    let mut told = false;
    loop {
        let locking = try_lock_folder(path).map_err(|error| Failure::io("lock", path, &error))?;
        if let Locking::Held(lock) = locking {
            return Ok(lock);
        }
        if !told {
            tell(&format!(
                "another build writes to `{}`; waiting for it",
                path.display()
            ));
            told = true;
        }
        tokio::time::sleep(AGAIN).await;
    }
}
