//! `article.md`: plain Markdown for any blog, with every value put in, and `charts/*.svg`.
//! The source is spliced at byte offsets, so that what the author wrote stays as it was written.

use super::cells;
use super::html::{local_path, read_inside};
use super::machines::{self, Machines, Standing};
use super::masked::Masked;
use super::numbering::Numbering;
use super::state::State;
use super::{Filled, OutputFile, Page};
use crate::article::{
    Article, Block, BlockKind, Citation, Client, Reference, ReferenceKind, TableColumn,
};
use crate::diagnostic::Diagnostic;
use crate::quantity::Table;
use crate::record::Unpinned;
use crate::source::Span;
use indexmap::IndexMap;
use pulldown_cmark::{Event, HeadingLevel, Tag};
use std::collections::BTreeSet;
use std::path::Path;

pub fn chart_path(id: &str) -> String {
    format!("charts/{id}.svg")
}

pub fn render(page: &Page, filled: &Filled) -> Result<Vec<OutputFile>, Diagnostic> {
    let splicer = Splicer {
        page,
        filled,
        numbering: Numbering::new(page.article),
    };
    let mut files = vec![OutputFile::new("article.md", splicer.splice()?)];
    for (id, svg) in page.charts {
        files.push(OutputFile::new(chart_path(id), svg.clone()));
    }
    files.extend(assets(page.article));
    Ok(files)
}

struct Splicer<'a> {
    page: &'a Page<'a>,
    filled: &'a Filled,
    numbering: Numbering<'a>,
}

/// Claims that differ side by side, where the author has records of several machines, and what each
/// machine is.
fn machines(page: &Page) -> String {
    let found = Machines::of(page).filter(|_| !page.machines.is_empty());
    let Some(Machines { columns, rows }) = found else {
        return String::new();
    };
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let same = rows.iter().filter(|row| row.same).count();
    let mut text = format!(
        "\n\n---\n\nMeasured on several machines. On all of them {same} of {} claims are the same.\n\n",
        rows.len()
    );
    if same < rows.len() {
        let titles = columns.iter().map(|column| escape(column.title));
        let head = std::iter::once("Claim".to_owned()).chain(titles);
        text.push_str(&line(head.collect()));
        let rule = std::iter::once(":---").chain(columns.iter().map(|_| "---:"));
        text.push_str(&line(rule.map(str::to_owned).collect()));
        for row in rows.iter().filter(|row| !row.same) {
            let name = escape(&row.claim.name.value);
            let cells = row.cells.iter().map(machine_cell);
            text.push_str(&line(std::iter::once(name).chain(cells).collect()));
        }
        text.push('\n');
    }
    for column in &columns {
        let note = match column.standing {
            Standing::Compared => String::new(),
            Standing::Stale => " (stale: measured with other inputs)".to_owned(),
            Standing::OtherProfile => format!(" (profile {}: not compared)", column.record.profile),
        };
        let host = escape(&one_line(&column.record.environment.host.machine()));
        let title = escape(column.title);
        text.push_str(&format!("- {title}{note}: {host}\n"));
    }
    text
}

/// A value, its ratio to the first machine's, and whether it does not hold.
fn machine_cell(cell: &machines::Cell) -> String {
    let mut text = escape(cell.text.as_deref().unwrap_or("–"));
    if let Some(ratio) = &cell.ratio {
        text.push_str(&format!(" (×{ratio})"));
    }
    if cell.state == Some(State::Fails) {
        text.push_str(", does not hold");
    }
    text
}

/// What stands in the place of a part of the source.
struct Edit {
    span: Span,
    text: String,
}

