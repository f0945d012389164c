//! What a page must be: complete, escaped, self-contained, the same every time.

use super::super::sample::{Sample, TEXT};
use super::super::{fill, render};
use super::script_hash;
use crate::article::{BlockKind, FillIn};
use crate::quantity::{Column, Table, Value};
use crate::render::templates;
use crate::source::Span;
use std::collections::BTreeSet;

fn page() -> String {
    Sample::new().file("index.html")
}

fn page_of(text: &str) -> String {
    Sample::from_text(text).file("index.html")
}

/// The sample with other prose below its front matter, its blocks kept.
fn with_prose(prose: &str) -> String {
    let start = TEXT.find("Each extra btree").unwrap();
    let end = TEXT.find("```sql fixture").unwrap();
    format!("{}{prose}\n\n{}", &TEXT[..start], &TEXT[end..])
}

/// Every opening tag of a page, outside of scripts and styles: its name and attributes.
fn tags(html: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find('>').unwrap();
        let (tag, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        if tag.starts_with(['/', '!']) {
            continue;
        }
        let (name, attributes) = tag.split_once([' ', '\n']).unwrap_or((tag, ""));
        let attributes = attributes.split("\" ").filter_map(|a| a.split_once("=\""));
        tags.push((
            name.trim_end_matches('/').to_owned(),
            attributes
                .map(|(k, v)| {
                    (
                        k.trim().to_owned(),
                        v.trim_end_matches(['"', '/']).to_owned(),
                    )
                })
                .collect(),
        ));
        if matches!(name, "script" | "style") {
            rest = &rest[rest.find(&format!("</{name}>")).unwrap()..];
        }
    }
    tags
}

fn attribute<'a>(tags: &'a [(String, Vec<(String, String)>)], name: &str) -> Vec<&'a str> {
    (tags.iter())
        .flat_map(|(_, attributes)| attributes)
        .filter(|(key, _)| key == name)
        .map(|(_, value)| value.as_str())
        .collect()
}

#[test]
fn the_same_inputs_make_the_same_bytes() {
    assert_eq!(Sample::new().render(), Sample::new().render());
}

#[test]
fn the_prose_is_what_it_was() {
    let html = page();
    let start = html.find("<div class=\"prose\">").unwrap();
    let end = html.find("<section class=\"evidence\"").unwrap();
    assert_eq!(&html[start..end], include_str!("../sample_expected.html"));
}

#[test]
fn a_page_loads_nothing_from_elsewhere() {
    let html = page();
    for (name, attributes) in tags(&html) {
        assert!(
            !matches!(
                name.as_str(),
                "link" | "iframe" | "object" | "embed" | "form" | "base"
            ),
            "{name}"
        );
        for (key, value) in attributes {
            let loads = matches!(
                key.as_str(),
                "src" | "srcset" | "xlink:href" | "data" | "poster"
            );
            assert!(!loads || value.starts_with("data:"), "{name} {key}={value}");
            assert!(!key.starts_with("on"), "{name} {key}");
        }
    }
    assert!(!templates::STYLE.contains("url(") && !templates::STYLE.contains("@import"));
    assert!(html.contains("default-src &#39;none&#39;") || html.contains("default-src 'none'"));
    let hash = script_hash(templates::SCRIPT);
    assert!(html.contains(&format!("script-src '{hash}'")), "{hash}");
    assert!(html.contains(&format!("<script>{}</script>", templates::SCRIPT)));
}

#[test]
fn every_anchor_exists_once() {
    let html = page();
    let tags = tags(&html);
    let ids = attribute(&tags, "id");
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
    let targets = attribute(&tags, "href");
    let mut inside = 0;
    for target in targets.iter().filter_map(|target| target.strip_prefix('#')) {
        assert!(unique.contains(target), "#{target}");
        inside += 1;
    }
    assert!(inside > 20);
    for label in attribute(&tags, "aria-labelledby") {
        for id in label.split(' ') {
            assert!(unique.contains(id), "{id}");
        }
    }
}

