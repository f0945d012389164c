//! `explain`: the plan of `measure`'s statement, and what its execution counted.
//!
//! The statement is the last of `measure` that Postgres explains ([`statement`]). With `analyze` (as
//! it is unless said otherwise) `EXPLAIN ANALYZE` takes its place in the window: it is executed
//! once, with its effect, and everything else that is read around the window is of that execution.
//! Its rows go nowhere, so they are not sent and not columns. Without `analyze` the statement runs
//! as it is, and is explained once the window has closed.
//!
//! 1. [`prefix`] spells every option out.
//! 2. [`plan`] reads the JSON, [`json`] keeps its numbers exact, [`text`] prints it for people.

mod json;
mod plan;
mod text;

use super::{ColumnDescription, Instrument, Probe, Reading, Sessions, Unreadable, Window, option};
use crate::article::{InstrumentOption, InstrumentOptions, OptionValue, Script};
use crate::engine::session::SessionError;
use crate::parse::sql::is_explainable;
use crate::quantity::{Column, Number, Table, Value};
use bigdecimal::BigDecimal;
use futures_util::future::{FutureExt, LocalBoxFuture, ready};
use json::Json;
use plan::{Node, Plan};

pub const INSTRUMENT: Instrument = Instrument {
    name: "explain",
    description: "the plan of the last statement of `measure` that has one, and what it counted: \
                  `EXPLAIN ANALYZE` runs in its place, once, with its effect",
    minimum_version: 16,
    columns: COLUMNS,
    tables: &[
        (
            "plan",
            "each node: node, parent, depth, node_type, relation, index_name, total_cost, \
             plan_rows, rows, loops, total_ms, shared_hit, shared_read, buffers, heap_fetches, \
             rows_removed, line (as EXPLAIN prints it), details",
        ),
        (
            "explain",
            "each run: plan (json, as Postgres gave it), text (as EXPLAIN prints it)",
        ),
        (
            "triggers",
            "each trigger that fired: trigger_name, constraint_name, relation, calls, total_ms",
        ),
    ],
    options: OPTIONS,
    disturbed_by: "the first use in a session counts the catalog's pages, some of them to the \
                   nodes: `warmup: 1` takes them away, `connect: run` keeps them alike; with \
                   parallel workers buffers change from run to run; `timing: true` slows the \
                   execution; rows are not sent, so elapsed_ms lacks that",
    probe: |options| Box::new(Explain::new(options)),
};

const fn boolean(
    name: &'static str,
    default: bool,
    needs: Option<&'static str>,
    description: &'static str,
) -> InstrumentOption {
    InstrumentOption {
        name,
        default: OptionValue::Boolean(default),
        words: &[],
        needs,
        minimum_version: 16,
        description,
    }
}

const OPTIONS: &[InstrumentOption] = &[
    boolean(
        "analyze",
        true,
        None,
        "execute it under EXPLAIN; false: run it as it is and explain it afterwards, in the state \
         it left",
    ),
    boolean("buffers", true, None, "count pages"),
    boolean(
        "timing",
        false,
        Some("analyze"),
        "time every node: it reads the clock for each row",
    ),
    boolean("costs", true, None, "the planner's estimates"),
    boolean("verbose", false, None, "output columns and schemas"),
    boolean(
        "settings",
        false,
        None,
        "settings that differ and influence the planner",
    ),
    boolean("wal", false, Some("analyze"), "count WAL"),
    InstrumentOption {
        name: "serialize",
        default: OptionValue::Word("none"),
        words: &["none", "text", "binary"],
        needs: Some("analyze"),
        minimum_version: 17,
        description: "turn the rows into what would be sent, and time that",
    },
    InstrumentOption {
        name: "memory",
        default: OptionValue::Boolean(false),
        words: &[],
        needs: None,
        minimum_version: 17,
        description: "the planner's memory, in the plan's JSON",
    },
];

const fn column(
    name: &'static str,
    type_name: &'static str,
    unit: &'static str,
    description: &'static str,
) -> ColumnDescription {
    ColumnDescription {
        name,
        type_name,
        unit,
        description,
    }
}

