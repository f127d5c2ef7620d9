//! How an agent is told something: started first if it does not run, given up if it does not listen.

use super::super::agent::{Agent, Unheard};
use super::{Over, Router};
use crate::domain::code::Code;
use crate::domain::command::SettingsChange;
use crate::domain::question::Resolution;
use crate::domain::queue::QueueModes;
use crate::runtime::{StartAgentError, ToAgent};

impl Router {
    /// Tells the agent something, and starts it first if it does not run. One that has just ended is
    /// started anew: it has not heard this.
    pub(super) async fn dispatch(&mut self, said: ToAgent) -> Result<(), NotDispatched> {
        self.counterpart.is_used();
        let begins = matches!(said, ToAgent::Prompt { .. } | ToAgent::Resume { .. });
        if let Some(agent) = &mut self.agent {
            match agent.tell(said.clone()).await {
                Ok(()) => return Ok(()),
                Err(Unheard::Deaf) => {
                    self.agent = None;
                    self.given_up = true;
                    return Err(NotDispatched::Deaf);
                }
                // A run under way has its end in what the agent said last, which is still to be heard.
                Err(Unheard::Gone) if self.scribe.is_some() && !begins => {
                    return Err(NotDispatched::Gone);
                }
                Err(Unheard::Gone) => self.agent = None,
            }
            self.inquiries.forget();
        }
        let start = self.introduction().await.map_err(|error| {
            tracing::warn!(%error, session.id = %self.id, "an agent was not started");
            NotDispatched::NoStorage
        })?;
        let started = Agent::start(&self.counterpart.name, start, &self.parts);
        let mut agent = started.map_err(NotDispatched::NotStarted)?;
        for known in self.circumstances() {
            agent.tell(known).await.map_err(|_| NotDispatched::Gone)?;
        }
        agent.tell(said).await.map_err(|_| NotDispatched::Gone)?;
        self.agent = Some(agent);
        Ok(())
    }

    /// Tells the agent something, and starts none for it.
    pub(super) async fn dispatch_if_running(&mut self, said: ToAgent) -> Result<(), NotDispatched> {
        let Some(agent) = &mut self.agent else {
            return Err(NotDispatched::NotRunning);
        };
        match agent.tell(said).await {
            Ok(()) => Ok(()),
            Err(Unheard::Deaf) => {
                self.agent = None;
                self.given_up = true;
                Err(NotDispatched::Deaf)
            }
            // Whoever listens to it notices its end, and what that leads to.
            Err(Unheard::Gone) => Err(NotDispatched::NotRunning),
        }
    }

    /// What an agent has to know before it begins, as far as somebody has chosen.
    fn circumstances(&self) -> Vec<ToAgent> {
        let settings = self.state.settings.chosen();
        let settings =
            (settings != SettingsChange::default()).then_some(ToAgent::Settings(settings));
        let tools = self.state.chosen_tools.clone().map(ToAgent::Tools);
        let modes = self.state.queue.modes;
        let modes = (modes != QueueModes::default()).then_some(ToAgent::QueueModes(modes));
        settings.into_iter().chain(tools).chain(modes).collect()
    }

    /// Tells the agent something, if it runs. One that is gone is noticed by its silence; one that is
    /// there and does not listen is given up.
    pub(super) async fn tell(&mut self, said: ToAgent) {
        if let Some(agent) = &mut self.agent
            && agent.tell(said).await == Err(Unheard::Deaf)
        {
            self.agent = None;
            self.given_up = true;
        }
    }

    /// Ends the run of an agent that was given up.
    pub(super) async fn give_up_deaf_agent(&mut self) -> Result<(), Over> {
        if !std::mem::take(&mut self.given_up) {
            return Ok(());
        }
        self.inquiries.forget();
        self.lose_run(NotDispatched::Deaf.message().as_str()).await
    }

    pub(super) async fn tell_resolution(&mut self, question: String, resolution: Resolution) {
        self.tell(ToAgent::Answer {
            question,
            resolution,
        })
        .await;
    }
}

/// Why the agent did not get what it was to be told.
pub(super) enum NotDispatched {
    NotStarted(StartAgentError),
    NoStorage,
    NotRunning,
    Gone,
    Deaf,
}

impl NotDispatched {
    pub(super) fn code(&self) -> Code {
        match self {
            Self::NotStarted(error) => error.code(),
            Self::NoStorage => Code::StorageUnavailable,
            Self::NotRunning => Code::Forbidden,
            Self::Gone | Self::Deaf => Code::ConnectionLost,
        }
    }

    pub(super) fn message(&self) -> String {
        match self {
            Self::NotStarted(error) => sentence(&error.to_string()),
            Self::NoStorage => "The database does not answer at the moment; try again.".into(),
            Self::NotRunning => "The agent does not run at the moment, and only somebody who may \
                                 change this session can start it."
                .into(),
            Self::Gone => "The agent is gone; ask again.".into(),
            Self::Deaf => "The agent does not listen any more; ask again.".into(),
        }
    }
}

/// As a person reads it.
pub(super) fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).chain(['.']).collect()
}
