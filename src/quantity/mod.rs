//! Values as Postgres gave them: exact decimals from end to end. A number never passes through
//! a float here, NULL never passes for a value.
//!
//! Beside the values: [`mod@unit`] knows which units convert into which, [`quoted`] reads the numerals
//! that people write in prose, [`format`](mod@format) prints numbers for people, [`style`] as one
//! author does.

pub mod format;
pub mod quoted;
pub mod style;
pub mod unit;

pub use format::{Format, UnknownFormat, format};
pub use quoted::{NumeralError, Part, QuotedNumeral, Shape, numeral};
pub use unit::{Conversion, Unit};

use bigdecimal::BigDecimal;
use std::fmt;
use std::str::FromStr;

/// A number as `numeric` knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    Finite(BigDecimal),
    NaN,
    Infinity,
    NegativeInfinity,
}

impl Number {
    pub fn finite(&self) -> Option<&BigDecimal> {
        match self {
            Self::Finite(value) => Some(value),
            _ => None,
        }
    }

    /// For drawing and statistics, where a double is enough.
    pub fn to_f64(&self) -> f64 {
        use bigdecimal::ToPrimitive;
        match self {
            Self::Finite(value) => value.to_f64().unwrap_or(f64::NAN),
            Self::NaN => f64::NAN,
            Self::Infinity => f64::INFINITY,
            Self::NegativeInfinity => f64::NEG_INFINITY,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a number")]
pub struct NotANumber;

impl FromStr for Number {
    type Err = NotANumber;

    /// Reads what Postgres prints for int2 to int8, numeric, float4 and float8.
    fn from_str(text: &str) -> Result<Self, NotANumber> {
        match text {
            "NaN" => Ok(Self::NaN),
            "Infinity" => Ok(Self::Infinity),
            "-Infinity" => Ok(Self::NegativeInfinity),
            _ => BigDecimal::from_str(text)
                .map(Self::Finite)
                .map_err(|_| NotANumber),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finite(value) => f.write_str(&value.to_plain_string()),
            Self::NaN => f.write_str("NaN"),
            Self::Infinity => f.write_str("Infinity"),
            Self::NegativeInfinity => f.write_str("-Infinity"),
        }
    }
}

/// One cell of a result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    Null,
    Boolean(bool),
    Number(Number),
    /// Every other type, as Postgres prints it.
    Text(String),
}

impl Value {
    /// Reads Postgres's text output of a column of type `type_name` (as `format_type` names it).
    pub fn from_postgres(text: Option<&str>, type_name: &str) -> Self {
        let Some(text) = text else {
            return Self::Null;
        };
        if is_numeric_type(type_name) {
            text.parse()
                .map_or_else(|_| Self::Text(text.to_owned()), Self::Number)
        } else if type_name == "boolean" {
            Self::Boolean(text == "t" || text == "true")
        } else {
            Self::Text(text.to_owned())
        }
    }

    /// Postgres's text input for this value; None is NULL.
    pub fn to_postgres(&self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::Boolean(value) => Some(value.to_string()),
            Self::Number(number) => Some(number.to_string()),
            Self::Text(text) => Some(text.clone()),
        }
    }

    pub fn number(&self) -> Option<&Number> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }
}

/// Whether a type (as `format_type` names it) is one of Postgres's number types.
pub fn is_numeric_type(type_name: &str) -> bool {
    matches!(
        type_name,
        "smallint" | "integer" | "bigint" | "numeric" | "real" | "double precision" | "oid"
    )
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A named column and its type as Postgres's `format_type` writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Column {
    pub name: String,
    #[serde(rename = "type")]
    pub type_name: String,
}

impl Column {
    pub fn new(name: impl Into<String>, type_name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            type_name: type_name.into(),
        }
    }
}

/// A result: columns and rows, in the order they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}
