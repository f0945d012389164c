//! A container that dies with this program: made with everything it does not need taken away,
//! attached to before it starts, and gone when its standard input ends, as it does when this
//! program dies, however that is. The daemon then removes the container and its volume.

mod exec;

pub use exec::Exec;

use super::endpoint::Daemon;
use super::error::{failure, full_text, is_not_found};
use super::guard::Guard;
use super::image::Image;
pub use super::limits::Limits;
use super::place::Inside;
use crate::diagnostic::Diagnostic;
use crate::exit_code::Failure;
use bollard::Docker;
use bollard::container::LogOutput;
use bollard::exec::StartExecResults;
use bollard::models::{
    ContainerCreateBody, ContainerUpdateBody, ExecConfig, HostConfig, Mount, MountType,
    MountVolumeOptions, PortBinding,
};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder,
    UploadToContainerOptionsBuilder,
};
use futures_util::StreamExt;
use std::collections::HashMap;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Set on every container of ours; the value is the run it belongs to.
pub const LABEL: &str = "org.remeasure.run";

/// What a container is made with.
pub struct Design<'a> {
    pub image: &'a Image,
    /// Run by `sh -c`, with the arguments below.
    pub script: &'a str,
    pub arguments: Vec<String>,
    pub reach: Reach<'a>,
    /// A name that the image knows, or `uid:gid`.
    pub user: String,
    pub limits: Limits,
}

/// How the container is reached.
#[derive(Clone, Copy, Debug)]
pub enum Reach<'a> {
    /// Not at all.
    Nowhere,
    /// By a folder of this machine in place of `/var/run/postgresql`; another is mounted in place of
    /// the volume.
    Folders {
        volume: &'a Path,
        at: &'a str,
        socket: &'a Path,
    },
    /// By a port of the loopback interface.
    Port,
}

/// What the first process prints when a server has ended.
const SERVER_ENDED: &str = "remeasure: the server ended with status";

/// A daemon that is removing a container needs no longer.
const GONE_LIMIT: Duration = Duration::from_secs(10);

/// Where the server listens in the container.
pub const PORT: u16 = 5432;

/// A container, from its creation on. Dropping it lets the daemon end and remove it.
pub struct Container {
    docker: Docker,
    name: String,
    /// Removes the container when this program dies.
    guard: Option<Guard>,
    input: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    /// Everything that was printed, and whether the output has ended.
    printed: Arc<Mutex<Printed>>,
    reader: Option<tokio::task::JoinHandle<()>>,
}

/// What has become of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Running,
    Ended {
        status: i64,
        out_of_memory: bool,
    },
    Gone,
    /// Why the daemon does not tell.
    Unknown(String),
}

impl State {
    /// In words; None where there is nothing to tell.
    pub fn told(&self) -> Option<String> {
        match self {
            Self::Running => None,
            Self::Ended {
                status,
                out_of_memory: false,
            } => Some(format!("the container has ended with status {status}")),
            Self::Ended { status, .. } => Some(format!(
                "the container has ended with status {status}, for want of memory"
            )),
            Self::Gone => Some(
                "the container is gone: somebody has removed it, or its daemon has stopped it"
                    .to_owned(),
            ),
            Self::Unknown(why) => Some(format!(
                "the container daemon does not tell of the container any more: {why}"
            )),
        }
    }
}

/// A server that logs every statement may print more than there is memory: the last is kept.
#[derive(Debug, Default)]
struct Printed {
    text: Vec<u8>,
    /// Bytes before `text`, and how often [`SERVER_ENDED`] stood in them.
    forgotten: usize,
    forgotten_ends: usize,
    ended: bool,
}

/// How much of what was printed is kept at least.
const KEPT_OUTPUT: usize = 1 << 20;

