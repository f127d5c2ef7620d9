//! Roo Code's IPC: task commands and events over the socket of an editor's extension.
//!
//! This file sends commands; `events` handles the events of the extension, `messages` the messages of
//! its tasks. A session is one task of Roo. The extension reports all of its tasks to every client:
//! those of others are dropped. The option `wire` selects the stream of the Roo CLI instead (`cli`).

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Actions, CarriedSettings, Dialect, Framing, PromptContent, Protocol, Setup, StreamKind,
    ToAgent, Transport, unsupported,
};
use crate::domain::command::{AgentRequest, Mode, SettingsChange, Topic};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::Level;
use crate::domain::id::RunId;
use crate::domain::question::Resolution;
use crate::domain::run::RunOutcome;

mod ask;
mod cli;
mod events;
mod message_buffer;
mod messages;
mod queries;
mod run;
mod settings;
mod tool;
mod tool_output;
mod usage;

use queries::{PendingQueries, Query};
use run::{PromptState, Run};
use settings::{ModeCheck, Settings};
use usage::UsageTotals;

pub(super) const PROTOCOL: Protocol = Protocol {
    name: "roo",
    about: "Roo Code's IPC, and the Roo CLI",
    capabilities: "cancel thoughts plan usage tools questions queue followUp query models \
        commands extension branch images attachments modes resume",
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
    settings: CarriedSettings::Any,
    build: |setup| {
        if setup.option("wire") == Some("cli") {
            Box::new(cli::Cli::new(setup))
        } else {
            Box::new(Roo::new(setup))
        }
    },
};

/// Queries have timers of their own.
mod timer {
    pub(super) const ACK: u64 = 1;
    /// The first event after a prompt.
    pub(super) const ACCEPT: u64 = 2;
    /// The end of a cancelled task.
    pub(super) const CANCEL: u64 = 3;
    /// The return of a resumed task.
    pub(super) const RESUME: u64 = 4;
}

const ACK_TIMEOUT: Duration = Duration::from_secs(10);
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);
/// Less than the 5 s after which the gateway ends a cancelled run itself.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(3);
const RESUME_TIMEOUT: Duration = Duration::from_secs(10);

/// State of the task of this session. Only an open task takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskState {
    Absent,
    Starting,
    Open,
    /// Roo restores an aborted task by itself in a moment.
    Aborted,
    /// `ResumeTask` was sent.
    Resuming,
    /// Only in Roo's history.
    Stored,
}

struct Roo {
    setup: Setup,
    /// Assigned by the extension in its `Ack`.
    client_id: Option<String>,
    task: Option<String>,
    /// Tasks that ours has started.
    subtasks: BTreeSet<String>,
    /// The task starts a subtask whose id is not known yet.
    delegating: bool,
    task_state: TaskState,
    /// The prompt timed out before its task was created: cancel the task then, or it would work for
    /// no user.
    cancel_when_created: bool,
    settings: Settings,
    run: Option<Run>,
    /// `ts` of the latest message.
    latest_ts: u64,
    usage: UsageTotals,
    queries: PendingQueries,
}

impl Roo {
    fn new(setup: Setup) -> Self {
        let task = setup.thread.clone();
        Self {
            client_id: None,
            subtasks: BTreeSet::new(),
            delegating: false,
            task_state: if task.is_some() {
                TaskState::Stored
            } else {
                TaskState::Absent
            },
            task,
            cancel_when_created: false,
            settings: Settings::default(),
            run: None,
            latest_ts: 0,
            usage: UsageTotals::default(),
            queries: PendingQueries::default(),
            setup,
        }
    }

    fn send_command(&self, name: &str, data: Option<Value>, out: &mut Actions) {
        let mut command = json!({ "commandName": name });
        if let Some(data) = data {
            command["data"] = data;
        }
        out.write(json!({ "type": "message", "data": {
            "type": "TaskCommand", "origin": "client", "clientId": self.client_id, "data": command,
        }}));
    }

    fn send_message(&self, text: &str, images: &[String], out: &mut Actions) {
        let mut data = json!({ "text": text });
        if !images.is_empty() {
            data["images"] = json!(images);
        }
        self.send_command("SendMessage", Some(data), out);
    }

