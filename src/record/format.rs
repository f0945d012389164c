//! The record's types and their JSON. Numbers are written as strings of exact decimals, maps keep
//! a stable order, and the format has a version of its own.

use crate::quantity::{Column, Table, Value};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the JSON written by this build.
pub const FORMAT: u32 = 1;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub format: u32,
    pub article: String,
    /// `full` where the article's params stand as they are; else the profile's name.
    pub profile: String,
    /// Params after the profile, as text.
    pub params: IndexMap<String, String>,
    pub environment: Environment,
    /// SQL of the article over measured tables, by what it is for; empty in records of before.
    #[serde(default)]
    pub queries: Fingerprint,
    /// In the order of the document.
    pub experiments: IndexMap<String, ExperimentRecord>,
    pub claims: IndexMap<String, ClaimRecord>,
    /// Results of the table blocks' queries.
    #[serde(with = "tables")]
    pub tables: IndexMap<String, Table>,
    /// Results of the chart blocks' queries.
    #[serde(with = "tables")]
    pub charts: IndexMap<String, Table>,
}

impl Record {
    /// What a claim's query is called among [`Record::queries`].
    pub fn claim_query(claim: &str) -> String {
        format!("claim `{claim}`")
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    pub server: ServerEnvironment,
    pub host: HostEnvironment,
    pub tool: ToolEnvironment,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerEnvironment {
    /// As pinned, such as `16.15`.
    pub version: String,
    /// What `version()` answers.
    pub version_string: String,
    /// `embedded`, `docker`, `url` or `fake`.
    pub engine: String,
    /// Why this engine was chosen.
    pub engine_reason: String,
    /// sha256 of the archive, or the image's digest; None: unpinned.
    pub digest: Option<String>,
    /// Of a container: daemon, image that ran, platform, and the limits that were granted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub container: BTreeMap<String, String>,
    pub libc: String,
    pub encoding: String,
    pub collation: String,
    pub data_checksums: String,
    /// Name and version of each extension that was created.
    pub extensions: BTreeMap<String, String>,
    /// Settings that differ from their defaults, as the server says.
    pub settings: BTreeMap<String, String>,
    pub sha256: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEnvironment {
    pub cpu: String,
    pub cores: u32,
    pub memory_bytes: String,
    pub architecture: String,
    pub kernel: String,
    /// `none` on bare metal.
    pub virtualization: String,
    /// Filesystem and device of the data directory.
    pub storage: String,
    pub sha256: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolEnvironment {
    pub name: String,
    pub version: String,
    /// Version of the way things are measured; part of every fingerprint.
    pub protocol: u32,
    pub sha256: String,
}

/// The inputs of an experiment, by name: `measure`, `param rows`, `fixture src`, `server` …
/// One printable thing, so that a reason can name the field that changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint {
    pub fields: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentRecord {
    /// sha256 of the fingerprint, in hex.
    pub fingerprint: String,
    pub inputs: Fingerprint,
    /// `sha256` of the host it was measured on.
    pub host: String,
    /// When it began, RFC 3339 in UTC.
    pub measured_at: String,
    /// Server settings of this experiment, as the server read them back.
    pub settings: BTreeMap<String, String>,
    /// Summary of every numeric column, one entry a cell; what the page shows as spread.
    pub summaries: Vec<CellSummary>,
    pub doubts: Vec<Doubt>,
    /// Columns of `measured` that `derive` computed; the others were measured.
    pub derived: Vec<String>,
    /// `measured.<experiment>`
    #[serde(with = "table")]
    pub measured: Table,
    /// `measured.<experiment>_<name>`, by name.
    #[serde(with = "tables")]
    pub results: IndexMap<String, Table>,
}

/// One run of one cell, as it was measured: what the store keeps and `measured.<experiment>` is
/// made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Index into the experiment's cells.
    pub cell: usize,
    /// From 1.
    pub run: u32,
    /// One row: what the instruments, the last statement and the unnamed collects gave.
    #[serde(with = "table")]
    pub row: Table,
    /// Results of their own (`statements`, `wal`, named collects), without matrix columns.
    #[serde(with = "tables")]
    pub results: IndexMap<String, Table>,
}

/// Something that makes a measurement less trustworthy than it looks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// `checkpoint`, `autovacuum`, `too-short`, `outlier`, `drift` …
    pub kind: String,
    /// A sentence that says where and how much.
    pub message: String,
    pub advice: String,
}

/// Statistics of one cell over its runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellSummary {
    /// Matrix column → value.
    pub cell: IndexMap<String, String>,
    /// Column → summary.
    pub columns: IndexMap<String, Summary>,
}

/// Exact decimals, as text; intervals are doubles printed shortest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub runs: u32,
    pub median: String,
    pub min: String,
    pub max: String,
    /// Bootstrap 95 % interval of the median; None below three runs.
    pub interval: Option<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimRecord {
    #[serde(rename = "type")]
    pub type_name: String,
    #[serde(with = "value")]
    pub value: Value,
    pub unit: Option<String>,
    /// Experiments whose measured tables the query reads.
    pub reads: Vec<String>,
}

/// A value as JSON: numbers as strings of exact decimals, booleans and null as themselves.
fn value_to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Boolean(value) => (*value).into(),
        Value::Number(number) => number.to_string().into(),
        Value::Text(text) => text.as_str().into(),
    }
}

