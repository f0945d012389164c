//! Where a container daemon may be, and the first one that answers.
//!
//! What is asked for in the environment (`DOCKER_HOST`, `DOCKER_CONTEXT`, `CONTAINER_HOST`) is not
//! replaced by another when it does not answer: measuring on another machine than the one named would
//! be a surprise. Without those the current docker context is tried, then the sockets that Docker and
//! Podman use.
//!
//! [`connect`]: [`here`] (every place, in order) → [`reach`] (one place: who listens, and which
//! version of the API both speak).

use super::dial::{Dialer, TlsVariables};
use super::error::full_text;
use crate::diagnostic::Diagnostic;
use bollard::models::SystemVersion;
use bollard::{API_DEFAULT_VERSION, Docker};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Seconds that one answer of a daemon may take; those that stream take as long as they need.
const ANSWER_LIMIT: u64 = 120;
/// How long the first answer may take: a daemon of this machine gives it within milliseconds.
const FIRST_ANSWER_LIMIT: Duration = Duration::from_secs(10);
const REMOTE_ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Why most places do not answer.
pub const NO_SOCKET: &str = "there is no such socket";
/// The oldest version of the API that is spoken: that of Docker 20.10.
const OLDEST_API: (usize, usize) = (1, 41);

/// One place to look for a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// As DOCKER_HOST writes it: `unix:///var/run/docker.sock`, `tcp://host:2375`.
    pub host: String,
    /// Who names it: `DOCKER_HOST`, ``docker context `work` ``, `known socket`.
    pub named_by: String,
}

impl Endpoint {
    /// Whether the person at this machine asked for this very place.
    pub fn is_asked_for(&self) -> bool {
        let by = self.named_by.split(' ').next().unwrap_or_default();
        ["DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST"].contains(&by)
    }
}

/// A daemon that answered.
#[derive(Clone, Debug)]
pub struct Daemon {
    pub docker: Docker,
    pub endpoint: Endpoint,
    /// Such as `Docker 20.10.24, API 1.41`.
    pub version: String,
    /// How it is reached, unless by a socket of this machine.
    pub dialer: Option<Dialer>,
    /// What its containers run on without emulation: `linux/amd64`.
    pub platform: String,
}

impl Daemon {
    /// Whether what its containers share and publish is within reach of this machine. A port of the
    /// loopback interface may lead anywhere: it counts as another machine's.
    pub fn is_here(&self) -> bool {
        self.dialer.is_none()
    }
}

/// A place where nothing answered, and why.
#[derive(Clone, Debug)]
pub struct Refused {
    pub endpoint: Endpoint,
    pub why: String,
}

/// The first daemon that answers, with what did not before it.
pub async fn connect() -> Result<(Daemon, Vec<Refused>), Diagnostic> {
    first().await.map_err(|refused| no_daemon(&refused))
}

/// The same; without a daemon every place with its reason.
pub async fn first() -> Result<(Daemon, Vec<Refused>), Vec<Refused>> {
    let mut refused = Vec::new();
    for endpoint in here() {
        match reach(&endpoint).await {
            Ok(daemon) => return Ok((daemon, refused)),
            Err(why) => refused.push(Refused { endpoint, why }),
        }
    }
    Err(refused)
}

pub fn no_daemon(refused: &[Refused]) -> Diagnostic {
    let diagnostic = Diagnostic::error("no container daemon answers");
    let diagnostic = refused.iter().fold(diagnostic, |diagnostic, one| {
        diagnostic.note(format!(
            "{} ({}): {}",
            one.endpoint.host, one.endpoint.named_by, one.why
        ))
    });
    let hint = refused
        .iter()
        .find_map(|one| access_hint(&one.endpoint))
        .unwrap_or_else(|| "start Docker or Podman, or name a daemon with DOCKER_HOST".into());
    diagnostic.hint(format!("{hint}; `--engine embedded` needs none"))
}

/// What to do where a socket may not be used by this user.
pub fn access_hint(endpoint: &Endpoint) -> Option<String> {
    let path = endpoint.host.strip_prefix("unix://")?;
    let refused = std::os::unix::net::UnixStream::connect(path).err()?;
    (refused.kind() == io::ErrorKind::PermissionDenied).then(|| {
        format!(
            "the group that `{path}` belongs to (`docker`, mostly) may use it: add yourself with \
             `sudo usermod -aG docker $USER` and log in again, or use a rootless daemon"
        )
    })
}

