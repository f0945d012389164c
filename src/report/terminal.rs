//! The table of claims at the end of a build, as wide as the terminal allows.

use super::{Color, Count, Judged, Look, Report, Run};
use crate::article::Claim;
use crate::judge::{Outcome, Verdict};
use crate::quantity::{self, Format, Unit, Value};
use indexmap::IndexMap;
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
        printable(&server.version),
        printable(&server.engine)
    ));
    let widths_to_try = [Columns::All, Columns::NoSource, Columns::NoTolerance];
    let table = widths_to_try
        .into_iter()
        .map(|columns| Grid::new(judged.verdicts, columns))
        .find(|grid| grid.width() <= look.width);
    match table {
        Some(grid) => text.push_str(&grid.text(look.color)),
        None => text.push_str(&stacked(judged.verdicts, look.color)),
    }
    text.push_str(&filled_in_only(judged));
    text.push_str(&format!("{}\n", Count::of(judged.verdicts)));
    text.push_str(&reasons(judged.verdicts));
    text
}

// ---- the table --------------------------------------------------------------------------------

/// What a narrow terminal goes without, least first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Columns {
    All,
    /// Without what was published and recorded elsewhere.
    NoSource,
    NoTolerance,
}

/// Wider texts are cut: a quote can be half a sentence.
const WIDEST_QUOTE: usize = 32;
const WIDEST_CELL: usize = 44;

struct Grid {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    styles: Vec<Style>,
    widths: Vec<usize>,
}

