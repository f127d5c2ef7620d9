//! What the app server writes by itself: whom it is about, and who takes it.

use serde_json::{Value, json};

use super::super::{Act, FromAgent, Out, text_of};
use super::turn::Turn;
use super::{CHILDREN, Codex, PROTOCOL, approval, item, turn};
use crate::domain::event::Level;

/// Whom something is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Belongs {
    Ours,
    Child,
    Stranger,
}

impl Codex {
    /// Is it about us? Helpers of our thread count as ours for what they ask; what else they do is
    /// seen in the tool that started them.
    fn belongs(&self, params: &Value) -> Belongs {
        match params["threadId"].as_str() {
            None => Belongs::Ours,
            Some(thread) if Some(thread) == self.thread.as_deref() => Belongs::Ours,
            Some(thread) if self.is_child(thread) => Belongs::Child,
            Some(_) => Belongs::Stranger,
        }
    }

    pub(super) fn noted(&mut self, method: &str, params: &Value, out: &mut Out) {
        if method == "thread/started" {
            return self.adopt(&params["thread"]);
        }
        match self.belongs(params) {
            Belongs::Ours => self.happened(method, params, out),
            Belongs::Child => self.happened_to_child(method, params, out),
            Belongs::Stranger => out.act(stray(method, params)),
        }
    }

    fn is_child(&self, thread: &str) -> bool {
        self.children.iter().any(|child| child == thread)
    }

    fn happened_to_child(&mut self, method: &str, params: &Value, out: &mut Out) {
        match method {
            "serverRequest/resolved" => self.approvals.settle(&params["requestId"], out),
            "thread/closed" => self.children.retain(|child| params["threadId"] != **child),
            _ => {}
        }
    }

    fn adopt(&mut self, thread: &Value) {
        let parent = thread["parentThreadId"].as_str();
        let known = parent
            .is_some_and(|parent| Some(parent) == self.thread.as_deref() || self.is_child(parent));
        let new = thread["id"]
            .as_str()
            .filter(|id| known && !self.is_child(id));
        if let Some(id) = new {
            if self.children.len() == CHILDREN {
                self.children.pop_front();
            }
            self.children.push_back(id.to_owned());
        }
    }

    /// Something about our thread, or about the agent as a whole.
    fn happened(&mut self, method: &str, params: &Value, out: &mut Out) {
        match method {
            "turn/started" => {
                let waits = self.turn.as_ref().is_some_and(Turn::waits_for_name);
                if let Some(id) = params["turn"]["id"].as_str().filter(|_| waits) {
                    self.has_turn(id, out);
                }
            }
            "turn/completed" => self.completed(&params["turn"], out),
            "thread/tokenUsage/updated" => {
                let during = self.turn.is_some();
                self.meter.read(&params["tokenUsage"], during, out);
            }
            "thread/name/updated" => {
                if let Some(title) = params["threadName"].as_str() {
                    out.tell(FromAgent::Title(title.to_owned()));
                }
            }
            "turn/plan/updated" => out.tell(FromAgent::Plan(item::plan(&params["plan"]))),
            "serverRequest/resolved" => self.approvals.settle(&params["requestId"], out),
            "account/updated" | "account/login/completed" => {
                let able = params["success"] == true || params["authMode"].is_string();
                self.needs_login &= !able;
            }
            "warning" | "guardianWarning" => out.notice(Level::Warn, text_of(&params["message"])),
            "configWarning" | "deprecationNotice" => {
                out.notice(Level::Info, text_of(&params["summary"]));
            }
            "mcpServer/startupStatus/updated" => {
                if params["status"] == "failed" {
                    let (name, error) = (text_of(&params["name"]), text_of(&params["error"]));
                    let text = format!("The MCP server `{name}` did not start: {error}");
                    out.notice(Level::Warn, text);
                }
            }
            "model/rerouted" => out.notice(
                Level::Warn,
                format!(
                    "Another model answers: {} instead of {}.",
                    text_of(&params["toModel"]),
                    text_of(&params["fromModel"])
                ),
            ),
            _ if method.starts_with("item/") || method == "error" => {
                self.piece(method, params, out);
            }
            _ if turn::IGNORED.contains(&method) || params["threadId"].is_null() => {}
            _ => out.raw(PROTOCOL.name, json!({ "method": method, "params": params })),
        }
    }

    /// A piece of a turn.
    fn piece(&mut self, method: &str, params: &Value, out: &mut Out) {
        let id = params["turnId"].as_str();
        let named = brief(&params["turnId"]);
        match self.turn.as_mut().filter(|turn| turn.is(id)) {
            Some(turn) => turn.read(method, params, out),
            None => out.act(Act::Odd(format!(
                "{} of turn {named}, which is not under way",
                shortened(method)
            ))),
        }
    }

    fn completed(&mut self, ended: &Value, out: &mut Out) {
        let id = ended["id"].as_str();
        let Some(turn) = self.turn.take_if(|turn| turn.is(id)) else {
            let id = brief(&ended["id"]);
            let what = format!("the end of turn {id}, which is not under way");
            return out.act(Act::Odd(what));
        };
        let login = self.login_hint();
        let login = (self.needs_login || turn::is_unauthorized(&ended["error"])).then_some(login);
        turn.end(ended, login, &self.setup.agent, out);
    }

    pub(super) fn requested(&mut self, id: Value, method: &str, params: &Value, out: &mut Out) {
        if self.belongs(params) == Belongs::Stranger {
            out.act(stray(method, params));
            return out.write(approval::refusal(id, "not a thread of this client"));
        }
        let child = self.belongs(params) == Belongs::Child;
        let turn = self.turn.as_ref();
        let turn = turn.filter(|turn| child || turn.may_ask(params["turnId"].as_str()));
        self.approvals.ask(id, method, params, turn, out);
    }
}

fn stray(method: &str, params: &Value) -> Act {
    let (method, thread) = (shortened(method), brief(&params["threadId"]));
    Act::Stray(format!("{method} of thread {thread}"))
}

/// An id as the operator sees it: it may be anything, and may be long.
pub(super) fn brief(id: &Value) -> String {
    match id {
        Value::String(id) => shortened(id),
        Value::Number(id) => id.to_string(),
        _ => "?".into(),
    }
}

/// The beginning of a name that the agent gave.
pub(super) fn shortened(name: &str) -> String {
    let plain = name.chars().filter(|char| !char.is_control());
    plain.take(64).collect()
}
