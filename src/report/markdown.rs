//! A table for an issue, a comment or a job's summary: a row a figure, what does not hold first.

use super::places::place_of;
use super::{Asked, Count, Figure, Look, Problem, Report, Run, Status};
use crate::article::ClaimKind;
use crate::judge::Outcome;
use crate::record::Environment;

pub(super) const REPORT: Report = Report {
    name: "markdown",
    about: "a table for issues and comments: what does not hold first",
    write,
};

fn write(run: &Run, _: Look) -> String {
    let mut parts = Vec::new();
    if !run.problems.is_empty() {
        parts.push(problems(&run.problems));
    }
    parts.extend(run.articles.iter().map(article));
    if run.articles.len() > 1 {
        parts.push(format!(
            "{} articles: {}\n",
            run.articles.len(),
            run.count()
        ));
    }
    parts.join("\n")
}

fn article(asked: &Asked) -> String {
    let mut text = format!("**{}**: {}\n", escaped(&asked.slug), summary(asked));
    let problems = problems(&asked.problems);
    if !problems.is_empty() {
        text.push_str(&format!("\n{problems}"));
    }
    let notices = asked
        .judged
        .map_or_else(Vec::new, |judged| judged.notices());
    for notice in &notices {
        let (mark, words) = match notice.strip_prefix("- ") {
            Some(detail) => ("> - ", detail),
            None => ("\n> ", notice.as_str()),
        };
        text.push_str(&format!("{mark}{}\n", escaped(words)));
    }
    let figures = asked.figures();
    if !figures.is_empty() {
        text.push_str(&format!("\n{}", table(asked, figures)));
    }
    if let Some(judged) = asked.judged {
        let profile = escaped(&judged.record.profile);
        let environment = environment(&judged.record.environment);
        text.push_str(&format!("\nProfile {profile}; {environment}\n"));
    }
    text
}

fn summary(asked: &Asked) -> String {
    let count = Count::of(asked.verdicts());
    match asked.status {
        Status::Holds | Status::DoesNotHold => count.to_string(),
        Status::RecordStale if asked.judged.is_none() => "there is no record".to_owned(),
        Status::RecordStale => format!("the record is stale; {count}"),
        Status::Failed => "could not be done".to_owned(),
        Status::NotDone => "not done: an earlier problem ended the command".to_owned(),
    }
}

/// What lint only warns of is not what a reader of the table is after.
fn problems(problems: &[Problem]) -> String {
    let line = |problem: &Problem| {
        let diagnostic = &problem.diagnostic;
        let place = place_of(diagnostic).and_then(|(_, region)| {
            let name = &diagnostic.place.as_ref()?.source.name;
            let place = format!("{name}:{}:{}", region.line, region.column);
            Some(format!(" at {}", escaped(&place)))
        });
        let message = escaped(&diagnostic.message);
        let hint = diagnostic.hint.as_deref().map(escaped);
        let hint = hint.map_or_else(String::new, |hint| format!(" ({hint})"));
        format!("- error{}: {message}{hint}\n", place.unwrap_or_default())
    };
    let errors = problems.iter().filter(|problem| problem.is_error());
    errors.map(line).collect()
}

// ---- the table --------------------------------------------------------------------------------

const HEAD: [&str; 9] = [
    "verdict",
    "claim",
    "quoted",
    "measured",
    "tolerance",
    "author",
    "measured / author",
    "published",
    "measured / published",
];

/// Columns that nothing is in are left out.
fn table(asked: &Asked, mut figures: Vec<Figure<'_>>) -> String {
    figures.sort_by_key(rank);
    let rows: Vec<[String; 9]> = figures.iter().map(|figure| row(asked, figure)).collect();
    let is_there = |column: &usize| *column < 4 || rows.iter().any(|row| !row[*column].is_empty());
    let columns: Vec<usize> = (0..HEAD.len()).filter(is_there).collect();
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(columns.iter().map(|&column| HEAD[column]).collect());
    text.push_str(&line(columns.iter().map(|_| "---").collect()));
    for row in &rows {
        text.push_str(&line(columns.iter().map(|&column| &*row[column]).collect()));
    }
    text
}

fn rank(figure: &Figure) -> u8 {
    match figure.verdict.map(|verdict| &verdict.outcome) {
        Some(Outcome::DoesNotHold { .. }) => 0,
        None if figure.measured.is_none() => 1,
        Some(Outcome::Skipped { .. }) => 2,
        Some(Outcome::Holds) => 3,
        // What is only filled in.
        None => 4,
    }
}

fn row(asked: &Asked, figure: &Figure) -> [String; 9] {
    let line = asked
        .source()
        .map(|source| source.line_column(figure.span.start).0);
    let line = line.map_or_else(String::new, |line| format!(", line {line}"));
    let claim = format!("{}{line}", escaped(figure.claim));
    let quoted = figure.quoted.map_or_else(|| "–".to_owned(), escaped);
    let Some(verdict) = figure.verdict else {
        let why = escaped(figure.not_judged.as_deref().unwrap_or_default());
        let measured = figure.measured.as_deref();
        let mut row: [String; 9] = Default::default();
        row[0] = format!("not judged: {why}");
        (row[1], row[2]) = (claim, quoted);
        row[3] = measured.map_or_else(|| "–".to_owned(), escaped);
        return row;
    };
    let outcome = match &verdict.outcome {
        Outcome::Holds => "holds".to_owned(),
        Outcome::DoesNotHold { difference } => {
            format!("**does not hold**: {}", escaped(difference))
        }
        Outcome::Skipped { reason } => format!("skipped: {}", escaped(reason)),
    };
    let of_the_machine = match verdict.kind {
        ClaimKind::Noisy => " (of the machine)",
        ClaimKind::Exact | ClaimKind::Bounded => "",
    };
    let text = |text: Option<&String>| text.map(|text| escaped(text)).unwrap_or_default();
    let recorded = verdict.recorded.as_ref();
    [
        outcome,
        format!("{claim}{of_the_machine}"),
        quoted,
        escaped(&verdict.measured_text),
        escaped(&verdict.tolerance),
        text(recorded.map(|(value, _)| value)),
        text(recorded.map(|(_, ratio)| ratio)),
        text(verdict.published.as_ref()),
        text(verdict.published_ratio.as_ref()),
    ]
}

