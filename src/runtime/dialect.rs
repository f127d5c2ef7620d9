//! Dialects: the protocols that agents speak, one file each.
//!
//! A dialect is pure: no I/O, no clock, no tasks. It gets the session's commands and the agent's lines
//! and answers with [`Action`]s: lines to write, events for the session, timers to set. The link
//! carries them out. A new protocol is one file and one line in the table below.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::messages::{Declined, FromAgent, ToAgent};
use crate::domain::command::{AgentRequest, SettingsChange, Topic};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::{Author, Channel, Level};
use crate::domain::id::RunId;
use crate::domain::question::Resolution;
use crate::domain::run::{AgentError, RunOutcome, Usage};

mod query_answers;
#[cfg(test)]
mod transcripts;
mod usage;

pub(super) use super::prompt_content::{Content, File, Image, PromptContent};

macro_rules! table {
    ($($name:ident)*) => {
        $(mod $name;)*

        /// Every protocol but the demo agent's.
        pub(super) const TABLE: &[&Protocol] = &[$(&$name::PROTOCOL),*];
    };
}

table! {
    acp
    codelia
    codex_app_server
    copilot
    nous
    openstarry
    pi
    remoteui
    roo
}

pub(crate) fn protocols() -> Vec<(&'static str, &'static str)> {
    let known = TABLE.iter().map(|protocol| (protocol.name, protocol.about));
    std::iter::once(("demo", "nothing: the agent that is built in"))
        .chain(known)
        .collect()
}

#[derive(Debug)]
pub(super) struct Protocol {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The most that an agent with this protocol can do, in the names that clients know, each after
    /// one space. An agent may have less, see [`Action::Ready`].
    pub(super) capabilities: &'static str,
    /// The transport, unless the configuration says otherwise.
    pub(super) transport: Transport,
    /// The framing, unless the configuration says otherwise.
    pub(super) framing: Framing,
    /// A new process can continue an old conversation.
    pub(super) resumes: bool,
    /// One process serves several conversations, so that its socket may be shared. Depends on its
    /// options.
    pub(super) shares: fn(&BTreeMap<String, Value>) -> bool,
    /// The delay before a restart after the first, second, … crash in a row; the last one repeats.
    /// Empty: the usual backoff of `agent_status`.
    pub(super) restart_after: &'static [Duration],
    /// The options (`agents.NAME.options`) that it knows, each with its description.
    pub(super) options: &'static [(&'static str, &'static str)],
    /// The settings that reach an agent with this protocol.
    pub(super) settings: CarriedSettings,
    pub(super) build: fn(Setup) -> Box<dyn Dialect>,
}

/// The settings that a protocol carries, by the names that clients know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CarriedSettings {
    Only(&'static [&'static str]),
    /// Every setting, also those that only the agent knows.
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Stdio,
    Unix,
    /// Two Unix sockets: one for commands, one (`….events`) for events.
    UnixPair,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Newline,
    /// A form feed, as node-ipc does it.
    FormFeed,
}

impl Framing {
    pub(super) fn delimiter(self) -> u8 {
        match self {
            Self::Newline => b'\n',
            Self::FormFeed => b'\x0c',
        }
    }
}

/// Which of a link's streams a line belongs to. Most protocols have only the main one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// Commands and their responses.
    Main,
    /// Events, for protocols with a separate event socket.
    Events,
}

/// What a dialect gets when its link starts.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// The agent's name in the configuration; error messages name it.
    pub(super) agent: String,
    pub(super) version: &'static str,
    /// The working directory: an absolute path.
    pub(super) directory: String,
    /// The conversation to continue, if there is one.
    pub(super) thread: Option<String>,
    /// The conversation that the session branched from, unless it has one of its own.
    pub(super) branch_of: Option<String>,
    /// The conversation so far, oldest first, for protocols that do not remember it.
    pub(super) history: Vec<PastMessage>,
    /// The session's id, for protocols that want one.
    pub(super) session: String,
    /// The session's owner.
    pub(super) user: UserInfo,
    /// What the agent stores belongs to this user alone.
    pub(super) private_home: bool,
    /// `agents.NAME.options`.
    pub(super) options: BTreeMap<String, Value>,
}

impl Setup {
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).and_then(Value::as_str)
    }
}

