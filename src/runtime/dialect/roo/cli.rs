//! The Roo CLI in its stream mode: commands and events as JSON lines over the standard streams.
//!
//! Events carry the number of the command that they came from, so what belongs to an earlier prompt
//! is known by it. What is asked for is approved by the CLI itself, as it was started.

use std::time::Duration;

use serde_json::{Value, json};

use super::settings::{Fit, Settings};
use super::work::{Stage, Work};
use crate::domain::code::Code;
use crate::domain::event::Level;
use crate::domain::id::RunId;
use crate::domain::question::Resolution;
use crate::domain::run::{RunOutcome, Usage};
use crate::runtime::dialect::{Act, Brief, Dialect, Lane, Order, Out, Setup, unsupported};

mod stream;

/// The timers, by name.
mod timer {
    /// The first word of the process.
    pub(super) const GREETING: u64 = 1;
    /// The acknowledgement of a prompt.
    pub(super) const TAKEN: u64 = 2;
    /// The end of a task that was cancelled.
    pub(super) const CANCEL: u64 = 3;
}

const GREETING_WAIT: Duration = Duration::from_secs(30);
const TAKEN_WAIT: Duration = Duration::from_secs(30);
const CANCEL_WAIT: Duration = Duration::from_secs(3);

/// What the IPC can and this cannot.
const LACKS: &[&str] = &["query", "models", "commands", "extension", "resume"];

/// A run, and the commands that are about it.
struct Job {
    work: Work,
    /// The prompt, and the answers that were given since.
    requests: Vec<String>,
    /// The cancel, once there was one.
    cancel: Option<String>,
    /// Has the CLI said that it stops?
    stopping: bool,
    /// What was said last, all of it.
    last: Option<String>,
}

/// Speaks with one process, for one session.
pub(super) struct Cli {
    setup: Setup,
    requests: u64,
    ready: bool,
    /// Is there a task that takes messages?
    open: bool,
    thread: Option<String>,
    settings: Settings,
    latest: u64,
    job: Option<Job>,
}

