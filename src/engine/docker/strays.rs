//! Containers of runs that died before their container could die with them: known by their label,
//! which says on which boot of which machine and in which process they began.

use super::container::LABEL;
use super::endpoint::Daemon;
use bollard::query_parameters::{ListContainersOptionsBuilder, RemoveContainerOptionsBuilder};
use std::collections::HashMap;

/// The label of this process's containers: `<boot>/<pid>`.
pub fn run_label() -> String {
    format!("{}/{}", boot(), std::process::id())
}

/// Changes with each boot, and differs between machines; empty where the system does not say.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// Removes what dead runs of this machine have left; gives how many. A run of another machine
/// (that uses the same daemon) is left alone, and so is one whose process lives.
pub async fn remove(daemon: &Daemon) -> Result<usize, bollard::errors::Error> {
    let filters = HashMap::from([("label".to_owned(), vec![LABEL.to_owned()])]);
    let options = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    let mut removed = 0;
    for container in daemon.docker.list_containers(Some(options)).await? {
        let label = container
            .labels
            .unwrap_or_default()
            .remove(LABEL)
            .unwrap_or_default();
        let (Some(id), true) = (container.id, is_stray(&label, &boot(), &lives)) else {
            continue;
        };
        let options = RemoveContainerOptionsBuilder::new()
            .force(true)
            .v(true)
            .build();
        // Another run may be removing it at the same time.
        if daemon
            .docker
            .remove_container(&id, Some(options))
            .await
            .is_ok()
        {
            removed += 1;
        }
    }
    Ok(removed)
}

fn is_stray(label: &str, boot: &str, lives: &dyn Fn(u32) -> bool) -> bool {
    let Some((its_boot, pid)) = label.rsplit_once('/') else {
        return false;
    };
    its_boot == boot && pid.parse().is_ok_and(|pid| !lives(pid))
}

fn lives(pid: u32) -> bool {
    // SAFETY: signal 0 only asks whether the process is there.
    let answer = libc::pid_t::try_from(pid).map(|pid| unsafe { libc::kill(pid, 0) });
    let not_ours = || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM);
    answer.is_ok_and(|answer| answer == 0 || not_ours())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dead_run_of_this_boot_left_is_a_stray() {
        let lives = |pid: u32| pid == 7;
        for (label, stray) in [
            ("boot/8", true),
            ("boot/7", false),
            ("other/8", false),
            ("boot/", false),
            ("8", false),
        ] {
            assert_eq!(is_stray(label, "boot", &lives), stray, "{label}");
        }
        assert!(!is_stray(&run_label(), &boot(), &super::lives));
    }
}
