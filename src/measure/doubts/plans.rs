//! What the plans of a cell's runs say of its buffers: that they are not all of the statement, or
//! not the same each time.

use super::found::{Found, Kind};
use crate::article::{Connect, Experiment, Fresh};
use crate::measure::instrument::explain;
use crate::quantity::Number;
use crate::record::Sample;
use std::collections::BTreeMap;

/// Over all samples of an experiment with the instrument `explain`.
pub fn doubts(samples: &[Sample], experiment: &Experiment, warmups: u32) -> Vec<Found> {
    if experiment.instrument(explain::INSTRUMENT.name).is_none() {
        return Vec::new();
    }
    let mut cells: BTreeMap<usize, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        cells.entry(sample.cell).or_default().push(sample);
    }
    let mut found = Vec::new();
    for (cell, mut runs) in cells {
        runs.sort_by_key(|sample| sample.run);
        let mut doubt = |run: u32, kind, amount| {
            found.push(Found {
                cell,
                run,
                kind,
                amount,
            });
        };
        for sample in &runs {
            if let Some(missing) = missing_workers(sample) {
                doubt(sample.run, Kind::WorkersMissing, missing);
            }
            if let Some(pages) = first_use(sample, &runs, experiment, warmups) {
                doubt(sample.run, Kind::FirstUse, pages);
            }
        }
        let parallel = runs
            .iter()
            .any(|run| number(run, "workers_launched") > Some(0.0));
        let buffers: Vec<Option<f64>> = runs.iter().map(|run| number(run, "buffers")).collect();
        if parallel
            && buffers
                .iter()
                .any(|buffers| *buffers != buffers_of_first(&runs))
        {
            for (run, buffers) in runs.iter().zip(&buffers) {
                doubt(run.run, Kind::ParallelBuffers, buffers.unwrap_or_default());
            }
        }
        let first = runs.first().and_then(|run| shape(run));
        for run in runs.iter().filter(|run| shape(run) != first) {
            doubt(run.run, Kind::PlanChanged, 0.0);
        }
    }
    found
}

fn buffers_of_first(runs: &[&Sample]) -> Option<f64> {
    runs.first().and_then(|run| number(run, "buffers"))
}

fn number(sample: &Sample, name: &str) -> Option<f64> {
    let column = sample.row.column(name)?;
    sample.row.rows.first()?[column]
        .number()
        .map(Number::to_f64)
}

fn shape(sample: &Sample) -> Option<String> {
    let whole = sample.results.get("explain")?;
    explain::shape(&whole.rows.first()?[whole.column("plan")?].to_string())
}

fn missing_workers(sample: &Sample) -> Option<f64> {
    let missing = number(sample, "workers_planned")? - number(sample, "workers_launched")?;
    (missing > 0.0).then_some(missing)
}

