//! Which numbers of a text are figures. Most numbers in a post are not: dates, versions,
//! ordinals, labels, names of machines and of settings. Entry: [`figures`].

use crate::article::BytesMeaning;
use crate::quantity::quoted::is_letter;
use crate::quantity::{Shape, numeral};
use std::ops::Range;

/// What is known about the text beside its words.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub is_heading: bool,
    /// The article's Postgres; its number is a name wherever it stands.
    pub version: &'a str,
    /// Ranges of the text whose numbers are none of ours.
    pub bound: &'a [Range<usize>],
}

/// The figures of `text`, each with its unit (`43 buffers` is `43`, `1.3 to 1.8 µs` is one).
pub(super) fn figures(text: &str, context: &Context) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut label: Option<usize> = None;
    while let Some(start) = next_digit(text, at) {
        if let Some(bound) = context.bound.iter().find(|bound| bound.contains(&start)) {
            at = bound.end;
            label = None;
            continue;
        }
        let number = Number::read(text, start, label);
        match number.kind(context) {
            Kind::Figure => {
                found.push(start..number.whole_end());
                label = None;
                at = number.whole_end();
            }
            Kind::Label => {
                label = Some(number.end);
                at = number.end;
            }
            Kind::Name => {
                label = None;
                at = number.token_end();
            }
        }
    }
    found
}

fn next_digit(text: &str, from: usize) -> Option<usize> {
    let digit = text[from..].find(|c: char| c.is_ascii_digit())? + from;
    let point = text[from..digit].ends_with('.')
        && text[..digit - 1]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace);
    Some(if point { digit - 1 } else { digit })
}

enum Kind {
    Figure,
    /// A version or the number of a figure; more may follow it: `16, 17 and 18`.
    Label,
    /// A part of a name, a date, an address: the whole token is.
    Name,
}

/// One number with what stands around it.
struct Number<'a> {
    text: &'a str,
    start: usize,
    /// Behind the digits, points and group separators.
    end: usize,
    /// Where the label before it ended, if there was one.
    label: Option<usize>,
}

impl<'a> Number<'a> {
    fn read(text: &'a str, start: usize, label: Option<usize>) -> Self {
        let bytes = text.as_bytes();
        let mut end = start;
        let digit_at = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        while digit_at(end) || matches!(bytes.get(end), Some(b'.' | b',')) && digit_at(end + 1) {
            end += 1;
        }
        Self {
            text,
            start,
            end,
            label,
        }
    }

    fn kind(&self, context: &Context) -> Kind {
        if self.is_name() || self.is_date() || self.is_time() {
            return Kind::Name;
        }
        if self.is_enumeration(context) || self.is_idiom() || self.is_ordinal() {
            return Kind::Name;
        }
        if self.is_version(context) || self.follows_label() {
            return Kind::Label;
        }
        Kind::Figure
    }

    // ---- what is around -----------------------------------------------------------------------

