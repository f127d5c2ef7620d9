//! The line to an agent: what is read from it, and the last word on it.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::mouth::Mouth;

use crate::runtime::dialect::Lane;
use crate::runtime::interpreter::Interpreter;
use crate::runtime::lines::Lines;
use crate::runtime::process::Process;
use crate::runtime::transport::Wire;
use crate::runtime::workshop::Opened;

/// After its end, the rest of what it said is read for so long, and so much of it.
pub(super) const LAST_LINES: Duration = Duration::from_millis(300);
const MOST_LEFT: usize = 2 * 1024 * 1024;
const BUFFER: usize = 64 * 1024;
/// For the protocol's own goodbye to be written.
const GOODBYE: Duration = Duration::from_millis(500);

/// Takes in every whole line.
pub(super) fn take(lines: &mut Lines, lane: Lane, interpreter: &mut Interpreter, now: Instant) {
    while let Some(line) = lines.next() {
        interpreter.read(lane, line, now);
    }
}

pub(super) async fn read_events(events: &mut Option<Wire>, buffer: &mut [u8]) -> Option<usize> {
    match events {
        None => std::future::pending().await,
        Some(wire) => wire.reader.read(buffer).await.ok().filter(|read| *read > 0),
    }
}

pub(super) async fn ended(process: &mut Option<Process>) {
    match process {
        None => std::future::pending().await,
        Some(process) => drop(process.wait().await),
    }
}

pub(super) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Reads what is left on a line that is closing: for a moment only, since whatever the agent has
/// started may go on writing.
pub(super) async fn rest(
    wire: &mut Wire,
    lane: Lane,
    lines: &mut Lines,
    mouth: &Mouth,
    interpreter: &mut Interpreter,
) {
    let (mut buffer, mut left) = (vec![0; BUFFER], MOST_LEFT);
    let until = Instant::now() + LAST_LINES;
    while left > 0 && Instant::now() < until {
        let Ok(Ok(read @ 1..)) = timeout_at(until, wire.reader.read(&mut buffer)).await else {
            return;
        };
        left = left.saturating_sub(read);
        lines.push(&buffer[..read]);
        take(lines, lane, interpreter, Instant::now());
        if !interpreter.is_heard() {
            mouth.tell_all(interpreter, LAST_LINES).await;
        }
    }
}

/// The protocol's own goodbye, unless it would end up behind something that the agent did not read.
pub(super) async fn goodbye(opened: &mut Opened, interpreter: &mut Interpreter) {
    if !interpreter.unwritten(Lane::Main).is_empty() {
        return;
    }
    interpreter.close(Instant::now());
    let words = interpreter.unwritten(Lane::Main).to_vec();
    let saying = async {
        opened.main.writer.write_all(&words).await?;
        opened.main.writer.shutdown().await
    };
    drop(timeout(GOODBYE, saying).await);
}
