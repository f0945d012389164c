//! A ratio with an interval: what quotes and claims make of it.

use super::*;
use crate::judge::sample::record as record_of;
use crate::record::{Comparison, Record};

/// A record of a comparison `x`.
fn compared(ratio: &str, low: &str, high: &str, runs: (u32, u32)) -> Record {
    let mut record = record_of("a", &[("x", ratio)]);
    let number = |text: &str| text.parse().unwrap();
    record.claims[0].comparison = Some(Comparison {
        interval: (number(low), number(high)),
        runs,
    });
    record
}

const NONE: &str =
    "the 95 % interval 0.97 to 1.08 includes 1: no difference was measured (4 runs each)";
const UNIT: &str = "a comparison is a ratio: its unit is ×, not %";
const TOO_FEW: &str = "3 and 8 runs are too few for a 95 % interval: no difference was measured";
const OTHER_WAY: &str =
    "the 95 % interval 0.4 to 0.6 lies below 1: it is the other way round (8 runs each)";

#[test]
fn a_quote_holds_only_where_a_difference_was_measured() {
    let faster = || compared("1.93", "1.8", "2.06", (8, 8));
    let same = || compared("1.02", "0.97", "1.08", (4, 4));
    let few = || compared("5", "0", "Infinity", (3, 8));
    let slower = || compared("0.5", "0.4", "0.6", (8, 8));
    #[rustfmt::skip]
    let table = [
        // quote, record, unit, tolerance, of the quote, of the claim
        ("faster", faster(), "", "", "", ""),
        ("faster", same(), "", "", NONE, NONE),
        ("faster", few(), "", "", TOO_FEW, TOO_FEW),
        ("faster", slower(), "", "", OTHER_WAY, ""),
        ("1.9 times faster", faster(), "", "", "", ""),
        ("1.9×", faster(), "x", "", "", ""),
        ("2×", faster(), "", "", "", ""),
        ("2.5×", faster(), "", "", "1.93 is 0.52 below 2.45 to 2.55", ""),
        ("2.5×", faster(), "", "50%", "", ""),
        ("twice", faster(), "", "", "", ""),
        ("1.02×", same(), "", "", NONE, NONE),
        ("1×", same(), "", "50%", NONE, NONE),
        ("5×", few(), "", "", TOO_FEW, TOO_FEW),
        ("half", slower(), "", "", OTHER_WAY, ""),
        ("0.5×", slower(), "", "", "", ""),
        ("50%", slower(), "", "", "", ""),
        ("8 ms", faster(), "", "", "quoted in ms, the claim is in ×", ""),
        ("2×", faster(), "", ">= 1.5", "", ""),
        ("1.93", faster(), "%", "", UNIT, UNIT),
        ("faster", faster(), "%", "", UNIT, UNIT),
        ("1.93", faster(), "ratio", "", "", ""),
        ("2×", faster(), "", ">= 1.95", "1.93 is 0.02 below 1.95", "1.93 is 0.02 below 1.95"),
        ("1×", same(), "", ">= 1", NONE, NONE),
        // An end that touches 1 is no difference.
        ("faster", compared("1.5", "1", "2", (8, 8)), "", "", "the 95 % interval 1 to 2 includes 1: no difference was measured (8 runs each)", "the 95 % interval 1 to 2 includes 1: no difference was measured (8 runs each)"),
        ("faster", compared("1.5", "1.0000000000001", "2", (8, 8)), "", "", "", ""),
    ];
    for (text, record, unit, tolerance, of_quote, of_claim) in table {
        let article = article(
            &format!("[{text}](claim:x)"),
            vec![claim("x", unit, tolerance)],
        );
        let verdicts = judge(&article, &record, &here());
        let found: Vec<&str> = verdicts.iter().map(difference).collect();
        assert_eq!(found, [of_quote, of_claim], "{text} {tolerance}");
    }
}

