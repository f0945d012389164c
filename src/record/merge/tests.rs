//! What can be joined, what comes of it, and what is told where it cannot.

use super::*;
use crate::record::{Fingerprint, HostEnvironment, Part, parse_record};

const IDS: [&str; 3] = ["a", "b", "c"];

fn environment(cpu: &str) -> Environment {
    let mut environment = Environment::default();
    environment.server.version = "16.15".into();
    environment.server.sha256 = environment.server.hash();
    environment.host = HostEnvironment {
        cpu: cpu.into(),
        cores: 2,
        memory_bytes: "1073741824".into(),
        kernel: "Linux 6".into(),
        ..HostEnvironment::default()
    };
    environment.host.sha256 = environment.host.hash();
    environment.tool.version = "0.1.0".into();
    environment.tool.protocol = 1;
    environment.tool.sha256 = environment.tool.hash();
    environment
}

/// What shard `shard` of three measured on that machine.
fn part(shard: u32, cpu: &str, experiments: &[&str]) -> Named {
    let mut record = Record {
        format: FORMAT,
        article: "sample".into(),
        profile: "full".into(),
        environment: environment(cpu),
        part: Some(Part {
            shard,
            shards: 3,
            experiments: IDS.map(str::to_owned).into(),
        }),
        ..Record::default()
    };
    record.params.insert("rows".into(), "10".into());
    for id in experiments {
        let fields = [
            ("measure", format!("SELECT '{id}'")),
            ("param `rows`", "10".to_owned()),
            ("protocol", "1".to_owned()),
            ("seed", "0".to_owned()),
            ("server", "16.15 embedded sha256:ab".to_owned()),
        ];
        let inputs = Fingerprint {
            fields: fields.map(|(name, value)| (name.to_owned(), value)).into(),
        };
        let experiment = ExperimentRecord {
            fingerprint: inputs.sha256(),
            inputs,
            host: record.environment.host.sha256.clone(),
            measured_at: "2026-11-30T10:00:00Z".into(),
            seconds: None,
            settings: BTreeMap::new(),
            summaries: Vec::new(),
            doubts: Vec::new(),
            derived: Vec::new(),
            measured: Default::default(),
            results: IndexMap::new(),
        };
        record.experiments.insert((*id).to_owned(), experiment);
    }
    Named {
        name: format!("{shard}.json"),
        record,
    }
}

fn parts() -> [Named; 3] {
    [
        part(1, "EPYC", &["c"]),
        part(2, "Xeon", &["a"]),
        part(3, "EPYC", &["b"]),
    ]
}

