//! Requests on their way to an agent, by the number they were sent under. Pure.

use std::collections::HashMap;

/// What each waiting request was for.
#[derive(Debug)]
pub(super) struct Pending<K> {
    next: u64,
    waiting: HashMap<u64, K>,
}

impl<K> Pending<K> {
    /// Nothing waits; the first request gets this number.
    pub(super) fn from(first: u64) -> Self {
        Self {
            next: first,
            waiting: HashMap::new(),
        }
    }

    /// Notes a request, and gives it its number.
    pub(super) fn add(&mut self, what: K) -> u64 {
        let id = self.next;
        self.next += 1;
        self.waiting.insert(id, what);
        id
    }

    /// What the request was for; it waits no more.
    pub(super) fn take(&mut self, id: u64) -> Option<K> {
        self.waiting.remove(&id)
    }
}
