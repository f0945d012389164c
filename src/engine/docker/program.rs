//! psql and pgbench in the container of the server: they reach it by its socket there, and end with
//! the container.

use super::DockerServer;
use super::container::Exec;
use crate::diagnostic::Diagnostic;
use crate::engine::program::{Completed, Content, Invocation, Workspace, end_of, failure};
use crate::exit_code::Failure;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;
use std::time::Duration;

/// Says its process id, so that it can be ended, and becomes the program.
const START: &str = "echo $$ > \"$0\" && exec \"$@\"";
/// As long as a program that is killed takes to end.
const END: Duration = Duration::from_secs(10);
const PID: &str = ".remeasure-pid";

impl DockerServer {
    pub async fn workspace(&self) -> Result<Workspace, Failure> {
        let script = "umask 077 && mktemp -d /tmp/files-XXXXXX";
        let (folder, _) = self.shell(script, &[], None).await?;
        let mut name = String::new();
        let read = { folder }.read_to_string(&mut name);
        read.map_err(|error| failure("read the name of", "/tmp".as_ref(), &error))?;
        Ok(Workspace {
            folder: PathBuf::from(name.trim()),
        })
    }

    pub async fn put(
        &self,
        workspace: &Workspace,
        name: &str,
        content: Content<'_>,
    ) -> Result<(), Failure> {
        let unread = |error: io::Error| failure("read a file for", &workspace.folder, &error);
        let (mut bytes, mut file);
        let (length, reader): (u64, &mut dyn Read) = match content {
            Content::Bytes(content) => {
                bytes = content;
                (content.len() as u64, &mut bytes)
            }
            Content::File(path) => {
                file = File::open(path).map_err(unread)?;
                (file.metadata().map_err(unread)?.len(), &mut file)
            }
        };
        let path = workspace.folder.join(name);
        let above = path
            .parent()
            .unwrap_or(&workspace.folder)
            .display()
            .to_string();
        // As much as there is: the end of its input would not be told.
        let script = "mkdir -p \"$1\" && head -c \"$3\" > \"$2\"";
        let arguments = [above, path.display().to_string(), length.to_string()];
        self.shell(script, &arguments, Some(reader)).await.map(drop)
    }

    pub async fn take(&self, workspace: &Workspace, prefix: &str) -> Result<Vec<File>, Failure> {
        let script =
            "for file in \"$1\"*; do [ -f \"$file\" ] && cat \"$file\" && rm \"$file\"; done; true";
        let pattern = workspace.folder.join(prefix).display().to_string();
        let (files, _) = self.shell(script, &[pattern], None).await?;
        Ok(vec![files])
    }

    pub async fn run(
        &self,
        workspace: &Workspace,
        invocation: &Invocation<'_>,
    ) -> Result<Completed, Failure> {
        let folder = workspace.folder.display().to_string();
        let mut command: Vec<String> = ["sh", "-c", START, PID, invocation.program.name()]
            .map(str::to_owned)
            .into();
        command.extend(invocation.arguments.iter().cloned());
        let environment = invocation
            .environment()
            .into_iter()
            .chain([("PGHOST".to_owned(), "/var/run/postgresql".to_owned())])
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let exec = Exec {
            command,
            environment,
            folder: Some(folder.clone()),
            input: None,
        };
        let unread =
            |error: io::Error| failure("read what was printed in", &workspace.folder, &error);
        let (mut stdout, mut stderr) = (
            tempfile::tempfile().map_err(unread)?,
            tempfile::tempfile().map_err(unread)?,
        );
        let (status, timed_out) = {
            let running = self.container()?.exec(exec, (&mut stdout, &mut stderr));
            let mut running = std::pin::pin!(running);
            let limit = invocation.timeout.unwrap_or(Duration::MAX);
            match tokio::time::timeout(limit, &mut running).await {
                Ok(status) => (Some(status?), false),
                Err(_) => {
                    let kill = format!("kill -9 $(cat {folder}/{PID})");
                    self.shell(&kill, &[], None).await?;
                    // It is dead; that its output does not end is the daemon's matter.
                    let _ = tokio::time::timeout(END, &mut running).await;
                    (None, true)
                }
            }
        };
        stdout.rewind().map_err(unread)?;
        Ok(Completed {
            status: status.and_then(|status| i32::try_from(status).ok()),
            timed_out,
            stdout,
            stderr: end_of(stderr).map_err(unread)?,
        })
    }

    pub async fn discard(&self, workspace: Workspace) {
        // What cannot be removed goes with the container.
        let folder = workspace.folder.display().to_string();
        let _ = self.shell("rm -rf \"$1\"", &[folder], None).await;
    }

    /// A few commands of the tool's own; what they print.
    async fn shell(
        &self,
        script: &str,
        arguments: &[String],
        input: Option<&mut dyn Read>,
    ) -> Result<(File, String), Failure> {
        let mut command: Vec<String> = ["sh", "-c", script, "sh"].map(str::to_owned).into();
        command.extend(arguments.iter().cloned());
        let unread =
            |error: io::Error| failure("read what was printed in", "/tmp".as_ref(), &error);
        let (mut stdout, mut stderr) = (
            tempfile::tempfile().map_err(unread)?,
            tempfile::tempfile().map_err(unread)?,
        );
        let exec = Exec {
            command,
            environment: Vec::new(),
            folder: None,
            input,
        };
        let status = self
            .container()?
            .exec(exec, (&mut stdout, &mut stderr))
            .await?;
        stdout.rewind().map_err(unread)?;
        let said = end_of(stderr).map_err(unread)?;
        if status == 0 {
            return Ok((stdout, said));
        }
        Err(Failure::Engine(
            Diagnostic::error(format!(
                "`{script}` ended with status {status} in the container"
            ))
            .note(said.trim()),
        ))
    }
}
