//! One connection to a server: statements go out one at a time by the simple protocol, as psql
//! sends them; results come back as text, errors as data, notices as they were raised.
//!
//! [`Session::execute`] is what is timed: its clock starts just before the statement is handed to
//! the connection and stops when the server says that it is ready again. Rows are turned into
//! text after that.

mod address;
mod error;

use address::LOG_LINES;
pub(super) use address::{Address, Host, log_tail};
pub use error::{SessionError, SqlError, is_of_a_full_disk};

use super::{fake, statement};
use crate::quantity::{Column, Table, Value};
use futures_util::{StreamExt, stream};
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::tls::TlsStream;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, NoTls, SimpleQueryMessage, SimpleQueryRow};

/// Who a session acts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The tool itself, a superuser.
    Tool,
    /// The article: no superuser, no server files, no programs.
    Author,
}

impl Role {
    /// The role's name in the server.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "postgres",
            Self::Author => "author",
        }
    }
}

/// What one statement gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementResult {
    pub columns: Vec<String>,
    /// As Postgres prints them; None is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// From the command tag; None where the tag has no count (`CREATE INDEX`).
    pub command_rows: Option<u64>,
    /// By the client's clock, from sending to ready for the next.
    pub elapsed: Duration,
    /// Rows that were received beyond [`KEPT_ROWS`] and thrown away.
    pub rows_not_kept: u64,
}

impl StatementResult {
    /// With the columns' types, as [`Session::column_types`] tells them; an unknown one is text.
    pub fn table(&self, types: &[String]) -> Table {
        let columns: Vec<Column> = (self.columns.iter().enumerate())
            .map(|(index, name)| {
                let type_name = types.get(index).map_or("text", String::as_str);
                Column::new(name.clone(), type_name)
            })
            .collect();
        let typed = |row: &Vec<Option<String>>| {
            row.iter()
                .zip(&columns)
                .map(|(cell, column)| Value::from_postgres(cell.as_deref(), &column.type_name))
                .collect()
        };
        let rows = self.rows.iter().map(typed).collect();
        Table { columns, rows }
    }
}

/// How many rows of one result are kept. A larger one is received to its end, so that its time is
/// right, but its later rows are only counted.
pub const KEPT_ROWS: usize = 1_000_000;

/// How long is waited for what is done when a statement takes too long.
const LATE: Duration = Duration::from_secs(5);

