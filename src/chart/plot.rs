//! Reads a chart's rows into series of points that can be drawn, or says which row cannot.
//! Entry: [`Plot::read`].

use super::Chart;
use super::svg::printable;
use super::time::milliseconds;
use crate::article::Axis;
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::quantity::{Number, Value};
use crate::source::{Source, Spanned};
use indexmap::{IndexMap, IndexSet};
use std::sync::Arc;

/// More rows than this are no picture any more, and a page of many megabytes.
pub const ROW_LIMIT: usize = 10_000;

/// A chart's rows, checked.
#[derive(Debug)]
pub struct Plot {
    pub horizontal: Horizontal,
    /// In the order in which they first appear in the rows.
    pub series: Vec<Series>,
    pub has_errors: bool,
    pub log_x: bool,
    pub log_y: bool,
}

/// What the horizontal axis counts in.
#[derive(Debug, PartialEq, Eq)]
pub enum Horizontal {
    /// Texts in order of first appearance; a point's `x` is the place in here.
    Categories(Vec<String>),
    /// `whole`: integers only.
    Numbers { whole: bool },
    /// Milliseconds since 1970, in UTC.
    Times,
}

/// Whether a chart type draws numbers on the horizontal axis as what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Categories,
    /// Numbers, times, or else categories, as the column is.
    Continuous,
}

#[derive(Debug)]
pub struct Series {
    pub name: String,
    pub points: Vec<Point>,
}

/// A double is enough for a drawing.
#[derive(Debug, PartialEq)]
pub struct Point {
    /// From 0, in the query's result.
    pub row: usize,
    pub x: f64,
    pub y: f64,
    /// The ends of the error bar.
    pub error: Option<(f64, f64)>,
}

/// The places of the columns in the result.
struct Columns<'a> {
    x: usize,
    y: Vec<(usize, &'a Spanned<String>)>,
    series: Option<usize>,
    error: Option<[(usize, &'a Spanned<String>); 2]>,
}

impl Plot {
    pub fn read(chart: &Chart, source: &Arc<Source>, meaning: Meaning) -> Result<Self, Diagnostic> {
        let reader = Reader::new(chart, source)?;
        let (horizontal, xs) = reader.horizontal(meaning)?;
        let series = reader.series(&xs)?;
        reader.say_what_is_bad()?;
        Ok(Self {
            horizontal,
            series,
            has_errors: chart.block.error.is_some(),
            log_x: chart.block.log.contains(&Axis::X),
            log_y: chart.block.log.contains(&Axis::Y),
        })
    }

    /// The categories' names; none where the axis has numbers.
    pub fn categories(&self) -> &[String] {
        match &self.horizontal {
            Horizontal::Categories(names) => names,
            _ => &[],
        }
    }

    /// Every vertical value, ends of error bars included.
    pub fn heights(&self) -> impl Iterator<Item = f64> + '_ {
        self.series.iter().flat_map(|series| {
            series.points.iter().flat_map(|point| {
                let (low, high) = point.error.unwrap_or((point.y, point.y));
                [point.y, low, high]
            })
        })
    }
}

struct Reader<'a> {
    chart: &'a Chart<'a>,
    source: &'a Arc<Source>,
    columns: Columns<'a>,
    bad: std::cell::RefCell<Vec<Bad>>,
}

/// A value that cannot be drawn.
struct Bad {
    at: crate::source::Span,
    message: String,
    hint: &'static str,
}

const NULL_HINT: &str =
    "leave the row out with `WHERE`, or give it a value with `coalesce()`, in the chart's query";
const LOG_HINT: &str = "leave the row out with `WHERE`, or take the axis out of `log`";

impl<'a> Reader<'a> {
    fn new(chart: &'a Chart<'a>, source: &'a Arc<Source>) -> Result<Self, Diagnostic> {
        let block = chart.block;
        let rows = chart.table.rows.len();
        let whole = |message: String| Diagnostic::error(message).at(source, block.id.span);
        if let (Some((low, _)), [_, second, ..]) = (&block.error, block.y.as_slice()) {
            return Err(Diagnostic::error("`error` goes with a single `y` column")
                .at(source, low.span)
                .related(source, second.span, "a second `y` column")
                .hint("give each row its series in a column, and name that in `series:`"));
        }
        let columns = find_columns(chart, source)?;
        if rows == 0 {
            return Err(whole(format!(
                "the query of chart `{}` gives no rows",
                block.id.value
            ))
            .hint("see whether its `WHERE` leaves anything of the measured tables"));
        }
        if rows > ROW_LIMIT {
            return Err(whole(format!(
                "chart `{}` has {rows} rows, more than the {ROW_LIMIT} that can be drawn",
                block.id.value
            ))
            .hint("summarise them in the query, such as by `median()` and `GROUP BY`"));
        }
        Ok(Self {
            chart,
            source,
            columns,
            bad: Vec::new().into(),
        })
    }

