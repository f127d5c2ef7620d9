//! The protocols that agents speak, each in a file of its own.
//!
//! A dialect is pure: no I/O, no clock, no tasks. It is handed what the session says and what the
//! agent wrote, and answers with [`Act`]s: lines to write, things to tell, deadlines to be woken at.
//! The link carries them out. A protocol that is added is one file and one line in the table below.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::talk::{Declined, FromAgent};
use crate::domain::code::Code;
use crate::domain::command::{Inquiry, SettingsChange, Topic};
use crate::domain::event::{Author, Channel, Level};
use crate::domain::id::RunId;
use crate::domain::question::Resolution;
use crate::domain::queue::QueueModes;
use crate::domain::run::{RunOutcome, Usage};

mod brief;
#[cfg(test)]
mod transcripts;

pub(super) use brief::{Brief, Content, File, Image};

macro_rules! table {
    ($($name:ident)*) => {
        $(mod $name;)*

        /// Every protocol there is.
        pub(super) const TABLE: &[&Protocol] = &[$(&$name::PROTOCOL),*];
    };
}

// The table: a protocol is its file and its line here.
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

/// The names of all protocols, and what speaks them.
pub(crate) fn protocols() -> Vec<(&'static str, &'static str)> {
    let known = TABLE.iter().map(|protocol| (protocol.name, protocol.about));
    std::iter::once(("demo", "nothing: the agent that is built in"))
        .chain(known)
        .collect()
}

/// What is known about a protocol before anybody speaks it.
#[derive(Debug)]
pub(super) struct Protocol {
    /// As it is called in the configuration.
    pub(super) name: &'static str,
    /// What people read about it, in a few words.
    pub(super) about: &'static str,
    /// What an agent that speaks it can do at best, in words that clients know. Each may take some of
    /// it back, see [`Act::Ready`].
    pub(super) capabilities: &'static [&'static str],
    /// How its lines travel, unless configured otherwise.
    pub(super) transport: Transport,
    /// What ends a line.
    pub(super) framing: Framing,
    /// Can it go on with a conversation after its process was started anew?
    pub(super) resumes: bool,
    /// Does one process serve several conversations, so that its socket may be shared? By its options.
    pub(super) shares: fn(&BTreeMap<String, Value>) -> bool,
    /// How long to wait before it is started again after it crashed once, twice, and so on; the last
    /// one holds for all that follow. Empty: as long as agents usually rest, see `record`.
    pub(super) restart_after: &'static [Duration],
    /// The options (`agents.NAME.options`) that it knows, and what each is for.
    pub(super) options: &'static [(&'static str, &'static str)],
    /// Someone who speaks it with one agent.
    pub(super) speaker: fn(Setup) -> Box<dyn Dialect>,
}

/// How the lines of a protocol travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// Over the standard input and output of a process.
    Stdio,
    /// Over a Unix socket.
    Unix,
    /// Over two of them: one to command, one (`….events`) to listen.
    UnixPair,
}

/// What ends a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// A newline.
    Newline,
    /// A form feed, as node-ipc does it.
    FormFeed,
}

impl Framing {
    /// The byte.
    pub(super) fn delimiter(self) -> u8 {
        match self {
            Self::Newline => b'\n',
            Self::FormFeed => b'\x0c',
        }
    }
}

/// Which of the two ways a line takes. Most protocols have only the main one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Commands and their answers.
    Main,
    /// Events, of those protocols that have a way of their own for them.
    Events,
}

/// What a dialect knows when it begins.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// The agent's name in the configuration: errors name it.
    pub(super) agent: String,
    /// The version of this gateway, to introduce itself with.
    pub(super) version: &'static str,
    /// Where the agent works: an absolute path.
    pub(super) directory: String,
    /// The conversation to go on with, if there is one.
    pub(super) thread: Option<String>,
    /// What was said in this session before, oldest first, for protocols that do not remember.
    pub(super) history: Vec<Utterance>,
    /// The session, for protocols that want a name for it.
    pub(super) session: String,
    /// Whose session it is.
    pub(super) user: Person,
    /// `agents.NAME.options`.
    pub(super) options: BTreeMap<String, Value>,
}

