//! Where a container daemon may be, and the first one that answers.
//!
//! What is asked for by name (`DOCKER_HOST`, then `CONTAINER_HOST`) is not replaced by another when
//! it does not answer: measuring on another machine than the one named would be a surprise. Without
//! those the current docker context is tried, then the sockets that Docker and Podman use.

use super::dial::{Dialer, TlsVariables};
use super::error::full_text;
use crate::diagnostic::Diagnostic;
use bollard::{API_DEFAULT_VERSION, Docker};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Seconds that one answer of a daemon may take; those that stream take as long as they need.
const ANSWER_LIMIT: u64 = 120;

/// One place to look for a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// As DOCKER_HOST writes it: `unix:///var/run/docker.sock`, `tcp://host:2375`.
    pub host: String,
    /// Who names it: `DOCKER_HOST`, `docker context "work"`, `default socket`.
    pub named_by: String,
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
    let mut refused = Vec::new();
    for endpoint in here() {
        match reach(&endpoint).await {
            Ok(daemon) => return Ok((daemon, refused)),
            Err(why) => refused.push(Refused { endpoint, why }),
        }
    }
    Err(no_daemon(&refused))
}

fn no_daemon(refused: &[Refused]) -> Diagnostic {
    let mut diagnostic = Diagnostic::error("no container daemon answers");
    for one in refused {
        diagnostic = diagnostic.note(format!(
            "{} ({}): {}",
            one.endpoint.host, one.endpoint.named_by, one.why
        ));
    }
    diagnostic.hint("start Docker or Podman, name it with DOCKER_HOST, or use `--engine embedded`")
}

/// Connects to one endpoint and agrees on a version of the API.
pub async fn reach(endpoint: &Endpoint) -> Result<Daemon, String> {
    let host = endpoint.host.as_str();
    let dialer = Dialer::to(host, &TlsVariables::of(&|name| std::env::var(name).ok()))?;
    let connected = match (&dialer, host.split_once("://")) {
        (Some(dialer), _) => dialer.docker(ANSWER_LIMIT),
        (None, Some(("unix", path))) => {
            // Else a missing socket is told as an error of an HTTP client.
            if !Path::new(path).exists() {
                return Err("there is no such socket".into());
            }
            Docker::connect_with_unix(host, ANSWER_LIMIT, API_DEFAULT_VERSION)
        }
        (None, Some((scheme, _))) => {
            return Err(format!("`{scheme}://` is not supported by this build"));
        }
        (None, None) => return Err("it has no scheme such as `unix://` or `tcp://`".into()),
    };
    let docker = connected.map_err(|error| full_text(&error))?;
    let docker = docker
        .negotiate_version()
        .await
        .map_err(|error| full_text(&error))?;
    let about = docker.version().await.map_err(|error| full_text(&error))?;
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
    })
}

/// Whether the first place to look is on another machine.
pub fn is_remote() -> bool {
    here().first().is_some_and(|endpoint| {
        let scheme = endpoint.host.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| scheme != "unix")
    })
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
    for name in ["DOCKER_HOST", "CONTAINER_HOST"] {
        if let Some(host) = variable(name) {
            return vec![Endpoint {
                host,
                named_by: name.to_owned(),
            }];
        }
    }
    let home = variable("HOME").map(PathBuf::from);
    let config = variable("DOCKER_CONFIG")
        .map(PathBuf::from)
        .or_else(|| home.as_ref().map(|home| home.join(".docker")));
    let named = config
        .as_ref()
        .and_then(|config| context(config, variable("DOCKER_CONTEXT"), file));
    named
        .into_iter()
        .chain(sockets(home.as_deref(), variable("XDG_RUNTIME_DIR")))
        .collect()
}

fn sockets(home: Option<&Path>, runtime: Option<String>) -> Vec<Endpoint> {
    let mut paths = vec![PathBuf::from("/var/run/docker.sock")];
    let runtime = runtime.map(PathBuf::from);
    paths.extend(runtime.iter().map(|folder| folder.join("docker.sock")));
    paths.extend(home.iter().flat_map(|home| {
        [
            home.join(".docker/run/docker.sock"),
            home.join(".colima/default/docker.sock"),
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

/// The host of the current docker context, unless it is the default one.
fn context(
    config: &Path,
    asked: Option<String>,
    file: &dyn Fn(&Path) -> Option<String>,
) -> Option<Endpoint> {
    #[derive(Deserialize)]
    struct Config {
        #[serde(rename = "currentContext")]
        current: Option<String>,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "Endpoints")]
        endpoints: std::collections::BTreeMap<String, Host>,
    }
    #[derive(Deserialize)]
    struct Host {
        #[serde(rename = "Host")]
        host: String,
    }
    let name = asked.or_else(|| {
        let text = file(&config.join("config.json"))?;
        serde_json::from_str::<Config>(&text).ok()?.current
    })?;
    if name == "default" {
        return None;
    }
    // The CLI keeps a context under the sha256 of its name.
    let folder = crate::record::sha256_of(name.as_bytes());
    let text = file(&config.join("contexts/meta").join(folder).join("meta.json"))?;
    let meta: Meta = serde_json::from_str(&text).ok()?;
    let host = meta.endpoints.get("docker")?.host.clone();
    Some(Endpoint {
        host,
        named_by: format!("docker context `{name}`"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

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
                "unix:///run/user/7/podman/podman.sock",
                "unix:///run/podman/podman.sock",
            ]
        );
        let default = [("/h/.docker/config.json", r#"{"currentContext": "default"}"#)];
        assert_eq!(hosts(&[("HOME", "/h")], &default)[0].1, "known socket");
    }
}
