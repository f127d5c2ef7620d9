//! Every protocol in the table, over its real transport, with the fake runtime as the agent: one suite
//! that all of them have to pass.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::actors::{Gateway, Member, Settings, program};

mod faults;
mod sockets;

/// A protocol over one of its wires, and how the fake runtime words it.
#[derive(Clone)]
pub(crate) struct Part {
    /// The agent's name.
    pub(crate) name: String,
    protocol: String,
    wire: Option<String>,
    path: PathBuf,
    book: Value,
}

impl Part {
    /// Every part of every protocol that the binary knows. One without a phrasebook fails.
    pub(crate) fn all() -> Vec<Self> {
        let asked = program(
            &std::env::temp_dir(),
            &["agent", "protocols", "--json"],
            &[],
        );
        let protocols: Vec<Value> = serde_json::from_slice(&asked.stdout).unwrap();
        let names = protocols
            .iter()
            .map(|protocol| protocol["name"].as_str().unwrap());
        names
            .filter(|name| *name != "demo")
            .flat_map(Self::of)
            .collect()
    }

    fn of(protocol: &str) -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = root.join("tests/transcripts").join(protocol);
        let entries = std::fs::read_dir(&folder).unwrap().flatten();
        let mut parts: Vec<Self> = entries
            .filter_map(|entry| {
                let path = entry.path();
                let file = entry.file_name().into_string().unwrap();
                let wire = file.strip_suffix("phrasebook.json")?.strip_suffix('.');
                let name = match wire {
                    Some(wire) => format!("{protocol}-{wire}"),
                    None => protocol.to_owned(),
                };
                Some(Self {
                    name,
                    protocol: protocol.to_owned(),
                    wire: wire.map(str::to_owned),
                    book: serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap(),
                    path,
                })
            })
            .collect();
        parts.sort_by(|one, other| one.name.cmp(&other.name));
        assert!(!parts.is_empty(), "{} has no phrasebook", folder.display());
        parts
    }

    /// Has the protocol a word for this?
    pub(crate) fn can_say(&self, section: &str) -> bool {
        self.book["scene"].get(section).is_some()
    }

    /// The part of the configuration file.
    pub(crate) fn configuration(&self, more: &str) -> String {
        let Self { name, protocol, .. } = self;
        let transport = self.book["transport"].as_str().unwrap();
        let mut command = vec![
            env!("CARGO_BIN_EXE_fake-runtime"),
            self.path.to_str().unwrap(),
        ];
        if transport != "stdio" {
            command.extend(["--socket", "{socket}"]);
        }
        let framing = match self.book["framing"].as_str() {
            Some("form-feed" | "node-ipc") => "node-ipc",
            _ => "newline",
        };
        let wire = self
            .wire
            .as_ref()
            .map(|wire| format!("options = {{ wire = {wire:?} }}"));
        let wire = wire.unwrap_or_default();
        format!(
            "[agents.{name}]\nprotocol = {protocol:?}\ncommand = {command:?}\n\
             transport = {transport:?}\nframing = {framing:?}\n{wire}\n{more}\n"
        )
    }
}

/// A gateway with every part behind it.
pub(crate) struct Cast {
    pub(crate) gateway: Gateway,
    pub(crate) parts: Vec<Part>,
    mark: String,
}

impl Cast {
    pub(crate) async fn start() -> Self {
        Self::with("", Settings::new()).await
    }

    /// With more lines in the configuration of every agent.
    pub(crate) async fn with(more: &str, settings: Settings) -> Self {
        let parts = Part::all();
        let file: String = parts.iter().map(|part| part.configuration(more)).collect();
        let settings = settings
            .with("LIMITS__MESSAGES_PER_MINUTE", "100000")
            .with("RUNTIME__MAX_AGENTS_PER_USER", "64");
        Self::of(parts, settings.configured(&file).start().await)
    }

    pub(crate) fn of(parts: Vec<Part>, gateway: Gateway) -> Self {
        let data = gateway.sqlite_file().parent().unwrap().to_owned();
        let mark = std::fs::read_to_string(data.join("agents.mark")).unwrap();
        Self {
            gateway,
            parts,
            mark,
        }
    }

    /// Somebody in a new session with an agent.
    pub(crate) async fn joins(&self, user: &str, part: &Part) -> Member {
        self.comes(user, &format!("?agent={}", part.name)).await
    }

