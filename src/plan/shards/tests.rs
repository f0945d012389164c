//! How experiments are split, and what an article is of which only a part is measured.

use super::*;
use crate::judge::sample::{experiment, record};
use crate::parse::sample::article;
use crate::plan::resolve;
use crate::quantity::{Column, Table};

fn weighed(name: &str, micros: u64, fixtures: &[(&str, u64)]) -> Weighed {
    Weighed {
        article: "a".into(),
        experiment: name.into(),
        micros,
        fixtures: (fixtures.iter())
            .map(|(name, micros)| ((*name).to_owned(), *micros))
            .collect(),
    }
}

/// `a+b c`: which experiments each shard has.
fn told(experiments: &[Weighed], shards: u32) -> String {
    let names = |indexes: &Vec<usize>| {
        let names: Vec<&str> = (indexes.iter())
            .map(|&index| experiments[index].experiment.as_str())
            .collect();
        names.join("+")
    };
    let shards: Vec<String> = split(experiments, shards).iter().map(names).collect();
    shards.join(" ")
}

#[test]
fn the_longest_goes_first_and_shared_fixtures_stay_together() {
    let alone = |name, micros| weighed(name, micros, &[]);
    let big = [("big", 100)];
    let from_big = |name, micros| weighed(name, micros, &big);
    let table: &[(&[Weighed], u32, &str)] = &[
        (&[], 2, " "),
        (&[alone("a", 1)], 1, "a"),
        (&[alone("a", 1)], 3, "a  "),
        (&[alone("a", 5), alone("b", 5)], 2, "a b"),
        (&[alone("a", 1), alone("b", 9)], 2, "b a"),
        (&[alone("a", 3), alone("b", 3), alone("c", 6)], 2, "c a+b"),
        (
            &[
                alone("a", 7),
                alone("b", 6),
                alone("c", 5),
                alone("d", 4),
                alone("e", 2),
            ],
            2,
            "a+c b+d+e",
        ),
        // Built once for two that share it, as long as the rest of the work allows.
        (
            &[
                from_big("a", 10),
                from_big("b", 10),
                alone("c", 60),
                alone("d", 60),
            ],
            2,
            "a+b c+d",
        ),
        // Twice where one machine would be waited for longer.
        (&[from_big("a", 500), from_big("b", 500)], 2, "a b"),
        // Of fixtures built from one another both are there.
        (
            &[
                weighed("a", 10, &[("grown", 50), ("base", 200)]),
                weighed("b", 10, &[("base", 200)]),
                alone("c", 250),
            ],
            2,
            "a+b c",
        ),
    ];
    for (experiments, shards, expected) in table {
        assert_eq!(told(experiments, *shards), *expected, "{experiments:?}");
    }
}

/// Numbers that are the same each time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % below
    }
}

#[test]
fn any_number_of_shards_has_each_experiment_once_and_none_is_empty_without_need() {
    let mut numbers = Numbers(7);
    for _ in 0..300 {
        let count = numbers.next(30) as usize;
        let experiments: Vec<Weighed> = (0..count)
            .map(|index| {
                let fixtures = ["x", "y", "z"];
                let fixture = fixtures.get(numbers.next(5) as usize);
                let fixture: Vec<(&str, u64)> =
                    fixture.map(|name| (*name, 1_000)).into_iter().collect();
                weighed(&index.to_string(), 1 + numbers.next(5_000), &fixture)
            })
            .collect();
        let shards = 1 + numbers.next(40) as u32;
        let split = split(&experiments, shards);
        assert_eq!(split.len(), shards as usize);
        let mut all = split.concat();
        all.sort_unstable();
        assert_eq!(all, (0..count).collect::<Vec<_>>());
        let empty = split.iter().filter(|shard| shard.is_empty()).count();
        assert_eq!(empty, (shards as usize).saturating_sub(count));
        balanced(&experiments, &split);
    }
}

/// The longest shard takes no longer than a fair share, one more experiment and its fixtures twice.
fn balanced(experiments: &[Weighed], split: &[Vec<usize>]) {
    let lengths = split
        .iter()
        .map(|shard| length(shard.iter().map(|&index| &experiments[index])));
    let longest = lengths.max().unwrap_or_default();
    let one = |one: &Weighed| one.micros + one.fixtures.iter().map(|(_, f)| f).sum::<u64>();
    let most = experiments.iter().map(one).max().unwrap_or_default();
    let built: u64 = 3 * 1_000;
    let share = length(experiments) / split.len() as u64;
    assert!(longest <= share + most + built, "{longest} {share} {most}");
}

const ARTICLE: &str = r#"---
title: T
postgres: {version: "16.15"}
params: {rows: 10}
profiles: {quick: {runs: 1}}
---

```sql fixture base
SELECT 1;
```

```sql fixture grown
--| from: base
SELECT 2;
```

```sql experiment a
--| fixture: grown
--| matrix: {k: [1, 2]}
--| runs: 3
--| warmup: 1
SELECT 1;
```

```sql experiment b
--| runs: {min: 2, max: 5, until: 2%}
SELECT 1;
```

```sql experiment b_more
SELECT 1;
```

