//! The sessions that an experiment names (`in: NAME`): opened with its state, outside of any
//! window, so that every phase knows their process ids; and what runs on them in the background.
//!
//! A background phase ends by itself, or with what it belongs to: one of `measure` with its run,
//! one of `setup` with its state. What still runs then has [`GRACE`] to end, is cancelled, and
//! where that does not help its session is terminated.

use super::fixture::{self, author_session};
use super::protocols::Description;
use super::script::{self, Aside, Rules, ScriptError};
use super::waiting::{self, Backends, Watcher};
use crate::article::{Article, Scalar, Step, Variables};
use crate::diagnostic::Diagnostic;
use crate::engine::Server;
use crate::engine::session::{Session, SessionError};
use crate::exit_code::Failure;
use crate::source::{Source, Spanned};
use indexmap::IndexMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

pub const IN: Description = Description {
    name: "<phase>: {in: NAME}",
    description: "a phase on a session of that name, opened before the first phase: waited for, in the order written. `measure: {in: NAME}` before `measure` runs before each window, behind it after each window and before `collect`; `expect_error` is the SQLSTATE it must raise. What `measure` phases leave open is rolled back after the run, what `setup` leaves open stays",
    gives: "",
    minimum_version: 16,
    disturbed_by: "what it writes before the window is not in it, but the checkpoint and vacuum state that it leaves is",
};

pub const BACKGROUND: Description = Description {
    name: "<phase>: {in: NAME, background: true}",
    description: "a phase that is not waited for: a blocker, a concurrent writer. One of `measure` begins before the window and ends with its run, one of `setup` or `warmup` ends with its state; what still runs then has 250 ms, is cancelled, and after 10 s its session is terminated. An error in it is told at its place and ends the run",
    gives: "",
    minimum_version: 16,
    disturbed_by: "counters of the whole cluster (`wal`, pg_stat_wal, pg_stat_io) count what it does as well; it takes CPU time from what is measured",
};

/// What a background phase has to end by itself once nobody needs it any more.
const GRACE: Duration = Duration::from_millis(250);
/// How long a cancelled statement may take to stop, and a terminated session to end.
const STOP: Duration = Duration::from_secs(10);
/// A statement in the background may run for as long as what it is beside.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// All of one state.
pub struct NamedSessions {
    named: IndexMap<String, Named>,
    /// Told once by every background phase that fails.
    trouble: (mpsc::UnboundedSender<()>, mpsc::UnboundedReceiver<()>),
}

struct Named {
    pid: i32,
    /// None while something runs on it in the background.
    session: Option<Session>,
    running: Option<Running>,
}

/// What runs in the background, and where it stands.
struct Running {
    task: JoinHandle<Played>,
    phases: Phases,
    of: Belongs,
    /// Told when nobody needs it any more: it then waits for nothing.
    over: watch::Sender<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belongs {
    ToState,
    ToRun,
}

/// The phases that one session runs in the background, one after the other.
#[derive(Clone)]
struct Phases {
    source: Arc<Source>,
    /// Such as ``in `measure` of experiment `e` ``.
    note: String,
    steps: Vec<Step>,
}

/// How it went: the session back, how many phases were done, and what stopped the next one.
struct Played {
    session: Session,
    done: usize,
    error: Option<PlayError>,
}

enum PlayError {
    Script(ScriptError),
    Waiting(Diagnostic),
    /// It raised no error, but one is expected.
    NotRaised(Diagnostic),
}

/// Where sessions are opened.
#[derive(Clone, Copy)]
pub struct Opening<'a> {
    pub server: &'a Server,
    pub article: &'a Article,
    pub database: &'a str,
}

/// What one step runs under.
pub struct Under<'a> {
    pub variables: &'a mut Variables,
    pub rules: Rules<'a>,
    /// To watch from.
    pub observer: &'a mut Session,
    pub subject: i32,
    pub note: String,
}

impl Default for NamedSessions {
    fn default() -> Self {
        Self {
            named: IndexMap::new(),
            trouble: mpsc::unbounded_channel(),
        }
    }
}

impl NamedSessions {
    pub async fn open(opening: Opening<'_>, names: &[&str]) -> Result<Self, Failure> {
        let mut named = IndexMap::new();
        for name in names {
            let session = beside(opening).await?;
            let of_name = Named {
                pid: session.backend_pid(),
                session: Some(session),
                running: None,
            };
            named.insert((*name).to_owned(), of_name);
        }
        Ok(Self {
            named,
            ..Self::default()
        })
    }

    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    pub fn pids(&self) -> impl Iterator<Item = i32> {
        self.named.values().map(|named| named.pid)
    }

