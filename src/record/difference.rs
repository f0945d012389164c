//! What differs between two sets of named texts, such as the inputs of an experiment: one line for
//! a reason, line by line for a script.

use super::Fingerprint;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One input that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub input: String,
    /// None: it is new.
    pub before: Option<String>,
    /// None: it is gone.
    pub now: Option<String>,
}

impl Fingerprint {
    /// What differs from `self` to `now`, by input in order.
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        differences(&self.fields, &now.fields)
    }
}

/// What differs between two maps of texts, by name in order.
pub fn differences(
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Vec<Difference> {
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    names
        .into_iter()
        .map(|name| Difference {
            input: name.clone(),
            before: before.get(name).cloned(),
            now: now.get(name).cloned(),
        })
        .filter(|difference| difference.before != difference.now)
        .collect()
}

impl Difference {
    /// Words of the format are kept under their names in the code, which differ by the capital.
    fn as_written(&self, value: &str) -> String {
        match self.input.as_str() {
            "fresh" | "connect" | "order" => value.to_ascii_lowercase(),
            _ => value.to_owned(),
        }
    }

    /// Its one line says before and now in full.
    pub fn is_short(&self) -> bool {
        let short = |text: &String| !text.contains('\n') && text.chars().count() <= 40;
        self.before.as_ref().is_some_and(short) && self.now.as_ref().is_some_and(short)
    }

    /// Before and now line by line: `-` for a line that is gone, `+` for one that is new, and a
    /// line on each side of them.
    pub fn lines(&self) -> Vec<String> {
        let before: Vec<&str> = self.before.as_deref().unwrap_or_default().lines().collect();
        let now: Vec<&str> = self.now.as_deref().unwrap_or_default().lines().collect();
        with_context(&line_by_line(&before, &now))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.before, &self.now) {
            (Some(before), Some(now)) if self.is_short() => {
                let (before, now) = (self.as_written(before), self.as_written(now));
                write!(f, "{} changed from `{before}` to `{now}`", self.input)
            }
            // Version and engine say it; what follows is a digest.
            (Some(before), Some(now))
                if self.input == "server" && two_words(before) != two_words(now) =>
            {
                let (before, now) = (two_words(before), two_words(now));
                write!(f, "{} changed from `{before}` to `{now}`", self.input)
            }
            (Some(_), Some(_)) => write!(f, "{} changed", self.input),
            (None, _) => write!(f, "{} is new", self.input),
            (_, None) => write!(f, "{} is gone", self.input),
        }
    }
}

fn two_words(text: &str) -> &str {
    let end = text.match_indices(' ').nth(1).map(|(at, _)| at);
    &text[..end.unwrap_or(text.len())]
}

/// Of longer texts what stands between the common beginning and end is gone and new as a whole.
const COMPARED: usize = 1_000;

/// Every line with its mark, by the longest common subsequence.
fn line_by_line<'t>(before: &[&'t str], now: &[&'t str]) -> Vec<(char, &'t str)> {
    let start = (before.iter().zip(now)).take_while(|(a, b)| a == b).count();
    let (head, before, now) = (&before[..start], &before[start..], &now[start..]);
    let end = (before.iter().rev().zip(now.iter().rev()))
        .take_while(|(a, b)| a == b)
        .count();
    let (before, tail) = before.split_at(before.len() - end);
    let now = &now[..now.len() - end];

    let mut lines: Vec<(char, &str)> = head.iter().map(|&line| (' ', line)).collect();
    let common = common_lengths(before, now);
    let (mut a, mut b) = (0, 0);
    while a < before.len() || b < now.len() {
        let length = |a: usize, b: usize| common.as_ref().map_or(0, |common| common[a][b]);
        if a < before.len() && b < now.len() && before[a] == now[b] && common.is_some() {
            lines.push((' ', before[a]));
            (a, b) = (a + 1, b + 1);
        } else if b == now.len() || (a < before.len() && length(a + 1, b) >= length(a, b + 1)) {
            lines.push(('-', before[a]));
            a += 1;
        } else {
            lines.push(('+', now[b]));
            b += 1;
        }
    }
    lines.extend(tail.iter().map(|&line| (' ', line)));
    lines
}

