//! Tail: the recent events of a journal, in memory.
//!
//! Pure: routers append, cursors read. All tails of a node share one byte budget; the oldest append of
//! any session is dropped first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

use crate::domain::event::Recorded;
use crate::domain::id::SessionId;
use crate::domain::shared_text::Text;

/// Bytes of an entry beside its text.
const OVERHEAD_BYTES: usize = 200;

/// A committed event, and its frame once a member has made it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) session: SessionId,
    pub(crate) recorded: Recorded,
    frame: OnceLock<Text>,
    bytes: usize,
    /// When it was committed; `None` if it was read from storage.
    committed: Option<Instant>,
}

impl Entry {
    /// An event whose stored form has that many bytes.
    pub(crate) fn new(session: SessionId, recorded: Recorded, stored_bytes: usize) -> Self {
        Self {
            session,
            recorded,
            frame: OnceLock::new(),
            bytes: OVERHEAD_BYTES + 3 * stored_bytes,
            committed: None,
        }
    }

    pub(super) fn committed_at(self, moment: Instant) -> Self {
        Self {
            committed: Some(moment),
            ..self
        }
    }

    /// When it was committed; `None` if it was read from storage.
    pub(crate) fn committed(&self) -> Option<Instant> {
        self.committed
    }

    /// The frame of this event, serialised once and shared by all members.
    pub(crate) fn frame(&self, make: impl FnOnce(&Recorded) -> Text) -> Text {
        self.frame.get_or_init(|| make(&self.recorded)).clone()
    }
}

/// The recent entries of one journal, without holes.
#[derive(Debug, Default)]
pub(crate) struct Tail(Mutex<VecDeque<Arc<Entry>>>);

impl Tail {
    /// At most `limit` entries after an offset; `None` if the first of them is not here.
    pub(crate) fn after(&self, offset: u64, limit: usize) -> Option<Vec<Arc<Entry>>> {
        let entries = lock(&self.0);
        let first = entries.front()?.recorded.offset;
        let skipped = usize::try_from((offset + 1).checked_sub(first)?).ok()?;
        Some(entries.iter().skip(skipped).take(limit).cloned().collect())
    }

    fn push(&self, new: &[Arc<Entry>]) {
        lock(&self.0).extend(new.iter().cloned());
    }

    fn drop_oldest(&self, count: usize) {
        let mut entries = lock(&self.0);
        let count = count.min(entries.len());
        entries.drain(..count);
        if entries.is_empty() {
            entries.shrink_to_fit();
        }
    }
}

/// All tails of a node, within one byte budget.
#[derive(Debug)]
pub(crate) struct Tails {
    max_bytes: usize,
    appends: Mutex<AppendLog>,
}

#[derive(Debug, Default)]
struct AppendLog {
    bytes: usize,
    /// Oldest first: the tail, number of entries, bytes.
    appends: VecDeque<(Weak<Tail>, usize, usize)>,
}

impl Tails {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            appends: Mutex::default(),
        }
    }

    /// Appends entries to a tail and drops the oldest appends over the budget.
    pub(crate) fn append(&self, tail: &Arc<Tail>, new: &[Arc<Entry>]) {
        let bytes = new.iter().map(|entry| entry.bytes).sum::<usize>();
        tail.push(new);
        let mut log = lock(&self.appends);
        log.bytes += bytes;
        log.appends
            .push_back((Arc::downgrade(tail), new.len(), bytes));
        while log.bytes > self.max_bytes
            && let Some((oldest, count, freed)) = log.appends.pop_front()
        {
            log.bytes -= freed;
            if let Some(oldest) = oldest.upgrade() {
                oldest.drop_oldest(count);
            }
        }
    }

    /// Forgets appends whose session has left memory.
    pub(crate) fn sweep(&self) {
        let mut log = lock(&self.appends);
        let mut freed = 0;
        log.appends.retain(|(tail, _, bytes)| {
            let gone = tail.strong_count() == 0;
            freed += if gone { *bytes } else { 0 };
            !gone
        });
        log.bytes -= freed;
    }

    /// Approximate bytes of all tails.
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.appends).bytes
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::event::Event;

    fn entries(offsets: std::ops::RangeInclusive<u64>) -> Vec<Arc<Entry>> {
        let session = SessionId::new();
        let entry = |offset| {
            let recorded = Recorded {
                offset,
                at: Timestamp::UNIX_EPOCH,
                event: Event::TitleChanged {
                    title: "x".repeat(10),
                },
            };
            Arc::new(Entry::new(session, recorded, 100))
        };
        offsets.map(entry).collect()
    }

    fn offsets(found: Option<Vec<Arc<Entry>>>) -> Option<Vec<u64>> {
        found.map(|found| found.iter().map(|entry| entry.recorded.offset).collect())
    }

    #[test]
    fn a_reader_gets_the_entries_after_its_offset() {
        let (tails, tail) = (Tails::new(1_000_000), Arc::new(Tail::default()));
        assert_eq!(offsets(tail.after(0, 10)), None);
        tails.append(&tail, &entries(5..=9));
        assert_eq!(offsets(tail.after(4, 10)), Some(vec![5, 6, 7, 8, 9]));
        assert_eq!(offsets(tail.after(6, 2)), Some(vec![7, 8]));
        assert_eq!(offsets(tail.after(9, 2)), Some(vec![]));
        assert_eq!(offsets(tail.after(3, 10)), None, "4 is not here");
    }

    #[test]
    fn the_oldest_append_of_any_session_is_dropped_first() {
        let tails = Tails::new(4 * 500);
        let (one, two) = (Arc::new(Tail::default()), Arc::new(Tail::default()));
        tails.append(&one, &entries(1..=2));
        tails.append(&two, &entries(1..=1));
        tails.append(&two, &entries(2..=2));
        assert_eq!(tails.bytes(), 2000);
        tails.append(&two, &entries(3..=3));
        assert_eq!(offsets(one.after(0, 9)), None);
        assert_eq!(offsets(two.after(0, 9)), Some(vec![1, 2, 3]));
        assert!(tails.bytes() <= 2000);
    }

    #[test]
    fn a_session_that_left_memory_holds_nothing() {
        let tails = Tails::new(1_000_000);
        let tail = Arc::new(Tail::default());
        tails.append(&tail, &entries(1..=5));
        drop(tail);
        tails.sweep();
        assert_eq!(tails.bytes(), 0);
    }

    #[test]
    fn a_frame_is_serialised_once() {
        let entry = &entries(1..=1)[0];
        let first = entry.frame(|_| "made".into());
        let second = entry.frame(|_| unreachable!("it was made before"));
        assert_eq!(first, second);
    }
}
