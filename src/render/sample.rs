//! An article with its record, verdicts and chart for the tests of this stage: three claims, an
//! experiment of two cells with three runs each, a table and a chart.

use super::{Page, fill};
use crate::article::*;
use crate::judge::{Outcome, Subject, Verdict};
use crate::quantity::{Column, Number, Table, Value};
use crate::record::*;
use crate::source::{Extract, Source, Span, Spanned};
use indexmap::IndexMap;
use std::path::PathBuf;
use std::time::Duration;

pub const TEXT: &str = include_str!("sample.md");

pub struct Sample {
    pub article: Article,
    pub record: Record,
    pub accepted: Option<Record>,
    pub verdicts: Vec<Verdict>,
    pub charts: IndexMap<String, String>,
}

impl Sample {
    pub fn new() -> Self {
        Self::from_text(TEXT)
    }

    /// `text` keeps the sample's blocks; its prose may differ.
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
            verdicts,
            charts,
        }
    }

    pub fn page(&self) -> Page<'_> {
        Page {
            article: &self.article,
            record: &self.record,
            accepted: self.accepted.as_ref(),
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
        let file = files
            .into_iter()
            .find(|file| file.path == PathBuf::from(path));
        String::from_utf8(file.expect(path).content).unwrap()
    }
}

const CHART: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="insert_wal-title insert_wal-desc" viewBox="0 0 720 400"><title id="insert_wal-title">WAL per inserted row</title><desc id="insert_wal-desc">Two bars</desc><g font-family="system-ui, sans-serif" font-size="13" fill="currentColor"><path d="M60 20V350H700" fill="none" stroke="currentColor" stroke-opacity=".5"/><rect x="140" y="258" width="140" height="92" fill="#5470c6"/><rect x="460" y="138" width="140" height="212" fill="#5470c6"/><text x="210" y="372" text-anchor="middle">0</text><text x="530" y="372" text-anchor="middle">8</text><text x="52" y="258" text-anchor="end">234.8</text><text x="52" y="142" text-anchor="end">844.3</text><text x="380" y="394" text-anchor="middle">secondary indexes</text></g></svg>"##;

fn find(text: &str, needle: &str) -> Span {
    let at = text.find(needle).unwrap_or_else(|| panic!("{needle}"));
    Span::new(at, at + needle.len())
}

fn spanned(text: &str, word: &str) -> Spanned<String> {
    Spanned::new(word.to_owned(), find(text, word))
}

/// A YAML text that stands in the source as it is.
fn yaml_text(text: &str, value: &str) -> TextWithFillIns {
    TextWithFillIns {
        text: value.to_owned(),
        span: find(text, value),
        fill_ins: fill_ins(value, &[]),
    }
}

fn fill_ins(text: &str, outside: &[Span]) -> Vec<FillIn> {
    text.match_indices("{{")
        .filter(|(at, _)| !text[..*at].ends_with('\\'))
        .filter(|(at, _)| !outside.iter().any(|span| span.range().contains(at)))
        .map(|(at, _)| {
            let end = at + text[at..].find("}}").unwrap() + 2;
            FillIn {
                expression: text[at + 2..end - 2].trim().to_owned(),
                span: Span::new(at, end),
            }
        })
        .collect()
}

/// `[text](scheme:name)` as (whole, text, name).
fn links(text: &str, scheme: &str) -> Vec<(Span, Span, Span)> {
    let middle = format!("]({scheme}:");
    text.match_indices(&middle)
        .map(|(at, _)| {
            let start = text[..at].rfind('[').unwrap();
            let name = at + middle.len();
            let end = name + text[name..].find(')').unwrap();
            (
                Span::new(start, end + 1),
                Span::new(start + 1, at),
                Span::new(name, end),
            )
        })
        .collect()
}

fn block_span(text: &str, opening: &str) -> Span {
    let start = find(text, opening).start;
    let end = start + text[start..].find("\n```\n").unwrap() + 4;
    Span::new(start, end)
}

fn extract(text: &str, span: Span) -> Extract {
    let mut extract = Extract::default();
    extract.push(&text[span.range()], span.start);
    extract
}

fn statement(text: &str, sql: &str) -> Statement {
    Statement {
        text: extract(text, find(text, sql)),
        terminator: Terminator::Semicolon,
        variables: Vec::new(),
    }
}

fn phase(text: &str, sql: &str) -> Phase {
    Phase {
        script: Script {
            statements: vec![statement(text, sql)],
        },
        span: find(text, sql),
    }
}

