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
use super::read::{Fields, not_supported_yet};
use super::sql;
use super::yaml::{Entry, Node, Value};
use crate::article::{
    Client, Collect, CollectSession, Connect, Experiment, Fixture, Fresh, Order, Phase, Runs,
    Script,
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
            .unwrap_or(u32::from(phases.warmup.is_some())),
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
        collects: phases.collects,
        teardown: phases.teardown,
    };
    fields.finish(&PHASES);
    tell_adaptive_without_time(&experiment, problems);
    let measure = &experiment.measure;
    tell_nothing_to_explain(&experiment.instruments, measure, known, problems);
    tell_what_pgbench_cannot_do(&experiment, problems);
    experiment
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
    ];
    let order = node.and_then(|node| problems.choice(node, &choices));
    if let (Some(node), Some(Order::Interleave), Fresh::Never) = (node, order, fresh) {
        problems.error(
            node.span,
            "cells that build on one another cannot be interleaved",
            "take `order: interleave` away, or `fresh: never`",
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

struct Phases {
    setup: Option<Phase>,
    warmup: Option<Phase>,
    measure: Phase,
    collects: Vec<Collect>,
    teardown: Option<Phase>,
}

/// Whether a key begins a phase. `warmup: 2` is an option: how often `measure` runs before.
fn phase_name(entry: &Entry) -> Option<&'static str> {
    let name = PHASES.into_iter().find(|name| *name == entry.key.value)?;
    let is_option =
        name == "warmup" && !entry.value.is_null() && matches!(entry.value.value, Value::Scalar(_));
    (!is_option).then_some(name)
}

fn phases(fence: &Fence, sections: &Sections, problems: &Problems) -> Phases {
    let mut phases = Phases {
        setup: None,
        warmup: None,
        measure: Phase {
            script: Script::default(),
            client: Client::default(),
            span: fence.span,
        },
        collects: Vec::new(),
        teardown: None,
    };
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
    let PhaseOptions {
        as_name,
        session,
        script,
        client,
    } = phase_options(name, entry, sql, problems);
    let read_well = problems.count() == before;
    let nothing = match client.program() {
        Some(script) => script.body.text.trim().is_empty(),
        None => script.statements.is_empty(),
    };
    if read_well && nothing && !needs_no_sql(&client) && name != "sample" {
        phase_without_sql(name, entry.key.span, problems);
    }
    let phase = Phase {
        script,
        client,
        span,
    };
    let first = match name {
        "setup" => phases.setup.replace(phase).map(|phase| phase.span),
        "warmup" => phases.warmup.replace(phase).map(|phase| phase.span),
        "teardown" => phases.teardown.replace(phase).map(|phase| phase.span),
        "measure" => {
            phases.measure = phase;
            measured.replace(span)
        }
        "collect" => {
            phases.collects.push(Collect {
                name: as_name,
                session,
                phase,
            });
            None
        }
        _ => None,
    };
    if let Some(first) = first {
        problems.duplicate(
            span,
            first,
            format!("a second `{name}` phase"),
            "an experiment has one of each, and any number of `collect`",
        );
    }
}

fn phase_without_sql(name: &str, span: Span, problems: &Problems) {
    problems.error(
        span,
        format!("phase `{name}` has no SQL"),
        "the SQL of a phase stands below its line, up to the next `--|` line",
    );
}

/// What stands behind a phase's name, and its SQL, which is read by whom it is for.
#[derive(Default)]
struct PhaseOptions {
    as_name: Option<Spanned<String>>,
    session: CollectSession,
    script: Script,
    client: Client,
}

/// `as:` and `in:` of a `collect`, and who runs a phase; what else phases can be told is for a later
/// version.
fn phase_options(
    name: &'static str,
    entry: &Entry,
    sql: &Extract,
    problems: &Problems,
) -> PhaseOptions {
    let mut options = PhaseOptions::default();
    if name == "sample" {
        not_supported_yet(problems, entry.key.span, "`sample`");
        return options;
    }
    if entry.value.is_null() {
        options.script = split(sql, problems);
        return options;
    }
    let hint = format!("write `{name}:` alone, or options as in `collect: {{as: waits}}`");
    let Some(entries) = problems.entries(&entry.value, &hint) else {
        return options;
    };
    let mut fields = Fields::new(problems, "a phase", entries);
    (options.script, options.client) =
        client::read(&mut fields, name, entry.key.span, sql, problems);
    if name == "collect" {
        options.as_name = fields
            .take("as")
            .and_then(|node| problems.spanned_text(node))
            .filter(|name| problems.is_name(name));
        if let Some(node) = fields.take("in")
            && let Some(place) = problems.text(node)
        {
            match place.as_str() {
                "subject" => options.session = CollectSession::Subject,
                _ => not_supported_yet(
                    problems,
                    node.span,
                    &format!("`in: {place}` (other than `in: subject`)"),
                ),
            }
        }
    } else {
        fields.refuse("in", "`in:`");
    }
    fields.refuse("background", "`background:`");
    fields.finish(&[]);
    options
}
