//! What can be told about a statement from its own words, by Postgres's lexical rules: whether its
//! command tag carries a row count (the client library gives 0 where there is none), whether it
//! would stream data through the client, whether it asks for rows.

use squawk_lexer::{TokenKind, tokenize};

/// The identifiers and key words outside parentheses, as written. A statement that opens with a
/// parenthesis is a query; its first word is given as `SELECT`.
fn words(sql: &str) -> impl Iterator<Item = &str> {
    let mut offset = 0;
    let mut depth = 0u32;
    let mut first = true;
    tokenize(sql).filter_map(move |token| {
        let start = offset;
        offset += token.len as usize;
        let word = match token.kind {
            TokenKind::OpenParen => {
                depth += 1;
                (first && depth == 1).then_some("SELECT")
            }
            TokenKind::CloseParen => {
                depth = depth.saturating_sub(1);
                None
            }
            TokenKind::Ident if depth == 0 => Some(&sql[start..offset]),
            _ => None,
        };
        first &= word.is_none();
        word
    })
}

fn is(word: &str, keyword: &str) -> bool {
    word.eq_ignore_ascii_case(keyword)
}

fn is_one_of(word: &str, keywords: &[&str]) -> bool {
    keywords.iter().any(|keyword| is(word, keyword))
}

const QUERIES: [&str; 4] = ["SELECT", "WITH", "VALUES", "TABLE"];

/// Whether the statement's command tag ends in a row count.
pub fn counts_rows(sql: &str) -> bool {
    let mut words = words(sql);
    let Some(first) = words.next() else {
        return false;
    };
    if is(first, "CREATE") {
        return creates_from_query(words);
    }
    is_one_of(first, &QUERIES)
        || is_one_of(
            first,
            &[
                "INSERT", "UPDATE", "DELETE", "MERGE", "COPY", "FETCH", "MOVE",
            ],
        )
}

/// `CREATE TABLE … AS` and `CREATE MATERIALIZED VIEW … AS` count the rows put in, unless `WITH NO
/// DATA`.
fn creates_from_query<'a>(words: impl Iterator<Item = &'a str>) -> bool {
    let words: Vec<_> = words.collect();
    let object = words
        .iter()
        .position(|word| is_one_of(word, &["TABLE", "MATERIALIZED"]));
    let without_data = words
        .windows(2)
        .last()
        .is_some_and(|pair| is(pair[0], "NO") && is(pair[1], "DATA"));
    // Words between CREATE and TABLE: at most `GLOBAL TEMPORARY` or the like.
    object.is_some_and(|at| at <= 2) && words.iter().any(|word| is(word, "AS")) && !without_data
}

/// The direction of a `COPY` that sends its data through the client, which is a protocol of its
/// own.
pub fn copies_through_client(sql: &str) -> Option<&'static str> {
    let mut words = words(sql);
    if !is(words.next()?, "COPY") {
        return None;
    }
    let mut before = "";
    for word in words {
        if is(before, "FROM") && is(word, "STDIN") {
            return Some("FROM STDIN");
        }
        if is(before, "TO") && is(word, "STDOUT") {
            return Some("TO STDOUT");
        }
        before = word;
    }
    None
}

/// Whether the statement asks for rows.
pub fn asks_for_rows(sql: &str) -> bool {
    words(sql).next().is_some_and(|first| {
        is_one_of(first, &QUERIES) || is_one_of(first, &["EXPLAIN", "SHOW", "FETCH", "EXECUTE"])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_with_a_row_count_are_known() {
        for (sql, counted) in [
            ("SELECT 1", true),
            ("-- x\n/* y /* z */ */ select 1", true),
            ("(SELECT 1) UNION (SELECT 2)", true),
            ("WITH a AS (SELECT 1) SELECT * FROM a", true),
            ("VALUES (1)", true),
            ("TABLE t", true),
            ("INSERT INTO t VALUES (1)", true),
            ("COPY t FROM '/x'", true),
            ("CREATE TABLE t AS SELECT 1", true),
            (
                "CREATE UNLOGGED TABLE t WITH (fillfactor = 90) AS TABLE s",
                true,
            ),
            ("CREATE MATERIALIZED VIEW v AS SELECT 1", true),
            ("CREATE TABLE t AS SELECT 1 WITH NO DATA", false),
            (
                "CREATE TABLE t (a int, b int GENERATED ALWAYS AS (a) STORED)",
                false,
            ),
            ("CREATE VIEW v AS SELECT 1", false),
            (
                "CREATE FUNCTION f() RETURNS TABLE (a int) LANGUAGE sql AS 'TABLE t'",
                false,
            ),
            ("EXPLAIN SELECT 1", false),
            ("DO $$ BEGIN INSERT INTO t VALUES (1); END $$", false),
            ("VACUUM", false),
            ("", false),
            ("-- nothing", false),
        ] {
            assert_eq!(counts_rows(sql), counted, "{sql}");
        }
    }

    #[test]
    fn a_copy_through_the_client_is_seen_and_no_other() {
        for (sql, direction) in [
            ("COPY t FROM STDIN", Some("FROM STDIN")),
            (
                "copy t (a, b) from stdin with (format csv)",
                Some("FROM STDIN"),
            ),
            ("COPY (SELECT * FROM stdin) TO STDOUT", Some("TO STDOUT")),
            ("COPY (SELECT * FROM stdin) TO '/x'", None),
            ("COPY t TO PROGRAM 'cat'", None),
            ("SELECT 'COPY t FROM STDIN'", None),
            (
                "/* COPY */ COPY t /* TO */ FROM -- y\n STDIN",
                Some("FROM STDIN"),
            ),
            ("COPY", None),
        ] {
            assert_eq!(copies_through_client(sql), direction, "{sql}");
        }
    }

    #[test]
    fn statements_that_ask_for_rows_are_known() {
        for (sql, asks) in [
            ("SELECT 1", true),
            ("(VALUES (1))", true),
            ("EXPLAIN ANALYZE SELECT 1", true),
            ("SHOW wal_level", true),
            ("INSERT INTO t SELECT 1", false),
            ("CREATE TABLE t AS SELECT 1", false),
            ("", false),
        ] {
            assert_eq!(asks_for_rows(sql), asks, "{sql}");
        }
    }
}
