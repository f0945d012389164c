//! Two records side by side for a terminal, as wide as it is.

use super::{Found, State};
use crate::article::{Article, BytesMeaning};
use crate::judge::compare::{
    CellChange, Change, ClaimChange, Comparison, ExperimentChange, told_apart,
};
use crate::quantity::format::significant;
use crate::quantity::{Unit, Value};
use crate::record::{Difference, Summary};
use crate::report::{Color, Look};
use bigdecimal::{BigDecimal, Signed};
use console::{Style, measure_text_width};
use std::fmt::Write;
use std::str::FromStr;

/// More cells of one experiment are counted, not listed; `--json` has them all.
const CELLS: usize = 8;

pub fn of(article: &Article, found: &Found, look: Look) -> String {
    let slug = &found.article;
    let profile = &found.profile;
    let mut text = match found.state {
        State::NoRecord => format!(
            "{slug}: nothing is accepted yet; accept what is measured: \
             remeasure accept {slug} --profile {profile}\n"
        ),
        State::NothingPending => format!(
            "{slug}: nothing is measured since the record was accepted; measure afresh: \
             remeasure build {slug} --profile {profile} --force\n"
        ),
        State::Compared => format!("{slug}, profile {profile}\n"),
    };
    if let Some(other) = found
        .accepted_profile
        .as_ref()
        .filter(|other| *other != profile)
    {
        let _ = writeln!(text, "  accepted is profile {other}");
    }
    if let Some(comparison) = &found.comparison {
        text.push_str(&claims(article, comparison, look));
        for experiment in &comparison.experiments {
            text.push_str(&self::experiment(experiment));
        }
        for difference in &comparison.environment {
            let _ = writeln!(text, "  environment: {}", printable(&whole(difference)));
        }
        for (what, differences) in [
            ("param ", &comparison.params),
            ("query: ", &comparison.queries),
        ] {
            for difference in differences {
                let _ = writeln!(text, "  {what}{}", printable(&difference.to_string()));
            }
        }
    }
    text
}

/// What changed, a line each, for `accept`.
pub fn summary(comparison: &Comparison) -> Vec<String> {
    let mut lines = vec![counts(comparison)];
    let mut names = |what: &str, change: Change| {
        let names: Vec<&str> = (comparison.claims.iter())
            .filter(|claim| claim.change == change)
            .map(|claim| claim.claim.as_str())
            .collect();
        if !names.is_empty() {
            lines.push(format!("{what}: {}", some(&names)));
        }
    };
    names("changed", Change::Changed);
    names("new", Change::New);
    names("gone", Change::Gone);
    let changed = |change: fn(&&ExperimentChange) -> bool| -> Vec<&str> {
        let experiments = comparison.experiments.iter().filter(change);
        experiments.map(|one| one.experiment.as_str()).collect()
    };
    for (what, experiments) in [
        ("new experiments", changed(|one| one.change == Change::New)),
        (
            "experiments gone",
            changed(|one| one.change == Change::Gone),
        ),
        ("other inputs", changed(|one| !one.inputs.is_empty())),
        ("on another machine", changed(|one| one.other_host)),
    ] {
        if !experiments.is_empty() {
            lines.push(format!("{what}: {}", some(&experiments)));
        }
    }
    if !comparison.environment.is_empty() {
        let fields: Vec<&str> = (comparison.environment.iter())
            .map(|difference| difference.input.as_str())
            .collect();
        lines.push(format!("environment: {}", some(&fields)));
    }
    lines
}

fn some(names: &[&str]) -> String {
    const SHOWN: usize = 6;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn counts(comparison: &Comparison) -> String {
    let changed = comparison.count(Change::Changed);
    let mut text = match changed {
        1 => "1 claim changed".to_owned(),
        changed => format!("{changed} claims changed"),
    };
    for (change, what) in [
        (Change::WithinSpread, "within the spread of their runs"),
        (Change::New, "new"),
        (Change::Gone, "gone"),
    ] {
        match comparison.count(change) {
            0 => {}
            count => {
                let _ = write!(text, ", {count} {what}");
            }
        }
    }
    let _ = write!(text, ", {} the same", comparison.count(Change::Same));
    text
}

// ---- claims -----------------------------------------------------------------------------------

const HEAD: [&str; 6] = [
    "claim",
    "accepted",
    "pending",
    "difference",
    "ratio",
    "spread of runs",
];
const GAP: usize = 2;

fn claims(article: &Article, comparison: &Comparison, look: Look) -> String {
    let changed: Vec<&ClaimChange> = (comparison.claims.iter())
        .filter(|claim| claim.change != Change::Same)
        .collect();
    let rows: Vec<[String; 6]> = changed.iter().map(|claim| row(article, claim)).collect();
    let mut text = format!("  {}\n", counts(comparison));
    if rows.is_empty() {
        return text;
    }
    // What a narrow terminal goes without, least first.
    let shown = (3..=HEAD.len()).rev().find_map(|columns| {
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = rows.iter().map(|row| measure_text_width(&row[column]));
                cells.chain([HEAD[column].len()]).max().unwrap_or_default()
            })
            .collect();
        let width = widths.iter().sum::<usize>() + GAP * columns;
        (width <= look.width).then_some(widths)
    });
    match shown {
        Some(widths) => {
            let head = HEAD.map(str::to_owned);
            text.push_str(&line(&head, &widths, &style(look).dim()));
            for (row, claim) in rows.iter().zip(&changed) {
                let style = match claim.change {
                    Change::WithinSpread | Change::Same => style(look),
                    Change::Changed | Change::New | Change::Gone => style(look).yellow(),
                };
                text.push_str(&line(row, &widths, &style));
            }
        }
        None => {
            for row in &rows {
                let _ = writeln!(text, "  {}", row[0]);
                for (name, cell) in HEAD.iter().zip(row).skip(1).filter(|(_, c)| !c.is_empty()) {
                    let _ = writeln!(text, "    {name}: {cell}");
                }
            }
        }
    }
    text
}

