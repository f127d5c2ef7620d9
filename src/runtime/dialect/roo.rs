//! Roo Code's own IPC: task commands and events over the socket of an editor's extension.
//!
//! Here is what the gateway says; the extension's events are read in `events`, the messages of its
//! tasks in `messages`. A session is one task of Roo, and the extension tells every client about all
//! of its tasks: those that are not ours are dropped. The Roo CLI speaks something else over its
//! standard streams; that is in `cli`, and chosen by the option `wire`.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Act, Brief, Dialect, Framing, Lane, Order, Out, Protocol, Setup, Transport, unsupported,
};
use crate::domain::code::Code;
use crate::domain::command::{Inquiry, Mode, SettingsChange, Topic};
use crate::domain::event::Level;
use crate::domain::id::RunId;
use crate::domain::question::Resolution;
use crate::domain::run::RunOutcome;

mod ask;
mod cli;
mod events;
mod inquiries;
mod messages;
mod output;
mod settings;
mod speech;
mod tool;
mod totals;
mod work;

use inquiries::{Inquiries, Wanted};
use settings::{Fit, Settings};
use totals::Totals;
use work::{Stage, Work};

/// What is known about it.
pub(super) const PROTOCOL: Protocol = Protocol {
    name: "roo",
    about: "Roo Code's IPC, and the Roo CLI",
    capabilities: &[
        "cancel",
        "thoughts",
        "plan",
        "usage",
        "tools",
        "questions",
        "queue",
        "followUp",
        "query",
        "models",
        "commands",
        "extension",
        "branch",
        "images",
        "attachments",
        "modes",
        "resume",
    ],
    transport: Transport::Unix,
    framing: Framing::FormFeed,
    resumes: true,
    shares: |_| false,
    restart_after: &[],
    options: &[
        (
            "configuration",
            "Roo's settings for a new task, auto-approval among them (an object)",
        ),
        ("act_mode", "Roo's mode for acting (`code` by default)"),
        (
            "plan_mode",
            "Roo's mode for planning (`architect` by default)",
        ),
        (
            "model_key",
            "the setting of Roo that names the model (`apiModelId` by default)",
        ),
        (
            "context_window",
            "how many tokens the model can hold, to tell how much is left",
        ),
        (
            "close_window",
            "close the editor's window at the end (`true`); it stays open by default",
        ),
        (
            "wire",
            "`cli`: the stream of the Roo CLI instead of the IPC",
        ),
    ],
    speaker: |setup| {
        if setup.option("wire") == Some("cli") {
            Box::new(cli::Cli::new(setup))
        } else {
            Box::new(Roo::new(setup))
        }
    },
};

/// The timers, by name. Those of inquiries have names of their own.
mod timer {
    /// The greeting.
    pub(super) const ACK: u64 = 1;
    /// The word that a prompt was taken.
    pub(super) const TAKEN: u64 = 2;
    /// The end of a task that was cancelled.
    pub(super) const CANCEL: u64 = 3;
    /// A task that is to come back.
    pub(super) const WAKE: u64 = 4;
}

const ACK_WAIT: Duration = Duration::from_secs(10);
const TAKEN_WAIT: Duration = Duration::from_secs(30);
/// The gateway itself gives up a run that does not end within 5 s of its cancel.
const CANCEL_WAIT: Duration = Duration::from_secs(3);
const WAKE_WAIT: Duration = Duration::from_secs(10);

/// How the task of this session stands. A message reaches it only while it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// There is none.
    Absent,
    /// It was asked for.
    Starting,
    /// It can be spoken to.
    Open,
    /// It was stopped, and Roo puts it back by itself in a moment.
    Settling,
    /// Roo was asked to put it back.
    Waking,
    /// It is in Roo's history only.
    Asleep,
}

/// Speaks with one extension, for one session.
struct Roo {
    setup: Setup,
    /// Our name, as the extension gave it.
    client: Option<String>,
    task: Option<String>,
    /// Tasks that ours has begun.
    children: BTreeSet<String>,
    /// It is about to begin one, whose name is not known yet.
    delegating: bool,
    standing: Standing,
    /// It was asked for and given up before it began: it must not work for nobody.
    unwanted: bool,
    settings: Settings,
    work: Option<Work>,
    /// The time of the latest message.
    latest: u64,
    totals: Totals,
    inquiries: Inquiries,
}

impl Roo {
    fn new(setup: Setup) -> Self {
        let task = setup.thread.clone();
        Self {
            client: None,
            children: BTreeSet::new(),
            delegating: false,
            standing: if task.is_some() {
                Standing::Asleep
            } else {
                Standing::Absent
            },
            task,
            unwanted: false,
            settings: Settings::default(),
            work: None,
            latest: 0,
            totals: Totals::default(),
            inquiries: Inquiries::default(),
            setup,
        }
    }

