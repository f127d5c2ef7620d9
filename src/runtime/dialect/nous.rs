//! Nous: commands over one Unix socket, events over a second one.
//!
//! The core has one conversation and one run at a time, and asks nobody for permission. Events may
//! overtake the answer to the prompt that they follow, because they take another way: they are held
//! until the name of the run is known.

use std::time::Duration;

use serde_json::{Value, json};

use self::line::{Line, Refusal, What};
use self::run::Run;
use super::super::talk::FromAgent;
use super::{
    Act, Brief, Code, Dialect, Framing, Inquiry, Lane, Level, Order, Out, Protocol, RunId,
    RunOutcome, Setup, Transport, text_of, unsupported_inquiry,
};
use crate::domain::command::Topic;
use crate::domain::queue::{QueueModes, Take};

mod line;
mod run;

/// What is known about it.
pub(super) const PROTOCOL: Protocol = Protocol {
    name: "nous",
    about: "The nous core, over its two Unix sockets",
    capabilities: &[
        "cancel",
        "usage",
        "tools",
        "queue",
        "steer",
        "followUp",
        "setTools",
        "query",
        "tree",
        "extension",
        "branch",
        "attachments",
        "resume",
    ],
    transport: Transport::UnixPair,
    framing: Framing::Newline,
    resumes: true,
    shares: |_| false,
    restart_after: &[],
    options: &[],
    speaker: |setup| Box::new(Nous::new(setup)),
};

/// Events that may wait for the answer to their prompt. It is due within seconds.
const HELD: usize = 10_000;

/// The timer after which the core is asked again whether it is idle; those of commands have numbers.
const SETTLE: u64 = u64::MAX;
/// A run that somebody else began is over soon after it was told to end.
const SETTLE_AFTER: Duration = Duration::from_millis(500);
/// So often it is asked.
const SETTLE_TRIES: u8 = 20;

struct Nous {
    setup: Setup,
    line: Line,
    /// The core's name for this conversation.
    thread: Option<String>,
    /// So often the core was found busy at the beginning.
    found_busy: u8,
    run: Option<Run>,
    /// The core's name of the run before.
    ended: Option<String>,
}

impl Dialect for Nous {
    fn open(&mut self, out: &mut Out) {
        self.line.send(What::State, "get_state", json!({}), out);
    }

    fn hear(&mut self, order: Order, out: &mut Out) {
        match order {
            Order::Prompt { run, brief } => self.prompt(run, &brief, out),
            Order::Steer { run, text } => {
                if self.run.as_ref().is_some_and(|current| current.id == run) {
                    let payload = json!({ "text": text });
                    return self.line.send(What::Steer, "steer", payload, out);
                }
                self.unheard("the run is over", out);
            }
            Order::Cancel { run } => self.cancel(run, out),
            Order::Inquire { id, inquiry } => self.inquire(id, &inquiry, out),
            Order::Tools(tools) => {
                let payload = json!({ "tools": tools });
                self.line
                    .send(What::Setting, "set_active_tools", payload, out);
            }
            Order::QueueModes(modes) => self.queue(modes, out),
            // It asks nothing, has no settings, and does not want to know where the user is.
            Order::Answer { .. } | Order::Settings(_) | Order::Context(_) => {}
        }
    }

    fn read(&mut self, lane: Lane, said: Value, out: &mut Out) {
        match lane {
            Lane::Main => self.answered(&said, out),
            Lane::Events => self.happened(said, out),
        }
    }

    fn late(&mut self, timer: u64, out: &mut Out) {
        if timer == SETTLE {
            return self.open(out);
        }
        let Some((what, command)) = self.line.late(timer, out) else {
            return;
        };
        let agent = &self.setup.agent;
        let message = format!("The agent `{agent}` did not answer `{command}` in time.");
        if let What::Inquiry(id) = what {
            return out.decline(id, Code::ConnectionLost, message);
        }
        self.run = None;
        out.fail(Code::ConnectionLost, message);
    }
}

/// Commands, and what comes of them.
impl Nous {
    fn new(setup: Setup) -> Self {
        Self {
            line: Line::default(),
            thread: setup.thread.clone(),
            found_busy: 0,
            run: None,
            ended: None,
            setup,
        }
    }

    fn answered(&mut self, line: &Value, out: &mut Out) {
        let Some((what, answer)) = self.line.answered(line, out) else {
            return;
        };
        match what {
            What::State => self.stands(answer, out),
            // Whatever came of it: only a core that is idle is taken.
            What::Halt => self.open(out),
            What::Session => self.arrived(answer, out),
            What::Prompt(run) => self.prompted(run, answer, out),
            What::Abort(run) => self.aborted(run, answer.err().as_ref(), out),
            What::Steer => {
                if let Err(refusal) = answer {
                    self.unheard(&refusal.text, out);
                }
            }
            What::Setting => {
                if let Err(refusal) = answer {
                    let agent = &self.setup.agent;
                    let text = format!("The agent `{agent}` did not take it: {}", refusal.text);
                    out.notice(Level::Warn, text);
                }
            }
            What::Inquiry(id) => match answer {
                Ok(answer) => out.answer(id, answer),
                Err(refusal) => out.decline(id, refusal.code, refusal.text),
            },
            What::Nothing => {}
        }
    }

