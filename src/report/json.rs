//! The verdicts for machines: one JSON document over all articles. Numbers are exact decimals in
//! strings, places are lines and columns from 1.

use super::{Count, Judged, Look, Report};
use crate::article::ClaimKind;
use crate::judge::{Outcome, Subject, Verdict};
use crate::quantity::Value;
use crate::source::Source;
use serde::Serialize;

pub(super) const REPORT: Report = Report {
    name: "json",
    about: "every verdict with its place, for programs",
    write,
};

/// The version of the document's shape.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    summary: Count,
    articles: Vec<ArticleJson<'a>>,
}

#[derive(Serialize)]
struct ArticleJson<'a> {
    article: &'a str,
    /// The path as diagnostics print it.
    source: &'a str,
    profile: &'a str,
    postgres: &'a str,
    engine: &'a str,
    host: &'a str,
    summary: Count,
    verdicts: Vec<VerdictJson<'a>>,
}

#[derive(Serialize)]
struct VerdictJson<'a> {
    claim: &'a str,
    subject: &'static str,
    kind: &'static str,
    outcome: &'static str,
    /// How far off, where it does not hold; why, where it is skipped.
    reason: Option<&'a str>,
    quoted: Option<&'a str>,
    measured: serde_json::Value,
    measured_text: &'a str,
    /// Of a comparison: its 95 % interval, and the runs of either that went in.
    interval: Option<[String; 2]>,
    runs: Option<[u32; 2]>,
    tolerance: &'a str,
    published: Option<&'a str>,
    published_ratio: Option<&'a str>,
    recorded: Option<&'a str>,
    recorded_ratio: Option<&'a str>,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

fn write(judged: &[Judged], _: Look) -> String {
    let document = Document {
        format: FORMAT,
        summary: Count::of(judged.iter().flat_map(|one| one.verdicts)),
        articles: judged.iter().map(article).collect(),
    };
    let mut text = serde_json::to_string_pretty(&document)
        .expect("strings, numbers and lists are always JSON");
    text.push('\n');
    text
}

fn article<'a>(judged: &Judged<'a>) -> ArticleJson<'a> {
    let environment = &judged.record.environment;
    ArticleJson {
        article: &judged.article.slug,
        source: &judged.article.source.name,
        profile: &judged.record.profile,
        postgres: &environment.server.version,
        engine: &environment.server.engine,
        host: &environment.host.sha256,
        summary: Count::of(judged.verdicts),
        verdicts: judged
            .verdicts
            .iter()
            .map(|one| verdict(one, &judged.article.source))
            .collect(),
    }
}

fn verdict<'a>(verdict: &'a Verdict, source: &Source) -> VerdictJson<'a> {
    let (line, column) = source.line_column(verdict.span.start);
    let (end_line, end_column) = source.line_column(verdict.span.end);
    let (outcome, reason) = match &verdict.outcome {
        Outcome::Holds => ("holds", None),
        Outcome::DoesNotHold { difference } => ("does_not_hold", Some(difference.as_str())),
        Outcome::Skipped { reason } => ("skipped", Some(reason.as_str())),
    };
    let recorded = verdict.recorded.as_ref();
    VerdictJson {
        claim: &verdict.claim,
        subject: match verdict.subject {
            Subject::Quote(_) => "quote",
            Subject::Claim => "claim",
        },
        kind: match verdict.kind {
            ClaimKind::Exact => "exact",
            ClaimKind::Bounded => "bounded",
            ClaimKind::Noisy => "noisy",
        },
        outcome,
        reason,
        quoted: verdict.quoted.as_deref(),
        measured: match &verdict.measured {
            Value::Null => serde_json::Value::Null,
            Value::Boolean(value) => (*value).into(),
            other => other.to_string().into(),
        },
        measured_text: &verdict.measured_text,
        interval: verdict.comparison.as_ref().map(|comparison| {
            let (low, high) = &comparison.interval;
            [low.to_string(), high.to_string()]
        }),
        runs: (verdict.comparison.as_ref()).map(|comparison| comparison.runs.into()),
        tolerance: &verdict.tolerance,
        published: verdict.published.as_deref(),
        published_ratio: verdict.published_ratio.as_deref(),
        recorded: recorded.map(|(text, _)| text.as_str()),
        recorded_ratio: recorded.map(|(_, ratio)| ratio.as_str()),
        line,
        column,
        end_line,
        end_column,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Context, judge, sample};
    use crate::report::Color;

    #[test]
    fn every_verdict_is_there_with_its_place_and_exact_value() {
        let markdown = "Costs\n\n- µ [76 bytes](claim:x) each\n";
        let article = sample::article(markdown, vec![sample::claim("x", "B/row", "")]);
        let record = sample::record("a", &[("x", "77.040000000000000000001")]);
        let context = Context {
            profile: "full",
            accepted: None,
            measured_here: true,
        };
        let verdicts = judge(&article, &record, &context);
        let judged = Judged {
            article: &article,
            record: &record,
            verdicts: &verdicts,
        };
        let look = Look {
            color: Color::Plain,
            width: 80,
        };
        let found: serde_json::Value = serde_json::from_str(&write(&[judged], look)).unwrap();
        let expected = serde_json::json!({
            "format": 1,
            "summary": {"holds": 0, "does_not_hold": 1, "skipped": 0},
            "articles": [{
                "article": "sample",
                "source": "sample/article.md",
                "profile": "full",
                "postgres": "",
                "engine": "",
                "host": "a",
                "summary": {"holds": 0, "does_not_hold": 1, "skipped": 0},
                "verdicts": [{
                    "claim": "x",
                    "subject": "quote",
                    "kind": "exact",
                    "outcome": "does_not_hold",
                    "reason": "77.04 is 0.54 above 75.5 to 76.5",
                    "quoted": "76 bytes",
                    "measured": "77.040000000000000000001",
                    "measured_text": "77.04 B/row",
                    "interval": null,
                    "runs": null,
                    "tolerance": "75.5 to 76.5 B/row (to the precision quoted)",
                    "published": null,
                    "published_ratio": null,
                    "recorded": null,
                    "recorded_ratio": null,
                    "line": 3,
                    "column": 5,
                    "end_line": 3,
                    "end_column": 24,
                }],
            }],
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn a_comparison_has_its_interval() {
        let article = sample::article("", vec![sample::claim("x", "", "")]);
        let mut record = sample::record("a", &[("x", "1.93")]);
        record.claims[0].comparison = Some(crate::record::Comparison {
            interval: ("1.8".parse().unwrap(), "Infinity".parse().unwrap()),
            runs: (3, 8),
        });
        let context = Context {
            profile: "full",
            accepted: None,
            measured_here: true,
        };
        let verdicts = judge(&article, &record, &context);
        let found = verdict(&verdicts[0], &article.source);
        let found = serde_json::to_value(found).unwrap();
        assert_eq!(found["interval"], serde_json::json!(["1.8", "Infinity"]));
        assert_eq!(found["runs"], serde_json::json!([3, 8]));
        assert_eq!(found["outcome"], "does_not_hold");
    }
}
