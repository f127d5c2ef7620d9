//! A map that remembers who was there lately, and no more of them than it may.
//!
//! An entry lives for `lifetime` after it was last touched. A full map makes room for a newcomer
//! by forgetting whoever was touched longest ago, so it neither grows nor shuts anyone out; the
//! price is that somebody with more keys than the map holds can have others forgotten early.
//! Entries stand in the order of their last touch, which makes finding the oldest logarithmic and
//! a sweep proportional to what it drops. Time is an argument. Touches nothing else.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

/// A bounded map of values by key, ordered by last touch.
#[derive(Debug)]
pub(super) struct RecentMap<K, V> {
    entries: HashMap<K, Entry<V>>,
    order: BTreeMap<Place, K>,
    touches: u64,
    capacity: usize,
    lifetime: Duration,
}

#[derive(Debug)]
struct Entry<V> {
    place: Place,
    value: V,
}

/// Where an entry stands: by time, then by sequence within the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    touched: Duration,
    touch: u64,
}

impl<K: Hash + Eq + Clone, V: Default> RecentMap<K, V> {
    /// An empty map for at most `capacity` keys.
    pub(super) fn new(capacity: NonZeroU32, lifetime: Duration) -> Self {
        Self {
            entries: HashMap::new(),
            order: BTreeMap::new(),
            touches: 0,
            capacity: capacity.get() as usize,
            lifetime,
        }
    }

    /// The value of a key whose time is not up; looking is no touch.
    pub(super) fn get_mut(&mut self, key: &K, now: Duration) -> Option<&mut V> {
        let entry = self.entries.get_mut(key)?;
        (entry.place.touched + self.lifetime > now).then_some(&mut entry.value)
    }

    /// The value of a key, which becomes the youngest; a new or expired key starts from default.
    pub(super) fn touch(&mut self, key: &K, now: Duration) -> &mut V {
        let value = self.take(key, now).unwrap_or_default();
        if self.entries.len() >= self.capacity {
            self.forget_oldest();
        }
        self.touches += 1;
        let place = Place {
            touched: now,
            touch: self.touches,
        };
        self.order.insert(place, key.clone());
        let entry = self.entries.entry(key.clone());
        &mut entry.insert_entry(Entry { place, value }).into_mut().value
    }

    /// Forgets one key.
    pub(super) fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.place);
        }
    }

    /// Drops up to `at_most` expired entries and says how many there were.
    pub(super) fn sweep(&mut self, now: Duration, at_most: usize) -> usize {
        let mut dropped = 0;
        while dropped < at_most && self.oldest_is_expired(now) {
            self.forget_oldest();
            dropped += 1;
        }
        if self.entries.capacity() > 1024 && self.entries.len() < self.entries.capacity() / 8 {
            self.entries.shrink_to(self.entries.len() * 2);
        }
        dropped
    }

    /// The number of keys held, expired ones included.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    fn take(&mut self, key: &K, now: Duration) -> Option<V> {
        let Entry { place, value } = self.entries.remove(key)?;
        self.order.remove(&place);
        (place.touched + self.lifetime > now).then_some(value)
    }

    fn oldest_is_expired(&self, now: Duration) -> bool {
        self.order
            .first_key_value()
            .is_some_and(|(place, _)| place.touched + self.lifetime <= now)
    }

    fn forget_oldest(&mut self) {
        if let Some((_, key)) = self.order.pop_first() {
            self.entries.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(10);

    fn map(capacity: u32) -> RecentMap<&'static str, u32> {
        RecentMap::new(NonZeroU32::new(capacity).unwrap(), LIFETIME)
    }

    fn at(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn a_full_map_forgets_whoever_was_touched_longest_ago() {
        let mut map = map(2);
        *map.touch(&"a", at(0)) = 1;
        *map.touch(&"b", at(0)) = 2;
        map.touch(&"a", at(0));
        map.touch(&"c", at(0));
        assert_eq!(map.len(), 2);
        assert_eq!(map.get_mut(&"a", at(0)), Some(&mut 1));
        assert_eq!(map.get_mut(&"b", at(0)), None);
    }

    #[test]
    fn an_expired_value_is_neither_seen_nor_continued() {
        let mut map = map(2);
        *map.touch(&"a", at(0)) = 1;
        assert_eq!(map.get_mut(&"a", at(9)), Some(&mut 1));
        assert_eq!(map.get_mut(&"a", at(10)), None);
        assert_eq!(*map.touch(&"a", at(10)), 0);
    }

    #[test]
    fn a_sweep_drops_the_expired_and_only_so_many() {
        let mut map = map(10);
        for key in ["a", "b", "c"] {
            map.touch(&key, at(0));
        }
        map.touch(&"d", at(1));
        assert_eq!(map.sweep(at(10), 2), 2);
        assert_eq!(map.sweep(at(10), 2), 1);
        assert_eq!(map.len(), 1);
        map.remove(&"d");
        assert_eq!((map.len(), map.order.len()), (0, 0));
    }

    #[test]
    fn memory_is_given_back_after_a_flood() {
        let mut map = RecentMap::<u32, u32>::new(NonZeroU32::new(10_000).unwrap(), LIFETIME);
        for key in 0..20_000 {
            map.touch(&key, at(0));
        }
        assert_eq!((map.len(), map.order.len()), (10_000, 10_000));
        map.sweep(at(10), usize::MAX);
        assert_eq!(map.len(), 0);
        assert!(map.entries.capacity() < 1024);
    }
}
