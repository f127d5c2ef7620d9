//! Plays the recorded conversations under `tests/transcripts/PROTOCOL/*.ndjson` with each dialect.
//!
//! One step per line. What comes in: `{"open": {}}` (with `thread`, `options`, `history`),
//! `{"session": …}`, `{"agent": LINE, "lane": "events"}`, `{"late": true}` (the timer that was set
//! last), `{"close": {}}`. What must come out, in this order and nothing else: `{"writes": LINE}`,
//! `{"tells": …}`, `{"acts": …}`. In what is expected, `"*"` stands for anything and an object may
//! leave fields out. `name` is for people. `{"dir", "name", "msg"}` lines are a protocol's own
//! vectors: those from the agent must be read without panic.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::*;
use crate::domain::command::Mode;
use crate::domain::question::{Answer, Said};
use crate::domain::queue::Take;

fn folder(protocol: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("tests/transcripts").join(protocol)
}

#[test]
fn every_transcript_plays_as_it_is_written() {
    for protocol in TABLE {
        let mut played = 0;
        let entries = std::fs::read_dir(folder(protocol.name));
        let entries =
            entries.unwrap_or_else(|error| panic!("transcripts/{}: {error}", protocol.name));
        for entry in entries {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "ndjson") {
                play(protocol, &path);
                played += 1;
            }
        }
        assert!(played > 0, "{} has no transcript", protocol.name);
    }
}

fn play(protocol: &Protocol, path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut stage = Stage::new(protocol);
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let place = format!("{}:{}", path.display(), number + 1);
        let step: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{place}: {error}"));
        stage.step(&step, &place);
    }
    stage.nothing_left(&format!("{}: at the end", path.display()));
}

struct Stage {
    protocol: String,
    speaker: fn(Setup) -> Box<dyn Dialect>,
    dialect: Box<dyn Dialect>,
    out: VecDeque<Act>,
    timer: Option<u64>,
    runs: BTreeMap<String, RunId>,
}

fn setup(given: &Value) -> Setup {
    let said = |entry: &Value| Utterance {
        author: if entry["role"] == "user" {
            Author::User
        } else {
            Author::Assistant
        },
        text: text_of(&entry["text"]),
    };
    Setup {
        agent: "tested".into(),
        version: "0.1.0",
        directory: "/w".into(),
        thread: given["thread"].as_str().map(str::to_owned),
        history: given["history"]
            .as_array()
            .into_iter()
            .flatten()
            .map(said)
            .collect(),
        session: "ses_1".into(),
        user: Person {
            id: "usr_1".into(),
            name: "ada".into(),
        },
        options: given["options"]
            .as_object()
            .cloned()
            .unwrap_or_default()
            .into_iter()
            .collect(),
    }
}

impl Stage {
    fn new(protocol: &Protocol) -> Self {
        Self {
            protocol: protocol.name.into(),
            speaker: protocol.speaker,
            dialect: (protocol.speaker)(setup(&json!({}))),
            out: VecDeque::new(),
            timer: None,
            runs: BTreeMap::new(),
        }
    }

    fn step(&mut self, step: &Value, place: &str) {
        if let Some(expected) = step.get("writes") {
            return match self.out.pop_front() {
                Some(Act::Write(lane, line)) => {
                    let on = if step["lane"] == "events" {
                        Lane::Events
                    } else {
                        Lane::Main
                    };
                    assert_eq!(lane, on, "{place}");
                    assert!(
                        fits(expected, &line),
                        "{place}: wrote {line}\ninstead of {expected}"
                    );
                }
                other => panic!("{place}: {other:?}\ninstead of writing {expected}"),
            };
        }
        if let Some(expected) = step.get("tells").or(step.get("acts")) {
            let act = self.out.pop_front();
            let shown = act.as_ref().map_or(Value::Null, |act| self.show(act));
            assert!(
                fits(expected, &shown),
                "{place}: {shown}\ninstead of {expected}\n({act:?})"
            );
            return;
        }
        let mut out = Out::default();
        if let Some(line) = step.get("msg") {
            // A vector of the protocol: whatever comes of it, it is read.
            if step["dir"] == "rt2gw" {
                self.dialect.read(Lane::Main, line.clone(), &mut out);
            }
            return;
        }
        self.nothing_left(place);
        if let Some(given) = step.get("open") {
            self.dialect = (self.speaker)(setup(given));
            self.dialect.open(&mut out);
        } else if let Some(said) = step.get("session") {
            let order = self.order(said, place);
            self.dialect.hear(order, &mut out);
        } else if let Some(line) = step.get("agent") {
            let lane = if step["lane"] == "events" {
                Lane::Events
            } else {
                Lane::Main
            };
            self.dialect.read(lane, line.clone(), &mut out);
        } else if step.get("late").is_some() {
            let timer = self
                .timer
                .take()
                .unwrap_or_else(|| panic!("{place}: no timer is set"));
            self.dialect.late(timer, &mut out);
        } else if step.get("close").is_some() {
            self.dialect.close(&mut out);
        } else {
            panic!("{place}: not a step: {step}");
        }
        for act in out.take() {
            match act {
                Act::Timer(name, Some(_)) => self.timer = Some(name),
                Act::Timer(name, None) => self.timer = self.timer.filter(|set| *set != name),
                act => self.out.push_back(act),
            }
        }
    }