    pub fn backends(&self, subject: i32) -> Backends {
        let named = self.named.iter();
        Backends::new(
            subject,
            named.map(|(name, named)| (name.clone(), named.pid)),
        )
    }

    /// `:subject_pid`, and `:NAME_pid` for each of them.
    pub fn name_in(&self, variables: &mut Variables, subject: i32) {
        let subject = Scalar::Number(subject.into());
        variables.insert("subject_pid".to_owned(), subject);
        self.name_others_in(variables);
    }

    /// `:NAME_pid` for each of them, which the measuring session knows too.
    pub fn name_others_in(&self, variables: &mut Variables) {
        for (name, named) in &self.named {
            let pid = Scalar::Number(named.pid.into());
            variables.insert(format!("{name}_pid"), pid);
        }
    }

    /// Variables as a script leaves them, but for the processes that it was told.
    fn keep(&self, into: &mut Variables, from: Variables) {
        let mut told = Variables::new();
        self.name_in(&mut told, 0);
        for (name, value) in from {
            if !told.contains_key(&name) {
                into.insert(name, value);
            }
        }
    }

    /// Waits until something in the background has failed.
    pub async fn trouble(&mut self) {
        // The sender lives as long as this: it never ends by itself.
        let _ = self.trouble.1.recv().await;
    }

    /// Whether something in the background has failed by itself since that was last asked for.
    pub fn is_in_trouble(&mut self) -> bool {
        self.trouble.1.try_recv().is_ok()
    }

    /// The session of that name, once it is free.
    pub async fn session(&mut self, name: &str, limit: Duration) -> Result<&mut Session, Failure> {
        let named = self
            .named
            .get_mut(name)
            .ok_or_else(|| Failure::internal(format!("session `{name}` was not opened")))?;
        if let Some(running) = &mut named.running {
            let waited = tokio::time::timeout(limit, &mut running.task).await;
            let Ok(played) = waited else {
                let message = format!("session `{name}` is still busy with this");
                let place = &running.phases;
                let span = place.steps.last().map(|step| step.phase.span);
                let diagnostic = Diagnostic::error(message).note(place.note.clone());
                return Err(Failure::article(match span {
                    Some(span) => diagnostic.at(&place.source, span),
                    None => diagnostic,
                }));
            };
            let phases = named.running.take().map(|running| running.phases);
            let played = played.map_err(|error| Failure::internal(error.to_string()))?;
            let failed = phases.and_then(|phases| phases.failure(&played, Stopped::ByItself));
            named.session = Some(played.session);
            if let Some(failure) = failed {
                return Err(failure);
            }
        }
        named
            .session
            .as_mut()
            .ok_or_else(|| Failure::internal(format!("session `{name}` is lost")))
    }

    /// Runs a step and waits for it.
    pub async fn run(
        &mut self,
        name: &Spanned<String>,
        step: &Step,
        under: Under<'_>,
    ) -> Result<(), Failure> {
        let backends = self.backends(under.subject);
        let mut variables = under.variables.clone();
        self.name_in(&mut variables, under.subject);
        let limit = under.rules.timeout;
        let session = self.session(&name.value, limit).await?;
        let note = format!("{}, session `{}`", under.note, name.value);
        let mut watcher = Watcher {
            session: under.observer,
            backends: &backends,
        };
        if let Some(condition) = &step.phase.wait_until {
            waiting::until(&mut watcher, condition, &variables, under.rules)
                .await
                .map_err(|diagnostic| waiting::failure(diagnostic, note.clone()))?;
        }
        let played = step_on(session, step, &mut variables, under.rules, watcher).await;
        // What `\gset` kept is for the phases that come after, as on the measuring session.
        self.keep(under.variables, variables);
        played.map_err(|error| error.failure(note))
    }

