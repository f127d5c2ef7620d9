//! The wire of the document: commands and events as JSON lines `{type, payload}`.
//!
//! It knows no conversations (one connection is one), no ids of runs and no word to stop one. A run
//! is over when the agent waits for input again. After a cancel what it says is swallowed until then,
//! and the next prompt is held back so long.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::unsupported_inquiry;
use super::{Images, PROTOCOL, goes_on, text_of_brief};
use crate::domain::code::Code;
use crate::domain::event::Activity;
use crate::domain::id::RunId;
use crate::domain::question::{Resolution, Said};
use crate::domain::run::RunOutcome;
use crate::domain::tool::Tool;
use crate::runtime::dialect::{Act, Brief, Dialect, Lane, Order, Out, Setup, text_of, unsupported};
use crate::runtime::talk::FromAgent;

mod permission;

use permission::Permission;

/// After 30 s the core denies by itself, and does not say so; our no must come before.
const PATIENCE: Duration = Duration::from_secs(25);

/// Speaks with a core that follows the document.
pub(super) struct Document {
    setup: Setup,
    /// The conversation that events name, if they do.
    session: Option<String>,
    /// How many questions were asked: the name of the next one comes from this.
    asked: u64,
    turn: Option<Turn>,
    /// A prompt that waits for what was cancelled to be done.
    held: Option<(RunId, Value)>,
}

/// A prompt that was given to the agent, until it waits for input again.
struct Turn {
    run: RunId,
    /// The run was cancelled: nobody is told what comes of it.
    unheard: bool,
    /// The agent has begun. Before that, its waiting for input is not the end.
    begun: bool,
    /// What was asked and is not answered yet, with its name.
    open: Vec<(String, Permission)>,
    /// Tools that were allowed and are not seen to be done.
    allowed: Vec<Tool>,
    /// It was seen to use a tool.
    executing: bool,
}

impl Document {
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            setup,
            session: None,
            asked: 0,
            turn: None,
            held: None,
        }
    }

    fn prompt(&mut self, run: RunId, brief: &Brief, out: &mut Out) {
        let agent = &self.setup.agent;
        let text = match text_of_brief(brief, Images::Carried) {
            Ok(text) => text,
            Err(what) => {
                return out.refuse(run, unsupported(agent, &what));
            }
        };
        let image = |base64: &str| json!({ "type": "image", "data": base64 });
        let images = brief.images.iter().map(|one| image(&one.base64));
        let payload = json!({ "text": text, "attachments": images.collect::<Vec<_>>() });
        match &self.turn {
            None => self.submit(run, &payload, out),
            Some(turn) if turn.unheard => self.held = Some((run, payload)),
            Some(_) => {
                let message = format!("The agent `{agent}` is busy with another prompt.");
                out.fail_run(run, Code::Busy, message);
            }
        }
    }

    fn submit(&mut self, run: RunId, payload: &Value, out: &mut Out) {
        self.turn = Some(Turn {
            run,
            unheard: false,
            begun: false,
            open: Vec::new(),
            allowed: Vec::new(),
            executing: false,
        });
        out.write(json!({ "type": "submitUserInput", "payload": payload }));
        // Nobody says that it arrived.
        out.tell(FromAgent::Accepted { run });
    }

    fn cancel(&mut self, run: RunId, out: &mut Out) {
        if self.held.as_ref().is_some_and(|(held, _)| *held == run) {
            self.held = None;
            return out.end(run, RunOutcome::Cancelled, None);
        }
        if let Some(turn) = &mut self.turn
            && turn.run == run
            && !turn.unheard
        {
            turn.unheard = true;
            goes_on(&self.setup.agent, out);
            out.end(run, RunOutcome::Cancelled, None);
        }
    }

    fn answer(&mut self, question: &str, resolution: &Resolution, out: &mut Out) {
        let Some(turn) = &mut self.turn else { return };
        let place = turn.open.iter().position(|(name, _)| name == question);
        let Some((_, permission)) = place.map(|place| turn.open.remove(place)) else {
            return;
        };
        let approved = match resolution {
            Resolution::Answered(answer) => match &answer.said {
                Said::Ok(ok) => *ok,
                Said::Option(option) => option == permission::ALLOW,
                Said::Value(_) | Said::Ids(_) => false,
            },
            Resolution::Expired | Resolution::Cancelled => false,
        };
        let mut tool = permission.tool;
        out.write(confirmation(&tool.id, approved));
        tool.status = if approved { "running" } else { "denied" }.into();
        if approved {
            turn.allowed.push(tool.clone());
        }
        let run = turn.run;
        out.tell(FromAgent::Tool { run, tool });
    }

    fn message(&mut self, payload: &Value, out: &mut Out) {
        let Some(turn) = &mut self.turn else {
            return out.act(Act::Odd("`onNewMessage` with no run under way".into()));
        };
        turn.begun = true;
        if turn.unheard {
            return;
        }
        turn.goes_on(out);
        turn.tools_are_done(out);
        let (run, text) = (turn.run, text_of(&payload["content"]));
        if !text.is_empty() {
            let text = Some(text);
            out.tell(FromAgent::Final { run, text });
        }
        let sources = payload["metadata"]["source_documents"].as_array();
        if sources.is_some_and(|sources| !sources.is_empty()) {
            let metadata = json!({ "metadata": payload["metadata"] });
            let value = json!({ "type": "onNewMessage", "payload": metadata });
            out.raw(PROTOCOL.name, value);
        }
    }

    fn ask(&mut self, payload: &Value, out: &mut Out) {
        let Some(id) = payload["confirmationId"].as_str().map(str::to_owned) else {
            return out.act(Act::Odd("`onToolCallRequest` without its id".into()));
        };
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.unheard) else {
            // Nobody is there to say yes.
            return out.write(confirmation(&id, false));
        };
        turn.begun = true;
        if turn.open.iter().any(|(_, open)| open.tool.id == id) {
            return out.act(Act::Odd(format!("`onToolCallRequest` {id:.64} again")));
        }
        let permission = Permission::read(&id, payload);
        let (run, patience) = (turn.run, Some(PATIENCE));
        let tool = permission.tool.clone();
        let asked = Box::new(permission.question());
        // A name of our own: the id of the core may be of any length.
        self.asked += 1;
        let question = format!("ask-{}", self.asked);
        turn.open.push((question.clone(), permission));
        out.tell(FromAgent::Tool { run, tool });
        out.tell(FromAgent::Asked {
            run,
            question,
            asked,
            patience,
        });
    }

    fn state(&mut self, payload: &Value, out: &mut Out) {
        let state = payload
            .as_str()
            .or_else(|| payload["state"].as_str())
            .unwrap_or_default();
        let activity = match state {
            "thinking" => Activity::Thinking,
            "executing_tool" => Activity::ExecutingTool,
            "waiting_for_input" => Activity::WaitingForInput,
            "idle" => Activity::Idle,
            _ => return out.act(Act::Odd(format!("the state `{state:.64}`"))),
        };
        let Some(turn) = &mut self.turn else { return };
        let at_work = matches!(activity, Activity::Thinking | Activity::ExecutingTool);
        turn.begun |= at_work;
        if turn.is_over(activity) {
            return self.finish(out);
        }
        if turn.unheard || !turn.begun {
            return;
        }
        // A tool that was allowed may be used while another one waits for its answer.
        if at_work && (activity == Activity::Thinking || turn.allowed.is_empty()) {
            turn.goes_on(out);
        }
        if activity == Activity::Thinking && turn.executing {
            turn.tools_are_done(out);
        }
        turn.executing |= activity == Activity::ExecutingTool;
        out.tell(FromAgent::Activity(activity));
    }

    fn finish(&mut self, out: &mut Out) {
        if let Some(mut turn) = self.turn.take()
            && !turn.unheard
        {
            turn.tools_are_done(out);
            out.end(turn.run, RunOutcome::Completed, None);
        }
        if let Some((run, payload)) = self.held.take() {
            self.submit(run, &payload, out);
        }
    }

    /// Does the event show that the core serves others, too? Nobody says which of them is ours.
    fn is_shared(&mut self, payload: &Value) -> bool {
        let Some(named) = payload["sessionId"].as_str() else {
            return false;
        };
        let first = self.session.get_or_insert_with(|| named.to_owned());
        first != named
    }
}

