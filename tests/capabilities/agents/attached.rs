//! Attached agents: runtimes started elsewhere, over sockets the gateway connects to or listens on.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::UnixStream;

use super::{AgentFleet, FakeAgent, completes_prompt, runs_prompt, wait_until};
use crate::actors::Settings;

/// A fake runtime that listens; killed when dropped.
struct FakeRuntime(Child);

impl FakeRuntime {
    fn listening(agent: &FakeAgent, socket: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fake-runtime"));
        command
            .arg(&agent.path)
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

impl Drop for FakeRuntime {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn agent(name: &str) -> FakeAgent {
    FakeAgent::all()
        .into_iter()
        .find(|agent| agent.name == name)
        .unwrap()
}

#[tokio::test]
async fn a_single_conversation_socket_serves_one_session_at_a_time() {
    let (nous, dir) = (agent("nous"), tempfile::tempdir().unwrap());
    let socket = dir.path().join("nous.sock");
    let _runtime = FakeRuntime::listening(&nous, &socket);
    let file = format!("[agents.nous]\nprotocol = \"nous\"\nsocket = {socket:?}\n");
    let gateway = Settings::new().with_config_file(&file).start().await;
    gateway.adds_user("ben", "member");
    let fleet = AgentFleet::of(vec![nous.clone()], gateway);
    let mut mia = fleet.joins("root", &nous).await;
    completes_prompt(&mut mia, &nous, "/echo walrus").await;
    let mut ben = fleet.joins("ben", &nous).await;
    let (end, _) = runs_prompt(&mut ben, "/echo otter").await;
    assert_eq!(end["error"]["code"], "BUSY", "{end}");
    assert!(
        end["error"]["message"]
            .as_str()
            .unwrap()
            .contains("one at a time"),
        "{end}"
    );
    // The socket is free when its session has ended.
    let root = fleet.gateway.logged_in("root").await;
    let session = format!("/api/sessions/{}", mia.session());
    root.sends("DELETE", &session, None).await.is(204);
    let mut answered = false;
    for _ in 0..100 {
        let (end, _) = runs_prompt(&mut ben, "/echo otter").await;
        answered = end["status"] == "completed";
        if answered {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(answered);
}

#[tokio::test]
async fn a_missing_agent_socket_is_named_in_the_error() {
    let file = "[agents.away]\nprotocol = \"openstarry\"\nsocket = \"/no/such/daemon.sock\"\n";
    let gateway = Settings::new().with_config_file(file).start().await;
    let fleet = AgentFleet::of(Vec::new(), gateway);
    let mut mia = fleet.joins_with_query("root", "?agent=away").await;
    let (end, _) = runs_prompt(&mut mia, "hello").await;
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
async fn a_connected_runtime_serves_only_the_sessions_assigned_to_it() {
    let (remote, dir) = (agent("remoteui"), tempfile::tempdir().unwrap());
    let (hub, socket) = (dir.path().join("hub.sock"), dir.path().join("runtime.sock"));
    let _runtime = FakeRuntime::listening(&remote, &socket);
    let file = format!(
        "[agents.remoteui]\nprotocol = \"remoteui\"\nsocket = {hub:?}\nlisten = true\n\
         options = {{ token = \"a-long-token\" }}\n"
    );
    let gateway = Settings::new().with_config_file(&file).start().await;
    gateway.adds_user("ben", "member");
    let fleet = AgentFleet::of(vec![remote.clone()], gateway);

    // No runtime is connected yet.
    let mut mia = fleet.joins("root", &remote).await;
    let (end, _) = runs_prompt(&mut mia, "/echo hello").await;
    let message = end["error"]["message"].as_str().unwrap();
    assert!(message.contains("nobody is connected"), "{message}");

    // A runtime with a wrong token is refused.
    let mut stranger = UnixStream::connect(&hub).await.unwrap();
    let shown = json!({ "type": "RemoteUIAuth", "data": { "token": "a-wrong-token" } });
    stranger
        .write_all(format!("{shown}\n").as_bytes())
        .await
        .unwrap();
    assert_eq!(stranger.read(&mut [0; 16]).await.unwrap_or(0), 0);

    let peer = connects(&hub, &socket, "a-long-token").await;
    let mut ben = fleet.joins("ben", &remote).await;
    let mut answered = false;
    for _ in 0..100 {
        let (end, _) = runs_prompt(&mut mia, "/echo walrus").await;
        answered = end["status"] == "completed";
        if answered {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(answered);
    completes_prompt(&mut ben, &remote, "/echo otter").await;
    for (member, foreign) in [(&mia, "otter"), (&ben, "walrus")] {
        for event in &member.events {
            assert!(!event.to_string().contains(foreign), "{event}");
        }
    }
    completes_prompt(&mut mia, &remote, "/lie").await;
    assert_ne!(fleet.admin_view("remoteui").await["strays"], 0);

    // When the peer disconnects, its runs end.
    mia.prompts("/stream 100000 20").await;
    mia.sees("TASK_OUTPUT_CHUNK").await;
    peer.abort();
    let end = mia.sees_run_end().await;
    assert_eq!(end["error"]["code"], "CONNECTION_LOST", "{end}");
    wait_until("nothing is left", || fleet.processes().is_empty()).await;
}