fn style(look: Look) -> Style {
    Style::new().force_styling(look.color == Color::Ansi)
}

/// Numbers stand at the right of their columns.
fn line(cells: &[String; 6], widths: &[usize], style: &Style) -> String {
    let mut line = String::new();
    for (index, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let blank = " ".repeat(width - measure_text_width(cell));
        line.push_str(&" ".repeat(GAP));
        match index {
            0 | 5 => line.push_str(&format!("{cell}{blank}")),
            _ => line.push_str(&format!("{blank}{cell}")),
        }
    }
    format!("{}\n", style.apply_to(line.trim_end()))
}

fn row(article: &Article, claim: &ClaimChange) -> [String; 6] {
    let declared = (article.claims()).find(|declared| declared.name.value == claim.claim);
    let bytes: BytesMeaning = declared
        .and_then(|declared| declared.bytes)
        .unwrap_or(article.front_matter.bytes);
    let value = |text: &Option<String>| match text.as_deref() {
        None => Value::Null,
        Some(text) => Value::from_postgres(Some(text), "numeric"),
    };
    let with_unit = |text: String, unit: &Option<String>| {
        printable(&Unit::new(unit.as_deref().unwrap_or_default(), bytes).attach(&text))
    };
    let (accepted, pending) = told_apart(&value(&claim.accepted), &value(&claim.pending));
    let side = |text: String, there: &Option<String>, unit: &Option<String>| match there {
        Some(_) => with_unit(text, unit),
        None => "–".to_owned(),
    };
    let difference = claim.difference.as_deref().and_then(number).map(|number| {
        let sign = if number.is_positive() { "+" } else { "" };
        format!("{sign}{}", significant(&number, 3))
    });
    let spread = claim.spread.as_ref().map(|spread| {
        let share = number(&spread.share).unwrap_or_default() * BigDecimal::from(100);
        format!("{}% of {}", significant(&share, 2), spread.column)
    });
    [
        claim.claim.clone(),
        side(accepted, &claim.accepted, &claim.accepted_unit),
        side(pending, &claim.pending, &claim.pending_unit),
        difference.unwrap_or_default(),
        times(&claim.ratio).unwrap_or_default(),
        printable(&spread.unwrap_or_default()),
    ]
}

fn times(ratio: &Option<String>) -> Option<String> {
    let ratio = number(ratio.as_deref()?)?;
    Some(format!("×{}", significant(&ratio, 3)))
}

fn number(text: &str) -> Option<BigDecimal> {
    BigDecimal::from_str(text).ok()
}

// ---- experiments ------------------------------------------------------------------------------

fn experiment(change: &ExperimentChange) -> String {
    let id = &change.experiment;
    let mut text = String::new();
    match change.change {
        Change::Same => return text,
        Change::New => return format!("  experiment {id} is new\n"),
        Change::Gone => return format!("  experiment {id} is gone\n"),
        Change::WithinSpread | Change::Changed => {}
    }
    let when = match (&change.pending_at, change.measured_again) {
        (Some(at), true) => format!("measured again {at}"),
        _ => "its results are derived in another way".to_owned(),
    };
    let machine = if change.other_host {
        " on another machine"
    } else {
        ""
    };
    let _ = writeln!(text, "  experiment {id}: {when}{machine}");
    for (what, differences) in [("", &change.inputs), ("setting ", &change.settings)] {
        for difference in differences {
            let _ = writeln!(text, "    {what}{}", printable(&difference.to_string()));
        }
    }
    for cell in change.moved.iter().take(CELLS) {
        let _ = writeln!(text, "    {}", printable(&moved(cell)));
    }
    if let Some(more) = change.moved.len().checked_sub(CELLS + 1) {
        let _ = writeln!(text, "    and {} more moved beyond their spread", more + 1);
    }
    let among = change.moved.len() + change.within;
    if among > 0 {
        let moved = match change.moved.len() {
            0 => "none".to_owned(),
            moved => moved.to_string(),
        };
        let _ = writeln!(
            text,
            "    {moved} of {among} values moved beyond the spread of their runs"
        );
    }
    if change.single_differ > 0 {
        let columns: Vec<&str> = change.single_columns.iter().map(String::as_str).collect();
        let _ = writeln!(
            text,
            "    {} of {} values of a single run, which has no spread, differ: {}",
            change.single_differ,
            change.single,
            printable(&some(&columns))
        );
    }
    for (count, what) in [(change.cells_new, "new"), (change.cells_gone, "gone")] {
        if count > 0 {
            let _ = writeln!(text, "    {count} cells are {what}");
        }
    }
    text
}

