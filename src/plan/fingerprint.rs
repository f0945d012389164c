//! The inputs of an experiment by name, printable and hashable. What is not in here (prose,
//! captions, `derive`, `timeout`, whether the listing is shown) never makes an experiment run
//! again.

use super::{Resolved, ServerIdentity};
use crate::article::{
    Article, Client, CollectSession, Experiment, Fixture, IncludedFile, InstrumentChoice, Phase,
    PostgresSpec, ProgramScript, Runs, Scalar, Script, Terminator,
};
use crate::parse::sql::variables_of_text;
use crate::record::Fingerprint;
use crate::source::Spanned;
use std::collections::{BTreeMap, BTreeSet};

/// Raised whenever the way things are measured changes in a manner that changes results.
pub const PROTOCOL: u32 = 1;

/// Everything the result of `experiment` depends on; `servers` has one for each of the article's
/// versions.
pub fn of_experiment(
    article: &Article,
    experiment: &Experiment,
    resolved: &Resolved,
    servers: &[ServerIdentity],
) -> Fingerprint {
    let mut fields = BTreeMap::new();
    let mut put = |name: String, value: String| {
        fields.insert(name, value.replace("\r\n", "\n"));
    };
    put("protocol".into(), PROTOCOL.to_string());
    let front = &article.front_matter;
    for server in servers {
        if front.postgres.versions.is_empty() {
            put("server".into(), describe_server(server));
        } else if is_on(experiment, &front.postgres, &server.version) {
            let name = format!("server `{}`", server.version);
            put(name, describe_server(server));
        }
    }
    for (name, value) in &front.postgres.settings {
        put(format!("server setting `{name}`"), value.clone());
    }
    for extension in &front.postgres.extensions {
        put(format!("extension `{}`", extension.value), "created".into());
    }
    put("seed".into(), front.seed.to_plain_string());
    for (name, limit) in [
        ("memory", &front.postgres.memory),
        ("cpus", &front.postgres.cpus),
        ("shm_size", &front.postgres.shm_size),
    ] {
        if let Some(limit) = limit {
            put(format!("container limit `{name}`"), limit.clone());
        }
    }
    if let Some(platform) = &front.postgres.platform {
        put("container platform".into(), platform.value.clone());
    }
    let mut used = BTreeSet::new();
    let fixtures = closure(article, experiment.fixture.as_ref());
    if let Some(order) = order_of(&fixtures) {
        put("order of fixtures".into(), order);
    }
    for fixture in fixtures {
        put(
            format!("fixture `{}`", fixture.id.value),
            script_text(&fixture.script),
        );
        used.extend(variable_names(&fixture.script));
    }
    for (name, value) in experiment_fields(experiment, resolved) {
        put(name, value);
    }
    used.extend(experiment_variables(experiment));
    for (name, file) in files_of(article, experiment) {
        put(format!("file `{name}`"), format!("sha256 {}", file.sha256));
        used.extend(file.variables.iter().cloned());
    }
    for name in used {
        if let Some(value) = resolved.params.get(&name) {
            // A matrix column hides the param inside the experiment, but not inside its fixture;
            // naming it in both cases errs on the side of running.
            put(format!("param `{name}`"), value.to_string());
        }
    }
    Fingerprint { fields }
}

/// The part of it that a fixture is: its script, those it stands on, and their params.
pub fn of_fixture(article: &Article, id: &str, resolved: &Resolved) -> Fingerprint {
    let fixture = article.fixtures().find(|fixture| fixture.id.value == id);
    let closure = closure(article, fixture.map(|fixture| &fixture.id));
    let mut fields = BTreeMap::new();
    for fixture in closure {
        let script = script_text(&fixture.script).replace("\r\n", "\n");
        fields.insert(format!("fixture `{}`", fixture.id.value), script);
        for name in variable_names(&fixture.script) {
            if let Some(value) = resolved.params.get(&name) {
                fields.insert(format!("param `{name}`"), value.to_string());
            }
        }
    }
    Fingerprint { fields }
}

/// Whether one of an experiment's cells is measured on this version.
fn is_on(experiment: &Experiment, postgres: &PostgresSpec, version: &str) -> bool {
    let mut cells = 0..experiment.cells.rows.len();
    cells.any(|cell| experiment.version_of(postgres, cell).as_deref() == Some(version))
}

fn describe_server(server: &ServerIdentity) -> String {
    format!(
        "{} {} {}",
        server.version,
        server.engine,
        server.digest.as_deref().unwrap_or("unpinned")
    )
}

