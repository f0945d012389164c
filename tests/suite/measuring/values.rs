//! Values from Postgres to the record, the CSV and the claims: exact, typed, NULL never a value.

use crate::project::{Project, built, claim, column, experiment, measured};

const NINES: &str = "9999999999999999999999999999999999999999.5";

#[test]
fn numbers_survive_from_end_to_end() {
    let project = Project::new(&format!(
        "
```sql experiment v
SELECT 0.1 + 0.2 AS decimal, 9223372036854775807 AS int8_max, {NINES} AS wide, 1.50 AS scale,
       'NaN'::numeric AS nan, 'Infinity'::numeric AS infinite, '-Infinity'::float8 AS negative,
       NULL::int AS nothing, 0.1::float8 + 0.2::float8 AS double, 1e-30 AS small, 1e300::float8 AS large,
       true AS yes, E'a, \"b\"\\nc' AS text, ''::text AS empty, '0/16B3748'::pg_lsn AS lsn;
--| derive: {{again: decimal, again_wide: wide + 1, again_null: nothing}}
```

```sql claims c
--| decimal: {{kind: exact}}
SELECT decimal FROM measured.v;
--| int8_max: {{kind: exact}}
SELECT int8_max FROM measured.v;
--| wide: {{kind: exact}}
SELECT wide FROM measured.v;
--| double: {{kind: exact}}
SELECT double FROM measured.v;
--| null_is_null: {{kind: exact}}
SELECT nothing IS NULL AND again_null IS NULL AND empty = '' FROM measured.v;
--| infinite: {{kind: exact}}
SELECT infinite = 'Infinity' AND nan = 'NaN' AND negative = '-Infinity' FROM measured.v;
--| lsn: {{kind: exact}}
SELECT lsn - '0/16B3700' FROM measured.v;
```

[0.3](claim:decimal) [9,223,372,036,854,775,807](claim:int8_max)
"
    ));
    let record = project.built();
    let expected = [
        ("decimal", "0.3", "numeric"),
        ("int8_max", "9223372036854775807", "bigint"),
        ("wide", NINES, "numeric"),
        ("scale", "1.50", "numeric"),
        ("nan", "NaN", "numeric"),
        ("infinite", "Infinity", "numeric"),
        ("negative", "-Infinity", "double precision"),
        ("nothing", "NULL", "integer"),
        ("double", "0.30000000000000004", "double precision"),
        ("small", "0.000000000000000000000000000001", "numeric"),
        ("yes", "true", "boolean"),
        ("text", "a, \"b\"\nc", "text"),
        ("empty", "", "text"),
        ("lsn", "0/16B3748", "pg_lsn"),
        ("again", "0.3", "numeric"),
        (
            "again_wide",
            "10000000000000000000000000000000000000000.5",
            "numeric",
        ),
        ("again_null", "NULL", "integer"),
    ];
    let table = &experiment(&record, "v").measured;
    for (name, value, type_name) in expected {
        assert_eq!(measured(&record, "v", name), [value], "{name}");
        let index = table.column(name).unwrap();
        assert_eq!(table.columns[index].type_name, type_name, "{name}");
    }
    let large: f64 = measured(&record, "v", "large")[0].parse().unwrap();
    assert_eq!(large, 1e300);
    for (name, value) in [
        ("decimal", "0.3"),
        ("int8_max", "9223372036854775807"),
        ("wide", NINES),
        ("double", "0.30000000000000004"),
        ("null_is_null", "true"),
        ("infinite", "true"),
        ("lsn", "72"),
    ] {
        assert_eq!(claim(&record, name), value, "{name}");
    }

    let csv = project.read("out/a/data/v.csv");
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let head = reader.headers().unwrap().clone();
    let row = reader.records().next().unwrap().unwrap();
    let cell = |name: &str| &row[head.iter().position(|column| column == name).unwrap()];
    for (name, value, _) in expected {
        let value = if value == "NULL" { "" } else { value };
        assert_eq!(cell(name), value, "{name}");
    }
}

