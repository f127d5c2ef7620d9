//! What the agent tells about its conversation while it works.

use serde_json::Value;

use super::super::{Act, FromAgent, Out};
use super::{Acp, PROTOCOL, content, short};
use crate::domain::event::{AgentCommand, Channel, PlanStep};

/// How many updates are kept until the conversation has its name. Agents that tell something that
/// early tell their commands.
const EARLY: usize = 16;

impl Acp {
    /// Reads a `session/update`.
    pub(super) fn update(&mut self, params: Value, out: &mut Out) {
        match (&self.session, params["sessionId"].as_str()) {
            (_, None) => return out.act(Act::Odd("an update without a session".into())),
            (None, _) if self.early.len() < EARLY => return self.early.push(params),
            (Some(ours), Some(session)) if ours == session => {}
            (_, Some(session)) => {
                let what = format!("an update of the session `{}`", short(session));
                return out.act(Act::Stray(what));
            }
        }
        let update = &params["update"];
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        if !self.ready && is_past(kind) {
            return;
        }
        match kind {
            "agent_message_chunk" => self.chunk(Channel::Text, update, out),
            "agent_thought_chunk" => self.chunk(Channel::Thought, update, out),
            // What the user said is known here.
            "user_message_chunk" => {}
            "tool_call" | "tool_call_update" => self.tool(update, out),
            "plan" => out.tell(FromAgent::Plan(steps(&update["entries"]))),
            "available_commands_update" => self.learn_commands(update, out),
            "current_mode_update" => {
                let mode = update["currentModeId"].as_str();
                if mode.is_some_and(|mode| self.choices.moved(mode)) {
                    out.raw(PROTOCOL.name, update.clone());
                }
            }
            "config_option_update" => {
                if self.choices.learn_options(update) {
                    out.raw(PROTOCOL.name, update.clone());
                }
            }
            "session_info_update" => {
                let title = update["title"].as_str().map(str::trim);
                if let Some(title) = title.filter(|title| !title.is_empty()) {
                    out.tell(FromAgent::Title(title.to_owned()));
                }
            }
            "usage_update" => self.count(update, out),
            "" => out.act(Act::Odd("an update of no kind".into())),
            _ => out.raw(PROTOCOL.name, update.clone()),
        }
    }

    fn chunk(&mut self, channel: Channel, update: &Value, out: &mut Out) {
        let Some(run) = self.run.as_mut().filter(|run| !run.is_held()) else {
            return out.act(Act::Odd("a piece of an answer outside of a run".into()));
        };
        let Some(text) = content::said(&update["content"]) else {
            return out.raw(PROTOCOL.name, update.clone());
        };
        let id = run.id;
        let utterance = update["messageId"].as_str();
        if utterance.is_some() && run.utterance.as_deref() != utterance {
            run.utterance = utterance.map(str::to_owned);
            self.complete(out);
        }
        if let Some(run) = &mut self.run {
            let is_something = !text.is_empty();
            run.said |= channel == Channel::Text && is_something;
            run.thought |= channel == Channel::Thought && is_something;
        }
        out.say(id, channel, text);
    }

    fn tool(&mut self, update: &Value, out: &mut Out) {
        let Some(run) = self.run.as_ref().filter(|run| !run.is_held()) else {
            return out.act(Act::Odd("a tool outside of a run".into()));
        };
        let run = run.id;
        if self.tools.is_new(update) {
            self.interrupt(out);
        }
        match self.tools.mention(update) {
            Some(tool) => out.tell(FromAgent::Tool { run, tool }),
            None => out.act(Act::Odd("a tool without an id".into())),
        }
    }

    fn learn_commands(&mut self, update: &Value, out: &mut Out) {
        let command = |command: &Value| {
            Some(AgentCommand {
                name: command["name"].as_str()?.to_owned(),
                description: command["description"].as_str().unwrap_or_default().into(),
            })
        };
        let all = update["availableCommands"].as_array();
        let commands: Vec<_> = all.into_iter().flatten().filter_map(command).collect();
        // Some agents tell them again with every prompt.
        if commands != self.commands {
            self.commands.clone_from(&commands);
            out.tell(FromAgent::Commands(commands));
        }
    }

    fn count(&mut self, update: &Value, out: &mut Out) {
        if let Some(left) = self.meter.left(update) {
            out.tell(FromAgent::ContextLeft(left));
        }
        let taken_up = self.taken_up || !self.ready;
        if let Some(usage) = self.meter.cost(update, taken_up) {
            out.tell(FromAgent::Usage(usage));
        }
    }
}

/// Is it something that happened? While a conversation is taken up, that was told long ago.
fn is_past(kind: &str) -> bool {
    !matches!(
        kind,
        "available_commands_update"
            | "current_mode_update"
            | "config_option_update"
            | "usage_update"
    )
}

fn steps(entries: &Value) -> Vec<PlanStep> {
    let step = |entry: &Value| {
        let status = match entry["status"].as_str() {
            Some("in_progress") => "running",
            Some("completed") => "completed",
            _ => "pending",
        };
        Some(PlanStep {
            title: entry["content"].as_str()?.to_owned(),
            status: status.to_owned(),
        })
    };
    let all = entries.as_array().into_iter().flatten();
    all.filter_map(step).collect()
}
