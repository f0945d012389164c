//! `{{ expression }}`: where it stands, and which names it reads. The scanner knows Tera's three
//! kinds of quotes and nested braces, so that an expression cannot end early or break out.

use crate::article::FillIn;
use crate::source::Span;
use std::ops::Range;

/// A `{{` that is no fill-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFillIn {
    pub range: Range<usize>,
    pub message: &'static str,
    pub hint: &'static str,
    /// Not closed, rather than empty.
    pub is_open: bool,
}

/// The fill-ins of `text` from `at` on that begin outside of the `verbatim` ranges (ascending).
/// `\{{` is none.
pub fn find(text: &str, mut at: usize, verbatim: &[Range<usize>]) -> (Vec<FillIn>, Vec<BadFillIn>) {
    let mut fill_ins = Vec::new();
    let mut wrong = Vec::new();
    let mut verbatim = verbatim.iter().peekable();
    while let Some(found) = text[at..].find("{{") {
        let start = at + found;
        while verbatim.next_if(|range| range.end <= start).is_some() {}
        if let Some(range) = verbatim.peek()
            && range.start <= start
        {
            at = range.end;
            continue;
        }
        if is_escaped(text, start) {
            at = start + 2;
            continue;
        }
        match scan(text, start) {
            Ok(end) => {
                fill_ins.push(FillIn {
                    expression: text[start + 2..end - 2].trim().to_owned(),
                    span: Span::new(start, end),
                });
                at = end;
            }
            Err(problem) => {
                // Where one is not closed, its line holds no other that could be trusted.
                let end = problem.range.end;
                let line_end = text[end..]
                    .find('\n')
                    .map_or(text.len(), |length| end + length);
                at = if problem.is_open { line_end } else { end };
                wrong.push(problem);
            }
        }
    }
    (fill_ins, wrong)
}

fn is_escaped(text: &str, at: usize) -> bool {
    let before = &text.as_bytes()[..at];
    before.iter().rev().take_while(|&&b| b == b'\\').count() % 2 == 1
}

/// The end of the fill-in that begins at `start`.
fn scan(text: &str, start: usize) -> Result<usize, BadFillIn> {
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut quote = None;
    let mut at = start + 2;
    while let Some(&byte) = bytes.get(at) {
        match (quote, byte) {
            (_, b'\n' | b'\r') => break,
            (Some(_), b'\\') => at += 1,
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'' | b'`') => quote = Some(byte),
            (None, b'{') => depth += 1,
            (None, b'}') if depth > 0 => depth -= 1,
            (None, b'}') if bytes.get(at + 1) == Some(&b'}') => {
                let end = at + 2;
                return if text[start + 2..at].trim().is_empty() {
                    Err(BadFillIn {
                        range: start..end,
                        message: "nothing to fill in",
                        hint: "name a claim or a param between the braces, or write `\\{{` for the braces themselves",
                        is_open: false,
                    })
                } else {
                    Ok(end)
                };
            }
            (None, _) => {}
        }
        at += 1;
    }
    Err(BadFillIn {
        range: start..start + 2,
        message: "`{{` is not closed on its line",
        hint: "close it with `}}` on the same line, or write `\\{{` for the braces themselves",
        is_open: true,
    })
}

/// The names an expression reads, with their ranges in it: identifiers that are no attribute,
/// filter, function, test, argument name or keyword.
pub fn roots(expression: &str) -> Vec<(&str, Range<usize>)> {
    const KEYWORDS: [&str; 14] = [
        "and", "or", "not", "is", "in", "if", "else", "for", "true", "True", "false", "False",
        "none", "None",
    ];
    let tokens = tokens(expression);
    let text = |index: usize| {
        tokens
            .get(index)
            .map_or("", |range| &expression[range.clone()])
    };
    let mut names = Vec::new();
    for (index, range) in tokens.iter().enumerate() {
        let word = &expression[range.clone()];
        let is_word = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let before = if index > 0 { text(index - 1) } else { "" };
        let tested = before == "is" || (before == "not" && index > 1 && text(index - 2) == "is");
        let after = text(index + 1);
        if is_word
            && !KEYWORDS.contains(&word)
            && word != "null"
            && !matches!(before, "." | "?." | "|")
            && !tested
            && !matches!(after, "(" | "=")
        {
            names.push((word, range.clone()));
        }
    }
    names
}

