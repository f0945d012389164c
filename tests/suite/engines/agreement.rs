//! That it does not matter which engine an article was measured on: values that are no machine's are
//! the same, and the servers are set up alike.

use super::pins_file;
use crate::articles;
use crate::project::Project;
use bigdecimal::BigDecimal;
use remeasure::article::{Claim, ClaimKind, Tolerance};
use remeasure::quantity::Value;
use remeasure::record::Record;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn embedded_and_docker_give_equal_values_for_every_exact_and_bounded_claim() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("articles/index-cost/article.md");
    let article = articles::read(&path);
    let text = std::fs::read_to_string(&path).unwrap();
    let (embedded, embedded_took) = measured(&text, "embedded");
    let (docker, docker_took) = measured(&text, "docker");
    let ratio = docker_took.as_secs_f64() / embedded_took.as_secs_f64();
    println!("embedded {embedded_took:.1?}, docker {docker_took:.1?}: {ratio:.3} of its time");

    let (embedded_server, docker_server) =
        (&embedded.environment.server, &docker.environment.server);
    assert_eq!(embedded_server.settings, docker_server.settings);
    assert_eq!(embedded_server.encoding, docker_server.encoding);
    assert_eq!(embedded_server.collation, docker_server.collation);
    assert_eq!(embedded_server.data_checksums, docker_server.data_checksums);

    let mut compared = 0;
    let mut differ = Vec::new();
    for claim in article
        .claims()
        .filter(|claim| claim.kind != ClaimKind::Noisy)
    {
        let name = claim.name.value.as_str();
        let values = [&embedded, &docker].map(|record| record.claims.get(name));
        let [Some(embedded), Some(docker)] = values else {
            // Of the full profile only.
            assert_eq!(values, [None, None], "{name}");
            continue;
        };
        compared += 1;
        if !agree(claim, &embedded.value, &docker.value) {
            differ.push(format!("{name}: {:?}, {:?}", embedded.value, docker.value));
        }
    }
    println!("{compared} claims are compared");
    assert!(compared > 30, "{compared}");
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// Builds the article at its quick profile; a quote that does not hold is no matter here.
fn measured(text: &str, engine: &str) -> (Record, Duration) {
    let project = Project::new(text);
    let pins = std::fs::read_to_string(pins_file()).unwrap();
    project.write("articles/pins.yaml", &pins);
    let begun = Instant::now();
    let ran = project.run(&["build", "a", "--engine", engine, "--profile", "quick"]);
    assert!([0, 3].contains(&ran.code), "{}", ran.stderr);
    (project.record(), begun.elapsed())
}

fn agree(claim: &Claim, one: &Value, other: &Value) -> bool {
    let (Value::Number(a), Value::Number(b)) = (one, other) else {
        return one == other;
    };
    let (Some(a), Some(b)) = (a.finite(), b.finite()) else {
        return one == other;
    };
    match claim.tolerance.as_ref().map(|tolerance| &tolerance.value) {
        None => a == b,
        Some(Tolerance::Relative(share)) => (a - b).abs() <= a.abs() * share,
        Some(Tolerance::Absolute(amount)) => (a - b).abs() <= *amount,
        // The limits may be those of another profile.
        Some(limits) => a == b || (within(limits, a) && within(limits, b)),
    }
}

fn within(limits: &Tolerance, value: &BigDecimal) -> bool {
    match limits {
        Tolerance::Range(low, high) => low <= value && value <= high,
        Tolerance::AtLeast(low) => low <= value,
        Tolerance::AtMost(high) => value <= high,
        Tolerance::Relative(_) | Tolerance::Absolute(_) => unreachable!("they need a quote"),
    }
}

#[test]
fn a_claim_agrees_within_its_tolerance_only() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("articles/index-cost/article.md");
    let article = articles::read(&path);
    let claim = |kind| article.claims().find(|claim| claim.kind == kind).unwrap();
    let number = |text: &str| Value::from_postgres(Some(text), "numeric");
    let exact = claim(ClaimKind::Exact);
    assert!(agree(exact, &number("7"), &number("7.0")));
    assert!(!agree(exact, &number("7"), &number("7.01")));
    let one = BigDecimal::from(1);
    let bounded = (article.claims())
        .find(|claim| {
            let tolerance = claim.tolerance.as_ref().map(|tolerance| &tolerance.value);
            matches!(tolerance, Some(Tolerance::Relative(share)) if share < &one)
        })
        .unwrap();
    assert!(agree(bounded, &number("1000"), &number("1000")));
    assert!(!agree(bounded, &number("1000"), &number("2001")));
}
