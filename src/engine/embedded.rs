//! The embedded engine: binaries of exactly the pinned version, fetched once, run here without
//! Docker. The server listens on a Unix socket only, runs as a user without privileges, and dies
//! with this program, also on `kill -9`.
//!
//! [`Embedded::start`]: binaries (folder, cache or download) → data directory (a copy of the
//! version's template) → settings → server.

mod binaries;
#[cfg(target_os = "linux")]
mod confinement;
pub(super) mod doctor;
mod fetch;
mod libraries;
mod process;
mod program;
mod template;
mod user;

use super::cache::{Cache, DATA, RunDirectory};
use super::cause::{self, Known};
use super::pins::{Pin, platform};
use super::session::{Address, Host, log_tail};
use super::settings::{check_settings, setting_complaints, settings_file};
use super::storage;
use super::{StartRequest, start_limit};
use crate::diagnostic::Diagnostic;
use crate::exit_code::Failure;
use binaries::{Binaries, Origin, Search};
use process::{ServerProcess, Stop};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use template::{SETTINGS, Templates};
use user::User;

/// A running server. Dropping it ends the server at once and removes its folder.
#[derive(Debug)]
pub struct Embedded {
    // Dropped in this order: the server ends before its folder goes.
    process: Option<ServerProcess>,
    run: RunDirectory,
    binaries: Binaries,
    user: Option<User>,
    settings: BTreeMap<String, String>,
    socket: PathBuf,
    address: Address,
}

/// A fast stop writes all that is dirty.
const RESTART_STOP_LIMIT: Duration = Duration::from_secs(300);
/// When the data is thrown away there is nothing to write for.
const FINAL_STOP_LIMIT: Duration = Duration::from_millis(500);

/// How long after its client's connection the server's log may be behind.
const LOG_DELAY: Duration = Duration::from_millis(200);

const LOG: &str = "log";
const PORT: u16 = 5432;

pub use binaries::FOLDER_VARIABLE;

/// Whether a folder of the user's stands for the pinned archive.
pub fn is_a_folder_named() -> bool {
    std::env::var_os(FOLDER_VARIABLE).is_some_and(|folder| !folder.is_empty())
}

/// A container may be of another platform; this engine's programs are of this machine's.
pub fn refuse_platform(asked: Option<&str>) -> Result<(), Failure> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    // `linux/arm64/v8`: variants run on one another.
    match asked.filter(|asked| asked.split('/').nth(1) != Some(architecture)) {
        None => Ok(()),
        Some(asked) => Err(Failure::Engine(
            Diagnostic::error(format!(
                "the article asks for {asked}, and the embedded engine's programs are for {architecture}"
            ))
            .hint("use `--engine docker`, or leave `postgres: {platform: …}` out"),
        )),
    }
}

/// sha256 of the archive that [`Embedded::start`] will run; None where a folder of the user's
/// stands for it.
pub fn pinned_digest(pin: &Pin) -> Result<Option<String>, Failure> {
    if is_a_folder_named() {
        return Ok(None);
    }
    let platform = platform();
    match pin.archives.get(&platform) {
        Some(archive) => Ok(Some(format!("sha256:{}", archive.archive))),
        None => Err(Failure::Engine(
            Diagnostic::error(format!(
                "Postgres {} is not pinned for {platform}",
                pin.version
            ))
            .hint(format!(
                "set {} to a folder with its programs, or add an archive to pins.yaml",
                binaries::FOLDER_VARIABLE
            )),
        )),
    }
}

