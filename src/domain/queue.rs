//! The prompts that wait for their turn: one run at a time per session.

use serde::{Deserialize, Serialize};

use super::command::Prompt;
use super::id::RunId;

/// Why something waits: the first goes before the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// It shall steer what is under way.
    Steer,
    /// It follows what is under way.
    FollowUp,
    /// It is a prompt of its own.
    Prompt,
}

/// How much is taken from the queue at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Take {
    /// Each becomes a run.
    #[default]
    One,
    /// All of a kind become one run.
    All,
}

/// How the queue is emptied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueModes {
    /// What steers.
    #[serde(default)]
    pub steering: Take,
    /// What follows.
    #[serde(default)]
    pub follow_up: Take,
}

/// Something that waits for its turn. It has its run already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    /// The run that it will be.
    pub run: RunId,
    /// Why it waits.
    pub why: Waiting,
    /// What is asked.
    pub prompt: Prompt,
    /// Who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The `messageId` of the command that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation: Option<String>,
}

/// What everybody sees of something that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InLine {
    /// The run that it will be.
    pub run: RunId,
    /// Why it waits.
    pub why: Waiting,
    /// The beginning of what is asked.
    pub text: String,
    /// Who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// All that waits, in the order of its turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// The next one first: what steers, then the rest, each in the order of its coming.
    pub entries: Vec<Queued>,
    /// How it is emptied.
    pub modes: QueueModes,
}

/// What becomes one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// The first of those taken, with the text of all.
    pub first: Queued,
    /// The runs of the others, which this one stands for.
    pub merged: Vec<RunId>,
}

/// How much of a text the others see of something that waits, in characters.
const EXCERPT_CHARS: usize = 200;
/// Several texts become one as long as that is not longer than this.
const MERGED_CHARS: usize = 100_000;

impl Queue {
    /// Puts something at its place.
    pub fn add(&mut self, new: Queued) {
        let steers = |queued: &Queued| queued.why == Waiting::Steer;
        let place = if steers(&new) {
            self.entries.partition_point(steers)
        } else {
            self.entries.len()
        };
        self.entries.insert(place, new);
    }

    /// Takes something out; false if it is not there.
    pub fn withdraw(&mut self, run: RunId) -> bool {
        let before = self.entries.len();
        self.entries.retain(|queued| queued.run != run);
        self.entries.len() < before
    }

    /// Takes out what is next, if anything is.
    pub fn take_turn(&mut self) -> Option<Turn> {
        let why = self.entries.first()?.why;
        let take = match why {
            Waiting::Steer => self.modes.steering,
            Waiting::FollowUp => self.modes.follow_up,
            Waiting::Prompt => Take::One,
        };
        let count = match take {
            Take::One => 1,
            Take::All => self.alike(),
        };
        let mut taken = self.entries.drain(..count);
        let mut first = taken.next()?;
        let mut merged = Vec::new();
        for other in taken {
            first.prompt.text.push_str("\n\n");
            first.prompt.text.push_str(&other.prompt.text);
            first.prompt.images.extend(other.prompt.images);
            first.prompt.attachments.extend(other.prompt.attachments);
            merged.push(other.run);
        }
        Some(Turn { first, merged })
    }

    /// How many of the next ones can be one: of a kind, of one author, in one mode and place, and
    /// together no longer than a prompt may be.
    fn alike(&self) -> usize {
        let Some((first, others)) = self.entries.split_first() else {
            return 0;
        };
        let mut chars = first.prompt.text.chars().count();
        let fits = |next: &&Queued| {
            chars += 2 + next.prompt.text.chars().count();
            (next.why, &next.by) == (first.why, &first.by)
                && next.prompt.mode == first.prompt.mode
                && next.prompt.context == first.prompt.context
                && next.prompt.meta == first.prompt.meta
                && chars <= MERGED_CHARS
        };
        1 + others.iter().take_while(fits).count()
    }

    /// What everybody sees of it.
    pub fn line(&self) -> Vec<InLine> {
        self.entries.iter().map(InLine::from).collect()
    }

