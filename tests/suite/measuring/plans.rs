//! `explain` against what Postgres prints when it is asked by hand, and against arithmetic.

use crate::project::{built, column, experiment, measured, refused};

const VERSIONS: [&str; 2] = ["16.15", "18.6"];

fn front(version: &str) -> String {
    format!(
        "---
title: T
postgres: {{version: \"{version}\", settings: {{autovacuum: off}}}}
---

```sql fixture src
CREATE TABLE t (id int PRIMARY KEY, k int, note text);
CREATE TABLE u (id int, k int);
INSERT INTO t SELECT g, g % 100, md5(g::text) FROM generate_series(1, 20000) AS g;
INSERT INTO u SELECT g, g % 50 FROM generate_series(1, 500) AS g;
CREATE INDEX ON t (k);
VACUUM ANALYZE;
```
"
    )
}

#[test]
fn the_plan_in_words_is_what_postgres_prints() {
    let queries = [
        ("aggregate", "SELECT count(*) FROM t WHERE id <= 2001"),
        ("spilled", "SELECT id, note FROM t ORDER BY note"),
        ("top", "SELECT id, note FROM t ORDER BY note LIMIT 10"),
        (
            "joined",
            "SELECT t.k, count(*) FROM t JOIN u ON t.id = u.id AND t.note <> '' \
             LEFT JOIN u AS w ON w.k = t.k AND w.id = 3 GROUP BY t.k HAVING count(*) > 0",
        ),
        ("bitmap", "SELECT * FROM t WHERE k = 7 AND note LIKE '%ab%'"),
        (
            "parts",
            "WITH c AS MATERIALIZED (SELECT k, count(*) AS n FROM t GROUP BY k) \
             SELECT * FROM c WHERE k < (SELECT max(k) FROM u) AND EXISTS (SELECT 1 FROM u WHERE u.k = c.k) \
             ORDER BY n, k DESC LIMIT 5",
        ),
        (
            "sets",
            "SELECT k FROM t WHERE id < 500 EXCEPT SELECT g FROM generate_series(1, 30) AS g \
             UNION ALL (VALUES (1), (2))",
        ),
        (
            "windowed",
            "SELECT id, sum(k) OVER (ORDER BY id) FROM u FULL JOIN (SELECT 1 AS one) AS o ON o.one = u.id",
        ),
        ("nothing", "SELECT * FROM t WHERE false"),
    ];
    for version in VERSIONS {
        let experiments: String = queries
            .iter()
            .map(|(id, query)| {
                format!(
                    "
```sql experiment {id}
--| fixture: src
--| warmup: 2
--| session: {{work_mem: 64kB, max_parallel_workers_per_gather: 0, jit: off}}
--| instruments: [explain]
--| measure:
{query};
--| collect: {{as: by_hand, in: subject}}
EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF) {query};
```
"
                )
            })
            .collect();
        let record = built(&format!("{}{experiments}", front(version)));
        for (id, _) in queries {
            let results = &experiment(&record, id).results;
            let by_hand = column(&results["by_hand"], "QUERY PLAN");
            let text = &column(&results["explain"], "text")[0];
            let told: Vec<&str> = text
                .lines()
                .filter(|line| !line.starts_with("Planning Time") && !line.starts_with("Execution"))
                .collect();
            assert_eq!(told, by_hand, "{version}: {id}");
        }
    }
}

/// The trap of the thirteen measurements: the plan is the same before VACUUM and after.
#[test]
fn heap_fetches_and_buffers_are_those_of_the_scan() {
    for version in VERSIONS {
        let record = built(&format!(
            "{}
```sql experiment scan
--| fixture: src
--| matrix: {{vacuum: [false, true]}}
--| warmup: 1
--| runs: 2
--| session: {{max_parallel_workers_per_gather: 0}}
--| instruments: [explain]
--| setup:
CREATE TABLE fresh (id bigint PRIMARY KEY, pad text);
INSERT INTO fresh SELECT g, repeat('x', 100) FROM generate_series(1, 10000) AS g;
ANALYZE fresh;
SELECT 'VACUUM fresh' WHERE :vacuum \\gexec
--| measure:
SELECT count(*) FROM fresh WHERE id BETWEEN 1001 AND 3000;
--| collect:
-- Leaf pages of the index that hold these keys, those above them, and pages of the table.
SELECT pg_relation_size('fresh') / 8192 AS pages,
    (SELECT count(DISTINCT (ctid::text::point)[0]) FROM fresh WHERE id BETWEEN 1001 AND 3000) AS heap;
```

```sql claims c
--| from_json: {{kind: exact}}
SELECT (plan #>> '{{0,Plan,Plans,0,Heap Fetches}}')::int = 2000 FROM measured.scan_explain WHERE NOT vacuum AND run = 1;
```
",
            front(version)
        ));
        assert_eq!(
            measured(&record, "scan", "heap_fetches"),
            ["2000", "2000", "0", "0"]
        );
        let number = |name: &str| -> Vec<u32> {
            let texts = measured(&record, "scan", name).into_iter();
            texts.map(|text| text.parse().unwrap()).collect()
        };
        let (buffers, heap) = (number("buffers"), number("heap"));
        assert_eq!([buffers[0], buffers[2]], [buffers[1], buffers[3]]);
        // The same pages of the index; then pages of the table, or one of the visibility map, which
        // without VACUUM there is none of.
        assert_eq!(
            buffers[0] - heap[0],
            buffers[2] - 1,
            "{version}: {buffers:?}"
        );
        assert_eq!(number("rows"), [1; 4]);
        let null = measured(&record, "scan", "sort_method");
        assert_eq!(null, ["NULL"; 4]);
        let types = measured(&record, "scan", "node_types");
        assert_eq!(types, ["Aggregate, Index Only Scan"; 4]);
        // On version 18 a scan tells how often it searched; before, nothing.
        let searches = measured(&record, "scan", "index_searches");
        let expected = if version == "16.15" { "NULL" } else { "1" };
        assert_eq!(searches, [expected; 4]);
        assert_eq!(number("shared_read"), [0; 4]);
        let nodes = &experiment(&record, "scan").results["plan"];
        assert_eq!(column(nodes, "depth"), ["0", "1"].repeat(4));
        assert_eq!(column(nodes, "rows")[1].split('.').next(), Some("2000"));
    }
}

#[test]
fn what_is_explained_is_executed_once() {
    for version in VERSIONS {
        let record = built(&format!(
            "{}
```sql experiment changed
--| fixture: src
--| matrix: {{analyze: [true]}}
--| runs: 3
--| instruments: [explain, tuples, hot, time]
--| measure:
BEGIN;
UPDATE t SET k = k + 1 WHERE id <= 100;
COMMIT;
--| collect:
SELECT sum(k) FILTER (WHERE id <= 100) AS total, max(k) FILTER (WHERE id = 1) AS first FROM t;
```

```sql experiment inserted
--| fixture: src
--| instruments: [explain, tuples]
INSERT INTO u SELECT g, g FROM generate_series(1, 70) AS g;
```

```sql experiment as_it_is
--| fixture: src
--| instruments: [{{explain: {{analyze: false, buffers: false}}}}, tuples]
--| measure:
INSERT INTO u SELECT g, g FROM generate_series(1, 70) AS g RETURNING count(*) OVER () AS never;
--| expect_error: \"42P20\"
```

```sql experiment asked
--| fixture: src
--| instruments: [{{explain: {{analyze: false}}}}, tuples]
--| measure:
SELECT sum(k) AS total FROM u WHERE id <= :id;
--| matrix: {{id: [10]}}
```

```sql experiment cascade
--| instruments: [{{explain: {{timing: true, wal: true}}}}]
--| setup:
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id int, parent_id int REFERENCES parent ON DELETE CASCADE);
INSERT INTO parent SELECT generate_series(1, 100);
INSERT INTO child SELECT g, g % 100 + 1 FROM generate_series(1, 1000) AS g;
ANALYZE;
--| measure:
DELETE FROM parent WHERE id <= 20;
--| collect:
SELECT count(*) AS left_over FROM child;
```
",
            front(version)
        ));
        let first = measured(&record, "changed", "first");
        assert_eq!(first, ["2", "3", "4"], "{version}");
        assert_eq!(measured(&record, "changed", "rows"), ["100"; 3]);
        assert_eq!(measured(&record, "changed", "updated"), ["100"; 3]);
        assert_eq!(
            measured(&record, "changed", "node_type"),
            ["ModifyTable"; 3]
        );
        assert_eq!(measured(&record, "inserted", "rows"), ["70"]);
        assert_eq!(measured(&record, "inserted", "inserted"), ["70"]);
        // Raised before it was explained: there is nothing to tell.
        assert_eq!(measured(&record, "as_it_is", "plan_cost"), ["NULL"]);
        let asked = |name| measured(&record, "asked", name);
        // Of the planner alone: nothing was executed under EXPLAIN.
        assert_eq!(asked("total"), ["55"]);
        assert_eq!(asked("seq_tuples_read"), ["500"]);
        assert_eq!(asked("node_type"), ["Aggregate"]);
        assert_eq!(asked("execution_ms"), ["NULL"]);
        assert_eq!(asked("buffers"), ["NULL"]);
        assert_eq!(measured(&record, "cascade", "left_over"), ["800"]);
        assert_eq!(measured(&record, "cascade", "trigger_calls"), ["20"]);
        assert_eq!(measured(&record, "cascade", "rows"), ["20"]);
        let triggers = &experiment(&record, "cascade").results["triggers"];
        assert_eq!(
            column(triggers, "constraint_name"),
            ["child_parent_id_fkey"]
        );
        assert_eq!(column(triggers, "calls"), ["20"]);
    }
}

#[test]
fn sorts_and_workers_are_told_as_explain_tells_them() {
    for version in VERSIONS {
        let record = built(&format!(
            "{}
```sql experiment sorts
--| fixture: src
--| cases:
--|   - {{work_mem: 64kB, number: 10}}
--|   - {{work_mem: 64kB, number: 20000}}
--|   - {{work_mem: 64MB, number: 20000}}
--| session: {{work_mem: ':work_mem', max_parallel_workers_per_gather: 0}}
--| instruments: [explain, temp]
SELECT id, note FROM t ORDER BY note LIMIT :number;
```

```sql experiment filtered
--| fixture: src
--| matrix: {{allowed: [0, 2]}}
--| session: {{max_parallel_workers_per_gather: ':allowed', parallel_setup_cost: 0, parallel_tuple_cost: 0, min_parallel_table_scan_size: 0}}
--| instruments: [explain]
--| measure:
SELECT k, count(*) FROM t WHERE note LIKE '%ab%' GROUP BY k;
--| collect:
SELECT count(*) AS without FROM t WHERE note NOT LIKE '%ab%';
```

```sql experiment few
--| fixture: src
--| session: {{max_parallel_workers: 1, max_parallel_workers_per_gather: 2, parallel_setup_cost: 0, parallel_tuple_cost: 0, min_parallel_table_scan_size: 0}}
--| instruments: [explain]
SELECT k, count(*) FROM t WHERE note LIKE '%ab%' GROUP BY k;
```
",
            front(version)
        ));
        assert_eq!(
            measured(&record, "sorts", "sort_method"),
            ["top-N heapsort", "external merge", "quicksort"]
        );
        let kinds = measured(&record, "sorts", "sort_space_type");
        assert_eq!(kinds, ["Memory", "Disk", "Memory"]);
        let space: Vec<u32> = measured(&record, "sorts", "sort_space_kb")
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        assert!(
            space[0] < 64 && space[1] > 64 && space[2] > space[1],
            "{space:?}"
        );
        let files = measured(&record, "sorts", "temp_files");
        assert_eq!([&*files[0], &*files[2]], ["0", "0"]);
        assert_ne!(files[1], "0");
        assert_eq!(
            measured(&record, "filtered", "workers_launched"),
            ["NULL", "2"]
        );
        let removed = measured(&record, "filtered", "rows_removed");
        let without = measured(&record, "filtered", "without");
        assert_eq!(removed[0], without[0]);
        assert_eq!(measured(&record, "few", "workers_planned"), ["2"]);
        assert_eq!(measured(&record, "few", "workers_launched"), ["1"]);
        let doubts = |id: &str| -> Vec<&str> {
            let doubts = &experiment(&record, id).doubts;
            doubts.iter().map(|doubt| doubt.kind.as_str()).collect()
        };
        assert!(
            doubts("few").contains(&"workers-missing"),
            "{:?}",
            doubts("few")
        );
        // A session's first statement, and no second to say that it counted no more.
        assert!(
            doubts("sorts").contains(&"first-use"),
            "{:?}",
            doubts("sorts")
        );
    }
}

#[test]
fn an_error_of_the_explained_statement_is_told_at_its_place() {
    let said = refused(
        "
```sql experiment e
--| instruments: [explain]
SELECT 1 / nought
FROM pg_class;
```
",
        2,
    );
    assert!(said.contains("article.md:8:12"), "{said}");
    assert!(said.contains("column \"nought\" does not exist"), "{said}");
    let said = refused(
        "
```sql experiment e
--| instruments: [{explain: {serialize: text}}]
SELECT 1;
```
",
        2,
    );
    assert!(said.contains("article.md:7:41"), "{said}");
    assert!(said.contains("needs PostgreSQL 17 or later"), "{said}");
}

#[test]
fn what_can_be_explained_no_more_is_null_or_told() {
    let experiment = |more: &str, measure: &str| {
        format!(
            "
```sql experiment e
{more}--| instruments: [{{explain: {{analyze: false}}}}]
--| measure:
BEGIN;
CREATE TEMP TABLE t ON COMMIT DROP AS SELECT 1 AS a \\gexec
SELECT a FROM t;
{measure};
```
"
        )
    };
    let expected = experiment(
        "--| expect_error: \"22012\"\n",
        "CREATE VIEW v AS SELECT 1; DO $$ BEGIN PERFORM 1 / 0; END $$",
    );
    let record = built(&expected);
    assert_eq!(measured(&record, "e", "plan_cost"), ["NULL"]);
    let said = refused(&experiment("", "COMMIT"), 2);
    assert!(said.contains("relation \"t\" does not exist"), "{said}");
    assert!(
        said.contains("`analyze: true` explains it while it runs"),
        "{said}"
    );
}
