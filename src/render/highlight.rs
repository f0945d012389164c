//! SQL as HTML with a handful of classes, from Postgres's own lexical rules.

use super::html::escape;
use squawk_lexer::{LiteralKind, Token, TokenKind, tokenize};

/// A live block's content: `--|` lines as directives, everything else as SQL.
pub fn block(content: &str) -> String {
    let mut html = String::with_capacity(content.len() * 2);
    let mut sql = String::new();
    for line in content.split_inclusive('\n') {
        if line.trim_start().starts_with("--|") {
            html.push_str(&self::sql(&sql));
            sql.clear();
            let text = line.trim_end_matches(['\n', '\r']);
            let end = &line[text.len()..];
            html.push_str(&format!(
                "<span class=\"directive\">{}</span>{end}",
                escape(text)
            ));
        } else {
            sql.push_str(line);
        }
    }
    html.push_str(&self::sql(&sql));
    html
}

/// SQL, with psql's variables and backslash commands.
pub fn sql(text: &str) -> String {
    let mut html = String::with_capacity(text.len() * 2);
    let tokens: Vec<Token> = tokenize(text).collect();
    let (mut at, mut index) = (0, 0);
    while index < tokens.len() && tokens[index].kind != TokenKind::Eof {
        let token = &tokens[index];
        let rest = &text[at..];
        if token.kind == TokenKind::Unknown && rest.starts_with('\\') {
            // A backslash command ends with its line, whatever SQL would make of it.
            let length = rest.find('\n').unwrap_or(rest.len());
            push(&mut html, Some("meta"), &rest[..length]);
            html.push_str(&sql(&rest[length..]));
            return html;
        }
        let (class, taken) = match token.kind {
            TokenKind::Colon if !text[..at].ends_with(':') && names_variable(&tokens[index..]) => {
                (Some("variable"), 2)
            }
            TokenKind::Ident if text[..at].ends_with('.') => (None, 1),
            TokenKind::Ident => {
                let word = &rest[..token.len as usize];
                (word_class(word, tokens.get(index + 1)), 1)
            }
            kind => (class_of(kind), 1),
        };
        let length: u32 = tokens[index..index + taken].iter().map(|t| t.len).sum();
        push(&mut html, class, &rest[..length as usize]);
        at += length as usize;
        index += taken;
    }
    html
}

fn push(html: &mut String, class: Option<&str>, text: &str) {
    match class {
        Some(class) => {
            html.push_str(&format!("<span class=\"{class}\">{}</span>", escape(text)));
        }
        None => html.push_str(&escape(text)),
    }
}

/// `:name`, `:'name'`, `:"name"`
fn names_variable(tokens: &[Token]) -> bool {
    tokens.get(1).is_some_and(|token| {
        matches!(
            token.kind,
            TokenKind::Ident
                | TokenKind::QuotedIdent { .. }
                | TokenKind::Literal {
                    kind: LiteralKind::Str { terminated: true }
                }
        )
    })
}

fn class_of(kind: TokenKind) -> Option<&'static str> {
    match kind {
        TokenKind::LineComment | TokenKind::BlockComment { .. } => Some("comment"),
        TokenKind::Literal { kind } => Some(match kind {
            LiteralKind::Int { .. } | LiteralKind::Numeric { .. } => "number",
            _ => "string",
        }),
        TokenKind::PositionalParam { .. } => Some("variable"),
        _ => None,
    }
}

fn word_class(word: &str, next: Option<&Token>) -> Option<&'static str> {
    let lower = word.to_ascii_lowercase();
    if KEYWORDS.binary_search(&lower.as_str()).is_ok() {
        Some("keyword")
    } else if TYPES.binary_search(&lower.as_str()).is_ok() {
        Some("type")
    } else if next.is_some_and(|token| token.kind == TokenKind::OpenParen) {
        Some("function")
    } else {
        None
    }
}

