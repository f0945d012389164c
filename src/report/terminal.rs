//! The table of claims at the end of a build, as wide as the terminal allows.

use super::{Color, Count, Judged, Look, Report, Run};
use crate::article::Claim;
use crate::judge::{Machine, OF_THIS_MACHINE, Outcome, Verdict};
use crate::quantity::format::significant;
use crate::quantity::{self, Format, Number, Unit, Value};
use bigdecimal::Zero;
use indexmap::{IndexMap, IndexSet};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub(super) const REPORT: Report = Report {
    name: "terminal",
    about: "a table of claims: quoted, measured, tolerance, verdict",
    write,
};

/// The tables, and below them what is wrong.
fn write(run: &Run, look: Look) -> String {
    let mut text = table(&run.judged(), look);
    let problems = run.articles.iter().flat_map(|asked| &asked.problems);
    for problem in run.problems.iter().chain(problems) {
        if !text.is_empty() {
            text.push('\n');
        }
        let color = look.color == Color::Ansi;
        text.push_str(&format!("{}\n", problem.diagnostic.render(color)));
    }
    text
}

pub(super) fn table(judged: &[Judged], look: Look) -> String {
    let mut text = String::new();
    for (index, one) in judged.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&article(one, look));
    }
    if judged.len() > 1 {
        let all = Count::of(judged.iter().flat_map(|one| one.verdicts));
        text.push_str(&format!("\n{} articles: {all}\n", judged.len()));
    }
    text
}

fn article(judged: &Judged, look: Look) -> String {
    let server = &judged.record.environment.server;
    let mut text = paint(&printable(&judged.article.slug), Style::Strong, look.color);
    text.push_str(&format!(
        " at profile `{}`, Postgres {}, {}\n",
        printable(&judged.record.profile),
        printable(&judged.record.environment.versions_text()),
        printable(&server.engine)
    ));
    for (index, notice) in judged.notices().iter().enumerate() {
        let mark = if index == 0 { "unpinned: " } else { "" };
        let lines = wrapped(&printable(&format!("{mark}{notice}")), "  ", look.width);
        for line in lines.lines() {
            text.push_str(&paint(line, Style::Doubtful, look.color));
            text.push('\n');
        }
    }
    let elsewhere = judged.verdicts.iter().any(|one| one.recorded.is_some())
        || judged.machines.iter().any(|machine| !machine.is_stale());
    let table = Columns::to_try(elsewhere)
        .iter()
        .map(|&(columns, quote)| Grid::new(judged, columns, quote, look.width))
        .find(|grid| grid.width() <= look.width);
    match table {
        Some(grid) => text.push_str(&grid.text(look.color)),
        None => text.push_str(&stacked(judged, look)),
    }
    text.push_str(&filled_in_only(judged));
    text.push_str(&format!("{}\n", Count::of(judged.verdicts)));
    text.push_str(&reasons(judged.verdicts, look.width));
    for machine in judged.machines.iter().filter(|machine| machine.is_stale()) {
        let stale = "its record is stale: measured with other inputs, not shown";
        text.push_str(&format!(
            "  machine {}: {stale}\n",
            printable(&machine.name)
        ));
    }
    text
}

// ---- the table --------------------------------------------------------------------------------

/// What a narrow terminal goes without.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Columns {
    All,
    /// Without what was published.
    NoSource,
    NoTolerance,
    /// Without the tolerance; what the author and the source say stands below each line.
    Below,
}

impl Columns {
    /// Least left out first, each with the width of the longest quote. Where the author measured on
    /// another machine, both values beside one another are what a reader came for.
    fn to_try(elsewhere: bool) -> &'static [(Self, usize)] {
        if elsewhere {
            &[
                (Self::All, WIDEST_QUOTE),
                (Self::Below, WIDEST_QUOTE),
                (Self::Below, SHORT_QUOTE),
            ]
        } else {
            &[
                (Self::All, WIDEST_QUOTE),
                (Self::NoSource, WIDEST_QUOTE),
                (Self::NoTolerance, WIDEST_QUOTE),
                (Self::NoTolerance, SHORT_QUOTE),
            ]
        }
    }

    fn has(self, column: &str) -> bool {
        match column {
            "tolerance" => matches!(self, Self::All | Self::NoSource),
            "published" | "author" => self == Self::All,
            _ => true,
        }
    }
}

