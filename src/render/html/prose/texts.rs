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
