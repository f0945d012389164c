//! A daemon on another machine through the user's own `ssh`, with its configuration, keys and agent:
//! `docker system dial-stdio` there copies between its standard streams and the daemon, as the docker
//! client has it done.
//!
//! One login is shared by all connections. Where the other machine says where its daemon listens, and
//! lets sockets be forwarded, a connection is one more channel of that login and costs a round trip;
//! else it runs `dial-stdio` once more, and logs in once more where a login allows few sessions.
//! Nothing is ever asked of the terminal.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::OnceCell;

pub struct Ssh {
    destination: Destination,
    /// The shared login; None inside where `ssh` cannot share.
    login: OnceCell<Option<Login>>,
    /// That have not been waited for.
    children: Mutex<Vec<Child>>,
    last_words: Arc<Mutex<Option<String>>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Destination {
    user: Option<String>,
    host: String,
    port: Option<u16>,
    /// The daemon's socket there, where it is not the usual one.
    socket: Option<String>,
}

/// As long as this is there others may share it.
struct Login {
    folder: tempfile::TempDir,
    /// The far end ends when this does.
    open: UnixStream,
    child: Option<Child>,
    errors: Arc<File>,
    /// A socket here that leads to the daemon's there.
    forwarded: Option<PathBuf>,
}

const SOCKET: &str = "remeasure: socket ";
const READY: &str = "remeasure: ready";
/// Says where the daemon there listens, and ends when its standard input does.
const LOG_IN: &str = "exec sh -c '\
    (docker context inspect --format \"{{.Endpoints.docker.Host}}\" || \
     podman info --format \"{{.Host.RemoteSocket.Path}}\") 2>/dev/null | \
    sed \"s/^/remeasure: socket /\"; echo remeasure: ready; exec cat > /dev/null'";
/// Asking for nothing, ssh answers or gives up within its own 30 s.
const LOGIN_LIMIT: Duration = Duration::from_secs(45);

impl Ssh {
    /// `[user@]host[:port][/path/of/a/socket]`
    pub fn to(authority: &str) -> Result<Self, String> {
        Ok(Self {
            destination: Destination::parse(authority)?,
            login: OnceCell::new(),
            children: Mutex::default(),
            last_words: Arc::default(),
        })
    }

    pub fn last_words(&self) -> Option<String> {
        lock(&self.last_words).clone()
    }

    pub async fn dial(&self) -> io::Result<SshStream> {
        let (socket, errors) = self.open().await?;
        Ok(SshStream {
            socket: asynchronous(socket)?,
            errors,
            heard: false,
            last_words: Arc::clone(&self.last_words),
        })
    }

    /// A connection for another process: it lives as long as the descriptor does.
    pub async fn hold(&self) -> io::Result<OwnedFd> {
        Ok(self.open().await?.0.into())
    }

    async fn open(&self) -> io::Result<(StdUnixStream, Arc<File>)> {
        let login = self.login.get_or_try_init(|| self.log_in()).await?;
        if let Some(login) = login
            && let Some(forwarded) = &login.forwarded
        {
            let socket = StdUnixStream::connect(forwarded).map_err(|error| {
                let said = words(&login.errors).unwrap_or_else(|| error.to_string());
                io::Error::other(format!("ssh: {said}"))
            })?;
            return Ok((socket, Arc::clone(&login.errors)));
        }
        let shared = login.as_ref().map(|login| login.folder.path());
        let mut command = self.destination.command(shared, false);
        command.arg(self.destination.dial_command());
        let (child, socket, errors) = spawn(command)?;
        let mut children = lock(&self.children);
        children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        children.push(child);
        Ok((socket, errors))
    }

