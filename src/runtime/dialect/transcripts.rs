//! Transcripts: replays the recordings under `tests/transcripts/PROTOCOL/*.ndjson` with each dialect.
//!
//! One step per line. Input: `{"open": {}}` (with `thread`, `options`, `history`), `{"session": …}`,
//! `{"agent": LINE, "lane": "events"}`, `{"late": MS}` (the timer that was set last,
//! after so many milliseconds, or `true`), `{"close": {}}`.
//! Expected output, in this order and nothing else: `{"writes": LINE}`, `{"tells": …}`, `{"acts": …}`.
//! `{"reports": …}` are the settings that the dialect has learned. In all of them, `"*"` matches
//! anything and an object may omit fields. `name` is for people. `{"dir", "name", "msg"}` lines are a
//! protocol's own vectors: those from the agent must be read without panic.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::*;
use crate::domain::command::Mode;
use crate::domain::question::{Answer, AnswerValue};
use crate::domain::queue::{QueueMode, QueueModes};

fn folder(protocol: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("tests/transcripts").join(protocol)
}

#[test]
fn every_dialect_replays_its_transcripts() {
    for protocol in TABLE {
        let mut count = 0;
        let entries = std::fs::read_dir(folder(protocol.name));
        let entries =
            entries.unwrap_or_else(|error| panic!("transcripts/{}: {error}", protocol.name));
        for entry in entries {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "ndjson") {
                play(protocol, &path);
                count += 1;
            }
        }
        assert!(count > 0, "{} has no transcript", protocol.name);
    }
}

fn play(protocol: &Protocol, path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut player = Player::new(protocol);
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let location = format!("{}:{}", path.display(), number + 1);
        let step: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{location}: {error}"));
        player.step(&step, &location);
    }
    player.expect_nothing_left(&format!("{}: at the end", path.display()));
}

struct Player {
    protocol: String,
    build: fn(Setup) -> Box<dyn Dialect>,
    dialect: Box<dyn Dialect>,
    out: VecDeque<Action>,
    timer: Option<(u64, Duration)>,
    runs: BTreeMap<String, RunId>,
}

fn lane_of(step: &Value) -> StreamKind {
    // Vectors name the socket in words.
    let name = step["name"].as_str().unwrap_or_default();
    let is_vector = step.get("msg").is_some() && name.starts_with("event socket");
    if step["lane"] == "events" || is_vector {
        StreamKind::Events
    } else {
        StreamKind::Main
    }
}

pub(super) fn setup(given: &Value) -> Setup {
    let said = |entry: &Value| PastMessage {
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
        branch_of: given["branchOf"].as_str().map(str::to_owned),
        history: given["history"]
            .as_array()
            .into_iter()
            .flatten()
            .map(said)
            .collect(),
        session: "ses_1".into(),
        user: UserInfo {
            id: "usr_1".into(),
            name: "ada".into(),
        },
        private_home: given["home"] == "user",
        options: given["options"]
            .as_object()
            .cloned()
            .unwrap_or_default()
            .into_iter()
            .collect(),
    }
}

impl Player {
    fn new(protocol: &Protocol) -> Self {
        Self {
            protocol: protocol.name.into(),
            build: protocol.build,
            dialect: (protocol.build)(setup(&json!({}))),
            out: VecDeque::new(),
            timer: None,
            runs: BTreeMap::new(),
        }
    }

