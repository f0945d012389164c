//! `times_faster` and `times_more` on both pinned versions, against an independent computation: the
//! null distribution of the Mann-Whitney statistic by counting every arrangement, or as tables print it.

use crate::project::{Project, refused};
use remeasure::record::Record;
use std::fmt::Write;

/// Samples with and without a difference, with ties, of one and of many values.
const SAMPLES: &[(&[f64], &[f64])] = &[
    (&[10.0, 11.0, 12.0, 13.0], &[5.0, 5.5, 6.0, 6.5]),
    (&[10.0, 11.0, 12.0, 13.0], &[9.5, 10.5, 11.5, 12.5]),
    (&[10.0, 11.0, 12.0], &[1.0, 2.0, 3.0]),
    (&[10.0, 11.0, 12.0], &[1.0, 2.0, 3.0, 4.0, 5.0]),
    (&[7.0], &[2.0, 2.0]),
    (
        &[3.0, 1.0, 2.0, 5.0, 4.0, 9.0],
        &[2.5, 2.5, 2.5, 1.25, 3.0, 3.5],
    ),
    (
        &[0.25, 0.5, 0.375, 0.3125, 0.4375, 0.5625, 0.28125],
        &[0.5, 1.0, 0.75, 0.625, 0.875],
    ),
    (&[4.0; 5], &[2.0; 5]),
    (
        &[1e-9, 2e-9, 3e-9, 4e-9, 5e-9],
        &[100.0, 200.0, 300.0, 400.0, 500.0],
    ),
];

/// Two-tailed critical values at 5 % as textbooks print them: no difference is rejected where U is
/// this or less. The interval's ends are then the ratios of the next rank.
const CRITICAL: &[(usize, usize, usize)] = &[
    (4, 4, 0),
    (5, 5, 2),
    (8, 8, 13),
    (10, 10, 23),
    (10, 20, 55),
    (15, 15, 64),
    (20, 20, 127),
];

