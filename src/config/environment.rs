//! Environment layer: `SWITCHBOARD__SECTION__KEY`.
//!
//! Variables are text; the schema gives the type. The environment itself is a parameter. Touches `known_keys`,
//! `suggestion`, `secret_files` and `tree`.

use std::collections::BTreeMap;

use toml::Value;

use super::error::{Place, Problem};
use super::key::Key;
use super::known_keys::Kind;
use super::schema_check::Validation;
use super::tree::Node;
use super::{secret_files, suggestion};

enum Setting {
    To(Node),
    Unset,
}

impl Validation<'_> {
    pub(crate) fn admit_variables(&mut self, variables: &[(String, String)], tree: &mut Node) {
        let mut ours: Vec<_> = variables.iter().collect();
        ours.sort();
        let mut seen = BTreeMap::new();
        for (name, text) in ours {
            let Some(key) = Key::of_variable(name) else {
                continue;
            };
            match self.setting(name, text, &key, &mut seen) {
                Ok((key, Setting::To(node))) => tree.set(&key, node),
                Ok((key, Setting::Unset)) => drop(tree.remove(&key)),
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    fn setting(
        &self,
        name: &str,
        text: &str,
        key: &Key,
        seen: &mut BTreeMap<Key, String>,
    ) -> Result<(Key, Setting), Problem> {
        let place = Place::Variable(name.to_owned());
        if key.is_too_deep() {
            return Err(suggestion::unknown(key, place));
        }
        let from_file = self.schema.secret_of_file(key);
        let target = from_file.as_ref().unwrap_or(key);
        let Some(kind) = self.schema.kind(target) else {
            return Err(suggestion::unknown_key(self.schema, target, place));
        };
        if let Some(other) = seen.insert(target.clone(), name.to_owned()) {
            return Err(
                Problem::with_key(place, target, format!("is also set by {other}"))
                    .hinting("keep one of the two".to_owned()),
            );
        }
        let setting = match from_file {
            // An empty variable unsets an optional key: compose files pass variables through even when empty.
            Some(_) if text.is_empty() => Ok(Setting::Unset),
            Some(_) => secret_files::read(text, target, &place).map(Setting::To),
            None => read(kind, text, &place).map_err(|refused| refused.problem(key, place)),
        }?;
        Ok((target.clone(), setting))
    }
}

/// Why a text does not fit its key.
struct InvalidText {
    message: String,
    hint: Option<&'static str>,
}

impl InvalidText {
    fn new(kind: Kind, text: &str) -> Self {
        let found = match text {
            "" => "nothing".to_owned(),
            text => format!("`{text}`"),
        };
        Self {
            message: format!("must be {}, found {found}", kind.wanted()),
            hint: None,
        }
    }

    fn hinting(self, hint: &'static str) -> Self {
        Self {
            hint: Some(hint),
            ..self
        }
    }

    fn problem(self, key: &Key, place: Place) -> Problem {
        Problem::with_key(place, key, self.message).hinting(self.hint.map(str::to_owned))
    }
}

fn read(kind: Kind, text: &str, place: &Place) -> Result<Setting, InvalidText> {
    let refused = || InvalidText::new(kind, text);
    let node = |value: Value| Node::of_value(value, place);
    let set = match kind {
        Kind::Optional | Kind::OptionalSecret if text.is_empty() => return Ok(Setting::Unset),
        Kind::Text | Kind::Secret | Kind::OptionalSecret => node(text.into()),
        Kind::Open | Kind::Optional => Node {
            second_reading: text.trim().parse().ok(),
            ..node(text.into())
        },
        Kind::Boolean => node(text.parse::<bool>().map_err(|_| refused())?.into()),
        Kind::Integer => node(text.parse::<i64>().map_err(|_| refused())?.into()),
        Kind::Float => {
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
            node(number.ok_or_else(refused)?.into())
        }
        Kind::List => list(text, place)?,
        // The text is not shown: the table may hold secrets.
        Kind::Table => {
            return Err(InvalidText {
                message: "is a table, and a variable sets one key".to_owned(),
                hint: Some("write `SWITCHBOARD__SECTION__KEY`"),
            });
        }
    };
    Ok(Setting::To(set))
}

/// A TOML list, or plain text with commas.
fn list(text: &str, place: &Place) -> Result<Node, InvalidText> {
    let text = text.trim();
    let refused = || InvalidText::new(Kind::List, text);
    if text.is_empty() {
        return Err(refused().hinting("write `[]` for an empty list"));
    }
    if let Ok(value @ Value::Array(_)) = text.parse::<Value>() {
        return Ok(Node::of_value(value, place));
    }
    // `[::1]:80,[::]:80` begins like a list but is not one.
    if text.starts_with('[') && text.ends_with(']') {
        return Err(refused().hinting(r#"write it as `["a", "b"]` or `a,b`"#));
    }
    let items = || {
        text.split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
    };
    let texts: Vec<Value> = items().map(Value::from).collect();
    let values: Option<Vec<Value>> = items().map(|item| item.parse().ok()).collect();
    Ok(Node {
        second_reading: values.map(Value::Array),
        ..Node::of_value(Value::Array(texts), place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(kind: Kind, text: &str) -> Result<Option<Value>, String> {
        match read(kind, text, &Place::Default) {
            Ok(Setting::To(node)) => Ok(Some(node.to_value())),
            Ok(Setting::Unset) => Ok(None),
            Err(refused) => Err(refused.message),
        }
    }

    #[test]
    fn a_list_is_written_with_commas_or_as_toml() {
        let wanted = Ok(Some(Value::from(vec!["a", "b"])));
        assert_eq!(value(Kind::List, r#"["a", "b"]"#), wanted);
        assert_eq!(value(Kind::List, "a, b,"), wanted);
        assert_eq!(value(Kind::List, "[]"), Ok(Some(Value::Array(Vec::new()))));
        assert!(value(Kind::List, "[a, b]").is_err());
        assert!(value(Kind::List, "[::1]:80,[::]:81").is_ok());
    }

    #[test]
    fn the_empty_text_unsets_what_is_optional_and_is_otherwise_just_empty() {
        assert_eq!(value(Kind::Optional, ""), Ok(None));
        assert_eq!(value(Kind::OptionalSecret, ""), Ok(None));
        assert_eq!(value(Kind::Text, ""), Ok(Some("".into())));
        for kind in [Kind::Boolean, Kind::Integer, Kind::Float, Kind::List] {
            let message = value(kind, "").unwrap_err();
            assert!(message.ends_with(", found nothing"), "{message}");
        }
    }

    #[test]
    fn a_boolean_is_true_or_false_and_nothing_else() {
        assert_eq!(value(Kind::Boolean, "true"), Ok(Some(true.into())));
        assert_eq!(
            value(Kind::Boolean, "yes").unwrap_err(),
            "must be `true` or `false`, found `yes`"
        );
        assert!(value(Kind::Boolean, "1").is_err());
        assert!(value(Kind::Float, "inf").is_err());
    }
}
