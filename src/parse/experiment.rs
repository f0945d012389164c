//! `fixture` and `experiment` blocks: their options, and the phases with their SQL.

use super::Known;
use super::client::arguments::seconds;
use super::client::{self, needs_no_sql};
use super::directives::{Section, Sections};
use super::fences::Fence;
use super::front_matter::settings;
use super::instruments::{instruments, tell_nothing_to_explain};
use super::matrix::cells;
use super::problems::Problems;
use super::protocol::{runs, sqlstate, timeout};
use super::read::Fields;
use super::sql;
use super::yaml::{Entry, Node, Value};
use crate::article::{
    Client, Collect, CollectSession, Connect, Experiment, Fixture, Fresh, Order, Phase, Runs,
    Sampling, Script, Step,
};
use crate::source::{Extract, Span, Spanned};
use indexmap::IndexMap;
use std::time::Duration;

const PHASES: [&str; 6] = [
    "setup", "warmup", "measure", "collect", "sample", "teardown",
];

pub fn fixture(fence: &Fence, sections: &Sections, problems: &Problems) -> Fixture {
    let before = problems.count();
    let entries = merged(sections, |_| true, problems);
    let mut fields = Fields::new(problems, "a fixture", &entries);
    let from = fields
        .take("from")
        .and_then(|node| problems.spanned_text(node));
    fields.finish(&[]);
    let mut script = Script::default();
    for section in &sections.sections {
        script
            .statements
            .extend(split(&section.sql, problems).statements);
    }
    let nothing = script.statements.is_empty() && from.is_none();
    if nothing && sections.complete && problems.count() == before {
        no_sql(fence, "fixture", problems);
    }
    Fixture {
        id: fence.id.clone(),
        from,
        script,
    }
}

pub fn experiment(
    fence: &Fence,
    sections: &Sections,
    known: &Known,
    problems: &Problems,
) -> Experiment {
    let phases = phases(fence, sections, problems);
    let entries = merged(sections, |entry| phase_name(entry).is_none(), problems);
    let mut fields = Fields::new(problems, "an experiment", &entries);
    let cells = cells(&mut fields, problems);
    let fresh = fresh(fields.take("fresh"), problems);
    let experiment = Experiment {
        id: fence.id.clone(),
        fixture: fields
            .take("fixture")
            .and_then(|node| problems.spanned_text(node)),
        cells,
        runs: fields
            .take("runs")
            .and_then(|node| runs(node, problems))
            .unwrap_or(Runs::Fixed(1)),
        warmup_runs: fields
            .take("warmup")
            .and_then(|node| problems.count_of(node, 0))
            .unwrap_or(u32::from(!phases.warmup.is_empty())),
        fresh,
        connect: fields
            .take("connect")
            .and_then(|node| {
                problems.choice(node, &[("cell", Connect::Cell), ("run", Connect::Run)])
            })
            .unwrap_or(Connect::Cell),
        settings: fields
            .take("settings")
            .map_or_else(IndexMap::new, |node| settings(node, problems)),
        session: fields
            .take("session")
            .map_or_else(IndexMap::new, |node| settings(node, problems)),
        instruments: instruments(fields.take("instruments"), fence, known, problems),
        timeout: fields
            .take("timeout")
            .and_then(|node| timeout(node, problems))
            .unwrap_or(Duration::from_secs(600)),
        expect_error: fields
            .take("expect_error")
            .and_then(|node| sqlstate(node, problems)),
        order: order(fields.take("order"), fresh, problems),
        echo: fields
            .take("echo")
            .and_then(|node| problems.boolean(node))
            .unwrap_or(true),
        caption: fields
            .take("caption")
            .and_then(|node| problems.text_with_fill_ins(node)),
        derive: fields.take("derive").map_or_else(IndexMap::new, |node| {
            let hint = "write `{us_per_row: 1000 * elapsed_ms / rows}`";
            problems.named_texts(node, hint, |problems, name| problems.is_name(name))
        }),
        setup: phases.setup,
        warmup: phases.warmup,
        measure: phases.measure,
        before: phases.before,
        after: phases.after,
        background: phases.background,
        samples: phases.samples,
        collects: phases.collects,
        teardown: phases.teardown,
    };
    fields.finish(&PHASES);
    tell_adaptive_without_time(&experiment, problems);
    let measure = &experiment.measure;
    tell_nothing_to_explain(&experiment.instruments, measure, known, problems);
    tell_what_pgbench_cannot_do(&experiment, problems);
    tell_background_of_all_cells(&experiment, problems);
    experiment
}

