//! Turns what an agent says during one run into events: names utterances and questions, numbers
//! pieces, closes what the run leaves open.
//!
//! No I/O and no clock. What an agent says about another run is dropped: nothing of a run appears after its end.

use std::time::Duration;

use jiff::Timestamp;

use super::state::{CurrentRun, SessionState};
use crate::domain::event::{Author, Channel, Event, Resolver};
use crate::domain::id::{MessageId, QuestionId, RunId};
use crate::domain::question::{
    Answer, Choice, ChoiceKind, OpenQuestion, Question, QuestionKind, Resolution, Said, Severity,
};
use crate::domain::run::{RunOutcome, Usage};
use crate::domain::tool::Tool;
use crate::runtime::FromAgent;

/// A streamed answer up to this size is recorded as a whole at its end, so that its pieces need not
/// be kept for ever.
const WHOLE_BYTES: usize = 256 * 1024;

/// More questions of one run than this are denied at once.
const OPEN_QUESTIONS: usize = 32;
/// More open tools of one run than this are not kept in mind.
const OPEN_TOOLS: usize = 100;
/// How much of what an agent says a question is made of.
const QUESTION_BYTES: usize = 32 * 1024;
const QUESTION_OPTIONS: usize = 200;
const TITLE_CHARS: usize = 200;

/// What the rules of a session make of a question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Now.
    pub(super) at: Timestamp,
    /// How long a question waits, unless its agent says less.
    pub(super) patience: Option<Duration>,
    /// Are harmless permissions granted without asking?
    pub(super) auto_approve: bool,
}

/// What came of what an agent said.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// What is to be recorded.
    pub(super) events: Vec<Event>,
    /// What the agent hears once that is done: its own name for a question, and how that ended.
    pub(super) answers: Vec<(String, Resolution)>,
    /// What the session decided by itself.
    pub(super) decided: Vec<(OpenQuestion, Answer)>,
}

/// One run, as it is written down.
#[derive(Debug)]
pub(super) struct Scribe {
    run: RunId,
    /// Runs that waited and end with this one.
    merged: Vec<RunId>,
    /// Questions that nobody has answered yet.
    questions: Vec<(QuestionId, String)>,
    /// Tools that are not done yet, as last seen.
    tools: Vec<Tool>,
    /// The run is being cancelled: it asks nobody any more.
    cancelled: bool,
    /// The utterance under way and what it has so far, if that is not too much to keep.
    speaking: Option<(MessageId, Option<String>)>,
    next_index: u64,
}

impl Scribe {
    pub(super) fn new(run: RunId, merged: Vec<RunId>) -> Self {
        Self {
            run,
            merged,
            questions: Vec::new(),
            tools: Vec::new(),
            cancelled: false,
            speaking: None,
            next_index: 0,
        }
    }

    /// A run that went on before, as far as the state knows it.
    pub(super) fn resumed(current: &CurrentRun, state: &SessionState) -> Self {
        let run = current.id;
        let questions = state.questions.open.iter();
        let tools = state.tools.iter().filter(|tool| tool.is_open());
        Self {
            run,
            merged: current.merged.clone(),
            questions: questions
                .map(|open| (open.id, open.asked_as.clone()))
                .collect(),
            tools: tools.map(|tool| tool.brief()).collect(),
            cancelled: false,
            speaking: current.message.map(|message| (message, None)),
            next_index: current.chunks,
        }
    }

    pub(super) fn run(&self) -> RunId {
        self.run
    }

    /// The run is being cancelled: whatever it asks from now on is answered with that.
    pub(super) fn cancel(&mut self) {
        self.cancelled = true;
    }

    /// A question has its end.
    pub(super) fn resolved(&mut self, question: QuestionId) {
        self.questions.retain(|(open, _)| *open != question);
    }