/// Pages of the catalog that planning read, where the session ran the statement for the first time:
/// executing it then reads some too, which count to the plan's nodes. Where a later run of the same
/// session counts as much, none did.
fn first_use(
    sample: &Sample,
    runs: &[&Sample],
    experiment: &Experiment,
    warmups: u32,
) -> Option<f64> {
    let each_is_first =
        experiment.connect == Connect::Run || (experiment.fresh == Fresh::Run && warmups == 0);
    let first = each_is_first || (warmups == 0 && sample.run == 1);
    let pages = number(sample, "planning_buffers").filter(|pages| first && *pages > 0.0)?;
    let buffers = number(sample, "buffers")?;
    let mut later = runs
        .iter()
        .filter(|run| !each_is_first && run.run > sample.run);
    match later.next() {
        Some(later) if number(later, "buffers") >= Some(buffers) => None,
        _ => Some(pages),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::doubts::found::sentences;
    use crate::parse::sample::article;
    use crate::quantity::{Column, Table, Value};
    use indexmap::IndexMap;

    /// Buffers, planning buffers, workers planned and launched, the node.
    fn sample(run: u32, numbers: [Option<u32>; 4], node: &str) -> Sample {
        let names = [
            "buffers",
            "planning_buffers",
            "workers_planned",
            "workers_launched",
        ];
        let value = |number: Option<u32>| {
            let text = number.map(|number| number.to_string());
            Value::from_postgres(text.as_deref(), "numeric")
        };
        let plan = format!(r#"[{{"Plan": {{"Node Type": "{node}"}}}}]"#);
        let whole = Table {
            columns: vec![Column::new("plan", "json")],
            rows: vec![vec![Value::Text(plan)]],
        };
        Sample {
            cell: 0,
            run,
            row: Table {
                columns: names.map(|name| Column::new(name, "numeric")).to_vec(),
                rows: vec![numbers.map(value).to_vec()],
            },
            results: IndexMap::from([("explain".to_owned(), whole)]),
        }
    }

    fn told(options: &str, samples: &[Sample], warmups: u32) -> Vec<String> {
        let text = format!(
            "---\ntitle: T\npostgres: {{version: \"16.15\"}}\n---\n```sql experiment e\n\
             --| instruments: [time]\n{options}--| measure:\nSELECT 1;\n```\n"
        );
        let mut article = article(&text);
        let crate::article::BlockKind::Experiment(experiment) = &mut article.blocks[0].kind else {
            panic!("no experiment");
        };
        experiment.instruments[0].value.name = "explain".to_owned();
        sentences(&doubts(samples, experiment, warmups), |_| String::new())
            .into_iter()
            .map(|doubt| format!("{} {}", doubt.kind, doubt.message))
            .collect()
    }

    #[test]
    fn the_first_use_in_a_session_is_told_where_it_counts_more() {
        let scan = |run, buffers, planning| {
            sample(run, [Some(buffers), Some(planning), None, None], "Seq Scan")
        };
        let cold = [scan(1, 553, 72), scan(2, 550, 0)];
        let expected = [
            "first-use run 1: planning read 72 pages of the catalog for the first time in its \
             session",
        ];
        assert_eq!(told("", &cold, 0), expected);
        assert_eq!(told("", &cold[..1], 0), expected);
        let none: [&str; 0] = [];
        assert_eq!(told("", &cold, 1), none);
        assert_eq!(told("", &[scan(1, 550, 72), scan(2, 550, 0)], 0), none);
        let each = [scan(1, 553, 72), scan(2, 553, 70)];
        let expected = [
            "first-use runs 1 and 2: planning read 70 to 72 pages of the catalog for the first \
             time in its session",
        ];
        assert_eq!(told("--| connect: run\n", &each, 1), expected);
        assert_eq!(told("--| fresh: run\n", &each, 0), expected);
        assert_eq!(told("--| fresh: run\n", &each, 1), none);
    }

    #[test]
    fn workers_that_are_missing_or_make_buffers_vary_are_told() {
        let gather = |run, buffers, launched| {
            sample(
                run,
                [Some(buffers), Some(0), Some(2), Some(launched)],
                "Gather",
            )
        };
        assert_eq!(
            told(
                "",
                &[gather(1, 1834, 2), gather(2, 1996, 2), gather(3, 1900, 1)],
                1
            ),
            [
                "workers-missing run 3: 1 of the planned parallel workers did not start",
                "parallel-buffers runs 1 to 3: 1834 to 1996 buffers, as parallel workers shared \
                 the work",
            ]
        );
        let none: [&str; 0] = [];
        assert_eq!(told("", &[gather(1, 1900, 2), gather(2, 1900, 2)], 1), none);
    }

    #[test]
    fn a_plan_that_changes_between_runs_is_told() {
        let run = |run, node| sample(run, [Some(1), Some(0), None, None], node);
        assert_eq!(
            told(
                "",
                &[run(1, "Seq Scan"), run(2, "Index Scan"), run(3, "Seq Scan")],
                1
            ),
            ["plan-changed run 2: the plan was another than in the first run"]
        );
    }
}
