//! Run: one prompt and its progress. Pure.

use serde_json::Value;

use super::ask::Ask;
use super::message_buffer::MessageBuffers;
use super::tool_output::ToolOutput;
use crate::domain::command::Mode;
use crate::domain::id::RunId;
use crate::domain::run::{RunOutcome, Usage};
use crate::domain::tool::Tool;
use crate::runtime::dialect::{Actions, Image, PromptContent, unsupported};
use crate::runtime::messages::{Declined, FromAgent};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptState {
    /// The task cannot take it yet.
    Held,
    Sent,
    Accepted,
}

#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: RunId,
    /// With the text files behind the prompt.
    pub(super) text: String,
    /// As data URLs.
    pub(super) images: Vec<String>,
    pub(super) mode: Mode,
    pub(super) prompt_state: PromptState,
    /// The prompt that a new task repeats as its first message.
    pub(super) echo: Option<String>,
    pub(super) cancelled: bool,
    /// Stopped because its question was not answered in time.
    pub(super) unanswered: bool,
    pub(super) messages: MessageBuffers,
    pub(super) ask: Option<Ask>,
    pub(super) last_ask_ts: u64,
    /// Has the user been told that approvals are given elsewhere?
    pub(super) has_warned: bool,
    tool: Option<Tool>,
    output: ToolOutput,
}

impl Run {
    /// `latest_ts`: messages up to this time belong to earlier runs.
    pub(super) fn new(
        run: RunId,
        content: &PromptContent,
        latest_ts: u64,
        agent: &str,
    ) -> Result<Self, Declined> {
        let (text, others) = content.text_with_files();
        if !others.is_empty() {
            let what = format!("take files that are not text ({})", others.join(", "));
            return Err(unsupported(agent, &what));
        }
        Ok(Self {
            id: run,
            text,
            images: content.images.iter().map(data_url).collect(),
            mode: content.mode,
            prompt_state: PromptState::Held,
            echo: None,
            cancelled: false,
            unanswered: false,
            messages: MessageBuffers::starting_after(run, latest_ts),
            ask: None,
            last_ask_ts: latest_ts,
            has_warned: false,
            tool: None,
            output: ToolOutput::default(),
        })
    }

    pub(super) fn is_sent(&self) -> bool {
        self.prompt_state != PromptState::Held
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.cancelled || self.unanswered
    }

    /// Returns whether this is the first sign of work.
    pub(super) fn accept(&mut self) -> bool {
        let is_first = self.prompt_state == PromptState::Sent;
        if is_first {
            self.prompt_state = PromptState::Accepted;
        }
        is_first
    }

    pub(super) fn take_question(&mut self, name: &str) -> Option<Ask> {
        self.ask
            .take_if(|ask| ask.is_reported && ask.name() == name)
    }

    /// The name of the question that waits for its answer.
    pub(super) fn open_question(&self) -> Option<String> {
        let open = self.ask.as_ref().filter(|ask| ask.is_reported);
        open.map(Ask::name)
    }

    /// The task continues without an answer from here.
    pub(super) fn settle_ask(&mut self, out: &mut Actions) {
        if let Some(ask) = self.ask.take().filter(|ask| ask.is_reported) {
            let question = ask.name();
            out.emit(FromAgent::QuestionWithdrawn { question });
        }
    }

    /// Roo runs one tool at a time: the previous one is done.
    pub(super) fn start_tool(&mut self, tool: Tool, out: &mut Actions) {
        self.set_tool_status("completed", out);
        self.output = ToolOutput::default();
        let run = self.id;
        out.emit(FromAgent::ToolUpdate {
            run,
            tool: tool.clone(),
        });
        self.tool = Some(tool);
    }

    /// No effect on a tool that has ended.
    pub(super) fn set_tool_status(&mut self, status: &str, out: &mut Actions) {
        let open = self.tool.as_ref().filter(|tool| tool.is_open());
        if open.is_some_and(|tool| tool.status != status) {
            let output = self.output.take_unreported();
            self.report_tool(status, output, out);
        }
    }

    /// The complete output of the current tool.
    pub(super) fn set_tool_output(&mut self, status: &str, whole: &str, out: &mut Actions) {
        self.output.replace(whole);
        let output = self.output.take_unreported();
        self.report_tool(status, output, out);
    }

    /// The current tool failed; Roo says so of a denied one, too.
    pub(super) fn fail_tool(&mut self, error: &str, out: &mut Actions) {
        let is_denied = self
            .tool
            .as_ref()
            .is_some_and(|tool| tool.status == "denied");
        let status = if is_denied { "denied" } else { "failed" };
        self.set_tool_output(status, error, out);
    }

    /// The output of the current tool so far.
    pub(super) fn grow_tool_output(&mut self, whole: &str, out: &mut Actions) {
        self.output.replace(whole);
        let output = self.output.take_progress();
        self.report_tool("running", output, out);
    }

    /// A piece of output of the current tool.
    pub(super) fn append_tool_output(&mut self, status: &str, piece: &str, out: &mut Actions) {
        self.output.add(piece);
        let output = match status {
            "running" => self.output.take_progress(),
            _ => self.output.take_unreported(),
        };
        self.report_tool(status, output, out);
    }

    /// Completes what is open and reports the outcome.
    pub(super) fn end(mut self, outcome: RunOutcome, usage: Option<Usage>, out: &mut Actions) {
        self.messages.finish(out);
        let tool_status = match &outcome {
            RunOutcome::Completed => "completed",
            RunOutcome::Cancelled => "cancelled",
            RunOutcome::Failed { .. } => "failed",
        };
        self.set_tool_status(tool_status, out);
        out.end_run(self.id, outcome, usage);
    }

    fn report_tool(&mut self, status: &str, output: Option<Value>, out: &mut Actions) {
        let Some(tool) = &mut self.tool else { return };
        if tool.status == status && output.is_none() {
            return;
        }
        status.clone_into(&mut tool.status);
        let tool = Tool {
            output,
            ..tool.without_payload()
        };
        let run = self.id;
        out.emit(FromAgent::ToolUpdate { run, tool });
    }
}

fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.media_type, image.base64)
}
