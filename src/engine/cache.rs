//! The folder of the engines: binaries, initialised data directories, and a folder for each run,
//! which goes away with the run even when the program is killed.
//!
//! ```text
//! postgres/<version>-<hash>/   binaries; appears complete or not at all
//! templates/<version>-<hash>/  an initialised data directory; likewise
//! images/<version>-<image>.tar.gz  the same of an image, packed
//! runs/<name>/                 one a running server, download or initdb; locked while in use
//! ```

mod stray;

use super::system::is_root;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where the engine keeps its files when nothing else is said.
pub fn default_directory() -> PathBuf {
    let of_variable =
        |name| std::env::var_os(name).filter(|value: &std::ffi::OsString| !value.is_empty());
    // As root the server runs as another user, who may not enter root's home.
    if is_root() {
        return PathBuf::from("/var/cache/remeasure");
    }
    match (of_variable("XDG_CACHE_HOME"), of_variable("HOME")) {
        (Some(cache), _) => PathBuf::from(cache).join("remeasure"),
        (None, Some(home)) => PathBuf::from(home).join(".cache/remeasure"),
        (None, None) => std::env::temp_dir().join("remeasure"),
    }
}

#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Opens the cache, making its folders where they are missing, and clears away what dead runs
    /// have left.
    pub fn open(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        let cache = Self {
            root: fs::canonicalize(root)?,
        };
        for directory in [
            cache.root.clone(),
            cache.binaries(),
            cache.templates(),
            cache.runs(),
        ] {
            if !directory.is_dir() {
                fs::create_dir_all(&directory)?;
            }
            // Another user may have to enter, whatever the umask says.
            let mode = fs::metadata(&directory)?.permissions().mode();
            if mode & 0o755 != 0o755 {
                fs::set_permissions(&directory, fs::Permissions::from_mode(mode | 0o755))?;
            }
        }
        spread_out(&cache.runs());
        cache.sweep()?;
        Ok(cache)
    }

    /// A cache that is only looked at.
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    pub fn binaries(&self) -> PathBuf {
        self.root.join("postgres")
    }

    pub fn templates(&self) -> PathBuf {
        self.root.join("templates")
    }

    pub fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// Held while run folders are made or swept, so that none is taken for dead before it is
    /// locked.
    fn lock(&self) -> io::Result<File> {
        let lock = File::create(self.root.join("runs.lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    /// A folder for one run, gone when it is dropped or, after a `kill -9`, at the next start.
    pub fn run_directory(&self) -> io::Result<RunDirectory> {
        let _making = self.lock()?;
        let path = tempfile::Builder::new()
            .prefix("run-")
            .tempdir_in(self.runs())?
            .keep();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        let lock = File::create(path.join(LOCK))?;
        lock.lock()?;
        Ok(RunDirectory { path, _lock: lock })
    }

    /// Removes the folders of dead runs, and ends a server that still runs in one.
    fn sweep(&self) -> io::Result<()> {
        let _sweeping = self.lock()?;
        for path in self.all_runs()?.dead {
            remove_run(&path);
        }
        Ok(())
    }

    /// Whether there is anything to clear away at all.
    pub fn exists(&self) -> bool {
        self.runs().is_dir()
    }

    /// Calls `act` with the runs there are; meanwhile none begins and none is swept.
    pub fn with_runs<T>(&self, act: impl FnOnce(Runs) -> T) -> io::Result<T> {
        let _looking = self.lock()?;
        Ok(act(self.all_runs()?))
    }

    fn all_runs(&self) -> io::Result<Runs> {
        let mut runs = Runs::default();
        for entry in fs::read_dir(self.runs())? {
            let path = entry?.path();
            let held = match File::open(path.join(LOCK)) {
                Ok(lock) => lock.try_lock().is_err(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                // Another user's: not ours to judge.
                Err(_) => true,
            };
            match held {
                true => runs.living += 1,
                false => runs.dead.push(path),
            }
        }
        runs.dead.sort();
        Ok(runs)
    }

    /// Moves a finished folder to where it is looked for. When another process was faster, its
    /// folder stays: both hold the same.
    pub fn publish(&self, finished: &Path, place: &Path) -> io::Result<()> {
        // A place that is there is taken for complete, also after a power failure.
        sync(finished)?;
        match fs::rename(finished, place) {
            Err(_) if place.is_dir() => Ok(()),
            result => result,
        }
    }
}

/// Copies a data directory. Files are copied by the kernel (shared on file systems that can). An
/// owner is given by user and group.
pub fn copy(from: &Path, to: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    let permissions = fs::metadata(from)?.permissions();
    match fs::create_dir(to) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target, owner)?;
        } else {
            fs::copy(entry.path(), &target)?;
            own(&target, owner)?;
        }
    }
    fs::set_permissions(to, permissions)?;
    own(to, owner)
}

