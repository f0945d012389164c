//! Samples as tables: matrix columns, `run`, then what was measured.

use super::scalar_type;
use crate::article::Experiment;
use crate::quantity::{Column, Table, Value};
use crate::record::Sample;
use indexmap::IndexMap;
use std::borrow::Cow;

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

/// What a column is called behind the key columns. A further result's may have the name of one of
/// them and is then told apart; measuring refuses that in the experiment's own table.
fn name_beside<'n>(keys: &[Column], name: &'n str) -> Cow<'n, str> {
    if keys.iter().any(|key| key.name == name) {
        Cow::Owned(format!("result_{name}"))
    } else {
        Cow::Borrowed(name)
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
    let mut places = Vec::with_capacity(from.columns.len());
    for column in &from.columns {
        let name = name_beside(&into.columns[..keys], &column.name);
        let known = into.columns[keys..]
            .iter()
            .position(|known| known.name == name);
        places.push(keys + known.unwrap_or(into.columns.len() - keys));
        if known.is_none() {
            let column = Column::new(name.into_owned(), column.type_name.clone());
            into.columns.push(column);
            for row in &mut into.rows {
                row.push(Value::Null);
            }
        }
    }
    let cell = experiment.cells.rows.get(sample.cell).into_iter().flatten();
    let key_values: Vec<Value> = cell
        .map(ToString::to_string)
        .chain([sample.run.to_string()])
        .zip(&into.columns)
        .map(|(text, column)| Value::from_postgres(Some(&text), &column.type_name))
        .collect();
    for row in &from.rows {
        let mut cells = key_values.clone();
        cells.resize(into.columns.len(), Value::Null);
        for (place, value) in places.iter().zip(row) {
            cells[*place] = value.clone();
        }
        into.rows.push(cells);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::sample::article;

    const HEAD: &str = "---\ntitle: T\npostgres: {version: \"16.15\"}\n---\n";

    fn sample(cell: usize, run: u32, columns: &[&str], row: &[&str]) -> Sample {
        let table = Table {
            columns: columns
                .iter()
                .map(|name| Column::new(*name, "integer"))
                .collect(),
            rows: vec![
                row.iter()
                    .map(|text| Value::from_postgres(Some(text), "integer"))
                    .collect(),
            ],
        };
        Sample {
            cell,
            run,
            row: table.clone(),
            results: [("more".to_owned(), table)].into(),
        }
    }

    fn texts(table: &Table) -> Vec<String> {
        let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
        let rows = table.rows.iter().map(|row| {
            let cells: Vec<String> = row.iter().map(ToString::to_string).collect();
            cells.join(" ")
        });
        [names.join(" ")].into_iter().chain(rows).collect()
    }

    fn laid_out(experiment: &str, samples: &[Sample]) -> LaidOut {
        let article = article(&format!("{HEAD}```sql experiment e\n{experiment}\n```\n"));
        lay_out(article.experiments().next().unwrap(), samples)
    }

    #[test]
    fn rows_stand_in_the_order_of_cells_and_runs_behind_their_keys() {
        let samples = [
            sample(1, 1, &["n"], &["30"]),
            sample(0, 2, &["n"], &["20"]),
            sample(0, 1, &["n"], &["10"]),
        ];
        let laid_out = laid_out("--| matrix: {k: [7, 8]}\nSELECT 1 AS n;", &samples);
        let expected = ["k run n", "7 1 10", "7 2 20", "8 1 30"];
        assert_eq!(texts(&laid_out.measured), expected);
        assert_eq!(texts(&laid_out.results["more"]), expected);
        let types: Vec<&str> = (laid_out.measured.columns.iter())
            .map(|column| column.type_name.as_str())
            .collect();
        assert_eq!(types, ["numeric", "integer", "integer"]);
    }

    #[test]
    fn a_column_that_some_samples_lack_is_null_there() {
        let samples = [
            sample(0, 1, &["a"], &["1"]),
            sample(0, 2, &["b", "a"], &["2", "3"]),
            sample(0, 3, &["b"], &["4"]),
        ];
        assert_eq!(
            texts(&laid_out("SELECT 1;", &samples).measured),
            ["run a b", "1 1 NULL", "2 3 2", "3 NULL 4"]
        );
    }

    #[test]
    fn a_column_named_like_a_key_is_told_apart_and_any_other_keeps_its_name() {
        for (columns, expected) in [
            (["k", "n"], "k run result_k n"),
            (["result_rows", "n"], "k run result_rows n"),
            (["run", "result_n"], "k run result_run result_n"),
        ] {
            let samples = [
                sample(0, 1, &columns, &["1", "2"]),
                sample(0, 2, &columns, &["3", "4"]),
            ];
            let laid_out = laid_out("--| matrix: {k: [7]}\nSELECT 1;", &samples);
            assert_eq!(
                texts(&laid_out.results["more"]),
                [expected, "7 1 1 2", "7 2 3 4"]
            );
        }
    }

    #[test]
    fn a_matrix_column_of_several_types_is_text() {
        let samples = [sample(0, 1, &[], &[]), sample(1, 1, &[], &[])];
        let measured = laid_out("--| matrix: {k: [1, x]}\nSELECT 1;", &samples).measured;
        assert_eq!(measured.columns[0], Column::new("k", "text"));
        assert_eq!(texts(&measured), ["k run", "1 1", "x 1"]);
    }
}
