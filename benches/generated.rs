//! Articles of any size with the record that goes with them, the same ones every time: for
//! benchmarks, and for tests of how work grows. Nothing is measured; the numbers are made up here.

use remeasure::analyse;
use remeasure::article::Article;
use remeasure::chart::CHARTS;
use remeasure::lint::RULES;
use remeasure::measure::instrument::INSTRUMENTS;
use remeasure::parse::{self, Known};
use remeasure::plan::{self, FULL, ServerIdentity, fingerprint};
use remeasure::quantity::{Column, Table, Value};
use remeasure::record::{ClaimRecord, ExperimentRecord, FORMAT, Record, to_json};
use remeasure::source::Source;
use std::fmt::Write;
use std::fs;
use std::path::Path;

pub const VERSION: &str = "16.15";

/// How large an article is to be.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Quotes in its prose, each of a claim of its own.
    pub quotes: usize,
    /// Bytes of `article.md`, reached with prose.
    pub bytes: usize,
    /// Measured rows in its record, spread over the experiments.
    pub rows: usize,
}

impl Size {
    /// What `check --recorded` has to judge in 100 ms.
    pub const LARGE: Self = Self {
        quotes: 2_000,
        bytes: 1 << 20,
        rows: 4_000,
    };

    pub fn times(self, factor: usize) -> Self {
        Self {
            quotes: self.quotes * factor,
            bytes: self.bytes * factor,
            rows: self.rows * factor,
        }
    }
}

/// Claims of one experiment.
const CLAIMS: usize = 50;

/// A sentence without figures, for filling up.
const FILLER: &str = "The rows are made once and copied from there, so that every run begins with \
    the same heap and the same *trees*; what a `CHECKPOINT` leaves behind is [said elsewhere]\
    (https://example.org/checkpoints), on Postgres 16 as on 17.\n";

/// The text of an article.
pub fn text(size: Size) -> String {
    let mut text = format!(
        "---\ntitle: An article of {} quotes\npostgres: {{version: \"{VERSION}\"}}\n\
         params: {{rows: 1000}}\nsource: {{title: Earlier}}\n---\n\n",
        size.quotes
    );
    let experiments = size.quotes.div_ceil(CLAIMS).max(1);
    for experiment in 0..experiments {
        let claims = experiment * CLAIMS..size.quotes.min((experiment + 1) * CLAIMS);
        section(&mut text, experiment, claims, size);
        let wanted = size.bytes * (experiment + 1) / experiments;
        while text.len() < wanted {
            let paragraph = 8;
            text.push('\n');
            for _ in 0..paragraph {
                text.push_str(FILLER);
            }
        }
    }
    text
}

fn section(text: &mut String, experiment: usize, claims: std::ops::Range<usize>, size: Size) {
    let runs = runs(size);
    let _ = write!(
        text,
        "\n## Part {experiment}\n\n```sql experiment e{experiment}\n--| runs: {runs}\n\
         --| matrix: {{indexes: [0, 1, 2, 4, 8]}}\n--| instruments: [time]\n--| setup:\n\
         CREATE TABLE t AS SELECT g AS id FROM generate_series(1, :rows) AS g;\n--| measure:\n\
         INSERT INTO t SELECT id + :indexes FROM t;\n```\n\n\
         ```sql table t{experiment}\n--| caption: Medians of {{{{ rows }}}} rows\n\
         SELECT indexes, median(elapsed_ms) AS ms FROM measured.e{experiment} GROUP BY 1;\n```\n\n\
         ```sql claims c{experiment}\n"
    );
    for claim in claims.clone() {
        let _ = writeln!(
            text,
            "--| y{claim}: {{unit: B/row, kind: bounded, tolerance: 1%, published: {claim}}}\n\
             SELECT {claim} + avg(run) * 0 FROM measured.e{experiment} WHERE indexes = 8;"
        );
    }
    text.push_str("```\n\n");
    for claim in claims {
        let _ = writeln!(
            text,
            "Each index adds [{} bytes](claim:y{claim}) to a row, that is {{{{ y{claim} | fixed(1) }}}}, \
             where [{claim}](cite:source) was published; see [](table:t{experiment}).",
            grouped(claim)
        );
    }
}

fn grouped(number: usize) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", number / 1_000, number % 1_000),
    }
}

/// Values of the matrix above.
const INDEXES: [usize; 5] = [0, 1, 2, 4, 8];