impl Embedded {
    pub async fn start(request: &StartRequest<'_>) -> Result<Self, Failure> {
        check_settings(request.settings)?;
        let user = user::unprivileged().map_err(Failure::Engine)?;
        let cache =
            Cache::open(request.cache).map_err(|error| cache_failure(request.cache, &error))?;
        let folder = std::env::var_os(binaries::FOLDER_VARIABLE);
        let binaries = Search {
            pin: request.pin,
            cache: &cache,
            offline: request.offline,
            user: user.as_ref(),
            folder: folder
                .filter(|folder| !folder.is_empty())
                .map(PathBuf::from),
            pips: &fetch::PIPS,
            progress: request.progress,
        }
        .run()?;
        let run = cache
            .run_directory()
            .map_err(|error| cache_failure(request.cache, &error))?;
        Templates {
            cache: &cache,
            pin: request.pin,
            binaries: &binaries,
            user: user.as_ref(),
            progress: request.progress,
        }
        .copy_to(&run.path().join(DATA))?;
        let socket = socket_directory(&run, user.as_ref())
            .map_err(|error| Failure::io("make a socket below", run.path(), &error))?;
        let address = Address {
            host: Host::Socket(socket.clone()),
            contained: false,
            port: PORT,
            log: run.path().join(LOG),
        };
        let mut server = Self {
            process: None,
            run,
            binaries,
            user,
            settings: request.settings.clone(),
            socket,
            address,
        };
        server.launch(&BTreeMap::new()).await?;
        Ok(server)
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// sha256 of the archive the programs came from; None: a folder of the user's.
    pub fn digest(&self) -> Option<String> {
        match &self.binaries.origin {
            Origin::Pinned { sha256 } => Some(format!("sha256:{sha256}")),
            Origin::Folder => None,
        }
    }

    pub fn storage(&self) -> String {
        storage::of(&self.data())
    }

    pub fn log_tail(&self, lines: usize) -> String {
        log_tail(&self.address.log, lines)
    }

    pub async fn explain(&self, diagnostic: Diagnostic) -> Diagnostic {
        // The postmaster writes why a process ended a moment after its client sees it.
        tokio::time::sleep(LOG_DELAY).await;
        let known = Known {
            log: self.log_tail(20),
            disk: storage::room(&self.data()),
            memory_hint: "the system kills a process for want of memory: let the article use \
                          less, or see what else runs on this machine"
                .to_owned(),
            seen: Vec::new(),
        };
        cause::explain(diagnostic, known)
    }

    pub async fn restart(&mut self, settings: &BTreeMap<String, String>) -> Result<(), Failure> {
        check_settings(settings)?;
        self.shut_down(RESTART_STOP_LIMIT).await;
        self.launch(settings).await
    }

    pub async fn stop(mut self) -> Result<(), Failure> {
        self.shut_down(FINAL_STOP_LIMIT).await;
        let folder = self.run.path().to_owned();
        drop(self);
        if folder.exists() {
            return Err(Failure::internal(format!(
                "cannot remove `{}` after the server has stopped",
                folder.display()
            )));
        }
        Ok(())
    }

    fn data(&self) -> PathBuf {
        self.run.path().join(DATA)
    }

    async fn shut_down(&mut self, limit: Duration) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        process.tell(Stop::Fast);
        if !process.wait(limit).await {
            process.tell(Stop::Immediate);
            process.wait(Duration::from_secs(10)).await;
        }
        // Dropping it kills what is left.
    }

    /// Writes the settings and starts the server, and waits until it accepts connections.
    async fn launch(&mut self, more_settings: &BTreeMap<String, String>) -> Result<(), Failure> {
        let data = self.data();
        let mut settings = self.settings.clone();
        settings.extend(
            more_settings
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        let broken = |error: std::io::Error| Failure::io("write the settings in", &data, &error);
        fs::write(data.join(SETTINGS), settings_file(&settings)).map_err(broken)?;
        // What `ALTER SYSTEM` has set since would go before them.
        fs::write(data.join("postgresql.auto.conf"), "").map_err(broken)?;

        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.address.log)
            .map_err(|error| Failure::io("open", &self.address.log, &error))?;
        let log_start = log.metadata().map_or(0, |metadata| metadata.len());
        let copy = log.try_clone().map_err(broken)?;
        let mut command = process::command(&self.binaries.program("postgres"), self.user.as_ref());
        command
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(&self.socket)
            .args(["-p", &PORT.to_string(), "-c", "listen_addresses="])
            .args(["-c", "unix_socket_permissions=0700"])
            .stdout(copy)
            .stderr(log);
        let process = ServerProcess::start(command).map_err(|error| {
            let program = self.binaries.program("postgres");
            let message = format!("cannot start `{}`: {error}", program.display());
            Failure::Engine(Diagnostic::error(message))
        })?;
        let result = self.until_ready(process, &data).await;
        result.map_err(|why| self.start_failure(&why, log_start, &settings))
    }

