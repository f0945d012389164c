//! `clean`: what killed runs have left, and with `--cache` what is kept to start quickly. Records,
//! measurements and pages are never touched.

use super::build::runtime;
use super::terminal::{print, print_json, tell};
use crate::diagnostic::Diagnostic;
use crate::engine::clean::{Cleaned, Found, Request};
use crate::engine::{self, EngineChoice};
use crate::exit_code::{Failure, Outcome};
use serde::Serialize;

/// The version of the JSON document's shape.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    dry_run: bool,
    removed: Vec<Item<'a>>,
    kept: Vec<Item<'a>>,
    bytes: u64,
    no_daemon: Option<&'a str>,
}

#[derive(Serialize)]
struct Item<'a> {
    kind: &'a str,
    name: &'a str,
    bytes: Option<u64>,
    why: Option<&'a str>,
}

/// `server`: of the url engine.
pub fn clean(
    server: Option<&EngineChoice>,
    cache: bool,
    dry_run: bool,
    json: bool,
) -> Result<Outcome, Failure> {
    let folder = engine::default_cache();
    let request = Request {
        cache: &folder,
        all_of_it: cache,
        dry_run,
    };
    let runtime = runtime()?;
    let mut cleaned = runtime
        .block_on(engine::clean::clean(request))
        .map_err(|error| Failure::io("clean", &folder, &error))?;
    if let Some(EngineChoice::Url(target)) = server {
        let dropped = runtime.block_on(engine::clean_server(target))?;
        cleaned
            .found
            .extend(dropped.into_iter().map(Found::database));
    }
    match json {
        true => print_json(&document(&cleaned, dry_run))?,
        false => print_text(&cleaned, dry_run)?,
    }
    let kept = cleaned.found.iter().filter(|found| found.kept.is_some());
    match kept.count() {
        0 => Ok(Outcome::Holds),
        _ if cleaned.living > 0 => Err(Failure::article(
            Diagnostic::error(format!(
                "the cache is in use by {}",
                counted(cleaned.living, "run")
            ))
            .hint("give the command again when they have ended"),
        )),
        number => Err(Failure::internal(format!(
            "{} cannot be removed",
            counted(number, "thing")
        ))),
    }
}

fn print_text(cleaned: &Cleaned, dry_run: bool) -> Result<(), Failure> {
    if let Some(why) = &cleaned.no_daemon {
        tell(&format!("containers are not looked for: {why}"));
    }
    let gone = if dry_run { "would remove" } else { "removed" };
    for found in &cleaned.found {
        let size = found.bytes.map(|bytes| format!(" ({})", megabytes(bytes)));
        let size = size.unwrap_or_default();
        print(&match &found.kept {
            None => format!("{gone} {} {}{size}\n", found.kind, found.name),
            Some(why) => format!("kept {} {}{size}: {why}\n", found.kind, found.name),
        })?;
    }
    let bytes = megabytes(bytes(cleaned));
    let things = cleaned.found.iter().filter(|found| found.kept.is_none());
    match things.count() {
        0 => print("nothing to remove\n"),
        number => print(&format!("{gone} {}, {bytes}\n", counted(number, "thing"))),
    }
}

fn document(cleaned: &Cleaned, dry_run: bool) -> Document<'_> {
    let (removed, kept): (Vec<&Found>, Vec<&Found>) =
        (cleaned.found.iter()).partition(|found| found.kept.is_none());
    Document {
        format: FORMAT,
        dry_run,
        removed: removed.into_iter().map(item).collect(),
        kept: kept.into_iter().map(item).collect(),
        bytes: bytes(cleaned),
        no_daemon: cleaned.no_daemon.as_deref(),
    }
}

fn item(found: &Found) -> Item<'_> {
    Item {
        kind: found.kind,
        name: &found.name,
        bytes: found.bytes,
        why: found.kept.as_deref(),
    }
}

/// Of what is gone, as far as it is known.
fn bytes(cleaned: &Cleaned) -> u64 {
    let gone = cleaned.found.iter().filter(|found| found.kept.is_none());
    gone.filter_map(|found| found.bytes).sum()
}

fn megabytes(bytes: u64) -> String {
    match bytes {
        0..100_000 => format!("{} kB", bytes.div_ceil(1000)),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}

fn counted(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_units_that_people_read() {
        for (bytes, told) in [
            (0, "0 kB"),
            (1, "1 kB"),
            (8192, "9 kB"),
            (99_999, "100 kB"),
            (100_000, "0.1 MB"),
            (41_943_040, "41.9 MB"),
        ] {
            assert_eq!(megabytes(bytes), told);
        }
    }
}
