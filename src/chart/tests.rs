use super::*;
use crate::article::{Axis, Statement, Terminator, TextWithFillIns};
use crate::quantity::{Column, Value as Cell};
use crate::source::{Extract, Spanned};

/// A place in `SOURCE` for every option, so that a test can see which one is pointed at.
const SOURCE: &str = "id type x y0 y1 y2 series low high\n";

fn source() -> Arc<Source> {
    Source::new("a/article.md", "a/article.md", SOURCE.into())
}

fn at(word: &str, value: &str) -> Spanned<String> {
    let start = SOURCE.find(word).unwrap();
    Spanned::new(value.to_owned(), start..start + word.len())
}

fn text(text: &str) -> TextWithFillIns {
    TextWithFillIns {
        text: text.into(),
        ..TextWithFillIns::default()
    }
}

fn block(chart_type: &str, x: &str, y: &[&str]) -> ChartBlock {
    ChartBlock {
        id: at("id", "wal"),
        query: Statement {
            text: Extract::default(),
            terminator: Terminator::Semicolon,
            variables: Vec::new(),
        },
        chart_type: at("type", chart_type),
        x: at("x", x),
        y: y.iter()
            .enumerate()
            .map(|(i, name)| at(&format!("y{i}"), name))
            .collect(),
        series: None,
        error: None,
        log: Vec::new(),
        title: None,
        alt: text(""),
        caption: None,
        x_label: None,
        y_label: None,
        option: None,
    }
}

/// A header of `name type, …` and rows of cells as Postgres prints them; `\N` is NULL.
fn table(header: &str, rows: &[&str]) -> Table {
    let columns: Vec<Column> = header
        .split(", ")
        .map(|column| {
            let (name, type_name) = column.split_once(' ').unwrap();
            Column::new(name, type_name)
        })
        .collect();
    let rows = rows
        .iter()
        .map(|row| {
            row.split(" | ")
                .zip(&columns)
                .map(|(cell, c)| Cell::from_postgres((cell != "\\N").then_some(cell), &c.type_name))
                .collect()
        })
        .collect();
    Table { columns, rows }
}

fn chart<'a>(block: &'a ChartBlock, table: &'a Table) -> Chart<'a> {
    Chart {
        block,
        table,
        title: Some("WAL per inserted row".into()),
        alt: "Bars that grow by 76 bytes with each index".into(),
        caption: None,
    }
}

fn drawn(block: &ChartBlock, table: &Table) -> String {
    draw(&chart(block, table), &source()).unwrap_or_else(|e| panic!("{}", e.render(false)))
}

fn refused(block: &ChartBlock, table: &Table) -> Diagnostic {
    draw(&chart(block, table), &source()).unwrap_err()
}

fn wal() -> Table {
    table(
        "indexes integer, wal_per_row numeric",
        &["0 | 234.8", "1 | 311", "2 | 387", "4 | 539.6", "8 | 844"],
    )
}

fn runs() -> Table {
    table(
        "indexes integer, kind text, us double precision, low double precision, high numeric",
        &[
            "0 | hot | 1.3 | 1.2 | 1.45",
            "0 | cold | 2.6 | 2.2 | 3.1",
            "1 | hot | 1.4 | 1.3 | 1.5",
            "1 | cold | 4.5 | 4.0 | 5",
            "2 | hot | 1.4 | 1.3 | 1.6",
            "2 | cold | 9.25 | 8.5 | 10",
        ],
    )
}

fn grouped(chart_type: &str) -> ChartBlock {
    let mut block = block(chart_type, "indexes", &["us"]);
    block.series = Some(at("series", "kind"));
    block
}

fn with_error(mut block: ChartBlock) -> ChartBlock {
    block.error = Some((at("low", "low"), at("high", "high")));
    block
}

/// How many elements there are with this text in their tag.
fn count(svg: &str, part: &str) -> usize {
    svg.matches(part).count()
}

#[test]
fn every_type_draws_its_series() {
    for chart_type in CHARTS {
        let svg = drawn(&grouped(chart_type.name), &runs());
        assert!(svg.starts_with("<svg role=\"img\""), "{svg}");
        for text in ["WAL per inserted row", ">indexes<", ">hot<", ">cold<"] {
            assert!(
                svg.contains(text),
                "{} lacks {text}: {svg}",
                chart_type.name
            );
        }
        assert!(!chart_type.description.is_empty());
    }
}

