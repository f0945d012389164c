//! A process beside ours that outlives it, if need be, to remove a container.
//!
//! A container that is created and not yet attached to would stay behind when this program is
//! killed at that moment. So before it is created a copy of this process is forked that waits for
//! the end of a pipe. When the pipe ends without a word, this program is dead, and the guard asks
//! the daemon to remove the container of that name. Between fork and end the guard only makes
//! system calls: it may not allocate, and runs no code of anybody's.

use super::dial::{Dialer, Held};
use super::endpoint::Daemon;
use std::io::{self, Write};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6, ToSocketAddrs};
use std::os::fd::AsRawFd;

/// Dropped without [`Guard::dismiss`], it removes the container.
#[derive(Debug)]
pub struct Guard {
    pipe: Option<io::PipeWriter>,
    pid: libc::pid_t,
}

/// How often the guard asks, a tenth of a second apart: the daemon may still be creating what is
/// to be removed.
const ATTEMPTS: u32 = 20;
static PAUSE: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

impl Guard {
    pub async fn over(daemon: &Daemon, container: &str) -> io::Result<Self> {
        let request = format!(
            "DELETE /v{}/containers/{container}?force=true&v=true HTTP/1.1\r\n\
             Host: docker\r\nContent-Length: 0\r\n\r\n",
            daemon.docker.client_version()
        );
        let held = match &daemon.dialer {
            Some(dialer) => dialer.hold(request.as_bytes(), ATTEMPTS).await?,
            None => None,
        };
        let way = match held {
            Some(held) => Way::Held(held),
            None => {
                let address = match &daemon.dialer {
                    Some(Dialer::Bare(authority)) => Address::of(&format!("tcp://{authority}"))?,
                    _ => Address::of(&daemon.endpoint.host)?,
                };
                Way::Asked(address, request.into_bytes())
            }
        };
        let (read, write) = io::pipe()?;
        // SAFETY: the child runs nothing but system calls, and never returns.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => unsafe { watch(read.as_raw_fd(), &way) },
            pid => Ok(Self {
                pipe: Some(write),
                pid,
            }),
        }
    }

    /// The container is gone: there is nothing left to guard.
    pub fn dismiss(mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            let _ = pipe.write_all(b"gone");
        }
    }
}

impl Drop for Guard {
    /// Not waited for here: the daemon may want to see the connection to the container closed before
    /// it answers the guard, and that is done by the thread that drops this.
    fn drop(&mut self) {
        drop(self.pipe.take());
        let pid = self.pid;
        // SAFETY: waits for a child of ours.
        std::thread::spawn(move || unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) });
    }
}

/// How the guard tells the daemon.
enum Way {
    /// It connects, each time, and reads the answer.
    Asked(Address, Vec<u8>),
    /// Through TLS or ssh it cannot connect by system calls alone: what it writes is made ready.
    Held(Held),
}

/// Where the daemon listens, as the system's calls take it.
enum Address {
    Unix(libc::sockaddr_un),
    Internet4(libc::sockaddr_in),
    Internet6(libc::sockaddr_in6),
}

impl Address {
    fn of(host: &str) -> io::Result<Self> {
        match host.split_once("://") {
            Some(("unix", path)) => unix_address(path).map(Self::Unix),
            Some((_, authority)) => {
                let mut found = authority.trim_end_matches('/').to_socket_addrs()?;
                let none = || io::Error::other(format!("`{authority}` has no address"));
                Ok(match found.next().ok_or_else(none)? {
                    SocketAddr::V4(found) => Self::Internet4(internet4(found)),
                    SocketAddr::V6(found) => Self::Internet6(internet6(found)),
                })
            }
            None => Err(io::Error::other(format!("`{host}` is no address"))),
        }
    }

    fn parts(&self) -> (libc::c_int, *const libc::sockaddr, libc::socklen_t) {
        fn part<T>(family: libc::c_int, of: &T) -> (libc::c_int, *const libc::sockaddr, u32) {
            (family, (&raw const *of).cast(), size_of::<T>() as u32)
        }
        match self {
            Self::Unix(address) => part(libc::AF_UNIX, address),
            Self::Internet4(address) => part(libc::AF_INET, address),
            Self::Internet6(address) => part(libc::AF_INET6, address),
        }
    }
}

