//! Containers and volumes of runs that died before they could die with them: known by their label,
//! which says on which boot of which machine, and as which process, their run began.

use super::container::LABEL;
use super::endpoint::Daemon;
use super::error::is_not_found;
use crate::engine::system;
use bollard::errors::Error;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListVolumesOptionsBuilder, RemoveContainerOptionsBuilder,
    RemoveVolumeOptionsBuilder,
};
use std::collections::HashMap;

/// One process as no other is called: numbers of processes come again, on other machines, in
/// containers, after a restart, and after a while.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    boot: String,
    numbers: String,
    pid: u32,
    beginning: String,
}

impl Run {
    fn ours() -> Self {
        let pid = std::process::id();
        Self {
            boot: system::boot(),
            numbers: system::process_numbers(),
            pid,
            beginning: system::beginning(pid),
        }
    }

    fn label(&self) -> String {
        let Self {
            boot,
            numbers,
            pid,
            beginning,
        } = self;
        format!("{boot}/{numbers}/{pid}/{beginning}")
    }

    fn read(label: &str) -> Option<Self> {
        let mut parts = label.split('/').map(str::to_owned);
        let run = Self {
            boot: parts.next()?,
            numbers: parts.next()?,
            pid: parts.next()?.parse().ok()?,
            beginning: parts.next()?,
        };
        parts.next().is_none().then_some(run)
    }

    /// Whether this run is dead for certain. Of a run on another machine, or in a container, nothing
    /// is known: it is left alone. `beginning` gives when the process of a number began; None: there
    /// is none.
    fn is_dead(&self, ours: &Self, beginning: &dyn Fn(u32) -> Option<String>) -> bool {
        let here = !ours.boot.is_empty() && self.boot == ours.boot && self.numbers == ours.numbers;
        here && beginning(self.pid).is_none_or(|found| found != self.beginning)
    }
}

/// The label of what this process makes.
pub fn run_label() -> String {
    Run::ours().label()
}

/// What dead runs of this machine have left on a daemon.
#[derive(Clone, Debug, Default)]
pub struct Strays {
    pub containers: Vec<String>,
    pub volumes: Vec<String>,
}

/// Finds them.
pub async fn find(daemon: &Daemon) -> Result<Strays, Error> {
    let ours = Run::ours();
    let beginning = |pid| system::lives(pid).then(|| system::beginning(pid));
    let is_stray = |labels: &HashMap<String, String>| {
        let run = labels.get(LABEL).and_then(|label| Run::read(label));
        run.is_some_and(|run| run.is_dead(&ours, &beginning))
    };
    let filters = HashMap::from([("label".to_owned(), vec![LABEL.to_owned()])]);
    let all = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    let containers = daemon.docker.list_containers(Some(all)).await?;
    let all = ListVolumesOptionsBuilder::new().filters(&filters).build();
    let volumes = daemon.docker.list_volumes(Some(all)).await?;
    Ok(Strays {
        containers: containers
            .into_iter()
            .filter(|container| container.labels.as_ref().is_some_and(is_stray))
            .filter_map(|container| container.id)
            .collect(),
        volumes: (volumes.volumes.into_iter().flatten())
            .filter(|volume| is_stray(&volume.labels))
            .map(|volume| volume.name)
            .collect(),
    })
}

/// Removes what was found; gives what is gone.
pub async fn remove(daemon: &Daemon, found: &Strays) -> Strays {
    let mut removed = Strays::default();
    for id in &found.containers {
        let options = RemoveContainerOptionsBuilder::new()
            .force(true)
            .v(true)
            .build();
        if is_gone(&daemon.docker.remove_container(id, Some(options)).await) {
            removed.containers.push(id.clone());
        }
    }
    for name in &found.volumes {
        let options = RemoveVolumeOptionsBuilder::new().force(true).build();
        // Most have gone with their container.
        if is_gone(&daemon.docker.remove_volume(name, Some(options)).await) {
            removed.volumes.push(name.clone());
        }
    }
    removed
}

/// Another run may be removing it at the same time.
fn is_gone(answer: &Result<(), Error>) -> bool {
    match answer {
        Ok(()) => true,
        Err(error) => is_not_found(error) || error.to_string().contains("already in progress"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dead_run_of_this_boot_left_is_a_stray() {
        let ours = Run::read("boot/pid:[1]/5/100").unwrap();
        let beginning = |pid: u32| (pid == 7).then(|| "200".to_owned());
        for (label, stray) in [
            ("boot/pid:[1]/8/150", true),
            ("boot/pid:[1]/7/200", false),
            // The number was given to another process since.
            ("boot/pid:[1]/7/150", true),
            // Another machine, another container.
            ("other/pid:[1]/8/150", false),
            ("boot/pid:[2]/8/150", false),
        ] {
            let run = Run::read(label).unwrap();
            assert_eq!(run.is_dead(&ours, &beginning), stray, "{label}");
            assert_eq!(run.label(), label);
        }
        for label in ["", "8", "boot/8", "boot/pid:[1]/x/1", "boot/pid:[1]/8/1/2"] {
            assert_eq!(Run::read(label), None, "{label}");
        }
        // A system that does not tell one boot from another.
        let nowhere = Run::read("//8/").unwrap();
        assert!(!nowhere.is_dead(&Run::read("//5/").unwrap(), &|_| None));
    }

    #[test]
    fn this_very_run_is_no_stray() {
        let ours = Run::ours();
        let beginning = |pid| system::lives(pid).then(|| system::beginning(pid));
        assert!(!ours.is_dead(&ours, &beginning));
        assert_eq!(Run::read(&run_label()), Some(ours));
    }
}
