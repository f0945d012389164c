//! Plans of 16.15 and 18.6, shortened to what is read of them.

use super::*;
use crate::source::{Span, Spanned};

fn options(given: &[(&str, OptionValue)]) -> InstrumentOptions {
    let given = given.iter();
    given
        .map(|(name, value)| ((*name).to_owned(), Spanned::new(*value, Span::new(0, 0))))
        .collect()
}

#[test]
fn every_option_is_spelt_out() {
    assert_eq!(
        prefix(&options(&[]), 16),
        "EXPLAIN (ANALYZE true, BUFFERS true, TIMING false, COSTS true, VERBOSE false, \
         SETTINGS false, WAL false, SUMMARY true, FORMAT JSON) "
    );
    let given = options(&[
        ("analyze", OptionValue::Boolean(false)),
        ("buffers", OptionValue::Boolean(false)),
        ("settings", OptionValue::Boolean(true)),
    ]);
    assert_eq!(
        prefix(&given, 18),
        "EXPLAIN (ANALYZE false, BUFFERS false, TIMING false, COSTS true, VERBOSE false, \
         SETTINGS true, WAL false, SERIALIZE none, MEMORY false, SUMMARY true, FORMAT JSON) "
    );
}

fn columns(json: &str) -> Vec<String> {
    let plan = Plan::parse(json).unwrap();
    let reading = reading(Some(&plan), json);
    reading
        .columns
        .iter()
        .filter(|(_, value)| *value != Value::Null)
        .map(|(column, value)| format!("{}={value}", column.name))
        .collect()
}

/// As 18.6 prints it, with a fraction of rows and the number of index searches.
const INDEX_ONLY: &str = r#"[{
  "Plan": {
    "Node Type": "Aggregate", "Strategy": "Plain", "Partial Mode": "Simple",
    "Parallel Aware": false, "Async Capable": false,
    "Startup Cost": 6228.44, "Total Cost": 6228.45, "Plan Rows": 1, "Plan Width": 8,
    "Actual Rows": 1.00, "Actual Loops": 1, "Disabled": false,
    "Shared Hit Blocks": 3, "Shared Read Blocks": 550, "Shared Dirtied Blocks": 0,
    "Shared Written Blocks": 0, "Temp Read Blocks": 0, "Temp Written Blocks": 0,
    "Plans": [{
      "Node Type": "Index Only Scan", "Parent Relationship": "Outer",
      "Parallel Aware": false, "Async Capable": false, "Scan Direction": "Forward",
      "Index Name": "t_pkey", "Relation Name": "t", "Alias": "t",
      "Startup Cost": 0.42, "Total Cost": 5728.44, "Plan Rows": 200001, "Plan Width": 0,
      "Actual Rows": 200001.00, "Actual Loops": 1, "Disabled": false,
      "Index Cond": "(id <= 200001)", "Rows Removed by Index Recheck": 0,
      "Heap Fetches": 0, "Index Searches": 1,
      "Shared Hit Blocks": 3, "Shared Read Blocks": 550, "Shared Dirtied Blocks": 0,
      "Shared Written Blocks": 0, "Temp Read Blocks": 0, "Temp Written Blocks": 0
    }]
  },
  "Planning": {"Shared Hit Blocks": 70, "Shared Read Blocks": 2},
  "Planning Time": 0.063, "Triggers": [], "Execution Time": 14.205
}]"#;

#[test]
fn figures_are_those_of_the_plan_and_what_it_has_not_is_null() {
    assert_eq!(
        columns(INDEX_ONLY),
        [
            "planning_ms=0.063",
            "execution_ms=14.205",
            "buffers=553",
            "shared_hit=3",
            "shared_read=550",
            "shared_dirtied=0",
            "shared_written=0",
            "temp_read=0",
            "temp_written=0",
            "planning_buffers=72",
            "heap_fetches=0",
            "rows_removed=0",
            "index_searches=1",
            "node_type=Aggregate",
            "node_types=Aggregate, Index Only Scan",
            "index_names=t_pkey",
            "plan_rows=1",
            "plan_cost=6228.45",
            "startup_cost=6228.44",
        ]
    );
    let plan = Plan::parse(INDEX_ONLY).unwrap();
    assert_eq!(plan.rows(), Some(1));
    assert_eq!(
        text::text(&plan),
        "Aggregate  (cost=6228.44..6228.45 rows=1 width=8) (actual rows=1.00 loops=1)
  Buffers: shared hit=3 read=550
  ->  Index Only Scan using t_pkey on t  (cost=0.42..5728.44 rows=200001 width=0) (actual rows=200001.00 loops=1)
        Index Cond: (id <= 200001)
        Heap Fetches: 0
        Index Searches: 1
        Buffers: shared hit=3 read=550
Planning:
  Buffers: shared hit=70 read=2
Planning Time: 0.063 ms
Execution Time: 14.205 ms
"
    );
}

