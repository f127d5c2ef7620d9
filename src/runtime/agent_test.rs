//! Agent test: starts an agent as a session would, asks it one thing, reports, and ends it.

use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agent_home;
use super::preflight::{self, Preflight};
use super::prompt_content::PromptContent;
use super::workspace;
use super::{Catalog, FromAgent, Link, Start, StartAgentError, ToAgent};
use crate::domain::command::{AgentRequest, Mode, Topic};
use crate::domain::event::Channel;
use crate::domain::id::{RunId, SessionId, UserId};
use crate::domain::question::Resolution;
use crate::domain::run::RunOutcome;

/// For the handshake, and for the answer.
const STEP_TIMEOUT: Duration = Duration::from_mins(3);
/// The user name in the workspace's path.
pub(super) const TESTER: &str = "agent-test";
/// Events that wait for the test. Full: the agent waits.
const MAX_QUEUED_EVENTS: usize = 1_024;

const MAX_ANSWER_BYTES: usize = 64 * 1024;

pub(crate) const HARMLESS: &str = "Reply with the single word: hello. Do not use any tools.";
/// A harmless tool call, to see whether the agent asks before it acts.
const TOOL_PROMPT: &str = "Run the shell command `touch switchboard-agent-test` with your tool for \
    that, then reply with the single word: done.";
/// The file that the command makes, if it runs.
const TOUCHED: &str = "switchboard-agent-test";
/// The same for the demo agent.
const DEMO_TOOL: &str = "/tool";

/// Receives the report, line by line.
pub(crate) type Report<'a> = &'a mut (dyn FnMut(String) + Send);

#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentTestError {
    /// Its program connects by itself.
    #[error(
        "`{0}` is not started here but connects to the gateway; start its program, and look at \
         /api/admin/agents"
    )]
    Listens(String),
    /// Another test is running.
    #[error("another agent is being tried out; wait for it")]
    Busy,
    #[error(transparent)]
    Start(#[from] StartAgentError),
}

struct AgentLost;

impl Catalog {
    /// Tests an agent and returns whether it works. Afterwards everything that it started has ended.
    pub(crate) async fn try_out(
        &self,
        name: &str,
        prompt: Option<String>,
        stop: &CancellationToken,
        report: Report<'_>,
    ) -> Result<bool, AgentTestError> {
        if self.listens(name) {
            return Err(AgentTestError::Listens(name.into()));
        }
        let _lock = self.lock_test().ok_or(AgentTestError::Busy)?;
        if !self.passes_preflight(name, report).await {
            return Ok(false);
        }
        report(format!("starting `{name}` …"));
        let tracker = TaskTracker::new();
        let (sender, events) = mpsc::channel(MAX_QUEUED_EVENTS);
        let session = SessionId::new();
        let start = Start {
            session,
            user: UserId::new(),
            user_name: TESTER.into(),
            thread: None,
            origin: None,
            history: Vec::new(),
        };
        let link = self.start(name, start, sender, stop, &tracker)?;
        let mut test = AgentTest {
            link,
            events,
            report,
        };
        let works = test
            .run(self, name, prompt)
            .await
            .unwrap_or_else(|AgentLost| {
                (test.report)("FAILED: it went away.".into());
                false
            });
        // Ends the agent and everything that it started.
        drop(test);
        tracker.close();
        tracker.wait().await;
        self.remove_traces(name, &session);
        if works {
            report(format!("`{name}` works."));
            return Ok(true);
        }
        let described = self.described().into_iter();
        let tested = described.filter(|agent| agent.name == name);
        for line in tested.flat_map(|agent| agent.stderr_tail) {
            report(format!("  it wrote: {line}"));
        }
        Ok(false)
    }
}