    pub(crate) async fn comes(&self, user: &str, query: &str) -> Member {
        let browser = self.gateway.browser(user).await;
        Member::joins(self.gateway.address(), &browser.token.unwrap(), query).await
    }

    /// What an administrator sees of an agent.
    pub(crate) async fn seen(&self, name: &str) -> Value {
        let root = self.gateway.browser("root").await;
        let agents = root.gets("/api/admin/agents").await.is(200).json();
        let agents = agents["agents"].as_array().unwrap().clone();
        agents
            .into_iter()
            .find(|agent| agent["name"] == name)
            .unwrap()
    }

    /// The living processes that agents of this gateway are or have started.
    pub(crate) fn processes(&self) -> Vec<String> {
        let mark = format!("SWITCHBOARD_LINK={}/", self.mark);
        let carries = |process: &Path| {
            let read = std::fs::read(process.join("environ")).unwrap_or_default();
            let mut variables = read.split(|byte| *byte == 0);
            variables.any(|variable| variable.starts_with(mark.as_bytes()))
        };
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let ours = entries
            .map(|entry| entry.path())
            .filter(|path| carries(path));
        let command = |path: PathBuf| std::fs::read_to_string(path.join("cmdline")).ok();
        ours.filter_map(command)
            .map(|command| command.replace('\0', " "))
            .collect()
    }

    /// Stops the gateway, and fails the test unless everything that it started goes with it.
    pub(crate) async fn leaves_nothing(mut self) {
        self.gateway.signal("-TERM");
        assert_eq!(self.gateway.exit_code(), Some(0), "{}", self.gateway.log());
        let processes = || self.processes();
        comes_true("nothing is left", || processes().is_empty()).await;
    }

    /// The same for every part, all at once.
    async fn each<F: Future<Output = ()>>(&self, scene: impl Fn(Part) -> F) {
        join_all(self.parts.iter().cloned().map(scene)).await;
    }
}

