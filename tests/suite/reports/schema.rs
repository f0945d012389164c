//! Checks a document against a schema. As much of JSON Schema and of XML Schema as the schemas here
//! use: a word that is not understood ends the test, so that nothing passes unread.

use roxmltree::{Document, Node};
use serde_json::Value;
use std::collections::BTreeMap;

/// Everything in the document that the JSON schema does not allow.
pub fn json_violations(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, document, "", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let words = schema.as_object().expect("a schema is an object");
    for (word, rule) in words {
        let ok = match word.as_str() {
            "$ref" => {
                let pointer = rule.as_str().unwrap().strip_prefix('#').unwrap();
                check(root, root.pointer(pointer).unwrap(), value, at, found);
                true
            }
            "type" => match rule {
                Value::Array(types) => types.iter().any(|one| is_of_type(one, value)),
                one => is_of_type(one, value),
            },
            "enum" => rule.as_array().unwrap().contains(value),
            "properties" => {
                for (name, rule) in rule.as_object().unwrap() {
                    if let Some(part) = value.get(name) {
                        check(root, rule, part, &format!("{at}/{name}"), found);
                    }
                }
                true
            }
            "required" => {
                let missing = |name: &&Value| value.get(name.as_str().unwrap()).is_none();
                !value.is_object() || !rule.as_array().unwrap().iter().any(|name| missing(&name))
            }
            "additionalProperties" => {
                let known = words.get("properties").and_then(Value::as_object);
                for (name, part) in value.as_object().into_iter().flatten() {
                    if known.is_some_and(|known| known.contains_key(name)) {
                        continue;
                    }
                    match rule {
                        Value::Bool(true) => {}
                        Value::Bool(false) => found.push(format!("{at}: `{name}` is not known")),
                        rule => check(root, rule, part, &format!("{at}/{name}"), found),
                    }
                }
                true
            }
            "items" => {
                for (index, part) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, part, &format!("{at}/{index}"), found);
                }
                true
            }
            "minItems" => {
                let least = rule.as_u64().unwrap() as usize;
                value.as_array().is_none_or(|items| items.len() >= least)
            }
            "uniqueItems" => value.as_array().is_none_or(|items| {
                let again = |(index, item)| items[..index].contains(item);
                !items.iter().enumerate().any(again)
            }),
            "minimum" => value
                .as_f64()
                .is_none_or(|number| number >= rule.as_f64().unwrap()),
            "maximum" => value
                .as_f64()
                .is_none_or(|number| number <= rule.as_f64().unwrap()),
            "anyOf" | "oneOf" => {
                let fits = |rule: &&Value| {
                    let mut inner = Vec::new();
                    check(root, rule, value, at, &mut inner);
                    inner.is_empty()
                };
                let fitting = rule.as_array().unwrap().iter().filter(fits).count();
                if word == "anyOf" {
                    fitting > 0
                } else {
                    fitting == 1
                }
            }
            "format" => value
                .as_str()
                .is_none_or(|text| is_of_format(rule.as_str().unwrap(), text)),
            // The only texts with one that a report has are versions.
            "pattern" => value.as_str().is_none_or(|text| {
                assert_eq!(rule, "[0-9]+(\\.[0-9]+){3}", "{at}: {text} has a pattern");
                false
            }),
            "description" | "title" | "default" | "definitions" | "$schema" | "$id" => true,
            other => panic!("the schema says `{other}`, which is not understood here"),
        };
        if !ok {
            found.push(format!("{at}: {value} is not as `{word}` says: {rule}"));
        }
    }
}

fn is_of_type(wanted: &Value, value: &Value) -> bool {
    match wanted.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("{other}"),
    }
}

fn is_of_format(format: &str, text: &str) -> bool {
    match format {
        "uri" | "uri-reference" => {
            let allowed =
                |b: u8| b.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&b);
            text.bytes().all(allowed) && (format != "uri" || text.contains(':'))
        }
        other => panic!("the schema says format `{other}`, which is not understood here"),
    }
}

/// Everything in the XML document that the XML schema does not allow.
pub fn xml_violations(schema: &str, document: &str) -> Vec<String> {
    let schema = Document::parse(schema).unwrap();
    let elements = named(&schema, "element");
    let document = match Document::parse(document) {
        Ok(document) => document,
        Err(error) => return vec![error.to_string()],
    };
    let root = document.root_element();
    let mut found = Vec::new();
    match elements.get(root.tag_name().name()) {
        Some(declared) => element(&schema, *declared, root, &mut found),
        None => found.push(format!("`{}` is no root", root.tag_name().name())),
    }
    found
}

/// What the schema declares at its top, by name.
fn named<'d>(schema: &'d Document, kind: &str) -> BTreeMap<&'d str, Node<'d, 'd>> {
    let top = schema.root_element().children();
    let declared = top.filter(|node| node.tag_name().name() == kind);
    declared
        .filter_map(|node| Some((node.attribute("name")?, node)))
        .collect()
}

