//! The fake runtime itself: every phrasebook is played, so that a test that fails with it has found
//! something in the gateway.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(20);

/// How somebody who wants something of the agent words it.
struct Words {
    book: &'static str,
    lanes: Lanes,
    /// Said first; the last of them is answered with something.
    open: &'static str,
    /// Where its answers name the conversation.
    thread: &'static [&'static str],
    prompt: &'static str,
    /// What the last line of an answer contains.
    ends: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Lanes {
    Stdio,
    Socket,
    Pair,
    FormFeeds,
}

const ALL: &[Words] = &[
    Words {
        book: "acp/phrasebook.json",
        lanes: Lanes::Stdio,
        open: r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}"#,
        thread: &["/result/sessionId"],
        prompt: r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"THREAD","prompt":[{"type":"text","text":"TEXT"}]}}"#,
        ends: "end_turn",
    },
    Words {
        book: "codelia/phrasebook.json",
        lanes: Lanes::Stdio,
        open: r#"{"jsonrpc":"2.0","id":"1","method":"initialize","params":{"protocol_version":"0","client":{},"ui_capabilities":{"supports_confirm":true}}}"#,
        thread: &[],
        prompt: r#"{"jsonrpc":"2.0","id":"2","method":"run.start","params":{"input":{"type":"text","text":"TEXT"}}}"#,
        ends: "completed",
    },
    Words {
        book: "codex-app-server/phrasebook.json",
        lanes: Lanes::Stdio,
        open: r#"{"id":0,"method":"initialize","params":{"clientInfo":{"name":"g","version":"1"},"capabilities":{"experimentalApi":true}}}
{"id":1,"method":"thread/start","params":{"cwd":"/w"}}"#,
        thread: &["/result/thread/id"],
        prompt: r#"{"id":2,"method":"turn/start","params":{"threadId":"THREAD","input":[{"type":"text","text":"TEXT"}]}}"#,
        ends: "turn/completed",
    },
    Words {
        book: "nous/phrasebook.json",
        lanes: Lanes::Pair,
        open: r#"{"v":"1","id":"c1","type":"new_session","payload":{}}"#,
        thread: &[],
        prompt: r#"{"v":"1","id":"c2","type":"prompt","payload":{"text":"TEXT","wait":false}}"#,
        ends: "agent_end",
    },
    Words {
        book: "openstarry/phrasebook.json",
        lanes: Lanes::Socket,
        open: r#"{"id":1,"method":"agent.attach"}"#,
        thread: &["/result/sessionId"],
        prompt: r#"{"id":2,"method":"agent.input","params":{"sessionId":"THREAD","inputType":"user_input","data":"TEXT"}}"#,
        ends: "finished",
    },
    Words {
        book: "openstarry/document.phrasebook.json",
        lanes: Lanes::Stdio,
        open: "",
        thread: &[],
        prompt: r#"{"type":"submitUserInput","payload":{"text":"TEXT"}}"#,
        ends: "waiting_for_input",
    },
    Words {
        book: "copilot/phrasebook.json",
        lanes: Lanes::Stdio,
        open: r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientName":"g","clientVersion":"1","capabilities":{}}}"#,
        thread: &[],
        prompt: r#"{"jsonrpc":"2.0","id":2,"method":"chat","params":{"message":"TEXT"}}"#,
        ends: "suggestions",
    },
    Words {
        book: "pi/phrasebook.json",
        lanes: Lanes::Stdio,
        open: r#"{"id":"r1","type":"get_state"}"#,
        thread: &["/data/sessionFile"],
        prompt: r#"{"id":"r2","type":"prompt","message":"TEXT"}"#,
        ends: "agent_end",
    },
    Words {
        book: "remoteui/phrasebook.json",
        lanes: Lanes::Socket,
        open: r#"{"type":"RemoteUISessionInit","data":{"sessionId":"s","clientId":"c","userInfo":{"id":"u","username":"ada"}},"requestId":"r1"}
{"type":"RemoteUIStateRequest","data":{"sessionId":"s","clientId":"c"},"requestId":"r2"}"#,
        thread: &[],
        prompt: r#"{"type":"RemoteUITaskRequest","data":{"sessionId":"s","clientId":"c","prompt":{"text":"TEXT","mode":"act"}},"requestId":"r3"}"#,
        ends: r#""isComplete":true"#,
    },
    Words {
        book: "roo/phrasebook.json",
        lanes: Lanes::FormFeeds,
        open: "\n",
        thread: &["/data/data/clientId"],
        prompt: r#"{"type":"message","data":{"type":"TaskCommand","origin":"client","clientId":"THREAD","data":{"commandName":"StartNewTask","data":{"configuration":{},"text":"TEXT"}}}}"#,
        ends: "taskCompleted",
    },
    Words {
        book: "roo/cli.phrasebook.json",
        lanes: Lanes::Stdio,
        open: "\n",
        thread: &[],
        prompt: r#"{"command":"start","requestId":"1","prompt":"TEXT"}"#,
        ends: "task_completed",
    },
];

