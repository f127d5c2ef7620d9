//! A connection and the conversations on it: finds the rule for each line that comes in, and does
//! what it says.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::phrasebook::{Deed, Lane, Line, Rule, Sections, Transport, When};
use crate::scene::{self, Scene};
use crate::stage::Stage;
use crate::template::{Variables, fits, gather, plain};
use crate::wire::{Pen, lock, murmur, next_line};

/// How long a slow handshake takes.
const SLOWNESS: Duration = Duration::from_secs(3);
/// What a scene has not listened to yet. What is more is lost, as with a very busy agent.
const UNHEARD: usize = 1024;

/// What a scene is told while it plays.
pub(crate) enum Heard {
    Cancel,
    Steer(String),
    Answer(Answer),
    /// Nobody listens any more.
    Leave,
}

/// The end of a question.
pub(crate) struct Answer {
    /// Which question; none if the protocol has only one at a time.
    pub(crate) ask: Option<Value>,
    pub(crate) granted: bool,
    pub(crate) said: Option<String>,
}

/// A prompt that was heard.
pub(crate) struct Prompt {
    pub(crate) text: String,
    /// The line it came in.
    pub(crate) line: Value,
    pub(crate) variables: Variables,
    /// Words that differ for it.
    pub(crate) scene: Sections,
}

/// One conversation: at most one scene plays in it at a time.
#[derive(Default)]
pub(crate) struct Conversation {
    pub(crate) state: Mutex<State>,
}

/// What is going on in a conversation.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) variables: Variables,
    pub(crate) playing: Option<SyncSender<Heard>>,
    pub(crate) question: Option<Value>,
    /// The prompt of the last scene, if that ended with a question: the next one may be its answer.
    pub(crate) left_asking: Option<String>,
    waiting: VecDeque<Prompt>,
}

impl State {
    fn is(&self, when: When) -> bool {
        match when {
            When::Idle => self.playing.is_none(),
            When::Playing => self.playing.is_some(),
            When::Asked => self.question.is_some(),
        }
    }

    /// The scene is over: the next prompt that waits, with a new ear.
    pub(crate) fn next(&mut self) -> Option<(Prompt, Receiver<Heard>)> {
        self.question = None;
        self.playing = None;
        let prompt = self.waiting.pop_front()?;
        let (sender, receiver) = sync_channel(UNHEARD);
        self.playing = Some(sender);
        Some((prompt, receiver))
    }

    fn tell(&self, heard: Heard) {
        if let Some(playing) = &self.playing {
            drop(playing.try_send(heard));
        }
    }
}

/// Until when a connection reads nothing.
#[derive(Default)]
pub(crate) struct Gate(Mutex<Option<Instant>>);

impl Gate {
    pub(crate) fn close(&self, time: Duration) {
        *lock(&self.0) = Some(Instant::now() + time);
    }

