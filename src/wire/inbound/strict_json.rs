//! Strict JSON: a parser that refuses duplicate keys.
//!
//! A parser that takes the first of two equal keys and one that takes the last see two different
//! messages in the same bytes; here such a text is no JSON at all.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::reader::shown;

/// Reads a text; an object with the same key twice is an error, at any depth.
pub(super) fn from_str(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str::<Strict>(text).map(|strict| strict.0)
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor).map(Self)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(entry)) = entries.next_element()? {
            list.push(entry);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!(
                    "the key {} appears twice",
                    shown(&key)
                )));
            }
            let Strict(value) = entries.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_that_appears_twice_is_an_error_at_any_depth() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"b":[{"a":1,"c":2,"a":3}]}"#,
        ] {
            let error = from_str(text).expect_err(text).to_string();
            assert!(error.contains("the key \"a\" appears twice"), "{error}");
        }
        assert!(from_str(r#"{"a":{"a":1},"b":{"a":1}}"#).is_ok());
    }

    #[test]
    fn a_lone_surrogate_is_an_error() {
        assert!(from_str(r#""\ud800""#).is_err());
        assert!(from_str(r#""\ud83d\ude00""#).is_ok());
    }

    proptest! {
        #[test]
        fn texts_without_duplicate_keys_read_as_usual(
            keys in prop::collection::hash_set(".{0,4}", 0..6),
            number: i64,
        ) {
            let list = serde_json::json!([number, null, true, 0.5, "x"]);
            let value: Value = keys.into_iter().map(|key| (key, list.clone())).collect();
            prop_assert_eq!(from_str(&value.to_string()).unwrap(), value);
        }
    }
}