    fn prompt(&mut self, run: RunId, content: &PromptContent, out: &mut Actions) {
        let agent = &self.setup.agent;
        if self.run.is_some() {
            let message = format!("The agent `{agent}` is busy.");
            return out.fail_run(run, ErrorCode::Busy, message);
        }
        let current = match Run::new(run, content, self.latest_ts, agent) {
            Ok(current) => current,
            Err(declined) => return out.refuse_run(run, declined),
        };
        if self.task_state != TaskState::Absent && !self.check_mode(run, content.mode, out) {
            return;
        }
        self.run = Some(current);
        match self.task_state {
            TaskState::Absent | TaskState::Starting => self.start_task(out),
            TaskState::Open => self.send_prompt(out),
            TaskState::Aborted | TaskState::Resuming => {
                out.set_timer(timer::RESUME, RESUME_TIMEOUT);
            }
            TaskState::Stored => self.resume_task(out),
        }
    }

    /// Returns whether the task can take a prompt in this mode; if not, the run has ended.
    fn check_mode(&self, run: RunId, wanted: Mode, out: &mut Actions) -> bool {
        match self.settings.check_mode(&self.setup, wanted) {
            ModeCheck::Matches => {}
            ModeCheck::Warn(text) => out.emit_notice(Level::Warn, text),
            ModeCheck::Refuse(declined) => {
                out.refuse_run(run, declined);
                return false;
            }
        }
        true
    }

    fn start_task(&mut self, out: &mut Actions) {
        let Some(current) = &mut self.run else { return };
        current.echo = Some(current.text.clone());
        let (text, images, mode) = (current.text.clone(), current.images.clone(), current.mode);
        let configuration = self.settings.for_new_task(&self.setup, mode);
        let mut data = json!({ "configuration": configuration, "text": text, "newTab": false });
        if !images.is_empty() {
            data["images"] = json!(images);
        }
        self.task = None;
        self.subtasks.clear();
        self.delegating = false;
        self.task_state = TaskState::Starting;
        self.send_command("StartNewTask", Some(data), out);
        out.set_timer(timer::ACCEPT, ACCEPT_TIMEOUT);
    }

    fn send_prompt(&mut self, out: &mut Actions) {
        let Some(current) = &mut self.run else { return };
        current.prompt_state = PromptState::Sent;
        let (text, images) = (current.text.clone(), current.images.clone());
        self.send_message(&text, &images, out);
        out.set_timer(timer::ACCEPT, ACCEPT_TIMEOUT);
    }

    fn resume_task(&mut self, out: &mut Actions) {
        let Some(task) = self.task.clone() else {
            return;
        };
        self.usage.resume(&task);
        self.task_state = TaskState::Resuming;
        self.send_command("ResumeTask", Some(json!(task)), out);
        out.set_timer(timer::RESUME, RESUME_TIMEOUT);
    }

    fn resume_timed_out(&mut self, out: &mut Actions) {
        if self.run.as_ref().is_none_or(Run::is_sent) {
            return;
        }
        match self.task_state {
            TaskState::Aborted => self.resume_task(out),
            TaskState::Resuming => {
                out.notice_fresh_start(&self.setup.agent);
                self.start_task(out);
            }
            _ => {}
        }
    }

    fn cancel(&mut self, run: RunId, out: &mut Actions) {
        let is_away = matches!(self.task_state, TaskState::Aborted | TaskState::Resuming);
        let Some(current) = self.run.as_mut().filter(|current| current.id == run) else {
            return;
        };
        let is_stopping = current.is_stopping();
        current.cancelled = true;
        if is_stopping {
            return;
        }
        if is_away && !current.is_sent() {
            // The prompt has not reached Roo.
            return self.end_run(RunOutcome::Cancelled, None, out);
        }
        self.send_cancel(out);
    }

    fn send_cancel(&self, out: &mut Actions) {
        self.send_command("CancelTask", None, out);
        out.clear_timer(timer::ACCEPT);
        out.set_timer(timer::CANCEL, CANCEL_TIMEOUT);
    }

