//! Pending requests: what each unanswered request to an agent was for, by its number. Pure.

use std::collections::HashMap;

use serde_json::Value;

/// Numbers requests and keeps what each was for until it is answered.
#[derive(Debug)]
pub(super) struct PendingRequests<K> {
    next: u64,
    waiting: HashMap<u64, K>,
}

impl<K> PendingRequests<K> {
    /// Nothing waits; the first request gets this number.
    pub(super) fn numbered_from(first: u64) -> Self {
        Self {
            next: first,
            waiting: HashMap::new(),
        }
    }

    pub(super) fn add(&mut self, request: K) -> u64 {
        let id = self.next;
        self.next += 1;
        self.waiting.insert(id, request);
        id
    }

    pub(super) fn take(&mut self, id: u64) -> Option<K> {
        self.waiting.remove(&id)
    }

    /// Removes the request that a response with this id answers, and returns it with its number.
    pub(super) fn take_answered(&mut self, id: &Value) -> Option<(u64, K)> {
        let id = id.as_u64()?;
        Some((id, self.take(id)?))
    }
}
