//! A plan for people: as Postgres prints it without `FORMAT JSON`, out of the JSON, so that the
//! statement is run once. What this version of Postgres says and is not known here comes as
//! `name: value`.

use super::json::Json;
use super::plan::{Node, Plan};
use std::fmt::Write;

pub fn text(plan: &Plan) -> String {
    let mut text = String::new();
    write_node(&plan.top(), 0, &mut text);
    footer(plan, &mut text);
    text
}

/// `Index Only Scan using t_pkey on t  (cost=0.42..8.44 rows=1 width=4) (actual rows=1.00 loops=1)`
pub fn headline(node: &Node) -> String {
    let mut line = title(node);
    let of = |name: &str| node.text(name).unwrap_or_default();
    if node.text("Total Cost").is_some() {
        let (startup, total) = (of("Startup Cost"), of("Total Cost"));
        let (rows, width) = (of("Plan Rows"), of("Plan Width"));
        let _ = write!(
            line,
            "  (cost={startup}..{total} rows={rows} width={width})"
        );
    }
    if let Some(loops) = node.text("Actual Loops") {
        let rows = of("Actual Rows");
        if loops == "0" {
            line.push_str(" (never executed)");
        } else if let Some(total) = node.text("Actual Total Time") {
            let startup = of("Actual Startup Time");
            let _ = write!(
                line,
                " (actual time={startup}..{total} rows={rows} loops={loops})"
            );
        } else {
            let _ = write!(line, " (actual rows={rows} loops={loops})");
        }
    }
    line
}

/// What Postgres calls the node in the text format, and what it reads.
fn title(node: &Node) -> String {
    let mut title = String::new();
    if node.is_true("Parallel Aware") {
        title.push_str("Parallel ");
    }
    if node.is_true("Async Capable") {
        title.push_str("Async ");
    }
    title.push_str(&kind(node));
    if node.is("Scan Direction", "Backward") {
        title.push_str(" Backward");
    }
    let index = node.text("Index Name");
    let names = [
        "Relation Name",
        "Function Name",
        "Table Function Name",
        "CTE Name",
        "Tuplestore Name",
    ];
    let on = names.iter().find_map(|name| node.text(name));
    if let Some(index) = index {
        let before = if on.is_some() { "using" } else { "on" };
        let _ = write!(title, " {before} {}", identifier(index));
    }
    let alias = node.text("Alias");
    if let Some(on) = on {
        title.push_str(" on ");
        if let Some(schema) = node.text("Schema") {
            let _ = write!(title, "{}.", identifier(schema));
        }
        title.push_str(&identifier(on));
        if let Some(alias) = alias.filter(|alias| *alias != on) {
            let _ = write!(title, " {}", identifier(alias));
        }
    } else if let Some(alias) = alias {
        let _ = write!(title, " on {}", identifier(alias));
    }
    title
}

