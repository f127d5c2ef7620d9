//! Run: executes one prompt. The lines come from the protocol file, the commands from `script`.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::conversation::{Answer, Connection, Conversation, Prompt, Signal};
use crate::protocol::{Lane, Section};
use crate::script;
use crate::template::{Variables, mentions};
use crate::wire::lock;

const FOREVER: Duration = Duration::from_hours(24);

pub(crate) enum Stop {
    Cancelled,
    Failed(String),
    /// Ended with a question whose answer comes as the next prompt.
    Asking,
    /// Ended already, with lines of its own.
    Ended,
    Disconnected,
}

pub(crate) type RunResult<T = ()> = Result<T, Stop>;

pub(crate) struct Run {
    pub(crate) connection: Arc<Connection>,
    conversation: Arc<Conversation>,
    pub(crate) prompt: Prompt,
    signals: Receiver<Signal>,
    /// Counts the lines that mention `$seq`.
    seq: u64,
    /// The channel (`text`, `thought`) of the open message.
    open: Option<&'static str>,
    total: String,
    /// Keeps no total: the output may be endless.
    pub(crate) skips_total: bool,
    /// Ignores all signals.
    pub(crate) ignores_input: bool,
}

/// Executes a run and those queued behind it.
pub(crate) fn run_all(first: Run) {
    let mut run = first;
    while let Some((prompt, signals)) = run.execute_prompt() {
        run = Run::new(run.connection, run.conversation, prompt, signals);
        let id = run.connection.runtime.new_id("run");
        lock(&run.conversation.state)
            .variables
            .insert("run".into(), id.clone());
        run.set("run", id);
    }
}

impl Run {
    pub(crate) fn new(
        connection: Arc<Connection>,
        conversation: Arc<Conversation>,
        prompt: Prompt,
        signals: Receiver<Signal>,
    ) -> Self {
        let mut run = Self {
            connection,
            conversation,
            prompt,
            signals,
            seq: 0,
            open: None,
            total: String::new(),
            skips_total: false,
            ignores_input: false,
        };
        for kind in ["foreign", "tool"] {
            run.make(kind);
        }
        run.set("total", "");
        run.unique_millis();
        run
    }

    fn execute_prompt(&mut self) -> Option<(Prompt, Receiver<Signal>)> {
        let asked = lock(&self.conversation.state).unanswered_prompt.take();
        let played = self
            .send_section("begin")
            .and_then(|()| script::execute(self, asked.as_deref()));
        let ending = match &played {
            Ok(()) => "completed",
            Err(Stop::Cancelled) => "cancelled",
            Err(Stop::Failed(_)) => "failed",
            Err(Stop::Asking | Stop::Ended | Stop::Disconnected) => "",
        };
        if let Err(Stop::Failed(why)) = &played {
            self.set("text", why.as_str());
        }
        // Held until the end is written: a client that has read it may prompt again at once.
        let conversation = Arc::clone(&self.conversation);
        let mut state = lock(&conversation.state);
        state.unanswered_prompt =
            matches!(played, Err(Stop::Asking)).then(|| self.prompt.text.clone());
        let ended = match ending {
            "" => Ok(()),
            "completed" => self
                .finish_message()
                .and_then(|()| self.send_section(ending)),
            _ => self.send_section(ending),
        };
        drop(ended);
        state.next()
    }