    fn nothing_left(&self, place: &str) {
        let left: Vec<Value> = self.out.iter().map(|act| self.show(act)).collect();
        assert!(
            left.is_empty(),
            "{place}: came out before and was not expected:\n{left:#?}"
        );
    }

    fn run(&mut self, said: &Value) -> RunId {
        let label = said["run"].as_str().unwrap_or("run-1").to_owned();
        *self.runs.entry(label).or_insert_with(RunId::new)
    }

    fn order(&mut self, said: &Value, place: &str) -> Order {
        let run = self.run(said);
        let text = || text_of(&said["text"]);
        let take = |word: &Value| {
            if word == "all" { Take::All } else { Take::One }
        };
        match said["type"].as_str().unwrap_or_default() {
            "prompt" => Order::Prompt {
                run,
                brief: brief(said),
            },
            "steer" => Order::Steer { run, text: text() },
            "cancel" => Order::Cancel { run },
            "answer" => Order::Answer {
                question: text_of(&said["question"]),
                resolution: resolution(said),
            },
            "query" => {
                let topic = match said["topic"].as_str().unwrap_or_default() {
                    "models" => Topic::Models,
                    "mcp" => Topic::Mcp,
                    "skills" => Topic::Skills,
                    "tree" => Topic::Tree,
                    _ => Topic::Commands,
                };
                let params = said["params"].clone();
                let inquiry = Inquiry::Query { topic, params };
                Order::Inquire {
                    id: said["id"].as_u64().unwrap_or(1),
                    inquiry,
                }
            }
            "extension" => {
                let (name, payload) = (text_of(&said["name"]), said["payload"].clone());
                let inquiry = Inquiry::Extension { name, payload };
                Order::Inquire {
                    id: said["id"].as_u64().unwrap_or(1),
                    inquiry,
                }
            }
            "settings" => {
                Order::Settings(serde_json::from_value(said["settings"].clone()).unwrap())
            }
            "tools" => Order::Tools(serde_json::from_value(said["tools"].clone()).unwrap()),
            "context" => Order::Context(said["context"].clone()),
            "queue" => Order::QueueModes(QueueModes {
                steering: take(&said["steering"]),
                follow_up: take(&said["followUp"]),
            }),
            other => panic!("{place}: a session does not say `{other}`"),
        }
    }

    fn label(&self, run: RunId) -> String {
        let known = self.runs.iter().find(|(_, known)| **known == run);
        known.map_or_else(|| "unknown".into(), |(label, _)| label.clone())
    }

    fn show(&self, act: &Act) -> Value {
        match act {
            Act::Write(_, line) => json!({ "writes": line }),
            Act::Ready { lacks } => json!({ "ready": true, "lacks": lacks }),
            Act::Timer(name, _) => json!({ "timer": name }),
            Act::Stray(what) => json!({ "stray": what }),
            Act::Odd(what) => json!({ "odd": what }),
            Act::Fail(declined) => {
                json!({ "fail": declined.message, "code": declined.code.as_str() })
            }
            Act::Finish => json!({ "finish": true }),
            Act::Tell(said) => self.tale(said),
        }
    }

