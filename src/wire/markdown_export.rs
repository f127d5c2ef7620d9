//! Markdown export: a journal as a conversation for people, event by event. Pure.
//!
//! Texts are quoted, and the input and output of tools stand between fences longer than any in them:
//! no text can end its block or look like a part of this document. The last plan of a run and the
//! amount of thought come at its end; settings and usage are left out. Touches `domain` only.

use std::fmt::Write as _;

use jiff::Timestamp;

use crate::domain::command::{Attachment, Prompt};
use crate::domain::event::{Author, Channel, Event, PlanStep, Recorded, Resolver};
use crate::domain::id::{MessageId, SessionId};
use crate::domain::run::RunOutcome;
use crate::domain::tool::Tool;

mod escaping;
use escaping::{Quote, fenced, inline};

/// Open tool calls that are kept; beyond that, the oldest is written as it stands.
const MAX_OPEN_TOOLS: usize = 100;

/// A document being written. It keeps what is open, not what was written.
pub(crate) struct Markdown {
    agent: String,
    begun: bool,
    quote: Quote,
    /// The message written last, if more of it may follow.
    open_message: Option<MessageId>,
    /// Tool calls that have not ended.
    tools: Vec<Tool>,
    /// The latest plan of the current run.
    plan: Vec<PlanStep>,
    thought: usize,
}

impl Markdown {
    pub(crate) fn new(
        session: SessionId,
        title: Option<&str>,
        agent: &str,
        now: Timestamp,
    ) -> (Self, String) {
        let agent = inline(agent);
        let title = title.map_or_else(|| "A session".to_owned(), inline);
        let beginning = format!(
            "# {title}\n\nSession `{session}` with {agent}, exported {}.\n\n",
            moment(now)
        );
        let document = Self {
            agent,
            begun: false,
            quote: Quote::default(),
            open_message: None,
            tools: Vec::new(),
            plan: Vec::new(),
            thought: 0,
        };
        (document, beginning)
    }

    pub(crate) fn write(&mut self, recorded: &Recorded, out: &mut String) {
        if !self.begun && recorded.first() > 1 {
            out.push_str("*What was before is not kept any more.*\n\n");
        }
        self.begun = true;
        let at = recorded.at;
        match recorded.event.bare() {
            Event::RunStarted { prompt, .. } => self.prompt(prompt, at, out),
            Event::MessageDelta {
                message,
                channel: Channel::Text,
                text,
                ..
            } => self.piece(*message, text, at, out),
            Event::MessageDelta { text, .. } => self.thought += text.chars().count(),
            Event::PlanUpdated { steps, .. } => self.plan.clone_from(steps),
            Event::MessageFinal {
                message,
                author,
                text,
                rest,
                ..
            } => {
                // The chunks of it are written already.
                let missing = match text {
                    Some(text) if self.open_message != Some(*message) => text,
                    _ => rest,
                };
                self.last(*message, *author, missing, at, out);
            }
            Event::ToolUpdate { tool, .. } => self.tool(tool.clone(), out),
            Event::RunEnded { outcome, .. } => self.run_ended(outcome, out),
            Event::QuestionAsked(asked) => {
                let question = &asked.question;
                let (title, message) = (inline(&question.title), inline(&question.message));
                self.remark(&format!("{} asks: {title} {message}", self.agent), out);
            }
            Event::QuestionResolved { by, granted, .. } => {
                let word = if *granted { "yes" } else { "no" };
                let who = match by {
                    Resolver::User { name, .. } => inline(name),
                    Resolver::AutoApprove => "the session's settings".into(),
                    Resolver::Timeout => "the clock".into(),
                    Resolver::RunEnd => "the end of the run".into(),
                };
                self.remark(&format!("Answered by {who}: {word}"), out);
            }
            Event::Suggested { by, text, .. } => {
                self.remark(&format!("{} suggests: {}", inline(by), inline(text)), out);
            }
            Event::AgentNotice { text, .. } => {
                self.remark(&format!("{} says: {}", self.agent, inline(text)), out);
            }
            _ => {}
        }
    }

    pub(crate) fn end(mut self, out: &mut String) {
        self.quote.close(out);
        self.write_open_tools(out);
        self.write_plan_and_thoughts(out);
    }