const COLUMNS: &[ColumnDescription] = &[
    column("planning_ms", "double precision", "ms", "Planning Time"),
    column(
        "execution_ms",
        "double precision",
        "ms",
        "Execution Time, triggers with it",
    ),
    column(
        "buffers",
        "numeric",
        "pages",
        "shared_hit + shared_read of the top node, which has those below it",
    ),
    column(
        "shared_hit",
        "numeric",
        "pages",
        "Shared Hit Blocks of the top node",
    ),
    column(
        "shared_read",
        "numeric",
        "pages",
        "Shared Read Blocks of the top node",
    ),
    column(
        "shared_dirtied",
        "numeric",
        "pages",
        "Shared Dirtied Blocks of the top node",
    ),
    column(
        "shared_written",
        "numeric",
        "pages",
        "Shared Written Blocks of the top node: to make room",
    ),
    column(
        "temp_read",
        "numeric",
        "pages",
        "Temp Read Blocks of the top node",
    ),
    column(
        "temp_written",
        "numeric",
        "pages",
        "Temp Written Blocks of the top node",
    ),
    column(
        "planning_buffers",
        "numeric",
        "pages",
        "hit and read while planning: none where the session knows the catalog already",
    ),
    column(
        "heap_fetches",
        "numeric",
        "rows",
        "Heap Fetches over all index only scans; NULL where there is none",
    ),
    column(
        "rows_removed",
        "numeric",
        "rows",
        "Rows Removed by filters, join filters and rechecks, times the loops (Postgres rounds what it tells of one loop)",
    ),
    column(
        "index_searches",
        "numeric",
        "searches",
        "Index Searches over all nodes; PostgreSQL 18 and later",
    ),
    column(
        "sort_method",
        "text",
        "name",
        "Sort Method of the first sort: top-N heapsort, quicksort, external merge",
    ),
    column(
        "sort_space_kb",
        "numeric",
        "kB",
        "Sort Space Used of the first sort (1 kB is 1024 B); NULL where it is `still in progress`, \
         as Postgres says of a single column under LIMIT",
    ),
    column(
        "sort_space_type",
        "text",
        "name",
        "Sort Space Type: Memory or Disk",
    ),
    column(
        "workers_planned",
        "numeric",
        "workers",
        "over all Gather nodes; NULL where there is none",
    ),
    column(
        "workers_launched",
        "numeric",
        "workers",
        "over all Gather nodes; NULL where there is none",
    ),
    column("node_type", "text", "name", "Node Type of the top node"),
    column(
        "node_types",
        "text",
        "names",
        "of all nodes, from the top, with commas between",
    ),
    column(
        "index_names",
        "text",
        "names",
        "of the indexes it uses, with commas between; NULL where none",
    ),
    column(
        "plan_rows",
        "numeric",
        "rows",
        "the planner's estimate for the top node",
    ),
    column(
        "plan_cost",
        "numeric",
        "cost units",
        "Total Cost of the top node",
    ),
    column(
        "startup_cost",
        "numeric",
        "cost units",
        "Startup Cost of the top node",
    ),
    column(
        "trigger_calls",
        "numeric",
        "calls",
        "of all triggers, those of foreign keys with them; NULL where none fired",
    ),
    column(
        "trigger_ms",
        "double precision",
        "ms",
        "time in triggers; NULL without `timing`",
    ),
];

/// Which of a script's statements is explained.
pub fn statement(script: &Script) -> Option<usize> {
    script.statements.iter().rposition(is_explainable)
}

/// What stands before the statement: every option, so that none depends on a version's defaults.
pub fn prefix(options: &InstrumentOptions, major: u32) -> String {
    let known = OPTIONS
        .iter()
        .filter(|option| option.minimum_version <= major);
    let mut words: Vec<String> = known
        .filter_map(|known| {
            let value = option(OPTIONS, options, known.name)?;
            Some(format!("{} {value}", known.name.to_uppercase()))
        })
        .collect();
    words.push("SUMMARY true".to_owned());
    words.push("FORMAT JSON".to_owned());
    format!("EXPLAIN ({}) ", words.join(", "))
}

/// Whether the statement is executed under EXPLAIN.
pub fn analyzes(options: &InstrumentOptions) -> bool {
    option(OPTIONS, options, "analyze") == Some(OptionValue::Boolean(true))
}

/// How many rows the explained statement gave or wrote, where its plan tells.
pub fn rows(plan: &str) -> Option<u64> {
    Plan::parse(plan)?.rows()
}

/// Nodes, relations and indexes: what two runs of the same plan have in common.
pub fn shape(plan: &str) -> Option<String> {
    Some(Plan::parse(plan)?.shape())
}

/// Whoever expected an error has one, and nothing can be asked.
const FAILED_TRANSACTION: &str = "25P02";

struct Explain {
    options: InstrumentOptions,
}

impl Explain {
    fn new(options: &InstrumentOptions) -> Self {
        Self {
            options: options.clone(),
        }
    }
}