    fn tale(&self, said: &FromAgent) -> Value {
        let label = |run: &RunId| self.label(*run);
        match said {
            FromAgent::Accepted { run } => json!({ "accepted": label(run) }),
            FromAgent::Progress { run, progress } => {
                json!({ "progress": progress, "run": label(run) })
            }
            FromAgent::Delta { run, channel, text } => match channel {
                Channel::Text => json!({ "text": text, "run": label(run) }),
                Channel::Thought => json!({ "thought": text, "run": label(run) }),
            },
            FromAgent::Final { run, text } => json!({ "final": text, "run": label(run) }),
            FromAgent::Withdrawn { run } => json!({ "withdrawn": label(run) }),
            FromAgent::Tool { run, tool } => json!({ "tool": tool, "run": label(run) }),
            FromAgent::Asked {
                run,
                question,
                asked,
                patience,
            } => json!({
                "asked": question, "run": label(run), "question": asked,
                "patience": patience.map(|wait| wait.as_secs()),
            }),
            FromAgent::Told { id, answer } => match answer {
                Ok(answer) => json!({ "told": id, "answer": answer }),
                Err(declined) => json!({
                    "told": id, "declined": declined.message, "code": declined.code.as_str(),
                }),
            },
            FromAgent::Settled { question } => json!({ "settled": question }),
            FromAgent::Usage(usage) => json!({ "usage": usage }),
            FromAgent::ContextLeft(percent) => json!({ "contextLeft": percent }),
            FromAgent::Commands(commands) => json!({ "commands": commands }),
            FromAgent::Raw { dialect, value } => {
                assert_eq!(*dialect, self.protocol);
                json!({ "raw": value })
            }
            FromAgent::Plan(steps) => json!({ "plan": steps }),
            FromAgent::Activity(activity) => json!({ "activity": activity }),
            FromAgent::Title(title) => json!({ "title": title }),
            FromAgent::Notice { level, text } => json!({ "notice": text, "level": level }),
            FromAgent::Thread(thread) => json!({ "thread": thread }),
            FromAgent::Ended {
                run,
                outcome,
                usage,
            } => {
                json!({ "ended": label(run), "outcome": outcome, "usage": usage })
            }
        }
    }
}

fn brief(said: &Value) -> Brief {
    let mode = if said["mode"] == "plan" {
        Mode::Plan
    } else {
        Mode::Act
    };
    let image = |image: &Value| Image {
        media_type: text_of(&image["mediaType"]),
        base64: text_of(&image["base64"]),
    };
    let file = |file: &Value| File {
        name: text_of(&file["name"]),
        media_type: text_of(&file["mediaType"]),
        content: match &file["text"] {
            Value::String(text) => Content::Text(text.clone()),
            _ => Content::Base64(text_of(&file["base64"])),
        },
    };
    let each = |name: &str| said[name].as_array().cloned().unwrap_or_default();
    Brief {
        images: each("images").iter().map(image).collect(),
        files: each("files").iter().map(file).collect(),
        context: said.get("context").cloned(),
        meta: said.get("meta").cloned(),
        ..Brief::new(&text_of(&said["text"]), mode)
    }
}

fn resolution(said: &Value) -> Resolution {
    if said["expired"] == true {
        return Resolution::Expired;
    }
    if said["cancelled"] == true {
        return Resolution::Cancelled;
    }
    let strings = |ids: &[Value]| ids.iter().map(text_of).collect();
    let answer = if let Some(ok) = said["ok"].as_bool() {
        Said::Ok(ok)
    } else if let Some(option) = said["option"].as_str() {
        Said::Option(option.into())
    } else if let Some(ids) = said["ids"].as_array() {
        Said::Ids(strings(ids))
    } else {
        Said::Value(said["value"].as_str().map(str::to_owned))
    };
    Resolution::Answered(Answer {
        remember: said["remember"] == true,
        reason: said["reason"].as_str().map(str::to_owned),
        ..Answer::new(answer)
    })
}

/// Does it look as expected? `"*"` is anything, and objects may have more fields than expected.
fn fits(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::String(any), _) if any == "*" => true,
        (Value::Object(expected), Value::Object(found)) => expected
            .iter()
            .all(|(name, value)| fits(value, found.get(name).unwrap_or(&Value::Null))),
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected
                    .iter()
                    .zip(found)
                    .all(|(one, other)| fits(one, other))
        }
        _ => expected == found,
    }
}
