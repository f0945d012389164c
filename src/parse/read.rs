//! Typed values out of YAML nodes. Each reader says what it expected and what it found, at the
//! value's place, and goes on.

use super::problems::{Problems, listed};
use super::yaml::{Entry, Node, Text, Value, found};
use crate::article::Scalar;
use crate::diagnostic::did_you_mean;
use crate::source::{Span, Spanned};
use bigdecimal::BigDecimal;
use indexmap::IndexMap;
use std::str::FromStr;

/// The entries of one mapping, taken out by name; what nobody asked for is an unknown key.
pub struct Fields<'a> {
    problems: &'a Problems<'a>,
    what: &'static str,
    entries: &'a [Entry],
    asked: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub fn new(problems: &'a Problems<'a>, what: &'static str, entries: &'a [Entry]) -> Self {
        Self {
            problems,
            what,
            entries,
            asked: Vec::new(),
        }
    }

    /// The value of `key`, where it has one.
    pub fn take(&mut self, key: &'static str) -> Option<&'a Node> {
        let entry = self.take_entry(key)?;
        if entry.value.is_null() {
            self.problems.error(
                entry.key.span,
                format!("`{key}` has no value"),
                "give it one, or leave the key out",
            );
            return None;
        }
        Some(&entry.value)
    }

    pub fn take_entry(&mut self, key: &'static str) -> Option<&'a Entry> {
        self.asked.push(key);
        self.entries.iter().find(|entry| entry.key.value == key)
    }

    /// Reports every key that was not asked for. `others` may stand too, but are read elsewhere.
    pub fn finish(self, others: &[&str]) {
        for entry in self.entries {
            let key = entry.key.value.as_str();
            if self.asked.contains(&key) || others.contains(&key) {
                continue;
            }
            let known = self.asked.iter().chain(others).copied();
            let hint = did_you_mean(key, known.clone())
                .unwrap_or_else(|| format!("{} has {}", self.what, listed(known)));
            self.problems
                .error(entry.key.span, format!("unknown key `{key}`"), hint);
        }
    }
}

pub fn not_supported_yet(problems: &Problems, span: Span, what: &str) {
    problems.error(
        span,
        format!("{what} is not supported yet by this version"),
        "leave it out for now",
    );
}

fn expected(problems: &Problems, node: &Node, what: &str, hint: &str) {
    problems.error(
        node.span,
        format!("expected {what}, found {}", found(node)),
        hint,
    );
}

/// What a scalar without quotes means.
enum Plain {
    Nothing,
    Boolean(bool),
    Number(BigDecimal),
    /// `010`: eight in YAML 1.1, ten in 1.2.
    LeadingZero,
    NotFinite,
    Text,
}

fn plain(text: &Text) -> Plain {
    if !text.plain {
        return Plain::Text;
    }
    match text.text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => Plain::Nothing,
        "true" | "True" | "TRUE" => Plain::Boolean(true),
        "false" | "False" | "FALSE" => Plain::Boolean(false),
        other => number_or_text(other),
    }
}

fn number_or_text(text: &str) -> Plain {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned.to_ascii_lowercase().as_str(), ".inf" | ".nan") {
        return Plain::NotFinite;
    }
    match decimal(text) {
        None => Plain::Text,
        Some(_)
            if unsigned.len() > 1
                && unsigned.starts_with('0')
                && unsigned.as_bytes()[1].is_ascii_digit() =>
        {
            Plain::LeadingZero
        }
        Some(number) => Plain::Number(number),
    }
}

/// A share such as `2%`, as 0.02.
pub fn percent(text: &str) -> Option<BigDecimal> {
    let number = decimal(text.strip_suffix('%')?.trim_end())?;
    let hundredth = BigDecimal::from_str("0.01").ok()?;
    Some((number * hundredth).normalized())
}