/// Waits for something that happens outside of the test.
pub(crate) async fn comes_true(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Says something and waits for the end of the run: its last status, and what was answered.
pub(crate) async fn tells(member: &mut Member, text: &str) -> (Value, String) {
    let before = member.text().len();
    member.prompts(text).await;
    let end = member.sees_run_end().await;
    (end, member.text().split_off(before))
}

/// Says something, which must be completed; what was answered.
pub(crate) async fn asks(member: &mut Member, part: &Part, text: &str) -> String {
    let (end, answer) = tells(member, text).await;
    assert_eq!(end["status"], "completed", "{} {text}: {end}", part.name);
    answer
}

pub(crate) fn able(member: &Member, capability: &str) -> bool {
    let able = member.ack["capabilities"].as_array().unwrap();
    able.iter().any(|word| word == capability)
}

fn types(member: &Member) -> Vec<&str> {
    let events = member.events.iter();
    events
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn every_agent_answers_in_pieces_and_in_order() {
    let cast = Cast::start().await;
    cast.each(async |part| {
        let mut mia = cast.joins("root", &part).await;
        let answer = asks(&mut mia, &part, "Good morning").await;
        assert!(answer.contains("Good morning"), "{}: {answer}", part.name);
        let answer = asks(&mut mia, &part, "/stream 50").await;
        let words: Vec<String> = answer.split_whitespace().map(str::to_owned).collect();
        let expected: Vec<String> = (1..=50).map(|n: u32| n.to_string()).collect();
        assert_eq!(words, expected, "{}", part.name);
        // One of everything, none twice.
        let offsets = mia.offsets();
        let expected: Vec<u64> = (1..=offsets.len() as u64).collect();
        assert_eq!(offsets, expected, "{}", part.name);
        assert_eq!(mia.ends(), ["completed", "completed"], "{}", part.name);
        let (end, _) = tells(&mut mia, "/fail").await;
        // The document of openstarry has no word for a failure.
        if part.name != "openstarry-document" {
            assert_eq!(end["status"], "error", "{}: {end}", part.name);
        }
    })
    .await;
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn every_agent_tells_what_its_protocol_has_words_for() {
    let cast = Cast::start().await;
    cast.each(async |part| {
        let mut mia = cast.joins("root", &part).await;
        for (prompt, section, capability, kind) in [
            ("/plan", "plan", "plan", "PLAN_UPDATE"),
            ("/usage", "usage", "usage", "USAGE_UPDATE"),
            ("/commands", "commands", "commands", "COMMANDS_UPDATE"),
            ("/title A walk", "title", "", "TITLE_UPDATE"),
        ] {
            let before = mia.events.len();
            asks(&mut mia, &part, prompt).await;
            let told = types(&mia)[before..].contains(&kind);
            let ended = mia.events.last().unwrap()["payload"]["tokenUsage"].is_object();
            if kind == "USAGE_UPDATE" && !able(&mia, capability) {
                // Some tell only how much of the context is left.
            } else if part.can_say(section) && (capability.is_empty() || able(&mia, capability)) {
                let told = told || (kind == "USAGE_UPDATE" && ended);
                assert!(told, "{} {prompt}: {:#?}", part.name, &mia.events[before..]);
            } else {
                assert!(!told, "{} {prompt}", part.name);
            }
        }
        let before = mia.events.len();
        asks(&mut mia, &part, "/think").await;
        let thought = |event: &Value| event["payload"]["channel"] == "thought";
        let thinks = part.can_say("thought");
        assert_eq!(
            mia.events[before..].iter().any(thought),
            thinks,
            "{}",
            part.name
        );
        assert!(!thinks || able(&mia, "thoughts"), "{}", part.name);
    })
    .await;
    cast.leaves_nothing().await;
}

/// Answers the next question.
async fn answers(member: &mut Member, allow: bool) -> Value {
    let asked = member.sees("QUESTION").await["payload"].clone();
    let mut answer = json!({ "questionId": asked["questionId"] });
    match asked["kind"].as_str().unwrap() {
        "permission" | "confirm" => answer["ok"] = allow.into(),
        "pick" => answer["ids"] = json!([asked["options"][usize::from(!allow)]["id"]]),
        // A protocol that cannot be told yes: whatever is said is a no with a reason.
        _ => answer["value"] = if allow { "yes" } else { "no" }.into(),
    }
    member.sends("ANSWER", answer).await;
    asked
}

#[tokio::test]
async fn a_tool_is_used_only_if_somebody_allows_it() {
    let more = "question_timeout_secs = 1";
    let cast = Cast::with(more, Settings::new()).await;
    cast.each(async |part| {
        let mut mia = cast.joins("root", &part).await;
        assert!(
            !part.can_say("ask") || able(&mia, "questions"),
            "{}",
            part.name
        );
        if !part.can_say("ask") {
            let answer = asks(&mut mia, &part, "/tool").await;
            assert!(!answer.contains("denied"), "{}: {answer}", part.name);
            assert!(!types(&mia).contains(&"QUESTION"), "{}", part.name);
            return;
        }
        for allow in [true, false] {
            let before = mia.text().len();
            mia.prompts("/tool").await;
            let asked = answers(&mut mia, allow).await;
            assert_eq!(
                mia.sees_run_end().await["status"],
                "completed",
                "{}",
                part.name
            );
            let said = mia.text().split_off(before);
            let granted = allow && asked["kind"] != "prompt";
            let told = if granted { "allowed" } else { "denied" };
            assert!(said.contains(told), "{} {allow}: {said}", part.name);
            let tool = mia
                .events
                .iter()
                .rfind(|event| event["type"] == "TOOL_UPDATE");
            let status = tool.unwrap()["payload"]["status"]
                .as_str()
                .unwrap()
                .to_owned();
            let fits = if granted {
                status == "completed"
            } else {
                status == "denied" || status == "failed"
            };
            assert!(fits, "{} {allow}: {status}", part.name);
        }
        // Nobody answers.
        let before = mia.text().len();
        mia.prompts("/tool").await;
        mia.sees("QUESTION").await;
        let resolved = mia.sees("QUESTION_RESOLVED").await;
        assert_eq!(
            resolved["payload"]["outcome"], "expired",
            "{}: {resolved}",
            part.name
        );
        mia.sees_run_end().await;
        let said = mia.text().split_off(before);
        assert!(!said.contains("allowed"), "{}: {said}", part.name);
    })
    .await;
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn other_questions_are_asked_and_answered() {
    let cast = Cast::start().await;
    cast.each(async |part| {
        let mut mia = cast.joins("root", &part).await;
        for (prompt, section) in [
            ("/confirm", "confirm"),
            ("/prompt", "prompt"),
            ("/pick", "pick"),
        ] {
            let before = mia.text().len();
            mia.prompts(prompt).await;
            if !part.can_say(section) || (part.protocol == "acp") {
                // ACP has these only for clients that declare them.
                assert_eq!(
                    mia.sees_run_end().await["status"],
                    "completed",
                    "{}",
                    part.name
                );
                continue;
            }
            let asked = mia.sees("QUESTION").await["payload"].clone();
            let mut answer = json!({ "questionId": asked["questionId"] });
            match asked["kind"].as_str().unwrap() {
                "confirm" | "permission" => answer["ok"] = true.into(),
                "pick" => answer["ids"] = json!([asked["options"][1]["id"]]),
                _ => answer["value"] = "otter".into(),
            }
            mia.sends("ANSWER", answer).await;
            let end = mia.sees_run_end().await;
            assert_eq!(end["status"], "completed", "{} {prompt}: {end}", part.name);
            let said = mia.text().split_off(before);
            assert!(!said.contains("nothing"), "{} {prompt}: {said}", part.name);
        }
    })
    .await;
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn a_run_is_cancelled_before_while_and_after() {
    let cast = Cast::start().await;
    cast.each(async |part| {
        let mut mia = cast.joins("root", &part).await;
        // One that cannot be stopped goes on until its end, and the next one waits for that.
        let long = if part.can_say("cancelled") {
            "/stream 100000 20"
        } else {
            "/stream 100 20"
        };
        // Before the agent is even ready.
        mia.prompts(long).await;
        mia.sends("CANCEL_TASK", json!({})).await;
        assert_eq!(
            mia.sees_run_end().await["status"],
            "cancelled",
            "{}",
            part.name
        );
        // In the middle.
        mia.prompts(long).await;
        if part.can_say("cancelled") {
            mia.sees("TASK_OUTPUT_CHUNK").await;
        }
        mia.sends("CANCEL_TASK", json!({})).await;
        assert_eq!(
            mia.sees_run_end().await["status"],
            "cancelled",
            "{}",
            part.name
        );
        // It answers again, and a cancel after the end changes nothing.
        if part.can_say("cancelled") {
            let answer = asks(&mut mia, &part, "/echo again").await;
            assert!(answer.contains("again"), "{}: {answer}", part.name);
            mia.sends("CANCEL_TASK", json!({})).await;
            mia.sends("HEARTBEAT", json!({})).await;
            mia.sees("HEARTBEAT").await;
            assert_eq!(mia.ends().last().unwrap(), "completed", "{}", part.name);
        }
    })
    .await;
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn an_agent_that_asks_while_it_is_cancelled_leaves_no_question_open() {
    let cast = Cast::start().await;
    cast.each(async |part| {
        if !part.can_say("ask") {
            return;
        }
        let mut mia = cast.joins("root", &part).await;
        mia.prompts("/ask-cancelled").await;
        mia.sees("QUESTION").await;
        mia.sends("CANCEL_TASK", json!({})).await;
        assert_eq!(
            mia.sees_run_end().await["status"],
            "cancelled",
            "{}",
            part.name
        );
        mia.sends("REQUEST_STATE", json!({ "includeHistory": false }))
            .await;
        let state = mia.sees("FULL_STATE").await;
        assert_eq!(state["payload"]["questions"], json!([]), "{}", part.name);
    })
    .await;
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn what_is_steered_is_heard_in_the_same_run() {
    let cast = Cast::start().await;
    cast.each(async |part| {
        let mut mia = cast.joins("root", &part).await;
        mia.prompts("/stream 100 20").await;
        while mia.sees("TASK_STATUS_UPDATE").await["payload"]["status"] != "running" {}
        mia.sends("STEER", json!({ "text": "be brief" })).await;
        if able(&mia, "steer") {
            assert_eq!(
                mia.sees_run_end().await["status"],
                "completed",
                "{}",
                part.name
            );
            let said = mia.text();
            assert!(said.contains("steered: be brief"), "{}: {said}", part.name);
            let ours = |event: &&Value| event["type"] == "MESSAGE";
            let message = mia.events.iter().find(ours).unwrap();
            assert_eq!(message["payload"]["content"], "be brief", "{}", part.name);
        } else {
            // It waits, and is the next run.
            mia.sees("QUEUE_UPDATE").await;
            assert_eq!(
                mia.sees_run_end().await["status"],
                "completed",
                "{}",
                part.name
            );
            assert_eq!(
                mia.sees_run_end().await["status"],
                "completed",
                "{}",
                part.name
            );
            assert!(
                mia.text().contains("be brief"),
                "{}: {}",
                part.name,
                mia.text()
            );
        }
    })
    .await;
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn files_and_images_reach_the_agent_or_are_refused_by_name() {
    let cast = Cast::start().await;
    cast.each(async |part| {
        let mut mia = cast.joins("root", &part).await;
        // The capabilities of this very agent are known once it is ready.
        asks(&mut mia, &part, "/echo ready").await;
        let file = json!({ "name": "notes.txt", "type": "text/plain", "content": "walrus notes" });
        let prompt = json!({ "text": "/show", "mode": "act", "attachments": [file] });
        let before = mia.text().len();
        mia.sends("SUBMIT_PROMPT", prompt).await;
        let end = mia.sees_run_end().await;
        assert_eq!(end["status"], "completed", "{}: {end}", part.name);
        let said = mia.text().split_off(before);
        assert!(said.contains("walrus notes"), "{}: {said}", part.name);
        let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
        let prompt = json!({ "text": "/show", "mode": "act", "images": [pixel] });
        let before = mia.text().len();
        mia.sends("SUBMIT_PROMPT", prompt).await;
        let end = mia.sees_run_end().await;
        let knows = cast.joins("root", &part).await;
        if able(&knows, "images") {
            assert_eq!(end["status"], "completed", "{}: {end}", part.name);
            let said = mia.text().split_off(before);
            assert!(said.contains("iVBORw0KGgo"), "{}: {said}", part.name);
        } else {
            assert_eq!(end["error"]["code"], "UNSUPPORTED", "{}: {end}", part.name);
            let message = end["error"]["message"].as_str().unwrap();
            assert!(message.contains(&part.name), "{message}");
        }
    })
    .await;
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn two_sessions_at_once_see_only_their_own() {
    let cast = Cast::start().await;
    for name in ["mia", "ben"] {
        cast.gateway.has_user(name, "member");
    }
    cast.each(async |part| {
        let mut mia = cast.joins("mia", &part).await;
        let mut ben = cast.joins("ben", &part).await;
        for (member, word) in [(&mut mia, "walrus"), (&mut ben, "otter")] {
            member.prompts(&format!("/stream 100 5 {word}")).await;
        }
        for (member, word) in [(&mut mia, "walrus"), (&mut ben, "otter")] {
            assert_eq!(
                member.sees_run_end().await["status"],
                "completed",
                "{}",
                part.name
            );
            let answer = asks(member, &part, &format!("/echo {word}")).await;
            assert!(answer.contains(word), "{}: {answer}", part.name);
        }
        for (member, foreign) in [(&mia, "otter"), (&ben, "walrus")] {
            for event in &member.events {
                assert!(
                    !event.to_string().contains(foreign),
                    "{}: {event}",
                    part.name
                );
            }
        }
    })
    .await;
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn a_conversation_goes_on_after_a_restart_or_is_said_to_begin_anew() {
    let mut cast = Cast::start().await;
    let mut sessions = Vec::new();
    for part in &cast.parts {
        let mut mia = cast.joins("root", part).await;
        asks(&mut mia, part, "/remember walrus").await;
        sessions.push(mia.session());
    }
    cast.gateway.kill();
    cast.gateway.restart();
    for (part, session) in cast.parts.iter().zip(sessions) {
        let mut mia = cast.comes("root", &format!("?session={session}")).await;
        let answer = asks(&mut mia, part, "/recall").await;
        let fresh = |event: &Value| {
            let text = event["payload"]["text"].as_str().unwrap_or_default();
            event["type"] == "AGENT_NOTICE" && text.contains("fresh")
        };
        let is_fresh = mia.events.iter().any(fresh);
        // What the agent knows of the past is not told as if it were new.
        assert!(
            !mia.text().contains("/remember"),
            "{}: {}",
            part.name,
            mia.text()
        );
        // Copilot has no conversation: the gateway tells it what was said.
        if !able(&mia, "resume") {
            assert!(is_fresh, "{}: {answer}", part.name);
        } else if part.name != "copilot" {
            assert_ne!(
                answer.contains("walrus"),
                is_fresh,
                "{}: {answer}",
                part.name
            );
        }
    }
    cast.leaves_nothing().await;
}
