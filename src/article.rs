//! An article as its author wrote it, parsed into types that cannot be wrong. Every part keeps
//! its place in the source, so that a later stage can still point into the Markdown.

mod client;
mod instrument;

pub use client::{Client, ProgramScript, Repeat, RepeatTransaction, param_in};
pub use instrument::{InstrumentChoice, InstrumentOption, InstrumentOptions, OptionValue};

use crate::source::{Extract, Places, Source, Span, Spanned};
use bigdecimal::BigDecimal;
use indexmap::IndexMap;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Article {
    /// The folder's name.
    pub slug: String,
    /// The article's folder; included files stay inside it.
    pub directory: PathBuf,
    pub source: Arc<Source>,
    pub front_matter: FrontMatter,
    /// In the order of the document.
    pub blocks: Vec<Block>,
    pub prose: Prose,
    /// Files of the folder that scripts of psql read, by their name there.
    pub files: BTreeMap<String, IncludedFile>,
}

impl Article {
    pub fn fixtures(&self) -> impl Iterator<Item = &Fixture> {
        self.blocks.iter().filter_map(|block| match &block.kind {
            BlockKind::Fixture(fixture) => Some(fixture),
            _ => None,
        })
    }

    pub fn experiments(&self) -> impl Iterator<Item = &Experiment> {
        self.blocks.iter().filter_map(|block| match &block.kind {
            BlockKind::Experiment(experiment) => Some(experiment.as_ref()),
            _ => None,
        })
    }

    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.blocks
            .iter()
            .filter_map(|block| match &block.kind {
                BlockKind::Claims(claims) => Some(claims.claims.iter()),
                _ => None,
            })
            .flatten()
    }

    pub fn tables(&self) -> impl Iterator<Item = &TableBlock> {
        self.blocks.iter().filter_map(|block| match &block.kind {
            BlockKind::Table(table) => Some(table.as_ref()),
            _ => None,
        })
    }

    pub fn charts(&self) -> impl Iterator<Item = &ChartBlock> {
        self.blocks.iter().filter_map(|block| match &block.kind {
            BlockKind::Chart(chart) => Some(chart.as_ref()),
            _ => None,
        })
    }
}

impl Article {
    /// Every text from YAML that values are filled into, in the order of the document.
    pub fn texts(&self) -> Vec<&TextWithFillIns> {
        texts(Some(&self.front_matter), &self.blocks)
    }

    /// The quote that stands at this place, and its index.
    pub fn quote_at(&self, span: Span) -> Option<usize> {
        let quotes = &self.prose.quotes;
        let index = quotes.partition_point(|quote| quote.span.end <= span.start);
        (quotes.get(index)?.span.start < span.end).then_some(index)
    }
}

/// Title and description, captions, titles and alt texts.
pub fn texts<'a>(
    front_matter: Option<&'a FrontMatter>,
    blocks: &'a [Block],
) -> Vec<&'a TextWithFillIns> {
    let mut texts: Vec<&TextWithFillIns> = Vec::new();
    if let Some(front_matter) = front_matter {
        texts.push(&front_matter.title);
        texts.extend(&front_matter.description);
    }
    for block in blocks {
        match &block.kind {
            BlockKind::Experiment(experiment) => texts.extend(&experiment.caption),
            BlockKind::Table(table) => texts.extend(&table.caption),
            BlockKind::Chart(chart) => {
                texts.extend(&chart.title);
                texts.push(&chart.alt);
                texts.extend(&chart.caption);
            }
            BlockKind::Fixture(_) | BlockKind::Claims(_) => {}
        }
    }
    texts
}

/// A file beside the article that one of its scripts reads.
#[derive(Clone, Debug)]
pub struct IncludedFile {
    pub path: PathBuf,
    /// Of its content, in hex.
    pub sha256: String,
    /// Its content, where psql reads it as a script.
    pub script: Option<Arc<Source>>,
    /// Variables that the script fills in.
    pub variables: Vec<String>,
    /// Files that the script reads in turn.
    pub files: Vec<String>,
}