/// Connects to one endpoint and agrees on a version of the API.
pub async fn reach(endpoint: &Endpoint) -> Result<Daemon, String> {
    let limit = match endpoint.host.split_once("://") {
        Some(("unix", _)) => FIRST_ANSWER_LIMIT,
        _ => REMOTE_ANSWER_LIMIT,
    };
    reach_within(endpoint, limit).await
}

async fn reach_within(endpoint: &Endpoint, limit: Duration) -> Result<Daemon, String> {
    let host = endpoint.host.as_str();
    let dialer = Dialer::to(host, &TlsVariables::of(&|name| std::env::var(name).ok()))?;
    let connected = match (&dialer, host.split_once("://")) {
        (Some(dialer), _) => dialer.docker(ANSWER_LIMIT),
        (None, Some(("unix", path))) => {
            // Else a missing socket is told as an error of an HTTP client.
            listens(path, limit).await?;
            Docker::connect_with_unix(host, ANSWER_LIMIT, API_DEFAULT_VERSION)
        }
        (None, Some((scheme, _))) => {
            return Err(format!("`{scheme}://` is not supported by this build"));
        }
        (None, None) if host.is_empty() => return Err("there is no such docker context".into()),
        (None, None) => return Err("it has no scheme such as `unix://` or `tcp://`".into()),
    };
    let docker = connected.map_err(|error| full_text(&error))?;
    let agreed = tokio::time::timeout(limit, agree(docker));
    let (docker, about) = agreed.await.unwrap_or_else(|_| Err(silent(limit)))?;
    let name = about
        .components
        .iter()
        .flatten()
        .map(|component| component.name.as_str())
        .find(|name| name.contains("Podman"))
        .map_or("Docker", |_| "Podman");
    let api = docker.client_version();
    let version = about.version.unwrap_or_else(|| "of unknown version".into());
    Ok(Daemon {
        docker,
        endpoint: endpoint.clone(),
        version: format!("{name} {version}, API {api}"),
        dialer,
        platform: super::image::platform(about.os, about.arch, None),
    })
}

/// Whether the first place to look is on another machine.
pub fn is_remote() -> bool {
    here().first().is_some_and(|endpoint| {
        let scheme = endpoint.host.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| scheme != "unix")
    })
}

fn silent(limit: Duration) -> String {
    format!("it does not answer within {} s", limit.as_secs_f32())
}

/// Whether somebody listens at a socket, in the words of who looks after the machine.
async fn listens(path: &str, limit: Duration) -> Result<(), String> {
    let connected = tokio::time::timeout(limit, tokio::net::UnixStream::connect(path));
    let Err(error) = connected
        .await
        .unwrap_or(Err(io::ErrorKind::TimedOut.into()))
    else {
        return Ok(());
    };
    Err(match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => NO_SOCKET.to_owned(),
        io::ErrorKind::ConnectionRefused => "nobody listens at this socket".to_owned(),
        io::ErrorKind::PermissionDenied => "this user may not use the socket".to_owned(),
        io::ErrorKind::TimedOut => silent(limit),
        _ => error.to_string(),
    })
}

/// The newest version of the API that both sides speak.
async fn agree(docker: Docker) -> Result<(Docker, SystemVersion), String> {
    let no_daemon = |error| {
        format!(
            "what listens there does not answer as a container daemon: {}",
            full_text(&error)
        )
    };
    let about = docker.version().await.map_err(no_daemon)?;
    in_range(
        about.api_version.as_deref(),
        about.min_api_version.as_deref(),
    )?;
    let docker = docker.negotiate_version().await.map_err(no_daemon)?;
    Ok((docker, about))
}