fn words(book: &str) -> &'static Words {
    ALL.iter()
        .find(|words| words.book.starts_with(book))
        .unwrap()
}

fn books() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

/// A fake runtime with somebody at the other end.
struct Play {
    words: &'static Words,
    child: Child,
    input: Box<dyn Write>,
    lines: Receiver<String>,
    thread: String,
    _directory: tempfile::TempDir,
}

impl Drop for Play {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Play {
    fn start(words: &'static Words, environment: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let mut command = Command::new(env!("CARGO_BIN_EXE_fake-runtime"));
        command.arg(books().join(words.book));
        if words.lanes != Lanes::Stdio {
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
        let end = if words.lanes == Lanes::FormFeeds {
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
        let input: Box<dyn Write> = if words.lanes == Lanes::Stdio {
            read(Box::new(child.stdout.take().unwrap()));
            Box::new(child.stdin.take().unwrap())
        } else {
            if words.lanes == Lanes::Pair {
                read(Box::new(connect(&directory.path().join("s.events"))));
            }
            let stream = connect(&socket);
            read(Box::new(stream.try_clone().unwrap()));
            Box::new(stream)
        };
        Self {
            words,
            child,
            input,
            lines,
            thread: String::new(),
            _directory: directory,
        }
    }

    /// Introduced, and ready to be prompted.
    fn open(words: &'static Words) -> Self {
        let mut play = Self::start(words, &[]);
        for line in words.open.lines().filter(|line| !line.is_empty()) {
            play.say(line);
        }
        if !words.open.is_empty() {
            // What comes before is the answer to something said earlier.
            let named = loop {
                let line: Value = serde_json::from_str(&play.line()).unwrap();
                let names = |pointer: &&str| line.pointer(pointer).is_some();
                if words.thread.iter().all(names) {
                    break line;
                }
            };
            for pointer in words.thread {
                play.thread = named.pointer(pointer).unwrap().as_str().unwrap().into();
            }
        }
        play
    }

    fn say(&mut self, line: &str) {
        let end = if self.words.lanes == Lanes::FormFeeds {
            "\x0C"
        } else {
            "\n"
        };
        let line = format!("{}{end}", line.replace("THREAD", &self.thread));
        self.input.write_all(line.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    fn prompt(&mut self, text: &str) {
        self.say(&self.words.prompt.replace("TEXT", text));
    }

    fn line(&mut self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    /// Everything up to a line with this in it.
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

    fn errors(&mut self) -> ChildStderr {
        self.child.stderr.take().unwrap()
    }
}

fn connect(path: &Path) -> UnixStream {
    let until = Instant::now() + PATIENCE;
    loop {
        match UnixStream::connect(path) {
            Ok(stream) => return stream,
            Err(error) => assert!(Instant::now() < until, "{}: {error}", path.display()),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn every_phrasebook_answers_a_prompt_and_the_next_one() {
    for words in ALL {
        let mut play = Play::open(words);
        for text in ["one", "two"] {
            play.prompt(&format!("please /echo {text} of {}", words.book));
            let said = play.until(words.ends).join("\n");
            let whole = format!("{text} of {}", words.book);
            assert!(said.contains(&whole), "{}: {said}", words.book);
        }
    }
}

#[test]
fn every_phrasebook_there_is_can_be_read() {
    let mut read = 0;
    for protocol in std::fs::read_dir(books()).unwrap() {
        for file in std::fs::read_dir(protocol.unwrap().path()).unwrap() {
            let book = file.unwrap().path();
            if book.to_string_lossy().ends_with("phrasebook.json") {
                let directory = tempfile::tempdir().unwrap();
                let socket = directory.path().join("s");
                let mut child = Command::new(env!("CARGO_BIN_EXE_fake-runtime"))
                    .arg(book)
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
    assert!(read >= ALL.len(), "only {read} were found");
}

#[test]
fn every_phrasebook_gets_over_garbage_and_odd_lines() {
    for words in ALL {
        let mut play = Play::open(words);
        play.prompt("/garbage 1");
        play.until(words.ends);
    }
}

#[test]
fn a_permission_that_is_given_lets_the_tool_run_and_one_that_is_not_does_not() {
    for (option, outcome) in [("proceed_once", "allowed"), ("cancel", "denied")] {
        let mut play = Play::open(words("acp"));
        play.prompt("/tool");
        let asked = play.until("request_permission").pop().unwrap();
        let asked: Value = serde_json::from_str(&asked).unwrap();
        let chosen = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": chosen });
        play.say(&answer.to_string());
        assert!(play.until("end_turn").join("\n").contains(outcome));
    }
}

#[test]
fn a_cancel_ends_a_scene_that_hangs() {
    let mut play = Play::open(words("acp"));
    play.prompt("/hang");
    play.say(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"THREAD"}}"#);
    play.until(r#""stopReason":"cancelled""#);
}

#[test]
fn what_is_steered_appears_in_the_stream() {
    let mut play = Play::open(words("nous"));
    play.prompt("/stream 1000000 10");
    play.until("message_update");
    play.say(r#"{"v":"1","id":"c3","type":"steer","payload":{"text":"go left"}}"#);
    play.until("steered: go left");
    play.say(r#"{"v":"1","id":"c4","type":"abort","payload":{}}"#);
    play.until("provider_aborted");
}

#[test]
fn codex_hears_a_steer_and_an_interruption_only_under_the_name_of_the_turn() {
    let mut play = Play::open(words("codex-app-server"));
    play.prompt("/stream 1000000 10");
    let started = play.until("turn/started").pop().unwrap();
    let started: Value = serde_json::from_str(&started).unwrap();
    let turn = started["params"]["turn"]["id"].as_str().unwrap().to_owned();
    for (name, answer) in [
        ("another", "expected active turn id"),
        (&turn, "turnId\":\""),
    ] {
        let steer = r#"{"id":3,"method":"turn/steer","params":{"threadId":"THREAD","expectedTurnId":"TURN","input":[{"type":"text","text":"go left"}]}}"#;
        play.say(&steer.replace("TURN", name));
        let said = play.until(r#""id":3"#).pop().unwrap();
        assert!(said.contains(answer), "{said}");
    }
    play.until("steered: go left");
    let interrupt =
        r#"{"id":4,"method":"turn/interrupt","params":{"threadId":"THREAD","turnId":"TURN"}}"#;
    play.say(&interrupt.replace("TURN", &turn));
    let ended = play.until("turn/completed").pop().unwrap();
    assert!(ended.contains("interrupted"), "{ended}");
}

#[test]
fn pi_is_busy_until_its_loop_has_ended() {
    let mut play = Play::open(words("pi/"));
    play.prompt("/hang");
    play.until("agent_start");
    for (say, sign) in [
        (r#"{"id":"r3","type":"get_state"}"#, r#""isStreaming":true"#),
        (
            r#"{"id":"r3","type":"prompt","message":"x"}"#,
            "already processing",
        ),
    ] {
        play.say(say);
        let said = play.until(r#""id":"r3""#).pop().unwrap();
        assert!(said.contains(sign), "{said}");
    }
    play.say(r#"{"id":"r4","type":"abort"}"#);
    let ended = play.until("agent_end").pop().unwrap();
    assert!(ended.contains("aborted"), "{ended}");
    play.say(r#"{"id":"r5","type":"get_state"}"#);
    let idle = play.until(r#""id":"r5""#).pop().unwrap();
    assert!(idle.contains(r#""isStreaming":false"#), "{idle}");
}

#[test]
fn a_crash_is_a_crash_and_says_something_before() {
    let mut play = Play::open(words("codelia"));
    play.prompt("/crash");
    let mut last_words = String::new();
    play.errors().read_to_string(&mut last_words).unwrap();
    assert_eq!(play.child.wait().unwrap().code(), Some(3));
    assert!(last_words.contains("crashed"), "{last_words}");
}

#[test]
fn a_handshake_can_go_wrong() {
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    for (trouble, sign) in [
        ("wrong-version", r#""protocolVersion":2"#),
        ("garbage-first", "Welcome!"),
    ] {
        let mut play = Play::start(words("acp"), &[("FAKE_HANDSHAKE", trouble)]);
        play.say(hello);
        let first = play.line();
        assert!(first.contains(sign), "{trouble}: {first}");
    }
}

#[test]
fn the_end_of_the_input_is_the_end() {
    let mut play = Play::open(words("copilot"));
    play.prompt("/hang");
    play.input = Box::new(std::io::sink());
    assert!(play.child.wait().unwrap().success());
}

#[test]
fn a_phrasebook_with_a_typing_error_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let book = directory.path().join("book.json");
    std::fs::write(&book, r#"{"hear":[{"mach":{}}]}"#).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_fake-runtime"))
        .arg(&book)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("hear[0]: what is `mach`?"), "{said}");
}