impl Splicer<'_> {
    fn splice(&self) -> Result<String, Diagnostic> {
        let source = &self.page.article.source.text;
        let mut spliced = String::with_capacity(source.len() + source.len() / 4);
        let mut at = 0;
        for edit in self.edits()? {
            if edit.span.start < at {
                // Inside what was replaced already.
                continue;
            }
            spliced.push_str(&source[at..edit.span.start]);
            spliced.push_str(&edit.text);
            at = edit.span.end;
        }
        spliced.push_str(&source[at..]);
        spliced.push_str(&machines(self.page));
        Ok(tidy(spliced.trim_start_matches('\u{feff}')))
    }

    /// In order of place.
    fn edits(&self) -> Result<Vec<Edit>, Diagnostic> {
        let article = self.page.article;
        let prose = &article.prose;
        let mut edits = vec![Edit {
            span: article.front_matter.span,
            text: self.heading(),
        }];
        for block in &article.blocks {
            edits.push(Edit {
                span: block.span,
                text: self.block(block)?,
            });
        }
        for (span, filled) in &self.filled.prose {
            edits.push(Edit {
                span: *span,
                text: escape(&filled.text),
            });
        }
        for quote in &prose.quotes {
            edits.extend(text_alone(quote.span, quote.text_span));
        }
        edits.extend(self.definitions());
        for reference in &prose.references {
            edits.extend(self.reference(reference));
        }
        for citation in &prose.citations {
            edits.extend(self.citation(citation));
        }
        edits.sort_by_key(|edit| (edit.span.start, std::cmp::Reverse(edit.span.end)));
        Ok(edits)
    }

    /// Title and description in the place of the front matter.
    fn heading(&self) -> String {
        let has_own = (Masked::new(self.page.article).events().iter()).any(|(event, _)| {
            matches!(event, Event::Start(Tag::Heading { level, .. }) if *level == HeadingLevel::H1)
        });
        let notice = self.notice();
        if has_own {
            return notice;
        }
        let mut heading = format!("# {}\n", escape(&one_line(&self.filled.title)));
        if let Some(description) = &self.filled.description {
            heading.push_str(&format!("\n{}\n", escape(&one_line(description))));
        }
        if !notice.is_empty() {
            heading.push_str(&format!("\n{notice}"));
        }
        heading
    }

    /// `[](chart:x)` → `Figure 1`; a text of its own stays.
    fn reference(&self, reference: &Reference) -> Vec<Edit> {
        if reference.text.trim().is_empty() {
            let label = (self.numbering)
                .label(reference.kind, &reference.id.value)
                .unwrap_or_default();
            return vec![Edit {
                span: reference.span,
                text: label,
            }];
        }
        text_alone(reference.span, reference.text_span)
    }

    /// `[345 bytes](cite:source)` → a link to the source, where it has an address.
    fn citation(&self, citation: &Citation) -> Vec<Edit> {
        let source = self.page.article.front_matter.published_source.as_ref();
        match source.and_then(|source| source.url.as_deref()) {
            Some(url) => vec![Edit {
                span: Span::new(citation.text_span.end, citation.span.end),
                text: format!("]({})", destination(url)),
            }],
            None => text_alone(citation.span, citation.text_span),
        }
    }

    /// `[wal]: claim:wal`: nothing is left that it defines.
    fn definitions(&self) -> Vec<Edit> {
        let source = &self.page.article.source.text;
        Masked::new(self.page.article)
            .own_definitions()
            .into_iter()
            .map(|span| {
                let rest = &source[span.end..];
                let line = rest.find('\n').map_or(rest.len(), |end| end + 1);
                let blank = rest[..line].trim().is_empty();
                cut(span.start, span.end + if blank { line } else { 0 })
            })
            .collect()
    }

    // ---- blocks -------------------------------------------------------------------------------

    fn block(&self, block: &Block) -> Result<String, Diagnostic> {
        let id = &block.id.value;
        let record = self.page.record;
        let caption = self.filled.captions.get(id).map(String::as_str);
        if let Some(text) = self.skipped(block, caption) {
            return Ok(self.set_apart(block, &text));
        }
        let text = match &block.kind {
            BlockKind::Claims(_) => String::new(),
            BlockKind::Fixture(_) => self.listing(block),
            BlockKind::Experiment(experiment) => {
                let listing = if experiment.echo {
                    self.listing(block)
                } else {
                    String::new()
                };
                match caption {
                    Some(caption) if !listing.is_empty() => {
                        format!(
                            "{}\n\n{listing}",
                            self.caption(ReferenceKind::Experiment, id, Some(caption))
                        )
                    }
                    _ => listing,
                }
            }
            BlockKind::Table(table) => {
                let rows = record
                    .tables
                    .get(id)
                    .ok_or_else(|| self.missing(block, "table"))?;
                let rows = self.table(block, rows, &table.columns)?;
                format!(
                    "{}\n\n{rows}",
                    self.caption(ReferenceKind::Table, id, caption)
                )
            }
            BlockKind::Chart(_) => {
                let alt = self.filled.chart_alts.get(id).map_or("", String::as_str);
                format!(
                    "![{}]({})\n\n{}",
                    escape(&one_line(alt)),
                    chart_path(id),
                    self.caption(ReferenceKind::Chart, id, caption)
                )
            }
        };
        Ok(self.set_apart(block, &text))
    }

    /// What stands for what an existing server did not let be measured.
    fn skipped(&self, block: &Block, caption: Option<&str>) -> Option<String> {
        let (kind, word) = match &block.kind {
            BlockKind::Experiment(_) => (ReferenceKind::Experiment, "experiment"),
            BlockKind::Table(_) => (ReferenceKind::Table, "table"),
            BlockKind::Chart(_) => (ReferenceKind::Chart, "chart"),
            BlockKind::Fixture(_) | BlockKind::Claims(_) => return None,
        };
        let id = &block.id.value;
        let reason = self.page.record.skipped_because(word, id)?;
        let listing = match &block.kind {
            BlockKind::Experiment(experiment) if experiment.echo => self.listing(block),
            _ => String::new(),
        };
        let unnamed = kind == ReferenceKind::Experiment && caption.is_none();
        let caption = match unnamed {
            true => String::new(),
            false => self.caption(kind, id, caption),
        };
        let parts = [
            caption,
            listing,
            format!("*Skipped: {}*", escape(&one_line(reason))),
        ];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Some(parts.join("\n\n"))
    }

    /// What is said before anything of an article that was measured on an existing server.
    fn notice(&self) -> String {
        let pinned = &self.page.article.front_matter.postgres.version.value;
        let Some(unpinned) = Unpinned::of(self.page.record, pinned) else {
            return String::new();
        };
        let mut notice = String::new();
        for sentence in &unpinned.sentences {
            notice.push_str(&format!("> {}\n>\n", escape(&one_line(sentence))));
        }
        for detail in &unpinned.details {
            notice.push_str(&format!("> - {}\n", escape(&one_line(detail))));
        }
        notice.trim_end_matches(['\n', '>']).to_owned() + "\n\n"
    }

    /// A caption or a table must not run into a line that stands directly before or after the fence.
    fn set_apart(&self, block: &Block, text: &str) -> String {
        let prefix = self.container_prefix(block);
        let text = indented(text, &prefix);
        if text.is_empty() {
            return text;
        }
        let source = &self.page.article.source.text;
        let blank = |line: &str| line.trim_matches([' ', '>', '\t', '\r']).is_empty();
        let line_start = source[..block.span.start]
            .rfind('\n')
            .map_or(0, |at| at + 1);
        // On the line of a list item's bullet the fence begins the item.
        let own_line = blank(&source[line_start..block.span.start]);
        let before = source[..line_start].lines().next_back().unwrap_or_default();
        let after = source[block.span.end..].lines().nth(1).unwrap_or_default();
        let empty_line = format!("\n{prefix}");
        let above = if own_line && !blank(before) {
            &empty_line
        } else {
            ""
        };
        let below = if blank(after) { "" } else { &empty_line };
        format!("{above}{text}{below}")
    }

    fn caption(&self, kind: ReferenceKind, id: &str, caption: Option<&str>) -> String {
        let label = self.numbering.label(kind, id).unwrap_or_default();
        match caption {
            Some(caption) => format!("*{label}. {}*", escape(&one_line(caption))),
            None => format!("*{label}*"),
        }
    }

    fn missing(&self, block: &Block, what: &str) -> Diagnostic {
        Diagnostic::error(format!(
            "the record has nothing of {what} `{}`",
            block.id.value
        ))
        .at(&self.page.article.source, block.id.span)
        .hint("build the article again")
    }

    /// The SQL of a block under a plain `sql` fence; empty where there is none.
    fn listing(&self, block: &Block) -> String {
        let clients: Vec<usize> = match &block.kind {
            BlockKind::Experiment(experiment) => experiment
                .phases()
                .filter(|phase| !matches!(phase.client, Client::Session))
                .map(|phase| phase.span.start)
                .collect(),
            _ => Vec::new(),
        };
        let mut sql = String::new();
        let mut at = 0;
        for line in block.content.text.split_inclusive('\n') {
            let range = block.content.span(at..at + line.len());
            at += line.len();
            match line.trim_start().strip_prefix("--|") {
                None => sql.push_str(line),
                // Who runs what is below matters as much as what it is.
                Some(options) if clients.iter().any(|start| range.range().contains(start)) => {
                    sql.push_str("--");
                    sql.push_str(options);
                }
                Some(_) => {}
            }
        }
        let sql = sql.trim_matches('\n').trim_end();
        if sql.trim().is_empty() {
            return String::new();
        }
        let opening = self.page.article.source.slice(block.span);
        let mark = opening.chars().next().unwrap_or('`');
        let fence: String = opening.chars().take_while(|c| *c == mark).collect();
        format!("{fence}sql\n{sql}\n{fence}")
    }

    fn table(
        &self,
        block: &Block,
        rows: &Table,
        columns: &IndexMap<String, TableColumn>,
    ) -> Result<String, Diagnostic> {
        let shown = cells::shown(rows, columns, self.page.article.front_matter.bytes).map_err(
            |message| Diagnostic::error(message).at(&self.page.article.source, block.id.span),
        )?;
        let line = |cells: &mut dyn Iterator<Item = String>| {
            format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
        };
        let mut lines = vec![
            line(
                &mut shown
                    .headings
                    .iter()
                    .map(|heading| table_cell(&heading.label)),
            ),
            line(&mut shown.headings.iter().map(|heading| {
                let rule = if heading.numeric { "---:" } else { ":---" };
                rule.to_owned()
            })),
        ];
        for row in &shown.rows {
            lines.push(line(&mut row.iter().map(|cell| table_cell(&cell.text))));
        }
        Ok(lines.join("\n"))
    }

    /// What stands before each line of a fence that is in a list or a quotation.
    fn container_prefix(&self, block: &Block) -> String {
        let before = &self.page.article.source.text[..block.span.start];
        let line = &before[before.rfind('\n').map_or(0, |at| at + 1)..];
        (line.chars())
            .map(|c| if c == '>' { '>' } else { ' ' })
            .collect()
    }
}

