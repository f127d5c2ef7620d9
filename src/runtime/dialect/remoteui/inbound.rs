//! What the extension says.

use serde_json::{Value, json};

use super::ledger::{beyond, usage};
use super::task::Former;
use super::{PROTOCOL, Remote, timer};
use crate::domain::code::Code;
use crate::domain::event::{Channel, Level};
use crate::domain::run::{Progress, RunOutcome, Usage};
use crate::runtime::dialect::{Act, Out, text_of};
use crate::runtime::talk::FromAgent;

/// Which task a message is about.
enum About {
    /// The one under way.
    Now,
    /// One that has had its end.
    Past,
    /// None of ours.
    Nobody,
}

impl Remote {
    /// Reads a message, whatever it is.
    pub(super) fn receive(&mut self, line: &Value, out: &mut Out) {
        let message = match (&line["type"], &line["data"]) {
            (Value::String(kind), data @ Value::Object(_)) if self.wrapped && kind == "message" => {
                data
            }
            _ => line,
        };
        let Some(kind) = message["type"].as_str() else {
            return out.act(Act::Odd("a message without a type".into()));
        };
        let (data, request) = (&message["data"], message["requestId"].as_str());
        let error = &data["error"];
        // Whoever refuses the token may not know yet whose message it is.
        if self.greeting.is_some() && data["sessionId"].is_null() && is_refusal(error) {
            return self.refused(error, out);
        }
        if !self.is_ours(kind, data, out) {
            return;
        }
        match kind {
            "RemoteUITaskResponse" => self.response(request, data, out),
            "RemoteUITaskProgress" => self.progress(request, data, out),
            "RemoteUIStateUpdate" => self.update(&data["updates"], out),
            "RemoteUIStateResponse" => self.state(request, &data["state"], out),
            "RemoteUIError" => self.error(request, error, out),
            _ => out.raw(PROTOCOL.name, message.clone()),
        }
    }

    /// A message belongs to this session only if it says so, twice.
    fn is_ours(&self, kind: &str, data: &Value, out: &mut Out) -> bool {
        let (session, client) = (&data["sessionId"], &data["clientId"]);
        if *session != self.setup.session.as_str() {
            let which = text_of(session);
            out.act(Act::Stray(format!(
                "{kind:.64} of the session `{which:.64}`"
            )));
            return false;
        }
        if *client != self.client.as_str() {
            let which = text_of(client);
            out.act(Act::Stray(format!(
                "{kind:.64} of the client `{which:.64}`"
            )));
            return false;
        }
        true
    }

    /// Finds the task that is meant, and learns its name.
    fn about(
        &mut self,
        kind: &str,
        request: Option<&str>,
        id: Option<&str>,
        out: &mut Out,
    ) -> About {
        if let Some(task) = &mut self.task
            && task.is_meant(request, id)
        {
            if task.id.is_none() {
                task.id = id.map(str::to_owned);
            }
            return About::Now;
        }
        if self.past.knows(request, id) {
            return About::Past;
        }
        // The first word about a task may be a piece of it instead of the answer to the request.
        let unclear = self.past.has_nameless();
        match (&mut self.task, request, id) {
            (Some(task), None, Some(id)) if task.id.is_none() && !unclear => {
                task.id = Some(id.to_owned());
                About::Now
            }
            (_, _, Some(id)) => {
                out.act(Act::Stray(format!("{kind} of the task `{id:.64}`")));
                About::Nobody
            }
            _ => {
                out.act(Act::Odd(format!("{kind} without a task")));
                About::Nobody
            }
        }
    }

    fn accepted(&mut self, out: &mut Out) {
        if let Some(task) = &mut self.task
            && !task.accepted
        {
            task.accepted = true;
            out.no_timer(timer::TAKEN);
            out.tell(FromAgent::Accepted { run: task.run });
        }
    }

