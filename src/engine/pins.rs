//! `articles/pins.yaml`: for each Postgres version used, the official image by digest and the
//! binary archives by sha256, one a platform.
//!
//! [`Pins::read`] takes the file as YAML, then checks every value, and reports all that is wrong
//! at once, each with its place.

use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::source::{Source, Span};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Every pinned version. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pins {
    versions: BTreeMap<String, Pin>,
}

/// One Postgres version, named by content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Such as `16.15`: major and minor, as `server_version` says it.
    pub version: String,
    pub image: Option<Image>,
    /// By [`platform`].
    pub archives: BTreeMap<String, Archive>,
}

/// The official image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub name: String,
    /// Of the multi-platform index: `sha256:` and 64 hex digits.
    pub digest: String,
}

/// A Python wheel that holds the server's binaries as a tar.gz.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    pub package: String,
    pub version: String,
    /// The wheel's platform tag, for pip.
    pub platform: String,
    pub file: String,
    /// sha256 of the wheel, in hex.
    pub wheel: String,
    /// sha256 of the tar.gz inside, in hex.
    pub archive: String,
}

impl Pin {
    pub fn major(&self) -> u32 {
        self.version
            .split('.')
            .next()
            .and_then(|major| major.parse().ok())
            .unwrap_or(0)
    }
}

/// The platform this program runs on, as pins.yaml names it: `linux-x86_64`, `macos-aarch64` ….
pub fn platform() -> String {
    format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

impl Pins {
    pub fn read(path: &Path) -> Result<Self, Vec<Diagnostic>> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            vec![
                Diagnostic::error(format!("cannot read `{name}`: {error}"))
                    .hint("it names the Postgres versions that articles may use"),
            ]
        })?;
        Self::parse(&Source::new(name, path, text))
    }

    pub fn parse(source: &Arc<Source>) -> Result<Self, Vec<Diagnostic>> {
        let options = serde_yaml::options! {
            strict_booleans: true,
            with_snippet: false,
            budget: serde_yaml::budget! {
                max_depth: 16, max_nodes: 20_000, max_anchors: 0, max_aliases: 0
            },
        };
        let file: File = serde_yaml::from_str_with_options(&source.text, options)
            .map_err(|error| vec![yaml_problem(&error, source)])?;
        let mut check = Check {
            source,
            problems: Vec::new(),
        };
        let pins = check.file(file);
        if check.problems.is_empty() {
            Ok(pins)
        } else {
            Err(check.problems)
        }
    }

    /// In ascending order: `9.6` before `16.15`.
    pub fn versions(&self) -> Vec<String> {
        let mut versions: Vec<_> = self.versions.keys().cloned().collect();
        versions.sort_by_key(|version| numbers(version));
        versions
    }

    pub fn version(&self, version: &str) -> Option<&Pin> {
        self.versions.get(version)
    }

    /// What to say beside a version that is not pinned.
    pub fn hint_for_unknown(&self, version: &str) -> String {
        let versions = self.versions();
        did_you_mean(version, versions.iter().map(String::as_str))
            .unwrap_or_else(|| format!("pinned versions are {}", versions.join(", ")))
    }
}

fn numbers(version: &str) -> Vec<u32> {
    version
        .split('.')
        .filter_map(|part| part.parse().ok())
        .collect()
}

type Text = serde_yaml::Spanned<String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    versions: serde_yaml::Spanned<Entries<VersionEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionEntry {
    image: Option<ImageEntry>,
    #[serde(default)]
    archives: Entries<ArchiveEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageEntry {
    name: Text,
    digest: Text,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArchiveEntry {
    package: Text,
    version: Text,
    platform: Text,
    file: Text,
    wheel: Text,
    archive: Text,
}

/// A mapping whose keys keep their place.
struct Entries<V>(Vec<(Text, V)>);

impl<V> Default for Entries<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Entries<V> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<V>(std::marker::PhantomData<V>);

        impl<'de, V: Deserialize<'de>> serde::de::Visitor<'de> for InOrder<V> {
            type Value = Entries<V>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a mapping")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Entries<V>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(InOrder(std::marker::PhantomData))
    }
}

