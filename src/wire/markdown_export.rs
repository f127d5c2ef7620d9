//! A journal as a conversation that people read: Markdown, event by event. Pure.
//!
//! Whatever was said is quoted, and what tools took and gave stands between fences longer than any
//! in it: nothing in a text can end its block, or look like a part of this document. The last plan
//! of a run stands at its end, and how much was thought; settings and usage are left out. Touches `domain` only.

use std::fmt::Write as _;

use jiff::Timestamp;

use crate::domain::command::{Attachment, Prompt};
use crate::domain::event::{Author, Channel, Event, PlanStep, Recorded, Resolver};
use crate::domain::id::{MessageId, SessionId};
use crate::domain::run::RunOutcome;
use crate::domain::tool::Tool;

mod block;
use block::{Quote, fenced, inline};

/// Tools that are waited for; with more, the oldest is written down as it stands.
const OPEN_TOOLS: usize = 100;

/// A document under way. It remembers what is open, not what was written.
pub(crate) struct Markdown {
    agent: String,
    begun: bool,
    quote: Quote,
    /// Whose words stand last, if more of them may follow.
    speaking: Option<MessageId>,
    /// Uses of tools that have not ended.
    tools: Vec<Tool>,
    /// The plan of the run under way, as it was last told.
    plan: Vec<PlanStep>,
    /// Characters that were thought in it.
    thought: usize,
}

impl Markdown {
    /// A document, and how it begins.
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
            speaking: None,
            tools: Vec::new(),
            plan: Vec::new(),
            thought: 0,
        };
        (document, beginning)
    }

    /// Writes an event behind those before it.
    pub(crate) fn write(&mut self, recorded: &Recorded, out: &mut String) {
        if !self.begun && recorded.first() > 1 {
            out.push_str("*What was before is not kept any more.*\n\n");
        }
        self.begun = true;
        let at = recorded.at;
        match &recorded.event {
            Event::RunStarted { prompt, .. } => self.prompt(prompt, at, out),
            Event::MessageDelta {
                message,
                channel: Channel::Text,
                text,
                ..
            } => self.piece(*message, text, at, out),
            Event::MessageDelta { text, .. } => self.thought += text.chars().count(),
            Event::PlanUpdated { steps } => self.plan.clone_from(steps),
            Event::MessageFinal {
                message,
                author,
                text,
                rest,
                ..
            } => {
                // What came in pieces stands there already.
                let missing = match text {
                    Some(text) if self.speaking != Some(*message) => text,
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

    /// How it ends.
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
        if self.speaking != Some(message) {
            self.heading(&self.agent.clone(), at, out);
            self.speaking = Some(message);
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
        self.speaking = None;
    }

    /// Written down once it has ended: then what it took and what it gave stand together.
    fn tool(&mut self, seen: Tool, out: &mut String) {
        let known = self.tools.iter().position(|tool| tool.id == seen.id);
        let tool = match known {
            Some(place) => self.tools.remove(place).seen_again(seen),
            None => seen,
        };
        if tool.is_open() {
            self.tools.push(tool);
        } else {
            self.write_tool(&tool, out);
        }
        if self.tools.len() > OPEN_TOOLS {
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
        self.speaking = None;
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
        self.speaking = None;
        write!(out, "## {who} · {}\n\n", moment(at)).expect("a string takes it");
    }

    /// A line of this document's own.
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
