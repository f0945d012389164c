//! Fills in every `{{ expression }}` of an article: prose, title, description, captions, alt texts,
//! chart titles. Entry: [`fill`].
//!
//! An expression is one of Tera's over claims, params, `server` and `host`. Steps for each:
//! [`scan`] cuts it into tokens and refuses whatever would leave the expression, `names` checks
//! every name in it (Tera itself lets `nope == 1` pass), `evaluate` computes it: exactly where it
//! is a claim or a param with our own filters, by Tera otherwise.

mod evaluate;
mod names;
mod scan;

use super::numbering::Numbering;
use crate::article::{Article, Claim, FillIn, LinkTarget, TextWithFillIns};
use crate::diagnostic::Diagnostic;
use crate::quantity::{Number, Value};
use crate::record::{ClaimRecord, Record};
use crate::source::Span;
use evaluate::Evaluator;
use std::collections::BTreeMap;
use std::ops::Range;

/// An article's texts with every value put in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    pub title: String,
    pub description: Option<String>,
    /// Fill-ins of the prose, by their place in the source.
    pub prose: BTreeMap<Span, FilledText>,
    /// The links in it.
    pub description_links: Vec<FilledLink>,
    /// Captions of experiments, tables and charts, by the block's id.
    pub captions: BTreeMap<String, String>,
    /// The links in them.
    pub caption_links: BTreeMap<String, Vec<FilledLink>>,
    /// Titles of charts, by id.
    pub chart_titles: BTreeMap<String, String>,
    /// Alt texts of charts, by id.
    pub chart_alts: BTreeMap<String, String>,
}

/// What one fill-in became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilledText {
    pub text: String,
    /// The claim whose value this is, where the expression is nothing but one (formatted or not).
    pub claim: Option<String>,
}

/// A link of ours in a filled text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilledLink {
    pub range: Range<usize>,
    pub target: LinkTarget,
}

/// What is wrong with an expression, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    message: String,
    range: Range<usize>,
    hint: Option<String>,
}

impl Problem {
    fn new(message: impl Into<String>, range: Range<usize>) -> Self {
        Self {
            message: message.into(),
            range,
            hint: None,
        }
    }

    fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

/// Fills in everything, or returns every expression that could not be resolved, with its place.
pub fn fill(article: &Article, record: &Record) -> Result<Filled, Vec<Diagnostic>> {
    let mut filler = Filler {
        article,
        numbering: Numbering::new(article),
        evaluator: Evaluator::new(article, record),
        problems: Vec::new(),
    };
    let filled = filler.all();
    if filler.problems.is_empty() {
        Ok(filled)
    } else {
        filler
            .problems
            .sort_by_key(|problem| problem.place.as_ref().map(|place| place.span));
        Err(filler.problems)
    }
}

/// What can be said of the expressions before anything is measured: names, filters, arguments and
/// syntax. What the server's settings and extensions are waits for a server.
pub fn check(article: &Article) -> Vec<Diagnostic> {
    let stand_in = stand_in(article);
    let mut filler = Filler {
        article,
        numbering: Numbering::new(article),
        evaluator: Evaluator::new(article, &stand_in).checking_only(),
        problems: Vec::new(),
    };
    filler.all();
    filler
        .problems
        .sort_by_key(|problem| problem.place.as_ref().map(|place| place.span));
    filler.problems
}

/// A record in which every claim has a value, for what does not depend on values.
fn stand_in(article: &Article) -> Record {
    let one = |claim: &Claim| ClaimRecord {
        comparison: None,
        type_name: "numeric".to_owned(),
        value: Value::Number(Number::Finite(1.into())),
        unit: claim.unit.clone(),
        reads: Vec::new(),
    };
    let params = article.front_matter.params.iter();
    Record {
        article: article.slug.clone(),
        params: params
            .map(|(name, value)| (name.clone(), value.to_string()))
            .collect(),
        claims: article
            .claims()
            .map(|claim| (claim.name.value.clone(), one(claim)))
            .collect(),
        ..Record::default()
    }
}

struct Filler<'a> {
    article: &'a Article,
    numbering: Numbering<'a>,
    evaluator: Evaluator<'a>,
    problems: Vec<Diagnostic>,
}

