//! Events of the extension: the states of its tasks.

use serde_json::Value;

use super::run::{PromptState, Run};
use super::usage::context_left;
use super::{PROTOCOL, Roo, TaskState, timer};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::Level;
use crate::domain::run::{RunOutcome, Usage};
use crate::runtime::dialect::{Actions, text_of};
use crate::runtime::messages::FromAgent;

impl Roo {
    pub(super) fn handle_event(&mut self, event: &Value, out: &mut Actions) {
        let Some(name) = event["eventName"].as_str() else {
            return out.unexpected("an event without a name");
        };
        let payload = &event["payload"];
        if self.queries.handle_response(name, &payload[0], out) {
            return;
        }
        match name {
            "taskCreated" => {
                return self.handle_task_created(payload[0].as_str().unwrap_or_default(), out);
            }
            // Events of the editor, not of a task.
            "modeChanged" | "providerProfileChanged" => return,
            _ => {}
        }
        let task = match name {
            "message" => &payload[0]["taskId"],
            _ => &payload[0],
        };
        match task.as_str() {
            Some(task) if self.is_own_task(task) => self.handle_task_event(name, task, event, out),
            Some(task) => out.misrouted(format!("{name:.64} of the task `{task:.64}`")),
            None => out.unexpected(format!("{name:.64} without a task")),
        }
    }

    fn is_own_task(&self, task: &str) -> bool {
        self.task.as_deref() == Some(task) || self.subtasks.contains(task)
    }

    fn is_subtask(&self, task: &str) -> bool {
        self.subtasks.contains(task)
    }

    fn handle_task_created(&mut self, task: &str, out: &mut Actions) {
        if self.is_own_task(task) {
            return;
        }
        if self.task_state == TaskState::Starting && self.task.is_none() && !task.is_empty() {
            self.task = Some(task.to_owned());
            self.task_state = TaskState::Open;
            out.emit(FromAgent::Thread(task.to_owned()));
            if let Some(current) = &mut self.run {
                current.prompt_state = PromptState::Sent;
            }
            self.accept_prompt(out);
            if self.run.as_ref().is_some_and(Run::is_stopping) {
                // The first cancel came before there was a task.
                self.send_command("CancelTask", None, out);
            }
        } else if self.delegating {
            self.delegating = false;
            self.subtasks.insert(task.to_owned());
        } else {
            if std::mem::take(&mut self.cancel_when_created) {
                self.send_command("CancelTask", None, out);
            }
            out.misrouted(format!("taskCreated of the task `{task:.64}`"));
        }
    }

