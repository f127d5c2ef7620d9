//! Connection and conversations: finds the rule for each inbound line and applies it.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::protocol::{Action, Lane, Line, Rule, Sections, Transport, When};
use crate::run::{self, Run};
use crate::runtime::Runtime;
use crate::template::{Variables, collect_text, fits, plain};
use crate::wire::{Writer, lock, log_stderr, next_line};

const SLOW_DELAY: Duration = Duration::from_secs(3);
/// Beyond this, signals are lost, as with a very busy agent.
const MAX_PENDING_SIGNALS: usize = 1024;

/// Signal to a run.
pub(crate) enum Signal {
    Cancel,
    Steer(String),
    Answer(Answer),
    Disconnect,
}

pub(crate) struct Answer {
    /// `None` if the protocol has one question at a time.
    pub(crate) ask: Option<Value>,
    pub(crate) granted: bool,
    /// It also answers later questions, of every conversation with this home.
    pub(crate) lasts: bool,
    pub(crate) said: Option<String>,
}

pub(crate) struct Prompt {
    pub(crate) text: String,
    /// The line that carried it.
    pub(crate) line: Value,
    pub(crate) variables: Variables,
    /// Sections that override those of the protocol.
    pub(crate) sections: Sections,
}

/// A conversation: at most one run at a time.
#[derive(Default)]
pub(crate) struct Conversation {
    pub(crate) state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) variables: Variables,
    pub(crate) running: Option<SyncSender<Signal>>,
    pub(crate) question: Option<Value>,
    /// The prompt of the last run, if it ended with a question: the next prompt may be the answer.
    pub(crate) unanswered_prompt: Option<String>,
    queued: VecDeque<Prompt>,
}

impl State {
    fn matches(&self, when: When) -> bool {
        match when {
            When::Idle => self.running.is_none(),
            When::Running => self.running.is_some(),
            When::Asked => self.question.is_some(),
        }
    }

    /// Ends the current run and returns the next queued prompt.
    pub(crate) fn next(&mut self) -> Option<(Prompt, Receiver<Signal>)> {
        self.question = None;
        self.running = None;
        let prompt = self.queued.pop_front()?;
        let (sender, receiver) = sync_channel(MAX_PENDING_SIGNALS);
        self.running = Some(sender);
        Some((prompt, receiver))
    }

    fn signal(&self, signal: Signal) {
        if let Some(running) = &self.running {
            drop(running.try_send(signal));
        }
    }
}

/// Pauses the reading of a connection.
#[derive(Default)]
pub(crate) struct ReadPause(Mutex<Option<Instant>>);

impl ReadPause {
    pub(crate) fn pause(&self, time: Duration) {
        *lock(&self.0) = Some(Instant::now() + time);
    }