    fn step(&mut self, step: &Value, location: &str) {
        if let Some(expected) = step.get("writes") {
            return match self.out.pop_front() {
                Some(Action::Write(lane, line)) => {
                    assert_eq!(lane, lane_of(step), "{location}");
                    assert!(
                        matches_pattern(expected, &line),
                        "{location}: wrote {line}\ninstead of {expected}"
                    );
                }
                other => panic!("{location}: {other:?}\ninstead of writing {expected}"),
            };
        }
        if let Some(expected) = step.get("tells").or(step.get("acts")) {
            let act = self.out.pop_front();
            let shown = act.as_ref().map_or(Value::Null, |act| self.show(act));
            assert!(
                matches_pattern(expected, &shown),
                "{location}: {shown}\ninstead of {expected}\n({act:?})"
            );
            return;
        }
        let mut out = Actions::default();
        if let Some(expected) = step.get("reports") {
            let settings = json!(self.dialect.settings());
            assert!(
                matches_pattern(expected, &settings),
                "{location}: reports {settings}\ninstead of {expected}"
            );
            return;
        }
        if let Some(line) = step.get("msg") {
            // A protocol's own vector: reading it must not panic.
            if step["dir"] == "rt2gw" {
                self.dialect.read(lane_of(step), line.clone(), &mut out);
            }
            return;
        }
        self.expect_nothing_left(location);
        if let Some(given) = step.get("open") {
            self.dialect = (self.build)(setup(given));
            self.dialect.open(&mut out);
        } else if let Some(said) = step.get("session") {
            let order = self.parse_order(said, location);
            self.dialect.handle(order, &mut out);
        } else if let Some(line) = step.get("agent") {
            self.dialect.read(lane_of(step), line.clone(), &mut out);
        } else if step.get("late").is_some() {
            let set = self.timer.take();
            let (timer, after) = set.unwrap_or_else(|| panic!("{location}: no timer is set"));
            let millis = u64::try_from(after.as_millis()).unwrap();
            let expected = step["late"].as_u64().unwrap_or(millis);
            assert_eq!(millis, expected, "{location}: milliseconds");
            self.dialect.on_timer(timer, &mut out);
        } else if step.get("close").is_some() {
            self.dialect.close(&mut out);
        } else {
            panic!("{location}: not a step: {step}");
        }
        for act in out.take() {
            match act {
                Action::SetTimer(name, Some(after)) => self.timer = Some((name, after)),
                Action::SetTimer(name, None) => {
                    self.timer = self.timer.filter(|(set, _)| *set != name);
                }
                act => self.out.push_back(act),
            }
        }
    }

    fn expect_nothing_left(&self, location: &str) {
        let left: Vec<Value> = self.out.iter().map(|act| self.show(act)).collect();
        assert!(
            left.is_empty(),
            "{location}: came out before and was not expected:\n{left:#?}"
        );
    }

    fn run(&mut self, said: &Value) -> RunId {
        let label = said["run"].as_str().unwrap_or("run-1").to_owned();
        *self.runs.entry(label).or_insert_with(RunId::new)
    }

    fn parse_order(&mut self, said: &Value, location: &str) -> ToAgent {
        let run = self.run(said);
        let text = || text_of(&said["text"]);
        let id = said["id"].as_u64().unwrap_or(1);
        let take = |mode: &Value| {
            if mode == "all" {
                QueueMode::All
            } else {
                QueueMode::One
            }
        };
        match said["type"].as_str().unwrap_or_default() {
            "prompt" => ToAgent::Prompt {
                run,
                prompt: prompt_content(said),
            },
            "steer" => ToAgent::Steer { run, text: text() },
            "followUp" => ToAgent::FollowUp {
                run,
                queued: self.run(&json!({ "run": said["queued"] })),
                text: text(),
            },
            "cancel" => ToAgent::Cancel { run },
            "answer" => ToAgent::Answer {
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
                let request = AgentRequest::Query { topic, params };
                ToAgent::Request { id, request }
            }
            "extension" => {
                let (name, payload) = (text_of(&said["name"]), said["payload"].clone());
                let request = AgentRequest::Extension { name, payload };
                ToAgent::Request { id, request }
            }
            "settings" => {
                ToAgent::Settings(serde_json::from_value(said["settings"].clone()).unwrap())
            }
            "tools" => ToAgent::Tools(serde_json::from_value(said["tools"].clone()).unwrap()),
            "context" => ToAgent::Context(said["context"].clone()),
            "queue" => ToAgent::QueueModes(QueueModes {
                steering: take(&said["steering"]),
                follow_up: take(&said["followUp"]),
            }),
            other => panic!("{location}: a session does not say `{other}`"),
        }
    }

    fn label(&self, run: RunId) -> String {
        let known = self.runs.iter().find(|(_, known)| **known == run);
        known.map_or_else(|| "unknown".into(), |(label, _)| label.clone())
    }

    fn show(&self, act: &Action) -> Value {
        match act {
            Action::Write(_, line) => json!({ "writes": line }),
            Action::DropUnwritten => json!({ "drop": "unwritten" }),
            Action::Ready { lacks } => json!({ "ready": true, "lacks": lacks }),
            Action::SetTimer(name, _) => json!({ "timer": name }),
            Action::Misrouted(what) => json!({ "stray": what }),
            Action::Unexpected(what) => json!({ "odd": what }),
            Action::Fail(declined) => {
                json!({ "fail": declined.message, "code": declined.code.as_str() })
            }
            Action::Finish => json!({ "finish": true }),
            Action::Emit(said) => self.show_event(said),
        }
    }