    fn handle_task_event(&mut self, name: &str, task: &str, event: &Value, out: &mut Actions) {
        let payload = &event["payload"];
        match name {
            "message" => self.handle_message(task, &payload[0]["message"], out),
            "taskStarted" | "taskActive" => self.accept_prompt(out),
            "taskAskResponded" => self.handle_ask_responded(out),
            "taskInteractive" => self.report_ask(out),
            "taskIdle" => self.handle_idle(out),
            "taskCompleted" => self.handle_completed(task, payload, out),
            "taskAborted" => self.handle_aborted(task, out),
            "taskTokenUsageUpdated" => {
                if let Some(usage) = self.new_usage(task, &payload[1], out) {
                    out.emit(FromAgent::Usage(usage));
                }
            }
            "taskToolFailed" => self.handle_tool_failed(&payload[2], out),
            "taskModeSwitched" => self.settings.mode = payload[1].as_str().map(str::to_owned),
            "taskSpawned" | "taskDelegated" => {
                if let Some(child) = payload[1].as_str() {
                    self.delegating = false;
                    self.subtasks.insert(child.to_owned());
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
            _ => out.emit_raw(PROTOCOL.name, event.clone()),
        }
    }

    pub(super) fn accept_prompt(&mut self, out: &mut Actions) {
        if let Some(current) = &mut self.run
            && current.accept()
        {
            out.clear_timer(timer::ACCEPT);
            out.emit(FromAgent::RunAccepted { run: current.id });
        }
    }

    /// Answered by us, by the settings, or by the user in the editor.
    fn handle_ask_responded(&mut self, out: &mut Actions) {
        self.accept_prompt(out);
        if let Some(current) = &mut self.run {
            current.settle_ask(out);
            current.set_tool_status("running", out);
        }
    }

    /// The last ask waits for the user.
    fn report_ask(&mut self, out: &mut Actions) {
        let Some(current) = &mut self.run else {
            return out.unexpected("a question without a run");
        };
        let Some(ask) = &mut current.ask else { return };
        if ask.is_reported || !(ask.is_approval() || ask.is_question()) {
            return;
        }
        ask.is_reported = true;
        if ask.is_approval() && !current.has_warned {
            current.has_warned = true;
            let text = "Roo waits for an approval that only its editor or its auto-approval \
                        settings can give.";
            out.emit_notice(Level::Warn, text);
        }
        out.emit(FromAgent::QuestionAsked {
            run: current.id,
            question: ask.name(),
            content: Box::new(ask.question()),
            timeout: None,
        });
    }

    /// The task waits and does not continue by itself.
    fn handle_idle(&mut self, out: &mut Actions) {
        let ask = self.run.as_ref().and_then(|current| current.ask.as_ref());
        let Some(ask) = ask else { return };
        let message = match ask.kind.as_str() {
            "api_req_failed" => format!("The request to the model failed: {}", ask.text),
            "auto_approval_max_req_reached" => {
                "Roo has used up what it may do without being asked.".into()
            }
            _ => return self.report_ask(out),
        };
        // A message does not answer this: the task has to be resumed.
        self.task_state = TaskState::Stored;
        self.fail_run(message, out);
    }

    fn handle_completed(&mut self, task: &str, payload: &Value, out: &mut Actions) {
        let usage = self.new_usage(task, &payload[1], out);
        let is_part = self.is_subtask(task) || payload[3]["isSubtask"] == true;
        if !is_part
            && self
                .run
                .as_ref()
                .is_some_and(|current| current.prompt_state == PromptState::Accepted)
        {
            self.end_run(RunOutcome::Completed, usage, out);
        } else if let Some(usage) = usage {
            out.emit(FromAgent::Usage(usage));
        }
    }

    fn handle_aborted(&mut self, task: &str, out: &mut Actions) {
        let is_stopping = self.run.as_ref().is_some_and(Run::is_stopping);
        // Roo aborts a task while its subtask runs, and the subtask at its end.
        let has_subtask = self.delegating || !self.subtasks.is_empty();
        if has_subtask && !is_stopping {
            self.subtasks.remove(task);
            return;
        }
        self.task_state = TaskState::Aborted;
        if self.run.as_ref().is_some_and(|current| !current.is_sent()) {
            return;
        }
        self.fail_run("The task was stopped in the editor.".into(), out);
    }

    fn handle_tool_failed(&mut self, error: &Value, out: &mut Actions) {
        if let Some(current) = &mut self.run {
            current.fail_tool(&text_of(error), out);
        }
    }

    fn new_usage(&mut self, task: &str, total: &Value, out: &mut Actions) -> Option<Usage> {
        let window = self.setup.options.get("context_window");
        let left = window.and_then(Value::as_u64);
        if let Some(left) = left.and_then(|window| context_left(total, window)) {
            out.emit(FromAgent::ContextLeft(left));
        }
        self.usage.new_in(task, total)
    }

    /// A cancelled run ends as cancelled, whatever its outcome.
    pub(super) fn end_run(&mut self, outcome: RunOutcome, usage: Option<Usage>, out: &mut Actions) {
        let Some(current) = self.run.take() else {
            return;
        };
        for timer in [timer::ACCEPT, timer::CANCEL, timer::RESUME] {
            out.clear_timer(timer);
        }
        let outcome = if current.cancelled {
            RunOutcome::Cancelled
        } else if current.unanswered && outcome != RunOutcome::Completed {
            let message = "Nobody answered what Roo asked, so its task was stopped.".into();
            let code = ErrorCode::TaskFailed;
            RunOutcome::Failed { code, message }
        } else {
            outcome
        };
        current.end(outcome, usage, out);
    }

    fn fail_run(&mut self, message: String, out: &mut Actions) {
        let code = ErrorCode::TaskFailed;
        self.end_run(RunOutcome::Failed { code, message }, None, out);
    }

    pub(super) fn accept_timed_out(&mut self, out: &mut Actions) {
        if self
            .run
            .as_ref()
            .is_some_and(|current| current.prompt_state != PromptState::Accepted)
        {
            self.release_task();
            let message = format!("The agent `{}` did not take the prompt.", self.setup.agent);
            self.fail_run(message, out);
        }
    }

    /// Later events of the task are dropped.
    pub(super) fn cancel_timed_out(&mut self, out: &mut Actions) {
        if self.run.as_ref().is_some_and(Run::is_stopping) {
            self.release_task();
            self.end_run(RunOutcome::Cancelled, None, out);
        }
    }

    /// The next prompt resumes the task, or starts another.
    fn release_task(&mut self) {
        self.cancel_when_created = self.task.is_none();
        self.task_state = match self.task {
            Some(_) => TaskState::Stored,
            None => TaskState::Absent,
        };
    }
}
