//! The demo agent: built in, deterministic, and obedient, so that people and tests can try everything.
//!
//! This is the task: it hears the session and plays what the `agenda` holds. What a prompt makes it
//! do is written in `script`, its questions in `scene`, what it shows in `showcase`, what it tells
//! about itself in `facts`. It hears also while nobody reads what it says, hence a cancel works at any
//! time.

use tokio::sync::mpsc;
use tokio::time::sleep_until;

mod agenda;
mod facts;
mod scene;
mod script;
mod showcase;
#[cfg(test)]
mod tests;

use super::{FromAgent, ToAgent};
use agenda::{Agenda, Next};

/// What it can do, in words that clients know.
pub(super) const CAPABILITIES: &[&str] = &[
    "cancel",
    "thoughts",
    "plan",
    "usage",
    "tools",
    "questions",
    "queue",
    "steer",
    "followUp",
    "context",
    "setTools",
    "query",
    "extension",
    "branch",
];

/// How much is said at once before others get their turn.
const BURST: usize = 256;

/// Plays until the session is gone or a script says so.
pub(super) async fn run(mut commands: mpsc::Receiver<ToAgent>, back: mpsc::Sender<FromAgent>) {
    let mut agenda = Agenda::default();
    loop {
        let next = agenda.next();
        if next == Next::Crash {
            return;
        }
        // All three are cancel-safe: a command stays in the channel, a place in the other channel is
        // given back, and the agenda remembers until when to wait.
        tokio::select! {
            biased;
            // A cancel is heard before anything more is said. Off only while there is something to tell.
            command = commands.recv(), if agenda.has_room() => match command {
                Some(command) => agenda.hear(command),
                None => return,
            },
            place = back.reserve(), if next == Next::Tell => {
                let Ok(place) = place else { return };
                if let Some(told) = agenda.take() {
                    place.send(told);
                }
                tell_at_once(&mut agenda, &commands, &back);
                tokio::task::yield_now().await;
            }
            () = sleep_until(agenda.waits_until()), if next == Next::Wait => agenda.skip(),
        }
    }
}

/// Tells as much as there is room for, so that the session finds many at once. Ends early when there
/// is something to hear.
fn tell_at_once(
    agenda: &mut Agenda,
    commands: &mpsc::Receiver<ToAgent>,
    back: &mpsc::Sender<FromAgent>,
) {
    for _ in 1..BURST {
        if agenda.next() != Next::Tell || !commands.is_empty() {
            return;
        }
        let Ok(place) = back.try_reserve() else {
            return;
        };
        if let Some(told) = agenda.take() {
            place.send(told);
        }
    }
}
