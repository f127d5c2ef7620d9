//! The line to an agent: what is read from it, and the last word on it.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep_until, timeout};

use crate::runtime::dialect::Lane;
use crate::runtime::interpreter::Interpreter;
use crate::runtime::lines::Lines;
use crate::runtime::process::Process;
use crate::runtime::transport::Wire;
use crate::runtime::workshop::Opened;

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

/// The protocol's own goodbye.
pub(super) async fn goodbye(opened: &mut Opened, interpreter: &mut Interpreter) {
    interpreter.close(Instant::now());
    let words = interpreter.unwritten(Lane::Main).to_vec();
    let saying = async {
        opened.main.writer.write_all(&words).await?;
        opened.main.writer.shutdown().await
    };
    drop(timeout(GOODBYE, saying).await);
}
