//! A way to the server in a container whose daemon is on another machine, which needs no port and no
//! network: the daemon is asked to run a program in the container that copies between its standard
//! streams and the server's port there, and the streams come back on the connection to the daemon.

use super::error::full_text;
use bollard::Docker;
use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use futures_util::Stream;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// To the server in one container.
#[derive(Clone, Debug)]
pub struct Tunnel {
    pub docker: Docker,
    pub container: String,
    /// Where the server listens in the container.
    pub port: u16,
    /// How the daemon is reached: whose last words say why a connection broke.
    pub dialer: super::dial::Dialer,
}

/// What the daemon sends at a time.
const PART: usize = 64 << 10;

impl Tunnel {
    /// One more connection to the server.
    pub async fn open(&self) -> io::Result<TunnelStream> {
        let broken = |error: Error| io::Error::other(full_text(&error));
        let words = ["sh", "-c", include_str!("tunnel.sh"), "remeasure"];
        let mut command: Vec<String> = words.map(str::to_owned).to_vec();
        command.push(self.port.to_string());
        let config = ExecConfig {
            cmd: Some(command),
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            ..ExecConfig::default()
        };
        let exec = self
            .docker
            .create_exec(&self.container, config)
            .await
            .map_err(broken)?;
        let options = StartExecOptions {
            output_capacity: Some(PART),
            ..StartExecOptions::default()
        };
        let started = self.docker.start_exec(&exec.id, Some(options));
        match started.await.map_err(broken)? {
            StartExecResults::Attached { output, input } => Ok(TunnelStream {
                output,
                input,
                rest: None,
                errors: String::new(),
                received: Arc::default(),
            }),
            StartExecResults::Detached => Err(io::Error::other("the daemon attaches nothing")),
        }
    }
}

pub struct TunnelStream {
    output: Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>,
    input: Pin<Box<dyn AsyncWrite + Send>>,
    /// What was received and not read yet, and how much of it was.
    rest: Option<(LogOutput, usize)>,
    /// What the program in the container complained of.
    errors: String,
    received: Arc<AtomicU64>,
}

impl TunnelStream {
    /// How many bytes have come so far.
    pub fn received(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.received)
    }

    fn heard(&self) -> bool {
        self.received.load(Ordering::Relaxed) > 0
    }
}

impl AsyncRead for TunnelStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if let Some((part, read)) = &mut self.rest {
                let bytes = &part.as_ref()[*read..];
                let length = bytes.len().min(buffer.remaining());
                buffer.put_slice(&bytes[..length]);
                *read += length;
                if *read == part.as_ref().len() {
                    self.rest = None;
                }
                if length > 0 {
                    self.received.fetch_add(length as u64, Ordering::Relaxed);
                    return Poll::Ready(Ok(()));
                }
                if buffer.remaining() == 0 {
                    return Poll::Ready(Ok(()));
                }
            }
            match ready!(self.output.as_mut().poll_next(context)) {
                Some(Ok(LogOutput::StdErr { message })) => {
                    // Of one program that ends: a few lines.
                    if self.errors.len() < PART {
                        self.errors.push_str(&String::from_utf8_lossy(&message));
                    }
                }
                Some(Ok(part)) => self.rest = Some((part, 0)),
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(full_text(&error)))),
                None if self.heard() || self.errors.trim().is_empty() => {
                    return Poll::Ready(Ok(()));
                }
                None => {
                    let why = self.errors.trim().to_owned();
                    return Poll::Ready(Err(io::Error::other(why)));
                }
            }
        }
    }
}

impl AsyncWrite for TunnelStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.input.as_mut().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.input.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.input.as_mut().poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener};
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};

    /// The script with nothing but these programs at hand; None where one is not on this machine.
    fn script(port: u16, folder: &Path, programs: &[&str]) -> Option<Child> {
        let path = std::env::var_os("PATH")?;
        for program in programs {
            let found = std::env::split_paths(&path).map(|folder| folder.join(program));
            let found: PathBuf = found.into_iter().find(|file| file.exists())?;
            symlink(found, folder.join(program)).ok()?;
        }
        Command::new("/bin/sh")
            .args(["-c", include_str!("tunnel.sh"), "remeasure"])
            .arg(port.to_string())
            .env("PATH", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()
    }

    /// Each with what an image may have: the official ones, those without Perl.
    #[test]
    fn a_script_carries_bytes_and_ends_when_either_side_does() {
        let mut carried = 0;
        for programs in [&["perl"][..], &["bash", "cat"]] {
            for server_ends in [true, false] {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                let port = listener.local_addr().unwrap().port();
                let folder = tempfile::tempdir().unwrap();
                let Some(mut child) = script(port, folder.path(), programs) else {
                    continue;
                };
                let (mut server, _) = listener.accept().unwrap();
                let (mut input, mut output) =
                    (child.stdin.take().unwrap(), child.stdout.take().unwrap());
                // More than any buffer between holds, with every byte there is.
                let sent: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
                let mut received = vec![0; sent.len()];
                let (to_send, mut from) = (sent.clone(), server.try_clone().unwrap());
                let writer = std::thread::spawn(move || {
                    input.write_all(&to_send).unwrap();
                    input
                });
                from.read_exact(&mut received).unwrap();
                assert!(received == sent, "{programs:?}");
                let input = writer.join().unwrap();
                let mut to = server.try_clone().unwrap();
                let to_send = sent.clone();
                let writer = std::thread::spawn(move || to.write_all(&to_send).unwrap());
                output.read_exact(&mut received).unwrap();
                assert!(received == sent, "{programs:?}");
                writer.join().unwrap();

                if server_ends {
                    server.shutdown(Shutdown::Both).unwrap();
                    assert_eq!(output.read(&mut [0]).unwrap(), 0, "{programs:?}");
                } else {
                    drop(input);
                    assert_eq!(server.read(&mut [0]).unwrap(), 0, "{programs:?}");
                    // As the server does then; the clone is the same connection.
                    drop((from, server));
                }
                child.wait().unwrap();
                carried += 1;
            }
        }
        assert!(carried > 0, "neither Perl nor bash is here");
    }
}