/// Wider texts are cut: a quote can be half a sentence.
const WIDEST_QUOTE: usize = 32;
const SHORT_QUOTE: usize = 16;
const WIDEST_CELL: usize = 44;

struct Grid {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    /// What stands below each row.
    below: Vec<String>,
    styles: Vec<Style>,
    widths: Vec<usize>,
}

impl Grid {
    /// Columns that no verdict has anything in are left out.
    fn new(judged: &Judged, columns: Columns, quote: usize, width: usize) -> Self {
        let verdicts = judged.verdicts;
        let any = |column: &str| match column {
            "published" => verdicts.iter().any(|one| one.published.is_some()),
            "author" => verdicts.iter().any(|one| one.recorded.is_some()),
            _ => true,
        };
        let names: Vec<&'static str> = COLUMNS
            .into_iter()
            .filter(|column| columns.has(column) && any(column))
            .collect();
        let beside: &[Machine] = match columns.has("author") {
            true => judged.machines,
            false => &[],
        };
        let beside: Vec<&Machine> = beside.iter().filter(|one| !one.is_stale()).collect();
        // The verdict stays last.
        let last = names.len() - 1;
        let mut head: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let titles = beside.iter().map(|machine| printable(&machine.name));
        head.splice(last..last, titles);
        let rows: Vec<Vec<String>> = verdicts
            .iter()
            .map(|verdict| {
                let text = |&column| match column {
                    "quoted" => cut(&cell(verdict, column), quote),
                    column => cell(verdict, column),
                };
                let mut row: Vec<String> = names.iter().map(text).collect();
                let there = beside.iter().map(|machine| on_machine(verdict, machine));
                row.splice(last..last, there);
                row
            })
            .collect();
        let widths = head
            .iter()
            .enumerate()
            .map(|(index, name)| {
                let cells = rows.iter().map(|row| row[index].width());
                cells.chain([name.width()]).max().unwrap_or_default()
            })
            .collect();
        let below = |verdict| match columns {
            Columns::Below => below(verdict, judged.machines, width),
            _ => String::new(),
        };
        Self {
            head,
            rows,
            below: verdicts.iter().map(below).collect(),
            styles: verdicts
                .iter()
                .map(|verdict| Style::of(&verdict.outcome))
                .collect(),
            widths,
        }
    }

    fn width(&self) -> usize {
        self.widths.iter().sum::<usize>() + GAP.len() * (self.widths.len() - 1)
    }

    fn text(&self, color: Color) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let mut text = self.line(&self.head, Style::Faint, Style::Faint, color);
        for ((row, below), &style) in self.rows.iter().zip(&self.below).zip(&self.styles) {
            text.push_str(&self.line(row, Style::None, style, color));
            for line in below.lines() {
                text.push_str(&paint(line, Style::Faint, color));
                text.push('\n');
            }
        }
        text
    }

    /// Painted after padding: escapes have no width on the screen, but they have one in a string.
    fn line(&self, cells: &[String], style: Style, last: Style, color: Color) -> String {
        let mut line = String::new();
        for (index, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            if index + 1 == cells.len() {
                line.push_str(&paint(cell, last, color));
            } else {
                line.push_str(&paint(cell, style, color));
                line.extend(std::iter::repeat_n(' ', width - cell.width()));
                line.push_str(GAP);
            }
        }
        line.push('\n');
        line
    }
}

const GAP: &str = "  ";

const COLUMNS: [&str; 7] = [
    "claim",
    "quoted",
    "measured",
    "tolerance",
    "published",
    "author",
    "verdict",
];

