//! The record's types and their JSON. Numbers are written as strings of exact decimals, maps keep
//! a stable order, and the format has a version of its own.

use super::sha256_of;
use crate::article::{BytesMeaning, in_words};
use crate::quantity::format::{bytes, significant};
use crate::quantity::{Column, Number, Table, Value};
use bigdecimal::BigDecimal;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the JSON written by this build.
pub const FORMAT: u32 = 2;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub format: u32,
    pub article: String,
    /// `full` where the article's params stand as they are; else the profile's name.
    pub profile: String,
    /// Params after the profile, as text.
    pub params: IndexMap<String, String>,
    /// Of what one shard measured; None: the record has all the experiments of its article.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    pub environment: Environment,
    /// Where experiments were measured whose `host` is not the environment's, by that hash.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environments: BTreeMap<String, Environment>,
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
    /// What an existing server did not let be measured, with why: by what it is, as among
    /// [`Record::queries`]. None of it stands among the experiments, claims, tables and charts.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub skipped: IndexMap<String, String>,
}

impl Record {
    /// Whether the two were measured with the same params, so that their values can be compared.
    pub fn is_of_the_same_profile(&self, other: &Self) -> bool {
        self.profile == other.profile && self.params == other.params
    }

    /// Whether what was measured of these experiments comes from other machines than what
    /// `accepted` has of them. Each experiment knows its host, as a record may be put together on
    /// several; one that was not accepted yet belongs to the machine that the record is of.
    pub fn is_of_another_machine(&self, accepted: &Self, experiments: &[String]) -> bool {
        let whole = |record: &Self| record.environment.host.sha256.clone();
        if experiments.is_empty() {
            return whole(self) != whole(accepted);
        }
        let host = |record: &Self, id: &String| match record.experiments.get(id) {
            Some(experiment) => experiment.host.clone(),
            None => whole(record),
        };
        (experiments.iter()).any(|id| host(self, id) != host(accepted, id))
    }

    /// What an experiment was measured on, by its `host`.
    pub fn environment_of(&self, host: &str) -> Option<&Environment> {
        if self.environment.host.sha256 == host {
            return Some(&self.environment);
        }
        self.environments.get(host)
    }

    /// What a claim's query is called among [`Record::queries`].
    pub fn claim_query(claim: &str) -> String {
        Self::called("claim", claim)
    }

    /// What a part of the article is called among [`Record::queries`] and [`Record::skipped`].
    pub fn called(kind: &str, id: &str) -> String {
        format!("{kind} `{id}`")
    }

    /// Why an experiment, claim, table or chart was skipped, where it was.
    pub fn skipped_because(&self, kind: &str, id: &str) -> Option<&str> {
        let reason = self.skipped.get(&Self::called(kind, id));
        reason.map(String::as_str)
    }
}

/// Which part of an article's experiments a record has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// From 1.
    pub shard: u32,
    pub shards: u32,
    /// All experiments of the article, in the order of the document.
    pub experiments: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// The server, or the one of an article's first version: claims are evaluated on it.
    pub server: ServerEnvironment,
    /// Those of its other versions, by version.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub other_servers: IndexMap<String, ServerEnvironment>,
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
    /// Between the tool and a server on another machine; in no measured time, and in no hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    pub libc: String,
    pub encoding: String,
    pub collation: String,
    pub data_checksums: String,
    /// Name and version of each extension that was created.
    pub extensions: BTreeMap<String, String>,
    /// Settings that differ from their defaults, as the server says.
    pub settings: BTreeMap<String, String>,
    /// Settings of the article that an existing server has otherwise and could not be brought to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub differing: BTreeMap<String, SettingDifference>,
    pub sha256: String,
}

/// What lies between the tool and a server on another machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// `tcp`, `tcp with TLS` or `ssh`.
    pub way: String,
    /// Of a statement that does nothing, by the client's clock: the median.
    pub round_trip_ms: String,
}

/// One setting as the article has it and as the server has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingDifference {
    pub wanted: String,
    /// None: the server knows no such setting.
    pub has: Option<String>,
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

impl Environment {
    pub fn servers(&self) -> impl Iterator<Item = &ServerEnvironment> {
        [&self.server]
            .into_iter()
            .chain(self.other_servers.values())
    }

    /// `16.15`, `16.15 and 18.6`
    pub fn versions_text(&self) -> String {
        let versions = self.servers().map(|server| server.version.as_str());
        in_words(&versions.collect::<Vec<_>>())
    }
}

impl HostEnvironment {
    /// `23.5 GB`
    pub fn memory_text(&self) -> String {
        match self.memory_bytes.parse::<BigDecimal>() {
            Ok(memory) => bytes(&memory, BytesMeaning::Binary),
            Err(_) => self.memory_bytes.clone(),
        }
    }

    /// The machine in a line: what timings depend on.
    pub fn machine(&self) -> String {
        if !self.is_known() {
            return self.cpu.clone();
        }
        let (cpu, cores, memory) = (&self.cpu, self.cores, self.memory_text());
        let (kernel, storage) = (&self.kernel, &self.storage);
        format!("{cpu}, {cores} cores, {memory} memory, {kernel}, {storage}")
    }

