//! Server settings of an experiment: applied by reload or restart as each needs, read back, undone.

use super::protocols::Description;
use crate::article::{Article, Experiment, Variables};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::engine::session::{Role, Session, SessionError, quote_identifier, quote_literal};
use crate::engine::{Server, refuse_setting};
use crate::exit_code::Failure;
use crate::parse::sql::{expand_text, variables_of_text};
use crate::quantity::{Column, Table, Value};
use std::collections::BTreeMap;
use std::time::Duration;

pub const SETTINGS: Description = Description {
    name: "settings, session",
    description: "server settings of one experiment, or of each cell where they name a matrix column: reloaded, or the server restarted where one needs it; read back, and undone. Settings of the measuring session are its own",
    gives: "of cells: measured.<experiment>_settings: name, setting (as the server says)",
    minimum_version: 16,
    disturbed_by: "a restart, after which shared buffers are empty: warm up, or load in `setup`",
};

/// The database of the tool's own connections.
pub const TOOL_DATABASE: &str = "postgres";

/// What has to be undone after an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Applied {
    Nothing,
    Reloaded(Vec<String>),
    Restarted,
    /// On each database of ours on an existing server.
    Held,
}

/// An experiment's settings on the server, where they are of one cell as well.
#[derive(Debug, Default)]
pub struct Settled {
    applied: Option<Applied>,
    /// What was asked for, variables filled in.
    wanted: BTreeMap<String, String>,
    /// What the server says.
    pub read_back: BTreeMap<String, String>,
    /// Some of them name a matrix column.
    of_cells: bool,
}

impl Settled {
    /// Brings the server to the experiment's settings as these variables have them.
    pub async fn begin(
        server: &mut Server,
        article: &Article,
        experiment: &Experiment,
        variables: &Variables,
    ) -> Result<Self, Failure> {
        let mut settled = Self {
            of_cells: are_of_cells(experiment),
            ..Self::default()
        };
        settled
            .change(server, article, experiment, variables)
            .await?;
        Ok(settled)
    }

    /// Whether another cell's variables ask for other settings.
    pub fn differs(&self, experiment: &Experiment, variables: &Variables) -> bool {
        self.of_cells
            && experiment.settings.iter().any(|(name, value)| {
                // One that cannot be filled in is told when it is applied.
                expand_text(&value.value, variables).ok().as_ref() != self.wanted.get(name)
            })
    }

    pub async fn change(
        &mut self,
        server: &mut Server,
        article: &Article,
        experiment: &Experiment,
        variables: &Variables,
    ) -> Result<(), Failure> {
        let (applied, read_back) = match apply(server, article, experiment, variables).await {
            Ok(applied) => applied,
            Err(failure) => {
                // It is undone already.
                self.applied = None;
                return Err(failure);
            }
        };
        self.applied = Some(applied);
        self.wanted = wanted(article, experiment, variables)?;
        self.read_back = read_back;
        Ok(())
    }

    /// Whether a change of them starts the server anew, so that all sessions end.
    pub fn restarts(&self) -> bool {
        self.applied == Some(Applied::Restarted)
    }

    /// Those that are the same for all cells.
    pub fn of_all_cells(&self, experiment: &Experiment) -> BTreeMap<String, String> {
        let mut settings = self.read_back.clone();
        for name in of_cells(experiment) {
            settings.remove(name);
        }
        settings
    }

    /// A result of its own where they differ from cell to cell.
    pub fn of_cell(&self) -> Option<(String, Table)> {
        let text = |text: &str| Value::from_postgres(Some(text), "text");
        let rows = self.read_back.iter();
        let rows = rows.map(|(name, value)| vec![text(name), text(value)]);
        self.of_cells.then(|| {
            let columns = ["name", "setting"].map(|name| Column::new(name, "text"));
            let table = Table {
                columns: columns.into(),
                rows: rows.collect(),
            };
            ("settings".to_owned(), table)
        })
    }

    /// Back to the article's own settings.
    pub async fn undo(self, server: &mut Server) -> Result<(), Failure> {
        undo(server, self.applied.unwrap_or(Applied::Nothing)).await
    }
}

