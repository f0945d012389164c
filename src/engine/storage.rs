//! What a folder is stored on: file system and device, as the host's environment records it.

use std::path::Path;

/// Such as `ext4 on /dev/sda1`; `unknown` where the system does not say.
#[cfg(target_os = "linux")]
pub fn of(path: &Path) -> String {
    std::fs::read_to_string("/proc/self/mountinfo")
        .ok()
        .and_then(|mounts| in_mountinfo(&mounts, path))
        .unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(not(target_os = "linux"))]
pub fn of(path: &Path) -> String {
    // `df -P`: the device is the first word of the second line.
    std::process::Command::new("df")
        .arg("-P")
        .arg(path)
        .output()
        .ok()
        .and_then(|output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let device = text.lines().nth(1)?.split_whitespace().next()?;
            Some(device.to_owned())
        })
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Where a folder is stored and how much room is left there, in words.
pub fn room(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let storage = format!("`{}`, {}", path.display(), of(path));
    let Ok(name) = std::ffi::CString::new(path.as_os_str().as_bytes()) else {
        return storage;
    };
    // SAFETY: all zeros is a value of this type; the name is a C string.
    let (answer, about) = unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(name.as_ptr(), &raw mut about), about)
    };
    if answer != 0 {
        return storage;
    }
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast)] // The types differ by system.
    let megabytes = |blocks| (blocks as u64).saturating_mul(about.f_frsize as u64) >> 20;
    let (free, all) = (megabytes(about.f_bavail), megabytes(about.f_blocks));
    format!("{storage}, where {free} of {all} MB are free now")
}

/// The last mount over the longest part of the path is the one that holds it.
pub fn in_mountinfo(mounts: &str, path: &Path) -> Option<String> {
    let mut best: Option<(usize, String)> = None;
    for line in mounts.lines() {
        // 36 35 98:0 /root /mount/point options optional… - type device superoptions
        let (before, after) = line.split_once(" - ")?;
        let point = before.split(' ').nth(4)?.replace("\\040", " ");
        let mut words = after.split(' ');
        let (kind, device) = (words.next()?, words.next()?);
        let longer = best
            .as_ref()
            .is_none_or(|(length, _)| point.len() >= *length);
        if longer && path.starts_with(&point) {
            best = Some((point.len(), format!("{kind} on {device}")));
        }
    }
    best.map(|(_, storage)| storage)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_mount_that_holds_a_folder_is_found() {
        let mounts = "\
            22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
            23 22 0:21 / /var rw - xfs /dev/sdb1 rw\n\
            24 23 0:22 / /var/lib\\040x rw - tmpfs tmpfs rw\n\
            25 22 0:23 / /var rw shared:2 master:1 - btrfs /dev/sdc1 rw\n";
        for (path, storage) in [
            ("/home/a", "ext4 on /dev/sda1"),
            ("/var/cache/remeasure", "btrfs on /dev/sdc1"),
            ("/variable", "ext4 on /dev/sda1"),
            ("/var/lib x/data", "tmpfs on tmpfs"),
        ] {
            assert_eq!(
                in_mountinfo(mounts, Path::new(path)).as_deref(),
                Some(storage)
            );
        }
        assert_ne!(of(Path::new("/tmp")), "unknown");
    }
}
