//! The run under way: from its prompt to the answer that ends it.

use serde_json::{Value, json};

use super::super::{Brief, FromAgent, Out, unsupported};
use super::choice::Choice;
use super::{Acp, Asked, content, login, meter, short};
use crate::domain::code::Code;
use crate::domain::command::Mode;
use crate::domain::id::RunId;
use crate::domain::run::{RunOutcome, Usage};
use crate::runtime::jsonrpc::{self, Fault};

/// The run under way.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: RunId,
    /// Is a plan wanted, or deeds?
    pub(super) mode: Mode,
    /// What is asked, while the agent is brought into the right mode first.
    held: Option<Held>,
    /// Was it cancelled?
    pub(super) cancelled: bool,
    /// Was something said aloud since the last complete utterance?
    pub(super) said: bool,
    /// Or thought?
    pub(super) thought: bool,
    /// The agent's name for the utterance that the last piece was of.
    pub(super) utterance: Option<String>,
}

/// A prompt that is not on its way yet.
#[derive(Debug)]
struct Held {
    blocks: Vec<Value>,
    /// Was the agent told to go into the right mode? It is told once.
    steered: bool,
}

impl Run {
    /// Is the prompt still to be sent? Then nothing that comes belongs to it.
    pub(super) fn is_held(&self) -> bool {
        self.held.is_some()
    }
}

impl Acp {
    /// Begins a run, if the agent can do what is asked.
    pub(super) fn prompt(&mut self, run: RunId, brief: &Brief, out: &mut Out) {
        let agent = &self.setup.agent;
        // Agents do different things with a second prompt, none of them good.
        if self.run.is_some() {
            let message = format!("The agent `{agent}` is busy with another run.");
            return out.fail_run(run, Code::Busy, message);
        }
        if brief.mode == Mode::Plan && !self.choices.can_plan() {
            let why = unsupported(agent, "plan without acting: it has no mode for that");
            return out.fail_run(run, why.code, why.message);
        }
        let blocks = match content::blocks(brief, &self.offers) {
            Ok(blocks) => blocks,
            Err(what) => {
                let why = unsupported(agent, &what);
                return out.fail_run(run, why.code, why.message);
            }
        };
        self.tools.forget();
        self.run = Some(Run {
            id: run,
            mode: brief.mode,
            held: Some(Held {
                blocks,
                steered: false,
            }),
            cancelled: false,
            said: false,
            thought: false,
            utterance: None,
        });
        self.go_on(out);
    }

    /// Sends the prompt that was held, once the agent is in the right mode and nothing else is being
    /// set any more.
    pub(super) fn go_on(&mut self, out: &mut Out) {
        let waits = self.run.as_mut().filter(|_| self.setting == 0);
        let waits = waits.and_then(|run| Some((run.mode, run.held.as_mut()?)));
        let Some((mode, held)) = waits else {
            return;
        };
        if !std::mem::replace(&mut held.steered, true)
            && let Some(wanted) = self.choices.mode_for(mode)
        {
            return self.set(Choice::Mode, wanted, out);
        }
        let current = self.run.as_mut();
        let Some((run, held)) = current.and_then(|run| Some((run.id, run.held.take()?))) else {
            return;
        };
        // Whoever asked for a plan must not get deeds.
        if mode == Mode::Plan && !self.choices.is_planning() {
            self.run = None;
            let message = format!(
                "The agent `{}` did not go into its mode for planning, so it was not asked.",
                self.setup.agent
            );
            return out.fail_run(run, Code::TaskFailed, message);
        }
        let params = json!({ "sessionId": self.session_id(), "prompt": held.blocks });
        self.meter.begin();
        self.ask(Asked::Prompt { run }, params, out);
        out.tell(FromAgent::Accepted { run });
    }

    /// Stops the run, if it is the one under way.
    pub(super) fn cancel(&mut self, run: RunId, out: &mut Out) {
        let Some(current) = self.run.as_mut().filter(|current| current.id == run) else {
            return;
        };
        if current.held.is_some() {
            self.end_run(RunOutcome::Cancelled, None, out);
        } else if !current.cancelled {
            current.cancelled = true;
            let params = json!({ "sessionId": self.session_id() });
            out.write(jsonrpc::notification("session/cancel", params));
        }
    }

    /// The prompt has its answer.
    pub(super) fn prompted(&mut self, run: RunId, answer: Result<Value, Fault>, out: &mut Out) {
        let Some(current) = self.run.as_ref().filter(|current| current.id == run) else {
            return;
        };
        let outcome = match &answer {
            // Agents that are interrupted say so in many ways.
            _ if current.cancelled => RunOutcome::Cancelled,
            Ok(result) => self.outcome(result),
            Err(fault) => self.failure(fault),
        };
        let usage = answer.ok().as_ref().and_then(meter::tokens);
        self.end_run(outcome, usage, out);
    }

    /// The run is over: nothing of it is left.
    pub(super) fn end_run(&mut self, outcome: RunOutcome, usage: Option<Usage>, out: &mut Out) {
        self.complete(out);
        self.withdraw_questions(out);
        if let Some(run) = self.run.take() {
            out.end(run.id, outcome, usage);
        }
    }

    /// What was said aloud is complete, if anything was.
    pub(super) fn complete(&mut self, out: &mut Out) {
        if let Some(run) = self.run.as_mut().filter(|run| run.said) {
            (run.said, run.thought) = (false, false);
            let (run, text) = (run.id, None);
            out.tell(FromAgent::Final { run, text });
        }
    }

    /// Something else begins: what was said or thought before it is complete, and what comes after it
    /// stands behind it. Few agents name their utterances.
    pub(super) fn interrupt(&mut self, out: &mut Out) {
        if let Some(run) = &mut self.run {
            run.said |= run.thought;
        }
        self.complete(out);
    }

    fn outcome(&self, result: &Value) -> RunOutcome {
        let agent = &self.setup.agent;
        let message = match result["stopReason"].as_str() {
            Some("end_turn") => return RunOutcome::Completed,
            Some("cancelled") => return RunOutcome::Cancelled,
            Some("refusal") => format!(
                "The agent `{agent}` declined to go on. It forgets this prompt; ask in other words."
            ),
            Some("max_tokens") => format!(
                "The agent `{agent}` has used up the tokens that it may use. Ask it to go on, or \
                 ask for less at once."
            ),
            Some("max_turn_requests") => format!(
                "The agent `{agent}` has asked its model as often as it may for one prompt. Ask it \
                 to go on."
            ),
            Some(other) => format!(
                "The agent `{agent}` stopped for a reason that is not known here: `{}`.",
                short(other)
            ),
            None => format!("The agent `{agent}` stopped without saying why."),
        };
        failed(message)
    }

    fn failure(&self, fault: &Fault) -> RunOutcome {
        let (agent, logins) = (&self.setup.agent, &self.offers.logins);
        failed(if login::is_needed(fault, logins) {
            login::needed(agent, fault, logins)
        } else {
            format!("The agent `{agent}` failed: {}", login::said(fault))
        })
    }
}

fn failed(message: String) -> RunOutcome {
    let code = Code::TaskFailed;
    RunOutcome::Failed { code, message }
}
