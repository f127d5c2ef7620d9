//! Demo agent: built in and deterministic, so that users and tests can try every feature.
//!
//! This is its task: it takes commands and runs its `schedule`. `script` turns a prompt into steps,
//! `dialogs` holds its questions, `sample_content` its sample answers, `query_answers` what it reports
//! about itself. It takes commands also while its events are not read, hence a cancel works at any time.

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

mod dialogs;
mod query_answers;
mod sample_content;
mod schedule;
mod script;
#[cfg(test)]
mod tests;

use super::throttle::{DEMO_BURST_BYTES, Throttle};
use super::{FromAgent, ToAgent};
use schedule::{NextAction, Schedule};

pub(super) const CAPABILITIES: &str = "cancel thoughts plan usage tools questions queue steer followUp \
    context setTools query extension branch";

/// Events sent before other tasks get their turn.
const MAX_BURST: usize = 256;

/// While it hangs it does nothing at all; what is said meanwhile waits for its turn.
pub(super) fn can_be_steered(prompt: &str) -> bool {
    prompt.split_whitespace().next() != Some("/hang")
}

/// Runs until the session closes or a script crashes it.
pub(super) async fn run(mut commands: mpsc::Receiver<ToAgent>, events: mpsc::Sender<FromAgent>) {
    let mut schedule = Schedule::default();
    let mut throttle = Throttle::new(DEMO_BURST_BYTES, Instant::now());
    loop {
        let next = schedule.next();
        let throttled = throttle.waits_until(Instant::now());
        if next == NextAction::Crash {
            return;
        }
        // All three are cancel-safe: a command stays in its channel, a permit is given back, and
        // the schedule remembers its deadline.
        tokio::select! {
            biased;
            // Commands first, so that a cancel stops further events. Off only while replies wait to
            // be sent.
            command = commands.recv(), if schedule.can_take_commands() => match command {
                Some(command) => schedule.handle_command(command),
                None => return,
            },
            permit = events.reserve(), if next == NextAction::Send && throttled.is_none() => {
                let Ok(permit) = permit else { return };
                let mut bytes = send_next(&mut schedule, permit);
                bytes += send_burst(&mut schedule, &commands, &events);
                throttle.spend(bytes, Instant::now());
                tokio::task::yield_now().await;
            }
            () = sleep_until(throttled.unwrap_or_else(Instant::now)), if throttled.is_some() => {}
            () = sleep_until(schedule.wait_deadline()), if next == NextAction::Wait => schedule.finish_wait(),
        }
    }
}

/// Sends the next event; returns its bytes.
fn send_next(schedule: &mut Schedule, permit: mpsc::Permit<'_, FromAgent>) -> usize {
    let Some(event) = schedule.pop_event() else {
        return 0;
    };
    let bytes = event.bytes();
    permit.send(event);
    bytes
}

/// Sends as many events as fit, so that the session takes them in one batch. Stops early for a command.
/// Returns their bytes.
fn send_burst(
    schedule: &mut Schedule,
    commands: &mpsc::Receiver<ToAgent>,
    events: &mpsc::Sender<FromAgent>,
) -> usize {
    let mut bytes = 0;
    for _ in 1..MAX_BURST {
        if schedule.next() != NextAction::Send || !commands.is_empty() {
            break;
        }
        let Ok(permit) = events.try_reserve() else {
            break;
        };
        bytes += send_next(schedule, permit);
    }
    bytes
}