/// Whether there is a version that a daemon and this program speak.
fn in_range(newest: Option<&str>, oldest: Option<&str>) -> Result<(), String> {
    let parts = |text: &str| {
        let (major, minor) = text.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    let Some(newest): Option<(usize, usize)> = newest.and_then(parts) else {
        return Err("it does not say which version of the API it speaks".into());
    };
    let ours = (
        API_DEFAULT_VERSION.major_version,
        API_DEFAULT_VERSION.minor_version,
    );
    let text = |(major, minor): (usize, usize)| format!("{major}.{minor}");
    if newest < OLDEST_API {
        return Err(format!(
            "it speaks the API up to version {}, this program from {} (Docker 20.10, Podman 4) on: \
             the daemon needs an update",
            text(newest),
            text(OLDEST_API)
        ));
    }
    match oldest.and_then(parts) {
        Some(oldest) if oldest > ours => Err(format!(
            "it speaks the API from version {} on, this program up to {}: remeasure needs an update",
            text(oldest),
            text(ours)
        )),
        _ => Ok(()),
    }
}

/// Every place to look on this machine, in order.
pub fn here() -> Vec<Endpoint> {
    candidates(&|name| std::env::var(name).ok(), &|path| {
        std::fs::read_to_string(path).ok()
    })
}

fn candidates(
    variable: &dyn Fn(&str) -> Option<String>,
    file: &dyn Fn(&Path) -> Option<String>,
) -> Vec<Endpoint> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let asked_for = |name: &str| {
        variable(name).map(|host| Endpoint {
            host,
            named_by: name.to_owned(),
        })
    };
    if let Some(asked_for) = asked_for("DOCKER_HOST") {
        return vec![asked_for];
    }
    let home = variable("HOME").map(PathBuf::from);
    let config = variable("DOCKER_CONFIG")
        .map(PathBuf::from)
        .or_else(|| home.as_ref().map(|home| home.join(".docker")));
    if let Some(name) = variable("DOCKER_CONTEXT").filter(|name| name != DEFAULT_CONTEXT) {
        let host = config.and_then(|config| context_host(&config, &name, file));
        return vec![Endpoint {
            host: host.unwrap_or_default(),
            named_by: format!("DOCKER_CONTEXT `{name}`"),
        }];
    }
    let current = config
        .filter(|_| variable("DOCKER_CONTEXT").is_none())
        .and_then(|config| current_context(&config, file));
    let mut places: Vec<Endpoint> = current.into_iter().collect();
    match asked_for("CONTAINER_HOST") {
        Some(asked_for) => places.push(asked_for),
        None => places.extend(sockets(home.as_deref(), variable("XDG_RUNTIME_DIR"))),
    }
    places
}

fn sockets(home: Option<&Path>, runtime: Option<String>) -> Vec<Endpoint> {
    let mut paths = vec![PathBuf::from("/var/run/docker.sock")];
    let runtime = runtime.map(PathBuf::from);
    paths.extend(runtime.iter().map(|folder| folder.join("docker.sock")));
    paths.extend(home.iter().flat_map(|home| {
        [
            home.join(".docker/run/docker.sock"),
            home.join(".colima/default/docker.sock"),
            home.join(".orbstack/run/docker.sock"),
            home.join(".rd/docker.sock"),
        ]
    }));
    paths.extend(
        runtime
            .iter()
            .map(|folder| folder.join("podman/podman.sock")),
    );
    paths.push(PathBuf::from("/run/podman/podman.sock"));
    paths
        .into_iter()
        .map(|path| Endpoint {
            host: format!("unix://{}", path.display()),
            named_by: "known socket".to_owned(),
        })
        .collect()
}

/// The context that stands for the daemon's own socket.
const DEFAULT_CONTEXT: &str = "default";

/// What the CLI keeps of a context.
#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "Name", default)]
    name: String,
    #[serde(rename = "Endpoints")]
    endpoints: BTreeMap<String, Host>,
}

#[derive(Deserialize)]
struct Host {
    #[serde(rename = "Host")]
    host: String,
}

/// The docker context that is used without being asked for, unless it is the default one.
fn current_context(config: &Path, file: &dyn Fn(&Path) -> Option<String>) -> Option<Endpoint> {
    let name = current_name(config, file)?;
    Some(Endpoint {
        host: context_host(config, &name, file)?,
        named_by: format!("docker context `{name}`"),
    })
}