impl Printed {
    fn add(&mut self, message: &[u8]) {
        self.text.extend_from_slice(message);
        if self.text.len() < 2 * KEPT_OUTPUT {
            return;
        }
        let line_end = self.text[..KEPT_OUTPUT]
            .iter()
            .rposition(|byte| *byte == b'\n');
        let end = line_end.map_or(KEPT_OUTPUT, |place| place + 1);
        self.forgotten_ends += ends(&self.text[..end]);
        self.forgotten += end;
        self.text.drain(..end);
    }
}

/// How often a server has ended in this part of what was printed.
fn ends(text: &[u8]) -> usize {
    String::from_utf8_lossy(text).matches(SERVER_ENDED).count()
}

impl std::fmt::Debug for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Container")
            .field("name", &self.name)
            .finish()
    }
}

impl Container {
    /// Creates the container; nothing in it runs yet.
    pub async fn create(daemon: &Daemon, design: &Design<'_>) -> Result<Self, Failure> {
        let name = name();
        let guard = Guard::over(daemon, &name).await.map_err(|error| {
            Failure::Engine(Diagnostic::error(format!(
                "a container cannot be guarded: {error}"
            )))
        })?;
        let container = Self {
            docker: daemon.docker.clone(),
            name,
            guard: Some(guard),
            input: None,
            printed: Arc::default(),
            reader: None,
        };
        let options = CreateContainerOptionsBuilder::new().name(&container.name);
        // A daemon that keeps several platforms of an image takes its own, unless told.
        let options = match &design.image.emulated_on {
            Some(_) => options.platform(&design.image.platform),
            None => options,
        }
        .build();
        daemon
            .docker
            .create_container(Some(options), body(design))
            .await
            .map_err(|error| not_created(&error))?;
        Ok(container)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Unpacks a tar, gzipped or not, below a folder.
    pub async fn upload(&self, folder: &str, tar: Vec<u8>) -> Result<(), Failure> {
        let options = UploadToContainerOptionsBuilder::new().path(folder).build();
        self.docker
            .upload_to_container(&self.name, Some(options), bollard::body_full(tar.into()))
            .await
            .map_err(|error| failure("take files", &error))
    }

    /// A tar of a folder.
    pub async fn download(&self, folder: &str) -> Result<Vec<u8>, Failure> {
        let options = bollard::query_parameters::DownloadFromContainerOptionsBuilder::new()
            .path(folder)
            .build();
        let mut stream = self
            .docker
            .download_from_container(&self.name, Some(options));
        let mut tar = Vec::new();
        while let Some(part) = stream.next().await {
            tar.extend_from_slice(&part.map_err(|error| failure("give files", &error))?);
        }
        Ok(tar)
    }

    /// Attaches to the container, then starts it. What it prints goes to the file `log` too.
    pub async fn start(&mut self, log: Option<&Path>) -> Result<(), Failure> {
        let options = AttachContainerOptionsBuilder::new()
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .stream(true)
            .build();
        let attached = self
            .docker
            .attach_container(&self.name, Some(options))
            .await
            .map_err(|error| failure("attach to a container", &error))?;
        self.input = Some(attached.input);
        let printed = Arc::clone(&self.printed);
        let mut output = attached.output;
        let mut log = match log {
            Some(path) => Some(
                std::fs::OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(path)
                    .map_err(|error| Failure::io("open", path, &error))?,
            ),
            None => None,
        };
        self.reader = Some(tokio::spawn(async move {
            while let Some(Ok(part)) = output.next().await {
                let (LogOutput::StdOut { message } | LogOutput::StdErr { message }) = part else {
                    continue;
                };
                if let Some(log) = &mut log {
                    // The log is for people; that it cannot be written stops nothing.
                    let _ = std::io::Write::write_all(log, &message);
                }
                lock(&printed).add(&message);
            }
            lock(&printed).ended = true;
        }));
        self.docker
            .start_container(&self.name, None)
            .await
            .map_err(|error| failure("start a container", &error))
    }

    /// Writes to standard input.
    pub async fn write(&mut self, text: &str) -> Result<(), Failure> {
        let Some(input) = &mut self.input else {
            return Err(Failure::internal(
                "a container that is not started is written to",
            ));
        };
        let written = async {
            input.write_all(text.as_bytes()).await?;
            input.flush().await
        };
        written.await.map_err(|error| {
            Failure::Engine(
                Diagnostic::error(format!("the container does not listen any more: {error}"))
                    .note(format!("it printed:\n{}", self.printed())),
            )
        })
    }

    /// Ends standard input.
    pub async fn end_input(&mut self) {
        if let Some(mut input) = self.input.take() {
            // A container that has ended listens no more.
            let _ = input.shutdown().await;
        }
    }

    /// The end of what was printed.
    pub fn printed(&self) -> String {
        self.printed_since(0)
    }

    /// What was printed after so many bytes, as far as it is kept.
    pub fn printed_since(&self, bytes: usize) -> String {
        let printed = lock(&self.printed);
        let start = bytes.saturating_sub(printed.forgotten);
        let text = printed.text.get(start..).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// How many bytes were printed.
    pub fn printed_bytes(&self) -> usize {
        let printed = lock(&self.printed);
        printed.forgotten + printed.text.len()
    }

    /// How often a server in it has ended.
    pub fn server_ends(&self) -> usize {
        let printed = lock(&self.printed);
        printed.forgotten_ends + ends(&printed.text)
    }

    /// Whether everything in it has ended.
    pub fn has_ended(&self) -> bool {
        lock(&self.printed).ended
    }

    /// Runs a program in the container; what it printed, or why it failed.
    pub async fn run(&self, command: &[&str]) -> Result<String, String> {
        let said = |error: bollard::errors::Error| full_text(&error);
        let config = ExecConfig {
            cmd: Some(command.iter().map(|word| (*word).to_owned()).collect()),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            ..ExecConfig::default()
        };
        let exec = self
            .docker
            .create_exec(&self.name, config)
            .await
            .map_err(said)?;
        let mut text = String::new();
        if let StartExecResults::Attached { mut output, .. } =
            self.docker.start_exec(&exec.id, None).await.map_err(said)?
        {
            while let Some(part) = output.next().await {
                text.push_str(&part.map_err(said)?.to_string());
            }
        }
        let status = self.docker.inspect_exec(&exec.id).await.map_err(said)?;
        match status.exit_code {
            Some(0) => Ok(text),
            code => Err(format!("`{}` ended with {code:?}: {text}", command[0])),
        }
    }

    /// Lets it have so many processes.
    pub async fn allow_processes(&self, processes: i64) -> Result<(), Failure> {
        let update = ContainerUpdateBody {
            pids_limit: Some(processes),
            ..ContainerUpdateBody::default()
        };
        self.docker
            .update_container(&self.name, update)
            .await
            .map_err(|error| failure("let a container have more processes", &error))
    }

    /// The loopback port that the container's own is published at.
    pub async fn published_port(&self) -> Result<u16, Failure> {
        let found = self
            .docker
            .inspect_container(&self.name, None)
            .await
            .map_err(|error| failure("describe a container", &error))?;
        let published = || {
            let ports = found.network_settings?.ports?;
            let bindings = ports.get(&format!("{PORT}/tcp"))?.as_ref()?;
            bindings.first()?.host_port.as_ref()?.parse().ok()
        };
        published().ok_or_else(|| {
            Failure::Engine(Diagnostic::error(
                "the container daemon publishes no port of the container",
            ))
        })
    }

    /// What has become of it, as the daemon says.
    pub async fn state(&self) -> State {
        match self.docker.inspect_container(&self.name, None).await {
            Ok(found) => {
                let state = found.state.unwrap_or_default();
                match state.running {
                    Some(true) => State::Running,
                    _ => State::Ended {
                        status: state.exit_code.unwrap_or_default(),
                        out_of_memory: state.oom_killed.unwrap_or(false),
                    },
                }
            }
            Err(error) if is_not_found(&error) => State::Gone,
            Err(error) => State::Unknown(full_text(&error)),
        }
    }

    /// Whether the kernel has killed a process in it for want of memory, in words.
    pub async fn kills_for_memory(&self) -> Option<String> {
        // Of both versions of control groups: `oom_kill 1`.
        let script = "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control \
                      2>/dev/null; true";
        let events = self.run(&["sh", "-c", script]).await.ok()?;
        let kills = events
            .lines()
            .find_map(|line| line.trim().strip_prefix("oom_kill "))?;
        let kills = kills
            .trim()
            .parse::<u64>()
            .ok()
            .filter(|kills| *kills > 0)?;
        Some(format!(
            "the kernel has killed {kills} of the container's processes for want of memory"
        ))
    }

    /// How full the file system of a folder in it is.
    pub async fn room(&self, folder: &str) -> Option<String> {
        let table = self.run(&["df", "-kP", folder]).await.ok()?;
        let mut words = table.lines().nth(1)?.split_whitespace().skip(1);
        let mut megabytes = || Some(words.next()?.parse::<u64>().ok()? >> 10);
        let (all, _, free) = (megabytes()?, megabytes()?, megabytes()?);
        Some(format!("{free} of {all} MB are free there now"))
    }

    /// Ends the container and removes it with its volume.
    pub async fn remove(mut self) -> Result<(), Failure> {
        self.end_input().await;
        let options = RemoveContainerOptionsBuilder::new()
            .force(true)
            .v(true)
            .build();
        let mut removed = Ok(());
        for _ in 0..ATTEMPTS {
            let options = Some(options.clone());
            removed = self.docker.remove_container(&self.name, options).await;
            if !is_ending(&removed) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        if let Some(reader) = self.reader.take() {
            reader.abort();
        }
        match removed {
            Ok(()) => {}
            // Its standard input has ended: the daemon is removing it already, or has.
            Err(bollard::errors::Error::DockerResponseServerError {
                status_code: 404 | 409,
                ..
            }) => self.until_gone().await,
            Err(error) => return Err(failure("remove a container", &error)),
        }
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
        Ok(())
    }
}

impl Container {
    /// Its folders are taken away next, which it must not write to any more.
    async fn until_gone(&self) {
        let deadline = Instant::now() + GONE_LIMIT;
        while Instant::now() < deadline
            && matches!(self.state().await, State::Running | State::Ended { .. })
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// How often a container is asked to go.
const ATTEMPTS: u32 = 40;

/// Podman refuses to remove what has just ended by itself and is on its way out.
fn is_ending(removed: &Result<(), bollard::errors::Error>) -> bool {
    matches!(
        removed,
        Err(bollard::errors::Error::DockerResponseServerError {
            status_code: 500,
            message,
        }) if message.contains("container state improper")
    )
}

impl Drop for Container {
    fn drop(&mut self) {
        // Both halves of the connection have to go for the daemon to notice.
        self.input = None;
        if let Some(reader) = self.reader.take() {
            reader.abort();
        }
    }
}

/// One that no other container has, also not one of another machine's run on the same daemon.
fn name() -> String {
    use std::hash::{BuildHasher, Hasher};
    let random = std::hash::RandomState::new().build_hasher().finish();
    format!("remeasure-{}-{random:016x}", std::process::id())
}

fn not_created(error: &bollard::errors::Error) -> Failure {
    match failure("create a container", error) {
        Failure::Engine(problem) if problem.message.contains("source path does not exist") => {
            Failure::Engine(problem.hint(
                "the daemon does not see this machine's folders, as where this program runs in a \
                 container itself: use `--engine embedded`",
            ))
        }
        other => other,
    }
}

fn lock(printed: &Mutex<Printed>) -> std::sync::MutexGuard<'_, Printed> {
    printed.lock().unwrap_or_else(PoisonError::into_inner)
}

fn body(design: &Design<'_>) -> ContainerCreateBody {
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let mut entrypoint = words(&["sh", "-c", design.script, "remeasure"]);
    entrypoint.extend(design.arguments.iter().cloned());
    let labels = HashMap::from([(LABEL.to_owned(), super::strays::run_label())]);
    let mut tmpfs = HashMap::from([("/tmp".to_owned(), "mode=1777".to_owned())]);
    let mut security = words(&["no-new-privileges"]);
    let mounts = if let Reach::Folders { volume, at, socket } = design.reach {
        // Else a system with SELinux lets no container into folders of ours.
        security.push("label=disable".to_owned());
        vec![folder(volume, at), folder(socket, "/var/run/postgresql")]
    } else {
        tmpfs.insert("/var/run/postgresql".to_owned(), "mode=1777".to_owned());
        vec![volume(design.image, labels.clone())]
    };
    let limits = &design.limits;
    let published = matches!(design.reach, Reach::Port);
    let port = format!("{PORT}/tcp");
    let loopback = PortBinding {
        host_ip: Some("127.0.0.1".to_owned()),
        // One that is free.
        host_port: Some("0".to_owned()),
    };
    ContainerCreateBody {
        image: Some(design.image.reference.clone()),
        entrypoint: Some(entrypoint),
        cmd: Some(Vec::new()),
        // The official image allows any user; with this one it needs no privilege at all.
        user: Some(design.user.clone()),
        env: Some(words(&["LC_ALL=C", "TZ=UTC"])),
        open_stdin: Some(true),
        stdin_once: Some(true),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        network_disabled: Some(!published),
        exposed_ports: published.then(|| vec![port.clone()]),
        labels: Some(labels),
        host_config: Some(HostConfig {
            auto_remove: Some(true),
            network_mode: (!published).then(|| "none".to_owned()),
            port_bindings: published.then(|| HashMap::from([(port, Some(vec![loopback]))])),
            mounts: Some(mounts),
            tmpfs: Some(tmpfs),
            readonly_rootfs: Some(true),
            cap_drop: Some(words(&["ALL"])),
            security_opt: Some(security),
            pids_limit: limits.processes,
            memory: limits.memory_bytes,
            // As much as the memory: no swap.
            memory_swap: limits.memory_bytes,
            nano_cpus: limits.nano_cpus,
            shm_size: limits.shm_bytes,
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

fn folder(source: &Path, target: &str) -> Mount {
    Mount {
        source: Some(source.display().to_string()),
        target: Some(target.to_owned()),
        typ: Some(MountType::BIND),
        ..Mount::default()
    }
}

/// In place of the image's own volume, so that it bears our label.
fn volume(image: &Image, labels: HashMap<String, String>) -> Mount {
    Mount {
        target: Some(Inside::of(image).folder),
        typ: Some(MountType::VOLUME),
        volume_options: Some(MountVolumeOptions {
            labels: Some(labels),
            ..MountVolumeOptions::default()
        }),
        ..Mount::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_what_is_printed_is_kept_and_every_end_is_counted() {
        let container = Container {
            docker: Docker::connect_with_http(
                "http://127.0.0.1:1",
                1,
                bollard::API_DEFAULT_VERSION,
            )
            .unwrap(),
            name: String::new(),
            guard: None,
            input: None,
            printed: Arc::default(),
            reader: None,
        };
        let line = format!("{}\n", "x".repeat(999));
        for number in 0..10_000 {
            if number % 1000 == 0 {
                lock(&container.printed).add(format!("{SERVER_ENDED} 0\n").as_bytes());
            }
            lock(&container.printed).add(line.as_bytes());
        }
        assert_eq!(container.server_ends(), 10);
        let kept = container.printed();
        assert!((KEPT_OUTPUT..=2 * KEPT_OUTPUT).contains(&kept.len()));
        let all = container.printed_bytes();
        assert_eq!(all, 10_000_000 + 10 * (SERVER_ENDED.len() + 3));
        assert_eq!(container.printed_since(all - 1000), line);
        assert_eq!(container.printed_since(all), "");
        assert_eq!(container.printed_since(all + 1), "");
    }
}
