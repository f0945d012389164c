//! Asks the pinned server what the measurements say. Entry: [`analyse`].
//!
//! 1. [`tables`] lays the samples out as `measured.<experiment>` and its further results.
//! 2. They are created in a database of their own, `derive` columns added one by one.
//! 3. Claims, tables and charts are queries over them, evaluated with Postgres's exact types.
//!
//! [`key`] names everything the outcome depends on, so that an unchanged article asks nothing.

mod comparison;
mod functions;
pub mod tables;

pub use functions::DOCUMENTATION as FUNCTIONS;

use crate::article::{Article, Claim, Experiment, Scalar, Statement};
use crate::diagnostic::Diagnostic;
use crate::engine::Server;
use crate::engine::session::{
    Role, Session, SessionError, SqlError, quote_identifier, quote_literal,
};
use crate::exit_code::Failure;
use crate::parse::sql::{Expanded, expand, expand_text, measured_tables};
use crate::plan::Resolved;
use crate::quantity::{Table, Value, is_numeric_type};
use crate::record::store::StoredExperiment;
use crate::record::{
    ClaimRecord, Comparison, Fingerprint, Record, sha256_of, table, tables as named_tables,
};
use crate::source::Span;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Everything that later stages know of the measurements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysis {
    pub experiments: IndexMap<String, AnalysedExperiment>,
    pub claims: IndexMap<String, ClaimRecord>,
    #[serde(with = "named_tables")]
    pub tables: IndexMap<String, Table>,
    #[serde(with = "named_tables")]
    pub charts: IndexMap<String, Table>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnalysedExperiment {
    /// Names of the columns that `derive` added.
    pub derived: Vec<String>,
    #[serde(with = "table")]
    pub measured: Table,
    #[serde(with = "named_tables")]
    pub results: IndexMap<String, Table>,
}

/// What there is to analyse: experiments with their finished samples, in order; those that were
/// skipped are not among them.
pub type Measurements<'a> = [(&'a Experiment, &'a StoredExperiment)];

/// A query over measured tables that runs longer than this is a mistake.
const TIMEOUT: Duration = Duration::from_secs(60);
/// More rows than a page or a chart can show.
const ROWS: usize = 10_000;
const DATABASE: &str = "analysis";
/// No experiment can have this name.
const DERIVING: &str = "measured.\"derived table\"";

/// The hex sha256 of all that [`analyse`] reads, and of what a running server tells beside it: the
/// queries, the samples with the cells they are of, the settings, the extensions.
pub fn key(article: &Article, resolved: &Resolved, measurements: &Measurements<'_>) -> String {
    let mut inputs: Vec<(&str, &str, String)> = Vec::new();
    let mut put = |kind, name, value| inputs.push((kind, name, value));
    let front = &article.front_matter;
    let provided = [functions::SQL, comparison::SQL].concat();
    put("analysis", "3", provided.join("\n"));
    for version in front.postgres.all_versions() {
        put("server", &version.value, String::new());
    }
    for (name, value) in &front.postgres.settings {
        put("server setting", name, value.clone());
    }
    for extension in &front.postgres.extensions {
        put("extension", &extension.value, String::new());
    }
    put("seed", "", front.seed.to_plain_string());
    put("profile", &resolved.profile, String::new());
    for (name, value) in &resolved.params {
        put("param", name, value.to_string());
    }
    for (experiment, stored) in measurements {
        let id = &experiment.id.value;
        let cells = &experiment.cells;
        put("cells", id, format!("{:?} {:?}", cells.columns, cells.rows));
        let samples = serde_json::to_string(&stored.samples).expect("samples serialise");
        put("samples", id, samples);
    }
    let queries = queries(article);
    for (name, sql) in &queries.fields {
        put("query", name, sql.clone());
    }
    for claim in article.claims() {
        let profile = claim.profile.as_ref().map(|profile| &profile.value);
        put(
            "profile of claim",
            &claim.name.value,
            format!("{profile:?}"),
        );
        if let Some(machine) = &claim.machine {
            put("machine of claim", &claim.name.value, machine.value.clone());
        }
    }
    sha256_of(&serde_json::to_vec(&inputs).expect("strings serialise"))
}

/// All SQL of the article over its measured tables, by what it is for.
pub fn queries(article: &Article) -> Fingerprint {
    let fields = named_queries(article)
        .into_iter()
        .map(|(name, sql, _)| (name, sql.trim().replace("\r\n", "\n")))
        .collect();
    Fingerprint { fields }
}

/// Where what each of [`queries`] belongs to is named in the article.
pub fn query_places(article: &Article) -> BTreeMap<String, Span> {
    named_queries(article)
        .into_iter()
        .map(|(name, _, span)| (name, span))
        .collect()
}

fn named_queries(article: &Article) -> Vec<(String, &str, Span)> {
    let mut named = Vec::new();
    for experiment in article.experiments() {
        // In their order: each may use those before it.
        for (number, (name, sql)) in (1..).zip(&experiment.derive) {
            let id = &experiment.id.value;
            let name = format!("derive {number} of `{id}`, `{name}`");
            named.push((name, sql.value.as_str(), experiment.id.span));
        }
    }
    for claim in article.claims() {
        let name = Record::claim_query(&claim.name.value);
        named.push((name, claim.query.text.text.as_str(), claim.name.span));
    }
    for table in article.tables() {
        let name = format!("table `{}`", table.id.value);
        named.push((name, table.query.text.text.as_str(), table.id.span));
    }
    for chart in article.charts() {
        let name = format!("chart `{}`", chart.id.value);
        named.push((name, chart.query.text.text.as_str(), chart.id.span));
    }
    named
}

/// Lays the measurements out on the server and evaluates every query of the article over them.
/// All mistakes of all queries come back at once.
pub async fn analyse(
    server: &Server,
    article: &Article,
    resolved: &Resolved,
    measurements: &Measurements<'_>,
) -> Result<Analysis, Failure> {
    server.drop_database(DATABASE).await?;
    server.create_database(DATABASE, None).await?;
    let mut analyst = Analyst {
        session: server.connect(DATABASE, Role::Author).await?,
        article,
        resolved,
        problems: Vec::new(),
    };
    analyst.own(functions::SQL).await?;
    analyst.own(comparison::SQL).await?;
    let seed = article.front_matter.seed.to_plain_string();
    let seed = format!("SELECT pg_catalog.setseed({seed})");
    analyst.own(&[&seed]).await?;
    let mut analysis = Analysis::default();
    for (experiment, stored) in measurements {
        let analysed = analyst.experiment(experiment, stored).await?;
        let id = experiment.id.value.clone();
        analysis.experiments.insert(id, analysed);
    }
    // A query over a column that could not be derived would only say so again.
    if analyst.problems.is_empty() {
        // A query that changed what was measured would be seen by those after it.
        analyst
            .own(&["SET default_transaction_read_only = on"])
            .await?;
        analyst.evaluate(&mut analysis).await?;
    }
    let Analyst {
        problems, session, ..
    } = analyst;
    session.close().await;
    server.drop_database(DATABASE).await?;
    if problems.is_empty() {
        Ok(analysis)
    } else {
        Err(Failure::Article(problems))
    }
}

struct Analyst<'a> {
    session: Session,
    article: &'a Article,
    resolved: &'a Resolved,
    problems: Vec<Diagnostic>,
}

