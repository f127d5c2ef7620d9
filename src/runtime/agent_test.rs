//! Trying an agent out: starts it as a session would, says what works, and ends it.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Catalog, FromAgent, Link, Room, Start, StartAgentError, ToAgent};
use crate::domain::command::{Inquiry, Mode, Prompt, Topic};
use crate::domain::event::Channel;
use crate::domain::id::{RunId, SessionId, UserId};
use crate::domain::question::Resolution;
use crate::domain::run::RunOutcome;

/// How long an agent may take to be ready, and to answer.
const PATIENCE: Duration = Duration::from_mins(3);
/// Whose workspace it is in.
const TESTER: &str = "agent-test";
/// What an agent may say ahead of us. Full: it waits.
const QUEUE: usize = 1_024;

/// How much of an answer is shown.
const ANSWER_BYTES: usize = 64 * 1024;

/// Something that can be asked of any agent.
pub(crate) const HARMLESS: &str = "Reply with the single word: hello. Do not use any tools.";

/// Where the words about a trial go, line by line.
pub(crate) type Tell<'a> = &'a mut (dyn FnMut(String) + Send);

/// Why an agent cannot even be tried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrialError {
    /// Nothing starts it.
    #[error(
        "`{0}` is not started here but connects to the gateway; start its program, and look at \
         /api/admin/agents"
    )]
    Listens(String),
    /// One at a time.
    #[error("another agent is being tried out; wait for it")]
    Busy,
    /// It is not there, or there is no room for it.
    #[error(transparent)]
    Start(#[from] StartAgentError),
}

/// The agent went away while it was spoken to.
struct Gone;

impl Catalog {
    /// Tries an agent out, and answers whether it works. All that it started is gone afterwards.
    pub(crate) async fn try_out(
        &self,
        name: &str,
        prompt: Option<String>,
        stop: &CancellationToken,
        tell: Tell<'_>,
    ) -> Result<bool, TrialError> {
        if self.listens(name) {
            return Err(TrialError::Listens(name.into()));
        }
        let _turn = self.begin_trial().ok_or(TrialError::Busy)?;
        tell(format!("starting `{name}` …"));
        let tracker = TaskTracker::new();
        let (back, heard) = mpsc::channel(QUEUE);
        let session = SessionId::new();
        let start = Start {
            session,
            user: UserId::new(),
            user_name: TESTER.into(),
            thread: None,
            history: Vec::new(),
        };
        let link = self.start(name, start, back, stop, &tracker)?;
        let mut trial = Trial { link, heard, tell };
        let works = trial.run(self, name, prompt).await.unwrap_or_else(|Gone| {
            (trial.tell)("FAILED: it went away.".into());
            false
        });
        // The agent goes in its own way, and everything that it started with it.
        drop(trial);
        tracker.close();
        tracker.wait().await;
        tidy(self.workshop().data(), &session);
        if works {
            tell(format!("`{name}` works."));
            return Ok(true);
        }
        let described = self.described().into_iter();
        let tried = described.filter(|agent| agent.name == name);
        for line in tried.flat_map(|agent| agent.last_words) {
            tell(format!("  it wrote: {line}"));
        }
        Ok(false)
    }
}

struct Trial<'a> {
    link: Link,
    heard: mpsc::Receiver<FromAgent>,
    tell: Tell<'a>,
}

