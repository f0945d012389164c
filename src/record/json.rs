//! How a record is written: JSON that a person can read and compare line by line. Everything is
//! indented, but a list or mapping of plain values stands on one line, so that a row of a table is
//! a line of a diff.

use super::format::Record;
use super::integrity::{SEALS, seals};

/// Mappings of plain values are kept on one line up to this many characters; lists always are.
const LINE: usize = 100;

/// A record as it stands in a file: LF, one newline at the end.
pub fn to_json(record: &Record) -> String {
    let pretty = serde_json::to_string_pretty(record).expect("a record serialises");
    sealed(&on_one_line(&pretty))
}

/// The text with the hashes of its parts as its last member.
fn sealed(text: &str) -> String {
    let seals: Vec<String> = seals(text)
        .into_iter()
        .map(|(part, sha256)| {
            let part = serde_json::to_string(&part).expect("a string serialises");
            format!("    {part}: \"{sha256}\"")
        })
        .collect();
    let open = text.trim_end_matches('}').trim_end();
    format!(
        "{open},\n  \"{SEALS}\": {{\n{}\n  }}\n}}\n",
        seals.join(",\n")
    )
}

/// Joins each innermost list and short mapping of serde_json's indented form. A string never ends
/// a line with a bracket there: its own quote stands behind it.
fn on_one_line(pretty: &str) -> String {
    let lines: Vec<&str> = pretty.lines().collect();
    let mut joined: Vec<String> = Vec::with_capacity(lines.len());
    let mut at = 0;
    while at < lines.len() {
        let end = innermost_end(&lines, at);
        match end.map(|end| join(&lines[at..=end])) {
            Some(line) if lines[at].ends_with('[') || line.trim_start().chars().count() <= LINE => {
                joined.push(line);
                at = end.map_or(at, |end| end) + 1;
            }
            _ => {
                joined.push(lines[at].to_owned());
                at += 1;
            }
        }
    }
    joined.join("\n")
}

/// Where the list or mapping that opens on line `start` closes, if nothing opens inside it.
fn innermost_end(lines: &[&str], start: usize) -> Option<usize> {
    if !lines[start].ends_with(['[', '{']) {
        return None;
    }
    let next = lines[start + 1..]
        .iter()
        .position(|line| line.ends_with(['[', '{', ']', '}']) || closes_with_comma(line))?;
    let next = start + 1 + next;
    (!lines[next].ends_with(['[', '{'])).then_some(next)
}

/// `],` or `},` and not a value that happens to end so.
fn closes_with_comma(line: &str) -> bool {
    matches!(line.trim_start(), "]," | "},")
}

fn join(lines: &[&str]) -> String {
    let (first, rest) = lines.split_first().expect("a list has an opening line");
    let (last, inner) = rest.split_last().expect("and a closing one");
    let inner: Vec<&str> = inner.iter().map(|line| line.trim_start()).collect();
    let blank = if first.ends_with('{') { " " } else { "" };
    format!(
        "{first}{blank}{}{blank}{}",
        inner.join(" "),
        last.trim_start()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn rows_and_short_mappings_are_lines_and_nothing_else_changes() {
        let long = "x".repeat(LINE);
        let value = json!({
            "columns": [{"name": "a", "type": "text"}, {"name": "b", "type": "numeric"}],
            "rows": [["x [", "1.5"], ["{", null], ["]", true], [], ["},", "],"]],
            "empty": {},
            "long": {"text": long},
        });
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let text = on_one_line(&pretty);
        assert!(
            text.contains("\n    { \"name\": \"a\", \"type\": \"text\" },\n"),
            "{text}"
        );
        assert!(text.contains("\n    [\"x [\", \"1.5\"],\n"), "{text}");
        assert!(text.contains("\"long\": {\n"), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
