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
