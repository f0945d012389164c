//! What each kind of claim is judged by, on which machine.

use super::*;
use crate::judge::sample::record as record_of;

/// A column of the table below.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Measured on the accepted record's machine.
    Here,
    /// Measured on another one.
    Elsewhere,
    /// Measured, and nothing was accepted yet.
    NothingAccepted,
    /// The accepted record read again: `check --recorded`.
    RecordAlone,
}

/// `H` holds, `N` does not, `S` is skipped, `-` is not asked: of the quote, then of the claim.
fn verdicts_at(place: Place, kind: ClaimKind, tolerance: &str, value: &str) -> String {
    let is_boolean = ["true", "false"].contains(&value);
    let mut claim = claim("x", "", tolerance);
    claim.kind = kind;
    let quote = if is_boolean {
        "[so](claim:x)"
    } else {
        "[100](claim:x)"
    };
    let article = article(quote, vec![claim]);
    let of = |host: &str, value: &str| record_of(host, &[("x", value)]);
    let recorded = if is_boolean { "true" } else { "100" };
    let accepted = match place {
        Place::Here => Some(of("a", recorded)),
        Place::Elsewhere => Some(of("b", recorded)),
        Place::NothingAccepted | Place::RecordAlone => None,
    };
    let context = Context {
        profile: "full",
        accepted: accepted.as_ref(),
        measured_here: !matches!(place, Place::RecordAlone),
    };
    let verdicts = judge(&article, &of("a", value), &context);
    let letter = |subject: Subject| {
        let verdict = verdicts.iter().find(|verdict| verdict.subject == subject);
        verdict.map_or('-', |verdict| {
            let beside = verdict.recorded.is_some();
            assert_eq!(
                beside,
                matches!(place, Place::Elsewhere),
                "{place:?} {kind:?}"
            );
            match verdict.outcome {
                Outcome::Holds => 'H',
                Outcome::DoesNotHold { .. } => 'N',
                Outcome::Skipped { .. } => 'S',
            }
        })
    };
    [Subject::Quote(0), Subject::Claim]
        .map(letter)
        .iter()
        .collect()
}

