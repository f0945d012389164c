//! One article's claims on several machines, side by side: the author's, this one where it is
//! another, and each that has a record of its own. Entry: [`Machines::of`]. On one machine there is
//! nothing to say.

use super::Page;
use super::number_format;
use super::state::State;
use crate::article::{BytesMeaning, Claim};
use crate::judge::Machine;
use crate::quantity::{Number, Unit, Value};
use crate::record::{ClaimRecord, Record};
use bigdecimal::{BigDecimal, One, Zero};

/// The first is the one that the others are compared with.
pub struct Machines<'a> {
    pub columns: Vec<Column<'a>>,
    /// In the order of the document; claims that no two machines can be compared in are left out.
    pub rows: Vec<Row<'a>>,
}

pub struct Column<'a> {
    /// `Author`, `You`, or the name that the author gave it.
    pub title: &'a str,
    pub record: &'a Record,
    pub standing: Standing,
    /// Of one that has a record beside the author's.
    pub machine: Option<&'a Machine>,
}

/// Whether a machine's values can be set beside the first one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Compared,
    /// Measured with other inputs than the article has now.
    Stale,
    OtherProfile,
}

/// One claim on each machine.
pub struct Row<'a> {
    pub claim: &'a Claim,
    pub cells: Vec<Cell>,
    /// All that are compared have the same value, to the last digit.
    pub same: bool,
    /// The largest ratio of two, or its reverse; None where there is no ratio.
    pub off: Option<BigDecimal>,
}

#[derive(Default)]
pub struct Cell {
    /// As the claim prints it, with its unit.
    pub text: Option<String>,
    /// To the first machine's.
    pub ratio: Option<String>,
    pub state: Option<State>,
}

const AUTHOR: &str = "Author";
const YOU: &str = "You";

impl Column<'_> {
    /// What a record and the first one have from one machine is one measurement or two of the same.
    fn is_compared(&self, first: &Record, value: Option<&ClaimRecord>) -> bool {
        let elsewhere = || match (self.machine, value) {
            (None, Some(value)) if !std::ptr::eq(self.record, first) => {
                self.record.is_of_another_machine(first, &value.reads)
            }
            _ => true,
        };
        self.standing == Standing::Compared && elsewhere()
    }

    /// Where the page describes it. No name begins with a hyphen.
    pub fn anchor(&self) -> String {
        match self.machine {
            Some(machine) => format!("machine-{}", machine.name),
            None => format!("machine--{}", self.title.to_lowercase()),
        }
    }
}

impl<'a> Machines<'a> {
    /// None where everything is of one machine.
    pub fn of(page: &Page<'a>) -> Option<Self> {
        let columns = columns(page);
        if columns.len() < 2 {
            return None;
        }
        let claims = page.article.claims();
        let rows = claims.filter_map(|claim| row(page, &columns, claim));
        Some(Self {
            rows: rows.collect(),
            columns,
        })
    }
}

fn columns<'a>(page: &Page<'a>) -> Vec<Column<'a>> {
    let own = page.measured;
    let elsewhere = page
        .accepted
        .filter(|accepted| accepted.environment.host.sha256 != own.environment.host.sha256);
    let first = elsewhere.unwrap_or(own);
    let standing = |record: &Record| match record.is_of_the_same_profile(first) {
        true => Standing::Compared,
        false => Standing::OtherProfile,
    };
    let column = |title, record, standing| Column {
        title,
        record,
        standing,
        machine: None,
    };
    let mut columns = Vec::new();
    if let Some(accepted) = elsewhere {
        columns.push(column(AUTHOR, accepted, Standing::Compared));
    }
    let title = match page.accepted {
        Some(_) if elsewhere.is_none() => AUTHOR,
        _ => YOU,
    };
    columns.push(column(title, own, standing(own)));
    for machine in page.machines {
        let standing = match machine.is_stale() {
            true => Standing::Stale,
            false => standing(&machine.record),
        };
        columns.push(Column {
            machine: Some(machine),
            ..column(machine.name.as_str(), &machine.record, standing)
        });
    }
    columns
}

