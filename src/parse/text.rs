//! A text from YAML (title, caption, alt text …): its `{{ values }}`, and the links of ours in it.
//! It is no Markdown, so `[76 bytes](claim:index_wal)` is found by its brackets. Entry:
//! [`Problems::text_with_fill_ins`]. What it gives is the text as a reader sees it, without the
//! markup, with the way back to the source.

use super::fill_in;
use super::inline::{self, SCHEMES};
use super::problems::Problems;
use super::yaml::{Node, Value};
use crate::article::{
    Citation, FillIn, LinkTarget, Quote, Reference, ReferenceKind, TextLink, TextWithFillIns,
};
use crate::source::{Places, Span, Spanned};
use std::ops::Range;

impl Problems<'_> {
    /// A text in which values are filled in and figures are quoted.
    pub fn text_with_fill_ins(&self, node: &Node) -> Option<TextWithFillIns> {
        let written = self.text(node)?;
        let places = match &node.value {
            Value::Scalar(text) => text.places.clone(),
            _ => Places::default(),
        };
        let place = |range: Range<usize>| places.covering(range).unwrap_or(node.span);
        let (fill_ins, wrong) = fill_in::find(&written, 0, &[]);
        for problem in wrong {
            self.error(place(problem.range.clone()), problem.message, problem.hint);
        }
        let (links, wrong) = links(&written, &fill_ins);
        for (range, hint) in wrong {
            self.error(place(range), "this is not a link", hint);
        }
        let cuts = Cuts::new(&written, &fill_ins, &links);
        let (text, kept) = cuts.apply(&written, &places);
        let links = links
            .iter()
            .filter_map(|link| {
                let range = cuts.moved(link.text.start)..cuts.moved(link.text.end);
                let mut own = Places::default();
                own.append(0, &kept, range.clone());
                let target = self.target(link, &text[range.clone()], own, &fill_ins, &place)?;
                Some(TextLink { range, target })
            })
            .collect();
        let fill_ins = fill_ins
            .into_iter()
            .map(|fill_in| FillIn {
                span: Span::new(cuts.moved(fill_in.span.start), cuts.moved(fill_in.span.end)),
                ..fill_in
            })
            .collect();
        Some(TextWithFillIns {
            text,
            span: node.span,
            fill_ins,
            links,
            places: kept,
        })
    }

    fn target(
        &self,
        link: &Link,
        text: &str,
        places: Places,
        fill_ins: &[FillIn],
        place: &impl Fn(Range<usize>) -> Span,
    ) -> Option<LinkTarget> {
        let span = place(link.range.clone());
        let text_span = place(link.text.clone());
        let target = Spanned::new(link.name.to_owned(), place(link.name_range.clone()));
        let text = text.to_owned();
        let kind = match link.scheme {
            "claim:" => {
                let next = fill_ins.partition_point(|one| one.span.start < link.text.start);
                let filled = fill_ins
                    .get(next)
                    .is_some_and(|one| one.span.start < link.text.end);
                let quote = Quote {
                    claim: target,
                    text,
                    places,
                    text_is_label: false,
                    text_span,
                    span,
                };
                return inline::is_fit(&quote, filled, self).then_some(LinkTarget::Quote(quote));
            }
            "cite:" => {
                return Some(LinkTarget::Citation(Citation {
                    target,
                    text,
                    text_span,
                    span,
                }));
            }
            "chart:" => ReferenceKind::Chart,
            "table:" => ReferenceKind::Table,
            _ => ReferenceKind::Experiment,
        };
        Some(LinkTarget::Reference(Reference {
            kind,
            id: target,
            text,
            text_span,
            span,
        }))
    }
}

/// A link of ours as it stands in the text.
struct Link<'t> {
    range: Range<usize>,
    /// The inside of the brackets.
    text: Range<usize>,
    scheme: &'static str,
    name: &'t str,
    name_range: Range<usize>,
}

/// The links, ascending, and what only looks like one, with a hint.
fn links<'t>(
    text: &'t str,
    fill_ins: &[FillIn],
) -> (Vec<Link<'t>>, Vec<(Range<usize>, &'static str)>) {
    let mut links = Vec::new();
    let mut wrong = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut fill_ins = fill_ins.iter().peekable();
    let mut at = 0;
    while let Some(found) = text[at..].find(['[', ']', '\\', '{']) {
        let mark = at + found;
        at = mark + 1;
        while fill_ins.next_if(|one| one.span.end <= mark).is_some() {}
        if let Some(fill_in) = fill_ins.peek().filter(|one| one.span.start <= mark) {
            at = fill_in.span.end;
            continue;
        }
        match text.as_bytes()[mark] {
            b'[' => open.push(mark),
            b'\\' => at += text[at..].chars().next().map_or(0, char::len_utf8),
            b']' => {
                let bracket = open.pop();
                match (target(text, mark + 1), bracket) {
                    (None, _) => {}
                    (Some((end, Some((scheme, name_range)))), Some(start)) => {
                        links.push(Link {
                            range: start..end,
                            text: start + 1..mark,
                            scheme,
                            name: &text[name_range.clone()],
                            name_range,
                        });
                        // A link has no other around it.
                        open.clear();
                        at = end;
                    }
                    (Some((end, Some(_))), None) => {
                        wrong.push((mark..end, "its brackets do not match"));
                        at = end;
                    }
                    (Some((end, None)), _) => {
                        let hint = "write it as `[76 bytes](claim:name)`, without spaces between \
                                    the parentheses";
                        wrong.push((mark..end, hint));
                        at = end;
                    }
                }
            }
            _ => {}
        }
    }
    (links, wrong)
}

