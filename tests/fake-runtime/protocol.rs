//! Protocol file: the definition of a protocol, so that it needs no code here.
//!
//! `docs/agents/testing.md` describes the format. An unknown key is refused with its path: a typing
//! error would otherwise go unnoticed.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::template::Variables;

pub(crate) struct Protocol {
    pub(crate) transport: Transport,
    pub(crate) framing: Framing,
    /// JSON pointers to the conversation id; empty if a connection has only one.
    pub(crate) conversation: Vec<String>,
    /// Shapes of new ids.
    pub(crate) ids: HashMap<String, String>,
    /// Initial variables.
    pub(crate) variables: Variables,
    /// Ids made for each connection.
    pub(crate) make: Vec<String>,
    /// Sent on connect.
    pub(crate) hello: Section,
    /// Sent after a line that is not JSON.
    pub(crate) undecodable: Vec<Line>,
    /// Sent after a line that names an unknown conversation.
    pub(crate) unknown_conversation: Section,
    pub(crate) rules: Vec<Rule>,
    pub(crate) sections: Sections,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Unix,
    UnixPair,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Newline,
    FormFeed,
    /// `{"type":"message","data":LINE}` and a form feed.
    NodeIpc,
}

impl Framing {
    pub(crate) fn from_name(name: &str) -> Result<Self, String> {
        match name {
            "newline" => Ok(Self::Newline),
            "form-feed" => Ok(Self::FormFeed),
            "node-ipc" => Ok(Self::NodeIpc),
            other => Err(format!("framing: `{other}` is none")),
        }
    }

    /// The delimiter of lines.
    pub(crate) fn end(self) -> u8 {
        match self {
            Self::Newline => b'\n',
            Self::FormFeed | Self::NodeIpc => 0x0C,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Main,
    Events,
}

#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) lane: Lane,
    pub(crate) template: Value,
}

/// Lines for each step of a run, by name.
pub(crate) type Sections = HashMap<String, Section>;

#[derive(Clone, Default)]
pub(crate) struct Section {
    pub(crate) lines: Vec<Line>,
    /// A question that ends the run: its answer comes as the next prompt.
    pub(crate) ends: bool,
    /// A question that is granted at once if this variable is true.
    pub(crate) granted_if: Option<String>,
    /// Available only if this variable is set.
    pub(crate) only_if: Option<String>,
}

/// The reaction to an inbound line.
#[derive(Default)]
pub(crate) struct Rule {
    pub(crate) pattern: Value,
    pub(crate) when: Option<When>,
    /// Variables that must be set.
    pub(crate) has: Vec<String>,
    /// Variables that must not be set.
    pub(crate) lacks: Vec<String>,
    /// Variables that must equal the value in the line, if it has one.
    pub(crate) same: Vec<(String, Vec<String>)>,
    /// Variables for the response and the run that starts.
    pub(crate) take: Vec<(String, Vec<String>)>,
    /// Variables for the rest of the conversation.
    pub(crate) keep: Vec<(String, Vec<String>)>,
    pub(crate) make: Vec<String>,
    /// New ids, unless they are set.
    pub(crate) ensure: Vec<String>,
    /// Pointers to the conversation to resume.
    pub(crate) joins: Vec<String>,
    /// Applies to unknown conversations, too.
    pub(crate) allows_unknown: bool,
    /// Ends the conversation.
    pub(crate) leaves: bool,
    /// Sent instead if the conversation is lost; `None` if it cannot be.
    pub(crate) lost: Option<Vec<Line>>,
    pub(crate) say: Vec<Line>,
    /// Sent instead, per handshake fault.
    pub(crate) handshake_faults: HashMap<String, Vec<Line>>,
    pub(crate) action: Action,
    /// Sent instead of starting a second run.
    pub(crate) busy: Vec<Line>,
    /// Pointers and values that mean yes.
    pub(crate) granted: Vec<(String, Vec<Value>)>,
    /// Pointers and values that mean yes for all later questions.
    pub(crate) lasts: Vec<(String, Vec<Value>)>,
    /// Pointers to the text of an answer.
    pub(crate) said: Vec<String>,
    /// Sections that override those of the protocol.
    pub(crate) sections: Sections,
}

/// The state of the conversation that a rule requires.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Idle,
    Running,
    Asked,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Action {
    #[default]
    Nothing,
    StartRun,
    Cancel,
    Answer,
    Steer,
    Exit,
}

type Parsed<T> = Result<T, String>;

impl Protocol {
    pub(crate) fn read(text: &str) -> Parsed<Self> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut reader = ObjectReader::new("", value)?;
        let protocol = Self {
            transport: match reader.text("transport")?.as_deref() {
                None | Some("stdio") => Transport::Stdio,
                Some("unix") => Transport::Unix,
                Some("unix-pair") => Transport::UnixPair,
                Some(other) => return Err(format!("transport: `{other}` is none")),
            },
            framing: match reader.text("framing")? {
                None => Framing::Newline,
                Some(name) => Framing::from_name(&name)?,
            },
            conversation: reader.texts("conversation")?,
            ids: reader
                .object("ids")?
                .into_iter()
                .map(|(name, shape)| (name, crate::template::plain(&shape)))
                .collect(),
            variables: reader.object("variables")?,
            make: reader.texts("make")?,
            hello: reader.section("hello")?,
            undecodable: reader.lines("undecodable")?,
            unknown_conversation: reader.section("stranger")?,
            rules: reader
                .list("rules")
                .into_iter()
                .enumerate()
                .map(|(number, rule)| Rule::read(&format!("rules[{number}]"), rule))
                .collect::<Parsed<_>>()?,
            sections: reader.sections("run")?,
        };
        reader.finish(&["about"])?;
        Ok(protocol)
    }
}

