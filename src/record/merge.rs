//! Joins what several machines or shards have measured of one article. Entry: [`merge`]. It needs
//! the records alone: whether they are of the article as it is now is told by who reads it.
//!
//! 1. [`headings`]: all must be of one article, profile and version of the tool
//! 2. [`one_set`]: what experiments share (server, settings, fixtures, params) is the same in all
//! 3. [`experiments`]: each once; of two results from one machine the later one counts
//! 4. [`environments`]: what each was measured on stays with it
//!
//! The outcome does not depend on the order of the records. What the queries gave is left out: a
//! claim may read experiments of several parts, and is evaluated over the whole.

use super::difference::differences;
use super::format::{Environment, ExperimentRecord, FORMAT, Record, ServerEnvironment};
use super::json::to_json;
use crate::diagnostic::Diagnostic;
use indexmap::IndexMap;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A record with what its file is called in messages.
#[derive(Clone, Debug)]
pub struct Named {
    pub name: String,
    pub record: Record,
}

/// Why records cannot be joined.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// They do not belong together: every reason.
    Conflicts(Vec<Diagnostic>),
    /// They do, and some are missing.
    Incomplete(Diagnostic),
}

/// A record with all experiments of the article, and how a choice was made where there was one.
#[derive(Debug, PartialEq, Eq)]
pub struct Merged {
    pub record: Record,
    pub notes: Vec<String>,
}

/// Joins records of one article, one at least.
pub fn merge(records: &[Named]) -> Result<Merged, Refusal> {
    let records = in_order(records);
    let first = records[0];
    if let [one] = distinct(&records).as_slice()
        && one.record.part.is_none()
    {
        return Ok(Merged {
            record: one.record.clone(),
            notes: Vec::new(),
        });
    }
    let mut conflicts = headings(&records);
    if conflicts.is_empty() {
        conflicts.extend(one_set(&records));
    }
    let order = order(&records, &mut conflicts);
    let mut notes = Vec::new();
    let mut found = experiments(&records, &mut conflicts, &mut notes);
    for id in found.keys().filter(|id| !order.contains(id)) {
        conflicts.push(Diagnostic::error(format!(
            "experiment `{id}` is none of the article's {}",
            order.join(", ")
        )));
    }
    let environments = environments(&records, &found, &mut conflicts);
    if !conflicts.is_empty() {
        return Err(Refusal::Conflicts(conflicts));
    }
    let missing: Vec<&String> = (order.iter())
        .filter(|id| !found.contains_key(*id))
        .collect();
    if !missing.is_empty() {
        return Err(Refusal::Incomplete(incomplete(&records, &missing)));
    }
    let (environment, environments) = main_environment(environments, &found);
    let experiments = (order.iter())
        .filter_map(|id| Some((id.clone(), found.remove(id)?.clone())))
        .collect();
    let queries = (records.iter())
        .flat_map(|named| named.record.queries.fields.clone())
        .collect();
    let record = Record {
        format: FORMAT,
        article: first.record.article.clone(),
        profile: first.record.profile.clone(),
        params: first.record.params.clone(),
        part: None,
        environment,
        environments,
        queries: super::Fingerprint { fields: queries },
        experiments,
        claims: IndexMap::new(),
        tables: IndexMap::new(),
        charts: IndexMap::new(),
        skipped: (records.iter())
            .flat_map(|named| named.record.skipped.clone())
            .collect(),
    };
    Ok(Merged { record, notes })
}

/// By their content, so that neither their order nor their names matter.
fn in_order(records: &[Named]) -> Vec<&Named> {
    let mut keyed: Vec<(String, &Named)> = (records.iter())
        .map(|named| (to_json(&named.record), named))
        .collect();
    keyed.sort_by(|(one, a), (other, b)| (one, &a.name).cmp(&(other, &b.name)));
    keyed.into_iter().map(|(_, named)| named).collect()
}

/// The same record twice is one.
fn distinct<'a>(records: &[&'a Named]) -> Vec<&'a Named> {
    let mut distinct = records.to_vec();
    distinct.dedup_by(|one, other| one.record == other.record);
    distinct
}