// ---- front matter -----------------------------------------------------------------------------

#[derive(Clone, Debug)]
pub struct FrontMatter {
    /// The bytes from the first `---` line to the end of the closing one.
    pub span: Span,
    /// May hold `{{ values }}`; see `Prose::fill_ins`.
    pub title: TextWithFillIns,
    pub description: Option<TextWithFillIns>,
    /// `YYYY-MM-DD`
    pub date: Option<String>,
    pub updated: Option<String>,
    pub authors: Vec<String>,
    pub tags: Vec<String>,
    /// BCP 47; `en` unless said otherwise.
    pub lang: String,
    pub draft: bool,
    /// The published post whose figures are being measured again.
    pub published_source: Option<PublishedSource>,
    pub postgres: PostgresSpec,
    /// Every session begins with `setseed()` of it.
    pub seed: BigDecimal,
    pub bytes: BytesMeaning,
    pub params: IndexMap<String, Scalar>,
    pub profiles: IndexMap<String, Profile>,
    /// Severity of each lint rule named in the front matter.
    pub lint: BTreeMap<String, LintLevel>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedSource {
    pub title: Option<String>,
    pub url: Option<String>,
    pub author: Option<String>,
    pub date: Option<String>,
}

#[derive(Clone, Debug)]
pub struct PostgresSpec {
    /// A version that pins.yaml knows, such as `16.15`; of several the first, on which claims,
    /// tables and charts are evaluated.
    pub version: Spanned<String>,
    /// Of `versions:`, in its order: `version` is then a matrix column of every experiment.
    pub versions: Vec<Spanned<String>>,
    /// Server settings, as `ALTER SYSTEM` takes them.
    pub settings: BTreeMap<String, String>,
    pub extensions: Vec<Spanned<String>>,
    pub shm_size: Option<String>,
    pub memory: Option<String>,
    pub cpus: Option<String>,
    /// Of the container's image, such as `linux/arm64`; None: the daemon's own.
    pub platform: Option<Spanned<String>>,
}

impl PostgresSpec {
    /// Every version that is used, the one that evaluates first.
    pub fn all_versions(&self) -> impl Iterator<Item = &Spanned<String>> {
        let only = self.versions.is_empty().then_some(&self.version);
        only.into_iter().chain(&self.versions)
    }

