//! An article that is measured in parts, by several machines. [`measure_part`] measures one shard
//! and writes it down; [`merge`] joins the parts; [`Given`] has what `build --record` then analyses
//! and renders.

use super::asked::Done;
use super::build::{Built, measured_record, refuse};
use super::check::stale_measurements;
use super::options::BuildOptions;
use super::output;
use super::project::Project;
use super::record::Context;
use super::terminal::{self, print, say, tell};
use crate::analyse;
use crate::article::Article;
use crate::diagnostic::Diagnostic;
use crate::engine::pins::Pins;
use crate::exit_code::{Failure, Outcome};
use crate::judge;
use crate::plan::shards::{self, Shard};
use crate::record::store::{read_record, write_atomically};
use crate::record::{self, Merged, Named, Part, Record, Refusal, to_json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Which experiments a shard has, by article.
pub struct Selected {
    pub shard: Shard,
    pub experiments: BTreeMap<String, BTreeSet<String>>,
}

/// Measures the experiments of one shard, judges what reads no others, and leaves a record of them.
pub async fn measure_part<'a>(
    project: &Project,
    pins: &Pins,
    article: &'a Article,
    options: &BuildOptions,
    selected: &Selected,
) -> Result<Done<'a>, Failure> {
    refuse(article)?;
    let Shard { shard, shards } = selected.shard;
    let slug = &article.slug;
    let Some(experiments) = selected.experiments.get(slug) else {
        say(
            options,
            &format!("{slug}: shard {shard}/{shards} has no experiment of it"),
        );
        return Ok(Done {
            built: None,
            outcome: Outcome::Holds,
            problems: Vec::new(),
        });
    };
    let part = shards::part(article, experiments, |query| analyse::reads(article, query));
    let profile = options.profile.as_deref();
    let mut context = Context::new(project, pins, &part, profile, &options.engine).await?;
    let mut record = measured_record(&mut context, options).await?;
    record.part = Some(Part {
        shard,
        shards,
        experiments: (article.experiments())
            .map(|experiment| experiment.id.value.clone())
            .collect(),
    });
    let name = format!("shard-{shard}-of-{shards}.json");
    let path = output::write_part(project, slug, &name, &to_json(&record), options).await?;
    let verdicts = judge::judge(
        &part,
        &record,
        &judge::Context {
            profile: &record.profile,
            accepted: context.accepted.as_ref(),
            measured_here: true,
        },
    );
    let built = Built {
        article,
        record,
        verdicts,
        machines: Vec::new(),
    };
    terminal::tell_machines(&built.record, context.accepted.as_ref(), options);
    terminal::tell_verdicts(&built.judged(), Some(&path), options)?;
    Ok(built.into())
}

/// Joins records into one for each article they are of.
pub fn merge(
    project: &Project,
    files: &[PathBuf],
    output: Option<&Path>,
) -> Result<Outcome, Failure> {
    let mut articles: BTreeMap<String, Vec<Named>> = BTreeMap::new();
    let mut failures = Vec::new();
    for file in files {
        match read(file) {
            Ok(record) => {
                let name = file.display().to_string();
                let all = articles.entry(record.article.clone()).or_default();
                all.push(Named { name, record });
            }
            Err(failure) => failures.push(failure),
        }
    }
    terminal::gathered(failures)?;
    if let (Some(output), [_, _, ..]) = (output, articles.keys().collect::<Vec<_>>().as_slice()) {
        let names: Vec<String> = articles.keys().map(|slug| format!("`{slug}`")).collect();
        return Err(Failure::article(
            Diagnostic::error(format!(
                "the records are of {} articles, and `--output {}` is one file",
                names.len(),
                output.display()
            ))
            .note(format!("they are of {}", names.join(", ")))
            .hint("without `--output` each goes to `out/<article>/merged.json`"),
        ));
    }
    let mut failures = Vec::new();
    for (slug, records) in articles {
        failures.extend(merge_one(project, &slug, &records, output).err());
    }
    terminal::gathered(failures)?;
    Ok(Outcome::Holds)
}