impl Analyst<'_> {
    /// Claims, tables and charts, over the measured tables that stand. An experiment that was skipped
    /// has none.
    async fn evaluate(&mut self, analysis: &mut Analysis) -> Result<(), Failure> {
        let article = self.article;
        let stands = |query: &Statement| {
            let reads = reads(article, &query.text.text);
            reads.iter().all(|id| analysis.experiments.contains_key(id))
        };
        let claims: Vec<_> = article.claims().filter(|it| stands(&it.query)).collect();
        let tables: Vec<_> = article.tables().filter(|it| stands(&it.query)).collect();
        let charts: Vec<_> = article.charts().filter(|it| stands(&it.query)).collect();
        for claim in claims {
            if let Some(record) = self.claim(claim).await? {
                analysis.claims.insert(claim.name.value.clone(), record);
            }
        }
        for block in tables {
            if let Some(table) = self.rows(&block.query).await? {
                analysis.tables.insert(block.id.value.clone(), table);
            }
        }
        for block in charts {
            if let Some(table) = self.rows(&block.query).await? {
                analysis.charts.insert(block.id.value.clone(), table);
            }
        }
        Ok(())
    }

    /// Statements of the tool's own.
    async fn own(&mut self, statements: &[&str]) -> Result<(), Failure> {
        for sql in statements {
            self.session.execute(sql).await?;
        }
        Ok(())
    }

    async fn experiment(
        &mut self,
        experiment: &Experiment,
        stored: &StoredExperiment,
    ) -> Result<AnalysedExperiment, Failure> {
        let id = &experiment.id.value;
        let laid_out = tables::lay_out(experiment, &stored.samples);
        for (name, table) in &laid_out.results {
            self.create(&format!("{id}_{name}"), table).await?;
        }
        let derived: Vec<String> = experiment.derive.keys().cloned().collect();
        self.create(id, &laid_out.measured).await?;
        for (name, expression) in &experiment.derive {
            self.derive(id, name, &expression.value, expression.span)
                .await?;
        }
        let measured = if derived.is_empty() {
            laid_out.measured
        } else {
            let sql = format!("SELECT * FROM measured.{}", quote_identifier(id));
            self.query(&sql).await?
        };
        Ok(AnalysedExperiment {
            derived,
            measured,
            results: laid_out.results,
        })
    }

    async fn create(&mut self, name: &str, table: &Table) -> Result<(), Failure> {
        let types = self.known_types(table).await?;
        let columns: Vec<String> = table
            .columns
            .iter()
            .map(|column| {
                let type_name = &types[&column.type_name];
                format!("{} {type_name}", quote_identifier(&column.name))
            })
            .collect();
        let name = format!("measured.{}", quote_identifier(name));
        let create = format!("CREATE TABLE {name} ({})", columns.join(", "));
        self.own(&[&create]).await?;
        const BATCH: usize = 500;
        for rows in table.rows.chunks(BATCH) {
            let rows: Vec<String> = rows
                .iter()
                .map(|row| {
                    let cells: Vec<String> = row
                        .iter()
                        .map(|value| match value.to_postgres() {
                            Some(text) => quote_literal(&text),
                            None => "NULL".to_owned(),
                        })
                        .collect();
                    format!("({})", cells.join(", "))
                })
                .collect();
            let insert = format!("INSERT INTO {name} VALUES {}", rows.join(", "));
            self.own(&[&insert]).await?;
        }
        Ok(())
    }

    /// Each type as this database can hold it. Types of the article become text, and so do those
    /// that no table can have (`void`), that cannot be read back (`pg_node_tree`), or whose values
    /// name what is in another database (`regclass`).
    async fn known_types(&mut self, table: &Table) -> Result<BTreeMap<String, String>, Failure> {
        let mut types = BTreeMap::new();
        for column in &table.columns {
            let name = &column.type_name;
            if types.contains_key(name) {
                continue;
            }
            let plain = is_numeric_type(name) || ["boolean", "text"].contains(&name.as_str());
            let known = plain || {
                let sql = format!(
                    "SELECT coalesce(bool_and(typtype IN ('b', 'r', 'm', 'd') \
                       AND typcategory <> 'Z' AND typname NOT LIKE 'reg%'), false) \
                     FROM pg_type WHERE oid = to_regtype({0}) \
                       OR oid = (SELECT typelem FROM pg_type \
                                 WHERE oid = to_regtype({0}) AND typcategory = 'A')",
                    quote_literal(name)
                );
                let answer = self.session.execute(&sql).await;
                let answer = answer?;
                answer.rows.first().and_then(|row| row[0].as_deref()) == Some("t")
            };
            let held = if known { name.clone() } else { "text".into() };
            types.insert(name.clone(), held);
        }
        Ok(types)
    }

    /// Adds one derived column, computed from those that are there.
    async fn derive(
        &mut self,
        id: &str,
        name: &str,
        expression: &str,
        span: Span,
    ) -> Result<(), Failure> {
        let source = &self.article.source;
        let sql = match expand_text(expression, &self.resolved.params) {
            Ok(sql) => sql,
            Err(diagnostic) => {
                self.problems.push(diagnostic.at(source, span));
                return Ok(());
            }
        };
        let table = format!("measured.{}", quote_identifier(id));
        let create = format!(
            "CREATE TABLE {DERIVING} AS SELECT *, ({sql}\n) AS {} FROM {table}",
            quote_identifier(name)
        );
        match self.session.execute_within(&create, TIMEOUT).await {
            Ok(_) => {
                let rename = format!("ALTER TABLE {DERIVING} RENAME TO {}", quote_identifier(id));
                self.own(&[&format!("DROP TABLE {table}"), &rename]).await
            }
            Err(SessionError::Sql(error)) => {
                let diagnostic = Diagnostic::error(postgres_words(&error))
                    .at(source, span)
                    .note(format!("in `derive` of experiment `{id}`, column `{name}`"));
                self.problems.push(with_hint(diagnostic, &error));
                Ok(())
            }
            Err(lost) => Err(lost.into()),
        }
    }

    /// A query's typed rows.
    async fn query(&mut self, sql: &str) -> Result<Table, SessionError> {
        let types = self.session.column_types(sql).await?;
        let result = self.session.execute_within(sql, TIMEOUT).await?;
        Ok(result.table(&types))
    }

    /// A query of the article's; None where it is wrong, which is then among the problems.
    async fn article_query(&mut self, statement: &Statement) -> Result<Option<Table>, Failure> {
        let source = &self.article.source;
        let expanded = match expand(statement, &self.resolved.params, source) {
            Ok(expanded) => expanded,
            Err(diagnostic) => {
                self.problems.push(diagnostic);
                return Ok(None);
            }
        };
        match self.query(&expanded.sql).await {
            Ok(table) => Ok(Some(table)),
            Err(SessionError::Sql(error)) => {
                let diagnostic = self.query_problem(statement, &expanded, &error);
                self.problems.push(diagnostic);
                Ok(None)
            }
            Err(lost) => Err(lost.into()),
        }
    }

    fn query_problem(
        &self,
        statement: &Statement,
        expanded: &Expanded,
        error: &SqlError,
    ) -> Diagnostic {
        let text = &statement.text;
        let span = match error.position {
            Some(position) => {
                let start = expanded.source_offset(position);
                self.article.source.word_at(start)
            }
            None => text.span(0..text.text.len()),
        };
        let message = if error.timed_out {
            "this query ran longer than 60 s".to_owned()
        } else {
            postgres_words(error)
        };
        with_hint(
            Diagnostic::error(message).at(&self.article.source, span),
            error,
        )
    }

    async fn rows(&mut self, statement: &Statement) -> Result<Option<Table>, Failure> {
        let Some(table) = self.article_query(statement).await? else {
            return Ok(None);
        };
        if table.rows.len() <= ROWS {
            return Ok(Some(table));
        }
        let text = &statement.text;
        self.problems.push(
            Diagnostic::error(format!(
                "this query gives {} rows; a page shows {ROWS} at most",
                table.rows.len()
            ))
            .at(&self.article.source, text.span(0..text.text.len()))
            .hint("aggregate, or LIMIT"),
        );
        Ok(None)
    }

    /// A claim's value. In a profile that it is not for, or of a certain machine, a query that fails or gives nothing is
    /// no mistake: there is then no value.
    async fn claim(&mut self, claim: &Claim) -> Result<Option<ClaimRecord>, Failure> {
        let elsewhere = claim
            .profile
            .as_ref()
            .is_some_and(|profile| profile.value != self.resolved.profile)
            || claim.machine.is_some();
        let problems = self.problems.len();
        let table = self.article_query(&claim.query).await?;
        let value = table.and_then(|table| match single_value(&table) {
            Ok(value) => Some(value),
            Err(wrong) => {
                self.problems.push(
                    Diagnostic::error(format!("claim `{}` {wrong}", claim.name.value))
                        .at(&self.article.source, claim.name.span)
                        .note(format!("its query: {}", claim.query.text.text.trim()))
                        .hint("a claim is one query with one row and one column, a number or a boolean"),
                );
                None
            }
        });
        let SingleValue {
            type_name,
            value,
            comparison,
        } = match value {
            Some(value) => value,
            None if elsewhere => {
                self.problems.truncate(problems);
                SingleValue::none()
            }
            None => return Ok(None),
        };
        Ok(Some(ClaimRecord {
            type_name,
            value,
            comparison,
            unit: claim.unit.clone(),
            reads: reads(self.article, &claim.query.text.text),
        }))
    }
}