    async fn log_in(&self) -> io::Result<Option<Login>> {
        let folder = tempfile::Builder::new().prefix("ssh").tempdir()?;
        let mut command = self.destination.command(Some(folder.path()), true);
        command.arg(LOG_IN);
        let (child, socket, errors) = spawn(command)?;
        let mut login = Login {
            folder,
            open: asynchronous(socket)?,
            child: Some(child),
            errors,
            forwarded: None,
        };
        let told = tokio::time::timeout(LOGIN_LIMIT, told(&mut login.open)).await;
        match told {
            Ok(Some(told)) => {
                let listens = self.destination.socket.as_deref();
                login.forward(listens.or_else(|| socket_in(&told))).await;
                Ok(Some(login))
            }
            Ok(None) => {
                let ended = login.child.take().map(|mut child| child.wait());
                let why = words(&login.errors).unwrap_or_else(|| match ended {
                    Some(Ok(status)) => format!("it ended with {status}"),
                    _ => "it ended without a word".to_owned(),
                });
                Err(io::Error::other(format!("ssh: {why}")))
            }
            // A login that allows nothing but the daemon is one for each connection.
            Err(_) => Ok(None),
        }
    }
}

impl Login {
    /// Where sockets may be forwarded and a daemon answers: without a process for each connection.
    async fn forward(&mut self, there: Option<&str>) {
        let Some(there) = there else { return };
        let here = self.folder.path().join("d");
        let forwarded = Command::new("ssh")
            // The login has been through the user's configuration.
            .args(["-F", "/dev/null", "-o", "LogLevel=QUIET", "-S"])
            .arg(self.folder.path().join("s"))
            .args(["-O", "forward", "-L"])
            .arg(format!("{}:{there}", here.display()))
            .args(["--", "there"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .status();
        let answers = tokio::time::timeout(LOGIN_LIMIT, answers(&here));
        if forwarded.is_ok_and(|status| status.success()) && answers.await.unwrap_or(false) {
            self.forwarded = Some(here);
        }
    }
}

/// Whether a daemon is at the other end.
async fn answers(socket: &Path) -> bool {
    let ask = async || -> io::Result<bool> {
        let mut socket = UnixStream::connect(socket).await?;
        socket
            .write_all(b"GET /_ping HTTP/1.1\r\nHost: docker\r\nConnection: close\r\n\r\n")
            .await?;
        let mut answer = [0; 5];
        socket.read_exact(&mut answer).await?;
        Ok(answer == *b"HTTP/")
    };
    ask().await.unwrap_or(false)
}

/// Where a daemon listens, if that is a socket.
fn socket_in(told: &str) -> Option<&str> {
    let line = told.lines().find_map(|line| line.strip_prefix(SOCKET))?;
    let path = line.trim().trim_start_matches("unix://");
    path.starts_with('/').then_some(path)
}

fn asynchronous(socket: StdUnixStream) -> io::Result<UnixStream> {
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

impl Drop for Login {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        // It goes on until those that share it have ended; the guard of a container may be one.
        std::thread::spawn(move || child.wait());
    }
}

impl Destination {
    fn parse(authority: &str) -> Result<Self, String> {
        if authority.contains(['?', '#']) {
            return Err("an address of ssh has no query".to_owned());
        }
        let (authority, socket) = match authority.split_once('/') {
            Some((authority, "")) => (authority, None),
            Some((authority, path)) => (authority, Some(format!("/{path}"))),
            None => (authority, None),
        };
        if socket
            .as_ref()
            .is_some_and(|path| path.contains(['\'', '\\']))
        {
            return Err("the path of its socket has a quote or a backslash".to_owned());
        }
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        if user.is_some_and(|user| user.contains(':')) {
            return Err("a password has no place in an address: use a key".to_owned());
        }
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (place, None),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || user == Some("") {
            return Err("it names no host".to_owned());
        }
        let port = match port.map(str::parse) {
            None => None,
            Some(Ok(port)) => Some(port),
            Some(Err(_)) => return Err(format!("`{}` is no port", port.unwrap_or_default())),
        };
        Ok(Self {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
            socket,
        })
    }

    /// `ssh` up to the host. `shared`: the folder of the login that is shared, and `first` the one
    /// that makes it.
    fn command(&self, shared: Option<&Path>, first: bool) -> Command {
        let mut command = Command::new("ssh");
        for option in [
            // Fails where it would ask.
            "BatchMode=yes",
            "ConnectTimeout=30",
            // A peer that is gone is noticed after a minute.
            "ServerAliveInterval=15",
            "ServerAliveCountMax=4",
            "LogLevel=ERROR",
            // Those of the user's configuration are for the user's own logins.
            "ClearAllForwardings=yes",
            "RemoteCommand=none",
        ] {
            command.args(["-o", option]);
        }
        if let Some(folder) = shared {
            let master = if first { "yes" } else { "no" };
            command
                .args(["-o", &format!("ControlMaster={master}")])
                .args(["-o", "ControlPersist=no"])
                .arg("-S")
                .arg(folder.join("s"));
        }
        command.arg("-T");
        if let Some(user) = &self.user {
            command.args(["-l", user]);
        }
        if let Some(port) = self.port {
            command.args(["-p", &port.to_string()]);
        }
        command.args(["--", &self.host]);
        command
    }

    /// For the other machine's shell: Podman's program does the same where Docker's is not there.
    fn dial_command(&self) -> String {
        let (docker, podman) = match &self.socket {
            None => (String::new(), String::new()),
            Some(path) => {
                // Within quotes of the same kind; the path has none.
                let quoted = format!("'\\''unix://{path}'\\''");
                (format!(" --host {quoted}"), format!(" --url {quoted}"))
            }
        };
        format!(
            "exec sh -c 'if command -v docker >/dev/null; then exec docker{docker} system dial-stdio; \
             else exec podman{podman} system dial-stdio; fi'"
        )
    }
}

/// Standard input and output are one socket, whose other end is ours. The command goes, as it keeps
/// the far end open.
fn spawn(mut command: Command) -> io::Result<(Child, StdUnixStream, Arc<File>)> {
    let (ours, theirs) = StdUnixStream::pair()?;
    let errors = tempfile::tempfile()?;
    let child = command
        .stdin(Stdio::from(OwnedFd::from(theirs.try_clone()?)))
        .stdout(Stdio::from(OwnedFd::from(theirs)))
        .stderr(errors.try_clone()?)
        // Ctrl-C is for this program, which has to clean up through it.
        .process_group(0)
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::other("there is no program `ssh` here"),
            _ => error,
        })?;
    Ok((child, ours, Arc::new(errors)))
}

/// What a login prints until it is ready; None: it ended.
async fn told(socket: &mut UnixStream) -> Option<String> {
    let mut said = Vec::new();
    loop {
        let mut part = [0; 256];
        match socket.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            // What the shell there prints when it starts goes before it.
            Ok(length) => said.extend_from_slice(&part[..length]),
        }
        let text = String::from_utf8_lossy(&said);
        if text.contains(READY) {
            return Some(text.into_owned());
        }
    }
}

