//! Records of several machines: parts of one article from two of them, and whole ones side by side.

use crate::project::Project;
use crate::shards::{ARTICLE, measured_in_parts, ok, read};
use remeasure::quantity::Value;
use remeasure::record::{Record, to_json};

/// The record as if another machine had measured it.
fn moved(mut record: Record, cpu: &str, cores: u32) -> Record {
    let host = &mut record.environment.host;
    host.cpu = cpu.to_owned();
    host.cores = cores;
    host.sha256 = host.hash();
    let sha256 = host.sha256.clone();
    for experiment in record.experiments.values_mut() {
        experiment.host.clone_from(&sha256);
    }
    record
}

fn set(record: &mut Record, claim: &str, value: &str) {
    let claim = record.claims.get_mut(claim).unwrap();
    claim.value = Value::from_postgres(Some(value), "numeric");
}

#[test]
fn parts_of_two_machines_keep_their_hosts_and_noisy_claims_are_judged_against_the_right_one() {
    let project = measured_in_parts(2);
    let parts = ["out/a/shard-1-of-2.json", "out/a/shard-2-of-2.json"];
    let elsewhere = parts
        .into_iter()
        .find(|path| read(&project, path).experiments.contains_key("times"))
        .unwrap();
    let record = moved(read(&project, elsewhere), "Big Box", 96);
    let there = record.environment.host.sha256.clone();
    project.write(elsewhere, &to_json(&record));
    let ran = ok(project.run(&["merge", parts[0], parts[1]]));
    assert!(
        ran.stdout.contains("3 experiments, 2 machines"),
        "{}",
        ran.stdout
    );
    ok(project.run(&["build", "--record", "out/a/merged.json"]));
    let record = project.record();
    for (id, experiment) in &record.experiments {
        let environment = record.environment_of(&experiment.host).unwrap();
        let is_there = environment.host.cpu == "Big Box";
        assert_eq!(is_there, id == "times" || experiment.host == there, "{id}");
    }
    let page = project.read("out/a/index.html");
    assert!(page.contains("<dt>Also on</dt>"), "{page}");
    assert!(page.contains("Big Box"));

    // Measured here again, what the other machine has of a noisy claim is shown and not judged.
    project.edit(
        "Our machine takes {{ slow }} ms.",
        "Our machine takes [0 ms](claim:slow).",
    );
    ok(project.run(&["accept", "--record", "out/a/record.json"]));
    let ran = ok(project.run(&["build"]));
    assert!(
        ran.stderr
            .contains("times    runs: measured on another machine only"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.contains("1 skipped: noisy"), "{}", ran.stdout);
}

/// A project with an accepted record, and that record.
fn accepted(text: &str) -> (Project, Record) {
    let project = Project::new(text);
    let record = project.built();
    ok(project.run(&["accept"]));
    (project, record)
}

#[test]
fn records_of_machines_stand_side_by_side_and_what_is_exact_has_to_hold_on_each() {
    let (project, record) = accepted(ARTICLE);
    let mut big = moved(record, "Big Box", 96);
    set(&mut big, "slow", "0.001");
    project.write("big.json", &to_json(&big));
    let ran = ok(project.run(&["accept", "--record", "big.json", "--as", "big"]));
    assert!(
        ran.stdout
            .starts_with("articles/a/records/big.json: accepted (3 experiments, 4 claims"),
        "{}",
        ran.stdout
    );
    ok(project.run(&["accept", "--record", "big.json", "--beside"]));
    assert!(
        project
            .path("articles/a/records/big-box-96-cores.json")
            .exists()
    );
    std::fs::remove_file(project.path("articles/a/records/big-box-96-cores.json")).unwrap();
    // The author's own stays as it is.
    assert_ne!(read(&project, "articles/a/record.json"), big);

    let ran = ok(project.run(&["build"]));
    let head = ran.stdout.lines().nth(1).unwrap();
    assert!(head.contains("  big  "), "{}", ran.stdout);
    let page = project.read("out/a/index.html");
    for part in [
        "On several machines",
        "<a href=\"#machine-big\">big</a> (Big Box) too.",
        "<th scope=\"col\" id=\"machine-big\">big</th>",
        "What differs between the machines: 1 of 4 claims",
        "The same on both machines, to the last digit: 3 claims",
        "<td>96</td>",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    let markdown = project.read("out/a/article.md");
    assert!(markdown.contains("| Claim | Author | big |"), "{markdown}");
    assert!(markdown.contains("- big: Big Box, 96 cores"), "{markdown}");
    ok(project.run(&["check", "--recorded"]));
    let status = ok(project.run(&["status"])).stdout;
    assert!(
        status.contains(
            "record of machine `big`: current, profile full, 4 claims, Big Box, 96 cores"
        ),
        "{status}"
    );

    // Counts are the same everywhere, or they are no counts.
    set(&mut big, "rows_counted", "499");
    project.write("articles/a/records/big.json", &to_json(&big));
    for command in [&["check", "--recorded"][..], &["build"]] {
        let ran = project.run(command);
        assert_eq!(ran.code, 3, "{command:?} {}", ran.stderr);
        for told in [
            "on machine `big`: the quote of `rows_counted` does not hold",
            "on machine `big`: claim `rows_counted` does not hold",
            "499 is not the 500 recorded",
        ] {
            assert!(ran.stderr.contains(told), "{told} {}", ran.stderr);
        }
    }
    let page = project.read("out/a/index.html");
    assert!(
        page.contains("<span class=\"hidden\"> (does not hold)</span><small>×0.998</small>"),
        "{page}"
    );
    let report = project.run(&["check", "--recorded", "--json"]).stdout;
    assert!(
        report.contains("on machine `big`: claim `rows_counted` does not hold"),
        "{report}"
    );
}

#[test]
fn a_record_of_a_machine_that_is_stale_or_damaged_is_told() {
    let (project, record) = accepted(ARTICLE);
    let big = to_json(&moved(record, "Big Box", 96));
    project.write("articles/a/records/big.json", &big);
    project.edit(
        "SELECT max(twice) FROM measured.times;",
        "SELECT 2 * max(n) FROM measured.times;",
    );
    ok(project.run(&["build"]));
    let page = project.read("out/a/index.html");
    assert!(
        page.contains("<small>stale: measured with other inputs</small>"),
        "{page}"
    );
    ok(project.run(&["accept"]));
    let ran = project.run(&["check", "--recorded"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let told = "on machine `big`: the record's values are stale: claim `most` changed";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    let status = project.run(&["status"]);
    assert_eq!(status.code, 5);
    assert!(status.stdout.contains(told), "{}", status.stdout);
    assert!(
        ran.stdout.contains("machine big: its record is stale"),
        "{}",
        ran.stdout
    );

    // Nothing has to be measured again for another query.
    let file = "articles/a/records/big.json";
    ok(project.run(&["build", "--record", file]));
    ok(project.run(&["accept", "--record", "out/a/record.json", "--as", "big"]));
    ok(project.run(&["check", "--recorded"]));
    assert_eq!(read(&project, file).environment.host.cpu, "Big Box");

    project.write(file, &big.replacen("\"cores\": 96", "\"cores\": 97", 1));
    let ran = project.run(&["check", "--recorded"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("the environment's `host` has no longer the hash"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_claim_of_one_machine_has_its_value_from_that_machines_record() {
    let text = ARTICLE
        .replace(
            "--| slow: {kind: noisy, unit: ms}",
            "--| slow: {kind: noisy, unit: ms, machine: big, tolerance: 1%}",
        )
        .replace(
            "SELECT max(elapsed_ms) FROM measured.times;",
            "SELECT max(elapsed_ms) FROM measured.times WHERE k = 3;",
        )
        .replace(
            "Our machine takes {{ slow }} ms.",
            "The big machine takes [42 ms](claim:slow).",
        );
    // What this machine cannot show is no mistake here.
    let (project, record) = accepted(&text);
    let ran = ok(project.run(&["build"]));
    let missing = "of machine `big`: there is no record of it, or a stale one";
    assert!(ran.stdout.contains(missing), "{}", ran.stdout);
    let ran = ok(project.run(&["check", "--recorded"]));
    assert!(ran.stdout.contains(missing), "{}", ran.stdout);

    let mut big = moved(record, "Big Box", 96);
    set(&mut big, "slow", "42.1");
    let file = "articles/a/records/big.json";
    project.write(file, &to_json(&big));
    for command in [&["build"][..], &["check", "--recorded"]] {
        let ran = ok(project.run(command));
        assert!(!ran.stdout.contains("skipped:"), "{}", ran.stdout);
        assert!(ran.stdout.contains("42.1 ms"), "{}", ran.stdout);
    }
    // What this machine measured stays its own.
    assert_eq!(project.record().claims["slow"].value, Value::Null);
    set(&mut big, "slow", "50");
    project.write(file, &to_json(&big));
    let ran = project.run(&["check", "--recorded"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("measured: 50.0 ms") || ran.stderr.contains("measured: 50 ms"),
        "{}",
        ran.stderr
    );
}
