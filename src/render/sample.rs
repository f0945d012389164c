//! An article with its record, verdicts and chart for the tests of this stage: three claims, an
//! experiment of two cells with three runs each, a table and a chart.

use super::{Page, fill};
use crate::article::{Article, ClaimKind};
use crate::judge::{Machine, Outcome, Subject, Verdict};
use crate::parse::sample::article;
use crate::quantity::{Column, Number, Table, Value};
use crate::record::*;
use indexmap::IndexMap;
use std::path::Path;

pub const TEXT: &str = include_str!("sample.md");

pub struct Sample {
    pub article: Article,
    pub record: Record,
    pub accepted: Option<Record>,
    pub machines: Vec<Machine>,
    pub verdicts: Vec<Verdict>,
    pub charts: IndexMap<String, String>,
}

impl Sample {
    pub fn new() -> Self {
        Self::from_text(TEXT)
    }

    /// An article of other text, measured as the sample.
    pub fn from_text(text: &str) -> Self {
        let article = article(text);
        let record = record();
        let mut accepted = record.clone();
        accepted.environment.host.cpu = "Apple M3".into();
        accepted.environment.host.sha256 = "9f".repeat(32);
        let verdicts = verdicts(&article);
        let charts = [("insert_wal".to_owned(), CHART.to_owned())].into();
        Self {
            article,
            record,
            accepted: Some(accepted),
            machines: Vec::new(),
            verdicts,
            charts,
        }
    }

    pub fn page(&self) -> Page<'_> {
        Page {
            article: &self.article,
            record: &self.record,
            measured: &self.record,
            accepted: self.accepted.as_ref(),
            machines: &self.machines,
            verdicts: &self.verdicts,
            charts: &self.charts,
        }
    }

    pub fn render(&self) -> Vec<super::OutputFile> {
        let filled = fill(&self.article, &self.record).unwrap_or_else(|problems| {
            panic!(
                "{}",
                problems.iter().map(|p| p.render(false)).collect::<String>()
            )
        });
        super::render(&self.page(), &filled)
            .unwrap_or_else(|problem| panic!("{}", problem.render(false)))
    }

    pub fn file(&self, path: &str) -> String {
        let files = self.render();
        let file = files.into_iter().find(|file| file.path == Path::new(path));
        String::from_utf8(file.expect(path).content).unwrap()
    }
}

const CHART: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="chart-insert_wal-title chart-insert_wal-desc" viewBox="0 0 720 400"><title id="chart-insert_wal-title">WAL per inserted row</title><desc id="chart-insert_wal-desc">Two bars</desc><g font-family="system-ui, sans-serif" font-size="13" fill="currentColor"><path d="M60 20V350H700" fill="none" stroke="currentColor" stroke-opacity=".5"/><rect x="140" y="258" width="140" height="92" fill="#5470c6"/><rect x="460" y="138" width="140" height="212" fill="#5470c6"/><text x="210" y="372" text-anchor="middle">0</text><text x="530" y="372" text-anchor="middle">8</text><text x="52" y="258" text-anchor="end">234.8</text><text x="52" y="142" text-anchor="end">844.3</text><text x="380" y="394" text-anchor="middle">secondary indexes</text></g></svg>"##;

pub fn number(text: &str) -> Value {
    Value::Number(text.parse::<Number>().unwrap())
}