impl Rule {
    fn read(place: &str, value: Value) -> Parsed<Self> {
        let mut reader = ObjectReader::new(place, value)?;
        let mut rule = Self {
            pattern: reader.take("match").unwrap_or(Value::Object(Map::new())),
            when: match reader.text("when")?.as_deref() {
                None => None,
                Some("idle") => Some(When::Idle),
                Some("playing") => Some(When::Running),
                Some("asked") => Some(When::Asked),
                Some(other) => return Err(format!("{place}.when: `{other}` is none")),
            },
            has: reader.texts("has")?,
            lacks: reader.texts("lacks")?,
            same: reader.pointers("same")?,
            take: reader.pointers("take")?,
            keep: reader.pointers("keep")?,
            make: reader.texts("make")?,
            ensure: reader.texts("ensure")?,
            joins: reader.texts("joins")?,
            allows_unknown: reader.flag("strangers"),
            leaves: reader.flag("leaves"),
            say: reader.lines("say")?,
            busy: reader.lines("busy")?,
            said: reader.texts("said")?,
            sections: reader.sections("run")?,
            ..Self::default()
        };
        if reader.members.contains_key("lost") {
            rule.lost = Some(reader.lines("lost")?);
        }
        for faults in ["wrong_version", "needs_login"] {
            if reader.members.contains_key(faults) {
                let lines = reader.lines(faults)?;
                rule.handshake_faults
                    .insert(faults.replace('_', "-"), lines);
            }
        }
        for (name, values) in [("granted", &mut rule.granted), ("lasts", &mut rule.lasts)] {
            for value in reader.list(name) {
                let mut value = ObjectReader::new(&format!("{place}.{name}"), value)?;
                let pointer = value.text("pointer")?.unwrap_or_default();
                values.push((pointer, value.list("in")));
                value.finish(&[])?;
            }
        }
        for (name, action) in [
            ("play", Action::StartRun),
            ("cancel", Action::Cancel),
            ("answer", Action::Answer),
            ("steer", Action::Steer),
            ("exit", Action::Exit),
        ] {
            if reader.flag(name) {
                rule.action = action;
            }
        }
        reader.finish(&["about"])?;
        Ok(rule)
    }
}

impl Line {
    fn read(value: Value) -> Self {
        if let Value::Object(members) = &value
            && let (Some(line), Some(lane)) = (members.get("line"), members.get("lane"))
            && members.len() == 2
        {
            let lane = if lane == "events" {
                Lane::Events
            } else {
                Lane::Main
            };
            let template = line.clone();
            return Self { lane, template };
        }
        let lane = Lane::Main;
        Self {
            lane,
            template: value,
        }
    }
}