    /// Begins background steps, those of one session one after the other.
    pub async fn begin(
        &mut self,
        opening: Opening<'_>,
        steps: &[&Step],
        under: Under<'_>,
        of: Belongs,
    ) -> Result<(), Failure> {
        let backends = self.backends(under.subject);
        let mut variables = under.variables.clone();
        self.name_in(&mut variables, under.subject);
        let mut by_session: IndexMap<&str, Vec<Step>> = IndexMap::new();
        for step in steps {
            if let Some(name) = &step.session {
                let of_session = by_session.entry(name.value.as_str()).or_default();
                of_session.push((*step).clone());
            }
        }
        for (name, steps) in by_session {
            self.session(name, under.rules.timeout).await?;
            let observer = beside(opening).await?;
            let trouble = self.trouble.0.clone();
            let Some(named) = self.named.get_mut(name) else {
                continue;
            };
            let Some(session) = named.session.take() else {
                continue;
            };
            let phases = Phases {
                source: Arc::clone(&opening.article.source),
                note: format!("{}, session `{name}`", under.note),
                steps,
            };
            let (over, is_over) = watch::channel(false);
            let player = Player {
                session,
                observer,
                phases: phases.clone(),
                variables: variables.clone(),
                backends: backends.clone(),
                timeout: under.rules.timeout,
                over: is_over,
                trouble,
            };
            named.running = Some(Running {
                task: tokio::spawn(player.play()),
                phases,
                of,
                over,
            });
        }
        Ok(())
    }

    /// Ends what runs in the background and belongs there, and rolls its transactions back. The
    /// first phase that failed is told.
    pub async fn end(
        &mut self,
        opening: Opening<'_>,
        control: &mut Session,
        of: Belongs,
    ) -> Result<(), Failure> {
        let mut failed: Result<(), Failure> = Ok(());
        for (name, named) in &mut self.named {
            if named
                .running
                .as_ref()
                .is_none_or(|running| running.of != of)
            {
                continue;
            }
            let Some(running) = named.running.take() else {
                continue;
            };
            // A phase that has ended does not listen any more.
            let _ = running.over.send(true);
            let (played, stopped) = stop(running.task, named.pid, control).await?;
            let Some(played) = played else {
                let message = format!("session `{name}` did not end when it was terminated");
                return Err(Failure::Engine(Diagnostic::error(message)));
            };
            if failed.is_ok()
                && let Some(failure) = running.phases.failure(&played, stopped)
            {
                failed = Err(failure);
            }
            named.session = Some(if stopped == Stopped::Terminated {
                let session = beside(opening).await?;
                named.pid = session.backend_pid();
                session
            } else {
                played.session
            });
        }
        failed
    }

    /// Rolls back what phases of a run left open on their sessions.
    pub async fn roll_back<'n>(
        &mut self,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<(), Failure> {
        for name in names {
            if let Some(session) = self
                .named
                .get_mut(name)
                .and_then(|named| named.session.as_mut())
            {
                match session.execute("ROLLBACK").await {
                    // One that the article ended is told when it is used.
                    Ok(_) | Err(SessionError::Sql(_)) => {}
                    Err(lost) => return Err(lost.into()),
                }
            }
        }
        Ok(())
    }
}

/// A session beside the measuring one. Its backend ends when this program does, also in the middle
/// of a statement.
pub async fn beside(opening: Opening<'_>) -> Result<Session, Failure> {
    let Opening {
        server,
        article,
        database,
    } = opening;
    let mut session = author_session(server, article, database).await?;
    let notice = "SELECT pg_catalog.set_config('client_connection_check_interval', '1s', false)";
    // Where the platform cannot tell, the server's end has to do.
    match session.execute(notice).await {
        Ok(_) | Err(SessionError::Sql(_)) => Ok(session),
        Err(lost) => Err(lost.into()),
    }
}

/// Plays one session's background phases.
struct Player {
    session: Session,
    observer: Session,
    phases: Phases,
    variables: Variables,
    backends: Backends,
    timeout: Duration,
    over: watch::Receiver<bool>,
    trouble: mpsc::UnboundedSender<()>,
}

impl Player {
    async fn play(mut self) -> Played {
        let mut error = None;
        let mut done = 0;
        let steps = std::mem::take(&mut self.phases.steps);
        for step in &steps {
            match self.step(step).await {
                Ok(()) => done += 1,
                Err(found) => {
                    error = Some(found);
                    if !*self.over.borrow() {
                        // Nobody may listen any more.
                        let _ = self.trouble.send(());
                    }
                    break;
                }
            }
        }
        Played {
            session: self.session,
            done,
            error,
        }
    }