/// Whether they differ from cell to cell.
pub fn are_of_cells(experiment: &Experiment) -> bool {
    !of_cells(experiment).is_empty()
}

/// The settings whose values name a matrix column.
fn of_cells(experiment: &Experiment) -> Vec<&str> {
    let columns = &experiment.cells.columns;
    let names_one = |text: &str| {
        let variables = variables_of_text(text);
        variables.iter().any(|one| columns.contains(&one.name))
    };
    let settings = experiment.settings.iter();
    settings
        .filter(|(_, value)| names_one(&value.value))
        .map(|(name, _)| name.as_str())
        .collect()
}

/// Brings the server to the experiment's settings and reads each back. Where that fails the server
/// is as it was.
async fn apply(
    server: &mut Server,
    article: &Article,
    experiment: &Experiment,
    variables: &Variables,
) -> Result<(Applied, BTreeMap<String, String>), Failure> {
    if experiment.settings.is_empty() {
        return Ok((Applied::Nothing, BTreeMap::new()));
    }
    let wanted = wanted(article, experiment, variables)?;
    if server.is_existing() {
        return match hold(server, &wanted).await {
            Ok(read_back) => Ok((Applied::Held, read_back)),
            Err(failure) => {
                undo(server, Applied::Held).await?;
                Err(at_its_setting(failure, article, experiment))
            }
        };
    }
    let mut control = tool_session(server).await?;
    let contexts = contexts(&mut control).await?;
    let applied = if needs_restart(&contexts, article, experiment)? {
        Applied::Restarted
    } else {
        Applied::Reloaded(wanted.keys().cloned().collect())
    };
    drop(control);
    match enforce(server, article, experiment, &wanted, &applied).await {
        Ok(read_back) => Ok((applied, read_back)),
        Err(failure) => {
            undo(server, applied).await?;
            Err(failure)
        }
    }
}

/// Each setting's value with its variables filled in. What reaches files, programs or libraries is
/// refused here as it is among the article's own settings.
fn wanted(
    article: &Article,
    experiment: &Experiment,
    variables: &Variables,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut wanted = BTreeMap::new();
    let mut problems = Vec::new();
    for (name, value) in &experiment.settings {
        let text = expand_text(&value.value, variables);
        match text.map(|text| (refuse_setting(name, &text), text)) {
            Ok((None, text)) => {
                wanted.insert(name.clone(), text);
            }
            Ok((Some(diagnostic), _)) | Err(diagnostic) => {
                problems.push(diagnostic.at(&article.source, value.span));
            }
        }
    }
    if problems.is_empty() {
        Ok(wanted)
    } else {
        Err(Failure::Article(problems))
    }
}

async fn enforce(
    server: &mut Server,
    article: &Article,
    experiment: &Experiment,
    wanted: &BTreeMap<String, String>,
    applied: &Applied,
) -> Result<BTreeMap<String, String>, Failure> {
    if *applied == Applied::Restarted {
        let restarted = server.restart(wanted).await;
        restarted.map_err(|failure| at_its_setting(failure, article, experiment))?;
    } else {
        let mut control = tool_session(server).await?;
        reload(server, &mut control, article, experiment, wanted).await?;
    }
    read_back(server, wanted).await
}

