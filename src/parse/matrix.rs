//! The cells of an experiment, out of `matrix:` or `cases:`.

use super::problems::{Problems, listed};
use super::read::Fields;
use super::yaml::{Node, Value};
use crate::article::{Block, BlockKind, Cells, PostgresSpec, Scalar, VERSION, in_words};
use crate::source::Spanned;

/// More combinations than this are taken for a mistake.
const MAX_CELLS: usize = 10_000;

/// `matrix:` or `cases:`, as cells; the last column of a matrix changes fastest.
pub fn cells(fields: &mut Fields, problems: &Problems) -> Cells {
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

/// In an article with `versions:` every cell is measured on a server of its version: each experiment
/// runs on all of them, unless its own `matrix` or `cases` says on which.
pub fn add_versions(blocks: &mut [Block], postgres: &PostgresSpec, problems: &Problems) {
    if postgres.versions.is_empty() {
        return;
    }
    let versions: Vec<&str> = (postgres.versions.iter())
        .map(|version| version.value.as_str())
        .collect();
    for block in blocks {
        let BlockKind::Experiment(experiment) = &mut block.kind else {
            continue;
        };
        let place = experiment.cells.span.unwrap_or(experiment.id.span);
        let cells = &mut experiment.cells;
        if let Some(column) = cells.columns.iter().position(|name| name == VERSION) {
            check_versions(cells, column, &versions, problems);
            continue;
        }
        if cells.rows.len().saturating_mul(versions.len()) > MAX_CELLS {
            problems.error(
                place,
                format!("on all versions the matrix has more than {MAX_CELLS} cells"),
                "list the ones that matter with `cases:`",
            );
            continue;
        }
        cells.columns.insert(0, VERSION.to_owned());
        let rows = versions.iter().flat_map(|version| {
            cells.rows.iter().map(|row| {
                let version = Scalar::Text((*version).to_owned());
                [version].into_iter().chain(row.iter().cloned()).collect()
            })
        });
        cells.rows = rows.collect();
    }
}

/// `18.6` without quotes is a number to YAML; a version is text.
fn check_versions(cells: &mut Cells, column: usize, versions: &[&str], problems: &Problems) {
    let span = cells.span.unwrap_or_default();
    for row in &mut cells.rows {
        let Some(value) = row.get_mut(column) else {
            continue;
        };
        let text = value.to_string();
        if versions.contains(&text.as_str()) {
            *value = Scalar::Text(text);
        } else {
            problems.error(
                span,
                format!("`{text}` is not among the article's `versions`"),
                format!("they are {}, each in quotes", in_words(versions)),
            );
        }
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
    if matches!(&node.value, Value::Sequence(items) if items.is_empty()) {
        problems.error(
            node.span,
            "there is no case, so there is nothing to run",
            hint,
        );
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
