//! `out/index.html`: the articles that were built, newest first. Entry: [`index`].

use super::state::{self, Count};
use super::{Filled, OutputFile, Page, templates};
use crate::diagnostic::Diagnostic;
use crate::judge::Outcome;
use serde::{Deserialize, Serialize};

/// What the index says of one article.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexEntry {
    pub slug: String,
    pub title: String,
    pub description: Option<String>,
    /// `YYYY-MM-DD`
    pub date: Option<String>,
    pub tags: Vec<String>,
    pub profile: String,
    pub postgres_version: String,
    /// How many figures came to what.
    pub holds: usize,
    pub does_not_hold: usize,
    pub skipped: usize,
}

/// An article's entry, from what its page is made of.
pub fn index_entry(page: &Page, filled: &Filled) -> IndexEntry {
    let count = |wanted: fn(&Outcome) -> bool| {
        page.verdicts
            .iter()
            .filter(|verdict| wanted(&verdict.outcome))
            .count()
    };
    let front = &page.article.front_matter;
    IndexEntry {
        slug: page.article.slug.clone(),
        title: filled.title.clone(),
        description: filled.description.clone(),
        date: front.date.clone(),
        tags: front.tags.clone(),
        profile: page.record.profile.clone(),
        postgres_version: page.record.environment.versions_text(),
        holds: count(|outcome| matches!(outcome, Outcome::Holds)),
        does_not_hold: count(|outcome| matches!(outcome, Outcome::DoesNotHold { .. })),
        skipped: count(|outcome| matches!(outcome, Outcome::Skipped { .. })),
    }
}

#[derive(Serialize)]
struct IndexView<'a> {
    entries: Vec<EntryView<'a>>,
    style: &'static str,
}

#[derive(Serialize)]
struct EntryView<'a> {
    slug: &'a str,
    title: &'a str,
    description: Option<&'a str>,
    date: Option<&'a str>,
    tags: &'a [String],
    profile: &'a str,
    quick: bool,
    version: &'a str,
    counts: Vec<Count>,
}

pub fn index(entries: &[IndexEntry]) -> Result<OutputFile, Diagnostic> {
    let mut sorted: Vec<&IndexEntry> = entries.iter().collect();
    sorted.sort_by(|a, b| b.date.cmp(&a.date).then_with(|| a.slug.cmp(&b.slug)));
    let view = IndexView {
        entries: sorted.into_iter().map(entry_view).collect(),
        style: templates::STYLE,
    };
    let html = templates::render("index/index.html", &view)?;
    Ok(OutputFile::new("index.html", html))
}

fn entry_view(entry: &IndexEntry) -> EntryView<'_> {
    EntryView {
        slug: &entry.slug,
        title: &entry.title,
        description: entry.description.as_deref(),
        date: entry.date.as_deref(),
        tags: &entry.tags,
        profile: &entry.profile,
        quick: entry.profile != "full",
        version: &entry.postgres_version,
        counts: state::counts(entry.holds, entry.does_not_hold, entry.skipped),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_article_comes_first_and_text_is_escaped() {
        let entry = |slug: &str, date: Option<&str>| IndexEntry {
            slug: slug.into(),
            title: format!("On <{slug}>"),
            date: date.map(str::to_owned),
            profile: "full".into(),
            postgres_version: "16.15".into(),
            holds: 1,
            ..IndexEntry::default()
        };
        let entries = [
            entry("undated", None),
            entry("old", Some("2025-01-01")),
            entry("new", Some("2026-01-01")),
        ];
        let file = index(&entries).unwrap();
        let html = String::from_utf8(file.content).unwrap();
        let at = |slug: &str| {
            html.find(&format!("<a href=\"{slug}/index.html\">On &lt;{slug}&gt;"))
                .unwrap()
        };
        assert!(at("new") < at("old") && at("old") < at("undated"));
        assert!(html.contains("1 figure holds"));
    }
}
