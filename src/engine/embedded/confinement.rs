//! What psql and pgbench may reach of this machine's files, kept by the kernel where it can (Landlock,
//! Linux 5.13 and later): their own folder, the libraries they are made of, and no program but
//! themselves. An article's mistakes are told when it is read; this holds whatever was overlooked.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIRECTORY: u64 = 1 << 3;
/// Everything of the first version, and what came with the second, third and fifth.
const FIRST: u64 = (1 << 13) - 1;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEVICE: u64 = 1 << 15;
/// What can be said of a file that is no folder.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE;

/// Where libraries, and what they read when they begin, lie beside the binaries.
const READABLE: [&str; 14] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share/zoneinfo",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/ssl/openssl.cnf",
    "/dev/urandom",
    "/nix/store",
    "/gnu/store",
];

/// Keeps the program of this command to its folder. Where the kernel cannot, nothing is kept from it.
pub fn confine(
    command: &mut Command,
    program: &Path,
    binaries: &Path,
    folder: &Path,
) -> io::Result<()> {
    let Some(rules) = rules(program, binaries, folder)? else {
        return Ok(());
    };
    // SAFETY: what runs between fork and exec only makes system calls; the descriptor lives as long
    // as the command.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
                return Err(io::Error::last_os_error());
            }
            match libc::syscall(RESTRICT_SELF, rules.as_raw_fd(), 0) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
    Ok(())
}

// The same on every architecture of Linux that has them.
const CREATE_RULESET: libc::c_long = 444;
const ADD_RULE: libc::c_long = 445;
const RESTRICT_SELF: libc::c_long = 446;

#[repr(C)]
struct Ruleset {
    handled: u64,
}

#[repr(C, packed)]
struct Below {
    allowed: u64,
    parent: libc::c_int,
}

/// None where this kernel has no Landlock, or has it switched off.
fn rules(program: &Path, binaries: &Path, folder: &Path) -> io::Result<Option<OwnedFd>> {
    // SAFETY: asks for the version; there is no ruleset to read.
    let version = unsafe { libc::syscall(CREATE_RULESET, std::ptr::null::<u8>(), 0, 1) };
    let mut handled = FIRST;
    for (since, right) in [(2, REFER), (3, TRUNCATE), (5, IOCTL_DEVICE)] {
        if version >= since {
            handled |= right;
        }
    }
    if version < 1 {
        return Ok(None);
    }
    let ruleset = Ruleset { handled };
    // SAFETY: the kernel reads as many bytes as it is told, and gives a descriptor of ours.
    let made =
        unsafe { libc::syscall(CREATE_RULESET, &raw const ruleset, size_of::<Ruleset>(), 0) };
    let descriptor = libc::c_int::try_from(made).map_err(io::Error::other)?;
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just made, and nobody else has it.
    let rules = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let allow = |path: &Path, rights: u64| allow(&rules, path, rights & handled);
    allow(program, EXECUTE | READ_FILE)?;
    if let Some(loader) = loader(program) {
        allow(&loader, EXECUTE | READ_FILE)?;
    }
    allow(binaries, READ_FILE | READ_DIRECTORY)?;
    let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let libraries = std::env::split_paths(&named).filter(|path| path.is_absolute());
    for path in libraries.chain(READABLE.map(PathBuf::from)) {
        allow(&path, READ_FILE | READ_DIRECTORY)?;
    }
    allow(Path::new("/dev/null"), READ_FILE | WRITE_FILE | TRUNCATE)?;
    allow(folder, handled & !EXECUTE)?;
    Ok(Some(rules))
}

/// The loader that the kernel starts a program with, and executes too: it stands in the program's own
/// header (ELF, 64 bits, little end first).
fn loader(program: &Path) -> Option<PathBuf> {
    use std::io::Read;
    let mut head = Vec::new();
    File::open(program)
        .ok()?
        .take(1 << 16)
        .read_to_end(&mut head)
        .ok()?;
    let number = |at: usize, bytes: usize| {
        let part = head.get(at..at + bytes)?;
        let value = part
            .iter()
            .rev()
            .fold(0, |value, byte| (value << 8) | usize::from(*byte));
        Some(value)
    };
    let (entries, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    const INTERPRETER: usize = 3;
    let entry = (0..count)
        .map(|index| entries + index * size)
        .find(|&entry| number(entry, 4) == Some(INTERPRETER))?;
    let (at, length) = (number(entry + 8, 8)?, number(entry + 32, 8)?);
    let path = head.get(at..at.checked_add(length)?)?;
    let path = std::str::from_utf8(path).ok()?.trim_end_matches('\0');
    Some(PathBuf::from(path))
}

/// Allows what is asked below a path; one that is not there needs no leave.
fn allow(rules: &OwnedFd, path: &Path, rights: u64) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let opened = File::options()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_CLOEXEC)
        .open(path);
    let Ok(opened) = opened else {
        return Ok(());
    };
    let folder = opened.metadata()?.is_dir();
    let below = Below {
        allowed: if folder { rights } else { rights & OF_FILES },
        parent: opened.as_raw_fd(),
    };
    // SAFETY: the kernel reads the struct; rule type 1 is `LANDLOCK_RULE_PATH_BENEATH`.
    let added = unsafe { libc::syscall(ADD_RULE, rules.as_raw_fd(), 1, &raw const below, 0) };
    match added {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn a_confined_program_reads_and_writes_in_its_folder_alone() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("secret");
        std::fs::write(&secret, "x").unwrap();
        std::fs::write(folder.path().join("own"), "x").unwrap();
        let shell = std::fs::canonicalize("/bin/sh").unwrap();
        if rules(&shell, Path::new("/nowhere"), folder.path())
            .unwrap()
            .is_none()
        {
            return;
        }
        let run = |script: String| {
            let mut command = Command::new(&shell);
            command
                .args(["-c", &script])
                .current_dir(folder.path())
                .stderr(Stdio::null());
            confine(&mut command, &shell, Path::new("/nowhere"), folder.path()).unwrap();
            command.status().unwrap().success()
        };
        let secret = secret.display();
        for (script, works) in [
            (
                "read line < own || true; echo x > new && [ -s new ]".to_owned(),
                true,
            ),
            (format!("read line < {secret} || [ -n \"$line\" ]"), false),
            (format!("echo x > {secret}"), false),
            (format!("echo x > {}/new", outside.path().display()), false),
            ("/bin/cat own".to_owned(), false),
        ] {
            assert_eq!(run(script.clone()), works, "{script}");
        }
    }
}
