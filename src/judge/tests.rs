//! Tables of quotes, values and what they come to.

mod comparisons;
mod kinds;

use super::sample::{article, claim, experiment, record, value};
use super::*;
use crate::article::{BytesMeaning::*, ClaimKind};

fn here<'a>() -> Context<'a> {
    Context {
        profile: "full",
        accepted: None,
        measured_here: true,
    }
}

/// The verdict of one quote of claim `x`.
fn quoted(text: &str, measured: &str, unit: &str, tolerance: &str, bytes: BytesMeaning) -> Verdict {
    let mut article = article(
        &format!("So [{text}](claim:x)."),
        vec![claim("x", unit, tolerance)],
    );
    article.front_matter.bytes = bytes;
    judge(&article, &record("a", &[("x", measured)]), &here()).remove(0)
}

fn difference(verdict: &Verdict) -> &str {
    match &verdict.outcome {
        Outcome::Holds => "",
        Outcome::DoesNotHold { difference } => difference,
        Outcome::Skipped { reason } => reason,
    }
}

/// Quoted, measured, unit, tolerance, bytes, and the difference; empty where it holds.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    BytesMeaning,
    &'static str,
);

fn check(table: &[Row]) {
    let mut wrong = Vec::new();
    for &(text, measured, unit, tolerance, bytes, expected) in table {
        let verdict = quoted(text, measured, unit, tolerance, bytes);
        if difference(&verdict) != expected {
            wrong.push(format!(
                "[{text}] of {measured} {unit} {tolerance}: {:?}, not {expected:?}",
                verdict.outcome
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_quote_without_a_tolerance_holds_to_the_precision_quoted() {
    #[rustfmt::skip]
    check(&[
        ("76 bytes", "76.12", "B/row", "", Binary, ""),
        ("76 bytes", "75.5", "B/row", "", Binary, ""),
        ("76 bytes", "76.5", "B/row", "", Binary, ""),
        ("76 bytes", "75.4999999999999999999999", "B/row", "", Binary, "75.4999999999999999999999 is 0.0000000000000000000001 below 75.5 to 76.5"),
        ("76 bytes", "77.04", "B/row", "", Binary, "77.04 is 0.54 above 75.5 to 76.5"),
        ("76", "76", "", "", Binary, ""),
        ("76.1", "76.12", "B", "", Binary, ""),
        ("76.1", "76.15", "B", "", Binary, ""),
        ("76.1", "76.16", "B", "", Binary, "76.16 is 0.01 above 76.05 to 76.15"),
        ("76.10", "76.12", "B", "", Binary, "76.12 is 0.015 above 76.095 to 76.105"),
        ("1.50", "1.5", "s", "", Binary, ""),
        ("1.50", "1.504", "s", "", Binary, ""),
        ("1.50", "1.506", "s", "", Binary, "1.506 is 0.001 above 1.495 to 1.505"),
        ("1.5", "1.506", "s", "", Binary, ""),
        ("0", "0", "", "", Binary, ""),
        ("0", "0.4", "", "", Binary, ""),
        ("0 B", "-0.6", "B", "", Binary, "-0.6 is 0.1 below -0.5 to 0.5"),
        ("0.0416", "0.04161", "", "", Binary, ""),
        (".5", "0.5", "", "", Binary, ""),
        (".5", "0.56", "", "", Binary, "0.56 is 0.01 above 0.45 to 0.55"),
        ("11,542", "11542", "rows", "", Binary, ""),
        ("11,543", "11542", "rows", "", Binary, "11,542 is 0.5 below 11,542.5 to 11,543.5"),
        ("754,000", "754000", "rows/s", "", Binary, ""),
        ("754,000", "754123", "rows/s", "", Binary, "754,123 is 123 above 753,999.5 to 754,000.5"),
        ("8,023,544", "8023544", "B", "", Binary, ""),
        ("12345678901234567890", "12345678901234567890", "", "", Binary, ""),
        ("12345678901234567890", "12345678901234567891", "", "", Binary, "12,345,678,901,234,567,891 is 0.5 above 12,345,678,901,234,567,889.5 to 12,345,678,901,234,567,890.5"),
        ("76", "NULL", "", "", Binary, "there is no value"),
        ("76", "NaN", "", "", Binary, "the value is NaN"),
        ("76", "Infinity", "", "", Binary, "the value is Infinity"),
        ("76", "-Infinity", "", "<= 80", Binary, "the value is -Infinity"),
        ("1e6 rows", "1000000", "rows", "", Binary, ""),
        ("1.5e-3 s", "0.00152", "s", "", Binary, ""),
        ("1.5e-3 s", "0.0016", "s", "", Binary, "0.0016 is 0.00005 above 0.00145 to 0.00155"),
    ]);
}

#[test]
fn signs_groups_and_surroundings_of_a_numeral_are_read() {
    #[rustfmt::skip]
    check(&[
        ("-5", "-5", "", "", Binary, ""),
        ("−5", "-5", "", "", Binary, ""),
        ("−5", "5", "", "", Binary, "5 is 9.5 above -5.5 to -4.5"),
        ("+11%", "0.11", "", "", Binary, ""),
        ("by −1.5 ms", "-1.5", "ms", "", Binary, ""),
        ("(−5)", "-5", "", "", Binary, ""),
        ("1,000", "1000", "", "", Binary, ""),
        ("1,000,000", "1000000", "", "", Binary, ""),
        ("1\u{2009}000\u{2009}000", "1000000", "", "", Binary, ""),
        ("1\u{202f}000", "1000", "", "", Binary, ""),
        ("1\u{a0}000 rows", "1000", "rows", "", Binary, ""),
        ("1_000_000", "1000000", "", "", Binary, ""),
        ("1,234.5", "1234.5", "", "", Binary, ""),
        ("1000", "1000", "", "", Binary, ""),
        ("8\u{a0}indexes", "8", "", "", Binary, ""),
        ("~1.5 µs", "1.52", "µs", "", Binary, ""),
        ("≈1.5 µs", "1.52", "µs", "", Binary, ""),
        ("about 76 bytes of WAL", "76.1", "B/row", "", Binary, ""),
        ("cost 80.2 bytes at 8 indexes", "80.24", "B/row", "", Binary, ""),
        ("int8 takes 8 bytes", "8", "B", "", Binary, ""),
        ("the 8th index adds 13%", "13", "%", "", Binary, ""),
        ("k1 to k8: 76 bytes", "76", "B", "", Binary, ""),
        ("a 40-byte row", "40", "B", "", Binary, ""),
        ("约76字节", "76", "B", "", Binary, ""),
        ("约76 MB的日志", "79691776", "B", "", Binary, ""),
        ("≥ 76 байт", "76", "B", "", Binary, ""),
        ("76.", "76", "", "", Binary, ""),
        ("76, then", "76", "", "", Binary, ""),
        ("76; 77", "76", "", "", Binary, ""),
        ("1,000, 2,000", "1000", "", "", Binary, ""),
        ("half", "0.5", "", "", Binary, "no numeral in the quote of a number"),
        ("zero bytes", "0", "B", "", Binary, "no numeral in the quote of a number"),
        ("int8", "8", "", "", Binary, "no numeral in the quote of a number"),
        ("the 8th", "8", "", "", Binary, "no numeral in the quote of a number"),
        ("76,12", "76.12", "", "", Binary, "`76,12` is no numeral: groups have three digits, and decimals begin with a point"),
        ("1,0000", "10000", "", "", Binary, "`1,0000` is no numeral: groups have three digits, and decimals begin with a point"),
        ("0,123", "0.123", "", "", Binary, "`0,123` is no numeral: groups have three digits, and decimals begin with a point"),
        ("1000,000", "1000000", "", "", Binary, "`1000,000` is no numeral: groups have three digits, and decimals begin with a point"),
        ("1.000.000", "1000000", "", "", Binary, "`1.000.000` is no numeral: it has two points"),
        ("1/8", "0.125", "", "", Binary, "`1/8` is no numeral: write a fraction as a decimal or a percentage"),
        ("1:3", "0.333", "", "", Binary, "`1:3` is no numeral: quote one number, not a proportion or a time"),
    ]);
}

#[test]
fn multipliers_and_units_are_converted_exactly() {
    #[rustfmt::skip]
    check(&[
        ("754k rows/s", "754123", "rows/s", "", Binary, ""),
        ("754k rows/s", "754500", "rows/s", "", Binary, ""),
        ("754k rows/s", "436300", "rows/s", "", Binary, "436,300 is 317,200 below 753,500 to 754,500"),
        ("754k", "754123", "rows/s", "", Binary, ""),
        ("754,000 rows a second", "754000.2", "rows/s", "", Binary, ""),
        ("754,000 rows per second", "754000", "rows/s", "", Binary, ""),
        ("45M rows per minute", "750000", "rows/s", "", Binary, ""),
        ("45M/min", "750000", "rows/s", "", Binary, ""),
        ("45M inserts per minute", "750000", "rows/s", "", Binary, ""),
        ("1.2M", "1230000", "rows", "", Binary, ""),
        ("2 million rows", "2000000", "rows", "", Binary, ""),
        ("2 million", "2600000", "", "", Binary, "2,600,000 is 100,000 above 1,500,000 to 2,500,000"),
        ("1.5bn", "1490000000", "", "", Binary, ""),
        ("3 thousand", "3400", "", "", Binary, ""),
        ("24 kB", "24576", "B", "", Binary, ""),
        ("24 kB", "24000", "B", "", Decimal, ""),
        ("24 kB", "24000", "B", "", Binary, "23.4375 is 0.0625 below 23.5 to 24.5"),
        ("24 KB", "24576", "B", "", Binary, ""),
        ("24kB", "24576", "B", "", Binary, ""),
        ("24 KiB", "24576", "B", "", Decimal, ""),
        ("13.1 MB", "13736346", "B/index", "", Binary, ""),
        ("13.1 MB", "13100000", "B/index", "", Decimal, ""),
        ("13.1 MB", "13167000", "B/index", "", Decimal, "13.167 is 0.017 above 13.05 to 13.15"),
        ("135 MB", "141246464", "B", "", Binary, ""),
        ("135 MB", "141246464", "B", "", Decimal, "141.25 is 5.75 above 134.5 to 135.5"),
        ("135 MiB", "141246464", "B", "", Decimal, ""),
        ("1 GB", "1024", "MB", "", Binary, ""),
        ("1 GB", "1000", "MB", "", Decimal, ""),
        ("1.5 TB", "1536", "GB", "", Binary, ""),
        ("3 MB/s", "3044800", "B/s", "", Decimal, ""),
        ("3 MB/sec of WAL", "3044800", "B/s", "", Decimal, ""),
        ("76 B/row/index", "76.1", "B/row/index", "", Binary, ""),
        ("76 B/row", "76.1", "B/row/index", "", Binary, ""),
        ("76 bytes per index per row", "76.1", "B/row/index", "", Binary, ""),
        ("76 bytes per row", "76.1", "B", "", Binary, ""),
        ("76", "76.1", "B/row", "", Binary, ""),
        ("1.5 µs", "0.0015", "ms/row", "", Binary, ""),
        ("1.5 μs", "1.5", "µs/row", "", Binary, ""),
        ("1.5 us", "1500", "ns", "", Binary, ""),
        ("7.1ms", "0.0071", "s", "", Binary, ""),
        ("3.6 seconds", "3612.4", "ms", "", Binary, ""),
        ("0.013 second", "12.6", "ms", "", Binary, ""),
        ("2 min", "121", "s", "", Binary, ""),
        ("90 s", "1.5", "min", "", Binary, ""),
        ("20 min", "0.3333333333333333333333", "h", "", Binary, ""),
        ("1 h", "60", "min", "", Binary, ""),
        ("20 s", "0.00555", "h", "", Binary, ""),
        ("100 ns", "0.0001", "ms", "", Binary, ""),
        ("65%", "64.8", "%", "", Binary, ""),
        ("65%", "0.648", "", "", Binary, ""),
        ("65 %", "0.648", "ratio", "", Binary, ""),
        ("65 percent", "0.648", "x", "", Binary, ""),
        ("65", "64.8", "%", "", Binary, ""),
        ("11%", "11", "", "", Binary, "1,100 is 1,089 above 10.5 to 11.5"),
        ("15x", "14.6", "", "", Binary, ""),
        ("15×", "14.6", "x", "", Binary, ""),
        ("15 times slower", "14.6", "×", "", Binary, ""),
        ("×15", "14.6", "", "", Binary, ""),
        ("1.5x", "150", "%", "", Binary, ""),
        ("50%", "0.5", "×", "", Binary, ""),
        ("3-fold", "3.2", "x", "", Binary, ""),
        ("11,542 times", "11542", "updates", "", Binary, ""),
        ("5,002 tps", "5001.9", "tps", "", Binary, ""),
        ("5,002 TPS", "5001.9", "tps", "", Binary, ""),
        ("5k transactions per second", "5001.9", "tps", "", Binary, ""),
        ("43 buffers", "43", "buffers", "", Binary, ""),
        ("1 buffer", "1", "buffers", "", Binary, ""),
        ("200,001 heap fetches", "200001", "heap fetches", "", Binary, ""),
        ("76 bytes", "76", "", "", Binary, ""),
        ("24 kB", "24", "", "", Binary, ""),
        ("8 B", "8", "rows", "", Binary, "quoted in B, the claim is in rows"),
        ("8 ms", "8", "B", "", Binary, "quoted in ms, the claim is in B"),
        ("8%", "8", "B", "", Binary, "quoted in %, the claim is in B"),
        ("8x", "8", "ms", "", Binary, "quoted in x, the claim is in ms"),
        ("8 kB", "8", "ms", "", Binary, "quoted in kB, the claim is in ms"),
        ("8 s", "8", "%", "", Binary, "quoted in s, the claim is in %"),
        ("8 MB/s", "8", "MB", "", Binary, "quoted in MB/s, the claim is in MB"),
        ("8 B/page", "8", "B/row", "", Binary, "quoted in B/page, the claim is in B/row"),
        ("8 bytes per second", "8", "B/row", "", Binary, "quoted in bytes per second, the claim is in B/row"),
    ]);
}

#[test]
fn masks_fix_the_digits_they_show_and_ranges_their_ends() {
    #[rustfmt::skip]
    check(&[
        ("8,023,5xx", "8023544", "B", "", Binary, ""),
        ("8,023,5xx", "8023500", "B", "", Binary, ""),
        ("8,023,5xx", "8023599.9", "B", "", Binary, ""),
        ("8,023,5xx", "8023600", "B", "", Binary, "8,023,600 does not show the digits of 8,023,5xx"),
        ("8,023,5xx bytes", "8023499", "B", "", Binary, "8,023,499 does not show the digits of 8,023,5xx"),
        ("8,0xx,xxx", "8099999", "B", "", Binary, ""),
        ("8,0xx,xxx", "8100000", "B", "", Binary, "8,100,000 does not show the digits of 8,0xx,xxx"),
        ("8,023,54x", "8023549", "B", "", Binary, ""),
        ("8,023,54x", "8023550", "B", "", Binary, "8,023,550 does not show the digits of 8,023,54x"),
        ("5xx", "512", "", "", Binary, ""),
        ("-5xx", "-512", "", "", Binary, ""),
        ("-5xx", "-600", "", "", Binary, "-600 does not show the digits of -5xx"),
        ("1.3xx", "1.399", "", "", Binary, ""),
        ("1.3xx", "1.4", "", "", Binary, "1.4 does not show the digits of 1.3xx"),
        ("8,023,5xx", "8023610", "B", "0.01%", Binary, ""),
        ("1.3 to 1.8 µs", "1.5", "µs/row", "", Binary, ""),
        ("1.3 to 1.8 µs", "1.3", "µs", "", Binary, ""),
        ("1.3 to 1.8 µs", "1.8", "µs", "", Binary, ""),
        ("1.3 to 1.8 µs", "1.81", "µs", "", Binary, "1.81 is 0.01 above 1.3 to 1.8"),
        ("1.3 to 1.8 µs", "2.93", "µs", "", Binary, "2.93 is 1.13 above 1.3 to 1.8"),
        ("1.3–1.8 µs", "1.5", "µs", "", Binary, ""),
        ("1.3 – 1.8 µs", "1.2", "µs", "", Binary, "1.2 is 0.1 below 1.3 to 1.8"),
        ("1.3-1.8 µs", "0.0015", "ms", "", Binary, ""),
        ("1.3µs–1.8µs", "1.5", "µs", "", Binary, ""),
        ("800 µs to 1 ms", "0.9", "ms", "", Binary, ""),
        ("between 1.3 and 1.8 µs", "1.5", "µs", "", Binary, ""),
        ("between 1.3 and 1.8 µs", "1.9", "µs", "", Binary, "1.9 is 0.1 above 1.3 to 1.8"),
        ("from 10 to 15%", "0.12", "", "", Binary, ""),
        ("10-15%", "16", "%", "", Binary, "16 is 1 above 10 to 15"),
        ("-5 to -3", "-4", "", "", Binary, ""),
        ("-5–-3", "-2", "", "", Binary, "-2 is 1 above -5 to -3"),
        ("1 to 2 million", "1500000", "rows", "", Binary, ""),
        ("500 to 2k", "600", "", "", Binary, ""),
        ("5 to 6k rows", "5500", "rows", "", Binary, ""),
        ("378,000 to 754,000", "500000", "rows/s", "", Binary, ""),
        ("754,000 to 378,000", "500000", "rows/s", "", Binary, "`754,000 to 378,000` is no numeral: the ends of a range ascend; quote two figures each on its own"),
        ("1 ms to 2 kB", "1", "ms", "", Binary, "`1 ms to 2 kB` is no numeral: its ends have different units"),
        ("2024-09-20", "2024", "", "", Binary, "`2024-09-20` is no numeral: a date is no figure"),
        ("1.3 to 1.8 µs", "1.9", "µs", "10%", Binary, ""),
        ("1.3 to 1.8 µs", "2.0", "µs", "10%", Binary, "2 is 0.02 above 1.17 to 1.98"),
    ]);
}

#[test]
fn a_tolerance_replaces_the_precision_quoted() {
    #[rustfmt::skip]
    check(&[
        ("76 bytes", "76.76", "B/row", "1%", Binary, ""),
        ("76 bytes", "77.04", "B/row", "1%", Binary, "77.04 is 0.28 above 75.24 to 76.76"),
        ("76 bytes", "75.24", "B/row", "1%", Binary, ""),
        ("76 bytes", "75.23", "B/row", "1%", Binary, "75.23 is 0.01 below 75.24 to 76.76"),
        ("-76", "-76.7", "", "1%", Binary, ""),
        ("-76", "-76.8", "", "1%", Binary, "-76.8 is 0.04 below -76.76 to -75.24"),
        ("76", "76.4", "", "0%", Binary, "76.4 is 0.4 above 76 to 76"),
        ("754,000 rows a second", "754123", "rows/s", "30%", Binary, ""),
        ("754,000", "436300", "rows/s", "30%", Binary, "436,300 is 91,500 below 527,800 to 980,200"),
        ("24 kB", "24000", "B", "5%", Binary, ""),
        ("76", "76.5", "B", "0.5", Binary, ""),
        ("76", "76.51", "B", "0.5", Binary, "76.51 is 0.01 above 75.5 to 76.5"),
        ("76.0", "76.5", "B", "0.5", Binary, ""),
        ("24 kB", "24676", "B", "100", Binary, ""),
        ("24 kB", "24677", "B", "100", Binary, "24.098633 is 0.000977 above 23.90234375 to 24.09765625"),
        ("20 s", "0.0056", "h", "0.0001", Binary, ""),
        ("8%", "0.0816", "", "0.005", Binary, ""),
        ("76", "76", "B", "[70, 80]", Binary, ""),
        ("76", "81", "B", "[70, 80]", Binary, "81 is 1 above 70 to 80"),
        ("76", "70", "B", "[70, 80]", Binary, ""),
        ("69", "75", "B", "[70, 80]", Binary, "the quoted 69 is 1 below 70 to 80"),
        ("72 to 78", "79", "B", "[70, 80]", Binary, "79 is 1 above 72 to 78"),
        ("60 to 78", "75", "B", "[70, 80]", Binary, "the quoted 60 is 10 below 70 to 80"),
        ("1 kB", "1000", "B", "[900, 1100]", Binary, ""),
        ("3x", "3.4", "x", ">= 3", Binary, ""),
        ("3x", "300", "x", ">= 3", Binary, ""),
        ("3x", "2.9", "x", ">= 3", Binary, "2.9 is 0.1 below 3"),
        ("2x", "3.4", "x", ">= 3", Binary, "the quoted 2 is 1 below 3"),
        ("300%", "3.4", "x", ">= 3", Binary, ""),
        ("under 0.5%", "0.42", "%", "<= 0.5", Binary, ""),
        ("under 0.5%", "0.51", "%", "<= 0.5", Binary, "0.51 is 0.01 above 0.5"),
        ("0.6%", "0.3", "%", "<= 0.5", Binary, "the quoted 0.6 is 0.1 above 0.5"),
        ("8 ms", "8", "B", "1%", Binary, "quoted in ms, the claim is in B"),
        ("half", "0.5", "", ">= 0.4", Binary, "no numeral in the quote of a number"),
        ("76", "NULL", "B", ">= 3", Binary, "there is no value"),
        ("76", "NaN", "B", ">= 3", Binary, "the value is NaN"),
    ]);
}

#[test]
fn words_quote_a_claim_that_is_true_or_false() {
    let number = "a number is quoted of a claim that is true or false";
    #[rustfmt::skip]
    check(&[
        ("byte for byte", "true", "", "", Binary, ""),
        ("byte for byte", "false", "", "", Binary, "the claim is false"),
        ("byte for byte", "NULL", "", "", Binary, "there is no value"),
        ("free on int8", "true", "", "", Binary, ""),
        ("the 8th is free", "true", "", "", Binary, ""),
        ("100% free", "true", "", "", Binary, number),
        ("1/8 of it", "true", "", "", Binary, number),
    ]);
}

fn outcome_of(verdicts: &[Verdict], subject: Subject) -> &Outcome {
    &verdicts
        .iter()
        .find(|v| v.subject == subject)
        .unwrap()
        .outcome
}

#[test]
fn quotes_come_in_the_order_of_the_prose_then_claims_that_ask_something_themselves() {
    let article = article(
        "First [3x](claim:ratio), then [same](claim:same), then [76](claim:plain).",
        vec![
            claim("plain", "B", "1%"),
            claim("same", "", ""),
            claim("ratio", "x", ">= 3"),
            claim("lost", "", ""),
        ],
    );
    let record = record("a", &[("plain", "76"), ("same", "false"), ("ratio", "3.4")]);
    let verdicts = judge(&article, &record, &here());
    let found: Vec<_> = verdicts
        .iter()
        .map(|v| {
            (
                v.subject,
                v.claim.as_str(),
                v.tolerance.as_str(),
                difference(v),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (Subject::Quote(0), "ratio", "≥ 3×", ""),
            (Subject::Quote(1), "same", "true", "the claim is false"),
            (Subject::Quote(2), "plain", "±1%", ""),
            (Subject::Claim, "same", "true", "the claim is false"),
            (Subject::Claim, "ratio", "≥ 3×", ""),
            (Subject::Claim, "lost", "a value", "there is no value"),
        ]
    );
}

#[test]
fn a_claim_that_a_record_read_again_does_not_have_is_skipped() {
    let article = article(
        "[76](claim:quoted)",
        vec![claim("quoted", "B", ""), claim("alone", "", "")],
    );
    let context = Context {
        measured_here: false,
        ..here()
    };
    let verdicts = judge(&article, &record("a", &[]), &context);
    assert_eq!(verdicts.len(), 3);
    for verdict in verdicts {
        let Outcome::Skipped { reason } = &verdict.outcome else {
            panic!("{verdict:?}");
        };
        assert_eq!(reason, "the record has no value of it");
    }
}

#[test]
fn a_claim_that_a_server_refused_is_skipped_and_neither_holds_nor_fails() {
    let article = article(
        "[76](claim:quoted) [it is so](claim:true)",
        vec![
            claim("quoted", "B", ""),
            claim("true", "", ""),
            claim("alone", "B", ">= 3"),
        ],
    );
    let mut record = record("a", &[]);
    for name in ["quoted", "true", "alone"] {
        let what = Record::called("claim", name);
        record
            .skipped
            .insert(what, "experiment `e` was skipped".to_owned());
    }
    for measured_here in [true, false] {
        let context = Context {
            measured_here,
            accepted: Some(&record),
            ..here()
        };
        let verdicts = judge(&article, &record, &context);
        assert_eq!(verdicts.len(), 5);
        for verdict in verdicts {
            let Outcome::Skipped { reason } = &verdict.outcome else {
                panic!("{verdict:?}");
            };
            assert_eq!(reason, "experiment `e` was skipped");
            assert_eq!(verdict.measured_text, "not measured");
        }
    }
}

#[test]
fn a_claim_of_another_profile_is_skipped_and_never_holds() {
    let mut only_full = claim("x", "B", "");
    only_full.profile = Some(crate::source::Spanned::new("full".to_owned(), 0..0));
    let article = article("[76](claim:x)", vec![only_full]);
    for (profile, expected) in [
        ("full", Outcome::Holds),
        (
            "quick",
            Outcome::Skipped {
                reason: "holds in profile `full` only, this is `quick`".to_owned(),
            },
        ),
    ] {
        let context = Context { profile, ..here() };
        let verdicts = judge(&article, &record("a", &[("x", "76")]), &context);
        assert_eq!(*outcome_of(&verdicts, Subject::Quote(0)), expected);
    }
}

#[test]
fn claims_are_held_against_the_accepted_record_of_the_same_machine() {
    use ClaimKind::*;
    #[rustfmt::skip]
    let table = [
        // kind, tolerance, measured, recorded, tolerance text, difference
        (Exact, "", "11542", "11542", Some("exactly 11,542 B (recorded)"), ""),
        (Exact, "", "11542.0", "11542", Some("exactly 11,542 B (recorded)"), ""),
        (Exact, "", "11543", "11542", Some("exactly 11,542 B (recorded)"), "11,543 is not the 11,542 recorded"),
        (Exact, "5%", "11543", "11542", Some("exactly 11,542 B (recorded)"), "11,543 is not the 11,542 recorded"),
        (Exact, ">= 3", "4", "4", Some("≥ 3 B; exactly 4 B (recorded)"), ""),
        (Exact, ">= 3", "5", "4", Some("≥ 3 B; exactly 4 B (recorded)"), "5 is not the 4 recorded"),
        (Exact, ">= 3", "2", "4", Some("≥ 3 B; exactly 4 B (recorded)"), "2 is 1 below 3"),
        (Bounded, "1%", "76.8", "76.12", Some("±1% of 76.12 B (recorded)"), ""),
        (Bounded, "1%", "76.9", "76.12", Some("±1% of 76.12 B (recorded)"), "76.9 is 0.0188 above 75.3588 to 76.8812"),
        (Bounded, "0.5", "76.7", "76.12", Some("±0.5 B of 76.12 B (recorded)"), "76.7 is 0.08 above 75.62 to 76.62"),
        (Bounded, ">= 3", "5", "4", Some("≥ 3 B"), ""),
        (Bounded, "", "5", "4", None, ""),
        (Noisy, "50%", "5", "4", Some("±50% of 4 B (recorded)"), ""),
        (Noisy, "1%", "5", "4", Some("±1% of 4 B (recorded)"), "5 is 0.96 above 3.96 to 4.04"),
        (Noisy, "", "5", "4", None, ""),
    ];
    for (kind, tolerance, measured, recorded, text, expected) in table {
        let mut asked = claim("x", "B", tolerance);
        asked.kind = kind;
        let article = article("", vec![asked]);
        let with = |value: &str| {
            let mut record = record("a", &[("x", value)]);
            record.claims[0].unit = Some("B".to_owned());
            record
        };
        let accepted = with(recorded);
        let context = Context {
            accepted: Some(&accepted),
            ..here()
        };
        let verdicts = judge(&article, &with(measured), &context);
        let found = verdicts
            .first()
            .map(|v| (v.tolerance.as_str(), difference(v)));
        assert_eq!(
            found,
            text.map(|text| (text, expected)),
            "{kind:?} {tolerance} {measured}"
        );
        // Against itself, or another profile's, there is nothing to compare.
        let again = Context {
            measured_here: false,
            ..context
        };
        assert!(
            judge(&article, &with(measured), &again)
                .iter()
                .all(|v| !v.tolerance.contains("recorded"))
        );
        let mut quick = with(measured);
        quick.profile = "quick".to_owned();
        assert!(
            judge(&article, &quick, &context)
                .iter()
                .all(|v| !v.tolerance.contains("recorded"))
        );
    }
}

#[test]
fn a_claim_whose_query_was_changed_is_not_held_against_its_record() {
    let article = article("", vec![claim("x", "", "")]);
    let with = |value: &str, query: Option<&str>| {
        let mut record = record("a", &[("x", value)]);
        let query = query.map(|sql| (Record::claim_query("x"), sql.to_owned()));
        record.queries.fields.extend(query);
        record
    };
    let now = with("5", Some("SELECT 5"));
    let outcome = |accepted: &Record| {
        let context = Context {
            accepted: Some(accepted),
            ..here()
        };
        judge(&article, &now, &context).remove(0).outcome
    };
    assert_eq!(
        outcome(&with("4", Some("SELECT 4"))),
        Outcome::Skipped {
            reason: "its query was changed since the record was accepted".to_owned()
        }
    );
    for same in [with("4", Some("SELECT 5")), with("4", None)] {
        assert!(matches!(outcome(&same), Outcome::DoesNotHold { .. }));
    }
}

#[test]
fn an_experiment_that_was_changed_is_not_held_against_its_record() {
    let article = article("", vec![claim("x", "", "")]);
    let with = |value: &str, fingerprint: &str| {
        let mut record = record("a", &[("x", value)]);
        record
            .experiments
            .insert("e".to_owned(), experiment(fingerprint, "a"));
        record.claims[0].reads.push("e".to_owned());
        record
    };
    let accepted = with("4", "before");
    let context = Context {
        accepted: Some(&accepted),
        ..here()
    };
    let verdicts = judge(&article, &with("5", "after"), &context);
    assert_eq!(
        verdicts[0].outcome,
        Outcome::Skipped {
            reason: "experiment `e` was changed since the record was accepted".to_owned()
        }
    );
    let verdicts = judge(&article, &with("5", "before"), &context);
    assert_eq!(difference(&verdicts[0]), "5 is not the 4 recorded");
    let limited = super::sample::article("", vec![claim("x", "", ">= 3")]);
    for (measured, expected) in [("5", ""), ("2", "2 is 1 below 3")] {
        let verdicts = judge(&limited, &with(measured, "after"), &context);
        assert_eq!(verdicts[0].tolerance, "≥ 3");
        assert_eq!(difference(&verdicts[0]), expected);
    }
}

#[test]
fn what_the_source_says_stands_beside_with_its_ratio() {
    use crate::article::Published::*;
    let number = |text: &str| Number(text.parse().unwrap());
    #[rustfmt::skip]
    let table = [
        (number("76"), "76 bytes", "76.12", "B/row", "76 B/row", Some("1.00")),
        (number("754000"), "436k", "436300", "rows/s", "754,000 rows/s", Some("0.579")),
        (number("13.1"), "12 MB", "12.1", "MB", "13.1 MB", Some("0.924")),
        (number("1048576"), "2 MB", "2097152", "B/index", "1 MB/index", Some("2")),
        (number("13100001"), "12 MB", "12582912", "B", "13,100,001 B", Some("0.961")),
        (number("0"), "0", "0", "B", "0 B", None),
        (Text("8,023,5xx".to_owned()), "8,023,5xx", "8023544", "B", "8,023,5xx", None),
        (Text("754,000".to_owned()), "436k", "436300", "rows/s", "754,000", Some("0.579")),
        (Text("2 kB".to_owned()), "1 kB", "1024", "B", "2 kB", Some("0.5")),
        (Text("faster in memory".to_owned()), "5", "5", "", "faster in memory", None),
        (Boolean(true), "so", "true", "", "true", None),
        (number("3"), "so", "true", "", "3", None),
    ];
    for (published, quote, measured, unit, text, ratio) in table {
        let mut asked = claim("x", unit, "");
        asked.published = Some(published);
        let article = article(&format!("[{quote}](claim:x)"), vec![asked]);
        let verdict = judge(&article, &record("a", &[("x", measured)]), &here()).remove(0);
        assert_eq!(verdict.published.as_deref(), Some(text));
        assert_eq!(verdict.published_ratio.as_deref(), ratio, "{text}");
    }
}

#[test]
fn what_was_measured_is_shown_in_the_quotes_unit_with_two_more_digits() {
    #[rustfmt::skip]
    let table = [
        ("76 bytes", "76.1234", "B/row", "76.12 B/row", "75.5 to 76.5 B/row (to the precision quoted)"),
        ("76", "76.1234", "", "76.12", "75.5 to 76.5 (to the precision quoted)"),
        ("0.0416", "0.04161234", "", "0.041612", "0.04155 to 0.04165 (to the precision quoted)"),
        ("754k", "754123.4", "rows/s", "754,120 rows/s", "753,500 to 754,500 rows/s (to the precision quoted)"),
        ("13.1 MB", "13806600", "B/index", "13.167 MB/index", "13.05 to 13.15 MB/index (to the precision quoted)"),
        ("65%", "0.648123", "", "64.81%", "64.5 to 65.5% (to the precision quoted)"),
        ("1.3 to 1.8 µs", "0.0015", "ms", "1.5 µs", "1.3 to 1.8 µs"),
        ("8,023,5xx", "8023544", "B", "8,023,544 B", "8,023,5xx (the digits shown)"),
        ("20 s", "0.00555", "h", "19.98 s", "19.5 to 20.5 s (to the precision quoted)"),
        ("half", "0.5", "", "0.5", "to the precision quoted"),
        ("same", "true", "", "true", "true"),
        ("76", "NULL", "B", "NULL", "75.5 to 76.5 B (to the precision quoted)"),
    ];
    for (quote, measured, unit, shown, tolerance) in table {
        let verdict = quoted(quote, measured, unit, "", Binary);
        assert_eq!(verdict.measured_text, shown, "{quote}");
        assert_eq!(verdict.tolerance, tolerance, "{quote}");
        assert_eq!(verdict.measured, value(measured));
    }
}

#[test]
fn a_verdict_that_does_not_hold_is_explained_at_its_quote() {
    let markdown = "An index costs [76 bytes](claim:x) a row.\n";
    let article = article(markdown, vec![claim("x", "B/row", "")]);
    let verdicts = judge(&article, &record("a", &[("x", "77.04")]), &here());
    let text = explain(&article, &verdicts[0]).unwrap().render(false);
    for part in [
        "error: the quote of `x` does not hold",
        "sample/article.md:1:17",
        "^^^^^^^^ measured 77.04 B/row",
        "quoted: 76 bytes",
        "measured: 77.04 B/row",
        "tolerance: 75.5 to 76.5 B/row (to the precision quoted)",
        "difference: 77.04 is 0.54 above 75.5 to 76.5",
        "hint: change the quote or the claim's tolerance",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let holds = judge(&article, &record("a", &[("x", "76")]), &here());
    assert_eq!(explain(&article, &holds[0]), None);
}

#[test]
fn a_boolean_that_does_not_hold_is_explained_with_its_query_and_value() {
    let markdown =
        "It is [free](claim:x).\n\n--| x: {kind: exact}\n\nSELECT max(a) < 1\nFROM measured.e;\n";
    let start = markdown.find("\nSELECT").unwrap();
    let mut free = claim("x", "", "");
    free.query.text.push(&markdown[start..], start);
    let article = article(markdown, vec![free]);
    let verdicts = judge(&article, &record("a", &[("x", "false")]), &here());
    for verdict in &verdicts {
        let text = explain(&article, verdict).unwrap().render(false);
        let shown = text.contains("5 | SELECT max(a) < 1") && text.contains("- this gives false");
        assert!(shown, "{text}");
    }
    assert_eq!(verdicts.len(), 2);
}

#[test]
fn hints_name_what_would_help() {
    #[rustfmt::skip]
    let table = [
        ("half", "0.5", "", "write the number into the link's text, or make the claim a comparison"),
        ("11%", "11", "", "the claim has no unit, so 1 is 100%; give it `unit: \"%\"` where its query gives percent"),
        ("24 kB", "24576", "", "the claim has no unit, so the quote's is not converted; give it a `unit:`"),
        ("76 rows", "76", "B", "quote it in B, or in a unit that converts into it"),
        ("1.2.3", "1", "", "write one numeral such as `1,234.5`, or two with `to` between them"),
        ("same", "false", "", "change what the text says, or the claim's query"),
        ("8 of 8", "true", "", "quote a claim that is true or false in words"),
        ("76", "NULL", "", "the query of the claim has to give one value"),
    ];
    for (quote, measured, unit, hint) in table {
        let article = article(&format!("[{quote}](claim:x)"), vec![claim("x", unit, "")]);
        let verdicts = judge(&article, &record("a", &[("x", measured)]), &here());
        let diagnostic = explain(&article, &verdicts[0]).unwrap();
        assert_eq!(diagnostic.hint.as_deref(), Some(hint), "{quote}");
    }
}
