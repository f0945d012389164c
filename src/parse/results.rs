//! `claims`, `table` and `chart` blocks: queries over measured tables, and how they are shown.

use super::Known;
use super::directives::{Section, Sections};
use super::experiment::{merged, split};
use super::fences::Fence;
use super::front_matter::bytes;
use super::problems::{Problems, listed};
use super::read::{Fields, decimal, json, not_supported_yet, percent};
use super::yaml::{Entry, Node, Value};
use crate::article::{
    Axis, ChartBlock, Claim, ClaimKind, Claims, Published, Statement, TableBlock, TableColumn,
    Terminator, Tolerance,
};
use crate::diagnostic::did_you_mean;

use crate::quantity::{Format, UnknownFormat};
use crate::source::{Span, Spanned};
use bigdecimal::BigDecimal;
use indexmap::IndexMap;

pub fn claims(fence: &Fence, sections: &Sections, problems: &Problems) -> Claims {
    let mut claims = Vec::new();
    for section in &sections.sections {
        claims.extend(claim(section, problems));
    }
    if sections.sections.is_empty() {
        problems.error(
            fence.name,
            format!("`{}` holds no claim", fence.id.value),
            "write `--| name: {unit: B, kind: bounded}` and its query below",
        );
    }
    Claims {
        id: fence.id.clone(),
        claims,
    }
}

/// The claim that a run of lines names, with the query below it.
fn claim(section: &Section, problems: &Problems) -> Option<Claim> {
    let Some((entry, earlier)) = section.entries.split_last() else {
        let statements = split(&section.sql, problems).statements;
        if let (Some(statement), None) = (statements.first(), section.directives) {
            problems.error(
                first_line(statement),
                "this query belongs to no claim",
                "name the claim above it: `--| name: {unit: B, kind: bounded}`",
            );
        }
        return None;
    };
    for entry in earlier {
        problems.error(
            entry.key.span,
            format!("claim `{}` has no query", entry.key.value),
            "the query of a claim stands below its line, up to the next `--|` line",
        );
    }
    problems.is_name(&entry.key);
    let what = format!("claim `{}`", entry.key.value);
    let query = one_query(&[section], &what, entry.key.span, problems);
    claim_with(entry, query, problems)
}

/// A claim's options; there is no claim without a query.
fn claim_with(entry: &Entry, query: Option<Statement>, problems: &Problems) -> Option<Claim> {
    let entries = if entry.value.is_null() {
        &[]
    } else {
        problems.entries(&entry.value, "write `name: {unit: B, kind: bounded}`")?
    };
    let mut fields = Fields::new(problems, "a claim", entries);
    let tolerance = fields
        .take("tolerance")
        .and_then(|node| tolerance(node, problems));
    let kind = fields.take("kind").and_then(|node| {
        let choices = [
            ("exact", ClaimKind::Exact),
            ("bounded", ClaimKind::Bounded),
            ("noisy", ClaimKind::Noisy),
        ];
        problems.choice(node, &choices)
    });
    // What has a tolerance is not meant to be exact.
    let otherwise = if tolerance.is_some() {
        ClaimKind::Bounded
    } else {
        ClaimKind::Exact
    };
    let unit = fields.take("unit").and_then(|node| problems.text(node));
    let bytes = fields.take("bytes").and_then(|node| bytes(node, problems));
    let format = fields
        .take("format")
        .and_then(|node| number_format(node, problems));
    let published = fields
        .take("published")
        .and_then(|node| published(node, problems));
    let profile = fields
        .take("profile")
        .and_then(|node| problems.spanned_text(node));
    let machine = fields
        .take("machine")
        .and_then(|node| problems.spanned_text(node));
    fields.finish(&[]);
    Some(Claim {
        name: entry.key.clone(),
        query: query?,
        kind: kind.unwrap_or(otherwise),
        tolerance,
        unit,
        bytes,
        format,
        published,
        profile,
        machine,
    })
}

fn published(node: &Node, problems: &Problems) -> Option<Published> {
    let text = problems.text(node)?;
    let plain = matches!(&node.value, Value::Scalar(text) if text.plain);
    Some(match (text.as_str(), decimal(&text)) {
        ("true", _) if plain => Published::Boolean(true),
        ("false", _) if plain => Published::Boolean(false),
        (_, Some(number)) if plain => Published::Number(number),
        _ => Published::Text(text),
    })
}

fn number_format(node: &Node, problems: &Problems) -> Option<String> {
    let text = problems.text(node)?;
    if let Err(unknown) = text.parse::<Format>() {
        problems.error(node.span, unknown.to_string(), UnknownFormat::HINT);
    }
    Some(text)
}