/// The states of interleaved cells stand at the same time: what runs on one of them in the
/// background would run beside the windows of all.
fn tell_background_of_all_cells(experiment: &Experiment, problems: &Problems) {
    if experiment.order == Order::Sequential {
        return;
    }
    let of_state = experiment.setup.iter().chain(&experiment.warmup);
    for step in of_state.filter(|step| step.background) {
        problems.error(
            step.phase.span,
            "this would run in the background of all cells at once",
            "take `order: sequential`, or begin it with each run: \
             `measure: {in: …, background: true}`",
        );
    }
}

fn fresh(node: Option<&Node>, problems: &Problems) -> Fresh {
    let choices = [
        ("cell", Fresh::Cell),
        ("run", Fresh::Run),
        ("never", Fresh::Never),
    ];
    node.and_then(|node| problems.choice(node, &choices))
        .unwrap_or(Fresh::Cell)
}

fn order(node: Option<&Node>, fresh: Fresh, problems: &Problems) -> Order {
    let choices = [
        ("sequential", Order::Sequential),
        ("interleave", Order::Interleave),
        ("shuffle", Order::Shuffle),
    ];
    let order = node.and_then(|node| problems.choice(node, &choices));
    if let (Some(node), Some(order @ (Order::Interleave | Order::Shuffle)), Fresh::Never) =
        (node, order, fresh)
    {
        let (word, done) = match order {
            Order::Shuffle => ("shuffle", "shuffled"),
            _ => ("interleave", "interleaved"),
        };
        problems.error(
            node.span,
            format!("cells that build on one another cannot be {done}"),
            format!("take `order: {word}` away, or `fresh: never`"),
        );
    }
    order.unwrap_or(Order::Sequential)
}

/// How long to go on is decided on `elapsed_ms`.
fn tell_adaptive_without_time(experiment: &Experiment, problems: &Problems) {
    let times = experiment
        .instruments
        .iter()
        .any(|choice| choice.value.name == "time");
    if matches!(experiment.runs, Runs::Adaptive { .. }) && !times {
        problems.error(
            experiment.id.span,
            "`runs` with `until` needs the instrument `time`",
            "add `time` to `instruments`, or give a fixed number of runs",
        );
    }
}

fn tell_what_pgbench_cannot_do(experiment: &Experiment, problems: &Problems) {
    if let (Client::Pgbench(_), Some(expected)) =
        (&experiment.measure.client, &experiment.expect_error)
    {
        problems.error(
            expected.span,
            "pgbench tells no SQLSTATE",
            "measure what must fail on the session, or with `via: psql`",
        );
    }
    for script in experiment
        .phases()
        .filter_map(|phase| phase.client.program())
    {
        if let Some(asked) = seconds(&script.arguments)
            && Duration::from_secs(asked.value) >= experiment.timeout
        {
            problems.error(
                asked.span,
                format!(
                    "pgbench is to run for {} s, and is ended after {:?}",
                    asked.value, experiment.timeout
                ),
                "give the experiment a longer `timeout`: it is for the whole run of pgbench",
            );
        }
    }
}

