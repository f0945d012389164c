//! What psql prints: times of statements by its own `\timing`, and their row counts. Results are
//! printed as HTML, in which nothing of the data can be taken for psql's own lines, and thrown away.

use crate::measure::instrument::StatementTime;
use crate::measure::script::Ran;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::time::Duration;

/// What comes before a script, in the same session: the article's seed, and how to report.
pub fn beginning(seed: &str) -> String {
    format!(
        "\\set QUIET on\n\\pset format html\n\\pset pager off\n\
         SELECT pg_catalog.setseed({seed}) \\g /dev/null\n\\timing on\n\\set QUIET off\n"
    )
}

/// Statements in the order in which they were done. A statement that `\gexec` took its statements
/// from is done after them.
pub fn read(stdout: &File) -> io::Result<Ran> {
    let mut reader = BufReader::new(stdout);
    let mut ran = Ran::default();
    let mut rows = None;
    let mut in_table = false;
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\n', '\r']);
        if in_table {
            in_table = text != "</table>";
        } else if text.starts_with("<table") {
            in_table = true;
        } else if let Some(elapsed) = time(text) {
            ran.rows = rows.or(ran.rows);
            ran.statements.push(StatementTime {
                elapsed,
                server_ms: None,
                rows: rows.take(),
            });
        } else {
            rows = count(text).or(rows);
        }
    }
    Ok(ran)
}

/// `Time: 1234.567 ms (00:01.235)`
fn time(line: &str) -> Option<Duration> {
    let (number, _) = line.strip_prefix("Time: ")?.split_once(" ms")?;
    let (whole, fraction) = number.split_once('.')?;
    let milliseconds: u64 = whole.parse().ok()?;
    if fraction.len() != 3 {
        return None;
    }
    let microseconds: u64 = fraction.parse().ok()?;
    Some(Duration::from_micros(milliseconds * 1000 + microseconds))
}

/// `<p>INSERT 0 5</p>`, or `<p>(5 rows)<br />` below a result.
fn count(line: &str) -> Option<u64> {
    let text = line.strip_prefix("<p>")?;
    if let Some(footer) = text.strip_prefix('(') {
        let number = footer
            .strip_suffix(" rows)<br />")
            .or_else(|| footer.strip_suffix(" row)<br />"))?;
        return number.parse().ok();
    }
    text.strip_suffix("</p>")?.rsplit_once(' ')?.1.parse().ok()
}

/// Why psql stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// As it was named to psql.
    pub file: String,
    /// From one.
    pub line: usize,
    /// None where it is psql's own.
    pub sqlstate: Option<String>,
    pub message: String,
    pub notes: Vec<String>,
    pub hint: Option<String>,
    /// The line of the statement that Postgres shows, and the column it points at, from zero.
    pub pointed: Option<(String, usize)>,
}

/// The last thing that psql complained about.
pub fn problem(stderr: &str) -> Option<Problem> {
    let lines: Vec<&str> = stderr.lines().collect();
    let (index, mut problem) = lines
        .iter()
        .enumerate()
        .rev()
        .find_map(|(index, line)| Some((index, headline(line)?)))?;
    let mut rest = lines[index + 1..].iter().peekable();
    while let Some(line) = rest.next() {
        if let Some(shown) = line.strip_prefix("LINE ")
            && let Some((number, text)) = shown.split_once(": ")
        {
            let begin = "LINE ".len() + number.len() + ": ".len();
            let caret = rest.peek().and_then(|below| below.find('^'));
            if let Some(column) = caret.and_then(|column| column.checked_sub(begin)) {
                problem.pointed = Some((text.to_owned(), column));
            }
            rest.next();
        } else if let Some(hint) = line.strip_prefix("HINT:  ") {
            problem.hint = Some(hint.to_owned());
        } else if let Some(detail) = line.strip_prefix("DETAIL:  ") {
            problem.notes.push(format!("detail: {detail}"));
        } else if let Some(context) = line.strip_prefix("CONTEXT:  ") {
            problem.notes.push(context.to_owned());
        } else if line.starts_with("LOCATION:  ") || line.starts_with("psql:") {
            break;
        }
    }
    Some(problem)
}

