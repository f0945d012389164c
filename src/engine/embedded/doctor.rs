//! What the embedded engine would find on this machine.

use super::binaries::{FOLDER_VARIABLE, installation, place};
use super::fetch::{PIPS, Pip};
use super::{libraries, process, user};
use crate::diagnostic::Diagnostic;
use crate::engine::cache::Cache;
use crate::engine::pins::{self, Pin, Pins};
use crate::engine::{Finding, Need};
use std::path::Path;

/// Looks, and changes nothing.
pub fn findings(pins: &Pins, cache: &Path) -> Vec<Finding> {
    let mut findings = vec![user_finding(cache)];
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty()) {
        findings.push(folder_finding(Path::new(&folder)));
    }
    let cache = Cache::at(cache);
    for version in pins.versions() {
        if let Some(pin) = pins.version(&version) {
            findings.push(version_finding(pin, &cache));
        }
    }
    // Any of them fetches.
    let pips = PIPS.iter().map(pip_finding);
    findings.extend(pips.map(|finding| finding.needed(Need::OneOf("pip"))));
    if cfg!(target_os = "linux") {
        findings.push(zone_finding());
    }
    findings
}

fn user_finding(cache: &Path) -> Finding {
    let what = "user of the embedded server".to_owned();
    match user::unprivileged() {
        Ok(None) => Finding::good(what, "the one that runs this"),
        Ok(Some(user)) => match user.barred_from(cache) {
            None => Finding::good(what, format!("`{}`, as this runs as root", user.name)),
            Some(barrier) => Finding::bad(
                what,
                format!("`{}` may not enter `{}`", user.name, barrier.display()),
                "keep the cache in a folder that everyone may enter, or do not run as root",
            ),
        },
        Err(diagnostic) => from_diagnostic(what, diagnostic),
    }
}

fn folder_finding(folder: &Path) -> Finding {
    let what = format!("{FOLDER_VARIABLE}={}", folder.display());
    let folder = installation(folder);
    let program = folder.join("bin/postgres");
    match process::finish(process::command(&program, None).arg("--version")) {
        Ok(finished) if finished.success => Finding::good(what, finished.output.trim()),
        Ok(finished) => match libraries::explain(&folder.join("bin"), &finished.output) {
            Some(diagnostic) => from_diagnostic(what, diagnostic),
            None => Finding::bad(
                what,
                finished.output.trim(),
                "name another folder, or unset it",
            ),
        },
        Err(error) => Finding::bad(
            what,
            format!("`{}`: {error}", program.display()),
            "name another folder, or unset it",
        ),
    }
}

fn version_finding(pin: &Pin, cache: &Cache) -> Finding {
    let what = format!("Postgres {}", pin.version);
    let platform = pins::platform();
    let Some(archive) = pin.archives.get(&platform) else {
        return Finding::bad(
            what,
            format!("no archive for {platform} is pinned"),
            format!("name a folder with Postgres of this version in {FOLDER_VARIABLE}"),
        );
    };
    let folder = place(cache, pin, &archive.archive);
    if !folder.is_dir() {
        return Finding::good(
            what,
            format!(
                "not in the cache; will be fetched: {} {}",
                archive.package, archive.version
            ),
        );
    }
    match libraries::explain(&folder.join("bin"), "") {
        Some(diagnostic) => from_diagnostic(what, diagnostic),
        None => Finding::good(what, format!("in the cache: `{}`", folder.display())),
    }
}

fn pip_finding(pip: &Pip) -> Finding {
    let what = format!("`{}`", pip.name());
    let hint = "one pip is enough: Debian, Ubuntu: `apt-get install python3-pip`; Fedora: `dnf \
                install python3-pip`";
    match process::finish(pip.command().arg("--version")) {
        Ok(finished) if finished.success => Finding::good(what, finished.output.trim()),
        Ok(finished) => Finding::bad(what, finished.output.trim(), hint),
        Err(error) => Finding::bad(what, error.to_string(), hint),
    }
}

fn zone_finding() -> Finding {
    let what = "time zones".to_owned();
    let folder = Path::new("/usr/share/zoneinfo");
    if folder.join("UTC").exists() {
        Finding::good(what, format!("in `{}`", folder.display()))
    } else {
        Finding::bad(
            what,
            format!("none in `{}`: only GMT can be used", folder.display()),
            "install the package `tzdata`",
        )
    }
}

fn from_diagnostic(what: String, diagnostic: Diagnostic) -> Finding {
    Finding {
        need: Need::Required,
        what,
        ok: false,
        detail: diagnostic.message,
        hint: diagnostic.hint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pinned_version_and_every_pip_is_reported_and_nothing_is_made() {
        let pins = Path::new(env!("CARGO_MANIFEST_DIR")).join("articles/pins.yaml");
        let pins = Pins::read(&pins).unwrap();
        let root = tempfile::tempdir().unwrap();
        let cache = root.path().join("cache");
        let findings = findings(&pins, &cache);
        let about = |what: &str| findings.iter().any(|finding| finding.what.contains(what));
        for what in [
            "Postgres 16.15",
            "Postgres 18.6",
            "python3 -m pip",
            "pip3",
            "user",
        ] {
            assert!(about(what), "{what}: {findings:?}");
        }
        assert!(
            findings
                .iter()
                .all(|finding| finding.ok == finding.hint.is_none())
        );
        assert!(!cache.exists());
    }
}
