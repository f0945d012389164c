//! A process beside ours that outlives it, if need be, to remove a container.
//!
//! A container that is created and not yet attached to would stay behind when this program is
//! killed at that moment. So before it is created a copy of this process is forked that waits for
//! the end of a pipe. When the pipe ends without a word, this program is dead, and the guard asks
//! the daemon to remove the container of that name. Between fork and end the guard only makes
//! system calls: it may not allocate, and runs no code of anybody's.

use super::endpoint::Daemon;
use std::io::{self, Write};
use std::os::fd::AsRawFd;

/// Dropped without [`Guard::dismiss`], it removes the container.
#[derive(Debug)]
pub struct Guard {
    pipe: Option<io::PipeWriter>,
    pid: libc::pid_t,
}

/// How often the guard asks, a quarter of a second apart: the daemon may still be creating what is
/// to be removed.
const ATTEMPTS: u32 = 8;
static PAUSE: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};

impl Guard {
    /// None where the daemon is not reached by a socket of this machine.
    pub fn over(daemon: &Daemon, container: &str) -> io::Result<Option<Self>> {
        let Some(path) = daemon.endpoint.host.strip_prefix("unix://") else {
            return Ok(None);
        };
        let address = socket_address(path)?;
        let request = format!(
            "DELETE /v{}/containers/{container}?force=true&v=true HTTP/1.1\r\n\
             Host: docker\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            daemon.docker.client_version()
        );
        let (read, write) = io::pipe()?;
        // SAFETY: the child runs nothing but system calls, and never returns.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => unsafe { watch(read.as_raw_fd(), &address, request.as_bytes()) },
            pid => Ok(Some(Self {
                pipe: Some(write),
                pid,
            })),
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
    fn drop(&mut self) {
        drop(self.pipe.take());
        // SAFETY: waits for a child of ours.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

fn socket_address(path: &str) -> io::Result<libc::sockaddr_un> {
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
unsafe fn watch(pipe: libc::c_int, address: &libc::sockaddr_un, request: &[u8]) -> ! {
    unsafe {
        // Out of reach of the terminal's Ctrl-C, and of what ends the program's process group.
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Locks and connections of ours must end with us, not with the guard.
        close_all_but(pipe);
        let mut byte = 0_u8;
        loop {
            match libc::read(pipe, (&raw mut byte).cast(), 1) {
                1 => libc::_exit(0),
                0 => break,
                _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        for _ in 0..ATTEMPTS {
            if ask(address, request) {
                break;
            }
            libc::nanosleep(&raw const PAUSE, std::ptr::null_mut());
        }
        libc::_exit(0)
    }
}

unsafe fn close_all_but(kept: libc::c_int) {
    unsafe {
        let end = libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 65_536) as libc::c_int;
        for descriptor in 0..end {
            if descriptor != kept {
                libc::close(descriptor);
            }
        }
    }
}

/// Sends the request; whether the daemon says that it has removed the container.
unsafe fn ask(address: &libc::sockaddr_un, request: &[u8]) -> bool {
    unsafe {
        let socket = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0);
        let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        if libc::connect(socket, (&raw const *address).cast(), length) != 0 {
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
