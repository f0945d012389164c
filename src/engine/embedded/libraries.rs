//! Shared libraries that Postgres's binaries need from the system: which are missing, and which
//! packages bring them.

use crate::diagnostic::Diagnostic;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The programs that a run needs.
const PROGRAMS: [&str; 4] = ["postgres", "initdb", "psql", "pgbench"];

/// Library, package of Debian and Ubuntu, package of Fedora.
const PACKAGES: [(&str, &str, &str); 11] = [
    ("libcom_err.so.2", "libcom-err2", "libcom_err"),
    ("libcrypto.so.3", "libssl3", "openssl-libs"),
    ("libgssapi_krb5.so.2", "libgssapi-krb5-2", "krb5-libs"),
    ("liblz4.so.1", "liblz4-1", "lz4-libs"),
    ("liblzma.so.5", "liblzma5", "xz-libs"),
    ("libreadline.so.8", "libreadline8", "readline"),
    ("libssl.so.3", "libssl3", "openssl-libs"),
    ("libtinfo.so.6", "libtinfo6", "ncurses-libs"),
    ("libxml2.so.2", "libxml2", "libxml2"),
    ("libz.so.1", "zlib1g", "zlib"),
    ("libzstd.so.1", "libzstd1", "libzstd"),
];

/// What stands between these binaries and running, when it is the system's libraries. `output` is
/// what one of the programs printed when it failed to start.
pub fn explain(bin: &Path, output: &str) -> Option<Diagnostic> {
    let mut text = output.to_owned();
    if cfg!(target_os = "linux") {
        for program in PROGRAMS {
            // The loader names only the first that is missing; ldd names all.
            if let Ok(listing) = Command::new("ldd").arg(bin.join(program)).output() {
                text.push('\n');
                text.push_str(&String::from_utf8_lossy(&listing.stdout));
                text.push_str(&String::from_utf8_lossy(&listing.stderr));
            }
        }
    }
    diagnose(&text)
}

/// Reads what the loader or `ldd` says.
fn diagnose(text: &str) -> Option<Diagnostic> {
    let missing: BTreeSet<&str> = text.lines().filter_map(missing_library).collect();
    if !missing.is_empty() {
        return Some(missing_libraries(&missing));
    }
    let needed: BTreeSet<&str> = text.lines().filter_map(missing_glibc).collect();
    let newest = needed.into_iter().max_by_key(|version| {
        version
            .split('.')
            .map(|part| part.parse().unwrap_or(0))
            .collect::<Vec<u32>>()
    })?;
    Some(
        Diagnostic::error(format!(
            "the pinned Postgres needs glibc {newest}, and this system's is older"
        ))
        .hint(
            "use a newer system (Debian 12, Ubuntu 22.04, Fedora 35 or later), or name a folder \
             with Postgres of this version in REMEASURE_POSTGRES",
        ),
    )
}

/// `libxml2.so.2 => not found`, or `error while loading shared libraries: libxml2.so.2: cannot …`.
fn missing_library(line: &str) -> Option<&str> {
    if let Some((name, "not found")) = line.trim().split_once(" => ") {
        return Some(name);
    }
    let (_, rest) = line.split_once("error while loading shared libraries: ")?;
    rest.split(':').next()
}

/// ``…: version `GLIBC_2.34' not found (required by …)``.
fn missing_glibc(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("version `GLIBC_")?;
    let (version, rest) = rest.split_once('\'')?;
    rest.trim_start()
        .starts_with("not found")
        .then_some(version)
}

fn missing_libraries(missing: &BTreeSet<&str>) -> Diagnostic {
    let names: Vec<_> = missing.iter().map(|name| format!("`{name}`")).collect();
    let diagnostic = Diagnostic::error(format!(
        "the pinned Postgres needs shared libraries that this system lacks: {}",
        names.join(", ")
    ));
    let known: Vec<_> = PACKAGES
        .iter()
        .filter(|(library, ..)| missing.iter().any(|name| name.starts_with(library)))
        .collect();
    if known.is_empty() {
        return diagnostic.hint("install the packages that bring them");
    }
    let debian: BTreeSet<_> = known.iter().map(|(_, package, _)| *package).collect();
    let fedora: BTreeSet<_> = known.iter().map(|(.., package)| *package).collect();
    let join = |packages: BTreeSet<&str>| packages.into_iter().collect::<Vec<_>>().join(" ");
    diagnostic.hint(format!(
        "Debian, Ubuntu: `apt-get install {}`; Fedora: `dnf install {}`",
        join(debian),
        join(fedora)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_libraries_are_named_with_their_packages() {
        let text = "postgres: error while loading shared libraries: libxml2.so.2: cannot open shared object file: No such file or directory\n\
            \tlinux-vdso.so.1 (0x1)\n\
            \tlibssl.so.3 => not found\n\
            \tlibcrypto.so.3 => not found\n\
            \tlibxml2.so.2 => not found\n\
            \tlibc.so.6 => /lib/libc.so.6 (0x2)\n";
        let diagnostic = diagnose(text).unwrap();
        assert_eq!(
            diagnostic.message,
            "the pinned Postgres needs shared libraries that this system lacks: \
             `libcrypto.so.3`, `libssl.so.3`, `libxml2.so.2`"
        );
        assert_eq!(
            diagnostic.hint.as_deref(),
            Some(
                "Debian, Ubuntu: `apt-get install libssl3 libxml2`; \
                 Fedora: `dnf install libxml2 openssl-libs`"
            )
        );
    }

    #[test]
    fn an_old_glibc_is_named() {
        let text = "bin/postgres: /lib/libc.so.6: version `GLIBC_2.4' not found (required by x)\n\
            bin/postgres: /lib/libc.so.6: version `GLIBC_2.34' not found (required by x)\n";
        let diagnostic = diagnose(text).unwrap();
        assert!(diagnostic.message.contains("glibc 2.34"), "{diagnostic:?}");
    }

    #[test]
    fn other_failures_are_not_laid_on_the_libraries() {
        assert_eq!(
            diagnose("initdb: error: disk full\n libc.so.6 => /lib/libc.so.6 (0x1)"),
            None
        );
    }
}