fn row<'a>(page: &Page<'a>, columns: &[Column<'a>], claim: &'a Claim) -> Option<Row<'a>> {
    let name = &claim.name.value;
    let values: Vec<Option<&ClaimRecord>> = (columns.iter())
        .map(|column| column.record.claims.get(name))
        .collect();
    let compared: Vec<&ClaimRecord> = (columns.iter().zip(&values))
        .filter(|(column, value)| column.is_compared(columns[0].record, **value))
        .filter_map(|(_, value)| *value)
        .collect();
    let (first, others) = compared.split_first()?;
    if others.is_empty() {
        return None;
    }
    let same = others.iter().all(|other| is_same(first, other));
    let texts = texts(page.article.front_matter.bytes, claim, &values);
    let ratios = columns
        .iter()
        .zip(&values)
        .enumerate()
        .map(|(index, (column, value))| {
            let beside = index > 0 && column.is_compared(columns[0].record, *value);
            ratio((*value).filter(|_| beside)?, first)
        });
    let ratios: Vec<Option<BigDecimal>> = ratios.collect();
    let off = ratios.iter().flatten().map(how_far).max();
    let cells = (texts.into_iter().zip(&ratios).zip(columns))
        .map(|((text, ratio), column)| Cell {
            text,
            ratio: ratio.as_ref().map(ratio_text),
            state: state(column, name),
        })
        .collect();
    Some(Row {
        claim,
        cells,
        same,
        off,
    })
}

/// What became of the claim on a machine that has a record of its own.
fn state(column: &Column, claim: &str) -> Option<State> {
    let verdicts = column.machine?.verdicts.iter();
    Some(State::of_all(verdicts.filter(|one| one.claim == claim)))
}

/// As the claim prints them; with more digits where that would hide a difference.
pub fn texts(
    bytes: BytesMeaning,
    claim: &Claim,
    values: &[Option<&ClaimRecord>],
) -> Vec<Option<String>> {
    let print = |print: &dyn Fn(&ClaimRecord) -> String| -> Vec<Option<String>> {
        values.iter().map(|value| value.map(print)).collect()
    };
    let texts = print(&|record| claim_text(bytes, claim, record));
    let mut seen: Vec<(&ClaimRecord, &String)> = Vec::new();
    let mut hidden = false;
    for (value, text) in values.iter().flatten().zip(texts.iter().flatten()) {
        hidden |= (seen.iter()).any(|(other, same)| *same == text && !is_same(value, other));
        seen.push((value, text));
    }
    if !hidden {
        return texts;
    }
    print(&|record| match finite(record) {
        Some(number) => with_unit(
            number_format::significant(number, 8),
            record.unit.as_deref(),
        ),
        None => record.value.to_string(),
    })
}

pub fn is_same(one: &ClaimRecord, other: &ClaimRecord) -> bool {
    one.value == other.value || ratio(one, other).is_some_and(|ratio| ratio.is_one())
}

/// `own / reference`, where both are numbers of one unit.
pub fn ratio(own: &ClaimRecord, reference: &ClaimRecord) -> Option<BigDecimal> {
    let (own_number, number) = (finite(own)?, finite(reference)?);
    (own.unit == reference.unit && !number.is_zero()).then(|| own_number / number)
}

/// `0.579`; more digits where it is near 1.
pub fn ratio_text(ratio: &BigDecimal) -> String {
    let near = number_format::significant(ratio, 3) == "1.00";
    number_format::significant(ratio, if near { 6 } else { 3 })
}

fn how_far(ratio: &BigDecimal) -> BigDecimal {
    let ratio = ratio.abs();
    if ratio.is_zero() || ratio > BigDecimal::one() {
        ratio
    } else {
        BigDecimal::one() / ratio
    }
}

fn finite(record: &ClaimRecord) -> Option<&BigDecimal> {
    match &record.value {
        Value::Number(Number::Finite(number)) => Some(number),
        _ => None,
    }
}

// ---- a record's value for people ----------------------------------------------------------------

/// What a record has of a claim, as the claim prints it, with its unit.
pub fn claim_text(bytes: BytesMeaning, claim: &Claim, record: &ClaimRecord) -> String {
    let bytes = claim.bytes.unwrap_or(bytes);
    let text = number_format::value(&record.value, claim.format.as_deref(), bytes)
        .unwrap_or_else(|_| record.value.to_string());
    with_unit(text, unit(record))
}

/// With every digit that Postgres gave.
pub fn exact_text(record: &ClaimRecord) -> String {
    let text = match &record.value {
        Value::Number(Number::Finite(number)) => number_format::exact(number),
        other => other.to_string(),
    };
    with_unit(text, unit(record))
}

/// A comparison is a ratio, whatever its claim says or does not.
fn unit(record: &ClaimRecord) -> Option<&str> {
    let ratio = record.comparison.as_ref().map(|_| "×");
    record.unit.as_deref().or(ratio)
}

/// As verdicts have it: `23.1%`, `40.2×`, `76 B`.
pub fn with_unit(text: String, unit: Option<&str>) -> String {
    match unit {
        Some(unit) => Unit::new(unit, BytesMeaning::Binary).attach(&text),
        None => text,
    }
}