impl Catalog {
    /// Reports what can be known without starting the agent; false if it cannot work.
    async fn passes_preflight(&self, name: &str, report: Report<'_>) -> bool {
        let Some(config) = self.config(name).filter(|config| !config.is_demo()) else {
            return true;
        };
        let (name, config) = (name.to_owned(), config.clone());
        let data = self.launcher().data().to_owned();
        let examining =
            tokio::task::spawn_blocking(move || preflight::examine(&name, &config, &data));
        let mut passes = true;
        for verdict in examining.await.unwrap_or_default() {
            match verdict {
                Preflight::Ready(about) => report(format!("found: {about}")),
                Preflight::Doubt { found, fix } => report(format!("warning: {found}: {fix}")),
                Preflight::Problem { found, fix } => {
                    passes = false;
                    report(format!("FAILED: {found}: {fix}"));
                }
            }
        }
        passes
    }

    /// Removes what the tool call may have made, and the default workspace if it is empty.
    pub(super) fn remove_traces(&self, name: &str, session: &SessionId) {
        let data = self.launcher().data();
        let fill = |text: &str| {
            text.replace("{user}", TESTER)
                .replace("{session}", &session.to_string())
        };
        let pattern = self.config(name).map(|config| config.workspace.as_str());
        if let Some(Ok(made)) = pattern.map(|pattern| workspace::make(data, pattern, fill, None)) {
            rustix::fs::unlinkat(&made.directory, TOUCHED, rustix::fs::AtFlags::empty()).ok();
        }
        let own = data.join("workspaces").join(TESTER);
        let home = data.join(agent_home::HOMES_DIR).join(TESTER);
        std::fs::remove_dir_all(home).ok();
        for empty in [own.join(session.to_string()), own] {
            std::fs::remove_dir(empty).ok();
        }
    }
}

struct AgentTest<'a> {
    link: Link,
    events: mpsc::Receiver<FromAgent>,
    report: Report<'a>,
}

/// What an agent did with a prompt.
#[derive(Default)]
struct Observed {
    works: bool,
    /// It asked for a permission, or something else.
    asked: bool,
    /// It used a tool to the end.
    used_tool: bool,
}