/// What all must agree in; each that does not is told beside the first.
fn headings(records: &[&Named]) -> Vec<Diagnostic> {
    let mut conflicts = Vec::new();
    let first = records[0];
    let facts = |record: &Record| {
        let tool = &record.environment.tool;
        let params: Vec<String> = (record.params.iter())
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        [
            ("article", record.article.clone(), ""),
            ("profile", record.profile.clone(), ""),
            ("params", format!("{{{}}}", params.join(", ")), ""),
            (
                "protocol",
                tool.protocol.to_string(),
                "measure them all with one version of remeasure",
            ),
            (
                "remeasure",
                tool.version.clone(),
                "measure them all with one version of remeasure",
            ),
        ]
    };
    for other in &records[1..] {
        let pairs = facts(&first.record).into_iter().zip(facts(&other.record));
        for ((what, before, hint), (_, now, _)) in pairs {
            if before != now {
                let conflict = Diagnostic::error(format!(
                    "`{}` and `{}` cannot be joined: {what} `{before}` in one, `{now}` in the \
                     other",
                    first.name, other.name
                ));
                conflicts.push(match hint {
                    "" => conflict,
                    hint => conflict.hint(hint),
                });
            }
        }
    }
    conflicts
}

/// Inputs that are the article's and not an experiment's: where two parts have them, they are the
/// same, or the parts are of two versions of the article.
fn is_shared(input: &str) -> bool {
    const NAMES: [&str; 3] = ["protocol", "server", "seed"];
    const KINDS: [&str; 6] = [
        "server `",
        "server setting `",
        "extension `",
        "container limit `",
        "fixture `",
        "param `",
    ];
    NAMES.contains(&input) || KINDS.iter().any(|kind| input.starts_with(kind))
}

/// All measurements are of one set of inputs, all queries of one text.
fn one_set(records: &[&Named]) -> Vec<Diagnostic> {
    let mut conflicts = Vec::new();
    let mut inputs: BTreeMap<&str, (&str, &Named)> = BTreeMap::new();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for &named in records {
        let record = &named.record;
        let shared = (record.experiments.values())
            .flat_map(|experiment| &experiment.inputs.fields)
            .filter(|(input, _)| is_shared(input));
        for (input, value) in shared.chain(&record.queries.fields) {
            let (before, with) = *inputs.entry(input).or_insert((value, named));
            if before != value && told.insert(input) {
                conflicts.push(other_text(input, (with, before), (named, value)));
            }
        }
    }
    conflicts
}

fn other_text(input: &str, before: (&Named, &str), now: (&Named, &str)) -> Diagnostic {
    let map = |value: &str| BTreeMap::from([(input.to_owned(), value.to_owned())]);
    let difference = differences(&map(before.1), &map(now.1)).remove(0);
    let diagnostic = Diagnostic::error(format!(
        "`{}` and `{}` were measured with other inputs: {difference}",
        before.0.name, now.0.name
    ))
    .hint("measure all parts of one version of the article, on one engine");
    match difference.is_short() {
        true => diagnostic,
        false => diagnostic.note(difference.lines().join("\n")),
    }
}

/// All experiments of the article, as the records tell.
fn order(records: &[&Named], conflicts: &mut Vec<Diagnostic>) -> Vec<String> {
    let all = |record: &Record| match &record.part {
        Some(part) => part.experiments.clone(),
        None => record.experiments.keys().cloned().collect(),
    };
    let first = all(&records[0].record);
    for other in &records[1..] {
        let now = all(&other.record);
        if now != first {
            conflicts.push(
                Diagnostic::error(format!(
                    "`{}` and `{}` are of two versions of the article: one has the experiments \
                     {}, the other {}",
                    records[0].name,
                    other.name,
                    first.join(", "),
                    now.join(", ")
                ))
                .hint("measure all parts of one version of the article"),
            );
        }
    }
    first
}

