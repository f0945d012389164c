//! `index.html`: the article as one self-contained page, each figure leading to its evidence.
//! Entry: [`render`]. `prose` turns the Markdown into HTML, `blocks` the live blocks, `evidence`
//! what the claims rest on, `samples` the measurements behind them, `machines` what came out on others; the templates in `templates/html/` put them together.

mod blocks;
mod evidence;
mod links;
mod machines;
mod prose;
mod samples;

pub use links::{local_path, read_inside};

use super::numbering::Numbering;
use super::state::{self, Count, State};
use super::{Filled, OutputFile, Page, templates};
use crate::article::PublishedSource;
use crate::diagnostic::Diagnostic;
use crate::judge::{Outcome, Subject, Verdict};
use crate::record::{HostEnvironment, Record, ServerEnvironment, ToolEnvironment, Unpinned};
use crate::source::Span;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Contents are listed from so many sections on.
const SECTIONS_FOR_CONTENTS: usize = 3;
/// The table of all figures is folded where it has more.
const FEW_CLAIMS: usize = 24;

pub fn render(page: &Page, filled: &Filled) -> Result<Vec<OutputFile>, Diagnostic> {
    let document = Document::new(page, filled);
    let prose = prose::render(&document)?;
    let view = PageView::new(&document, &prose);
    let html = templates::render("html/page.html", &view)?;
    Ok(vec![OutputFile::new("index.html", html)])
}

/// Text as HTML text or as a quoted attribute.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A page with what is looked up in it again and again.
struct Document<'a> {
    page: &'a Page<'a>,
    filled: &'a Filled,
    numbering: Numbering<'a>,
    by_quote: BTreeMap<usize, &'a Verdict>,
    by_claim: BTreeMap<&'a str, Vec<&'a Verdict>>,
}

impl<'a> Document<'a> {
    fn new(page: &'a Page<'a>, filled: &'a Filled) -> Self {
        let mut by_quote = BTreeMap::new();
        let mut by_claim: BTreeMap<&str, Vec<&Verdict>> = BTreeMap::new();
        for verdict in page.verdicts {
            if let Subject::Quote(index) = verdict.subject {
                by_quote.insert(index, verdict);
            }
            by_claim.entry(&verdict.claim).or_default().push(verdict);
        }
        Self {
            page,
            filled,
            numbering: Numbering::new(page.article),
            by_quote,
            by_claim,
        }
    }

    fn verdicts_of(&self, claim: &str) -> &[&'a Verdict] {
        self.by_claim.get(claim).map_or(&[], Vec::as_slice)
    }

    fn claim_state(&self, claim: &str) -> State {
        State::of_all(self.verdicts_of(claim).iter().copied())
    }

    /// The state of a value that was filled in: it is what was measured, so no quote's failing is
    /// its own.
    fn value_state(&self, claim: &str) -> State {
        let own = (self.verdicts_of(claim).iter().copied())
            .filter(|verdict| verdict.subject == Subject::Claim);
        State::of_all(own)
    }

    /// The state of the quote that a link is; the claim's, where it was not judged by itself.
    fn quote_state(&self, claim: &str, link: Span) -> State {
        self.page
            .article
            .quote_at(link)
            .and_then(|index| self.by_quote.get(&index))
            .map_or_else(|| self.claim_state(claim), |verdict| State::of(verdict))
    }

    /// What a figure says when pointed at.
    fn claim_title(&self, claim: &str, state: State) -> String {
        match self.verdicts_of(claim).first() {
            Some(verdict) if state != State::Unjudged => {
                format!("measured {}: {}", verdict.measured_text, state.text())
            }
            _ => "measured".to_owned(),
        }
    }

    /// A name for the host of a hash, where it is one that is known.
    fn host_name(&self, sha256: &str) -> Option<&'a str> {
        let mut records = std::iter::once(self.page.record).chain(self.page.accepted);
        records
            .find_map(|record| record.environment_of(sha256))
            .map(|environment| environment.host.cpu.as_str())
    }

    fn source(&self) -> Option<&'a PublishedSource> {
        self.page.article.front_matter.published_source.as_ref()
    }
}

