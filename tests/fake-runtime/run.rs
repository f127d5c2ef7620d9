//! What an agent does about one prompt: the words come from the phrasebook, the plot from `script`.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::conversation::{Answer, Connection, Conversation, Heard, Prompt};
use crate::phrasebook::{Lane, Section};
use crate::script;
use crate::template::{Variables, mentions};
use crate::wire::lock;

/// Longer than any test waits.
const FOREVER: Duration = Duration::from_hours(24);

/// Why a scene does not go on.
pub(crate) enum Stop {
    /// It was told to.
    Cancelled,
    /// It failed, and says why.
    Failed(String),
    /// It has asked something, and the answer comes as a new prompt.
    Asking,
    /// Nobody listens.
    Gone,
}

/// How a part of a scene went.
pub(crate) type Played<T = ()> = Result<T, Stop>;

/// One scene.
pub(crate) struct Scene {
    pub(crate) connection: Arc<Connection>,
    talk: Arc<Conversation>,
    pub(crate) prompt: Prompt,
    heard: Receiver<Heard>,
    /// Counts the lines that mention it.
    seq: u64,
    /// The way of speaking (`text`, `thought`) that has begun and not ended.
    open: Option<&'static str>,
    total: String,
    /// Keeps no record of what it says: there may be no end to it.
    pub(crate) careless: bool,
    /// Hears nothing of what it is told.
    pub(crate) deaf: bool,
}

/// Plays a scene, and those that wait behind it.
pub(crate) fn play_all(first: Scene) {
    let mut scene = first;
    while let Some((prompt, heard)) = scene.play() {
        let (connection, talk) = (scene.connection, scene.talk);
        scene = Scene::new(connection, talk, prompt, heard);
        let run = scene.connection.stage.fresh("run");
        lock(&scene.talk.state)
            .variables
            .insert("run".into(), run.clone());
        scene.set("run", run);
    }
}

impl Scene {
    pub(crate) fn new(
        connection: Arc<Connection>,
        talk: Arc<Conversation>,
        prompt: Prompt,
        heard: Receiver<Heard>,
    ) -> Self {
        let mut scene = Self {
            connection,
            talk,
            prompt,
            heard,
            seq: 0,
            open: None,
            total: String::new(),
            careless: false,
            deaf: false,
        };
        for kind in ["foreign", "tool"] {
            scene.make(kind);
        }
        scene.set("total", "");
        scene.stamp();
        scene
    }

    fn play(&mut self) -> Option<(Prompt, Receiver<Heard>)> {
        let asked = lock(&self.talk.state).left_asking.take();
        let played = self
            .say("begin")
            .and_then(|()| script::perform(self, asked.as_deref()));
        let ending = match &played {
            Ok(()) => "completed",
            Err(Stop::Cancelled) => "cancelled",
            Err(Stop::Failed(_)) => "failed",
            Err(Stop::Asking | Stop::Gone) => "",
        };
        if let Err(Stop::Failed(why)) = &played {
            self.set("text", why.as_str());
        }
        // Held until the end is written: whoever has read it may prompt again, and is not too early.
        let talk = Arc::clone(&self.talk);
        let mut state = lock(&talk.state);
        state.left_asking = matches!(played, Err(Stop::Asking)).then(|| self.prompt.text.clone());
        let ended = match ending {
            "" => Ok(()),
            "completed" => self.pause_speech().and_then(|()| self.say(ending)),
            _ => self.say(ending),
        };
        drop(ended);
        state.next()
    }

