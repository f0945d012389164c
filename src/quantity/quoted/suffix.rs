//! What stands behind the digits: `k`, `million`, and the unit, said in full (`B/row`, `rows per
//! second`), in part (`5,000/s` of rows), or behind another word (`76 dead rows`).

use super::{Reader, is_letter};
use crate::article::BytesMeaning;
use crate::quantity::unit::{Dimension, Term, Unit, known};
use bigdecimal::BigDecimal;

/// What stands behind the digits.
pub(super) struct Suffix {
    pub multiplier: Option<BigDecimal>,
    pub multiplier_end: usize,
    pub unit: Option<Unit>,
    pub end: usize,
}

/// Things that Postgres counts, in the singular. A quote that counts one of them is none of a
/// claim in bytes, or of one that counts another.
const COUNTED: [&str; 26] = [
    "backend",
    "bit",
    "client",
    "column",
    "connection",
    "entry",
    "file",
    "image",
    "index",
    "kbit",
    "key",
    "lock",
    "mbit",
    "gbit",
    "node",
    "page",
    "partition",
    "process",
    "query",
    "record",
    "row",
    "segment",
    "session",
    "table",
    "transaction",
    "worker",
];

/// Words behind a number that begin something else: `76 per row`, `3 of the pages`.
const BETWEEN: [&str; 43] = [
    "a", "across", "after", "against", "an", "and", "are", "as", "at", "before", "between", "by",
    "each", "every", "for", "from", "if", "in", "into", "is", "it", "its", "not", "of", "off",
    "on", "or", "out", "over", "per", "than", "that", "the", "then", "this", "to", "under", "up",
    "was", "were", "when", "while", "with",
];

fn multiplier(word: &str) -> Option<BigDecimal> {
    let exponent = match word {
        "k" | "K" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        _ => match word.to_lowercase().as_str() {
            "thousand" => 3,
            "million" | "mn" => 6,
            "billion" | "bn" => 9,
            "trillion" => 12,
            _ => return None,
        },
    };
    Some(BigDecimal::new(1.into(), -exponent))
}

pub(super) fn is_space(c: char) -> bool {
    matches!(
        c,
        ' ' | '\n' | '\t' | '\u{a0}' | '\u{202f}' | '\u{2009}' | '\u{2007}'
    )
}

pub(super) fn times() -> Unit {
    Unit::new("×", BytesMeaning::Binary)
}

/// A run of letters, or a sign that is a unit by itself.
fn word_at(text: &str) -> &str {
    if let Some(sign @ ('%' | '‰' | '×')) = text.chars().next() {
        return &text[..sign.len_utf8()];
    }
    let end = text.find(|c| !is_letter(c)).unwrap_or(text.len());
    let after = &text[end..];
    // `k8` and `s_1` are names, and so is `B-tree`.
    let is_name = after.starts_with(|c: char| c.is_ascii_digit() || c == '_')
        || (text[..end].chars().count() == 1
            && after
                .strip_prefix('-')
                .is_some_and(|after| after.starts_with(is_letter)));
    if is_name { "" } else { &text[..end] }
}