fn article(text: &str) -> Article {
    let block = |opening: &str, kind: BlockKind| {
        let span = block_span(text, opening);
        let content = text[span.range()].find('\n').unwrap() + 1 + span.start;
        let id = opening.rsplit(' ').next().unwrap().trim();
        Block {
            id: Spanned::new(id.to_owned(), span),
            span,
            content: extract(text, Span::new(content, span.end - 3)),
            kind,
        }
    };
    let blocks = vec![
        block("```sql fixture src\n", BlockKind::Fixture(fixture(text))),
        block(
            "```sql experiment insert\n",
            BlockKind::Experiment(Box::new(experiment(text))),
        ),
        block("```sql claims cost\n", BlockKind::Claims(claims(text))),
        block("```sql table insert_cost\n", BlockKind::Table(table(text))),
        block("```sql chart insert_wal\n", BlockKind::Chart(chart(text))),
    ];
    let front_end = text[4..].find("---\n").unwrap() + 8;
    let mut outside: Vec<Span> = blocks.iter().map(|block| block.span).collect();
    outside.push(Span::new(0, front_end));
    // Ordinary code, in which nothing is filled in.
    outside.extend(
        text.contains("```sql\n")
            .then(|| block_span(text, "```sql\n")),
    );
    Article {
        slug: "index-cost".into(),
        directory: PathBuf::from("articles/index-cost"),
        source: Source::new(
            "articles/index-cost/article.md",
            "article.md",
            text.to_owned(),
        ),
        front_matter: front_matter(text, Span::new(0, front_end)),
        prose: prose(text, &outside),
        blocks,
    }
}

fn prose(text: &str, outside: &[Span]) -> Prose {
    let reference = |kind, scheme| {
        links(text, scheme)
            .into_iter()
            .map(move |(span, inside, name)| Reference {
                kind,
                id: Spanned::new(text[name.range()].to_owned(), name),
                text: text[inside.range()].to_owned(),
                span,
            })
    };
    Prose {
        quotes: links(text, "claim")
            .into_iter()
            .map(|(span, text_span, name)| Quote {
                claim: Spanned::new(text[name.range()].to_owned(), name),
                text: text[text_span.range()].to_owned(),
                text_span,
                span,
            })
            .collect(),
        fill_ins: fill_ins(text, outside),
        references: reference(ReferenceKind::Chart, "chart")
            .chain(reference(ReferenceKind::Table, "table"))
            .chain(reference(ReferenceKind::Experiment, "experiment"))
            .collect(),
        citations: links(text, "cite")
            .into_iter()
            .map(|(span, inside, name)| Citation {
                target: Spanned::new(text[name.range()].to_owned(), name),
                text: text[inside.range()].to_owned(),
                span,
            })
            .collect(),
    }
}

fn front_matter(text: &str, span: Span) -> FrontMatter {
    let line = |key: &str| {
        let start = text.find(&format!("\n{key}: ")).unwrap() + key.len() + 3;
        let end = start + text[start..].find('\n').unwrap();
        yaml_text(text, &text[start..end])
    };
    FrontMatter {
        span,
        title: line("title"),
        description: Some(line("description")),
        date: Some("2026-11-30".into()),
        updated: Some("2026-12-01".into()),
        authors: vec!["Ada <Postgres> Example".into()],
        tags: vec!["indexes".into(), "wal".into()],
        lang: "en".into(),
        draft: false,
        published_source: Some(PublishedSource {
            title: Some("What does each extra index cost?".into()),
            url: Some("https://example.org/index-cost".into()),
            author: Some("Someone".into()),
            date: Some("2026-05-02".into()),
        }),
        postgres: PostgresSpec {
            version: Spanned::new("16.15".into(), span),
            settings: [("shared_buffers".into(), "512MB".into())].into(),
            extensions: Vec::new(),
            shm_size: None,
            memory: None,
            cpus: None,
        },
        seed: 0.into(),
        bytes: BytesMeaning::Binary,
        params: [
            ("rows".to_owned(), Scalar::Number(1_000_000.into())),
            ("dataset".to_owned(), Scalar::Text("uniform".into())),
        ]
        .into(),
        profiles: IndexMap::new(),
        lint: Default::default(),
    }
}

fn fixture(text: &str) -> Fixture {
    Fixture {
        id: spanned(text, "src"),
        from: None,
        script: phase(text, "VACUUM ANALYZE src").script,
    }
}

