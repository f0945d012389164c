//! Everything for programs: one JSON document over all articles, described by
//! `docs/report.schema.json`. Numbers are exact decimals in strings, places are lines and columns
//! (in code points) from 1, files are named from the project's folder.

use super::places::place_of;
use super::{
    Asked, Cause, Count, Figure, Look, Places, Problem, Region, Report, Run, Status, rule,
};
use crate::article::ClaimKind;
use crate::diagnostic::Severity;
use crate::judge::{Outcome, Subject, Verdict};
use crate::quantity::Value;
use crate::source::Source;
use serde::Serialize;

pub(super) const REPORT: Report = Report {
    name: "json",
    about: "every verdict and every problem with its place, for programs",
    write,
};

/// The version of the document's shape.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    tool: &'static str,
    command: &'a str,
    exit_code: u8,
    summary: Count,
    problems: Vec<ProblemJson<'a>>,
    articles: Vec<ArticleJson<'a>>,
}

#[derive(Serialize)]
struct ArticleJson<'a> {
    article: &'a str,
    file: String,
    status: Status,
    /// None: nothing was judged.
    measured: Option<Measured<'a>>,
    summary: Count,
    verdicts: Vec<VerdictJson<'a>>,
    not_judged: Vec<NotJudged<'a>>,
    problems: Vec<ProblemJson<'a>>,
}

/// What was judged, and where it was measured.
#[derive(Serialize)]
struct Measured<'a> {
    profile: &'a str,
    postgres: String,
    engine: &'a str,
    /// Of an existing server, what is to be known of it, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unpinned: Vec<String>,
    /// What it did not let be measured, with why.
    #[serde(skip_serializing_if = "indexmap::IndexMap::is_empty")]
    skipped: &'a indexmap::IndexMap<String, String>,
    host: &'a str,
    cpu: &'a str,
    cores: u32,
    memory_bytes: &'a str,
    architecture: &'a str,
    kernel: &'a str,
    virtualization: &'a str,
    storage: &'a str,
}

#[derive(Serialize)]
struct NotJudged<'a> {
    claim: &'a str,
    subject: &'static str,
    quoted: Option<&'a str>,
    reason: String,
    #[serde(flatten)]
    region: RegionJson,
}

#[derive(Serialize)]
struct ProblemJson<'a> {
    cause: Cause,
    severity: &'static str,
    /// Of `remeasure list rules`.
    rule: Option<&'a str>,
    message: &'a str,
    notes: &'a [String],
    hint: Option<&'a str>,
    place: Option<PlaceJson>,
}

#[derive(Serialize)]
struct PlaceJson {
    file: String,
    #[serde(flatten)]
    region: RegionJson,
}

#[derive(Serialize)]
struct RegionJson {
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
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
    #[serde(flatten)]
    region: RegionJson,
}

fn write(run: &Run, _: Look) -> String {
    let document = Document {
        format: FORMAT,
        tool: concat!("remeasure ", env!("CARGO_PKG_VERSION")),
        command: run.command,
        exit_code: run.exit_code,
        summary: run.count(),
        problems: problems(&run.problems, run.places),
        articles: run
            .articles
            .iter()
            .map(|asked| article(asked, run.places))
            .collect(),
    };
    let mut text = serde_json::to_string_pretty(&document)
        .expect("strings, numbers and lists are always JSON");
    text.push('\n');
    text
}

fn article<'a>(asked: &'a Asked<'a>, places: &Places) -> ArticleJson<'a> {
    let verdicts = asked.verdicts();
    let source = asked.source();
    ArticleJson {
        article: &asked.slug,
        file: places.in_project(asked.file),
        status: asked.status,
        measured: asked.judged.map(|judged| {
            let environment = &judged.record.environment;
            let host = &environment.host;
            Measured {
                profile: &judged.record.profile,
                postgres: environment.versions_text(),
                engine: &environment.server.engine,
                unpinned: judged.notices(),
                skipped: &judged.record.skipped,
                host: &host.sha256,
                cpu: &host.cpu,
                cores: host.cores,
                memory_bytes: &host.memory_bytes,
                architecture: &host.architecture,
                kernel: &host.kernel,
                virtualization: &host.virtualization,
                storage: &host.storage,
            }
        }),
        summary: Count::of(verdicts),
        verdicts: source.map_or_else(Vec::new, |source| {
            verdicts.iter().map(|one| verdict(one, source)).collect()
        }),
        not_judged: source.map_or_else(Vec::new, |source| {
            let figures = asked.figures().into_iter();
            figures.filter_map(|one| not_judged(one, source)).collect()
        }),
        problems: problems(&asked.problems, places),
    }
}