fn runs(size: Size) -> usize {
    let experiments = size.quotes.div_ceil(CLAIMS).max(1);
    (size.rows / experiments / INDEXES.len()).clamp(1, 10_000)
}

/// Reads `text` as the program does.
pub fn article(text: String, folder: &Path) -> Article {
    let path = folder.join("article.md");
    let source = Source::new(path.display().to_string(), &path, text);
    let known = Known {
        versions: &[VERSION.to_owned()],
        instruments: &INSTRUMENTS
            .iter()
            .map(|one| one.known())
            .collect::<Vec<_>>(),
        charts: &CHARTS.iter().map(|one| one.name).collect::<Vec<_>>(),
        lint_rules: &RULES.iter().map(|one| one.name).collect::<Vec<_>>(),
    };
    parse::parse(&source, "generated", folder, &known).unwrap_or_else(|problems| {
        let told: Vec<String> = problems.iter().map(|one| one.render(false)).collect();
        panic!("{}", told.join("\n"))
    })
}

/// The record in which every quote of [`text`] holds.
pub fn record(article: &Article, size: Size) -> Record {
    let resolved = plan::resolve(article, None).expect("the full profile");
    let identity = ServerIdentity {
        version: VERSION.to_owned(),
        digest: None,
        engine: String::new(),
    };
    let mut record = Record {
        format: FORMAT,
        article: article.slug.clone(),
        profile: FULL.to_owned(),
        queries: analyse::queries(article),
        ..Record::default()
    };
    record.params.insert("rows".to_owned(), "1000".to_owned());
    let environment = &mut record.environment;
    environment.server.version = VERSION.to_owned();
    environment.server.sha256 = environment.server.hash();
    environment.host.sha256 = environment.host.hash();
    environment.tool.sha256 = environment.tool.hash();
    let host = environment.host.sha256.clone();
    for experiment in article.experiments() {
        let inputs = fingerprint::of_experiment(
            article,
            experiment,
            &resolved,
            std::slice::from_ref(&identity),
        );
        let measured = measured(runs(size));
        record.experiments.insert(
            experiment.id.value.clone(),
            ExperimentRecord {
                fingerprint: inputs.sha256(),
                inputs,
                host: host.clone(),
                measured_at: "2026-11-30T00:00:00Z".to_owned(),
                seconds: None,
                settings: Default::default(),
                summaries: Vec::new(),
                doubts: Vec::new(),
                derived: Vec::new(),
                measured,
                results: Default::default(),
            },
        );
    }
    for (number, claim) in article.claims().enumerate() {
        let claimed = ClaimRecord {
            comparison: None,
            type_name: "numeric".to_owned(),
            value: Value::from_postgres(Some(&number.to_string()), "numeric"),
            unit: claim.unit.clone(),
            reads: vec![format!("e{}", number / CLAIMS)],
        };
        record.claims.insert(claim.name.value.clone(), claimed);
    }
    record
}

fn measured(runs: usize) -> Table {
    let columns = [
        ("indexes", "numeric"),
        ("run", "integer"),
        ("elapsed_ms", "double precision"),
        ("server_ms", "double precision"),
        ("rows", "numeric"),
        ("plan", "text"),
    ];
    let mut rows = Vec::new();
    for indexes in INDEXES {
        for run in 1..=runs {
            let cells = [
                indexes.to_string(),
                run.to_string(),
                format!("{}.{:06}", 10 + indexes, run * 7_919 % 1_000_000),
                format!("{}.{:06}", 9 + indexes, run * 6_007 % 1_000_000),
                "1000".to_owned(),
                "Insert on t".to_owned(),
            ];
            rows.push(
                (cells.iter().zip(columns))
                    .map(|(cell, (_, type_name))| Value::from_postgres(Some(cell), type_name))
                    .collect(),
            );
        }
    }
    Table {
        columns: columns.map(|(name, kind)| Column::new(name, kind)).into(),
        rows,
    }
}

/// Writes article and record below `folder`, as a project.
pub fn write_project(root: &Path, size: Size) {
    let folder = root.join("articles/generated");
    fs::create_dir_all(&folder).expect("a folder for the article");
    let text = text(size);
    fs::write(folder.join("article.md"), &text).expect("an article");
    let json = to_json(&record(&article(text, &folder), size));
    fs::write(folder.join("record.json"), json).expect("a record");
}