    /// A variable for the lines to come.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.prompt.variables.insert(name.to_owned(), value.into());
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.prompt.variables.get(name)
    }

    /// A fresh id for the lines to come.
    pub(crate) fn make(&mut self, kind: &str) -> Value {
        let fresh = self.connection.stage.fresh(kind);
        self.set(kind, fresh.clone());
        fresh
    }

    fn stamp(&mut self) {
        let stamp = self.connection.stage.stamp();
        self.set("stamp", stamp);
    }

    /// The words for something, if there are any.
    pub(crate) fn section(&self, name: &str) -> Option<Section> {
        let own = self.prompt.scene.get(name);
        let section = own.or_else(|| self.connection.stage.book.scene.get(name))?;
        section
            .usable(&self.prompt.variables)
            .then(|| section.clone())
    }

    /// Says it; nothing if there are no words for it.
    pub(crate) fn say(&mut self, name: &str) -> Played {
        match self.section(name) {
            Some(section) => self.say_lines(&section),
            None => Ok(()),
        }
    }

    fn say_lines(&mut self, section: &Section) -> Played {
        let variables: &Variables = &self.prompt.variables;
        self.connection
            .write(&section.lines, variables, &mut self.seq)
            .map_err(|_| Stop::Gone)
    }

    /// Says something that is not speech: what was being said is complete before it.
    pub(crate) fn announce(&mut self, name: &str) -> Played {
        self.pause_speech()?;
        self.stamp();
        if self.section(name).is_none() {
            return self.speak(&format!("There are no words for {name} here. "));
        }
        self.say(name)
    }

    /// Says a piece of the answer, unless it was told to stop.
    pub(crate) fn speak(&mut self, piece: &str) -> Played {
        self.listen()?;
        self.utter("text", piece)
    }

    /// Thinks aloud.
    pub(crate) fn think(&mut self, piece: &str) -> Played {
        self.listen()?;
        self.utter("thought", piece)
    }

    fn utter(&mut self, way: &'static str, piece: &str) -> Played {
        let first = self.open != Some(way);
        if first {
            self.pause_speech()?;
            self.open = Some(way);
            self.total.clear();
            self.stamp();
            self.make("utterance");
        }
        if !self.careless {
            self.total.push_str(piece);
        }
        if self.repeats_itself(way) {
            self.set("total", self.total.clone());
        }
        self.set("text", piece);
        let opening = format!("{way}_first");
        let begins = first && self.section(&opening).is_some();
        self.say(if begins { &opening } else { way })
    }

    /// What is being said is complete; if more is said, it is something new.
    pub(crate) fn pause_speech(&mut self) -> Played {
        match self.open.take() {
            Some(way) => {
                self.set("text", "");
                self.set("total", self.total.clone());
                self.say(&format!("{way}_end"))
            }
            None => Ok(()),
        }
    }

    /// Do the pieces each hold all that was said before?
    pub(crate) fn repeats_itself(&self, way: &str) -> bool {
        let lines = self.section(way).map(|section| section.lines);
        lines.is_some_and(|lines| lines.iter().any(|line| mentions(&line.template, "total")))
    }

    /// The way that the answer takes.
    pub(crate) fn lane(&self) -> Lane {
        let first = self
            .section("text")
            .and_then(|section| section.lines.first().cloned());
        first.map_or(Lane::Main, |line| line.lane)
    }

    /// Writes something that is no line of the protocol.
    pub(crate) fn write_raw(&self, bytes: &[u8]) -> Played {
        let written = self.connection.pen.write(self.lane(), bytes);
        written.map_err(|_| Stop::Gone)
    }

    /// What was said to us meanwhile.
    pub(crate) fn listen(&mut self) -> Played {
        self.wait(Duration::ZERO)
    }

    /// Waits, and listens.
    pub(crate) fn wait(&mut self, time: Duration) -> Played {
        let until = Instant::now() + time;
        loop {
            match self.hear(until)? {
                Some(Heard::Cancel) if !self.deaf => return Err(Stop::Cancelled),
                Some(Heard::Steer(text)) if !self.deaf => {
                    self.utter("text", &format!("steered: {text} "))?;
                }
                Some(_) => {}
                None => return Ok(()),
            }
        }
    }

    /// Waits until it is told to stop.
    pub(crate) fn wait_forever(&mut self) -> Played {
        self.wait(FOREVER)
    }

    fn hear(&self, until: Instant) -> Played<Option<Heard>> {
        let left = until.saturating_duration_since(Instant::now());
        match self.heard.recv_timeout(left) {
            Ok(Heard::Leave) | Err(RecvTimeoutError::Disconnected) => Err(Stop::Gone),
            Ok(heard) => Ok(Some(heard)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
        }
    }

    /// Asks, and waits for the answer. Nothing if there are no words for such a question.
    pub(crate) fn ask(&mut self, name: &str) -> Played<Option<Answer>> {
        self.ask_for(name, None)
    }

    /// Asks although it was told to stop, and waits so long for an answer.
    pub(crate) fn ask_in_spite(&mut self, name: &str, time: Duration) -> Played<Option<Answer>> {
        self.ask_for(name, Some(time))
    }

    fn ask_for(&mut self, name: &str, in_spite: Option<Duration>) -> Played<Option<Answer>> {
        let Some(section) = self.section(name) else {
            return Ok(None);
        };
        self.pause_speech()?;
        self.stamp();
        let ask = self.make("ask");
        lock(&self.talk.state).question = Some(ask.clone());
        self.say_lines(&section)?;
        if section.ends {
            return Err(Stop::Asking);
        }
        let granted_if = section.granted_if.as_ref().and_then(|name| self.get(name));
        let answer = if granted_if == Some(&Value::Bool(true)) {
            let said = None;
            Ok(Some(Answer {
                ask: Some(ask),
                granted: true,
                said,
            }))
        } else {
            self.answer(&ask, in_spite)
        };
        lock(&self.talk.state).question = None;
        if answer.is_ok() {
            self.say("answered")?;
        }
        answer
    }

    fn answer(&mut self, ask: &Value, in_spite: Option<Duration>) -> Played<Option<Answer>> {
        let until = Instant::now() + in_spite.unwrap_or(FOREVER);
        let mut steered = Vec::new();
        let answer = loop {
            match self.hear(until)? {
                Some(Heard::Cancel) if in_spite.is_none() => return Err(Stop::Cancelled),
                Some(Heard::Steer(text)) => steered.push(text),
                Some(Heard::Answer(answer)) if answer.ask.as_ref().is_none_or(|of| of == ask) => {
                    break Some(answer);
                }
                Some(_) => {}
                None => break None,
            }
        };
        for text in steered {
            self.utter("text", &format!("steered: {text} "))?;
        }
        Ok(answer)
    }
}
