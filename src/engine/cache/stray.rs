//! A server that outlived the run whose folder it works in.

use crate::engine::system::signal;
use std::path::Path;
use std::time::{Duration, Instant};

/// Ends a server that still runs in the data directory of a dead run. Its process is taken for
/// that server only when it works in that very directory.
pub fn end(data: &Path) {
    let pid = std::fs::read_to_string(data.join("postmaster.pid"))
        .ok()
        .and_then(|text| text.lines().next()?.trim().parse::<u32>().ok());
    let Some(pid) = pid.filter(|&pid| works_in(pid, data)) else {
        return;
    };
    for how in [libc::SIGQUIT, libc::SIGKILL] {
        signal(pid, how);
        let deadline = Instant::now() + Duration::from_secs(3);
        while Instant::now() < deadline {
            if !works_in(pid, data) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(target_os = "linux")]
fn works_in(pid: u32, data: &Path) -> bool {
    std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|directory| directory == data)
}

#[cfg(not(target_os = "linux"))]
fn works_in(pid: u32, data: &Path) -> bool {
    std::process::Command::new("ps")
        .args(["-o", "command=", "-p", &pid.to_string()])
        .output()
        .is_ok_and(|output| {
            String::from_utf8_lossy(&output.stdout).contains(data.to_string_lossy().as_ref())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_stray_is_ended_only_where_it_works_in_the_dead_runs_directory() {
        let data = tempfile::tempdir().unwrap();
        let path = std::fs::canonicalize(data.path()).unwrap();
        for (works_in, ends) in [(Path::new("/"), false), (path.as_path(), true)] {
            let mut child = std::process::Command::new("/bin/sleep")
                .arg("60")
                .current_dir(works_in)
                .spawn()
                .unwrap();
            let pid = format!("{}\n{}\n", child.id(), path.display());
            std::fs::write(path.join("postmaster.pid"), pid).unwrap();
            let stray = std::thread::spawn({
                let path = path.clone();
                move || end(&path)
            });
            if ends {
                assert!(!child.wait().unwrap().success());
            }
            stray.join().unwrap();
            assert_eq!(child.try_wait().unwrap().is_some(), ends);
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