#[test]
fn each_kind_is_judged_where_its_values_mean_something() {
    use ClaimKind::*;
    use Place::*;
    #[rustfmt::skip]
    let table = [
        // kind, tolerance, a value within and one outside: what becomes of either
        //                              Here          Elsewhere     NothingAccepted  RecordAlone
        (Exact,   "",       "100",  "101",   ["HH", "NN"], ["HH", "NN"], ["H-", "N-"], ["H-", "N-"]),
        (Exact,   "20%",    "100",  "130",   ["HH", "NN"], ["HH", "NN"], ["H-", "N-"], ["H-", "N-"]),
        // Within the quote's tolerance, and still not the value that is the same everywhere.
        (Exact,   "20%",    "100",  "110",   ["HH", "HN"], ["HH", "HN"], ["H-", "H-"], ["H-", "H-"]),
        (Exact,   ">= 90",  "100",  "80",    ["HH", "NN"], ["HH", "NN"], ["HH", "NN"], ["HH", "NN"]),
        (Exact,   "",       "true", "false", ["HH", "NN"], ["HH", "NN"], ["HH", "NN"], ["HH", "NN"]),
        (Bounded, "",       "100",  "101",   ["H-", "N-"], ["H-", "N-"], ["H-", "N-"], ["H-", "N-"]),
        (Bounded, "20%",    "110",  "130",   ["HH", "NN"], ["HH", "NN"], ["H-", "N-"], ["H-", "N-"]),
        (Bounded, "15",     "110",  "130",   ["HH", "NN"], ["HH", "NN"], ["H-", "N-"], ["H-", "N-"]),
        (Bounded, ">= 90",  "300",  "80",    ["HH", "NN"], ["HH", "NN"], ["HH", "NN"], ["HH", "NN"]),
        (Bounded, "<= 120", "3",    "130",   ["HH", "NN"], ["HH", "NN"], ["HH", "NN"], ["HH", "NN"]),
        (Bounded, "[90, 120]", "90", "121",  ["HH", "NN"], ["HH", "NN"], ["HH", "NN"], ["HH", "NN"]),
        (Bounded, "",       "true", "false", ["HH", "NN"], ["HH", "NN"], ["HH", "NN"], ["HH", "NN"]),
        (Noisy,   "",       "100",  "101",   ["H-", "N-"], ["S-", "S-"], ["H-", "N-"], ["H-", "N-"]),
        (Noisy,   "20%",    "110",  "130",   ["HH", "NN"], ["SS", "SS"], ["H-", "N-"], ["H-", "N-"]),
        (Noisy,   ">= 90",  "300",  "80",    ["HH", "NN"], ["SS", "SS"], ["HH", "NN"], ["HH", "NN"]),
        (Noisy,   "[90, 120]", "90", "121",  ["HH", "NN"], ["SS", "SS"], ["HH", "NN"], ["HH", "NN"]),
        (Noisy,   "",       "true", "false", ["HH", "NN"], ["SS", "SS"], ["HH", "NN"], ["HH", "NN"]),
        // No value at all is a mistake anywhere, but no machine's fault elsewhere.
        (Exact,   "",       "100",  "NULL",  ["HH", "NN"], ["HH", "NN"], ["H-", "NN"], ["H-", "NN"]),
        (Noisy,   "20%",    "110",  "NaN",   ["HH", "NN"], ["SS", "SS"], ["H-", "NN"], ["H-", "NN"]),
    ];
    let mut wrong = Vec::new();
    for (kind, tolerance, within, outside, here, elsewhere, nothing, alone) in table {
        let places = [
            (Here, here),
            (Elsewhere, elsewhere),
            (NothingAccepted, nothing),
            (RecordAlone, alone),
        ];
        for (place, expected) in places {
            for (value, expected) in [within, outside].into_iter().zip(expected) {
                let found = verdicts_at(place, kind, tolerance, value);
                if found != expected {
                    wrong.push(format!(
                        "{kind:?} {tolerance} {place:?} {value}: {found}, not {expected}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_was_recorded_elsewhere_stands_beside_as_far_as_it_can_be_compared() {
    // measured, unit now, recorded, its unit, text, ratio
    for (measured, unit, recorded, before, text, ratio) in [
        (
            "436300",
            "rows/s",
            "754123",
            "rows/s",
            "754,123 rows/s",
            "0.579",
        ),
        ("2048", "B", "1", "kB", "1 kB", "–"),
        ("5", "", "0", "", "0", "–"),
        ("0.0", "B", "0", "B", "0 B", "1"),
        ("false", "", "true", "", "true", "–"),
        ("5", "", "NULL", "", "NULL", "–"),
        ("NaN", "", "5", "", "5", "–"),
    ] {
        let article = article("[1](claim:x)", vec![claim("x", unit, "")]);
        let with = |host: &str, value: &str, unit: &str| {
            let mut record = record_of(host, &[("x", value)]);
            record.claims[0].unit = (!unit.is_empty()).then(|| unit.to_owned());
            record
        };
        let accepted = with("b", recorded, before);
        let context = Context {
            accepted: Some(&accepted),
            ..here()
        };
        let verdict = judge(&article, &with("a", measured, unit), &context).remove(0);
        let found = verdict.recorded.unwrap();
        assert_eq!((found.0.as_str(), found.1.as_str()), (text, ratio));
    }
}

#[test]
fn a_noisy_claim_that_nothing_asks_of_is_shown_beside_the_authors_where_there_is_one() {
    let outcomes = |kind: ClaimKind, accepted: Option<Record>| {
        let mut rate = claim("x", "", "");
        rate.kind = kind;
        let article = article("", vec![rate]);
        let context = Context {
            accepted: accepted.as_ref(),
            ..here()
        };
        judge(&article, &record_of("a", &[("x", "5")]), &context)
    };
    let [verdict] = &outcomes(ClaimKind::Noisy, Some(record_of("b", &[("x", "4")])))[..] else {
        panic!("one verdict");
    };
    assert!(matches!(verdict.outcome, Outcome::Skipped { .. }));
    assert_eq!(verdict.recorded, Some(("4".to_owned(), "1.25".to_owned())));
    let mut quick = record_of("b", &[("x", "4")]);
    quick.profile = "quick".to_owned();
    for (kind, accepted) in [
        (ClaimKind::Noisy, Some(record_of("a", &[("x", "4")]))),
        (ClaimKind::Noisy, Some(record_of("b", &[]))),
        (ClaimKind::Noisy, None),
        // Another profile measured something else.
        (ClaimKind::Noisy, Some(quick)),
        (ClaimKind::Bounded, Some(record_of("b", &[("x", "4")]))),
    ] {
        assert_eq!(outcomes(kind, accepted), []);
    }
}

#[test]
fn an_experiment_that_was_not_accepted_belongs_to_the_records_machine() {
    let mut rate = claim("x", "", "1%");
    rate.kind = ClaimKind::Noisy;
    let article = article("[5](claim:x)", vec![rate]);
    for (host, skipped) in [("a", false), ("b", true)] {
        let accepted = record_of(host, &[("x", "5")]);
        let mut measured = record_of("a", &[("x", "5")]);
        let of_experiment = experiment("f", "a");
        measured.experiments.insert("new".to_owned(), of_experiment);
        measured.claims[0].reads.push("new".to_owned());
        let context = Context {
            accepted: Some(&accepted),
            ..here()
        };
        let outcome = judge(&article, &measured, &context).remove(0).outcome;
        assert_eq!(
            matches!(outcome, Outcome::Skipped { .. }),
            skipped,
            "{host}"
        );
    }
}

#[test]
fn a_noisy_claim_is_judged_on_the_accepted_records_machine_alone() {
    let skipped = "noisy: of this machine, not judged here";
    let off = "436,300 is 91,500 below 527,800 to 980,200";
    #[rustfmt::skip]
    let table = [
        // kind, tolerance, accepted host, measured here, difference or reason, recorded
        (ClaimKind::Noisy, "30%", Some("b"), true, skipped, Some(("754,123 rows/s", "0.579"))),
        (ClaimKind::Noisy, ">= 500000", Some("b"), true, skipped, Some(("754,123 rows/s", "0.579"))),
        (ClaimKind::Noisy, "30%", Some("a"), true, off, None),
        (ClaimKind::Noisy, "30%", None, true, off, None),
        (ClaimKind::Noisy, "30%", Some("b"), false, off, None),
        (ClaimKind::Bounded, "30%", Some("b"), true, off, Some(("754,123 rows/s", "0.579"))),
        (ClaimKind::Exact, ">= 500000", Some("b"), true, "436,300 is 63,700 below 500,000", Some(("754,123 rows/s", "0.579"))),
    ];
    for (kind, tolerance, host, measured_here, expected, recorded) in table {
        let mut rate = claim("x", "rows/s", tolerance);
        rate.kind = kind;
        let article = article("[754,000](claim:x)", vec![rate]);
        let accepted = host.map(|host| record_of(host, &[("x", "754123")]));
        let context = Context {
            profile: "full",
            accepted: accepted.as_ref(),
            measured_here,
        };
        let verdict = judge(&article, &record("a", &[("x", "436300")]), &context).remove(0);
        assert_eq!(
            difference(&verdict),
            expected,
            "{kind:?} {tolerance} {host:?}"
        );
        let found = verdict
            .recorded
            .as_ref()
            .map(|(text, ratio)| (text.as_str(), ratio.as_str()));
        assert_eq!(found, recorded, "{kind:?} {tolerance} {host:?}");
        assert!(matches!(verdict.outcome, Outcome::Skipped { .. }) == (expected == skipped));
    }
}

#[test]
fn the_host_is_that_of_the_experiments_a_claim_reads() {
    let mut rate = claim("x", "", "1%");
    rate.kind = ClaimKind::Noisy;
    let article = article("[5](claim:x)", vec![rate]);
    let with = |host: &str| {
        let mut record = record("a", &[("x", "5")]);
        record
            .experiments
            .insert("e".to_owned(), experiment("f", host));
        record.claims[0].reads.push("e".to_owned());
        record
    };
    for (host, holds) in [("a", true), ("b", false)] {
        let accepted = with(host);
        let context = Context {
            accepted: Some(&accepted),
            ..here()
        };
        let verdicts = judge(&article, &with("a"), &context);
        assert_eq!(
            *outcome_of(&verdicts, Subject::Quote(0)) == Outcome::Holds,
            holds
        );
    }
}
