//! Inbound: handles the messages of the extension.

use serde_json::{Value, json};

use super::task::StaleTask;
use super::usage::usage_of;
use super::{PROTOCOL, RemoteUi, settings, timer};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::{Channel, Level};
use crate::domain::run::{AgentError, Progress, RunOutcome, Usage};
use crate::runtime::dialect::usage::increase;
use crate::runtime::dialect::{Actions, text_of};
use crate::runtime::messages::FromAgent;

enum TaskMatch {
    Current,
    Ended,
    Unknown,
}

impl RemoteUi {
    pub(super) fn handle_message(&mut self, line: &Value, out: &mut Actions) {
        let message = match (&line["type"], &line["data"]) {
            (Value::String(kind), data @ Value::Object(_))
                if self.is_node_ipc && kind == "message" =>
            {
                data
            }
            _ => line,
        };
        let Some(kind) = message["type"].as_str() else {
            return out.unexpected("a message without a type");
        };
        let (data, request) = (&message["data"], message["requestId"].as_str());
        let error = &data["error"];
        // A refusal of the token may come without a session id.
        if self.state_request.is_some() && data["sessionId"].is_null() && is_auth_error(error) {
            return self.fail_auth(error, out);
        }
        if !self.is_for_this_session(kind, data, out) {
            return;
        }
        match kind {
            "RemoteUITaskResponse" => self.handle_task_response(request, data, out),
            "RemoteUITaskProgress" => self.handle_task_progress(request, data, out),
            "RemoteUIStateUpdate" => self.handle_state_update(&data["updates"], out),
            "RemoteUIStateResponse" => self.handle_state_response(request, &data["state"], out),
            "RemoteUIError" => self.handle_error(request, error, out),
            _ => out.emit_raw(PROTOCOL.name, message.clone()),
        }
    }

    /// A message must name both this session and this client.
    fn is_for_this_session(&self, kind: &str, data: &Value, out: &mut Actions) -> bool {
        let (session, client) = (&data["sessionId"], &data["clientId"]);
        if *session != self.setup.session.as_str() {
            let which = text_of(session);
            out.misrouted(format!("{kind:.64} of the session `{which:.64}`"));
            return false;
        }
        if *client != self.client_id.as_str() {
            let which = text_of(client);
            out.misrouted(format!("{kind:.64} of the client `{which:.64}`"));
            return false;
        }
        true
    }

    /// Finds the task that a message is about, and learns its id.
    fn match_task(
        &mut self,
        kind: &str,
        request: Option<&str>,
        id: Option<&str>,
        out: &mut Actions,
    ) -> TaskMatch {
        if let Some(task) = &mut self.task
            && task.matches(request, id)
        {
            if task.id.is_none() {
                task.id = id.map(str::to_owned);
            }
            return TaskMatch::Current;
        }
        if self.ended.contains(request, id) {
            return TaskMatch::Ended;
        }
        // A progress message may come before the response to the request.
        let is_ambiguous = self.ended.has_unnamed();
        match (&mut self.task, request, id) {
            (Some(task), None, Some(id)) if task.id.is_none() && !is_ambiguous => {
                task.id = Some(id.to_owned());
                TaskMatch::Current
            }
            (_, _, Some(id)) => {
                out.misrouted(format!("{kind} of the task `{id:.64}`"));
                TaskMatch::Unknown
            }
            _ => {
                out.unexpected(format!("{kind} without a task"));
                TaskMatch::Unknown
            }
        }
    }

    fn accept_task(&mut self, out: &mut Actions) {
        if let Some(task) = &mut self.task
            && !task.accepted
        {
            task.accepted = true;
            out.clear_timer(timer::ACCEPT);
            out.emit(FromAgent::RunAccepted { run: task.run });
        }
    }

    fn handle_task_response(&mut self, request: Option<&str>, data: &Value, out: &mut Actions) {
        let matched = self.match_task(
            "RemoteUITaskResponse",
            request,
            data["taskId"].as_str(),
            out,
        );
        if !matches!(matched, TaskMatch::Current) {
            return;
        }
        match data["status"].as_str() {
            Some("started") => self.accept_task(out),
            Some("completed") => {
                self.accept_task(out);
                self.end_run(RunOutcome::Completed, None, out);
            }
            Some("error") => self.fail_task(&data["error"], out),
            _ => {
                let status = text_of(&data["status"]);
                out.unexpected(format!("a task with the status `{status:.64}`"));
            }
        }
    }

