//! The runtimes: the catalog of agents, and the link to each running one.
//!
//! A session starts an agent from the [`Catalog`], keeps its [`Link`], and hears it through a channel
//! of its own. [`ToAgent`] and [`FromAgent`] are all that the two say to each other: no protocol of
//! any agent is visible above this room. `demo` is the agent that needs nothing installed.
//! Touches `domain` only.

use serde_json::Value;

mod catalog;
mod demo;
mod link;

pub use catalog::Config;
pub(crate) use catalog::{Catalog, StartAgentError};
pub(crate) use link::Link;

use crate::domain::command::Prompt;
use crate::domain::event::{Activity, Channel, Level, PlanStep};
use crate::domain::id::RunId;
use crate::domain::run::{Progress, RunOutcome, Usage};

/// What the session tells an agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToAgent {
    /// Begin a run. One at a time: an agent that is busy ends the new run as failed.
    Prompt {
        /// Its name from now on.
        run: RunId,
        /// What is asked.
        prompt: Prompt,
    },
    /// Stop a run. Ignored if it is not the one under way.
    Cancel {
        /// Which.
        run: RunId,
    },
}

/// What an agent tells the session. Which session that is follows from the channel, never from a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FromAgent {
    /// The prompt arrived and is worked on.
    Accepted {
        /// The run.
        run: RunId,
    },
    /// How far a run is.
    Progress {
        /// The run.
        run: RunId,
        /// How far.
        progress: Progress,
    },
    /// A piece of the answer.
    Delta {
        /// The run.
        run: RunId,
        /// Aloud or thought.
        channel: Channel,
        /// The piece.
        text: String,
    },
    /// The answer is complete.
    Final {
        /// The run.
        run: RunId,
        /// All of it, if it did not come in pieces.
        text: Option<String>,
    },
    /// A tool is used; the first sight of its id creates it, later ones change it.
    #[allow(dead_code, reason = "the demo agent has no tools")]
    Tool {
        /// The run.
        run: RunId,
        /// The agent's own id of this use.
        tool: String,
        /// What kind of tool.
        name: String,
        /// What a person reads.
        title: String,
        /// `pending`, `running`, `completed`, `failed`, `denied`, `skipped` or `cancelled`.
        status: String,
        /// What it was given.
        input: Option<Value>,
        /// What came out.
        output: Option<Value>,
    },
    /// Tokens were used, beyond what was told before.
    #[allow(dead_code, reason = "the demo agent tells it with the end of the run")]
    Usage(Usage),
    /// The plan, all of it.
    Plan(Vec<PlanStep>),
    /// What the agent does now.
    Activity(Activity),
    /// A title for the session.
    #[allow(dead_code, reason = "the demo agent names no session")]
    Title(String),
    /// Something that should be known.
    #[allow(dead_code, reason = "the demo agent says everything in its answer")]
    Notice {
        /// How loud.
        level: Level,
        /// What.
        text: String,
    },
    /// The run is over: at most once per run, and the last that is said about it. If the channel
    /// closes without it, the agent is gone and the session ends the run itself.
    Ended {
        /// The run.
        run: RunId,
        /// How.
        outcome: RunOutcome,
        /// What it used, beyond what was told before.
        usage: Option<Usage>,
    },
}