async fn hold(
    server: &Server,
    wanted: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Failure> {
    server.hold_settings(wanted).await?;
    read_back(server, wanted).await
}

async fn read_back(
    server: &Server,
    wanted: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut control = tool_session(server).await?;
    let mut read_back = BTreeMap::new();
    for name in wanted.keys() {
        read_back.insert(name.clone(), show(&mut control, name).await?);
    }
    Ok(read_back)
}

/// A server that did not start says which setting it was, but not where it stands.
fn at_its_setting(failure: Failure, article: &Article, experiment: &Experiment) -> Failure {
    let Failure::Article(problems) = failure else {
        return failure;
    };
    let settings = &experiment.settings;
    let place = |problem: Diagnostic| {
        let named = settings
            .iter()
            .find(|(name, _)| problem.message.contains(name.as_str()));
        match named.or_else(|| settings.first()) {
            Some((_, value)) if problem.place.is_none() => problem.at(&article.source, value.span),
            _ => problem,
        }
    };
    Failure::Article(problems.into_iter().map(place).collect())
}

async fn undo(server: &mut Server, applied: Applied) -> Result<(), Failure> {
    match applied {
        Applied::Nothing => Ok(()),
        Applied::Restarted => server.restart(&BTreeMap::new()).await,
        Applied::Held => Ok(server.let_go_of_settings().await?),
        Applied::Reloaded(names) => {
            let mut control = tool_session(server).await?;
            for name in names {
                execute(
                    &mut control,
                    &format!("ALTER SYSTEM RESET {}", identifier(&name)),
                )
                .await?;
            }
            await_reload(server, &mut control).await
        }
    }
}

pub async fn tool_session(server: &Server) -> Result<Session, Failure> {
    server
        .connect(TOOL_DATABASE, Role::Tool)
        .await
        .map_err(Failure::from)
}

/// One of the tool's own statements; that it fails is not the article's fault.
pub async fn execute(
    session: &mut Session,
    sql: &str,
) -> Result<Vec<Vec<Option<String>>>, Failure> {
    session
        .execute(sql)
        .await
        .map(|result| result.rows)
        .map_err(Failure::from)
}

async fn show(control: &mut Session, name: &str) -> Result<String, Failure> {
    let rows = execute(
        control,
        &format!("SELECT pg_catalog.current_setting({})", quote_literal(name)),
    )
    .await?;
    Ok(first_cell(rows))
}

fn first_cell(rows: Vec<Vec<Option<String>>>) -> String {
    rows.into_iter()
        .flatten()
        .flatten()
        .next()
        .unwrap_or_default()
}

/// Every setting's name in lower case, with its context: when a change of it takes effect.
async fn contexts(control: &mut Session) -> Result<BTreeMap<String, String>, Failure> {
    let sql = "SELECT lower(name), context FROM pg_catalog.pg_settings ORDER BY name";
    let rows = execute(control, sql).await?;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            let mut cells = row.into_iter().flatten();
            Some((cells.next()?, cells.next()?))
        })
        .collect())
}

/// Whether one of the settings takes effect only at server start. Those that cannot be set are the
/// article's mistake.
fn needs_restart(
    contexts: &BTreeMap<String, String>,
    article: &Article,
    experiment: &Experiment,
) -> Result<bool, Failure> {
    let mut restart = false;
    let mut problems = Vec::new();
    for (name, value) in &experiment.settings {
        let problem = match contexts.get(&name.to_ascii_lowercase()).map(String::as_str) {
            Some("internal") => {
                Diagnostic::error(format!("`{name}` cannot be set: it is fixed at build time"))
            }
            Some(context) => {
                restart |= context == "postmaster";
                continue;
            }
            None if name.contains('.') => continue,
            // The fake engine knows no settings.
            None if contexts.is_empty() => continue,
            None => {
                let problem = Diagnostic::error(format!("this server has no setting `{name}`"));
                match did_you_mean(name, contexts.keys().map(String::as_str)) {
                    Some(hint) => problem.hint(hint),
                    None => problem,
                }
            }
        };
        problems.push(problem.at(&article.source, value.span));
    }
    if problems.is_empty() {
        Ok(restart)
    } else {
        Err(Failure::Article(problems))
    }
}

async fn reload(
    server: &Server,
    control: &mut Session,
    article: &Article,
    experiment: &Experiment,
    wanted: &BTreeMap<String, String>,
) -> Result<(), Failure> {
    for (name, value) in wanted {
        let sql = format!(
            "ALTER SYSTEM SET {} = {}",
            identifier(name),
            quote_literal(value)
        );
        match control.execute(&sql).await {
            Ok(_) => {}
            Err(SessionError::Sql(error)) => {
                let span = experiment.settings[name].span;
                let diagnostic = Diagnostic::error(format!(
                    "Postgres: {} (SQLSTATE {})",
                    error.message, error.sqlstate
                ))
                .at(&article.source, span);
                return Err(Failure::article(super::script::with_postgres_words(
                    diagnostic, &error, None,
                )));
            }
            Err(lost) => return Err(lost.into()),
        }
    }
    await_reload(server, control).await
}