/// What a process has written to a file that it shares with us: its place in it is not touched.
fn words(errors: &File) -> Option<String> {
    let mut bytes = vec![0; 4096];
    let length = errors.read_at(&mut bytes, 0).ok()?;
    let text = String::from_utf8_lossy(&bytes[..length]);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection by one `ssh`, which ends when this is dropped.
pub struct SshStream {
    socket: UnixStream,
    /// What ssh prints on standard error.
    errors: Arc<File>,
    heard: bool,
    last_words: Arc<Mutex<Option<String>>>,
}

impl AsyncRead for SshStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.socket).poll_read(context, buffer));
        if read.is_ok() && buffer.filled().len() > before {
            self.heard = true;
            return Poll::Ready(Ok(()));
        }
        // An end, also where ssh has not read all that was written.
        let said = words(&self.errors);
        lock(&self.last_words).clone_from(&said);
        match said {
            // The end of a login that never was.
            Some(said) if !self.heard => Poll::Ready(Err(io::Error::other(format!("ssh: {said}")))),
            _ => Poll::Ready(read),
        }
    }
}

impl AsyncWrite for SshStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_user_host_port_and_socket() {
        let read = |text: &str| {
            Destination::parse(text).map(|found| {
                let port = found.port.map(|port| port.to_string()).unwrap_or_default();
                [
                    found.user.unwrap_or_default(),
                    found.host,
                    port,
                    found.socket.unwrap_or_default(),
                ]
                .join(" ")
            })
        };
        for (text, expected) in [
            ("big", Ok(" big  ")),
            ("me@big:2222", Ok("me big 2222 ")),
            ("me@big/", Ok("me big  ")),
            (
                "me@big/run/user/7/podman/podman.sock",
                Ok("me big  /run/user/7/podman/podman.sock"),
            ),
            ("[::1]:22", Ok(" ::1 22 ")),
            ("", Err("it names no host")),
            ("@big", Err("it names no host")),
            (
                "me:secret@big",
                Err("a password has no place in an address: use a key"),
            ),
            ("big:x", Err("`x` is no port")),
            (
                "big/it's",
                Err("the path of its socket has a quote or a backslash"),
            ),
            ("big?a=b", Err("an address of ssh has no query")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn where_a_daemon_listens_is_read_among_other_words() {
        for (told, expected) in [
            (
                "Welcome!\nremeasure: socket unix:///var/run/docker.sock\nremeasure: ready\n",
                Some("/var/run/docker.sock"),
            ),
            (
                "remeasure: socket /run/podman/podman.sock\n",
                Some("/run/podman/podman.sock"),
            ),
            ("remeasure: socket tcp://other:2375\n", None),
            ("remeasure: socket \nremeasure: ready\n", None),
            ("remeasure: ready\n", None),
        ] {
            assert_eq!(socket_in(told), expected, "{told}");
        }
    }

    #[test]
    fn ssh_asks_for_nothing_and_takes_no_host_for_an_option() {
        let destination = Destination::parse("me@-oProxyCommand=x:2222").unwrap();
        let command = destination.command(Some(Path::new("/t")), false);
        let words: Vec<_> = command
            .get_args()
            .map(|word| word.to_str().unwrap())
            .collect();
        assert!(words.contains(&"BatchMode=yes"));
        assert!(words.ends_with(&["-l", "me", "-p", "2222", "--", "-oProxyCommand=x"]));
    }

    #[test]
    fn a_socket_there_is_quoted_for_its_shell_and_for_ours() {
        let there = |text: &str| Destination::parse(text).unwrap().dial_command();
        assert!(there("big").contains("exec docker system dial-stdio;"));
        let quoted = there("big/run/a b.sock");
        let printed = Command::new("sh")
            .args([
                "-c",
                &quoted
                    .replace("command -v docker >/dev/null", "true")
                    .replace("exec docker", "printf %s,"),
            ])
            .output()
            .unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap();
        assert_eq!(printed, "--host,unix:///run/a b.sock,system,dial-stdio,");
    }
}
