//! Schedule: the steps of the current run, and replies beside it.
//!
//! Bookkeeping without tasks or channels; reads Tokio's clock.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::super::{FromAgent, ToAgent};
use super::dialogs::Preferences;
use super::query_answers;
use super::script::{self, Script, Step};
use crate::domain::error_code::ErrorCode;
use crate::domain::id::RunId;
use crate::domain::run::RunOutcome;

/// A run with more output is ended, as that of any other agent (`max_run_bytes`).
const MAX_RUN_BYTES: usize = 256 * 1024 * 1024;
/// At this limit no command is taken until a reply was sent.
const MAX_QUEUED_REPLIES: usize = 16;

#[derive(Default)]
pub(super) struct Schedule {
    current: Option<CurrentRun>,
    /// Events outside the run: refusals of other runs, answers to queries.
    replies: VecDeque<FromAgent>,
    preferences: Preferences,
}

struct CurrentRun {
    run: RunId,
    script: Script,
    /// Taken from the script and not done yet.
    step: Option<Step>,
    since: Instant,
    /// Bytes of what it has emitted.
    bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextAction {
    /// Send what [`Schedule::pop_event`] returns.
    Send,
    /// Wait until [`Schedule::wait_deadline`], then call [`Schedule::finish_wait`].
    Wait,
    Crash,
    Receive,
}

impl Schedule {
    /// If not, there is a reply to send.
    pub(super) fn can_take_commands(&self) -> bool {
        self.replies.len() < MAX_QUEUED_REPLIES
    }

    pub(super) fn handle_command(&mut self, command: ToAgent) {
        match (command, &mut self.current) {
            (ToAgent::Prompt { run, .. } | ToAgent::Resume { run, .. }, Some(_)) => {
                self.replies.push_back(refusal(run));
            }
            (ToAgent::Prompt { run, prompt }, None) => {
                self.current = CurrentRun::new(run, Script::new(run, &prompt, &self.preferences));
            }
            (
                ToAgent::Resume {
                    run,
                    prompt,
                    questions,
                },
                None,
            ) => {
                self.current = CurrentRun::new(run, Script::resumed(run, &prompt, &questions));
            }
            (ToAgent::Cancel { run }, Some(current)) if current.run == run => {
                self.current = CurrentRun::new(run, Script::cancelled(run));
            }
            (
                ToAgent::Answer {
                    question,
                    resolution,
                },
                Some(current),
            ) => {
                if let Some(Step::Await(asked)) = &current.step
                    && asked.name == question
                {
                    let run = current.run;
                    let steps = asked.steps_after(run, &resolution, &mut self.preferences);
                    self.current = CurrentRun::new(run, Script::from_steps(steps));
                }
            }
            (
                ToAgent::Request {
                    id,
                    request: inquiry,
                },
                _,
            ) => {
                let answer = query_answers::answer(&inquiry);
                self.replies
                    .push_back(FromAgent::Response { id, result: answer });
            }
            (ToAgent::Steer { run, text }, Some(current)) if current.run == run => {
                self.replies.push_back(script::steered(run, &text));
            }
            (ToAgent::Tools(tools), _) => self.preferences.tools = Some(tools),
            // A run that has ended or never existed; and what makes no difference to a demo.
            (
                ToAgent::Cancel { .. }
                | ToAgent::Answer { .. }
                | ToAgent::Settings(_)
                | ToAgent::Context(_)
                | ToAgent::Steer { .. }
                | ToAgent::FollowUp { .. }
                | ToAgent::QueueModes(_),
                _,
            ) => {}
        }
    }

    pub(super) fn next(&self) -> NextAction {
        if !self.replies.is_empty() {
            return NextAction::Send;
        }
        match self
            .current
            .as_ref()
            .and_then(|current| current.step.as_ref())
        {
            Some(Step::Emit(_)) => NextAction::Send,
            Some(Step::Wait(_)) => NextAction::Wait,
            Some(Step::Crash) => NextAction::Crash,
            Some(Step::Hang | Step::Await(_)) | None => NextAction::Receive,
        }
    }

    pub(super) fn pop_event(&mut self) -> Option<FromAgent> {
        if let Some(reply) = self.replies.pop_front() {
            return Some(reply);
        }
        match self.advance() {
            Some(Step::Emit(event)) => {
                self.count(event.bytes());
                Some(event)
            }
            _ => None,
        }
    }

    /// Ends a run that has emitted too much.
    fn count(&mut self, bytes: usize) {
        let Some(current) = &mut self.current else {
            return;
        };
        current.bytes += bytes;
        if current.bytes > MAX_RUN_BYTES {
            let run = current.run;
            let outcome = RunOutcome::Failed {
                code: ErrorCode::TaskFailed,
                message: "The demo agent has said more than one run may say (256 MiB).".into(),
            };
            let usage = None;
            let end = FromAgent::RunEnded {
                run,
                outcome,
                usage,
            };
            self.current = CurrentRun::new(
                run,
                Script::from_steps(Box::new(std::iter::once(Step::Emit(end)))),
            );
        }
    }

    /// Now, if there is nothing to wait for.
    pub(super) fn wait_deadline(&self) -> Instant {
        match &self.current {
            Some(current) => match current.step {
                Some(Step::Wait(duration)) => current.since + duration,
                _ => current.since,
            },
            None => Instant::now(),
        }
    }

    pub(super) fn finish_wait(&mut self) {
        self.advance();
    }

    /// Takes the current step; after the last one the run is over.
    fn advance(&mut self) -> Option<Step> {
        let current = self.current.as_mut()?;
        let done = current.step.take();
        current.step = current.script.next();
        match current.step {
            Some(Step::Wait(_)) => current.since = Instant::now(),
            Some(_) => {}
            None => self.current = None,
        }
        done
    }
}

impl CurrentRun {
    fn new(run: RunId, mut script: Script) -> Option<Self> {
        let step = Some(script.next()?);
        Some(Self {
            run,
            script,
            step,
            since: Instant::now(),
            bytes: 0,
        })
    }
}

fn refusal(run: RunId) -> FromAgent {
    FromAgent::RunEnded {
        run,
        outcome: RunOutcome::Failed {
            code: ErrorCode::Busy,
            message: "The demo agent does one thing at a time and is busy with another run.".into(),
        },
        usage: None,
    }
}
