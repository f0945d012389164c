//! Whether a record is still as it was written. Each part of `record.json` has its sha256 at the
//! file's end; what was edited by hand, or put together by a merge, no longer has it.
//!
//! Hashes are of the text itself without the white space between its tokens: line ends and
//! indentation may change, and a field that a later version adds changes no hash of before.
//! `jq -cj .claims record.json | sha256sum` gives the same.

use super::sha256_of;
use indexmap::IndexMap;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::ops::Range;

/// The member of the file that holds the hashes of the others.
pub const SEALS: &str = "sha256";

/// The first format whose files have [`SEALS`].
pub const SEALED_SINCE: u32 = 2;

/// A part that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub message: String,
    /// In the file's text.
    pub place: Range<usize>,
}

/// The sha256 of each part of a record, by the part's name.
pub fn seals(text: &str) -> BTreeMap<String, String> {
    parts(text)
        .into_iter()
        .map(|(name, part)| (name, sha256_of(part.text.as_bytes())))
        .collect()
}

/// What is no longer as it was written, in a text that is known to be a record of this format.
pub fn damage(text: &str, format: u32, sealed: &BTreeMap<String, String>) -> Vec<Damage> {
    // The nearer reason goes first.
    let mut found = wrong_hashes(text, format);
    if format < SEALED_SINCE || !found.is_empty() {
        return found;
    }
    let parts = parts(text);
    for (name, part) in &parts {
        let message = match sealed.get(name) {
            Some(sha256) if *sha256 == sha256_of(part.text.as_bytes()) => continue,
            Some(_) => format!(
                "this record was edited after it was written: {} has no longer the hash that \
                 was written with it",
                described(name)
            ),
            None => format!(
                "this record was edited after it was written: there was no {} when it was",
                described(name)
            ),
        };
        found.push(Damage {
            message,
            place: part.place.clone(),
        });
    }
    for name in sealed.keys().filter(|name| !parts.contains_key(*name)) {
        found.push(Damage {
            message: format!(
                "this record was edited after it was written: {} is gone",
                described(name)
            ),
            place: 0..1,
        });
    }
    found
}

/// A part for people.
fn described(part: &str) -> String {
    match part.split_once('.') {
        Some(("environment", name)) => format!("the environment's `{name}`"),
        Some(("experiments", name)) => format!("experiment `{name}`"),
        _ if part == HEADING => "its heading".to_owned(),
        _ => format!("`{part}`"),
    }
}

/// The part that is everything else: format, article, profile, params.
const HEADING: &str = "heading";

/// A part's text as it is hashed.
struct Part {
    text: String,
    place: Range<usize>,
}

/// What is sealed on its own: small enough to say where an edit is, few enough to read.
fn parts(text: &str) -> BTreeMap<String, Part> {
    let mut parts = BTreeMap::new();
    let mut heading = Vec::new();
    for member in members(text, 0..text.len()) {
        let part = |member: Member| Part {
            text: compact(&text[member.value]),
            place: member.key,
        };
        match member.name.as_str() {
            SEALS => {}
            outer @ ("environment" | "experiments") => {
                for inner in members(text, member.value.clone()) {
                    parts.insert(format!("{outer}.{}", inner.name), part(inner));
                }
            }
            "queries" | "claims" | "tables" | "charts" => {
                parts.insert(member.name.clone(), part(member));
            }
            _ => heading.push(member),
        }
    }
    if let Some(first) = heading.first() {
        let part = Part {
            text: object(text, &heading, &[]),
            place: first.key.clone(),
        };
        parts.insert(HEADING.to_owned(), part);
    }
    parts
}