```sql claims c
--| of_a: {kind: exact}
SELECT count(*) FROM measured.a_statements;
--| of_both: {kind: exact}
SELECT (SELECT count(*) FROM measured.a) + count(*) FROM measured.b;
--| of_none: {kind: exact}
SELECT 1;
```

```sql claims d
--| of_more: {kind: exact}
SELECT count(*) FROM measured.b_more;
```

```sql table t
SELECT * FROM measured.b;
```

[1](claim:of_both) and [1](claim:of_a)
"#;

#[test]
fn weights_are_what_is_recorded_else_cells_and_runs_at_the_same_pace() {
    let article = article(ARTICLE);
    let weights = |profile, accepted: Option<&Record>| -> Vec<(u64, Basis)> {
        let resolved = resolve(&article, profile).unwrap();
        weigh(&article, &resolved, accepted)
            .into_iter()
            .map(|(one, basis)| (one.micros, basis))
            .collect()
    };
    use Basis::*;
    let second = 1_000_000;
    assert_eq!(
        weights(None, None),
        [
            (8 * second, Unknown),
            (5 * second, Unknown),
            (second, Unknown)
        ]
    );
    // A warm-up stays one in a profile that does not say otherwise.
    assert_eq!(weights(Some("quick"), None)[0], (4 * second, Unknown));
    let mut accepted = record("h", &[]);
    let mut recorded = experiment("f", "h");
    recorded.seconds = Some("16.000".into());
    accepted.experiments.insert("a".into(), recorded);
    assert_eq!(
        weights(None, Some(&accepted)),
        [
            (16 * second, Recorded),
            (10 * second, Cells),
            (2 * second, Cells)
        ]
    );
    assert_eq!(
        weights(Some("quick"), Some(&accepted))[0],
        (16 * second, OtherProfile)
    );
    // A record of before has the measured windows alone.
    let mut windows = experiment("f", "h");
    windows.measured = Table {
        columns: vec![Column {
            name: "elapsed_ms".into(),
            type_name: "double precision".into(),
        }],
        rows: ["1500.5", "499.5", "NaN"]
            .map(|text| vec![Value::from_postgres(Some(text), "double precision")])
            .into(),
    };
    accepted.experiments.insert("b_more".into(), windows);
    assert_eq!(weights(None, Some(&accepted))[2], (2 * second, Recorded));
    // A number that somebody made up is none.
    for wrong in ["", "NaN", "-1", "many", "0", "1e300", "inf"] {
        let mut recorded = experiment("f", "h");
        recorded.seconds = Some(wrong.into());
        let mut accepted = record("h", &[]);
        accepted.experiments.insert("a".into(), recorded);
        assert_eq!(weights(None, Some(&accepted))[0].1, Unknown, "{wrong}");
    }
}

#[test]
fn a_fixture_is_as_long_as_a_cell_of_those_that_start_from_it() {
    let article = article(ARTICLE);
    let resolved = resolve(&article, None).unwrap();
    let weighed = weigh(&article, &resolved, None);
    let fixtures: Vec<(&str, u64)> = (weighed[0].0.fixtures.iter())
        .map(|(name, micros)| (name.as_str(), *micros))
        .collect();
    // 8 s are two cells.
    assert_eq!(fixtures, [("grown", 4_000_000), ("base", 4_000_000)]);
    assert!(weighed[1].0.fixtures.is_empty());
}

#[test]
fn a_part_has_what_reads_its_experiments_alone_and_all_of_the_prose() {
    let article = article(ARTICLE);
    let reads = |query: &str| crate::analyse::reads(&article, query);
    for (experiments, claims, tables) in [
        (&["a"][..], &["of_a", "of_none"][..], 0),
        (&["b"], &["of_none"], 1),
        (&["a", "b"], &["of_a", "of_both", "of_none"], 1),
        (&["b_more"], &["of_none", "of_more"], 0),
        (&[], &["of_none"], 0),
    ] {
        let ids = experiments.iter().map(|id| (*id).to_owned()).collect();
        let part = part(&article, &ids, reads);
        let names: Vec<&str> = part
            .claims()
            .map(|claim| claim.name.value.as_str())
            .collect();
        assert_eq!(names, claims, "{experiments:?}");
        assert_eq!(part.tables().count(), tables, "{experiments:?}");
        assert_eq!(part.experiments().count(), experiments.len());
        assert_eq!(part.fixtures().count(), 2);
        assert_eq!(part.prose.quotes, article.prose.quotes);
    }
}

#[test]
fn a_shard_is_one_of_as_many_as_there_are() {
    for (text, expected) in [
        ("1/1", Some((1, 1))),
        ("2/3", Some((2, 3))),
        ("1000/1000", Some((1000, 1000))),
        ("0/3", None),
        ("4/3", None),
        ("1/0", None),
        ("1/1001", None),
        ("1", None),
        ("/", None),
        ("1/", None),
        ("1/2/3", None),
        ("+1/2", None),
        (" 1/2", None),
        ("-1/2", None),
        ("99999999999/2", None),
    ] {
        let shard = Shard::parse(text).ok();
        let expected = expected.map(|(shard, shards)| Shard { shard, shards });
        assert_eq!(shard, expected, "{text:?}");
    }
}
