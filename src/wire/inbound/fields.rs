//! The fields of one JSON object, taken out one by one.
//!
//! Every refusal names the field by its path in the message. `null` is the same as absent, because
//! that is how many clients spell it.

use serde_json::{Map, Value};

use super::Rejected;

/// How much of a client's own text an error message repeats.
const SHOWN_CHARS: usize = 40;
/// The longest path that an error message names, in bytes.
const PATH_BYTES: usize = 120;

/// What is left of an object.
pub(super) struct Fields {
    map: Map<String, Value>,
    path: String,
}

impl Fields {
    /// The fields of the object at `path`, which is empty for the message itself.
    pub(super) fn new(map: Map<String, Value>, path: impl Into<String>) -> Self {
        let path = path.into();
        Self { map, path }
    }

    /// Whatever is there.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        #[cfg(test)]
        super::tests::note_asked(self.path_of(name));
        self.map.remove(name).filter(|value| !value.is_null())
    }

    /// Is there something of this name?
    pub(super) fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    /// Everything that nobody took.
    pub(super) fn rest(self) -> Map<String, Value> {
        self.map
    }

    /// The name of something that nobody took.
    pub(super) fn any_left(&self) -> Option<&str> {
        self.map.keys().next().map(String::as_str)
    }

    /// A text that must be there.
    pub(super) fn text(&mut self, name: &str) -> Result<String, Rejected> {
        let text = self.optional_text(name)?;
        text.ok_or_else(|| self.fault(name, "is missing"))
    }

    /// A text.
    pub(super) fn optional_text(&mut self, name: &str) -> Result<Option<String>, Rejected> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => {
                refuse_control(&self.path_of(name), &text)?;
                Ok(Some(text))
            }
            Some(_) => Err(self.fault(name, "is not a string")),
        }
    }

    /// An id that the client chose.
    pub(super) fn optional_id(
        &mut self,
        name: &str,
        most_bytes: usize,
    ) -> Result<Option<String>, Rejected> {
        let id = self.optional_text(name)?;
        if let Some(id) = &id {
            check_id(&self.path_of(name), id, most_bytes)?;
        }
        Ok(id)
    }

    /// Yes or no.
    pub(super) fn optional_bool(&mut self, name: &str) -> Result<Option<bool>, Rejected> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(answer)) => Ok(Some(answer)),
            Some(_) => Err(self.fault(name, "is not a boolean")),
        }
    }

    /// A number without sign or fraction.
    pub(super) fn optional_integer(&mut self, name: &str) -> Result<Option<u64>, Rejected> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.fault(name, "is not an integer of 0 or more")),
            },
        }
    }

    /// One of a few words.
    pub(super) fn optional_choice<T, const N: usize>(
        &mut self,
        name: &str,
        choices: [(&str, T); N],
    ) -> Result<Option<T>, Rejected> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let words = choices.each_ref().map(|(word, _)| format!("\"{word}\""));
        choices
            .into_iter()
            .find(|(word, _)| value.as_str() == Some(word))
            .map(|(_, choice)| Some(choice))
            .ok_or_else(|| self.fault(name, &format!("is not {}", words.join(" or "))))
    }

    /// A list of texts; absent is empty.
    pub(super) fn optional_texts(&mut self, name: &str) -> Result<Vec<String>, Rejected> {
        let read = |(path, value): (String, Value)| match value {
            Value::String(text) => refuse_control(&path, &text).map(|()| text),
            _ => Err(Rejected::field(&path, "is not a string")),
        };
        self.entries(name)?.map(read).collect()
    }

    /// A list of objects; absent is empty.
    pub(super) fn optional_objects(&mut self, name: &str) -> Result<Vec<Self>, Rejected> {
        let read = |(path, value): (String, Value)| match value {
            Value::Object(map) => Ok(Self::new(map, path)),
            _ => Err(Rejected::field(&path, "is not an object")),
        };
        self.entries(name)?.map(read).collect()
    }

    /// An object; absent is empty.
    pub(super) fn optional_object(&mut self, name: &str) -> Result<Self, Rejected> {
        match self.take(name) {
            None => Ok(Self::new(Map::new(), self.path_of(name))),
            Some(Value::Object(map)) => Ok(Self::new(map, self.path_of(name))),
            Some(_) => Err(self.fault(name, "is not an object")),
        }
    }

    /// An object that must be there.
    pub(super) fn object(&mut self, name: &str) -> Result<Self, Rejected> {
        if self.map.get(name).is_none_or(Value::is_null) {
            return Err(self.fault(name, "is missing"));
        }
        self.optional_object(name)
    }

    /// The entries of a list, each with its path.
    fn entries(
        &mut self,
        name: &str,
    ) -> Result<impl Iterator<Item = (String, Value)> + use<>, Rejected> {
        let list = match self.take(name) {
            None => Vec::new(),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(self.fault(name, "is not an array")),
        };
        let path = self.path_of(name);
        let entries = list.into_iter().enumerate();
        Ok(entries.map(move |(index, value)| (format!("{path}[{index}]"), value)))
    }

    fn path_of(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }

    pub(super) fn fault(&self, name: &str, fault: &str) -> Rejected {
        Rejected::field(&self.path_of(name), fault)
    }
}