    /// `16.15`, `16.15 and 18.6`
    pub fn versions_text(&self) -> String {
        let all = self.all_versions().map(|version| version.value.as_str());
        in_words(&all.collect::<Vec<_>>())
    }
}

/// `a`, `a and b`, `a, b and c`
pub fn in_words(all: &[&str]) -> String {
    match all {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// The matrix column of an article with several versions.
pub const VERSION: &str = "version";

/// Which kB, MB and GB an article means. KiB and MiB are always binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum BytesMeaning {
    /// 1 kB = 1024 B, as Postgres's settings and `pg_size_pretty` mean it.
    #[default]
    Binary,
    /// 1 kB = 1000 B.
    Decimal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LintLevel {
    Ignore,
    Warn,
    Error,
}

#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub params: IndexMap<String, Scalar>,
    /// Replaces `runs` of every experiment.
    pub runs: Option<Runs>,
    pub warmup: Option<u32>,
}

/// A YAML scalar as it stands in params and matrices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    Boolean(bool),
    Number(BigDecimal),
    Text(String),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Number(value) => f.write_str(&value.to_plain_string()),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Names and values that psql variables are filled from: params, matrix columns, `\gset`.
pub type Variables = IndexMap<String, Scalar>;

// ---- blocks -----------------------------------------------------------------------------------

/// One live fence.
#[derive(Clone, Debug)]
pub struct Block {
    pub id: Spanned<String>,
    /// The whole fence in the source, opening line to closing line.
    pub span: Span,
    /// The content, directives and SQL, for listings and fingerprints.
    pub content: Extract,
    pub kind: BlockKind,
}

#[derive(Clone, Debug)]
pub enum BlockKind {
    Fixture(Fixture),
    Experiment(Box<Experiment>),
    Claims(Claims),
    Table(Box<TableBlock>),
    Chart(Box<ChartBlock>),
}

/// SQL as psql would split it.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub statements: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub struct Statement {
    /// The statement without its terminator, variables not yet applied.
    pub text: Extract,
    pub terminator: Terminator,
    /// psql variables, ascending by their place in `text`.
    pub variables: Vec<VariableReference>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terminator {
    /// `;` or the end of the script.
    Semicolon,
    /// `\gexec`: each cell of the result is a statement.
    Gexec,
    /// `\gset [prefix]`: the row's columns become variables.
    Gset { prefix: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableReference {
    pub name: String,
    pub quoting: VariableQuoting,
    /// In the statement's `text`, from the colon on.
    pub range: std::ops::Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableQuoting {
    /// `:name`
    Plain,
    /// `:'name'`
    Literal,
    /// `:"name"`
    Identifier,
}

#[derive(Clone, Debug)]
pub struct Fixture {
    pub id: Spanned<String>,
    pub from: Option<Spanned<String>>,
    pub script: Script,
}

#[derive(Clone, Debug)]
pub struct Experiment {
    pub id: Spanned<String>,
    pub fixture: Option<Spanned<String>>,
    pub cells: Cells,
    pub runs: Runs,
    pub warmup_runs: u32,
    pub fresh: Fresh,
    pub connect: Connect,
    /// Server settings; values may be `:params`.
    pub settings: IndexMap<String, Spanned<String>>,
    /// Settings of the measuring session; values may be `:params`.
    pub session: IndexMap<String, Spanned<String>>,
    /// Names out of the catalogue, in the order written.
    pub instruments: Vec<Spanned<InstrumentChoice>>,
    /// For each statement.
    pub timeout: Duration,
    /// The SQLSTATE that `measure` must raise.
    pub expect_error: Option<Spanned<String>>,
    pub order: Order,
    pub echo: bool,
    pub caption: Option<TextWithFillIns>,
    pub setup: Vec<Step>,
    /// Own SQL instead of a repeat of `measure`.
    pub warmup: Vec<Step>,
    pub measure: Phase,
    /// `measure: {in: NAME}` that is waited for: before the window of each run, and after it.
    pub before: Vec<Step>,
    pub after: Vec<Step>,
    /// `measure: {in: NAME, background: true}`: begins before the window of each run.
    pub background: Vec<Step>,
    pub samples: Vec<Sampling>,
    pub collects: Vec<Collect>,
    pub teardown: Vec<Step>,
    /// Column name and SQL expression over the other columns, in order.
    pub derive: IndexMap<String, Spanned<String>>,
}

#[derive(Clone, Debug, Default)]
pub struct Phase {
    /// The statements that the tool itself sends; of a program's script (`client`) those in it, for
    /// what is said of statements and variables.
    pub script: Script,
    /// Who runs it.
    pub client: Client,
    /// The place of the `phase:` key, or of the block where the key is left out.
    pub span: Span,
    /// SQL of a boolean that has to come true before it begins.
    pub wait_until: Option<Spanned<String>>,
}

/// A phase beside the measured one, on the measuring session or one that the experiment names.
#[derive(Clone, Debug)]
pub struct Step {
    pub phase: Phase,
    /// None: the measuring session.
    pub session: Option<Spanned<String>>,
    /// Not waited for.
    pub background: bool,
    /// The SQLSTATE that it must raise.
    pub expect_error: Option<Spanned<String>>,
}

/// `sample: {every: 100ms, as: waits}`: asked again and again while `measure` runs. Its table is
/// `measured.<experiment>_<name>`.
#[derive(Clone, Debug)]
pub struct Sampling {
    pub name: Spanned<String>,
    pub every: Duration,
    pub phase: Phase,
}

#[derive(Clone, Debug)]
pub struct Collect {
    /// The result's own table is `measured.<experiment>_<name>`; unnamed ones add their columns to
    /// the experiment's.
    pub name: Option<Spanned<String>>,
    pub session: CollectSession,
    pub phase: Phase,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CollectSession {
    /// The measuring connection, inside a transaction that `measure` left open.
    Subject,
    /// An observer's connection; `:subject_pid` is the measuring backend.
    #[default]
    Observer,
    /// One that the experiment names.
    Named(String),
}

impl Experiment {
    /// Everything beside the measured phase, by the key it is written with, in the order it runs.
    pub fn steps(&self) -> impl Iterator<Item = (&'static str, &Step)> {
        fn of<'a>(
            name: &'static str,
            steps: &'a [Step],
        ) -> impl Iterator<Item = (&'static str, &'a Step)> {
            steps.iter().map(move |step| (name, step))
        }
        of("setup", &self.setup)
            .chain(of("warmup", &self.warmup))
            .chain(of("measure", &self.before))
            .chain(of("measure", &self.background))
            .chain(of("measure", &self.after))
            .chain(of("teardown", &self.teardown))
    }

    /// The server version of a cell, where the article has several.
    pub fn version_of(&self, postgres: &PostgresSpec, cell: usize) -> Option<String> {
        let columns = &self.cells.columns;
        let column = columns.iter().position(|column| column == VERSION);
        let column = column.filter(|_| !postgres.versions.is_empty())?;
        Some(self.cells.rows.get(cell)?.get(column)?.to_string())
    }

    /// The sessions it names, in the order they come.
    pub fn session_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let of_steps = self.steps().filter_map(|(_, step)| step.session.as_ref());
        let of_collects = self
            .collects
            .iter()
            .filter_map(|collect| match &collect.session {
                CollectSession::Named(name) => Some(name.as_str()),
                CollectSession::Subject | CollectSession::Observer => None,
            });
        for name in of_steps.map(|name| name.value.as_str()).chain(of_collects) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Every phase, measured or not.
    pub fn phases(&self) -> impl Iterator<Item = &Phase> {
        (self.steps().map(|(_, step)| &step.phase))
            .chain([&self.measure])
            .chain(self.samples.iter().map(|sampling| &sampling.phase))
            .chain(self.collects.iter().map(|collect| &collect.phase))
    }
}

/// The combinations an experiment runs for. Every cell has the same columns, in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Scalar>>,
    pub span: Option<Span>,
}

impl Cells {
    /// No matrix: one cell without columns.
    pub fn single() -> Self {
        Self {
            columns: Vec::new(),
            rows: vec![Vec::new()],
            span: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    Fixed(u32),
    /// Stops between `min` and `max` once the relative half-width of the median's 95 % interval
    /// of `elapsed_ms` is below `until` (0.02 for `2%`).
    Adaptive {
        min: u32,
        max: u32,
        until: BigDecimal,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    Cell,
    Run,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    Cell,
    Run,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Sequential,
    /// Run 1 of every cell, then run 2 …
    Interleave,
    /// The same, the cells of each round in an order of its own, which the seed decides.
    Shuffle,
}

// ---- claims, tables, charts -------------------------------------------------------------------

#[derive(Clone, Debug)]
pub struct Claims {
    pub id: Spanned<String>,
    pub claims: Vec<Claim>,
}

#[derive(Clone, Debug)]
pub struct Claim {
    pub name: Spanned<String>,
    /// One query with one value.
    pub query: Statement,
    pub kind: ClaimKind,
    pub tolerance: Option<Spanned<Tolerance>>,
    pub unit: Option<String>,
    pub bytes: Option<BytesMeaning>,
    pub format: Option<String>,
    /// What the source post says.
    pub published: Option<Published>,
    /// Holds only in this profile.
    pub profile: Option<Spanned<String>>,
    /// Its value is that of the record of this machine, wherever a page is built.
    pub machine: Option<Spanned<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaimKind {
    /// The same on every machine and run.
    Exact,
    /// The same on every machine, within the tolerance.
    Bounded,
    /// Of this machine.
    Noisy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Published {
    Number(BigDecimal),
    Boolean(bool),
    /// Anything else the post says, such as `8,023,5xx`.
    Text(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Tolerance {
    /// A share of the quoted value: 0.01 for `1%`.
    Relative(BigDecimal),
    /// In the claim's unit.
    Absolute(BigDecimal),
    Range(BigDecimal, BigDecimal),
    AtLeast(BigDecimal),
    AtMost(BigDecimal),
}

#[derive(Clone, Debug)]
pub struct TableBlock {
    pub id: Spanned<String>,
    pub query: Statement,
    pub caption: Option<TextWithFillIns>,
    /// Labels and formats, by the query's column name; columns that are not named stand as they are.
    pub columns: IndexMap<String, TableColumn>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableColumn {
    pub label: Option<String>,
    pub format: Option<String>,
}

#[derive(Clone, Debug)]
pub struct ChartBlock {
    pub id: Spanned<String>,
    pub query: Statement,
    /// A name out of the catalogue of charts.
    pub chart_type: Spanned<String>,
    pub x: Spanned<String>,
    /// One or several columns.
    pub y: Vec<Spanned<String>>,
    pub series: Option<Spanned<String>>,
    /// Columns of the lower and upper end of an error bar.
    pub error: Option<(Spanned<String>, Spanned<String>)>,
    pub log: Vec<Axis>,
    pub title: Option<TextWithFillIns>,
    pub alt: TextWithFillIns,
    pub caption: Option<TextWithFillIns>,
    /// Titles of the axes; default: the column's name.
    pub x_label: Option<String>,
    pub y_label: Option<String>,
    /// Merged into the ECharts option.
    pub option: Option<serde_json::Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    X,
    Y,
}

// ---- prose ------------------------------------------------------------------------------------

/// A text from YAML (title, caption, alt …) in which `{{ values }}` are filled in and figures are
/// quoted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextWithFillIns {
    /// The text as YAML reads it and a reader sees it: with `\{{` already as the two braces it
    /// stands for, and of a link of ours the text alone.
    pub text: String,
    /// Where the value stands in the source.
    pub span: Span,
    /// In `text`; `range` is an offset there.
    pub fill_ins: Vec<FillIn>,
    /// Quotes, citations and references, ascending.
    pub links: Vec<TextLink>,
    /// Where `text` stands in the source.
    pub places: Places,
}

/// A link of ours in a text from YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextLink {
    /// Its text, in the text around it.
    pub range: std::ops::Range<usize>,
    pub target: LinkTarget,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkTarget {
    Quote(Quote),
    Citation(Citation),
    Reference(Reference),
}

/// What the prose says that is checked or put in, each in the order of the source; also in titles,
/// captions and alt texts. All spans are offsets in the source.
#[derive(Clone, Debug, Default)]
pub struct Prose {
    pub quotes: Vec<Quote>,
    /// Outside front matter and blocks.
    pub fill_ins: Vec<FillIn>,
    pub references: Vec<Reference>,
    pub citations: Vec<Citation>,
}

/// `[76 bytes](claim:index_wal)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    pub claim: Spanned<String>,
    /// The link's text, markup taken out.
    pub text: String,
    /// Where `text` stands in the source.
    pub places: Places,
    /// `[76 bytes][]`: the text is also the name of its definition.
    pub text_is_label: bool,
    /// The inside of the brackets.
    pub text_span: Span,
    /// The whole link.
    pub span: Span,
}

/// `{{ expression }}`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FillIn {
    pub expression: String,
    /// With the braces.
    pub span: Span,
}

/// `[](chart:insert_wal)`: becomes "Figure 1".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub kind: ReferenceKind,
    pub id: Spanned<String>,
    /// The link's text; empty: the number is put in.
    pub text: String,
    /// The inside of the brackets.
    pub text_span: Span,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReferenceKind {
    Chart,
    Table,
    Experiment,
}

/// `[345 bytes](cite:source)`: a number that was not measured here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Citation {
    pub target: Spanned<String>,
    pub text: String,
    /// The inside of the brackets.
    pub text_span: Span,
    pub span: Span,
}
