//! `fixture` and `experiment` blocks: options, the matrix, and the phases with their SQL.

use super::Known;
use super::directives::{Section, Sections};
use super::fences::Fence;
use super::front_matter::{percent, settings};
use super::problems::{Problems, listed};
use super::read::{Fields, decimal, not_supported_yet};
use super::sql;
use super::yaml::{Entry, Node, Value};
use crate::article::{
    Cells, Collect, CollectSession, Connect, Experiment, Fixture, Fresh, InstrumentChoice, Order,
    Phase, Runs, Scalar, Script,
};
use crate::diagnostic::did_you_mean;
use crate::source::{Extract, Span, Spanned};
use indexmap::IndexMap;
use std::time::Duration;

const PHASES: [&str; 6] = [
    "setup", "warmup", "measure", "collect", "sample", "teardown",
];

/// More combinations than this are taken for a mistake.
const MAX_CELLS: usize = 10_000;

pub fn fixture(fence: &Fence, sections: &Sections, problems: &Problems) -> Fixture {
    let entries = merged(sections, |_| true);
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
    if script.statements.is_empty() && sections.complete && from.is_none() {
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
    let entries = merged(sections, |entry| phase_name(entry).is_none());
    tell_repeated(&entries, problems);
    let mut fields = Fields::new(problems, "an experiment", &entries);
    let cells = cells(&mut fields, problems);
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
        fresh: fields
            .take("fresh")
            .and_then(|node| {
                let choices = [
                    ("cell", Fresh::Cell),
                    ("run", Fresh::Run),
                    ("never", Fresh::Never),
                ];
                problems.choice(node, &choices)
            })
            .unwrap_or(Fresh::Cell),
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
        order: fields
            .take("order")
            .and_then(|node| {
                let choices = [
                    ("sequential", Order::Sequential),
                    ("interleave", Order::Interleave),
                ];
                problems.choice(node, &choices)
            })
            .unwrap_or(Order::Sequential),
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
    experiment
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

/// All entries of a block's runs that are `wanted`, in order.
fn merged(sections: &Sections, wanted: impl Fn(&Entry) -> bool) -> Vec<Entry> {
    let all = sections
        .sections
        .iter()
        .flat_map(|section| &section.entries);
    all.filter(|entry| wanted(entry)).cloned().collect()
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
    let before = problems.count();
    let script = split(&section.sql, problems);
    let split_well = problems.count() == before;
    let begun: Vec<(&'static str, &Entry)> = section
        .entries
        .iter()
        .filter_map(|entry| phase_name(entry).map(|name| (name, entry)))
        .collect();
    let Some((&(name, entry), earlier)) = begun.split_last() else {
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
    for (name, entry) in earlier {
        phase_without_sql(name, entry.key.span, problems);
    }
    if split_well && script.statements.is_empty() && name != "sample" {
        phase_without_sql(name, entry.key.span, problems);
    }
    let span = entry.key.span;
    let (as_name, session) = phase_options(name, entry, problems);
    let phase = Phase { script, span };
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

/// `as:` and `in:` of a `collect`; what other phases can be told is for a later version.
fn phase_options(
    name: &'static str,
    entry: &Entry,
    problems: &Problems,
) -> (Option<Spanned<String>>, CollectSession) {
    let mut as_name = None;
    let mut session = CollectSession::Observer;
    if name == "sample" {
        not_supported_yet(problems, entry.key.span, "`sample`");
        return (as_name, session);
    }
    if entry.value.is_null() {
        return (as_name, session);
    }
    let hint = format!("write `{name}:` alone, or options as in `collect: {{as: waits}}`");
    let Some(entries) = problems.entries(&entry.value, &hint) else {
        return (as_name, session);
    };
    let mut fields = Fields::new(problems, "a phase", entries);
    match name {
        "collect" => {
            as_name = fields
                .take("as")
                .and_then(|node| problems.spanned_text(node))
                .filter(|name| problems.is_name(name));
            if let Some(node) = fields.take("in")
                && let Some(place) = problems.text(node)
            {
                match place.as_str() {
                    "subject" => session = CollectSession::Subject,
                    _ => not_supported_yet(
                        problems,
                        node.span,
                        &format!("`in: {place}` (other than `in: subject`)"),
                    ),
                }
            }
        }
        "measure" => {
            for key in ["via", "args", "repeat", "transaction", "in"] {
                fields.refuse(key, &format!("`measure: {{{key}: …}}`"));
            }
        }
        _ => fields.refuse("in", "`in:`"),
    }
    fields.refuse("background", "`background:`");
    fields.finish(&[]);
    (as_name, session)
}

// ---- options ----------------------------------------------------------------------------------

/// `matrix:` or `cases:`, as cells; the last column of a matrix changes fastest.
fn cells(fields: &mut Fields, problems: &Problems) -> Cells {
    let matrix = fields.take_entry("matrix");
    let cases = fields.take_entry("cases");
    match (matrix, cases) {
        (None, None) => Cells::single(),
        (Some(matrix), Some(cases)) => {
            problems.duplicate(
                cases.key.span,
                matrix.key.span,
                "`matrix` and `cases` in one experiment".to_owned(),
                "`cases` lists what `matrix` combines: keep one of the two",
            );
            Cells::single()
        }
        (Some(matrix), None) => matrix_cells(&matrix.value, problems),
        (None, Some(cases)) => case_cells(&cases.value, problems),
    }
}

fn matrix_cells(node: &Node, problems: &Problems) -> Cells {
    let hint = "write `{indexes: [0, 1, 2]}`";
    let entries = problems.entries(node, hint).unwrap_or_default();
    let mut cells = Cells {
        span: Some(node.span),
        ..Cells::single()
    };
    for entry in entries {
        check_column(&entry.key, problems);
        let items = problems.items(&entry.value, hint).unwrap_or_default();
        if items.is_empty() && matches!(entry.value.value, Value::Sequence(_)) {
            problems.error(
                entry.value.span,
                format!(
                    "`{}` has no value, so there is nothing to run",
                    entry.key.value
                ),
                hint,
            );
        }
        let mut values = distinct(items, problems);
        if values.is_empty() {
            // Told above; the column is known all the same.
            values.push(Scalar::Text(String::new()));
        }
        if cells.rows.len().saturating_mul(values.len()) > MAX_CELLS {
            problems.error(
                node.span,
                format!("the matrix has more than {MAX_CELLS} cells"),
                "list the ones that matter with `cases:`",
            );
            return cells;
        }
        cells.columns.push(entry.key.value.clone());
        cells.rows = cells
            .rows
            .iter()
            .flat_map(|row| {
                values.iter().map(move |value| {
                    let mut row = row.clone();
                    row.push(value.clone());
                    row
                })
            })
            .collect();
    }
    cells
}

fn distinct(items: &[Node], problems: &Problems) -> Vec<Scalar> {
    let mut values: Vec<Scalar> = Vec::new();
    for item in items {
        let Some(value) = problems.scalar(item) else {
            continue;
        };
        if values.contains(&value) {
            problems.error(
                item.span,
                format!("`{value}` comes twice"),
                "every value makes a cell of its own; `runs:` repeats one",
            );
        } else {
            values.push(value);
        }
    }
    values
}

fn case_cells(node: &Node, problems: &Problems) -> Cells {
    let hint = "write `cases: [{a: 1, b: 2}, {a: 3, b: 4}]`";
    let mut cells = Cells {
        span: Some(node.span),
        columns: Vec::new(),
        rows: Vec::new(),
    };
    for (index, item) in problems
        .items(node, hint)
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        let entries = problems.entries(item, hint).unwrap_or_default();
        if index == 0 {
            for entry in entries {
                check_column(&entry.key, problems);
                cells.columns.push(entry.key.value.clone());
            }
        }
        let same = entries.len() == cells.columns.len()
            && entries
                .iter()
                .all(|entry| cells.columns.contains(&entry.key.value));
        if !same {
            problems.error(
                item.span,
                format!("every case names {}", listed(&cells.columns)),
                "give all of them the same names",
            );
            continue;
        }
        let row: Vec<Option<Scalar>> = cells
            .columns
            .iter()
            .filter_map(|column| entries.iter().find(|entry| entry.key.value == *column))
            .map(|entry| problems.scalar(&entry.value))
            .collect();
        if let Some(row) = row.into_iter().collect::<Option<Vec<_>>>() {
            if cells.rows.contains(&row) {
                problems.error(item.span, "this case comes twice", "`runs:` repeats one");
            }
            cells.rows.push(row);
        }
    }
    if cells.rows.is_empty() {
        if matches!(&node.value, Value::Sequence(items) if items.is_empty()) {
            problems.error(
                node.span,
                "there is no case, so there is nothing to run",
                hint,
            );
        }
    }
    cells
}

/// A matrix column stands in `measured.<experiment>` beside columns that are always there.
fn check_column(name: &Spanned<String>, problems: &Problems) {
    if matches!(name.value.as_str(), "run" | "rows") {
        problems.error(
            name.span,
            format!(
                "`{}` is a column of every measured table already",
                name.value
            ),
            "give the matrix column another name",
        );
    } else {
        problems.is_name(name);
    }
}

/// `8`, or `{min: 3, max: 12, until: 2%}`.
pub fn runs(node: &Node, problems: &Problems) -> Option<Runs> {
    let hint = "write a number, or `{min: 3, max: 12, until: 2%}`";
    if matches!(node.value, Value::Scalar(_)) {
        return problems.count_of(node, 1).map(Runs::Fixed);
    }
    let entries = problems.entries(node, hint)?;
    let mut fields = Fields::new(problems, "`runs`", entries);
    let before = problems.count();
    let min = fields
        .take("min")
        .and_then(|node| problems.count_of(node, 2));
    let max = fields
        .take("max")
        .and_then(|node| problems.count_of(node, 2));
    let until = fields.take("until").and_then(|node| {
        let text = problems.text(node)?;
        let share =
            percent(&text).filter(|share| share.sign() == bigdecimal::num_bigint::Sign::Plus);
        if share.is_none() {
            problems.error(
                node.span,
                format!("expected a percentage, found `{text}`"),
                "write it as `2%`",
            );
        }
        share
    });
    fields.finish(&[]);
    match (min, max, until) {
        (Some(min), Some(max), Some(_)) if min > max => {
            problems.error(
                node.span,
                format!("`min` is above `max`: {min} and {max}"),
                "exchange the two",
            );
            None
        }
        (Some(min), Some(max), Some(until)) => Some(Runs::Adaptive { min, max, until }),
        _ => {
            if problems.count() == before {
                problems.error(node.span, "`runs` needs `min`, `max` and `until`", hint);
            }
            None
        }
    }
}

/// The instruments the format knows, whether or not this version has them.
const FORMAT_INSTRUMENTS: [&str; 11] = [
    "time",
    "wal",
    "explain",
    "hot",
    "tuples",
    "locks",
    "io",
    "buffers",
    "temp",
    "statements",
    "cpu",
];

fn instruments(
    node: Option<&Node>,
    fence: &Fence,
    known: &Known,
    problems: &Problems,
) -> Vec<Spanned<InstrumentChoice>> {
    let choice = |name: &str, span: Span| {
        let name = name.to_owned();
        Spanned::new(InstrumentChoice { name }, span)
    };
    let Some(node) = node else {
        return vec![choice("time", fence.name), choice("wal", fence.name)];
    };
    let mut chosen: Vec<Spanned<InstrumentChoice>> = Vec::new();
    let hint = "write `instruments: [time, wal]`";
    for item in problems.items(node, hint).unwrap_or_default() {
        let Some(name) = instrument_name(item, problems) else {
            continue;
        };
        let earlier = chosen.iter().find(|choice| choice.value.name == name.value);
        if let Some(earlier) = earlier {
            problems.duplicate(
                name.span,
                earlier.span,
                format!("instrument `{}` comes twice", name.value),
                "name it once",
            );
        } else if known.instruments.contains(&name.value.as_str()) {
            chosen.push(choice(&name.value, name.span));
        } else if FORMAT_INSTRUMENTS.contains(&name.value.as_str()) {
            not_supported_yet(problems, name.span, &format!("instrument `{}`", name.value));
        } else {
            let hint = did_you_mean(&name.value, known.instruments.iter().copied())
                .unwrap_or_else(|| format!("there are {}", listed(known.instruments)));
            problems.error(
                name.span,
                format!("unknown instrument `{}`", name.value),
                hint,
            );
        }
    }
    chosen
}

/// `time`, or `{time: {}}`; options are for a later version.
fn instrument_name(item: &Node, problems: &Problems) -> Option<Spanned<String>> {
    let Value::Mapping(entries) = &item.value else {
        return problems.spanned_text(item);
    };
    let [entry] = entries.as_slice() else {
        problems.error(
            item.span,
            "one instrument an item",
            "write `[time, {explain: {…}}]`",
        );
        return None;
    };
    let empty = entry.value.is_null()
        || matches!(&entry.value.value, Value::Mapping(options) if options.is_empty());
    if !empty {
        let what = format!("an option of instrument `{}`", entry.key.value);
        not_supported_yet(problems, entry.value.span, &what);
    }
    Some(entry.key.clone())
}

/// A time with its unit, as Postgres's settings take it.
fn timeout(node: &Node, problems: &Problems) -> Option<Duration> {
    let text = problems.text(node)?;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let milliseconds = match &text[digits.len()..] {
        "ms" => Some(1),
        "s" => Some(1_000),
        "min" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    let total = milliseconds
        .zip(decimal(digits.trim_end()))
        .and_then(|(unit, number)| {
            let total = (number * bigdecimal::BigDecimal::from(unit))
                .with_scale(0)
                .to_string();
            total.parse::<u64>().ok()
        });
    match total {
        Some(total) if total > 0 => Some(Duration::from_millis(total)),
        _ => {
            problems.error(
                node.span,
                format!("expected a time above zero with its unit, found `{text}`"),
                "write it as `500ms`, `30s`, `10min` or `1h`",
            );
            None
        }
    }
}

fn sqlstate(node: &Node, problems: &Problems) -> Option<Spanned<String>> {
    let state = problems.spanned_text(node)?;
    let valid = state.value.len() == 5
        && state
            .value
            .chars()
            .all(|c| c.is_ascii_digit() || c.is_ascii_uppercase());
    if valid {
        return Some(state);
    }
    problems.error(
        state.span,
        format!("`{}` is not an SQLSTATE", state.value),
        "it has five digits or capital letters, such as `23505` for a unique violation",
    );
    None
}
