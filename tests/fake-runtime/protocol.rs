//! How a protocol words things: read from a file, so that a protocol needs no code here.
//!
//! The format is described in `docs/agents/testing.md`. A key that nobody knows is refused, with its
//! place: a phrasebook with a typing error would otherwise just be silent.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::template::Variables;

/// Everything about one protocol.
pub(crate) struct Phrasebook {
    pub(crate) transport: Transport,
    pub(crate) framing: Framing,
    /// Where a line names its conversation; empty if a connection has only one.
    pub(crate) conversation: Vec<String>,
    /// What fresh ids look like.
    pub(crate) ids: HashMap<String, String>,
    /// What is known from the beginning.
    pub(crate) variables: Variables,
    /// Ids that are made for each connection.
    pub(crate) make: Vec<String>,
    /// Said to everybody who connects.
    pub(crate) hello: Section,
    /// Said to what is not JSON.
    pub(crate) undecodable: Vec<Line>,
    /// Said to what names a conversation that is not there.
    pub(crate) stranger: Section,
    pub(crate) hear: Vec<Rule>,
    pub(crate) scene: Sections,
}

/// How the lines travel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Unix,
    UnixPair,
}

/// What is around a line, and what ends it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Newline,
    FormFeed,
    /// `{"type":"message","data":LINE}` and a form feed.
    NodeIpc,
}

impl Framing {
    /// The one that is called so.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        match name {
            "newline" => Ok(Self::Newline),
            "form-feed" => Ok(Self::FormFeed),
            "node-ipc" => Ok(Self::NodeIpc),
            other => Err(format!("framing: `{other}` is none")),
        }
    }

    /// What ends a line.
    pub(crate) fn end(self) -> u8 {
        match self {
            Self::Newline => b'\n',
            Self::FormFeed | Self::NodeIpc => 0x0C,
        }
    }
}

/// Which of two ways a line takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Main,
    Events,
}

/// A line to be said.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) lane: Lane,
    pub(crate) template: Value,
}

/// The words for each thing that happens in a scene.
pub(crate) type Sections = HashMap<String, Section>;

/// The words for one thing.
#[derive(Clone, Default)]
pub(crate) struct Section {
    pub(crate) lines: Vec<Line>,
    /// A question that ends the scene: its answer comes as the next prompt.
    pub(crate) ends: bool,
    /// A question that counts as granted at once if this variable is true.
    pub(crate) granted_if: Option<String>,
    /// There are such words only if this variable is there.
    pub(crate) only_if: Option<String>,
}

/// What is done about a line that came in.
#[derive(Default)]
pub(crate) struct Rule {
    pub(crate) pattern: Value,
    pub(crate) when: Option<When>,
    /// Variables that must be there.
    pub(crate) has: Vec<String>,
    /// Variables that must not be there.
    pub(crate) lacks: Vec<String>,
    /// Variables that must be what the line says (if it says something).
    pub(crate) same: Vec<(String, Vec<String>)>,
    /// Variables for the answer and for the scene that begins.
    pub(crate) take: Vec<(String, Vec<String>)>,
    /// Variables for all that follows in this conversation.
    pub(crate) keep: Vec<(String, Vec<String>)>,
    /// Fresh ids, made now.
    pub(crate) make: Vec<String>,
    /// Fresh ids, made unless they are there.
    pub(crate) ensure: Vec<String>,
    /// Where the line names the conversation that it goes on with.
    pub(crate) joins: Vec<String>,
    /// Holds also for a conversation that is not there.
    pub(crate) strangers: bool,
    /// The conversation is over.
    pub(crate) leaves: bool,
    /// Said instead if what it goes on with is lost; none if it cannot be.
    pub(crate) lost: Option<Vec<Line>>,
    pub(crate) say: Vec<Line>,
    /// Said instead, for each trouble with a handshake.
    pub(crate) instead: HashMap<String, Vec<Line>>,
    pub(crate) deed: Deed,
    /// Said instead of beginning a second scene.
    pub(crate) busy: Vec<Line>,
    /// Which values, and where, mean yes.
    pub(crate) granted: Vec<(String, Vec<Value>)>,
    /// Where the answer says what was answered.
    pub(crate) said: Vec<String>,
    /// Words of a scene that begins here, where they differ.
    pub(crate) scene: Sections,
}

/// What a conversation must be doing for a rule to hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Idle,
    Playing,
    Asked,
}

/// What a line makes the agent do.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Deed {
    #[default]
    Nothing,
    Play,
    Cancel,
    Answer,
    Steer,
    Exit,
}

type Read<T> = Result<T, String>;

impl Phrasebook {
    /// Reads it.
    pub(crate) fn read(text: &str) -> Read<Self> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut page = Page::new("", value)?;
        let book = Self {
            transport: match page.text("transport")?.as_deref() {
                None | Some("stdio") => Transport::Stdio,
                Some("unix") => Transport::Unix,
                Some("unix-pair") => Transport::UnixPair,
                Some(other) => return Err(format!("transport: `{other}` is none")),
            },
            framing: match page.text("framing")? {
                None => Framing::Newline,
                Some(name) => Framing::named(&name)?,
            },
            conversation: page.texts("conversation")?,
            ids: page
                .object("ids")?
                .into_iter()
                .map(|(name, shape)| (name, crate::template::plain(&shape)))
                .collect(),
            variables: page.object("variables")?,
            make: page.texts("make")?,
            hello: page.section("hello")?,
            undecodable: page.lines("undecodable")?,
            stranger: page.section("stranger")?,
            hear: page
                .list("hear")
                .into_iter()
                .enumerate()
                .map(|(number, rule)| Rule::read(&format!("hear[{number}]"), rule))
                .collect::<Read<_>>()?,
            scene: page.sections("scene")?,
        };
        page.finish(&["about"])?;
        Ok(book)
    }
}