#[test]
fn nodes_are_rows_with_their_place_in_the_tree() {
    let reading = reading(Plan::parse(INDEX_ONLY).as_ref(), INDEX_ONLY);
    let nodes = &reading.results["plan"];
    let texts: Vec<String> = nodes.rows[1].iter().map(ToString::to_string).collect();
    let of = |name: &str| texts[nodes.column(name).unwrap()].as_str();
    assert_eq!([of("node"), of("parent"), of("depth")], ["2", "1", "1"]);
    assert_eq!([of("relation"), of("index_name")], ["t", "t_pkey"]);
    // As it is written: 200001.00 is 200001.
    assert_eq!(
        [of("rows"), of("loops"), of("buffers")],
        ["200001.00", "1", "553"]
    );
    assert_eq!(
        nodes.rows[1][nodes.column("total_ms").unwrap()],
        Value::Null
    );
    let whole = &reading.results["explain"];
    assert_eq!(whole.rows[0][0], Value::Text(INDEX_ONLY.to_owned()));
    assert!(reading.results["triggers"].rows.is_empty());
}

/// As 16.15 prints it: whole rows.
fn modify(operation: &str, more: &str, child: &str, triggers: &str) -> String {
    format!(
        r#"[{{"Plan": {{"Node Type": "ModifyTable", "Operation": "{operation}", {more}
        "Relation Name": "t", "Alias": "t", "Actual Rows": 0, "Actual Loops": 1,
        "Plans": [{{"Node Type": "{child}", "Parent Relationship": "Outer",
        "Relation Name": "t", "Alias": "t", "Actual Rows": 19, "Actual Loops": 1}}]}},
        "Triggers": [{triggers}], "Execution Time": 0.7}}]"#
    )
}

const CONSTRAINT: &str = r#"{"Trigger Name": "RI_ConstraintTrigger_a_16396",
    "Constraint Name": "c_pid_fkey", "Relation": "t", "Time": 1.250, "Calls": 19}"#;

#[test]
fn rows_are_told_where_the_plan_tells_them_exactly() {
    let own = r#"{"Trigger Name": "mine", "Relation": "t", "Calls": 19}"#;
    for (operation, more, child, triggers, rows) in [
        ("Insert", "", "Result", "", Some(19)),
        ("Insert", "", "Hash Join", "", Some(19)),
        (
            "Insert",
            r#""Conflict Resolution": "NOTHING","#,
            "Result",
            "",
            None,
        ),
        ("Update", "", "Seq Scan", "", Some(19)),
        ("Delete", "", "Index Scan", CONSTRAINT, Some(19)),
        ("Delete", "", "Seq Scan", own, None),
        // A row that a join finds twice is written once.
        ("Update", "", "Hash Join", "", None),
        ("Merge", "", "Seq Scan", "", None),
    ] {
        let json = modify(operation, more, child, triggers);
        let plan = Plan::parse(&json).unwrap();
        assert_eq!(plan.rows(), rows, "{operation} {more} {child}");
    }
}

#[test]
fn triggers_are_counted_and_kept() {
    let json = modify("Delete", "", "Seq Scan", CONSTRAINT);
    let columns = columns(&json);
    assert!(
        columns.contains(&"trigger_calls=19".to_owned()),
        "{columns:?}"
    );
    assert!(
        columns.contains(&"trigger_ms=1.250".to_owned()),
        "{columns:?}"
    );
    let plan = Plan::parse(&json).unwrap();
    let text = text::text(&plan);
    let expected = "Trigger for constraint c_pid_fkey on t: time=1.250 calls=19\n";
    assert!(text.contains(expected), "{text}");
    let reading = reading(Some(&plan), &json);
    assert_eq!(reading.results["triggers"].rows.len(), 1);
}

#[test]
fn a_sort_is_told_by_whoever_sorted() {
    let sort = |own: &str, workers: &str| {
        format!(
            r#"[{{"Plan": {{"Node Type": "Gather", "Workers Planned": 2, "Workers Launched": 1,
            "Plans": [{{"Node Type": "Sort"{own}, "Workers": [{workers}]}}]}}}}]"#
        )
    };
    let method =
        r#""Sort Method": "external merge", "Sort Space Used": 568, "Sort Space Type": "Disk""#;
    let worker = format!(r#"{{"Worker Number": 0, {method}}}"#);
    for json in [sort(&format!(", {method}"), ""), sort("", &worker)] {
        assert_eq!(
            columns(&json),
            [
                "sort_method=external merge",
                "sort_space_kb=568",
                "sort_space_type=Disk",
                "workers_planned=2",
                "workers_launched=1",
                "node_type=Gather",
                "node_types=Gather, Sort",
            ]
        );
    }
}

#[test]
fn a_sort_that_was_not_looked_at_has_no_space() {
    let json = r#"[{"Plan": {"Node Type": "Sort", "Sort Method": "still in progress",
        "Sort Space Used": 0, "Sort Space Type": "Memory"}}]"#;
    assert_eq!(
        columns(json),
        [
            "sort_method=still in progress",
            "node_type=Sort",
            "node_types=Sort"
        ]
    );
}

