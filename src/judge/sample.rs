//! Articles, claims and records for tests, made without parsing and without measuring.

use crate::article::{
    Article, Block, BlockKind, BytesMeaning, Citation, Claim, ClaimKind, Claims, FillIn,
    FrontMatter, PostgresSpec, Prose, Quote, Statement, Terminator, TextWithFillIns, Tolerance,
};
use crate::quantity::Value;
use crate::record::*;
use crate::source::{Places, Source, Span, Spanned};
use bigdecimal::BigDecimal;
use indexmap::IndexMap;
use std::collections::BTreeMap;

/// An article of this Markdown, with the quotes and citations that stand in it.
pub fn article(markdown: &str, claims: Vec<Claim>) -> Article {
    let source = Source::new(
        "sample/article.md",
        "sample/article.md",
        markdown.to_owned(),
    );
    let mut prose = Prose::default();
    for (scheme, at) in [("](claim:", 0), ("](cite:", 1)] {
        for (close, _) in markdown.match_indices(scheme) {
            let open = markdown[..close].rfind('[').unwrap();
            let target = close + scheme.len();
            let end = target + markdown[target..].find(')').unwrap();
            let name = Spanned::new(markdown[target..end].to_owned(), target..end);
            let text = markdown[open + 1..close].to_owned();
            let text_span = Span::new(open + 1, close);
            let span = Span::new(open, end + 1);
            if at == 0 {
                let mut places = Places::default();
                places.push(0, Some(open + 1));
                prose.quotes.push(Quote {
                    claim: name,
                    text,
                    places,
                    text_is_label: false,
                    text_span,
                    span,
                });
            } else {
                prose.citations.push(Citation {
                    target: name,
                    text,
                    text_span,
                    span,
                });
            }
        }
    }
    for (open, _) in markdown.match_indices("{{") {
        let end = open + markdown[open..].find("}}").unwrap() + 2;
        prose.fill_ins.push(FillIn {
            expression: markdown[open + 2..end - 2].trim().to_owned(),
            span: Span::new(open, end),
        });
    }
    let claims = Block {
        id: Spanned::new("claims".to_owned(), 0..0),
        span: Span::default(),
        content: Default::default(),
        kind: BlockKind::Claims(Claims {
            id: Spanned::new("claims".to_owned(), 0..0),
            claims,
        }),
    };
    Article {
        slug: "sample".to_owned(),
        directory: "sample".into(),
        source,
        front_matter: front_matter(),
        blocks: vec![claims],
        prose,
        files: Default::default(),
    }
}

pub fn front_matter() -> FrontMatter {
    FrontMatter {
        span: Span::default(),
        title: text("A sample"),
        description: None,
        date: None,
        updated: None,
        authors: Vec::new(),
        tags: Vec::new(),
        lang: "en".to_owned(),
        draft: false,
        published_source: None,
        postgres: PostgresSpec {
            versions: Vec::new(),
            version: Spanned::new("16.15".to_owned(), 0..0),
            settings: BTreeMap::new(),
            extensions: Vec::new(),
            shm_size: None,
            platform: None,
            memory: None,
            cpus: None,
        },
        seed: 0.into(),
        bytes: BytesMeaning::Binary,
        params: IndexMap::new(),
        profiles: IndexMap::new(),
        lint: BTreeMap::new(),
    }
}

pub fn text(text: &str) -> TextWithFillIns {
    TextWithFillIns {
        text: text.to_owned(),
        ..TextWithFillIns::default()
    }
}

pub fn claim(name: &str, unit: &str, tolerance: &str) -> Claim {
    Claim {
        name: Spanned::new(name.to_owned(), 0..0),
        query: Statement {
            text: Default::default(),
            terminator: Terminator::Semicolon,
            variables: Vec::new(),
        },
        kind: ClaimKind::Exact,
        tolerance: self::tolerance(tolerance).map(|tolerance| Spanned::new(tolerance, 0..0)),
        unit: (!unit.is_empty()).then(|| unit.to_owned()),
        bytes: None,
        format: None,
        published: None,
        profile: None,
        machine: None,
    }
}

/// `1%`, `0.5`, `[70, 80]`, `>= 3`, `<= 10`; empty: none.
fn tolerance(text: &str) -> Option<Tolerance> {
    let number = |text: &str| text.trim().parse::<BigDecimal>().unwrap();
    if let Some(share) = text.strip_suffix('%') {
        return Some(Tolerance::Relative(number(share) / BigDecimal::from(100)));
    }
    if let Some(low) = text.strip_prefix(">=") {
        return Some(Tolerance::AtLeast(number(low)));
    }
    if let Some(high) = text.strip_prefix("<=") {
        return Some(Tolerance::AtMost(number(high)));
    }
    if let Some(ends) = text.strip_prefix('[') {
        let (low, high) = ends.trim_end_matches(']').split_once(',').unwrap();
        return Some(Tolerance::Range(number(low), number(high)));
    }
    (!text.is_empty()).then(|| Tolerance::Absolute(number(text)))
}

/// A number, `true`, `false` or `NULL`.
pub fn value(text: &str) -> Value {
    match text {
        "NULL" => Value::Null,
        "true" | "false" => Value::Boolean(text == "true"),
        _ => Value::from_postgres(Some(text), "numeric"),
    }
}

/// A record of these claims' values, measured on the host named.
pub fn record(host: &str, values: &[(&str, &str)]) -> Record {
    Record {
        format: FORMAT,
        article: "sample".to_owned(),
        profile: "full".to_owned(),
        params: IndexMap::new(),
        queries: Fingerprint::default(),
        part: None,
        environments: Default::default(),
        environment: Environment {
            other_servers: IndexMap::new(),
            server: ServerEnvironment::default(),
            host: HostEnvironment {
                sha256: host.to_owned(),
                ..HostEnvironment::default()
            },
            tool: ToolEnvironment::default(),
        },
        experiments: IndexMap::new(),
        claims: values
            .iter()
            .map(|&(name, text)| {
                let claim = ClaimRecord {
                    comparison: None,
                    type_name: "numeric".to_owned(),
                    value: value(text),
                    unit: None,
                    reads: Vec::new(),
                };
                (name.to_owned(), claim)
            })
            .collect(),
        tables: IndexMap::new(),
        charts: IndexMap::new(),
        skipped: IndexMap::new(),
    }
}

/// An experiment's record of which only fingerprint and host matter.
pub fn experiment(fingerprint: &str, host: &str) -> ExperimentRecord {
    ExperimentRecord {
        derived: Vec::new(),
        fingerprint: fingerprint.to_owned(),
        inputs: Fingerprint::default(),
        host: host.to_owned(),
        measured_at: "2026-11-30T00:00:00Z".to_owned(),
        seconds: None,
        settings: BTreeMap::new(),
        summaries: Vec::new(),
        doubts: Vec::new(),
        measured: Default::default(),
        results: IndexMap::new(),
    }
}