#[test]
fn rows_are_of_the_last_statement_with_a_count() {
    let record = built(
        "
```sql experiment last
--| setup:
CREATE TABLE t (a int);
--| measure:
INSERT INTO t SELECT generate_series(1, 5);
UPDATE t SET a = a + 1 WHERE a < 3;
CHECKPOINT;
```

```sql experiment none
CREATE TABLE t (a int);
```

```sql experiment zero
--| setup:
CREATE TABLE t (a int);
--| measure:
DELETE FROM t;
```

```sql experiment many
SELECT g AS not_a_column FROM generate_series(1, 3) AS g;
```

```sql claims c
--| statements: {kind: exact}
SELECT count(*) FROM measured.last_statements;
--| inserted: {kind: exact}
SELECT rows FROM measured.last_statements WHERE statement = 1;
--| records: {kind: exact}
SELECT count > 0 FROM measured.last_wal WHERE record_type = 'Heap/INSERT';
--| total_time: {kind: exact}
SELECT abs(sum(s.elapsed_ms) - max(e.elapsed_ms)) < 0.000001
FROM measured.last_statements s, measured.last e;
```
",
    );
    assert_eq!(measured(&record, "last", "rows"), ["2"]);
    assert_eq!(measured(&record, "none", "rows"), ["NULL"]);
    assert_eq!(measured(&record, "zero", "rows"), ["0"]);
    assert_eq!(measured(&record, "many", "rows"), ["3"]);
    // Only a result of one row adds columns.
    assert!(
        experiment(&record, "many")
            .measured
            .column("not_a_column")
            .is_none()
    );
    let statements = &experiment(&record, "last").results["statements"];
    assert_eq!(column(statements, "statement"), ["1", "2", "3"]);
    assert_eq!(column(statements, "rows"), ["5", "2", "NULL"]);
    for name in ["elapsed_ms", "server_ms"] {
        for time in column(statements, name) {
            assert!(time.parse::<f64>().unwrap() > 0.0, "{name}: {time}");
        }
    }
    assert_eq!(claim(&record, "statements"), "3");
    assert_eq!(claim(&record, "inserted"), "5");
    assert_eq!(claim(&record, "records"), "true");
    assert_eq!(claim(&record, "total_time"), "true");
}

#[test]
fn medians_and_spreads_are_exact_for_every_number_type() {
    let record = built(
        "
```sql experiment e
--| cases: [{n: 1}, {n: 4}, {n: 2}, {n: 9}]
SELECT :n / 10.0 AS decimal, :n::int AS whole, :n::int8 + 9007199254740992 AS big, :n::float8 / 4 AS double,
       CASE WHEN :n > 1 THEN :n::smallint END AS small;
```

```sql claims c
--| decimal: {kind: exact}
SELECT median(decimal) FROM measured.e;
--| whole: {kind: exact}
SELECT median(whole) FROM measured.e;
--| big: {kind: exact}
SELECT median(big) FROM measured.e;
--| double: {kind: exact}
SELECT median(double) FROM measured.e;
--| small: {kind: exact}
SELECT median(small) FROM measured.e;
--| decimal_spread: {kind: exact}
SELECT spread(decimal) FROM measured.e;
--| whole_spread: {kind: exact}
SELECT spread(whole) FROM measured.e WHERE n < 9;
--| double_spread: {kind: exact}
SELECT spread(double) FROM measured.e WHERE n < 9;
--| one: {kind: exact}
SELECT spread(decimal) FROM measured.e WHERE n = 9;
```
",
    );
    let number = |name: &str| -> bigdecimal::BigDecimal { claim(&record, name).parse().unwrap() };
    let expected = |text: &str| -> bigdecimal::BigDecimal { text.parse().unwrap() };
    for (name, value) in [
        ("decimal", "0.3"),
        ("whole", "3"),
        // Beyond the doubles.
        ("big", "9007199254740995"),
        ("double", "0.75"),
        // Of 4, 2 and 9: NULL is left out.
        ("small", "4"),
        ("whole_spread", "1.5"),
        ("double_spread", "1.5"),
        ("one", "0"),
    ] {
        assert_eq!(number(name), expected(value), "{name}");
    }
    // 0.8 / 0.3
    assert!(claim(&record, "decimal_spread").starts_with("2.6666666"));
}

#[test]
fn what_no_table_can_hold_is_kept_as_text() {
    let record = built(
        "
```sql fixture src
CREATE TYPE mood AS ENUM ('good');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TABLE src AS SELECT 'good'::mood AS mood, 1::positive AS positive;
```

```sql experiment e
--| fixture: src
SELECT pg_sleep(0) AS nothing, 'src'::regclass AS class, ARRAY['src'::regclass] AS classes,
       row(1, 'a') AS record, src AS composite, mood, positive, ARRAY[1, 2] AS numbers,
       (SELECT conbin FROM pg_constraint LIMIT 1) AS tree, now() AS at, '{\"a\": 1}'::jsonb AS json,
       current_user AS name, '[1,2)'::int4range AS range, '1 day'::interval AS age
FROM src;
--| derive: {longer: age * 2, second: \"numbers[2]\", own: \"json->>'a'\"}
```

```sql claims c
--| second: {kind: exact}
SELECT second FROM measured.e;
```
",
    );
    for (name, value) in [
        ("nothing", ""),
        ("class", "src"),
        ("classes", "{src}"),
        ("record", "(1,a)"),
        ("composite", "(good,1)"),
        ("mood", "good"),
        ("positive", "1"),
        ("numbers", "{1,2}"),
        ("name", "author"),
        ("range", "[1,2)"),
        ("longer", "2 days"),
        ("own", "1"),
    ] {
        assert_eq!(measured(&record, "e", name), [value], "{name}");
    }
    assert_eq!(claim(&record, "second"), "2");
}