    fn command(&self, name: &str, data: Option<Value>, out: &mut Out) {
        let mut command = json!({ "commandName": name });
        if let Some(data) = data {
            command["data"] = data;
        }
        out.write(json!({ "type": "message", "data": {
            "type": "TaskCommand", "origin": "client", "clientId": self.client, "data": command,
        }}));
    }

    fn message(&self, text: &str, images: &[String], out: &mut Out) {
        let mut data = json!({ "text": text });
        if !images.is_empty() {
            data["images"] = json!(images);
        }
        self.command("SendMessage", Some(data), out);
    }

    fn prompt(&mut self, run: RunId, brief: &Brief, out: &mut Out) {
        let agent = &self.setup.agent;
        if self.work.is_some() {
            let message = format!("The agent `{agent}` is busy.");
            return out.fail_run(run, Code::Busy, message);
        }
        let work = match Work::new(run, brief, self.latest, agent) {
            Ok(work) => work,
            Err(declined) => return out.refuse(run, declined),
        };
        if self.standing != Standing::Absent && !self.suits(run, brief.mode, out) {
            return;
        }
        self.work = Some(work);
        match self.standing {
            Standing::Absent | Standing::Starting => self.start_task(out),
            Standing::Open => self.speak(out),
            Standing::Settling | Standing::Waking => out.timer(timer::WAKE, WAKE_WAIT),
            Standing::Asleep => self.wake(out),
        }
    }

    /// Can the task take this prompt? If not, its run has ended.
    fn suits(&self, run: RunId, wanted: Mode, out: &mut Out) -> bool {
        match self.settings.fit(&self.setup, wanted) {
            Fit::Well => {}
            Fit::Loosely(text) => out.notice(Level::Warn, text),
            Fit::Not(declined) => {
                out.refuse(run, declined);
                return false;
            }
        }
        true
    }

    fn start_task(&mut self, out: &mut Out) {
        let Some(work) = &mut self.work else { return };
        work.echo = Some(work.text.clone());
        let (text, images, mode) = (work.text.clone(), work.images.clone(), work.mode);
        let configuration = self.settings.begin(&self.setup, mode);
        let mut data = json!({ "configuration": configuration, "text": text, "newTab": false });
        if !images.is_empty() {
            data["images"] = json!(images);
        }
        self.task = None;
        self.children.clear();
        self.delegating = false;
        self.standing = Standing::Starting;
        self.command("StartNewTask", Some(data), out);
        out.timer(timer::TAKEN, TAKEN_WAIT);
    }

    /// Says the prompt to the task, which is open.
    fn speak(&mut self, out: &mut Out) {
        let Some(work) = &mut self.work else { return };
        work.stage = Stage::Sent;
        let (text, images) = (work.text.clone(), work.images.clone());
        self.message(&text, &images, out);
        out.timer(timer::TAKEN, TAKEN_WAIT);
    }

    /// Asks Roo to put the task back.
    fn wake(&mut self, out: &mut Out) {
        let Some(task) = self.task.clone() else {
            return;
        };
        self.totals.take_up(&task);
        self.standing = Standing::Waking;
        self.command("ResumeTask", Some(json!(task)), out);
        out.timer(timer::WAKE, WAKE_WAIT);
    }

    /// The task did not come back in time.
    fn did_not_wake(&mut self, out: &mut Out) {
        if self.work.as_ref().is_none_or(Work::is_sent) {
            return;
        }
        match self.standing {
            Standing::Settling => self.wake(out),
            Standing::Waking => {
                self.starts_fresh(out);
                self.start_task(out);
            }
            _ => {}
        }
    }

    fn starts_fresh(&self, out: &mut Out) {
        out.starts_fresh(&self.setup.agent);
    }

    fn cancel(&mut self, run: RunId, out: &mut Out) {
        let waits = matches!(self.standing, Standing::Settling | Standing::Waking);
        let Some(work) = self.work.as_mut().filter(|work| work.run == run) else {
            return;
        };
        let stopping = work.is_stopping();
        work.cancelled = true;
        if stopping {
            return;
        }
        if waits && !work.is_sent() {
            // Nothing of it has reached Roo.
            return self.end(RunOutcome::Cancelled, None, out);
        }
        self.stop(out);
    }

    fn stop(&self, out: &mut Out) {
        self.command("CancelTask", None, out);
        out.no_timer(timer::TAKEN);
        out.timer(timer::CANCEL, CANCEL_WAIT);
    }