    /// The bytes of what waits.
    pub fn bytes(&self) -> usize {
        self.entries
            .iter()
            .map(|queued| queued.prompt.bytes())
            .sum()
    }

    /// Follows a change: what stands in line stays or is among the added, everything else is gone and
    /// named.
    pub fn follow(&mut self, line: &[InLine], modes: QueueModes, added: &[Queued]) -> Vec<RunId> {
        let mut known = std::mem::take(&mut self.entries);
        known.extend(added.iter().cloned());
        for place in line {
            if let Some(found) = known.iter().position(|queued| queued.run == place.run) {
                self.entries.push(known.remove(found));
            }
        }
        self.modes = modes;
        known.into_iter().map(|queued| queued.run).collect()
    }
}

impl From<&Queued> for InLine {
    fn from(queued: &Queued) -> Self {
        Self {
            run: queued.run,
            why: queued.why,
            text: queued.prompt.text.chars().take(EXCERPT_CHARS).collect(),
            by: queued.by.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::Mode;
    use super::*;

    fn queued(why: Waiting, text: &str) -> Queued {
        Queued {
            run: RunId::new(),
            why,
            prompt: Prompt::new(text, Mode::Act),
            by: None,
            correlation: None,
        }
    }

    fn filled(modes: QueueModes) -> Queue {
        let mut queue = Queue {
            modes,
            ..Queue::default()
        };
        queue.add(queued(Waiting::FollowUp, "f1"));
        queue.add(queued(Waiting::Steer, "s1"));
        queue.add(queued(Waiting::FollowUp, "f2"));
        queue.add(queued(Waiting::Prompt, "p"));
        queue.add(queued(Waiting::Steer, "s2"));
        queue
    }

    fn turns(mut queue: Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.take_turn())
            .map(|turn| turn.first.prompt.text)
            .collect()
    }

    #[test]
    fn what_steers_goes_first_in_both_modes() {
        let one = QueueModes::default();
        assert_eq!(turns(filled(one)), ["s1", "s2", "f1", "f2", "p"]);
        let all = QueueModes {
            steering: Take::All,
            follow_up: Take::All,
        };
        assert_eq!(turns(filled(all)), ["s1\n\ns2", "f1\n\nf2", "p"]);
    }

    #[test]
    fn a_run_that_stands_for_others_names_them() {
        let mut queue = filled(QueueModes {
            steering: Take::All,
            ..QueueModes::default()
        });
        let second = queue.entries[1].run;
        assert_eq!(queue.take_turn().unwrap().merged, [second]);
    }

    #[test]
    fn only_what_belongs_together_becomes_one() {
        let all = QueueModes {
            steering: Take::All,
            follow_up: Take::All,
        };
        let turns_of = |second: Queued| {
            let mut queue = Queue {
                modes: all,
                ..Queue::default()
            };
            queue.add(queued(Waiting::Steer, "first"));
            queue.add(second);
            turns(queue).len()
        };
        assert_eq!(turns_of(queued(Waiting::Steer, "x")), 1);
        let mut planned = queued(Waiting::Steer, "x");
        planned.prompt.mode = Mode::Plan;
        assert_eq!(turns_of(planned), 2, "in another mode");
        let mut others = queued(Waiting::Steer, "x");
        others.by = Some("ben".into());
        assert_eq!(turns_of(others), 2, "of somebody else");
        let long = queued(Waiting::Steer, &"x".repeat(MERGED_CHARS));
        assert_eq!(turns_of(long), 2, "too long together");
    }

    #[test]
    fn following_what_was_told_leads_to_the_same_queue() {
        let mut queue = Queue::default();
        let mut copy = Queue::default();
        for why in [Waiting::FollowUp, Waiting::Steer, Waiting::Prompt] {
            let new = queued(why, "x");
            queue.add(new.clone());
            copy.follow(&queue.line(), queue.modes, &[new]);
        }
        assert_eq!(copy, queue);
        let gone = queue.entries[1].run;
        assert!(queue.withdraw(gone) && !queue.withdraw(gone));
        copy.follow(&queue.line(), queue.modes, &[]);
        assert_eq!(copy, queue);
    }
}
