//! The server that stands for a managed one.

use super::super::{start, tool, value};
use crate::project::{Project, Ran};
use remeasure::engine::EngineChoice;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const PASSWORD: &str = "s3cret-of-the-test";
/// `nobody` of most systems: a server does not run as root.
const NOBODY: u32 = 65_534;

/// A server that is not the tool's. It ends when it is dropped.
pub struct Existing {
    postmaster: Child,
    pub port: u16,
    pub programs: PathBuf,
    pub folder: tempfile::TempDir,
}

impl Existing {
    pub async fn start(version: &str) -> Self {
        let programs = programs(version).await;
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let server = |program: &str| {
            let mut command = Command::new(programs.join(program));
            command
                .current_dir(folder.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if is_root() {
                command.uid(NOBODY).gid(NOBODY);
            }
            command
        };
        given_away(folder.path());
        let data = folder.path().join("data");
        let initialised = server("initdb")
            .args(["--username", "postgres", "--auth", "trust"])
            .args(["--no-sync", "--no-locale", "--encoding", "UTF8", "-D"])
            .arg(&data)
            .status()
            .unwrap();
        assert!(initialised.success());
        certificate(&data);
        let write = |name: &str, text: &str| {
            fs::write(data.join(name), text).unwrap();
            given_away(&data.join(name));
        };
        write(
            "pg_hba.conf",
            "local all postgres trust\nhost closed all all reject\nhost all all all scram-sha-256\n",
        );
        let socket = folder.path().display();
        write(
            "postgresql.conf",
            &format!(
                "listen_addresses = '127.0.0.1'\nport = {port}\nssl = on\nfsync = off\n\
                 unix_socket_directories = '{socket}'\nshared_buffers = 32MB\n"
            ),
        );
        let postmaster = server("postgres").arg("-D").arg(&data).spawn().unwrap();
        let existing = Self {
            postmaster,
            port,
            programs,
            folder,
        };
        existing.until_ready();
        existing.sql(&format!(
            "CREATE ROLE managed LOGIN CREATEDB PASSWORD '{PASSWORD}'"
        ));
        existing
    }

    fn until_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.psql("SELECT 1").status.success() {
            assert!(Instant::now() < deadline, "the server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn psql(&self, sql: &str) -> std::process::Output {
        Command::new(self.programs.join("psql"))
            .args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres"])
            .args(["-d", "postgres", "-c", sql, "-p", &self.port.to_string()])
            .arg("-h")
            .arg(self.folder.path())
            .output()
            .unwrap()
    }

    /// As its owner.
    pub fn sql(&self, sql: &str) -> String {
        let output = self.psql(sql);
        assert!(output.status.success(), "{sql}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub fn databases(&self) -> String {
        self.sql("SELECT string_agg(datname, ' ' ORDER BY datname) FROM pg_database")
    }

    pub fn url(&self, role: &str, rest: &str) -> String {
        format!("postgresql://{role}@localhost:{}/{rest}", self.port)
    }

    pub fn certificate(&self) -> String {
        self.folder
            .path()
            .join("data/server.crt")
            .display()
            .to_string()
    }

    /// The program with the password where libpq looks for it.
    pub fn run(&self, project: &Project, arguments: &[&str]) -> Ran {
        let mut command = project.command(arguments);
        command.env("PGPASSWORD", PASSWORD);
        let ran = Ran::from(command.output().unwrap());
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!said.contains(PASSWORD), "{said}");
        ran
    }
}

impl Drop for Existing {
    fn drop(&mut self) {
        self.postmaster.kill().ok();
        self.postmaster.wait().ok();
    }
}

/// Of the pinned version; an embedded server says where they are.
async fn programs(version: &str) -> PathBuf {
    let server = start(&EngineChoice::Embedded, version).await;
    let mut session = tool(&server).await;
    let folder = "SELECT setting FROM pg_config WHERE name = 'BINDIR'";
    let folder = value(&mut session, folder).await;
    session.close().await;
    server.stop().await.unwrap();
    folder.into()
}

fn is_root() -> bool {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

fn given_away(path: &Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// One that vouches for itself, for `localhost`.
pub fn certificate(data: &Path) {
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-nodes", "-newkey", "rsa:2048", "-days", "3",
        ])
        .args([
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ])
        .arg("-keyout")
        .arg(data.join("server.key"))
        .arg("-out")
        .arg(data.join("server.crt"))
        .stderr(Stdio::null())
        .status()
        .expect("openssl is there");
    assert!(made.success());
    for name in ["server.key", "server.crt"] {
        let file = data.join(name);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        given_away(&file);
    }
}
