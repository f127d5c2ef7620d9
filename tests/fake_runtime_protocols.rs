//! Protocol files of the fake runtime: each is tried alone, so that a failure of a test that uses
//! it points to the gateway.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(20);

/// The lines that a client sends.
struct ClientLines {
    file: &'static str,
    wire: Wire,
    /// Sent first; the last of them is answered.
    handshake: &'static str,
    /// Pointers to the conversation id in the answers.
    thread: &'static [&'static str],
    prompt: &'static str,
    /// Part of the last line of an answer.
    end_marker: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Wire {
    Stdio,
    Socket,
    Pair,
    FormFeed,
}

const PROTOCOLS: &[ClientLines] = &[
    ClientLines {
        file: "acp/protocol.json",
        wire: Wire::Stdio,
        handshake: r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}"#,
        thread: &["/result/sessionId"],
        prompt: r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"THREAD","prompt":[{"type":"text","text":"TEXT"}]}}"#,
        end_marker: "end_turn",
    },
    ClientLines {
        file: "codelia/protocol.json",
        wire: Wire::Stdio,
        handshake: r#"{"jsonrpc":"2.0","id":"1","method":"initialize","params":{"protocol_version":"0","client":{},"ui_capabilities":{"supports_confirm":true}}}"#,
        thread: &[],
        prompt: r#"{"jsonrpc":"2.0","id":"2","method":"run.start","params":{"input":{"type":"text","text":"TEXT"}}}"#,
        end_marker: "completed",
    },
    ClientLines {
        file: "codex-app-server/protocol.json",
        wire: Wire::Stdio,
        handshake: r#"{"id":0,"method":"initialize","params":{"clientInfo":{"name":"g","version":"1"},"capabilities":{"experimentalApi":true}}}
{"id":1,"method":"thread/start","params":{"cwd":"/w"}}"#,
        thread: &["/result/thread/id"],
        prompt: r#"{"id":2,"method":"turn/start","params":{"threadId":"THREAD","input":[{"type":"text","text":"TEXT"}]}}"#,
        end_marker: "turn/completed",
    },
    ClientLines {
        file: "nous/protocol.json",
        wire: Wire::Pair,
        handshake: r#"{"v":"1","id":"c1","type":"new_session","payload":{}}"#,
        thread: &[],
        prompt: r#"{"v":"1","id":"c2","type":"prompt","payload":{"text":"TEXT","wait":false}}"#,
        end_marker: "agent_end",
    },
    ClientLines {
        file: "openstarry/protocol.json",
        wire: Wire::Socket,
        handshake: r#"{"id":1,"method":"agent.attach"}"#,
        thread: &["/result/sessionId"],
        prompt: r#"{"id":2,"method":"agent.input","params":{"sessionId":"THREAD","inputType":"user_input","data":"TEXT"}}"#,
        end_marker: "finished",
    },
    ClientLines {
        file: "openstarry/document.protocol.json",
        wire: Wire::Stdio,
        handshake: "",
        thread: &[],
        prompt: r#"{"type":"submitUserInput","payload":{"text":"TEXT"}}"#,
        end_marker: "waiting_for_input",
    },
    ClientLines {
        file: "copilot/protocol.json",
        wire: Wire::Stdio,
        handshake: r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientName":"g","clientVersion":"1","capabilities":{}}}"#,
        thread: &[],
        prompt: r#"{"jsonrpc":"2.0","id":2,"method":"chat","params":{"message":"TEXT"}}"#,
        end_marker: "suggestions",
    },
    ClientLines {
        file: "pi/protocol.json",
        wire: Wire::Stdio,
        handshake: r#"{"id":"r1","type":"get_state"}"#,
        thread: &["/data/sessionFile"],
        prompt: r#"{"id":"r2","type":"prompt","message":"TEXT"}"#,
        end_marker: "agent_end",
    },
    ClientLines {
        file: "remoteui/protocol.json",
        wire: Wire::Socket,
        handshake: r#"{"type":"RemoteUISessionInit","data":{"sessionId":"s","clientId":"c","userInfo":{"id":"u","username":"ada"}},"requestId":"r1"}
{"type":"RemoteUIStateRequest","data":{"sessionId":"s","clientId":"c"},"requestId":"r2"}"#,
        thread: &[],
        prompt: r#"{"type":"RemoteUITaskRequest","data":{"sessionId":"s","clientId":"c","prompt":{"text":"TEXT","mode":"act"}},"requestId":"r3"}"#,
        end_marker: r#""isComplete":true"#,
    },
    ClientLines {
        file: "roo/protocol.json",
        wire: Wire::FormFeed,
        handshake: "\n",
        thread: &["/data/data/clientId"],
        prompt: r#"{"type":"message","data":{"type":"TaskCommand","origin":"client","clientId":"THREAD","data":{"commandName":"StartNewTask","data":{"configuration":{},"text":"TEXT"}}}}"#,
        end_marker: "taskCompleted",
    },
    ClientLines {
        file: "roo/cli.protocol.json",
        wire: Wire::Stdio,
        handshake: "\n",
        thread: &[],
        prompt: r#"{"command":"start","requestId":"1","prompt":"TEXT"}"#,
        end_marker: "task_completed",
    },
];

