//! Connections to a daemon on another machine: bare, by TLS, or through the user's own `ssh`. Each
//! is a stream of bytes; what is spoken over it is the same everywhere.
//!
//! [`Dialer::to`] reads an address as DOCKER_HOST writes it; [`Dialer::docker`] is a client that
//! speaks to the daemon there; [`Dialer::hold`] keeps a connection for who cannot make one later.

use super::ssh::Ssh;
use super::tls;
use bollard::{API_DEFAULT_VERSION, BollardRequest, Docker};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::future::Future;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// How a daemon on another machine is reached.
#[derive(Clone)]
pub enum Dialer {
    /// Host and port.
    Bare(String),
    Tls {
        authority: String,
        name: ServerName<'static>,
        config: Arc<ClientConfig>,
    },
    Ssh(Arc<Ssh>),
}

/// A peer that is gone is noticed after a minute, also while nothing is said.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_TIMES: u32 = 3;
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// Where the docker client finds what it needs for TLS.
pub struct TlsVariables {
    /// DOCKER_TLS_VERIFY, DOCKER_TLS or DOCKER_CERT_PATH is set.
    pub asked_for: bool,
    /// With ca.pem, cert.pem and key.pem.
    pub folder: PathBuf,
}

impl TlsVariables {
    pub fn of(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let folder = set("DOCKER_CERT_PATH")
            .or_else(|| set("DOCKER_CONFIG"))
            .or_else(|| set("HOME").map(|home| format!("{home}/.docker")))
            .unwrap_or_default();
        Self {
            asked_for: ["DOCKER_TLS_VERIFY", "DOCKER_TLS", "DOCKER_CERT_PATH"]
                .iter()
                .any(|name| set(name).is_some()),
            folder: PathBuf::from(folder),
        }
    }
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Dialer {
    /// Of an address such as `tcp://host:2375` or `ssh://user@host`; None where it is of this
    /// machine.
    pub fn to(host: &str, tls: &TlsVariables) -> Result<Option<Self>, String> {
        match host.split_once("://") {
            Some(("tcp" | "http", authority)) if !tls.asked_for => {
                Ok(Some(Self::Bare(with_port(authority, 2375)?)))
            }
            Some(("tcp" | "http" | "https", authority)) => {
                let authority = with_port(authority, 2376)?;
                let name = host_of(&authority).to_owned();
                Ok(Some(Self::Tls {
                    name: ServerName::try_from(name.clone())
                        .map_err(|_| format!("`{name}` is no name of a host"))?,
                    config: tls::config(&tls.folder)?,
                    authority,
                }))
            }
            Some(("ssh", authority)) => Ok(Some(Self::Ssh(Arc::new(Ssh::to(authority)?)))),
            _ => Ok(None),
        }
    }

    /// What a record says of the way.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bare(_) => "tcp",
            Self::Tls { .. } => "tcp with TLS",
            Self::Ssh(_) => "ssh",
        }
    }

    /// What ends a connection at any time: of ssh, what it said last.
    pub fn last_words(&self) -> Option<String> {
        match self {
            Self::Ssh(ssh) => ssh.last_words(),
            Self::Bare(_) | Self::Tls { .. } => None,
        }
    }

    /// A client of the daemon; an answer may take so many seconds.
    pub fn docker(&self, answer_limit: u64) -> Result<Docker, bollard::errors::Error> {
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(2)
            .build(self.clone());
        Docker::connect_with_custom_transport(
            move |request: BollardRequest| {
                let answer = client.request(request);
                async move { answer.await.map_err(bollard::errors::Error::from) }
            },
            // The name is only for the header: the dialer knows the way.
            Some("http://docker"),
            answer_limit,
            API_DEFAULT_VERSION,
        )
    }

    async fn dial(&self) -> io::Result<Box<dyn Bytes>> {
        Ok(match self {
            Self::Bare(authority) => Box::new(connect(authority).await?),
            Self::Tls {
                authority,
                name,
                config,
            } => {
                let socket = connect(authority).await?;
                let tls = TlsConnector::from(Arc::clone(config));
                Box::new(tls.connect(name.clone(), socket).await?)
            }
            Self::Ssh(ssh) => Box::new(ssh.dial().await?),
        })
    }

    /// A connection with `request` made ready on it several times over, for a process that can only
    /// write what it is given. None: it can connect and write for itself.
    pub async fn hold(&self, request: &[u8], times: u32) -> io::Result<Option<Held>> {
        match self {
            Self::Bare(_) => Ok(None),
            Self::Tls {
                authority,
                name,
                config,
            } => {
                let socket = connect(authority).await?;
                let tls = TlsConnector::from(Arc::clone(config));
                let (socket, mut session) = tls.connect(name.clone(), socket).await?.into_inner();
                let mut parts = Vec::new();
                for _ in 0..times {
                    let mut part = Vec::new();
                    session.writer().write_all(request)?;
                    while session.wants_write() {
                        session.write_tls(&mut part)?;
                    }
                    parts.push(part);
                }
                let socket = socket.into_std()?;
                socket.set_nonblocking(false)?;
                let socket = OwnedFd::from(socket);
                Ok(Some(Held { socket, parts }))
            }
            Self::Ssh(ssh) => Ok(Some(Held {
                socket: ssh.hold().await?,
                parts: (0..times).map(|_| request.to_vec()).collect(),
            })),
        }
    }
}

