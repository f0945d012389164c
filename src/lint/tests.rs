//! Sentences as posts about databases have them, and what each rule says to them.

use super::*;
use crate::article::{
    Axis, Block, BlockKind, ChartBlock, ClaimKind, Scalar, Statement, Terminator,
};
use crate::judge::sample::{article, claim, text};
use crate::source::Span;
use crate::source::Spanned;

/// The figures that `unbound` finds in this Markdown.
fn unbound(markdown: &str) -> Vec<String> {
    let article = article(
        markdown,
        vec![claim("x", "B/row", ""), claim("same", "", "")],
    );
    unbound::check(&article)
        .into_iter()
        .map(|diagnostic| {
            let figure = diagnostic.message.strip_prefix("unbound figure `").unwrap();
            figure.trim_end_matches('`').to_owned()
        })
        .collect()
}

#[test]
fn numbers_that_are_no_figures_raise_no_alarm() {
    let sentences = [
        // versions and names
        "We ran everything on PostgreSQL 16 with its defaults.",
        "Postgres 16.15 inside Docker 29.5.2, on an Apple M3 with macOS 26.4.1.",
        "This works since Postgres 14, and 15, 16 and 17 made it faster.",
        "From PostgreSQL 9.6 to 18 nothing changed here.",
        "PostgreSQL 17 or 18 will do; v16 too, and 16.x as well.",
        "It came with PG 13 and PG13 alike.",
        "Ubuntu 24.04 ships version 16, Debian 12 ships 15.9.1.",
        "The kernel was Linux 6.8 and the CPU an AMD EPYC 7763.",
        "An Intel i7-1185G7 and an n2-standard-8 in us-east-1.",
        "Rust 1.94, Python 3.12 and glibc 2.39 were used.",
        "The release candidate was 18 beta 2, then RC 1.",
        "On 16.15 the plan is the same.",
        "The pinned 16.15, nothing newer.",
        // identifiers
        "Columns k1 to k8 are int8, the payload is md5.",
        "It is x86_64, not arm64; UTF-8, not latin1.",
        "p95 and P99 latency, SHA-256 checksums, RFC 3339 dates, ISO 8601.",
        "Watch idx_orders_2024 and pg_stat_io2.",
        "It calls hash_any4 and B2B code of S3 in EC2.",
        "The commit 4e1fad37 changed it, see #1234 and issue 5678.",
        "With fillfactor=25 and max_wal_size=4GB set.",
        "Set fillfactor = 25 before loading.",
        "The bug is CVE-2024-1234.",
        "A 64-bit counter, a 32-bit one, 0-based and 2-phase commit.",
        "Run it as generate_series(1) does.",
        // dates and times
        "On 2026-11-30 we measured again.",
        "On November 30, 2026 and on 30 November 2026.",
        "Between Sept. 8 and Oct 9, in the summer of 2025.",
        "Since 2019, through the 1990s, © 2026 the authors.",
        "At 18:06:25 the checkpoint began, at 10:30 it ended, at 9 am all was quiet.",
        "Logged at 2024-09-20T18:06:25Z or 9/20/2024.",
        "Open 24/7 with a 1:1 mapping and a 1:N one.",
        // ordinals and labels
        "The 1st, 2nd, 3rd and 15th index, the 99th percentile.",
        "Figure 1 and Table 2 show it; see Figures 3 and 4, Section 5 and step 6.",
        "See Fig. 7, listing 8, chapter 9, rule 10 and footnote 11.",
        "No. 3 on the list, question 4 of the survey.",
        "It listens on port 5432 of 127.0.0.1, or 10.0.0.0/8.",
        "Round 3 begins where run 2 ended.",
        // enumerations
        "1) load, 2) index, 3) measure.",
        "First (1) the heap, then (2) the index, (3) the log.",
        // addresses
        "See https://example.org/2026/11/post-76?x=12 for more.",
        "Write to pg15@example.org or read example.org/v2/15.",
        "The [16.2 release notes from 3 days ago](https://example.org/16) say so.",
        "The image postgres:16 and ghcr.io/acme/db:16.15-1.",
        // versions told by the words around them
        "The minimum Rust version was raised to 1.85, so the MSRV is 1.85 now.",
        "It needs rustc 1.80 or later, libpq 14+ and a kernel >= 4.18.",
        "Upgrading from 15 to 16 changed it; we upgraded from 15.2 to 16.1 at once.",
        "The `jiff` 0.2 driver, bumped `md-5` to 0.11, then update `syn` from 1 to 2 and update hashbrown to 0.14.",
        "Deprecated in 0.6 and removed since 0.7; this is the 1.0 release.",
        "On Postgres 16 as on 17, and in Postgres 15 but not 14, nothing differs.",
        "node.js 19, npm 2.0 and HTTP 404.",
        // settings
        "With work_mem at 4MB and shared_buffers set to 128 MB.",
        "Raise `max_wal_size` to 16 GB and `checkpoint_timeout` to 30 minutes.",
        "A fillfactor of 25 leaves room.",
        "Run pgbench -c 8 -j 4 -T 300 for it.",
        // constants, codes, labels
        "It is at most 2^48 of them, in §3.2 of file 002, block 0017.",
        "An index of 32-bits keys, 64 bit each, and a 0-length string.",
        "Stability: 2 and Tier 4; priority 1 beats variant 3.",
        "A 7 min read.",
        "Nothing changes. 2. Drop the index that is not used.",
        // what is bound
        "It costs [76 bytes](claim:x) a row, [345 bytes](cite:source) elsewhere.",
        "It is [byte for byte](claim:same) the same, {{ x }} bytes of {{ rows }}.",
        "Fixed: {{ x | fixed(1) }} and {{ 3 * x }}.",
        // words
        "Two of them doubled within one second.",
        "A 95% confidence interval of the median.",
        "",
    ];
    let mut alarms = Vec::new();
    for sentence in sentences {
        let found = unbound(sentence);
        if !found.is_empty() {
            alarms.push(format!("{found:?} in: {sentence}"));
        }
    }
    assert!(alarms.is_empty(), "{}", alarms.join("\n"));
}