/// Each experiment once.
fn experiments<'a>(
    records: &[&'a Named],
    conflicts: &mut Vec<Diagnostic>,
    notes: &mut Vec<String>,
) -> BTreeMap<String, &'a ExperimentRecord> {
    let mut found: BTreeMap<String, (&Named, &ExperimentRecord)> = BTreeMap::new();
    for &named in records {
        for (id, experiment) in &named.record.experiments {
            let Some((with, before)) = found.get(id).copied() else {
                found.insert(id.clone(), (named, experiment));
                continue;
            };
            match chosen(id, (with, before), (named, experiment)) {
                Ok(Choice::Same) => {}
                Ok(Choice::Before(note)) => notes.push(note),
                Ok(Choice::Now(note)) => {
                    notes.push(note);
                    found.insert(id.clone(), (named, experiment));
                }
                Err(conflict) => conflicts.push(conflict),
            }
        }
    }
    (found.into_iter())
        .map(|(id, (_, experiment))| (id, experiment))
        .collect()
}

enum Choice {
    /// They are one and the same.
    Same,
    Before(String),
    Now(String),
}

/// Which of two results of an experiment counts.
fn chosen(
    id: &str,
    (with, before): (&Named, &ExperimentRecord),
    (named, now): (&Named, &ExperimentRecord),
) -> Result<Choice, Diagnostic> {
    if before == now {
        return Ok(Choice::Same);
    }
    let both = format!("`{}` and `{}`", with.name, named.name);
    if before.inputs != now.inputs {
        let differences = before.inputs.differences(&now.inputs);
        let texts: Vec<String> = differences.iter().map(ToString::to_string).collect();
        return Err(Diagnostic::error(format!(
            "{both} have measured other things as experiment `{id}`: {}",
            texts.join(", ")
        ))
        .hint("measure all parts of one version of the article"));
    }
    if before.host != now.host {
        let name = |named: &Named, host: &str| {
            let environment = named.record.environment_of(host);
            environment.map_or_else(|| host.to_owned(), |one| one.host.machine())
        };
        return Err(Diagnostic::error(format!(
            "experiment `{id}` was measured on two machines, in {both}"
        ))
        .note(format!("{}: {}", with.name, name(with, &before.host)))
        .note(format!("{}: {}", named.name, name(named, &now.host)))
        .hint(
            "leave one of them out; whole records of several machines stand side by side on the \
             page: remeasure accept --record FILE --as NAME",
        ));
    }
    let chosen = |time: &str| {
        format!(
            "experiment `{id}` was measured twice on one machine, in {both}: the later result counts, of {time}"
        )
    };
    match before.measured_at.cmp(&now.measured_at) {
        std::cmp::Ordering::Less => Ok(Choice::Now(chosen(&now.measured_at))),
        std::cmp::Ordering::Greater => Ok(Choice::Before(chosen(&before.measured_at))),
        std::cmp::Ordering::Equal => Err(Diagnostic::error(format!(
            "experiment `{id}` has two results that began in the same second, in {both}"
        ))
        .hint("leave one of them out")),
    }
}

/// What each host that something was measured on is, and which server ran there.
fn environments(
    records: &[&Named],
    experiments: &BTreeMap<String, &ExperimentRecord>,
    conflicts: &mut Vec<Diagnostic>,
) -> BTreeMap<String, Environment> {
    let hosts: BTreeSet<&String> = experiments.values().map(|one| &one.host).collect();
    let mut found: BTreeMap<String, (&Named, &Environment)> = BTreeMap::new();
    for &named in records {
        let record = &named.record;
        let all = std::iter::once(&record.environment).chain(record.environments.values());
        for environment in all.filter(|one| hosts.contains(&one.host.sha256)) {
            let host = &environment.host.sha256;
            let Some((with, before)) = found.get(host).copied() else {
                found.insert(host.clone(), (named, environment));
                continue;
            };
            let others = before.servers().flat_map(|server| {
                let mut now = environment.servers();
                now.find(|now| now.version == server.version && now.sha256 != server.sha256)
                    .map(|now| (server, now))
            });
            let versions = |environment: &Environment| environment.versions_text();
            let is_other = versions(before) != versions(environment);
            let main = is_other.then_some((&before.server, &environment.server));
            for (server, now) in others.chain(main) {
                conflicts.push(other_server((with, server), (named, now)));
            }
            // Of what changes from boot to boot one stands for all.
            if json(environment) < json(before) {
                found.insert(host.clone(), (named, environment));
            }
        }
    }
    for (id, experiment) in experiments {
        if !found.contains_key(&experiment.host) {
            conflicts.push(Diagnostic::error(format!(
                "no record says what the machine is that experiment `{id}` was measured on"
            )));
        }
    }
    (found.into_iter())
        .map(|(host, (_, environment))| (host, environment.clone()))
        .collect()
}