/// A connection, and what may be written on it, in this order.
pub struct Held {
    pub socket: OwnedFd,
    pub parts: Vec<Vec<u8>>,
}

/// An open connection.
pub trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

async fn connect(authority: &str) -> io::Result<TcpStream> {
    let connecting = tokio::time::timeout(CONNECT_LIMIT, TcpStream::connect(authority));
    let socket = connecting.await.map_err(|_| {
        io::Error::other(format!(
            "it does not answer within {} s",
            CONNECT_LIMIT.as_secs()
        ))
    })??;
    // One statement at a time goes to and fro.
    socket.set_nodelay(true)?;
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_IDLE)
        .with_retries(KEEPALIVE_TIMES);
    socket2::SockRef::from(&socket).set_tcp_keepalive(&keepalive)?;
    Ok(socket)
}

/// `host` or `host:port`, as a place to connect to.
fn with_port(authority: &str, port: u16) -> Result<String, String> {
    let authority = authority.trim_end_matches('/');
    if authority.contains(['/', '@', '?', '#']) {
        return Err(format!("`{authority}` is not a host with a port"));
    }
    let (host, named) = match authority.rsplit_once(':') {
        // The colons of an address of version 6 stand in brackets.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    if host.is_empty() {
        return Err("it names no host".to_owned());
    }
    match named {
        None => Ok(format!("{host}:{port}")),
        Some(named) => match named.parse::<u16>() {
            Ok(named) => Ok(format!("{host}:{named}")),
            Err(_) => Err(format!("`{named}` is no port")),
        },
    }
}

fn host_of(authority: &str) -> &str {
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// As the HTTP client wants to be given connections.
impl tower_service::Service<hyper::Uri> for Dialer {
    type Response = Dialled;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Dialled>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: hyper::Uri) -> Self::Future {
        let dialer = self.clone();
        Box::pin(async move { Ok(Dialled(TokioIo::new(dialer.dial().await?))) })
    }
}

pub struct Dialled(TokioIo<Box<dyn Bytes>>);

impl Connection for Dialled {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl hyper::rt::Read for Dialled {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl hyper::rt::Write for Dialled {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_the_docker_client_reads_it() {
        let plain = TlsVariables {
            asked_for: false,
            folder: PathBuf::new(),
        };
        for (host, expected) in [
            ("tcp://big:2375", Ok(Some("tcp"))),
            ("tcp://big", Ok(Some("tcp"))),
            ("tcp://[::1]:2375/", Ok(Some("tcp"))),
            ("http://10.0.0.1:80", Ok(Some("tcp"))),
            ("ssh://me@big:2222", Ok(Some("ssh"))),
            ("unix:///var/run/docker.sock", Ok(None)),
            ("tcp://", Err("it names no host")),
            ("tcp://:2375", Err("it names no host")),
            ("tcp://big:port", Err("`port` is no port")),
            (
                "tcp://me@big:1",
                Err("`me@big:1` is not a host with a port"),
            ),
        ] {
            let found = Dialer::to(host, &plain);
            let name = found.map(|found| found.map(|dialer| dialer.name()));
            assert_eq!(name, expected.map_err(str::to_owned), "{host}");
        }
        for (authority, port, expected) in [
            ("big", 2375, "big:2375"),
            ("big:1", 2375, "big:1"),
            ("[::1]", 2376, "[::1]:2376"),
            ("[::1]:9/", 2376, "[::1]:9"),
        ] {
            assert_eq!(with_port(authority, port).as_deref(), Ok(expected));
        }
        assert_eq!(host_of("[::1]:9"), "::1");
        assert_eq!(host_of("big:9"), "big");
    }

    #[test]
    fn tls_is_asked_for_as_of_the_docker_client() {
        for (variables, asked_for, folder) in [
            (&[][..], false, "/h/.docker"),
            (&[("DOCKER_TLS_VERIFY", "")][..], false, "/h/.docker"),
            (&[("DOCKER_TLS_VERIFY", "1")][..], true, "/h/.docker"),
            (&[("DOCKER_CERT_PATH", "/c")][..], true, "/c"),
            (
                &[("DOCKER_TLS", "yes"), ("DOCKER_CONFIG", "/d")][..],
                true,
                "/d",
            ),
        ] {
            let of = |name: &str| {
                let set = variables.iter().find(|(set, _)| *set == name);
                let home = (name == "HOME").then(|| "/h".to_owned());
                set.map(|(_, value)| (*value).to_owned()).or(home)
            };
            let found = TlsVariables::of(&of);
            assert_eq!(found.asked_for, asked_for, "{variables:?}");
            assert_eq!(found.folder, PathBuf::from(folder), "{variables:?}");
        }
    }
}
