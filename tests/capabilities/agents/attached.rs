//! Agents that others have started: sockets that are connected to, and one that the gateway listens on.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::UnixStream;

use super::{Cast, Part, asks, comes_true, tells};
use crate::actors::Settings;

/// A fake runtime that listens; killed when dropped.
struct Runtime(Child);

impl Runtime {
    fn listening(part: &Part, socket: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fake-runtime"));
        command
            .arg(&part.path)
            .arg("--socket")
            .arg(socket)
            .stdin(Stdio::null());
        let runtime = Self(command.spawn().unwrap());
        while !socket.exists() {
            std::thread::yield_now();
        }
        runtime
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn part(name: &str) -> Part {
    Part::all()
        .into_iter()
        .find(|part| part.name == name)
        .unwrap()
}

#[tokio::test]
async fn a_socket_that_serves_one_conversation_is_given_to_one_session_at_a_time() {
    let (nous, dir) = (part("nous"), tempfile::tempdir().unwrap());
    let socket = dir.path().join("nous.sock");
    let _runtime = Runtime::listening(&nous, &socket);
    let file = format!("[agents.nous]\nprotocol = \"nous\"\nsocket = {socket:?}\n");
    let gateway = Settings::new().configured(&file).start().await;
    gateway.has_user("ben", "member");
    let cast = Cast::of(vec![nous.clone()], gateway);
    let mut mia = cast.joins("root", &nous).await;
    asks(&mut mia, &nous, "/echo walrus").await;
    let mut ben = cast.joins("ben", &nous).await;
    let (end, _) = tells(&mut ben, "/echo otter").await;
    assert_eq!(end["error"]["code"], "BUSY", "{end}");
    assert!(
        end["error"]["message"]
            .as_str()
            .unwrap()
            .contains("one at a time"),
        "{end}"
    );
    // It is free when its session has ended.
    let root = cast.gateway.browser("root").await;
    let session = format!("/api/sessions/{}", mia.session());
    root.sends("DELETE", &session, None).await.is(204);
    let mut answered = false;
    for _ in 0..100 {
        let (end, _) = tells(&mut ben, "/echo otter").await;
        answered = end["status"] == "completed";
        if answered {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(answered);
}

#[tokio::test]
async fn a_socket_that_is_not_there_is_named() {
    let file = "[agents.away]\nprotocol = \"openstarry\"\nsocket = \"/no/such/daemon.sock\"\n";
    let gateway = Settings::new().configured(file).start().await;
    let cast = Cast::of(Vec::new(), gateway);
    let mut mia = cast.comes("root", "?agent=away").await;
    let (end, _) = tells(&mut mia, "hello").await;
    assert_eq!(end["error"]["code"], "CONNECTION_LOST", "{end}");
    let message = end["error"]["message"].as_str().unwrap();
    assert!(message.contains("/no/such/daemon.sock"), "{message}");
}

/// Connects a runtime to the socket that the gateway listens on, with a token.
async fn connects(hub: &Path, runtime: &Path, token: &str) -> tokio::task::JoinHandle<()> {
    let mut there = UnixStream::connect(hub).await.unwrap();
    let mut here = UnixStream::connect(runtime).await.unwrap();
    let shown = json!({ "type": "RemoteUIAuth", "data": { "token": token } });
    there
        .write_all(format!("{shown}\n").as_bytes())
        .await
        .unwrap();
    #[allow(
        clippy::disallowed_methods,
        reason = "a test ends with everything that it has begun"
    )]
    tokio::spawn(async move { drop(copy_bidirectional(&mut there, &mut here).await) })
}

#[tokio::test]
async fn a_peer_that_connects_serves_many_sessions_and_none_that_it_was_not_given() {
    let (remote, dir) = (part("remoteui"), tempfile::tempdir().unwrap());
    let (hub, socket) = (dir.path().join("hub.sock"), dir.path().join("runtime.sock"));
    let _runtime = Runtime::listening(&remote, &socket);
    let file = format!(
        "[agents.remoteui]\nprotocol = \"remoteui\"\nsocket = {hub:?}\nlisten = true\n\
         options = {{ token = \"a-long-token\" }}\n"
    );
    let gateway = Settings::new().configured(&file).start().await;
    gateway.has_user("ben", "member");
    let cast = Cast::of(vec![remote.clone()], gateway);

    // Nobody is there yet.
    let mut mia = cast.joins("root", &remote).await;
    let (end, _) = tells(&mut mia, "/echo hello").await;
    let message = end["error"]["message"].as_str().unwrap();
    assert!(message.contains("nobody is connected"), "{message}");

    // One that does not know the token is sent away.
    let mut stranger = UnixStream::connect(&hub).await.unwrap();
    let shown = json!({ "type": "RemoteUIAuth", "data": { "token": "a-wrong-token" } });
    stranger
        .write_all(format!("{shown}\n").as_bytes())
        .await
        .unwrap();
    assert_eq!(stranger.read(&mut [0; 16]).await.unwrap_or(0), 0);

    let peer = connects(&hub, &socket, "a-long-token").await;
    let mut ben = cast.joins("ben", &remote).await;
    let mut answered = false;
    for _ in 0..100 {
        let (end, _) = tells(&mut mia, "/echo walrus").await;
        answered = end["status"] == "completed";
        if answered {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(answered);
    asks(&mut ben, &remote, "/echo otter").await;
    for (member, foreign) in [(&mia, "otter"), (&ben, "walrus")] {
        for event in &member.events {
            assert!(!event.to_string().contains(foreign), "{event}");
        }
    }
    asks(&mut mia, &remote, "/lie").await;
    assert_ne!(cast.seen("remoteui").await["strays"], 0);

    // The peer goes, and with it the runs that it had.
    mia.prompts("/stream 100000 20").await;
    mia.sees("TASK_OUTPUT_CHUNK").await;
    peer.abort();
    let end = mia.sees_run_end().await;
    assert_eq!(end["error"]["code"], "CONNECTION_LOST", "{end}");
    comes_true("nothing is left", || cast.processes().is_empty()).await;
}
