//! Roo CLI: its stream mode, commands and events as JSON lines over the standard streams.
//!
//! Events carry the id of the command that caused them, so those of an earlier prompt are
//! recognised. Approvals are decided by the CLI itself, by its start options.

use std::time::Duration;

use serde_json::{Value, json};

use super::run::{PromptState, Run};
use super::settings::{self, ModeCheck, Settings};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::Level;
use crate::domain::id::RunId;
use crate::domain::question::Resolution;
use crate::domain::run::{RunOutcome, Usage};
use crate::runtime::dialect::{
    Action, Actions, Dialect, PromptContent, Setup, StreamKind, ToAgent, unsupported,
};

mod events;

mod timer {
    pub(super) const HANDSHAKE: u64 = 1;
    pub(super) const ACCEPT: u64 = 2;
    /// The end of a cancelled task.
    pub(super) const CANCEL: u64 = 3;
}

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);
const CANCEL_TIMEOUT: Duration = Duration::from_secs(3);

/// Capabilities of the IPC that the stream lacks.
const MISSING: &[&str] = &["query", "models", "commands", "extension", "resume"];

struct CliRun {
    run: Run,
    /// The prompt and the answers since.
    requests: Vec<String>,
    cancel_request: Option<String>,
    /// Has the CLI confirmed the cancel?
    is_stopping: bool,
    last_text: Option<String>,
}

pub(super) struct Cli {
    setup: Setup,
    request_count: u64,
    ready: bool,
    /// Is there a task that takes messages?
    has_task: bool,
    thread: Option<String>,
    settings: Settings,
    latest_ts: u64,
    run: Option<CliRun>,
}

impl Cli {
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            setup,
            request_count: 0,
            ready: false,
            has_task: false,
            thread: None,
            settings: Settings::default(),
            latest_ts: 0,
            run: None,
        }
    }

    fn send(&mut self, command: &str, more: Value, out: &mut Actions) -> String {
        self.request_count += 1;
        let request = self.request_count.to_string();
        let mut line = json!({ "command": command, "requestId": request });
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more);
        }
        out.write(line);
        request
    }

    fn prompt(&mut self, run: RunId, content: &PromptContent, out: &mut Actions) {
        let agent = &self.setup.agent;
        if self.run.is_some() {
            let message = format!("The agent `{agent}` is busy.");
            return out.fail_run(run, ErrorCode::Busy, message);
        }
        let new_run = match Run::new(run, content, self.latest_ts, agent) {
            Ok(new_run) => new_run,
            Err(declined) => return out.refuse_run(run, declined),
        };
        // The CLI exits on a prompt without text.
        if new_run.text.trim().is_empty() {
            return out.refuse_run(run, unsupported(agent, "take a prompt without text"));
        }
        if self.has_task {
            match self.settings.check_mode(&self.setup, new_run.mode) {
                ModeCheck::Matches => {}
                ModeCheck::Warn(text) => out.emit_notice(Level::Warn, text),
                ModeCheck::Refuse(declined) => return out.refuse_run(run, declined),
            }
        }
        self.send_prompt(new_run, out);
    }

    fn send_prompt(&mut self, mut new_run: Run, out: &mut Actions) {
        let mut more = json!({ "prompt": new_run.text });
        if !new_run.images.is_empty() {
            more["images"] = json!(new_run.images);
        }
        let command = if self.has_task { "message" } else { "start" };
        if !self.has_task {
            more["configuration"] = self.settings.for_new_task(&self.setup, new_run.mode);
        }
        let request = self.send(command, more, out);
        new_run.prompt_state = PromptState::Sent;
        self.run = Some(CliRun {
            run: new_run,
            requests: vec![request],
            cancel_request: None,
            is_stopping: false,
            last_text: None,
        });
        out.set_timer(timer::ACCEPT, ACCEPT_TIMEOUT);
    }

    fn cancel(&mut self, run: RunId, out: &mut Actions) {
        let is_cancellable =
            |current: &CliRun| current.run.id == run && current.cancel_request.is_none();
        if !self.run.as_ref().is_some_and(is_cancellable) {
            return;
        }
        let request = self.send("cancel", json!({}), out);
        if let Some(current) = &mut self.run {
            current.run.cancelled = true;
            current.cancel_request = Some(request);
        }
        out.clear_timer(timer::ACCEPT);
        out.set_timer(timer::CANCEL, CANCEL_TIMEOUT);
    }

    fn answer_question(&mut self, question: &str, resolution: &Resolution, out: &mut Actions) {
        let Some(current) = &mut self.run else { return };
        let Some(ask) = current.run.take_question(question) else {
            if matches!(resolution, Resolution::Answered(_)) {
                out.emit_notice(Level::Info, "Roo went on before the answer.");
            }
            return;
        };
        if let Some(text) = ask.reply(resolution) {
            let request = self.send("message", json!({ "prompt": text }), out);
            // Events that follow carry its id.
            if let Some(current) = &mut self.run {
                current.requests.push(request);
            }
        }
    }

    fn handshake_done(&mut self, out: &mut Actions) {
        if self.ready {
            return;
        }
        self.ready = true;
        out.clear_timer(timer::HANDSHAKE);
        if self.setup.thread.is_some() || !self.setup.history.is_empty() {
            out.notice_fresh_start(&self.setup.agent);
        }
        out.ready(MISSING.to_vec());
    }

    fn end_run(&mut self, outcome: RunOutcome, usage: Option<Usage>, out: &mut Actions) {
        let Some(CliRun { run, .. }) = self.run.take() else {
            return;
        };
        out.clear_timer(timer::ACCEPT);
        out.clear_timer(timer::CANCEL);
        let outcome = if run.cancelled {
            RunOutcome::Cancelled
        } else {
            outcome
        };
        run.end(outcome, usage, out);
    }

    fn fail_run(&mut self, message: String, out: &mut Actions) {
        let code = ErrorCode::TaskFailed;
        self.end_run(RunOutcome::Failed { code, message }, None, out);
    }
}

