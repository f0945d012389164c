//! JSON whose numbers stay the text they were written as.

use indexmap::IndexMap;
use serde_json::value::RawValue;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    Null,
    Boolean(bool),
    /// As it stands: `200001.00` and `200001` are two.
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(IndexMap<String, Json>),
}

impl Json {
    /// None where the text is no JSON.
    pub fn parse(text: &str) -> Option<Self> {
        Self::read(serde_json::from_str(text).ok()?)
    }

    fn read(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        Some(match text.as_bytes().first()? {
            b'{' => {
                let fields: IndexMap<String, &RawValue> = serde_json::from_str(text).ok()?;
                let fields = fields.into_iter();
                let read = fields.map(|(name, raw)| Some((name, Self::read(raw)?)));
                Self::Object(read.collect::<Option<_>>()?)
            }
            b'[' => {
                let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                Self::List(items.into_iter().map(Self::read).collect::<Option<_>>()?)
            }
            b'"' => Self::Text(serde_json::from_str(text).ok()?),
            b't' => Self::Boolean(true),
            b'f' => Self::Boolean(false),
            b'n' => Self::Null,
            _ => Self::Number(text.to_owned()),
        })
    }

    pub fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(fields) => fields.get(name),
            _ => None,
        }
    }

    /// The items of a list; of anything else none.
    pub fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// A text or a number, as it is written.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Number(text) => Some(text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_as_they_are_written() {
        let json = Json::parse(r#" [{"a": 200001.00, "b": "x\n", "c": [true, null, -1e-7]}] "#);
        let json = json.unwrap();
        let first = &json.items()[0];
        assert_eq!(first.field("a").unwrap().text(), Some("200001.00"));
        assert_eq!(first.field("b").unwrap().text(), Some("x\n"));
        let items = [
            Json::Boolean(true),
            Json::Null,
            Json::Number("-1e-7".to_owned()),
        ];
        assert_eq!(first.field("c").unwrap().items(), items);
        assert_eq!(Json::parse("{"), None);
        assert_eq!(Json::parse(""), None);
    }
}
