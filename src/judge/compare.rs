//! Two records side by side: what changed from the accepted to the pending one, and whether by more
//! than runs differ among themselves. Entry: [`compare`].

use super::finite;
use crate::parse::sql::words;
use crate::quantity::Value;
use crate::quantity::format::significant;
use crate::record::{
    CellSummary, ClaimRecord, Difference, Environment, ExperimentRecord, Record, Summary,
    differences,
};
use bigdecimal::{BigDecimal, Zero};
use indexmap::IndexMap;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// Everything that differs. Numbers are exact decimals in text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Of the pending record in its order, then those that are gone.
    pub claims: Vec<ClaimChange>,
    pub experiments: Vec<ExperimentChange>,
    /// Fields by their path, such as `host.cpu`; neither hashes nor why the engine was chosen.
    pub environment: Vec<Difference>,
    pub params: Vec<Difference>,
    /// SQL over measured tables.
    pub queries: Vec<Difference>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimChange {
    pub claim: String,
    pub change: Change,
    pub accepted: Option<String>,
    pub accepted_unit: Option<String>,
    pub pending: Option<String>,
    pub pending_unit: Option<String>,
    /// pending − accepted, of numbers in the same unit.
    pub difference: Option<String>,
    /// pending / accepted, 3 significant digits.
    pub ratio: Option<String>,
    /// How far the runs behind the value lie apart.
    pub spread: Option<Spread>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Same,
    /// By less than runs of what it reads differ among themselves.
    WithinSpread,
    /// By more than that, or there is one run and no spread to know.
    Changed,
    New,
    Gone,
}

