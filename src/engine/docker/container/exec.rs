//! A program beside the server, in its container.

use super::Container;
use crate::diagnostic::Diagnostic;
use crate::engine::docker::error::failure;
use crate::exit_code::Failure;
use bollard::container::LogOutput;
use bollard::exec::StartExecResults;
use bollard::models::ExecConfig;
use futures_util::StreamExt;
use std::fs::File;
use std::io::{Read, Write};
use tokio::io::AsyncWriteExt;

/// A program to run in a container.
pub struct Exec<'a> {
    pub command: Vec<String>,
    /// `NAME=value`, beside the container's own.
    pub environment: Vec<String>,
    pub folder: Option<String>,
    /// What it reads. Its end is not told: the program has to know how much there is.
    pub input: Option<&'a mut dyn Read>,
}

impl Container {
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
}