fn current_name(config: &Path, file: &dyn Fn(&Path) -> Option<String>) -> Option<String> {
    #[derive(Deserialize)]
    struct Config {
        #[serde(rename = "currentContext")]
        current: Option<String>,
    }
    let text = file(&config.join("config.json"))?;
    let current = serde_json::from_str::<Config>(&text).ok()?.current?;
    (current != DEFAULT_CONTEXT && !current.is_empty()).then_some(current)
}

fn context_host(
    config: &Path,
    name: &str,
    file: &dyn Fn(&Path) -> Option<String>,
) -> Option<String> {
    // The CLI keeps a context under the sha256 of its name.
    let folder = crate::record::sha256_of(name.as_bytes());
    let text = file(&contexts_folder(config).join(folder).join("meta.json"))?;
    let meta: Meta = serde_json::from_str(&text).ok()?;
    Some(meta.endpoints.get("docker")?.host.clone())
}

fn contexts_folder(config: &Path) -> PathBuf {
    config.join("contexts/meta")
}

/// Every docker context of this user, by name, with its host; the current one has the star.
pub fn contexts() -> Vec<(String, String)> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || Some(PathBuf::from(variable("HOME")?).join(".docker"));
    let Some(config) = variable("DOCKER_CONFIG").map(PathBuf::from).or_else(home) else {
        return Vec::new();
    };
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let current = current_name(&config, &read);
    let mut contexts: Vec<(String, String)> = std::fs::read_dir(contexts_folder(&config))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let meta: Meta = serde_json::from_str(&read(&entry.path().join("meta.json"))?).ok()?;
            let star = match current.as_ref() == Some(&meta.name) {
                true => " *",
                false => "",
            };
            let host = meta.endpoints.get("docker")?.host.clone();
            Some((format!("{}{star}", meta.name), host))
        })
        .collect();
    contexts.sort();
    contexts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(variables: &[(&str, &str)], files: &[(&str, &str)]) -> Vec<(String, String)> {
        let variables: BTreeMap<_, _> = variables.iter().copied().collect();
        let files: BTreeMap<_, _> = files.iter().copied().collect();
        candidates(
            &|name| variables.get(name).map(|value| (*value).to_owned()),
            &|path| files.get(path.to_str()?).map(|text| (*text).to_owned()),
        )
        .into_iter()
        .map(|endpoint| (endpoint.host, endpoint.named_by))
        .collect()
    }

    #[test]
    fn what_is_asked_for_by_name_is_the_only_place() {
        let both = [
            ("CONTAINER_HOST", "unix:///c"),
            ("DOCKER_HOST", "tcp://d:1"),
        ];
        assert_eq!(
            hosts(&both, &[]),
            [("tcp://d:1".to_owned(), "DOCKER_HOST".to_owned())]
        );
        assert_eq!(hosts(&both[..1], &[])[0].0, "unix:///c");
        // Empty is as good as not set.
        assert!(hosts(&[("DOCKER_HOST", "")], &[]).len() > 1);
    }

    #[test]
    fn the_current_context_goes_before_the_known_sockets() {
        let name = crate::record::sha256_of(b"work");
        let meta = format!("/h/.docker/contexts/meta/{name}/meta.json");
        let files = [
            (
                "/h/.docker/config.json",
                r#"{"currentContext": "work", "auths": {}}"#,
            ),
            (
                meta.as_str(),
                r#"{"Name": "work", "Endpoints": {"docker": {"Host": "ssh://big", "SkipTLSVerify": false}}}"#,
            ),
        ];
        let found = hosts(
            &[("HOME", "/h"), ("XDG_RUNTIME_DIR", "/run/user/7")],
            &files,
        );
        let found: Vec<&str> = found.iter().map(|(host, _)| host.as_str()).collect();
        assert_eq!(
            found,
            [
                "ssh://big",
                "unix:///var/run/docker.sock",
                "unix:///run/user/7/docker.sock",
                "unix:///h/.docker/run/docker.sock",
                "unix:///h/.colima/default/docker.sock",
                "unix:///h/.orbstack/run/docker.sock",
                "unix:///h/.rd/docker.sock",
                "unix:///run/user/7/podman/podman.sock",
                "unix:///run/podman/podman.sock",
            ]
        );
        let default = [("/h/.docker/config.json", r#"{"currentContext": "default"}"#)];
        assert_eq!(hosts(&[("HOME", "/h")], &default)[0].1, "known socket");
    }
}