/// Words, numbers, strings and operators.
fn tokens(expression: &str) -> Vec<Range<usize>> {
    let bytes = expression.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let byte = bytes[at];
        if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii() {
            let number = byte.is_ascii_digit();
            while at < bytes.len()
                && (bytes[at].is_ascii_alphanumeric()
                    || bytes[at] == b'_'
                    || !bytes[at].is_ascii()
                    || (number && bytes[at] == b'.'))
            {
                at += 1;
            }
        } else if matches!(byte, b'"' | b'\'' | b'`') {
            at += 1;
            while at < bytes.len() && bytes[at] != byte {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at = (at + 1).min(bytes.len());
        } else {
            let two = bytes.get(at..at + 2);
            at += match two {
                Some(b"==" | b"!=" | b"<=" | b">=" | b"?.") => 2,
                _ => 1,
            };
        }
        tokens.push(start..at);
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expressions(text: &str) -> Vec<String> {
        let (found, wrong) = find(text, 0, &[]);
        assert_eq!(wrong, [], "{text}");
        found
            .into_iter()
            .map(|fill_in| fill_in.expression)
            .collect()
    }

    #[test]
    fn fill_ins_are_found_with_their_quotes_and_braces() {
        let cases: &[(&str, &[&str])] = &[
            ("no { braces } here", &[]),
            ("{{ a }} and {{b}}", &["a", "b"]),
            (r"\{{ a }} but {{ b }}", &["b"]),
            (r"\\{{ a }}", &["a"]),
            ("{{ f(x=\"}}\") }}", &["f(x=\"}}\")"]),
            (
                "{{ f(x='}}') }} {{ g(x=`}}`) }}",
                &["f(x='}}')", "g(x=`}}`)"],
            ),
            (r#"{{ f(x="\"}}") }}"#, &[r#"f(x="\"}}")"#]),
            ("{{ {a: {b: 1}}}}", &["{a: {b: 1}}"]),
            ("{{ m[0].x | fixed(n=1) }}", &["m[0].x | fixed(n=1)"]),
        ];
        for (text, expected) in cases {
            assert_eq!(expressions(text), *expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_closed_is_told() {
        for (text, range, message) in [
            ("a {{ b", 2..4, "`{{` is not closed on its line"),
            ("a {{ b\n}}", 2..4, "`{{` is not closed on its line"),
            ("a {{ 'b }}", 2..4, "`{{` is not closed on its line"),
            ("a {{ }}", 2..7, "nothing to fill in"),
            ("{{}}", 0..4, "nothing to fill in"),
        ] {
            let (found, wrong) = find(text, 0, &[]);
            assert_eq!(found, [], "{text}");
            assert_eq!((wrong[0].range.clone(), wrong[0].message), (range, message));
        }
    }

    #[test]
    fn verbatim_ranges_hold_no_fill_ins() {
        let text = "{{ a }} `{{ b }}` {{ c }}";
        let (found, _) = find(text, 0, std::slice::from_ref(&(8..17)));
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].expression, "c");
    }

    #[test]
    fn roots_are_the_names_an_expression_reads() {
        let cases: &[(&str, &[&str])] = &[
            ("a", &["a"]),
            ("a | fixed(n=1)", &["a"]),
            ("a.b.c + server?.version", &["a", "server"]),
            ("a[b]", &["a", "b"]),
            ("f(x=a, y='b')", &["a"]),
            ("a if b is defined else 2", &["a", "b"]),
            ("a is not divisibleby(n=2)", &["a"]),
            ("not a and b or c in [d, 1.5e3]", &["a", "b", "c", "d"]),
            ("a == b", &["a", "b"]),
            ("'a' ~ \"b\" ~ `c`", &[]),
        ];
        for (expression, expected) in cases {
            let names: Vec<&str> = roots(expression)
                .into_iter()
                .map(|(name, _)| name)
                .collect();
            assert_eq!(names, *expected, "{expression}");
        }
    }
}
