//! Processes of the server: how they are started, how they are told to stop, and why none of them
//! outlives this program, however that ends.
//!
//! On Linux the kernel sends the server SIGQUIT ("immediate shutdown") when the thread that
//! started it ends; that thread is the main one, on which the runtime runs. Elsewhere there is no
//! such signal: a [`Watcher`] shell waits for the end of a pipe that this program holds open, and
//! sends it then.

use super::user::User;
use crate::engine::system::signal;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A program of Postgres, with nothing of our environment but what finds its libraries. On Linux it
/// gets SIGQUIT when the thread that starts it ends.
pub fn command(program: &Path, user: Option<&User>) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .current_dir("/")
        .stdin(Stdio::null());
    for name in ["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    if let Some(user) = user {
        // Setting the user also clears the groups of root.
        command.uid(user.uid).gid(user.gid);
    }
    die_with_parent(&mut command);
    command
}

/// A server, and whatever sees to it that it dies with us.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    watcher: Option<Watcher>,
    ended: Option<ExitStatus>,
}

/// How a postmaster is told to stop.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// Disconnects everyone, writes everything, ends.
    Fast,
    /// Ends at once; the next start recovers.
    Immediate,
    Kill,
}

impl Stop {
    fn signal(self) -> libc::c_int {
        match self {
            Self::Fast => libc::SIGINT,
            Self::Immediate => libc::SIGQUIT,
            Self::Kill => libc::SIGKILL,
        }
    }
}

impl ServerProcess {
    /// Starts a server in a process group of its own, out of the reach of the terminal's Ctrl-C.
    pub fn start(mut command: Command) -> io::Result<Self> {
        command.process_group(0);
        let child = command.spawn()?;
        let watcher = if cfg!(target_os = "linux") {
            None
        } else {
            Some(Watcher::start(child.id())?)
        };
        Ok(Self {
            child,
            watcher,
            ended: None,
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How the server ended, once it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Does nothing to a server that has ended: its number may be another process's by now.
    pub fn tell(&mut self, stop: Stop) {
        if self.ended().is_none() {
            signal(self.child.id(), stop.signal());
        }
    }

    /// Waits until the server has ended; false when it has not within `limit`.
    pub async fn wait(&mut self, limit: Duration) -> bool {
        let start = Instant::now();
        while self.ended().is_none() {
            if start.elapsed() >= limit {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // It has nothing left to watch.
        self.watcher = None;
        true
    }

    fn wait_blocking(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while self.ended().is_none() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        for (stop, seconds) in [(Stop::Immediate, 5), (Stop::Kill, 5)] {
            self.tell(stop);
            if self.wait_blocking(Duration::from_secs(seconds)) {
                return;
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command) {
    // SAFETY: takes nothing and cannot fail.
    let parent = unsafe { libc::getpid() };
    // SAFETY: what runs between fork and exec only makes system calls. It runs after the change of
    // user, which would take the setting back.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGQUIT as libc::c_ulong) != 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have died before the setting was made.
            if libc::getppid() != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_command: &mut Command) {}

/// A shell that sends SIGQUIT to a process when this program is gone.
#[derive(Debug)]
struct Watcher {
    shell: Child,
}

impl Watcher {
    fn start(pid: u32) -> io::Result<Self> {
        let script = format!("trap '' INT TERM HUP; read line || kill -QUIT {pid}");
        let shell = Command::new("/bin/sh")
            .args(["-c", &script])
            .env_clear()
            .current_dir("/")
            // The write end closes when this value is dropped, or this program dies.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { shell })
    }
}

impl Drop for Watcher {
    /// The server has ended: a line lets the shell end without a signal.
    fn drop(&mut self) {
        use std::io::Write;
        if let Some(mut stdin) = self.shell.stdin.take() {
            let _ = stdin.write_all(b"ended\n");
        }
        let _ = self.shell.wait();
    }
}

/// What a program printed, and whether it succeeded.
pub struct Finished {
    pub success: bool,
    pub interrupted: bool,
    pub output: String,
}

/// Runs a short program to its end.
pub fn finish(command: &mut Command) -> io::Result<Finished> {
    use std::os::unix::process::ExitStatusExt;
    let output = command.output()?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok(Finished {
        success: output.status.success(),
        interrupted: output.status.signal() == Some(libc::SIGINT),
        output: text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that, like a postmaster, ends on SIGQUIT.
    fn sleeper(directory: &Path) -> Command {
        let mut command = Command::new("/bin/sleep");
        command.arg("60").current_dir(directory);
        command
    }

    #[test]
    fn dropping_a_server_ends_its_process() {
        let mut server = ServerProcess::start(sleeper(Path::new("/"))).unwrap();
        let pid = server.child.id();
        assert!(server.ended().is_none());
        drop(server);
        // SAFETY: signal 0 only asks whether the process is there.
        assert_eq!(unsafe { libc::kill(pid as libc::pid_t, 0) }, -1);
    }

    #[test]
    fn a_watcher_ends_the_process_when_its_pipe_closes() {
        let mut child = sleeper(Path::new("/")).spawn().unwrap();
        let mut watcher = Watcher::start(child.id()).unwrap();
        assert!(child.try_wait().unwrap().is_none());
        // What the system does when this program is killed.
        drop(watcher.shell.stdin.take());
        let status = child.wait().unwrap();
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(status.signal(), Some(libc::SIGQUIT));
    }

    #[test]
    fn a_watcher_that_is_no_longer_needed_ends_nothing() {
        let mut child = sleeper(Path::new("/")).spawn().unwrap();
        drop(Watcher::start(child.id()).unwrap());
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