impl Cli {
    /// Someone who has not been heard yet.
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            setup,
            requests: 0,
            ready: false,
            open: false,
            thread: None,
            settings: Settings::default(),
            latest: 0,
            job: None,
        }
    }

    fn send(&mut self, command: &str, more: Value, out: &mut Out) -> String {
        self.requests += 1;
        let request = self.requests.to_string();
        let mut line = json!({ "command": command, "requestId": request });
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more);
        }
        out.write(line);
        request
    }

    fn prompt(&mut self, run: RunId, brief: &Brief, out: &mut Out) {
        let agent = &self.setup.agent;
        if self.job.is_some() {
            let message = format!("The agent `{agent}` is busy.");
            return out.fail_run(run, Code::Busy, message);
        }
        let work = match Work::new(run, brief, self.latest, agent) {
            Ok(work) => work,
            Err(declined) => return out.refuse(run, declined),
        };
        // The CLI ends at once if it is given a prompt without text.
        if work.text.trim().is_empty() {
            return out.refuse(run, unsupported(agent, "take a prompt without text"));
        }
        if self.open {
            match self.settings.fit(&self.setup, work.mode) {
                Fit::Well => {}
                Fit::Loosely(text) => out.notice(Level::Warn, text),
                Fit::Not(declined) => return out.refuse(run, declined),
            }
        }
        self.dispatch(work, out);
    }

    /// Sends the prompt: to the task if there is one, as a new task otherwise.
    fn dispatch(&mut self, mut work: Work, out: &mut Out) {
        let mut more = json!({ "prompt": work.text });
        if !work.images.is_empty() {
            more["images"] = json!(work.images);
        }
        let command = if self.open { "message" } else { "start" };
        if !self.open {
            more["configuration"] = self.settings.begin(&self.setup, work.mode);
        }
        let request = self.send(command, more, out);
        work.stage = Stage::Sent;
        self.job = Some(Job {
            work,
            requests: vec![request],
            cancel: None,
            stopping: false,
            last: None,
        });
        out.timer(timer::TAKEN, TAKEN_WAIT);
    }

    fn cancel(&mut self, run: RunId, out: &mut Out) {
        let wanted = |job: &Job| job.work.run == run && job.cancel.is_none();
        if !self.job.as_ref().is_some_and(wanted) {
            return;
        }
        let request = self.send("cancel", json!({}), out);
        if let Some(job) = &mut self.job {
            job.work.cancelled = true;
            job.cancel = Some(request);
        }
        out.no_timer(timer::TAKEN);
        out.timer(timer::CANCEL, CANCEL_WAIT);
    }

    fn answer(&mut self, question: &str, resolution: &Resolution, out: &mut Out) {
        let Some(job) = &mut self.job else { return };
        let Some(ask) = job.work.take_question(question) else {
            if matches!(resolution, Resolution::Answered(_)) {
                out.notice(Level::Info, "Roo went on before the answer.");
            }
            return;
        };
        if let Some(text) = ask.reply(resolution) {
            let request = self.send("message", json!({ "prompt": text }), out);
            // What comes of it carries its number.
            if let Some(job) = &mut self.job {
                job.requests.push(request);
            }
        }
    }

    fn starts_fresh(&self, out: &mut Out) {
        out.starts_fresh(&self.setup.agent);
    }

    fn greeted(&mut self, out: &mut Out) {
        if self.ready {
            return;
        }
        self.ready = true;
        out.no_timer(timer::GREETING);
        if self.setup.thread.is_some() || !self.setup.history.is_empty() {
            self.starts_fresh(out);
        }
        out.ready(LACKS.to_vec());
    }

    fn end(&mut self, outcome: RunOutcome, used: Option<Usage>, out: &mut Out) {
        let Some(mut job) = self.job.take() else {
            return;
        };
        out.no_timer(timer::TAKEN);
        out.no_timer(timer::CANCEL);
        let outcome = if job.work.cancelled {
            RunOutcome::Cancelled
        } else {
            outcome
        };
        job.work.speech.finish(out);
        let tool = match &outcome {
            RunOutcome::Completed => "completed",
            RunOutcome::Cancelled => "cancelled",
            RunOutcome::Failed { .. } => "failed",
        };
        job.work.tool_is(tool, out);
        out.end(job.work.run, outcome, used);
    }

    fn fail(&mut self, message: String, out: &mut Out) {
        let code = Code::TaskFailed;
        self.end(RunOutcome::Failed { code, message }, None, out);
    }
}

impl Dialect for Cli {
    fn open(&mut self, out: &mut Out) {
        self.send("ping", json!({}), out);
        out.timer(timer::GREETING, GREETING_WAIT);
    }

    fn hear(&mut self, order: Order, out: &mut Out) {
        match order {
            Order::Prompt { run, brief } => self.prompt(run, &brief, out),
            Order::Cancel { run } => self.cancel(run, out),
            Order::Answer {
                question,
                resolution,
            } => self.answer(&question, &resolution, out),
            Order::Inquire { id, .. } => {
                out.decline_with(id, unsupported(&self.setup.agent, "tell or do that"));
            }
            Order::Settings(change) => {
                if self.settings.change(change) && self.open {
                    let text =
                        "Roo takes settings only with a new task: they do not change this one.";
                    out.notice(Level::Warn, text);
                }
            }
            Order::Steer { .. } | Order::Tools(_) | Order::Context(_) | Order::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _lane: Lane, line: Value, out: &mut Out) {
        self.event(&line, out);
    }

    fn late(&mut self, timer: u64, out: &mut Out) {
        let agent = &self.setup.agent;
        match timer {
            timer::GREETING if !self.ready => {
                let message = format!("The agent `{agent}` did not greet.");
                out.fail(Code::ConnectionLost, message);
            }
            timer::TAKEN => {
                self.fail(format!("The agent `{agent}` did not take the prompt."), out);
                out.act(Act::Finish);
            }
            timer::CANCEL => {
                let stopping = self.job.as_ref().is_some_and(|job| job.stopping);
                self.end(RunOutcome::Cancelled, None, out);
                if !stopping {
                    // It may still be working, and there is no other word for it.
                    out.act(Act::Finish);
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, out: &mut Out) {
        self.send("shutdown", json!({}), out);
    }
}