#[test]
fn bars_begin_at_zero_and_carry_their_values() {
    let svg = drawn(&block("bar", "indexes", &["wal_per_row"]), &wal());
    for value in [
        "234.8",
        "311",
        "387",
        "539.6",
        "844",
        "1,000",
        "wal_per_row",
    ] {
        assert!(svg.contains(&format!(">{value}<")), "{value}: {svg}");
    }
    assert_eq!(count(&svg, "fill=\"var(--chart-1, #0072b2)\""), 5, "{svg}");
}

#[test]
fn axis_numbers_are_short() {
    let rows = ["1 | 0", "2 | 4000000", "3 | 2500000000"];
    for (rows, labels) in [(&rows[..2], &["1M", "4M"][..]), (&rows, &["500M", "2.5G"])] {
        let table = table("n integer, bytes bigint", rows);
        let svg = drawn(&block("line", "n", &["bytes"]), &table);
        for label in labels {
            assert!(svg.contains(&format!(">{label}<")), "{label}: {svg}");
        }
    }
}

#[test]
fn several_columns_are_several_series_in_their_order() {
    let mut several = block("line", "indexes", &["us", "high", "low"]);
    several.y_label = Some("µs a row".into());
    let svg = drawn(
        &several,
        &table(
            "indexes integer, us real, low real, high real",
            &["1 | 2 | 1 | 3", "2 | 3 | 2 | 4"],
        ),
    );
    let place = |word: &str| svg.find(&format!(">{word}<")).unwrap();
    assert!(
        place("us") < place("high") && place("high") < place("low"),
        "{svg}"
    );
    assert!(svg.contains(">µs a row<"), "{svg}");
    assert_eq!(
        count(&drawn(&block("line", "indexes", &["us"]), &runs()), ">us<"),
        1
    );
}

#[test]
fn error_bars_are_three_lines_a_row() {
    for chart_type in ["bar", "line", "scatter"] {
        let plain = drawn(&grouped(chart_type), &runs());
        let with_bars = drawn(&with_error(grouped(chart_type)), &runs());
        assert_eq!(
            count(&with_bars, "stroke-width=\"1.5\""),
            count(&plain, "stroke-width=\"1.5\"") + 18,
            "{chart_type}: {with_bars}"
        );
    }
}

#[test]
fn the_same_chart_is_the_same_bytes_whatever_was_drawn_before() {
    let first = drawn(&with_error(grouped("line")), &runs());
    for chart_type in CHARTS {
        drawn(&grouped(chart_type.name), &runs());
    }
    let elsewhere = std::thread::spawn(|| drawn(&with_error(grouped("line")), &runs()));
    assert_eq!(drawn(&with_error(grouped("line")), &runs()), first);
    assert_eq!(elsewhere.join().unwrap(), first);
}

#[test]
fn ids_are_the_charts_own() {
    let svg = drawn(&grouped("line"), &runs());
    assert!(svg.contains("aria-labelledby=\"chart-wal-title chart-wal-desc\""));
    assert!(svg.contains("<title id=\"chart-wal-title\">WAL per inserted row</title>"));
    assert!(svg.contains("<desc id=\"chart-wal-desc\">Bars that grow by 76 bytes"));
    for (at, _) in svg
        .match_indices(" id=\"")
        .chain(svg.match_indices("url(#"))
    {
        assert!(svg[at + 5..].starts_with("chart-wal-"), "{}", &svg[at..]);
    }
    assert!(!svg.contains("zr0") && !svg.contains("class=") && !svg.contains("ecmeta"));
}

