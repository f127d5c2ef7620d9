//! The figures, each for both servers in turn.

use std::time::{Duration, Instant};

use crate::client::{Client, FEW, MUCH};
use crate::load::{self, Reading};
use crate::report::Pair;
use crate::resting::Resting;
use crate::server::{Kind, Server};

/// Open connections of which nobody does anything.
pub(crate) const IDLE: usize = 10_000;
const SESSIONS: usize = 1_000;
const READERS: usize = 1_000;
/// Of each server, in turn; the median counts.
const RUNS: usize = 3;

/// Memory of connections that are only open.
pub(crate) async fn idle() {
    let pair = Pair {
        gateway: resident_each(Kind::Gateway).await,
        bare: resident_each(Kind::Bare).await,
    };
    let what = format!("idle, memory per authenticated connection with its session, at {IDLE}");
    let reached = pair.gateway <= 10.0;
    pair.print(&what, "KiB", Some(("at most 10 KiB", reached)));
}

async fn resident_each(kind: Kind) -> f64 {
    let server = Server::start(kind);
    let before = server.resident_kib();
    let mut held = Vec::with_capacity(IDLE);
    for _ in 0..IDLE {
        held.push(Client::join(&server, "", FEW).await);
    }
    // What was in use only while they joined is given back by then.
    tokio::time::sleep(Duration::from_secs(2)).await;
    (server.resident_kib() - before) / IDLE as f64
}

/// Many sessions that stream slowly: what most of a day is like.
pub(crate) async fn stream() {
    let (mut gateway, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        bare.push(load::sessions(&Server::start(Kind::Bare), SESSIONS).await);
        gateway.push(load::sessions(&Server::start(Kind::Gateway), SESSIONS).await);
    }
    let name = format!("stream, {SESSIONS} sessions with an event each 50 ms");
    print_load(&name, &gateway, &bare);
    let cpu = Pair::median(&gateway, &bare, |run| run.cpu_micros);
    let reached = cpu.ratio() <= 1.3;
    let what = format!("{name}, server CPU per durable event delivered");
    cpu.print(&what, "µs", Some(("at most 1.3 times", reached)));
    let median = Pair::median(&gateway, &bare, |run| run.median_millis);
    let reached = median.excess() <= 2.0;
    let goal = Some(("at most 2 ms more", reached));
    median.print(&format!("{name}, median latency"), "ms", goal);
    let p99 = Pair::median(&gateway, &bare, |run| run.p99_millis);
    p99.print(&format!("{name}, 99th percentile of latency"), "ms", None);
}

/// Shows that both servers were given the same to do.
fn print_load(name: &str, gateway: &[Reading], bare: &[Reading]) {
    let rate = Pair::median(gateway, bare, |run| run.per_second);
    rate.print(&format!("{name}, in all"), "events/s", None);
    let size = Pair::median(gateway, bare, |run| run.frame_bytes);
    size.print(&format!("{name}, frames of"), "bytes", None);
}

/// One session as fast as it goes.
pub(crate) async fn hot() {
    let (mut gateway, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        bare.push(burst(Kind::Bare).await);
        gateway.push(burst(Kind::Gateway).await);
    }
    let rate = Pair::median(&gateway, &bare, |run| run.per_second);
    let goal = Some(("at least 50000", rate.gateway >= 50_000.0));
    rate.print("hot, durable events of one session", "events/s", goal);
    let cpu = Pair::median(&gateway, &bare, |run| run.cpu_micros);
    cpu.print("hot, server CPU per event", "µs", None);
    let joined = Pair::median(&gateway, &bare, |run| run.events_per_frame);
    joined.print("hot, events per frame", "events", None);
}

struct Burst {
    per_second: f64,
    cpu_micros: f64,
    /// A reader that lags gets several in one.
    events_per_frame: f64,
}

async fn burst(kind: Kind) -> Burst {
    const EVENTS: u64 = 300_000;
    let server = Server::start(kind);
    let mut client = Client::join(&server, "", MUCH).await;
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
    let (mut gateway, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        bare.push(load::crowd(&Server::start(Kind::Bare), READERS).await);
        gateway.push(load::crowd(&Server::start(Kind::Gateway), READERS).await);
    }
    let name = format!("fanout, one session with {READERS} readers and an event each 20 ms");
    print_load(&name, &gateway, &bare);
    let cpu = Pair::median(&gateway, &bare, |run| run.cpu_micros);
    let reached = cpu.ratio() <= 1.1;
    let what = format!("{name}, server CPU per delivery");
    cpu.print(&what, "µs", Some(("at most 1.1 times", reached)));
    let median = Pair::median(&gateway, &bare, |run| run.median_millis);
    median.print(&format!("{name}, median latency"), "ms", None);
}

/// Does it matter how many sessions lie in the database?
pub(crate) async fn resting() {
    const COUNTS: [u32; 3] = [10, 1_000, 100_000];
    let mut databases = Vec::new();
    for count in COUNTS {
        databases.push((count, Resting::prepare(count).await, Vec::new()));
    }
    let mut bare = Vec::new();
    // In turn, so that whatever else the machine does hits all of them.
    for _ in 0..RUNS {
        bare.push(load::sessions(&Server::start(Kind::Bare), SESSIONS).await);
        for (_, database, gateway) in &mut databases {
            gateway.push(load::sessions(&database.gateway(), SESSIONS).await);
        }
    }
    let mut all = Vec::new();
    for (count, _, gateway) in &databases {
        let name = format!("resting, {count} sessions at rest beside {SESSIONS} that stream");
        let cpu = Pair::median(gateway, &bare, |run| run.cpu_micros);
        cpu.print(&format!("{name}, server CPU per event"), "µs", None);
        let median = Pair::median(gateway, &bare, |run| run.median_millis);
        median.print(&format!("{name}, median latency"), "ms", None);
        all.push(cpu.gateway);
    }
    let most = all.iter().copied().fold(f64::MIN, f64::max);
    let least = all.iter().copied().fold(f64::MAX, f64::min);
    let spread = (most / least - 1.0) * 100.0;
    let verdict = if spread <= 10.0 { "reached" } else { "MISSED" };
    println!("resting, most above least: {spread:.1} %; goal at most 10 %: {verdict}");
}
