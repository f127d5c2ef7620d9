//! The events of the extension: the life of its tasks.

use serde_json::Value;

use super::totals::context_left;
use super::work::{Stage, Work};
use super::{PROTOCOL, Roo, Standing, timer};
use crate::domain::code::Code;
use crate::domain::event::Level;
use crate::domain::run::{RunOutcome, Usage};
use crate::runtime::dialect::{Act, Out, text_of};
use crate::runtime::talk::FromAgent;

impl Roo {
    /// Reads an event, whatever it is.
    pub(super) fn event(&mut self, event: &Value, out: &mut Out) {
        let Some(name) = event["eventName"].as_str() else {
            return out.act(Act::Odd("an event without a name".into()));
        };
        let payload = &event["payload"];
        if self.inquiries.answered(name, &payload[0], out) {
            return;
        }
        match name {
            "taskCreated" => return self.created(payload[0].as_str().unwrap_or_default(), out),
            // These are about the editor, not about a task.
            "modeChanged" | "providerProfileChanged" => return,
            _ => {}
        }
        let task = match name {
            "message" => &payload[0]["taskId"],
            _ => &payload[0],
        };
        match task.as_str() {
            Some(task) if self.is_ours(task) => self.of_task(name, task, event, out),
            Some(task) => out.act(Act::Stray(format!("{name:.64} of the task `{task:.64}`"))),
            None => out.act(Act::Odd(format!("{name:.64} without a task"))),
        }
    }

    fn is_ours(&self, task: &str) -> bool {
        self.task.as_deref() == Some(task) || self.children.contains(task)
    }

    fn is_child(&self, task: &str) -> bool {
        self.children.contains(task)
    }

    fn created(&mut self, task: &str, out: &mut Out) {
        if self.is_ours(task) {
            return;
        }
        if self.standing == Standing::Starting && self.task.is_none() && !task.is_empty() {
            self.task = Some(task.to_owned());
            self.standing = Standing::Open;
            out.tell(FromAgent::Thread(task.to_owned()));
            if let Some(work) = &mut self.work {
                work.stage = Stage::Sent;
            }
            self.accepted(out);
            if self.work.as_ref().is_some_and(Work::is_stopping) {
                // The first one came when there was nothing to cancel.
                self.command("CancelTask", None, out);
            }
        } else if self.delegating {
            self.delegating = false;
            self.children.insert(task.to_owned());
        } else {
            if std::mem::take(&mut self.unwanted) {
                self.command("CancelTask", None, out);
            }
            out.act(Act::Stray(format!("taskCreated of the task `{task:.64}`")));
        }
    }

    fn of_task(&mut self, name: &str, task: &str, event: &Value, out: &mut Out) {
        let payload = &event["payload"];
        match name {
            "message" => self.task_message(task, &payload[0]["message"], out),
            "taskStarted" | "taskActive" => self.accepted(out),
            "taskAskResponded" => self.ask_responded(out),
            "taskInteractive" => self.interactive(out),
            "taskIdle" => self.idle(out),
            "taskCompleted" => self.completed(task, payload, out),
            "taskAborted" => self.aborted(task, out),
            "taskTokenUsageUpdated" => {
                if let Some(used) = self.used(task, &payload[1], out) {
                    out.tell(FromAgent::Usage(used));
                }
            }
            "taskToolFailed" => self.tool_failed(&payload[2], out),
            "taskModeSwitched" => self.settings.mode = payload[1].as_str().map(str::to_owned),
            "taskSpawned" | "taskDelegated" => {
                if let Some(child) = payload[1].as_str() {
                    self.delegating = false;
                    self.children.insert(child.to_owned());
                }
            }
            "taskResumable"
            | "taskFocused"
            | "taskUnfocused"
            | "taskPaused"
            | "taskUnpaused"
            | "taskDelegationCompleted"
            | "taskDelegationResumed"
            | "taskUserMessage"
            | "queuedMessagesUpdated" => {}
            _ => out.raw(PROTOCOL.name, event.clone()),
        }
    }

    /// Roo works on what was said.
    pub(super) fn accepted(&mut self, out: &mut Out) {
        if let Some(work) = &mut self.work
            && work.accept()
        {
            out.no_timer(timer::TAKEN);
            out.tell(FromAgent::Accepted { run: work.run });
        }
    }

    /// Somebody has answered what was asked: we, the settings, or a person in the editor.
    fn ask_responded(&mut self, out: &mut Out) {
        self.accepted(out);
        if let Some(work) = &mut self.work {
            work.settle(out);
            work.tool_is("running", out);
        }
    }

