//! The YAML at the top of an article.

use super::Known;
use super::problems::{Problems, listed};
use super::protocol::runs;
use super::read::{Fields, decimal};
use super::yaml::{self, Node, Value};
use crate::article::{
    BytesMeaning, FrontMatter, LintLevel, PostgresSpec, Profile, PublishedSource, Scalar,
    TextWithFillIns,
};
use crate::diagnostic::did_you_mean;
use crate::source::{Extract, Span, Spanned};
use bigdecimal::BigDecimal;
use indexmap::IndexMap;
use std::collections::BTreeMap;

/// Always a profile: the params as they stand.
pub const FULL_PROFILE: &str = "full";

/// Finds the lines between `---` and `---`: what stands between them, and the whole. A byte order
/// mark before them is passed over.
pub fn find(text: &str) -> Option<(Extract, Span)> {
    let begin = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut lines = text[begin..].split_inclusive('\n');
    let first = lines.next()?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut yaml = Extract::default();
    let mut at = begin + first.len();
    for line in lines {
        if line.trim_end() == "---" {
            return Some((yaml, Span::new(begin, at + line.trim_end().len())));
        }
        yaml.push(line, at);
        at += line.len();
    }
    None
}

/// Reads the front matter. Where something required is missing, that is told, and what can be
/// read comes back all the same, so that the rest of the article can be checked against it.
pub fn read(yaml: &Extract, span: Span, known: &Known, problems: &Problems) -> Option<FrontMatter> {
    let entries = yaml::mapping(yaml, problems)?;
    let opening = Span::new(span.start, span.start + 3);
    let mut fields = Fields::new(problems, "the front matter", &entries);
    let title = fields.take("title");
    if title.is_none() {
        problems.error(opening, "the article has no `title`", "add `title: …`");
    }
    let title = title
        .and_then(|node| problems.text_with_fill_ins(node))
        .unwrap_or_else(|| TextWithFillIns {
            span: opening,
            ..TextWithFillIns::default()
        });
    let description = fields
        .take("description")
        .and_then(|node| problems.text_with_fill_ins(node));
    let date = fields.take("date").and_then(|node| problems.date(node));
    let updated = fields.take("updated").and_then(|node| problems.date(node));
    let authors = values(fields.take("authors"), problems);
    let tags = values(fields.take("tags"), problems);
    let lang = fields.take("lang").and_then(|node| lang(node, problems));
    let draft = fields.take("draft").and_then(|node| problems.boolean(node));
    let published_source = fields
        .take("source")
        .and_then(|node| published_source(node, problems));
    let postgres = postgres(fields.take("postgres"), opening, known, problems);
    let seed = fields.take("seed").and_then(|node| seed(node, problems));
    let bytes = fields.take("bytes").and_then(|node| bytes(node, problems));
    let params = fields
        .take("params")
        .map_or_else(IndexMap::new, |node| params(node, problems));
    let profiles = fields
        .take("profiles")
        .map_or_else(IndexMap::new, |node| profiles(node, &params, problems));
    let lint = fields
        .take("lint")
        .map_or_else(BTreeMap::new, |node| lint(node, known, problems));
    fields.take_entry("extra");
    fields.finish(&[]);
    Some(FrontMatter {
        span,
        title,
        description,
        date,
        updated,
        authors,
        tags,
        lang: lang.unwrap_or_else(|| "en".to_owned()),
        draft: draft.unwrap_or(false),
        published_source,
        postgres,
        seed: seed.unwrap_or_default(),
        bytes: bytes.unwrap_or_default(),
        params,
        profiles,
        lint,
    })
}

fn values(node: Option<&Node>, problems: &Problems) -> Vec<String> {
    node.map_or_else(Vec::new, |node| problems.texts(node))
        .into_iter()
        .map(|text| text.value)
        .collect()
}

fn lang(node: &Node, problems: &Problems) -> Option<String> {
    let text = problems.text(node)?;
    let valid = text.split('-').enumerate().all(|(index, part)| {
        (1..=8).contains(&part.len())
            && part.chars().all(|c| c.is_ascii_alphanumeric())
            && (index > 0 || (part.len() > 1 && part.chars().all(|c| c.is_ascii_alphabetic())))
    });
    if !valid {
        problems.error(
            node.span,
            format!("`{text}` is not a language tag"),
            "write a BCP 47 tag such as `en` or `pt-BR`",
        );
    }
    Some(text)
}

fn published_source(node: &Node, problems: &Problems) -> Option<PublishedSource> {
    let entries = problems.entries(
        node,
        "write `source: {title: …, url: …, author: …, date: …}`",
    )?;
    let mut fields = Fields::new(problems, "`source`", entries);
    let source = PublishedSource {
        title: fields.take("title").and_then(|node| problems.text(node)),
        url: fields.take("url").and_then(|node| problems.text(node)),
        author: fields.take("author").and_then(|node| problems.text(node)),
        date: fields.take("date").and_then(|node| problems.date(node)),
    };
    fields.finish(&[]);
    Some(source)
}