fn client_lines(file: &str) -> &'static ClientLines {
    PROTOCOLS
        .iter()
        .find(|client| client.file.starts_with(file))
        .unwrap()
}

fn protocol_files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

struct FakeRuntime {
    client: &'static ClientLines,
    child: Child,
    input: Box<dyn Write>,
    lines: Receiver<String>,
    thread: String,
    _directory: tempfile::TempDir,
}

impl Drop for FakeRuntime {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl FakeRuntime {
    fn start(client: &'static ClientLines, environment: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let mut command = Command::new(env!("CARGO_BIN_EXE_fake-runtime"));
        command.arg(protocol_files().join(client.file));
        if client.wire != Wire::Stdio {
            command.arg("--socket").arg(&socket);
        }
        let mut child = command
            .current_dir(directory.path())
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = sync_channel(10_000);
        let end = if client.wire == Wire::FormFeed {
            0x0C
        } else {
            b'\n'
        };
        let read = |source: Box<dyn Read + Send>| {
            let sender = sender.clone();
            thread::spawn(move || {
                for line in BufReader::new(source).split(end).map_while(Result::ok) {
                    drop(sender.send(String::from_utf8_lossy(&line).into_owned()));
                }
            });
        };
        let input: Box<dyn Write> = if client.wire == Wire::Stdio {
            read(Box::new(child.stdout.take().unwrap()));
            Box::new(child.stdin.take().unwrap())
        } else {
            if client.wire == Wire::Pair {
                read(Box::new(connect(&directory.path().join("s.events"))));
            }
            let stream = connect(&socket);
            read(Box::new(stream.try_clone().unwrap()));
            Box::new(stream)
        };
        Self {
            client,
            child,
            input,
            lines,
            thread: String::new(),
            _directory: directory,
        }
    }

    /// Starts it and finishes the handshake.
    fn open(client: &'static ClientLines) -> Self {
        let mut runtime = Self::start(client, &[]);
        for line in client.handshake.lines().filter(|line| !line.is_empty()) {
            runtime.send(line);
        }
        if !client.handshake.is_empty() {
            // Skips answers to earlier lines.
            let named = loop {
                let line: Value = serde_json::from_str(&runtime.line()).unwrap();
                let names = |pointer: &&str| line.pointer(pointer).is_some();
                if client.thread.iter().all(names) {
                    break line;
                }
            };
            for pointer in client.thread {
                runtime.thread = named.pointer(pointer).unwrap().as_str().unwrap().into();
            }
        }
        runtime
    }