    /// Notes what the agent said; more than one event if it leaves something open.
    pub(super) fn write(&mut self, said: FromAgent, rules: &Rules, notes: &mut Notes) {
        let events = &mut notes.events;
        let mine = |run: RunId| run == self.run;
        match said {
            FromAgent::Accepted { run } if mine(run) => {
                events.push(Event::RunProgress {
                    run,
                    progress: None,
                });
            }
            FromAgent::Progress { run, progress } if mine(run) => events.push(Event::RunProgress {
                run,
                progress: Some(progress),
            }),
            FromAgent::Delta { run, channel, text } if mine(run) => {
                events.push(self.piece(channel, text));
            }
            FromAgent::Final { run, text } if mine(run) => events.push(self.whole(text)),
            FromAgent::Withdrawn { run } if mine(run) => events.extend(self.take_back()),
            FromAgent::Tool { run, tool } if mine(run) => {
                self.follow_tool(&tool);
                events.push(Event::ToolUpdate { run, tool });
            }
            FromAgent::Asked {
                run,
                question,
                asked,
                patience,
            } if mine(run) => self.ask(question, *asked, patience, rules, notes),
            FromAgent::Ended {
                run,
                outcome,
                usage,
            } if mine(run) => {
                self.finish(&outcome, usage, events);
            }
            FromAgent::Accepted { run }
            | FromAgent::Progress { run, .. }
            | FromAgent::Delta { run, .. }
            | FromAgent::Final { run, .. }
            | FromAgent::Withdrawn { run }
            | FromAgent::Tool { run, .. }
            | FromAgent::Asked { run, .. }
            | FromAgent::Ended { run, .. } => {
                tracing::debug!(run.id = %run, "dropped what an agent said about another run");
            }
            FromAgent::Settled { question } => events.extend(self.settle(&question)),
            beside => events.extend(beside_runs(beside)),
        }
    }

    /// The agent went on without an answer: there is nothing to be granted any more.
    fn settle(&mut self, asked_as: &str) -> Option<Event> {
        let place = self
            .questions
            .iter()
            .position(|(_, name)| name == asked_as)?;
        let (question, _) = self.questions.remove(place);
        Some(Event::QuestionResolved {
            question,
            run: self.run,
            by: Resolver::RunEnd,
            granted: false,
            resolution: Resolution::Cancelled,
        })
    }

    /// The end of a run whose agent does not tell it.
    pub(super) fn end(&mut self, outcome: &RunOutcome, events: &mut Vec<Event>) {
        self.finish(outcome, None, events);
    }

    fn ask(
        &mut self,
        asked_as: String,
        question: Question,
        patience: Option<Duration>,
        rules: &Rules,
        notes: &mut Notes,
    ) {
        if self.cancelled {
            notes.answers.push((asked_as, Resolution::Cancelled));
            return;
        }
        let patience = patience.into_iter().chain(rules.patience).min();
        let open = OpenQuestion {
            id: QuestionId::new(),
            asked_as,
            run: self.run,
            expires_at: patience.and_then(|wait| rules.at.checked_add(wait).ok()),
            question: bounded(question),
        };
        notes.events.push(Event::QuestionAsked(open.clone()));
        if self.questions.len() >= OPEN_QUESTIONS {
            notes.events.push(Event::QuestionResolved {
                question: open.id,
                run: self.run,
                by: Resolver::Timeout,
                granted: false,
                resolution: Resolution::Expired,
            });
            notes.answers.push((open.asked_as, Resolution::Expired));
            return;
        }
        match granted(&open.question).filter(|_| rules.auto_approve) {
            None => self.questions.push((open.id, open.asked_as)),
            Some(answer) => {
                let resolution = Resolution::Answered(answer.clone());
                notes.events.push(Event::QuestionResolved {
                    question: open.id,
                    run: self.run,
                    by: Resolver::AutoApprove,
                    granted: true,
                    resolution: resolution.clone(),
                });
                notes.answers.push((open.asked_as.clone(), resolution));
                notes.decided.push((open, answer));
            }
        }
    }

    /// The one end of the run, and of those that are part of it.
    fn finish(&mut self, outcome: &RunOutcome, usage: Option<Usage>, events: &mut Vec<Event>) {
        self.close(events);
        events.push(Event::RunEnded {
            run: self.run,
            outcome: outcome.clone(),
            usage,
        });
        let also = |run| Event::RunEnded {
            run,
            outcome: outcome.clone(),
            usage: None,
        };
        events.extend(self.merged.drain(..).map(also));
    }

    /// Does the agent nothing but wait for a human?
    pub(super) fn only_waits(&self) -> bool {
        let works = |tool: &Tool| tool.status == "running";
        !self.questions.is_empty() && self.speaking.is_none() && !self.tools.iter().any(works)
    }

    /// Keeps in mind which tools are not done.
    fn follow_tool(&mut self, seen: &Tool) {
        self.tools.retain(|tool| tool.id != seen.id);
        if seen.is_open() {
            self.tools.push(seen.brief());
            let surplus = self.tools.len().saturating_sub(OPEN_TOOLS);
            self.tools.drain(..surplus);
        }
    }

