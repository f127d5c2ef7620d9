//! JSON Schema: a validator for the keywords that our descriptions use. An unknown keyword fails the test,
//! so that nothing unchecked passes for checked.

use serde_json::{Map, Value};

/// Keywords without effect on validity.
const ANNOTATIONS: [&str; 5] = ["description", "title", "examples", "default", "deprecated"];

/// A document with internal references only.
pub(crate) struct Schemas(Value);

/// Treatment of fields that a schema does not name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnknownFields {
    /// Allowed, unless the schema says otherwise.
    Allowed,
    /// An error wherever the schema names any field.
    Refused,
}

impl Schemas {
    pub(crate) fn new(document: Value) -> Self {
        Self(document)
    }

    /// The value at a JSON pointer.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Value> {
        self.0.pointer(pointer)
    }

    /// Validates a value; the error says where and why it fails.
    pub(crate) fn check(
        &self,
        schema: &Value,
        value: &Value,
        unknown_fields: UnknownFields,
    ) -> Result<(), String> {
        let check = Check {
            schemas: self,
            unknown_fields,
        };
        check.value(schema, value, "")?;
        if unknown_fields == UnknownFields::Refused {
            check.unknown_fields(&[schema], value, "")?;
        }
        Ok(())
    }

    fn follow<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(to) => {
                let pointer = to.strip_prefix('#').expect("a reference into the document");
                self.follow(
                    self.at(pointer)
                        .unwrap_or_else(|| panic!("nothing at {to}")),
                )
            }
            None => schema,
        }
    }
}

struct Check<'a> {
    schemas: &'a Schemas,
    unknown_fields: UnknownFields,
}