    /// The axis and each row's place on it.
    fn horizontal(&self, meaning: Meaning) -> Result<(Horizontal, Vec<f64>), Diagnostic> {
        let column = &self.chart.table.columns[self.columns.x];
        let values = self.chart.table.rows.iter().map(|row| &row[self.columns.x]);
        let x = &self.chart.block.x;
        let is_log = self.chart.block.log.contains(&Axis::X);
        let is_time = column.type_name == "date" || column.type_name.starts_with("timestamp");
        let is_number = values.clone().any(|value| value.number().is_some());
        let continuous = meaning == Meaning::Continuous && (is_time || is_number);
        if is_log && (!continuous || is_time) {
            let kind = &self.chart.block.chart_type.value;
            return Err(Diagnostic::error(if continuous || !is_number {
                format!(
                    "`log: x` needs numbers, and `{}` is {}",
                    x.value, column.type_name
                )
            } else {
                format!("a {kind} chart's horizontal axis has categories, and no logarithms")
            })
            .at(self.source, x.span)
            .hint("take `x` out of `log`, or choose a `scatter` or `line` of numbers"));
        }
        if !continuous {
            return Ok(self.categories());
        }
        let mut places = Vec::new();
        for (row, value) in values.enumerate() {
            let place = match value {
                Value::Text(text) if is_time => milliseconds(text),
                Value::Number(number) => Some(as_double(number)),
                _ => None,
            };
            places.push(self.checked(row, x, value, place, is_log));
        }
        let whole = self.chart.table.rows.iter().all(|row| {
            row[self.columns.x]
                .number()
                .and_then(Number::finite)
                .is_some_and(|n| n.is_integer())
        });
        let horizontal = match is_time {
            true => Horizontal::Times,
            false => Horizontal::Numbers { whole },
        };
        Ok((horizontal, places))
    }

    fn categories(&self) -> (Horizontal, Vec<f64>) {
        let mut names = IndexSet::new();
        let mut places = Vec::new();
        for (row, values) in self.chart.table.rows.iter().enumerate() {
            let value = &values[self.columns.x];
            if *value == Value::Null {
                self.checked(row, &self.chart.block.x, value, None, false);
            }
            places.push(names.insert_full(name_of(value)).0 as f64);
        }
        (Horizontal::Categories(names.into_iter().collect()), places)
    }

    fn series(&self, xs: &[f64]) -> Result<Vec<Series>, Diagnostic> {
        let is_log = self.chart.block.log.contains(&Axis::Y);
        let mut series: IndexMap<(Option<String>, usize), Vec<Point>> = IndexMap::new();
        for (row, values) in self.chart.table.rows.iter().enumerate() {
            let group = self.columns.series.map(|column| name_of(&values[column]));
            if let (Some(column), Some(by)) = (self.columns.series, &self.chart.block.series)
                && values[column] == Value::Null
            {
                self.checked(row, by, &Value::Null, None, false);
            }
            let number = |(column, name): (usize, &Spanned<String>)| {
                let value = &values[column];
                let double = value.number().map(as_double);
                self.checked(row, name, value, double, is_log)
            };
            let error = self
                .columns
                .error
                .map(|[low, high]| (number(low), number(high)));
            if let (Some((low, high)), Some([(_, name), _])) = (error, self.columns.error)
                && low > high
            {
                self.note_bad(
                    name,
                    format!(
                        "the error bar's low end, {low}, is above its high end, {high}, in {}",
                        self.row_name(row)
                    ),
                    "`error` is `[low, high]`: the columns of the ends, not of distances",
                );
            }
            for (index, &y) in self.columns.y.iter().enumerate() {
                let point = Point {
                    row,
                    x: xs[row],
                    y: number(y),
                    error,
                };
                series
                    .entry((group.clone(), index))
                    .or_default()
                    .push(point);
            }
        }
        let named = series.into_iter().map(|((group, index), points)| {
            let column = &self.columns.y[index].1.value;
            let name = match group {
                Some(group) if self.columns.y.len() > 1 => format!("{group} · {column}"),
                Some(group) => group,
                None => printable(column).into_owned(),
            };
            Series { name, points }
        });
        Ok(named.collect())
    }