/// The widest (max − min) / median of a cell, among the columns that a claim's query names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Spread {
    pub experiment: String,
    pub column: String,
    pub runs: u32,
    /// A share: 0.02 are 2 %.
    pub share: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExperimentChange {
    pub experiment: String,
    /// `Same`: not measured again.
    pub change: Change,
    pub accepted_at: Option<String>,
    pub pending_at: Option<String>,
    /// Else only what `derive` computes is another.
    pub measured_again: bool,
    /// Measured on another host than the accepted.
    pub other_host: bool,
    pub inputs: Vec<Difference>,
    /// As the server read them back.
    pub settings: Vec<Difference>,
    /// Values whose runs do not overlap with those accepted.
    pub moved: Vec<CellChange>,
    /// Values of several runs that do overlap.
    pub within: usize,
    /// Values of a single run, which have no spread: those that differ, and all.
    pub single_differ: usize,
    pub single: usize,
    /// Columns of those that differ.
    pub single_columns: BTreeSet<String>,
    /// Cells that only one of the two has.
    pub cells_new: usize,
    pub cells_gone: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CellChange {
    pub cell: IndexMap<String, String>,
    pub column: String,
    pub accepted: Summary,
    pub pending: Summary,
    /// Of the medians.
    pub ratio: Option<String>,
}

pub fn compare(accepted: &Record, pending: &Record) -> Comparison {
    let params = |record: &Record| -> BTreeMap<String, String> {
        record.params.clone().into_iter().collect()
    };
    Comparison {
        claims: union(&accepted.claims, &pending.claims, |name, before, now| {
            claim(name, before, now, accepted, pending)
        }),
        experiments: union(&accepted.experiments, &pending.experiments, experiment),
        environment: differences(&flat(&accepted.environment), &flat(&pending.environment)),
        params: differences(&params(accepted), &params(pending)),
        queries: accepted.queries.differences(&pending.queries),
    }
}

impl Comparison {
    /// How many claims changed how.
    pub fn count(&self, change: Change) -> usize {
        self.claims
            .iter()
            .filter(|one| one.change == change)
            .count()
    }
}

/// One entry for each name, those of `now` first.
fn union<T, C>(
    before: &IndexMap<String, T>,
    now: &IndexMap<String, T>,
    one: impl Fn(&str, Option<&T>, Option<&T>) -> C,
) -> Vec<C> {
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    now.keys()
        .chain(gone)
        .map(|name| one(name, before.get(name), now.get(name)))
        .collect()
}

/// `pending / accepted` to 3 significant digits, without separators; none of zero.
fn ratio(pending: &BigDecimal, accepted: &BigDecimal) -> Option<String> {
    (!accepted.is_zero()).then(|| ungrouped(&(pending / accepted), 3))
}

fn ungrouped(value: &BigDecimal, digits: u32) -> String {
    significant(value, digits).replace(',', "")
}

// ---- claims -----------------------------------------------------------------------------------

fn claim(
    name: &str,
    before: Option<&ClaimRecord>,
    now: Option<&ClaimRecord>,
    accepted: &Record,
    pending: &Record,
) -> ClaimChange {
    let same_unit = before.zip(now).is_some_and(|(a, b)| a.unit == b.unit);
    let numbers = before
        .zip(now)
        .filter(|_| same_unit)
        .and_then(|(before, now)| finite(&before.value).zip(finite(&now.value)));
    let spread = [(accepted, before), (pending, now)]
        .into_iter()
        .filter_map(|(record, claim)| widest_spread(record, name, claim?))
        .max_by_key(|(share, _)| share.clone());
    let change = match (before, now) {
        (None, _) => Change::New,
        (_, None) => Change::Gone,
        (Some(before), Some(now)) => match numbers {
            Some((a, b)) if a == b => Change::Same,
            Some((a, b)) if is_within(a, b, spread.as_ref().map(|(share, _)| share)) => {
                Change::WithinSpread
            }
            Some(_) => Change::Changed,
            None if same_unit && before.value == now.value => Change::Same,
            None => Change::Changed,
        },
    };
    let text = |claim: Option<&ClaimRecord>| claim.map(|claim| claim.value.to_string());
    let unit = |claim: Option<&ClaimRecord>| claim.and_then(|claim| claim.unit.clone());
    ClaimChange {
        claim: name.to_owned(),
        change,
        accepted: text(before),
        accepted_unit: unit(before),
        pending: text(now),
        pending_unit: unit(now),
        difference: numbers.map(|(a, b)| (b - a).normalized().to_plain_string()),
        ratio: numbers.and_then(|(a, b)| ratio(b, a)),
        spread: spread.map(|(_, spread)| spread),
    }
}

fn is_within(accepted: &BigDecimal, pending: &BigDecimal, share: Option<&BigDecimal>) -> bool {
    share.is_some_and(|share| (pending - accepted).abs() <= accepted.abs() * share)
}

/// Which columns a query is about is known by their names alone; the widest spread among them and
/// their cells errs on the side of calling a change no change.
fn widest_spread(record: &Record, name: &str, claim: &ClaimRecord) -> Option<(BigDecimal, Spread)> {
    let query = record.queries.fields.get(&Record::claim_query(name))?;
    let named: BTreeSet<String> = words(query).collect();
    claim
        .reads
        .iter()
        .filter_map(|id| Some((id, record.experiments.get(id)?)))
        .flat_map(|(id, experiment)| experiment.summaries.iter().map(move |cell| (id, cell)))
        .flat_map(|(id, cell)| {
            cell.columns
                .iter()
                .map(move |(column, it)| (id, column, it))
        })
        .filter(|(_, column, _)| named.contains(*column))
        .filter_map(|(id, column, summary)| {
            let range = Range::of(summary)?;
            let share = range.share()?;
            let spread = Spread {
                experiment: id.clone(),
                column: column.clone(),
                runs: summary.runs,
                share: ungrouped(&share, 2),
            };
            Some((share, spread))
        })
        .max_by(|(a, _), (b, _)| a.cmp(b))
}

// ---- experiments ------------------------------------------------------------------------------

fn experiment(
    id: &str,
    before: Option<&ExperimentRecord>,
    now: Option<&ExperimentRecord>,
) -> ExperimentChange {
    let at = |one: Option<&ExperimentRecord>| one.map(|one| one.measured_at.clone());
    let mut change = ExperimentChange {
        experiment: id.to_owned(),
        change: match (before, now) {
            (None, _) => Change::New,
            (_, None) => Change::Gone,
            (Some(before), Some(now)) if before == now => Change::Same,
            _ => Change::Changed,
        },
        accepted_at: at(before),
        pending_at: at(now),
        measured_again: false,
        other_host: false,
        inputs: Vec::new(),
        settings: Vec::new(),
        moved: Vec::new(),
        within: 0,
        single_differ: 0,
        single: 0,
        single_columns: BTreeSet::new(),
        cells_new: 0,
        cells_gone: 0,
    };
    if let (Some(before), Some(now)) = (before, now) {
        change.measured_again = before.measured_at != now.measured_at
            || before.inputs != now.inputs
            || measured_columns(before) != measured_columns(now)
            || before.results != now.results;
        change.other_host = before.host != now.host;
        change.inputs = before.inputs.differences(&now.inputs);
        change.settings = differences(&before.settings, &now.settings);
        cells(&before.summaries, &now.summaries, &mut change);
        let known = before
            .summaries
            .iter()
            .any(|cell| cell.columns.values().any(|c| c.runs > 1));
        if change.change == Change::Changed
            && known
            && change.moved.is_empty()
            && change.single_differ + change.cells_new + change.cells_gone == 0
        {
            change.change = Change::WithinSpread;
        }
    }
    change
}

/// What was measured, column by column: times are told to the second, and two runs may share one.
fn measured_columns(record: &ExperimentRecord) -> BTreeMap<&str, Vec<&Value>> {
    let columns = record.measured.columns.iter().enumerate();
    columns
        .filter(|(_, column)| !record.derived.contains(&column.name))
        .map(|(index, column)| {
            let values = record.measured.rows.iter().filter_map(|row| row.get(index));
            (column.name.as_str(), values.collect())
        })
        .collect()
}

fn cells(before: &[CellSummary], now: &[CellSummary], change: &mut ExperimentChange) {
    let old: BTreeMap<Vec<_>, &CellSummary> = before.iter().map(|one| (key(one), one)).collect();
    for cell in now {
        let Some(other) = old.get(&key(cell)) else {
            change.cells_new += 1;
            continue;
        };
        for (column, pending) in &cell.columns {
            if let Some(accepted) = other.columns.get(column) {
                value(cell, column, accepted, pending, change);
            }
        }
    }
    let new: BTreeSet<Vec<_>> = now.iter().map(key).collect();
    change.cells_gone = old.keys().filter(|cell| !new.contains(*cell)).count();
}

fn key(cell: &CellSummary) -> Vec<(&String, &String)> {
    cell.cell.iter().collect()
}

/// One column of one cell.
fn value(
    cell: &CellSummary,
    column: &str,
    accepted: &Summary,
    pending: &Summary,
    change: &mut ExperimentChange,
) {
    let (Some(a), Some(b)) = (Range::of(accepted), Range::of(pending)) else {
        return;
    };
    if accepted.runs.max(pending.runs) < 2 {
        change.single += 1;
        if a.median != b.median {
            change.single_differ += 1;
            change.single_columns.insert(column.to_owned());
        }
    } else if a.overlaps(&b) {
        change.within += 1;
    } else {
        change.moved.push(CellChange {
            cell: cell.cell.clone(),
            column: column.to_owned(),
            accepted: accepted.clone(),
            pending: pending.clone(),
            ratio: ratio(&b.median, &a.median),
        });
    }
}

/// What runs of one value span.
struct Range {
    min: BigDecimal,
    median: BigDecimal,
    max: BigDecimal,
    runs: u32,
}

impl Range {
    fn of(summary: &Summary) -> Option<Self> {
        let number = |text: &str| BigDecimal::from_str(text).ok();
        Some(Self {
            min: number(&summary.min)?,
            median: number(&summary.median)?,
            max: number(&summary.max)?,
            runs: summary.runs,
        })
    }

    /// (max − min) / median; None of a single run, or around zero.
    fn share(&self) -> Option<BigDecimal> {
        (self.runs > 1 && !self.median.is_zero())
            .then(|| ((&self.max - &self.min) / &self.median).abs().with_prec(6))
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.min <= other.max && other.min <= self.max
    }
}

// ---- environment ------------------------------------------------------------------------------

/// Every field by its path.
fn flat(environment: &Environment) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    let json = serde_json::to_value(environment).expect("an environment serialises");
    flatten(String::new(), &json, &mut fields);
    fields.retain(|name, _| {
        let last = name.rsplit('.').next().unwrap_or_default();
        !["sha256", "engine_reason"].contains(&last)
    });
    fields
}