fn conflicts(records: &[Named]) -> Vec<String> {
    match merge(records) {
        Err(Refusal::Conflicts(conflicts)) => {
            conflicts.into_iter().map(|one| one.message).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn parts_become_a_record_that_is_the_same_in_any_order() {
    let parts = parts();
    let merged = merge(&parts).unwrap();
    assert!(merged.notes.is_empty());
    let record = &merged.record;
    // In the order of the document.
    assert!(record.experiments.keys().eq(IDS));
    assert_eq!(record.part, None);
    assert_eq!(record.environment.host.cpu, "EPYC");
    // The other host is told of, and leads from its experiment.
    let there = &record.experiments["a"].host;
    assert_eq!(record.environment_of(there).unwrap().host.cpu, "Xeon");
    assert_eq!(record.environments.len(), 1);
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let mut shuffled = order.map(|index| parts[index].clone());
        for (number, named) in shuffled.iter_mut().enumerate() {
            named.name = format!("other-{number}");
        }
        let again = merge(&shuffled).unwrap().record;
        assert_eq!(to_json(&again), to_json(record), "{order:?}");
    }
    // The same part twice is one, and what is written can be read.
    let [one, two, three] = parts;
    let twice = merge(&[one.clone(), two, three, one]).unwrap().record;
    assert_eq!(twice, *record);
    let read = parse_record("merged.json", &to_json(record)).unwrap();
    assert_eq!(read, *record);
}

#[test]
fn an_environment_of_another_host_is_sealed_too() {
    let json = to_json(&merge(&parts()).unwrap().record);
    let edited = json.replace("\"cpu\": \"Xeon\"", "\"cpu\": \"Zeon\"");
    assert_ne!(edited, json);
    let problem = parse_record("merged.json", &edited).unwrap_err();
    assert!(problem.message.contains("heading"), "{}", problem.message);
    let tool = json.rfind("\"version\": \"0.1.0\"").unwrap();
    let edited = format!(
        "{}{}",
        &json[..tool],
        json[tool..].replacen("0.1.0", "0.1.1", 1)
    );
    let problem = parse_record("merged.json", &edited).unwrap_err();
    assert!(problem.message.contains("`tool`"), "{}", problem.message);
}

#[test]
fn of_equally_many_experiments_the_first_hash_is_the_records() {
    let two = [part(1, "EPYC", &["a"]), part(2, "Xeon", &["b", "c"])];
    assert_eq!(merge(&two).unwrap().record.environment.host.cpu, "Xeon");
    let mut three = parts();
    three[2] = part(3, "ARM", &["b"]);
    let record = merge(&three).unwrap().record;
    let hosts: Vec<&String> = record.environments.keys().collect();
    assert_eq!(hosts.len(), 2);
    assert!(record.environment.host.sha256 < *hosts[0]);
}

#[test]
fn what_is_missing_is_told_with_its_shard() {
    let [one, two, _] = parts();
    let Err(Refusal::Incomplete(missing)) = merge(&[one, two]) else {
        panic!("it is whole")
    };
    assert!(missing.message.ends_with("no record has experiment `b`"));
    assert_eq!(missing.notes, ["there is no part of shard 3/3"]);
}

#[test]
fn a_whole_record_alone_stays_as_it_is() {
    let whole = merge(&parts()).unwrap().record;
    let named = |name: &str| Named {
        name: name.into(),
        record: whole.clone(),
    };
    assert_eq!(merge(&[named("x")]).unwrap().record, whole);
    assert_eq!(merge(&[named("x"), named("y")]).unwrap().record, whole);
}

#[test]
fn of_two_results_of_one_machine_the_later_counts() {
    let [one, two, three] = parts();
    let mut again = part(1, "EPYC", &["c"]);
    again.name = "again.json".into();
    let experiment = &mut again.record.experiments["c"];
    experiment.measured_at = "2026-11-30T11:00:00Z".into();
    experiment.seconds = Some("1.000".into());
    let later = experiment.clone();
    for records in [
        [one.clone(), two.clone(), three.clone(), again.clone()],
        [again.clone(), one.clone(), two.clone(), three.clone()],
    ] {
        let merged = merge(&records).unwrap();
        assert_eq!(merged.record.experiments["c"], later);
        let [note] = merged.notes.as_slice() else {
            panic!("{:?}", merged.notes)
        };
        assert!(
            note.contains("the later result counts, of 2026-11-30T11"),
            "{note}"
        );
    }
    // Which is later nobody can tell.
    again.record.experiments["c"].measured_at = "2026-11-30T10:00:00Z".into();
    let told = conflicts(&[one, two, three, again]);
    assert!(
        told[0].contains("two results that began in the same second"),
        "{told:?}"
    );
}

#[test]
fn what_does_not_belong_together_is_told_with_what_differs() {
    type Edit = fn(&mut Record);
    let table: &[(Edit, &[&str])] = &[
        (
            |record| record.article = "other".into(),
            &["article `sample` in one, `other` in the other"],
        ),
        (
            |record| record.profile = "quick".into(),
            &["profile `full` in one, `quick` in the other"],
        ),
        (
            |record| record.environment.tool.version = "0.2.0".into(),
            &["remeasure `0.1.0` in one, `0.2.0` in the other"],
        ),
        (
            |record| record.environment.tool.protocol = 2,
            &["protocol `1` in one, `2` in the other"],
        ),
        (
            |record| {
                record.params.insert("rows".into(), "20".into());
            },
            &["params `{rows: 10}` in one, `{rows: 20}` in the other"],
        ),
        (
            |record| set(record, "a", "seed", "0.5"),
            &["were measured with other inputs: seed changed from `0` to `0.5`"],
        ),
        (
            |record| set(record, "a", "server", "16.15 docker sha256:cd"),
            &["server changed from `16.15 embedded sha256:ab` to `16.15 docker sha256:cd`"],
        ),
        // An experiment's own: nothing else has it.
        (|record| set(record, "a", "measure", "SELECT 1"), &[]),
        (
            |record| {
                let part = record.part.as_mut().unwrap();
                part.experiments.push("d".into());
            },
            &["one has the experiments a, b, c, the other a, b, c, d"],
        ),
        (
            |record| {
                let other = record.experiments["a"].clone();
                record.experiments.insert("z".into(), other);
            },
            &["experiment `z` is none of the article's a, b, c"],
        ),
        (
            |record| record.experiments["a"].host = "ff".into(),
            &["what the machine is that experiment `a` was measured on"],
        ),
    ];
    for (index, (edit, expected)) in table.iter().enumerate() {
        let mut records = parts();
        edit(&mut records[1].record);
        if expected.is_empty() {
            assert!(merge(&records).is_ok(), "{index}");
            continue;
        }
        let told = conflicts(&records).join("\n");
        let either = |text: &&str| told.contains(*text) || told.contains(&turned(text));
        assert!(expected.iter().all(either), "{index}: {told}");
    }
}

/// The records are told in the order of their content, whichever that is.
fn turned(text: &str) -> String {
    let swap = |text: &str, between: &str| {
        let mut parts = text.splitn(3, '`');
        let (head, first, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let (middle, second) = rest.split_once('`')?;
        let (second, tail) = second.split_once('`')?;
        (middle == between).then(|| format!("{head}`{second}`{between}`{first}`{tail}"))
    };
    swap(text, " in one, ")
        .or_else(|| swap(text, " to "))
        .unwrap_or_else(|| match text.split_once(", the other ") {
            Some((one, other)) => {
                let (head, one) = one.rsplit_once("experiments ").unwrap_or_default();
                format!("{head}experiments {other}, the other {one}")
            }
            None => text.to_owned(),
        })
}

fn set(record: &mut Record, id: &str, input: &str, value: &str) {
    let experiment = &mut record.experiments[id];
    let fields = &mut experiment.inputs.fields;
    fields.insert(input.to_owned(), value.to_owned());
    experiment.fingerprint = experiment.inputs.sha256();
}

#[test]
fn one_experiment_of_two_machines_or_two_texts_is_refused() {
    let [one, two, three] = parts();
    let elsewhere = part(1, "ARM", &["c"]);
    let told = conflicts(&[one.clone(), two.clone(), three.clone(), elsewhere]);
    assert!(
        told[0].contains("experiment `c` was measured on two machines"),
        "{told:?}"
    );
    let mut other = part(1, "EPYC", &["c"]);
    set(&mut other.record, "c", "measure", "SELECT 2");
    let told = conflicts(&[one, two, three, other]);
    assert!(
        told[0].contains("have measured other things as experiment `c`: measure changed"),
        "{told:?}"
    );
}

#[test]
fn one_machine_has_one_server() {
    let mut records = parts();
    let server = &mut records[2].record.environment.server;
    server.libc = "musl".into();
    server.sha256 = server.hash();
    let told = conflicts(&records);
    assert!(
        told[0].contains("of one machine and two servers: libc changed"),
        "{told:?}"
    );
    // Nor has it two of another version of the article.
    let mut records = parts();
    for (at, libc) in [(0, "glibc"), (2, "musl")] {
        let environment = &mut records[at].record.environment;
        let mut server = environment.server.clone();
        server.version = "18.6".into();
        server.libc = libc.into();
        server.sha256 = server.hash();
        environment.other_servers.insert("18.6".into(), server);
    }
    let told = conflicts(&records).join("\n");
    assert!(
        told.contains("of one machine and two servers: libc changed"),
        "{told}"
    );
    // Why an engine was chosen is another matter each time.
    let mut records = parts();
    records[2].record.environment.server.engine_reason = "asked for".into();
    assert!(merge(&records).is_ok());
}