/// What a claim's query gave.
#[derive(Debug)]
struct SingleValue {
    type_name: String,
    value: Value,
    /// Of a `comparison`, whose ratio is then the value.
    comparison: Option<Comparison>,
}

impl SingleValue {
    fn none() -> Self {
        Self {
            type_name: "numeric".to_owned(),
            value: Value::Null,
            comparison: None,
        }
    }
}

/// The one value of a result, or what is wrong with it.
fn single_value(table: &Table) -> Result<SingleValue, String> {
    let [column] = table.columns.as_slice() else {
        return Err(format!("gives {} columns", table.columns.len()));
    };
    let [row] = table.rows.as_slice() else {
        return Err(match table.rows.len() {
            0 => "gives no row".to_owned(),
            rows => format!("gives {rows} rows"),
        });
    };
    let type_name = column.type_name.clone();
    let (value, comparison) = match &row[0] {
        Value::Null if type_name == comparison::TYPE_NAME => {
            return Err("gives NULL: one of the two that it compares has no runs".to_owned());
        }
        Value::Null => return Err("gives NULL".to_owned()),
        Value::Text(text) => match comparison::read(text) {
            Some((ratio, comparison)) if type_name == comparison::TYPE_NAME => {
                (ratio, Some(comparison))
            }
            _ => return Err(format!("gives {type_name} (`{text}`)")),
        },
        value => (value.clone(), None),
    };
    Ok(SingleValue {
        type_name,
        value,
        comparison,
    })
}