impl Probe for Explain {
    fn before<'a>(
        &'a mut self,
        _: &'a mut Sessions<'_>,
    ) -> LocalBoxFuture<'a, Result<(), Unreadable>> {
        ready(Ok(())).boxed_local()
    }

    fn after<'a>(
        &'a mut self,
        sessions: &'a mut Sessions<'_>,
        window: &'a Window,
    ) -> LocalBoxFuture<'a, Result<Reading, Unreadable>> {
        async move {
            let Some(explained) = &window.explained else {
                // `measure` raised the error that was expected before it came to it.
                return Ok(reading(None, ""));
            };
            let json = match &explained.plan {
                Some(plan) => plan.clone(),
                None if analyzes(&self.options) => return Ok(reading(None, "")),
                None => match self.asked(sessions, &explained.sql).await {
                    Ok(plan) => plan,
                    Err(SessionError::Sql(error)) if error.sqlstate == FAILED_TRANSACTION => {
                        return Ok(reading(None, ""));
                    }
                    Err(SessionError::Sql(error)) => {
                        return Err(Unreadable::Refused {
                            message: format!(
                                "after `measure` its statement is explained no more: {}",
                                error.message
                            ),
                            hint: "`analyze: true` explains it while it runs",
                        });
                    }
                    Err(lost) => return Err(lost.into()),
                },
            };
            match Plan::parse(&json) {
                Some(plan) => Ok(reading(Some(&plan), &json)),
                None => Err(Unreadable::Refused {
                    message: format!("Postgres gave a plan that is no plan: {json}"),
                    hint: "leave the instrument `explain` out, and report this",
                }),
            }
        }
        .boxed_local()
    }
}

impl Explain {
    /// The plan once the window has closed, on the measuring session: it alone has its settings,
    /// its temporary tables and what an open transaction wrote.
    async fn asked(&self, sessions: &mut Sessions<'_>, sql: &str) -> Result<String, SessionError> {
        let sql = format!("{}{sql}", prefix(&self.options, sessions.major));
        let rows = sessions.subject.execute(&sql).await?.rows;
        Ok(plan_text(&rows))
    }
}

/// The JSON out of the answer to EXPLAIN.
pub fn plan_text(rows: &[Vec<Option<String>>]) -> String {
    let lines: Vec<&str> = rows
        .iter()
        .flatten()
        .flatten()
        .map(String::as_str)
        .collect();
    lines.join("\n")
}

fn number(number: Option<BigDecimal>) -> Value {
    number.map_or(Value::Null, |number| Value::Number(Number::Finite(number)))
}

fn name(text: Option<&str>) -> Value {
    text.map_or(Value::Null, |text| Value::Text(text.to_owned()))
}

fn names(texts: &[&str]) -> Value {
    name((!texts.is_empty()).then(|| texts.join(", ")).as_deref())
}

fn reading(plan: Option<&Plan>, json: &str) -> Reading {
    let Some(plan) = plan else {
        return INSTRUMENT.unknown();
    };
    let top = plan.top();
    let nodes = plan.nodes();
    let types: Vec<&str> = nodes
        .iter()
        .filter_map(|node| node.text("Node Type"))
        .collect();
    let sort = nodes.iter().find_map(sort_of);
    let sort_text = |index: usize| sort.as_ref().and_then(|sort| sort[index]);
    let mut reading = INSTRUMENT.reading(vec![
        number(plan.number("Planning Time")),
        number(plan.number("Execution Time")),
        number(top.buffers()),
        number(top.pages("Shared Hit Blocks")),
        number(top.pages("Shared Read Blocks")),
        number(top.pages("Shared Dirtied Blocks")),
        number(top.pages("Shared Written Blocks")),
        number(top.pages("Temp Read Blocks")),
        number(top.pages("Temp Written Blocks")),
        number(plan.planning_buffers()),
        number(plan.sum("Heap Fetches")),
        number(plan.rows_removed()),
        number(plan.sum("Index Searches")),
        name(sort_text(0)),
        number(sort_text(1).and_then(|text| text.parse().ok())),
        name(sort_text(2)),
        number(plan.sum("Workers Planned")),
        number(plan.sum("Workers Launched")),
        name(top.text("Node Type")),
        names(&types),
        names(&plan.texts("Index Name")),
        number(top.number("Plan Rows")),
        number(top.number("Total Cost")),
        number(top.number("Startup Cost")),
        number(trigger_sum(plan, "Calls")),
        number(trigger_sum(plan, "Time")),
    ]);
    let results = &mut reading.results;
    results.insert("plan".to_owned(), node_table(&nodes));
    results.insert("explain".to_owned(), whole_table(plan, json));
    results.insert("triggers".to_owned(), trigger_table(plan));
    reading
}