fn internet4(found: SocketAddrV4) -> libc::sockaddr_in {
    // SAFETY: all zeros is an address.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as libc::sa_family_t;
    address.sin_port = found.port().to_be();
    address.sin_addr.s_addr = u32::from_ne_bytes(found.ip().octets());
    address
}

fn internet6(found: SocketAddrV6) -> libc::sockaddr_in6 {
    // SAFETY: all zeros is an address.
    let mut address: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
    address.sin6_family = libc::AF_INET6 as libc::sa_family_t;
    address.sin6_port = found.port().to_be();
    address.sin6_addr.s6_addr = found.ip().octets();
    address
}

fn unix_address(path: &str) -> io::Result<libc::sockaddr_un> {
    // SAFETY: all zeros is an address without a path.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    if path.len() >= address.sun_path.len() {
        return Err(io::Error::other(format!(
            "the path `{path}` is too long for a socket"
        )));
    }
    for (to, from) in address.sun_path.iter_mut().zip(path.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(address)
}

/// What the forked process does.
///
/// # Safety
/// Only to be called straight after `fork`, in the child.
unsafe fn watch(pipe: libc::c_int, way: &Way) -> ! {
    unsafe {
        // Out of reach of the terminal's Ctrl-C, and of what ends the program's process group.
        libc::setsid();
        // A held connection that is gone must not end it before its time.
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Locks and connections of ours must end with us, not with the guard.
        let held = match way {
            Way::Asked(..) => pipe,
            Way::Held(held) => held.socket.as_raw_fd(),
        };
        close_all_but([pipe, held]);
        let mut byte = 0_u8;
        loop {
            match libc::read(pipe, (&raw mut byte).cast(), 1) {
                1 => libc::_exit(0),
                0 => break,
                _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        for attempt in 0..ATTEMPTS as usize {
            // First the pause: a container that runs is ended by the end of its input, and to be
            // killed in the middle of that has brought a daemon to a standstill.
            libc::nanosleep(&raw const PAUSE, std::ptr::null_mut());
            let done = match way {
                Way::Asked(address, request) => ask(address, request),
                Way::Held(held) => {
                    tell(held, attempt);
                    false
                }
            };
            if done {
                break;
            }
        }
        libc::_exit(0)
    }
}

/// Writes the next of what was made ready. The answers cannot be read by who has no key to them.
unsafe fn tell(held: &Held, attempt: usize) {
    if let Some(part) = held.parts.get(attempt) {
        unsafe { libc::write(held.socket.as_raw_fd(), part.as_ptr().cast(), part.len()) };
    }
}

unsafe fn close_all_but(kept: [libc::c_int; 2]) {
    unsafe {
        let end = libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 65_536) as libc::c_int;
        for descriptor in 0..end {
            if !kept.contains(&descriptor) {
                libc::close(descriptor);
            }
        }
    }
}

/// Sends the request; whether the daemon says that it has removed the container.
unsafe fn ask(address: &Address, request: &[u8]) -> bool {
    let (family, address, length) = address.parts();
    unsafe {
        let socket = libc::socket(family, libc::SOCK_STREAM, 0);
        let limit = libc::timeval {
            tv_sec: 5,
            tv_usec: 0,
        };
        let (limit, size) = (
            (&raw const limit).cast(),
            size_of::<libc::timeval>() as libc::socklen_t,
        );
        // A daemon that does not answer must not keep the guard, nor who waits for it.
        for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            libc::setsockopt(socket, libc::SOL_SOCKET, option, limit, size);
        }
        if libc::connect(socket, address, length) != 0 {
            libc::close(socket);
            return false;
        }
        let mut answer = [0_u8; 16];
        let sent = libc::write(socket, request.as_ptr().cast(), request.len());
        let read = if sent == request.len() as isize {
            libc::read(socket, answer.as_mut_ptr().cast(), answer.len())
        } else {
            0
        };
        libc::close(socket);
        // `HTTP/1.1 204 …`
        read >= 12 && answer[9] == b'2'
    }
}
