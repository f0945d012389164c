//! A container daemon that answers as a test has it, over a socket of its own: what no real one can
//! be brought to say when it is needed.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What it answers to `GET /version`, and so on.
pub struct Answer {
    status: u16,
    body: String,
}

pub fn ok(body: impl Into<String>) -> Option<Answer> {
    Some(Answer {
        status: 200,
        body: body.into(),
    })
}

pub fn refusal(status: u16, message: &str) -> Option<Answer> {
    Some(Answer {
        status,
        body: format!("{{\"message\":{message:?}}}"),
    })
}

/// `None` of the answers: it says nothing, and keeps the connection.
pub type Answers = dyn Fn(&str) -> Option<Answer> + Send + Sync;

pub struct Daemon {
    asked: Arc<Mutex<Vec<String>>>,
}

impl Daemon {
    /// Answers at this socket until the test ends.
    pub fn at(
        socket: &Path,
        answers: impl Fn(&str) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        let answers: Arc<Answers> = Arc::new(answers);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answers, heard) = (Arc::clone(&answers), Arc::clone(&heard));
                std::thread::spawn(move || converse(stream, &*answers, &heard));
            }
        });
        Self { asked }
    }

    /// What it was asked: `GET /version`, each time.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn converse(mut stream: UnixStream, answers: &Answers, heard: &Mutex<Vec<String>>) {
    while let Some(request) = request(&mut stream) {
        heard.lock().unwrap().push(request.clone());
        let Some(answer) = answers(&request) else {
            // The other side gives up.
            let _ = stream.read(&mut [0; 1]);
            return;
        };
        let head = format!(
            "HTTP/1.1 {} Said\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            answer.status,
            answer.body.len()
        );
        let said = stream.write_all(format!("{head}{}", answer.body).as_bytes());
        if said.is_err() {
            return;
        }
    }
}

/// Method and path of the next request, without the version of the API; its body is thrown away.
fn request(stream: &mut UnixStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let length = head.lines().find_map(|line| {
        line.to_lowercase()
            .strip_prefix("content-length:")?
            .trim()
            .parse()
            .ok()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    let mut words = head.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    // `/v1.41/version`
    let path = match target.split_once("/v1.") {
        Some(("", rest)) => &rest[rest.find('/').unwrap_or(0)..],
        _ => target,
    };
    Some(format!("{method} {path}"))
}

/// As Docker answers to `GET /version`.
pub fn version(newest: &str, oldest: &str) -> Option<Answer> {
    ok(format!(
        "{{\"Version\":\"99.9\",\"ApiVersion\":\"{newest}\",\"MinAPIVersion\":\"{oldest}\",
          \"Os\":\"linux\",\"Arch\":\"amd64\",\"Components\":[{{\"Name\":\"Engine\",\"Version\":\"99.9\"}}]}}"
    ))
}

/// As Docker describes an image.
pub fn image(architecture: &str) -> Option<Answer> {
    ok(format!(
        "{{\"Id\":\"sha256:{}\",\"Os\":\"linux\",\"Architecture\":\"{architecture}\",
          \"Config\":{{\"Env\":[\"PGDATA=/var/lib/postgresql/data\"]}}}}",
        "1".repeat(64)
    ))
}

/// As Docker tells what a registry has.
pub fn offer(architecture: &str) -> Option<Answer> {
    ok(format!(
        "{{\"Descriptor\":{{\"digest\":\"sha256:{}\"}},
          \"Platforms\":[{{\"os\":\"linux\",\"architecture\":\"{architecture}\"}}]}}",
        "2".repeat(64)
    ))
}
