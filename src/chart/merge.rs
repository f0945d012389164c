//! Merges a block's `option:` into an ECharts option.

use serde_json::Value;

/// Mappings are merged key by key and lists entry by entry. A mapping over a list goes to each of
/// its entries, so that `series: {smooth: true}` and `xAxis: {min: 0}` mean what they say however
/// many there are. Everything else replaces what is there.
pub fn merge(base: &mut Value, own: &Value) {
    match (base, own) {
        (Value::Object(base), Value::Object(own)) => {
            for (key, value) in own {
                match base.get_mut(key) {
                    Some(there) => merge(there, value),
                    None => {
                        base.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(base), Value::Object(_)) if base.iter().all(Value::is_object) => {
            base.iter_mut().for_each(|entry| merge(entry, own));
        }
        (Value::Array(base), Value::Array(own)) if base.iter().chain(own).all(Value::is_object) => {
            for (index, value) in own.iter().enumerate() {
                match base.get_mut(index) {
                    Some(there) => merge(there, value),
                    None => base.push(value.clone()),
                }
            }
        }
        (base, own) => *base = own.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::merge;
    use serde_json::json;

    #[test]
    fn an_option_is_merged_where_it_belongs() {
        for (base, own, expected) in [
            (json!({"a": 1}), json!({"b": 2}), json!({"a": 1, "b": 2})),
            (
                json!({"a": {"b": 1}}),
                json!({"a": {"c": 2}}),
                json!({"a": {"b": 1, "c": 2}}),
            ),
            (
                json!({"s": [{}, {"a": 1}]}),
                json!({"s": {"a": 2}}),
                json!({"s": [{"a": 2}, {"a": 2}]}),
            ),
            (
                json!({"s": [{"a": 1}]}),
                json!({"s": [{"b": 2}, {"c": 3}]}),
                json!({"s": [{"a": 1, "b": 2}, {"c": 3}]}),
            ),
            (json!({"d": [1, 2]}), json!({"d": [3]}), json!({"d": [3]})),
            (
                json!({"a": {"b": 1}}),
                json!({"a": false}),
                json!({"a": false}),
            ),
            (
                json!({"a": 1}),
                json!({"a": {"b": 1}}),
                json!({"a": {"b": 1}}),
            ),
        ] {
            let mut merged = base.clone();
            merge(&mut merged, &own);
            assert_eq!(merged, expected, "{base} with {own}");
        }
    }
}