    /// Whatever the run leaves open ends with it.
    fn close(&mut self, events: &mut Vec<Event>) {
        let run = self.run;
        events.extend(self.unfinished());
        let resolved = |question| Event::QuestionResolved {
            question,
            run,
            by: Resolver::RunEnd,
            granted: false,
            resolution: Resolution::Cancelled,
        };
        events.extend(self.questions.drain(..).map(|(id, _)| resolved(id)));
        let cancelled = |tool| Tool {
            status: "cancelled".into(),
            ..tool
        };
        let closed = |tool| Event::ToolUpdate {
            run,
            tool: cancelled(tool),
        };
        events.extend(self.tools.drain(..).map(closed));
    }

    fn piece(&mut self, channel: Channel, text: String) -> Event {
        let (message, so_far) = self
            .speaking
            .get_or_insert_with(|| (MessageId::new(), Some(String::new())));
        if channel == Channel::Text {
            match so_far {
                Some(whole) if whole.len() + text.len() <= WHOLE_BYTES => whole.push_str(&text),
                _ => *so_far = None,
            }
        }
        let message = *message;
        Event::MessageDelta {
            message,
            run: self.run,
            channel,
            text,
            index: self.index(),
            joined: 0,
        }
    }

    fn whole(&mut self, text: Option<String>) -> Event {
        let (message, so_far) = self
            .speaking
            .take()
            .unwrap_or_else(|| (MessageId::new(), Some(String::new())));
        // What came in pieces is not sent again; what did not is the rest.
        let streamed = so_far.as_deref().is_none_or(|text| !text.is_empty());
        let rest = match &text {
            Some(text) if !streamed => text.clone(),
            _ => String::new(),
        };
        Event::MessageFinal {
            message,
            run: self.run,
            author: Author::Assistant,
            // Nothing said aloud is no text; an empty one is what was taken back.
            text: if streamed {
                so_far
            } else {
                text.filter(|text| !text.is_empty())
            },
            rest,
            index: self.index(),
        }
    }

    /// What was said aloud since the last whole utterance does not count: nothing stands in its place.
    fn take_back(&mut self) -> Option<Event> {
        let (message, _) = self.speaking.take()?;
        Some(Event::MessageFinal {
            message,
            run: self.run,
            author: Author::Assistant,
            text: Some(String::new()),
            rest: String::new(),
            index: self.index(),
        })
    }

    /// What a human says in the middle of the run.
    pub(super) fn said_by_user(&mut self, text: String) -> Event {
        Event::MessageFinal {
            message: MessageId::new(),
            run: self.run,
            author: Author::User,
            text: Some(text),
            rest: String::new(),
            index: self.index(),
        }
    }

    /// An answer that was cut off still gets its last piece.
    fn unfinished(&mut self) -> Option<Event> {
        self.speaking.is_some().then(|| self.whole(None))
    }

    fn index(&mut self) -> u64 {
        let index = self.next_index;
        self.next_index += 1;
        index
    }
}

/// The event for what an agent says about no run.
pub(super) fn beside_runs(said: FromAgent) -> Option<Event> {
    match said {
        FromAgent::Usage(usage) => Some(Event::Usage(usage)),
        FromAgent::ContextLeft(percent) => Some(Event::ContextLeft {
            percent: percent.min(100),
        }),
        FromAgent::Plan(steps) => Some(Event::PlanUpdated { steps }),
        FromAgent::Activity(activity) => Some(Event::AgentState { activity }),
        FromAgent::Title(title) => {
            let title = title.chars().filter(|letter| !letter.is_control());
            let title: String = title.take(TITLE_CHARS).collect();
            (!title.trim().is_empty()).then_some(Event::TitleChanged { title })
        }
        FromAgent::Notice { level, text } => Some(Event::AgentNotice { level, text }),
        FromAgent::Commands(commands) => Some(Event::CommandsAvailable { commands }),
        FromAgent::Raw { dialect, value } => Some(Event::Raw { dialect, value }),
        _ => None,
    }
}

/// A question as it is kept: in the state, in every snapshot, on every screen.
fn bounded(mut question: Question) -> Question {
    for text in [&mut question.title, &mut question.message] {
        text.truncate(text.floor_char_boundary(QUESTION_BYTES));
    }
    question.options.truncate(QUESTION_OPTIONS);
    question
}

/// The answer that grants a permission this time, if it is harmless and can be granted.
fn granted(question: &Question) -> Option<Answer> {
    if question.kind != QuestionKind::Permission || question.severity == Severity::Critical {
        return None;
    }
    let once = |option: &&Choice| option.kind == Some(ChoiceKind::AllowOnce);
    let said = match question.options.iter().find(once) {
        Some(option) => Said::Option(option.id.clone()),
        None if question.options.is_empty() => Said::Ok(true),
        None => return None,
    };
    Some(Answer::new(said))
}

#[cfg(test)]
mod tests;