/// A link of which the text stays, with what is filled in there.
fn text_alone(span: Span, text: Span) -> Vec<Edit> {
    vec![cut(span.start, text.start), cut(text.end, span.end)]
}

fn cut(start: usize, end: usize) -> Edit {
    Edit {
        span: Span::new(start, end),
        text: String::new(),
    }
}

/// A URL as a link's destination.
fn destination(url: &str) -> String {
    if url.contains([' ', '(', ')', '<', '>']) || url.contains(char::is_control) {
        format!("<{}>", url.replace(['<', '>', '\n'], ""))
    } else {
        url.to_owned()
    }
}

/// Text that Markdown leaves as it is.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let begins_entity = c == '&'
            && chars
                .peek()
                .is_some_and(|&next| next == '#' || next.is_alphabetic());
        let is_mark = matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '#'
        );
        if is_mark || begins_entity {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn table_cell(text: &str) -> String {
    escape(&one_line(text))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn indented(text: &str, prefix: &str) -> String {
    text.replace('\n', &format!("\n{prefix}"))
}

/// No more than one empty line in a row outside of code, none at the beginning, one line break at
/// the end.
fn tidy(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    let mut fence: Option<&str> = None;
    let mut empty = true;
    for line in text.lines() {
        let content = line.trim_start_matches([' ', '>']);
        let mark = fence_mark(content);
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if mark.starts_with(open) => fence = None,
            _ => {}
        }
        let is_empty = line.trim().is_empty();
        if !(is_empty && empty && fence.is_none()) {
            tidy.push_str(line);
            tidy.push('\n');
        }
        empty = is_empty;
    }
    tidy.truncate(tidy.trim_end().len());
    tidy.push('\n');
    tidy
}

fn fence_mark(line: &str) -> Option<&str> {
    let first = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == first).count();
    (length >= 3).then(|| &line[..length])
}