fn value_from_json(json: &serde_json::Value, type_name: &str) -> Option<Value> {
    match json {
        serde_json::Value::Null => Some(Value::Null),
        serde_json::Value::Bool(value) => Some(Value::Boolean(*value)),
        serde_json::Value::String(text) => Some(Value::from_postgres(Some(text), type_name)),
        _ => None,
    }
}

mod value {
    use super::*;
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
        value_to_json(value).serialize(serializer)
    }

    /// A claim's value is a number or a boolean; its text says which number.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        let json = serde_json::Value::deserialize(deserializer)?;
        value_from_json(&json, "numeric")
            .ok_or_else(|| serde::de::Error::custom("a value is a string, a boolean or null"))
    }
}

#[derive(Serialize, Deserialize)]
struct TableJson {
    columns: Vec<Column>,
    rows: Vec<Vec<serde_json::Value>>,
}

impl From<&Table> for TableJson {
    fn from(table: &Table) -> Self {
        Self {
            columns: table.columns.clone(),
            rows: table
                .rows
                .iter()
                .map(|row| row.iter().map(value_to_json).collect())
                .collect(),
        }
    }
}

impl TableJson {
    fn into_table<E: serde::de::Error>(self) -> Result<Table, E> {
        let rows = self
            .rows
            .iter()
            .map(|row| {
                if row.len() != self.columns.len() {
                    return Err(E::custom(
                        "a row has not as many cells as there are columns",
                    ));
                }
                row.iter()
                    .zip(&self.columns)
                    .map(|(cell, column)| {
                        value_from_json(cell, &column.type_name)
                            .ok_or_else(|| E::custom("a cell is a string, a boolean or null"))
                    })
                    .collect()
            })
            .collect::<Result<_, E>>()?;
        Ok(Table {
            columns: self.columns,
            rows,
        })
    }
}

/// For `#[serde(with)]`: one table.
pub mod table {
    use super::*;
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(table: &Table, serializer: S) -> Result<S::Ok, S::Error> {
        TableJson::from(table).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Table, D::Error> {
        TableJson::deserialize(deserializer)?.into_table()
    }
}

/// For `#[serde(with)]`: named tables in order.
pub mod tables {
    use super::*;
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(
        tables: &IndexMap<String, Table>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(tables.iter().map(|(name, t)| (name, TableJson::from(t))))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<IndexMap<String, Table>, D::Error> {
        IndexMap::<String, TableJson>::deserialize(deserializer)?
            .into_iter()
            .map(|(name, json)| Ok((name, json.into_table()?)))
            .collect()
    }
}