impl Setup {
    /// An option that is a text.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).and_then(Value::as_str)
    }
}

/// Something that was said before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Utterance {
    /// By whom.
    pub(super) author: Author,
    /// What.
    pub(super) text: String,
}

/// A user, as agents may know them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Person {
    /// Their id.
    pub(super) id: String,
    /// Their name.
    pub(super) name: String,
}

/// What the session wants of the agent. Prompts come one at a time: the next one after the end of the
/// run before was told.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Order {
    /// Begin a run.
    Prompt {
        /// Its name in everything that is told about it.
        run: RunId,
        /// What is asked.
        brief: Brief,
    },
    /// Say something to the run under way (only if `steer` is among the capabilities).
    Steer {
        /// Which.
        run: RunId,
        /// What.
        text: String,
    },
    /// Stop the run, if it is the one under way. Its end must be told soon; if it is not, the link
    /// ends the process.
    Cancel {
        /// Which.
        run: RunId,
    },
    /// A question that was told with this name has its end. Every question gets exactly one, also
    /// when its run is cancelled (then before the cancel) or has ended without an answer (then after
    /// the end); none if the dialect itself told that it is settled.
    Answer {
        /// The dialect's own name for it.
        question: String,
        /// How it ended.
        resolution: Resolution,
    },
    /// Tell something, or do something special; answered with [`FromAgent::Told`] under this number.
    Inquire {
        /// The number.
        id: u64,
        /// What.
        inquiry: Inquiry,
    },
    /// Settings that were chosen; absent ones stay.
    Settings(SettingsChange),
    /// The only tools that may be used from now on.
    Tools(Vec<String>),
    /// Where the user is.
    Context(Value),
    /// How what waits is taken up.
    QueueModes(QueueModes),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    /// Write a line.
    Write(Lane, Value),
    /// Tell the session something.
    Tell(FromAgent),
    /// The agent can be spoken to from now on: orders come only after this. With the capabilities of
    /// the protocol that this agent does not have.
    Ready {
        /// What it cannot.
        lacks: Vec<&'static str>,
    },
    /// Wake the dialect after this long; a timer of the same name is set anew, and `None` drops it.
    Timer(u64, Option<Duration>),
    /// Something came that belongs to another conversation. It was dropped; it is counted.
    Stray(String),
    /// Something came that makes no sense here. It was dropped; it is noted for the operator.
    Odd(String),
    /// The agent cannot be used: end it. A run under way fails with this.
    Fail(Declined),
    /// End the process; the next prompt starts it anew. Nobody is to blame. Told after the end of
    /// the run under way.
    Finish,
}

/// Collects what is to be done, in order.
#[derive(Debug, Default)]
pub(super) struct Out {
    acts: Vec<Act>,
}

impl Out {
    /// What is to be done, and nothing is left.
    pub(super) fn take(&mut self) -> Vec<Act> {
        std::mem::take(&mut self.acts)
    }

    /// Anything.
    pub(super) fn act(&mut self, act: Act) {
        self.acts.push(act);
    }

    /// Write a line on the main lane.
    pub(super) fn write(&mut self, line: Value) {
        self.act(Act::Write(Lane::Main, line));
    }

    /// Tell the session something.
    pub(super) fn tell(&mut self, said: FromAgent) {
        self.act(Act::Tell(said));
    }