fn record() -> Record {
    let measured_column = |name: &str, type_name: &str| Column::new(name, type_name);
    let runs = [
        ("0", "1", "1326.52", "234812345", "234.812345"),
        ("0", "2", "1331.07", "234812345", "234.812345"),
        ("0", "3", "1319.80", "234812401", "234.812401"),
        ("8", "1", "15820.11", "844301200", "844.3012"),
        ("8", "2", "15790.02", "844301200", "844.3012"),
        ("8", "3", "16011.94", "844301288", "844.301288"),
    ];
    let measured = Table {
        columns: vec![
            measured_column("indexes", "integer"),
            measured_column("run", "integer"),
            measured_column("elapsed_ms", "double precision"),
            measured_column("wal_bytes", "numeric"),
            measured_column("rows", "numeric"),
            measured_column("wal_per_row", "numeric"),
        ],
        rows: runs
            .iter()
            .map(|(indexes, run, elapsed, bytes, per_row)| {
                [indexes, run, elapsed, bytes, "1000000", per_row]
                    .into_iter()
                    .map(number)
                    .collect()
            })
            .collect(),
    };
    let experiment = ExperimentRecord {
        derived: Vec::new(),
        fingerprint: "4c1d".repeat(16),
        inputs: Fingerprint::default(),
        host: "7a".repeat(32),
        measured_at: "2026-11-30T10:00:00Z".into(),
        seconds: None,
        settings: Default::default(),
        summaries: vec![
            summary(
                "0",
                ["1326.52", "1319.80", "1331.07"],
                ["234.812345", "234.812345", "234.812401"],
            ),
            summary(
                "8",
                ["15820.11", "15790.02", "16011.94"],
                ["844.3012", "844.3012", "844.301288"],
            ),
        ],
        doubts: vec![Doubt {
            kind: "checkpoint".into(),
            message: "a checkpoint ended within run 3 of indexes = 8".into(),
            advice: "raise max_wal_size".into(),
        }],
        measured,
        results: [(
            "sizes".to_owned(),
            Table {
                columns: vec![Column::new("name", "text"), Column::new("bytes", "bigint")],
                rows: vec![vec![Value::Text("a,b".into()), Value::Null]],
            },
        )]
        .into(),
    };
    Record {
        format: FORMAT,
        article: "index-cost".into(),
        profile: "quick".into(),
        params: [
            ("rows".to_owned(), "1000000".to_owned()),
            ("dataset".to_owned(), "uniform".to_owned()),
        ]
        .into(),
        part: None,
        environments: Default::default(),
        environment: environment(),
        queries: Fingerprint::default(),
        experiments: [("insert".to_owned(), experiment)].into(),
        claims: claim_records(),
        tables: [("insert_cost".to_owned(), result_table())].into(),
        charts: [("insert_wal".to_owned(), chart_rows())].into(),
        skipped: IndexMap::new(),
    }
}

fn summary(indexes: &str, elapsed: [&str; 3], per_row: [&str; 3]) -> CellSummary {
    let column = |[median, min, max]: [&str; 3]| Summary {
        runs: 3,
        median: median.into(),
        min: min.into(),
        max: max.into(),
        interval: Some((min.into(), max.into())),
    };
    CellSummary {
        cell: [("indexes".to_owned(), indexes.to_owned())].into(),
        columns: [
            ("elapsed_ms".to_owned(), column(elapsed)),
            ("rows".to_owned(), column(["1000000"; 3])),
            ("wal_per_row".to_owned(), column(per_row)),
        ]
        .into(),
    }
}

fn claim_records() -> IndexMap<String, ClaimRecord> {
    let claim = |value: Value, type_name: &str, unit: Option<&str>| ClaimRecord {
        comparison: None,
        type_name: type_name.into(),
        value,
        unit: unit.map(str::to_owned),
        reads: vec!["insert".into()],
    };
    [
        (
            "index_wal".to_owned(),
            claim(number("76.1861068750"), "double precision", Some("B")),
        ),
        (
            "grows".to_owned(),
            claim(Value::Boolean(true), "boolean", None),
        ),
        (
            "base_rate".to_owned(),
            claim(number("753852.18"), "double precision", Some("rows/s")),
        ),
    ]
    .into()
}

