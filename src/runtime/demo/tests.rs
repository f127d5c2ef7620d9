//! Tests of the demo agent over its link.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

mod lifecycle;
mod prompts;

use super::super::prompt_content::PromptContent;
use super::super::{Catalog, Config, FromAgent, Link, ToAgent};
use crate::domain::command::Mode;
use crate::domain::event::{Activity, Channel};
use crate::domain::id::RunId;
use crate::domain::run::RunOutcome;

/// Longer than any script. Time is paused: it costs nothing.
const LONG_WAIT: Duration = Duration::from_hours(1);

struct Session {
    link: Link,
    events: mpsc::Receiver<FromAgent>,
    stop: CancellationToken,
    tracker: TaskTracker,
}

impl Session {
    fn start(capacity: usize) -> Self {
        let (sender, events) = mpsc::channel(capacity);
        let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
        let catalog = Catalog::for_tests(&Config::default());
        let link = catalog
            .start(
                "demo",
                super::super::catalog::tests::start(),
                sender,
                &stop,
                &tracker,
            )
            .unwrap();
        tracker.close();
        Self {
            link,
            events,
            stop,
            tracker,
        }
    }

    async fn prompts(&self, text: &str) -> RunId {
        let run = RunId::new();
        self.link.send(prompt(run, text)).await.unwrap();
        run
    }

    async fn cancels(&self, run: RunId) {
        self.link.send(ToAgent::Cancel { run }).await.unwrap();
    }

    async fn receives(&mut self) -> FromAgent {
        let event = tokio::time::timeout(LONG_WAIT, self.events.recv()).await;
        event.expect("silence").expect("the agent is gone")
    }

    async fn receives_nothing_more(&mut self) {
        let event = tokio::time::timeout(LONG_WAIT, self.events.recv()).await;
        assert!(event.is_err(), "{event:?}");
    }

    /// All events until the end of a run; checks and skips the opening.
    async fn receives_run(&mut self, run: RunId) -> Vec<FromAgent> {
        assert_eq!(self.receives().await, FromAgent::RunAccepted { run });
        assert_eq!(
            self.receives().await,
            FromAgent::Activity(Activity::Thinking)
        );
        self.receives_rest(run).await
    }

    async fn receives_rest(&mut self, run: RunId) -> Vec<FromAgent> {
        let mut events = Vec::new();
        loop {
            let event = self.receives().await;
            let is_end = matches!(event, FromAgent::RunEnded { run: ended, .. } if ended == run);
            events.push(event);
            if is_end {
                return events;
            }
        }
    }

    async fn receives_refusal(&mut self) -> FromAgent {
        loop {
            let event = self.receives().await;
            if matches!(event, FromAgent::RunEnded { .. }) {
                return event;
            }
        }
    }
}

fn prompt(run: RunId, text: &str) -> ToAgent {
    let prompt = PromptContent::new(text, Mode::Act);
    ToAgent::Prompt { run, prompt }
}

fn ended(run: RunId, outcome: RunOutcome) -> FromAgent {
    FromAgent::RunEnded {
        run,
        outcome,
        usage: None,
    }
}

fn deltas(events: &[FromAgent], wanted: Channel) -> Vec<&str> {
    let piece = |event: &'_ FromAgent| matches!(event, FromAgent::MessageDelta { channel, .. } if *channel == wanted);
    let pieces = events.iter().filter(|event| piece(event));
    pieces
        .filter_map(|event| match event {
            FromAgent::MessageDelta { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}