    async fn step(&mut self, step: &Step) -> Result<(), PlayError> {
        let rules = Rules {
            source: &self.phases.source,
            timeout: self.timeout,
        };
        let mut watcher = Watcher {
            session: &mut self.observer,
            backends: &self.backends,
        };
        if let Some(condition) = &step.phase.wait_until {
            let waited = tokio::select! {
                biased;
                waited = waiting::until(&mut watcher, condition, &self.variables, rules) => waited,
                _ = self.over.wait_for(|over| *over) => {
                    let message = "the run ended before this came true";
                    Err(Diagnostic::error(message).at(rules.source, condition.span))
                }
            };
            waited.map_err(PlayError::Waiting)?;
        }
        let rules = Rules {
            timeout: FOREVER,
            ..rules
        };
        step_on(&mut self.session, step, &mut self.variables, rules, watcher).await
    }
}

/// Runs a step. An error that is expected is none.
async fn step_on(
    session: &mut Session,
    step: &Step,
    variables: &mut Variables,
    rules: Rules<'_>,
    watcher: Watcher<'_>,
) -> Result<(), PlayError> {
    let aside = Aside {
        server_clock: None,
        watcher: Some(watcher),
    };
    let script = &step.phase.script;
    let ran = script::run(session, script, variables, rules, aside).await;
    match (ran, &step.expect_error) {
        (Err((_, ScriptError::Sql { sqlstate, .. })), Some(expected))
            if sqlstate == expected.value =>
        {
            Ok(())
        }
        (Err((_, error)), _) => Err(PlayError::Script(error)),
        (Ok(_), Some(expected)) => Err(PlayError::NotRaised(not_raised(expected, rules.source))),
        (Ok(_), None) => Ok(()),
    }
}

fn not_raised(expected: &Spanned<String>, source: &Arc<Source>) -> Diagnostic {
    let message = format!(
        "this phase raised no error, but SQLSTATE `{}` is expected",
        expected.value
    );
    Diagnostic::error(message).at(source, expected.span)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    ByItself,
    Cancelled,
    Terminated,
}

/// Ends a background task. How comes back with what it came to; None where nothing helped.
async fn stop(
    mut task: JoinHandle<Played>,
    pid: i32,
    control: &mut Session,
) -> Result<(Option<Played>, Stopped), Failure> {
    let played = |joined: Result<Played, tokio::task::JoinError>| {
        joined.map_err(|error| Failure::internal(format!("a background phase broke: {error}")))
    };
    if let Ok(joined) = tokio::time::timeout(GRACE, &mut task).await {
        return Ok((Some(played(joined)?), Stopped::ByItself));
    }
    // A request can be lost when it comes before the statement has started.
    for (function, times, stopped) in [
        ("pg_cancel_backend", 8, Stopped::Cancelled),
        ("pg_terminate_backend", 1, Stopped::Terminated),
    ] {
        for _ in 0..times {
            let sql = format!("SELECT pg_catalog.{function}({pid})");
            control.execute(&sql).await.map_err(Failure::from)?;
            let wait = STOP / times;
            if let Ok(joined) = tokio::time::timeout(wait, &mut task).await {
                return Ok((Some(played(joined)?), stopped));
            }
        }
    }
    task.abort();
    Ok((None, Stopped::Terminated))
}

impl Phases {
    /// What has to be told of phases that ended: an error that was not ours, an expected one that
    /// did not come, and one that never began.
    fn failure(&self, played: &Played, stopped: Stopped) -> Option<Failure> {
        const CANCELLED: [&str; 2] = ["57014", "57P01"];
        let step = self.steps.get(played.done)?;
        let note = self.note.clone();
        match &played.error {
            None => None,
            Some(PlayError::Script(ScriptError::Sql { sqlstate, .. }))
                if stopped != Stopped::ByItself && CANCELLED.contains(&sqlstate.as_str()) =>
            {
                let expected = step.expect_error.as_ref()?;
                let diagnostic = not_raised(expected, &self.source);
                Some(Failure::article(diagnostic.note(note)))
            }
            Some(error) => Some(error.failure_of(note)),
        }
    }
}

impl PlayError {
    fn failure(self, note: String) -> Failure {
        self.failure_of(note)
    }

    fn failure_of(&self, note: String) -> Failure {
        match self {
            Self::Waiting(diagnostic) | Self::NotRaised(diagnostic) => {
                waiting::failure(diagnostic.clone(), note)
            }
            Self::Script(error) => fixture::failure(error, note),
        }
    }
}