impl Dialect for Cli {
    fn open(&mut self, out: &mut Actions) {
        self.send("ping", json!({}), out);
        out.set_timer(timer::HANDSHAKE, HANDSHAKE_TIMEOUT);
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
            ToAgent::Request { id, .. } => {
                out.decline_with(id, unsupported(&self.setup.agent, "tell or do that"));
            }
            ToAgent::Settings(change) => {
                if self.settings.change(change) && self.has_task {
                    out.emit_notice(Level::Warn, settings::NOT_APPLIED);
                }
            }
            ToAgent::Steer { .. }
            | ToAgent::FollowUp { .. }
            | ToAgent::Tools(_)
            | ToAgent::Context(_)
            | ToAgent::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _stream: StreamKind, line: Value, out: &mut Actions) {
        self.handle_event(&line, out);
    }

    fn open_questions(&self) -> Vec<String> {
        let run = self.run.as_ref().map(|current| &current.run);
        run.and_then(Run::open_question).into_iter().collect()
    }

    fn on_timer(&mut self, timer: u64, out: &mut Actions) {
        let agent = &self.setup.agent;
        match timer {
            timer::HANDSHAKE if !self.ready => {
                let message = format!("The agent `{agent}` did not greet.");
                out.fail(ErrorCode::ConnectionLost, message);
            }
            timer::ACCEPT => {
                self.fail_run(format!("The agent `{agent}` did not take the prompt."), out);
                out.push(Action::Finish);
            }
            timer::CANCEL => {
                let is_stopping = self.run.as_ref().is_some_and(|current| current.is_stopping);
                self.end_run(RunOutcome::Cancelled, None, out);
                if !is_stopping {
                    // It may still work, and no other command stops it.
                    out.push(Action::Finish);
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, out: &mut Actions) {
        self.send("shutdown", json!({}), out);
    }
}