const PLATFORMS: [&str; 4] = [
    "linux-aarch64",
    "linux-x86_64",
    "macos-aarch64",
    "macos-x86_64",
];

/// Turns the file into [`Pins`] and keeps what is wrong with it.
struct Check<'a> {
    source: &'a Arc<Source>,
    problems: Vec<Diagnostic>,
}

impl Check<'_> {
    fn file(&mut self, file: File) -> Pins {
        if file.versions.value.0.is_empty() {
            self.problem("no version is pinned", &file.versions, "add one");
        }
        let versions = file
            .versions
            .value
            .0
            .into_iter()
            .map(|(version, entry)| {
                let parts = numbers(&version.value);
                if parts.len() != 2 || format!("{}.{}", parts[0], parts[1]) != version.value {
                    let message = format!("`{}` is not a Postgres version", version.value);
                    self.problem(
                        message,
                        &version,
                        "write major and minor, such as \"16.15\"",
                    );
                }
                (version.value.clone(), self.pin(version.value, entry))
            })
            .collect();
        Pins { versions }
    }

    fn pin(&mut self, version: String, entry: VersionEntry) -> Pin {
        let image = entry.image.map(|image| {
            match image.digest.value.strip_prefix("sha256:") {
                Some(hex) if is_sha256(hex) => {}
                _ => self.problem(
                    "this is not an image's digest",
                    &image.digest,
                    "write `sha256:` and 64 hex digits",
                ),
            }
            Image {
                name: image.name.value,
                digest: image.digest.value,
            }
        });
        let archives = entry
            .archives
            .0
            .into_iter()
            .map(|(platform, entry)| {
                if !PLATFORMS.contains(&platform.value.as_str()) {
                    let hint = did_you_mean(&platform.value, PLATFORMS)
                        .unwrap_or_else(|| format!("platforms are {}", PLATFORMS.join(", ")));
                    let message = format!("unknown platform `{}`", platform.value);
                    self.problem(message, &platform, hint);
                }
                (platform.value, self.archive(entry))
            })
            .collect();
        Pin {
            version,
            image,
            archives,
        }
    }

    fn archive(&mut self, entry: ArchiveEntry) -> Archive {
        for hash in [&entry.wheel, &entry.archive] {
            if !is_sha256(&hash.value) {
                self.problem(
                    "this is not a sha256",
                    hash,
                    "write 64 lower-case hex digits",
                );
            }
        }
        // These become an argument and a file name.
        for word in [&entry.package, &entry.version, &entry.platform, &entry.file] {
            if !is_plain(&word.value) {
                self.problem(
                    format!("`{}` cannot stand here", word.value),
                    word,
                    "only letters, digits, `.`, `_` and `-`, beginning with a letter or digit",
                );
            }
        }
        Archive {
            package: entry.package.value,
            version: entry.version.value,
            platform: entry.platform.value,
            file: entry.file.value,
            wheel: entry.wheel.value,
            archive: entry.archive.value,
        }
    }

    fn problem<T>(
        &mut self,
        message: impl Into<String>,
        at: &serde_yaml::Spanned<T>,
        hint: impl Into<String>,
    ) {
        let span = span_of(at.referenced, self.source);
        self.problems
            .push(Diagnostic::error(message).at(self.source, span).hint(hint));
    }
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn is_plain(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn yaml_problem(error: &serde_yaml::Error, source: &Arc<Source>) -> Diagnostic {
    let text = error.without_snippet().to_string();
    // The place stands in front of the line anyway.
    let message = text.split(" at line ").next().unwrap_or(&text);
    let diagnostic = Diagnostic::error(message.trim_start_matches("error: ").to_owned());
    match error.location() {
        Some(location) => diagnostic.at(source, span_of(location, source)),
        None => diagnostic.at(source, 0..0),
    }
}

fn span_of(location: serde_yaml::Location, source: &Source) -> Span {
    let span = location.span();
    let start = match span.byte_offset() {
        Some(offset) => offset as usize,
        None => offset_of(location, &source.text),
    };
    let length = span.byte_len().unwrap_or(0) as usize;
    // A mapping's span may reach to the end of the file; its first line is enough.
    let end = (start + length.max(1)).min(source.text.len());
    let line = source.text.get(start..end).unwrap_or("");
    Span::new(start, start + line.find('\n').unwrap_or(line.len()))
}

/// Some errors know their line and column only.
fn offset_of(location: serde_yaml::Location, text: &str) -> usize {
    let line = (location.line() as usize).saturating_sub(1);
    let column = (location.column() as usize).saturating_sub(1);
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let characters = text[start..].chars().take(column);
    start + characters.map(char::len_utf8).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Pins, Vec<Diagnostic>> {
        Pins::parse(&Source::new("pins.yaml", "pins.yaml", text.to_owned()))
    }

    #[test]
    fn the_projects_own_pins_name_both_versions_on_every_platform() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("articles/pins.yaml");
        let pins = Pins::read(&path).unwrap();
        assert_eq!(pins.versions(), ["16.15", "18.6"]);
        for version in pins.versions() {
            let pin = pins.version(&version).unwrap();
            assert_eq!(pin.archives.keys().collect::<Vec<_>>(), PLATFORMS);
            assert!(pin.image.is_some());
            for archive in pin.archives.values() {
                assert_eq!(archive.version, format!("{version}.0"));
                assert!(archive.file.contains(&archive.platform), "{archive:?}");
            }
        }
        assert_eq!(pins.version("18.6").unwrap().major(), 18);
        assert_eq!(pins.version("17.1"), None);
    }

    #[test]
    fn every_problem_is_reported_with_its_place() {
        let text = "versions:\n  \"16\":\n    image: {name: \"postgres:16\", digest: \"md5:1\"}\n    archives:\n      linux-x86:\n        package: ../p\n        version: \"1\"\n        platform: p\n        file: f\n        wheel: abc\n        archive: \"\"\n";
        let problems = parse(text).unwrap_err();
        let places: Vec<_> = problems
            .iter()
            .map(|problem| (problem.location().unwrap(), problem.message.clone()))
            .collect();
        let expected = [
            ("pins.yaml:2:3", "`16` is not a Postgres version"),
            ("pins.yaml:3:42", "this is not an image's digest"),
            ("pins.yaml:5:7", "unknown platform `linux-x86`"),
            ("pins.yaml:10:16", "this is not a sha256"),
            ("pins.yaml:11:18", "this is not a sha256"),
            ("pins.yaml:6:18", "`../p` cannot stand here"),
        ];
        assert_eq!(places.len(), expected.len(), "{places:#?}");
        for (place, (at, message)) in places.iter().zip(expected) {
            assert_eq!((place.0.as_str(), place.1.as_str()), (at, message));
        }
    }

    #[test]
    fn what_is_no_yaml_of_this_form_is_reported_with_its_place() {
        for (text, place, word) in [
            ("versions: {\n", "pins.yaml:1:11", "unclosed"),
            ("versions: {}\n", "pins.yaml:1:11", "no version"),
            ("version: {}\n", "pins.yaml:1:1", "version"),
            ("versions: 5\n", "pins.yaml:1:11", "map"),
            (
                "versions:\n  \"16.1\": {archive: {}}\n",
                "pins.yaml:2:12",
                "archive",
            ),
            (
                "versions:\n  \"16.1\": {}\n  \"16.1\": {}\n",
                "pins.yaml:3:3",
                "duplicate",
            ),
        ] {
            let problems = parse(text).unwrap_err();
            assert_eq!(problems.len(), 1);
            let problem = &problems[0];
            assert_eq!(problem.location().as_deref(), Some(place), "{problem:?}");
            assert!(problem.message.contains(word), "{problem:?}");
        }
    }

    #[test]
    fn versions_ascend_by_number_and_an_unknown_one_gets_a_suggestion() {
        let pins = parse("versions: {\"16.15\": {}, \"9.6\": {}, \"16.2\": {}}\n").unwrap();
        assert_eq!(pins.versions(), ["9.6", "16.2", "16.15"]);
        assert_eq!(pins.hint_for_unknown("16.16"), "did you mean `16.15`?");
        assert_eq!(
            pins.hint_for_unknown("12"),
            "pinned versions are 9.6, 16.2, 16.15"
        );
    }
}