    /// The number to draw. What is no such number is noted, and something stands in for it that
    /// is never drawn.
    fn checked(
        &self,
        row: usize,
        column: &Spanned<String>,
        value: &Value,
        number: Option<f64>,
        is_log: bool,
    ) -> f64 {
        let name = &column.value;
        let place = || self.row_name(row);
        match (value, number) {
            (Value::Number(Number::Finite(_)), Some(double)) if !double.is_finite() => self
                .note_bad(
                    column,
                    format!("`{name}` is too large to draw in {}", place()),
                    "draw it in a larger unit",
                ),
            (_, Some(double)) if double.is_finite() => {
                if !is_log || double > 0.0 {
                    return double;
                }
                self.note_bad(
                    column,
                    format!(
                        "`{name}` is {value} in {}, which has no place on a logarithmic axis",
                        place()
                    ),
                    LOG_HINT,
                );
            }
            (Value::Text(_) | Value::Boolean(_), _) => self.note_bad(
                column,
                format!(
                    "`{name}` is `{value}` in {}, which is no number that can be drawn",
                    place()
                ),
                "cast it in the chart's query",
            ),
            _ => self.note_bad(
                column,
                format!("`{name}` is {value} in {}, which cannot be drawn", place()),
                NULL_HINT,
            ),
        }
        1.0
    }

    fn note_bad(&self, column: &Spanned<String>, message: String, hint: &'static str) {
        self.bad.borrow_mut().push(Bad {
            at: column.span,
            message,
            hint,
        });
    }

    fn say_what_is_bad(&self) -> Result<(), Diagnostic> {
        const SHOWN: usize = 5;
        let bad = self.bad.take();
        let Some(first) = bad.first() else {
            return Ok(());
        };
        let mut diagnostic = Diagnostic::error(&first.message)
            .at(self.source, first.at)
            .hint(first.hint);
        for other in bad.iter().skip(1).take(SHOWN - 1) {
            diagnostic = diagnostic.note(&other.message);
        }
        if bad.len() > SHOWN {
            diagnostic = diagnostic.note(format!("and {} more", bad.len() - SHOWN));
        }
        Err(diagnostic)
    }

    fn row_name(&self, row: usize) -> String {
        row_name(self.chart, row)
    }
}

/// `row 3 (indexes = 2, kind = hot)`
pub fn row_name(chart: &Chart, row: usize) -> String {
    let block = chart.block;
    let keys: Vec<String> = [Some(&block.x), block.series.as_ref()]
        .into_iter()
        .flatten()
        .filter_map(|key| {
            let value = &chart.table.rows[row][chart.table.column(&key.value)?];
            Some(format!("{} = {value}", key.value))
        })
        .collect();
    format!("row {} ({})", row + 1, keys.join(", "))
}

/// All columns that a chart names, or which of them the query does not have.
fn find_columns<'a>(chart: &'a Chart<'a>, source: &Arc<Source>) -> Result<Columns<'a>, Diagnostic> {
    let mut missing: Vec<&Spanned<String>> = Vec::new();
    let mut find = |name: &'a Spanned<String>| {
        let column = chart.table.column(&name.value);
        if column.is_none() {
            missing.push(name);
        }
        (column.unwrap_or_default(), name)
    };
    let block = chart.block;
    let columns = Columns {
        x: find(&block.x).0,
        y: block.y.iter().map(&mut find).collect(),
        series: block.series.as_ref().map(|name| find(name).0),
        error: block
            .error
            .as_ref()
            .map(|(low, high)| [find(low), find(high)]),
    };
    let Some((first, others)) = missing.split_first() else {
        return Ok(columns);
    };
    let names: Vec<&str> = chart
        .table
        .columns
        .iter()
        .map(|c| c.name.as_str())
        .collect();
    let listed: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let mut diagnostic = Diagnostic::error(format!(
        "the query of chart `{}` has no column `{}`",
        block.id.value, first.value
    ))
    .at(source, first.span)
    .label("not a column of the query");
    for other in others {
        diagnostic = diagnostic.related(source, other.span, "nor is this");
    }
    diagnostic = diagnostic.note(format!("its columns are {}", listed.join(", ")));
    Err(match did_you_mean(&first.value, names) {
        Some(suggestion) => diagnostic.hint(suggestion),
        None => diagnostic,
    })
}

/// The nearest double, by way of the text: `BigDecimal::to_f64` may be off in the last digit.
fn as_double(number: &Number) -> f64 {
    number.to_string().parse().unwrap_or(f64::NAN)
}

/// A category's or series' name.
fn name_of(value: &Value) -> String {
    match value {
        Value::Number(Number::Finite(number)) if number.is_integer() => {
            grouped(&number.to_plain_string())
        }
        other => match printable(&other.to_string()).trim() {
            // ECharts takes an empty name for a line break.
            "" => "(empty)".to_owned(),
            name => name.to_owned(),
        },
    }
}

/// `100,000`. Four digits stay as they are: they may be a year.
fn grouped(digits: &str) -> String {
    let unsigned = digits.trim_start_matches('-');
    if unsigned.len() < 5 || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return digits.to_owned();
    }
    let mut text = digits[..digits.len() - unsigned.len()].to_owned();
    for (index, digit) in unsigned.char_indices() {
        if index > 0 && (unsigned.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