fn postgres(
    node: Option<&Node>,
    opening: Span,
    known: &Known,
    problems: &Problems,
) -> PostgresSpec {
    let mut spec = PostgresSpec {
        version: Spanned::new(String::new(), opening),
        versions: Vec::new(),
        settings: BTreeMap::new(),
        extensions: Vec::new(),
        shm_size: None,
        memory: None,
        cpus: None,
        platform: None,
    };
    let place = node.map_or(opening, |node| node.span);
    let entries = node.map(|node| problems.entries(node, "write `postgres: {version: \"…\"}`"));
    if let Some(None) = entries {
        return spec;
    }
    let mut fields = Fields::new(
        problems,
        "`postgres`",
        entries.flatten().unwrap_or_default(),
    );
    let several = fields.take_entry("versions");
    match fields.take("version") {
        Some(node) if several.is_some() => problems.error(
            node.span,
            "`version` and `versions` in one article",
            "`versions: [\"16.15\", \"18.6\"]` runs every experiment on each: keep one of the two",
        ),
        Some(node) => {
            if let Some(version) = problems.spanned_text(node) {
                check_version(&version, known, problems);
                spec.version = version;
            }
        }
        None if several.is_some() => {}
        None => problems.error(
            place,
            "the article names no version of Postgres",
            format!("add `postgres: {{version: \"…\"}}`; {}", versions(known)),
        ),
    }
    if let Some(entry) = several {
        spec.versions = several_versions(&entry.value, known, problems);
        if let Some(first) = spec.versions.first() {
            spec.version = first.clone();
        }
    }
    if let Some(node) = fields.take("settings") {
        spec.settings = settings(node, problems)
            .into_iter()
            .map(|(name, value)| (name, value.value))
            .collect();
    }
    if let Some(node) = fields.take("extensions") {
        spec.extensions = problems.texts(node);
        for extension in &spec.extensions {
            check_extension(extension, problems);
        }
    }
    spec.shm_size = fields
        .take("shm_size")
        .and_then(|node| size(node, problems));
    spec.memory = fields.take("memory").and_then(|node| size(node, problems));
    spec.cpus = fields.take("cpus").and_then(|node| {
        let number = problems.number(node)?;
        if number <= BigDecimal::default() {
            problems.error(
                node.span,
                "`cpus` has to be above zero",
                "write a number such as `2`",
            );
        }
        problems.text(node)
    });
    spec.platform = fields
        .take("platform")
        .and_then(|node| platform(node, problems));
    fields.finish(&[]);
    spec
}