/// Where a claim's evidence is found.
fn claim_anchor(claim: &str) -> String {
    format!("claim-{claim}")
}

/// Enough of a hash to tell two apart.
fn short(hash: &str) -> String {
    hash.trim_start_matches("sha256:")
        .chars()
        .take(12)
        .collect()
}

// ---- what the templates are given ---------------------------------------------------------------

#[derive(Serialize)]
struct PageView<'a> {
    lang: &'a str,
    title: &'a str,
    description: Option<&'a str>,
    /// With its figures leading to their evidence.
    lede: Option<&'a str>,
    authors: &'a [String],
    tags: &'a [String],
    date: Option<&'a str>,
    updated: Option<&'a str>,
    draft: bool,
    source: Option<SourceView<'a>>,
    profile: &'a str,
    /// Anything but the article's params as they stand.
    quick: bool,
    counts: Vec<Count>,
    headings: Vec<HeadingView<'a>>,
    body: &'a str,
    footnotes: &'a str,
    evidence_note: String,
    claims: Vec<evidence::ClaimView>,
    /// Whether their table is short enough to stand open.
    few_claims: bool,
    samples: Vec<samples::SamplesView<'a>>,
    any_published: bool,
    any_author: bool,
    author_host: Option<&'a str>,
    machines: Option<machines::MachinesView<'a>>,
    /// Where it was measured on a server on which nothing is pinned.
    existing: Option<Unpinned>,
    /// `16.15`, `16.15 and 18.6`
    versions: String,
    server: ServerView<'a>,
    other_servers: Vec<ServerView<'a>>,
    host: HostView<'a>,
    /// Hosts that some experiments were measured on in place of that one.
    other_hosts: Vec<OtherHost<'a>>,
    tool: ToolView<'a>,
    params: Vec<Named<'a>>,
    command: String,
    style: &'static str,
    script: &'static str,
    script_hash: String,
}

#[derive(Serialize)]
struct SourceView<'a> {
    title: &'a str,
    url: Option<&'a str>,
    author: Option<&'a str>,
    date: Option<&'a str>,
}

#[derive(Serialize)]
struct HeadingView<'a> {
    id: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct ServerView<'a> {
    #[serde(flatten)]
    server: &'a ServerEnvironment,
    short_digest: Option<String>,
    short_sha256: String,
    extension_list: Vec<Named<'a>>,
    setting_list: Vec<Named<'a>>,
}

#[derive(Serialize)]
struct HostView<'a> {
    #[serde(flatten)]
    host: &'a HostEnvironment,
    memory: String,
    short_sha256: String,
}

#[derive(Serialize)]
struct OtherHost<'a> {
    #[serde(flatten)]
    host: HostView<'a>,
    experiments: Vec<&'a str>,
}

#[derive(Serialize)]
struct ToolView<'a> {
    #[serde(flatten)]
    tool: &'a ToolEnvironment,
    short_sha256: String,
}

impl<'a> PageView<'a> {
    fn new(document: &'a Document<'a>, prose: &'a prose::Prose) -> Self {
        let page = document.page;
        let front_matter = &page.article.front_matter;
        let environment = &page.record.environment;
        let claims = evidence::claims(document, &prose.uses);
        let author_host = author_host(page).map(|host| host.cpu.as_str());
        Self {
            lang: &front_matter.lang,
            title: &document.filled.title,
            description: document.filled.description.as_deref(),
            lede: prose.lede.as_deref(),
            authors: &front_matter.authors,
            tags: &front_matter.tags,
            date: front_matter.date.as_deref(),
            updated: front_matter.updated.as_deref(),
            draft: front_matter.draft,
            source: document.source().map(source_view),
            profile: &page.record.profile,
            quick: page.record.profile != "full",
            counts: counts(page.verdicts),
            headings: contents(&prose.headings),
            body: &prose.html,
            footnotes: &prose.footnotes,
            evidence_note: author_host.map_or_else(String::new, |host| {
                format!("The author measured on {host}; this page was built on {}, and both values are shown.", environment.host.cpu)
            }),
            any_published: claims.iter().any(|claim| claim.published.is_some()),
            any_author: claims.iter().any(|claim| claim.author.is_some()),
            author_host,
            machines: machines::machines(document),
            existing: Unpinned::of(page.record, &front_matter.postgres.version.value),
            few_claims: claims.len() <= FEW_CLAIMS,
            claims,
            samples: samples::samples(document),
            versions: environment.versions_text(),
            server: server_view(&environment.server),
            other_servers: environment.other_servers.values().map(server_view).collect(),
            host: host_view(&environment.host),
            other_hosts: other_hosts(page.record),
            tool: ToolView {
                tool: &environment.tool,
                short_sha256: short(&environment.tool.sha256),
            },
            params: (page.record.params.iter())
                .map(|(name, value)| Named { name, value })
                .collect(),
            command: command(page),
            style: templates::STYLE,
            script: templates::SCRIPT,
            script_hash: script_hash(templates::SCRIPT),
        }
    }
}