    fn wait(&self) {
        while lock(&self.0).is_some_and(|until| Instant::now() < until) {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

pub(crate) struct Connection {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) writer: Writer,
    pub(crate) read_pause: ReadPause,
    /// The only conversation, or what all of them share.
    base: Arc<Conversation>,
    others: Mutex<HashMap<String, Arc<Conversation>>>,
}

impl Connection {
    /// `base` is a conversation of its own, or one shared with other connections.
    pub(crate) fn new(runtime: Arc<Runtime>, writer: Writer, base: Arc<Conversation>) -> Arc<Self> {
        {
            let variables = &mut lock(&base.state).variables;
            let mut begin = |name: &str, value: Value| {
                variables.entry(name).or_insert(value);
            };
            for (name, value) in &runtime.protocol.variables {
                begin(name, value.clone());
            }
            if let Ok(token) = std::env::var("FAKE_TOKEN") {
                begin("token", token.into());
            }
            begin("pid", std::process::id().into());
            begin("ppid", std::os::unix::process::parent_id().into());
            for kind in &runtime.protocol.make {
                begin(kind, runtime.new_id(kind));
            }
        }
        Arc::new(Self {
            runtime,
            writer,
            read_pause: ReadPause::default(),
            base,
            others: Mutex::default(),
        })
    }

    /// Reads until the peer disconnects.
    pub(crate) fn serve(self: &Arc<Self>, mut input: impl BufRead) {
        let is_silent = self.send_hello();
        while let Some(line) = next_line(&mut input, self.runtime.protocol.framing.end()) {
            self.read_pause.wait();
            self.runtime.log.record("<", &line);
            match serde_json::from_slice(&line) {
                _ if is_silent => {}
                Ok(line) => self.handle_line(self.runtime.unwrap_line(line)),
                Err(error) => {
                    log_stderr(&format!(
                        "fake-runtime: heard something that is no JSON: {error}"
                    ));
                    self.send_lines(&self.runtime.protocol.undecodable, &Variables::new());
                }
            }
        }
        // Over a pair of sockets other clients may remain.
        if self.runtime.protocol.transport != Transport::UnixPair {
            lock(&self.base.state).signal(Signal::Disconnect);
        }
        for other in lock(&self.others).values() {
            lock(&other.state).signal(Signal::Disconnect);
        }
    }

    /// Returns `true` if nothing more is ever sent.
    fn send_hello(&self) -> bool {
        match self.runtime.handshake.as_str() {
            "hang" => return true,
            "slow" => thread::sleep(SLOW_DELAY),
            "garbage-first" => {
                drop(self.writer.write(Lane::Main, b"Welcome!"));
            }
            _ => {}
        }
        let variables = lock(&self.base.state).variables.clone();
        let hello = &self.runtime.protocol.hello;
        if hello.is_available(&variables) {
            self.send_lines(&hello.lines, &variables);
        }
        false
    }

    /// Sends lines outside of a run.
    fn send_lines(&self, lines: &[Line], variables: &Variables) {
        if let Err(error) = self.write(lines, variables, &mut 0) {
            log_stderr(&format!("fake-runtime: nobody hears it: {error}"));
        }
    }

    /// Writes filled templates.
    pub(crate) fn write(
        &self,
        lines: &[Line],
        variables: &Variables,
        seq: &mut u64,
    ) -> io::Result<()> {
        for line in lines {
            let (lane, bytes) = self.runtime.render(line, variables, seq);
            self.writer.write(lane, &bytes)?;
        }
        Ok(())
    }

    fn handle_line(self: &Arc<Self>, line: Value) {
        let named = first_value(&line, &self.runtime.protocol.conversation).map(plain);
        let known = named.as_ref().and_then(|name| self.conversation(name));
        let unknown_conversation = named.is_some() && known.is_none();
        let conversation = known.unwrap_or_else(|| Arc::clone(&self.base));
        let protocol = &self.runtime.protocol;
        let Some(rule) = protocol
            .rules
            .iter()
            .find(|rule| rule_applies(rule, &line, &conversation))
        else {
            log_stderr(&format!("fake-runtime: no rule for {line}"));
            return;
        };
        let mut variables = lock(&conversation.state).variables.clone();
        extend(&mut variables, &rule.take, &line);
        let joins = first_value(&line, &rule.joins).map(plain);
        if let (Some(_), Some(lost), true) = (&joins, &rule.lost, self.runtime.loses_conversations)
        {
            return self.send_lines(lost, &variables);
        }
        if unknown_conversation && joins.is_none() && !rule.allows_unknown {
            if protocol.unknown_conversation.is_available(&variables) {
                self.send_lines(&protocol.unknown_conversation.lines, &variables);
            }
            return;
        }
        let conversation = match joins {
            Some(thread) => self.join(conversation, Value::String(thread)),
            None if rule.make.iter().any(|kind| kind == "thread") => {
                let thread = self.runtime.new_id("thread");
                self.join(conversation, thread)
            }
            None => conversation,
        };
        self.update_variables(rule, &conversation, &line);
        variables.clone_from(&lock(&conversation.state).variables);
        extend(&mut variables, &rule.take, &line);
        if rule.leaves {
            lock(&conversation.state).signal(Signal::Disconnect);
            lock(&self.others).retain(|_, other| !Arc::ptr_eq(other, &conversation));
        }
        self.apply(rule, &conversation, line, variables);
    }

    fn conversation(&self, name: &str) -> Option<Arc<Conversation>> {
        lock(&self.others).get(name).cloned()
    }

    /// Joins the conversation of this id, or creates it.
    fn join(&self, conversation: Arc<Conversation>, thread: Value) -> Arc<Conversation> {
        if self.runtime.protocol.conversation.is_empty() {
            lock(&conversation.state)
                .variables
                .insert("thread".into(), thread);
            return conversation;
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

    fn update_variables(&self, rule: &Rule, conversation: &Conversation, line: &Value) {
        let mut state = lock(&conversation.state);
        for kind in rule.make.iter().filter(|kind| *kind != "thread") {
            state
                .variables
                .insert(kind.clone(), self.runtime.new_id(kind));
        }
        for kind in &rule.ensure {
            if !state.variables.contains_key(kind) {
                state
                    .variables
                    .insert(kind.clone(), self.runtime.new_id(kind));
            }
        }
        extend(&mut state.variables, &rule.keep, line);
    }

    fn apply(
        self: &Arc<Self>,
        rule: &Rule,
        conversation: &Arc<Conversation>,
        line: Value,
        variables: Variables,
    ) {
        let fault = rule.handshake_faults.get(&self.runtime.handshake);
        let lines = fault.unwrap_or(&rule.say);
        match rule.action {
            Action::StartRun if fault.is_none() => {
                self.start_run(rule, conversation, line, variables);
            }
            Action::Nothing | Action::StartRun => self.send_lines(lines, &variables),
            Action::Exit => {
                self.send_lines(lines, &variables);
                std::process::exit(0);
            }
            Action::Cancel => {
                self.send_lines(lines, &variables);
                lock(&conversation.state).signal(Signal::Cancel);
            }
            Action::Steer => {
                self.send_lines(lines, &variables);
                let text = variables.get("text").map(collect_text).unwrap_or_default();
                lock(&conversation.state).signal(Signal::Steer(text));
            }
            Action::Answer => {
                self.send_lines(lines, &variables);
                self.answer(rule, conversation, &line, &variables);
            }
        }
    }

    fn answer(
        &self,
        rule: &Rule,
        conversation: &Arc<Conversation>,
        line: &Value,
        variables: &Variables,
    ) {
        let says_yes = |(pointer, values): &(String, Vec<Value>)| {
            line.pointer(pointer)
                .is_some_and(|said| values.contains(said))
        };
        let answer = Answer {
            ask: variables.get("ask").cloned(),
            granted: rule.granted.iter().any(says_yes),
            lasts: rule.lasts.iter().any(says_yes),
            said: first_value(line, &rule.said)
                .map(plain)
                .filter(|said| !said.is_empty()),
        };
        let mut asking = vec![Arc::clone(conversation)];
        asking.extend(lock(&self.others).values().cloned());
        let asked = |conversation: &&Arc<Conversation>| {
            let question = lock(&conversation.state).question.clone();
            question.is_some() && (answer.ask.is_none() || answer.ask == question)
        };
        match asking.iter().find(asked) {
            Some(conversation) => lock(&conversation.state).signal(Signal::Answer(answer)),
            None => log_stderr(&format!("fake-runtime: nobody asked for {line}")),
        }
    }

    fn start_run(
        self: &Arc<Self>,
        rule: &Rule,
        conversation: &Arc<Conversation>,
        line: Value,
        mut variables: Variables,
    ) {
        let mut state = lock(&conversation.state);
        if state.running.is_some() && !rule.busy.is_empty() {
            drop(state);
            return self.send_lines(&rule.busy, &variables);
        }
        let text = variables.get("text").map(collect_text).unwrap_or_default();
        let sections = rule.sections.clone();
        if state.running.is_some() {
            state.queued.push_back(Prompt {
                text,
                line,
                variables: variables.clone(),
                sections,
            });
            drop(state);
            return self.send_lines(&rule.say, &variables);
        }
        let (sender, receiver) = sync_channel(MAX_PENDING_SIGNALS);
        state.running = Some(sender);
        let run = self.runtime.new_id("run");
        state.variables.insert("run".into(), run.clone());
        drop(state);
        variables.insert("run".into(), run);
        self.send_lines(&rule.say, &variables);
        let prompt = Prompt {
            text,
            line,
            variables,
            sections,
        };
        let first = Run::new(Arc::clone(self), Arc::clone(conversation), prompt, receiver);
        thread::spawn(move || run::run_all(first));
    }
}

/// The first of these pointers that has a value.
fn first_value<'line>(line: &'line Value, pointers: &[String]) -> Option<&'line Value> {
    let mut values = pointers.iter().filter_map(|pointer| line.pointer(pointer));
    values.find(|value| !value.is_null())
}

fn extend(variables: &mut Variables, taken: &[(String, Vec<String>)], line: &Value) {
    for (name, pointers) in taken {
        if let Some(value) = first_value(line, pointers) {
            variables.insert(name.clone(), value.clone());
        }
    }
}

fn rule_applies(rule: &Rule, line: &Value, conversation: &Conversation) -> bool {
    let state = lock(&conversation.state);
    let has = |name: &String| state.variables.contains_key(name);
    let same = |(name, pointers): &(String, Vec<String>)| {
        first_value(line, pointers).is_none_or(|value| state.variables.get(name) == Some(value))
    };
    fits(&rule.pattern, Some(line))
        && rule.when.is_none_or(|when| state.matches(when))
        && rule.has.iter().all(has)
        && !rule.lacks.iter().any(has)
        && rule.same.iter().all(same)
}