#[test]
fn what_is_asked_of_a_comparison_is_told() {
    let of = |quote: &str, tolerance: &str| -> Vec<String> {
        let article = article(
            &format!("[{quote}](claim:x)"),
            vec![claim("x", "", tolerance)],
        );
        let verdicts = judge(&article, &compared("1.93", "1.8", "2.06", (8, 8)), &here());
        assert!(verdicts.iter().all(|v| v.measured_text.starts_with("1.93")));
        verdicts.into_iter().map(|v| v.tolerance).collect()
    };
    assert_eq!(
        of("faster", ""),
        ["a 95 % interval above 1", "a 95 % interval without 1"]
    );
    assert_eq!(
        of("2×", ">= 1.5"),
        ["≥ 1.5×", "a 95 % interval without 1; ≥ 1.5×"]
    );
}

#[test]
fn a_comparison_is_as_recorded_within_its_tolerance_and_exactly_only_where_it_can_be() {
    use ClaimKind::*;
    let sure = |ratio: &str| compared(ratio, ratio, ratio, (4, 4));
    let times = |ratio: &str| compared(ratio, "1.5", "9", (4, 4));
    #[rustfmt::skip]
    let table = [
        (Exact, "", times("2.1"), times("2"), ""),
        (Exact, "", sure("2.1"), sure("2"), "2.1 is not the 2 recorded"),
        (Bounded, "10%", times("2.1"), times("2"), ""),
        (Bounded, "10%", times("2.3"), times("2"), "2.3 is 0.1 above 1.8 to 2.2"),
        (Noisy, "10%", times("2.3"), times("2"), "2.3 is 0.1 above 1.8 to 2.2"),
    ];
    for (kind, tolerance, measured, accepted, expected) in table {
        let mut asked = claim("x", "", tolerance);
        asked.kind = kind;
        let article = article("", vec![asked]);
        let context = Context {
            accepted: Some(&accepted),
            ..here()
        };
        let verdicts = judge(&article, &measured, &context);
        assert_eq!(difference(&verdicts[0]), expected, "{kind:?} {tolerance}");
    }
}

#[test]
fn a_noisy_comparison_of_another_machine_is_never_failed_and_any_other_is_judged() {
    let accepted = record_of("b", &[("x", "3")]);
    let context = Context {
        accepted: Some(&accepted),
        ..here()
    };
    for (kind, expected) in [
        (ClaimKind::Noisy, "noisy: of this machine, not judged here"),
        (ClaimKind::Bounded, NONE),
        (ClaimKind::Exact, NONE),
    ] {
        let mut faster = claim("x", "", "");
        faster.kind = kind;
        let article = article("[faster](claim:x)", vec![faster]);
        let record = compared("1.02", "0.97", "1.08", (4, 4));
        for verdict in judge(&article, &record, &context) {
            assert_eq!(difference(&verdict), expected);
            let recorded = verdict.recorded.as_ref();
            assert_eq!(recorded.map(|(text, _)| text.as_str()), Some("3×"));
        }
    }
}

#[test]
fn hints_say_how_to_come_to_a_difference() {
    #[rustfmt::skip]
    let table = [
        (compared("1.02", "0.97", "1.08", (4, 4)), "raise `runs` of what it compares, or say that there is no difference"),
        (compared("5", "0", "Infinity", (3, 8)), "raise `runs` of what it compares to 4 or more; from 8 on the interval is narrower"),
        (compared("0.5", "0.4", "0.6", (8, 8)), "compare the two the other way round, or change what the text says"),
    ];
    let article = article("[faster](claim:x)", vec![claim("x", "", "")]);
    for (record, hint) in table {
        let verdicts = judge(&article, &record, &here());
        let diagnostic = explain(&article, &verdicts[0]).unwrap();
        assert_eq!(diagnostic.hint.as_deref(), Some(hint));
        let percent = super::article("[faster](claim:x)", vec![claim("x", "%", "")]);
        let verdicts = judge(&percent, &record, &here());
        let wrong_unit = explain(&percent, &verdicts[0]).unwrap().hint.unwrap();
        assert!(wrong_unit.starts_with("leave the claim's `unit` out"));
        let interval = record.claims[0].comparison.as_ref().unwrap().text();
        let told = diagnostic.notes.iter().any(|note| note.contains(&interval));
        assert!(told, "{:?}", diagnostic.notes);
    }
}
