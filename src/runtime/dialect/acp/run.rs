//! Run: from `session/prompt` to the response that ends it.

use serde_json::{Value, json};

use super::super::{Actions, FromAgent, PromptContent, unsupported};
use super::config_options::ConfigKind;
use super::{Acp, PendingRequest, auth_errors, content, excerpt, usage};
use crate::domain::command::Mode;
use crate::domain::error_code::ErrorCode;
use crate::domain::event::Level;
use crate::domain::id::RunId;
use crate::domain::run::{RunOutcome, Usage};
use crate::runtime::jsonrpc::{self, RpcError};

#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact about the run of its own"
)]
#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: RunId,
    pub(super) mode: Mode,
    /// The prompt, while the agent is switched to its mode.
    unsent: Option<UnsentPrompt>,
    pub(super) cancelled: bool,
    /// A tool of it was denied.
    pub(super) denied: bool,
    /// Text came since the last finished message.
    pub(super) has_text: bool,
    /// A thought came since then.
    pub(super) has_thought: bool,
    /// The `messageId` of the last chunk.
    pub(super) message_id: Option<String>,
}

#[derive(Debug)]
struct UnsentPrompt {
    blocks: Vec<Value>,
    /// The switch is requested once.
    mode_requested: bool,
}

impl Run {
    /// No update belongs to a run whose prompt is unsent.
    pub(super) fn is_unsent(&self) -> bool {
        self.unsent.is_some()
    }
}

impl Acp {
    pub(super) fn prompt(&mut self, run: RunId, content: &PromptContent, out: &mut Actions) {
        let agent = &self.setup.agent;
        // On a second prompt agents cancel the first, or hold it and a cancel then ends both.
        if self.run.is_some() {
            let message = format!("The agent `{agent}` is busy with another run.");
            return out.fail_run(run, ErrorCode::Busy, message);
        }
        if content.mode == Mode::Plan && !self.config.can_plan() {
            let why = unsupported(agent, "plan without acting: it has no mode for that");
            return out.refuse_run(run, why);
        }
        let blocks = match content::prompt_blocks(content, &self.capabilities) {
            Ok(blocks) => blocks,
            Err(what) => return out.refuse_run(run, unsupported(agent, &what)),
        };
        self.tools.clear();
        self.run = Some(Run {
            id: run,
            mode: content.mode,
            unsent: Some(UnsentPrompt {
                blocks,
                mode_requested: false,
            }),
            cancelled: false,
            denied: false,
            has_text: false,
            has_thought: false,
            message_id: None,
        });
        self.send_prompt(out);
    }

    /// Sends the unsent prompt once the agent is in its mode and no change is pending.
    pub(super) fn send_prompt(&mut self, out: &mut Actions) {
        let run = self.run.as_mut().filter(|_| self.pending_sets == 0);
        let waiting = run.and_then(|run| Some((run.mode, run.unsent.as_mut()?)));
        let Some((mode, unsent)) = waiting else {
            return;
        };
        if !std::mem::replace(&mut unsent.mode_requested, true)
            && let Some(wanted) = self.config.mode_for(mode)
        {
            return self.set_config(ConfigKind::Mode, wanted, out);
        }
        let current = self.run.as_mut();
        let Some((run, unsent)) = current.and_then(|run| Some((run.id, run.unsent.take()?))) else {
            return;
        };
        // A plan was asked for: the agent must not act.
        if mode == Mode::Plan && !self.config.is_planning() {
            self.run = None;
            let message = format!(
                "The agent `{}` did not go into its mode for planning, so it was not asked.",
                self.setup.agent
            );
            return out.fail_run(run, ErrorCode::TaskFailed, message);
        }
        let params = json!({ "sessionId": self.session_id(), "prompt": unsent.blocks });
        self.usage.prompt_sent();
        self.send_request(PendingRequest::Prompt { run }, params, out);
        out.emit(FromAgent::RunAccepted { run });
    }

    pub(super) fn cancel(&mut self, run: RunId, out: &mut Actions) {
        let Some(current) = self.run.as_mut().filter(|current| current.id == run) else {
            return;
        };
        if current.unsent.is_some() {
            self.end_run(RunOutcome::Cancelled, None, out);
        } else if !current.cancelled {
            current.cancelled = true;
            let params = json!({ "sessionId": self.session_id() });
            out.write(jsonrpc::notification("session/cancel", params));
        }
    }

    pub(super) fn handle_prompt_response(
        &mut self,
        run: RunId,
        response: Result<Value, RpcError>,
        out: &mut Actions,
    ) {
        let Some(current) = self.run.as_ref().filter(|current| current.id == run) else {
            return;
        };
        let outcome = match &response {
            // Agents report an interruption in many ways.
            _ if current.cancelled => RunOutcome::Cancelled,
            // Nobody cancelled it: the agent stops after a denial.
            Ok(result) if current.denied && result["stopReason"] == "cancelled" => {
                let agent = &self.setup.agent;
                let text = format!("The agent `{agent}` stopped because it was denied a tool.");
                out.emit_notice(Level::Info, text);
                RunOutcome::Completed
            }
            Ok(result) => self.stop_outcome(result),
            Err(error) => {
                out.keep_error(run, error.in_its_words());
                self.error_outcome(error)
            }
        };
        let usage = response.ok().as_ref().and_then(usage::of_prompt);
        self.end_run(outcome, usage, out);
    }

    pub(super) fn end_run(&mut self, outcome: RunOutcome, usage: Option<Usage>, out: &mut Actions) {
        self.finish_message(out);
        self.cancel_permissions(out);
        if let Some(run) = self.run.take() {
            out.end_run(run.id, outcome, usage);
        }
    }

    /// Ends the current message, if it has text.
    pub(super) fn finish_message(&mut self, out: &mut Actions) {
        if let Some(run) = self.run.as_mut().filter(|run| run.has_text) {
            (run.has_text, run.has_thought) = (false, false);
            let (run, text) = (run.id, None);
            out.emit(FromAgent::MessageFinal { run, text });
        }
    }

    /// Ends the current message or thought because something else begins: few agents send `messageId`.
    pub(super) fn finish_message_or_thought(&mut self, out: &mut Actions) {
        if let Some(run) = &mut self.run {
            run.has_text |= run.has_thought;
        }
        self.finish_message(out);
    }

    fn stop_outcome(&self, result: &Value) -> RunOutcome {
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
                excerpt(other)
            ),
            None => format!("The agent `{agent}` stopped without saying why."),
        };
        failed(message)
    }

    fn error_outcome(&self, error: &RpcError) -> RunOutcome {
        let (agent, auth_methods) = (&self.setup.agent, &self.capabilities.auth_methods);
        failed(if auth_errors::is_auth_error(error, auth_methods) {
            auth_errors::login_message(agent, error, auth_methods)
        } else {
            format!(
                "The agent `{agent}` failed: {}",
                auth_errors::error_text(error)
            )
        })
    }
}

fn failed(message: String) -> RunOutcome {
    let code = ErrorCode::TaskFailed;
    RunOutcome::Failed { code, message }
}