impl Dialect for Document {
    fn open(&mut self, out: &mut Out) {
        if self.setup.thread.is_some() || !self.setup.history.is_empty() {
            out.starts_fresh(&self.setup.agent);
        }
        out.ready(vec!["thoughts", "resume"]);
    }

    fn hear(&mut self, order: Order, out: &mut Out) {
        match order {
            Order::Prompt { run, brief } => self.prompt(run, &brief, out),
            Order::Cancel { run } => self.cancel(run, out),
            Order::Answer {
                question,
                resolution,
            } => self.answer(&question, &resolution, out),
            // Neither wire has a word for any inquiry.
            Order::Inquire { id, inquiry } => {
                out.decline_with(id, unsupported_inquiry(&self.setup.agent, &inquiry));
            }
            // It can be told nothing else.
            Order::Steer { .. }
            | Order::Settings(_)
            | Order::Tools(_)
            | Order::Context(_)
            | Order::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _lane: Lane, line: Value, out: &mut Out) {
        let Some(kind) = line["type"].as_str() else {
            return out.act(Act::Odd("a line without its type".into()));
        };
        let payload = &line["payload"];
        if self.is_shared(payload) {
            let agent = &self.setup.agent;
            let message = format!(
                "The agent `{agent}` tells about several sessions over one socket. A core on the wire \
                 `document` can serve only one: give each session its own."
            );
            return out.fail(Code::Unsupported, message);
        }
        match kind {
            "onNewMessage" => self.message(payload, out),
            "onToolCallRequest" => self.ask(payload, out),
            "onAgentStateChange" => self.state(payload, out),
            _ => out.raw(PROTOCOL.name, line),
        }
    }

    fn late(&mut self, _timer: u64, _out: &mut Out) {}
}

impl Turn {
    /// An agent that waits for the answer to a question of its own is not done.
    fn is_over(&self, activity: Activity) -> bool {
        let waits = matches!(activity, Activity::WaitingForInput | Activity::Idle);
        waits && self.begun && self.open.is_empty()
    }

    /// It is at work again: whatever it had asked, it has denied by itself.
    fn goes_on(&mut self, out: &mut Out) {
        let run = self.run;
        for (question, permission) in self.open.drain(..) {
            let mut tool = permission.tool;
            tool.status = "denied".into();
            out.tell(FromAgent::Settled { question });
            out.tell(FromAgent::Tool { run, tool });
        }
    }

    /// How a tool ended is not said, only that the agent goes on.
    fn tools_are_done(&mut self, out: &mut Out) {
        self.executing = false;
        let run = self.run;
        for mut tool in self.allowed.drain(..) {
            tool.status = "completed".into();
            out.tell(FromAgent::Tool { run, tool });
        }
    }
}

fn confirmation(id: &str, approved: bool) -> Value {
    json!({
        "type": "provideConfirmation",
        "payload": { "confirmationId": id, "approved": approved },
    })
}
