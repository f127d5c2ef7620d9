//! The run under way: what was asked, and how far it is. Pure.

use serde_json::Value;

use super::ask::Ask;
use super::output::Output;
use super::speech::Speech;
use crate::domain::command::Mode;
use crate::domain::id::RunId;
use crate::domain::tool::Tool;
use crate::runtime::dialect::{Brief, Image, Out, unsupported};
use crate::runtime::talk::{Declined, FromAgent};

/// How far a prompt has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The task cannot hear it yet.
    Held,
    /// It was said.
    Sent,
    /// It is worked on.
    Accepted,
}

/// A run from its prompt to its end.
#[derive(Debug)]
pub(super) struct Work {
    /// Our name for it.
    pub(super) run: RunId,
    /// The prompt, with its files behind it.
    pub(super) text: String,
    /// Its images, as data URLs.
    pub(super) images: Vec<String>,
    /// Plan or act.
    pub(super) mode: Mode,
    /// How far the prompt has come.
    pub(super) stage: Stage,
    /// The prompt that a new task repeats as its first message.
    pub(super) echo: Option<String>,
    /// Is it to be stopped?
    pub(super) cancelled: bool,
    /// Is it to be stopped because nobody answered it?
    pub(super) unanswered: bool,
    /// What is said.
    pub(super) speech: Speech,
    /// What was asked last, until it has its answer.
    pub(super) ask: Option<Ask>,
    /// The time of what was asked last.
    pub(super) asked_at: u64,
    /// Was it said that approvals cannot be given here?
    pub(super) warned: bool,
    tool: Option<Tool>,
    output: Output,
}

impl Work {
    /// One that begins now; messages until `latest` belong to runs before it.
    pub(super) fn new(
        run: RunId,
        brief: &Brief,
        latest: u64,
        agent: &str,
    ) -> Result<Self, Declined> {
        let (text, others) = brief.text_with_files();
        if !others.is_empty() {
            let what = format!("take files that are not text ({})", others.join(", "));
            return Err(unsupported(agent, &what));
        }
        Ok(Self {
            run,
            text,
            images: brief.images.iter().map(data_url).collect(),
            mode: brief.mode,
            stage: Stage::Held,
            echo: None,
            cancelled: false,
            unanswered: false,
            speech: Speech::since(run, latest),
            ask: None,
            asked_at: latest,
            warned: false,
            tool: None,
            output: Output::default(),
        })
    }

    /// Has the prompt been said to the task?
    pub(super) fn is_sent(&self) -> bool {
        self.stage != Stage::Held
    }

    /// Is it to end, for whatever reason?
    pub(super) fn is_stopping(&self) -> bool {
        self.cancelled || self.unanswered
    }

    /// It is worked on; true if that is news.
    pub(super) fn accept(&mut self) -> bool {
        let news = self.stage == Stage::Sent;
        if news {
            self.stage = Stage::Accepted;
        }
        news
    }

    /// What was asked under this name, if it waits for an answer; it does not any more.
    pub(super) fn take_question(&mut self, name: &str) -> Option<Ask> {
        self.ask.take_if(|ask| ask.told && ask.name() == name)
    }

    /// Whatever was asked is settled: the task goes on without an answer from here.
    pub(super) fn settle(&mut self, out: &mut Out) {
        if let Some(ask) = self.ask.take().filter(|ask| ask.told) {
            let question = ask.name();
            out.tell(FromAgent::Settled { question });
        }
    }

    /// A tool is used. One at a time: the one before is done.
    pub(super) fn use_tool(&mut self, tool: Tool, out: &mut Out) {
        self.tool_is("completed", out);
        self.output = Output::default();
        let run = self.run;
        out.tell(FromAgent::Tool {
            run,
            tool: tool.clone(),
        });
        self.tool = Some(tool);
    }

    /// The tool that is used has another status now, unless it has had its end.
    pub(super) fn tool_is(&mut self, status: &str, out: &mut Out) {
        let open = self.tool.as_ref().filter(|tool| tool.is_open());
        if open.is_some_and(|tool| tool.status != status) {
            let output = self.output.rest();
            self.tell_tool(status, output, out);
        }
    }

    /// This is all that came out of the tool that is used.
    pub(super) fn tool_said(&mut self, status: &str, whole: &str, out: &mut Out) {
        self.output.replace(whole);
        let output = self.output.rest();
        self.tell_tool(status, output, out);
    }

    /// This has come out of the tool that is used, and there is more to come.
    pub(super) fn tool_grows(&mut self, whole: &str, out: &mut Out) {
        self.output.replace(whole);
        let output = self.output.news();
        self.tell_tool("running", output, out);
    }

    /// A piece more came out of the tool that is used.
    pub(super) fn tool_adds(&mut self, status: &str, piece: &str, out: &mut Out) {
        self.output.add(piece);
        let output = match status {
            "running" => self.output.news(),
            _ => self.output.rest(),
        };
        self.tell_tool(status, output, out);
    }

    fn tell_tool(&mut self, status: &str, output: Option<Value>, out: &mut Out) {
        let Some(tool) = &mut self.tool else { return };
        if tool.status == status && output.is_none() {
            return;
        }
        status.clone_into(&mut tool.status);
        let tool = Tool {
            output,
            ..tool.brief()
        };
        let run = self.run;
        out.tell(FromAgent::Tool { run, tool });
    }
}

fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.media_type, image.base64)
}