type Scheme = (&'static str, Range<usize>);

/// The destination that begins at `at`, where it is one of ours: its end, and scheme and name where
/// they are written as they should.
fn target(text: &str, at: usize) -> Option<(usize, Option<Scheme>)> {
    let inside = text[at..].strip_prefix('(')?;
    let bare = inside.trim_start_matches([' ', '<']);
    let scheme = SCHEMES.iter().find(|scheme| bare.starts_with(**scheme))?;
    let start = text.len() - bare.len() + scheme.len();
    let length = text[start..]
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(text.len() - start);
    let name = start..start + length;
    if bare.len() == inside.len() && length > 0 && text[name.end..].starts_with(')') {
        return Some((name.end + 1, Some((scheme, name))));
    }
    let end = text[start..]
        .find([')', '\n'])
        .map_or(text.len(), |length| start + length);
    Some((end, None))
}

/// What is left out of the text: the markup of links, and the backslash of `\{{`.
struct Cuts {
    /// Each with the length of all cuts before it.
    cuts: Vec<(Range<usize>, usize)>,
}

impl Cuts {
    fn new(text: &str, fill_ins: &[FillIn], links: &[Link]) -> Self {
        let mut cuts: Vec<Range<usize>> = Vec::new();
        for link in links {
            cuts.push(link.range.start..link.text.start);
            cuts.push(link.text.end..link.range.end);
        }
        let inside = |at: usize| {
            let index = fill_ins.partition_point(|one| one.span.end <= at);
            fill_ins.get(index).is_some_and(|one| one.span.start <= at)
        };
        for (at, _) in text.match_indices("\\{{") {
            if !inside(at) && !inside(at + 1) {
                cuts.push(at..at + 1);
            }
        }
        cuts.sort_by_key(|cut| cut.start);
        let mut before = 0;
        let cuts = cuts
            .into_iter()
            .map(|cut| {
                let sum = before;
                before += cut.len();
                (cut, sum)
            })
            .collect();
        Self { cuts }
    }

    /// Where an offset that is not cut out is afterwards.
    fn moved(&self, at: usize) -> usize {
        let index = self.cuts.partition_point(|(cut, _)| cut.end <= at);
        let cut = index.checked_sub(1).map(|index| &self.cuts[index]);
        at - cut.map_or(0, |(cut, before)| before + cut.len())
    }

    fn apply(&self, text: &str, places: &Places) -> (String, Places) {
        let mut kept = String::with_capacity(text.len());
        let mut kept_places = Places::default();
        let mut at = 0;
        let end = text.len()..text.len();
        for cut in self.cuts.iter().map(|(cut, _)| cut).chain([&end]) {
            kept_places.append(kept.len(), places, at..cut.start);
            kept.push_str(&text[at..cut.start]);
            at = cut.end;
        }
        (kept, kept_places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, &'static str, String)> {
        let (fill_ins, _) = fill_in::find(text, 0, &[]);
        let (links, wrong) = links(text, &fill_ins);
        assert_eq!(wrong, [], "{text}");
        let cuts = Cuts::new(text, &fill_ins, &links);
        let (plain, _) = cuts.apply(text, &Places::default());
        links
            .iter()
            .map(|link| {
                let range = cuts.moved(link.text.start)..cuts.moved(link.text.end);
                (plain[range].to_owned(), link.scheme, link.name.to_owned())
            })
            .collect()
    }

    #[test]
    fn links_are_found_by_their_brackets() {
        let one = |text: &str, scheme, name: &str| (text.to_owned(), scheme, name.to_owned());
        #[rustfmt::skip]
        let table: &[(&str, &[_])] = &[
            ("no [76 bytes] (claim:x) here", &[]),
            ("[76 bytes](claim:x)", &[one("76 bytes", "claim:", "x")]),
            ("a [b [76](claim:x) c] d", &[one("76", "claim:", "x")]),
            ("[see [1]](claim:x)", &[one("see [1]", "claim:", "x")]),
            ("[a](https://x.org) [76](claim:x) [](chart:c)", &[one("76", "claim:", "x"), one("", "chart:", "c")]),
            ("\\{{ [76](claim:x) {{ a[0] }} [2](cite:source)", &[one("76", "claim:", "x"), one("2", "cite:", "source")]),
            ("{{ '[76](claim:x)' }}", &[]),
            ("\\[76](claim", &[]),
            ("[{{ a }} µs](cite:source)", &[one("{{ a }} µs", "cite:", "source")]),
        ];
        for (text, expected) in table {
            assert_eq!(found(text), *expected, "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_a_link_is_told() {
        for (text, range) in [
            ("a [76](claim: x) b", 5..15),
            ("a [76]( claim:x) b", 5..15),
            ("a [76](claim:x b", 5..16),
            ("a 76](claim:x) b", 4..14),
            ("a [76](claim:) b", 5..13),
            ("a \\[76](claim:x)", 6..16),
        ] {
            let (links, wrong) = links(text, &[]);
            assert!(links.is_empty(), "{text}");
            assert_eq!(wrong.len(), 1, "{text}");
            assert_eq!(wrong[0].0, range, "{text}");
        }
    }
}