/// A fixture and those it is built from, outermost last.
fn closure<'a>(article: &'a Article, id: Option<&'a Spanned<String>>) -> Vec<&'a Fixture> {
    let mut closure: Vec<&Fixture> = Vec::new();
    let mut next = id;
    while let Some(id) = next {
        let Some(fixture) = article
            .fixtures()
            .find(|fixture| fixture.id.value == id.value)
        else {
            break;
        };
        if closure.iter().any(|known| known.id == fixture.id) {
            break;
        }
        closure.push(fixture);
        next = fixture.from.as_ref();
    }
    closure
}

/// Which fixture stands on which, where that is not the order of their names. Fields are kept by
/// name, so that any other order is one more of them.
fn order_of(fixtures: &[&Fixture]) -> Option<String> {
    let names: Vec<&str> = fixtures.iter().map(|one| one.id.value.as_str()).collect();
    (!names.is_sorted()).then(|| names.join(" from "))
}

fn experiment_fields(experiment: &Experiment, resolved: &Resolved) -> Vec<(String, String)> {
    let mut fields = vec![
        ("matrix".to_owned(), cells_text(experiment)),
        ("runs".to_owned(), runs_text(&resolved.runs(experiment))),
        (
            "warmup runs".to_owned(),
            resolved.warmup_runs(experiment).to_string(),
        ),
        ("fresh".to_owned(), format!("{:?}", experiment.fresh)),
        ("connect".to_owned(), format!("{:?}", experiment.connect)),
        ("order".to_owned(), format!("{:?}", experiment.order)),
        ("measure".to_owned(), phase_text(&experiment.measure)),
    ];
    let instruments: Vec<String> = experiment
        .instruments
        .iter()
        .map(|choice| instrument_text(&choice.value))
        .collect();
    fields.push(("instruments".to_owned(), instruments.join(", ")));
    fields.extend(step_fields(experiment));
    if let Some(client) = client_text(&experiment.measure.client) {
        fields.push(("client of measure".to_owned(), client));
    }
    if let Some(condition) = &experiment.measure.wait_until {
        fields.push(("measure waits until".to_owned(), condition.value.clone()));
    }
    for sampling in &experiment.samples {
        fields.push((
            format!("sample `{}`", sampling.name.value),
            format!(
                "every {} ms\n{}",
                sampling.every.as_millis(),
                script_text(&sampling.phase.script)
            ),
        ));
    }
    for (number, collect) in experiment.collects.iter().enumerate() {
        let session = match &collect.session {
            CollectSession::Subject => "subject",
            CollectSession::Observer => "observer",
            CollectSession::Named(name) => name,
        };
        let name = collect.name.as_ref().map_or("", |name| &name.value);
        let wait = wait_text(&collect.phase);
        fields.push((
            format!("collect {}", number + 1),
            format!(
                "{session} {name}{wait}\n{}",
                script_text(&collect.phase.script)
            ),
        ));
    }
    for (name, value) in &experiment.settings {
        fields.push((format!("setting `{name}`"), value.value.clone()));
    }
    for (name, value) in &experiment.session {
        fields.push((format!("session setting `{name}`"), value.value.clone()));
    }
    if let Some(sqlstate) = &experiment.expect_error {
        fields.push(("expect_error".to_owned(), sqlstate.value.clone()));
    }
    fields
}

/// The name, with the options that were written down.
fn instrument_text(choice: &InstrumentChoice) -> String {
    let options: Vec<String> = choice
        .options
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.value))
        .collect();
    match options.is_empty() {
        true => choice.name.clone(),
        false => format!("{} {{{}}}", choice.name, options.join(", ")),
    }
}

/// Who runs a phase, where that is not the session alone.
fn client_text(client: &Client) -> Option<String> {
    let words = |program: &str, script: &ProgramScript| {
        let arguments = script.arguments.iter().map(|word| word.value.as_str());
        let words: Vec<&str> = std::iter::once(program).chain(arguments).collect();
        Some(words.join(" "))
    };
    match client {
        Client::Session => None,
        Client::Repeat(repeat) => Some(format!(
            "repeat {} {:?}",
            repeat.times.value, repeat.transaction
        )),
        Client::Psql(script) => words("psql", script),
        Client::Pgbench(script) => words("pgbench", script),
    }
}

/// A program's script as it stands, of which the tool makes out only a part.
fn phase_text(phase: &Phase) -> String {
    match phase.client.program() {
        Some(program) if !program.body.text.is_empty() => program.body.text.trim().to_owned(),
        _ => script_text(&phase.script),
    }
}