/// Quoted where SQL would need it but for key words, of which the JSON says nothing.
fn identifier(name: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if begins && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

fn kind(node: &Node) -> String {
    let kind = node.text("Node Type").unwrap_or_default();
    let operation = node.text("Operation").unwrap_or_default();
    let join = |name: &str, inner: &str| match node.text("Join Type") {
        None | Some("Inner") => format!("{name}{inner}"),
        Some(side) => format!("{name} {side} Join"),
    };
    let hashed = || node.is("Strategy", "Hashed");
    match kind {
        "ModifyTable" => operation.to_owned(),
        "Foreign Scan" if !operation.is_empty() && operation != "Select" => {
            format!("Foreign {operation}")
        }
        "Custom Scan" => match node.text("Custom Plan Provider") {
            Some(provider) => format!("Custom Scan ({provider})"),
            None => kind.to_owned(),
        },
        "Nested Loop" => join(kind, ""),
        "Hash Join" => join("Hash", " Join"),
        "Merge Join" => join("Merge", " Join"),
        "SetOp" => {
            let command = node.text("Command").unwrap_or_default();
            let name = if hashed() { "HashSetOp" } else { kind };
            format!("{name} {command}").trim_end().to_owned()
        }
        "Aggregate" => {
            let name = match node.text("Strategy") {
                Some("Sorted") => "GroupAggregate",
                Some("Hashed") => "HashAggregate",
                Some("Mixed") => "MixedAggregate",
                _ => "Aggregate",
            };
            match node.text("Partial Mode") {
                Some(mode @ ("Partial" | "Finalize")) => format!("{mode} {name}"),
                _ => name.to_owned(),
            }
        }
        _ => kind.to_owned(),
    }
}

/// A node and those below it. `indent` as Postgres counts it: half a step for a sub-plan's name.
fn write_node(node: &Node, indent: usize, text: &mut String) {
    let mut indent = indent;
    let is_sub_plan = node.text("Subplan Name");
    if let Some(name) = is_sub_plan {
        let _ = writeln!(text, "{}{name}", " ".repeat(indent));
        indent += 2;
    }
    let arrow = if indent == 0 { "" } else { "->  " };
    let _ = writeln!(text, "{}{arrow}{}", " ".repeat(indent), headline(node));
    let inner = indent + if indent == 0 { 2 } else { 6 };
    for line in details(node) {
        let _ = writeln!(text, "{}{line}", " ".repeat(inner));
    }
    for child in node.json.field("Plans").map_or(&[][..], Json::items) {
        let child = Node {
            json: child,
            number: 0,
            parent: None,
            depth: node.depth + 1,
        };
        write_node(&child, inner, text);
    }
}

/// Told by the headline, by a line of several, or by nothing in the text format either.
const SAID: &[&str] = &[
    "Node Type",
    "Operation",
    "Parent Relationship",
    "Parallel Aware",
    "Async Capable",
    "Schema",
    "Relation Name",
    "Alias",
    "Index Name",
    "CTE Name",
    "Function Name",
    "Table Function Name",
    "Tuplestore Name",
    "Scan Direction",
    "Startup Cost",
    "Total Cost",
    "Plan Rows",
    "Plan Width",
    "Actual Startup Time",
    "Actual Total Time",
    "Actual Rows",
    "Actual Loops",
    "Disabled",
    "Strategy",
    "Partial Mode",
    "Join Type",
    "Command",
    "Custom Plan Provider",
    "Subplan Name",
    "Plans",
    "Workers",
    "Inner Unique",
    "Single Copy",
    "Planned Partitions",
    // In lines of several.
    "Sort Method",
    "Sort Space Used",
    "Sort Space Type",
    "Hash Buckets",
    "Original Hash Buckets",
    "Hash Batches",
    "Original Hash Batches",
    "HashAgg Batches",
    "Peak Memory Usage",
    "Disk Usage",
    "Exact Heap Blocks",
    "Lossy Heap Blocks",
    "Cache Hits",
    "Cache Misses",
    "Cache Evictions",
    "Cache Overflows",
    "Storage",
    "Maximum Storage",
];

/// The lines below a node's headline.
pub fn details(node: &Node) -> Vec<String> {
    let Json::Object(fields) = node.json else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (name, value) in fields {
        // In the text format only where it is above 0.
        let is_positive = name.starts_with("Rows Removed") || name == "Subplans Removed";
        let is_left_out = is_positive && value.text() == Some("0");
        let is_counter = ["Blocks", "WAL ", "I/O "]
            .iter()
            .any(|part| name.contains(part));
        if name == "Disabled" && *value == Json::Boolean(true) {
            lines.push("Disabled: true".to_owned());
        } else if let Some(line) = several(node, name) {
            lines.push(line);
        } else if !(is_counter || is_left_out || SAID.contains(&name.as_str())) {
            lines.push(format!("{name}: {}", plain(value)));
        }
    }
    let counters = |name: &str| node.text(name);
    lines.extend(counter_lines(&counters));
    for worker in node.json.field("Workers").map_or(&[][..], Json::items) {
        let method = worker.field("Sort Method").and_then(Json::text);
        if let (Some(number), Some(method)) =
            (worker.field("Worker Number").and_then(Json::text), method)
        {
            let of = |name: &str| worker.field(name).and_then(Json::text).unwrap_or_default();
            let (kind, used) = (of("Sort Space Type"), of("Sort Space Used"));
            lines.push(format!(
                "Worker {number}:  Sort Method: {method}  {kind}: {used}kB"
            ));
        }
    }
    lines
}

/// A line that begins with this field and tells others with it.
fn several(node: &Node, name: &str) -> Option<String> {
    let of = |name: &str| node.text(name);
    let more = |line: &mut String, label: &str, name: &str, unit: &str| {
        if let Some(value) = of(name).filter(|value| *value != "0") {
            let _ = write!(line, "  {label}: {value}{unit}");
        }
    };
    match name {
        "Sort Method" => {
            let (kind, used) = (of("Sort Space Type")?, of("Sort Space Used")?);
            Some(format!("Sort Method: {}  {kind}: {used}kB", of(name)?))
        }
        "Hash Buckets" => {
            let mut line = format!("Buckets: {}", of(name)?);
            more(&mut line, "Batches", "Hash Batches", "");
            more(&mut line, "Memory Usage", "Peak Memory Usage", "kB");
            Some(line)
        }
        "HashAgg Batches" => {
            let mut line = format!("Batches: {}", of(name)?);
            more(&mut line, "Memory Usage", "Peak Memory Usage", "kB");
            more(&mut line, "Disk Usage", "Disk Usage", "kB");
            Some(line)
        }
        "Exact Heap Blocks" => {
            let mut line = "Heap Blocks:".to_owned();
            for (label, name) in [("exact", name), ("lossy", "Lossy Heap Blocks")] {
                if let Some(value) = of(name).filter(|value| *value != "0") {
                    let _ = write!(line, " {label}={value}");
                }
            }
            line.contains('=').then_some(line)
        }
        "Cache Hits" => {
            let mut line = format!("Hits: {}", of(name)?);
            for label in ["Misses", "Evictions", "Overflows"] {
                let value = of(&format!("Cache {label}")).unwrap_or_default();
                let _ = write!(line, "  {label}: {value}");
            }
            more(&mut line, "Memory Usage", "Peak Memory Usage", "kB");
            Some(line)
        }
        "Storage" => {
            let mut line = format!("Storage: {}", of(name)?);
            more(&mut line, "Maximum Storage", "Maximum Storage", "kB");
            Some(line)
        }
        _ => None,
    }
}

/// `Buffers: shared hit=187 read=3, temp read=237 written=264` and `WAL: records=12 bytes=808`
fn counter_lines<'t>(of: &dyn Fn(&str) -> Option<&'t str>) -> Vec<String> {
    let some = |name: &str| of(name).filter(|value| *value != "0");
    let mut kinds = Vec::new();
    for kind in ["Shared", "Local", "Temp"] {
        let counts: Vec<String> = ["Hit", "Read", "Dirtied", "Written"]
            .iter()
            .filter_map(|what| {
                let count = some(&format!("{kind} {what} Blocks"))?;
                Some(format!("{}={count}", what.to_lowercase()))
            })
            .collect();
        if !counts.is_empty() {
            kinds.push(format!("{} {}", kind.to_lowercase(), counts.join(" ")));
        }
    }
    let mut lines = Vec::new();
    if !kinds.is_empty() {
        lines.push(format!("Buffers: {}", kinds.join(", ")));
    }
    let wal: Vec<String> = ["Records", "FPI", "Bytes"]
        .iter()
        .filter_map(|what| {
            let count = some(&format!("WAL {what}"))?;
            Some(format!("{}={count}", what.to_lowercase()))
        })
        .collect();
    if !wal.is_empty() {
        lines.push(format!("WAL: {}", wal.join(" ")));
    }
    lines
}