fn source_view(source: &PublishedSource) -> SourceView<'_> {
    SourceView {
        title: (source.title.as_deref())
            .or(source.url.as_deref())
            .unwrap_or("the source"),
        url: source.url.as_deref().filter(|url| links::is_safe(url)),
        author: source.author.as_deref(),
        date: source.date.as_deref(),
    }
}

/// The author's machine, where this page was built on another one.
fn author_host<'a>(page: &Page<'a>) -> Option<&'a HostEnvironment> {
    let author = &page.accepted?.environment.host;
    (author.sha256 != page.record.environment.host.sha256).then_some(author)
}

fn counts(verdicts: &[Verdict]) -> Vec<Count> {
    let count = |state: State| {
        (verdicts.iter())
            .filter(|verdict| State::of(verdict) == state)
            .count()
    };
    state::counts(
        count(State::Holds),
        count(State::Fails),
        count(State::Skipped),
    )
}

fn contents(headings: &[prose::Heading]) -> Vec<HeadingView<'_>> {
    let sections: Vec<HeadingView> = (headings.iter())
        .filter(|heading| heading.level == 2)
        .map(|heading| HeadingView {
            id: &heading.id,
            text: &heading.text,
        })
        .collect();
    if sections.len() < SECTIONS_FOR_CONTENTS {
        return Vec::new();
    }
    sections
}

fn server_view(server: &ServerEnvironment) -> ServerView<'_> {
    ServerView {
        short_digest: server.digest.as_deref().map(short),
        short_sha256: short(&server.sha256),
        extension_list: names(&server.extensions),
        setting_list: names(&server.settings),
        server,
    }
}

fn names(map: &BTreeMap<String, String>) -> Vec<Named<'_>> {
    map.iter()
        .map(|(name, value)| Named { name, value })
        .collect()
}

fn host_view(host: &HostEnvironment) -> HostView<'_> {
    HostView {
        memory: format!("{} memory", host.memory_text()),
        short_sha256: short(&host.sha256),
        host,
    }
}

fn other_hosts(record: &Record) -> Vec<OtherHost<'_>> {
    let there = |host: &str| -> Vec<&str> {
        let experiments = record
            .experiments
            .iter()
            .filter(|(_, one)| one.host == host);
        experiments.map(|(id, _)| id.as_str()).collect()
    };
    (record.environments.iter())
        .map(|(host, environment)| OtherHost {
            host: host_view(&environment.host),
            experiments: there(host),
        })
        .collect()
}

fn command(page: &Page) -> String {
    let slug = &page.article.slug;
    let server = match page.record.environment.server.is_existing() {
        true => " --server postgresql://…",
        false => "",
    };
    match page.record.profile.as_str() {
        "full" => format!("remeasure build {slug}{server}"),
        profile => format!("remeasure build {slug} --profile {profile}{server}"),
    }
}

/// What the page's content security policy lets run: this script and no other.
fn script_hash(script: &str) -> String {
    format!(
        "sha256-{}",
        STANDARD.encode(Sha256::digest(script.as_bytes()))
    )
}

/// Why a verdict is what it is, where that needs saying.
fn explanation(verdict: &Verdict) -> Option<&str> {
    match &verdict.outcome {
        Outcome::Holds => None,
        Outcome::DoesNotHold { difference } => Some(difference),
        Outcome::Skipped { reason } => Some(reason),
    }
}

#[cfg(test)]
mod tests;
