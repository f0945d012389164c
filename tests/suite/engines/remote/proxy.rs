//! A network between a port of this machine and a daemon's socket: what goes through is late by the
//! same time in both directions, and it can be cut.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub struct Proxy {
    pub port: u16,
    cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    pub fn new(socket: &Path, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            cut: Arc::default(),
            open: Arc::default(),
        };
        let (cut, open) = (Arc::clone(&proxy.cut), Arc::clone(&proxy.open));
        let socket: PathBuf = socket.to_owned();
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if cut.load(Ordering::SeqCst) {
                    break;
                }
                near.set_nodelay(true).unwrap();
                let far = UnixStream::connect(&socket).unwrap();
                open.lock().unwrap().push(near.try_clone().unwrap());
                let ends = (near.try_clone().unwrap(), far.try_clone().unwrap());
                carry(near, far, delay, |far| drop(far.shutdown(Shutdown::Write)));
                carry(ends.1, ends.0, delay, |near| {
                    drop(near.shutdown(Shutdown::Write))
                });
            }
        });
        proxy
    }

    /// Ends every connection, and lets nobody connect any more.
    pub fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
        for socket in self.open.lock().unwrap().iter() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn carry<From, To>(mut from: From, mut to: To, delay: Duration, end: fn(&To))
where
    From: Read + Send + 'static,
    To: Write + Send + 'static,
{
    let (sender, receiver) = channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        let mut part = vec![0; 64 << 10];
        while let Ok(length @ 1..) = from.read(&mut part) {
            let due = Instant::now() + delay;
            if sender.send((due, part[..length].to_vec())).is_err() {
                break;
            }
        }
    });
    std::thread::spawn(move || {
        for (due, part) in receiver {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&part).is_err() {
                break;
            }
        }
        end(&to);
    });
}