#[test]
fn markdown_that_is_no_prose_raises_no_alarm() {
    for markdown in [
        "Run `SELECT 42` and ``x 43``.",
        "```sql\nSELECT 42;\n```",
        "```sql experiment e\n--| runs: 8\nSELECT 42;\n```",
        "- item\n\n  ```\n  43 rows\n  ```",
        "    indented 44\n",
        "<p data-x=\"45\">text</p>\n",
        "Inline <b title=\"46\">text</b>.",
        "1. first\n2. second\n10. tenth\n",
        "## 3. Results\n",
        "## 3.1 Setup and Method\n",
        "## 4 Results\n",
        "4\\. Raise the limit\n",
        "**4\\. Raise the limit**\n",
        "A note.[^1]\n\n[^1]: Said later.\n",
        "[ref]: https://example.org/47 \"48\"\n",
        "![Bars that grow](chart-49.svg)",
        "<https://example.org/50>",
        "| a | b |\n|---|---|\n| `51` | [76](claim:x) |\n",
        "[](chart:insert_wal2) shows it.",
        "- [ ] open\n- [x] done\n",
        "| Version | seen |\n|---|---|\n| 1.85 | yes |\n| 16 | no |\n",
        "| Postgres version | Year |\n|---|---|\n| 15 | 1066 |\n",
    ] {
        assert_eq!(unbound(markdown), Vec::<String>::new(), "{markdown}");
    }
}