/// Hashes inside the record that are not those of what they stand beside.
fn wrong_hashes(text: &str, format: u32) -> Vec<Damage> {
    let mut found = Vec::new();
    let mut compare = |stated: Option<&Member>, hashed: &str, message: String| {
        let Some(stated) = stated else { return };
        if text[stated.value.clone()] != format!("\"{}\"", sha256_of(hashed.as_bytes())) {
            let place = stated.value.clone();
            found.push(Damage { message, place });
        }
    };
    let named = |members: &'_ [Member], name: &str| -> Option<Member> {
        members.iter().find(|member| member.name == name).cloned()
    };
    let top = members(text, 0..text.len());
    let others = named(&top, "environments").map(|others| members(text, others.value));
    for environment in named(&top, "environment")
        .into_iter()
        .chain(others.into_iter().flatten())
    {
        let parts = members(text, environment.value);
        let others = named(&parts, "other_servers");
        let others = others.map(|others| members(text, others.value));
        let parts = parts.into_iter().chain(others.into_iter().flatten());
        for part in parts.filter(|part| part.name != "other_servers") {
            // What is hashed of the host was everything once; now it is what decides timings.
            if part.name == "host" && format >= SEALED_SINCE {
                continue;
            }
            let mut inner = members(text, part.value);
            // What the network was like is another matter each time.
            inner.retain(|member| member.name != "network");
            let hashed = object(text, &inner, &["sha256", "engine_reason"]);
            compare(
                named(&inner, "sha256").as_ref(),
                &hashed,
                format!(
                    "this record was edited after it was written: the `sha256` of the \
                     environment's `{}` is not the hash of what stands there",
                    part.name
                ),
            );
        }
    }
    if let Some(experiments) = named(&top, "experiments") {
        for experiment in members(text, experiments.value) {
            let inner = members(text, experiment.value);
            let inputs = named(&inner, "inputs").map(|inputs| compact(&text[inputs.value]));
            compare(
                named(&inner, "fingerprint").as_ref(),
                &inputs.unwrap_or_default(),
                format!(
                    "this record was edited after it was written: the `fingerprint` of \
                     experiment `{}` is not the hash of its `inputs`",
                    experiment.name
                ),
            );
        }
    }
    found
}

/// One `"name": value` of an object.
#[derive(Clone, Debug)]
struct Member {
    name: String,
    key: Range<usize>,
    value: Range<usize>,
}

/// The members of the object that stands in `range`; none where there stands something else.
fn members(text: &str, range: Range<usize>) -> Vec<Member> {
    let found: IndexMap<String, &RawValue> = serde_json::from_str(&text[range]).unwrap_or_default();
    found
        .into_iter()
        .map(|(name, value)| {
            let value = value.get();
            // It is borrowed from the text.
            let start = value.as_ptr() as usize - text.as_ptr() as usize;
            Member {
                key: key(text, start, &name),
                value: start..start + value.len(),
                name,
            }
        })
        .collect()
}

/// Where the name of the value that begins at `start` stands.
fn key(text: &str, start: usize, name: &str) -> Range<usize> {
    let before = text[..start].trim_end().trim_end_matches(':').trim_end();
    let quoted = json_string(name);
    match before.strip_suffix(quoted.as_str()) {
        Some(front) => front.len()..before.len(),
        // Written with escapes of its own.
        None => start..start + 1,
    }
}

fn json_string(text: &str) -> String {
    serde_json::to_string(text).expect("a string serialises")
}

/// Behind the closing quote of the string that opens at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The object again without white space, some values blanked.
fn object(text: &str, members: &[Member], blank: &[&str]) -> String {
    let members: Vec<String> = members
        .iter()
        .map(|member| {
            let value = if blank.contains(&member.name.as_str()) {
                "\"\"".to_owned()
            } else {
                compact(&text[member.value.clone()])
            };
            format!("{}:{value}", json_string(&member.name))
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

/// JSON without the white space between its tokens.
fn compact(json: &str) -> String {
    let bytes = json.as_bytes();
    let mut compact = String::with_capacity(json.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'"' => string_end(bytes, at).min(bytes.len()),
            b' ' | b'\t' | b'\r' | b'\n' => {
                at += 1;
                continue;
            }
            // Up to what is next of these.
            _ => bytes[at..]
                .iter()
                .position(|byte| matches!(byte, b'"' | b' ' | b'\t' | b'\r' | b'\n'))
                .map_or(bytes.len(), |length| at + length),
        };
        compact.push_str(&json[at..end]);
        at = end;
    }
    compact
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_between_tokens_is_no_part_of_a_hash_and_in_strings_it_is() {
        for (json, expected) in [
            ("{ \"a b\" :\r\n [ 1 , null ]\t}", "{\"a b\":[1,null]}"),
            (r#"[ "\" , \\", "é " ]"#, r#"["\" , \\","é "]"#),
            ("true", "true"),
            ("", ""),
        ] {
            assert_eq!(compact(json), expected);
        }
    }

    #[test]
    fn members_are_found_with_their_places() {
        let text = r#" { "a": {"x": [1, {"y": 2}], "z": "}"} , "b\"": 3 , "c": [] } "#;
        let found: Vec<(String, &str)> = members(text, 0..text.len())
            .into_iter()
            .map(|member| (member.name, &text[member.value]))
            .collect();
        let expected = [
            ("a", r#"{"x": [1, {"y": 2}], "z": "}"}"#),
            ("b\"", "3"),
            ("c", "[]"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(found, expected);
        for none in ["{}", "[{\"a\": 1}]", "1", "\"{a:1}\"", ""] {
            assert!(members(none, 0..none.len()).is_empty(), "{none}");
        }
    }
}