    fn answer(&mut self, question: &str, resolution: &Resolution, out: &mut Out) {
        let Some(work) = &mut self.work else { return };
        let Some(ask) = work.take_question(question) else {
            // A message now would be heard as something else, even as an approval of the next tool.
            if matches!(resolution, Resolution::Answered(_)) {
                out.notice(
                    Level::Info,
                    "That was settled in the editor before the answer.",
                );
            }
            return;
        };
        let Some(text) = ask.reply(resolution) else {
            return;
        };
        if ask.is_approval() {
            work.tool_is("denied", out);
        }
        if *resolution == Resolution::Expired {
            // Somebody may be answering in the editor, and a message that comes a moment after that
            // would approve the next tool. A stop approves nothing, whenever it comes.
            work.unanswered = true;
            return self.stop(out);
        }
        self.message(&text, &[], out);
    }

    fn inquire(&mut self, id: u64, inquiry: &Inquiry, out: &mut Out) {
        let wanted = match inquiry {
            Inquiry::Query {
                topic: Topic::Models,
                params,
            } if params["provider"].as_str().is_none_or(|name| name == "roo") => Wanted::Models {
                details: params["include_details"] == true,
            },
            Inquiry::Query {
                topic: Topic::Commands,
                ..
            } => Wanted::Commands,
            Inquiry::Extension { name, .. } if name == "modes" => Wanted::Modes,
            _ => {
                return out.decline_with(id, unsupported(&self.setup.agent, "tell or do that"));
            }
        };
        if let Some(command) = self.inquiries.ask(id, wanted, out) {
            self.command(command, None, out);
        }
    }

    fn change(&mut self, change: SettingsChange, out: &mut Out) {
        if self.settings.change(change) && self.standing != Standing::Absent {
            let text = "Roo takes settings only with a new task: they do not change this one.";
            out.notice(Level::Warn, text);
        }
    }

    /// Who spoke first: the extension, and this is our name from now on.
    fn greeted(&mut self, ack: &Value, out: &mut Out) {
        let Some(client) = ack["clientId"].as_str() else {
            return out.act(Act::Odd("a greeting without a name for us".into()));
        };
        let first = self.client.replace(client.to_owned()).is_none();
        if first {
            out.no_timer(timer::ACK);
            if self.task.is_none() && !self.setup.history.is_empty() {
                self.starts_fresh(out);
            }
            out.ready(Vec::new());
        }
    }
}

impl Dialect for Roo {
    fn open(&mut self, out: &mut Out) {
        out.timer(timer::ACK, ACK_WAIT);
    }

    fn hear(&mut self, order: Order, out: &mut Out) {
        match order {
            Order::Prompt { run, brief } => self.prompt(run, &brief, out),
            Order::Cancel { run } => self.cancel(run, out),
            Order::Answer {
                question,
                resolution,
            } => self.answer(&question, &resolution, out),
            Order::Inquire { id, inquiry } => self.inquire(id, &inquiry, out),
            Order::Settings(change) => self.change(change, out),
            Order::Steer { .. } | Order::Tools(_) | Order::Context(_) | Order::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _lane: Lane, line: Value, out: &mut Out) {
        let message = &line["data"];
        match (line["type"].as_str(), message["type"].as_str()) {
            (Some("message"), Some("Ack")) => self.greeted(&message["data"], out),
            (Some("message"), Some("TaskEvent")) => self.event(&message["data"], out),
            _ => out.act(Act::Odd("a line that is not a message of Roo".into())),
        }
    }

    fn late(&mut self, timer: u64, out: &mut Out) {
        let agent = &self.setup.agent;
        match timer {
            timer::ACK => {
                let message = format!("The agent `{agent}` did not greet.");
                out.fail(Code::ConnectionLost, message);
            }
            timer::TAKEN => self.not_taken(out),
            timer::CANCEL => self.not_cancelled(out),
            timer::WAKE => self.did_not_wake(out),
            other => self.inquiries.late(other, agent, out),
        }
    }

    fn close(&mut self, out: &mut Out) {
        if self.client.is_none() {
            return;
        }
        if self.work.as_ref().is_some_and(|work| !work.is_stopping()) {
            self.command("CancelTask", None, out);
        }
        if self.setup.options.get("close_window") == Some(&Value::Bool(true)) {
            self.command("CloseTask", None, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::dialect::Person;

    #[test]
    fn a_cancel_without_an_echo_counts_before_the_gateway_gives_up() {
        let mut roo = Roo::new(Setup {
            agent: "tested".into(),
            version: "0.1.0",
            directory: "/w".into(),
            thread: None,
            history: Vec::new(),
            session: "ses_1".into(),
            user: Person {
                id: "usr_1".into(),
                name: "ada".into(),
            },
            options: std::collections::BTreeMap::new(),
        });
        let (run, mut out) = (RunId::new(), Out::default());
        roo.prompt(run, &Brief::new("hi", Mode::Act), &mut out);
        out.take();
        roo.cancel(run, &mut out);
        let waits = out.take().into_iter().find_map(|act| match act {
            Act::Timer(timer::CANCEL, wait) => wait,
            _ => None,
        });
        assert!(waits.is_some_and(|wait| wait < Duration::from_secs(5)));
    }
}
