//! Expiring LRU: a bounded map whose entries expire.
//!
//! An entry lives for `lifetime` after it was last touched. A full map evicts the least recently
//! touched key for a new one, so it neither grows nor locks newcomers out; the price is that a client
//! with more keys than the map holds can have others forgotten early. Entries stand in the order of
//! their last touch, so a sweep costs what it drops; callers pass times that never go back.
//!
//! Around `hashlink`, which sqlx brings anyway. Not `lru`: it allocates its capacity at once or, unbounded,
//! gives no memory back after a flood.

use std::hash::{Hash, RandomState};
use std::num::NonZeroU32;
use std::time::Duration;

use hashlink::LinkedHashMap;

/// A bounded map of values by key, in the order of the last touch.
#[derive(Debug)]
pub(super) struct ExpiringLru<K, V> {
    /// Hashed by std's keyed hasher: clients choose keys.
    entries: LinkedHashMap<K, Entry<V>, RandomState>,
    capacity: usize,
    lifetime: Duration,
}

#[derive(Debug)]
struct Entry<V> {
    touched: Duration,
    value: V,
}

impl<K: Hash + Eq + Clone, V: Default> ExpiringLru<K, V> {
    pub(super) fn new(capacity: NonZeroU32, lifetime: Duration) -> Self {
        Self {
            entries: LinkedHashMap::with_hasher(RandomState::new()),
            capacity: capacity.get() as usize,
            lifetime,
        }
    }

    /// The value of a key that has not expired; does not touch it.
    pub(super) fn get_mut(&mut self, key: &K, now: Duration) -> Option<&mut V> {
        let entry = self.entries.get_mut(key)?;
        (entry.touched + self.lifetime > now).then_some(&mut entry.value)
    }

    /// Touches a key and returns its value; a new or expired key starts from default.
    pub(super) fn touch(&mut self, key: &K, now: Duration) -> &mut V {
        let known = self.entries.remove(key);
        let known = known.filter(|entry| entry.touched + self.lifetime > now);
        let value = known.map(|entry| entry.value).unwrap_or_default();
        if self.entries.len() >= self.capacity {
            self.entries.pop_front();
        }
        let entry = Entry {
            touched: now,
            value,
        };
        &mut self.entries.entry(key.clone()).or_insert(entry).value
    }

    pub(super) fn remove(&mut self, key: &K) {
        self.entries.remove(key);
    }

    /// Drops up to `at_most` expired entries and returns how many there were.
    pub(super) fn sweep(&mut self, now: Duration, at_most: usize) -> usize {
        let mut dropped = 0;
        while dropped < at_most && self.oldest_is_expired(now) {
            self.entries.pop_front();
            dropped += 1;
        }
        if self.entries.capacity() > 1024 && self.entries.len() < self.entries.capacity() / 8 {
            self.entries.shrink_to_fit();
        }
        dropped
    }

    /// The number of keys held, expired ones included.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    fn oldest_is_expired(&self, now: Duration) -> bool {
        let oldest = self.entries.front();
        oldest.is_some_and(|(_, entry)| entry.touched + self.lifetime <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(10);

    fn map(capacity: u32) -> ExpiringLru<&'static str, u32> {
        ExpiringLru::new(NonZeroU32::new(capacity).unwrap(), LIFETIME)
    }

    fn at(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn a_full_map_evicts_the_least_recently_touched_key() {
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
        assert_eq!(map.len(), 0);
    }

    #[test]
    fn memory_is_given_back_after_a_flood() {
        let mut map = ExpiringLru::<u32, u32>::new(NonZeroU32::new(10_000).unwrap(), LIFETIME);
        for key in 0..20_000 {
            map.touch(&key, at(0));
        }
        assert_eq!(map.len(), 10_000);
        map.sweep(at(10), usize::MAX);
        assert_eq!(map.len(), 0);
        assert!(map.entries.capacity() < 1024);
    }
}
