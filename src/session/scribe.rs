//! Turns what an agent says during one run into events: names utterances, numbers pieces.
//!
//! Pure. What an agent says about another run is dropped: nothing of a run appears after its end.

use crate::domain::event::{Author, Channel, Event};
use crate::domain::id::{MessageId, RunId};
use crate::domain::run::RunOutcome;
use crate::runtime::FromAgent;

/// A streamed answer up to this size is recorded as a whole at its end, so that its pieces need not
/// be kept for ever.
const WHOLE_BYTES: usize = 256 * 1024;

/// One run, as it is written down.
#[derive(Debug)]
pub(super) struct Scribe {
    run: RunId,
    /// The utterance under way and what it has so far, if that is not too much to keep.
    speaking: Option<(MessageId, Option<String>)>,
    next_index: u64,
}

impl Scribe {
    pub(super) fn new(run: RunId) -> Self {
        Self {
            run,
            speaking: None,
            next_index: 0,
        }
    }

    /// A run that went on before, as far as the state knows it.
    pub(super) fn resumed(run: RunId, speaking: Option<MessageId>, next_index: u64) -> Self {
        Self {
            run,
            speaking: speaking.map(|message| (message, None)),
            next_index,
        }
    }

    pub(super) fn run(&self) -> RunId {
        self.run
    }

    /// The events for what the agent said; more than one if an answer ends without having begun.
    pub(super) fn write(&mut self, said: FromAgent, events: &mut Vec<Event>) {
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
            FromAgent::Tool {
                run,
                tool,
                name,
                title,
                status,
                input,
                output,
            } if mine(run) => events.push(Event::ToolUpdate {
                run,
                tool,
                name,
                title,
                status,
                input,
                output,
            }),
            FromAgent::Ended {
                run,
                outcome,
                usage,
            } if mine(run) => {
                events.extend(self.unfinished());
                events.push(Event::RunEnded {
                    run,
                    outcome,
                    usage,
                });
            }
            FromAgent::Usage(usage) => events.push(Event::Usage(usage)),
            FromAgent::Plan(steps) => events.push(Event::PlanUpdated { steps }),
            FromAgent::Activity(activity) => events.push(Event::AgentState { activity }),
            FromAgent::Title(title) => events.push(Event::TitleChanged { title }),
            FromAgent::Notice { level, text } => events.push(Event::AgentNotice { level, text }),
            FromAgent::Accepted { run }
            | FromAgent::Progress { run, .. }
            | FromAgent::Delta { run, .. }
            | FromAgent::Final { run, .. }
            | FromAgent::Tool { run, .. }
            | FromAgent::Ended { run, .. } => {
                tracing::debug!(run.id = %run, "dropped what an agent said about another run");
            }
        }
    }

    /// The end of a run whose agent does not tell it.
    pub(super) fn end(&mut self, outcome: RunOutcome, events: &mut Vec<Event>) {
        events.extend(self.unfinished());
        events.push(Event::RunEnded {
            run: self.run,
            outcome,
            usage: None,
        });
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
            text: if streamed { so_far } else { text.or(so_far) },
            rest,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn written(said: Vec<FromAgent>, run: RunId) -> Vec<Event> {
        let mut scribe = Scribe::new(run);
        let mut events = Vec::new();
        for said in said {
            scribe.write(said, &mut events);
        }
        events
    }

    fn delta(run: RunId, text: &str) -> FromAgent {
        FromAgent::Delta {
            run,
            channel: Channel::Text,
            text: text.into(),
        }
    }

    #[test]
    fn pieces_are_numbered_and_the_end_holds_the_whole() {
        let run = RunId::new();
        let events = written(
            vec![
                delta(run, "a"),
                delta(run, "b"),
                FromAgent::Final { run, text: None },
            ],
            run,
        );
        let [
            Event::MessageDelta {
                index: 0,
                message: first,
                ..
            },
            Event::MessageDelta {
                index: 1,
                message: second,
                ..
            },
            Event::MessageFinal {
                index: 2,
                text: Some(text),
                rest,
                message: last,
                ..
            },
        ] = events.as_slice()
        else {
            panic!("{events:?}");
        };
        assert!(first == second && second == last);
        assert_eq!((text.as_str(), rest.as_str()), ("ab", ""));
    }

    #[test]
    fn an_answer_that_comes_at_once_is_sent_with_its_end() {
        let run = RunId::new();
        let text = Some("all of it".to_owned());
        let events = written(vec![FromAgent::Final { run, text }], run);
        assert!(
            matches!(events.as_slice(), [Event::MessageFinal { rest, .. }] if rest == "all of it")
        );
    }

    #[test]
    fn an_answer_cut_off_by_the_end_is_completed() {
        let run = RunId::new();
        let ended = FromAgent::Ended {
            run,
            outcome: RunOutcome::Cancelled,
            usage: None,
        };
        let events = written(vec![delta(run, "half"), ended], run);
        assert!(matches!(
            events.as_slice(),
            [
                Event::MessageDelta { .. },
                Event::MessageFinal { .. },
                Event::RunEnded { .. }
            ]
        ));
    }

    #[test]
    fn nothing_about_another_run_is_written() {
        assert!(written(vec![delta(RunId::new(), "x")], RunId::new()).is_empty());
    }

    #[test]
    fn a_very_long_answer_is_not_kept_twice() {
        let run = RunId::new();
        let long = "x".repeat(WHOLE_BYTES);
        let events = written(
            vec![
                delta(run, &long),
                delta(run, "y"),
                FromAgent::Final { run, text: None },
            ],
            run,
        );
        assert!(matches!(
            events.last(),
            Some(Event::MessageFinal { text: None, rest, .. }) if rest.is_empty()
        ));
    }
}
