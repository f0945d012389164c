//! Samples as tables: matrix columns, `run`, then what was measured.

use super::scalar_type;
use crate::article::Experiment;
use crate::quantity::{Column, Table, Value};
use crate::record::Sample;
use indexmap::IndexMap;

/// An experiment's tables before `derive`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaidOut {
    /// `measured.<experiment>`
    pub measured: Table,
    /// `measured.<experiment>_<name>`
    pub results: IndexMap<String, Table>,
}

/// One row a sample, cells in their order, runs in theirs.
pub fn lay_out(experiment: &Experiment, samples: &[Sample]) -> LaidOut {
    let mut samples: Vec<&Sample> = samples.iter().collect();
    samples.sort_by_key(|sample| (sample.cell, sample.run));
    let mut laid_out = LaidOut {
        measured: empty(experiment),
        results: IndexMap::new(),
    };
    for sample in samples {
        append(&mut laid_out.measured, experiment, sample, &sample.row);
        for (name, table) in &sample.results {
            let result = laid_out
                .results
                .entry(name.clone())
                .or_insert_with(|| empty(experiment));
            append(result, experiment, sample, table);
        }
    }
    laid_out
}

/// The name a measured column has beside the matrix: a further result's column that is called as
/// a matrix column is gets a prefix. (The experiment's own columns cannot collide: measuring
/// refuses that.)
fn name_beside(keys: &[Column], name: &str) -> String {
    if keys.iter().any(|key| key.name == name) {
        format!("result_{name}")
    } else {
        name.to_owned()
    }
}

/// Matrix columns and `run`, without rows.
fn empty(experiment: &Experiment) -> Table {
    let cells = &experiment.cells;
    let types = cells.rows.first().into_iter().flatten().map(scalar_type);
    let mut columns: Vec<Column> = cells
        .columns
        .iter()
        .zip(types)
        .map(|(name, type_name)| Column::new(name.clone(), type_name))
        .collect();
    // A column whose values are of several types is text.
    for (index, column) in columns.iter_mut().enumerate() {
        if cells
            .rows
            .iter()
            .any(|row| scalar_type(&row[index]) != column.type_name)
        {
            column.type_name = "text".to_owned();
        }
    }
    columns.push(Column::new("run", "integer"));
    Table {
        columns,
        rows: Vec::new(),
    }
}

fn append(into: &mut Table, experiment: &Experiment, sample: &Sample, from: &Table) {
    let keys = experiment.cells.columns.len() + 1;
    let names: Vec<String> = from
        .columns
        .iter()
        .map(|column| name_beside(&into.columns[..keys], &column.name))
        .collect();
    for (column, name) in from.columns.iter().zip(&names) {
        if into.columns[keys..].iter().all(|known| known.name != *name) {
            let type_name = column.type_name.clone();
            into.columns.push(Column::new(name.clone(), type_name));
            for row in &mut into.rows {
                row.push(Value::Null);
            }
        }
    }
    for row in &from.rows {
        let mut cells: Vec<Value> = experiment
            .cells
            .rows
            .get(sample.cell)
            .into_iter()
            .flatten()
            .zip(&into.columns)
            .map(|(scalar, column)| {
                Value::from_postgres(Some(&scalar.to_string()), &column.type_name)
            })
            .collect();
        let run = sample.run.to_string();
        cells.push(Value::from_postgres(Some(&run), "integer"));
        for column in &into.columns[keys..] {
            let index = names.iter().position(|name| *name == column.name);
            cells.push(index.map_or(Value::Null, |index| row[index].clone()));
        }
        into.rows.push(cells);
    }
}
