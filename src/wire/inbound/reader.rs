//! Reader: deserialises a JSON value into a message type and names the field at fault.
//!
//! A serde deserialiser of its own, for three rules that `serde_json` has no place for: every fault
//! names its field by the path in the message (also a missing one), every text is checked for control
//! characters, and `null` is the same as absent, because that is how many clients spell it.

use std::fmt;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, Expected, IntoDeserializer as _,
    MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

use super::Rejected;

/// How much of a client's own text an error message repeats.
const SHOWN_CHARS: usize = 40;
/// The longest path that an error message names, in bytes.
const PATH_BYTES: usize = 120;

/// Reads the value at `root`, which is empty for the message itself.
pub(super) fn read<T: DeserializeOwned>(value: Value, root: &str) -> Result<T, Fault> {
    let path = Path::Root(root);
    T::deserialize(Node { value, path }).map_err(|fault| fault.located(path))
}

/// Why a value was not accepted: the text completes the sentence that the path begins.
#[derive(Debug)]
pub(super) struct Fault {
    /// Filled in by the reader; code that serde derives does not know where it is.
    path: Option<String>,
    missing: Option<&'static str>,
    text: String,
}

impl Fault {
    fn new(text: impl Into<String>) -> Self {
        Self {
            path: None,
            missing: None,
            text: text.into(),
        }
    }

    fn located(mut self, path: Path<'_>) -> Self {
        if self.path.is_none() {
            self.path = Some(match self.missing {
                Some(name) => Path::Field(&path, name).shown(),
                None => path.shown(),
            });
        }
        self
    }

