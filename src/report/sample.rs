//! A run with one article that was judged, one that met a problem, and one that was not begun.

use super::*;
use crate::judge::{Context, judge, sample};
use crate::record::Record;

pub const LOOK: Look = Look {
    color: Color::Plain,
    width: 100,
};

/// Each verdict there is, and texts that mean something in one markup or another.
const MARKDOWN: &str = "Costs\n\n- µ [76 <b>|bytes](claim:x) each\n\
    - [3 `]]>` &\u{1b}\u{ffff}](claim:y), [same @all](claim:same)\n- [9 s](claim:slow)\n";

fn article() -> Article {
    let mut slow = sample::claim("slow", "s", "");
    slow.kind = crate::article::ClaimKind::Noisy;
    let claims = vec![
        sample::claim("x", "B/row", ""),
        sample::claim("y", "", ""),
        sample::claim("same", "", ""),
        slow,
        sample::claim("unquoted", "", ""),
    ];
    let mut article = sample::article(MARKDOWN, claims);
    article.source = Source::new(
        "articles/sample/article.md",
        "articles/sample/article.md",
        MARKDOWN.to_owned(),
    );
    article
}

fn record(host: &str, slow: &str) -> Record {
    let mut record = sample::record(
        host,
        &[
            ("x", "77.040000000000000000001"),
            ("y", "3"),
            ("same", "true"),
            ("slow", slow),
            ("unquoted", "5"),
        ],
    );
    let environment = &mut record.environment;
    environment.server.version = "16.15".into();
    environment.server.engine = "embedded".into();
    environment.host.cpu = "A|B".into();
    environment.host.cores = 2;
    environment.host.memory_bytes = "8346365952".into();
    environment.tool.version = "0.1.0".into();
    environment.host.kernel = "Linux 6.1".into();
    record
}

/// Calls it with the run, which borrows everything.
pub fn with_run<T>(write: impl FnOnce(&Run) -> T) -> T {
    let article = article();
    let measured = record("a", "10");
    let accepted = sample::record("b", &[("slow", "9")]);
    let context = Context {
        profile: "full",
        accepted: Some(&accepted),
        measured_here: true,
    };
    let verdicts = judge(&article, &measured, &context);
    let explained = |verdict| crate::judge::explain(&article, verdict);
    let lint = Diagnostic::warning("a number that nothing checks")
        .at(&article.source, 0..3)
        .note("rule: unbound");
    let engine = Diagnostic::error("no Postgres: 100%,\r\nof a:b")
        .at(&article.source, 0..7)
        .hint("fetch it");
    let asked = |slug: &str, status, problems| Asked {
        slug: slug.to_owned(),
        file: &article.source.path,
        article: Some(&article),
        judged: None,
        explanations: Vec::new(),
        problems,
        status,
    };
    let judged = Asked {
        judged: Some(Judged {
            article: &article,
            record: &measured,
            verdicts: &verdicts,
            machines: &[],
        }),
        explanations: verdicts.iter().map(explained).collect(),
        ..asked(
            "sample",
            Status::DoesNotHold,
            Problem::all(Cause::Lint, &[lint]),
        )
    };
    let failed = Problem::of(&Failure::Engine(engine));
    let run = Run {
        command: "check",
        places: &Places {
            here: "/home/a".into(),
            root: "/home/a".into(),
            repository: "/home/a".into(),
        },
        exit_code: 4,
        problems: Problem::all(
            Cause::Article,
            &[Diagnostic::error("there is no article `z`")],
        ),
        articles: vec![
            judged,
            asked("b", Status::Failed, failed),
            asked("c", Status::NotDone, Vec::new()),
        ],
    };
    write(&run)
}
