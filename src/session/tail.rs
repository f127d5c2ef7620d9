//! The recent part of journals, in memory.
//!
//! Pure bookkeeping: routers append, cursors read. Each session has its tail; all tails together
//! hold no more bytes than one budget, and what was appended longest ago, in whichever session,
//! goes first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::domain::event::Recorded;
use crate::domain::id::SessionId;

/// What an entry costs beside its text.
const OVERHEAD_BYTES: usize = 200;

/// A committed event, and its frame once somebody has made it.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Whose journal it stands in.
    pub(crate) session: SessionId,
    /// The event at its place.
    pub(crate) recorded: Recorded,
    frame: OnceLock<Utf8Bytes>,
    bytes: usize,
    /// When it was committed, if that was in this life of its session.
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

    /// The same, committed at that moment.
    pub(super) fn at(self, moment: Instant) -> Self {
        Self {
            committed: Some(moment),
            ..self
        }
    }

    /// When it was committed, if that was in this life of its session.
    pub(crate) fn committed(&self) -> Option<Instant> {
        self.committed
    }

    /// The frame of this event, made by the first who asks and shared by all others.
    pub(crate) fn frame(&self, make: impl FnOnce(&Recorded) -> Utf8Bytes) -> Utf8Bytes {
        self.frame.get_or_init(|| make(&self.recorded)).clone()
    }
}

/// The recent entries of one session, without holes.
#[derive(Debug, Default)]
pub(crate) struct Tail(Mutex<VecDeque<Arc<Entry>>>);

impl Tail {
    /// The entries after an offset, at most so many; `None` if the first of them is not here.
    pub(crate) fn after(&self, offset: u64, most: usize) -> Option<Vec<Arc<Entry>>> {
        let entries = lock(&self.0);
        let first = entries.front()?.recorded.offset;
        let skipped = usize::try_from((offset + 1).checked_sub(first)?).ok()?;
        Some(entries.iter().skip(skipped).take(most).cloned().collect())
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

/// All tails together.
#[derive(Debug)]
pub(crate) struct Tails {
    most_bytes: usize,
    ages: Mutex<Ages>,
}

#[derive(Debug, Default)]
struct Ages {
    bytes: usize,
    /// Appends from oldest to newest: whose, how many entries, how many bytes.
    appends: VecDeque<(Weak<Tail>, usize, usize)>,
}

impl Tails {
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self {
            most_bytes,
            ages: Mutex::default(),
        }
    }

    /// Adds entries to a tail and makes room elsewhere.
    pub(crate) fn append(&self, tail: &Arc<Tail>, new: &[Arc<Entry>]) {
        let bytes = new.iter().map(|entry| entry.bytes).sum::<usize>();
        tail.push(new);
        let mut ages = lock(&self.ages);
        ages.bytes += bytes;
        ages.appends
            .push_back((Arc::downgrade(tail), new.len(), bytes));
        while ages.bytes > self.most_bytes
            && let Some((oldest, count, freed)) = ages.appends.pop_front()
        {
            ages.bytes -= freed;
            if let Some(oldest) = oldest.upgrade() {
                oldest.drop_oldest(count);
            }
        }
    }

    /// Forgets appends whose session has gone to rest.
    pub(crate) fn sweep(&self) {
        let mut ages = lock(&self.ages);
        let mut freed = 0;
        ages.appends.retain(|(tail, _, bytes)| {
            let gone = tail.strong_count() == 0;
            freed += if gone { *bytes } else { 0 };
            !gone
        });
        ages.bytes -= freed;
    }

    /// Bytes held, about.
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.ages).bytes
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
    fn a_reader_gets_what_lies_after_its_offset() {
        let (tails, tail) = (Tails::new(1_000_000), Arc::new(Tail::default()));
        assert_eq!(offsets(tail.after(0, 10)), None);
        tails.append(&tail, &entries(5..=9));
        assert_eq!(offsets(tail.after(4, 10)), Some(vec![5, 6, 7, 8, 9]));
        assert_eq!(offsets(tail.after(6, 2)), Some(vec![7, 8]));
        assert_eq!(offsets(tail.after(9, 2)), Some(vec![]));
        assert_eq!(offsets(tail.after(3, 10)), None, "4 is not here");
    }

    #[test]
    fn the_oldest_go_first_in_whichever_session() {
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
    fn a_session_at_rest_holds_nothing() {
        let tails = Tails::new(1_000_000);
        let tail = Arc::new(Tail::default());
        tails.append(&tail, &entries(1..=5));
        drop(tail);
        tails.sweep();
        assert_eq!(tails.bytes(), 0);
    }

    #[test]
    fn a_frame_is_made_once() {
        let entry = &entries(1..=1)[0];
        let first = entry.frame(|_| "made".into());
        let second = entry.frame(|_| unreachable!("it was made before"));
        assert_eq!(first, second);
    }
}