impl AgentTest<'_> {
    async fn run(
        &mut self,
        catalog: &Catalog,
        name: &str,
        prompt: Option<String>,
    ) -> Result<bool, AgentLost> {
        let started = Instant::now();
        if !self.is_ready(catalog, name, started).await? {
            return Ok(false);
        }
        let after = started.elapsed().as_millis();
        (self.report)(format!("ready after {after} ms"));
        (self.report)(format!("can: {}", catalog.capabilities(name).join(", ")));
        let lacks = catalog.lacks(name).join(", ");
        if !lacks.is_empty() {
            let others = "cannot, although others with its protocol can";
            (self.report)(format!("{others}: {lacks}"));
        }
        let Some(prompt) = prompt else {
            return Ok(true);
        };
        let is_harmless = prompt == HARMLESS;
        let observed = self.ask(prompt).await?;
        if observed.works && is_harmless {
            self.check_asking(catalog.is_built_in(name)).await?;
        }
        Ok(observed.works)
    }

    /// Reports whether the agent asks before it uses a tool.
    async fn check_asking(&mut self, is_demo: bool) -> Result<(), AgentLost> {
        let prompt = if is_demo { DEMO_TOOL } else { TOOL_PROMPT };
        let observed = self.ask(prompt.to_owned()).await?;
        (self.report)(match observed {
            Observed { asked: true, .. } => "it asks before it uses a tool".to_owned(),
            Observed {
                used_tool: true, ..
            } => "WARNING: it used a tool without asking. Its own settings, or its protocol, allow it; \
                  see the page of its protocol in docs/agents."
                .to_owned(),
            _ => "it used no tool, so it is not known whether it asks".to_owned(),
        });
        Ok(())
    }

    /// Waits for the handshake; reports why it failed.
    async fn is_ready(
        &mut self,
        catalog: &Catalog,
        name: &str,
        started: Instant,
    ) -> Result<bool, AgentLost> {
        // Any response means that the handshake is done.
        let request = AgentRequest::Query {
            topic: Topic::Commands,
            params: json!({}),
        };
        self.send(ToAgent::Request { id: 1, request }).await?;
        let failed = loop {
            match self.next(started).await {
                Ok(Some(FromAgent::Response {
                    id: 1,
                    result: Err(declined),
                })) if !catalog.was_ready(name) => break declined.message,
                Ok(Some(FromAgent::Response { id: 1, .. })) => return Ok(true),
                Ok(Some(_)) => {}
                Ok(None) => break "it ended before it was ready.".into(),
                Err(_) => break format!("it was not ready within {} s.", STEP_TIMEOUT.as_secs()),
            }
        };
        (self.report)(format!("FAILED: {failed}"));
        Ok(false)
    }

    async fn ask(&mut self, prompt: String) -> Result<Observed, AgentLost> {
        let mut observed = Observed::default();
        let (run, started) = (RunId::new(), Instant::now());
        (self.report)(format!("asking: {prompt}"));
        let prompt = PromptContent::new(&prompt, Mode::Act);
        self.send(ToAgent::Prompt { run, prompt }).await?;
        let mut answer = String::new();
        loop {
            let next = self.next(started).await;
            match next.map(|event| event.map(|event| event.split_meta().0)) {
                Ok(Some(FromAgent::MessageDelta {
                    channel: Channel::Text,
                    text,
                    ..
                })) => append(&mut answer, &text),
                Ok(Some(
                    FromAgent::MessageFinal {
                        text: Some(text), ..
                    }
                    | FromAgent::MessageWhole { text, .. },
                )) if answer.is_empty() => append(&mut answer, &text),
                Ok(Some(FromAgent::ToolUpdate { tool, .. })) => {
                    observed.used_tool |= tool.status == "completed";
                    (self.report)(format!("tool: {} ({})", tool.title, tool.status));
                }
                Ok(Some(FromAgent::QuestionAsked {
                    question,
                    content: asked,
                    ..
                })) => {
                    observed.asked = true;
                    (self.report)(format!("it asks, and is denied: {}", asked.title));
                    let resolution = Resolution::Expired;
                    self.send(ToAgent::Answer {
                        question,
                        resolution,
                    })
                    .await?;
                }
                Ok(Some(FromAgent::SessionQuestion(asked))) => {
                    observed.asked = true;
                    (self.report)(format!("it asks, and is denied: {}", asked.content.title));
                    let (question, resolution) = (asked.question, Resolution::Expired);
                    self.send(ToAgent::Answer {
                        question,
                        resolution,
                    })
                    .await?;
                }
                Ok(Some(FromAgent::RunEnded { outcome, .. })) => {
                    observed.works = self.report_end(&outcome, &answer, started);
                    return Ok(observed);
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => {
                    let secs = STEP_TIMEOUT.as_secs();
                    (self.report)(format!("FAILED: there was no answer within {secs} s."));
                    return Ok(observed);
                }
            }
        }
    }

    fn report_end(&mut self, outcome: &RunOutcome, answer: &str, started: Instant) -> bool {
        (self.report)(format!("answer: {}", answer.trim()));
        let after = started.elapsed().as_millis();
        if let RunOutcome::Failed { message, .. } = outcome {
            (self.report)(format!("FAILED after {after} ms: {message}"));
            return false;
        }
        (self.report)(format!("done after {after} ms"));
        true
    }

    async fn send(&mut self, command: ToAgent) -> Result<(), AgentLost> {
        self.link.send(command).await.map_err(|_| AgentLost)
    }

    /// The next event; its budget is given back.
    async fn next(
        &mut self,
        started: Instant,
    ) -> Result<Option<FromAgent>, tokio::time::error::Elapsed> {
        let event = timeout_at(started + STEP_TIMEOUT, self.events.recv()).await?;
        if let (Some(budget), Some(event)) = (self.link.event_budget(), &event) {
            budget.give_back(budget.taken_by([event.bytes()]));
        }
        Ok(event)
    }
}

fn append(answer: &mut String, text: &str) {
    let left = MAX_ANSWER_BYTES.saturating_sub(answer.len());
    answer.push_str(&text[..text.floor_char_boundary(left)]);
}