impl Grid {
    fn new(verdicts: &[Verdict], columns: Columns) -> Self {
        let tolerance = columns != Columns::NoTolerance;
        let published =
            columns == Columns::All && verdicts.iter().any(|verdict| verdict.published.is_some());
        let recorded =
            columns == Columns::All && verdicts.iter().any(|verdict| verdict.recorded.is_some());
        let chosen = |cells: [&'static str; 7]| -> Vec<&'static str> {
            let shown = [true, true, true, tolerance, published, recorded, true];
            let kept = cells.into_iter().zip(shown).filter(|&(_, shown)| shown);
            kept.map(|(cell, _)| cell).collect()
        };
        let head = chosen([
            "claim",
            "quoted",
            "measured",
            "tolerance",
            "published",
            "recorded",
            "verdict",
        ]);
        let rows: Vec<Vec<String>> = verdicts
            .iter()
            .map(|verdict| head.iter().map(|&column| cell(verdict, column)).collect())
            .collect();
        let widths = head
            .iter()
            .enumerate()
            .map(|(index, name)| {
                let cells = rows.iter().map(|row| row[index].width());
                cells.chain([name.width()]).max().unwrap_or_default()
            })
            .collect();
        Self {
            head,
            rows,
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
        let head: Vec<String> = self.head.iter().map(|&name| name.to_owned()).collect();
        let mut text = self.line(&head, Style::Faint, Style::Faint, color);
        for (row, &style) in self.rows.iter().zip(&self.styles) {
            text.push_str(&self.line(row, Style::None, style, color));
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

fn cell(verdict: &Verdict, column: &str) -> String {
    match column {
        "claim" => printable(&verdict.claim),
        "quoted" => {
            let quoted = verdict.quoted.as_deref().unwrap_or("–");
            cut(&printable(quoted), WIDEST_QUOTE)
        }
        "measured" => cut(&printable(&verdict.measured_text), WIDEST_CELL),
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
        "recorded" => {
            let recorded = verdict.recorded.as_ref();
            beside(
                recorded.map(|(text, _)| text.as_str()),
                recorded.map(|(_, ratio)| ratio.as_str()),
            )
        }
        _ => verdict_text(&verdict.outcome).to_owned(),
    }
}

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
fn stacked(verdicts: &[Verdict], color: Color) -> String {
    let mut text = String::new();
    for verdict in verdicts {
        let outcome = paint(
            verdict_text(&verdict.outcome),
            Style::of(&verdict.outcome),
            color,
        );
        text.push_str(&format!("{}: {outcome}\n", printable(&verdict.claim)));
        if let Some(quoted) = &verdict.quoted {
            text.push_str(&format!("  quoted    {}\n", printable(quoted)));
        }
        text.push_str(&format!(
            "  measured  {}\n",
            printable(&verdict.measured_text)
        ));
    }
    text
}

/// Why figures were skipped, each reason once.
fn reasons(verdicts: &[Verdict]) -> String {
    let mut counts: IndexMap<&str, usize> = IndexMap::new();
    for verdict in verdicts {
        if let Outcome::Skipped { reason } = &verdict.outcome {
            *counts.entry(reason).or_default() += 1;
        }
    }
    counts
        .into_iter()
        .map(|(reason, count)| format!("  {count} skipped: {}\n", printable(reason)))
        .collect()
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
                let unit = claim.unit.as_deref().unwrap_or_default();
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
mod tests {
    use super::*;
    use crate::article::{Article, ClaimKind, Published};
    use crate::judge::{Context, judge, sample};
    use crate::record::Record;

    fn sample() -> (Article, Record, Vec<Verdict>) {
        let mut index_wal = sample::claim("index_wal", "B/row", "");
        index_wal.published = Some(Published::Number("76".parse().unwrap()));
        let mut base_rate = sample::claim("base_rate", "rows/s", "30%");
        base_rate.kind = ClaimKind::Noisy;
        base_rate.published = Some(Published::Number("754000".parse().unwrap()));
        let article = sample::article(
            "[76 bytes](claim:index_wal), [75.1](claim:index_wal), [754,000 rows a second](claim:base_rate), \
             [byte for byte](claim:same)",
            vec![index_wal, base_rate, sample::claim("same", "", "")],
        );
        let mut record = sample::record(
            "here",
            &[
                ("index_wal", "76.12"),
                ("base_rate", "436300"),
                ("same", "true"),
            ],
        );
        record.environment.server.version = "16.15".to_owned();
        record.environment.server.engine = "embedded".to_owned();
        let accepted = sample::record("there", &[("base_rate", "754123")]);
        let context = Context {
            profile: "full",
            accepted: Some(&accepted),
            measured_here: true,
        };
        let verdicts = judge(&article, &record, &context);
        (article, record, verdicts)
    }

    fn at_width(width: usize, color: Color) -> String {
        let (article, record, verdicts) = sample();
        let judged = Judged {
            article: &article,
            record: &record,
            verdicts: &verdicts,
        };
        table(&[judged], Look { color, width })
    }

    #[test]
    fn a_claim_that_nothing_judges_is_shown_with_its_value() {
        let (article, record, verdicts) = sample();
        let first = verdicts[0].claim.clone();
        let others: Vec<Verdict> = verdicts
            .into_iter()
            .filter(|verdict| verdict.claim != first)
            .collect();
        let judged = Judged {
            article: &article,
            record: &record,
            verdicts: &others,
        };
        let look = Look {
            color: Color::Plain,
            width: 200,
        };
        let text = table(&[judged], look);
        let shown = format!("measured, and neither quoted nor limited:\n  {first}: 76.1 B/row\n");
        assert!(text.contains(&shown), "{text}");
    }

    #[test]
    fn the_table_is_as_wide_as_the_terminal_allows() {
        let all = "\
sample at profile `full`, Postgres 16.15, embedded
claim      quoted                 measured        tolerance             published                recorded                 verdict
index_wal  76 bytes               76.12 B/row     75.5 to 76.5 B/row    76 B/row (×1.00)                                  holds
index_wal  75.1                   76.12 B/row     75.05 to 75.15 B/row  76 B/row (×1.00)                                  does not hold
base_rate  754,000 rows a second  436,300 rows/s  ±30%                  754,000 rows/s (×0.579)  754,123 rows/s (×0.579)  skipped
same       byte for byte          true            true                                                                    holds
same       –                      true            true                                                                    holds
3 hold, 1 does not hold, 1 skipped
  1 skipped: noisy: measured on another machine
";
        let no_source = "\
sample at profile `full`, Postgres 16.15, embedded
claim      quoted                 measured        tolerance             verdict
index_wal  76 bytes               76.12 B/row     75.5 to 76.5 B/row    holds
index_wal  75.1                   76.12 B/row     75.05 to 75.15 B/row  does not hold
base_rate  754,000 rows a second  436,300 rows/s  ±30%                  skipped
same       byte for byte          true            true                  holds
same       –                      true            true                  holds
3 hold, 1 does not hold, 1 skipped
  1 skipped: noisy: measured on another machine
";
        let no_tolerance = "\
sample at profile `full`, Postgres 16.15, embedded
claim      quoted                 measured        verdict
index_wal  76 bytes               76.12 B/row     holds
index_wal  75.1                   76.12 B/row     does not hold
base_rate  754,000 rows a second  436,300 rows/s  skipped
same       byte for byte          true            holds
same       –                      true            holds
3 hold, 1 does not hold, 1 skipped
  1 skipped: noisy: measured on another machine
";
        let stacked = "\
sample at profile `full`, Postgres 16.15, embedded
index_wal: holds
  quoted    76 bytes
  measured  76.12 B/row
index_wal: does not hold
  quoted    75.1
  measured  76.12 B/row
base_rate: skipped
  quoted    754,000 rows a second
  measured  436,300 rows/s
same: holds
  quoted    byte for byte
  measured  true
same: holds
  measured  true
3 hold, 1 does not hold, 1 skipped
  1 skipped: noisy: measured on another machine
";
        for (width, expected) in [
            (200, all),
            (135, all),
            (134, no_source),
            (85, no_source),
            (84, no_tolerance),
            (63, no_tolerance),
            (62, stacked),
            (0, stacked),
        ] {
            assert_eq!(at_width(width, Color::Plain), expected, "{width} columns");
        }
    }

    #[test]
    fn colors_are_put_on_only_when_asked_for_and_move_no_column() {
        let painted = at_width(100, Color::Ansi);
        assert!(painted.contains("\u{1b}[32mholds\u{1b}[0m"));
        assert!(painted.contains("\u{1b}[1;31mdoes not hold\u{1b}[0m"));
        assert!(painted.contains("\u{1b}[33mskipped\u{1b}[0m"));
        let mut bare = painted;
        for code in ["0", "1", "2", "32", "1;31", "33"] {
            bare = bare.replace(&format!("\u{1b}[{code}m"), "");
        }
        assert_eq!(bare, at_width(100, Color::Plain));
    }

    #[test]
    fn text_of_an_article_cannot_steer_the_terminal() {
        let markdown = "[76\u{1b}c\u{202e} bytes\nof it](claim:x)";
        let article = sample::article(markdown, vec![sample::claim("x", "B", "")]);
        let record = sample::record("a", &[("x", "76")]);
        let context = Context {
            profile: "full",
            accepted: None,
            measured_here: true,
        };
        let verdicts = judge(&article, &record, &context);
        let judged = Judged {
            article: &article,
            record: &record,
            verdicts: &verdicts,
        };
        let look = Look {
            color: Color::Plain,
            width: 100,
        };
        let found = table(&[judged], look);
        assert!(found.contains("76\u{fffd}c\u{fffd} bytes of it"), "{found}");
    }

    #[test]
    fn wide_characters_and_long_quotes_keep_the_columns_straight() {
        assert_eq!(cut("measured again", 8), "measure…");
        assert_eq!(cut("行行行行行", 6), "行行…");
        assert_eq!(cut("short", 5), "short");
    }

    #[test]
    fn several_articles_have_a_sum() {
        let (article, record, verdicts) = sample();
        let judged = Judged {
            article: &article,
            record: &record,
            verdicts: &verdicts,
        };
        let look = Look {
            color: Color::Plain,
            width: 100,
        };
        let found = table(&[judged, judged], look);
        assert!(
            found.ends_with("\n2 articles: 6 hold, 2 do not hold, 2 skipped\n"),
            "{found}"
        );
    }
}
