//! `data/*.csv`: everything measured, and the rows behind each table and chart. NULL is empty.

use super::{Filled, OutputFile, Page};
use crate::article::Article;
use crate::diagnostic::Diagnostic;
use crate::quantity::Table;
use std::collections::BTreeMap;

/// `result`: the name of a named collect or sample.
pub fn experiment_path(experiment: &str, result: Option<&str>) -> String {
    match result {
        Some(result) => format!("data/{experiment}_{result}.csv"),
        None => format!("data/{experiment}.csv"),
    }
}

pub fn table_path(id: &str) -> String {
    format!("data/table_{id}.csv")
}

pub fn chart_path(id: &str) -> String {
    format!("data/chart_{id}.csv")
}

pub fn render(page: &Page, _filled: &Filled) -> Result<Vec<OutputFile>, Diagnostic> {
    let record = page.record;
    let measured = record.experiments.iter().flat_map(|(id, experiment)| {
        let results = (experiment.results.iter())
            .map(move |(name, table)| (experiment_path(id, Some(name)), table));
        std::iter::once((experiment_path(id, None), &experiment.measured)).chain(results)
    });
    let tables = (record.tables.iter()).map(|(id, table)| (table_path(id), table));
    let charts = (record.charts.iter()).map(|(id, table)| (chart_path(id), table));
    measured
        .chain(tables)
        .chain(charts)
        .map(|(path, table)| {
            let content = write(table).map_err(|error| {
                Diagnostic::error(format!("`{path}` cannot be written: {error}"))
            })?;
            Ok(OutputFile::new(path, content))
        })
        .collect()
}

/// Tables and charts whose data would go where that of an experiment goes.
pub fn check(article: &Article) -> Vec<Diagnostic> {
    let mut measured = BTreeMap::new();
    for experiment in article.experiments() {
        let id = &experiment.id;
        measured.insert(experiment_path(&id.value, None), id.span);
        // What instruments give results of their own.
        let instruments = experiment.instruments.iter();
        let given = instruments.flat_map(|choice| choice.value.tables.iter().copied());
        for result in given.chain(["statements", "settings"]) {
            measured.insert(experiment_path(&id.value, Some(result)), id.span);
        }
        for name in experiment
            .collects
            .iter()
            .filter_map(|one| one.name.as_ref())
            .chain(experiment.samples.iter().map(|one| &one.name))
        {
            measured.insert(experiment_path(&id.value, Some(&name.value)), name.span);
        }
    }
    let tables = article
        .tables()
        .map(|table| (table_path(&table.id.value), &table.id));
    let charts = article
        .charts()
        .map(|chart| (chart_path(&chart.id.value), &chart.id));
    tables
        .chain(charts)
        .filter_map(|(path, id)| {
            let other = *measured.get(&path)?;
            Some(
                Diagnostic::error(format!("two files would be written to `{path}`"))
                    .at(&article.source, id.span)
                    .related(&article.source, other, "the other one is of this")
                    .hint("rename one of the two"),
            )
        })
        .collect()
}

fn write(table: &Table) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(table.columns.iter().map(|column| &column.name))?;
    for row in &table.rows {
        writer.write_record(
            row.iter()
                .map(|value| value.to_postgres().unwrap_or_default()),
        )?;
    }
    writer
        .into_inner()
        .map_err(|error| csv::Error::from(error.into_error()))
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;

    #[test]
    fn data_files_hold_exact_values_with_null_empty() {
        let sample = Sample::new();
        assert_eq!(
            sample.file("data/table_insert_cost.csv"),
            "indexes,rows_per_s,note\n0,753852.18,a|b <i>\n8,63210.6,\n"
        );
        assert_eq!(
            sample.file("data/insert_sizes.csv"),
            "name,bytes\n\"a,b\",\n"
        );
        assert_eq!(sample.file("data/insert.csv").lines().count(), 7);
        assert!(
            sample
                .file("data/chart_insert_wal.csv")
                .ends_with("8,844.3012\n")
        );
    }
}