/// A decimal number, exactly; digits may be grouped by single underscores.
pub fn decimal(text: &str) -> Option<BigDecimal> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |part: &str| {
        part.chars().all(|c| c.is_ascii_digit() || c == '_')
            && !part.starts_with('_')
            && !part.ends_with('_')
            && !part.contains("__")
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_is_small = exponent.is_none_or(|exponent| {
        exponent
            .parse::<i32>()
            .is_ok_and(|power| power.abs() <= 1000)
    });
    if whole.len() + fraction.len() == 0
        || whole.len() + fraction.len() > 2000
        || !digits(whole)
        || !digits(fraction)
        || !exponent_is_small
    {
        return None;
    }
    let cleaned = text.replace('_', "");
    let cleaned = cleaned.strip_prefix('+').unwrap_or(&cleaned);
    BigDecimal::from_str(cleaned).ok()
}

impl Problems<'_> {
    pub fn entries<'n>(&self, node: &'n Node, hint: &str) -> Option<&'n [Entry]> {
        match &node.value {
            Value::Mapping(entries) => Some(entries),
            _ => {
                expected(self, node, "a mapping", hint);
                None
            }
        }
    }

    /// Any scalar, as written.
    pub fn text(&self, node: &Node) -> Option<String> {
        match &node.value {
            Value::Scalar(text) if !node.is_null() => Some(text.text.clone()),
            _ => {
                let raw = &self.source.text[node.span.range()];
                let hint = if raw.starts_with("{{") {
                    "quote a text that begins with `{{`: `\"{{ … }}\"`"
                } else {
                    "write one text; quote it where it holds `: ` or begins with `[` or `{`"
                };
                expected(self, node, "a text", hint);
                None
            }
        }
    }

    pub fn spanned_text(&self, node: &Node) -> Option<Spanned<String>> {
        self.text(node).map(|text| Spanned::new(text, node.span))
    }

    pub fn boolean(&self, node: &Node) -> Option<bool> {
        if let Value::Scalar(text) = &node.value
            && let Plain::Boolean(value) = plain(text)
        {
            return Some(value);
        }
        expected(self, node, "true or false", "write `true` or `false`");
        None
    }

    pub fn number(&self, node: &Node) -> Option<BigDecimal> {
        if let Value::Scalar(text) = &node.value
            && let Plain::Number(number) = plain(text)
        {
            return Some(number);
        }
        expected(
            self,
            node,
            "a number",
            "write digits alone, without quotes or unit",
        );
        None
    }

    /// A whole number that is at least `least`.
    pub fn count_of(&self, node: &Node, least: u32) -> Option<u32> {
        let number = self.number(node)?;
        let whole = number
            .is_integer()
            .then(|| number.with_scale(0).to_string());
        match whole.and_then(|digits| digits.parse::<u32>().ok()) {
            Some(count) if count >= least => Some(count),
            _ => {
                expected(
                    self,
                    node,
                    &format!("a whole number of at least {least}"),
                    &format!("write a number such as `{}`", least.max(3)),
                );
                None
            }
        }
    }

    /// A value of a param or a matrix.
    pub fn scalar(&self, node: &Node) -> Option<Scalar> {
        let what = "a number, a text, true or false";
        let Value::Scalar(text) = &node.value else {
            expected(self, node, what, "write one value");
            return None;
        };
        match plain(text) {
            Plain::Boolean(value) => Some(Scalar::Boolean(value)),
            Plain::Number(number) => Some(Scalar::Number(number)),
            Plain::Text => Some(Scalar::Text(text.text.clone())),
            Plain::Nothing => {
                expected(self, node, what, "write a value; an empty text is `\"\"`");
                None
            }
            Plain::LeadingZero => {
                self.error(
                    node.span,
                    format!("`{}` may be an octal number or a decimal one", text.text),
                    "leave out the leading zero, or quote it to have a text",
                );
                None
            }
            Plain::NotFinite => {
                expected(self, node, what, "quote it to have a text");
                None
            }
        }
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&self, node: &Node, choices: &[(&str, T)]) -> Option<T> {
        let names = || choices.iter().map(|(name, _)| *name);
        if let Value::Scalar(text) = &node.value {
            if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text.text) {
                return Some(*value);
            }
            let hint = did_you_mean(&text.text, names())
                .unwrap_or_else(|| format!("write one of {}", listed(names())));
            expected(self, node, &format!("one of {}", listed(names())), &hint);
        } else {
            let hint = format!("write one of {}", listed(names()));
            expected(self, node, "a word", &hint);
        }
        None
    }

    pub fn items<'n>(&self, node: &'n Node, hint: &str) -> Option<&'n [Node]> {
        match &node.value {
            Value::Sequence(items) => Some(items),
            _ => {
                expected(self, node, "a list", hint);
                None
            }
        }
    }

    /// A list of texts; one text is a list of one.
    pub fn texts(&self, node: &Node) -> Vec<Spanned<String>> {
        match &node.value {
            Value::Sequence(items) => items
                .iter()
                .filter_map(|item| self.spanned_text(item))
                .collect(),
            _ => self.spanned_text(node).into_iter().collect(),
        }
    }

    /// Names and texts, in the order written, each name checked by `check`.
    pub fn named_texts(
        &self,
        node: &Node,
        hint: &str,
        check: impl Fn(&Self, &Spanned<String>) -> bool,
    ) -> IndexMap<String, Spanned<String>> {
        let mut texts = IndexMap::new();
        for entry in self.entries(node, hint).unwrap_or_default() {
            let named = check(self, &entry.key);
            if let Some(text) = self.spanned_text(&entry.value)
                && named
            {
                texts.insert(entry.key.value.clone(), text);
            }
        }
        texts
    }

    /// A lower-case name: of a block, a claim, a column.
    pub fn is_name(&self, name: &Spanned<String>) -> bool {
        let valid = is_name(&name.value);
        if !valid {
            self.error(
                name.span,
                format!("`{}` cannot be a name", name.value),
                "a name is made of lower-case letters, digits and `_`, and begins with a letter",
            );
        }
        valid && self.fits_postgres(&name.value, name.span)
    }

    /// Postgres cuts longer names off, and two of them may then be one.
    pub fn fits_postgres(&self, name: &str, span: Span) -> bool {
        const NAMEDATALEN: usize = 64;
        let fits = name.len() < NAMEDATALEN;
        if !fits {
            self.error(
                span,
                format!("`{name}` is too long: a name in Postgres has 63 bytes at most"),
                "give it a shorter name",
            );
        }
        fits
    }

    /// A date as `YYYY-MM-DD`.
    pub fn date(&self, node: &Node) -> Option<String> {
        let text = self.text(node)?;
        if is_date(&text) {
            return Some(text);
        }
        self.error(
            node.span,
            format!("`{text}` is not a date"),
            "write a date of the calendar as `YYYY-MM-DD`",
        );
        None
    }
}

/// `[a-z][a-z0-9_]*`
pub fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else {
        return false;
    };
    let number = |part: &str, length: usize| {
        (part.len() == length && part.bytes().all(|b| b.is_ascii_digit()))
            .then(|| part.parse::<u32>().unwrap_or(0))
    };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2))
    else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// A node as JSON, for what is handed on as it is.
pub fn json(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Sequence(items) => items.iter().map(json).collect(),
        Value::Mapping(entries) => entries
            .iter()
            .map(|entry| (entry.key.value.clone(), json(&entry.value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Scalar(text) => match plain(text) {
            Plain::Nothing => serde_json::Value::Null,
            Plain::Boolean(value) => value.into(),
            Plain::Number(number) => {
                let plain_text = number.to_plain_string();
                serde_json::Number::from_str(&plain_text)
                    .map_or_else(|_| plain_text.into(), serde_json::Value::Number)
            }
            _ => text.text.clone().into(),
        },
    }
}
