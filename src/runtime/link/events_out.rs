//! Events out: sends a link's events to its session, within the channel's and the budget's bounds.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use crate::limits::ByteBudget;
use crate::runtime::dialect_driver::DialectDriver;
use crate::runtime::link_failure::LinkFailure;
use crate::runtime::messages::{FromAgent, ToAgent};

/// How long a link that failed waits for a command to refuse.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);

pub(in crate::runtime) type Commands = mpsc::Receiver<ToAgent>;

pub(super) struct EventsOut {
    pub(super) events: mpsc::Sender<FromAgent>,
    /// Bytes sent and not committed yet; the session gives them back.
    pub(super) budget: ByteBudget,
}

impl EventsOut {
    /// Waits for room for an event of this size; for ever if there is none. Returns nothing once the
    /// session is gone. Cancel-safe.
    pub(super) async fn reserve(
        &self,
        bytes: Option<usize>,
    ) -> Option<mpsc::Permit<'_, FromAgent>> {
        let Some(bytes) = bytes else {
            return std::future::pending().await;
        };
        let taken = self.budget.take(bytes).await;
        let permit = self.events.reserve().await.ok()?;
        taken.keep();
        Some(permit)
    }

    /// Sends as many events as fit now, so that the session finds many at once.
    pub(super) fn send_ready(&self, driver: &mut DialectDriver) {
        while let Some(bytes) = driver.next_event_bytes() {
            let Some(taken) = self.budget.try_take(bytes) else {
                return;
            };
            let Ok(permit) = self.events.try_reserve() else {
                return;
            };
            taken.keep();
            send_next(permit, driver);
        }
    }

    /// Sends all events that are left, until the session is gone or the time is over.
    pub(super) async fn flush(&self, driver: &mut DialectDriver, within: Duration) {
        let sending = async {
            while driver.next_event_bytes().is_some() {
                let Some(permit) = self.reserve(driver.next_event_bytes()).await else {
                    return;
                };
                send_next(permit, driver);
            }
        };
        drop(timeout(within, sending).await);
    }

    /// There is no agent: the first prompt or request gets the reason.
    pub(super) async fn refuse_next(&self, commands: &mut Commands, failure: &LinkFailure) {
        let until = Instant::now() + REFUSAL_TIMEOUT;
        while let Ok(Some(command)) = timeout_at(until, commands.recv()).await {
            let events = match command {
                ToAgent::Prompt { run, .. } | ToAgent::Resume { run, .. } => failure.ends(run),
                ToAgent::Request { id, .. } => vec![FromAgent::Response {
                    id,
                    result: Err(failure.declined.clone()),
                }],
                _ => continue,
            };
            for event in events {
                let reserved = timeout_at(until, self.reserve(Some(event.bytes())));
                if let Ok(Some(permit)) = reserved.await {
                    permit.send(event);
                }
            }
            return;
        }
    }
}

pub(super) fn send_next(permit: mpsc::Permit<'_, FromAgent>, driver: &mut DialectDriver) {
    if let Some(event) = driver.take_event() {
        permit.send(event);
    }
}