#[test]
fn nodes_are_called_as_the_text_format_calls_them() {
    for (node, title) in [
        (
            r#""Node Type": "Seq Scan", "Relation Name": "t", "Alias": "t""#,
            "Seq Scan on t",
        ),
        (
            r#""Node Type": "Seq Scan", "Parallel Aware": true, "Relation Name": "t", "Alias": "a""#,
            "Parallel Seq Scan on t a",
        ),
        (
            r#""Node Type": "Index Scan", "Scan Direction": "Backward", "Index Name": "i", "Schema": "s", "Relation Name": "t", "Alias": "t""#,
            "Index Scan Backward using i on s.t",
        ),
        (
            r#""Node Type": "Bitmap Index Scan", "Index Name": "i""#,
            "Bitmap Index Scan on i",
        ),
        (
            r#""Node Type": "Nested Loop", "Join Type": "Inner""#,
            "Nested Loop",
        ),
        (
            r#""Node Type": "Nested Loop", "Join Type": "Left""#,
            "Nested Loop Left Join",
        ),
        (
            r#""Node Type": "Hash Join", "Join Type": "Inner""#,
            "Hash Join",
        ),
        (
            r#""Node Type": "Hash Join", "Join Type": "Right Anti""#,
            "Hash Right Anti Join",
        ),
        (
            r#""Node Type": "Merge Join", "Join Type": "Full""#,
            "Merge Full Join",
        ),
        (
            r#""Node Type": "Aggregate", "Strategy": "Sorted", "Partial Mode": "Finalize""#,
            "Finalize GroupAggregate",
        ),
        (
            r#""Node Type": "Aggregate", "Strategy": "Hashed", "Partial Mode": "Simple""#,
            "HashAggregate",
        ),
        (
            r#""Node Type": "SetOp", "Strategy": "Hashed", "Command": "Except""#,
            "HashSetOp Except",
        ),
        (
            r#""Node Type": "CTE Scan", "CTE Name": "c", "Alias": "x""#,
            "CTE Scan on c x",
        ),
        (
            r#""Node Type": "Function Scan", "Function Name": "generate_series", "Alias": "g""#,
            "Function Scan on generate_series g",
        ),
        (
            r#""Node Type": "Subquery Scan", "Alias": "q""#,
            "Subquery Scan on q",
        ),
        (
            r#""Node Type": "Custom Scan", "Custom Plan Provider": "P""#,
            "Custom Scan (P)",
        ),
        (
            r#""Node Type": "ModifyTable", "Operation": "Delete", "Relation Name": "t", "Alias": "t""#,
            "Delete on t",
        ),
    ] {
        let plan = Plan::parse(&format!(r#"[{{"Plan": {{{node}}}}}]"#)).unwrap();
        assert_eq!(text::headline(&plan.top()), title);
    }
}

#[test]
fn details_stand_on_lines_as_postgres_puts_them() {
    for (node, lines) in [
        (
            r#""Hash Buckets": 1024, "Original Hash Buckets": 1024, "Hash Batches": 1, "Peak Memory Usage": 40"#,
            &["Buckets: 1024  Batches: 1  Memory Usage: 40kB"][..],
        ),
        (
            r#""Group Key": ["a", "b"], "Planned Partitions": 0, "HashAgg Batches": 5, "Peak Memory Usage": 161, "Disk Usage": 208"#,
            &[
                "Group Key: a, b",
                "Batches: 5  Memory Usage: 161kB  Disk Usage: 208kB",
            ],
        ),
        (
            r#""Recheck Cond": "(a = 1)", "Rows Removed by Index Recheck": 0, "Exact Heap Blocks": 40, "Lossy Heap Blocks": 0"#,
            &["Recheck Cond: (a = 1)", "Heap Blocks: exact=40"],
        ),
        (
            r#""Cache Key": "a", "Cache Hits": 9, "Cache Misses": 1, "Cache Evictions": 0, "Cache Overflows": 0, "Peak Memory Usage": 1"#,
            &[
                "Cache Key: a",
                "Hits: 9  Misses: 1  Evictions: 0  Overflows: 0  Memory Usage: 1kB",
            ],
        ),
        (
            r#""Storage": "Memory", "Maximum Storage": 17, "WAL Records": 1, "WAL FPI": 0, "WAL Bytes": 62, "Temp Read Blocks": 2, "Local Hit Blocks": 1"#,
            &[
                "Storage: Memory  Maximum Storage: 17kB",
                "Buffers: local hit=1, temp read=2",
                "WAL: records=1 bytes=62",
            ],
        ),
        // What a later version may add.
        (
            r#""Shiny": {"New": 1, "Newer": [2, 3]}, "Rows Removed by Filter": 823"#,
            &["Shiny: New: 1  Newer: 2, 3", "Rows Removed by Filter: 823"],
        ),
    ] {
        let plan = Plan::parse(&format!(r#"[{{"Plan": {{{node}}}}}]"#)).unwrap();
        assert_eq!(text::details(&plan.top()), lines, "{node}");
    }
}

#[test]
fn what_is_no_plan_is_none() {
    for text in ["", "[]", "{}", "[{}]", "Seq Scan on t"] {
        assert!(Plan::parse(text).is_none(), "{text}");
        assert_eq!(rows(text), None);
    }
}