fn other_server(
    before: (&Named, &ServerEnvironment),
    now: (&Named, &ServerEnvironment),
) -> Diagnostic {
    let fields = |server: &ServerEnvironment| -> BTreeMap<String, String> {
        let server = serde_json::to_value(server).expect("a server serialises");
        let members = server.as_object().cloned().unwrap_or_default();
        (members.into_iter())
            .filter(|(name, _)| !["sha256", "engine_reason"].contains(&name.as_str()))
            .map(|(name, value)| (name, value.to_string()))
            .collect()
    };
    let texts: Vec<String> = differences(&fields(before.1), &fields(now.1))
        .iter()
        .map(ToString::to_string)
        .collect();
    Diagnostic::error(format!(
        "`{}` and `{}` are of one machine and two servers: {}",
        before.0.name,
        now.0.name,
        texts.join(", ")
    ))
    .hint("measure all parts of one machine on one server")
}

fn json(part: &impl Serialize) -> String {
    serde_json::to_string(part).expect("a part of a record serialises")
}

/// The one that most experiments were measured in, and the others.
fn main_environment(
    mut environments: BTreeMap<String, Environment>,
    experiments: &BTreeMap<String, &ExperimentRecord>,
) -> (Environment, BTreeMap<String, Environment>) {
    let count = |host: &String| {
        let there = experiments.values().filter(|one| one.host == *host);
        there.count()
    };
    let most = (environments.keys())
        // Of equally many the first hash.
        .max_by(|one, other| count(one).cmp(&count(other)).then(other.cmp(one)))
        .cloned();
    let main = most.and_then(|host| environments.remove(&host));
    (main.unwrap_or_default(), environments)
}

/// Shards that are counted up.
const MOST_TOLD: u32 = 1_000;

fn incomplete(records: &[&Named], missing: &[&String]) -> Diagnostic {
    let names: Vec<String> = missing.iter().map(|id| format!("`{id}`")).collect();
    let article = &records[0].record.article;
    let are = if names.len() == 1 {
        "experiment"
    } else {
        "experiments"
    };
    let diagnostic = Diagnostic::error(format!(
        "nothing of `{article}` was merged: no record has {are} {}",
        names.join(", ")
    ));
    let parts: Vec<_> = (records.iter())
        .filter_map(|named| named.record.part.as_ref())
        .collect();
    let shards: BTreeSet<u32> = parts.iter().map(|part| part.shards).collect();
    let there: BTreeSet<u32> = parts.iter().map(|part| part.shard).collect();
    let gone: Vec<String> = match shards.first() {
        // A number that somebody made up is not counted to.
        Some(&shards_of_all) if shards.len() == 1 && shards_of_all <= MOST_TOLD => (1
            ..=shards_of_all)
            .filter(|shard| !there.contains(shard))
            .map(|shard| format!("{shard}/{shards_of_all}"))
            .collect(),
        _ => Vec::new(),
    };
    let diagnostic = match gone.as_slice() {
        [] => diagnostic,
        gone => diagnostic.note(format!("there is no part of shard {}", gone.join(", "))),
    };
    diagnostic.hint("name the parts of all shards; what was measured of one is in `out/<article>/`")
}

#[cfg(test)]
mod tests;