/// All entries of a block's runs that are `wanted`, in order.
pub fn merged(
    sections: &Sections,
    wanted: impl Fn(&Entry) -> bool,
    problems: &Problems,
) -> Vec<Entry> {
    let all = sections
        .sections
        .iter()
        .flat_map(|section| &section.entries);
    let entries: Vec<Entry> = all.filter(|entry| wanted(entry)).cloned().collect();
    tell_repeated(&entries, problems);
    entries
}

/// YAML tells of a key that comes twice in one run of lines; this, of one in two runs.
fn tell_repeated(entries: &[Entry], problems: &Problems) {
    let mut first: IndexMap<&str, Span> = IndexMap::new();
    for entry in entries {
        let key = &entry.key;
        match first.get(key.value.as_str()) {
            Some(&earlier) => problems.duplicate(
                key.span,
                earlier,
                format!("duplicate key `{}`", key.value),
                "keep one of the two",
            ),
            None => {
                first.insert(&key.value, key.span);
            }
        }
    }
}

fn no_sql(fence: &Fence, what: &str, problems: &Problems) {
    problems.error(
        fence.name,
        format!("{what} `{}` has no SQL", fence.id.value),
        "write it below the `--|` lines",
    );
}

pub fn split(extract: &Extract, problems: &Problems) -> Script {
    match sql::split(extract, problems.source) {
        Ok(script) => script,
        Err(found) => {
            problems.extend(found);
            Script::default()
        }
    }
}

// ---- phases -----------------------------------------------------------------------------------

#[derive(Default)]
struct Phases {
    setup: Vec<Step>,
    warmup: Vec<Step>,
    measure: Phase,
    before: Vec<Step>,
    after: Vec<Step>,
    background: Vec<Step>,
    samples: Vec<Sampling>,
    collects: Vec<Collect>,
    teardown: Vec<Step>,
}

/// Whether a key begins a phase. `warmup: 2` is an option: how often `measure` runs before.
fn phase_name(entry: &Entry) -> Option<&'static str> {
    let name = PHASES.into_iter().find(|name| *name == entry.key.value)?;
    let is_option =
        name == "warmup" && !entry.value.is_null() && matches!(entry.value.value, Value::Scalar(_));
    (!is_option).then_some(name)
}

fn phases(fence: &Fence, sections: &Sections, problems: &Problems) -> Phases {
    let mut phases = Phases::default();
    phases.measure.span = fence.span;
    let before = problems.count();
    let all = || {
        sections
            .sections
            .iter()
            .flat_map(|section| &section.entries)
    };
    if all().any(|entry| phase_name(entry).is_some()) {
        let mut measured = None;
        for section in &sections.sections {
            read_section(section, &mut phases, &mut measured, problems);
        }
        if measured.is_none() && sections.complete && problems.count() == before {
            problems.error(
                fence.name,
                format!("experiment `{}` has no `measure` phase", fence.id.value),
                "begin the SQL that is measured with `--| measure:`",
            );
        }
    } else {
        for section in &sections.sections {
            let script = split(&section.sql, problems);
            phases.measure.script.statements.extend(script.statements);
        }
        let empty = phases.measure.script.statements.is_empty();
        if empty && sections.complete && problems.count() == before {
            no_sql(fence, "experiment", problems);
        }
    }
    phases
}