#[test]
fn texts_are_escaped_wherever_they_go() {
    let nasty = "</text><script>alert(1)</script>\"'&amp;\u{1}";
    let mut block = block("bar", "indexes", &["us"]);
    block.series = Some(at("series", "kind"));
    block.x_label = Some(nasty.into());
    block.y_label = Some(nasty.into());
    let mut table = runs();
    for row in &mut table.rows {
        row[1] = Cell::Text(format!("{nasty}{}", row[1]));
        row[0] = Cell::Text(format!("{nasty}{}", row[0]));
    }
    let chart = Chart {
        block: &block,
        table: &table,
        title: Some(nasty.into()),
        alt: nasty.into(),
        caption: None,
    };
    let svg = draw(&chart, &source()).unwrap();
    assert!(!svg.contains("<script") && !svg.contains('\u{1}'), "{svg}");
    assert!(count(&svg, "&lt;script&gt;") >= 6, "{svg}");
}

#[test]
fn an_option_is_merged_last_and_cannot_break_out() {
    let mut block = block("bar", "indexes", &["wal_per_row"]);
    block.option = Some(json!({"yAxis": {"max": 4000}, "color": ["#123456"]}));
    let svg = drawn(&block, &wal());
    assert!(svg.contains(">4,000<") && svg.contains("#123456"), "{svg}");
    for (option, why) in [
        (
            json!({"color": ["red\"/><script>alert(1)</script><g a=\""]}),
            "`<script>`",
        ),
        (json!({"color": ["url(http://a.example/x)"]}), "outside"),
        (json!({"series": {"type": "nonsense"}}), "option"),
        (
            json!({"series": {"type": "line", "symbol": "image://http://a.example/x"}}),
            "`<image>`",
        ),
    ] {
        block.option = Some(option.clone());
        let error = refused(&block, &wal());
        assert!(
            error.render(false).contains(why),
            "{option}: {}",
            error.render(false)
        );
        assert_eq!(
            error.hint.as_deref(),
            Some("see whether it can be drawn without its `option:`")
        );
    }
}

#[test]
fn an_option_may_ask_for_a_legend_or_be_no_mapping() {
    let mut block = block("bar", "indexes", &["wal_per_row"]);
    block.y_label = Some("bytes".into());
    block.option = Some(json!({"legend": {"show": true}}));
    let svg = drawn(&block, &wal());
    assert!(
        svg.contains(">wal_per_row<") && svg.contains(">bytes<"),
        "{svg}"
    );
    block.option = Some(json!([1]));
    let error = refused(&block, &wal());
    assert_eq!(error.message, "`option` of chart `wal` is not a mapping");
}

/// Message, and the words it points at.
fn problem(block: &ChartBlock, table: &Table) -> (String, String) {
    let diagnostic = refused(block, table);
    let span = diagnostic.place.expect("a place").span;
    (diagnostic.message, SOURCE[span.range()].to_owned())
}