/// What it was measured on, in a line.
fn environment(environment: &Environment) -> String {
    let (server, host) = (&environment.server, &environment.host);
    let mut parts = vec![format!(
        "Postgres {} ({})",
        environment.versions_text(),
        server.engine
    )];
    if server.is_existing() {
        parts.push(host.cpu.clone());
    }
    if host.is_known() && !host.cpu.is_empty() {
        let cores = if host.cores == 1 { "core" } else { "cores" };
        parts.push(format!("{}, {} {cores}", host.cpu, host.cores));
    }
    if host.is_known() && !host.memory_bytes.is_empty() {
        parts.push(format!("{} memory", host.memory_text()));
    }
    let others = [
        &host.architecture,
        &host.kernel,
        &host.virtualization,
        &host.storage,
    ];
    let known = others
        .into_iter()
        .filter(|text| !text.is_empty() && !["none", "unknown"].contains(&text.as_str()));
    parts.extend(known.cloned());
    if let Some(network) = &server.network {
        let (way, round_trip) = (&network.way, &network.round_trip_ms);
        parts.push(format!(
            "by {way} with a round trip of {round_trip} ms, in no measured time"
        ));
    }
    parts.push(format!("remeasure {}", environment.tool.version));
    escaped(&parts.join(", "))
}

/// One line of text that no Markdown reads as anything else, that ends no cell, and that calls
/// nobody: an article is someone else's text.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut last = ' ';
    let mut rest = text.trim().chars().peekable();
    while let Some(c) = rest.next() {
        let next = rest.peek().copied().unwrap_or(' ');
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            // Inside a word it is none of emphasis.
            '_' if last.is_alphanumeric() && next.is_alphanumeric() => escaped.push(c),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => {
                escaped.push('\\');
                escaped.push(c);
            }
            // `@all` is told, `#1` is linked: an empty comment keeps the characters apart.
            '@' | '#' if next.is_alphanumeric() => {
                escaped.push(c);
                escaped.push_str("<!-- -->");
            }
            c if c.is_whitespace() => escaped.push(' '),
            c if c.is_control() => escaped.push('\u{fffd}'),
            // Marks that turn the direction of what follows.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
        last = c;
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{LOOK, with_run};
    use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

    #[test]
    fn what_does_not_hold_comes_first_and_what_was_not_done_says_so() {
        let text = with_run(|run| write(run, LOOK));
        let expected = "\
- error: there is no article \\`z\\`

**sample**: 3 hold, 1 does not hold, 1 skipped

| verdict | claim | quoted | measured | tolerance | author | measured / author |
| --- | --- | --- | --- | --- | --- | --- |
";
        assert!(text.starts_with(expected), "{text}");
        let verdicts: Vec<String> = cells(&text)
            .iter()
            .skip(1)
            .map(|row| row[0].clone())
            .collect();
        assert_eq!(
            verdicts,
            [
                "does not hold: 77.04 is 0.54 above 75.5 to 76.5",
                "skipped: noisy: of this machine, not judged here",
                "holds",
                "holds",
                "holds",
                "not judged: measured, and neither quoted nor limited",
            ]
        );
        assert_eq!(
            cells(&text)[6],
            [
                "not judged: measured, and neither quoted nor limited",
                "unquoted, line 1",
                "–",
                "5",
                "",
                "",
                ""
            ]
        );
        let environment = "\nProfile full; Postgres 16.15 (embedded), A\\|B, 2 cores, 7960 MB memory, \
                           Linux 6.1, remeasure 0.1.0\n";
        assert!(text.contains(environment), "{text}");
    }

    /// The cells that a reader of the table sees.
    fn cells(markdown: &str) -> Vec<Vec<String>> {
        let mut rows: Vec<Vec<String>> = Vec::new();
        for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::TableRow | Tag::TableHead) => rows.push(Vec::new()),
                Event::Start(Tag::TableCell) => rows.last_mut().unwrap().push(String::new()),
                Event::Text(text) | Event::Code(text) => {
                    if let Some(cell) = rows.last_mut().and_then(|row| row.last_mut()) {
                        cell.push_str(&text);
                    }
                }
                Event::End(TagEnd::Table) => break,
                _ => {}
            }
        }
        rows
    }

    #[test]
    fn cells_hold_the_text_and_nothing_but_the_text() {
        let nasty = [
            "76 <b>|bytes",
            "`]]>` *a* _b_ ~~c~~ [d](e) ![f](g) \\| &amp; $x$",
            "snake_case_name",
            "a\u{1b}b",
        ];
        for text in nasty {
            let table = format!("| a | b |\n| --- | --- |\n| {} | end |\n", escaped(text));
            let seen = cells(&table);
            let text = text.replace('\u{1b}', "\u{fffd}");
            assert_eq!(seen, [vec!["a", "b"], vec![&text, "end"]], "{table}");
        }
        assert_eq!(escaped("a\r\nb"), "a  b");
        assert_eq!(escaped("@all #1 a@ # "), "@<!-- -->all #<!-- -->1 a@ #");
    }
}
