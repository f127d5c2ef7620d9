//! Drain: reads the rest of a closing stream, and writes the protocol's farewell.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout, timeout_at};

use super::events_out::EventsOut;
use crate::runtime::dialect::StreamKind;
use crate::runtime::dialect_driver::DialectDriver;
use crate::runtime::lines::Lines;
use crate::runtime::transport::ByteStream;

/// How long and how much is read from a stream that is closing.
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_millis(300);
const MAX_DRAINED_BYTES: usize = 2 * 1024 * 1024;
pub(super) const READ_BUFFER_BYTES: usize = 64 * 1024;
const FAREWELL_TIMEOUT: Duration = Duration::from_millis(500);

/// Hands every complete line to the driver.
pub(super) fn take_lines(
    lines: &mut Lines,
    stream: StreamKind,
    driver: &mut DialectDriver,
    now: Instant,
) {
    while let Some(line) = lines.next() {
        driver.read(stream, line, now);
    }
}

/// Reads the rest of a stream, for a moment only: processes that the agent started may go on writing.
pub(super) async fn read_rest(
    source: &mut ByteStream,
    stream: StreamKind,
    lines: &mut Lines,
    events_out: &EventsOut,
    driver: &mut DialectDriver,
) {
    let (mut buffer, mut left) = (vec![0; READ_BUFFER_BYTES], MAX_DRAINED_BYTES);
    let until = Instant::now() + DRAIN_TIMEOUT;
    while left > 0 && Instant::now() < until {
        let Ok(Ok(read @ 1..)) = timeout_at(until, source.reader.read(&mut buffer)).await else {
            return;
        };
        left = left.saturating_sub(read);
        lines.push(&buffer[..read]);
        take_lines(lines, stream, driver, Instant::now());
        if !driver.can_read() {
            events_out.flush(driver, DRAIN_TIMEOUT).await;
        }
    }
}

/// Writes the protocol's farewell, unless it would queue behind bytes that the agent did not read.
pub(super) async fn write_farewell(main: &mut ByteStream, driver: &mut DialectDriver) {
    if !driver.unwritten(StreamKind::Main).is_empty() {
        return;
    }
    driver.close(Instant::now());
    let farewell = driver.unwritten(StreamKind::Main).to_vec();
    let writing = async {
        main.writer.write_all(&farewell).await?;
        main.writer.shutdown().await
    };
    drop(timeout(FAREWELL_TIMEOUT, writing).await);
}