/// The experiments whose tables a query reads, in the order of the document.
pub fn reads(article: &Article, query: &str) -> Vec<String> {
    let tables = measured_tables(query);
    let longest_match = |table: &String| {
        article
            .experiments()
            .map(|experiment| &experiment.id.value)
            .filter(|id| {
                table == *id
                    || table
                        .strip_prefix(id.as_str())
                        .is_some_and(|r| r.starts_with('_'))
            })
            .max_by_key(|id| id.len())
    };
    let read: Vec<&String> = tables.iter().filter_map(longest_match).collect();
    article
        .experiments()
        .map(|experiment| &experiment.id.value)
        .filter(|id| read.contains(id))
        .cloned()
        .collect()
}

fn postgres_words(error: &SqlError) -> String {
    format!("Postgres: {} (SQLSTATE {})", error.message, error.sqlstate)
}

fn with_hint(diagnostic: Diagnostic, error: &SqlError) -> Diagnostic {
    let diagnostic = match &error.detail {
        Some(detail) => diagnostic.note(format!("detail: {detail}")),
        None => diagnostic,
    };
    match &error.hint {
        Some(hint) => diagnostic.hint(hint.clone()),
        None => diagnostic,
    }
}

/// A scalar as the type that matrix columns have in measured tables.
pub(crate) fn scalar_type(scalar: &Scalar) -> &'static str {
    match scalar {
        Scalar::Boolean(_) => "boolean",
        Scalar::Number(_) => "numeric",
        Scalar::Text(_) => "text",
    }
}

#[cfg(test)]
mod tests;