/// Gives a file to its owner, where there is one to give it to.
pub fn own(path: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    match owner {
        Some((user, group)) => std::os::unix::fs::lchown(path, Some(user), Some(group)),
        None => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn sync(folder: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let folder = File::open(folder)?;
    // SAFETY: the descriptor is open until the end of this function.
    match unsafe { libc::syncfs(folder.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(target_os = "linux"))]
fn sync(_folder: &Path) -> io::Result<()> {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::sync() };
    Ok(())
}

/// Asks ext4 to place each run's folder in a part of the disk of its own. Otherwise a run's
/// thousand files go where those of the run before were just removed, and ext4 steps over every
/// number that was in use in the last seconds, for every file: 1.3 s a start instead of 0.2 when
/// one run follows another. Where this is not known it is not needed.
#[cfg(target_os = "linux")]
fn spread_out(folder: &Path) {
    use std::os::fd::AsRawFd;
    /// EXT4_TOPDIR_FL, `chattr +T`.
    const TOP_OF_HIERARCHY: libc::c_int = 0x0002_0000;
    let Ok(folder) = File::open(folder) else {
        return;
    };
    let mut flags: libc::c_int = 0;
    // SAFETY: the descriptor is open until the end of this function; the kernel writes and reads
    // an int at the pointer, whatever the request's number says.
    unsafe {
        let descriptor = folder.as_raw_fd();
        if libc::ioctl(descriptor, libc::FS_IOC_GETFLAGS, &mut flags) == 0
            && flags & TOP_OF_HIERARCHY == 0
        {
            flags |= TOP_OF_HIERARCHY;
            libc::ioctl(descriptor, libc::FS_IOC_SETFLAGS, &flags);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn spread_out(_folder: &Path) {}

/// The folders of runs.
#[derive(Debug, Default)]
pub struct Runs {
    /// Those that no longer hold their lock.
    pub dead: Vec<PathBuf>,
    pub living: usize,
}

/// Removes the folder of a dead run, and ends a server that still runs in it.
pub fn remove_run(path: &Path) {
    stray::end(&path.join(DATA));
    clear(path);
}

const LOCK: &str = "lock";
/// The server's data directory in a run folder.
pub const DATA: &str = "data";
/// Names a folder elsewhere that goes away with the run: a socket's, whose path must be short.
const ELSEWHERE: &str = "elsewhere";
const ELSEWHERE_PREFIX: &str = "remeasure-socket-";

/// A locked folder below `runs`.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// The system gives the lock up when the process ends, however it ends.
    _lock: File,
}

impl RunDirectory {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder outside the cache, of which only the path's length matters.
    pub fn directory_elsewhere(&self) -> io::Result<PathBuf> {
        let made = tempfile::Builder::new()
            .prefix(ELSEWHERE_PREFIX)
            .make_in("/tmp", |path| {
                // First its name: what is not named is not found again.
                let name = path.as_os_str().as_encoded_bytes();
                fs::write(self.path.join(ELSEWHERE), name)?;
                fs::create_dir(path)
            })?;
        // It goes with the run, not with this function.
        let path = made.into_temp_path().keep().map_err(|error| error.error)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(path)
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        clear(&self.path);
    }
}

/// Removes a run folder, and the one it names elsewhere.
fn clear(path: &Path) {
    if let Ok(elsewhere) = fs::read_to_string(path.join(ELSEWHERE)) {
        let elsewhere = Path::new(&elsewhere);
        let ours = elsewhere.file_name().is_some_and(|name| {
            name.as_encoded_bytes()
                .starts_with(ELSEWHERE_PREFIX.as_bytes())
        });
        if ours {
            let _ = fs::remove_dir_all(elsewhere);
        }
    }
    // What cannot be removed now is tried again at the next start.
    let _ = fs::remove_dir_all(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_folder_lives_as_long_as_its_lock() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::open(root.path()).unwrap();
        let live = cache.run_directory().unwrap();
        fs::write(live.path().join("file"), "x").unwrap();
        let elsewhere = live.directory_elsewhere().unwrap();

        // What a killed process leaves: a folder whose lock nobody holds, and one without.
        let dead = cache.runs().join("run-dead");
        fs::create_dir_all(dead.join(DATA)).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        let half_made = cache.runs().join("run-half");
        fs::create_dir(&half_made).unwrap();

        Cache::open(root.path()).unwrap();
        assert!(live.path().join("file").exists());
        assert!(elsewhere.exists());
        assert!(!dead.exists());
        assert!(!half_made.exists());

        let path = live.path().to_owned();
        drop(live);
        assert!(!path.exists());
        assert!(!elsewhere.exists());
    }

    #[test]
    fn only_our_own_folder_elsewhere_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let precious = tempfile::tempdir().unwrap();
        let cache = Cache::open(root.path()).unwrap();
        let dead = cache.runs().join("run-dead");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(ELSEWHERE), precious.path().to_str().unwrap()).unwrap();
        Cache::open(root.path()).unwrap();
        assert!(!dead.exists());
        assert!(precious.path().exists());
    }

    #[test]
    fn the_second_to_publish_keeps_what_the_first_has_put_there() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::open(root.path()).unwrap();
        let place = cache.binaries().join("16.15-abc");
        for word in ["first", "second"] {
            let made = root.path().join(word);
            fs::create_dir(&made).unwrap();
            fs::write(made.join("by"), word).unwrap();
            cache.publish(&made, &place).unwrap();
        }
        assert_eq!(fs::read_to_string(place.join("by")).unwrap(), "first");
    }

    #[test]
    fn a_copy_has_the_same_files_and_permissions() {
        let root = tempfile::tempdir().unwrap();
        let from = root.path().join("from");
        fs::create_dir_all(from.join("base/1")).unwrap();
        fs::write(from.join("base/1/1255"), "page").unwrap();
        fs::write(from.join("PG_VERSION"), "16\n").unwrap();
        fs::set_permissions(&from, fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(from.join("PG_VERSION"), fs::Permissions::from_mode(0o600)).unwrap();

        let to = root.path().join("to");
        copy(&from, &to, None).unwrap();
        assert_eq!(fs::read_to_string(to.join("base/1/1255")).unwrap(), "page");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&to), 0o700);
        assert_eq!(mode(&to.join("PG_VERSION")), 0o600);
    }
}