/// A message from before this link started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PastMessage {
    pub(super) author: Author,
    pub(super) text: String,
}

/// The part of a user account that agents may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UserInfo {
    pub(super) id: String,
    pub(super) name: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    Write(StreamKind, Value),
    /// The lines that wait for the agent to read are void, but for one that is partly written.
    DropUnwritten,
    Emit(FromAgent),
    /// The handshake is done: commands come only after this.
    Ready {
        lacks: Vec<&'static str>,
    },
    /// Call [`Dialect::on_timer`] after this long; replaces a timer of the same id. `None` clears it.
    SetTimer(u64, Option<Duration>),
    /// A line belonged to another conversation. It was dropped; it is counted.
    Misrouted(String),
    /// A line made no sense here. It was dropped; it is counted.
    Unexpected(String),
    /// The agent cannot be used: end it. The current run fails with this.
    Fail(Declined),
    /// End the process without an error; the next prompt starts a new one. Comes after the end of the
    /// current run.
    Finish,
}

#[derive(Debug, Default)]
pub(super) struct Actions {
    actions: Vec<Action>,
}

impl Actions {
    pub(super) fn take(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    pub(super) fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Writes a line on the main stream.
    pub(super) fn write(&mut self, line: Value) {
        self.push(Action::Write(StreamKind::Main, line));
    }

    pub(super) fn emit(&mut self, event: FromAgent) {
        self.push(Action::Emit(event));
    }

    /// A piece of the current message; nothing if it is empty.
    pub(super) fn emit_delta(&mut self, run: RunId, channel: Channel, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.emit(FromAgent::MessageDelta { run, channel, text });
        }
    }

    /// How many actions there are.
    pub(super) fn count(&self) -> usize {
        self.actions.len()
    }

    /// Whether a message was passed on as a whole since `from`.
    pub(super) fn has_raw_since(&self, from: usize) -> bool {
        let since = self.actions.get(from..).unwrap_or_default();
        let is_raw = |action: &Action| matches!(action, Action::Emit(FromAgent::Raw { .. }));
        since.iter().any(is_raw)
    }

    /// Adds meta to the last event since `from` that is one of these. Returns whether there was one.
    pub(super) fn attach_meta(
        &mut self,
        from: usize,
        meta: Map<String, Value>,
        is_one: impl Fn(&FromAgent) -> bool,
    ) -> bool {
        let since = self.actions.get_mut(from..).unwrap_or_default();
        let emitted = since.iter_mut().rev().find_map(|action| match action {
            Action::Emit(event) if is_one(event) => Some(event),
            _ => None,
        });
        let Some(event) = emitted else { return false };
        let bare = std::mem::replace(event, FromAgent::ContextLeft(0));
        let boxed = Box::new(bare);
        *event = FromAgent::WithMeta { event: boxed, meta };
        true
    }

    pub(super) fn unexpected(&mut self, what: impl Into<String>) {
        self.push(Action::Unexpected(what.into()));
    }

    pub(super) fn misrouted(&mut self, what: impl Into<String>) {
        self.push(Action::Misrouted(what.into()));
    }

    pub(super) fn emit_notice(&mut self, level: Level, text: impl Into<String>) {
        let text = text.into();
        self.emit(FromAgent::Notice { level, text });
    }

    pub(super) fn emit_raw(&mut self, dialect: &str, value: Value) {
        let dialect = dialect.to_owned();
        self.emit(FromAgent::Raw { dialect, value });
    }

    /// A warning that the agent does not remember the session's conversation and starts another.
    pub(super) fn notice_fresh_start(&mut self, agent: &str) {
        let text =
            format!("The agent `{agent}` starts fresh: it does not remember what was said before.");
        self.emit_notice(Level::Warn, text);
    }

    pub(super) fn end_run(&mut self, run: RunId, outcome: RunOutcome, usage: Option<Usage>) {
        self.emit(FromAgent::RunEnded {
            run,
            outcome,
            usage,
        });
    }

    pub(super) fn fail_run(&mut self, run: RunId, code: ErrorCode, message: impl Into<String>) {
        let message = message.into();
        self.end_run(run, RunOutcome::Failed { code, message }, None);
    }

    /// Keeps the agent's own words about the failure of a run, which ends next.
    pub(super) fn keep_error(&mut self, run: RunId, error: AgentError) {
        let error = Box::new(error);
        self.emit(FromAgent::RunError { run, error });
    }