fn experiment(text: &str) -> Experiment {
    Experiment {
        id: spanned(text, "insert"),
        fixture: Some(spanned(text, "src")),
        cells: Cells {
            columns: vec!["indexes".into()],
            rows: vec![
                vec![Scalar::Number(0.into())],
                vec![Scalar::Number(8.into())],
            ],
            span: None,
        },
        runs: Runs::Fixed(3),
        warmup_runs: 0,
        fresh: Fresh::Cell,
        connect: Connect::Cell,
        settings: IndexMap::new(),
        session: IndexMap::new(),
        instruments: Vec::new(),
        timeout: Duration::from_secs(600),
        expect_error: None,
        order: Order::Sequential,
        echo: true,
        caption: Some(yaml_text(text, "Load of {{ rows }} rows")),
        setup: Some(phase(text, "CHECKPOINT")),
        warmup: None,
        measure: phase(text, "INSERT INTO t SELECT * FROM src"),
        collects: Vec::new(),
        teardown: None,
        derive: [("wal_per_row".to_owned(), spanned(text, "wal_bytes / rows"))].into(),
    }
}

fn claims(text: &str) -> Claims {
    let claim = |name: &str, sql: &str, kind, unit: Option<&str>, published| Claim {
        name: spanned(text, name),
        query: statement(text, sql),
        kind,
        tolerance: None,
        unit: unit.map(str::to_owned),
        bytes: None,
        format: None,
        published,
        profile: None,
    };
    Claims {
        id: spanned(text, "cost"),
        claims: vec![
            claim(
                "index_wal",
                "SELECT regr_slope(wal_per_row, indexes) FROM measured.insert",
                ClaimKind::Bounded,
                Some("B"),
                Some(Published::Number(76.into())),
            ),
            claim(
                "grows",
                "SELECT max(wal_per_row) > min(wal_per_row) FROM measured.insert",
                ClaimKind::Exact,
                None,
                None,
            ),
            claim(
                "base_rate",
                "SELECT median(1000 * rows / elapsed_ms) FROM measured.insert WHERE indexes = 0",
                ClaimKind::Noisy,
                Some("rows/s"),
                Some(Published::Number(754_000.into())),
            ),
        ],
    }
}

fn table(text: &str) -> TableBlock {
    TableBlock {
        id: spanned(text, "insert_cost"),
        query: statement(text, "SELECT indexes, median(rows_per_s)"),
        caption: Some(yaml_text(text, "Bulk load of {{ rows }} rows")),
        columns: [
            (
                "indexes".to_owned(),
                TableColumn {
                    label: Some("Indexes".into()),
                    format: None,
                },
            ),
            (
                "rows_per_s".to_owned(),
                TableColumn {
                    label: Some("rows/s".into()),
                    format: Some("1,000".into()),
                },
            ),
            ("note".to_owned(), TableColumn::default()),
        ]
        .into(),
    }
}

fn chart(text: &str) -> ChartBlock {
    ChartBlock {
        id: spanned(text, "insert_wal"),
        query: statement(text, "SELECT indexes, median(wal_per_row)"),
        chart_type: spanned(text, "bar"),
        x: spanned(text, "indexes"),
        y: vec![spanned(text, "wal_per_row")],
        series: None,
        error: None,
        log: Vec::new(),
        title: Some(yaml_text(text, "WAL per inserted row")),
        alt: yaml_text(
            text,
            "Bars that grow by {{ index_wal }} bytes with each index",
        ),
        caption: None,
        x_label: None,
        y_label: None,
        option: None,
    }
}

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
                    .map(|text| number(text))
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
        environment: environment(),
        experiments: [("insert".to_owned(), experiment)].into(),
        claims: claim_records(),
        tables: [("insert_cost".to_owned(), result_table())].into(),
        charts: [("insert_wal".to_owned(), chart_rows())].into(),
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
        server: ServerEnvironment {
            version: "16.15".into(),
            version_string: "PostgreSQL 16.15 on x86_64-pc-linux-gnu, compiled by gcc".into(),
            engine: "embedded".into(),
            engine_reason: "no Docker endpoint answers".into(),
            digest: Some("ab12".repeat(16)),
            libc: "glibc 2.36".into(),
            encoding: "UTF8".into(),
            collation: "C".into(),
            data_checksums: "off".into(),
            extensions: [("pg_walinspect".to_owned(), "1.1".to_owned())].into(),
            settings: [("shared_buffers".to_owned(), "512MB".to_owned())].into(),
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
                tolerance: "75.5 to 76.5 (to the precision quoted)".into(),
                published: (quote.claim.value == "index_wal").then(|| "76 B".into()),
                published_ratio: (quote.claim.value == "index_wal").then(|| "1.00".into()),
                recorded: (quote.claim.value == "base_rate")
                    .then(|| ("751,000 rows/s".into(), "1.00".into())),
                outcome,
            }
        })
        .collect();
    let mut of_claim = verdicts[0].clone();
    of_claim.subject = Subject::Claim;
    of_claim.quoted = None;
    of_claim.tolerance = "±1 %".into();
    verdicts.push(of_claim);
    verdicts
}