fn not_judged<'a>(figure: Figure<'a>, source: &Source) -> Option<NotJudged<'a>> {
    Some(NotJudged {
        claim: figure.claim,
        subject: subject(figure.subject),
        quoted: figure.quoted,
        reason: figure.not_judged?,
        region: RegionJson::from(Region::of(source, figure.span)),
    })
}

fn problems<'a>(problems: &'a [Problem], places: &Places) -> Vec<ProblemJson<'a>> {
    let one = |problem: &'a Problem| {
        let diagnostic = &problem.diagnostic;
        ProblemJson {
            cause: problem.cause,
            severity: match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            rule: rule(diagnostic),
            message: &diagnostic.message,
            notes: &diagnostic.notes,
            hint: diagnostic.hint.as_deref(),
            place: place_of(diagnostic).map(|(file, region)| PlaceJson {
                file: places.in_project(file),
                region: region.into(),
            }),
        }
    };
    problems.iter().map(one).collect()
}

impl From<Region> for RegionJson {
    fn from(region: Region) -> Self {
        Self {
            line: region.line,
            column: region.column,
            end_line: region.end_line,
            end_column: region.end_column,
        }
    }
}

fn subject(subject: Subject) -> &'static str {
    match subject {
        Subject::Quote(_) => "quote",
        Subject::Claim => "claim",
    }
}

fn verdict<'a>(verdict: &'a Verdict, source: &Source) -> VerdictJson<'a> {
    let (outcome, reason) = match &verdict.outcome {
        Outcome::Holds => ("holds", None),
        Outcome::DoesNotHold { difference } => ("does_not_hold", Some(difference.as_str())),
        Outcome::Skipped { reason } => ("skipped", Some(reason.as_str())),
    };
    let recorded = verdict.recorded.as_ref();
    VerdictJson {
        claim: &verdict.claim,
        subject: subject(verdict.subject),
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
        region: Region::of(source, verdict.span).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{self, LOOK};

    #[test]
    fn every_verdict_is_there_with_its_place_and_exact_value() {
        let text = sample::with_run(|run| write(run, LOOK));
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found["format"], 1);
        assert_eq!(found["exit_code"], 4);
        let articles = found["articles"].as_array().unwrap();
        let statuses: Vec<_> = articles.iter().map(|one| &one["status"]).collect();
        assert_eq!(statuses, ["does_not_hold", "failed", "not_done"]);
        let expected = serde_json::json!({
            "claim": "x",
            "subject": "quote",
            "kind": "exact",
            "outcome": "does_not_hold",
            "reason": "77.04 is 0.54 above 75.5 to 76.5",
            "quoted": "76 <b>|bytes",
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
            "end_column": 28,
        });
        assert_eq!(articles[0]["verdicts"][0], expected);
        assert_eq!(articles[0]["measured"]["host"], "a");
        assert_eq!(articles[1]["measured"], serde_json::Value::Null);
    }

    #[test]
    fn what_was_not_done_is_there_with_why() {
        let text = sample::with_run(|run| write(run, LOOK));
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        let failed = &found["articles"][1];
        let problem = &failed["problems"][0];
        assert_eq!(problem["cause"], "engine");
        assert_eq!(problem["place"]["file"], "articles/sample/article.md");
        assert_eq!(problem["place"]["line"], 1);
        let not_judged = failed["not_judged"].as_array().unwrap();
        assert_eq!(not_judged.len(), 5, "{not_judged:?}");
        assert_eq!(not_judged[0]["quoted"], "76 <b>|bytes");
        assert_eq!(
            not_judged[0]["reason"],
            "the article was not measured to its end"
        );
        assert_eq!(found["problems"][0]["message"], "there is no article `z`");
    }

    #[test]
    fn a_comparison_has_its_interval() {
        use crate::judge::sample as judged;
        let article = judged::article("", vec![judged::claim("x", "", "")]);
        let mut record = judged::record("a", &[("x", "1.93")]);
        record.claims[0].comparison = Some(crate::record::Comparison {
            interval: ("1.8".parse().unwrap(), "Infinity".parse().unwrap()),
            runs: (3, 8),
        });
        let context = crate::judge::Context {
            profile: "full",
            accepted: None,
            measured_here: true,
        };
        let verdicts = crate::judge::judge(&article, &record, &context);
        let found = verdict(&verdicts[0], &article.source);
        let found = serde_json::to_value(found).unwrap();
        assert_eq!(found["interval"], serde_json::json!(["1.8", "Infinity"]));
        assert_eq!(found["runs"], serde_json::json!([3, 8]));
        assert_eq!(found["outcome"], "does_not_hold");
    }
}