    fn send(&mut self, line: &str) {
        let end = if self.client.wire == Wire::FormFeed {
            "\x0C"
        } else {
            "\n"
        };
        let line = format!("{}{end}", line.replace("THREAD", &self.thread));
        self.input.write_all(line.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    fn prompt(&mut self, text: &str) {
        self.send(&self.client.prompt.replace("TEXT", text));
    }

    fn line(&mut self) -> String {
        self.lines.recv_timeout(TIMEOUT).unwrap()
    }

    /// All lines up to one that contains `part`.
    fn until(&mut self, part: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            lines.push(line);
            if lines.last().unwrap().contains(part) {
                return lines;
            }
        }
    }

    fn stderr_pipe(&mut self) -> ChildStderr {
        self.child.stderr.take().unwrap()
    }
}

fn connect(path: &Path) -> UnixStream {
    let until = Instant::now() + TIMEOUT;
    loop {
        match UnixStream::connect(path) {
            Ok(stream) => return stream,
            Err(error) => assert!(Instant::now() < until, "{}: {error}", path.display()),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn every_protocol_answers_a_prompt_and_the_next_one() {
    for client in PROTOCOLS {
        let mut runtime = FakeRuntime::open(client);
        for text in ["one", "two"] {
            runtime.prompt(&format!("please /echo {text} of {}", client.file));
            let said = runtime.until(client.end_marker).join("\n");
            let whole = format!("{text} of {}", client.file);
            assert!(said.contains(&whole), "{}: {said}", client.file);
        }
    }
}

#[test]
fn every_protocol_file_can_be_read() {
    let mut read = 0;
    for protocol in std::fs::read_dir(protocol_files()).unwrap() {
        for entry in std::fs::read_dir(protocol.unwrap().path()).unwrap() {
            let file = entry.unwrap().path();
            if file.to_string_lossy().ends_with("protocol.json") {
                let directory = tempfile::tempdir().unwrap();
                let socket = directory.path().join("s");
                let mut child = Command::new(env!("CARGO_BIN_EXE_fake-runtime"))
                    .arg(file)
                    .arg("--socket")
                    .arg(&socket)
                    .spawn()
                    .unwrap();
                drop(connect(&socket));
                child.kill().unwrap();
                child.wait().unwrap();
                read += 1;
            }
        }
    }
    assert!(read >= PROTOCOLS.len(), "only {read} were found");
}

#[test]
fn every_protocol_continues_after_garbage() {
    for client in PROTOCOLS {
        let mut runtime = FakeRuntime::open(client);
        runtime.prompt("/garbage 1");
        runtime.until(client.end_marker);
    }
}

#[test]
fn a_tool_runs_only_with_permission() {
    for (option, outcome) in [("proceed_once", "allowed"), ("cancel", "denied")] {
        let mut runtime = FakeRuntime::open(client_lines("acp"));
        runtime.prompt("/tool");
        let asked = runtime.until("request_permission").pop().unwrap();
        let asked: Value = serde_json::from_str(&asked).unwrap();
        let chosen = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": chosen });
        runtime.send(&answer.to_string());
        assert!(runtime.until("end_turn").join("\n").contains(outcome));
    }
}

#[test]
fn a_cancel_ends_a_hanging_run() {
    let mut runtime = FakeRuntime::open(client_lines("acp"));
    runtime.prompt("/hang");
    runtime.send(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"THREAD"}}"#);
    runtime.until(r#""stopReason":"cancelled""#);
}

#[test]
fn steered_text_appears_in_the_stream() {
    let mut runtime = FakeRuntime::open(client_lines("nous"));
    runtime.prompt("/stream 1000000 10");
    runtime.until("message_update");
    runtime.send(r#"{"v":"1","id":"c3","type":"steer","payload":{"text":"go left"}}"#);
    runtime.until("steered: go left");
    runtime.send(r#"{"v":"1","id":"c4","type":"abort","payload":{}}"#);
    runtime.until("provider_aborted");
}

#[test]
fn codex_accepts_steer_and_interrupt_only_with_the_id_of_the_turn() {
    let mut runtime = FakeRuntime::open(client_lines("codex-app-server"));
    runtime.prompt("/stream 1000000 10");
    let started = runtime.until("turn/started").pop().unwrap();
    let started: Value = serde_json::from_str(&started).unwrap();
    let turn = started["params"]["turn"]["id"].as_str().unwrap().to_owned();
    for (name, answer) in [
        ("another", "expected active turn id"),
        (&turn, "turnId\":\""),
    ] {
        let steer = r#"{"id":3,"method":"turn/steer","params":{"threadId":"THREAD","expectedTurnId":"TURN","input":[{"type":"text","text":"go left"}]}}"#;
        runtime.send(&steer.replace("TURN", name));
        let said = runtime.until(r#""id":3"#).pop().unwrap();
        assert!(said.contains(answer), "{said}");
    }
    runtime.until("steered: go left");
    let interrupt =
        r#"{"id":4,"method":"turn/interrupt","params":{"threadId":"THREAD","turnId":"TURN"}}"#;
    runtime.send(&interrupt.replace("TURN", &turn));
    let ended = runtime.until("turn/completed").pop().unwrap();
    assert!(ended.contains("interrupted"), "{ended}");
}

#[test]
fn pi_is_busy_until_its_loop_has_ended() {
    let mut runtime = FakeRuntime::open(client_lines("pi/"));
    runtime.prompt("/hang");
    runtime.until("agent_start");
    for (say, sign) in [
        (r#"{"id":"r3","type":"get_state"}"#, r#""isStreaming":true"#),
        (
            r#"{"id":"r3","type":"prompt","message":"x"}"#,
            "already processing",
        ),
    ] {
        runtime.send(say);
        let said = runtime.until(r#""id":"r3""#).pop().unwrap();
        assert!(said.contains(sign), "{said}");
    }
    runtime.send(r#"{"id":"r4","type":"abort"}"#);
    let ended = runtime.until("agent_end").pop().unwrap();
    assert!(ended.contains("aborted"), "{ended}");
    runtime.send(r#"{"id":"r5","type":"get_state"}"#);
    let idle = runtime.until(r#""id":"r5""#).pop().unwrap();
    assert!(idle.contains(r#""isStreaming":false"#), "{idle}");
}

#[test]
fn a_crash_exits_with_3_and_writes_to_stderr() {
    let mut runtime = FakeRuntime::open(client_lines("codelia"));
    runtime.prompt("/crash");
    let mut stderr = String::new();
    runtime.stderr_pipe().read_to_string(&mut stderr).unwrap();
    assert_eq!(runtime.child.wait().unwrap().code(), Some(3));
    assert!(stderr.contains("crashed"), "{stderr}");
}

#[test]
fn a_handshake_can_be_made_to_fail() {
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    for (fault, sign) in [
        ("wrong-version", r#""protocolVersion":2"#),
        ("garbage-first", "Welcome!"),
    ] {
        let mut runtime = FakeRuntime::start(client_lines("acp"), &[("FAKE_HANDSHAKE", fault)]);
        runtime.send(hello);
        let first = runtime.line();
        assert!(first.contains(sign), "{fault}: {first}");
    }
}

#[test]
fn the_end_of_the_input_ends_the_program() {
    let mut runtime = FakeRuntime::open(client_lines("copilot"));
    runtime.prompt("/hang");
    runtime.input = Box::new(std::io::sink());
    assert!(runtime.child.wait().unwrap().success());
}

#[test]
fn a_protocol_file_with_an_unknown_key_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("book.json");
    std::fs::write(&file, r#"{"rules":[{"mach":{}}]}"#).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_fake-runtime"))
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("rules[0]: what is `mach`?"), "{said}");
}