/// Is it an id that a client may choose?
pub(super) fn check_id(path: &str, id: &str, most_bytes: usize) -> Result<(), Rejected> {
    refuse_control(path, id)?;
    if (1..=most_bytes).contains(&id.len()) {
        return Ok(());
    }
    let fault = format!("does not have 1 to {most_bytes} bytes");
    Err(Rejected::field(path, &fault))
}

fn is_refused(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\t' | '\n' | '\r')
}

/// Text may hold every character but control characters other than tab and line ends.
pub(super) fn refuse_control(path: &str, text: &str) -> Result<(), Rejected> {
    let Some(letter) = text.chars().find(|letter| is_refused(*letter)) else {
        return Ok(());
    };
    let fault = format!("contains the control character U+{:04X}", u32::from(letter));
    Err(Rejected::field(path, &fault))
}

/// The same for a value in which a client may put whatever it likes: for all its texts and keys.
pub(super) fn refuse_control_within(path: &str, value: &Value) -> Result<(), Rejected> {
    match control_within(value) {
        None => Ok(()),
        Some(place) => {
            let path = place.path_in(path);
            let (what, letter) = (place.what, u32::from(place.letter));
            let fault = format!("{what} the control character U+{letter:04X}");
            Err(Rejected::field(&path, &fault))
        }
    }
}

/// Where in a value a control character stands.
pub(super) struct Place {
    /// The steps to it, the innermost first.
    steps: Vec<String>,
    letter: char,
    what: &'static str,
}

impl Place {
    /// Its path from the message on, or as much of that as can be shown.
    pub(super) fn path_in(&self, root: &str) -> String {
        let mut path = root.to_owned();
        for step in self.steps.iter().rev() {
            if path.len() + step.len() > PATH_BYTES {
                break;
            }
            // The message itself has no name.
            let step = if path.is_empty() {
                step.strip_prefix('.').unwrap_or(step)
            } else {
                step
            };
            path.push_str(step);
        }
        path
    }
}

/// The first control character in the texts and keys of a value. It nests no deeper than a frame may.
pub(super) fn control_within(value: &Value) -> Option<Place> {
    let found = |text: &str, what| {
        let letter = text.chars().find(|letter| is_refused(*letter))?;
        let steps = Vec::new();
        Some(Place {
            steps,
            letter,
            what,
        })
    };
    let behind = |value, step: &dyn Fn() -> String| {
        let mut place = control_within(value)?;
        place.steps.push(step());
        Some(place)
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
        Value::String(text) => found(text, "contains"),
        Value::Array(entries) => {
            let mut entries = entries.iter().enumerate();
            entries.find_map(|(index, entry)| behind(entry, &|| format!("[{index}]")))
        }
        Value::Object(map) => map.iter().find_map(|(key, value)| {
            found(key, "has a key with").or_else(|| behind(value, &|| format!(".{key}")))
        }),
    }
}

/// The beginning of a client's own text, quoted and harmless.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}