/// `psql:measure.sql:20: ERROR:  42P01: relation "nope" does not exist`, or a complaint of psql's own
/// such as `psql:measure.sql:5: rows.csv: No such file or directory`.
fn headline(line: &str) -> Option<Problem> {
    let (file, rest) = line.strip_prefix("psql:")?.split_once(':')?;
    let (number, message) = rest.split_once(": ")?;
    let mut problem = Problem {
        file: file.to_owned(),
        line: number.parse().ok()?,
        ..Problem::default()
    };
    for severity in ["ERROR:  ", "FATAL:  ", "PANIC:  "] {
        if let Some((state, said)) = message
            .strip_prefix(severity)
            .and_then(|said| said.split_once(": "))
        {
            problem.sqlstate = Some(state.to_owned());
            problem.message = said.to_owned();
            return Some(problem);
        }
    }
    let is_news = ["NOTICE:", "WARNING:", "INFO:", "LOG:", "DEBUG:"]
        .iter()
        .any(|severity| message.starts_with(severity));
    problem.message = message.trim_start_matches("error: ").to_owned();
    (!is_news).then_some(problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    #[test]
    fn times_and_counts_are_told_from_data() {
        let mut file = tempfile::tempfile().unwrap();
        let printed = "<p>CREATE TABLE</p>\nTime: 1.984 ms\n<p>INSERT 0 5</p>\nTime: 61000.427 ms (01:01.000)\n\
            <table border=\"1\">\n  <tr valign=\"top\">\n    <td align=\"left\">a\nTime: 5.000 ms\n&lt;/table&gt;</td>\n\
            </table>\n<p>(1 row)<br />\n</p>\n<p>UPDATE 13</p>\nTime: 0.589 ms\nTime: 0.132 ms\nTime: soon\n";
        file.write_all(printed.as_bytes()).unwrap();
        file.rewind().unwrap();
        let ran = read(&file).unwrap();
        let told: Vec<(u128, Option<u64>)> = ran
            .statements
            .iter()
            .map(|one| (one.elapsed.as_micros(), one.rows))
            .collect();
        assert_eq!(
            told,
            [
                (1984, None),
                (61_000_427, Some(5)),
                (589, Some(13)),
                (132, None)
            ]
        );
        assert_eq!(ran.rows, Some(13));
    }

    #[test]
    fn the_last_complaint_is_read_whole() {
        let stderr = "psql:.remeasure/measure.sql:16: NOTICE:  00000: hi\n\
            LOCATION:  exec_stmt_raise, pl_exec.c:3897\n\
            psql:.remeasure/measure.sql:20: ERROR:  42P01: relation \"nope\" does not exist\n\
            LINE 3:   nope;\n          ^\nDETAIL:  none\nHINT:  look\nLOCATION:  parserOpenTable, parse_relation.c:1449\n";
        assert_eq!(
            problem(stderr),
            Some(Problem {
                file: ".remeasure/measure.sql".into(),
                line: 20,
                sqlstate: Some("42P01".into()),
                message: "relation \"nope\" does not exist".into(),
                notes: vec!["detail: none".into()],
                hint: Some("look".into()),
                pointed: Some(("  nope;".into(), 2)),
            })
        );
        let own = problem("psql:a.sql:5: rows.csv: No such file or directory\n").unwrap();
        assert_eq!(own.message, "rows.csv: No such file or directory");
        assert_eq!((own.line, own.sqlstate), (5, None));
        assert_eq!(problem("psql:a.sql:1: NOTICE:  00000: hi\n"), None);
        assert_eq!(problem(""), None);
    }
}
