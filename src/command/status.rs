//! `status`: for each experiment whether its result is fresh, stale or missing, and why; for each
//! figure whether the accepted record has it. Runs nothing, and waits for nobody.

mod explain;

use super::build::runtime;
use super::check::staleness;
use super::machines;
use super::project::Project;
use super::record::{Context, record_path};
use super::terminal::{both, for_each, print, print_json, worst};
use crate::article::Article;
use crate::engine::Engines;
use crate::engine::pins::Pins;
use crate::exit_code::{Failure, Outcome};
use crate::judge::Machine;
use crate::plan::{Decision, Force};
use serde::Serialize;
use std::fmt::Write;

/// The version of the JSON document's shape.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    articles: &'a [Status],
}

#[derive(Serialize)]
struct Status {
    article: String,
    profile: String,
    postgres: String,
    engine: String,
    engine_reason: String,
    experiments: Vec<ExperimentStatus>,
    record: RecordStatus,
    /// Records of further machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    machines: Vec<MachineStatus>,
    /// Of the id that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    explained: Vec<explain::Explained>,
}

#[derive(Serialize)]
struct ExperimentStatus {
    experiment: String,
    /// sha256 of its inputs.
    fingerprint: String,
    /// A build would measure nothing.
    fresh: bool,
    /// Why it would run.
    reason: Option<String>,
    measured_at: Option<String>,
}

#[derive(Serialize)]
struct RecordStatus {
    state: RecordState,
    /// Why it is missing or stale.
    problems: Vec<String>,
    profile: Option<String>,
    claims: Option<usize>,
    /// Measured on this machine.
    this_machine: Option<bool>,
    /// What it was measured on.
    engine: Option<String>,
}

#[derive(Serialize)]
struct MachineStatus {
    machine: String,
    state: RecordState,
    /// Why it is stale.
    problems: Vec<String>,
    profile: String,
    claims: usize,
    host: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum RecordState {
    Current,
    Stale,
    Missing,
}

/// Prints what a build would do. The outcome is that of the accepted record: exit code 5 where it
/// is missing or stale.
pub fn status(
    project: &Project,
    names: &[String],
    profile: Option<&str>,
    engines: &Engines,
    explain: Option<&str>,
    json: bool,
) -> Result<Outcome, Failure> {
    let pins = project.pins()?;
    let (articles, all_read) = project.articles(names, &pins)?;
    // It may be in one that cannot be read.
    if let Some(id) = explain.filter(|_| all_read.is_ok()) {
        explain::exists(id, &articles)?;
    }
    let runtime = runtime()?;
    let (found, all_done) = for_each(&articles, |article| {
        let context = Context::new(project, &pins, article, profile, engines);
        let context = runtime.block_on(context)?;
        let mut status = of(article, &context, &pins)?;
        if let Some(id) = explain {
            status.explained = explain::explain(&context, id);
        }
        if !json {
            print(&text(&status))?;
        }
        Ok(status)
    });
    if json {
        print_json(&Document {
            format: FORMAT,
            articles: &found,
        })?;
    }
    both(all_read, all_done)?;
    let states = found.iter().flat_map(|status| {
        let machines = status.machines.iter().map(|machine| machine.state);
        machines.chain([status.record.state])
    });
    Ok(worst(states.map(|state| match state {
        RecordState::Current => Outcome::Holds,
        RecordState::Stale | RecordState::Missing => Outcome::RecordStale,
    })))
}

fn of(article: &Article, context: &Context<'_>, pins: &Pins) -> Result<Status, Failure> {
    let experiments = context
        .plan(&Force::Nothing)
        .into_iter()
        .map(|item| ExperimentStatus {
            experiment: item.experiment.id.value.clone(),
            fingerprint: item.fingerprint.sha256(),
            fresh: matches!(item.decision, Decision::Reuse(_)),
            reason: match &item.decision {
                Decision::Reuse(_) => None,
                Decision::Run { reason, .. } => Some(reason.to_string()),
            },
            measured_at: match &item.decision {
                Decision::Reuse(result) => Some(result.measured_at.clone()),
                Decision::Run { .. } => None,
            },
        })
        .collect();
    let machines = machines::machines(article, context.accepted.as_ref(), pins)?;
    Ok(Status {
        article: article.slug.clone(),
        profile: context.resolved.profile.clone(),
        postgres: context.versions(),
        engine: context.engine(),
        engine_reason: context.engine_reason(),
        experiments,
        record: record(article, context, pins),
        machines: machines.iter().map(machine).collect(),
        explained: Vec::new(),
    })
}

fn machine(machine: &Machine) -> MachineStatus {
    MachineStatus {
        machine: machine.name.clone(),
        state: match machine.is_stale() {
            true => RecordState::Stale,
            false => RecordState::Current,
        },
        problems: (machine.stale.iter())
            .map(|problem| problem.message.clone())
            .collect(),
        profile: machine.record.profile.clone(),
        claims: machine.record.claims.len(),
        host: machine.record.environment.host.machine(),
    }
}

fn record(article: &Article, context: &Context<'_>, pins: &Pins) -> RecordStatus {
    let Some(record) = &context.accepted else {
        return RecordStatus {
            state: RecordState::Missing,
            problems: vec![format!("there is no `{}`", record_path(article).display())],
            profile: None,
            claims: None,
            this_machine: None,
            engine: None,
        };
    };
    let problems: Vec<String> = staleness(article, record, pins)
        .into_iter()
        .map(|problem| problem.message)
        .collect();
    RecordStatus {
        state: match problems.as_slice() {
            [] => RecordState::Current,
            _ => RecordState::Stale,
        },
        problems,
        profile: Some(record.profile.clone()),
        claims: Some(record.claims.len()),
        this_machine: Some(record.environment.host.sha256 == context.host.sha256),
        engine: Some(record.environment.server.engine.clone()),
    }
}

fn text(status: &Status) -> String {
    let mut text = format!(
        "{} · profile {} · Postgres {} · engine {}: {}\n",
        status.article, status.profile, status.postgres, status.engine, status.engine_reason
    );
    for experiment in &status.experiments {
        let state = match (&experiment.measured_at, &experiment.reason) {
            (Some(at), _) => format!("fresh, measured {at}"),
            (None, reason) => format!("would run: {}", reason.as_deref().unwrap_or_default()),
        };
        let _ = writeln!(text, "  {}: {state}", experiment.experiment);
    }
    let record = &status.record;
    for problem in &record.problems {
        let _ = writeln!(text, "  record: {problem}");
    }
    if let (RecordState::Current, Some(profile), Some(claims)) =
        (record.state, &record.profile, record.claims)
    {
        let machine = match record.this_machine {
            Some(true) => "this machine",
            _ => "another machine",
        };
        // A build compares with it, whichever engine it was measured on.
        let other = record.engine.as_ref();
        let engine = match other.filter(|engine| **engine != status.engine) {
            Some(engine) => format!(", engine {engine}"),
            None => String::new(),
        };
        let _ = writeln!(
            text,
            "  record: current, profile {profile}, {claims} claims, host {machine}{engine}"
        );
    }
    for machine in &status.machines {
        for problem in &machine.problems {
            let _ = writeln!(text, "  record: {problem}");
        }
        if machine.state == RecordState::Current {
            let (name, profile, claims) = (&machine.machine, &machine.profile, machine.claims);
            let host = &machine.host;
            let _ = writeln!(
                text,
                "  record of machine `{name}`: current, profile {profile}, {claims} claims, {host}"
            );
        }
    }
    for explained in &status.explained {
        text.push_str(&explained.text());
    }
    text
}
