//! The demo agent from the session's side: a session to talk to it.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

mod life;
mod prompts;

use super::super::{Catalog, Config, FromAgent, Link, ToAgent};
use crate::domain::command::{Mode, Prompt};
use crate::domain::event::{Activity, Channel};
use crate::domain::id::RunId;
use crate::domain::run::RunOutcome;

/// Longer than any script, shorter than for ever. Time is paused: nobody waits for it.
const PATIENCE: Duration = Duration::from_hours(1);

/// A session that talks to the demo agent.
struct Session {
    link: Link,
    heard: mpsc::Receiver<FromAgent>,
    stop: CancellationToken,
    tracker: TaskTracker,
}

impl Session {
    fn start(capacity: usize) -> Self {
        let (back, heard) = mpsc::channel(capacity);
        let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
        let catalog = Catalog::for_tests(&Config::default());
        let link = catalog
            .start(
                "demo",
                super::super::catalog::tests::start(),
                back,
                &stop,
                &tracker,
            )
            .unwrap();
        tracker.close();
        Self {
            link,
            heard,
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

    async fn hears(&mut self) -> FromAgent {
        let told = tokio::time::timeout(PATIENCE, self.heard.recv()).await;
        told.expect("silence").expect("the agent is gone")
    }

    async fn hears_nothing_more(&mut self) {
        let told = tokio::time::timeout(PATIENCE, self.heard.recv()).await;
        assert!(told.is_err(), "{told:?}");
    }

    /// All that is said until a run ends, in order; the opening is checked and left out.
    async fn hears_run(&mut self, run: RunId) -> Vec<FromAgent> {
        assert_eq!(self.hears().await, FromAgent::Accepted { run });
        assert_eq!(self.hears().await, FromAgent::Activity(Activity::Thinking));
        self.hears_rest(run).await
    }

    async fn hears_rest(&mut self, run: RunId) -> Vec<FromAgent> {
        let mut heard = Vec::new();
        loop {
            let told = self.hears().await;
            let is_end = matches!(told, FromAgent::Ended { run: ended, .. } if ended == run);
            heard.push(told);
            if is_end {
                return heard;
            }
        }
    }

    async fn hears_refusal(&mut self) -> FromAgent {
        loop {
            let told = self.hears().await;
            if matches!(told, FromAgent::Ended { .. }) {
                return told;
            }
        }
    }
}

fn prompt(run: RunId, text: &str) -> ToAgent {
    let prompt = Prompt::new(text, Mode::Act);
    ToAgent::Prompt { run, prompt }
}

fn ended(run: RunId, outcome: RunOutcome) -> FromAgent {
    FromAgent::Ended {
        run,
        outcome,
        usage: None,
    }
}

fn spoken(heard: &[FromAgent], wanted: Channel) -> Vec<&str> {
    let piece = |told: &'_ FromAgent| matches!(told, FromAgent::Delta { channel, .. } if *channel == wanted);
    let pieces = heard.iter().filter(|told| piece(told));
    pieces
        .filter_map(|told| match told {
            FromAgent::Delta { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}