/// `1%`, `0.5`, `[70, 80]`, `>= 3` or `<= 10`.
fn tolerance(node: &Node, problems: &Problems) -> Option<Spanned<Tolerance>> {
    let hint = "write `1%`, `0.5`, `[70, 80]`, `>= 3` or `<= 10`";
    let read = match &node.value {
        Value::Sequence(items) => range(items, problems)?,
        Value::Scalar(text) => scalar_tolerance(&text.text),
        Value::Mapping(_) => None,
    };
    if read.is_none() {
        problems.error(
            node.span,
            format!("expected a tolerance, found {}", super::yaml::found(node)),
            hint,
        );
    }
    read.map(|tolerance| Spanned::new(tolerance, node.span))
}

/// None where a problem is told already, Some(None) where this is no range.
fn range(items: &[Node], problems: &Problems) -> Option<Option<Tolerance>> {
    let [low, high] = items else {
        return Some(None);
    };
    let (low_number, high_number) = (problems.number(low), problems.number(high));
    let (low_number, high_number) = low_number.zip(high_number)?;
    if low_number > high_number {
        problems.error(
            Span::new(low.span.start, high.span.end),
            "the range ends below its beginning",
            "exchange the two numbers",
        );
        return None;
    }
    Some(Some(Tolerance::Range(low_number, high_number)))
}

fn scalar_tolerance(text: &str) -> Option<Tolerance> {
    let number = |text: &str| decimal(text.trim());
    if let Some(bound) = text.strip_prefix(">=") {
        return number(bound).map(Tolerance::AtLeast);
    }
    if let Some(bound) = text.strip_prefix("<=") {
        return number(bound).map(Tolerance::AtMost);
    }
    let not_negative = |number: &BigDecimal| *number >= BigDecimal::default();
    if text.ends_with('%') {
        return percent(text).filter(not_negative).map(Tolerance::Relative);
    }
    number(text).filter(not_negative).map(Tolerance::Absolute)
}

// ---- queries ----------------------------------------------------------------------------------

fn first_line(statement: &Statement) -> Span {
    let text = &statement.text;
    text.span(0..text.text.lines().next().map_or(0, str::len))
}

/// The one query below `place`.
fn one_query(
    sections: &[&Section],
    what: &str,
    place: Span,
    problems: &Problems,
) -> Option<Statement> {
    let before = problems.count();
    let mut statements = Vec::new();
    for section in sections {
        statements.extend(split(&section.sql, problems).statements);
    }
    let mut statements = statements.into_iter();
    let Some(query) = statements.next() else {
        if problems.count() == before {
            problems.error(
                place,
                format!("{what} has no query"),
                "write one `SELECT` below it",
            );
        }
        return None;
    };
    if let Some(second) = statements.next() {
        problems.error(
            first_line(&second),
            format!("{what} has more than one statement"),
            "a figure comes from one query",
        );
    }
    if query.terminator != Terminator::Semicolon {
        problems.error(
            first_line(&query),
            format!("the query of {what} ends in a backslash command"),
            "`\\gexec` and `\\gset` are for fixtures and experiments",
        );
    }
    Some(query)
}

fn block_query(
    fence: &Fence,
    sections: &Sections,
    role: &str,
    problems: &Problems,
) -> Option<Statement> {
    let what = format!("{role} `{}`", fence.id.value);
    let all: Vec<&Section> = sections.sections.iter().collect();
    one_query(&all, &what, fence.name, problems)
}

// ---- tables and charts ------------------------------------------------------------------------

pub fn table(fence: &Fence, sections: &Sections, problems: &Problems) -> Option<TableBlock> {
    let entries = merged(sections, |_| true, problems);
    let mut fields = Fields::new(problems, "a table", &entries);
    let caption = fields
        .take("caption")
        .and_then(|node| problems.text_with_fill_ins(node));
    let columns = fields
        .take("columns")
        .map_or_else(IndexMap::new, |node| columns(node, problems));
    fields.finish(&[]);
    Some(TableBlock {
        id: fence.id.clone(),
        query: block_query(fence, sections, "table", problems)?,
        caption,
        columns,
    })
}

fn columns(node: &Node, problems: &Problems) -> IndexMap<String, TableColumn> {
    let hint = "write `{rows_per_s: \"rows/s\"}` or `{rows_per_s: {label: \"rows/s\", format: \"1,000\"}}`";
    let mut columns = IndexMap::new();
    for entry in problems.entries(node, hint).unwrap_or_default() {
        let mut column = TableColumn::default();
        match &entry.value.value {
            _ if entry.value.is_null() => {}
            Value::Mapping(entries) => {
                let mut fields = Fields::new(problems, "a column", entries);
                column.label = fields.take("label").and_then(|node| problems.text(node));
                let format = fields.take("format");
                column.format = format.and_then(|node| number_format(node, problems));
                fields.finish(&[]);
            }
            _ => column.label = problems.text(&entry.value),
        }
        columns.insert(entry.key.value.clone(), column);
    }
    columns
}