    fn answer_question(&mut self, question: &str, resolution: &Resolution, out: &mut Actions) {
        let Some(current) = &mut self.run else { return };
        let Some(ask) = current.take_question(question) else {
            // A message now would answer something else, and could even approve the next tool.
            if matches!(resolution, Resolution::Answered(_)) {
                out.emit_notice(
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
            current.set_tool_status("denied", out);
        }
        if *resolution == Resolution::Expired {
            // The user may answer in the editor at the same time, and a message right after that
            // would approve the next tool. A cancel never approves anything.
            current.unanswered = true;
            return self.send_cancel(out);
        }
        self.send_message(&text, &[], out);
    }

    fn query(&mut self, id: u64, request: &AgentRequest, out: &mut Actions) {
        let query = match request {
            AgentRequest::Query {
                topic: Topic::Models,
                params,
            } if params["provider"].as_str().is_none_or(|name| name == "roo") => Query::Models {
                details: params["include_details"] == true,
            },
            AgentRequest::Query {
                topic: Topic::Commands,
                ..
            } => Query::Commands,
            AgentRequest::Extension { name, .. } if name == "modes" => Query::Modes,
            _ => {
                return out.decline_with(id, unsupported(&self.setup.agent, "tell or do that"));
            }
        };
        if let Some(command) = self.queries.add(id, query, out) {
            self.send_command(command, None, out);
        }
    }

    fn change_settings(&mut self, change: SettingsChange, out: &mut Actions) {
        if self.settings.change(change) && self.task_state != TaskState::Absent {
            out.emit_notice(Level::Warn, settings::NOT_APPLIED);
        }
    }

    fn handle_ack(&mut self, ack: &Value, out: &mut Actions) {
        let Some(client_id) = ack["clientId"].as_str() else {
            return out.unexpected("a greeting without a name for us");
        };
        let is_first = self.client_id.replace(client_id.to_owned()).is_none();
        if is_first {
            out.clear_timer(timer::ACK);
            if self.task.is_none() && !self.setup.history.is_empty() {
                out.notice_fresh_start(&self.setup.agent);
            }
            out.ready(Vec::new());
        }
    }
}

impl Dialect for Roo {
    fn open(&mut self, out: &mut Actions) {
        out.set_timer(timer::ACK, ACK_TIMEOUT);
    }

    fn handle(&mut self, command: ToAgent, out: &mut Actions) {
        match command {
            ToAgent::Prompt { run, prompt } => self.prompt(run, &prompt, out),
            ToAgent::Resume { run, .. } => out.refuse_resume(run),
            ToAgent::Cancel { run } => self.cancel(run, out),
            ToAgent::Answer {
                question,
                resolution,
            } => self.answer_question(&question, &resolution, out),
            ToAgent::Request { id, request } => self.query(id, &request, out),
            ToAgent::Settings(change) => self.change_settings(change, out),
            ToAgent::Steer { .. }
            | ToAgent::FollowUp { .. }
            | ToAgent::Tools(_)
            | ToAgent::Context(_)
            | ToAgent::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _stream: StreamKind, line: Value, out: &mut Actions) {
        let message = &line["data"];
        match (line["type"].as_str(), message["type"].as_str()) {
            (Some("message"), Some("Ack")) => self.handle_ack(&message["data"], out),
            (Some("message"), Some("TaskEvent")) => self.handle_event(&message["data"], out),
            _ => out.unexpected("a line that is not a message of Roo"),
        }
    }

    fn open_questions(&self) -> Vec<String> {
        self.run.iter().filter_map(Run::open_question).collect()
    }

    fn on_timer(&mut self, timer: u64, out: &mut Actions) {
        let agent = &self.setup.agent;
        match timer {
            timer::ACK => {
                let message = format!("The agent `{agent}` did not greet.");
                out.fail(ErrorCode::ConnectionLost, message);
            }
            timer::ACCEPT => self.accept_timed_out(out),
            timer::CANCEL => self.cancel_timed_out(out),
            timer::RESUME => self.resume_timed_out(out),
            other => self.queries.timed_out(other, agent, out),
        }
    }

    fn close(&mut self, out: &mut Actions) {
        if self.client_id.is_none() {
            return;
        }
        if self
            .run
            .as_ref()
            .is_some_and(|current| !current.is_stopping())
        {
            self.send_command("CancelTask", None, out);
        }
        if self.setup.options.get("close_window") == Some(&Value::Bool(true)) {
            self.send_command("CloseTask", None, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::dialect::{Action, transcripts};

    #[test]
    fn an_unconfirmed_cancel_ends_the_run_before_the_gateway_kills_the_agent() {
        let mut roo = Roo::new(transcripts::setup(&Value::Null));
        let (run, mut out) = (RunId::new(), Actions::default());
        roo.prompt(run, &PromptContent::new("hi", Mode::Act), &mut out);
        out.take();
        roo.cancel(run, &mut out);
        let timeout = out.take().into_iter().find_map(|act| match act {
            Action::SetTimer(timer::CANCEL, timeout) => timeout,
            _ => None,
        });
        assert!(timeout.is_some_and(|timeout| timeout < Duration::from_secs(5)));
    }
}
