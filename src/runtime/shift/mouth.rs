//! The way between an agent's task and its session.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use crate::domain::run::RunOutcome;
use crate::runtime::interpreter::Interpreter;
use crate::runtime::room::Room;
use crate::runtime::talk::{Declined, FromAgent, ToAgent};

/// How long whoever was refused may take to hear it.
const FAREWELL: Duration = Duration::from_secs(2);

/// What the session says.
pub(super) type Ears = mpsc::Receiver<ToAgent>;

/// The way to the session.
pub(super) struct Mouth {
    pub(super) back: mpsc::Sender<FromAgent>,
    pub(super) room: Room,
}

impl Mouth {
    /// Waits until there is room for what is to be told next, of that size. Cancel-safe.
    pub(super) async fn place(&self, bytes: Option<usize>) -> Option<mpsc::Permit<'_, FromAgent>> {
        let Some(bytes) = bytes else {
            return std::future::pending().await;
        };
        let room = self.room.take(bytes).await;
        let permit = self.back.reserve().await.ok()?;
        room.keep();
        Some(permit)
    }

    /// Tells as much as there is room for now, so that the session finds many at once.
    pub(super) fn tell_at_once(&self, interpreter: &mut Interpreter) {
        while let Some(bytes) = interpreter.next_told() {
            let Some(room) = self.room.try_take(bytes) else {
                return;
            };
            let Ok(place) = self.back.try_reserve() else {
                return;
            };
            room.keep();
            tell(place, interpreter);
        }
    }

    /// Tells everything that is left, as long as the session listens and no longer than `patience`.
    pub(super) async fn tell_all(&self, interpreter: &mut Interpreter, patience: Duration) {
        if interpreter.next_told().is_none() {
            return;
        }
        let telling = async {
            while let Some(place) = self.place(interpreter.next_told()).await {
                match interpreter.take_told() {
                    Some(said) => place.send(said),
                    None => return,
                }
                if interpreter.next_told().is_none() {
                    return;
                }
            }
        };
        drop(timeout(patience, telling).await);
    }

    /// There is no agent: whoever asks first hears why.
    pub(super) async fn refuse(&self, ears: &mut Ears, declined: &Declined) {
        let until = Instant::now() + FAREWELL;
        while let Ok(Some(command)) = timeout_at(until, ears.recv()).await {
            let said = match command {
                ToAgent::Prompt { run, .. } => FromAgent::Ended {
                    run,
                    outcome: RunOutcome::Failed {
                        code: declined.code,
                        message: declined.message.clone(),
                    },
                    usage: None,
                },
                ToAgent::Inquire { id, .. } => FromAgent::Told {
                    id,
                    answer: Err(declined.clone()),
                },
                _ => continue,
            };
            if let Ok(Some(place)) = timeout_at(until, self.place(Some(said.bytes()))).await {
                place.send(said);
            }
            return;
        }
    }
}

/// Tells what is to be told next.
pub(super) fn tell(place: mpsc::Permit<'_, FromAgent>, interpreter: &mut Interpreter) {
    if let Some(said) = interpreter.take_told() {
        place.send(said);
    }
}
