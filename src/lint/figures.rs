//! Which numbers of a text are figures. Most numbers in a post are not: dates, versions,
//! ordinals, labels, names of machines and of settings. Entry: [`figures`].

use super::prose::OBJECT;
use super::words::{
    COUNTED, FUNCTION_WORDS, HEADS, JOINS, LABELS, LEADS, NO_FIGURES, PRODUCTS, VERSIONING,
};
use crate::article::BytesMeaning;
use crate::quantity::quoted::is_letter;
use crate::quantity::{Shape, numeral};
use std::collections::BTreeSet;
use std::ops::Range;

/// What is known about the text beside its words.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub is_heading: bool,
    /// Bare numbers in it name things: a cell of a column of versions, dates or ports.
    pub is_label: bool,
    /// The article's Postgres; its number is a name wherever it stands.
    pub versions: &'a [&'a str],
    /// Names whose values are set and not measured.
    pub settings: &'a BTreeSet<String>,
    /// Ranges of the text whose numbers are none of ours.
    pub bound: &'a [Range<usize>],
}

/// The figures of `text`, each with its unit (`43 buffers` is `43`, `1.3 to 1.8 µs` is one).
pub(super) fn figures(text: &str, context: &Context) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut label: Option<usize> = None;
    while let Some(start) = next_digit(text, at) {
        // Ascending, as links do not nest.
        let next = context.bound.partition_point(|bound| bound.end <= start);
        if let Some(bound) = context
            .bound
            .get(next)
            .filter(|bound| bound.contains(&start))
        {
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

/// Whether numbers below this head of a column name things: `Version`, `Postgres`, `Year`.
pub(super) fn heads_labels(head: &str) -> bool {
    let mut words = head
        .split(|c: char| !is_letter(c))
        .filter(|word| !word.is_empty());
    let name = |word: &str| HEADS.contains(&word.to_lowercase().as_str());
    words.next().is_some_and(name) && words.next().is_none_or(name)
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

/// A word without what stands around it, in lower case.
fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric())
        .to_lowercase()
}

/// How many bytes around a number may say what it is.
const NEAR: usize = 300;

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
        if self.is_name() || self.is_date() || self.is_time() || self.is_setting(context) {
            return Kind::Name;
        }
        if context.is_label && !self.measures() {
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

    /// What precedes the number without a space. Of a token without an end only the nearest part
    /// is looked at, as everywhere: work must not grow with the square of a text.
    fn prefix(&self) -> &'a str {
        let near = self.near_before();
        let start = near.rfind(ends_token).map_or(0, |at| {
            at + near[at..].chars().next().map_or(0, char::len_utf8)
        });
        &near[start..]
    }

    fn near_before(&self) -> &'a str {
        &self.before()[self
            .text
            .floor_char_boundary(self.start.saturating_sub(NEAR))..]
    }

    fn token_end(&self) -> usize {
        let near = &self.after()[..self.after().floor_char_boundary(NEAR)];
        self.end + near.find(ends_token).unwrap_or(near.len())
    }

    fn token(&self) -> &'a str {
        &self.text[self.start - self.prefix().len()..self.token_end()]
    }

    /// The letters right behind the number.
    fn letters(&self) -> &'a str {
        leading_letters(self.after())
    }

    fn previous_word(&self) -> &'a str {
        word_before(self.before_word())
    }

    /// Up to the end of the word before, also past a comparison: `kernel >= 4.18`.
    fn before_word(&self) -> &'a str {
        let trimmed = |text: &'a str| {
            text.trim_end_matches(|c: char| c.is_whitespace() || "([\"'“‘*<>≤≥~≈".contains(c))
        };
        let before = trimmed(self.near_before());
        match before.strip_suffix(">=").or(before.strip_suffix("<=")) {
            Some(compared) => trimmed(compared),
            None => before,
        }
    }

    /// The words before in the same clause, the nearest first.
    fn words_before(&self) -> impl Iterator<Item = &'a str> {
        let near = self.near_before();
        let clause = near.rfind([';', '!', '?']).map_or(0, |at| at + 1);
        let clause = &near[clause..];
        let clause = clause.rfind(". ").map_or(clause, |at| &clause[at + 2..]);
        clause.split_whitespace().rev().take(10)
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
        prefix.contains(|c: char| is_letter(c) || "_#^§".contains(c))
            || self.after().starts_with('^')
            // `007`, `01`: no amount is written so.
            || self.digits().starts_with('0') && self.digits()[1..].starts_with(|c: char| c.is_ascii_digit())
            || self.is_option()
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

    /// `-c 8`, `--jobs 4`
    fn is_option(&self) -> bool {
        let option = self.previous_word().trim_start_matches('-');
        option.len() < self.previous_word().len() && option.starts_with(char::is_alphabetic)
    }

    /// `work_mem at 4 MB`, `fillfactor of 25`
    fn is_setting(&self, context: &Context) -> bool {
        let name = self.words_before().find(|word| !LEADS.contains(word));
        let edge = |c: char| "\"'“”‘’(`*".contains(c);
        name.is_some_and(|name| context.settings.contains(name.trim_matches(edge)))
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
                .is_none_or(|c| c.is_whitespace() || c == OBJECT);
        let small = self.integer().is_some_and(|number| number < 100);
        // `… no change. 2. Drop the index`
        let new_sentence = self.after().starts_with('.')
            && self.next_sentence().starts_with(char::is_uppercase)
            && self.before().trim_end().ends_with(['.', '!', '?']);
        if (at_start || new_sentence) && closed && small {
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

    fn next_sentence(&self) -> &'a str {
        self.after().trim_start_matches(['.', ' ', OBJECT])
    }

    /// `(3)`, or `3)` that no parenthesis was opened for.
    fn opened_here(&self) -> bool {
        let near = self.near_before();
        let count = |parenthesis| near.matches(parenthesis).count();
        self.before().ends_with('(') || count('(') <= count(')')
    }

    fn is_idiom(&self) -> bool {
        let after = self.after();
        let compound = after
            .strip_prefix('-')
            .map(leading_letters)
            .unwrap_or_default();
        let interval = after.trim_start_matches(['%', ' ']);
        let width =
            self.next_word() == "bit" && matches!(self.digits(), "8" | "16" | "32" | "64" | "128");
        let reading = ["min read", "minute read", "minutes read", "mins read"];
        width
            || reading
                .iter()
                .any(|words| after.trim_start_matches([' ', '-']).starts_with(words))
            || NO_FIGURES.contains(&compound)
            || self.digits() == "24" && after.starts_with("/7")
            || self.digits() == "95"
                && ["confidence", "interval", "CI"]
                    .iter()
                    .any(|word| interval.starts_with(word))
    }

    /// `PostgreSQL 16`, `Docker 29.5`, `Figure 1`, `port 5432`.
    fn is_version(&self, context: &Context) -> bool {
        let is_named = |version: &&str| self.digits() == *version && version.contains('.');
        if context.versions.iter().any(is_named) && !self.measures() {
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
        if self.is_released() || self.follows_code() {
            return true;
        }
        let titled = word_before(self.before_word().trim_end_matches(':')).to_lowercase();
        if self.before_word().ends_with(':') && LABELS.contains(&titled.as_str()) {
            return true;
        }
        is_proper(word, self.near_before()) && !FUNCTION_WORDS.contains(&plain.as_str())
    }

    /// `1.2 or later`, `the 1.0 release`, `upgraded from 15 to 16`, `the MSRV is 1.85`, `1.59+`
    fn is_released(&self) -> bool {
        let after = self.after();
        let or_later = ["or", "and"].iter().any(|word| {
            let rest = after.trim_start().strip_prefix(word).unwrap_or_default();
            let rest = leading_letters(rest.trim_start());
            matches!(
                rest,
                "later" | "newer" | "older" | "earlier" | "greater" | "better" | "above" | "up"
            )
        });
        let released = matches!(
            self.next_word(),
            "release" | "releases" | "series" | "branch"
        );
        let decimal = self.digits().contains('.');
        if or_later || released || decimal && after.starts_with('+') {
            return true;
        }
        let led = LEADS.contains(&self.previous_word());
        let versioning = |word: &str| VERSIONING.contains(&bare(word).as_str());
        // `the upgrade to 16 and`, but not `the 27 ciphers`.
        let next = self.next_word();
        let alone = decimal || JOINS.contains(&next) || !next.starts_with(char::is_lowercase);
        led && alone && self.words_before().any(versioning)
    }

    /// `` `rand` 0.10``, where the code is a library's name.
    fn follows_code(&self) -> bool {
        let before = self.before().trim_end();
        let apart = before.len() < self.before().len();
        let version = self.digits().contains('.')
            || self.digits().len() < 3 && !self.next_word().starts_with(char::is_lowercase);
        apart && before.ends_with(OBJECT) && version || self.is_updated()
    }

    /// ``update `syn` from 1 to 2``
    fn is_updated(&self) -> bool {
        let updates = |word: &str| {
            matches!(
                bare(word).as_str(),
                "update" | "updates" | "updated" | "updating"
            )
        };
        let code =
            |word: &str| word.contains(OBJECT) || word == "requirement" || word == "dependency";
        matches!(self.previous_word(), "to" | "from")
            && self.words_before().any(updates)
            && (self.words_before().any(code)
                // `update hashbrown to 0.14`
                || self.digits().contains('.') && self.words_before().nth(2).is_some_and(updates))
    }

    /// `17` and `18` in `Postgres 16, 17 and 18`.
    fn follows_label(&self) -> bool {
        let Some(label) = self.label else {
            return false;
        };
        let between = self.text[label..self.start].trim();
        // `on Postgres 16, 3 indexes`
        let listed = between == "," && {
            let next = self.next_word();
            next.is_empty() || matches!(next, "and" | "or" | "to" | "through")
        };
        let joined = listed || JOINS.contains(&between);
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
            is_label: false,
            versions: &["16.15"],
            settings: &BTreeSet::new(),
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