/// The phase that a run of lines begins, with the SQL below it.
fn read_section(
    section: &Section,
    phases: &mut Phases,
    measured: &mut Option<Span>,
    problems: &Problems,
) {
    let begun: Vec<(&'static str, &Entry)> = section
        .entries
        .iter()
        .filter_map(|entry| phase_name(entry).map(|name| (name, entry)))
        .collect();
    let Some((&(name, entry), earlier)) = begun.split_last() else {
        let script = split(&section.sql, problems);
        if let Some(statement) = script.statements.first() {
            let text = &statement.text;
            problems.error(
                text.span(0..text.text.lines().next().map_or(0, str::len)),
                "this SQL belongs to no phase",
                "begin it with `--| measure:`, or with the phase it is",
            );
        }
        return;
    };
    let nothing = section.sql.slice(0..0);
    for (name, entry) in earlier {
        read_phase(name, entry, &nothing, phases, measured, problems);
    }
    read_phase(name, entry, &section.sql, phases, measured, problems);
}

fn read_phase(
    name: &'static str,
    entry: &Entry,
    sql: &Extract,
    phases: &mut Phases,
    measured: &mut Option<Span>,
    problems: &Problems,
) {
    let span = entry.key.span;
    let before = problems.count();
    let options = phase_options(name, entry, sql, problems);
    let read_well = problems.count() == before;
    let nothing = match options.client.program() {
        Some(script) => script.body.text.trim().is_empty(),
        None => options.script.statements.is_empty(),
    };
    if read_well && nothing && !needs_no_sql(&options.client) {
        phase_without_sql(name, entry.key.span, problems);
    }
    let phase = Phase {
        script: options.script,
        client: options.client,
        span,
        wait_until: options.wait_until,
    };
    let step = Step {
        phase,
        session: options.session,
        background: options.background,
        expect_error: options.expect_error,
    };
    let first = match name {
        "setup" => add_step(&mut phases.setup, step),
        "warmup" => add_step(&mut phases.warmup, step),
        "teardown" => add_step(&mut phases.teardown, step),
        "measure" if step.session.is_none() => {
            phases.measure = step.phase;
            measured.replace(span)
        }
        "measure" => {
            let place = match (step.background, &measured) {
                (true, _) => &mut phases.background,
                (false, None) => &mut phases.before,
                (false, Some(_)) => &mut phases.after,
            };
            place.push(step);
            None
        }
        "collect" => {
            phases.collects.push(Collect {
                name: options.name,
                session: match step.session {
                    None => CollectSession::Observer,
                    Some(name) if name.value == SUBJECT => CollectSession::Subject,
                    Some(name) => CollectSession::Named(name.value),
                },
                phase: step.phase,
            });
            None
        }
        _ => {
            if let (Some(name), Some(every)) = (options.name, options.every) {
                let phase = step.phase;
                phases.samples.push(Sampling { name, every, phase });
            }
            None
        }
    };
    if let Some(first) = first {
        problems.duplicate(
            span,
            first,
            format!("a second `{name}` phase"),
            "an experiment has one of each, any number of `collect` and `sample`, and more of them \
             with `in:` on sessions of their own",
        );
    }
}

/// Two in a row on the measuring session are one, by mistake in two parts; its place comes back.
fn add_step(steps: &mut Vec<Step>, step: Step) -> Option<Span> {
    let earlier = steps.last().filter(|_| step.session.is_none());
    let twin = earlier.filter(|earlier| earlier.session.is_none());
    let twin = twin.map(|twin| twin.phase.span);
    steps.push(step);
    twin
}

fn phase_without_sql(name: &str, span: Span, problems: &Problems) {
    problems.error(
        span,
        format!("phase `{name}` has no SQL"),
        "the SQL of a phase stands below its line, up to the next `--|` line",
    );
}

/// The measuring session, in `in:`.
const SUBJECT: &str = "subject";
const OBSERVER: &str = "observer";

/// What a phase's line says of it, and its SQL.
#[derive(Default)]
struct PhaseOptions {
    /// `as:`
    name: Option<Spanned<String>>,
    /// `in:`; of a `collect` also `subject`.
    session: Option<Spanned<String>>,
    background: bool,
    wait_until: Option<Spanned<String>>,
    expect_error: Option<Spanned<String>>,
    every: Option<Duration>,
    /// The SQL below, read by whom it is for.
    script: Script,
    client: Client,
}

fn phase_options(
    name: &'static str,
    entry: &Entry,
    sql: &Extract,
    problems: &Problems,
) -> PhaseOptions {
    let mut options = PhaseOptions::default();
    let hint = match name {
        "sample" => "write `sample: {every: 100ms, as: waits}`".to_owned(),
        _ => format!("write `{name}:` alone, or options as in `{name}: {{in: blocker}}`"),
    };
    if entry.value.is_null() {
        if name == "sample" {
            let message =
                "`sample` says neither how often it is asked nor what its table is called";
            problems.error(entry.key.span, message, hint);
        }
        options.script = split(sql, problems);
        return options;
    }
    let Some(entries) = problems.entries(&entry.value, &hint) else {
        options.script = split(sql, problems);
        return options;
    };
    let before = problems.count();
    let mut fields = Fields::new(problems, "a phase", entries);
    if matches!(name, "collect" | "sample") {
        options.name = fields
            .take("as")
            .and_then(|node| problems.spanned_text(node))
            .filter(|name| problems.is_name(name));
    }
    if name == "sample" {
        options.every = fields
            .take("every")
            .and_then(|node| timeout(node, problems));
        let whole = options.name.is_some() && options.every.is_some();
        if !whole && problems.count() == before {
            let message = "`sample` needs both `every` and `as`";
            problems.error(entry.value.span, message, hint);
        }
        options.script = split(sql, problems);
        fields.finish(&[]);
        return options;
    }
    (options.script, options.client) =
        client::read(&mut fields, name, entry.key.span, sql, problems);
    options.session = fields
        .take("in")
        .and_then(|node| session_name(name, node, problems));
    options.wait_until = fields
        .take("wait_until")
        .and_then(|node| problems.spanned_text(node));
    if matches!(name, "setup" | "warmup" | "measure") {
        options.background = fields
            .take("background")
            .and_then(|node| problems.boolean(node))
            .unwrap_or(false);
        options.expect_error = fields
            .take("expect_error")
            .and_then(|node| sqlstate(node, problems));
    } else if let Some(entry) = fields.take_entry("background") {
        problems.error(
            entry.key.span,
            format!("`{name}` cannot be in the background: nothing comes after it"),
            "`setup`, `warmup` and `measure` can",
        );
    }
    fields.finish(&[]);
    tell_options_of_the_subject(&options, entry.value.span, problems);
    if problems.count() == before {
        tell_clients_on_named_sessions(&options, problems);
    }
    options
}

/// A program opens sessions of its own, and a repetition is of the measuring one.
fn tell_clients_on_named_sessions(options: &PhaseOptions, problems: &Problems) {
    let Some(session) = &options.session else {
        return;
    };
    let message = match &options.client {
        Client::Session => return,
        Client::Repeat(_) => "what is repeated runs on the measuring session",
        Client::Psql(_) | Client::Pgbench(_) => {
            "psql and pgbench open sessions of their own, and are waited for"
        }
    };
    let hint = format!("leave `in: {}` out", session.value);
    problems.error(session.span, message, hint);
}

/// `subject` is the measuring session, which phases are on without `in:`.
fn session_name(phase: &str, node: &Node, problems: &Problems) -> Option<Spanned<String>> {
    let name = problems.spanned_text(node)?;
    match (name.value.as_str(), phase) {
        (SUBJECT, "collect") => Some(name),
        (OBSERVER, "collect") | (SUBJECT, _) => None,
        (OBSERVER, _) => {
            let message = "`observer` is the session that `collect` asks on";
            problems.error(node.span, message, "give the session another name");
            None
        }
        _ => problems.is_name(&name).then_some(name),
    }
}

/// The measuring session is always waited for, and `expect_error` is the experiment's.
fn tell_options_of_the_subject(options: &PhaseOptions, span: Span, problems: &Problems) {
    if options.session.is_some() {
        return;
    }
    let (key, hint) = if options.background {
        (
            "background",
            "name a session for it: `{in: writer, background: true}`",
        )
    } else if options.expect_error.is_some() {
        (
            "expect_error",
            "what `measure` must raise is an option of the experiment: `--| expect_error: …`",
        )
    } else {
        return;
    };
    let message = format!("`{key}` is for a session of its own");
    problems.error(span, message, hint);
}