impl Check<'_> {
    fn value(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let schema = schema.as_object().expect("a schema is an object");
        for (keyword, wanted) in schema {
            self.keyword(keyword, wanted, schema, value, at)?;
        }
        Ok(())
    }

    fn keyword(
        &self,
        keyword: &str,
        wanted: &Value,
        schema: &Map<String, Value>,
        value: &Value,
        at: &str,
    ) -> Result<(), String> {
        let fault = |what: &str| Err(format!("{at}: {value} {what} {wanted}"));
        let number = || (value.as_f64(), wanted.as_f64().expect("a number"));
        let chars = || value.as_str().map(|text| text.chars().count() as u64);
        match keyword {
            "$ref" => self.value(
                self.schemas.follow(&Value::Object(schema.clone())),
                value,
                at,
            ),
            "type" => {
                let is_one = match wanted {
                    Value::Array(kinds) => kinds.iter().any(|kind| is_a(kind, value)),
                    kind => is_a(kind, value),
                };
                if is_one {
                    Ok(())
                } else {
                    fault("is not of type")
                }
            }
            "const" if value != wanted => fault("is not"),
            "enum" if !wanted.as_array().expect("a list").contains(value) => fault("is none of"),
            "minimum" if matches!(number(), (Some(is), least) if is < least) => {
                fault("is less than")
            }
            "maximum" if matches!(number(), (Some(is), most) if is > most) => fault("is more than"),
            "minLength" if chars().is_some_and(|count| Some(count) < wanted.as_u64()) => {
                fault("is shorter than")
            }
            "maxLength" if chars().is_some_and(|count| Some(count) > wanted.as_u64()) => {
                fault("is longer than")
            }
            "const" | "enum" | "minimum" | "maximum" | "minLength" | "maxLength" => Ok(()),
            "pattern" => match value.as_str() {
                Some(text) if !is_id(wanted.as_str().expect("a text"), text) => {
                    fault("does not match")
                }
                _ => Ok(()),
            },
            "format" => {
                let is_time = |text: &str| text.parse::<jiff::Timestamp>().is_ok();
                match (wanted.as_str().expect("a text"), value.as_str()) {
                    ("date-time", Some(text)) if !is_time(text) => fault("is no"),
                    ("date-time" | "int32" | "int64" | "double", _) => Ok(()),
                    (other, _) => panic!("the format {other} is not checked here"),
                }
            }
            "required" => {
                let Some(object) = value.as_object() else {
                    return Ok(());
                };
                let mut names = wanted.as_array().expect("a list").iter();
                match names.find(|name| !object.contains_key(name.as_str().expect("a name"))) {
                    Some(missing) => Err(format!("{at}: {missing} is missing")),
                    None => Ok(()),
                }
            }
            "properties" => {
                let each = |(name, schema): (&String, &Value)| match value.get(name) {
                    Some(inner) => self.value(schema, inner, &format!("{at}/{name}")),
                    None => Ok(()),
                };
                wanted
                    .as_object()
                    .expect("schemas")
                    .iter()
                    .try_for_each(each)
            }
            "additionalProperties" => {
                if accepts_anything(wanted) {
                    return Ok(());
                }
                assert_eq!(*wanted, Value::Bool(false), "a schema is not checked here");
                self.unknown_fields(&[&Value::Object(schema.clone())], value, at)
            }
            "items" => {
                let mut entries = value.as_array().into_iter().flatten().enumerate();
                entries.try_for_each(|(place, entry)| {
                    self.value(wanted, entry, &format!("{at}/{place}"))
                })
            }
            "allOf" => {
                let mut all = wanted.as_array().expect("schemas").iter();
                all.try_for_each(|schema| self.value(schema, value, at))
            }
            "oneOf" => {
                let choices = wanted.as_array().expect("schemas");
                let faults: Vec<String> = choices
                    .iter()
                    .filter_map(|schema| self.value(schema, value, at).err())
                    .collect();
                match choices.len() - faults.len() {
                    1 => Ok(()),
                    0 => Err(format!("{at}: none of several: {}", faults.join("; "))),
                    _ => fault("is more than one of"),
                }
            }
            remark if ANNOTATIONS.contains(&remark) => Ok(()),
            other => panic!("the keyword {other} is not checked here"),
        }
    }

    /// Finds fields that none of a value's schemas names.
    fn unknown_fields(&self, schemas: &[&Value], value: &Value, at: &str) -> Result<(), String> {
        let mut leaves = Vec::new();
        for schema in schemas {
            self.leaves(schema, value, &mut leaves);
        }
        let inner = |keyword: &str, name: Option<&str>| -> Vec<&Value> {
            let of = leaves.iter().filter_map(|schema| schema.get(keyword));
            of.filter_map(|found| name.map_or(Some(found), |name| found.get(name)))
                .collect()
        };
        match value {
            Value::Array(list) => list.iter().enumerate().try_for_each(|(place, entry)| {
                self.unknown_fields(&inner("items", None), entry, &format!("{at}/{place}"))
            }),
            Value::Object(object) if !inner("properties", None).is_empty() => {
                object.iter().try_for_each(|(name, member)| {
                    let known = inner("properties", Some(name));
                    let mut open = inner("additionalProperties", None).into_iter();
                    if known.is_empty() && open.any(accepts_anything) {
                        return Ok(());
                    }
                    if known.is_empty() {
                        return Err(format!("{at}: `{name}` is not described"));
                    }
                    match self.unknown_fields {
                        UnknownFields::Refused => {
                            self.unknown_fields(&known, member, &format!("{at}/{name}"))
                        }
                        UnknownFields::Allowed => Ok(()),
                    }
                })
            }
            _ => Ok(()),
        }
    }

    /// The schemas that apply to this value, through references and combinations.
    fn leaves<'s>(&'s self, schema: &'s Value, value: &Value, found: &mut Vec<&'s Value>) {
        let schema = self.schemas.follow(schema);
        found.push(schema);
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.leaves(part, value, found);
        }
        for choice in schema["oneOf"].as_array().into_iter().flatten() {
            if self.value(choice, value, "").is_ok() {
                self.leaves(choice, value, found);
            }
        }
    }
}

fn is_a(kind: &Value, value: &Value) -> bool {
    match kind.as_str().expect("the name of a type") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("the type {other} is not checked here"),
    }
}

/// Ids are the only patterns we use: a prefix and 32 hexadecimal digits.
fn is_id(pattern: &str, text: &str) -> bool {
    let prefix = pattern
        .strip_prefix('^')
        .and_then(|rest| rest.strip_suffix("[0-9a-f]{32}$"))
        .unwrap_or_else(|| panic!("the pattern {pattern} is not checked here"));
    let digits = text.strip_prefix(prefix).unwrap_or_default();
    digits.len() == 32
        && digits
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a schema accepts every value.
fn accepts_anything(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(serde_json::Map::is_empty)
}