    fn response(&mut self, request: Option<&str>, data: &Value, out: &mut Out) {
        let about = self.about(
            "RemoteUITaskResponse",
            request,
            data["taskId"].as_str(),
            out,
        );
        if !matches!(about, About::Now) {
            return;
        }
        match data["status"].as_str() {
            Some("started") => self.accepted(out),
            Some("completed") => {
                self.accepted(out);
                self.end(RunOutcome::Completed, None, out);
            }
            Some("error") => self.end(failure(&data["error"]), None, out),
            _ => {
                let status = text_of(&data["status"]);
                out.act(Act::Odd(format!("a task with the status `{status:.64}`")));
            }
        }
    }

    fn progress(&mut self, request: Option<&str>, data: &Value, out: &mut Out) {
        let id = data["taskId"].as_str();
        match self.about("RemoteUITaskProgress", request, id, out) {
            About::Now => {}
            About::Past => return self.late_usage(request, id, data, out),
            About::Nobody => return,
        }
        self.accepted(out);
        let Some(task) = &mut self.task else { return };
        if let Some(piece) = data["content"].as_str().filter(|piece| !piece.is_empty()) {
            task.speaking = true;
            out.say(task.run, Channel::Text, piece);
        }
        if let Some(progress) = steps(&data["progress"]) {
            let run = task.run;
            out.tell(FromAgent::Progress { run, progress });
        }
        let used = usage(&data["tokenUsage"]).and_then(|total| beyond(&total, &task.told));
        if let Some(used) = &used {
            task.told = task.told.plus(used);
            self.ledger.tell(used);
        }
        if data["isComplete"] == true {
            self.end(RunOutcome::Completed, used, out);
        } else if let Some(used) = used {
            out.tell(FromAgent::Usage(used));
        }
    }

    /// A task that has had its end says what it used: that still counts, all else does not.
    fn late_usage(&mut self, request: Option<&str>, id: Option<&str>, data: &Value, out: &mut Out) {
        let Some(task) = self.past.find(request, id) else {
            return;
        };
        let used = usage(&data["tokenUsage"]).and_then(|total| beyond(&total, &task.told));
        if let Some(used) = used {
            task.told = task.told.plus(&used);
            self.ledger.tell(&used);
            out.tell(FromAgent::Usage(used));
        }
    }

    fn update(&mut self, updates: &Value, out: &mut Out) {
        let used = usage(&updates["tokenUsage"]).and_then(|total| self.ledger.beyond(&total));
        if let Some(used) = used {
            self.ledger.tell(&used);
            if let Some(task) = &mut self.task {
                task.told = task.told.plus(&used);
            }
            out.tell(FromAgent::Usage(used));
        }
        if updates["settings"].is_object() {
            out.raw(PROTOCOL.name, json!({ "settings": updates["settings"] }));
        }
        self.current_task(&updates["currentTask"], out);
    }

    /// The state of a task. Only here can it be said that somebody else has cancelled it; its
    /// completion is left to those messages that also bring the last piece.
    fn current_task(&mut self, state: &Value, out: &mut Out) {
        let Some(task) = &self.task else { return };
        if task.id.is_none() || task.id.as_deref() != state["id"].as_str() {
            return;
        }
        let run = task.run;
        if let Some(progress) = steps(&state["progress"]) {
            out.tell(FromAgent::Progress { run, progress });
        }
        match state["status"].as_str() {
            Some("cancelled") => self.end(RunOutcome::Cancelled, None, out),
            Some("error") => self.end(failure(&state["error"]), None, out),
            _ => {}
        }
    }

    fn state(&mut self, request: Option<&str>, state: &Value, out: &mut Out) {
        if self.greeting.is_none() || request.is_some_and(|id| self.greeting.as_deref() != Some(id))
        {
            return out.act(Act::Odd("a state that was not asked for".into()));
        }
        self.ledger
            .begin(&usage(&state["tokenUsage"]).unwrap_or_default());
        let history = state["conversationHistory"].as_array();
        let remembers = history.is_some_and(|history| !history.is_empty());
        // The session's own name is what the other side knows the conversation by.
        out.tell(FromAgent::Thread(self.setup.session.clone()));
        self.stop_former(&state["currentTask"], out);
        self.ready(remembers, out);
    }

