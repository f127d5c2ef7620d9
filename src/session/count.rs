//! The registry of sessions as those see it who run the gateway.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::keeper::Keeper;
use super::{Config, JournalConfig, Parts, Sessions};
use crate::store::AuditConfig;

impl Sessions {
    /// The one who makes room.
    pub(crate) fn keeper(
        &self,
        config: &Config,
        journal: &JournalConfig,
        audit: &AuditConfig,
    ) -> Keeper {
        let Parts {
            store, clock, live, ..
        } = &*self.parts;
        let (store, live) = (Arc::clone(store), live.clone());
        Keeper::new(store, clock.clone(), live, config, journal, audit)
    }

    /// Counts the sessions in the database, for the metrics. Every so often, as it reads all of them.
    pub(crate) async fn count_stored(&self) {
        let Ok(counts) = self.parts.store.counts().await else {
            return;
        };
        let sessions = i64::try_from(counts.sessions).unwrap_or(i64::MAX);
        self.parts.metrics.stored.store(sessions, Ordering::Relaxed);
    }

    /// How many sessions are awake on this node, by agent. One in which nothing was said yet is none.
    pub(crate) fn awake_by_agent(&self) -> BTreeMap<String, usize> {
        let mut awake = BTreeMap::new();
        let live = self.parts.live.lock();
        for session in live
            .values()
            .filter(|session| session.0.asks.get().is_some())
        {
            *awake.entry(session.agent().to_owned()).or_default() += 1;
        }
        awake
    }
}