    fn digits(&self) -> &'a str {
        &self.text[self.start..self.end]
    }

    fn before(&self) -> &'a str {
        &self.text[..self.start]
    }

    fn after(&self) -> &'a str {
        &self.text[self.end..]
    }

    /// What precedes the number without a space.
    fn prefix(&self) -> &'a str {
        let start = self.before().rfind(ends_token).map_or(0, |at| {
            at + self.text[at..].chars().next().map_or(0, char::len_utf8)
        });
        &self.text[start..self.start]
    }

    fn token_end(&self) -> usize {
        let length = self.after().find(ends_token);
        length.map_or(self.text.len(), |length| self.end + length)
    }

    fn token(&self) -> &'a str {
        &self.text[self.start - self.prefix().len()..self.token_end()]
    }

    /// The letters right behind the number.
    fn letters(&self) -> &'a str {
        leading_letters(self.after())
    }

    fn previous_word(&self) -> &'a str {
        word_before(
            self.before()
                .trim_end_matches(|c: char| c.is_whitespace() || "([\"'“‘*".contains(c)),
        )
    }

    fn next_word(&self) -> &'a str {
        let after = self.after();
        let after = after.trim_start_matches(|c: char| c.is_whitespace());
        leading_letters(after)
    }

    /// Behind the unit or the second number of a range.
    fn whole_end(&self) -> usize {
        match numeral(&self.text[self.start..], None, BytesMeaning::Binary) {
            Ok(numeral) if numeral.range.start == 0 => self.end.max(self.start + numeral.range.end),
            _ => self.end,
        }
    }

    /// Whether a unit or a multiplier belongs to it, or something counted follows.
    fn measures(&self) -> bool {
        let measured = match numeral(&self.text[self.start..], None, BytesMeaning::Binary) {
            Ok(numeral) if numeral.range.start > 0 => false,
            // `9.6 to 18` may be two versions.
            Ok(numeral) if matches!(numeral.shape, Shape::Range { .. }) => numeral.unit.is_some(),
            Ok(numeral) => self.start + numeral.range.end > self.end,
            Err(_) => false,
        };
        measured || self.counts()
    }

    /// Whether the next word is something that posts about databases count.
    fn counts(&self) -> bool {
        COUNTED.contains(&self.next_word().to_lowercase().as_str())
    }

    fn integer(&self) -> Option<u64> {
        self.digits().parse().ok()
    }

    /// `16`, `16.15`: no groups, no unit.
    fn is_version_like(&self) -> bool {
        !self.digits().contains(',') && self.digits().len() <= 5 && !self.measures()
    }

    // ---- what it is ---------------------------------------------------------------------------

    /// Part of an identifier, an address, a setting, a path.
    fn is_name(&self) -> bool {
        let (token, prefix, letters) = (self.token(), self.prefix(), self.letters());
        let behind = &self.after()[letters.len()..];
        let unknown_letters =
            !letters.is_empty() && self.whole_end() == self.end && !matches!(letters, "x" | "xx");
        prefix.contains(|c: char| is_letter(c) || c == '_' || c == '#')
            || token.contains("://")
            || token.contains('_') && token.contains(is_letter)
            || token.contains('@')
            || token.contains('\\')
            || self.previous_word() == "="
            // `5950X`, `2xlarge`, `4e1fad3`.
            || unknown_letters && !is_ordinal_ending(letters)
            || !letters.is_empty() && behind.starts_with(|c: char| c.is_ascii_digit() || c == '_')
            // `file.2`, `16.x`
            || self.after().strip_prefix('.').is_some_and(|rest| {
                rest.starts_with(|c: char| is_letter(c))
            })
            // Addresses, and versions of three parts.
            || self.digits().matches('.').count() > 1
            || self.before().ends_with('(')
                && self.before().trim_end_matches('(').ends_with(|c: char| c.is_alphanumeric() || c == '_')
            // `1:N`
            || self.after().strip_prefix(':').is_some_and(|rest| rest.starts_with(is_letter))
    }

    fn is_ordinal(&self) -> bool {
        is_ordinal_ending(self.letters())
    }

    /// `2026-11-30`, `9/20/2024`, `November 8`, `8 November`, `2024`, `the 1990s`.
    fn is_date(&self) -> bool {
        let token = self.token();
        let parts = |separator: char| {
            let mut parts = token.split(separator).map(|part| {
                let end = part.find(|c: char| !c.is_ascii_digit());
                end.unwrap_or(part.len())
            });
            (parts.next(), parts.next(), parts.next())
        };
        if matches!(parts('-'), (Some(4), Some(2), _)) {
            return true;
        }
        if matches!(parts('/'), (Some(1 | 2), Some(1 | 2), Some(2 | 4))) {
            return true;
        }
        let day = self.integer().is_some_and(|day| (1..=31).contains(&day));
        let by_month = is_month(self.previous_word()) || is_month(self.next_word());
        if day && by_month && !self.digits().contains('.') && !self.measures() {
            return true;
        }
        self.is_year()
    }

    fn is_year(&self) -> bool {
        // From Postgres's first grandparent to where 2048 is a power of two.
        let year = self.digits().len() == 4
            && self
                .integer()
                .is_some_and(|year| (1970..2048).contains(&year));
        let decade = self.letters() == "s" && self.digits().ends_with('0');
        year && (decade || !self.measures())
    }

    /// `18:06`, `18:06:25`, `10 am`, `1:1`.
    fn is_time(&self) -> bool {
        if matches!(self.next_word(), "am" | "pm" | "AM" | "PM" | "UTC" | "GMT") {
            return true;
        }
        let Some(rest) = self.after().strip_prefix(':') else {
            return false;
        };
        let second = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let hour = self.integer().is_some_and(|hour| hour < 24);
        let minute = second == 2 && rest[..2].parse().is_ok_and(|minute: u8| minute < 60);
        hour && minute || self.digits() == "1" && &rest[..second] == "1"
    }

    /// `1.`, `2)`, `(3)`, and the number of a heading.
    fn is_enumeration(&self, context: &Context) -> bool {
        let at_start = self
            .before()
            .trim_matches(['(', ' ', '\u{fffc}'])
            .is_empty();
        let closed = self.after().starts_with([')', '.', ':'])
            && self.after()[1..]
                .chars()
                .next()
                .is_none_or(char::is_whitespace);
        let small = self.integer().is_some_and(|number| number < 100);
        if at_start && closed && small {
            return true;
        }
        let title_follows =
            self.after().starts_with(' ') && self.next_word().starts_with(char::is_uppercase);
        let numbered = small || self.digits().split('.').all(|part| part.len() < 3);
        if context.is_heading && at_start && numbered && title_follows && !self.measures() {
            return true;
        }
        let in_parentheses = self.after().starts_with(')')
            && (self.before().ends_with('(') || self.before().ends_with(' '));
        small && in_parentheses && self.opened_here()
    }

    /// `(3)`, or `3)` that no parenthesis was opened for.
    fn opened_here(&self) -> bool {
        let count = |parenthesis| self.before().matches(parenthesis).count();
        self.before().ends_with('(') || count('(') <= count(')')
    }

    fn is_idiom(&self) -> bool {
        let after = self.after();
        let compound = after
            .strip_prefix('-')
            .map(leading_letters)
            .unwrap_or_default();
        let interval = after.trim_start_matches(['%', ' ']);
        NO_FIGURES.contains(&compound)
            || self.digits() == "24" && after.starts_with("/7")
            || self.digits() == "95"
                && ["confidence", "interval", "CI"]
                    .iter()
                    .any(|word| interval.starts_with(word))
    }

    /// `PostgreSQL 16`, `Docker 29.5`, `Figure 1`, `port 5432`.
    fn is_version(&self, context: &Context) -> bool {
        if self.digits() == context.version && context.version.contains('.') && !self.measures() {
            return true;
        }
        if !self.is_version_like() {
            return false;
        }
        let word = self.previous_word();
        let plain = word.trim_end_matches('.').to_lowercase();
        let early = matches!(self.next_word(), "beta" | "rc" | "RC" | "alpha");
        if early || LABELS.contains(&plain.as_str()) || PRODUCTS.contains(&plain.as_str()) {
            return true;
        }
        is_proper(word, self.before()) && !FUNCTION_WORDS.contains(&plain.as_str())
    }

    /// `17` and `18` in `Postgres 16, 17 and 18`.
    fn follows_label(&self) -> bool {
        let Some(label) = self.label else {
            return false;
        };
        let between = self.text[label..self.start].trim();
        let joined = match between {
            "and" | "or" | "to" | "through" | "–" | "-" | "/" | "&" | ", and" | ", or" | "vs"
            | "versus" => true,
            // `on Postgres 16, 3 indexes`
            "," => {
                let next = self.next_word();
                next.is_empty() || matches!(next, "and" | "or" | "to" | "through")
            }
            _ => false,
        };
        joined && self.is_version_like()
    }
}