/// Reloads, and waits until new sessions and the checkpointer act on it: a new backend inherits
/// the postmaster's load time, and the checkpointer reads its configuration before it checkpoints
/// (it is the one that carries `full_page_writes` to everybody else).
async fn await_reload(server: &Server, control: &mut Session) -> Result<(), Failure> {
    const ATTEMPTS: u32 = 400;
    let before = first_cell(execute(control, "SELECT pg_catalog.pg_conf_load_time()").await?);
    execute(control, "SELECT pg_catalog.pg_reload_conf()").await?;
    for _ in 0..ATTEMPTS {
        let mut fresh = tool_session(server).await?;
        let now = first_cell(execute(&mut fresh, "SELECT pg_catalog.pg_conf_load_time()").await?);
        if now != before || before.is_empty() {
            execute(&mut fresh, "CHECKPOINT").await?;
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Err(Failure::Engine(Diagnostic::error(
        "the server did not reload its configuration within 2 s",
    )))
}

/// A setting's name as SQL wants it: `a.b` in two parts, each quoted.
fn identifier(name: &str) -> String {
    name.split('.')
        .map(quote_identifier)
        .collect::<Vec<_>>()
        .join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::sample::article;

    fn with_settings(settings: &str) -> Article {
        article(&format!(
            "---\ntitle: T\npostgres: {{version: \"16.15\"}}\nparams: {{memory: 4MB, folder: /tmp}}\n---\n\
             ```sql experiment e\n--| settings: {{{settings}}}\nSELECT 1;\n```\n"
        ))
    }

    fn first(article: &Article) -> &Experiment {
        article.experiments().next().unwrap()
    }

    fn messages<T>(result: Result<T, Failure>) -> Vec<String> {
        match result {
            Ok(_) => Vec::new(),
            Err(Failure::Article(problems)) => problems
                .iter()
                .map(|problem| {
                    assert!(problem.place.is_some());
                    problem.message.clone()
                })
                .collect(),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn contexts() -> BTreeMap<String, String> {
        [
            ("work_mem", "user"),
            ("datestyle", "user"),
            ("shared_buffers", "postmaster"),
            ("block_size", "internal"),
        ]
        .map(|(name, context)| (name.to_owned(), context.to_owned()))
        .into()
    }

    #[test]
    fn a_setting_of_the_postmaster_needs_a_restart_and_no_other() {
        for (settings, restart) in [
            ("work_mem: 8MB", false),
            ("DateStyle: ISO", false),
            ("my.own: x", false),
            ("work_mem: 8MB, Shared_Buffers: 1GB", true),
        ] {
            let article = with_settings(settings);
            let found = needs_restart(&contexts(), &article, first(&article));
            assert_eq!(found.unwrap(), restart, "{settings}");
        }
    }

    #[test]
    fn settings_that_cannot_be_set_are_all_told() {
        let article = with_settings("block_size: 1, wrok_mem: 1, work_mem: 8MB");
        assert_eq!(
            messages(needs_restart(&contexts(), &article, first(&article))),
            [
                "`block_size` cannot be set: it is fixed at build time",
                "this server has no setting `wrok_mem`"
            ]
        );
        assert!(!needs_restart(&BTreeMap::new(), &article, first(&article)).unwrap());
    }

    #[test]
    fn values_are_filled_in_from_params_before_they_are_judged() {
        let article = with_settings("work_mem: \":memory\", data_directory: \":folder\"");
        let params = &article.front_matter.params;
        let refused = messages(wanted(&article, first(&article), params));
        assert_eq!(refused.len(), 1);
        assert!(refused[0].contains("data_directory"), "{refused:?}");

        let article = with_settings("work_mem: \":memory\"");
        let params = &article.front_matter.params;
        let filled = wanted(&article, first(&article), params).unwrap();
        assert_eq!(filled["work_mem"], "4MB");
    }

    #[test]
    fn a_name_in_two_parts_is_quoted_in_two() {
        assert_eq!(identifier("work_mem"), "\"work_mem\"");
        assert_eq!(identifier("a.b\"c"), "\"a\".\"b\"\"c\"");
    }
}
