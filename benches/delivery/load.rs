//! Load: many readers at once, and what the server spends on them while it only streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::client::{Client, SMALL_BUFFER, offset, recorded_at};
use crate::report::{Percentile, percentile};
use crate::server::{Kind, Server};

/// Between the last prompt and the measurement.
const WARM_UP: Duration = Duration::from_secs(1);
const WINDOW: Duration = Duration::from_secs(4);

/// The measurements of one window.
pub(crate) struct Reading {
    /// Of the server, per event and reader.
    pub(crate) cpu_micros: f64,
    pub(crate) per_second: f64,
    /// From the time stamp in the frame to the client that has read it. The stamp is taken when the
    /// event is made, before the commit, and cut to whole milliseconds: half a millisecond too much
    /// on average, for both servers. It includes the time that the client takes to wake up and read.
    pub(crate) median_millis: f64,
    pub(crate) p99_millis: f64,
    pub(crate) frame_bytes: f64,
}

/// Counters shared by all readers of a run.
#[derive(Default)]
struct Counters {
    /// Whether the window is open.
    open: AtomicBool,
    events: AtomicU64,
    frames: AtomicU64,
    bytes: AtomicU64,
}

/// So many sessions with one reader each; every session has an event each 50 ms. Prompts are sent one
/// after the other over 21 ticks, so that nothing is overrun at the start and the ticks of the
/// sessions are spread evenly over the 50 ms.
pub(crate) async fn sessions(server: &Server, count: usize) -> Reading {
    const TICK: Duration = Duration::from_millis(50);
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        clients.push(Client::join(server, "", SMALL_BUFFER).await);
    }
    let step = (TICK * 21) / u32::try_from(count).unwrap();
    let begin = Instant::now();
    let mut load = Load::default();
    for (place, client) in (0..).zip(clients) {
        load.read(client, Some((begin + step * place, "/stream 1000 50")));
    }
    load.measure(server, begin + TICK * 21).await
}

/// One session with an event each 20 ms, and so many readers.
pub(crate) async fn crowd(server: &Server, count: usize) -> Reading {
    let query = match server.kind {
        Kind::Bare => "?session=any".to_owned(),
        Kind::Gateway | Kind::Baseline => {
            let mut first = Client::join(server, "", SMALL_BUFFER).await;
            first
                .prompt("/echo A session is kept once something is said in it.")
                .await;
            first.drain().await;
            format!("?session={}", first.session)
        }
    };
    let mut load = Load::default();
    let mut writer = Client::join(server, &query, SMALL_BUFFER).await;
    for _ in 1..count {
        load.read(Client::join(server, &query, SMALL_BUFFER).await, None);
    }
    writer.prompt("/stream 1000 20").await;
    load.read(writer, None);
    load.measure(server, Instant::now()).await
}

#[derive(Default)]
struct Load {
    counters: Arc<Counters>,
    readers: JoinSet<Vec<i64>>,
}

impl Load {
    /// Reads until the window has closed, after a prompt at its time.
    fn read(&mut self, mut client: Client, prompt: Option<(Instant, &'static str)>) {
        let counters = Arc::clone(&self.counters);
        self.readers.spawn(async move {
            if let Some((at, text)) = prompt {
                tokio::time::sleep_until(at).await;
                client.prompt(text).await;
            }
            let mut delays = Vec::new();
            let mut before = None;
            loop {
                let frame = client.next().await;
                let Some(offset) = offset(&frame) else {
                    continue;
                };
                // A reader that lags gets several events in one frame.
                let events = before.map_or(1, |before| offset - before);
                before = Some(offset);
                if counters.open.load(Ordering::Relaxed) {
                    counters.events.fetch_add(events, Ordering::Relaxed);
                    counters.frames.fetch_add(1, Ordering::Relaxed);
                    counters
                        .bytes
                        .fetch_add(frame.len() as u64, Ordering::Relaxed);
                    let age = Timestamp::now().duration_since(recorded_at(&frame).unwrap());
                    delays.push(i64::try_from(age.as_micros()).unwrap());
                } else if !delays.is_empty() {
                    return delays;
                }
            }
        });
    }

    async fn measure(self, server: &Server, begun: Instant) -> Reading {
        tokio::time::sleep_until(begun + WARM_UP).await;
        let (started, before) = (Instant::now(), server.cpu());
        self.counters.open.store(true, Ordering::Relaxed);
        tokio::time::sleep(WINDOW).await;
        self.counters.open.store(false, Ordering::Relaxed);
        let (took, cpu) = (started.elapsed(), server.cpu().saturating_sub(before));
        let delays: Vec<f64> = self
            .readers
            .join_all()
            .await
            .into_iter()
            .flatten()
            .map(|micros| micros as f64 / 1e3)
            .collect();
        let events = self.counters.events.load(Ordering::Relaxed) as f64;
        let frames = self.counters.frames.load(Ordering::Relaxed) as f64;
        Reading {
            cpu_micros: cpu.as_secs_f64() * 1e6 / events,
            per_second: events / took.as_secs_f64(),
            median_millis: percentile(&delays, Percentile::Median),
            p99_millis: percentile(&delays, Percentile::P99),
            frame_bytes: self.counters.bytes.load(Ordering::Relaxed) as f64 / frames,
        }
    }
}