fn ends_token(c: char) -> bool {
    c.is_whitespace() || "()[]{}\"“”‘’;,—–…!?|".contains(c)
}

fn leading_letters(text: &str) -> &str {
    let end = text.find(|c| !is_letter(c)).unwrap_or(text.len());
    &text[..end]
}

fn word_before(text: &str) -> &str {
    let start = text.rfind(|c: char| c.is_whitespace() || "([—–,;:".contains(c));
    start.map_or(text, |start| {
        &text[start + text[start..].chars().next().map_or(0, char::len_utf8)..]
    })
}

fn is_ordinal_ending(letters: &str) -> bool {
    matches!(letters, "st" | "nd" | "rd" | "th")
}

fn is_month(word: &str) -> bool {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let word = word.trim_end_matches('.');
    // Months are written with a capital; `may 3` is a verb.
    word.starts_with(char::is_uppercase)
        && word.len() >= 3
        && MONTHS
            .iter()
            .any(|month| month.starts_with(&word.to_lowercase()))
}

/// A name: with a capital that the start of a sentence does not explain.
fn is_proper(word: &str, before: &str) -> bool {
    let capitals = word.chars().filter(|c| c.is_uppercase()).count();
    if capitals == 0 {
        return false;
    }
    if capitals > 1 || !word.starts_with(char::is_uppercase) {
        return true;
    }
    let before = before.trim_end();
    let sentence = before[..before.len() - word.len().min(before.len())].trim_end();
    !(sentence.is_empty() || sentence.ends_with(['.', '!', '?', ':', '•', '\u{fffc}']))
}

