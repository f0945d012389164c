//! Records of an article from further machines, beside the author's: `records/<name>.json` in its
//! folder. Entry: [`machines`], which reads and judges them; [`findings`] tells what does not hold on
//! one of them.

use super::check::staleness;
use crate::article::Article;
use crate::diagnostic::Diagnostic;
use crate::engine::pins::Pins;
use crate::exit_code::Failure;
use crate::judge::{self, Machine, Outcome};
use crate::record::store::read_record;
use crate::record::{HostEnvironment, Record};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const FOLDER: &str = "records";

const HOLDS_ON_ALL: &str = "what is exact or bounded holds on every machine: change the claim's kind \
                            or tolerance, or measure there again";

/// Where the record of a machine of that name is.
pub fn path(article: &Article, name: &str) -> PathBuf {
    let path = article.directory.join(FOLDER).join(format!("{name}.json"));
    path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)
}

/// Every one, by name. One that was measured with other inputs than the article has now is stale,
/// and not judged.
pub fn machines(
    article: &Article,
    accepted: Option<&Record>,
    pins: &Pins,
) -> Result<Vec<Machine>, Failure> {
    let mut machines = Vec::new();
    for name in names(article)? {
        let Some(record) = read_record(&path(article, &name))? else {
            continue;
        };
        let stale: Vec<Diagnostic> = staleness(article, &record, pins)
            .into_iter()
            .map(|problem| of_machine(problem, &name))
            .map(|problem| problem.hint(how_to_renew(article, &record, &name)))
            .collect();
        let mut machine = Machine {
            name,
            record,
            stale,
            verdicts: Vec::new(),
        };
        machine.verdicts = judge::judge_machine(article, &machine, accepted);
        machines.push(machine);
    }
    Ok(machines)
}

/// What does not hold on one of them, and holds on every machine if it is true.
pub fn findings(article: &Article, machines: &[Machine]) -> Vec<Diagnostic> {
    let of = |machine: &Machine| {
        let explained = (machine.verdicts.iter())
            .filter_map(|verdict| judge::explain(article, verdict))
            .map(|problem| of_machine(problem, &machine.name).hint(HOLDS_ON_ALL));
        explained.collect::<Vec<_>>()
    };
    machines.iter().flat_map(of).collect()
}

/// Whether any of them has a figure that does not hold.
pub fn any_fails(machines: &[Machine]) -> bool {
    let mut verdicts = machines.iter().flat_map(|machine| &machine.verdicts);
    verdicts.any(|verdict| matches!(verdict.outcome, Outcome::DoesNotHold { .. }))
}

fn of_machine(mut problem: Diagnostic, name: &str) -> Diagnostic {
    problem.message = format!("on machine `{name}`: {}", problem.message);
    problem
}

/// What was measured still counts where only what is asked of it has changed.
fn how_to_renew(article: &Article, record: &Record, name: &str) -> String {
    let slug = &article.slug;
    let file = path(article, name);
    let profile = match record.profile.as_str() {
        crate::plan::FULL => String::new(),
        profile => format!(" --profile {profile}"),
    };
    format!(
        "where queries alone have changed: remeasure build --record {0} && remeasure accept \
         --record out/{slug}/record.json --as {name}; else on that machine: remeasure build \
         {slug}{profile}, and accept its out/{slug}/record.json so",
        file.display()
    )
}

/// File names without their ending, ascending.
fn names(article: &Article) -> Result<Vec<String>, Failure> {
    let folder = article.directory.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            let problem = format!("cannot read `{}`: {error}", folder.display());
            return Err(Failure::Record(Diagnostic::error(problem)));
        }
    };
    let mut names = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path
            .file_stem()
            .map(|name| name.to_string_lossy().into_owned());
        if let (Some(name), Some("json")) = (name, path.extension().and_then(|end| end.to_str())) {
            name_is_allowed(&name).map_err(|problem| {
                Failure::Record(problem.note(format!("the file is `{}`", path.display())))
            })?;
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// A name stands in file names, links and claims.
pub fn name_is_allowed(name: &str) -> Result<(), Diagnostic> {
    const LONGEST: usize = 64;
    let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let fits = name.len() <= LONGEST
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(inner);
    if fits {
        return Ok(());
    }
    Err(
        Diagnostic::error(format!("`{name}` cannot be the name of a machine")).hint(format!(
            "letters, digits, `-`, `_` and `.`, up to {LONGEST}, such as `epyc-96`"
        )),
    )
}

/// What a machine is called that nobody gave a name: `amd-epyc-7b13-96-cores`.
pub fn default_name(host: &HostEnvironment) -> String {
    const NOISE: [&str; 6] = ["(r)", "(tm)", "(c)", " cpu", " processor", "@"];
    let mut cpu = host.cpu.to_lowercase();
    for noise in NOISE {
        cpu = cpu.replace(noise, " ");
    }
    let text = format!("{cpu} {} cores", host.cores);
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-").chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_called_after_its_cpu() {
        for (cpu, cores, expected) in [
            ("AMD EPYC 7B13", 96, "amd-epyc-7b13-96-cores"),
            (
                "Intel(R) Xeon(R) CPU @ 2.20GHz",
                2,
                "intel-xeon-2-20ghz-2-cores",
            ),
            ("Apple M3 Pro", 12, "apple-m3-pro-12-cores"),
            ("Ryzen™ 9 «é»", 8, "ryzen-9-8-cores"),
            ("", 1, "1-cores"),
        ] {
            let host = HostEnvironment {
                cpu: cpu.into(),
                cores,
                ..HostEnvironment::default()
            };
            let name = default_name(&host);
            assert_eq!(name, expected);
            assert!(name_is_allowed(&name).is_ok());
        }
    }

    #[test]
    fn a_name_is_a_file_in_its_folder_and_nothing_else() {
        for (name, allowed) in [
            ("big", true),
            ("96-core_v2.1", true),
            ("Big", true),
            ("", false),
            ("..", false),
            (".hidden", false),
            ("../record", false),
            ("a/b", false),
            ("a b", false),
            ("-x", false),
            ("é", false),
            (&"x".repeat(65), false),
        ] {
            assert_eq!(name_is_allowed(name).is_ok(), allowed, "{name:?}");
        }
    }
}
