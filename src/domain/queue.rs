//! Prompt queue: prompts accepted while a run is under way. One run at a time per session.

use serde::{Deserialize, Serialize};

use super::command::Prompt;
use super::id::{RunId, UserId};

/// Characters of a queued prompt that the queue shows to members.
const EXCERPT_CHARS: usize = 200;
/// Several prompts become one run only if their text stays within this.
const MERGED_CHARS: usize = 100_000;

/// Why a prompt was queued. Steering prompts run before the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptKind {
    /// Steers the run under way.
    Steer,
    /// Follows the run under way.
    FollowUp,
    /// Stands on its own.
    Prompt,
}

/// How many queued prompts of a kind become the next run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueMode {
    /// One prompt per run.
    #[default]
    One,
    /// All prompts of the kind in one run.
    All,
}

/// Queue mode per kind of prompt; a plain prompt is always a run of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueModes {
    /// For steering prompts.
    #[serde(default)]
    pub steering: QueueMode,
    /// For follow-up prompts.
    #[serde(default)]
    pub follow_up: QueueMode,
}

/// A prompt in the queue. Its run id is given out when it is accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuedPrompt {
    /// The run that it will be.
    pub run: RunId,
    /// Why it was queued.
    #[serde(rename = "why")]
    pub kind: PromptKind,
    /// The prompt.
    pub prompt: Prompt,
    /// Name of the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The sender; absent in what was queued before senders were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<UserId>,
    /// The `messageId` of the command that brought it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation: Option<String>,
}

/// A queued prompt as members see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueEntry {
    /// The run that it will be.
    pub run: RunId,
    /// Why it was queued.
    #[serde(rename = "why")]
    pub kind: PromptKind,
    /// The beginning of the prompt.
    pub text: String,
    /// Name of the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// The queued prompts, the next one first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// Steering prompts first, then the others, each in the order of arrival.
    pub entries: Vec<QueuedPrompt>,
    /// How many of them become the next run.
    pub modes: QueueModes,
}

/// The queued prompts that become the next run.
#[derive(Clone, Debug, PartialEq)]
pub struct NextRun {
    /// The first of them, with the text of all.
    pub first: QueuedPrompt,
    /// The runs of the others; they end together with the first.
    pub merged: Vec<RunId>,
    /// Those who sent one of them.
    pub senders: Vec<UserId>,
}

impl Queue {
    /// Adds a prompt behind those that run before it.
    pub fn add(&mut self, new: QueuedPrompt) {
        let steers = |queued: &QueuedPrompt| queued.kind == PromptKind::Steer;
        let index = if steers(&new) {
            self.entries.partition_point(steers)
        } else {
            self.entries.len()
        };
        self.entries.insert(index, new);
    }

    /// Removes a prompt; false if it is not queued.
    pub fn withdraw(&mut self, run: RunId) -> bool {
        let before = self.entries.len();
        self.entries.retain(|queued| queued.run != run);
        self.entries.len() < before
    }

    /// Removes and returns the prompts of the next run.
    pub fn take_next(&mut self) -> Option<NextRun> {
        let mode = match self.entries.first()?.kind {
            PromptKind::Steer => self.modes.steering,
            PromptKind::FollowUp => self.modes.follow_up,
            PromptKind::Prompt => QueueMode::One,
        };
        let count = match mode {
            QueueMode::One => 1,
            QueueMode::All => self.mergeable(),
        };
        let mut taken = self.entries.drain(..count);
        let mut first = taken.next()?;
        let mut merged = Vec::new();
        let mut senders: Vec<UserId> = first.sender.into_iter().collect();
        for other in taken {
            first.prompt.text.push_str("\n\n");
            first.prompt.text.push_str(&other.prompt.text);
            first.prompt.images.extend(other.prompt.images);
            first.prompt.attachments.extend(other.prompt.attachments);
            merged.push(other.run);
            senders.extend(other.sender.filter(|sender| !senders.contains(sender)));
        }
        Some(NextRun {
            first,
            merged,
            senders,
        })
    }

    /// How many prompts at the front can share a run: same kind, sender, mode, context and meta, and
    /// together no longer than `MERGED_CHARS`.
    fn mergeable(&self) -> usize {
        let Some((first, others)) = self.entries.split_first() else {
            return 0;
        };
        let mut chars = first.prompt.text.chars().count();
        let fits = |next: &&QueuedPrompt| {
            chars += 2 + next.prompt.text.chars().count();
            (next.kind, &next.by) == (first.kind, &first.by)
                && next.prompt.mode == first.prompt.mode
                && next.prompt.context == first.prompt.context
                && next.prompt.meta == first.prompt.meta
                && chars <= MERGED_CHARS
        };
        1 + others.iter().take_while(fits).count()
    }

