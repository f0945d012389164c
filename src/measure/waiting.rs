//! Waiting for one another, with a deadline: [`until`] asks for a phase's `wait_until`, a
//! [`Watcher`] tells who waits for whom when something takes too long.

use super::protocols::Description;
use super::script::{Rules, with_postgres_words};
use crate::article::Variables;
use crate::diagnostic::Diagnostic;
use crate::engine::session::{Session, SessionError};
use crate::exit_code::Failure;
use crate::parse::sql::expand_text;
use crate::source::Spanned;
use std::time::{Duration, Instant};

pub const WAIT_UNTIL: Description = Description {
    name: "<phase>: {wait_until: CONDITION}",
    description: "a phase begins once this SQL of a boolean is true: asked every 5 ms, each time in a transaction of its own, on a session that does nothing else; `:subject_pid` and `:NAME_pid` are the backends. After the experiment's `timeout` it is an error that tells which session waits for which",
    gives: "",
    minimum_version: 16,
    disturbed_by: "what is true for less than 5 ms, which may not be seen; its questions cost CPU until it is true, for `measure` all of them before the window",
};

/// What the measuring session and those that an experiment names are called, by their backends.
#[derive(Clone, Debug, Default)]
pub struct Backends(Vec<(i32, String)>);

impl Backends {
    pub fn new(subject: i32, named: impl IntoIterator<Item = (String, i32)>) -> Self {
        let named = named
            .into_iter()
            .map(|(name, pid)| (pid, format!("session `{name}`")));
        let subject = (subject, "the measuring session".to_owned());
        Self([subject].into_iter().chain(named).collect())
    }

    fn name(&self, pid: &str) -> String {
        let known = self.0.iter().find(|(known, _)| known.to_string() == pid);
        match known {
            Some((_, name)) => name.clone(),
            None => format!("process {pid}"),
        }
    }
}

/// A connection that has nothing else to do while somebody waits.
pub struct Watcher<'a> {
    pub session: &'a mut Session,
    pub backends: &'a Backends,
}

impl Watcher<'_> {
    /// A sentence for each of the experiment's sessions that waits for a lock now.
    pub async fn waits(&mut self) -> Vec<String> {
        let pids: Vec<String> = (self.backends.0.iter())
            .map(|(pid, _)| pid.to_string())
            .collect();
        let sql = format!(
            "SELECT w.pid, coalesce(w.wait_event, 'a lock'), b.pid, coalesce(b.state, b.backend_type),
                    pg_catalog.left(b.query, 60)
             FROM pg_catalog.pg_stat_activity w
             CROSS JOIN LATERAL pg_catalog.unnest(pg_catalog.pg_blocking_pids(w.pid)) AS blocking (pid)
             JOIN pg_catalog.pg_stat_activity b ON b.pid = blocking.pid
             WHERE w.pid IN ({}) ORDER BY w.pid, b.pid",
            pids.join(", ")
        );
        // What cannot be asked is not told: the error itself is.
        let Ok(result) = self.session.execute(&sql).await else {
            return Vec::new();
        };
        let told = result.rows.into_iter().filter_map(|row| {
            let mut cells = row.into_iter().map(Option::unwrap_or_default);
            let (waiting, lock) = (cells.next()?, cells.next()?);
            let (blocking, state, query) = (cells.next()?, cells.next()?, cells.next()?);
            let (waiting, blocking) = (self.backends.name(&waiting), self.backends.name(&blocking));
            let query = query.split_whitespace().collect::<Vec<_>>().join(" ");
            Some(format!(
                "{waiting} waits ({lock}) for {blocking}, which is {state}: `{query}`"
            ))
        });
        told.collect()
    }

    /// Who the processes are that an error of Postgres (a deadlock's) speaks of.
    pub fn named_in(&self, text: &str) -> Vec<String> {
        let is_number = |word: &&str| !word.is_empty();
        let numbers: Vec<&str> = text
            .split(|c: char| !c.is_ascii_digit())
            .filter(is_number)
            .collect();
        let spoken_of = |(pid, _): &&(i32, String)| {
            let pid = pid.to_string();
            text.contains(&format!("rocess {pid}")) && numbers.contains(&pid.as_str())
        };
        let known = self.backends.0.iter().filter(spoken_of);
        known
            .map(|(pid, name)| format!("process {pid} is {name}"))
            .collect()
    }
}

/// How often a condition is asked for.
const EVERY: Duration = Duration::from_millis(5);

/// Asks until `condition` is true. Every question is a transaction of its own, so that none sees
/// the statistics of the one before.
pub async fn until(
    watcher: &mut Watcher<'_>,
    condition: &Spanned<String>,
    variables: &Variables,
    rules: Rules<'_>,
) -> Result<(), Diagnostic> {
    let at_its_place = |diagnostic: Diagnostic| diagnostic.at(rules.source, condition.span);
    let expression = expand_text(&condition.value, variables).map_err(at_its_place)?;
    // On a line of its own: it may end with a comment.
    let sql = format!(
        "SELECT (\n{}\n)::boolean",
        expression.trim_end_matches([';', ' '])
    );
    let deadline = Instant::now() + rules.timeout;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let answer = watcher.session.execute_within(&sql, left.max(EVERY)).await;
        let answer = match answer {
            Ok(result) => result.rows.into_iter().flatten().flatten().next(),
            Err(SessionError::Sql(error)) if error.timed_out => None,
            Err(SessionError::Sql(error)) => {
                let diagnostic = Diagnostic::error(format!(
                    "Postgres: {} (SQLSTATE {})",
                    error.message, error.sqlstate
                ));
                let diagnostic = with_postgres_words(at_its_place(diagnostic), &error, None);
                return Err(diagnostic.note(format!("it was asked as {sql}")));
            }
            Err(lost) => {
                return Err(at_its_place(Diagnostic::error(lost.to_string())));
            }
        };
        if answer.as_deref() == Some("t") {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let limit = super::script::seconds(rules.timeout);
            let mut diagnostic = at_its_place(Diagnostic::error(format!(
                "`wait_until` did not come true within the timeout of {limit}"
            )));
            for wait in watcher.waits().await {
                diagnostic = diagnostic.note(wait);
            }
            let hint = "each wait ends with the experiment's `timeout`";
            return Err(diagnostic.hint(hint));
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// A session that is gone is the engine's fault, everything else the article's.
pub fn failure(diagnostic: Diagnostic, note: String) -> Failure {
    Failure::article(diagnostic.note(note))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_called_as_the_article_calls_their_sessions() {
        let backends = Backends::new(41, [("writer".to_owned(), 42), ("other".to_owned(), 4)]);
        assert_eq!(backends.name("42"), "session `writer`");
        assert_eq!(backends.name("41"), "the measuring session");
        assert_eq!(backends.name("7"), "process 7");
    }
}