/// The chart types the format knows, whether or not this version has them.
const FORMAT_CHARTS: [&str; 6] = ["bar", "line", "scatter", "box", "area", "heatmap"];

pub fn chart(
    fence: &Fence,
    sections: &Sections,
    known: &Known,
    problems: &Problems,
) -> Option<ChartBlock> {
    let entries = merged(sections, |_| true, problems);
    let mut fields = Fields::new(problems, "a chart", &entries);
    let chart_type = fields
        .take("type")
        .and_then(|node| chart_type(node, known, problems));
    let x = fields
        .take("x")
        .and_then(|node| problems.spanned_text(node));
    let y = fields.take("y").map(|node| problems.texts(node));
    let series = fields
        .take("series")
        .and_then(|node| problems.spanned_text(node));
    let error = fields
        .take("error")
        .and_then(|node| error_columns(node, problems));
    let log = fields
        .take("log")
        .map_or_else(Vec::new, |node| log_axes(node, problems));
    let title = fields
        .take("title")
        .and_then(|node| problems.text_with_fill_ins(node));
    let alt = fields
        .take("alt")
        .and_then(|node| problems.text_with_fill_ins(node));
    let caption = fields
        .take("caption")
        .and_then(|node| problems.text_with_fill_ins(node));
    let x_label = fields.take("x_label").and_then(|node| problems.text(node));
    let y_label = fields.take("y_label").and_then(|node| problems.text(node));
    let option = fields.take("option").and_then(|node| {
        problems.entries(node, "write a mapping of ECharts's options")?;
        Some(json(node))
    });
    fields.finish(&[]);
    if sections.complete {
        tell_missing(fence, &entries, problems);
    }
    if let Some(node) = entries
        .iter()
        .find(|entry| entry.key.value == "y")
        .map(|entry| &entry.value)
        && matches!(&node.value, Value::Sequence(items) if items.is_empty())
    {
        problems.error(
            node.span,
            "`y` names no column",
            "name at least one, or write it without brackets",
        );
    }
    if let (Some(alt), Some(caption)) = (&alt, &caption)
        && alt.text.trim() == caption.text.trim()
    {
        problems.push(
            crate::diagnostic::Diagnostic::error("`alt` says the same as `caption`")
                .at(problems.source, alt.span)
                .related(problems.source, caption.span, "the caption")
                .hint("let `alt` say what the picture shows, for whoever cannot see it"),
        );
    }
    let query = block_query(fence, sections, "chart", problems)?;
    Some(ChartBlock {
        id: fence.id.clone(),
        query,
        chart_type: chart_type?,
        x: x?,
        y: y.filter(|columns| !columns.is_empty())?,
        series,
        error,
        log,
        title,
        alt: alt?,
        caption,
        x_label,
        y_label,
        option,
    })
}

fn tell_missing(fence: &Fence, entries: &[Entry], problems: &Problems) {
    let wanted = [
        ("type", "add `--| type: bar`"),
        (
            "x",
            "name the query's column that goes along the horizontal axis",
        ),
        (
            "y",
            "name the query's column, or a list of them, that is drawn",
        ),
        (
            "alt",
            "say in words what the picture shows: it is read out to whoever cannot see it",
        ),
    ];
    for (key, hint) in wanted {
        if !entries.iter().any(|entry| entry.key.value == key) {
            let message = format!("chart `{}` has no `{key}`", fence.id.value);
            problems.error(fence.name, message, hint);
        }
    }
}

fn chart_type(node: &Node, known: &Known, problems: &Problems) -> Option<Spanned<String>> {
    let chart_type = problems.spanned_text(node)?;
    let name = chart_type.value.as_str();
    if known.charts.contains(&name) {
        return Some(chart_type);
    }
    if FORMAT_CHARTS.contains(&name) {
        not_supported_yet(problems, node.span, &format!("chart type `{name}`"));
    } else {
        let hint = did_you_mean(name, known.charts.iter().copied())
            .unwrap_or_else(|| format!("there are {}", listed(known.charts)));
        problems.error(node.span, format!("unknown chart type `{name}`"), hint);
    }
    None
}

fn error_columns(node: &Node, problems: &Problems) -> Option<(Spanned<String>, Spanned<String>)> {
    let hint = "write `error: [low, high]`, the columns of the bar's two ends";
    match problems.items(node, hint)? {
        [low, high] => problems.spanned_text(low).zip(problems.spanned_text(high)),
        items => {
            let message = format!("expected two columns, found {}", items.len());
            problems.error(node.span, message, hint);
            None
        }
    }
}

fn log_axes(node: &Node, problems: &Problems) -> Vec<Axis> {
    let choices = [("x", Axis::X), ("y", Axis::Y)];
    match &node.value {
        Value::Sequence(items) => items
            .iter()
            .filter_map(|item| problems.choice(item, &choices))
            .collect(),
        _ => problems.choice(node, &choices).into_iter().collect(),
    }
}
