//! A container that dies with this program: made with everything it does not need taken away,
//! attached to before it starts, and gone when its standard input ends, as it does when this
//! program dies, however that is. The daemon then removes the container and its volume.

use super::endpoint::Daemon;
use super::error::{failure, full_text};
use super::guard::Guard;
use super::image::Image;
use crate::diagnostic::Diagnostic;
use crate::exit_code::Failure;
use bollard::Docker;
use bollard::container::LogOutput;
use bollard::exec::StartExecResults;
use bollard::models::{ContainerCreateBody, ExecConfig, HostConfig, PortBinding};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder,
    UploadToContainerOptionsBuilder,
};
use futures_util::StreamExt;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
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
    pub limits: Limits,
}

/// How the container is reached.
#[derive(Clone, Copy, Debug)]
pub enum Reach<'a> {
    /// Not at all.
    Nowhere,
    /// By a folder of this machine in place of `/var/run/postgresql`.
    Socket(&'a Path),
    /// By a port of the loopback interface.
    Port,
}

/// Where the server listens in the container.
pub const PORT: u16 = 5432;

/// What the container may use; None: whatever there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub memory_bytes: Option<i64>,
    pub nano_cpus: Option<i64>,
    pub shm_bytes: Option<i64>,
}

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

#[derive(Debug, Default)]
struct Printed {
    text: Vec<u8>,
    ended: bool,
}

/// A program to run in a container.
pub struct Exec<'a> {
    pub command: Vec<String>,
    /// `NAME=value`, beside the container's own.
    pub environment: Vec<String>,
    pub folder: Option<String>,
    /// What it reads. Its end is not told: the program has to know how much there is.
    pub input: Option<&'a mut dyn Read>,
}

impl std::fmt::Debug for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Container")
            .field("name", &self.name)
            .finish()
    }
}

/// More processes than a server with a hundred connections and all their workers.
const PROCESSES: i64 = 1024;

impl Container {
    /// Creates the container; nothing in it runs yet.
    pub async fn create(daemon: &Daemon, design: &Design<'_>) -> Result<Self, Failure> {
        let name = name();
        let guard = Guard::over(daemon, &name)
            .map_err(|error| Failure::internal(format!("cannot guard a container: {error}")))?;
        let container = Self {
            docker: daemon.docker.clone(),
            name,
            guard: Some(guard),
            input: None,
            printed: Arc::default(),
            reader: None,
        };
        let options = CreateContainerOptionsBuilder::new()
            .name(&container.name)
            .build();
        daemon
            .docker
            .create_container(Some(options), body(design))
            .await
            .map_err(|error| failure("create a container", &error))?;
        Ok(container)
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
                lock(&printed).text.extend_from_slice(&message);
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

    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&lock(&self.printed).text).into_owned()
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

    /// Runs a program in the container, what it prints going to `stdout` and `stderr`; its status.
    pub async fn exec(
        &self,
        exec: Exec<'_>,
        printed: (&mut File, &mut File),
    ) -> Result<i64, Failure> {
        let said = |error: bollard::errors::Error| failure("run a program", &error);
        let written = |error: std::io::Error| {
            Failure::Engine(Diagnostic::error(format!(
                "a program in the container cannot be talked to: {error}"
            )))
        };
        let config = ExecConfig {
            cmd: Some(exec.command),
            env: Some(exec.environment),
            working_dir: exec.folder,
            attach_stdin: Some(exec.input.is_some()),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            ..ExecConfig::default()
        };
        let created = self
            .docker
            .create_exec(&self.name, config)
            .await
            .map_err(said)?;
        let started = self
            .docker
            .start_exec(&created.id, None)
            .await
            .map_err(said)?;
        if let StartExecResults::Attached {
            mut output,
            mut input,
        } = started
        {
            if let Some(reader) = exec.input {
                let mut part = vec![0_u8; 1 << 16];
                loop {
                    let length = reader.read(&mut part).map_err(written)?;
                    if length == 0 {
                        break;
                    }
                    input.write_all(&part[..length]).await.map_err(written)?;
                }
                input.flush().await.map_err(written)?;
            }
            while let Some(part) = output.next().await {
                let to = match part.map_err(said)? {
                    LogOutput::StdErr { message } => printed.1.write_all(&message),
                    LogOutput::StdOut { message }
                    | LogOutput::Console { message }
                    | LogOutput::StdIn { message } => printed.0.write_all(&message),
                };
                to.map_err(written)?;
            }
        }
        let status = self.docker.inspect_exec(&created.id).await.map_err(said)?;
        Ok(status.exit_code.unwrap_or(-1))
    }

    /// What the kernel granted, read back.
    pub async fn granted(&self) -> Result<Limits, Failure> {
        let found = self
            .docker
            .inspect_container(&self.name, None)
            .await
            .map_err(|error| failure("describe a container", &error))?;
        let host = found.host_config.unwrap_or_default();
        let set = |value: Option<i64>| value.filter(|value| *value > 0);
        Ok(Limits {
            memory_bytes: set(host.memory),
            nano_cpus: set(host.nano_cpus),
            shm_bytes: set(host.shm_size),
        })
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

    /// Whether the kernel ended something in it for want of memory.
    pub async fn ran_out_of_memory(&self) -> bool {
        let found = self.docker.inspect_container(&self.name, None).await;
        found
            .ok()
            .and_then(|found| found.state?.oom_killed)
            .unwrap_or(false)
    }

    /// Ends the container and removes it with its volume.
    pub async fn remove(mut self) -> Result<(), Failure> {
        self.end_input().await;
        let options = RemoveContainerOptionsBuilder::new()
            .force(true)
            .v(true)
            .build();
        let removed = self
            .docker
            .remove_container(&self.name, Some(options))
            .await;
        if let Some(reader) = self.reader.take() {
            reader.abort();
        }
        match removed {
            Ok(()) => {}
            // Its standard input has ended: the daemon is removing it already, or has.
            Err(bollard::errors::Error::DockerResponseServerError {
                status_code: 404 | 409,
                ..
            }) => {}
            Err(error) => return Err(failure("remove a container", &error)),
        }
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
        Ok(())
    }
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
    let binds = match design.reach {
        Reach::Socket(directory) => {
            Some(vec![format!("{}:/var/run/postgresql", directory.display())])
        }
        Reach::Nowhere | Reach::Port => None,
    };
    let mut tmpfs = HashMap::from([("/tmp".to_owned(), "mode=1777".to_owned())]);
    if binds.is_none() {
        tmpfs.insert("/var/run/postgresql".to_owned(), "mode=1777".to_owned());
    }
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
        user: Some("postgres".to_owned()),
        env: Some(words(&["LC_ALL=C", "TZ=UTC"])),
        open_stdin: Some(true),
        stdin_once: Some(true),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        network_disabled: Some(!published),
        exposed_ports: published.then(|| vec![port.clone()]),
        labels: Some(HashMap::from([(
            LABEL.to_owned(),
            super::strays::run_label(),
        )])),
        host_config: Some(HostConfig {
            auto_remove: Some(true),
            network_mode: (!published).then(|| "none".to_owned()),
            port_bindings: published.then(|| HashMap::from([(port, Some(vec![loopback]))])),
            binds,
            tmpfs: Some(tmpfs),
            readonly_rootfs: Some(true),
            cap_drop: Some(words(&["ALL"])),
            security_opt: Some(words(&["no-new-privileges"])),
            pids_limit: Some(PROCESSES),
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