    /// The queue as members see it.
    pub fn summary(&self) -> Vec<QueueEntry> {
        self.entries.iter().map(QueueEntry::from).collect()
    }

    /// Approximate bytes of all queued prompts.
    pub fn bytes(&self) -> usize {
        self.entries
            .iter()
            .map(|queued| queued.prompt.bytes())
            .sum()
    }

    /// Applies a `QueueUpdated` event: keeps the prompts it names, known or `added`, in its order.
    /// Returns the runs that left the queue.
    pub fn update(
        &mut self,
        entries: &[QueueEntry],
        modes: QueueModes,
        added: &[QueuedPrompt],
    ) -> Vec<RunId> {
        let mut known = std::mem::take(&mut self.entries);
        known.extend(added.iter().cloned());
        for entry in entries {
            if let Some(found) = known.iter().position(|queued| queued.run == entry.run) {
                self.entries.push(known.remove(found));
            }
        }
        self.modes = modes;
        known.into_iter().map(|queued| queued.run).collect()
    }
}

impl From<&QueuedPrompt> for QueueEntry {
    fn from(queued: &QueuedPrompt) -> Self {
        Self {
            run: queued.run,
            kind: queued.kind,
            text: queued.prompt.text.chars().take(EXCERPT_CHARS).collect(),
            by: queued.by.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::Mode;
    use super::*;

    fn queued(kind: PromptKind, text: &str) -> QueuedPrompt {
        QueuedPrompt {
            run: RunId::new(),
            kind,
            prompt: Prompt::new(text, Mode::Act),
            by: None,
            sender: None,
            correlation: None,
        }
    }

    fn filled(modes: QueueModes) -> Queue {
        let mut queue = Queue {
            modes,
            ..Queue::default()
        };
        queue.add(queued(PromptKind::FollowUp, "f1"));
        queue.add(queued(PromptKind::Steer, "s1"));
        queue.add(queued(PromptKind::FollowUp, "f2"));
        queue.add(queued(PromptKind::Prompt, "p"));
        queue.add(queued(PromptKind::Steer, "s2"));
        queue
    }

    fn runs(mut queue: Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.take_next())
            .map(|next| next.first.prompt.text)
            .collect()
    }

    #[test]
    fn steering_prompts_run_first_in_both_modes() {
        let one = QueueModes::default();
        assert_eq!(runs(filled(one)), ["s1", "s2", "f1", "f2", "p"]);
        let all = QueueModes {
            steering: QueueMode::All,
            follow_up: QueueMode::All,
        };
        assert_eq!(runs(filled(all)), ["s1\n\ns2", "f1\n\nf2", "p"]);
    }

    #[test]
    fn a_run_of_several_prompts_names_the_other_runs() {
        let mut queue = filled(QueueModes {
            steering: QueueMode::All,
            ..QueueModes::default()
        });
        let second = queue.entries[1].run;
        assert_eq!(queue.take_next().unwrap().merged, [second]);
    }

    #[test]
    fn only_prompts_of_one_sender_mode_and_size_are_merged() {
        let all = QueueModes {
            steering: QueueMode::All,
            follow_up: QueueMode::All,
        };
        let runs_of = |second: QueuedPrompt| {
            let mut queue = Queue {
                modes: all,
                ..Queue::default()
            };
            queue.add(queued(PromptKind::Steer, "first"));
            queue.add(second);
            runs(queue).len()
        };
        assert_eq!(runs_of(queued(PromptKind::Steer, "x")), 1);
        let mut planned = queued(PromptKind::Steer, "x");
        planned.prompt.mode = Mode::Plan;
        assert_eq!(runs_of(planned), 2, "in another mode");
        let mut others = queued(PromptKind::Steer, "x");
        others.by = Some("ben".into());
        assert_eq!(runs_of(others), 2, "of another sender");
        let long = queued(PromptKind::Steer, &"x".repeat(MERGED_CHARS));
        assert_eq!(runs_of(long), 2, "too long together");
    }

    #[test]
    fn applying_queue_updates_leads_to_the_same_queue() {
        let mut queue = Queue::default();
        let mut copy = Queue::default();
        for kind in [PromptKind::FollowUp, PromptKind::Steer, PromptKind::Prompt] {
            let new = queued(kind, "x");
            queue.add(new.clone());
            copy.update(&queue.summary(), queue.modes, &[new]);
        }
        assert_eq!(copy, queue);
        let gone = queue.entries[1].run;
        assert!(queue.withdraw(gone) && !queue.withdraw(gone));
        copy.update(&queue.summary(), queue.modes, &[]);
        assert_eq!(copy, queue);
    }
}
