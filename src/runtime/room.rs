//! How much an agent may say ahead of the journal, in bytes: a channel alone counts messages, and one
//! message can be large.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::talk::FromAgent;

/// In units of this many bytes.
const UNIT: usize = 1_024;
/// All of it: 1 MiB.
const UNITS: usize = 1_024;

/// The room between an agent and its session.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<Semaphore>);

impl Room {
    /// Empty.
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(UNITS)))
    }

    /// Waits until something of that size fits. Taken only when [`Taken::keep`] is called, hence
    /// cancel-safe.
    pub(super) async fn take(&self, bytes: usize) -> Taken<'_> {
        // Never closed.
        Taken(self.0.acquire_many(units(bytes)).await.ok())
    }

    /// The same without waiting; none if it does not fit now.
    pub(super) fn try_take(&self, bytes: usize) -> Option<Taken<'_>> {
        let permit = self.0.try_acquire_many(units(bytes)).ok()?;
        Some(Taken(Some(permit)))
    }

    /// How much room what was said takes.
    pub(crate) fn taken_by(said: &[FromAgent]) -> usize {
        said.iter().map(|said| units(said.bytes()) as usize).sum()
    }

    /// So much was written down and takes no room any more.
    pub(crate) fn give_back(&self, taken: usize) {
        self.0.add_permits(taken);
    }
}

/// Room that is about to be filled.
pub(super) struct Taken<'a>(Option<tokio::sync::SemaphorePermit<'a>>);

impl Taken<'_> {
    /// It is filled, until it is given back.
    pub(super) fn keep(self) {
        if let Some(permit) = self.0 {
            permit.forget();
        }
    }
}

fn units(bytes: usize) -> u32 {
    let units = bytes.div_ceil(UNIT).clamp(1, UNITS);
    u32::try_from(units).unwrap_or(u32::MAX)
}