impl Trial<'_> {
    async fn run(
        &mut self,
        catalog: &Catalog,
        name: &str,
        prompt: Option<String>,
    ) -> Result<bool, Gone> {
        let begun = Instant::now();
        if !self.is_ready(catalog, name, begun).await? {
            return Ok(false);
        }
        let after = begun.elapsed().as_millis();
        (self.tell)(format!("ready after {after} ms"));
        (self.tell)(format!("can: {}", catalog.capabilities(name).join(", ")));
        let lacks = catalog.lacks(name).join(", ");
        if !lacks.is_empty() {
            let others = "cannot, although others with its protocol can";
            (self.tell)(format!("{others}: {lacks}"));
        }
        match prompt {
            Some(prompt) => self.ask(prompt).await,
            None => Ok(true),
        }
    }

    /// Waits until it is ready; says why, if it never is.
    async fn is_ready(
        &mut self,
        catalog: &Catalog,
        name: &str,
        begun: Instant,
    ) -> Result<bool, Gone> {
        // Whatever it answers, it answers when it is ready.
        let inquiry = Inquiry::Query {
            topic: Topic::Commands,
            params: json!({}),
        };
        self.say(ToAgent::Inquire { id: 1, inquiry }).await?;
        let failed = loop {
            match self.next(begun).await {
                Ok(Some(FromAgent::Told {
                    id: 1,
                    answer: Err(declined),
                })) if !catalog.was_ready(name) => break declined.message,
                Ok(Some(FromAgent::Told { id: 1, .. })) => return Ok(true),
                Ok(Some(_)) => {}
                Ok(None) => break "it ended before it was ready.".into(),
                Err(_) => break format!("it was not ready within {} s.", PATIENCE.as_secs()),
            }
        };
        (self.tell)(format!("FAILED: {failed}"));
        Ok(false)
    }

    async fn ask(&mut self, prompt: String) -> Result<bool, Gone> {
        let (run, begun) = (RunId::new(), Instant::now());
        (self.tell)(format!("asking: {prompt}"));
        let prompt = Prompt::new(prompt, Mode::Act);
        self.say(ToAgent::Prompt { run, prompt }).await?;
        let mut answer = String::new();
        loop {
            match self.next(begun).await {
                Ok(Some(FromAgent::Delta {
                    channel: Channel::Text,
                    text,
                    ..
                })) => add(&mut answer, &text),
                Ok(Some(FromAgent::Final {
                    text: Some(text), ..
                })) if answer.is_empty() => add(&mut answer, &text),
                Ok(Some(FromAgent::Tool { tool, .. })) => {
                    (self.tell)(format!("tool: {} ({})", tool.title, tool.status));
                }
                Ok(Some(FromAgent::Asked {
                    question, asked, ..
                })) => {
                    (self.tell)(format!("it asks, and is denied: {}", asked.title));
                    let resolution = Resolution::Expired;
                    self.say(ToAgent::Answer {
                        question,
                        resolution,
                    })
                    .await?;
                }
                Ok(Some(FromAgent::Ended { outcome, .. })) => {
                    return Ok(self.has_ended(&outcome, &answer, begun));
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => {
                    let secs = PATIENCE.as_secs();
                    (self.tell)(format!("FAILED: there was no answer within {secs} s."));
                    return Ok(false);
                }
            }
        }
    }

    fn has_ended(&mut self, outcome: &RunOutcome, answer: &str, begun: Instant) -> bool {
        (self.tell)(format!("answer: {}", answer.trim()));
        let after = begun.elapsed().as_millis();
        if let RunOutcome::Failed { message, .. } = outcome {
            (self.tell)(format!("FAILED after {after} ms: {message}"));
            return false;
        }
        (self.tell)(format!("done after {after} ms"));
        true
    }

    async fn say(&mut self, said: ToAgent) -> Result<(), Gone> {
        self.link.send(said).await.map_err(|_| Gone)
    }

    /// What the agent says next; taken in herewith.
    async fn next(
        &mut self,
        begun: Instant,
    ) -> Result<Option<FromAgent>, tokio::time::error::Elapsed> {
        let said = timeout_at(begun + PATIENCE, self.heard.recv()).await?;
        if let (Some(room), Some(said)) = (self.link.room(), &said) {
            room.give_back(Room::taken_by(std::slice::from_ref(said)));
        }
        Ok(said)
    }
}

/// As much of an answer as is shown; an agent may say any amount.
fn add(answer: &mut String, text: &str) {
    let room = ANSWER_BYTES.saturating_sub(answer.len());
    answer.push_str(&text[..text.floor_char_boundary(room)]);
}

/// Takes the usual workspace away again, unless the agent has put something there.
fn tidy(data: &Path, session: &SessionId) {
    let own = data.join("workspaces").join(TESTER);
    for empty in [own.join(session.to_string()), own] {
        std::fs::remove_dir(empty).ok();
    }
}
