//! Postgres refuses to run as root; then it runs as `postgres` where there is such a user, else as
//! `nobody`.

use crate::diagnostic::Diagnostic;
use crate::engine::system::is_root;
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A user without privileges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

/// The user that the server is to run as; None: as ourselves.
pub fn unprivileged() -> Result<Option<User>, Diagnostic> {
    if !is_root() {
        return Ok(None);
    }
    ["postgres", "nobody"]
        .into_iter()
        .find_map(by_name)
        .map(Some)
        .ok_or_else(|| {
            Diagnostic::error(
                "Postgres does not run as root, and there is no user `postgres` or `nobody`",
            )
            .hint("run this as another user, or add one: `useradd --system postgres`")
        })
}

fn by_name(name: &str) -> Option<User> {
    let c_name = CString::new(name).ok()?;
    // SAFETY: the name is a C string; the entry is read at once, before another look-up on this
    // thread, and no other thread of this program looks users up.
    let (uid, gid) = unsafe {
        let entry = libc::getpwnam(c_name.as_ptr()).as_ref()?;
        let found = CStr::from_ptr(entry.pw_name);
        (found == c_name.as_c_str()).then_some((entry.pw_uid, entry.pw_gid))?
    };
    (uid != 0).then(|| User {
        name: name.to_owned(),
        uid,
        gid,
    })
}

impl User {
    pub fn own(&self, path: &Path) -> io::Result<()> {
        std::os::unix::fs::lchown(path, Some(self.uid), Some(self.gid))
    }

    /// The first folder on the way to `path`, or `path` itself, that this user may not enter.
    pub fn barred_from(&self, path: &Path) -> Option<PathBuf> {
        let mut ancestors: Vec<_> = path.ancestors().collect();
        ancestors.reverse();
        ancestors
            .into_iter()
            .find(|directory| !self.may_enter(directory))
            .map(Path::to_owned)
    }

    fn may_enter(&self, directory: &Path) -> bool {
        // A folder that is not there is reported by whoever needs it.
        let Ok(metadata) = std::fs::metadata(directory) else {
            return true;
        };
        let bit = if metadata.uid() == self.uid {
            0o100
        } else if metadata.gid() == self.gid {
            0o010
        } else {
            0o001
        };
        metadata.mode() & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_folder_that_bars_the_way_is_named() {
        let root = tempfile::tempdir().unwrap();
        let shut = root.path().join("shut");
        let inside = shut.join("inside");
        std::fs::create_dir_all(&inside).unwrap();
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        open(root.path(), 0o755);
        open(&inside, 0o755);
        // No real user has these numbers, so that only the last bits count.
        let stranger = User {
            name: "stranger".into(),
            uid: 3_999_999_991,
            gid: 3_999_999_991,
        };
        open(&shut, 0o755);
        assert_eq!(stranger.barred_from(&inside), None);
        open(&shut, 0o700);
        assert_eq!(stranger.barred_from(&inside), Some(shut.clone()));
        open(&shut, 0o755);
    }
}