    /// Sets a variable for the following lines.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.prompt.variables.insert(name.to_owned(), value.into());
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.prompt.variables.get(name)
    }

    /// Sets a new id for the following lines.
    pub(crate) fn make(&mut self, kind: &str) -> Value {
        let new_id = self.connection.runtime.new_id(kind);
        self.set(kind, new_id.clone());
        new_id
    }

    fn unique_millis(&mut self) {
        let unique_millis = self.connection.runtime.unique_millis();
        self.set("stamp", unique_millis);
    }

    /// The section of this name, if it is available.
    pub(crate) fn section(&self, name: &str) -> Option<Section> {
        let own = self.prompt.sections.get(name);
        let section = own.or_else(|| self.connection.runtime.protocol.sections.get(name))?;
        section
            .is_available(&self.prompt.variables)
            .then(|| section.clone())
    }

    /// Does nothing without such a section.
    pub(crate) fn send_section(&mut self, name: &str) -> RunResult {
        match self.section(name) {
            Some(section) => self.send_section_lines(&section),
            None => Ok(()),
        }
    }

    fn send_section_lines(&mut self, section: &Section) -> RunResult {
        let variables: &Variables = &self.prompt.variables;
        self.connection
            .write(&section.lines, variables, &mut self.seq)
            .map_err(|_| Stop::Disconnected)
    }

    /// Sends a section that is not part of a message: completes the open one first.
    pub(crate) fn announce(&mut self, name: &str) -> RunResult {
        self.finish_message()?;
        self.unique_millis();
        if self.section(name).is_none() {
            return self.send_text(&format!("There are no words for {name} here. "));
        }
        self.send_section(name)
    }

    /// Sends a piece of the answer, unless there is a cancel.
    pub(crate) fn send_text(&mut self, piece: &str) -> RunResult {
        self.check_signals()?;
        self.send_piece("text", piece)
    }

    pub(crate) fn send_thought(&mut self, piece: &str) -> RunResult {
        self.check_signals()?;
        self.send_piece("thought", piece)
    }

    fn send_piece(&mut self, way: &'static str, piece: &str) -> RunResult {
        let first = self.open != Some(way);
        if first {
            self.finish_message()?;
            self.open = Some(way);
            self.total.clear();
            self.unique_millis();
            self.make("utterance");
        }
        if !self.skips_total {
            self.total.push_str(piece);
        }
        if self.sends_cumulative_text(way) {
            self.set("total", self.total.clone());
        }
        self.set("text", piece);
        let opening = format!("{way}_first");
        let begins = first && self.section(&opening).is_some();
        self.send_section(if begins { &opening } else { way })
    }

    /// Completes the open message.
    pub(crate) fn finish_message(&mut self) -> RunResult {
        match self.open.take() {
            Some(way) => {
                self.set("text", "");
                self.set("total", self.total.clone());
                self.send_section(&format!("{way}_end"))
            }
            None => Ok(()),
        }
    }

    /// Does each piece repeat the whole text so far?
    pub(crate) fn sends_cumulative_text(&self, way: &str) -> bool {
        let lines = self.section(way).map(|section| section.lines);
        lines.is_some_and(|lines| lines.iter().any(|line| mentions(&line.template, "total")))
    }

    /// The lane of the answer.
    pub(crate) fn lane(&self) -> Lane {
        let first = self
            .section("text")
            .and_then(|section| section.lines.first().cloned());
        first.map_or(Lane::Main, |line| line.lane)
    }

    /// Writes bytes that are no line of the protocol.
    pub(crate) fn write_raw(&self, bytes: &[u8]) -> RunResult {
        let written = self.connection.writer.write(self.lane(), bytes);
        written.map_err(|_| Stop::Disconnected)
    }

    pub(crate) fn check_signals(&mut self) -> RunResult {
        self.wait(Duration::ZERO)
    }

    /// Waits, and handles signals meanwhile.
    pub(crate) fn wait(&mut self, time: Duration) -> RunResult {
        let until = Instant::now() + time;
        loop {
            match self.next_signal(until)? {
                Some(Signal::Cancel) if !self.ignores_input => return Err(Stop::Cancelled),
                Some(Signal::Steer(text)) if !self.ignores_input => {
                    self.send_piece("text", &format!("steered: {text} "))?;
                }
                Some(_) => {}
                None => return Ok(()),
            }
        }
    }

    pub(crate) fn wait_forever(&mut self) -> RunResult {
        self.wait(FOREVER)
    }

    fn next_signal(&self, until: Instant) -> RunResult<Option<Signal>> {
        let left = until.saturating_duration_since(Instant::now());
        match self.signals.recv_timeout(left) {
            Ok(Signal::Disconnect) | Err(RecvTimeoutError::Disconnected) => Err(Stop::Disconnected),
            Ok(signals) => Ok(Some(signals)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
        }
    }

    /// Asks and waits for the answer; `None` if the protocol has no such question.
    pub(crate) fn ask(&mut self, name: &str) -> RunResult<Option<Answer>> {
        self.ask_for(name, None)
    }

    /// Asks although there was a cancel, and waits at most this long.
    pub(crate) fn ask_after_cancel(
        &mut self,
        name: &str,
        time: Duration,
    ) -> RunResult<Option<Answer>> {
        self.ask_for(name, Some(time))
    }

    fn ask_for(&mut self, name: &str, after_cancel: Option<Duration>) -> RunResult<Option<Answer>> {
        let Some(section) = self.section(name) else {
            return Ok(None);
        };
        self.finish_message()?;
        self.unique_millis();
        let ask = self.make("ask");
        lock(&self.conversation.state).question = Some(ask.clone());
        self.send_section_lines(&section)?;
        if section.ends {
            return Err(Stop::Asking);
        }
        let granted_if = section.granted_if.as_ref().and_then(|name| self.get(name));
        let answer = if granted_if == Some(&Value::Bool(true)) {
            let said = None;
            Ok(Some(Answer {
                ask: Some(ask),
                granted: true,
                lasts: false,
                said,
            }))
        } else {
            self.answer(&ask, after_cancel)
        };
        lock(&self.conversation.state).question = None;
        if answer.is_ok() {
            self.send_section("answered")?;
        }
        answer
    }

    fn answer(&mut self, ask: &Value, after_cancel: Option<Duration>) -> RunResult<Option<Answer>> {
        let until = Instant::now() + after_cancel.unwrap_or(FOREVER);
        let mut steered = Vec::new();
        let answer = loop {
            match self.next_signal(until)? {
                Some(Signal::Cancel) if after_cancel.is_none() => return Err(Stop::Cancelled),
                Some(Signal::Steer(text)) => steered.push(text),
                Some(Signal::Answer(answer)) if answer.ask.as_ref().is_none_or(|of| of == ask) => {
                    break Some(answer);
                }
                Some(_) => {}
                None => break None,
            }
        };
        for text in steered {
            self.send_piece("text", &format!("steered: {text} "))?;
        }
        Ok(answer)
    }
}