impl Rule {
    fn read(place: &str, value: Value) -> Read<Self> {
        let mut page = Page::new(place, value)?;
        let mut rule = Self {
            pattern: page.take("match").unwrap_or(Value::Object(Map::new())),
            when: match page.text("when")?.as_deref() {
                None => None,
                Some("idle") => Some(When::Idle),
                Some("playing") => Some(When::Playing),
                Some("asked") => Some(When::Asked),
                Some(other) => return Err(format!("{place}.when: `{other}` is none")),
            },
            has: page.texts("has")?,
            lacks: page.texts("lacks")?,
            same: page.pointers("same")?,
            take: page.pointers("take")?,
            keep: page.pointers("keep")?,
            make: page.texts("make")?,
            ensure: page.texts("ensure")?,
            joins: page.texts("joins")?,
            strangers: page.flag("strangers"),
            leaves: page.flag("leaves"),
            say: page.lines("say")?,
            busy: page.lines("busy")?,
            said: page.texts("said")?,
            scene: page.sections("scene")?,
            ..Self::default()
        };
        if page.members.contains_key("lost") {
            rule.lost = Some(page.lines("lost")?);
        }
        for trouble in ["wrong_version", "needs_login"] {
            if page.members.contains_key(trouble) {
                let lines = page.lines(trouble)?;
                rule.instead.insert(trouble.replace('_', "-"), lines);
            }
        }
        for granted in page.list("granted") {
            let mut granted = Page::new(&format!("{place}.granted"), granted)?;
            let pointer = granted.text("pointer")?.unwrap_or_default();
            rule.granted.push((pointer, granted.list("in")));
            granted.finish(&[])?;
        }
        for (name, deed) in [
            ("play", Deed::Play),
            ("cancel", Deed::Cancel),
            ("answer", Deed::Answer),
            ("steer", Deed::Steer),
            ("exit", Deed::Exit),
        ] {
            if page.flag(name) {
                rule.deed = deed;
            }
        }
        page.finish(&["about"])?;
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
    /// Are there such words, as things are?
    pub(crate) fn usable(&self, known: &Variables) -> bool {
        let is_there = |name: &String| {
            let value = known.get(name);
            value.is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
        };
        self.only_if.as_ref().is_none_or(is_there)
    }

    fn read(place: &str, value: Value) -> Read<Self> {
        let has_lines = value.get("lines").is_some_and(Value::is_array);
        if !has_lines {
            return Ok(Self {
                lines: listed(value).into_iter().map(Line::read).collect(),
                ..Self::default()
            });
        }
        let mut page = Page::new(place, value)?;
        let section = Self {
            lines: page.lines("lines")?,
            ends: page.flag("ends"),
            granted_if: page.text("granted_if")?,
            only_if: page.text("only_if")?,
        };
        page.finish(&[])?;
        Ok(section)
    }
}

/// An object that is read member by member, and what is left at the end is wrong.
struct Page {
    place: String,
    members: Map<String, Value>,
}

impl Page {
    fn new(place: &str, value: Value) -> Read<Self> {
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

    fn text(&mut self, name: &str) -> Read<Option<String>> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(format!("{}.{name}: {other} is not a text", self.place)),
        }
    }

    fn texts(&mut self, name: &str) -> Read<Vec<String>> {
        let place = format!("{}.{name}", self.place);
        texts(&place, self.list(name))
    }

    fn lines(&mut self, name: &str) -> Read<Vec<Line>> {
        let lines = self.list(name);
        if lines.iter().any(|line| !line.is_object()) {
            return Err(format!("{}.{name}: a line is an object", self.place));
        }
        Ok(lines.into_iter().map(Line::read).collect())
    }

    fn object(&mut self, name: &str) -> Read<Map<String, Value>> {
        match self.take(name) {
            None => Ok(Map::new()),
            Some(Value::Object(members)) => Ok(members),
            Some(other) => Err(format!("{}.{name}: {other} is not an object", self.place)),
        }
    }

    fn pointers(&mut self, name: &str) -> Read<Vec<(String, Vec<String>)>> {
        let place = format!("{}.{name}", self.place);
        let members = self.object(name)?.into_iter();
        members
            .map(|(variable, pointers)| Ok((variable, texts(&place, listed(pointers))?)))
            .collect()
    }

    fn section(&mut self, name: &str) -> Read<Section> {
        match self.take(name) {
            Some(value) => Section::read(&format!("{}.{name}", self.place), value),
            None => Ok(Section::default()),
        }
    }

    fn sections(&mut self, name: &str) -> Read<Sections> {
        let place = format!("{}.{name}", self.place);
        let members = self.object(name)?.into_iter();
        members
            .map(|(name, value)| {
                let section = Section::read(&format!("{place}.{name}"), value)?;
                Ok((name, section))
            })
            .collect()
    }

    fn finish(mut self, ignored: &[&str]) -> Read<()> {
        for name in ignored {
            self.members.remove(*name);
        }
        match self.members.keys().next() {
            None => Ok(()),
            Some(unknown) => Err(format!("{}: what is `{unknown}`?", self.place)),
        }
    }
}

/// One may be written where a list could be.
fn listed(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        one => vec![one],
    }
}

fn texts(place: &str, values: Vec<Value>) -> Read<Vec<String>> {
    let text = |value: Value| match value {
        Value::String(text) => Ok(text),
        other => Err(format!("{place}: {other} is not a text")),
    };
    values.into_iter().map(text).collect()
}
