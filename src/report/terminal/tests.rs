//! The table of claims at several widths, with and without another machine's record beside it.

use super::*;
use crate::article::{Article, ClaimKind, Published};
use crate::judge::{Context, judge, sample};
use crate::record::Record;

fn sample() -> (Article, Record, Vec<Verdict>) {
    let accepted = sample::record("there", &[("base_rate", "754123")]);
    sample_beside(Some(&accepted))
}

fn sample_beside(accepted: Option<&Record>) -> (Article, Record, Vec<Verdict>) {
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
    let context = Context {
        profile: "full",
        accepted,
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
        machines: &[],
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
        machines: &[],
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
claim      quoted                 measured        tolerance             published                author                   verdict
index_wal  76 bytes               76.12 B/row     75.5 to 76.5 B/row    76 B/row (×1.00)                                  holds
index_wal  75.1                   76.12 B/row     75.05 to 75.15 B/row  76 B/row (×1.00)                                  does not hold
base_rate  754,000 rows a second  436,300 rows/s  ±30%                  754,000 rows/s (×0.579)  754,123 rows/s (×0.579)  skipped
same       byte for byte          true            true                                                                    holds
same       –                      true            true                                                                    holds
3 hold, 1 does not hold, 1 skipped
  1 skipped: noisy: of this machine, not judged here
      base_rate
";
    let below = "\
sample at profile `full`, Postgres 16.15, embedded
claim      quoted                 measured        verdict
index_wal  76 bytes               76.12 B/row     holds
    published 76 B/row (×1.00)
index_wal  75.1                   76.12 B/row     does not hold
    published 76 B/row (×1.00)
base_rate  754,000 rows a second  436,300 rows/s  skipped
    author 754,123 rows/s (×0.579) · published 754,000 rows/s (×0.579)
same       byte for byte          true            holds
same       –                      true            holds
3 hold, 1 does not hold, 1 skipped
  1 skipped: noisy: of this machine, not judged here
      base_rate
";
    let narrow = "\
sample at profile `full`, Postgres 16.15, embedded
claim      quoted                 measured        verdict
index_wal  76 bytes               76.12 B/row     holds
    published 76 B/row (×1.00)
index_wal  75.1                   76.12 B/row     does not hold
    published 76 B/row (×1.00)
base_rate  754,000 rows a second  436,300 rows/s  skipped
    author 754,123 rows/s (×0.579)
    published 754,000 rows/s (×0.579)
same       byte for byte          true            holds
same       –                      true            holds
3 hold, 1 does not hold, 1 skipped
  1 skipped: noisy: of this machine, not judged here
      base_rate
";
    let stacked = "\
sample at profile `full`, Postgres 16.15, embedded
index_wal: holds
  quoted    76 bytes
  measured  76.12 B/row
  published 76 B/row (×1.00)
index_wal: does not hold
  quoted    75.1
  measured  76.12 B/row
  published 76 B/row (×1.00)
base_rate: skipped
  quoted    754,000 rows a second
  measured  436,300 rows/s
  author    754,123 rows/s (×0.579)
  published 754,000 rows/s (×0.579)
same: holds
  quoted    byte for byte
  measured  true
same: holds
  measured  true
3 hold, 1 does not hold, 1 skipped
  1 skipped: noisy: of this machine, not judged here
      base_rate
";
    for (width, expected) in [
        (200, all),
        (135, all),
        (134, below),
        (80, below),
        (63, narrow),
        (47, stacked),
        (0, stacked),
    ] {
        assert_eq!(at_width(width, Color::Plain), expected, "{width} columns");
    }
}

#[test]
fn on_the_authors_machine_a_narrow_table_goes_without_the_source_first() {
    let at = |width| {
        let (article, record, verdicts) = sample_beside(None);
        let judged = Judged {
            article: &article,
            record: &record,
            verdicts: &verdicts,
            machines: &[],
        };
        let look = Look {
            color: Color::Plain,
            width,
        };
        let text = table(&[judged], look);
        let head = text.lines().nth(1).unwrap_or_default();
        head.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(at(110), "claim quoted measured tolerance published verdict");
    assert_eq!(at(90), "claim quoted measured tolerance verdict");
    assert_eq!(at(70), "claim quoted measured verdict");
    assert_eq!(at(58), "claim quoted measured verdict");
    assert_eq!(at(50), "index_wal: holds");
}

#[test]
fn a_comparison_stands_with_its_interval() {
    let article = sample::article("[faster](claim:x)", vec![sample::claim("x", "", "")]);
    let mut record = sample::record("a", &[("x", "1.93")]);
    record.claims[0].comparison = Some(crate::record::Comparison {
        interval: ("1.8".parse().unwrap(), "2.0567".parse().unwrap()),
        runs: (8, 8),
    });
    let context = Context {
        profile: "full",
        accepted: None,
        measured_here: true,
    };
    let verdicts = judge(&article, &record, &context);
    assert_eq!(cell(&verdicts[0], "measured"), "1.93× (1.8 to 2.06)");
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
        machines: &[],
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
        machines: &[],
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

/// Further machines' records beside the sample, one of them stale.
#[test]
fn further_machines_have_columns_and_on_narrow_terminals_lines() {
    let accepted = sample::record("here", &[("index_wal", "76.12"), ("same", "true")]);
    let (article, record, verdicts) = sample_beside(Some(&accepted));
    let machine = |name: &str, index_wal: &str, same: &str| {
        let values = [("index_wal", index_wal), ("same", same)];
        let mut machine = Machine {
            name: name.to_owned(),
            record: sample::record(name, &values),
            stale: Vec::new(),
            verdicts: Vec::new(),
        };
        machine.verdicts = crate::judge::judge_machine(&article, &machine, Some(&accepted));
        machine
    };
    let mut old = machine("old", "1", "true");
    old.stale = vec![crate::diagnostic::Diagnostic::error("stale")];
    let machines = [machine("big\u{1b}", "80.5", "false"), old];
    let judged = Judged {
        article: &article,
        record: &record,
        verdicts: &verdicts,
        machines: &machines,
    };
    let at = |width| {
        let look = Look {
            color: Color::Plain,
            width,
        };
        table(&[judged], look)
    };
    let wide = at(200);
    let line = |text: &str, start: &str| -> String {
        let found = text.lines().find(|line| line.starts_with(start));
        found
            .unwrap_or_else(|| panic!("{start}: {text}"))
            .to_owned()
    };
    let head = line(&wide, "claim");
    let columns: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(columns[columns.len() - 2..], ["big\u{fffd}", "verdict"]);
    assert!(!head.contains("old"));
    let wal = line(&wide, "index_wal  76 bytes");
    assert!(
        wal.contains("80.5 B/row (×0.946), does not hold  holds"),
        "{wal}"
    );
    let same = line(&wide, "same       byte for byte");
    assert!(
        same.contains("  false, does not hold  ") && same.ends_with("  holds"),
        "{same}"
    );
    assert!(
        wide.ends_with(
            "  machine old: its record is stale: measured with other inputs, not shown\n"
        )
    );
    for narrow in [at(80), at(30)] {
        assert!(
            narrow.contains("80.5 B/row (×0.946), does not hold"),
            "{narrow}"
        );
    }
}
