//! Sending to the agent: sends messages to the agent; starts it if needed, drops it if it takes none.

use super::super::running_agent::{AgentHandle, SendError};
use super::{AgentInfo, Router, Terminated};
use crate::domain::error_code::ErrorCode;
use crate::domain::question::Resolution;
use crate::domain::queue::QueueModes;
use crate::domain::run::FailureCause;
use crate::runtime::{StartAgentError, ToAgent};

impl Router {
    /// Sends a message to the agent, and starts the agent first if it does not run. One that has just
    /// ended is started again: it did not get this message.
    pub(super) async fn dispatch(&mut self, message: ToAgent) -> Result<(), DispatchError> {
        self.agent_info.touch();
        let begins_run = matches!(message, ToAgent::Prompt { .. } | ToAgent::Resume { .. });
        if let Some(agent) = &mut self.agent {
            match agent.send(message.clone()).await {
                Ok(()) => return Ok(()),
                Err(SendError::Timeout) => {
                    self.drop_unresponsive_agent();
                    return Err(DispatchError::Timeout);
                }
                // The end of the run under way is among the agent's last events, still to be read.
                Err(SendError::Gone) if self.recorder.is_some() && !begins_run => {
                    return Err(DispatchError::Gone);
                }
                Err(SendError::Gone) => self.agent = None,
            }
            self.queries.fail_all();
        }
        let start = self.start_parameters().await.map_err(|error| {
            let AgentInfo { name, owner, .. } = &self.agent_info;
            tracing::warn!(%error, session.id = %self.id, agent = name, user.id = %owner, "an agent was not started: storage failed");
            DispatchError::NoStorage
        })?;
        let started = AgentHandle::start(&self.agent_info.name, start, &self.parts);
        let mut agent = started.map_err(DispatchError::NotStarted)?;
        let first = self.initial_messages().into_iter().chain([message]);
        for message in first {
            agent.send(message).await.map_err(|_| DispatchError::Gone)?;
        }
        self.agent = Some(agent);
        Ok(())
    }

    /// Sends a message to the agent; fails if it does not run.
    pub(super) async fn dispatch_if_running(
        &mut self,
        message: ToAgent,
    ) -> Result<(), DispatchError> {
        let Some(agent) = &mut self.agent else {
            return Err(DispatchError::NotRunning);
        };
        match agent.send(message).await {
            Ok(()) => Ok(()),
            Err(SendError::Timeout) => {
                self.drop_unresponsive_agent();
                Err(DispatchError::Timeout)
            }
            // The router's loop handles its end.
            Err(SendError::Gone) => Err(DispatchError::NotRunning),
        }
    }

    /// Sends a message to the agent if it runs. The end of an agent is handled by the router's loop.
    pub(super) async fn send_to_agent(&mut self, message: ToAgent) {
        if let Some(agent) = &mut self.agent
            && agent.send(message).await == Err(SendError::Timeout)
        {
            self.drop_unresponsive_agent();
        }
    }

    pub(super) async fn send_resolution(&mut self, question: String, resolution: Resolution) {
        self.send_to_agent(ToAgent::Answer {
            question,
            resolution,
        })
        .await;
    }

    /// The settings, tools and queue modes that were chosen before this agent started.
    fn initial_messages(&self) -> Vec<ToAgent> {
        let settings = Some(self.state.settings.chosen.clone());
        let settings = settings.filter(|chosen| !chosen.is_empty());
        let tools = self.state.chosen_tools.clone().map(ToAgent::Tools);
        let modes = self.state.queue.modes;
        let modes = (modes != QueueModes::default()).then_some(ToAgent::QueueModes(modes));
        let settings = settings.map(ToAgent::Settings);
        settings.into_iter().chain(tools).chain(modes).collect()
    }

    fn drop_unresponsive_agent(&mut self) {
        self.agent = None;
        self.agent_unresponsive = true;
    }

    pub(super) async fn end_unresponsive_run(&mut self) -> Result<(), Terminated> {
        if !std::mem::take(&mut self.agent_unresponsive) {
            return Ok(());
        }
        self.queries.fail_all();
        let message = DispatchError::Timeout.message();
        self.fail_run(FailureCause::Crashed, &message).await
    }
}

/// Why the agent did not get a message.
pub(super) enum DispatchError {
    NotStarted(StartAgentError),
    NoStorage,
    NotRunning,
    Gone,
    Timeout,
}

impl DispatchError {
    pub(super) fn code(&self) -> ErrorCode {
        match self {
            Self::NotStarted(error) => error.code(),
            Self::NoStorage => ErrorCode::StorageUnavailable,
            Self::NotRunning => ErrorCode::Forbidden,
            Self::Gone | Self::Timeout => ErrorCode::ConnectionLost,
        }
    }

    pub(super) fn cause(&self) -> Option<FailureCause> {
        match self {
            Self::NotStarted(error) => error.cause(),
            Self::Gone | Self::Timeout => Some(FailureCause::Crashed),
            Self::NoStorage | Self::NotRunning => None,
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
            Self::Timeout => "The agent does not listen any more; ask again.".into(),
        }
    }
}

/// An error text as a sentence: a capital letter first, a full stop last.
pub(super) fn sentence(error: &str) -> String {
    let mut letters = error.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).chain(['.']).collect()
}
