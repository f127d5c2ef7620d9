//! Questions: answered once, by a human, by the clock, or by the end of their run.

use tokio::time::Instant;

use super::super::ask::{Effect, Refused, Sent, recorded};
use super::super::decision;
use super::super::failure::Failure;
use super::super::state::{Ended, brief};
use super::records::Change;
use super::{Over, Router};
use crate::domain::act::{Actor, By};
use crate::domain::code::Code;
use crate::domain::event::{Event, Resolver};
use crate::domain::id::QuestionId;
use crate::domain::question::{Answer, OpenQuestion, Resolution, Said};

impl Router {
    /// Takes an answer. The first one counts; whoever comes later hears how it ended.
    pub(super) async fn answer_question(
        &mut self,
        id: QuestionId,
        answer: Answer,
        sent: Sent,
    ) -> Result<Effect, Failure> {
        let by = resolver(&sent.by);
        let Some(open) = self.state.questions.open(id).cloned() else {
            return self.too_late(id, &answer, &by);
        };
        if let Err(misfit) = open.question.check(&answer) {
            let message = format!("`payload.{}` {}.", misfit.field, misfit.fault);
            return Err(Failure::Refused(Refused::new(
                Code::ValidationError,
                message,
            )));
        }
        let granted = open.question.is_granted_by(&answer);
        let kept = open.question.storable(&answer);
        let ended = Ended {
            question: id,
            by,
            granted,
            resolution: Resolution::Answered(kept),
        };
        let change = Change {
            events: vec![resolved(&open, &ended)],
            command: sent.once.map(|once| recorded(once, None)),
            acts: vec![decision::act(sent.by, self.id, &open, granted)],
        };
        self.record(change).await?;
        // Told as it was given: a secret is kept nowhere else.
        self.let_go_on(open, Resolution::Answered(answer)).await;
        let accepted = true;
        Ok(Effect::Resolved { ended, accepted })
    }

    fn too_late(&self, id: QuestionId, answer: &Answer, by: &Resolver) -> Result<Effect, Failure> {
        let Some(ended) = self.state.questions.ended(id).cloned() else {
            let none = Refused::new(Code::NotFound, "There is no such question.");
            return Err(Failure::Refused(none));
        };
        // Said twice by the same person is the same answer.
        let secret = matches!(
            &ended.resolution,
            Resolution::Answered(Answer {
                said: Said::Value(None),
                ..
            })
        );
        let same = ended.resolution == brief(&Resolution::Answered(answer.clone()));
        let accepted = ended.by == *by && (same || secret);
        Ok(Effect::Resolved { ended, accepted })
    }

    /// When the next question counts as denied.
    pub(super) fn next_expiry(&mut self) -> Option<Instant> {
        if self.state.questions.open.is_empty() {
            return None;
        }
        let open = self.state.questions.open.iter();
        let (now, wall) = (Instant::now(), self.parts.clock.wall());
        let deadline = |open: &OpenQuestion| {
            let known = self.deadlines.get(&open.id).copied();
            let left = open.expires_at?.duration_since(wall);
            let deadline = known.unwrap_or(now + left.try_into().unwrap_or_default());
            Some((open.id, deadline))
        };
        self.deadlines = open.filter_map(deadline).collect();
        self.deadlines.values().min().copied()
    }

    /// Denies what nobody has answered in time.
    pub(super) async fn expire(&mut self) -> Result<(), Over> {
        let now = Instant::now();
        let late =
            |open: &&OpenQuestion| self.deadlines.get(&open.id).is_some_and(|end| *end <= now);
        let open = self.state.questions.open.iter();
        let late: Vec<OpenQuestion> = open.filter(late).cloned().collect();
        let end = |open: &OpenQuestion| {
            let ended = Ended {
                question: open.id,
                by: Resolver::Timeout,
                granted: false,
                resolution: Resolution::Expired,
            };
            resolved(open, &ended)
        };
        let wall = self.parts.clock.wall();
        let act = |open| decision::act(By::gateway(wall), self.id, open, false);
        let (events, acts) = (
            late.iter().map(end).collect(),
            late.iter().map(act).collect(),
        );
        self.record_surely(events, acts).await?;
        for open in late {
            self.let_go_on(open, Resolution::Expired).await;
        }
        Ok(())
    }

    async fn let_go_on(&mut self, open: OpenQuestion, resolution: Resolution) {
        if let Some(scribe) = &mut self.scribe {
            scribe.resolved(open.id);
        }
        self.tell_resolution(open.asked_as, resolution).await;
    }
}

fn resolved(open: &OpenQuestion, ended: &Ended) -> Event {
    Event::QuestionResolved {
        question: open.id,
        run: open.run,
        by: ended.by.clone(),
        granted: ended.granted,
        resolution: ended.resolution.clone(),
    }
}

/// Who ends a question by what they say.
pub(super) fn resolver(by: &By) -> Resolver {
    match &by.actor {
        Actor::User(id, name) => Resolver::User {
            id: *id,
            name: name.to_string(),
        },
        _ => Resolver::RunEnd,
    }
}