impl Reader<'_> {
    /// Past one gap between a number and its unit: spaces, or the hyphen of `40-byte`.
    fn past_gap(&self, at: usize) -> usize {
        let rest = self.rest(at);
        let hyphen = rest
            .strip_prefix('-')
            .filter(|after| !word_at(after).is_empty());
        match hyphen {
            Some(after) => self.text.len() - after.len(),
            None => self.text.len() - rest.trim_start_matches(is_space).len(),
        }
    }

    pub(super) fn suffix(&self, at: usize) -> Suffix {
        let mut suffix = Suffix {
            multiplier: None,
            multiplier_end: at,
            unit: None,
            end: at,
        };
        let mut word_start = self.past_gap(at);
        let word = word_at(self.rest(word_start));
        if self.unit_at(word_start).is_none()
            && let Some(by) = multiplier(word)
        {
            suffix.multiplier = Some(by);
            suffix.multiplier_end = word_start + word.len();
            suffix.end = suffix.multiplier_end;
            word_start = self.past_gap(suffix.end);
        }
        if let Some((unit, end)) = self.unit_at(word_start) {
            suffix.unit = Some(unit);
            suffix.end = end;
        }
        suffix
    }

    /// The unit that begins at `at`, or behind a word or two: `76 WAL bytes`, `300,000 dead rows`,
    /// `2,409 index pages`. What is a unit of something else than the claim's is one too, so that
    /// the two are told apart; any other word is prose.
    fn unit_at(&self, at: usize) -> Option<(Unit, usize)> {
        const WORDS_BETWEEN: usize = 2;
        let (start, numerator, mut end) = self.head(at, WORDS_BETWEEN)?;
        let word = &self.text[start..end];
        // `754,000 times` counts; only a claim that is a ratio reads it as one.
        let weak = matches!(word.to_lowercase().as_str(), "times" | "fold" | "ratio");
        if weak && !self.unit.is_none_or(Unit::is_ratio) {
            return None;
        }
        let mut denominators = Vec::new();
        if numerator == Term::count("transactions") && word.eq_ignore_ascii_case("tps") {
            denominators.extend(known("s", self.bytes));
        }
        while let Some((term, length)) = self.denominator_at(end) {
            denominators.push(term);
            end += length;
        }
        let text = self.text[start..end].to_owned();
        Some((Unit::of_terms(text, numerator, denominators), end))
    }

    /// The word that says what the number is of: where it begins, what it is, where it ends.
    fn head(&self, at: usize, words: usize) -> Option<(usize, Term, usize)> {
        let rest = self.rest(at);
        let word = word_at(rest);
        let own = self
            .counted_at(rest)
            .or_else(|| Some((known(word, self.bytes)?, word.len())).filter(|_| !word.is_empty()));
        if let Some((term, length)) = own {
            return Some((at, term, at + length));
        }
        let describes = words > 0
            && word.chars().count() > 1
            && multiplier(word).is_none()
            && !BETWEEN.contains(&word.to_lowercase().as_str());
        let gap = self.rest(at + word.len());
        let next = self.text.len() - gap.trim_start_matches(is_space).len();
        // A letter by itself is a name there: `76 plan B`.
        if describes && gap.starts_with(is_space) && word_at(self.rest(next)).chars().count() > 1 {
            let behind = self.head(next, words - 1);
            if behind.is_some() {
                return behind;
            }
        }
        let other = self.other_noun(word).map(|term| (term, word.len()));
        let (term, length) = other.or_else(|| self.unsaid_at(at, word))?;
        Some((at, term, at + length))
    }

    /// A word that counts things, or nearly is a unit, without being one of the claim's. A claim
    /// without a unit may be of anything.
    fn other_noun(&self, word: &str) -> Option<Term> {
        if word.eq_ignore_ascii_case("tps") {
            return Some(Term::count("transactions"));
        }
        let unit = self.unit?;
        let noun = Term::count(word);
        if let (Dimension::Count(claimed), Dimension::Count(noun)) =
            (&unit.numerator().dimension, &noun.dimension)
            && claimed.rsplit(' ').next() == Some(noun)
        {
            // `200,001 fetches` of `heap fetches`.
            return (!noun.is_empty()).then(|| unit.numerator().clone());
        }
        let counted = match &noun.dimension {
            Dimension::Count(name) => COUNTED.contains(&name.to_lowercase().as_str()),
            _ => false,
        };
        // `Mb` is a bit's, `kb` nobody's: neither is the `kB` of a claim.
        let nearly = matches!(word.len(), 2 | 3)
            && [
                "kb", "mb", "gb", "tb", "pb", "kib", "mib", "gib", "tib", "pib",
            ]
            .contains(&word.to_ascii_lowercase().as_str());
        (counted || nearly).then_some(noun)
    }

    /// The claim's own counted thing: `rows`, `heap fetches`, `tps`.
    fn counted_at(&self, rest: &str) -> Option<(Term, usize)> {
        let numerator = self.unit?.numerator();
        let Dimension::Count(name) = &numerator.dimension else {
            return None;
        };
        let words = name.split(' ').count();
        let mut end = 0;
        for index in 0..words {
            let gap = usize::from(index > 0 && rest[end..].starts_with(' '));
            end += gap + word_at(&rest[end + gap..]).len();
        }
        let found = Term::count(&rest[..end]);
        (end > 0 && found == *numerator).then_some((found, end))
    }

    /// In `5,000/s` and `5,000 inserts per minute` the claim says what is counted.
    fn unsaid_at(&self, at: usize, word: &str) -> Option<(Term, usize)> {
        let numerator = self.unit?.numerator();
        let counted =
            matches!(numerator.dimension, Dimension::Count(_)) && multiplier(word).is_none();
        self.denominator_at(at + word.len())
            .filter(|(below, _)| counted && below.dimension == Dimension::Time)?;
        Some((numerator.clone(), word.len()))
    }

    /// `/row`, `/s`, ` per second`; "per" something that is no time is prose.
    fn denominator_at(&self, at: usize) -> Option<(Term, usize)> {
        let rest = self.rest(at);
        if let Some(after) = rest.strip_prefix('/') {
            let word = word_at(after);
            let term = known(word, self.bytes).unwrap_or_else(|| Term::count(word));
            return (!word.is_empty()).then(|| (term, 1 + word.len()));
        }
        let after = rest.trim_start_matches(is_space);
        let after = after
            .strip_prefix("per")
            .filter(|after| after.starts_with(is_space))?
            .trim_start_matches(is_space);
        let word = word_at(after);
        let term = known(word, self.bytes).filter(|term| term.dimension == Dimension::Time)?;
        Some((term, rest.len() - after.len() + word.len()))
    }
}
