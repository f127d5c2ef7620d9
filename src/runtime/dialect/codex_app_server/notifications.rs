//! Notifications: routes them by the thread and turn they are about.

use serde_json::{Value, json};

use super::super::{Action, Actions, FromAgent, text_of};
use super::turn_events::Turn;
use super::{Codex, MAX_CHILD_THREADS, PROTOCOL, approval, item, turn_events};
use crate::domain::event::Level;
use crate::runtime::event_truncation::excerpt;

#[derive(Clone, Copy, PartialEq, Eq)]
enum ThreadOwner {
    Ours,
    Child,
    Other,
}

impl Codex {
    /// The requests of a child thread count as ours; what else it does shows in the tool that started it.
    fn thread_owner(&self, params: &Value) -> ThreadOwner {
        match params["threadId"].as_str() {
            None => ThreadOwner::Ours,
            Some(thread) if Some(thread) == self.thread.as_deref() => ThreadOwner::Ours,
            Some(thread) if self.is_child(thread) => ThreadOwner::Child,
            Some(_) => ThreadOwner::Other,
        }
    }

    pub(super) fn handle_notification(&mut self, method: &str, params: &Value, out: &mut Actions) {
        if method == "thread/started" {
            return self.add_child_thread(&params["thread"]);
        }
        match self.thread_owner(params) {
            ThreadOwner::Ours => self.handle_own(method, params, out),
            ThreadOwner::Child => self.handle_child(method, params, out),
            ThreadOwner::Other => out.push(stray(method, params)),
        }
    }

    fn is_child(&self, thread: &str) -> bool {
        self.child_threads.iter().any(|child| child == thread)
    }

    fn handle_child(&mut self, method: &str, params: &Value, out: &mut Actions) {
        match method {
            "serverRequest/resolved" => self.approvals.settle(&params["requestId"], out),
            "thread/closed" => self
                .child_threads
                .retain(|child| params["threadId"] != **child),
            _ => {}
        }
    }

    fn add_child_thread(&mut self, thread: &Value) {
        let parent = thread["parentThreadId"].as_str();
        let known = parent
            .is_some_and(|parent| Some(parent) == self.thread.as_deref() || self.is_child(parent));
        let new = thread["id"]
            .as_str()
            .filter(|id| known && !self.is_child(id));
        if let Some(id) = new {
            if self.child_threads.len() == MAX_CHILD_THREADS {
                self.child_threads.pop_front();
            }
            self.child_threads.push_back(id.to_owned());
        }
    }

    /// About our thread, or about Codex as a whole.
    fn handle_own(&mut self, method: &str, params: &Value, out: &mut Actions) {
        match method {
            "turn/started" => {
                let awaits_id = self.turn.as_ref().is_some_and(Turn::awaits_id);
                if let Some(id) = params["turn"]["id"].as_str().filter(|_| awaits_id) {
                    self.turn_started(id, out);
                }
            }
            "turn/completed" => self.turn_completed(&params["turn"], out),
            "thread/tokenUsage/updated" => {
                let during_turn = self.turn.is_some();
                self.usage.update(&params["tokenUsage"], during_turn, out);
            }
            "thread/name/updated" => {
                if let Some(title) = params["threadName"].as_str() {
                    out.emit(FromAgent::TitleChanged(title.to_owned()));
                }
            }
            "turn/plan/updated" => {
                out.emit(FromAgent::PlanUpdated(item::plan_steps(&params["plan"])));
            }
            "serverRequest/resolved" => self.approvals.settle(&params["requestId"], out),
            "account/updated" | "account/login/completed" => {
                let logged_in = params["success"] == true || params["authMode"].is_string();
                self.needs_login &= !logged_in;
            }
            "warning" | "guardianWarning" => {
                out.emit_notice(Level::Warn, text_of(&params["message"]));
            }
            "configWarning" | "deprecationNotice" => {
                out.emit_notice(Level::Info, text_of(&params["summary"]));
            }
            "mcpServer/startupStatus/updated" => {
                if params["status"] == "failed" {
                    let (name, error) = (text_of(&params["name"]), text_of(&params["error"]));
                    let text = format!("The MCP server `{name}` did not start: {error}");
                    out.emit_notice(Level::Warn, text);
                }
            }
            "model/rerouted" => out.emit_notice(
                Level::Warn,
                format!(
                    "Another model answers: {} instead of {}.",
                    text_of(&params["toModel"]),
                    text_of(&params["fromModel"])
                ),
            ),
            _ if method.starts_with("item/") || method == "error" => {
                self.handle_turn_notification(method, params, out);
            }
            _ if turn_events::IGNORED_NOTIFICATIONS.contains(&method)
                || params["threadId"].is_null() => {}
            _ => out.emit_raw(PROTOCOL.name, json!({ "method": method, "params": params })),
        }
    }

    fn handle_turn_notification(&mut self, method: &str, params: &Value, out: &mut Actions) {
        let id = params["turnId"].as_str();
        let named = id_excerpt(&params["turnId"]);
        match self.turn.as_mut().filter(|turn| turn.has_id(id)) {
            Some(turn) => turn.apply(method, params, out),
            None => out.unexpected(format!(
                "{} of turn {named}, which is not under way",
                excerpt(method)
            )),
        }
    }

    fn turn_completed(&mut self, ended: &Value, out: &mut Actions) {
        let id = ended["id"].as_str();
        let Some(turn) = self.turn.take_if(|turn| turn.has_id(id)) else {
            let id = id_excerpt(&ended["id"]);
            let what = format!("the end of turn {id}, which is not under way");
            return out.unexpected(what);
        };
        let login = self.login_hint();
        let login =
            (self.needs_login || turn_events::is_unauthorized(&ended["error"])).then_some(login);
        turn.end(ended, login, &self.setup.agent, out);
    }

    pub(super) fn handle_request(
        &mut self,
        id: Value,
        method: &str,
        params: &Value,
        out: &mut Actions,
    ) {
        if self.thread_owner(params) == ThreadOwner::Other {
            out.push(stray(method, params));
            return out.write(approval::refusal(id, "not a thread of this client"));
        }
        let child = self.thread_owner(params) == ThreadOwner::Child;
        let turn = self.turn.as_ref();
        let turn = turn.filter(|turn| child || turn.can_ask(params["turnId"].as_str()));
        self.approvals.ask(id, method, params, turn, out);
    }
}

fn stray(method: &str, params: &Value) -> Action {
    let (method, thread) = (excerpt(method), id_excerpt(&params["threadId"]));
    Action::Misrouted(format!("{method} of thread {thread}"))
}

/// An id for the operator: it may be anything, and may be long.
pub(super) fn id_excerpt(id: &Value) -> String {
    match id {
        Value::String(id) => excerpt(id),
        Value::Number(id) => id.to_string(),
        _ => "?".into(),
    }
}