    /// Whether it is a machine that could be looked at; of one behind an existing server only a name
    /// is known.
    pub fn is_known(&self) -> bool {
        self.cores > 0
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolEnvironment {
    pub name: String,
    pub version: String,
    /// Version of the way things are measured; part of every fingerprint.
    pub protocol: u32,
    pub sha256: String,
}

impl ServerEnvironment {
    /// Whether it was somebody's server before, on which nothing is pinned.
    pub fn is_existing(&self) -> bool {
        self.engine == "url"
    }

    /// The hex sha256 of everything but why the engine was chosen and what the network was like:
    /// those are another matter each time.
    pub fn hash(&self) -> String {
        hash_of(&Self {
            engine_reason: String::new(),
            network: None,
            sha256: String::new(),
            ..self.clone()
        })
    }
}

impl HostEnvironment {
    /// The hex sha256 of what tells two machines apart. Memory counts in whole GiB, upwards: what
    /// the kernel keeps for itself changes by kilobytes from boot to boot. Of the kernel only the
    /// system counts, not the release: an update makes no other machine of this one. Both stand in
    /// the record as they are, and `diff` shows them.
    pub fn hash(&self) -> String {
        const GIB: u64 = 1 << 30;
        let memory = self.memory_bytes.parse::<u64>().map_or_else(
            |_| self.memory_bytes.clone(),
            |bytes| format!("{} GiB", bytes.div_ceil(GIB)),
        );
        let system = self.kernel.split(' ').next().unwrap_or_default();
        hash_of(&Self {
            memory_bytes: memory,
            kernel: system.to_owned(),
            sha256: String::new(),
            ..self.clone()
        })
    }
}

impl ToolEnvironment {
    pub fn hash(&self) -> String {
        hash_of(&Self {
            sha256: String::new(),
            ..self.clone()
        })
    }
}

impl Fingerprint {
    /// The hex sha256 of its compact JSON.
    pub fn sha256(&self) -> String {
        hash_of(self)
    }
}

fn hash_of(part: &impl Serialize) -> String {
    sha256_of(&serde_json::to_vec(part).expect("a part of a record serialises"))
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
    /// How long its cells took with their setups, in seconds; None where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<String>,
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
    /// Where the query gave a `comparison`; its ratio is the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    pub unit: Option<String>,
    /// Experiments whose measured tables the query reads.
    pub reads: Vec<String>,
}

/// How sure a ratio is: what `times_faster` and `times_more` give beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The ratio's 95 % interval; 0 to Infinity where there are too few runs to have one.
    #[serde(with = "interval")]
    pub interval: (Number, Number),
    /// How many of either went in.
    pub runs: (u32, u32),
}

impl Comparison {
    /// `95 % interval 1.8 to 2.06, 8 runs each`
    pub fn text(&self) -> String {
        let runs = self.runs_text();
        match self.is_unbounded() {
            true => format!("no 95 % interval, {runs}"),
            false => format!("95 % interval {}, {runs}", self.interval_text()),
        }
    }

    /// `1.8 to 2.06`, or that there is none.
    pub fn interval_text(&self) -> String {
        let end = |number: &Number| match number {
            Number::Finite(number) => significant(number, 3),
            other => other.to_string(),
        };
        match self.is_unbounded() {
            true => "no interval".to_owned(),
            false => format!("{} to {}", end(&self.interval.0), end(&self.interval.1)),
        }
    }

    /// `4 runs each`, `3 and 8 runs`
    pub fn runs_text(&self) -> String {
        match self.runs {
            (1, 1) => "1 run each".to_owned(),
            (first, second) if first == second => format!("{first} runs each"),
            (first, second) => format!("{first} and {second} runs"),
        }
    }

    /// Whether there are too few runs for an interval at all.
    pub fn is_unbounded(&self) -> bool {
        self.interval.1 == Number::Infinity
    }
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

mod interval {
    use super::*;
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(
        (low, high): &(Number, Number),
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        (low.to_string(), high.to_string()).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<(Number, Number), D::Error> {
        let (low, high) = <(String, String)>::deserialize(deserializer)?;
        let read = |text: String| text.parse().map_err(serde::de::Error::custom);
        Ok((read(low)?, read(high)?))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_network_was_like_is_in_no_hash_of_the_server() {
        let here = ServerEnvironment {
            version: "16.15".into(),
            ..ServerEnvironment::default()
        };
        let network = Network {
            way: "ssh".into(),
            round_trip_ms: "31.250".into(),
        };
        let there = ServerEnvironment {
            network: Some(network),
            ..here.clone()
        };
        assert_eq!(there.hash(), here.hash());
    }

    #[test]
    fn a_kernel_update_makes_no_other_machine_and_more_memory_does() {
        let host = HostEnvironment {
            cpu: "EPYC".into(),
            cores: 2,
            memory_bytes: "16000000000".into(),
            architecture: "x86_64".into(),
            kernel: "Linux 6.18.44".into(),
            virtualization: "none".into(),
            storage: "ext4 on /dev/vda".into(),
            sha256: "of before".into(),
        };
        type Edit = fn(&mut HostEnvironment);
        let edits: [(Edit, bool); 9] = [
            (|host| host.kernel = "Linux 6.19.1-lts".into(), true),
            (|host| host.memory_bytes = "15999000000".into(), true),
            (|host| host.sha256.clear(), true),
            (|host| host.kernel = "Darwin 25.1".into(), false),
            (|host| host.memory_bytes = "33000000000".into(), false),
            (|host| host.memory_bytes = "unknown".into(), false),
            (|host| host.cores = 4, false),
            (|host| host.cpu = "Xeon".into(), false),
            (|host| host.storage = "tmpfs".into(), false),
        ];
        for (index, (edit, same)) in edits.into_iter().enumerate() {
            let mut other = host.clone();
            edit(&mut other);
            assert_eq!(other.hash() == host.hash(), same, "edit {index}");
        }
    }
}