    fn handle_task_progress(&mut self, request: Option<&str>, data: &Value, out: &mut Actions) {
        let id = data["taskId"].as_str();
        match self.match_task("RemoteUITaskProgress", request, id, out) {
            TaskMatch::Current => {}
            TaskMatch::Ended => return self.report_late_usage(request, id, data, out),
            TaskMatch::Unknown => return,
        }
        self.accept_task(out);
        let Some(task) = &mut self.task else { return };
        if let Some(piece) = data["content"].as_str().filter(|piece| !piece.is_empty()) {
            task.has_open_message = true;
            out.emit_delta(task.run, Channel::Text, piece);
        }
        if let Some(progress) = progress_of(&data["progress"]) {
            let run = task.run;
            out.emit(FromAgent::RunProgress { run, progress });
        }
        let new = usage_of(&data["tokenUsage"]).and_then(|total| increase(&total, &task.reported));
        if let Some(new) = &new {
            task.reported = task.reported.plus(new);
            self.usage.add(new);
        }
        if data["isComplete"] == true {
            self.end_run(RunOutcome::Completed, new, out);
        } else if let Some(new) = new {
            out.emit(FromAgent::Usage(new));
        }
    }

    /// Usage of an ended task still counts; all else is dropped.
    fn report_late_usage(
        &mut self,
        request: Option<&str>,
        id: Option<&str>,
        data: &Value,
        out: &mut Actions,
    ) {
        let Some(task) = self.ended.find(request, id) else {
            return;
        };
        let new = usage_of(&data["tokenUsage"]).and_then(|total| increase(&total, &task.reported));
        if let Some(new) = new {
            task.reported = task.reported.plus(&new);
            self.usage.add(&new);
            out.emit(FromAgent::Usage(new));
        }
    }

    fn handle_state_update(&mut self, updates: &Value, out: &mut Actions) {
        let new = usage_of(&updates["tokenUsage"]).and_then(|total| self.usage.new_in(&total));
        if let Some(new) = new {
            self.usage.add(&new);
            if let Some(task) = &mut self.task {
                task.reported = task.reported.plus(&new);
            }
            out.emit(FromAgent::Usage(new));
        }
        self.reported_settings
            .merge(&settings::from_wire(&updates["settings"]));
        self.handle_current_task(&updates["currentTask"], out);
    }

    /// Only here does the extension report that another client cancelled the task. Completion is
    /// left to the messages that carry the last piece.
    fn handle_current_task(&mut self, state: &Value, out: &mut Actions) {
        let Some(task) = &self.task else { return };
        if task.id.is_none() || task.id.as_deref() != state["id"].as_str() {
            return;
        }
        let run = task.run;
        if let Some(progress) = progress_of(&state["progress"]) {
            out.emit(FromAgent::RunProgress { run, progress });
        }
        match state["status"].as_str() {
            Some("cancelled") => self.end_run(RunOutcome::Cancelled, None, out),
            Some("error") => self.end_run(failure(&state["error"]), None, out),
            _ => {}
        }
    }

    fn handle_state_response(&mut self, request: Option<&str>, state: &Value, out: &mut Actions) {
        if self.state_request.is_none()
            || request.is_some_and(|id| self.state_request.as_deref() != Some(id))
        {
            return out.unexpected("a state that was not asked for");
        }
        self.usage
            .set_baseline(&usage_of(&state["tokenUsage"]).unwrap_or_default());
        self.reported_settings
            .merge(&settings::from_wire(&state["settings"]));
        let history = state["conversationHistory"].as_array();
        let remembers = history.is_some_and(|history| !history.is_empty());
        // The extension knows the conversation by our session id.
        out.emit(FromAgent::Thread(self.setup.session.clone()));
        self.cancel_stale_task(&state["currentTask"], out);
        self.finish_handshake(remembers, out);
    }

    /// Cancels a task from an earlier connection: its run has ended, and no viewer sees it.
    fn cancel_stale_task(&mut self, task: &Value, out: &mut Actions) {
        let Some(id) = task["id"].as_str().map(str::to_owned) else {
            return;
        };
        if task["status"] != "running" {
            return;
        }
        let cancel_request = self.send("RemoteUITaskCancel", json!({ "taskId": id }), out);
        self.ended.stale = Some(StaleTask { id, cancel_request });
        let agent = &self.setup.agent;
        let text = format!(
            "The agent `{agent}` was still at work on what was asked before the connection was lost; \
             that is cancelled."
        );
        out.emit_notice(Level::Warn, text);
    }