/// Words that begin or join statements and clauses; sorted. Not all of `pg_get_keywords()`: most
/// of its unreserved ones are ordinary column names too.
const KEYWORDS: &[&str] = &[
    "access",
    "add",
    "all",
    "alter",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "atomic",
    "begin",
    "between",
    "by",
    "call",
    "cascade",
    "case",
    "cast",
    "check",
    "checkpoint",
    "cluster",
    "collate",
    "comment",
    "commit",
    "concurrently",
    "conflict",
    "constraint",
    "copy",
    "create",
    "cross",
    "current_date",
    "current_timestamp",
    "database",
    "deallocate",
    "declare",
    "default",
    "deferrable",
    "delete",
    "desc",
    "distinct",
    "do",
    "domain",
    "drop",
    "else",
    "end",
    "except",
    "execute",
    "exists",
    "explain",
    "extension",
    "false",
    "fetch",
    "filter",
    "first",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "function",
    "generated",
    "grant",
    "group",
    "having",
    "identity",
    "if",
    "ilike",
    "in",
    "include",
    "index",
    "inherits",
    "inner",
    "insert",
    "intersect",
    "into",
    "is",
    "join",
    "key",
    "language",
    "last",
    "lateral",
    "left",
    "like",
    "limit",
    "listen",
    "lock",
    "locked",
    "logged",
    "materialized",
    "merge",
    "natural",
    "not",
    "nothing",
    "notify",
    "null",
    "nulls",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "outer",
    "over",
    "partition",
    "plpgsql",
    "prepare",
    "primary",
    "procedure",
    "range",
    "recursive",
    "references",
    "refresh",
    "reindex",
    "release",
    "reset",
    "restrict",
    "return",
    "returning",
    "returns",
    "revoke",
    "right",
    "rollback",
    "row",
    "savepoint",
    "schema",
    "select",
    "sequence",
    "session",
    "set",
    "share",
    "show",
    "similar",
    "skip",
    "some",
    "start",
    "storage",
    "table",
    "tablesample",
    "tablespace",
    "temp",
    "temporary",
    "then",
    "to",
    "transaction",
    "trigger",
    "true",
    "truncate",
    "type",
    "union",
    "unique",
    "unlogged",
    "update",
    "using",
    "vacuum",
    "values",
    "view",
    "when",
    "where",
    "window",
    "with",
    "within",
    "without",
    "work",
];

const TYPES: &[&str] = &[
    "bigint",
    "bigserial",
    "bit",
    "bool",
    "boolean",
    "bytea",
    "char",
    "character",
    "cidr",
    "date",
    "decimal",
    "double",
    "float4",
    "float8",
    "inet",
    "int",
    "int2",
    "int4",
    "int8",
    "integer",
    "interval",
    "json",
    "jsonb",
    "jsonpath",
    "numeric",
    "oid",
    "pg_lsn",
    "precision",
    "real",
    "regclass",
    "serial",
    "smallint",
    "text",
    "time",
    "timestamp",
    "timestamptz",
    "tsvector",
    "uuid",
    "varchar",
    "varying",
    "xid",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_lists_are_sorted() {
        assert!(KEYWORDS.is_sorted());
        assert!(TYPES.is_sorted());
    }

    #[test]
    fn highlighting_changes_nothing_but_markup() {
        for text in [
            "SELECT format('a%s', i), :rows, x::int[1:2] FROM \"t\" \\gexec\nCHECKPOINT;\n",
            "--| runs: 3\nINSERT INTO t VALUES ($1, $$a\n'b'$$); /* x /* y */ */ -- z",
            "it's unterminated <b>&amp;",
            "\\gset it's",
            "",
        ] {
            let html = block(text);
            assert_eq!(text_of(&html), text);
            assert_eq!(
                html.matches("<span").count(),
                html.matches("</span>").count()
            );
        }
    }

    #[test]
    fn classes_follow_the_lexer() {
        let html = block("--| runs: 3\nselect median(x::int, :'v', 1.5, 'a''b') \\gexec\n");
        for piece in [
            "<span class=\"directive\">--| runs: 3</span>\n",
            "<span class=\"keyword\">select</span>",
            "<span class=\"function\">median</span>",
            "x::<span class=\"type\">int</span>",
            "<span class=\"variable\">:&#39;v&#39;</span>",
            "<span class=\"number\">1.5</span>",
            "<span class=\"string\">&#39;a&#39;&#39;b&#39;</span>",
            "<span class=\"meta\">\\gexec</span>\n",
        ] {
            assert!(html.contains(piece), "{piece} in {html}");
        }
    }

    fn text_of(html: &str) -> String {
        let mut text = String::new();
        let mut rest = html;
        while let Some(start) = rest.find("<") {
            text.push_str(&rest[..start]);
            rest = &rest[start + rest[start..].find('>').unwrap() + 1..];
        }
        text.push_str(rest);
        text.replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&#39;", "'")
            .replace("&amp;", "&")
    }
}