    /// The core says how it stands: it has to be idle and in our conversation.
    fn stands(&mut self, answer: Result<Value, Refusal>, out: &mut Out) {
        let state = match answer {
            Ok(state) => state,
            Err(refusal) => return self.refused(&refusal, out),
        };
        if state["run_state"] == "running" {
            // Nobody listens to it any more, and another conversation would be put under its feet.
            return self.settle(out);
        }
        match &self.thread {
            Some(thread) => {
                let payload = json!({ "session_id": thread });
                self.line
                    .send(What::Session, "switch_session", payload, out);
            }
            None => self.line.send(What::Session, "new_session", json!({}), out),
        }
    }

    /// Ends the run that the core was found with, and waits until it is over.
    fn settle(&mut self, out: &mut Out) {
        let before = self.found_busy;
        self.found_busy += 1;
        if before == 0 {
            self.line.send(What::Halt, "abort", json!({}), out);
        } else if before <= SETTLE_TRIES {
            out.timer(SETTLE, SETTLE_AFTER);
        } else {
            let agent = &self.setup.agent;
            let message = format!("The agent `{agent}` is still busy with a run from before.");
            out.fail(Code::Busy, message);
        }
    }

    fn arrived(&mut self, answer: Result<Value, Refusal>, out: &mut Out) {
        let fresh = self.thread.is_none();
        let session = match answer {
            Ok(session) => session,
            // One that is there is not left behind: perhaps it can be taken up another time.
            Err(refusal) if fresh || refusal.code != Code::NotFound => {
                return self.refused(&refusal, out);
            }
            Err(_) => {
                self.thread = None;
                return self.line.send(What::Session, "new_session", json!({}), out);
            }
        };
        if fresh {
            let Some(thread) = session["session_id"].as_str().map(str::to_owned) else {
                let agent = &self.setup.agent;
                let message = format!("The agent `{agent}` began a conversation without a name.");
                return out.fail(Code::TaskFailed, message);
            };
            self.thread = Some(thread.clone());
            out.tell(FromAgent::Thread(thread));
        }
        out.ready(Vec::new());
        if fresh && (self.setup.thread.is_some() || !self.setup.history.is_empty()) {
            out.starts_fresh(&self.setup.agent);
        }
    }

    fn refused(&self, refusal: &Refusal, out: &mut Out) {
        let agent = &self.setup.agent;
        let message = format!("The agent `{agent}` refused to begin: {}", refusal.text);
        out.fail(refusal.code, message);
    }

    fn unheard(&self, why: &str, out: &mut Out) {
        let agent = &self.setup.agent;
        let text = format!("The agent `{agent}` did not hear what was said to it: {why}");
        out.notice(Level::Warn, text);
    }

    fn queue(&mut self, modes: QueueModes, out: &mut Out) {
        let mode = |take| match take {
            Take::One => json!({ "mode": "one-at-a-time" }),
            Take::All => json!({ "mode": "all" }),
        };
        let steering = mode(modes.steering);
        self.line
            .send(What::Setting, "set_steering_mode", steering, out);
        let follow_up = mode(modes.follow_up);
        self.line
            .send(What::Setting, "set_follow_up_mode", follow_up, out);
    }

    fn inquire(&mut self, id: u64, inquiry: &Inquiry, out: &mut Out) {
        let (command, payload) = match inquiry {
            Inquiry::Extension { name, payload } => {
                if !payload.is_object() && !payload.is_null() {
                    let message = format!("`{name}` takes an object.");
                    return out.decline(id, Code::ValidationError, message);
                }
                let payload = json!({ "name": name, "payload": payload });
                ("extension_command", payload)
            }
            Inquiry::Query { topic, .. } if *topic == Topic::Tree => {
                ("get_tree", json!({ "session_id": self.thread }))
            }
            Inquiry::Query { .. } => {
                let declined = unsupported_inquiry(&self.setup.agent, inquiry);
                return out.decline_with(id, declined);
            }
        };
        self.line.send(What::Inquiry(id), command, payload, out);
    }
}

/// The life of a run.
impl Nous {
    fn prompt(&mut self, run: RunId, brief: &Brief, out: &mut Out) {
        let agent = &self.setup.agent;
        if self.run.is_some() {
            let message = format!("The agent `{agent}` has a run under way.");
            return out.fail_run(run, Code::Busy, message);
        }
        let text = match brief.as_text(agent) {
            Ok(text) => text,
            Err(declined) => return out.refuse(run, declined),
        };
        self.run = Some(Run::new(run));
        // Without `wait: false` the core would hold its answer until the end of the run.
        let payload = json!({ "text": text, "wait": false });
        self.line.send(What::Prompt(run), "prompt", payload, out);
    }