/// Words that number things: `Figure 1`, `step 3`, `port 5432`.
#[rustfmt::skip]
const LABELS: &[&str] = &[
    "figure", "figures", "fig", "figs", "table", "chart", "charts", "listing", "section", "sections", "chapter",
    "chapters", "part", "step", "steps", "page", "line", "lines", "run", "round", "level", "stage", "phase", "layer",
    "appendix", "footnote", "note", "item", "question", "rule", "option", "case", "experiment", "example", "equation",
    "issue", "bug", "ticket", "commit", "patch", "port", "day", "week", "row", "column", "slot", "block", "no", "nr",
    "number", "lesson", "tip", "version", "versions", "release", "releases", "beta", "rc", "alpha", "pr", "rfc", "iso",
    "cve", "errno", "code", "id", "oid", "pid", "attempt", "test", "claim", "quarter",
];

/// Names that stand before a version also at the start of a sentence.
#[rustfmt::skip]
const PRODUCTS: &[&str] = &[
    "postgres", "postgresql", "pg", "pgbench", "psql", "pgbouncer", "postgis", "timescaledb", "citus", "mysql", "mariadb",
    "sqlite", "oracle", "docker", "podman", "kubernetes", "linux", "kernel", "ubuntu", "debian", "alpine", "fedora",
    "rhel", "macos", "windows", "python", "rust", "go", "java", "node", "ruby", "php", "glibc", "icu", "llvm", "gcc",
    "clang", "zfs", "openssl", "redis", "kafka", "graviton", "xeon", "epyc", "ryzen", "core", "apple",
];

/// Words that a heading writes with a capital all the same.
#[rustfmt::skip]
const FUNCTION_WORDS: &[&str] = &[
    "a", "an", "the", "at", "of", "in", "on", "to", "with", "by", "from", "for", "and", "or", "is", "are", "was", "were",
    "per", "than", "about", "only", "over", "under", "up", "all", "every", "each", "after", "before", "between", "cost",
    "costs", "just", "nearly", "almost", "around", "some", "into", "it", "its", "has", "have", "takes", "took", "got",
    "not", "but", "as", "if", "when", "why", "how", "what", "that", "this", "these", "those", "they", "we", "i", "you",
    "then", "so", "with", "without", "adding", "writing", "inserting", "updating", "deleting", "loading", "first", "last",
];

/// What posts about databases count: a number before one of these is never a year or a label.
#[rustfmt::skip]
const COUNTED: &[&str] = &[
    "rows", "row", "tuples", "pages", "page", "blocks", "buffers", "records", "images", "indexes", "indices", "columns",
    "tables", "partitions", "transactions", "connections", "clients", "sessions", "threads", "workers", "cores", "cpus",
    "vcpus", "locks", "segments", "files", "inserts", "updates", "deletes", "queries", "statements", "writes", "reads",
    "hits", "misses", "fetches", "scans", "keys", "values", "entries", "samples", "runs", "rounds", "times", "iterations",
    "percent", "bytes", "points", "seconds", "minutes", "hours", "days", "weeks", "months", "years", "children", "parents",
    "orders", "customers", "users", "events", "dead", "extra", "more", "fewer", "million", "billion", "thousand",
];

/// `64-bit`, `1-based`, `2-phase` name a kind, they give no amount.
#[rustfmt::skip]
const NO_FIGURES: &[&str] = &["bit", "based", "indexed", "way", "phase", "tier", "stage", "part", "step", "dimensional"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_whatever_makes_it_panic_or_overlap() {
        #[rustfmt::skip]
        let pieces = [
            "1", "23", "2026", "000", "x", ",", ".", " ", "\u{a0}", "-", "–", "+", "k", "s", "B", "/", "to ", "and ", "(", ")",
            ":", "=", "_", "#", "é", "行", "\u{fffc}", "th", "Postgres ", "May ", "%", "\n", "—", "¹", "٣", "@", "\\",
        ];
        let mut state: u64 = 7;
        let mut next = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let context = Context {
            is_heading: true,
            version: "16.15",
            bound: &[],
        };
        for _ in 0..20_000 {
            let length = 1 + next(10);
            let text: String = (0..length).map(|_| pieces[next(pieces.len())]).collect();
            let mut at = 0;
            for found in figures(&text, &context) {
                assert!(
                    found.start >= at && text.get(found.clone()).is_some(),
                    "{text}"
                );
                at = found.end;
            }
        }
    }
}
