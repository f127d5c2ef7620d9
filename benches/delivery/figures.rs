//! The figures, each measured on all servers in turn.

use std::time::{Duration, Instant};

use crate::client::{Client, LARGE_BUFFER, SMALL_BUFFER};
use crate::load::{self, Reading};
use crate::report::Runs;
use crate::resting::IdleSessions;
use crate::server::{Kind, Server};

/// Idle connections.
pub(crate) const IDLE: usize = 10_000;
const SESSIONS: usize = 1_000;
const READERS: usize = 1_000;
/// Rounds per server; the median counts.
const ROUNDS: usize = 3;

/// Memory of idle connections.
pub(crate) async fn idle() {
    let figure = Runs::measure(1, resident_each).await.median(|kib| *kib);
    let what = format!("idle, memory per authenticated connection with its session, at {IDLE}");
    let reached = figure.gateway <= 10.0;
    figure.print(&what, "KiB", Some(("at most 10 KiB", reached)));
}

async fn resident_each(kind: Kind) -> f64 {
    let server = Server::start(kind);
    let before = server.resident_kib();
    let mut held = Vec::with_capacity(IDLE);
    for _ in 0..IDLE {
        held.push(Client::join(&server, "", SMALL_BUFFER).await);
    }
    // Memory used only for joining is given back by then.
    tokio::time::sleep(Duration::from_secs(2)).await;
    (server.resident_kib() - before) / IDLE as f64
}

/// Many sessions that stream slowly: the usual load.
pub(crate) async fn stream() {
    let measure = async |kind| load::sessions(&Server::start(kind), SESSIONS).await;
    let runs = Runs::measure(ROUNDS, measure).await;
    let name = format!("stream, {SESSIONS} sessions with an event each 50 ms");
    print_load(&name, &runs);
    let cpu = runs.median(|run| run.cpu_micros);
    let reached = cpu.ratio() <= 1.3;
    let what = format!("{name}, server CPU per durable event delivered");
    cpu.print(&what, "µs", Some(("at most 1.3 times", reached)));
    let median = runs.median(|run| run.median_millis);
    let reached = median.excess() <= 2.0;
    let goal = Some(("at most 2 ms more", reached));
    median.print(&format!("{name}, median latency"), "ms", goal);
    let p99 = runs.median(|run| run.p99_millis);
    p99.print(&format!("{name}, 99th percentile of latency"), "ms", None);
}

/// Shows that all servers had the same load.
fn print_load(name: &str, runs: &Runs<Reading>) {
    let rate = runs.median(|run| run.per_second);
    rate.print(&format!("{name}, in all"), "events/s", None);
    let size = runs.median(|run| run.frame_bytes);
    size.print(&format!("{name}, frames of"), "bytes", None);
}

/// One session as fast as it goes.
pub(crate) async fn hot() {
    let runs = Runs::measure(ROUNDS, burst).await;
    let rate = runs.median(|run| run.per_second);
    let goal = Some(("at least 50000", rate.gateway >= 50_000.0));
    rate.print("hot, durable events of one session", "events/s", goal);
    let cpu = runs.median(|run| run.cpu_micros);
    cpu.print("hot, server CPU per event", "µs", None);
    let joined = runs.median(|run| run.events_per_frame);
    joined.print("hot, events per frame", "events", None);
}

struct Burst {
    per_second: f64,
    cpu_micros: f64,
    /// A lagging reader gets several events in one frame.
    events_per_frame: f64,
}

async fn burst(kind: Kind) -> Burst {
    const EVENTS: u64 = 300_000;
    let server = Server::start(kind);
    let mut client = Client::join(&server, "", LARGE_BUFFER).await;
    let (before, started) = (server.cpu(), Instant::now());
    client.prompt(&format!("/stream {EVENTS}")).await;
    let (frames, last) = client.drain().await;
    let took = started.elapsed();
    let cpu = server.cpu().saturating_sub(before);
    Burst {
        per_second: last as f64 / took.as_secs_f64(),
        cpu_micros: cpu.as_secs_f64() * 1e6 / last as f64,
        events_per_frame: last as f64 / frames as f64,
    }
}

/// One session, many readers.
pub(crate) async fn fanout() {
    let measure = async |kind| load::crowd(&Server::start(kind), READERS).await;
    let runs = Runs::measure(ROUNDS, measure).await;
    let name = format!("fanout, one session with {READERS} readers and an event each 20 ms");
    print_load(&name, &runs);
    let cpu = runs.median(|run| run.cpu_micros);
    let reached = cpu.ratio() <= 1.1;
    let what = format!("{name}, server CPU per delivery");
    cpu.print(&what, "µs", Some(("at most 1.1 times", reached)));
    let median = runs.median(|run| run.median_millis);
    median.print(&format!("{name}, median latency"), "ms", None);
}

/// Does the number of idle sessions in the database matter?
pub(crate) async fn resting() {
    const COUNTS: [u32; 3] = [10, 1_000, 100_000];
    let mut cpu_micros = Vec::new();
    for count in COUNTS {
        let database = IdleSessions::prepare(count).await;
        let measure = async |kind| match kind {
            Kind::Bare => load::sessions(&Server::start(kind), SESSIONS).await,
            Kind::Gateway | Kind::Baseline => {
                load::sessions(&database.gateway(kind), SESSIONS).await
            }
        };
        let runs = Runs::measure(ROUNDS, measure).await;
        let name = format!("resting, {count} idle sessions beside {SESSIONS} that stream");
        let cpu = runs.median(|run| run.cpu_micros);
        cpu.print(&format!("{name}, server CPU per event"), "µs", None);
        let median = runs.median(|run| run.median_millis);
        median.print(&format!("{name}, median latency"), "ms", None);
        cpu_micros.push(cpu.gateway);
    }
    let most = cpu_micros.iter().copied().fold(f64::MIN, f64::max);
    let least = cpu_micros.iter().copied().fold(f64::MAX, f64::min);
    let spread = (most / least - 1.0) * 100.0;
    let verdict = if spread <= 10.0 { "reached" } else { "MISSED" };
    println!("resting, most above least: {spread:.1} %; goal at most 10 %: {verdict}");
}