/// What the author measured and what the source says, indented; on a line each where one is too
/// short for both.
fn below(verdict: &Verdict, machines: &[Machine], width: usize) -> String {
    let parts: Vec<String> = elsewhere(verdict, machines)
        .into_iter()
        .filter(|(_, text)| !text.is_empty() && text != SAME)
        .map(|(column, text)| format!("{column} {text}"))
        .collect();
    let indent = "    ";
    let line = format!("{indent}{}", parts.join(" · "));
    if line.width() <= width {
        line.trim_end().to_owned()
    } else {
        let lines: Vec<String> = parts.iter().map(|part| format!("{indent}{part}")).collect();
        lines.join("\n")
    }
}

/// What other machines and the source have, each with its name.
fn elsewhere(verdict: &Verdict, machines: &[Machine]) -> Vec<(String, String)> {
    let named = |column: &str| (column.to_owned(), cell(verdict, column));
    let there = |machine: &Machine| (printable(&machine.name), on_machine(verdict, machine));
    (std::iter::once(named("author")))
        .chain(machines.iter().map(there))
        .chain([named("published")])
        .collect()
}

/// What a further machine's record has of the figure, and how many times that was measured here.
fn on_machine(verdict: &Verdict, machine: &Machine) -> String {
    let its = |one: &&Verdict| one.subject == verdict.subject && one.claim == verdict.claim;
    let Some(there) = machine.verdicts.iter().find(its) else {
        return String::new();
    };
    let number = |verdict: &Verdict| match &verdict.measured {
        Value::Number(Number::Finite(number)) => Some(number.clone()),
        _ => None,
    };
    let text = match (number(verdict), number(there)) {
        _ if verdict.measured == there.measured => SAME.to_owned(),
        (Some(here), Some(number)) if !number.is_zero() => {
            let ratio = significant(&(here / number), 3);
            beside(Some(&there.measured_text), Some(&ratio))
        }
        _ => beside(Some(&there.measured_text), None),
    };
    match there.outcome {
        Outcome::DoesNotHold { .. } => format!("{text}, does not hold"),
        _ => text,
    }
}

fn cell(verdict: &Verdict, column: &str) -> String {
    match column {
        "claim" => printable(&verdict.claim),
        "quoted" => {
            let quoted = verdict.quoted.as_deref().unwrap_or("–");
            cut(&printable(quoted), WIDEST_QUOTE)
        }
        "measured" => cut(&printable(&measured(verdict)), WIDEST_CELL),
        "tolerance" => {
            // What every plain quote has need not stand in every line.
            let text = verdict
                .tolerance
                .trim_end_matches(" (to the precision quoted)");
            cut(&printable(text), WIDEST_CELL)
        }
        "published" => beside(
            verdict.published.as_deref(),
            verdict.published_ratio.as_deref(),
        ),
        "author" => {
            let recorded = verdict.recorded.as_ref();
            match recorded.map(|(text, ratio)| (text.as_str(), ratio.as_str())) {
                Some((_, "1")) => SAME.to_owned(),
                Some((text, "–")) if text == verdict.measured_text => SAME.to_owned(),
                recorded => beside(recorded.map(|(text, _)| text), recorded.map(|(_, r)| r)),
            }
        }
        _ => verdict_text(&verdict.outcome).to_owned(),
    }
}

/// With its interval, where it has one.
fn measured(verdict: &Verdict) -> String {
    match &verdict.comparison {
        Some(comparison) => format!("{} ({})", verdict.measured_text, comparison.interval_text()),
        None => verdict.measured_text.clone(),
    }
}

/// The author's value where it is the one measured here, digit for digit.
const SAME: &str = "the same";

/// A value from elsewhere, and how many times it was measured here.
fn beside(text: Option<&str>, ratio: Option<&str>) -> String {
    let text = match (text, ratio) {
        (None, _) => "",
        (Some(text), None | Some("–")) => text,
        (Some(text), Some(ratio)) => {
            return cut(&printable(&format!("{text} (×{ratio})")), WIDEST_CELL);
        }
    };
    cut(&printable(text), WIDEST_CELL)
}

fn verdict_text(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "holds",
        Outcome::DoesNotHold { .. } => "does not hold",
        Outcome::Skipped { .. } => "skipped",
    }
}

// ---- what is left where no table fits ---------------------------------------------------------