/// Method, space and its kind of a node's sort. A parallel sort tells its own only where the leader
/// took part, an incremental one of its groups.
fn sort_of<'p>(node: &Node<'p>) -> Option<[Option<&'p str>; 3]> {
    let of = |json: &'p Json, name: &str| json.field(name).and_then(Json::text);
    let sorted = |json: &'p Json| {
        let method = of(json, "Sort Method")?;
        let (used, kind) = (of(json, "Sort Space Used"), of(json, "Sort Space Type"));
        // Under a LIMIT Postgres says 0 kB of a sort of a single column, and has not looked.
        let looked = method != "still in progress";
        Some([
            Some(method),
            used.filter(|_| looked),
            kind.filter(|_| looked),
        ])
    };
    let workers = node.json.field("Workers").map_or(&[][..], Json::items);
    sorted(node.json).or_else(|| workers.iter().find_map(sorted))
}

fn triggers(plan: &Plan) -> &[Json] {
    plan.field("Triggers").map_or(&[], Json::items)
}

fn trigger_sum(plan: &Plan, name: &str) -> Option<BigDecimal> {
    let of = |trigger: &Json| -> Option<BigDecimal> { trigger.field(name)?.text()?.parse().ok() };
    let mut numbers = triggers(plan).iter().filter_map(of).peekable();
    numbers.peek()?;
    Some(numbers.sum())
}

fn table(columns: &[(&str, &str)], rows: Vec<Vec<Value>>) -> Table {
    let columns = columns.iter();
    let columns = columns.map(|(name, type_name)| Column::new(*name, *type_name));
    Table {
        columns: columns.collect(),
        rows,
    }
}

fn node_table(nodes: &[Node]) -> Table {
    let columns = [
        ("node", "integer"),
        ("parent", "integer"),
        ("depth", "integer"),
        ("node_type", "text"),
        ("relation", "text"),
        ("index_name", "text"),
        ("total_cost", "numeric"),
        ("plan_rows", "numeric"),
        ("rows", "numeric"),
        ("loops", "numeric"),
        ("total_ms", "double precision"),
        ("shared_hit", "numeric"),
        ("shared_read", "numeric"),
        ("buffers", "numeric"),
        ("heap_fetches", "numeric"),
        ("rows_removed", "numeric"),
        ("line", "text"),
        ("details", "text"),
    ];
    let place = |place: Option<usize>| {
        let text = place.map(|place| place.to_string());
        Value::from_postgres(text.as_deref(), "integer")
    };
    let rows = nodes
        .iter()
        .map(|node| {
            let details = text::details(node);
            vec![
                place(Some(node.number)),
                place(node.parent),
                place(Some(node.depth)),
                name(node.text("Node Type")),
                name(node.text("Relation Name")),
                name(node.text("Index Name")),
                number(node.number("Total Cost")),
                number(node.number("Plan Rows")),
                number(node.number("Actual Rows")),
                number(node.number("Actual Loops")),
                number(node.number("Actual Total Time")),
                number(node.pages("Shared Hit Blocks")),
                number(node.pages("Shared Read Blocks")),
                number(node.buffers()),
                number(node.number("Heap Fetches")),
                number(node.removed()),
                Value::Text(text::headline(node)),
                name((!details.is_empty()).then(|| details.join("\n")).as_deref()),
            ]
        })
        .collect();
    table(&columns, rows)
}

fn whole_table(plan: &Plan, json: &str) -> Table {
    let row = vec![Value::Text(json.to_owned()), Value::Text(text::text(plan))];
    table(&[("plan", "json"), ("text", "text")], vec![row])
}

fn trigger_table(plan: &Plan) -> Table {
    let columns = [
        ("trigger_name", "text"),
        ("constraint_name", "text"),
        ("relation", "text"),
        ("calls", "numeric"),
        ("total_ms", "double precision"),
    ];
    let rows = triggers(plan)
        .iter()
        .map(|trigger| {
            let of = |name: &str| trigger.field(name).and_then(Json::text);
            vec![
                name(of("Trigger Name")),
                name(of("Constraint Name")),
                name(of("Relation")),
                number(of("Calls").and_then(|text| text.parse().ok())),
                number(of("Time").and_then(|text| text.parse().ok())),
            ]
        })
        .collect();
    table(&columns, rows)
}

#[cfg(test)]
mod tests;