fn result_table() -> Table {
    Table {
        columns: vec![
            Column::new("indexes", "integer"),
            Column::new("rows_per_s", "double precision"),
            Column::new("note", "text"),
        ],
        rows: vec![
            vec![
                number("0"),
                number("753852.18"),
                Value::Text("a|b <i>".into()),
            ],
            vec![number("8"), number("63210.6"), Value::Null],
        ],
    }
}

fn chart_rows() -> Table {
    Table {
        columns: vec![
            Column::new("indexes", "integer"),
            Column::new("wal_per_row", "numeric"),
        ],
        rows: vec![
            vec![number("0"), number("234.812345")],
            vec![number("8"), number("844.3012")],
        ],
    }
}

fn environment() -> Environment {
    Environment {
        other_servers: IndexMap::new(),
        server: ServerEnvironment {
            version: "16.15".into(),
            version_string: "PostgreSQL 16.15 on x86_64-pc-linux-gnu, compiled by gcc".into(),
            engine: "embedded".into(),
            engine_reason: "no Docker endpoint answers".into(),
            digest: Some("ab12".repeat(16)),
            container: [].into(),
            network: None,
            libc: "glibc 2.36".into(),
            encoding: "UTF8".into(),
            collation: "C".into(),
            data_checksums: "off".into(),
            extensions: [("pg_walinspect".to_owned(), "1.1".to_owned())].into(),
            settings: [("shared_buffers".to_owned(), "512MB".to_owned())].into(),
            differing: [].into(),
            sha256: "5e".repeat(32),
        },
        host: HostEnvironment {
            cpu: "AMD EPYC_7 <rev*2>".into(),
            cores: 2,
            memory_bytes: "8589934592".into(),
            architecture: "x86_64".into(),
            kernel: "6.1".into(),
            virtualization: "kvm".into(),
            storage: "ext4 on vda".into(),
            sha256: "7a".repeat(32),
        },
        tool: ToolEnvironment {
            name: "remeasure".into(),
            version: "0.1.0".into(),
            protocol: 1,
            sha256: "c3".repeat(32),
        },
    }
}

fn verdicts(article: &Article) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = (article.prose.quotes.iter().enumerate())
        .map(|(index, quote)| {
            let (measured, measured_text, kind, outcome) = match quote.claim.value.as_str() {
                "grows" => (
                    Value::Boolean(true),
                    "true",
                    ClaimKind::Exact,
                    Outcome::Holds,
                ),
                "base_rate" => (
                    number("753852.18"),
                    "753,852 rows/s",
                    ClaimKind::Noisy,
                    Outcome::Skipped {
                        reason: "a noisy claim, and this is another machine".into(),
                    },
                ),
                _ if quote.text.contains("80") => (
                    number("76.1861068750"),
                    "76.19 B",
                    ClaimKind::Bounded,
                    Outcome::DoesNotHold {
                        difference: "3.3 B below 79.5 to 80.5".into(),
                    },
                ),
                _ => (
                    number("76.1861068750"),
                    "76.19 bytes",
                    ClaimKind::Bounded,
                    Outcome::Holds,
                ),
            };
            Verdict {
                subject: Subject::Quote(index),
                claim: quote.claim.value.clone(),
                kind,
                span: quote.span,
                quoted: Some(quote.text.clone()),
                measured,
                measured_text: measured_text.into(),
                comparison: None,
                tolerance: "75.5 to 76.5 (to the precision quoted)".into(),
                published: (quote.claim.value == "index_wal").then(|| "76 B".into()),
                published_ratio: (quote.claim.value == "index_wal").then(|| "1.00".into()),
                recorded: (quote.claim.value == "base_rate")
                    .then(|| ("751,000 rows/s".into(), "1.00".into())),
                outcome,
            }
        })
        .collect();
    if let Some(first) = verdicts.first() {
        let mut of_claim = first.clone();
        of_claim.subject = Subject::Claim;
        of_claim.quoted = None;
        of_claim.tolerance = "±1 %".into();
        verdicts.push(of_claim);
    }
    verdicts
}