    fn prompted(&mut self, id: RunId, answer: Result<Value, Refusal>, out: &mut Out) {
        let Some(run) = self.run.as_mut().filter(|run| run.id == id) else {
            return;
        };
        let held = std::mem::take(&mut run.held);
        match answer {
            Err(_) if run.cancelling => self.finish(RunOutcome::Cancelled, out),
            Err(refusal) => {
                let (code, message) = (refusal.code, refusal.text);
                self.finish(RunOutcome::Failed { code, message }, out);
            }
            Ok(accepted) => self.accepted(&accepted, out),
        }
        for event in held {
            self.happened(event, out);
        }
    }

    fn accepted(&mut self, accepted: &Value, out: &mut Out) {
        let Some(run) = &mut self.run else { return };
        let agent = &self.setup.agent;
        let native = accepted["run_id"].as_str().filter(|id| !id.is_empty());
        let Some(native) = native else {
            let message = format!("The agent `{agent}` began a run without a name.");
            let code = Code::TaskFailed;
            return self.finish(RunOutcome::Failed { code, message }, out);
        };
        let session = accepted["session_id"].as_str();
        if session.is_some() && session != self.thread.as_deref() {
            // Somebody else talks to the same core: neither conversation may see the other.
            self.run = None;
            let message = format!("The agent `{agent}` was taken to another conversation.");
            return out.fail(Code::TaskFailed, message);
        }
        run.native = Some(native.to_owned());
        out.tell(FromAgent::Accepted { run: run.id });
    }

    fn cancel(&mut self, run: RunId, out: &mut Out) {
        let Some(current) = self.run.as_mut().filter(|current| current.id == run) else {
            return;
        };
        if std::mem::replace(&mut current.cancelling, true) {
            return;
        }
        if self.line.take_back(|what| *what == What::Prompt(run)) {
            return self.finish(RunOutcome::Cancelled, out);
        }
        self.line.hurry(What::Abort(run), "abort", json!({}), out);
    }

    /// What came of an abort. Nothing, if the run had its end by then.
    fn aborted(&mut self, run: RunId, refusal: Option<&Refusal>, out: &mut Out) {
        if self.run.as_ref().is_none_or(|current| current.id != run) {
            return;
        }
        if let Some(refusal) = refusal {
            self.finish(RunOutcome::Cancelled, out);
            if !refusal.text.contains("no_active_run") {
                out.act(Act::Finish);
            }
        }
    }

    /// The one end of the run under way.
    fn finish(&mut self, outcome: RunOutcome, out: &mut Out) {
        let Some(mut run) = self.run.take() else {
            return;
        };
        run.close_utterance(out);
        out.end(run.id, outcome, None);
        if run.native.is_some() {
            self.ended = run.native;
        }
    }
}

/// What the core says by itself.
impl Nous {
    fn happened(&mut self, event: Value, out: &mut Out) {
        let kind = text_of(&event["type"]);
        let named_kind = line::brief(&event["type"]);
        let payload = &event["payload"];
        let Some(named) = payload["run_id"].as_str() else {
            return beside_runs(&kind, event, out);
        };
        if let Some(run) = &mut self.run {
            if run.native.is_none() && self.ended.as_deref() != Some(named) {
                if run.held.len() < HELD {
                    return run.held.push(event);
                }
                return out.act(Act::Odd(format!("`{named_kind}` too long before its run")));
            }
            if run.native.as_deref() == Some(named) {
                if kind == "agent_end" {
                    let outcome = run.outcome();
                    return self.finish(outcome, out);
                }
                if !run.follow(&kind, payload, out) {
                    out.raw(PROTOCOL.name, event);
                }
                return;
            }
        }
        let name = line::brief(&event["payload"]["run_id"]);
        let what = format!("`{named_kind}` of the run `{name}`");
        out.act(if self.ended.as_deref() == Some(named) {
            Act::Odd(format!("{what}, which is over"))
        } else {
            Act::Stray(what)
        });
    }
}

/// Events that belong to no run.
fn beside_runs(kind: &str, event: Value, out: &mut Out) {
    let text = run::words(&event["payload"]);
    match kind {
        "warning" => out.notice(Level::Warn, text),
        "error" => out.notice(Level::Error, text),
        "agent_start"
        | "agent_end"
        | "turn_start"
        | "turn_end"
        | "message_start"
        | "message_update"
        | "message_end"
        | "tool_execution_start"
        | "tool_execution_update"
        | "tool_execution_end" => out.act(Act::Odd(format!("`{kind}` of no run"))),
        _ if event.is_object() => out.raw(PROTOCOL.name, event),
        _ => out.act(Act::Odd("a line that is not an event".into())),
    }
}