    /// Stops a task that goes on since the life before: its run has had its end, and nobody hears it.
    fn stop_former(&mut self, task: &Value, out: &mut Out) {
        let Some(id) = task["id"].as_str().map(str::to_owned) else {
            return;
        };
        if task["status"] != "running" {
            return;
        }
        let cancel = self.send("RemoteUITaskCancel", json!({ "taskId": id }), out);
        self.past.former = Some(Former { id, cancel });
        let agent = &self.setup.agent;
        let text = format!(
            "The agent `{agent}` was still at work on what was asked before the connection was lost; \
             that is cancelled."
        );
        out.notice(Level::Warn, text);
    }

    fn error(&mut self, request: Option<&str>, error: &Value, out: &mut Out) {
        if is_refusal(error) {
            return self.refused(error, out);
        }
        let message = said(error);
        if self.greeting.is_some() {
            out.notice(Level::Warn, message);
            return self.ready(false, out);
        }
        let about_task = match (&self.task, request) {
            (Some(task), Some(request)) => task.is_meant(Some(request), None),
            (Some(task), None) => task.cancel.is_some() || error["code"] == "TASK_FAILED",
            (None, _) => false,
        };
        if about_task {
            self.end(failure(error), None, out);
        } else if request.is_none() || !self.past.knows(request, None) {
            out.notice(Level::Error, message);
        }
    }

    fn refused(&self, error: &Value, out: &mut Out) {
        let (agent, message) = (&self.setup.agent, said(error));
        let message = format!("The agent `{agent}` does not let the gateway in: {message}");
        out.fail(Code::ConnectionLost, message);
    }

    /// The task under way is over, as cancelled if that was asked for.
    fn end(&mut self, outcome: RunOutcome, used: Option<Usage>, out: &mut Out) {
        let Some(task) = self.task.take() else { return };
        out.no_timer(timer::TAKEN);
        let outcome = if task.cancel.is_some() {
            out.no_timer(timer::CANCEL);
            RunOutcome::Cancelled
        } else {
            outcome
        };
        let run = task.run;
        if task.speaking {
            out.tell(FromAgent::Final { run, text: None });
        }
        out.end(run, outcome, used);
        self.past.add(task);
    }

    /// Nothing came of the prompt at all.
    pub(super) fn not_taken(&mut self, out: &mut Out) {
        if self.task.as_ref().is_some_and(|task| !task.accepted) {
            let message = format!("The agent `{}` did not take the prompt.", self.setup.agent);
            let code = Code::TaskFailed;
            self.end(RunOutcome::Failed { code, message }, None, out);
        }
    }

    /// Nothing came of the cancel: it is over all the same.
    pub(super) fn cancelled(&mut self, out: &mut Out) {
        if self.task.as_ref().is_some_and(|task| task.cancel.is_some()) {
            self.end(RunOutcome::Cancelled, None, out);
        }
    }
}

fn is_refusal(error: &Value) -> bool {
    matches!(
        error["code"].as_str(),
        Some("AUTH_FAILED" | "SESSION_EXPIRED")
    )
}

fn said(error: &Value) -> String {
    let message = error["message"]
        .as_str()
        .filter(|message| !message.is_empty());
    message.map_or_else(|| "It failed and did not say why.".into(), str::to_owned)
}

/// Only what a client can do something about keeps its code.
fn failure(error: &Value) -> RunOutcome {
    let code = error["code"].as_str().and_then(|code| code.parse().ok());
    let known = [
        Code::RateLimited,
        Code::ValidationError,
        Code::ConnectionLost,
        Code::Unsupported,
        Code::Busy,
    ];
    RunOutcome::Failed {
        code: code
            .filter(|code| known.contains(code))
            .unwrap_or(Code::TaskFailed),
        message: said(error),
    }
}

fn steps(value: &Value) -> Option<Progress> {
    Some(Progress {
        current: value["current"].as_u64()?,
        total: value["total"].as_u64()?,
        description: text_of(&value["description"]),
    })
}