/// A few lines a verdict.
fn stacked(judged: &Judged, look: Look) -> String {
    let mut text = String::new();
    for verdict in judged.verdicts {
        let outcome = paint(
            verdict_text(&verdict.outcome),
            Style::of(&verdict.outcome),
            look.color,
        );
        text.push_str(&format!("{}: {outcome}\n", printable(&verdict.claim)));
        let quoted = verdict.quoted.as_ref().map(|_| "quoted");
        let own = quoted.into_iter().chain(["measured"]);
        let own = own.map(|column| (column.to_owned(), cell(verdict, column)));
        for (column, value) in own.chain(elsewhere(verdict, judged.machines)) {
            if !value.is_empty() && value != SAME {
                text.push_str(&format!("  {column:<9} {value}\n"));
            }
        }
    }
    text
}

/// Why figures were skipped, each reason once; which claims are of the machine is told by name.
fn reasons(verdicts: &[Verdict], width: usize) -> String {
    let mut skipped: IndexMap<&str, (usize, IndexSet<&str>)> = IndexMap::new();
    for verdict in verdicts {
        if let Outcome::Skipped { reason } = &verdict.outcome {
            let (count, claims) = skipped.entry(reason).or_default();
            *count += 1;
            if reason == OF_THIS_MACHINE {
                claims.insert(&verdict.claim);
            }
        }
    }
    skipped
        .into_iter()
        .map(|(reason, (count, claims))| {
            let names: Vec<String> = claims.into_iter().map(printable).collect();
            let head = format!("  {count} skipped: {}\n", printable(reason));
            match names.as_slice() {
                [] => head,
                names => head + &wrapped(&names.join(", "), "      ", width),
            }
        })
        .collect()
}

/// Words on lines that are short enough, each behind the indent.
fn wrapped(words: &str, indent: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split(' ') {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("{indent}{word}")),
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Claims that nothing holds to anything: neither quoted nor with limits or truth of their own.
fn filled_in_only(judged: &Judged) -> String {
    let of_claim = |claim: &Claim| {
        let name = &claim.name.value;
        let judged_too = judged.verdicts.iter().any(|verdict| verdict.claim == *name);
        let value = judged.record.claims.get(name).filter(|_| !judged_too)?;
        let bytes = claim.bytes.unwrap_or(judged.article.front_matter.bytes);
        let text = match &value.value {
            Value::Number(number) => {
                let number = quantity::format(number, &Format::Default, bytes);
                let ratio = value.comparison.as_ref().map(|_| "×");
                let unit = claim.unit.as_deref().or(ratio).unwrap_or_default();
                Unit::new(unit, bytes).attach(&number)
            }
            other => other.to_string(),
        };
        Some(format!("  {name}: {}\n", printable(&text)))
    };
    let lines: Vec<String> = judged.article.claims().filter_map(of_claim).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "measured, and neither quoted nor limited:\n{}",
        lines.concat()
    )
}

// ---- characters -------------------------------------------------------------------------------

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    None,
    Strong,
    Faint,
    Good,
    Bad,
    Doubtful,
}

impl Style {
    fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Holds => Self::Good,
            Outcome::DoesNotHold { .. } => Self::Bad,
            Outcome::Skipped { .. } => Self::Doubtful,
        }
    }
}

fn paint(text: &str, style: Style, color: Color) -> String {
    let code = match (color, style) {
        (Color::Plain, _) | (_, Style::None) => return text.to_owned(),
        (_, Style::Strong) => "1",
        (_, Style::Faint) => "2",
        (_, Style::Good) => "32",
        (_, Style::Bad) => "1;31",
        (_, Style::Doubtful) => "33",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

/// One line without anything that a terminal would obey: an article is someone else's text.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            c if c.is_whitespace() => ' ',
            c if c.is_control() => '\u{fffd}',
            // Marks that turn the direction of what follows.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            c => c,
        })
        .collect()
}

fn cut(text: &str, widest: usize) -> String {
    if text.width() <= widest {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut width = 1;
    for c in text.chars() {
        width += c.width().unwrap_or_default();
        if width > widest {
            break;
        }
        kept.push(c);
    }
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests;