#[test]
fn figures_are_found_with_their_units() {
    #[rustfmt::skip]
    let table: &[(&str, &[&str])] = &[
        ("We found 43 buffers.", &["43"]),
        ("It took 7.1ms, then 4.4 ms.", &["7.1ms", "4.4 ms"]),
        ("About 754,000 rows a second.", &["754,000"]),
        ("A gain of 65%, or 3.2x, or ×4.", &["65%", "3.2x", "4"]),
        ("From 1.3 to 1.8 µs, that is 1.3–1.8 µs.", &["1.3 to 1.8 µs", "1.3–1.8 µs"]),
        ("It wrote 13.1 MB of WAL and 2,397 images.", &["13.1 MB", "2,397"]),
        ("At 0, 1, 2, 4 and 8 indexes.", &["0", "1", "2", "4", "8"]),
        ("Each 40-byte reading takes 64 bytes.", &["40-byte", "64 bytes"]),
        ("**76** bytes, _77_ bytes", &["76 bytes", "77 bytes"]),
        ("Updating 100,000 rows of 2 million.", &["100,000", "2 million"]),
        ("A table of 2000 rows and 1999 pages.", &["2000", "1999"]),
        ("Postgres 16 took 12 s.", &["12 s"]),
        ("Postgres 16 wrote 16 MB.", &["16 MB"]),
        ("The WAL grew by 16 MB.", &["16 MB"]),
        ("- 76 bytes\n- more\n", &["76 bytes"]),
        ("> 76 bytes\n", &["76 bytes"]),
        ("| rows |\n|---|\n| 76 |\n", &["76"]),
        ("## What 8 indexes cost\n", &["8"]),
        ("## What Each of 8 Indexes Costs\n", &["8"]),
        ("## 8 indexes\n", &["8"]),
        ("8,023,5xx bytes", &["8,023,5xx bytes"]),
        ("It costs [80.2 bytes at 8 indexes](claim:x).", &["8"]),
        ("The [76 bytes](claim:x) of 3 indexes", &["3"]),
        ("Half of it, .5 to be exact", &[".5"]),
        ("Version 16 has 3 of them", &["3"]),
        ("on Postgres 16, 3 indexes are free", &["3"]),
        ("The increment (81.3 bytes) stays", &["81.3 bytes"]),
        ("grew 12× in 5 minutes", &["12×", "5 minutes"]),
        ("![Bars up to 76 bytes](a.svg)", &["76 bytes"]),
        ("May 3 indexes cost so much?", &["3"]),
        ("A ratio of 70:30", &["70", "30"]),
        ("Note.[^1]\n\n[^1]: It was 12 ms.\n", &["12 ms"]),
        ("n is 48", &["48"]),
        ("| version | time |\n|---|---|\n| 16 | 43 |\n", &["43"]),
        ("`wal_bytes` 76 bytes, work_mem at 4MB gave 7 ms", &["76 bytes", "7 ms"]),
        ("max_parallel_workers_per_gather: 151ms without, hot_col 380575 rows/s", &["151ms", "380575"]),
        ("The new version drops the 27 ciphers and 64 branches.", &["27", "64"]),
        ("The release took 12 s and the upgrade 3 minutes.", &["12 s", "3 minutes"]),
        ("The update moved rows from 3 to 4 pages", &["3 to 4"]),
        ("Dropping it halved 754 to 378.", &["754", "378"]),
        ("at 0.5 and 0", &["0.5", "0"]),
        ("took 3. Then more", &["3"]),
        ("3 or more, 3 or higher", &["3", "3"]),
        ("约76 MB的日志", &["76 MB"]),
    ];
    let mut wrong = Vec::new();
    for (markdown, expected) in table {
        let found = unbound(markdown);
        if found != *expected {
            wrong.push(format!("{found:?}, not {expected:?} in: {markdown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn places_are_right_behind_front_matter_and_escapes() {
    let markdown = "---\ntitle: 99 rows\n---\nSmith &amp; \\*Co\\* wrote 43 µs.\n";
    let mut article = article(markdown, Vec::new());
    article.front_matter.span = Span::new(0, markdown.find("Smith").unwrap());
    let found = lint(&article);
    assert_eq!(found.len(), 1);
    let place = found[0].place.as_ref().unwrap();
    assert_eq!(article.source.slice(place.span), "43 µs");
    assert_eq!(
        found[0].location().as_deref(),
        Some("sample/article.md:4:26")
    );
    assert_eq!(found[0].notes, ["rule: unbound"]);
}

#[test]
fn titles_and_captions_are_prose_too() {
    let mut article = article("", Vec::new());
    article.front_matter.title = text("PostgreSQL 18: 13 small measurements");
    let messages: Vec<_> = lint(&article).into_iter().map(|one| one.message).collect();
    assert_eq!(messages, ["unbound figure `13`"]);
}

#[test]
fn a_figure_that_is_a_param_has_a_hint_of_its_own() {
    let mut article = article("Loading 1,000,000 rows and 43 more.", Vec::new());
    let params = &mut article.front_matter.params;
    params.insert("rows".to_owned(), Scalar::Number(1_000_000.into()));
    let hints: Vec<_> = unbound::check(&article)
        .into_iter()
        .filter_map(|one| one.hint)
        .collect();
    assert_eq!(
        hints,
        [
            "fill it in: `{{ rows }}`",
            "quote a claim, `[43](claim:NAME)`, or say where it comes from, `[43](cite:source)`",
        ]
    );
}

#[test]
fn the_front_matter_sets_severities_and_knows_the_rules() {
    let markdown = "---\nlint: {unbond: warn}\n---\nIt took 43 ms.\n";
    let mut article = article(markdown, Vec::new());
    article.front_matter.span = Span::new(0, markdown.find("It took").unwrap());
    let severities = |article: &Article| -> Vec<_> {
        lint(article)
            .into_iter()
            .map(|one| (one.severity, one.message))
            .collect()
    };
    let figure = "unbound figure `43 ms`".to_owned();
    assert_eq!(severities(&article), [(Severity::Warning, figure.clone())]);
    let mut set = |rule: &str, level| {
        article.front_matter.lint.clear();
        article.front_matter.lint.insert(rule.to_owned(), level);
        severities(&article)
    };
    assert_eq!(
        set("unbound", LintLevel::Error),
        [(Severity::Error, figure.clone())]
    );
    assert_eq!(set("unbound", LintLevel::Ignore), []);
}

#[test]
fn claims_count_as_used_where_they_are_quoted_filled_in_or_limited() {
    let mut article = article(
        "[76](claim:quoted), {{ filled | fixed(1) }}, {{ 2 * (other + 1) ~ \" text \" }}",
        ["quoted", "filled", "other", "in_alt", "text", "unused"]
            .map(|name| claim(name, "", ""))
            .into_iter()
            .chain([claim("limited", "", ">= 3")])
            .collect(),
    );
    let mut alt = text("Bars up to {{ in_alt }}");
    alt.fill_ins.push(crate::article::FillIn {
        expression: "in_alt".to_owned(),
        span: Span::new(11, 23),
    });
    article.blocks.push(chart(alt));
    let messages: Vec<_> = unused::claims(&article)
        .into_iter()
        .map(|one| one.message)
        .collect();
    assert_eq!(
        messages,
        [
            "claim `text` is never quoted nor filled in",
            "claim `unused` is never quoted nor filled in"
        ]
    );
}

fn chart(alt: TextWithFillIns) -> Block {
    let word = |text: &str| Spanned::new(text.to_owned(), 0..0);
    Block {
        id: word("c"),
        span: Span::default(),
        content: Default::default(),
        kind: BlockKind::Chart(Box::new(ChartBlock {
            id: word("c"),
            query: Statement {
                text: Default::default(),
                terminator: Terminator::Semicolon,
                variables: Vec::new(),
            },
            chart_type: word("bar"),
            x: word("x"),
            y: vec![word("y")],
            series: None,
            error: None,
            log: vec![Axis::Y],
            title: None,
            alt,
            caption: None,
            x_label: None,
            y_label: None,
            option: None,
        })),
    }
}

#[test]
fn images_need_an_alt_text() {
    for (markdown, expected) in [
        ("![](a.svg)", 1),
        ("![ ](a.svg) and ![a picture](b.svg)", 1),
        ("![`code`](a.svg)", 0),
        ("![{{ x }}](a.svg)", 0),
        ("`![](a.svg)`", 0),
        ("[](chart:a)", 0),
    ] {
        assert_eq!(
            alt::check(&article(markdown, Vec::new())).len(),
            expected,
            "{markdown}"
        );
    }
}

#[test]
fn a_tolerance_ten_times_wider_than_the_digits_quoted_is_told() {
    #[rustfmt::skip]
    let table = [
        ("76 bytes", "B/row", "1%", false),
        ("76 bytes", "B/row", "6%", false),
        ("76 bytes", "B/row", "7%", true),
        ("76.12 bytes", "B/row", "1%", true),
        ("754,000", "rows/s", "0.5%", false),
        ("754,000", "rows/s", "30%", true),
        ("700,000", "rows/s", "30%", false),
        ("8,023,544", "B", "1%", true),
        ("1.50", "s", "0.05", false),
        ("1.50", "s", "0.06", true),
        ("24 kB", "B", "5000", false),
        ("24 kB", "B", "6000", true),
        ("76", "B", ">= 3", false),
        ("76", "B", "", false),
        ("0", "B", "5", false),
        ("70 to 80", "B", "50%", false),
        ("half", "", "50%", false),
    ];
    for (quote, unit, tolerance, expected) in table {
        let markdown = format!("[{quote}](claim:y)");
        for (kind, expected) in [(ClaimKind::Bounded, expected), (ClaimKind::Noisy, false)] {
            let mut asked = claim("y", unit, tolerance);
            asked.kind = kind;
            let found = tolerance::check(&article(&markdown, vec![asked]));
            assert_eq!(!found.is_empty(), expected, "{quote} {tolerance} {kind:?}");
        }
    }
}

// ---- the machine of noisy claims ----------------------------------------------------------------

#[test]
fn a_noisy_number_needs_its_machine_named() {
    #[rustfmt::skip]
    let table: &[(&str, usize)] = &[
        ("An insert takes [43 ms](claim:n).", 1),
        ("An insert takes [43 ms](claim:n), an update [44 ms](claim:n).", 1),
        ("An insert takes [43 ms](claim:n).\n\nAn update takes [44 ms](claim:n).", 2),
        ("An insert takes [43 ms](claim:n).\n\n{{ host.cpu }} was used.", 1),
        ("- one\n- takes [43 ms](claim:n)\n", 1),
        ("| a |\n|---|\n| [43 ms](claim:n) |\n", 1),
        ("I/O takes [43 us](claim:n).", 1),
        ("## Timings\n\nAn insert takes [43 ms](claim:n).", 1),
        ("## On our server\n\nOne.\n\n## Elsewhere\n\nAn insert takes [43 ms](claim:n).", 1),
        ("Our times are of a laptop.\n\nIt costs [76 bytes](claim:x).", 0),
        ("An insert takes [43 ms](claim:n) here.", 0),
        ("On this machine an insert takes [43 ms](claim:n).", 0),
        ("Here, with 2 cores, it takes longer. An insert takes [43 ms](claim:n).", 0),
        ("An insert takes [43 ms](claim:n) on {{ host.cpu }}.", 0),
        ("We measured [43 ms](claim:n).", 0),
        ("All times were taken on a laptop.\n\n## A\n\nIt takes [43 ms](claim:n).", 0),
        ("## A\n\nTimings belong to a machine.\n\n### B\n\nIt takes [43 ms](claim:n).", 0),
        ("## A\n\nIt takes [43 ms](claim:n).\n\nThese numbers are of an M3 laptop.", 0),
        ("## On our server\n\nAn insert takes [43 ms](claim:n).", 0),
        ("On the laptop:\n\n| a |\n|---|\n| [43 ms](claim:n) |\n", 0),
        ("On the laptop:\n\n- takes [43 ms](claim:n)\n", 0),
        ("| on our laptop |\n|---|\n| [43 ms](claim:n) |\n", 0),
        ("It takes {{ n }} ms.", 0),
        ("It is [many times](claim:n) slower.", 0),
        ("It costs [76 bytes](claim:x).", 0),
    ];
    let mut noisy = claim("n", "ms", "");
    noisy.kind = ClaimKind::Noisy;
    for (markdown, expected) in table {
        let claims = vec![noisy.clone(), claim("x", "B", "")];
        let mut article = article(markdown, claims);
        assert_eq!(machine::check(&article).len(), *expected, "{markdown}");
        article.front_matter.lang = "de".to_owned();
        assert_eq!(machine::check(&article), [], "{markdown}");
    }
}

#[test]
fn only_rules_that_are_errors_refuse_an_article() {
    let mut article = article("It took 43 ms.", vec![claim("x", "", "")]);
    assert_eq!(errors(&article), []);
    let levels = &mut article.front_matter.lint;
    levels.insert("unused_claim".to_owned(), LintLevel::Error);
    let messages: Vec<_> = errors(&article)
        .into_iter()
        .map(|one| one.message)
        .collect();
    assert_eq!(messages, ["claim `x` is never quoted nor filled in"]);
}

#[test]
fn rules_are_named_once_and_as_the_front_matter_writes_names() {
    let mut names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert!(
        names
            .iter()
            .all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
    );
    // The author's reference has a row for each.
    let reference = include_str!("../../docs/article-format.md");
    for rule in RULES {
        let level = match rule.level {
            LintLevel::Ignore => "ignore",
            LintLevel::Warn => "warn",
            LintLevel::Error => "error",
        };
        let row = format!("| `{}` | ", rule.name);
        let told = reference.lines().find(|line| line.starts_with(&row));
        assert!(
            told.is_some_and(|line| line.ends_with(&format!(" | {level} |"))),
            "{row}"
        );
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), RULES.len());
}