    fn show_event(&self, said: &FromAgent) -> Value {
        let label = |run: &RunId| self.label(*run);
        match said {
            FromAgent::RunAccepted { run } => json!({ "accepted": label(run) }),
            FromAgent::RunProgress { run, progress } => {
                json!({ "progress": progress, "run": label(run) })
            }
            FromAgent::MessageDelta { run, channel, text } => match channel {
                Channel::Text => json!({ "text": text, "run": label(run) }),
                Channel::Thought => json!({ "thought": text, "run": label(run) }),
            },
            FromAgent::MessageFinal { run, text } => json!({ "final": text, "run": label(run) }),
            FromAgent::FollowUpTaken { run, queued } => {
                json!({ "taken": label(queued), "run": label(run) })
            }
            FromAgent::MessageWhole { run, text, details } => {
                json!({ "final": text, "run": label(run), "details": details })
            }
            FromAgent::MessageWithdrawn { run } => json!({ "withdrawn": label(run) }),
            FromAgent::ToolUpdate { run, tool } => json!({ "tool": tool, "run": label(run) }),
            FromAgent::QuestionAsked {
                run,
                question,
                content,
                timeout,
            } => json!({
                "asked": question, "run": label(run), "question": content,
                "timeout": timeout.map(|wait| wait.as_secs()),
            }),
            FromAgent::SessionQuestion(asked) => json!({
                "asked": asked.question, "run": null, "question": asked.content,
                "timeout": asked.timeout.map(|wait| wait.as_secs()),
            }),
            FromAgent::Response { id, result } => match result {
                Ok(answer) => json!({ "told": id, "answer": answer }),
                Err(declined) => json!({
                    "told": id, "declined": declined.message, "code": declined.code.as_str(),
                }),
            },
            FromAgent::QuestionWithdrawn { question } => json!({ "settled": question }),
            FromAgent::Settings(settings) => json!({ "settings": settings }),
            FromAgent::Usage(usage) => json!({ "usage": usage }),
            FromAgent::ContextLeft(percent) => json!({ "contextLeft": percent }),
            FromAgent::CommandsAvailable(commands) => json!({ "commands": commands }),
            FromAgent::Raw { dialect, value } => {
                assert_eq!(*dialect, self.protocol);
                json!({ "raw": value })
            }
            FromAgent::WithMeta { event, meta } => {
                let mut shown = self.show_event(event);
                shown["meta"] = json!(meta);
                shown
            }
            FromAgent::PlanUpdated(steps) => json!({ "plan": steps }),
            FromAgent::Activity(activity) => json!({ "activity": activity }),
            FromAgent::TitleChanged(title) => json!({ "title": title }),
            FromAgent::Notice { level, text } => json!({ "notice": text, "level": level }),
            FromAgent::Thread(thread) => json!({ "thread": thread }),
            FromAgent::Undelivered { run, reason } => {
                json!({ "undelivered": label(run), "reason": reason.message })
            }
            FromAgent::RunError { run, error } => json!({ "error": error, "run": label(run) }),
            FromAgent::LinkFailed(cause) => json!({ "linkFailed": cause }),
            FromAgent::RunEnded {
                run,
                outcome,
                usage,
            } => {
                json!({ "ended": label(run), "outcome": outcome, "usage": usage })
            }
        }
    }
}

fn prompt_content(said: &Value) -> PromptContent {
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
    PromptContent {
        images: each("images").iter().map(image).collect(),
        files: each("files").iter().map(file).collect(),
        context: said.get("context").cloned(),
        meta: said.get("meta").cloned(),
        ..PromptContent::new(&text_of(&said["text"]), mode)
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
        AnswerValue::Ok(ok)
    } else if let Some(option) = said["option"].as_str() {
        AnswerValue::Option(option.into())
    } else if let Some(ids) = said["ids"].as_array() {
        AnswerValue::Ids(strings(ids))
    } else {
        AnswerValue::Text(said["value"].as_str().map(str::to_owned))
    };
    Resolution::Answered(Answer {
        remember: said["remember"] == true,
        reason: said["reason"].as_str().map(str::to_owned),
        ..Answer::new(answer)
    })
}

fn matches_pattern(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::String(any), _) if any == "*" => true,
        (Value::Object(expected), Value::Object(found)) => expected
            .iter()
            .all(|(name, value)| matches_pattern(value, found.get(name).unwrap_or(&Value::Null))),
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected
                    .iter()
                    .zip(found)
                    .all(|(one, other)| matches_pattern(one, other))
        }
        _ => expected == found,
    }
}
