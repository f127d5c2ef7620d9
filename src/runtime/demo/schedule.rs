//! What the demo agent has to do next: the script of its run, and what is said besides.
//!
//! Bookkeeping without tasks or channels; reads Tokio's time.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::super::{FromAgent, ToAgent};
use super::facts;
use super::scene::Habits;
use super::script::{Script, Step};
use crate::domain::code::Code;
use crate::domain::id::RunId;
use crate::domain::run::RunOutcome;

/// So many answers wait to be told. With as many, nothing more is heard until one was.
const WAITING_ANSWERS: usize = 16;

/// What the agent has to do.
#[derive(Default)]
pub(super) struct Agenda {
    current: Option<Current>,
    /// What is said besides the run: refusals of others, answers to inquiries.
    aside: VecDeque<FromAgent>,
    habits: Habits,
}

/// The run under way.
struct Current {
    run: RunId,
    script: Script,
    /// Taken from the script and not done yet.
    step: Option<Step>,
    /// When `step` was taken.
    since: Instant,
}

/// The kind of thing to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Say what [`Agenda::take`] gives.
    Tell,
    /// Wait until [`Agenda::waits_until`], then [`Agenda::skip`].
    Wait,
    /// End without a word.
    Crash,
    /// Nothing, until something is heard.
    Listen,
}

impl Agenda {
    /// Whether it may hear more. If not, there is something to tell.
    pub(super) fn has_room(&self) -> bool {
        self.aside.len() < WAITING_ANSWERS
    }

    /// Takes a command in.
    pub(super) fn hear(&mut self, command: ToAgent) {
        match (command, &mut self.current) {
            (ToAgent::Prompt { run, .. } | ToAgent::Resume { run, .. }, Some(_)) => {
                self.aside.push_back(refusal(run));
            }
            (ToAgent::Prompt { run, prompt }, None) => {
                self.current = Current::new(run, Script::new(run, &prompt, &self.habits));
            }
            (
                ToAgent::Resume {
                    run,
                    prompt,
                    questions,
                },
                None,
            ) => {
                self.current = Current::new(run, Script::resumed(run, &prompt, &questions));
            }
            (ToAgent::Cancel { run }, Some(current)) if current.run == run => {
                self.current = Current::new(run, Script::cancelled(run));
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
                    let steps = asked.answered(run, &resolution, &mut self.habits);
                    self.current = Current::new(run, Script::going_on(steps));
                }
            }
            (ToAgent::Inquire { id, inquiry }, _) => {
                let answer = facts::answer(&inquiry);
                self.aside.push_back(FromAgent::Told { id, answer });
            }
            (ToAgent::Tools(tools), _) => self.habits.tools = Some(tools),
            // A run that has ended already or never was; and what makes no difference to a demo.
            (
                ToAgent::Cancel { .. }
                | ToAgent::Answer { .. }
                | ToAgent::Settings(_)
                | ToAgent::Context(_)
                | ToAgent::Steer { .. }
                | ToAgent::QueueModes(_),
                _,
            ) => {}
        }
    }

    /// What there is to do.
    pub(super) fn next(&self) -> Next {
        if !self.aside.is_empty() {
            return Next::Tell;
        }
        match self
            .current
            .as_ref()
            .and_then(|current| current.step.as_ref())
        {
            Some(Step::Tell(_)) => Next::Tell,
            Some(Step::Wait(_)) => Next::Wait,
            Some(Step::Crash) => Next::Crash,
            Some(Step::Hang | Step::Await(_)) | None => Next::Listen,
        }
    }

    /// What is to be told, and is told herewith.
    pub(super) fn take(&mut self) -> Option<FromAgent> {
        if let Some(said) = self.aside.pop_front() {
            return Some(said);
        }
        match self.advance() {
            Some(Step::Tell(told)) => Some(told),
            _ => None,
        }
    }

    /// Until when to wait: now, if there is nothing to wait for.
    pub(super) fn waits_until(&self) -> Instant {
        match &self.current {
            Some(current) => match current.step {
                Some(Step::Wait(duration)) => current.since + duration,
                _ => current.since,
            },
            None => Instant::now(),
        }
    }

    /// The wait is over.
    pub(super) fn skip(&mut self) {
        self.advance();
    }

    /// Takes the step at hand; after the last one the run is over.
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

impl Current {
    fn new(run: RunId, mut script: Script) -> Option<Self> {
        let step = Some(script.next()?);
        Some(Self {
            run,
            script,
            step,
            since: Instant::now(),
        })
    }
}

fn refusal(run: RunId) -> FromAgent {
    FromAgent::Ended {
        run,
        outcome: RunOutcome::Failed {
            code: Code::Busy,
            message: "The demo agent does one thing at a time and is busy with another run.".into(),
        },
        usage: None,
    }
}