/// How many lines the rests from each pair of lines on have in common; None for too many.
fn common_lengths(before: &[&str], now: &[&str]) -> Option<Vec<Vec<u32>>> {
    if before.len().max(now.len()) > COMPARED {
        return None;
    }
    let mut common = vec![vec![0; now.len() + 1]; before.len() + 1];
    for a in (0..before.len()).rev() {
        for b in (0..now.len()).rev() {
            common[a][b] = if before[a] == now[b] {
                common[a + 1][b + 1] + 1
            } else {
                common[a + 1][b].max(common[a][b + 1])
            };
        }
    }
    Some(common)
}

fn with_context(lines: &[(char, &str)]) -> Vec<String> {
    let changed = |index: usize| lines.get(index).is_some_and(|(mark, _)| *mark != ' ');
    let near =
        |index: usize| changed(index) || changed(index + 1) || (index > 0 && changed(index - 1));
    let mut shown = Vec::new();
    let mut left_out = false;
    for (index, (mark, line)) in lines.iter().enumerate() {
        if near(index) {
            if left_out && !shown.is_empty() {
                shown.push("…".to_owned());
            }
            left_out = false;
            shown.push(format!("{mark} {line}"));
        } else {
            left_out = true;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_server_is_told_by_version_and_engine() {
        let digest = |word: &str| format!("16.15 {word} sha256:{}", "0".repeat(64));
        let told = |before: String, now: String| {
            let difference = Difference {
                input: "server".into(),
                before: Some(before),
                now: Some(now),
            };
            difference.to_string()
        };
        assert_eq!(
            told(digest("embedded"), digest("docker")),
            "server changed from `16.15 embedded` to `16.15 docker`"
        );
        let other = digest("docker").replace('0', "1");
        assert_eq!(told(digest("docker"), other), "server changed");
    }

    #[test]
    fn lines_that_changed_are_shown_with_their_neighbours() {
        let table: &[(&str, &str, &[&str])] = &[
            ("a\nb\nc", "a\nb\nc", &[]),
            ("a", "b", &["- a", "+ b"]),
            ("", "a", &["+ a"]),
            (
                "a\nb\nc\nd\ne",
                "a\nb\nx\nd\ne",
                &["  b", "- c", "+ x", "  d"],
            ),
            (
                "1\n2\n3\n4\n5\n6\n7",
                "0\n1\n2\n3\n4\n5\n6",
                &["+ 0", "  1", "…", "  6", "- 7"],
            ),
            ("a\nb\na", "a\na", &["  a", "- b", "  a"]),
        ];
        for (before, now, expected) in table {
            let difference = Difference {
                input: "measure".into(),
                before: Some((*before).into()),
                now: Some((*now).into()),
            };
            assert_eq!(difference.lines(), *expected, "{before:?} {now:?}");
        }
    }

    #[test]
    fn texts_of_many_lines_are_compared_too() {
        let many: Vec<String> = (0..3 * COMPARED).map(|line| line.to_string()).collect();
        let mut other = many.clone();
        other[COMPARED].push('x');
        other[COMPARED + 1].push('x');
        let difference = |now: &[String]| Difference {
            input: "measure".into(),
            before: Some(many.join("\n")),
            now: Some(now.join("\n")),
        };
        let expected = ["  999", "- 1000", "- 1001", "+ 1000x", "+ 1001x", "  1002"];
        assert_eq!(difference(&other).lines(), expected);
        let reversed: Vec<String> = many.iter().rev().cloned().collect();
        assert_eq!(difference(&reversed).lines().len(), 6 * COMPARED);
    }
}