fn element(schema: &Document, declared: Node, node: Node, found: &mut Vec<String>) {
    let name = node.tag_name().name();
    let inline = declared
        .children()
        .find(|child| child.tag_name().name() == "complexType");
    let complex = match declared.attribute("type") {
        Some("xs:string") => {
            if node.children().any(|child| child.is_element()) {
                found.push(format!("`{name}` holds more than text"));
            }
            return;
        }
        Some(other) => named(schema, "complexType")[other],
        None => inline.unwrap(),
    };
    attributes(complex, node, found);
    let mixed = complex.attribute("mixed") == Some("true");
    let has_text = node
        .children()
        .any(|child| child.is_text() && !child.text().unwrap().trim().is_empty());
    if has_text && !mixed {
        found.push(format!("`{name}` holds text"));
    }
    content(schema, complex, node, found);
}

fn attributes(complex: Node, node: Node, found: &mut Vec<String>) {
    let name = node.tag_name().name();
    let declared = complex
        .children()
        .filter(|child| child.tag_name().name() == "attribute");
    let declared: BTreeMap<&str, Node> = declared
        .map(|child| (child.attribute("name").unwrap(), child))
        .collect();
    for attribute in node.attributes() {
        match declared
            .get(attribute.name())
            .map(|rule| rule.attribute("type").unwrap())
        {
            Some("xs:string") => {}
            // No report has a time.
            Some(other) => panic!("`{}` is a {other}", attribute.name()),
            None => found.push(format!("`{name}` has no attribute `{}`", attribute.name())),
        }
    }
    for (attribute, rule) in &declared {
        if rule.attribute("use") == Some("required") && node.attribute(*attribute).is_none() {
            found.push(format!("`{name}` lacks `{attribute}`"));
        }
    }
}

/// Choices and sequences here have one thing in them, any number of times: only which is asked.
fn content(schema: &Document, complex: Node, node: Node, found: &mut Vec<String>) {
    let elements = named(schema, "element");
    let mut allowed = BTreeMap::new();
    for rule in complex
        .descendants()
        .filter(|rule| rule.is_element() && *rule != complex)
    {
        match rule.tag_name().name() {
            "choice" | "sequence" => {
                let inner = rule.children().filter(|child| child.is_element()).count();
                let many = rule.attribute("maxOccurs") == Some("unbounded");
                assert!(many || inner == 1, "an order that is not understood here");
            }
            "element" => {
                let name = rule.attribute("ref").unwrap();
                allowed.insert(name, elements[name]);
            }
            "attribute" => {}
            other => panic!("the schema says `{other}`, which is not understood here"),
        }
    }
    for child in node.children().filter(|child| child.is_element()) {
        let name = child.tag_name().name();
        match allowed.get(name) {
            Some(declared) => element(schema, *declared, child, found),
            None => found.push(format!("`{name}` in `{}`", node.tag_name().name())),
        }
    }
}

#[test]
fn what_a_schema_does_not_allow_is_found() {
    let schema = serde_json::json!({
        "type": "object",
        "required": ["a"],
        "additionalProperties": false,
        "properties": {
            "a": {"enum": [1, 2]},
            "b": {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/word"}},
            "c": {"type": "string", "format": "uri-reference"},
        },
        "definitions": {"word": {"type": ["string", "null"]}},
    });
    for (document, violations) in [
        (
            serde_json::json!({"a": 1, "b": ["x", null], "c": "a/b%20c"}),
            0,
        ),
        (serde_json::json!({"b": ["x"]}), 1),
        (serde_json::json!({"a": 3, "b": [], "c": "a b", "d": 1}), 4),
        (serde_json::json!({"a": 1, "b": [1, "x", true]}), 2),
        (serde_json::json!([]), 1),
    ] {
        let found = json_violations(&schema, &document);
        assert_eq!(found.len(), violations, "{document}: {found:?}");
    }
    let schema = super::read("tests/schemas/junit-10.xsd");
    let suite = |inside: &str| {
        format!("<testsuite name='a' tests='1' failures='0' errors='0'>{inside}</testsuite>")
    };
    for (document, violations) in [
        (suite(""), 0),
        (
            suite("<testcase name='a'><skipped message='b'/></testcase>"),
            0,
        ),
        (suite("<testcase><skipped why='b'/></testcase>"), 2),
        (suite("<testcase name='a'>text<case/></testcase>"), 2),
        (suite("<failure message='b'/>"), 1),
        ("<testsuite name='a'/>".to_owned(), 3),
        ("<report/>".to_owned(), 1),
        ("<testsuite".to_owned(), 1),
    ] {
        let found = xml_violations(&schema, &document);
        assert_eq!(found.len(), violations, "{document}: {found:?}");
    }
}