impl Filler<'_> {
    fn all(&mut self) -> Filled {
        let article = self.article;
        let front_matter = &article.front_matter;
        let mut filled = Filled {
            title: self.text(&front_matter.title).0,
            ..Filled::default()
        };
        if let Some(description) = &front_matter.description {
            let (text, links) = self.text(description);
            filled.description = Some(text);
            filled.description_links = links;
        }
        for fill_in in &article.prose.fill_ins {
            if let Some(text) = self.fill_in(fill_in, fill_in.span) {
                filled.prose.insert(fill_in.span, text);
            }
        }
        let captions = (article.experiments())
            .map(|experiment| (&experiment.id.value, &experiment.caption))
            .chain(article.tables().map(|t| (&t.id.value, &t.caption)))
            .chain(article.charts().map(|c| (&c.id.value, &c.caption)));
        for (id, caption) in captions {
            if let Some(caption) = caption {
                let (text, links) = self.text(caption);
                filled.captions.insert(id.clone(), text);
                filled.caption_links.insert(id.clone(), links);
            }
        }
        for chart in article.charts() {
            let id = &chart.id.value;
            if let Some(title) = &chart.title {
                filled.chart_titles.insert(id.clone(), self.text(title).0);
            }
            filled
                .chart_alts
                .insert(id.clone(), self.text(&chart.alt).0);
        }
        filled
    }

    /// A text of YAML with its values put in and its references numbered; what fails is noted and
    /// left out.
    fn text(&mut self, text: &TextWithFillIns) -> (String, Vec<FilledLink>) {
        let mut filled = String::with_capacity(text.text.len());
        let mut links = Vec::new();
        let mut at = 0;
        for link in &text.links {
            self.part(text, at..link.range.start, &mut filled);
            let start = filled.len();
            match &link.target {
                LinkTarget::Reference(reference) if reference.text.trim().is_empty() => {
                    let label = self.numbering.label(reference.kind, &reference.id.value);
                    filled.push_str(&label.unwrap_or_default());
                }
                _ => self.part(text, link.range.clone(), &mut filled),
            }
            links.push(FilledLink {
                range: start..filled.len(),
                target: link.target.clone(),
            });
            at = link.range.end;
        }
        self.part(text, at..text.text.len(), &mut filled);
        (filled, links)
    }

    /// A range of a text with the values put in that stand in it.
    fn part(&mut self, text: &TextWithFillIns, range: Range<usize>, filled: &mut String) {
        let fill_ins = &text.fill_ins;
        let first = fill_ins.partition_point(|fill_in| fill_in.span.start < range.start);
        let mut at = range.start;
        for fill_in in fill_ins[first..]
            .iter()
            .take_while(|fill_in| fill_in.span.start < range.end)
        {
            filled.push_str(&text.text[at..fill_in.span.start]);
            let place = text.places.covering(fill_in.span.range());
            if let Some(value) = self.fill_in(fill_in, place.unwrap_or(text.span)) {
                filled.push_str(&value.text);
            }
            at = fill_in.span.end;
        }
        filled.push_str(&text.text[at..range.end]);
    }

    /// `place` is where the fill-in, braces and all, stands in the source.
    fn fill_in(&mut self, fill_in: &FillIn, place: Span) -> Option<FilledText> {
        match self.evaluator.evaluate(&fill_in.expression) {
            Ok(text) => Some(text),
            Err(problems) => {
                let source = &self.article.source;
                let written = source.slice(place);
                let offset = written.find(&fill_in.expression);
                for problem in problems {
                    let span = offset.map_or(place, |offset| {
                        let start = place.start + offset;
                        Span::new(start + problem.range.start, start + problem.range.end)
                    });
                    let mut diagnostic = Diagnostic::error(problem.message).at(source, span);
                    diagnostic.hint = problem.hint;
                    self.problems.push(diagnostic);
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample::Sample;

    fn evaluate(expression: &str) -> Result<FilledText, Vec<Problem>> {
        let sample = Sample::new();
        Evaluator::new(&sample.article, &sample.record).evaluate(expression)
    }

    #[test]
    fn values_are_filled_in_as_readers_want_them() {
        for (expression, expected) in [
            ("index_wal", "76.2"),
            ("index_wal | fixed(1)", "76.2"),
            ("index_wal|fixed(n=3)", "76.186"),
            ("index_wal | significant(9) | thousands", "76.1861069"),
            ("grows", "true"),
            ("rows", "1,000,000"),
            ("rows / 1000", "1,000"),
            ("(rows / 3) | fixed(1)", "333,333.3"),
            ("rows | bytes", "977 kB"),
            ("base_rate | duration(unit='ms')", "12.6 min"),
            ("base_rate / 1000 | round", "754"),
            ("(index_wal / 100) | percent(0)", "76%"),
            ("'x' if grows else 'y'", "x"),
            ("dataset | upper", "UNIFORM"),
            ("'a | fixed(2) }} {{ b'", "a | fixed(2) }} {{ b"),
            (
                "server.version ~ ' on ' ~ server.engine",
                "16.15 on embedded",
            ),
            ("server.settings[\"shared_buffers\"]", "512MB"),
            ("host.cores", "2"),
            ("host.memory_bytes | bytes", "8192 MB"),
            ("[rows, 2] | length", "2"),
            ("[n * 2 for n in [1, 2]] | join(sep=' ')", "2 4"),
            ("rows == 1000000", "true"),
        ] {
            let filled = evaluate(expression).unwrap_or_else(|p| panic!("{expression}: {p:?}"));
            assert_eq!(filled.text, expected, "{expression}");
        }
    }

    #[test]
    fn only_a_claim_alone_leads_to_its_evidence() {
        for (expression, claim) in [
            ("index_wal", Some("index_wal")),
            ("index_wal | fixed(1)", Some("index_wal")),
            ("index_wal + 1", None),
            ("rows", None),
        ] {
            assert_eq!(evaluate(expression).unwrap().claim.as_deref(), claim);
        }
    }

    #[test]
    fn what_cannot_be_resolved_is_told_at_its_place() {
        for (expression, place, message, hint) in [
            (
                "index_wall",
                "index_wall",
                "neither a claim nor a param",
                "did you mean `index_wal`?",
            ),
            ("nope == 1", "nope", "neither a claim nor a param", ""),
            ("not nope", "nope", "neither", ""),
            ("1 if nope else 2", "nope", "neither", ""),
            ("nope | default(value=1)", "nope", "neither", ""),
            (
                "server.versoin",
                "versoin",
                "`server` has no `versoin`",
                "did you mean `version`?",
            ),
            (
                "server[\"nope\"] == 1",
                "\"nope\"",
                "`server` has no `nope`",
                "",
            ),
            (
                "server.settings.nope == 1",
                "nope",
                "`server.settings` has no `nope`",
                "it has shared_buffers",
            ),
            ("rows.x", ".", "`rows` is a single value", ""),
            (
                "rows | fixd(1)",
                "fixd",
                "unknown filter `fixd`",
                "did you mean `fixed`?",
            ),
            ("rows | safe", "safe", "unknown filter", ""),
            (
                "throw(message='x')",
                "throw",
                "unknown function `throw`",
                "",
            ),
            ("rows is nope", "nope", "unknown test `nope`", ""),
            ("grows | fixed(1)", "fixed(1)", "takes a number", ""),
            (
                "rows | fixed(digits=1)",
                "fixed(digits=1)",
                "no argument `digits`",
                "",
            ),
            (
                "index_wal * 2 | fixed(1)",
                "fixed(1)",
                "math operations",
                "a filter belongs to",
            ),
            ("rows | fixed(1000)", "fixed", "0 to 100 digits", ""),
            ("base_rate | duration", "duration", "not a unit of time", ""),
            ("server", "server", "not a single value", ""),
            ("rows / 0", "", "", ""),
            ("x) }} {{ y", "}}", "end or begin", ""),
        ] {
            let problems = evaluate(expression).expect_err(expression);
            let problem = &problems[0];
            assert!(
                problem.message.contains(message),
                "{expression}: {problem:?}"
            );
            if !place.is_empty() {
                assert_eq!(
                    &expression[problem.range.clone()],
                    place,
                    "{expression}: {problem:?}"
                );
            }
            let told = problem.hint.as_deref().unwrap_or_default();
            assert!(told.contains(hint), "{expression}: {problem:?}");
        }
    }

    #[test]
    fn a_claim_is_exact_whatever_its_length() {
        let mut sample = Sample::new();
        let long = "12345678901234567890.123456789012345678901";
        sample.record.claims["index_wal"].value = crate::render::sample::number(long);
        let evaluator = Evaluator::new(&sample.article, &sample.record);
        assert_eq!(
            evaluator.evaluate("index_wal | fixed(21)").unwrap().text,
            "12,345,678,901,234,567,890.123456789012345678901"
        );
    }

    #[test]
    fn null_and_missing_values_are_never_printed() {
        let mut sample = Sample::new();
        sample.record.claims["index_wal"].value = Value::Null;
        sample.record.claims.shift_remove("base_rate");
        let evaluator = Evaluator::new(&sample.article, &sample.record);
        for expression in [
            "index_wal",
            "index_wal == 1",
            "base_rate",
            "base_rate | fixed(1)",
        ] {
            assert!(evaluator.evaluate(expression).is_err(), "{expression}");
        }
    }

    #[test]
    fn what_is_made_of_a_skipped_claim_was_not_measured() {
        let mut sample = Sample::new();
        sample.record.claims.shift_remove("index_wal");
        let skipped = Record::called("claim", "index_wal");
        sample
            .record
            .skipped
            .insert(skipped, "not permitted".into());
        let evaluator = Evaluator::new(&sample.article, &sample.record);
        for (expression, text, claim) in [
            ("index_wal", "(not measured)", Some("index_wal")),
            ("index_wal | fixed(1)", "(not measured)", None),
            ("(index_wal / 100) | percent(0)", "(not measured)", None),
            (
                "'less' if index_wal < 3 else 'more'",
                "(not measured)",
                None,
            ),
            ("rows", "1,000,000", None),
            ("'index_wal'", "index_wal", None),
        ] {
            let filled = evaluator.evaluate(expression).unwrap();
            assert_eq!(filled.text, text, "{expression}");
            assert_eq!(filled.claim.as_deref(), claim, "{expression}");
        }
    }

    #[test]
    fn every_text_of_the_article_is_filled() {
        let sample = Sample::new();
        let filled = fill(&sample.article, &sample.record).unwrap();
        assert_eq!(filled.title, "What does each extra <index> cost on 16.15?");
        assert!(filled.description.unwrap().contains("costs 76.2 bytes"));
        assert_eq!(filled.captions["insert"], "Load of 1,000,000 rows");
        assert_eq!(
            filled.captions["insert_cost"],
            "Bulk load of 1,000,000 rows"
        );
        assert_eq!(filled.chart_titles["insert_wal"], "WAL per inserted row");
        assert!(filled.chart_alts["insert_wal"].contains("by 76.2 bytes"));
        assert_eq!(filled.prose.len(), sample.article.prose.fill_ins.len());
    }

    #[test]
    fn all_problems_come_at_once_in_order_of_place() {
        let text = crate::render::sample::TEXT
            .replace("server.version }}?", "server.nope }}?")
            .replace("host.cores", "host.nope")
            .replace("Bulk load of {{ rows }}", "Bulk load of {{ rows | nope }}");
        let sample = Sample::from_text(&text);
        let problems = fill(&sample.article, &sample.record).unwrap_err();
        let places: Vec<&str> = (problems.iter())
            .map(|problem| {
                sample
                    .article
                    .source
                    .slice(problem.place.as_ref().unwrap().span)
            })
            .collect();
        assert_eq!(places, ["nope"; 3]);
        let lines: Vec<String> = problems.iter().filter_map(|p| p.location()).collect();
        assert!(lines[0].ends_with(":2:55"), "{lines:?}");
    }
}