fn flatten(path: String, json: &serde_json::Value, fields: &mut BTreeMap<String, String>) {
    match json {
        serde_json::Value::Object(members) => {
            for (name, value) in members {
                let path = match path.as_str() {
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                flatten(path, value, fields);
            }
        }
        serde_json::Value::Null => {}
        serde_json::Value::String(text) => {
            fields.insert(path, text.clone());
        }
        other => {
            fields.insert(path, other.to_string());
        }
    }
}

/// Two values with as many digits as it takes to tell them apart, at least three.
pub fn told_apart(a: &Value, b: &Value) -> (String, String) {
    const MOST: u32 = 15;
    if let (Some(x), Some(y)) = (finite(a), finite(b)) {
        for digits in 3..=MOST {
            let (x, y) = (significant(x, digits), significant(y, digits));
            if x != y {
                return (x, y);
            }
        }
        if x == y {
            return (significant(x, 3), significant(y, 3));
        }
    }
    (a.to_string(), b.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::sample;
    use crate::record::Fingerprint;

    fn summary(runs: u32, min: &str, median: &str, max: &str) -> Summary {
        Summary {
            runs,
            median: median.into(),
            min: min.into(),
            max: max.into(),
            interval: None,
        }
    }

    /// One claim `x` over one experiment `e` with one cell.
    fn record(value: &str, elapsed: Summary) -> Record {
        let mut record = sample::record("a", &[("x", value)]);
        let mut experiment = sample::experiment("f", "a");
        experiment.summaries = vec![CellSummary {
            cell: [("k".to_owned(), "1".to_owned())].into(),
            columns: [
                ("elapsed_ms".to_owned(), elapsed),
                ("noise".to_owned(), summary(3, "1", "10", "100")),
            ]
            .into(),
        }];
        record.experiments.insert("e".into(), experiment);
        record.claims["x"].reads = vec!["e".into()];
        record.queries = Fingerprint {
            fields: [(
                Record::claim_query("x"),
                "SELECT median(elapsed_ms) FROM measured.e".to_owned(),
            )]
            .into(),
        };
        record
    }

    #[test]
    fn a_claim_changes_within_the_spread_of_what_it_reads_or_beyond() {
        let table = [
            // accepted, pending, runs, change, difference, ratio, spread
            ("100", "100.0", 3, Change::Same, "0", "1", Some("0.04")),
            (
                "100",
                "104",
                3,
                Change::WithinSpread,
                "4",
                "1.04",
                Some("0.04"),
            ),
            (
                "100",
                "95.9",
                3,
                Change::Changed,
                "-4.1",
                "0.959",
                Some("0.04"),
            ),
            ("100", "101", 1, Change::Changed, "1", "1.01", None),
        ];
        for (before, now, runs, change, difference, ratio, spread) in table {
            let elapsed = summary(runs, "98", "100", "102");
            let found = compare(&record(before, elapsed.clone()), &record(now, elapsed));
            let [claim] = found.claims.as_slice() else {
                panic!("{found:?}")
            };
            assert_eq!(claim.change, change, "{before} {now}");
            assert_eq!(claim.difference.as_deref(), Some(difference));
            assert_eq!(claim.ratio.as_deref(), Some(ratio));
            let found = claim.spread.as_ref().map(|spread| spread.share.as_str());
            assert_eq!(found, spread);
        }
    }

    #[test]
    fn what_is_no_number_or_in_another_unit_has_neither_difference_nor_ratio() {
        let one = |value: &str, unit: Option<&str>| {
            let mut record = record(value, summary(1, "1", "1", "1"));
            record.claims["x"].unit = unit.map(str::to_owned);
            record
        };
        for (before, now, change) in [
            (one("1", Some("B")), one("1", Some("kB")), Change::Changed),
            (one("true", None), one("false", None), Change::Changed),
            (one("true", None), one("true", None), Change::Same),
        ] {
            let found = compare(&before, &now);
            assert_eq!(found.claims[0].change, change);
            assert_eq!(found.claims[0].difference, None);
            assert_eq!(found.claims[0].ratio, None);
        }
        let mut gone = one("1", None);
        gone.claims.clear();
        assert_eq!(
            compare(&one("1", None), &gone).claims[0].change,
            Change::Gone
        );
        assert_eq!(
            compare(&gone, &one("1", None)).claims[0].change,
            Change::New
        );
    }

    #[test]
    fn a_cell_moved_where_its_runs_do_not_overlap() {
        let of = |elapsed| record("1", elapsed);
        let table = [
            // accepted, pending: moved, within, single that differ
            (
                summary(3, "9", "10", "11"),
                summary(3, "11", "12", "13"),
                0,
                2,
                0,
            ),
            (
                summary(3, "9", "10", "11"),
                summary(3, "11.1", "12", "13"),
                1,
                1,
                0,
            ),
            (
                summary(3, "9", "10", "11"),
                summary(1, "12", "12", "12"),
                1,
                1,
                0,
            ),
            (
                summary(1, "10", "10", "10"),
                summary(1, "12", "12", "12"),
                0,
                1,
                1,
            ),
        ];
        for (before, now, moved, within, single_differ) in table {
            let found = compare(&of(before), &of(now)).experiments.remove(0);
            assert_eq!(found.moved.len(), moved);
            assert_eq!((found.within, found.single_differ), (within, single_differ));
        }
        let mut other = of(summary(1, "1", "1", "1"));
        other.experiments["e"].summaries[0].cell["k"] = "2".into();
        let found = compare(&of(summary(1, "1", "1", "1")), &other)
            .experiments
            .remove(0);
        assert_eq!((found.cells_new, found.cells_gone), (1, 1));
    }

    #[test]
    fn fields_of_the_environment_are_named_by_their_path() {
        let before = record("1", summary(1, "1", "1", "1"));
        let mut now = before.clone();
        now.environment.host.cpu = "other".into();
        now.environment.host.sha256 = "other".into();
        now.environment.server.engine_reason = "other".into();
        let settings = &mut now.environment.server.settings;
        settings.insert("work_mem".into(), "8MB".into());
        let found: Vec<String> = compare(&before, &now)
            .environment
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "host.cpu changed from `` to `other`",
                "server.settings.work_mem is new"
            ]
        );
    }

    #[test]
    fn values_are_told_apart_by_as_many_digits_as_it_takes() {
        for (a, b, expected) in [
            ("76.04", "76.31", ("76.0", "76.3")),
            ("1234567", "1234568", ("1,234,567", "1,234,568")),
            ("5", "5.0", ("5", "5")),
            ("true", "false", ("true", "false")),
            ("NaN", "1", ("NaN", "1")),
        ] {
            let value = |text| Value::from_postgres(Some(text), "numeric");
            let (x, y) = told_apart(&value(a), &value(b));
            assert_eq!((x.as_str(), y.as_str()), expected);
        }
    }
}