    /// Ends a run that cannot start.
    pub(super) fn refuse_run(&mut self, run: RunId, declined: Declined) {
        self.fail_run(run, declined.code, declined.message);
    }

    /// Ends a run of an earlier process: only the demo agent can continue one.
    pub(super) fn refuse_resume(&mut self, run: RunId) {
        let message = "The agent cannot go on with a run; ask again.";
        self.fail_run(run, ErrorCode::ConnectionLost, message);
    }

    pub(super) fn respond(&mut self, id: u64, value: Value) {
        let result = Ok(value);
        self.emit(FromAgent::Response { id, result });
    }

    pub(super) fn decline(&mut self, id: u64, code: ErrorCode, message: impl Into<String>) {
        let message = message.into();
        self.decline_with(id, Declined { code, message });
    }

    pub(super) fn decline_with(&mut self, id: u64, declined: Declined) {
        let result = Err(declined);
        self.emit(FromAgent::Response { id, result });
    }

    pub(super) fn ready(&mut self, lacks: Vec<&'static str>) {
        self.push(Action::Ready { lacks });
    }

    pub(super) fn set_timer(&mut self, id: u64, after: Duration) {
        self.push(Action::SetTimer(id, Some(after)));
    }

    pub(super) fn clear_timer(&mut self, id: u64) {
        self.push(Action::SetTimer(id, None));
    }

    pub(super) fn fail(&mut self, code: ErrorCode, message: impl Into<String>) {
        let message = message.into();
        self.push(Action::Fail(Declined { code, message }));
    }
}

/// One protocol, spoken with one agent for one session.
pub(super) trait Dialect: Send {
    /// The link is connected: do the handshake, continue the conversation or start one, then push
    /// [`Action::Ready`], within a deadline of your own.
    fn open(&mut self, out: &mut Actions);

    /// A command of the session. Prompts come one at a time: the next one after the end of the run
    /// before was emitted. Uploaded files of a prompt are already read.
    fn handle(&mut self, command: ToAgent, out: &mut Actions);

    /// A line of the agent. Must not panic; nothing unknown is fatal.
    fn read(&mut self, stream: StreamKind, line: Value, out: &mut Actions);

    fn on_timer(&mut self, timer: u64, out: &mut Actions);

    /// The names of the questions of runs that the agent waits for. While there is one, the agent is not expected
    /// to write; those that a run leaves open are answered as cancelled.
    fn open_questions(&self) -> Vec<String> {
        Vec::new()
    }

    /// True while the agent waits for an answer that no run asks for.
    fn has_session_question(&self) -> bool {
        false
    }

    /// The settings in force, as far as the agent has reported them. The driver reports each change.
    fn settings(&self) -> SettingsChange {
        SettingsChange::default()
    }

    /// Whether lost sockets are opened again, as opposed to the end of the link.
    fn can_reconnect(&self) -> bool {
        false
    }

    /// The sockets were lost and are open again. What was written last may not have arrived, and lines of
    /// the agent may be missing.
    fn reconnected(&mut self, _out: &mut Actions) {}

    /// The link ends: write the protocol's own farewell if it has one. The process gets a moment to
    /// exit by itself.
    fn close(&mut self, _out: &mut Actions) {}
}

/// The refusal of something that a protocol cannot express.
pub(super) fn unsupported(agent: &str, what: &str) -> Declined {
    Declined {
        code: ErrorCode::Unsupported,
        message: format!("The agent `{agent}` cannot {what}."),
    }
}

/// The refusal of a request that a protocol cannot express.
pub(super) fn unsupported_request(agent: &str, request: &AgentRequest) -> Declined {
    let what = match request {
        AgentRequest::Query { topic, .. } => match topic {
            Topic::Models => "list its models",
            Topic::Mcp => "list its MCP servers",
            Topic::Skills => "list its skills",
            Topic::Commands => "list its commands",
            Topic::Tree => "show how its conversation branches",
        },
        AgentRequest::Extension { name, .. } => return unsupported(agent, &format!("do `{name}`")),
    };
    unsupported(agent, what)
}

/// A JSON value as text: strings as they are, null as nothing, anything else as JSON.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A text block as most protocols write it.
pub(super) fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}