    fn prompt(&mut self, prompt: &Prompt, at: Timestamp, out: &mut String) {
        self.heading("User", at, out);
        self.quote.write(&prompt.text, out);
        self.quote.close(out);
        for (name, kind) in prompt.attachments.iter().filter_map(Attachment::label) {
            let (name, kind) = (inline(name), inline(kind));
            self.remark(&format!("Attached: {name} ({kind})"), out);
        }
        if !prompt.images.is_empty() {
            self.remark(&format!("Images attached: {}", prompt.images.len()), out);
        }
    }

    fn piece(&mut self, message: MessageId, text: &str, at: Timestamp, out: &mut String) {
        if text.is_empty() {
            return;
        }
        if self.open_message != Some(message) {
            self.heading(&self.agent.clone(), at, out);
            self.open_message = Some(message);
        }
        self.quote.write(text, out);
    }

    fn last(
        &mut self,
        message: MessageId,
        author: Author,
        text: &str,
        at: Timestamp,
        out: &mut String,
    ) {
        if author == Author::Assistant {
            self.piece(message, text, at, out);
        } else if !text.is_empty() {
            let who = match author {
                Author::User => "User",
                _ => "System",
            };
            self.heading(who, at, out);
            self.quote.write(text, out);
        }
        self.quote.close(out);
        self.open_message = None;
    }

    /// Written once it has ended, so that input and output stand together.
    fn tool(&mut self, seen: Tool, out: &mut String) {
        let known = self.tools.iter().position(|tool| tool.id == seen.id);
        let tool = match known {
            Some(place) => self.tools.remove(place).merge(seen),
            None => seen,
        };
        if tool.is_open() {
            self.tools.push(tool);
        } else {
            self.write_tool(&tool, out);
        }
        if self.tools.len() > MAX_OPEN_TOOLS {
            let oldest = self.tools.remove(0);
            self.write_tool(&oldest, out);
        }
    }

    fn write_tool(&mut self, tool: &Tool, out: &mut String) {
        let (name, title) = (inline(&tool.name), inline(&tool.title));
        let what = if title.is_empty() || title == name {
            name
        } else {
            format!("{name}: {title}")
        };
        let line = format!("Tool {what} ({})", inline(&tool.status));
        self.remark(&line, out);
        for (label, value) in [("Input", &tool.input), ("Output", &tool.output)] {
            if let Some(value) = value.as_ref().filter(|value| !value.is_null()) {
                out.push_str(label);
                out.push_str(":\n\n");
                fenced(value, out);
            }
        }
    }

    fn write_open_tools(&mut self, out: &mut String) {
        for tool in std::mem::take(&mut self.tools) {
            self.write_tool(&tool, out);
        }
    }

    fn write_plan_and_thoughts(&mut self, out: &mut String) {
        let plan = std::mem::take(&mut self.plan);
        if !plan.is_empty() {
            self.remark("Plan", out);
            for step in &plan {
                let mark = if step.status == "completed" { 'x' } else { ' ' };
                let (title, status) = (inline(&step.title), inline(&step.status));
                writeln!(out, "- [{mark}] {title} ({status})").expect("a string takes it");
            }
            out.push('\n');
        }
        let thought = std::mem::take(&mut self.thought);
        if thought > 0 {
            self.remark(
                &format!("Thoughts ({thought} characters) are left out"),
                out,
            );
        }
    }

    fn run_ended(&mut self, outcome: &RunOutcome, out: &mut String) {
        self.open_message = None;
        self.quote.close(out);
        self.write_open_tools(out);
        self.write_plan_and_thoughts(out);
        match outcome {
            RunOutcome::Completed => {}
            RunOutcome::Cancelled => self.remark("Cancelled.", out),
            RunOutcome::Failed { code, message } => {
                self.remark(&format!("Failed ({code}): {}", inline(message)), out);
            }
        }
    }

    fn heading(&mut self, who: &str, at: Timestamp, out: &mut String) {
        self.quote.close(out);
        self.open_message = None;
        write!(out, "## {who} · {}\n\n", moment(at)).expect("a string takes it");
    }

    /// A line of the document itself.
    fn remark(&mut self, text: &str, out: &mut String) {
        self.quote.close(out);
        write!(out, "**{text}**\n\n").expect("a string takes it");
    }
}

fn moment(at: Timestamp) -> impl std::fmt::Display {
    at.strftime("%Y-%m-%d %H:%M:%S UTC")
}

#[cfg(test)]
mod tests;
