//! Workflow commands: what GitHub Actions shows at the lines of a pull request. One line a problem.

use super::places::place_of;
use super::{Look, Places, Report, Run, Status};
use crate::diagnostic::{Diagnostic, Severity};

pub(super) const REPORT: Report = Report {
    name: "github",
    about: "workflow commands of GitHub Actions: problems at their lines",
    write,
};

fn write(run: &Run, _: Look) -> String {
    let mut text = String::new();
    let mut tell = |title: &str, diagnostic: &Diagnostic| {
        text.push_str(&command(title, diagnostic, run.places));
    };
    for problem in &run.problems {
        tell(&format!("remeasure {}", run.command), &problem.diagnostic);
    }
    for asked in &run.articles {
        for problem in &asked.problems {
            tell(&asked.slug, &problem.diagnostic);
        }
        for explanation in asked.explanations.iter().flatten() {
            tell(&asked.slug, explanation);
        }
        let unpinned = asked
            .judged
            .map_or_else(Vec::new, |judged| judged.notices());
        if !unpinned.is_empty() {
            tell(&asked.slug, &Diagnostic::warning(unpinned.join("\n")));
        }
        if asked.status == Status::NotDone {
            let not_done = Diagnostic::warning(format!("`{}` was not done", asked.slug));
            tell(&asked.slug, &not_done);
        }
    }
    let title = format!("title=remeasure {}", run.command);
    text.push_str(&format!(
        "::notice {title}::{}\n",
        data(&run.count().to_string())
    ));
    text
}

fn command(title: &str, diagnostic: &Diagnostic, places: &Places) -> String {
    let mut properties = Vec::new();
    if let Some((file, region)) = place_of(diagnostic) {
        let file = places.in_repository(file);
        properties.push(format!("file={}", property(&file)));
        properties.push(format!("line={}", region.line));
        // Columns are of one line.
        if region.line == region.end_line {
            properties.push(format!("col={}", region.column));
            properties.push(format!("endColumn={}", region.end_column));
        } else {
            properties.push(format!("endLine={}", region.end_line));
        }
    }
    properties.push(format!("title={}", property(title)));
    let word = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let message = data(&message(diagnostic));
    format!("::{word} {}::{message}\n", properties.join(","))
}

/// Message, notes and hint under one another.
fn message(diagnostic: &Diagnostic) -> String {
    let mut lines = vec![diagnostic.message.clone()];
    lines.extend(diagnostic.notes.iter().cloned());
    lines.extend(diagnostic.hint.iter().map(|hint| format!("hint: {hint}")));
    lines.join("\n")
}

/// As the runner's own toolkit escapes a command's message.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// As the runner's own toolkit escapes a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{LOOK, with_run};

    #[test]
    fn every_problem_is_one_line_at_its_place() {
        let text = with_run(|run| write(run, LOOK));
        let expected = "\
::error title=remeasure check::there is no article `z`
::warning file=articles/sample/article.md,line=1,col=1,endColumn=4,title=sample::a number that nothing checks%0Arule: unbound
::error file=articles/sample/article.md,line=3,col=6,endColumn=18,title=sample::the quote of `x` does not hold%0Aquoted: 76 <b>|bytes%0Ameasured: 77.04 B/row%0Atolerance: 75.5 to 76.5 B/row (to the precision quoted)%0Adifference: 77.04 is 0.54 above 75.5 to 76.5%0Ahint: change the quote or the claim's tolerance
::error file=articles/sample/article.md,line=1,endLine=3,title=b::no Postgres: 100%25,%0D%0Aof a:b%0Ahint: fetch it
::warning title=c::`c` was not done
::notice title=remeasure check::3 hold, 1 does not hold, 1 skipped
";
        assert_eq!(text, expected);
    }

    #[test]
    fn nothing_of_a_message_or_a_property_can_begin_another_command() {
        assert_eq!(data("a%0A\r\n::error::b"), "a%250A%0D%0A::error::b");
        assert_eq!(property("x,y=1::z\n%"), "x%2Cy=1%3A%3Az%0A%25");
    }
}