    /// What was asked last waits for a person.
    fn interactive(&mut self, out: &mut Out) {
        let Some(work) = &mut self.work else {
            return out.act(Act::Odd("a question without a run".into()));
        };
        let Some(ask) = &mut work.ask else { return };
        if ask.told || !(ask.is_approval() || ask.is_question()) {
            return;
        }
        ask.told = true;
        if ask.is_approval() && !work.warned {
            work.warned = true;
            let text = "Roo waits for an approval that only its editor or its auto-approval \
                        settings can give.";
            out.notice(Level::Warn, text);
        }
        out.tell(FromAgent::Asked {
            run: work.run,
            question: ask.name(),
            asked: Box::new(ask.question()),
            patience: None,
        });
    }

    /// The task waits, and nothing goes on by itself.
    fn idle(&mut self, out: &mut Out) {
        let ask = self.work.as_ref().and_then(|work| work.ask.as_ref());
        let Some(ask) = ask else { return };
        let message = match ask.kind.as_str() {
            "api_req_failed" => format!("The request to the model failed: {}", ask.text),
            "auto_approval_max_req_reached" => {
                "Roo has used up what it may do without being asked.".into()
            }
            _ => return self.interactive(out),
        };
        // A message is no answer to this: the task has to be taken up anew.
        self.standing = Standing::Asleep;
        let code = Code::TaskFailed;
        self.end(RunOutcome::Failed { code, message }, None, out);
    }

    fn completed(&mut self, task: &str, payload: &Value, out: &mut Out) {
        let used = self.used(task, &payload[1], out);
        let part = self.is_child(task) || payload[3]["isSubtask"] == true;
        if !part
            && self
                .work
                .as_ref()
                .is_some_and(|work| work.stage == Stage::Accepted)
        {
            self.end(RunOutcome::Completed, used, out);
        } else if let Some(used) = used {
            out.tell(FromAgent::Usage(used));
        }
    }

    fn aborted(&mut self, task: &str, out: &mut Out) {
        let stopping = self.work.as_ref().is_some_and(Work::is_stopping);
        // A task that begins another is put away meanwhile, and the other one at its end.
        let handed_over = self.delegating || !self.children.is_empty();
        if handed_over && !stopping {
            self.children.remove(task);
            return;
        }
        self.standing = Standing::Settling;
        if self.work.as_ref().is_some_and(|work| !work.is_sent()) {
            return;
        }
        let message = "The task was stopped in the editor.".into();
        let code = Code::TaskFailed;
        self.end(RunOutcome::Failed { code, message }, None, out);
    }

    fn tool_failed(&mut self, error: &Value, out: &mut Out) {
        if let Some(work) = &mut self.work {
            work.tool_said("failed", &text_of(error), out);
        }
    }

    /// What is new in the totals of a task.
    fn used(&mut self, task: &str, total: &Value, out: &mut Out) -> Option<Usage> {
        let window = self.setup.options.get("context_window");
        let left = window.and_then(Value::as_u64);
        if let Some(left) = left.and_then(|window| context_left(total, window)) {
            out.tell(FromAgent::ContextLeft(left));
        }
        self.totals.beyond(task, total)
    }

    /// The run is over, as cancelled if that was asked for.
    pub(super) fn end(&mut self, outcome: RunOutcome, used: Option<Usage>, out: &mut Out) {
        let Some(mut work) = self.work.take() else {
            return;
        };
        for timer in [timer::TAKEN, timer::CANCEL, timer::WAKE] {
            out.no_timer(timer);
        }
        let outcome = if work.cancelled {
            RunOutcome::Cancelled
        } else if work.unanswered && outcome != RunOutcome::Completed {
            let message = "Nobody answered what Roo asked, so its task was stopped.".into();
            let code = Code::TaskFailed;
            RunOutcome::Failed { code, message }
        } else {
            outcome
        };
        work.speech.finish(out);
        let tool = match &outcome {
            RunOutcome::Completed => "completed",
            RunOutcome::Cancelled => "cancelled",
            RunOutcome::Failed { .. } => "failed",
        };
        work.tool_is(tool, out);
        out.end(work.run, outcome, used);
    }

    /// Nothing came of the prompt at all.
    pub(super) fn not_taken(&mut self, out: &mut Out) {
        if self
            .work
            .as_ref()
            .is_some_and(|work| work.stage != Stage::Accepted)
        {
            self.give_up();
            let message = format!("The agent `{}` did not take the prompt.", self.setup.agent);
            let code = Code::TaskFailed;
            self.end(RunOutcome::Failed { code, message }, None, out);
        }
    }

    /// Nothing came of the cancel. What the task still says is not heard.
    pub(super) fn not_cancelled(&mut self, out: &mut Out) {
        if self.work.as_ref().is_some_and(Work::is_stopping) {
            self.give_up();
            self.end(RunOutcome::Cancelled, None, out);
        }
    }

    /// The task does not do what it should: the next prompt takes it up anew, or another one.
    fn give_up(&mut self) {
        self.unwanted = self.task.is_none();
        self.standing = match self.task {
            Some(_) => Standing::Asleep,
            None => Standing::Absent,
        };
    }
}