/// `linux/arm64`, as images name it.
fn platform(node: &Node, problems: &Problems) -> Option<Spanned<String>> {
    let platform = problems.spanned_text(node)?;
    let parts: Vec<&str> = platform.value.split('/').collect();
    let is_word = |word: &&str| {
        !word.is_empty()
            && (word.bytes()).all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    if matches!(parts.as_slice(), ["linux", _] | ["linux", _, _]) && parts.iter().all(is_word) {
        return Some(platform);
    }
    problems.error(
        node.span,
        format!("`{}` is no platform of an image", platform.value),
        "write it as `linux/amd64` or `linux/arm64`",
    );
    None
}

/// Each once, in the order written.
fn several_versions(node: &Node, known: &Known, problems: &Problems) -> Vec<Spanned<String>> {
    let mut versions: Vec<Spanned<String>> = Vec::new();
    for version in problems.texts(node) {
        if let Some(first) = versions.iter().find(|one| one.value == version.value) {
            problems.duplicate(
                version.span,
                first.span,
                format!("version `{}` comes twice", version.value),
                "name it once",
            );
            continue;
        }
        check_version(&version, known, problems);
        versions.push(version);
    }
    if versions.is_empty() && matches!(&node.value, Value::Sequence(items) if items.is_empty()) {
        let hint = format!("name at least one; {}", self::versions(known));
        problems.error(node.span, "`versions` names no version of Postgres", hint);
    }
    versions
}

fn check_version(version: &Spanned<String>, known: &Known, problems: &Problems) {
    if known.versions.contains(&version.value) {
        return;
    }
    let near = did_you_mean(&version.value, known.versions.iter().map(String::as_str));
    let pinned = versions(known);
    problems.error(
        version.span,
        format!("Postgres `{}` is not pinned", version.value),
        match near {
            Some(near) => format!("{near} {pinned}"),
            None => format!("{pinned}; `remeasure pin` adds one"),
        },
    );
}

fn versions(known: &Known) -> String {
    if known.versions.is_empty() {
        "pins.yaml holds no version yet".to_owned()
    } else {
        format!("pins.yaml holds {}", listed(known.versions))
    }
}

fn check_extension(extension: &Spanned<String>, problems: &Problems) {
    let valid = !extension.value.is_empty()
        && extension
            .value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if !valid {
        problems.error(
            extension.span,
            format!("`{}` cannot be the name of an extension", extension.value),
            "write the name as `CREATE EXTENSION` takes it",
        );
    }
}

/// Names and values of server or session settings, values as written.
pub fn settings(node: &Node, problems: &Problems) -> IndexMap<String, Spanned<String>> {
    problems.named_texts(node, "write `{work_mem: 64MB, …}`", |problems, name| {
        let valid = name
            .value
            .starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name
                .value
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
        if !valid {
            problems.error(
                name.span,
                format!("`{}` cannot be the name of a setting", name.value),
                "write the name as `SHOW` takes it",
            );
        }
        valid
    })
}

fn size(node: &Node, problems: &Problems) -> Option<String> {
    let text = problems.text(node)?;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let valid = decimal(digits.trim_end()).is_some()
        && matches!(
            unit,
            "B" | "kB" | "KB" | "MB" | "GB" | "TB" | "KiB" | "MiB" | "GiB"
        );
    if !valid {
        problems.error(
            node.span,
            format!("`{text}` is not a size"),
            "write a number with its unit, such as `512MB` or `1GB`",
        );
    }
    Some(text)
}

fn seed(node: &Node, problems: &Problems) -> Option<BigDecimal> {
    let seed = problems.number(node)?;
    if seed.abs() > 1 {
        problems.error(
            node.span,
            format!(
                "`seed` has to lie between -1 and 1, found `{}`",
                seed.to_plain_string()
            ),
            "it goes to Postgres's `setseed()`",
        );
    }
    Some(seed)
}

pub fn bytes(node: &Node, problems: &Problems) -> Option<BytesMeaning> {
    problems.choice(
        node,
        &[
            ("binary", BytesMeaning::Binary),
            ("decimal", BytesMeaning::Decimal),
        ],
    )
}

fn params(node: &Node, problems: &Problems) -> IndexMap<String, Scalar> {
    let mut params = IndexMap::new();
    let entries = problems.entries(node, "write `params: {rows: 1000000}`");
    for entry in entries.unwrap_or_default() {
        let name = &entry.key;
        if !is_variable(&name.value) {
            problems.error(
                name.span,
                format!("`{}` cannot be the name of a param", name.value),
                "a name is made of letters, digits and `_`, and begins with a letter",
            );
        } else if matches!(name.value.as_str(), "runs" | "warmup" | "server" | "host") {
            problems.error(
                name.span,
                format!("a param cannot be called `{}`", name.value),
                "profiles and prose know that word with another meaning",
            );
        }
        // Where the value is wrong, that is told; the name is known all the same.
        let value = problems
            .scalar(&entry.value)
            .unwrap_or(Scalar::Boolean(false));
        params.insert(name.value.clone(), value);
    }
    params
}

/// Whether psql and Tera can both name it.
pub fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn profiles(
    node: &Node,
    params: &IndexMap<String, Scalar>,
    problems: &Problems,
) -> IndexMap<String, Profile> {
    let mut profiles = IndexMap::new();
    let entries = problems.entries(node, "write `profiles: {quick: {rows: 100000}}`");
    for entry in entries.unwrap_or_default() {
        problems.is_name(&entry.key);
        let mut profile = Profile::default();
        if !entry.value.is_null() {
            profile = self::profile(&entry.value, params, problems);
        }
        profiles.insert(entry.key.value.clone(), profile);
    }
    profiles
}

fn profile(node: &Node, params: &IndexMap<String, Scalar>, problems: &Problems) -> Profile {
    let mut profile = Profile::default();
    let entries = problems
        .entries(node, "write `{rows: 100000, runs: 3}`")
        .unwrap_or_default();
    let mut fields = Fields::new(problems, "a profile", entries);
    profile.runs = fields.take("runs").and_then(|node| runs(node, problems));
    profile.warmup = fields
        .take("warmup")
        .and_then(|node| problems.count_of(node, 0));
    let names: Vec<&str> = params.keys().map(String::as_str).collect();
    fields.finish(&names);
    for entry in entries {
        let name = entry.key.value.as_str();
        if params.contains_key(name)
            && let Some(value) = problems.scalar(&entry.value)
        {
            profile.params.insert(name.to_owned(), value);
        }
    }
    profile
}

fn lint(node: &Node, known: &Known, problems: &Problems) -> BTreeMap<String, LintLevel> {
    let mut levels = BTreeMap::new();
    let entries = problems
        .entries(node, "write `lint: {unbound: warn}`")
        .unwrap_or_default();
    let mut fields = Fields::new(problems, "`lint`", entries);
    for &rule in known.lint_rules {
        let level = fields.take(rule).and_then(|node| {
            problems.choice(
                node,
                &[
                    ("ignore", LintLevel::Ignore),
                    ("warn", LintLevel::Warn),
                    ("error", LintLevel::Error),
                ],
            )
        });
        levels.extend(level.map(|level| (rule.to_owned(), level)));
    }
    fields.finish(&[]);
    levels
}