#[test]
fn a_missing_column_is_pointed_at_with_those_that_exist() {
    let error = refused(&block("bar", "indexes", &["wal_per_rwo"]), &wal());
    let shown = error.render(false);
    for part in [
        "the query of chart `wal` has no column `wal_per_rwo`",
        "a/article.md:1:11",
        "its columns are `indexes`, `wal_per_row`",
        "did you mean `wal_per_row`?",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let mut several = with_error(grouped("bar"));
    several.series = Some(at("series", "sort"));
    several.x = at("x", "index");
    let error = refused(&several, &runs());
    assert_eq!(error.related.len(), 1, "{}", error.render(false));
    let (message, place) = problem(&block("pie", "indexes", &["wal_per_row"]), &wal());
    assert_eq!(
        (message.as_str(), place.as_str()),
        ("no chart type is named `pie`", "type")
    );
}

#[test]
fn a_value_that_cannot_be_drawn_names_its_row() {
    let header = "n integer, v numeric, w text";
    for (chart_type, log, rows, message, place) in [
        (
            "line",
            vec![Axis::Y],
            &["1 | 5 | a", "2 | 0 | a"][..],
            "`v` is 0 in row 2 (n = 2), which has no place on a logarithmic axis",
            "y0",
        ),
        (
            "bar",
            vec![Axis::Y],
            &["1 | -3.5 | a"],
            "`v` is -3.5 in row 1 (n = 1), which has no place on a logarithmic axis",
            "y0",
        ),
        (
            "scatter",
            vec![Axis::X],
            &["0 | 5 | a"],
            "`n` is 0 in row 1 (n = 0), which has no place on a logarithmic axis",
            "x",
        ),
        (
            "bar",
            vec![],
            &["1 | \\N | a"],
            "`v` is NULL in row 1 (n = 1), which cannot be drawn",
            "y0",
        ),
        (
            "line",
            vec![],
            &["1 | NaN | a"],
            "`v` is NaN in row 1 (n = 1), which cannot be drawn",
            "y0",
        ),
        (
            "box",
            vec![],
            &["1 | -Infinity | a"],
            "`v` is -Infinity in row 1 (n = 1), which cannot be drawn",
            "y0",
        ),
        (
            "bar",
            vec![],
            &["\\N | 1 | a"],
            "`n` is NULL in row 1 (n = NULL), which cannot be drawn",
            "x",
        ),
        (
            "line",
            vec![],
            &["1 | 1e999 | a"],
            "`v` is too large to draw in row 1 (n = 1)",
            "y0",
        ),
        (
            "bar",
            vec![],
            &["1 | 1 | a", "1 | 2 | a"],
            "row 1 (n = 1) and row 2 (n = 1) have the same place in a bar chart",
            "x",
        ),
        (
            "bar",
            vec![Axis::X],
            &["1 | 1 | a"],
            "a bar chart's horizontal axis has categories, and no logarithms",
            "x",
        ),
        (
            "area",
            vec![Axis::Y],
            &["1 | 1 | a"],
            "areas cannot begin at zero on a logarithmic axis",
            "type",
        ),
        (
            "line",
            vec![],
            &[],
            "the query of chart `wal` gives no rows",
            "id",
        ),
    ] {
        let mut block = block(chart_type, "n", &["v"]);
        block.log = log;
        let found = problem(&block, &table(header, rows));
        assert_eq!(found, (message.to_owned(), place.to_owned()));
    }
    let (message, _) = problem(&block("line", "n", &["w"]), &table(header, &["1 | 1 | a"]));
    assert_eq!(
        message,
        "`w` is `a` in row 1 (n = 1), which is no number that can be drawn"
    );
    let rows = ["0 | 0 | a"; 9];
    let mut log = block("line", "n", &["v"]);
    log.log = vec![Axis::Y];
    let notes = refused(&log, &table(header, &rows)).notes;
    assert_eq!(
        (notes.len(), notes.last().unwrap().as_str()),
        (5, "and 4 more")
    );
}

#[test]
fn what_a_type_cannot_do_is_said() {
    let swapped = with_error(block("line", "indexes", &["us"]));
    let rows = table(
        "indexes integer, us real, low real, high real",
        &["1 | 2 | 3 | 1"],
    );
    let (message, place) = problem(&swapped, &rows);
    assert_eq!(place, "low");
    assert!(
        message.contains("low end, 3, is above its high end, 1"),
        "{message}"
    );
    let two = with_error(block("line", "indexes", &["us", "us"]));
    assert_eq!(
        problem(&two, &rows).0,
        "`error` goes with a single `y` column"
    );
    for chart_type in ["area", "box", "heatmap"] {
        let (message, _) = problem(
            &with_error(block(chart_type, "indexes", &["us"])),
            &table(
                "indexes integer, us real, low real, high real",
                &["1 | 2 | 1 | 3"],
            ),
        );
        assert!(message.contains("has no error bars"), "{message}");
    }
    let mut rows = runs();
    rows.rows.pop();
    let (message, _) = problem(&grouped("area"), &rows);
    assert_eq!(
        message,
        "series `cold` has no row where `indexes` is 2, so it cannot be stacked"
    );
    let many: Vec<String> = (0..=plot::ROW_LIMIT)
        .map(|n| format!("{n} | {n}"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let (message, _) = problem(
        &block("line", "n", &["v"]),
        &table("n integer, v integer", &many),
    );
    assert!(
        message.contains("has 10001 rows, more than the 10000"),
        "{message}"
    );
}

#[test]
fn times_texts_and_logarithms_have_their_axes() {
    let times = table(
        "at timestamp with time zone, v integer",
        &["2026-11-30 12:00:00+00 | 1", "2026-11-30 15:00:00.5+00 | 2"],
    );
    assert!(drawn(&block("line", "at", &["v"]), &times).contains(">13:00<"));
    let texts = table("name text, v integer", &["seq | 1", "random | 2"]);
    let svg = drawn(&block("line", "name", &["v"]), &texts);
    assert!(svg.contains(">seq<") && svg.contains(">random<"), "{svg}");
    let wide = table(
        "n integer, v numeric",
        &["1 | 0.01", "10 | 100", "100 | 1000000"],
    );
    let mut log = block("scatter", "n", &["v"]);
    log.log = vec![Axis::X, Axis::Y];
    let svg = drawn(&log, &wide);
    for label in ["0.01", "1M", "10", "100"] {
        assert!(svg.contains(&format!(">{label}<")), "{label}: {svg}");
    }
}

#[test]
fn rows_may_lack_a_combination_and_one_row_is_enough() {
    let mut rows = runs();
    rows.rows.pop();
    for chart_type in ["bar", "line", "scatter", "box", "heatmap"] {
        drawn(&grouped(chart_type), &rows);
        rows.rows.truncate(5);
    }
    let one = table("n integer, v integer", &["3 | 0"]);
    for chart_type in CHARTS {
        drawn(&block(chart_type.name, "n", &["v"]), &one);
    }
}

#[test]
fn as_many_rows_as_are_allowed_stay_within_the_limits() {
    let rows: Vec<String> = (0..plot::ROW_LIMIT)
        .map(|n| format!("{n} | {}", n % 977))
        .collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let svg = drawn(
        &block("scatter", "n", &["v"]),
        &table("n integer, v integer", &rows),
    );
    assert!(count(&svg, "<path") >= plot::ROW_LIMIT);
}

#[test]
fn the_key_tells_all_inputs_apart() {
    let (rows, block) = (runs(), grouped("line"));
    let key = cache_key(&chart(&block, &rows));
    assert_eq!(key, cache_key(&chart(&grouped("line"), &runs())));
    assert_eq!(key.len(), 64);
    let mut keys = HashSet::from([key]);
    let mut other_rows = runs();
    other_rows.rows[0][2] = Cell::Null;
    assert!(keys.insert(cache_key(&chart(&block, &other_rows))));
    assert!(keys.insert(cache_key(&chart(&grouped("bar"), &rows))));
    assert!(keys.insert(cache_key(&chart(&with_error(grouped("line")), &rows))));
    for change in [
        |block: &mut ChartBlock| block.log = vec![Axis::Y],
        |block: &mut ChartBlock| block.x_label = Some("x".into()),
        |block: &mut ChartBlock| block.y_label = Some("x".into()),
        |block: &mut ChartBlock| block.option = Some(json!({"a": 1})),
        |block: &mut ChartBlock| block.id.value.push('2'),
        |block: &mut ChartBlock| block.series = None,
    ] {
        let mut other = grouped("line");
        change(&mut other);
        assert!(keys.insert(cache_key(&chart(&other, &rows))), "{other:?}");
    }
    let mut other = chart(&block, &rows);
    other.title = None;
    assert!(keys.insert(cache_key(&other)));
    other.alt.push('.');
    assert!(keys.insert(cache_key(&other)));
}

#[test]
fn the_notices_are_those_of_the_parts() {
    for part in [
        "Copyright 2017-2024 The Apache Software Foundation",
        "Apache License\n                           Version 2.0, January 2004",
        "Copyright 2010-2016 Mike Bostock",
        "Copyright (c) 2017, Baidu Inc.",
        "Fabrice Bellard",
    ] {
        assert!(NOTICES.contains(part), "{part}");
    }
}

#[test]
fn areas_are_stacked_upwards_place_by_place() {
    let mut block = block("area", "n", &["v"]);
    block.series = Some(at("series", "kind"));
    // The second series comes in another order.
    let rows = table(
        "n integer, kind text, v integer",
        &[
            "1 | a | 100",
            "2 | a | 200",
            "3 | a | 400",
            "3 | b | 400",
            "2 | b | 200",
            "1 | b | 100",
        ],
    );
    let svg = drawn(&block, &rows);
    let labels = |text: &str| svg.contains(&format!(">{text}</text>"));
    // 400 upon 400, at places up to 3.
    assert!(labels("800") && labels("3"), "{svg}");
    assert!(!labels("1,000") && !labels("4") && !labels("6"), "{svg}");
}