#[test]
fn every_element_is_closed() {
    const VOID: &[&str] = &["meta", "br", "hr", "img", "input", "wbr", "!doctype"];
    let html = page();
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html.as_str();
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let tag = &rest[..rest.find('>').unwrap()];
        let name = tag.split([' ', '\n']).next().unwrap();
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !VOID.contains(&name) && !tag.ends_with('/') {
            open.push(name);
            if matches!(name, "script" | "style") {
                rest = &rest[rest.find(&format!("</{name}>")).unwrap()..];
            }
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[test]
fn quotes_show_what_became_of_them_and_lead_to_their_evidence() {
    let html = page();
    for (class, href, text) in [
        ("holds", "claim-index_wal", "76 bytes</a>"),
        ("holds", "claim-grows", "grows</a>"),
        (
            "skipped",
            "claim-base_rate",
            "754,000 rows a second<span class=\"mark\" aria-hidden=\"true\">○</span><span class=\"hidden\"> (skipped)</span></a>",
        ),
        (
            "fails",
            "claim-index_wal",
            "80 bytes<span class=\"mark\" aria-hidden=\"true\">✗</span><span class=\"hidden\"> (does not hold)</span></a>",
        ),
    ] {
        let at = html.find(text).unwrap_or_else(|| panic!("{text}"));
        let link = &html[html[..at].rfind("<a ").unwrap()..at];
        assert!(link.contains(&format!("class=\"value {class}\"")), "{link}");
        assert!(link.contains(&format!("href=\"#{href}\"")), "{link}");
    }
    for evidence in [
        "<strong>76.186106875 B</strong>",
        "3.3 B below 79.5 to 80.5",
        "a noisy claim, and this is another machine",
        "(here 1.00 × that)",
        "751,000 rows/s",
        "on Apple M3",
        "fingerprint <code title=\"4c1d4c1d4c1d",
        "a checkpoint ended within run 3 of indexes = 8",
        "href=\"#quote-index_wal-1\"",
    ] {
        assert!(html.contains(evidence), "{evidence}");
    }
}

#[test]
fn text_is_escaped_wherever_it_goes() {
    let attack = "</title><script>alert(1)</script><img src=x onerror=alert(1)>\"' &amp;";
    let mut sample = Sample::new();
    let front_matter = &mut sample.article.front_matter;
    front_matter.title.text = attack.into();
    front_matter.title.fill_ins.clear();
    front_matter.authors = vec![attack.into()];
    front_matter.tags = vec![attack.into()];
    front_matter.lang = attack.into();
    let source = front_matter.published_source.as_mut().unwrap();
    source.title = Some(attack.into());
    source.url = Some("javascript:alert(1)".into());
    let environment = &mut sample.record.environment;
    environment.host.cpu = attack.into();
    environment.server.version_string = attack.into();
    environment
        .server
        .settings
        .insert(attack.into(), attack.into());
    sample.record.tables["insert_cost"].rows[0][2] = crate::quantity::Value::Text(attack.into());
    sample.record.experiments["insert"].doubts[0].message = attack.into();
    for verdict in &mut sample.verdicts {
        verdict.measured_text = attack.into();
        verdict.tolerance = attack.into();
    }
    let html = sample.file("index.html");
    let plain = page();
    for element in ["script", "img", "title", "svg"] {
        let opening = format!("<{element}");
        assert_eq!(
            html.matches(&opening).count(),
            plain.matches(&opening).count(),
            "{element}"
        );
    }
    assert!(!html.contains("href=\"javascript"));
    for (name, attributes) in tags(&html) {
        for (key, _) in attributes {
            assert!(!key.starts_with("on"), "{name} {key}");
        }
    }
}

#[test]
fn raw_html_is_shown_not_run() {
    let html = page_of(&with_prose(
        "a<br>b <sub>c</sub> <b>d</b> <!-- gone --> <sub onclick=\"x\">e</sub>\n\n\
         <div onclick=\"alert(1)\">\nblock\n</div>\n\n<!-- gone -->\n\n\
         [x](javascript:alert(1)) [y](data:text/html,z) <https://example.org> <a@example.org>\n",
    ));
    for piece in [
        "a<br>b <sub>c</sub> &lt;b&gt;d&lt;/b&gt;  &lt;sub onclick=&quot;x&quot;&gt;e</sub>",
        "&lt;div onclick=&quot;alert(1)&quot;&gt;",
        "<p>x y <a href=\"https://example.org\">https://example.org</a> \
         <a href=\"mailto:a@example.org\">a@example.org</a></p>",
    ] {
        assert!(html.contains(piece), "{piece}");
    }
    assert!(!html.contains("gone"));
}

#[test]
fn headings_have_stable_and_unique_ids() {
    let html = page_of(&with_prose(
        "## Evidence\n\n## Evidence\n\n## {{ index_wal }} B, *µs* & `code`\n\n## Own {#mine}\n\n## 100 %\n",
    ));
    for piece in [
        "<h2 id=\"evidence-1\">",
        "<h2 id=\"evidence-2\">",
        "<h2 id=\"b-µs--code\">",
        "<h2 id=\"mine\">Own",
        "<h2 id=\"100-\">",
        "<li><a href=\"#b-µs--code\">76.2 B, µs &amp; code</a></li>",
    ] {
        assert!(html.contains(piece), "{piece}");
    }
}

#[test]
fn no_heading_takes_an_id_of_the_page() {
    let anywhere = elsewhere(|_| {}).file("index.html");
    let tags_anywhere = tags(&anywhere);
    let ids = attribute(&tags_anywhere, "id");
    assert!(ids.contains(&"machines") && ids.contains(&"claim-grows-name"));
    let headings: String = ids
        .iter()
        .map(|id| format!("## {id} {{#{id}}}\n\n"))
        .collect();
    let text = TEXT.replace(
        "## The experiment\n",
        &format!("{headings}## The experiment\n"),
    );
    assert_ne!(text, TEXT);
    let html = elsewhere_of(&text, |_| {}).file("index.html");
    let (tags, mut seen) = (tags(&html), BTreeSet::new());
    let twice: Vec<&str> = attribute(&tags, "id")
        .into_iter()
        .filter(|id| !seen.insert(*id))
        .collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn an_article_with_its_own_h1_moves_one_level_down() {
    let html = page_of(&with_prose("# Another title\n\n## Below\n"));
    assert!(html.contains("<h2 id=\"another-title\">Another title"));
    assert!(html.contains("<h3 id=\"below\">Below"));
    assert_eq!(html.matches("<h1").count(), 1);
}

#[test]
fn a_hidden_experiment_keeps_its_anchor_and_its_results() {
    let html = page_of(&TEXT.replace("--| runs: 3", "--| runs: 3\n--| echo: false"));
    let at = html.find("id=\"experiment-insert\"").unwrap();
    let figure = &html[at..at + html[at..].find("</figure>").unwrap()];
    assert!(!figure.contains("<pre") && figure.contains("What was measured"));
}

#[test]
fn footnotes_lead_there_and_back() {
    let html = page_of(&with_prose(
        "One[^b], two[^a], one again[^b].\n\n[^a]: Text of *a*.\n[^b]: Text of b.\n\n[^c]: Never mentioned.\n",
    ));
    for piece in [
        "<sup id=\"footnote-1-mention-2\"><a href=\"#footnote-1\"",
        "<li id=\"footnote-1\"><p>Text of b. <a href=\"#footnote-1-mention-1\"",
        "<li id=\"footnote-2\"><p>Text of <em>a</em>.",
        "<li id=\"footnote-3\"><p>Never mentioned.</p></li>",
    ] {
        assert!(html.contains(piece), "{piece}");
    }
}

#[test]
fn a_value_that_no_text_takes_is_an_error_at_its_place() {
    let mut sample = Sample::new();
    let code = sample.article.source.text.find("`unused`").unwrap() + 1;
    sample.article.prose.fill_ins.push(FillIn {
        expression: "rows".into(),
        span: Span::new(code, code + 6),
    });
    sample
        .article
        .prose
        .fill_ins
        .sort_by_key(|fill_in| fill_in.span);
    let filled = fill(&sample.article, &sample.record).unwrap();
    let problem = render(&sample.page(), &filled).unwrap_err();
    assert_eq!(problem.message, "a value cannot be filled in here");
    assert_eq!(problem.place.unwrap().span, Span::new(code, code + 6));
}

#[test]
fn what_the_record_does_not_have_is_an_error_at_the_block() {
    let forget: [fn(&mut Sample); 4] = [
        |sample| drop(sample.record.tables.shift_remove("insert_cost")),
        |sample| drop(sample.record.charts.shift_remove("insert_wal")),
        |sample| drop(sample.charts.shift_remove("insert_wal")),
        |sample| drop(sample.record.experiments.shift_remove("insert")),
    ];
    for forget in forget {
        let mut sample = Sample::new();
        forget(&mut sample);
        let filled = fill(&sample.article, &sample.record).unwrap();
        let problem = render(&sample.page(), &filled).unwrap_err();
        assert!(problem.message.starts_with("the record has nothing of"));
        assert!(problem.location().is_some());
    }
}

#[test]
fn an_image_of_the_folder_becomes_part_of_the_page() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("plan.png"), b"png").unwrap();
    let mut sample = Sample::from_text(&with_prose(
        "![A *plan* of {{ rows }}](plan.png) and ![far](https://example.org/x.png)\n",
    ));
    sample.article.directory = folder.path().to_owned();
    let html = sample.file("index.html");
    assert!(html.contains("<img src=\"data:image/png;base64,cG5n\" alt=\"A plan of 1,000,000\">"));
    assert!(html.contains("<a href=\"https://example.org/x.png\">far</a>"));
    assert_eq!(sample.file("plan.png"), "png");
    std::fs::remove_file(folder.path().join("plan.png")).unwrap();
    let filled = fill(&sample.article, &sample.record).unwrap();
    let problem = render(&sample.page(), &filled).unwrap_err();
    assert!(
        problem.message.contains("`plan.png` cannot be read"),
        "{}",
        problem.message
    );
}

#[test]
fn the_same_machine_has_no_author_beside_it() {
    let mut sample = Sample::new();
    sample.accepted = Some(sample.record.clone());
    for verdict in &mut sample.verdicts {
        verdict.recorded = None;
    }
    let html = sample.file("index.html");
    assert!(!html.contains("Author") && !html.contains("The author measured"));
}

#[test]
fn every_block_of_the_sample_is_on_the_page() {
    let sample = Sample::new();
    let html = sample.file("index.html");
    for block in &sample.article.blocks {
        if !matches!(block.kind, BlockKind::Claims(_)) {
            let anchor = super::blocks::anchor(block);
            assert!(html.contains(&format!("id=\"{anchor}\"")), "{anchor}");
        }
    }
}

/// The sample beside an author's record of another machine, whose values `change` alters.
fn elsewhere(change: impl Fn(&mut crate::record::Record)) -> Sample {
    elsewhere_of(TEXT, change)
}

fn elsewhere_of(text: &str, change: impl Fn(&mut crate::record::Record)) -> Sample {
    let mut sample = Sample::from_text(text);
    let accepted = sample.accepted.as_mut().unwrap();
    let host = accepted.environment.host.sha256.clone();
    for experiment in accepted.experiments.values_mut() {
        experiment.host.clone_from(&host);
    }
    change(accepted);
    sample
}

#[test]
fn on_another_machine_what_differs_stands_at_the_top_the_farthest_off_first() {
    let sample = elsewhere(|accepted| {
        accepted.claims["index_wal"].value = super::super::sample::number("76.186106875000001");
        accepted.claims["grows"].value = crate::quantity::Value::Boolean(false);
        accepted.claims["base_rate"].value = super::super::sample::number("1507704.36");
        accepted.environment.host.memory_bytes = "68719476736".to_owned();
    });
    let html = sample.file("index.html");
    let start = html.find("<aside class=\"machines\"").unwrap();
    let end = html.find("<div class=\"prose\">").unwrap();
    let aside = &html[start..end];
    for part in [
        "The author measured on <strong>Apple M3</strong>; this page was measured on <strong>AMD EPYC_7 &lt;rev*2&gt;</strong>. 1 claim is of the machine",
        "<tr class=\"differs\"><th scope=\"row\">Memory</th><td>64 GB</td><td>8192 MB</td></tr>",
        "<tr><th scope=\"row\">Cores</th><td>2</td><td>2</td></tr>",
        "What differs on your machine: 3 of 3 claims",
        "<td class=\"number\">1,510,000 rows/s</td><td class=\"number\">754,000 rows/s<small>×0.5</small></td>",
        "<td class=\"number\">false</td><td class=\"number\">true</td>",
        "<h2 id=\"machines\">On another machine</h2>",
        "<summary>The two machines</summary>",
        "<th scope=\"col\" class=\"number\"><a href=\"#machine--author\">Author</a></th>",
        "<th scope=\"col\" id=\"machine--you\">You</th>",
        "<span class=\"hidden\">of the machine:</span>&nbsp;<a href=\"#claim-base_rate\">",
        "<td class=\"number\">76 B<small>×1.00</small></td>",
    ] {
        assert!(aside.contains(part), "{part}\n{aside}");
    }
    // What has no ratio is another thing altogether; a last digit comes last.
    let order: Vec<_> = ["#claim-grows", "#claim-base_rate", "#claim-index_wal"]
        .map(|name| aside.find(name).unwrap())
        .into();
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(html, sample.file("index.html"));
    // Beside the exact value an exact one, in the table both as the claim prints them.
    assert!(html.contains(
        "<dt>Author's</dt><dd>1,507,704.36 rows/s <span class=\"quiet\">(here 0.5 × that)"
    ));
    assert!(html.contains("<td class=\"number\">1,510,000 rows/s (×0.5)</td>"));
}

/// The sample with records of further machines: what is wrong with each is `change`'s to make.
fn beside(names: &[&str], change: impl Fn(&mut crate::judge::Machine)) -> Sample {
    let mut sample = Sample::new();
    sample.accepted = Some(sample.record.clone());
    for verdict in &mut sample.verdicts {
        verdict.recorded = None;
    }
    for name in names {
        let mut machine = crate::judge::Machine {
            name: (*name).to_owned(),
            record: sample.record.clone(),
            stale: Vec::new(),
            verdicts: Vec::new(),
        };
        machine.record.environment.host.cpu = format!("CPU <{name}>");
        machine.record.environment.host.sha256 = "9f".repeat(32);
        change(&mut machine);
        sample.machines.push(machine);
    }
    sample
}

#[test]
fn further_machines_have_a_column_each_and_say_what_does_not_hold_there() {
    let sample = beside(&["big", "old", "quick"], |machine| {
        machine.record.claims["base_rate"].value = super::super::sample::number("1507704.36");
        match machine.name.as_str() {
            "old" => machine.stale = vec![crate::diagnostic::Diagnostic::error("stale")],
            "quick" => machine.record.profile = "large".to_owned(),
            _ => {
                machine.record.claims["grows"].value = crate::quantity::Value::Boolean(false);
                let mut verdict = Sample::new().verdicts[0].clone();
                verdict.claim = "grows".to_owned();
                verdict.outcome = crate::judge::Outcome::DoesNotHold {
                    difference: "the claim is false".to_owned(),
                };
                machine.verdicts = vec![verdict];
            }
        }
    });
    let html = sample.file("index.html");
    for part in [
        "<h2 id=\"machines\">On several machines</h2>",
        "<a href=\"#machine-big\">big</a> (CPU &lt;big&gt;), <a href=\"#machine-old\">old</a> (CPU &lt;old&gt;; stale: measured with other inputs), <a",
        "(CPU &lt;quick&gt;; profile large or other params: not compared) too.</p>",
        "<summary>The 4 machines</summary>",
        "What differs between the machines: 2 of 3 claims",
        "<td class=\"number\">754,000 rows/s</td><td class=\"number\">1,510,000 rows/s<small>×2</small></td><td class=\"number quiet\">1,510,000 rows/s</td><td class=\"number quiet\">1,510,000 rows/s</td>",
        "<td class=\"number fails\">false<span class=\"mark\" aria-hidden=\"true\">✗</span><span class=\"hidden\"> (does not hold)</span></td>",
        "The same on all machines, to the last digit: 1 claim<",
    ] {
        assert!(html.contains(part), "{part}\n{html}");
    }
    assert!(!html.contains("The author measured on"));
    let markdown = sample.file("article.md");
    for part in [
        "On all of them 1 of 3 claims are the same.",
        "| Claim | Author | big | old | quick |",
        "| grows | true | false, does not hold | true | true |",
        "- old (stale: measured with other inputs): CPU \\<old\\>, 2 cores",
        "- quick (profile large: not compared): ",
    ] {
        assert!(markdown.contains(part), "{part}\n{markdown}");
    }
}

#[test]
fn a_record_that_was_put_together_on_two_hosts_names_both() {
    let mut sample = Sample::new();
    let mut there = sample.record.environment.clone();
    there.host.cpu = "Big Box".into();
    there.host.sha256 = "5e".repeat(32);
    for experiment in sample.record.experiments.values_mut() {
        experiment.host = there.host.sha256.clone();
    }
    let host = there.host.sha256.clone();
    sample.record.environments.insert(host, there);
    let html = sample.file("index.html");
    assert!(
        html.contains("<dt>Also on</dt><dd>Big Box, 2 cores"),
        "{html}"
    );
    assert!(
        html.contains("there <a href=\"#experiment-insert\">insert</a>"),
        "{html}"
    );
}

#[test]
fn claims_that_are_the_same_on_both_machines_are_only_named() {
    let html = elsewhere(|_| {}).file("index.html");
    let named = "The same on both machines, to the last digit: 3 claims</summary>\n<p><a href=\"#claim-index_wal\">index_wal</a>, ";
    assert!(html.contains(named));
    assert!(!html.contains("What differs on your machine"));
}

#[test]
fn values_of_another_profile_are_not_compared() {
    let html = elsewhere(|accepted| accepted.profile = "large".to_owned()).file("index.html");
    assert!(html.contains("record is of the large profile or of other params"));
    assert!(!html.contains("What differs on your machine"));
    assert!(!html.contains("The same on both machines"));
}

#[test]
fn on_the_authors_machine_nothing_is_said_of_machines() {
    let mut sample = Sample::new();
    let host = &sample.record.environment.host;
    sample.accepted.as_mut().unwrap().environment.host = host.clone();
    for verdict in &mut sample.verdicts {
        verdict.recorded = None;
    }
    let html = sample.file("index.html");
    for part in [
        "<aside class=\"machines\"",
        "<dt>Author's</dt>",
        "<dt>Yours</dt>",
        "Apple M3",
    ] {
        assert!(!html.contains(part), "{part}");
    }
    sample.accepted = None;
    assert_eq!(html, sample.file("index.html"));
}

#[test]
fn a_comparison_shows_its_interval() {
    let mut sample = Sample::new();
    sample.record.claims["grows"].value = super::super::sample::number("1.93");
    sample.record.claims["grows"].comparison = Some(crate::record::Comparison {
        interval: ("1.8".parse().unwrap(), "2.0567".parse().unwrap()),
        runs: (8, 8),
    });
    let html = sample.file("index.html");
    let shown = "<strong>1.93×</strong> <span class=\"quiet\">(95 % interval 1.8 to 2.06, 8 runs each)</span>";
    assert!(html.contains(shown));
}

#[test]
fn comments_are_not_shown_however_many_lines_they_have() {
    let prose = "<!-- no1 -->\n\n<!--\nno2\n\nno3\n-->\n\n<div>\nyes1 <!-- no4\nno5 --> yes2\n</div>\n\nA <!-- no6 --> yes3.";
    let html = page_of(&with_prose(prose));
    for shown in ["yes1 ", " yes2", "yes3"] {
        assert!(html.contains(shown), "{shown}");
    }
    for hidden in ["no1", "no2", "no3", "no4", "no5", "no6", "--&gt;"] {
        assert!(!html.contains(hidden), "{hidden}");
    }
}

#[test]
fn plans_stand_folded_below_their_experiment_the_last_run_of_each_cell() {
    let text = TEXT.replace("--| runs: 3\n", "--| runs: 3\n--| instruments: [hot]\n");
    let mut sample = Sample::from_text(&text);
    for block in &mut sample.article.blocks {
        if let BlockKind::Experiment(experiment) = &mut block.kind {
            experiment.instruments[0].value.name = "explain".to_owned();
        }
    }
    let columns = [
        ("indexes", "numeric"),
        ("run", "integer"),
        ("plan", "json"),
        ("text", "text"),
    ];
    let rows = [
        ("0", "1", "Sort"),
        ("0", "2", "Seq Scan on t  (a < 1)"),
        ("8", "1", "Limit"),
    ];
    let value = |text: &str, column: usize| Value::from_postgres(Some(text), columns[column].1);
    let table = Table {
        columns: columns
            .map(|(name, type_name)| Column::new(name, type_name))
            .to_vec(),
        rows: rows
            .map(|(indexes, run, text)| {
                vec![
                    value(indexes, 0),
                    value(run, 1),
                    value("[]", 2),
                    value(text, 3),
                ]
            })
            .to_vec(),
    };
    let results = &mut sample.record.experiments["insert"].results;
    results.insert("explain".to_owned(), table);
    let html = sample.file("index.html");
    let shown = "<summary>The plans</summary>
<p class=\"more\">indexes=0, run 2</p>
<pre tabindex=\"0\"><code>Seq Scan on t  (a &lt; 1)</code></pre>
<p class=\"more\">indexes=8, run 1</p>
<pre tabindex=\"0\"><code>Limit</code></pre>
</details>";
    assert!(html.contains(shown), "{html}");
    assert!(!page().contains("<summary>The plan"));
}