    /// Keeps the process once its postmaster says that it is ready; else ends it and says why.
    async fn until_ready(&mut self, mut process: ServerProcess, data: &Path) -> Result<(), String> {
        let limit = start_limit();
        let deadline = Instant::now() + limit;
        while !is_ready(data, process.pid()) {
            if let Some(status) = process.ended() {
                return Err(format!("it ended with {status}"));
            }
            if Instant::now() >= deadline {
                return Err(format!("it was not ready within {limit:?}"));
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.process = Some(process);
        Ok(())
    }

    fn start_failure(
        &self,
        why: &str,
        log_start: u64,
        settings: &BTreeMap<String, String>,
    ) -> Failure {
        let bytes = fs::read(&self.address.log).unwrap_or_default();
        let start = bytes.len().min(usize::try_from(log_start).unwrap_or(0));
        let log = String::from_utf8_lossy(&bytes[start..]);
        let complaints = setting_complaints(&log, settings);
        if !complaints.is_empty() {
            return Failure::Article(complaints);
        }
        if let Some(diagnostic) = libraries::explain(&self.binaries.folder.join("bin"), &log) {
            return Failure::Engine(diagnostic);
        }
        let tail = log_tail(&self.address.log, 20);
        Failure::Engine(
            Diagnostic::error(format!("Postgres does not start: {why}"))
                .note(format!("its log ends with:\n{tail}")),
        )
    }
}

/// The C library that the server runs on, which is this system's.
pub(super) fn libc_version() -> String {
    let mut command = std::process::Command::new("getconf");
    command.arg("GNU_LIBC_VERSION");
    match process::finish(&mut command) {
        Ok(finished) if finished.success => finished.output.trim().to_owned(),
        _ => format!("the C library of {}", std::env::consts::OS),
    }
}

fn cache_failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Engine(
        Diagnostic::error(format!(
            "cannot use the cache `{}`: {error}",
            path.display()
        ))
        .hint("name another folder with XDG_CACHE_HOME"),
    )
}

/// Below the run folder where the path is short enough for a socket, else in a folder of its own.
fn socket_directory(run: &RunDirectory, user: Option<&User>) -> std::io::Result<PathBuf> {
    // sun_path with its final zero; macOS has 104 bytes, Linux 108.
    const LIMIT: usize = 103;
    let beside = run.path().join("socket");
    let name_length = "/.s.PGSQL.5432.lock".len();
    // The server takes a list of folders, with commas and quotes.
    let plain = !beside.to_string_lossy().contains([',', '"']);
    let directory = if plain && beside.as_os_str().len() + name_length <= LIMIT {
        fs::create_dir(&beside)?;
        beside
    } else {
        run.directory_elsewhere()?
    };
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700))?;
    if let Some(user) = user {
        user.own(&directory)?;
    }
    Ok(directory)
}

/// The postmaster writes its process id in the first line of its pid file, and its state in the
/// eighth, for pg_ctl.
fn is_ready(data: &Path, pid: u32) -> bool {
    let Ok(text) = fs::read_to_string(data.join("postmaster.pid")) else {
        return false;
    };
    let line = |index| text.lines().nth(index).map_or("", str::trim);
    // A killed server leaves its file behind.
    line(0) == pid.to_string() && line(7) == "ready"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machines_platform_is_embedded() {
        let (own, other) = match std::env::consts::ARCH {
            "x86_64" => ("linux/amd64", "linux/arm64"),
            _ => ("linux/arm64/v8", "linux/amd64"),
        };
        assert!(refuse_platform(None).is_ok());
        assert!(refuse_platform(Some(own)).is_ok());
        let Err(Failure::Engine(problem)) = refuse_platform(Some(other)) else {
            panic!("{other} is run here")
        };
        assert!(problem.message.contains(other), "{problem:?}");
    }

    #[test]
    fn ready_is_what_the_postmaster_says() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("postmaster.pid");
        assert!(!is_ready(data.path(), 1));
        for (state, ready) in [("starting", false), ("ready   ", true), ("stopping", false)] {
            let text = format!("1\n/d\n2\n5432\n/s\n\n  3 4\n{state}\n");
            fs::write(&file, text).unwrap();
            assert_eq!(is_ready(data.path(), 1), ready, "{state}");
            assert!(!is_ready(data.path(), 2));
        }
    }
}