/// The largest k with 2 P(U < k) ≤ 5 %, every way of drawing m of m + n places counted.
fn rank(m: usize, n: usize) -> usize {
    let mut counts = vec![0_u64; m * n + 1];
    for chosen in 0_u32..1 << (m + n) {
        if chosen.count_ones() as usize != m {
            continue;
        }
        let places = (0..m + n).filter(|place| chosen >> place & 1 == 1);
        let sum: usize = places.map(|place| place + 1).sum();
        counts[sum - m * (m + 1) / 2] += 1;
    }
    let all: u64 = counts.iter().sum();
    let below = |k: usize| counts[..k].iter().sum::<u64>();
    (0..=m * n).rfind(|&k| 40 * below(k) <= all).unwrap()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

/// Ratio and interval.
fn expected(first: &[f64], second: &[f64]) -> [f64; 3] {
    let mut ratios: Vec<f64> = (first.iter())
        .flat_map(|x| second.iter().map(move |y| x / y))
        .collect();
    ratios.sort_by(f64::total_cmp);
    let ratio = median(first) / median(second);
    match rank(first.len(), second.len()) {
        0 => [ratio, 0.0, f64::INFINITY],
        k => [
            ratio,
            ratios[k - 1].min(ratio),
            ratios[ratios.len() - k].max(ratio),
        ],
    }
}

fn found(record: &Record, claim: &str) -> [f64; 3] {
    let record = &record.claims[claim];
    assert_eq!(record.type_name, "comparison");
    let (low, high) = &record.comparison.as_ref().unwrap().interval;
    [
        record.value.number().unwrap().to_f64(),
        low.to_f64(),
        high.to_f64(),
    ]
}

fn near(one: f64, other: f64) -> bool {
    one == other || ((one - other) / other).abs() < 1e-12
}

fn article(version: &str, claims: &str) -> Project {
    Project::new(&format!(
        "---\ntitle: T\npostgres: {{version: \"{version}\"}}\n---\n\n```sql claims c\n{claims}```\n"
    ))
}

fn intervals_are_those_of_the_mann_whitney_test(version: &str) {
    let mut claims = String::new();
    for (index, (first, second)) in SAMPLES.iter().enumerate() {
        let _ = writeln!(
            claims,
            "--| arrays_{index}: {{kind: noisy}}\nSELECT times_faster(ARRAY{first:?}, ARRAY{second:?}::float8[]);\n\
             --| rows_{index}: {{kind: noisy}}\nSELECT times_more(v, is_more) FROM (\
             SELECT v::float8, true AS is_more FROM unnest(ARRAY{first:?}) AS v UNION ALL \
             SELECT v, false FROM unnest(ARRAY{second:?}) AS v UNION ALL VALUES (NULL, true), (5, NULL)) AS s;"
        );
    }
    for (m, n, _) in CRITICAL {
        // All ratios differ, so that each rank is another ratio.
        let _ = writeln!(
            claims,
            "--| critical_{m}_{n}: {{kind: noisy}}\nSELECT times_more(\
             (SELECT array_agg(1 + g) FROM generate_series(0, {m} - 1) AS g), \
             (SELECT array_agg(1 + g / 10000.0) FROM generate_series(1, {n}) AS g));"
        );
    }
    let record = article(version, &claims).run_and_read();
    for (index, (first, second)) in SAMPLES.iter().enumerate() {
        let expected = expected(first, second);
        for form in ["arrays", "rows"] {
            let found = found(&record, &format!("{form}_{index}"));
            let same = found.iter().zip(expected).all(|(f, e)| near(*f, e));
            assert!(same, "{form}_{index}: {found:?}, not {expected:?}");
            let comparison = record.claims[&format!("{form}_{index}")]
                .comparison
                .as_ref();
            let runs = (first.len() as u32, second.len() as u32);
            assert_eq!(comparison.unwrap().runs, runs);
        }
    }
    for &(m, n, critical) in CRITICAL {
        let mut ratios: Vec<f64> = (1..=m)
            .flat_map(|x| (1..=n).map(move |y| x as f64 / (1.0 + y as f64 / 10000.0)))
            .collect();
        ratios.sort_by(f64::total_cmp);
        let [_, low, high] = found(&record, &format!("critical_{m}_{n}"));
        assert!(near(low, ratios[critical]), "{m} {n}: {low}");
        assert!(near(high, ratios[m * n - 1 - critical]), "{m} {n}: {high}");
    }
}

impl Project {
    /// Claims that do not hold are recorded too.
    fn run_and_read(&self) -> Record {
        let ran = self.build();
        assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
        self.record()
    }
}

#[test]
fn intervals_are_those_of_the_mann_whitney_test_on_16_15() {
    intervals_are_those_of_the_mann_whitney_test("16.15");
}

#[test]
fn intervals_are_those_of_the_mann_whitney_test_on_18_6() {
    intervals_are_those_of_the_mann_whitney_test("18.6");
}

#[test]
fn beyond_twenty_against_twenty_the_rank_is_within_one_of_the_exact_one() {
    // Exact ranks by the recursion over the largest value, N(u; m, n) = N(u - n; m - 1, n) + N(u; m, n - 1).
    fn exact(m: usize, n: usize) -> usize {
        let mut rows = vec![vec![1.0_f64]; n + 1];
        for m in 1..=m {
            let before = rows.clone();
            for n in 0..=n {
                let mut counts = vec![0.0; m * n + 1];
                for (u, count) in before[n].iter().enumerate() {
                    counts[u + n] += count;
                }
                if n > 0 {
                    for (u, count) in rows[n - 1].iter().enumerate() {
                        counts[u] += count;
                    }
                }
                rows[n] = counts;
            }
        }
        let counts = &rows[n];
        let all: f64 = counts.iter().sum();
        (0..=m * n)
            .rfind(|&k| 40.0 * counts[..k].iter().sum::<f64>() <= all)
            .unwrap()
    }
    let sizes = [(21, 20), (25, 25), (40, 11), (7, 60), (30, 45)];
    let mut claims = String::new();
    for (m, n) in sizes {
        let _ = writeln!(
            claims,
            "--| rank_{m}_{n}: {{kind: exact}}\nSELECT comparison_rank({m}, {n});"
        );
    }
    let record = article("16.15", &claims).built();
    for (m, n) in sizes {
        let rank: f64 = record.claims[&format!("rank_{m}_{n}")]
            .value
            .number()
            .unwrap()
            .to_f64();
        let exact = exact(m, n) as f64;
        assert!(
            (exact - 1.0..=exact).contains(&rank),
            "{m} {n}: {rank}, exact {exact}"
        );
    }
}

#[test]
fn fields_stay_accessible_and_what_has_no_ratio_is_refused() {
    let record = article(
        "16.15",
        "--| surely: {kind: exact}\n\
         SELECT (times_faster(ARRAY[10, 11, 12, 13], ARRAY[5, 5, 6, 6])).low > 1.5;\n\
         --| runs: {kind: exact}\n\
         SELECT (times_more(g, g > 10)).second_runs FROM generate_series(1, 14) AS g;\n",
    )
    .built();
    assert_eq!(record.claims["surely"].value.to_string(), "true");
    assert_eq!(record.claims["runs"].value.to_string(), "10");
    assert_eq!(record.claims["runs"].comparison, None);
    let said = refused(
        "
```sql claims c
--| of_zero: {kind: noisy}
SELECT times_more(ARRAY[1, 2, 3, 4], ARRAY[0, 1, 2, 3]);
--| of_none: {kind: noisy}
SELECT times_faster(g, g > 10) FROM generate_series(1, 8) AS g;
--| of_too_many: {kind: noisy}
SELECT times_faster(g, g > 1001) FROM generate_series(1, 2002) AS g;
```
",
        2,
    );
    for expected in [
        "only values above zero have a ratio to compare",
        "claim `of_none` gives NULL: one of the two that it compares has no runs",
        "1001 values against 1001 are too many to compare",
        "compare runs, 1,000 against 1,000 at most",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
}