/// A value on one line.
fn plain(value: &Json) -> String {
    match value {
        Json::Null => "null".to_owned(),
        Json::Boolean(value) => value.to_string(),
        Json::Number(text) | Json::Text(text) => text.clone(),
        Json::List(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Json::Object(fields) => {
            let fields = fields.iter();
            let texts = fields.map(|(name, value)| format!("{name}: {}", plain(value)));
            texts.collect::<Vec<_>>().join("  ")
        }
    }
}

/// What is told of the whole query.
fn footer(plan: &Plan, text: &mut String) {
    if let Some(planning) = plan.field("Planning") {
        let of = |name: &str| planning.field(name).and_then(Json::text);
        let lines = counter_lines(&of);
        if !lines.is_empty() {
            text.push_str("Planning:\n");
        }
        for line in lines {
            let _ = writeln!(text, "  {line}");
        }
    }
    let time = |text: &mut String, name: &str| {
        if let Some(ms) = plan.field(name).and_then(Json::text) {
            let _ = writeln!(text, "{name}: {ms} ms");
        }
    };
    time(text, "Planning Time");
    for trigger in plan.field("Triggers").map_or(&[][..], Json::items) {
        let of = |name: &str| trigger.field(name).and_then(Json::text);
        let name = match of("Constraint Name") {
            Some(constraint) => format!("for constraint {constraint}"),
            None => of("Trigger Name").unwrap_or_default().to_owned(),
        };
        let _ = write!(text, "Trigger {name}");
        if let Some(relation) = of("Relation") {
            let _ = write!(text, " on {relation}");
        }
        if let Some(time) = of("Time") {
            let _ = write!(text, ": time={time}");
        } else {
            text.push(':');
        }
        let _ = writeln!(text, " calls={}", of("Calls").unwrap_or_default());
    }
    if let Some(serialization) = plan.field("Serialization") {
        let _ = writeln!(text, "Serialization: {}", plain(serialization));
    }
    time(text, "Execution Time");
}
