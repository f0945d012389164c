//! Texts from YAML as HTML: captions and the description, their figures linked as those of the
//! prose are. Titles and alt texts cannot hold a link; there the text stands alone.

use super::{Document, Writer, escape, links, value_link};
use crate::article::{LinkTarget, ReferenceKind};
use crate::render::FilledLink;

impl Writer<'_> {
    /// A block's caption, where it has one.
    pub(super) fn caption(&mut self, id: &str) -> Option<String> {
        let filled = self.document.filled;
        let caption = filled.captions.get(id)?;
        let links = filled.caption_links.get(id).map_or(&[][..], Vec::as_slice);
        Some(self.linked(caption, links))
    }

    pub(super) fn linked(&mut self, text: &str, links: &[FilledLink]) -> String {
        let document = self.document;
        let mut html = String::with_capacity(text.len());
        let mut at = 0;
        for link in links {
            html.push_str(&escape(&text[at..link.range.start]));
            at = link.range.end;
            let shown = &text[link.range.clone()];
            match &link.target {
                LinkTarget::Quote(quote) => {
                    let claim = &quote.claim.value;
                    let state = document.quote_state(claim, quote.span);
                    let title = document.claim_title(claim, state);
                    let anchor = self.add_use(claim, "quote", shown);
                    html.push_str(&value_link(claim, &anchor, state, &title, &escape(shown)));
                }
                LinkTarget::Citation(_) => {
                    html.push_str(&citation(document));
                    html.push_str(&format!("{}</a>", escape(shown)));
                }
                LinkTarget::Reference(to) => {
                    html.push_str(&reference(to.kind, &to.id.value));
                    html.push_str(&format!("{}</a>", escape(shown)));
                }
            }
        }
        html.push_str(&escape(&text[at..]));
        html
    }
}

/// The opening tag of a link to a figure, table or experiment.
pub(super) fn reference(kind: ReferenceKind, id: &str) -> String {
    let href = format!("#{}-{}", crate::render::numbering::scheme(kind), id);
    format!("<a href=\"{}\">", escape(&href))
}

/// The opening tag of a link to what is cited.
pub(super) fn citation(document: &Document) -> String {
    let source = document.source();
    let title = source.and_then(|source| source.title.as_deref());
    let title = format!(
        "as {} has it, not measured here",
        title.unwrap_or("the source")
    );
    match source.and_then(|source| source.url.as_deref()) {
        Some(url) if links::is_safe(url) => format!(
            "<a class=\"cited\" href=\"{}\" title=\"{}\">",
            escape(url),
            escape(&title)
        ),
        _ => format!("<a class=\"cited\" title=\"{}\">", escape(&title)),
    }
}

#[cfg(test)]
mod tests {
    use crate::render::sample::{Sample, TEXT};

    fn sample() -> Sample {
        let mut text = TEXT.to_owned();
        for (old, new) in [
            (
                "each extra <index> cost",
                "each extra <index> cost, [76 bytes](claim:index_wal)",
            ),
            (
                "Each extra index costs",
                "\"[80 bytes](claim:index_wal) a row, [345](cite:source) then:",
            ),
            ("& some time.", "& some time, [](table:insert_cost).\""),
            (
                "caption: Bulk load of",
                "caption: At [76 <B>](claim:index_wal) & [{{ rows }} rows](cite:source), see [](chart:insert_wal), of",
            ),
            (
                "alt: Bars that grow",
                "alt: Bars, [76 bytes](claim:index_wal) each of [](table:insert_cost), that grow",
            ),
            (
                "title: WAL per inserted row",
                "title: \"WAL of [76 bytes](claim:index_wal)\"",
            ),
        ] {
            assert_eq!(text.matches(old).count(), 1, "{old}");
            text = text.replace(old, new);
        }
        Sample::from_text(&text)
    }

    #[test]
    fn captions_and_the_description_lead_to_the_evidence_and_titles_stand_alone() {
        let html = sample().file("index.html");
        for part in [
            "<title>What does each extra &lt;index&gt; cost, 76 bytes on 16.15?</title>",
            "<h1>What does each extra &lt;index&gt; cost, 76 bytes on 16.15?</h1>",
            "<meta name=\"description\" content=\"80 bytes a row, 345 then: 76.2 bytes of WAL a row &amp; some time, Table 1.\">",
            "<p class=\"lede\"><a class=\"value fails\" id=\"quote-index_wal-1\" href=\"#claim-index_wal\"",
            "> (does not hold)</span></a> a row, <a class=\"cited\" href=\"https://example.org/index-cost\"",
            "&amp; some time, <a href=\"#table-insert_cost\">Table 1</a>.</p>",
            ">76 &lt;B&gt;</a> &amp; <a class=\"cited\" href=\"https://example.org/index-cost\"",
            ">1,000,000 rows</a>, see <a href=\"#chart-insert_wal\">Figure 1</a>, of 1,000,000 rows</caption>",
        ] {
            assert!(html.contains(part), "{part}\n{html}");
        }
        assert!(!html.contains("](claim:index_wal)</"), "{html}");
    }

    #[test]
    fn plain_texts_have_the_words_of_their_links() {
        let sample = sample();
        let filled = crate::render::fill(&sample.article, &sample.record).unwrap();
        assert_eq!(filled.chart_titles["insert_wal"], "WAL of 76 bytes");
        assert_eq!(
            filled.chart_alts["insert_wal"],
            "Bars, 76 bytes each of Table 1, that grow by 76.2 bytes with each index"
        );
        let markdown = sample.file("article.md");
        for part in [
            "# What does each extra \\<index\\> cost, 76 bytes on 16.15?\n\n80 bytes a row, 345 then: 76.2",
            "*Table 1. At 76 \\<B\\> & 1,000,000 rows, see Figure 1, of 1,000,000 rows*",
            "![Bars, 76 bytes each of Table 1, that grow by 76.2 bytes with each index](charts/insert_wal.svg)",
        ] {
            assert!(markdown.contains(part), "{part}\n{markdown}");
        }
    }
}