impl Section {
    pub(crate) fn is_available(&self, known: &Variables) -> bool {
        let is_there = |name: &String| {
            let value = known.get(name);
            value.is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
        };
        self.only_if.as_ref().is_none_or(is_there)
    }

    fn read(place: &str, value: Value) -> Parsed<Self> {
        let has_lines = value.get("lines").is_some_and(Value::is_array);
        if !has_lines {
            return Ok(Self {
                lines: listed(value).into_iter().map(Line::read).collect(),
                ..Self::default()
            });
        }
        let mut reader = ObjectReader::new(place, value)?;
        let section = Self {
            lines: reader.lines("lines")?,
            ends: reader.flag("ends"),
            granted_if: reader.text("granted_if")?,
            only_if: reader.text("only_if")?,
        };
        reader.finish(&[])?;
        Ok(section)
    }
}

/// Reads an object member by member; what is left at the end is an error.
struct ObjectReader {
    place: String,
    members: Map<String, Value>,
}

impl ObjectReader {
    fn new(place: &str, value: Value) -> Parsed<Self> {
        match value {
            Value::Object(members) => Ok(Self {
                place: place.to_owned(),
                members,
            }),
            other => Err(format!("{place}: {other} is not an object")),
        }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.members.remove(name)
    }

    fn flag(&mut self, name: &str) -> bool {
        self.take(name) == Some(Value::Bool(true))
    }

    fn list(&mut self, name: &str) -> Vec<Value> {
        self.take(name).map(listed).unwrap_or_default()
    }

    fn text(&mut self, name: &str) -> Parsed<Option<String>> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(format!("{}.{name}: {other} is not a text", self.place)),
        }
    }

    fn texts(&mut self, name: &str) -> Parsed<Vec<String>> {
        let place = format!("{}.{name}", self.place);
        texts(&place, self.list(name))
    }

    fn lines(&mut self, name: &str) -> Parsed<Vec<Line>> {
        let lines = self.list(name);
        if lines.iter().any(|line| !line.is_object()) {
            return Err(format!("{}.{name}: a line is an object", self.place));
        }
        Ok(lines.into_iter().map(Line::read).collect())
    }

    fn object(&mut self, name: &str) -> Parsed<Map<String, Value>> {
        match self.take(name) {
            None => Ok(Map::new()),
            Some(Value::Object(members)) => Ok(members),
            Some(other) => Err(format!("{}.{name}: {other} is not an object", self.place)),
        }
    }

    fn pointers(&mut self, name: &str) -> Parsed<Vec<(String, Vec<String>)>> {
        let place = format!("{}.{name}", self.place);
        let members = self.object(name)?.into_iter();
        members
            .map(|(variable, pointers)| Ok((variable, texts(&place, listed(pointers))?)))
            .collect()
    }

    fn section(&mut self, name: &str) -> Parsed<Section> {
        match self.take(name) {
            Some(value) => Section::read(&format!("{}.{name}", self.place), value),
            None => Ok(Section::default()),
        }
    }

    fn sections(&mut self, name: &str) -> Parsed<Sections> {
        let place = format!("{}.{name}", self.place);
        let members = self.object(name)?.into_iter();
        members
            .map(|(name, value)| {
                let section = Section::read(&format!("{place}.{name}"), value)?;
                Ok((name, section))
            })
            .collect()
    }

    fn finish(mut self, ignored: &[&str]) -> Parsed<()> {
        for name in ignored {
            self.members.remove(*name);
        }
        match self.members.keys().next() {
            None => Ok(()),
            Some(unknown) => Err(format!("{}: what is `{unknown}`?", self.place)),
        }
    }
}

/// A single value may stand for a list.
fn listed(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        one => vec![one],
    }
}

fn texts(place: &str, values: Vec<Value>) -> Parsed<Vec<String>> {
    let text = |value: Value| match value {
        Value::String(text) => Ok(text),
        other => Err(format!("{place}: {other} is not a text")),
    };
    values.into_iter().map(text).collect()
}