    /// A piece of the answer, or of what is thought; nothing if it is empty.
    pub(super) fn say(&mut self, run: RunId, channel: Channel, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.tell(FromAgent::Delta { run, channel, text });
        }
    }

    /// The run is over.
    pub(super) fn end(&mut self, run: RunId, outcome: RunOutcome, usage: Option<Usage>) {
        self.tell(FromAgent::Ended {
            run,
            outcome,
            usage,
        });
    }

    /// The run has failed.
    pub(super) fn fail_run(&mut self, run: RunId, code: Code, message: impl Into<String>) {
        let message = message.into();
        self.end(run, RunOutcome::Failed { code, message }, None);
    }

    /// The run cannot be begun.
    pub(super) fn refuse(&mut self, run: RunId, declined: Declined) {
        self.fail_run(run, declined.code, declined.message);
    }

    /// The agent wants something to be known.
    pub(super) fn notice(&mut self, level: Level, text: impl Into<String>) {
        let text = text.into();
        self.tell(FromAgent::Notice { level, text });
    }

    /// The agent cannot go on with the conversation of this session, and begins another one.
    pub(super) fn starts_fresh(&mut self, agent: &str) {
        let text =
            format!("The agent `{agent}` starts fresh: it does not remember what was said before.");
        self.notice(Level::Warn, text);
    }

    /// Something that only the protocol has a word for.
    pub(super) fn raw(&mut self, dialect: &str, value: Value) {
        let dialect = dialect.to_owned();
        self.tell(FromAgent::Raw { dialect, value });
    }

    /// The answer to an inquiry.
    pub(super) fn answer(&mut self, id: u64, answer: Value) {
        let answer = Ok(answer);
        self.tell(FromAgent::Told { id, answer });
    }

    /// No answer to an inquiry.
    pub(super) fn decline(&mut self, id: u64, code: Code, message: impl Into<String>) {
        let message = message.into();
        let answer = Err(Declined { code, message });
        self.tell(FromAgent::Told { id, answer });
    }

    /// The same for a reason that is known already.
    pub(super) fn decline_with(&mut self, id: u64, declined: Declined) {
        let answer = Err(declined);
        self.tell(FromAgent::Told { id, answer });
    }

    /// Orders may come, all capabilities of the protocol but these are there.
    pub(super) fn ready(&mut self, lacks: Vec<&'static str>) {
        self.act(Act::Ready { lacks });
    }

    /// Wake the dialect after this long.
    pub(super) fn timer(&mut self, name: u64, after: Duration) {
        self.act(Act::Timer(name, Some(after)));
    }

    /// Do not wake the dialect for this any more.
    pub(super) fn no_timer(&mut self, name: u64) {
        self.act(Act::Timer(name, None));
    }

    /// The agent cannot be used.
    pub(super) fn fail(&mut self, code: Code, message: impl Into<String>) {
        let message = message.into();
        self.act(Act::Fail(Declined { code, message }));
    }
}

/// Someone who speaks a protocol with one agent, for one session.
pub(super) trait Dialect: Send {
    /// The line is open: introduce yourself, take up the conversation or begin one, then say
    /// [`Act::Ready`], within a deadline of your own.
    fn open(&mut self, out: &mut Out);

    /// The session wants something.
    fn hear(&mut self, order: Order, out: &mut Out);

    /// The agent wrote a line. Whatever it is: no panic, nothing unknown is fatal.
    fn read(&mut self, lane: Lane, line: Value, out: &mut Out);

    /// A timer has run out.
    fn late(&mut self, timer: u64, out: &mut Out);

    /// The agent is to end: say goodbye if the protocol has a word for it. The process gets a moment
    /// to leave by itself.
    fn close(&mut self, _out: &mut Out) {}
}

/// The refusal of what a protocol has no word for.
pub(super) fn unsupported(agent: &str, what: &str) -> Declined {
    Declined {
        code: Code::Unsupported,
        message: format!("The agent `{agent}` cannot {what}."),
    }
}

/// The refusal of an inquiry that a protocol has no word for.
pub(super) fn unsupported_inquiry(agent: &str, inquiry: &Inquiry) -> Declined {
    let what = match inquiry {
        Inquiry::Query { topic, .. } => match topic {
            Topic::Models => "list its models",
            Topic::Mcp => "list its MCP servers",
            Topic::Skills => "list its skills",
            Topic::Commands => "list its commands",
            Topic::Tree => "show how its conversation branches",
        },
        Inquiry::Extension { name, .. } => return unsupported(agent, &format!("do `{name}`")),
    };
    unsupported(agent, what)
}

/// A text that the agent wrote where it could have written anything.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The text as most protocols put it.
pub(super) fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}