/// `indexes=8 elapsed_ms: 10 (9–11) → 12 (11.5–13), ×1.2`
fn moved(change: &CellChange) -> String {
    let mut cell: Vec<String> = (change.cell.iter())
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    cell.push(change.column.clone());
    let number = |text: &str| Value::from_postgres(Some(text), "numeric");
    let (accepted, pending) = told_apart(
        &number(&change.accepted.median),
        &number(&change.pending.median),
    );
    let ratio = times(&change.ratio).map(|ratio| format!(", {ratio}"));
    format!(
        "{}: {accepted}{} → {pending}{}{}",
        cell.join(" "),
        range(&change.accepted),
        range(&change.pending),
        ratio.unwrap_or_default()
    )
}

fn range(summary: &Summary) -> String {
    if summary.runs < 2 || summary.min == summary.max {
        return String::new();
    }
    let number = |text: &str| Value::from_postgres(Some(text), "numeric");
    let (min, max) = told_apart(&number(&summary.min), &number(&summary.max));
    format!(" ({min}–{max})")
}

// ---- characters -------------------------------------------------------------------------------

/// Facts of an environment are short enough to be read in full.
fn whole(difference: &Difference) -> String {
    match (&difference.before, &difference.now) {
        (Some(before), Some(now)) => format!("{}: {before} → {now}", difference.input),
        (None, Some(now)) => format!("{}: {now}, new", difference.input),
        (Some(before), None) => format!("{}: {before}, gone", difference.input),
        (None, None) => difference.input.clone(),
    }
}

/// One line without anything that a terminal would obey.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            c if c.is_whitespace() => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::compare::Spread;
    use crate::parse::sample::article;

    fn changed(claim: &str, accepted: &str, pending: &str) -> ClaimChange {
        ClaimChange {
            claim: claim.into(),
            change: Change::Changed,
            accepted: Some(accepted.into()),
            accepted_unit: Some("B".into()),
            pending: Some(pending.into()),
            pending_unit: Some("B".into()),
            difference: Some("-1234.5".into()),
            ratio: Some("12345".into()),
            spread: Some(Spread {
                experiment: "e".into(),
                column: "wal_bytes".into(),
                runs: 3,
                share: "0.012".into(),
            }),
        }
    }

    fn shown(claims: Vec<ClaimChange>, width: usize, color: Color) -> String {
        let article = article(
            "---\ntitle: T\npostgres: {version: \"16.15\"}\n---\n```sql experiment e\nSELECT 1;\n```\n",
        );
        let comparison = Comparison {
            claims,
            ..Comparison::default()
        };
        super::claims(&article, &comparison, Look { color, width })
    }

    #[test]
    fn a_narrow_terminal_goes_without_what_matters_least_and_then_without_columns() {
        let one = || vec![changed("index_wal", "76.04", "76.31")];
        let wide = "\
\x20 1 claim changed, 0 the same
  claim      accepted  pending  difference    ratio  spread of runs
  index_wal    76.0 B   76.3 B      -1,230  ×12,300  1.2% of wal_bytes
";
        assert_eq!(shown(one(), 120, Color::Plain), wide);
        for width in [3, 20, 30, 40, 50, 60, 70, 120] {
            let text = shown(one(), width, Color::Plain);
            // What is stacked is as wide as it is.
            let fits = text
                .lines()
                .skip(1)
                .all(|line| measure_text_width(line) <= width);
            assert!(
                fits || text.contains("    accepted: 76.0 B\n"),
                "{width}\n{text}"
            );
            assert!(text.contains("76.3 B"), "{width}\n{text}");
        }
        let painted = shown(one(), 120, Color::Ansi);
        assert_ne!(painted, wide);
        assert_eq!(console::strip_ansi_codes(&painted), wide);
    }

    #[test]
    fn what_a_terminal_would_obey_is_not_printed() {
        let mut claim = changed("x", "1", "2");
        claim.pending_unit = Some("\u{1b}[2J".into());
        claim.pending = Some("a\u{7}b".into());
        let text = shown(vec![claim], 100, Color::Plain);
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    }

    #[test]
    fn new_and_gone_claims_have_one_side() {
        let mut new = changed("n", "1", "2");
        (new.change, new.accepted, new.difference) = (Change::New, None, None);
        let mut gone = changed("g", "1", "2");
        (gone.change, gone.pending, gone.ratio) = (Change::Gone, None, None);
        let text = shown(vec![new, gone], 100, Color::Plain);
        assert!(
            text.starts_with("  0 claims changed, 1 new, 1 gone, 0 the same\n"),
            "{text}"
        );
        assert!(text.contains("\n  n             –      2 B"), "{text}");
        assert!(text.contains("\n  g           1 B        –"), "{text}");
    }
}
