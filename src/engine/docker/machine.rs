//! Which machine a daemon's containers run on, as a container there sees it: asked once, and kept in
//! the cache for as long as it is the same machine.
//!
//! A daemon of this machine is known by where it listens, and asked again after each boot: what it
//! tells is where its data lies, and whether it is this machine at all, or a virtual one on it. Of a
//! daemon elsewhere its own description is asked each time: behind a name another machine may stand.

use super::container::{Container, Design, Limits, Reach};
use super::endpoint::{Daemon, Endpoint};
use super::error::failure;
use super::image::Image;
use crate::diagnostic::Diagnostic;
use crate::engine::machine::{Facts, Machine, boot_of_this};
use crate::engine::storage;
use crate::exit_code::Failure;
use crate::record::sha256_of;
use crate::record::store::write_atomically;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const TOLD: &str = "== told";
const LIMIT: Duration = Duration::from_secs(120);
/// Raised whenever what is asked changes.
const QUESTIONS: u32 = 1;

/// None: it was never asked, and cannot be without an image.
pub async fn machine(
    daemon: &Daemon,
    image: Option<&Image>,
    cache: &Path,
) -> Result<Option<Machine>, Failure> {
    let file = file(daemon, cache).await?;
    let known = std::fs::read_to_string(&file).ok();
    let told = match (known, image) {
        (Some(told), _) => told,
        (None, None) => return Ok(None),
        (None, Some(image)) => {
            let told = ask(daemon, image).await?;
            let written = file
                .parent()
                .map_or(Ok(()), std::fs::create_dir_all)
                .and_then(|()| write_atomically(&file, told.as_bytes()));
            written.map_err(|error| Failure::io("write", &file, &error))?;
            told
        }
    };
    Ok(Some(judged(read(&told), daemon.is_here())))
}

/// What a daemon of this machine, which does not answer now, has told since this machine started.
pub fn last_known(endpoint: &Endpoint, cache: &Path) -> Option<Machine> {
    let told = std::fs::read_to_string(file_of(&known_here(endpoint), cache)).ok()?;
    Some(judged(read(&told), true))
}

/// Of a daemon that is reached through a network more is unlike than its place.
fn judged(facts: Facts, is_here: bool) -> Machine {
    let boot = boot_of_this();
    match is_here && facts.boot == boot && !boot.is_empty() {
        true => Machine::Here {
            storage: facts.storage,
        },
        false => Machine::Elsewhere(Box::new(facts)),
    }
}

/// Where the answer of this very machine is kept.
async fn file(daemon: &Daemon, cache: &Path) -> Result<PathBuf, Failure> {
    if daemon.is_here() {
        return Ok(file_of(&known_here(&daemon.endpoint), cache));
    }
    let about = daemon.docker.info().await;
    let about = about.map_err(|error| failure("describe itself", &error))?;
    let known_by = format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        about.id,
        about.name,
        about.ncpu,
        about.mem_total,
        about.kernel_version,
        about.driver,
        about.docker_root_dir
    );
    Ok(file_of(&known_by, cache))
}

fn known_here(endpoint: &Endpoint) -> String {
    format!("{} {}", endpoint.host, boot_of_this())
}

fn file_of(known_by: &str, cache: &Path) -> PathBuf {
    let key = sha256_of(format!("{QUESTIONS} {known_by}").as_bytes());
    cache.join("machines").join(format!("{}.txt", &key[..16]))
}

async fn ask(daemon: &Daemon, image: &Image) -> Result<String, Failure> {
    let mut container = Container::create(
        daemon,
        &Design {
            image,
            script: include_str!("facts.sh"),
            arguments: Vec::new(),
            reach: Reach::Nowhere,
            user: "postgres".to_owned(),
            limits: Limits::default(),
        },
    )
    .await?;
    let told = listen(&mut container).await;
    container.remove().await?;
    told
}

async fn listen(container: &mut Container) -> Result<String, Failure> {
    container.start(None).await?;
    let deadline = Instant::now() + LIMIT;
    loop {
        let printed = container.printed();
        if printed.contains(TOLD) {
            return Ok(printed);
        }
        if container.has_ended() || Instant::now() >= deadline {
            let problem = Diagnostic::error("a container does not tell of its machine");
            return Err(Failure::Engine(problem.note(printed.trim())));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What `facts.sh` prints.
fn read(told: &str) -> Facts {
    let section = |name: &str| {
        let heading = format!("== {name}\n");
        let after = told.split_once(&heading).map_or("", |(_, after)| after);
        after.split("== ").next().unwrap_or_default().trim()
    };
    let owned = |name: &str| section(name).to_owned();
    Facts {
        processor: owned("processor"),
        cores: section("cores").parse().ok(),
        memory: owned("memory"),
        kernel: owned("kernel"),
        architecture: owned("architecture"),
        vendor: owned("vendor"),
        product: owned("product"),
        storage: storage::in_mountinfo(section("mounts"), Path::new(section("data")))
            .unwrap_or_default(),
        boot: owned("boot"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_container_tells_is_taken_apart() {
        let told = "== processor\nprocessor\t: 0\nmodel name\t: EPYC\n\n== cores\n96\n\
            == memory\nMemTotal:       1024 kB\n== kernel\n6.1.0\n== architecture\nx86_64\n\
            == vendor\nQEMU\n== product\n== mounts\n\
            1 0 0:40 / / ro,relatime - overlay overlay ro\n\
            2 1 8:1 /v/_data /var/lib/postgresql/data rw - xfs /dev/nvme0n1p1 rw\n\
            == data\n/var/lib/postgresql/data\n== boot\nb-1\n== told\n";
        assert_eq!(
            read(told),
            Facts {
                processor: "processor\t: 0\nmodel name\t: EPYC".into(),
                cores: Some(96),
                memory: "MemTotal:       1024 kB".into(),
                kernel: "6.1.0".into(),
                architecture: "x86_64".into(),
                vendor: "QEMU".into(),
                product: String::new(),
                storage: "xfs on /dev/nvme0n1p1".into(),
                boot: "b-1".into(),
            }
        );
        assert_eq!(read(""), Facts::default());
    }
}