/// `name` as an identifier in SQL.
pub fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `text` as a string in SQL.
pub fn quote_literal(text: &str) -> String {
    if text.contains('\\') {
        format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// An open connection.
pub struct Session {
    connection: Connection,
}

enum Connection {
    Postgres(Postgres),
    Fake(fake::FakeSession),
}

struct Postgres {
    client: Client,
    /// Bytes that came through a network.
    received: Option<Arc<AtomicU64>>,
    backend_pid: i32,
    heard: Arc<Mutex<Heard>>,
    task: tokio::task::JoinHandle<()>,
    address: Box<Address>,
    /// What the postmaster wrote of itself when this session began, or when it started.
    postmaster: Option<String>,
}

/// What the server says outside of results.
#[derive(Default)]
struct Heard {
    notices: Vec<String>,
    /// Why the connection ended.
    ended: Option<String>,
}

const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// A loop of `RAISE NOTICE` must not fill the memory.
const KEPT_NOTICES: usize = 1000;

impl Session {
    pub(super) async fn connect(
        address: &Address,
        database: &str,
        role: Role,
    ) -> Result<Self, SessionError> {
        let postgres = Postgres::connect(address, database, role).await?;
        Ok(Self {
            connection: Connection::Postgres(postgres),
        })
    }

    pub(super) fn fake(session: fake::FakeSession) -> Self {
        Self {
            connection: Connection::Fake(session),
        }
    }

    /// Runs one statement.
    pub async fn execute(&mut self, sql: &str) -> Result<StatementResult, SessionError> {
        match &mut self.connection {
            Connection::Postgres(postgres) => postgres.execute(sql).await,
            Connection::Fake(fake) => fake.execute(sql),
        }
    }

    /// Sends two statements of the tool's own at once, so that whoever ends this program ends it
    /// before both or after both.
    pub(super) async fn execute_both(&mut self, sql: [&str; 2]) -> Result<(), SessionError> {
        match &mut self.connection {
            Connection::Postgres(postgres) => {
                let (first, second) =
                    tokio::join!(postgres.execute(sql[0]), postgres.execute(sql[1]));
                first.and(second).map(drop)
            }
            Connection::Fake(fake) => {
                fake.execute(sql[0])?;
                fake.execute(sql[1]).map(drop)
            }
        }
    }

    /// Runs one statement, and cancels it when it takes longer than `timeout`. The server has
    /// then stopped it before this returns; an open transaction is left failed.
    pub async fn execute_within(
        &mut self,
        sql: &str,
        timeout: Duration,
    ) -> Result<StatementResult, SessionError> {
        self.execute_within_or(sql, timeout, async {}).await
    }

    /// The same; `late` is done when the time is over, before the statement is cancelled: what it
    /// waits for can still be seen then.
    pub async fn execute_within_or(
        &mut self,
        sql: &str,
        timeout: Duration,
        late: impl Future<Output = ()>,
    ) -> Result<StatementResult, SessionError> {
        match &mut self.connection {
            Connection::Postgres(postgres) => postgres.execute_within(sql, timeout, late).await,
            Connection::Fake(fake) => fake.execute_within(sql, timeout),
        }
    }

    /// The types of a query's columns as `format_type` names them; empty for a statement without
    /// a result. The statement is parsed, not run; an error leaves an open transaction failed.
    pub async fn column_types(&mut self, sql: &str) -> Result<Vec<String>, SessionError> {
        match &mut self.connection {
            Connection::Postgres(postgres) => postgres.column_types(sql).await,
            Connection::Fake(fake) => fake.column_types(sql),
        }
    }

    pub fn backend_pid(&self) -> i32 {
        match &self.connection {
            Connection::Postgres(postgres) => postgres.backend_pid,
            Connection::Fake(fake) => fake.backend_pid(),
        }
    }

    /// Whether there is a network between, whose time the client's clock has in it.
    pub fn is_elsewhere(&self) -> bool {
        match &self.connection {
            Connection::Postgres(postgres) => postgres.address.is_elsewhere(),
            Connection::Fake(_) => false,
        }
    }

    /// Whether the server has limits and system files that are not this process's.
    pub fn is_contained(&self) -> bool {
        match &self.connection {
            Connection::Postgres(postgres) => postgres.address.contained,
            Connection::Fake(_) => false,
        }
    }

    /// Bytes that the server has sent since the session began; None where no network is between.
    pub fn received_bytes(&self) -> Option<u64> {
        match &self.connection {
            Connection::Postgres(postgres) => {
                let received = postgres.received.as_ref()?;
                Some(received.load(Ordering::Relaxed))
            }
            Connection::Fake(_) => None,
        }
    }

    /// Notices and warnings since this was last asked, oldest first.
    pub fn notices(&mut self) -> Vec<String> {
        match &mut self.connection {
            Connection::Postgres(postgres) => std::mem::take(&mut lock(&postgres.heard).notices),
            Connection::Fake(fake) => fake.notices(),
        }
    }

    /// Ends the session, and returns once the connection is closed. (Dropping it ends it too, at
    /// some later time.)
    pub async fn close(self) {
        if let Connection::Postgres(postgres) = self.connection {
            drop(postgres.client);
            // The task ends with the connection; that it was cancelled is no news here.
            let _ = postgres.task.await;
        }
    }
}

fn lock(heard: &Mutex<Heard>) -> std::sync::MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Postgres {
    async fn connect(address: &Address, database: &str, role: Role) -> Result<Self, SessionError> {
        let mut config = address.config(role);
        config
            .dbname(database)
            .application_name("remeasure")
            .connect_timeout(CONNECT_LIMIT);
        let heard = Arc::new(Mutex::new(Heard::default()));
        let failed = |error| connect_error(&error, &address.log);
        let mut received = None;
        let (client, task) = match &address.host {
            Host::Socket(_) | Host::Loopback { .. } | Host::Existing(_) => {
                let connecting = config.connect(address.connector());
                let (client, connection) = connecting.await.map_err(failed)?;
                (client, listen(connection, &heard))
            }
            Host::Tunnel(tunnel) => {
                let stream = tunnel
                    .open()
                    .await
                    .map_err(|error| address.unreached(&error))?;
                received = Some(stream.received());
                let connecting = config.connect_raw(stream, NoTls);
                let connected = tokio::time::timeout(CONNECT_LIMIT, connecting).await;
                let (client, connection) = connected
                    .map_err(|error| address.unreached(&error.into()))?
                    .map_err(failed)?;
                (client, listen(connection, &heard))
            }
        };
        let mut session = Self {
            client,
            received,
            backend_pid: 0,
            heard,
            task,
            postmaster: address.postmaster(),
            address: Box::new(address.clone()),
        };
        let about = match address.host {
            Host::Socket(_) => "SELECT pg_catalog.pg_backend_pid()",
            // There is no file that tells of the postmaster.
            Host::Loopback { .. } | Host::Tunnel(_) | Host::Existing(_) => {
                "SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_postmaster_start_time()"
            }
        };
        let about = session.execute(about).await?;
        let first = about.rows.into_iter().next().unwrap_or_default();
        let mut cells = first.into_iter().flatten();
        let pid = cells.next();
        session.postmaster = cells.next().or_else(|| session.postmaster.take());
        session.backend_pid =
            pid.and_then(|pid| pid.parse().ok())
                .ok_or_else(|| SessionError::Lost {
                    message: "the server does not tell its process id".into(),
                    log: String::new(),
                })?;
        Ok(session)
    }

    /// Asks the server to stop what it does for this session.
    async fn ask_to_cancel(&self) {
        let token = self.client.cancel_token();
        // When even that fails the server is gone, and the statement ends with it.
        match &self.address.host {
            Host::Socket(_) | Host::Loopback { .. } | Host::Existing(_) => {
                drop(token.cancel_query(self.address.connector()).await);
            }
            Host::Tunnel(tunnel) => {
                if let Ok(stream) = tunnel.open().await {
                    let _ = token.cancel_query_raw(stream, NoTls).await;
                }
            }
        }
    }

    async fn execute(&self, sql: &str) -> Result<StatementResult, SessionError> {
        refuse_copy(sql)?;
        match self.run(sql).await {
            Ok(answer) => Ok(answer.into_result(sql)),
            Err(error) => Err(self.session_error(&error).await),
        }
    }

    async fn execute_within(
        &self,
        sql: &str,
        timeout: Duration,
        late: impl Future<Output = ()>,
    ) -> Result<StatementResult, SessionError> {
        refuse_copy(sql)?;
        let mut run = pin!(self.run(sql));
        let in_time = tokio::select! {
            biased;
            answer = &mut run => Some(answer),
            () = tokio::time::sleep(timeout) => None,
        };
        match in_time {
            Some(Ok(answer)) => Ok(answer.into_result(sql)),
            Some(Err(error)) => Err(self.session_error(&error).await),
            None => {
                // Who is asked may not answer either.
                let _ = tokio::time::timeout(LATE, late).await;
                Err(self.cancel(run, timeout).await)
            }
        }
    }

    /// Asks the server to cancel until the statement has ended.
    async fn cancel(
        &self,
        mut run: Pin<&mut impl Future<Output = Result<Answer, tokio_postgres::Error>>>,
        timeout: Duration,
    ) -> SessionError {
        // A request can be lost when it comes before the statement has started.
        const ATTEMPTS: u32 = 20;
        for _ in 0..ATTEMPTS {
            self.ask_to_cancel().await;
            let ended = tokio::select! {
                biased;
                answer = &mut run => Some(answer),
                () = tokio::time::sleep(self.address.patience()) => None,
            };
            match ended {
                None => {}
                // Done at the last moment: it still took longer than allowed.
                Some(Ok(_)) => return timed_out(SqlError::default(), timeout),
                Some(Err(error)) => {
                    return match self.session_error(&error).await {
                        SessionError::Sql(error) if error.sqlstate == "57014" => {
                            timed_out(*error, timeout)
                        }
                        other => other,
                    };
                }
            }
        }
        self.lost(format!(
            "a statement did not stop after being cancelled {ATTEMPTS} times, after its timeout of {timeout:?}"
        ))
    }

    async fn run(&self, sql: &str) -> Result<Answer, tokio_postgres::Error> {
        let mut answer = Answer::default();
        let start = Instant::now();
        let mut messages = pin!(self.client.simple_query_raw(sql).await?);
        while let Some(message) = messages.next().await {
            match message? {
                SimpleQueryMessage::Row(row) => answer.keep(row),
                SimpleQueryMessage::CommandComplete(count) => answer.count = count,
                SimpleQueryMessage::RowDescription(columns) => {
                    // A rewrite rule may give several results; the last one counts, as in psql.
                    answer = Answer::default();
                    answer.columns = columns.iter().map(|c| c.name().to_owned()).collect();
                }
                // The enum is open: what a later version adds is nothing that was asked for.
                _ => {}
            }
        }
        answer.elapsed = start.elapsed();
        Ok(answer)
    }

    async fn column_types(&self, sql: &str) -> Result<Vec<String>, SessionError> {
        refuse_copy(sql)?;
        let types: Vec<Type> = match self.client.prepare(sql).await {
            Ok(prepared) => prepared
                .columns()
                .iter()
                .map(|c| c.type_().clone())
                .collect(),
            Err(error) => return Err(self.session_error(&error).await),
        };
        // The prepared statement is given up here; wait for it, so that this does not fall into
        // the time of the next statement.
        if let Err(error) = self.client.check_connection().await {
            return Err(self.session_error(&error).await);
        }
        let mut names = Vec::with_capacity(types.len());
        for of_column in types {
            names.push(match built_in_type(&of_column) {
                Some(name) => name.to_owned(),
                None => self.format_type(of_column.oid()).await?,
            });
        }
        Ok(names)
    }

    async fn format_type(&self, oid: u32) -> Result<String, SessionError> {
        // With NULL for the modifier a bpchar would be called `character`, which is one character.
        let name = format!("SELECT pg_catalog.format_type({oid}, -1)");
        let result = self.execute(&name).await?;
        let cell = result.rows.into_iter().flatten().flatten().next();
        cell.ok_or_else(|| self.lost(format!("there is no type with oid {oid}")))
    }

    async fn session_error(&self, error: &tokio_postgres::Error) -> SessionError {
        let said = error.as_db_error();
        if let Some(error) =
            said.filter(|error| !is_fatal(error) || ended_by_setting(error.code().code()))
        {
            return SessionError::Sql(Box::new(SqlError::from(error)));
        }
        if said.is_some_and(|error| error.code().code() == ADMIN_SHUTDOWN)
            && self.server_lives().await
        {
            let error = said.map(SqlError::from).unwrap_or_default();
            return SessionError::Sql(Box::new(ended_alone(error)));
        }
        // The postmaster writes why a moment after the connection breaks.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let ended = lock(&self.heard).ended.clone();
        // Last words may come as the answer to this statement, or before it was sent.
        let last_words = ended.filter(|_| said.is_none());
        if let Some((sqlstate, message)) = last_words.as_deref().and_then(|it| it.split_once(": "))
        {
            let error = SqlError {
                sqlstate: sqlstate.into(),
                message: message.into(),
                ..SqlError::default()
            };
            if ended_by_setting(sqlstate) {
                return SessionError::Sql(Box::new(error));
            }
            if sqlstate == ADMIN_SHUTDOWN && self.server_lives().await {
                return SessionError::Sql(Box::new(ended_alone(error)));
            }
        }
        self.lost(last_words.unwrap_or_else(|| full_text(error)))
    }

    /// Whether the very server of this session still takes connections: it was the session alone
    /// that was ended.
    async fn server_lives(&self) -> bool {
        let address = &self.address;
        if self.postmaster.is_none() {
            return false;
        }
        if let Host::Socket(_) = address.host {
            let mut config = address.config(Role::Tool);
            config
                .dbname(super::MAINTENANCE_DATABASE)
                .connect_timeout(Duration::from_secs(5));
            let same = self.postmaster == address.postmaster();
            return same && config.connect(address.connector()).await.is_ok();
        }
        let connecting = Self::connect(address, super::MAINTENANCE_DATABASE, Role::Tool);
        let connected = Box::pin(connecting).await;
        connected.is_ok_and(|other| other.postmaster == self.postmaster)
    }

    fn lost(&self, message: String) -> SessionError {
        let message = match self.address.last_words() {
            Some(words) => format!("{message}; ssh: {words}"),
            None => message,
        };
        SessionError::Lost {
            message,
            log: log_tail(&self.address.log, LOG_LINES),
        }
    }
}

/// Drives a connection to its end, and keeps what is said outside of results.
fn listen<S, T>(
    mut connection: tokio_postgres::Connection<S, T>,
    heard: &Arc<Mutex<Heard>>,
) -> tokio::task::JoinHandle<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: TlsStream + Unpin + Send + 'static,
{
    let hears = Arc::clone(heard);
    tokio::spawn(async move {
        let mut messages = pin!(stream::poll_fn(move |cx| connection.poll_message(cx)));
        while let Some(message) = messages.next().await {
            let mut heard = lock(&hears);
            match message {
                Ok(AsyncMessage::Notice(notice)) if heard.notices.len() < KEPT_NOTICES => {
                    heard.notices.push(notice_text(&notice));
                }
                Ok(_) => {}
                Err(error) => {
                    heard.ended = Some(full_text(&error));
                    break;
                }
            }
        }
    })
}

/// A result on the wire.
#[derive(Default)]
struct Answer {
    columns: Vec<String>,
    rows: Vec<SimpleQueryRow>,
    rows_not_kept: u64,
    count: u64,
    elapsed: Duration,
}

impl Answer {
    fn keep(&mut self, row: SimpleQueryRow) {
        if self.rows.len() < KEPT_ROWS {
            self.rows.push(row);
        } else {
            self.rows_not_kept += 1;
        }
    }

    fn into_result(self, sql: &str) -> StatementResult {
        let rows = self
            .rows
            .iter()
            .map(|row| {
                (0..row.len())
                    .map(|i| row.get(i).map(str::to_owned))
                    .collect()
            })
            .collect();
        // Only a statement's kind tells a count of 0 from no count.
        let counted = self.count > 0 || statement::counts_rows(sql);
        StatementResult {
            columns: self.columns,
            rows,
            command_rows: counted.then_some(self.count),
            elapsed: self.elapsed,
            rows_not_kept: self.rows_not_kept,
        }
    }
}

fn refuse_copy(sql: &str) -> Result<(), SessionError> {
    match statement::copies_through_client(sql) {
        None => Ok(()),
        Some(direction) => Err(SessionError::Sql(Box::new(SqlError {
            sqlstate: "0A000".into(),
            message: format!("`COPY … {direction}` is not supported"),
            detail: Some("its data would have to go through the client".into()),
            hint: Some("use `INSERT … SELECT` or `CREATE TABLE … AS`".into()),
            ..SqlError::default()
        }))),
    }
}

pub(super) fn timed_out(error: SqlError, timeout: Duration) -> SessionError {
    SessionError::Sql(Box::new(SqlError {
        sqlstate: "57014".into(),
        message: format!("the statement took longer than its timeout of {timeout:?}"),
        timed_out: true,
        ..error
    }))
}

/// Timeouts of transactions and of idle sessions: the server lives on, and only who sets them can
/// bring them about.
/// What a session ends with that `pg_terminate_backend` ended, and each one when a server stops.
const ADMIN_SHUTDOWN: &str = "57P01";

/// Of a session that was ended while its server runs on.
fn ended_alone(error: SqlError) -> SqlError {
    SqlError {
        detail: Some("the server runs on: only this session was ended".into()),
        hint: Some("a statement of the article ended it, such as `pg_terminate_backend`".into()),
        ..error
    }
}

fn ended_by_setting(sqlstate: &str) -> bool {
    ["25P03", "25P04", "57P05"].contains(&sqlstate)
}

fn is_fatal(error: &DbError) -> bool {
    matches!(
        error.parsed_severity(),
        Some(Severity::Fatal | Severity::Panic)
    )
}

fn connect_error(error: &tokio_postgres::Error, log: &Path) -> SessionError {
    match error.as_db_error() {
        // Refusing a connection is always fatal to it; the server lives on.
        Some(error) => SessionError::Sql(Box::new(SqlError::from(error))),
        None => SessionError::Lost {
            message: full_text(error),
            log: log_tail(log, LOG_LINES),
        },
    }
}

/// The error with what caused it.
fn full_text(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return format!("{}: {}", error.code().code(), error.message());
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

fn notice_text(notice: &DbError) -> String {
    let mut text = format!("{}: {}", notice.severity(), notice.message());
    for (label, more) in [("DETAIL", notice.detail()), ("HINT", notice.hint())] {
        if let Some(more) = more {
            text.push_str(&format!("\n{label}: {more}"));
        }
    }
    text
}

fn built_in_type(of_column: &Type) -> Option<&'static str> {
    Some(match *of_column {
        Type::BOOL => "boolean",
        Type::INT2 => "smallint",
        Type::INT4 => "integer",
        Type::INT8 => "bigint",
        Type::NUMERIC => "numeric",
        Type::FLOAT4 => "real",
        Type::FLOAT8 => "double precision",
        Type::TEXT => "text",
        Type::VARCHAR => "character varying",
        Type::NAME => "name",
        Type::OID => "oid",
        Type::BYTEA => "bytea",
        Type::DATE => "date",
        Type::TIMESTAMP => "timestamp without time zone",
        Type::TIMESTAMPTZ => "timestamp with time zone",
        Type::INTERVAL => "interval",
        Type::JSON => "json",
        Type::JSONB => "jsonb",
        Type::PG_LSN => "pg_lsn",
        Type::REGCLASS => "regclass",
        Type::UUID => "uuid",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_strings_are_quoted() {
        for (text, identifier, literal) in [
            ("t", "\"t\"", "'t'"),
            ("a\"b", "\"a\"\"b\"", "'a\"b'"),
            ("it's", "\"it's\"", "'it''s'"),
            ("a\\'b", "\"a\\'b\"", "E'a\\\\''b'"),
            ("", "\"\"", "''"),
        ] {
            assert_eq!(quote_identifier(text), identifier);
            assert_eq!(quote_literal(text), literal);
        }
    }

    #[test]
    fn the_tail_of_a_log_is_its_last_lines() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "one\ntwo\nthree\n").unwrap();
        assert_eq!(log_tail(file.path(), 2), "two\nthree");
        assert_eq!(log_tail(file.path(), 9), "one\ntwo\nthree");
        assert_eq!(log_tail(Path::new("/nowhere/log"), 2), "");
    }
}
