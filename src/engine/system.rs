//! What the system is asked about processes, which the standard library does not ask: whether one is
//! there, and which one it is, as numbers of processes come again.

/// Whether this program runs as root.
pub fn is_root() -> bool {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Sends a signal; that the process is gone by now is no error.
pub fn signal(pid: u32, signal: libc::c_int) {
    if let Ok(pid) = libc::pid_t::try_from(pid) {
        // SAFETY: only sends a signal.
        unsafe { libc::kill(pid, signal) };
    }
}

/// Whether a process of this number is there, also another user's.
pub fn lives(pid: u32) -> bool {
    // SAFETY: signal 0 only asks whether the process is there.
    let answer = libc::pid_t::try_from(pid).map(|pid| unsafe { libc::kill(pid, 0) });
    let not_ours = || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM);
    answer.is_ok_and(|answer| answer == 0 || not_ours())
}

/// Changes with each boot, and differs between machines; empty where the system does not say.
pub fn boot() -> String {
    read("/proc/sys/kernel/random/boot_id")
}

/// Whose numbers the numbers of processes are: a container has its own on the same boot. Empty where
/// the system does not say.
pub fn process_numbers() -> String {
    std::fs::read_link("/proc/self/ns/pid")
        .map(|link| link.display().to_string())
        .unwrap_or_default()
}

/// When a process began, in ticks since the boot; empty where the system does not say.
pub fn beginning(pid: u32) -> String {
    let stat = read(&format!("/proc/{pid}/stat"));
    // `pid (name) state …`: the name may hold anything, so what follows its last parenthesis counts.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let begun = fields.split_whitespace().nth(19);
    begun.unwrap_or_default().to_owned()
}

fn read(file: &str) -> String {
    std::fs::read_to_string(file)
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_lives_no_more() {
        let mut child = std::process::Command::new("/bin/sleep")
            .arg("60")
            .spawn()
            .unwrap();
        assert!(lives(child.id()));
        signal(child.id(), libc::SIGKILL);
        child.wait().unwrap();
        assert!(!lives(child.id()));
        assert_eq!(beginning(child.id()), "");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_began_once() {
        let own = beginning(std::process::id());
        assert!(own.parse::<u64>().unwrap() > 0);
        assert_eq!(own, beginning(std::process::id()));
        let parent = beginning(std::os::unix::process::parent_id());
        assert!(parent.parse::<u64>().unwrap() <= own.parse().unwrap());
        assert_ne!(boot(), "");
        assert!(process_numbers().starts_with("pid:["));
    }
}
