use super::*;
use crate::article::{Scalar, Script, Variables};
use crate::source::{Extract, Source};
use bigdecimal::BigDecimal;
use std::sync::Arc;

fn source_and_extract(text: &str) -> (Arc<Source>, Extract) {
    let source = Source::new("a.md", "a.md", text.to_owned());
    let mut extract = Extract::default();
    extract.push(text, 0);
    (source, extract)
}

fn script(text: &str) -> Script {
    let (source, extract) = source_and_extract(text);
    split(&extract, &source).unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
}

fn statements(text: &str) -> Vec<String> {
    script(text)
        .statements
        .iter()
        .map(|statement| {
            let end = match &statement.terminator {
                Terminator::Semicolon => String::new(),
                Terminator::Gexec => " \\gexec".to_owned(),
                Terminator::Gset { prefix } => format!(" \\gset {prefix}").trim_end().to_owned(),
            };
            format!("{}{end}", statement.text.text)
        })
        .collect()
}

#[test]
fn scripts_are_split_as_psql_splits_them() {
    let cases: &[(&str, &[&str])] = &[
        ("", &[]),
        (";", &[]),
        (" ; ;; \n;", &[]),
        ("SELECT 1", &["SELECT 1"]),
        ("SELECT 1;", &["SELECT 1"]),
        ("SELECT 1; SELECT 2", &["SELECT 1", "SELECT 2"]),
        ("SELECT 1;\r\nSELECT 2;\r\n", &["SELECT 1", "SELECT 2"]),
        ("\u{feff}SELECT 1;", &["SELECT 1"]),
        ("SELECT ';';", &["SELECT ';'"]),
        ("SELECT 'it''s; fine';", &["SELECT 'it''s; fine'"]),
        (r"SELECT E'it\'s; fine';", &[r"SELECT E'it\'s; fine'"]),
        (r"SELECT 'c:\'; SELECT 2;", &[r"SELECT 'c:\'", "SELECT 2"]),
        (r"SELECT e'\\'; SELECT 2;", &[r"SELECT e'\\'", "SELECT 2"]),
        ("SELECT U&'d;0061';", &["SELECT U&'d;0061'"]),
        ("SELECT U&\"d;0061\";", &["SELECT U&\"d;0061\""]),
        ("SELECT B'1', X'1F', N'a;';", &["SELECT B'1', X'1F', N'a;'"]),
        ("SELECT 1 AS \"a;b\";", &["SELECT 1 AS \"a;b\""]),
        ("SELECT 1 AS \"a\"\";b\";", &["SELECT 1 AS \"a\"\";b\""]),
        ("SELECT $$a;b$$;", &["SELECT $$a;b$$"]),
        ("SELECT $x$a;$$;b$x$;", &["SELECT $x$a;$$;b$x$"]),
        ("SELECT $x$a$y$;$x$;", &["SELECT $x$a$y$;$x$"]),
        ("SELECT $1; SELECT $2;", &["SELECT $1", "SELECT $2"]),
        ("SELECT a$b$c; SELECT 2;", &["SELECT a$b$c", "SELECT 2"]),
        ("-- only a comment;\n", &[]),
        ("/* only; a comment */", &[]),
        ("-- first;\nSELECT 1;", &["SELECT 1"]),
        ("/* first; */ SELECT 1;", &["SELECT 1"]),
        (
            "/*+ SeqScan(t) */ SELECT 1;",
            &["/*+ SeqScan(t) */ SELECT 1"],
        ),
        (
            "SELECT /* a; /* b; */ c; */ 1;",
            &["SELECT /* a; /* b; */ c; */ 1"],
        ),
        ("SELECT 1 -- one;\n + 2;", &["SELECT 1 -- one;\n + 2"]),
        ("SELECT 1 -- one;\n; SELECT 2", &["SELECT 1", "SELECT 2"]),
        ("SELECT 1 + /* it's */ 2;", &["SELECT 1 + /* it's */ 2"]),
        ("SELECT 1 --it's\n;", &["SELECT 1"]),
        (
            "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2); SELECT 3;",
            &[
                "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2)",
                "SELECT 3",
            ],
        ),
        ("SELECT ')'; SELECT (2);", &["SELECT ')'", "SELECT (2)"]),
        ("SELECT 1); SELECT 2;", &["SELECT 1)", "SELECT 2"]),
        ("SELECT a[1; SELECT 2;", &["SELECT a[1", "SELECT 2"]),
        (
            "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END; SELECT 3;",
            &[
                "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END",
                "SELECT 3",
            ],
        ),
        (
            "create or replace procedure p() begin atomic select case when true then 1 end; end; SELECT 3;",
            &[
                "create or replace procedure p() begin atomic select case when true then 1 end; end",
                "SELECT 3",
            ],
        ),
        (
            "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $f$ BEGIN RETURN 1; END $f$; SELECT 3;",
            &[
                "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $f$ BEGIN RETURN 1; END $f$",
                "SELECT 3",
            ],
        ),
        ("BEGIN; SELECT 1; END;", &["BEGIN", "SELECT 1", "END"]),
        (
            "CREATE TABLE begin_case (a int); SELECT 1;",
            &["CREATE TABLE begin_case (a int)", "SELECT 1"],
        ),
        (
            "DO $$ BEGIN PERFORM 1; END $$; SELECT 1;",
            &["DO $$ BEGIN PERFORM 1; END $$", "SELECT 1"],
        ),
        (
            "SELECT 'SELECT 1' \\gexec\nSELECT 2;",
            &["SELECT 'SELECT 1' \\gexec", "SELECT 2"],
        ),
        (
            "SELECT 'SELECT 1'\n\\gexec\n",
            &["SELECT 'SELECT 1' \\gexec"],
        ),
        (
            "SELECT 1 AS a \\gset\nSELECT 2",
            &["SELECT 1 AS a \\gset", "SELECT 2"],
        ),
        (
            "SELECT 1 AS a\n  \\gset pre_ \r\nSELECT 2",
            &["SELECT 1 AS a \\gset pre_", "SELECT 2"],
        ),
        (
            "SELECT '\\gexec'; SELECT 2",
            &["SELECT '\\gexec'", "SELECT 2"],
        ),
        ("SELECT 1 -- \\gexec\n; SELECT 2", &["SELECT 1", "SELECT 2"]),
        (
            "SELECT {{ x }}, {% y %}, a % b, j ? 'k';",
            &["SELECT {{ x }}, {% y %}, a % b, j ? 'k'"],
        ),
        (
            "SELECT 'µ;', \"größe\" FROM ц;",
            &["SELECT 'µ;', \"größe\" FROM ц"],
        ),
        (
            "SELECT 1.5e3, 1_000, .5; SELECT 2",
            &["SELECT 1.5e3, 1_000, .5", "SELECT 2"],
        ),
        (
            "SELECT a @> b, c <@ d, e->>'f;' ; SELECT 2",
            &["SELECT a @> b, c <@ d, e->>'f;'", "SELECT 2"],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(statements(text), *expected, "{text}");
    }
}

#[test]
fn a_statement_keeps_its_place() {
    let (source, extract) = source_and_extract("-- c\nSELECT 1;\n  SELECT µ");
    let script = split(&extract, &source).expect("splits");
    let places: Vec<_> = script
        .statements
        .iter()
        .map(|statement| source.line_column(statement.text.to_source(0)))
        .collect();
    assert_eq!(places, [(2, 1), (3, 3)]);
}

#[test]
fn variables_are_found_where_psql_finds_them() {
    let cases: &[(&str, &[&str])] = &[
        ("SELECT :a", &[":a"]),
        ("SELECT :a+:b", &[":a", ":b"]),
        ("SELECT :'a', :\"b\"", &[":'a'", ":\"b\""]),
        ("SELECT t_:a", &[":a"]),
        ("SELECT :a$b", &[":a"]),
        ("SELECT :E'x'", &[":E"]),
        ("SELECT ':a', $$:a$$, \":a\" -- :a\n /* :a */", &[]),
        ("SELECT $x$ :a $x$, E':a\\':a', U&':a'", &[]),
        ("SELECT a::int, b::text", &[]),
        ("SELECT :a::int", &[":a"]),
        ("SELECT x:::a", &[":a"]),
        ("SELECT f(x := :a)", &[":a"]),
        ("SELECT a[1:2], a[:2], a[1:]", &[]),
        ("SELECT a[1:n], a[:n], a[m:n], a[m :n]", &[]),
        ("SELECT (a)[1:n], f(x)[1:n], a[1][2:n]", &[]),
        ("SELECT ARRAY[:a, :b]", &[":a", ":b"]),
        ("SELECT ARRAY[[:a], [:b]]", &[":a", ":b"]),
        ("SELECT a[(:i)], a[f(:i):n]", &[":i", ":i"]),
        ("SELECT j[:'key']", &[":'key'"]),
        ("SELECT a[1:2], :b", &[":b"]),
        ("SELECT :1, : a, :", &[]),
        ("SELECT :'a b'", &[]),
        ("SELECT :größe", &[":größe"]),
        ("INSERT INTO t VALUES (:a), (:b)", &[":a", ":b"]),
    ];
    for (text, expected) in cases {
        let found: Vec<String> = script(text)
            .statements
            .iter()
            .flat_map(|statement| {
                statement
                    .variables
                    .iter()
                    .map(|variable| statement.text.text[variable.range.clone()].to_owned())
            })
            .collect();
        assert_eq!(found, *expected, "{text}");
    }
}

fn variables() -> Variables {
    Variables::from([
        ("n".to_owned(), Scalar::Number(BigDecimal::from(1000))),
        ("name".to_owned(), Scalar::Text("it's \"x\"".to_owned())),
        ("path".to_owned(), Scalar::Text("c:\\d".to_owned())),
        ("yes".to_owned(), Scalar::Boolean(true)),
        ("unit".to_owned(), Scalar::Text("µs".to_owned())),
    ])
}

#[test]
fn variables_are_filled_in_and_escaped_as_psql_does() {
    let cases = [
        ("SELECT :n", "SELECT 1000"),
        ("SELECT :n::text || ':n'", "SELECT 1000::text || ':n'"),
        ("SELECT :'name'", "SELECT 'it''s \"x\"'"),
        ("SELECT 1 AS :\"name\"", "SELECT 1 AS \"it's \"\"x\"\"\""),
        ("SELECT :'path'", "SELECT  E'c:\\\\d'"),
        ("SELECT :yes, :'n'", "SELECT true, '1000'"),
        ("SELECT :name", "SELECT it's \"x\""),
        ("CREATE TABLE t_:n (a int)", "CREATE TABLE t_1000 (a int)"),
    ];
    for (text, expected) in cases {
        let (source, extract) = source_and_extract(text);
        let script = split(&extract, &source).expect(text);
        let expanded = expand(&script.statements[0], &variables(), &source).expect(text);
        assert_eq!(expanded.sql, expected);
        assert_eq!(expand_text(text, &variables()).as_deref(), Ok(expected));
    }
}

#[test]
fn a_position_in_the_filled_in_statement_leads_back_to_the_article() {
    let text = "SELECT µ, :'unit', :n + x FROM t";
    let (source, extract) = source_and_extract(text);
    let script = split(&extract, &source).expect("splits");
    let expanded = expand(&script.statements[0], &variables(), &source).expect("expands");
    assert_eq!(expanded.sql, "SELECT µ, 'µs', 1000 + x FROM t");
    let at = |part: &str| text.find(part).expect("part");
    for (position, expected) in [
        (1, 0),
        (8, at("µ")),
        (9, at(", :'unit'")),
        (11, at(":'unit'")),
        (13, at(":'unit'")),
        (15, at(", :n")),
        (17, at(":n")),
        (20, at(":n")),
        (24, at("x FROM")),
        (999, text.len()),
    ] {
        assert_eq!(expanded.source_offset(position), expected, "{position}");
    }
}

#[test]
fn an_unknown_variable_is_named_with_its_place_and_a_suggestion() {
    let (source, extract) = source_and_extract("SELECT 1,\n :nmae");
    let script = split(&extract, &source).expect("splits");
    let problem = expand(&script.statements[0], &variables(), &source).expect_err("unknown");
    assert_eq!(problem.location().as_deref(), Some("a.md:2:2"));
    assert_eq!(problem.message, "unknown variable `:nmae`");
    assert_eq!(problem.hint.as_deref(), Some("did you mean `name`?"));
}

#[test]
fn what_cannot_be_split_is_told_with_its_place() {
    let cases = [
        (
            "SELECT 1;\nSELECT 'it;\n",
            "a.md:2:8",
            "unterminated string",
            "close it with `'`",
        ),
        (
            "SELECT E'a\\';",
            "a.md:1:8",
            "unterminated string",
            "close it with `'`",
        ),
        (
            "SELECT $q$ x;",
            "a.md:1:8",
            "unterminated dollar quote",
            "close it with `$q$`",
        ),
        (
            "SELECT $$ x;",
            "a.md:1:8",
            "unterminated dollar quote",
            "close it with `$$`",
        ),
        (
            "SELECT 1 /* /* */;",
            "a.md:1:10",
            "unterminated comment",
            "close it with `*/`",
        ),
        (
            "SELECT \"a;",
            "a.md:1:8",
            "unterminated quoted identifier",
            "close it with `\"`",
        ),
        (
            "SELECT 1;\n\\timing on\n",
            "a.md:2:1",
            "unknown backslash command `\\timing`",
            "time is measured without it; `\\gexec` and `\\gset [prefix]` are the ones there are",
        ),
        (
            "SELECT 1 \\gexc\n",
            "a.md:1:10",
            "unknown backslash command `\\gexc`",
            "did you mean `\\gexec`?; `\\gexec` and `\\gset [prefix]` are the ones there are",
        ),
        (
            "\\gexec",
            "a.md:1:1",
            "`\\gexec` has no statement before it",
            "it ends a statement in place of the `;`",
        ),
        (
            "SELECT 1; \\gset",
            "a.md:1:11",
            "`\\gset` has no statement before it",
            "it ends a statement in place of the `;`",
        ),
        (
            "SELECT 1 \\gset a-b",
            "a.md:1:10",
            "`a-b` cannot be the prefix of `\\gset`",
            "a prefix is made of letters, digits and underscores; begin the next statement on a line of its own",
        ),
        (
            "SELECT 1 \\gexec SELECT 2",
            "a.md:1:10",
            "`\\gexec` takes nothing behind it, found `SELECT 2`",
            "begin the next statement on a line of its own",
        ),
        (
            "COPY t FROM STDIN;",
            "a.md:1:13",
            "`COPY` cannot use `STDIN` here",
            "make the rows with `INSERT … SELECT … FROM generate_series(…)`",
        ),
    ];
    for (text, place, message, hint) in cases {
        let (source, extract) = source_and_extract(text);
        let problems = split(&extract, &source).expect_err(text);
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        assert_eq!(problems[0].location().as_deref(), Some(place), "{text}");
        assert_eq!(problems[0].message, message);
        assert_eq!(problems[0].hint.as_deref(), Some(hint));
    }
}

#[test]
fn every_problem_of_a_script_is_told() {
    let (source, extract) = source_and_extract("\\a\nSELECT 1;\n\\b\nSELECT 'x");
    let problems = split(&extract, &source).expect_err("three problems");
    let places: Vec<_> = problems.iter().filter_map(|p| p.location()).collect();
    assert_eq!(places, ["a.md:1:1", "a.md:3:1", "a.md:4:8"]);
}

#[test]
fn measured_tables_are_found_in_real_tokens() {
    let cases: &[(&str, &[&str])] = &[
        ("SELECT 1 FROM measured.insert", &["insert"]),
        (
            "SELECT 1 FROM MEASURED . Insert i, measured.hot",
            &["insert", "hot"],
        ),
        ("SELECT 1 FROM \"measured\".\"Two Words\"", &["Two Words"]),
        ("SELECT measured.a.x FROM measured.a", &["a"]),
        (
            "SELECT 'measured.a', $$measured.b$$ -- measured.c\n/* measured.d */",
            &[],
        ),
        ("SELECT t.measured.x, unmeasured.y, measured", &[]),
        ("SELECT 1 FROM measured./* c */b", &["b"]),
    ];
    for (sql, expected) in cases {
        assert_eq!(measured_tables(sql), *expected, "{sql}");
    }
}

#[test]
fn gset_tells_which_variables_it_may_set() {
    let set = |text: &str| set_by(&script(text).statements[0]);
    assert_eq!(set("SELECT 1"), None);
    assert_eq!(
        set("SELECT count(*) AS n \\gset p_"),
        Some(SetVariables::Named(vec![
            "p_select".into(),
            "p_count".into(),
            "p_as".into(),
            "p_n".into()
        ]))
    );
    assert_eq!(
        set("SELECT * FROM t \\gset p_"),
        Some(SetVariables::AnyWithPrefix("p_".into()))
    );
    assert_eq!(
        set("SHOW work_mem \\gset"),
        Some(SetVariables::AnyWithPrefix(String::new()))
    );
}