    /// The path of the field, empty for the message itself.
    pub(super) fn path(&self) -> &str {
        self.path.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` {}", self.path(), self.text)
    }
}

impl std::error::Error for Fault {}

impl serde::de::Error for Fault {
    /// Ids say what they are not: "not an id of the form run_…".
    fn custom<T: fmt::Display>(message: T) -> Self {
        let text = message.to_string();
        if text.starts_with("not ") {
            return Self::new(format!("is {text}"));
        }
        Self::new(text)
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("is not {expected}"))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("is not {expected}"))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        let words: Vec<String> = expected.iter().map(|word| format!("\"{word}\"")).collect();
        Self::new(format!("is not {}", words.join(" or ")))
    }

    fn unknown_field(field: &str, _: &'static [&'static str]) -> Self {
        Self::new(format!("has no field named {}", shown(field)))
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            missing: Some(field),
            ..Self::new("is missing")
        }
    }
}

impl From<Fault> for Rejected {
    fn from(fault: Fault) -> Self {
        Self::field(fault.path(), &fault.text)
    }
}

/// Where a value is in the message.
#[derive(Clone, Copy)]
enum Path<'p> {
    Root(&'p str),
    Field(&'p Path<'p>, &'p str),
    Entry(&'p Path<'p>, usize),
}

impl Path<'_> {
    /// As much of it as can be shown, from the message on.
    fn shown(self) -> String {
        let mut shown = String::new();
        self.write(&mut shown);
        shown
    }

    /// False once a step did not fit: what lies inside it is left out, too.
    fn write(self, out: &mut String) -> bool {
        let step = match self {
            Self::Root(name) => name.to_owned(),
            Self::Field(parent, name) => {
                if !parent.write(out) {
                    return false;
                }
                let dot = if out.is_empty() { "" } else { "." };
                format!("{dot}{name}")
            }
            Self::Entry(parent, index) => {
                if !parent.write(out) {
                    return false;
                }
                format!("[{index}]")
            }
        };
        let fits = out.len() + step.len() <= PATH_BYTES;
        if fits {
            out.push_str(&step);
        }
        fits
    }
}

struct Node<'p> {
    value: Value,
    path: Path<'p>,
}

impl Node<'_> {
    fn is_not(&self, expected: &str) -> Fault {
        let absent = self.value.is_null() && !matches!(self.path, Path::Entry(..));
        let text = if absent {
            "is missing".to_owned()
        } else {
            format!("is not {expected}")
        };
        Fault::new(text).located(self.path)
    }
}

impl<'de> Deserializer<'de> for Node<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => number.deserialize_any(visitor).map_err(Fault::custom),
            Value::String(_) => self.deserialize_string(visitor),
            Value::Array(_) => self.deserialize_seq(visitor),
            Value::Object(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Bool(value) => visitor.visit_bool(value),
            _ => Err(self.is_not("a boolean")),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value.as_u64() {
            Some(number) => visitor.visit_u64(number),
            None => Err(self.is_not("an integer of 0 or more")),
        }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value.as_u64().map(u32::try_from) {
            Some(Ok(number)) => visitor.visit_u32(number),
            _ => Err(self.is_not(&format!("an integer from 0 to {}", u32::MAX))),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value.as_f64() {
            Some(number) => visitor.visit_f64(number),
            None => Err(self.is_not("a number")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_string(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Value::String(text) = self.value else {
            return Err(self.is_not("a string"));
        };
        if let Some(letter) = control_character(&text) {
            return Err(Fault::new(format!("contains {letter}")).located(self.path));
        }
        visitor.visit_string(text)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Value::Array(entries) = self.value else {
            return Err(self.is_not("an array"));
        };
        visitor.visit_seq(Entries {
            entries: entries.into_iter().enumerate(),
            path: &self.path,
        })
    }

    /// Of a map the client chooses the keys, so they are checked like every other text.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Value::Object(members) = self.value else {
            return Err(self.is_not("an object"));
        };
        if let Some(letter) = members.keys().find_map(|key| control_character(key)) {
            return Err(Fault::new(format!("has a key with {letter}")).located(self.path));
        }
        visitor.visit_map(Members::new(members, &self.path))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        #[cfg(test)]
        for field in fields {
            super::tests::note_asked(Path::Field(&self.path, field).shown());
        }
        let _ = fields;
        match self.value {
            Value::Object(members) => visitor.visit_map(Members::new(members, &self.path)),
            _ => Err(self.is_not("an object")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct
        enum identifier
    }
}

struct Entries<'p> {
    entries: std::iter::Enumerate<std::vec::IntoIter<Value>>,
    path: &'p Path<'p>,
}

impl<'de> SeqAccess<'de> for Entries<'_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some((index, value)) = self.entries.next() else {
            return Ok(None);
        };
        let path = Path::Entry(self.path, index);
        let read = seed.deserialize(Node { value, path });
        read.map(Some).map_err(|fault| fault.located(path))
    }
}

struct Members<'p> {
    rest: serde_json::map::IntoIter,
    path: &'p Path<'p>,
    next: Option<(String, Value)>,
}

impl<'p> Members<'p> {
    fn new(members: Map<String, Value>, path: &'p Path<'p>) -> Self {
        Self {
            rest: members.into_iter(),
            path,
            next: None,
        }
    }
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        self.next = self.rest.next();
        match &self.next {
            None => Ok(None),
            Some((key, _)) => seed.deserialize(key.as_str().into_deserializer()).map(Some),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let (key, value) = self.next.take().expect("a value follows its key");
        let path = Path::Field(self.path, &key);
        let read = seed.deserialize(Node { value, path });
        read.map_err(|fault| fault.located(path))
    }
}

/// The first control character that a text may not hold: all but tab and line ends.
fn control_character(text: &str) -> Option<String> {
    let is_refused = |letter: &char| letter.is_control() && !matches!(letter, '\t' | '\n' | '\r');
    let letter = text.chars().find(is_refused)?;
    Some(format!("the control character U+{:04X}", u32::from(letter)))
}

pub(super) fn check_id(path: &str, id: &str, max_bytes: usize) -> Result<(), Rejected> {
    if let Some(letter) = control_character(id) {
        return Err(Rejected::field(path, &format!("contains {letter}")));
    }
    if (1..=max_bytes).contains(&id.len()) {
        return Ok(());
    }
    let fault = format!("does not have 1 to {max_bytes} bytes");
    Err(Rejected::field(path, &fault))
}

/// The beginning of a client's own text, quoted and escaped.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}