fn merge_one(
    project: &Project,
    slug: &str,
    records: &[Named],
    output: Option<&Path>,
) -> Result<(), Failure> {
    let Merged { record, notes } = record::merge(records).map_err(|refusal| match refusal {
        Refusal::Conflicts(conflicts) => Failure::Article(conflicts),
        Refusal::Incomplete(missing) => Failure::Record(missing),
    })?;
    let path = match output {
        Some(output) => output.to_owned(),
        None => project.out.join(folder_name(slug)?).join("merged.json"),
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| Failure::io("create", folder, &error))?;
    write_atomically(&path, to_json(&record).as_bytes())
        .map_err(|error| Failure::io("write", &path, &error))?;
    for note in notes {
        tell(&format!("{slug}: {note}"));
    }
    let hosts: BTreeSet<&String> = (record.experiments.values())
        .map(|experiment| &experiment.host)
        .collect();
    print(&format!(
        "{}: merged ({}, {}, {}, profile {})\n",
        path.display(),
        counted(records.len(), "record"),
        counted(record.experiments.len(), "experiment"),
        counted(hosts.len(), "machine"),
        record.profile,
    ))
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// A slug out of a file that anybody may have written.
fn folder_name(slug: &str) -> Result<&str, Failure> {
    let mut components = Path::new(slug).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(name)), None) if name == slug => Ok(slug),
        _ => Err(Failure::article(
            Diagnostic::error(format!("`{slug}` is no name of a folder below `out/`"))
                .hint("say where it goes: --output FILE"),
        )),
    }
}

/// A record that was named, and so has to be there.
pub fn read(file: &Path) -> Result<Record, Failure> {
    match read_record(file)? {
        Some(record) => Ok(record),
        None => Err(Failure::article(
            Diagnostic::error(format!("there is no record `{}`", file.display()))
                .hint("`remeasure build` leaves one at `out/<article>/record.json`"),
        )),
    }
}

/// Records to build from, by article.
#[derive(Default)]
pub struct Given(BTreeMap<String, (PathBuf, Record)>);

impl Given {
    pub fn read(files: &[PathBuf]) -> Result<Self, Failure> {
        let mut given: BTreeMap<String, (PathBuf, Record)> = BTreeMap::new();
        for file in files {
            let record = read(file)?;
            let slug = record.article.clone();
            if let Some((before, _)) = given.insert(slug.clone(), (file.clone(), record)) {
                return Err(Failure::article(
                    Diagnostic::error(format!(
                        "`{}` and `{}` are both records of `{slug}`",
                        before.display(),
                        file.display()
                    ))
                    .hint("parts of one article are joined first: remeasure merge FILE…"),
                ));
            }
        }
        Ok(Self(given))
    }

    /// What is built: the articles named; else, where records were given, those they are of.
    pub fn articles(&self, names: &[String]) -> Vec<String> {
        match names {
            [] => self.0.keys().cloned().collect(),
            names => names.to_vec(),
        }
    }

    /// What there is to build this article from; None where no records were given.
    pub fn of(&self, article: &Article, pins: &Pins) -> Result<Option<Record>, Failure> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let Some((file, record)) = self.0.get(&article.slug) else {
            return Err(Failure::article(
                Diagnostic::error(format!("none of the records is of `{}`", article.slug)).hint(
                    format!(
                        "they are of {}",
                        self.0.keys().cloned().collect::<Vec<_>>().join(", ")
                    ),
                ),
            ));
        };
        refuse_part(file, record)?;
        let stale = stale_measurements(article, record, pins);
        let Some((first, others)) = stale.split_first() else {
            return Ok(Some(record.clone()));
        };
        let mut problem = Diagnostic::error(format!(
            "`{}` is not of this article as it is now: {}",
            file.display(),
            first.message
        ));
        problem.place.clone_from(&first.place);
        for other in others {
            problem = problem.note(&other.message);
        }
        Err(Failure::Record(problem.hint(
            "measure it again, or check out the version of the article that it was measured with",
        )))
    }
}

/// A part is no record of an article.
pub fn refuse_part(file: &Path, record: &Record) -> Result<(), Failure> {
    let Some(Part { shard, shards, .. }) = &record.part else {
        return Ok(());
    };
    Err(Failure::Record(
        Diagnostic::error(format!(
            "`{}` has the experiments of shard {shard}/{shards} alone",
            file.display()
        ))
        .hint("join it with the others first: remeasure merge FILE…"),
    ))
}