    fn handle_error(&mut self, request: Option<&str>, error: &Value, out: &mut Actions) {
        if is_auth_error(error) {
            return self.fail_auth(error, out);
        }
        let message = error_message(error);
        if self.state_request.is_some() {
            out.emit_notice(Level::Warn, message);
            return self.finish_handshake(false, out);
        }
        let about_task = match (&self.task, request) {
            (Some(task), Some(request)) => task.matches(Some(request), None),
            (Some(task), None) => task.cancel_request.is_some() || error["code"] == "TASK_FAILED",
            (None, _) => false,
        };
        if about_task {
            self.fail_task(error, out);
        } else if request.is_none() || !self.ended.contains(request, None) {
            out.emit_notice(Level::Error, message);
        }
    }

    fn fail_auth(&self, error: &Value, out: &mut Actions) {
        let (agent, message) = (&self.setup.agent, error_message(error));
        let message = format!("The agent `{agent}` does not let the gateway in: {message}");
        out.fail(ErrorCode::ConnectionLost, message);
    }

    fn fail_task(&mut self, error: &Value, out: &mut Actions) {
        let running = self
            .task
            .as_ref()
            .filter(|task| task.cancel_request.is_none());
        if let (Some(task), true) = (running, error["code"].is_string()) {
            let error = AgentError {
                code: error["code"].clone(),
                message: text_of(&error["message"]),
                data: error["details"].clone(),
            };
            out.keep_error(task.run, error);
        }
        self.end_run(failure(error), None, out);
    }

    /// A cancelled task ends as cancelled, whatever its outcome.
    fn end_run(&mut self, outcome: RunOutcome, usage: Option<Usage>, out: &mut Actions) {
        let Some(task) = self.task.take() else { return };
        out.clear_timer(timer::ACCEPT);
        let outcome = if task.cancel_request.is_some() {
            out.clear_timer(timer::CANCEL);
            RunOutcome::Cancelled
        } else {
            outcome
        };
        let run = task.run;
        if task.has_open_message {
            out.emit(FromAgent::MessageFinal { run, text: None });
        }
        out.end_run(run, outcome, usage);
        self.ended.add(task);
    }

    pub(super) fn accept_timed_out(&mut self, out: &mut Actions) {
        if self.task.as_ref().is_some_and(|task| !task.accepted) {
            let message = format!("The agent `{}` did not take the prompt.", self.setup.agent);
            let code = ErrorCode::TaskFailed;
            self.end_run(RunOutcome::Failed { code, message }, None, out);
        }
    }

    pub(super) fn cancel_timed_out(&mut self, out: &mut Actions) {
        if self
            .task
            .as_ref()
            .is_some_and(|task| task.cancel_request.is_some())
        {
            self.end_run(RunOutcome::Cancelled, None, out);
        }
    }
}

fn is_auth_error(error: &Value) -> bool {
    matches!(
        error["code"].as_str(),
        Some("AUTH_FAILED" | "SESSION_EXPIRED")
    )
}

fn error_message(error: &Value) -> String {
    let message = error["message"]
        .as_str()
        .filter(|message| !message.is_empty());
    message.map_or_else(|| "It failed and did not say why.".into(), str::to_owned)
}

/// Keeps only the codes that a client can act on.
fn failure(error: &Value) -> RunOutcome {
    let code = error["code"].as_str().and_then(|code| code.parse().ok());
    let known = [
        ErrorCode::RateLimited,
        ErrorCode::ValidationError,
        ErrorCode::ConnectionLost,
        ErrorCode::Unsupported,
        ErrorCode::Busy,
    ];
    RunOutcome::Failed {
        code: code
            .filter(|code| known.contains(code))
            .unwrap_or(ErrorCode::TaskFailed),
        message: error_message(error),
    }
}

fn progress_of(value: &Value) -> Option<Progress> {
    Some(Progress {
        current: value["current"].as_u64()?,
        total: value["total"].as_u64()?,
        description: text_of(&value["description"]),
    })
}
