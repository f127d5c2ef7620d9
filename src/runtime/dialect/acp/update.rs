//! Session updates: chunks, tool calls, plans, commands, modes and usage.

use serde_json::Value;

use super::super::{Actions, FromAgent};
use super::{Acp, PROTOCOL, content, excerpt};
use crate::domain::event::{AgentCommand, Channel, PlanStep};

/// Updates kept until the session id is known. Agents that send any that early send their commands.
const MAX_EARLY_UPDATES: usize = 16;

impl Acp {
    pub(super) fn update(&mut self, params: Value, out: &mut Actions) {
        match (&self.session, params["sessionId"].as_str()) {
            (_, None) => return out.unexpected("an update without a session"),
            (None, _) if self.early_updates.len() < MAX_EARLY_UPDATES => {
                return self.early_updates.push(params);
            }
            (Some(ours), Some(session)) if ours == session => {}
            (_, Some(session)) => {
                let what = format!("an update of the session `{}`", excerpt(session));
                return out.misrouted(what);
            }
        }
        let update = &params["update"];
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        if !self.ready && is_history(kind) {
            return;
        }
        match kind {
            "agent_message_chunk" => self.message_chunk(Channel::Text, update, out),
            "agent_thought_chunk" => self.message_chunk(Channel::Thought, update, out),
            // The user's own prompt.
            "user_message_chunk" => {}
            "tool_call" | "tool_call_update" => self.tool_call(update, out),
            "plan" => out.emit(FromAgent::PlanUpdated(plan_steps(&update["entries"]))),
            "available_commands_update" => self.available_commands(update, out),
            "current_mode_update" => {
                let mode = update["currentModeId"].as_str();
                if mode.is_some_and(|mode| self.config.mode_changed(mode)) {
                    out.emit_raw(PROTOCOL.name, update.clone());
                }
            }
            "config_option_update" => {
                if self.config.read_config_options(update) {
                    out.emit_raw(PROTOCOL.name, update.clone());
                }
            }
            "session_info_update" => {
                let title = update["title"].as_str().map(str::trim);
                if let Some(title) = title.filter(|title| !title.is_empty()) {
                    out.emit(FromAgent::TitleChanged(title.to_owned()));
                }
            }
            "usage_update" => self.usage_update(update, out),
            "" => out.unexpected("an update of no kind"),
            _ => out.emit_raw(PROTOCOL.name, update.clone()),
        }
    }

    fn message_chunk(&mut self, channel: Channel, update: &Value, out: &mut Actions) {
        let Some(run) = self.run.as_mut().filter(|run| !run.is_unsent()) else {
            return out.unexpected("a piece of an answer outside of a run");
        };
        let Some(text) = content::to_markdown(&update["content"]) else {
            return out.emit_raw(PROTOCOL.name, update.clone());
        };
        let id = run.id;
        let message_id = update["messageId"].as_str();
        if message_id.is_some() && run.message_id.as_deref() != message_id {
            run.message_id = message_id.map(str::to_owned);
            self.finish_message(out);
        }
        if let Some(run) = &mut self.run {
            let has_content = !text.is_empty();
            run.has_text |= channel == Channel::Text && has_content;
            run.has_thought |= channel == Channel::Thought && has_content;
        }
        out.emit_delta(id, channel, text);
    }

    fn tool_call(&mut self, update: &Value, out: &mut Actions) {
        let Some(run) = self.run.as_ref().filter(|run| !run.is_unsent()) else {
            return out.unexpected("a tool outside of a run");
        };
        let run = run.id;
        if self.tools.is_new(update) {
            self.finish_message_or_thought(out);
        }
        match self.tools.upsert(update) {
            Some(tool) => out.emit(FromAgent::ToolUpdate { run, tool }),
            None => out.unexpected("a tool without an id"),
        }
    }

    fn available_commands(&mut self, update: &Value, out: &mut Actions) {
        let command = |command: &Value| {
            Some(AgentCommand {
                name: command["name"].as_str()?.to_owned(),
                description: command["description"].as_str().unwrap_or_default().into(),
            })
        };
        let all = update["availableCommands"].as_array();
        let commands: Vec<_> = all.into_iter().flatten().filter_map(command).collect();
        // Some agents send them again with every prompt.
        if commands != self.commands {
            self.commands.clone_from(&commands);
            out.emit(FromAgent::CommandsAvailable(commands));
        }
    }

    fn usage_update(&mut self, update: &Value, out: &mut Actions) {
        if let Some(left) = self.usage.context_left(update) {
            out.emit(FromAgent::ContextLeft(left));
        }
        let resumed = self.resumed || !self.ready;
        if let Some(usage) = self.usage.new_cost(update, resumed) {
            out.emit(FromAgent::Usage(usage));
        }
    }
}

/// Whether it is history, which an agent replays while it resumes a session.
fn is_history(kind: &str) -> bool {
    !matches!(
        kind,
        "available_commands_update"
            | "current_mode_update"
            | "config_option_update"
            | "usage_update"
    )
}

fn plan_steps(entries: &Value) -> Vec<PlanStep> {
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