/// Files of the article's folder that its links and images name, to stand beside `article.md`.
fn assets(article: &Article) -> Vec<OutputFile> {
    let masked = Masked::new(article);
    let mut paths = BTreeSet::new();
    for (event, _) in masked.events() {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event
            && let Some(path) = local_path(&dest_url)
        {
            // These stand there already, as what was made of them.
            if ![Path::new("article.md"), Path::new("record.json")].contains(&path) {
                paths.insert(path.to_owned());
            }
        }
    }
    (paths.into_iter())
        .filter_map(|path| {
            let content = read_inside(&article.directory, &path).ok()?;
            Some(OutputFile { path, content })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample::{Sample, TEXT};

    #[test]
    fn the_article_becomes_plain_markdown() {
        let markdown = Sample::new().file("article.md");
        assert_eq!(markdown, include_str!("sample_expected.md"));
    }

    #[test]
    fn what_the_author_wrote_stays_byte_for_byte() {
        let markdown = Sample::new().file("article.md");
        let untouched = TEXT.split("## What to do\n").nth(1).unwrap();
        for line in untouched.lines().filter(|line| !line.contains("{{ index")) {
            assert!(markdown.contains(line), "{line}");
        }
    }

    #[test]
    fn links_by_name_become_text_and_leave_no_definition_behind() {
        let prose = "Costs [76 *bytes*][wal], [76 B][], [see][chart], [345][src] and [x](https://example.org).\n\n\
                     ![with [76 B](claim:index_wal)](https://example.org/x.png)\n\n\
                     [wal]: claim:index_wal\n[76 B]: <claim:index_wal> \"title\"\n[other]: https://example.org\n\
                     [chart]: chart:insert_wal\n[src]: cite:source\n\nThe end.";
        let text = TEXT.replace("The same heading again.", prose);
        let markdown = Sample::from_text(&text).file("article.md");
        let expected = "Costs 76 *bytes*, 76 B, see, [345](https://example.org/index-cost) and \
                        [x](https://example.org).\n\n![with 76 B](https://example.org/x.png)\n\n\
                        [other]: https://example.org\n\nThe end.";
        assert!(markdown.contains(expected), "{markdown}");
    }

    #[test]
    fn blocks_without_an_empty_line_between_them_do_not_run_together() {
        let text = TEXT.replace("\n```\n\n```sql", "\n```\n```sql");
        assert_ne!(text, TEXT);
        let markdown = Sample::from_text(&text).file("article.md");
        assert_eq!(markdown, include_str!("sample_expected.md"));
        let text = TEXT.replace("\n\n```sql", "\nText before.\n```sql");
        let markdown = Sample::from_text(&text).file("article.md");
        assert!(markdown.contains("Text before.\n\n*Table 1"), "{markdown}");
    }

    #[test]
    fn a_fence_in_a_list_or_quotation_keeps_its_indentation() {
        for (prefix, rest) in [("- ", "  "), ("> ", "> "), ("> 1. ", ">    ")] {
            let start = TEXT.find("```sql fixture src").unwrap();
            let end = start + TEXT[start..].find("\n```\n").unwrap() + 4;
            let nested = TEXT[start..end].replace('\n', &format!("\n{rest}"));
            let text = format!("{}{prefix}{nested}{}", &TEXT[..start], &TEXT[end..]);
            let markdown = Sample::from_text(&text).file("article.md");
            for line in [
                format!("{prefix}```sql\n"),
                format!("\n{rest}VACUUM ANALYZE src;\n{rest}```\n"),
            ] {
                assert!(markdown.contains(&line), "{line:?} in {markdown}");
            }
        }
    }
}