    fn wait(&self) {
        while lock(&self.0).is_some_and(|until| Instant::now() < until) {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Somebody we talk with.
pub(crate) struct Connection {
    pub(crate) stage: Arc<Stage>,
    pub(crate) pen: Pen,
    pub(crate) gate: Gate,
    /// The one conversation, or what all of them have in common.
    base: Arc<Conversation>,
    others: Mutex<HashMap<String, Arc<Conversation>>>,
}

impl Connection {
    /// With a conversation of its own, or with one that others have, too.
    pub(crate) fn new(stage: Arc<Stage>, pen: Pen, base: Arc<Conversation>) -> Arc<Self> {
        {
            let variables = &mut lock(&base.state).variables;
            let mut begin = |name: &str, value: Value| {
                variables.entry(name).or_insert(value);
            };
            for (name, value) in &stage.book.variables {
                begin(name, value.clone());
            }
            if let Ok(token) = std::env::var("FAKE_TOKEN") {
                begin("token", token.into());
            }
            begin("pid", std::process::id().into());
            begin("ppid", std::os::unix::process::parent_id().into());
            for kind in &stage.book.make {
                begin(kind, stage.fresh(kind));
            }
        }
        Arc::new(Self {
            stage,
            pen,
            gate: Gate::default(),
            base,
            others: Mutex::default(),
        })
    }

    /// Listens until the other side has gone.
    pub(crate) fn listen(self: &Arc<Self>, mut input: impl BufRead) {
        let hangs = self.greet();
        while let Some(line) = next_line(&mut input, self.stage.book.framing.end()) {
            self.gate.wait();
            self.stage.log.note("<", &line);
            match serde_json::from_slice(&line) {
                _ if hangs => {}
                Ok(line) => self.hear(self.stage.unwrapped(line)),
                Err(error) => {
                    murmur(&format!(
                        "fake-runtime: heard something that is no JSON: {error}"
                    ));
                    self.say(&self.stage.book.undecodable, &Variables::new());
                }
            }
        }
        // Over a pair of sockets others may still listen.
        if self.stage.book.transport != Transport::UnixPair {
            lock(&self.base.state).tell(Heard::Leave);
        }
        for other in lock(&self.others).values() {
            lock(&other.state).tell(Heard::Leave);
        }
    }

    /// True if that is all that is ever said.
    fn greet(&self) -> bool {
        match self.stage.handshake.as_str() {
            "hang" => return true,
            "slow" => thread::sleep(SLOWNESS),
            "garbage-first" => {
                drop(self.pen.write(Lane::Main, b"Welcome!"));
            }
            _ => {}
        }
        let variables = lock(&self.base.state).variables.clone();
        let hello = &self.stage.book.hello;
        if hello.usable(&variables) {
            self.say(&hello.lines, &variables);
        }
        false
    }

    /// Says lines outside of a scene.
    fn say(&self, lines: &[Line], variables: &Variables) {
        if let Err(error) = self.write(lines, variables, &mut 0) {
            murmur(&format!("fake-runtime: nobody hears it: {error}"));
        }
    }

    /// Writes lines with their holes filled.
    pub(crate) fn write(
        &self,
        lines: &[Line],
        variables: &Variables,
        seq: &mut u64,
    ) -> io::Result<()> {
        for line in lines {
            let (lane, bytes) = self.stage.word(line, variables, seq);
            self.pen.write(lane, &bytes)?;
        }
        Ok(())
    }

    fn hear(self: &Arc<Self>, line: Value) {
        let named = found(&line, &self.stage.book.conversation).map(plain);
        let known = named.as_ref().and_then(|name| self.conversation(name));
        let stranger = named.is_some() && known.is_none();
        let talk = known.unwrap_or_else(|| Arc::clone(&self.base));
        let book = &self.stage.book;
        let Some(rule) = book.hear.iter().find(|rule| holds(rule, &line, &talk)) else {
            murmur(&format!("fake-runtime: no rule for {line}"));
            return;
        };
        let mut variables = lock(&talk.state).variables.clone();
        extend(&mut variables, &rule.take, &line);
        let joins = found(&line, &rule.joins).map(plain);
        if let (Some(_), Some(lost), true) = (&joins, &rule.lost, self.stage.forgetful) {
            return self.say(lost, &variables);
        }
        if stranger && joins.is_none() && !rule.strangers {
            if book.stranger.usable(&variables) {
                self.say(&book.stranger.lines, &variables);
            }
            return;
        }
        let talk = match joins {
            Some(thread) => self.enter(talk, Value::String(thread)),
            None if rule.make.iter().any(|kind| kind == "thread") => {
                let thread = self.stage.fresh("thread");
                self.enter(talk, thread)
            }
            None => talk,
        };
        self.settle(rule, &talk, &line);
        variables.clone_from(&lock(&talk.state).variables);
        extend(&mut variables, &rule.take, &line);
        if rule.leaves {
            lock(&talk.state).tell(Heard::Leave);
            lock(&self.others).retain(|_, other| !Arc::ptr_eq(other, &talk));
        }
        self.act(rule, &talk, line, variables);
    }

    fn conversation(&self, name: &str) -> Option<Arc<Conversation>> {
        lock(&self.others).get(name).cloned()
    }

    /// The conversation with this name, begun if need be.
    fn enter(&self, talk: Arc<Conversation>, thread: Value) -> Arc<Conversation> {
        if self.stage.book.conversation.is_empty() {
            lock(&talk.state).variables.insert("thread".into(), thread);
            return talk;
        }
        let mut variables = lock(&self.base.state).variables.clone();
        let mut others = lock(&self.others);
        let entered = others.entry(plain(&thread)).or_insert_with(|| {
            variables.insert("thread".into(), thread);
            let state = State {
                variables,
                ..State::default()
            };
            let state = Mutex::new(state);
            Arc::new(Conversation { state })
        });
        Arc::clone(entered)
    }

    /// What a line changes for all that follows.
    fn settle(&self, rule: &Rule, talk: &Conversation, line: &Value) {
        let mut state = lock(&talk.state);
        for kind in rule.make.iter().filter(|kind| *kind != "thread") {
            state.variables.insert(kind.clone(), self.stage.fresh(kind));
        }
        for kind in &rule.ensure {
            if !state.variables.contains_key(kind) {
                state.variables.insert(kind.clone(), self.stage.fresh(kind));
            }
        }
        extend(&mut state.variables, &rule.keep, line);
    }

    fn act(
        self: &Arc<Self>,
        rule: &Rule,
        talk: &Arc<Conversation>,
        line: Value,
        variables: Variables,
    ) {
        let trouble = rule.instead.get(&self.stage.handshake);
        let lines = trouble.unwrap_or(&rule.say);
        match rule.deed {
            Deed::Play if trouble.is_none() => self.play(rule, talk, line, variables),
            Deed::Nothing | Deed::Play => self.say(lines, &variables),
            Deed::Exit => {
                self.say(lines, &variables);
                std::process::exit(0);
            }
            Deed::Cancel => {
                self.say(lines, &variables);
                lock(&talk.state).tell(Heard::Cancel);
            }
            Deed::Steer => {
                self.say(lines, &variables);
                let text = variables.get("text").map(gather).unwrap_or_default();
                lock(&talk.state).tell(Heard::Steer(text));
            }
            Deed::Answer => {
                self.say(lines, &variables);
                self.answer(rule, talk, &line, &variables);
            }
        }
    }

    fn answer(&self, rule: &Rule, talk: &Arc<Conversation>, line: &Value, variables: &Variables) {
        let says_yes = |(pointer, values): &(String, Vec<Value>)| {
            line.pointer(pointer)
                .is_some_and(|said| values.contains(said))
        };
        let answer = Answer {
            ask: variables.get("ask").cloned(),
            granted: rule.granted.iter().any(says_yes),
            said: found(line, &rule.said)
                .map(plain)
                .filter(|said| !said.is_empty()),
        };
        let mut asking = vec![Arc::clone(talk)];
        asking.extend(lock(&self.others).values().cloned());
        let asked = |talk: &&Arc<Conversation>| {
            let question = lock(&talk.state).question.clone();
            question.is_some() && (answer.ask.is_none() || answer.ask == question)
        };
        match asking.iter().find(asked) {
            Some(talk) => lock(&talk.state).tell(Heard::Answer(answer)),
            None => murmur(&format!("fake-runtime: nobody asked for {line}")),
        }
    }

    fn play(
        self: &Arc<Self>,
        rule: &Rule,
        talk: &Arc<Conversation>,
        line: Value,
        mut variables: Variables,
    ) {
        let mut state = lock(&talk.state);
        if state.playing.is_some() && !rule.busy.is_empty() {
            drop(state);
            return self.say(&rule.busy, &variables);
        }
        let text = variables.get("text").map(gather).unwrap_or_default();
        let scene = rule.scene.clone();
        if state.playing.is_some() {
            state.waiting.push_back(Prompt {
                text,
                line,
                variables: variables.clone(),
                scene,
            });
            drop(state);
            return self.say(&rule.say, &variables);
        }
        let (sender, receiver) = sync_channel(UNHEARD);
        state.playing = Some(sender);
        let run = self.stage.fresh("run");
        state.variables.insert("run".into(), run.clone());
        drop(state);
        variables.insert("run".into(), run);
        self.say(&rule.say, &variables);
        let prompt = Prompt {
            text,
            line,
            variables,
            scene,
        };
        let first = Scene::new(Arc::clone(self), Arc::clone(talk), prompt, receiver);
        thread::spawn(move || scene::play_all(first));
    }
}

/// The first of these places where the line has something.
fn found<'line>(line: &'line Value, pointers: &[String]) -> Option<&'line Value> {
    let mut values = pointers.iter().filter_map(|pointer| line.pointer(pointer));
    values.find(|value| !value.is_null())
}

fn extend(variables: &mut Variables, taken: &[(String, Vec<String>)], line: &Value) {
    for (name, pointers) in taken {
        if let Some(value) = found(line, pointers) {
            variables.insert(name.clone(), value.clone());
        }
    }
}

fn holds(rule: &Rule, line: &Value, talk: &Conversation) -> bool {
    let state = lock(&talk.state);
    let has = |name: &String| state.variables.contains_key(name);
    let same = |(name, pointers): &(String, Vec<String>)| {
        found(line, pointers).is_none_or(|value| state.variables.get(name) == Some(value))
    };
    fits(&rule.pattern, Some(line))
        && rule.when.is_none_or(|when| state.is(when))
        && rule.has.iter().all(has)
        && !rule.lacks.iter().any(has)
        && rule.same.iter().all(same)
}
