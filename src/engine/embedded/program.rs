//! psql and pgbench beside the server's own program: run as the user that the server runs as, in a
//! folder of the run, ended with this program.
//!
//! psql never starts another process: the system does not let it, whatever it is told to run. On Linux
//! both are kept to their folder as well, see `confinement`.

use super::process::{ServerProcess, Stop, command};
use super::{Embedded, PORT};
use crate::diagnostic::Diagnostic;
use crate::engine::program::{
    Completed, Content, Invocation, Program, Workspace, end_of, failure, put_file, take_files,
};
use crate::exit_code::Failure;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Long enough to end; a program that waits for the server is not asked twice.
const END: Duration = Duration::from_secs(5);

impl Embedded {
    pub fn workspace(&self) -> Result<Workspace, Failure> {
        let run = self.run.path();
        let make = || {
            let folder = tempfile::Builder::new()
                .prefix("files-")
                .tempdir_in(run)?
                .keep();
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
            if let Some(user) = &self.user {
                user.own(&folder)?;
            }
            Ok(folder)
        };
        let folder = make().map_err(|error| failure("make a folder below", run, &error))?;
        Ok(Workspace { folder })
    }

    pub fn put(
        &self,
        workspace: &Workspace,
        name: &str,
        content: Content<'_>,
    ) -> Result<(), Failure> {
        let put = || {
            for path in put_file(&workspace.folder, name, content)? {
                if let Some(user) = &self.user {
                    user.own(&path)?;
                }
            }
            Ok(())
        };
        put().map_err(|error| failure("put files in", &workspace.folder, &error))
    }

    pub fn take(&self, workspace: &Workspace, prefix: &str) -> Result<Vec<fs::File>, Failure> {
        take_files(&workspace.folder, prefix)
            .map_err(|error| failure("read files in", &workspace.folder, &error))
    }

    pub async fn run(
        &self,
        workspace: &Workspace,
        invocation: &Invocation<'_>,
    ) -> Result<Completed, Failure> {
        let run = self.run.path();
        let file = || tempfile::tempfile_in(run);
        let files = (|| Ok((file()?, file()?)))();
        let (stdout, stderr) = files.map_err(|error| failure("make a file below", run, &error))?;
        let program = self.binaries.program(invocation.program.name());
        let mut command = command(&program, self.user.as_ref());
        command
            .args(invocation.arguments)
            .envs(invocation.environment())
            .env("PGHOST", &self.socket)
            .env("PGPORT", PORT.to_string())
            .current_dir(&workspace.folder);
        if invocation.program == Program::Psql {
            start_no_process(&mut command);
        }
        // What a user's own installation needs of the system is not known.
        #[cfg(target_os = "linux")]
        if matches!(self.binaries.origin, super::Origin::Pinned { .. }) {
            super::confinement::confine(
                &mut command,
                &program,
                &self.binaries.folder,
                &workspace.folder,
            )
            .map_err(|error| failure("confine programs to", &workspace.folder, &error))?;
        }
        let cannot = |error: io::Error| {
            let message = format!("cannot start `{}`: {error}", program.display());
            Failure::Engine(Diagnostic::error(message))
        };
        command.stdout(stdout.try_clone().map_err(cannot)?);
        command.stderr(stderr.try_clone().map_err(cannot)?);
        let mut process = ServerProcess::start(command).map_err(cannot)?;
        let limit = invocation.timeout.unwrap_or(Duration::MAX);
        let timed_out = !process.wait(limit).await;
        if timed_out {
            process.tell(Stop::Immediate);
            if !process.wait(END).await {
                process.tell(Stop::Kill);
                process.wait(END).await;
            }
        }
        let read = |error: io::Error| failure("read files in", run, &error);
        let mut stdout = stdout;
        io::Seek::rewind(&mut stdout).map_err(read)?;
        Ok(Completed {
            status: process.ended().and_then(|status| status.code()),
            timed_out,
            stdout,
            stderr: end_of(stderr).map_err(read)?,
        })
    }

    pub fn discard(&self, workspace: Workspace) {
        // What cannot be removed now goes with the run.
        let _ = fs::remove_dir_all(workspace.folder);
    }
}

/// A process that may have none below it: a shell of psql's fails to start.
fn start_no_process(command: &mut Command) {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: what runs between fork and exec only makes system calls.
    unsafe {
        command.pre_exec(move || {
            for limit in [libc::RLIMIT_NPROC, libc::RLIMIT_CORE] {
                if libc::setrlimit(limit, &none) != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
}