/// The files that psql reads for an experiment, those of included scripts with them.
fn files_of<'a>(
    article: &'a Article,
    experiment: &'a Experiment,
) -> BTreeMap<&'a str, &'a IncludedFile> {
    let scripts = experiment
        .phases()
        .filter_map(|phase| phase.client.program());
    let mut named: Vec<&str> = scripts
        .flat_map(|script| &script.files)
        .map(|file| file.value.as_str())
        .collect();
    let mut files = BTreeMap::new();
    while let Some(name) = named.pop() {
        if let Some((name, file)) = article.files.get_key_value(name)
            && files.insert(name.as_str(), file).is_none()
        {
            named.extend(file.files.iter().map(String::as_str));
        }
    }
    files
}

/// What runs beside `measure`. A single phase on the measuring session is its script alone.
fn step_fields(experiment: &Experiment) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    for (name, steps) in [
        ("setup", &experiment.setup),
        ("warmup", &experiment.warmup),
        ("before", &experiment.before),
        ("background", &experiment.background),
        ("after", &experiment.after),
        ("teardown", &experiment.teardown),
    ] {
        for (number, step) in steps.iter().enumerate() {
            let text = phase_text(&step.phase);
            let wait = wait_text(&step.phase);
            let is_alone = steps.len() == 1 && step.session.is_none() && wait.is_empty();
            let key = match is_alone {
                true => name.to_owned(),
                false => format!("{name} {}", number + 1),
            };
            if let Some(client) = client_text(&step.phase.client) {
                fields.push((format!("client of {key}"), client));
            }
            if is_alone {
                fields.push((key, text));
                continue;
            }
            let session = step.session.as_ref().map_or("subject", |name| &name.value);
            let background = if step.background { " background" } else { "" };
            let error = match &step.expect_error {
                Some(sqlstate) => format!(" expects {}", sqlstate.value),
                None => String::new(),
            };
            fields.push((key, format!("{session}{background}{error}{wait}\n{text}")));
        }
    }
    fields
}

fn wait_text(phase: &Phase) -> String {
    match &phase.wait_until {
        Some(condition) => format!(" waits until {}", condition.value),
        None => String::new(),
    }
}

fn cells_text(experiment: &Experiment) -> String {
    let rows: Vec<String> = experiment
        .cells
        .rows
        .iter()
        .map(|row| {
            let cells: Vec<String> = experiment
                .cells
                .columns
                .iter()
                .zip(row)
                .map(|(name, value)| format!("{name}={}", scalar_text(value)))
                .collect();
            cells.join(" ")
        })
        .collect();
    rows.join("\n")
}

fn scalar_text(value: &Scalar) -> String {
    match value {
        // So that the text `1` and the number 1 differ.
        Scalar::Text(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}

fn runs_text(runs: &Runs) -> String {
    match runs {
        Runs::Fixed(runs) => runs.to_string(),
        Runs::Adaptive { min, max, until } => {
            format!("{min} to {max} until {}", until.to_plain_string())
        }
    }
}

fn script_text(script: &Script) -> String {
    script
        .statements
        .iter()
        .map(|statement| {
            let end = match &statement.terminator {
                Terminator::Semicolon => ";".to_owned(),
                Terminator::Gexec => " \\gexec".to_owned(),
                Terminator::Gset { prefix } => format!(" \\gset {prefix}"),
            };
            format!("{}{end}\n", statement.text.text.trim())
        })
        .collect()
}

fn variable_names(script: &Script) -> impl Iterator<Item = String> + '_ {
    script
        .statements
        .iter()
        .flat_map(|statement| &statement.variables)
        .map(|reference| reference.name.clone())
}

fn experiment_variables(experiment: &Experiment) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = experiment
        .phases()
        .flat_map(|phase| variable_names(&phase.script))
        .collect();
    let params = experiment.phases().flat_map(|phase| phase.client.params());
    names.extend(params.map(|(name, _)| name.to_owned()));
    let conditions = experiment
        .phases()
        .filter_map(|phase| phase.wait_until.as_ref());
    for condition in conditions {
        let variables = variables_of_text(&condition.value);
        names.extend(variables.into_iter().map(|reference| reference.name));
    }
    // `settings` and `session` values may name params too: `:work_mem`.
    for value in experiment
        .settings
        .values()
        .chain(experiment.session.values())
    {
        names.extend(
            variables_of_text(&value.value)
                .into_iter()
                .map(|reference| reference.name),
        );
    }
    names
}
