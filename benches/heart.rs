//! The heart under load: the real binary, real sockets, SQLite. Prints each figure with its unit.
//!
//! `cargo bench --bench heart -- [idle|stream|hot|fanout]`; without a name, all of them. The server's
//! processor time and memory are read from /proc, so the load generator beside it does not count.
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on has failed"
)]
#![allow(clippy::print_stdout, reason = "printing is what it is for")]
#![allow(
    clippy::cast_precision_loss,
    reason = "figures for people have few digits"
)]

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

type Socket = WebSocketStream<TcpStream>;

struct Server {
    child: Child,
    address: SocketAddr,
    token: String,
    _dir: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let command = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_switchboard"));
            command
                .args(arguments)
                .arg("--data-dir")
                .arg(&data)
                .env("SWITCHBOARD__ADMIN__USERNAME", "root")
                .env("SWITCHBOARD__ADMIN__PASSWORD", "correct horse battery")
                .env("SWITCHBOARD__LIMITS__MESSAGES_PER_MINUTE", "100000")
                .env("SWITCHBOARD__LOG__LEVEL", "warn");
            command
        };
        let mut child = command(&["serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut greeting = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        while !greeting.contains("  open ") {
            assert!(
                lines.read_line(&mut greeting).unwrap() > 0,
                "the gateway did not start"
            );
        }
        let page = greeting.rsplit("http://").next().unwrap();
        let address = page.split('/').next().unwrap().parse().unwrap();
        let token = command(&["token", "create", "--user", "root", "--ttl", "1h"])
            .output()
            .unwrap();
        Self {
            child,
            address,
            token: String::from_utf8(token.stdout).unwrap().trim().to_owned(),
            _dir: dir,
        }
    }

    async fn join(&self, query: &str) -> (Socket, String) {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let url = format!("ws://{}/ws{query}", self.address);
        let mut request = url.into_client_request().unwrap();
        let bearer = format!("Bearer {}", self.token).parse().unwrap();
        request.headers_mut().insert("authorization", bearer);
        let (mut socket, _) = tokio_tungstenite::client_async(request, stream)
            .await
            .unwrap();
        let ack = next(&mut socket).await;
        (
            socket,
            ack["payload"]["sessionId"].as_str().unwrap().to_owned(),
        )
    }

    fn resident_kib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

async fn next(socket: &mut Socket) -> Value {
    loop {
        if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

async fn prompt(socket: &mut Socket, text: &str) {
    let frame = json!({ "type": "SUBMIT_PROMPT", "payload": { "text": text, "mode": "act" } });
    socket.send(Message::text(frame.to_string())).await.unwrap();
}

/// Reads to the end of the run without parsing more than it must; returns frames and last offset.
async fn drain(socket: &mut Socket) -> (u64, u64) {
    let mut frames = 0;
    loop {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else {
            continue;
        };
        frames += 1;
        if text.contains("\"status\":\"completed\"") || text.contains("\"status\":\"error\"") {
            let last: Value = serde_json::from_str(&text).unwrap();
            return (frames, last["offset"].as_u64().unwrap());
        }
    }
}

async fn idle() {
    const CONNECTIONS: usize = 10_000;
    let server = Server::start();
    let before = server.resident_kib();
    let mut held = Vec::with_capacity(CONNECTIONS);
    let started = Instant::now();
    for _ in 0..CONNECTIONS {
        held.push(server.join("").await);
    }
    let took = started.elapsed();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let each = (server.resident_kib() - before) / CONNECTIONS as f64;
    println!(
        "idle: {each:.1} KiB per authenticated connection with its own session, at {CONNECTIONS} (goal: at most 10); joined in {took:.1?}"
    );
}

async fn stream() {
    const SESSIONS: usize = 1_000;
    const EVENTS: usize = 200;
    let server = Server::start();
    let mut readers = JoinSet::new();
    let mut sockets = Vec::new();
    for _ in 0..SESSIONS {
        sockets.push(server.join("").await.0);
    }
    let (before, started) = (server.cpu(), Instant::now());
    for mut socket in sockets {
        readers.spawn(async move {
            prompt(&mut socket, &format!("/stream {EVENTS} 50")).await;
            drain(&mut socket).await.1
        });
    }
    let events: u64 = readers.join_all().await.into_iter().sum();
    let cpu = server.cpu().saturating_sub(before).as_secs_f64();
    let rate = events as f64 / started.elapsed().as_secs_f64();
    println!(
        "stream: {:.1} µs of server CPU per delivered durable event, {SESSIONS} sessions, {rate:.0} events/s in all",
        cpu * 1e6 / events as f64
    );
}

async fn hot() {
    const EVENTS: u64 = 300_000;
    let server = Server::start();
    let (mut socket, _) = server.join("").await;
    let (before, started) = (server.cpu(), Instant::now());
    prompt(&mut socket, &format!("/stream {EVENTS}")).await;
    let (frames, last) = drain(&mut socket).await;
    let took = started.elapsed();
    let cpu = server.cpu().saturating_sub(before).as_secs_f64();
    println!(
        "hot: {:.0} durable events/s in one session (goal: at least 50000), {:.1} µs of server CPU each, {frames} frames for {last} events",
        last as f64 / took.as_secs_f64(),
        cpu * 1e6 / last as f64
    );
}

async fn fanout() {
    const READERS: usize = 1_000;
    const EVENTS: usize = 200;
    let server = Server::start();
    let (mut writer, session) = server.join("").await;
    prompt(&mut writer, "/echo begin").await;
    drain(&mut writer).await;
    let mut readers = JoinSet::new();
    let mut sockets = Vec::new();
    for _ in 0..READERS {
        sockets.push(server.join(&format!("?session={session}")).await.0);
    }
    let before = server.cpu();
    for mut socket in sockets {
        readers.spawn(async move { drain(&mut socket).await.0 });
    }
    prompt(&mut writer, &format!("/stream {EVENTS} 20")).await;
    drain(&mut writer).await;
    let frames: u64 = readers.join_all().await.into_iter().sum();
    let cpu = server.cpu().saturating_sub(before).as_secs_f64();
    println!(
        "fanout: {:.1} µs of server CPU per delivery, one session with {READERS} readers, {frames} deliveries",
        cpu * 1e6 / frames as f64
    );
}

#[tokio::main]
async fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    if is_wanted("idle") {
        idle().await;
    }
    if is_wanted("stream") {
        stream().await;
    }
    if is_wanted("hot") {
        hot().await;
    }
    if is_wanted("fanout") {
        fanout().await;
    }
}
