//! Agents: one suite for every protocol, over its real transport, with the fake runtime as the agent.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::actors::{Gateway, Settings, WsClient, program};

mod attached;
mod codelia;
mod copilot_contract;
mod faults;
mod nous;
mod nous_branches;
mod openstarry_document;
mod permissions;
mod preflight;
mod reported_state;
mod sandbox;
mod system_user;
mod undelivered;

/// A protocol over one of its wires, played by the fake runtime with a protocol file.
#[derive(Clone)]
pub(crate) struct FakeAgent {
    /// The agent's name.
    pub(crate) name: String,
    protocol: String,
    wire: Option<String>,
    path: PathBuf,
    book: Value,
}

impl FakeAgent {
    /// Every wire of every protocol that the binary knows. A protocol without a protocol file fails.
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
        let mut agents: Vec<Self> = entries
            .filter_map(|entry| {
                let path = entry.path();
                let file = entry.file_name().into_string().unwrap();
                let wire = file.strip_suffix("protocol.json")?.strip_suffix('.');
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
        agents.sort_by(|one, other| one.name.cmp(&other.name));
        assert!(!agents.is_empty(), "{} has no phrasebook", folder.display());
        agents
    }

    /// The fake agent of a protocol with one wire.
    pub(crate) fn named(protocol: &str) -> Self {
        Self::of(protocol).remove(0)
    }

    /// Another agent with this protocol, whose protocol file is changed; it is written to `dir`.
    pub(crate) fn changed(&self, name: &str, dir: &Path, change: impl FnOnce(&mut Value)) -> Self {
        let mut agent = Self {
            name: name.to_owned(),
            path: dir.join(format!("{name}.json")),
            ..self.clone()
        };
        change(&mut agent.book);
        std::fs::write(&agent.path, agent.book.to_string()).unwrap();
        agent
    }

    /// Whether the protocol file has this section.
    pub(crate) fn supports(&self, section: &str) -> bool {
        self.book["run"].get(section).is_some()
    }

    /// Its section of the configuration file.
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

/// A gateway with every fake agent configured.
pub(crate) struct AgentFleet {
    pub(crate) gateway: Gateway,
    pub(crate) agents: Vec<FakeAgent>,
    mark: String,
}

impl AgentFleet {
    pub(crate) async fn start() -> Self {
        Self::with("", Settings::new()).await
    }

    /// Adds lines to the configuration of every agent.
    pub(crate) async fn with(more: &str, settings: Settings) -> Self {
        let agents = FakeAgent::all();
        let file: String = agents
            .iter()
            .map(|agent| agent.configuration(more))
            .collect();
        let settings = settings
            .with("LIMITS__MESSAGES_PER_MINUTE", "100000")
            .with("RUNTIME__MAX_AGENTS_PER_USER", "64");
        Self::of(agents, settings.with_config_file(&file).start().await)
    }

    pub(crate) fn of(agents: Vec<FakeAgent>, gateway: Gateway) -> Self {
        let data = gateway.sqlite_file().parent().unwrap().to_owned();
        let mark = std::fs::read_to_string(data.join("agents.mark")).unwrap();
        Self {
            gateway,
            agents,
            mark,
        }
    }

    /// A client in a new session with an agent.
    pub(crate) async fn joins(&self, user: &str, agent: &FakeAgent) -> WsClient {
        self.joins_with_query(user, &format!("?agent={}", agent.name))
            .await
    }

    pub(crate) async fn joins_with_query(&self, user: &str, query: &str) -> WsClient {
        let browser = self.gateway.logged_in(user).await;
        WsClient::connects(self.gateway.address(), &browser.token.unwrap(), query).await
    }

    /// The agent as administrators see it.
    pub(crate) async fn admin_view(&self, name: &str) -> Value {
        let root = self.gateway.logged_in("root").await;
        let agents = root.gets("/api/admin/agents").await.is(200).json();
        let agents = agents["agents"].as_array().unwrap().clone();
        agents
            .into_iter()
            .find(|agent| agent["name"] == name)
            .unwrap()
    }

    /// Whether a process (`/proc/PID`) is one of this gateway's agents, or a child of one.
    pub(crate) fn owns(&self, process: &Path) -> bool {
        let mark = format!("SWITCHBOARD_LINK={}-", self.mark);
        let read = std::fs::read(process.join("environ")).unwrap_or_default();
        let mut variables = read.split(|byte| *byte == 0);
        variables.any(|variable| variable.starts_with(mark.as_bytes()))
    }

    /// The live processes of this gateway's agents, and their children.
    pub(crate) fn processes(&self) -> Vec<String> {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let ours = entries
            .map(|entry| entry.path())
            .filter(|path| self.owns(path));
        let command = |path: PathBuf| std::fs::read_to_string(path.join("cmdline")).ok();
        ours.filter_map(command)
            .map(|command| command.replace('\0', " "))
            .collect()
    }

    /// Stops the gateway, and fails the test unless every process it started ends.
    pub(crate) async fn leaves_no_process(mut self) {
        self.gateway.signal("-TERM");
        assert_eq!(self.gateway.exit_code(), Some(0), "{}", self.gateway.log());
        let processes = || self.processes();
        wait_until("nothing is left", || processes().is_empty()).await;
    }

    /// Runs a check for every fake agent concurrently.
    async fn each<F: Future<Output = ()>>(&self, scene: impl Fn(FakeAgent) -> F) {
        join_all(self.agents.iter().cloned().map(scene)).await;
    }
}

/// Polls until a condition outside of the test holds.
pub(crate) async fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Sends a prompt and waits for the end of the run; returns its last status and the answer.
pub(crate) async fn runs_prompt(member: &mut WsClient, text: &str) -> (Value, String) {
    let before = member.text().len();
    member.prompts(text).await;
    let end = member.sees_run_end().await;
    (end, member.text().split_off(before))
}

/// Sends a prompt that must complete; returns the answer.
pub(crate) async fn completes_prompt(
    member: &mut WsClient,
    agent: &FakeAgent,
    text: &str,
) -> String {
    let (end, answer) = runs_prompt(member, text).await;
    assert_eq!(end["status"], "completed", "{} {text}: {end}", agent.name);
    answer
}

pub(crate) fn has_capability(member: &WsClient, capability: &str) -> bool {
    let has_capability = member.ack["capabilities"].as_array().unwrap();
    has_capability.iter().any(|word| word == capability)
}

fn types(member: &WsClient) -> Vec<&str> {
    let events = member.events.iter();
    events
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn every_agent_streams_its_answer_in_order() {
    let fleet = AgentFleet::start().await;
    fleet
        .each(async |agent| {
            let mut mia = fleet.joins("root", &agent).await;
            let answer = completes_prompt(&mut mia, &agent, "Good morning").await;
            assert!(answer.contains("Good morning"), "{}: {answer}", agent.name);
            let answer = completes_prompt(&mut mia, &agent, "/stream 50").await;
            let words: Vec<String> = answer.split_whitespace().map(str::to_owned).collect();
            let expected: Vec<String> = (1..=50).map(|n: u32| n.to_string()).collect();
            assert_eq!(words, expected, "{}", agent.name);
            // Each kind once.
            let offsets = mia.offsets();
            let expected: Vec<u64> = (1..=offsets.len() as u64).collect();
            assert_eq!(offsets, expected, "{}", agent.name);
            assert_eq!(mia.ends(), ["completed", "completed"], "{}", agent.name);
            let (end, _) = runs_prompt(&mut mia, "/fail").await;
            // The openstarry protocol cannot report a failure.
            if agent.name != "openstarry-document" {
                assert_eq!(end["status"], "error", "{}: {end}", agent.name);
            }
        })
        .await;
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn every_agent_reports_everything_its_protocol_supports() {
    let fleet = AgentFleet::start().await;
    fleet
        .each(async |agent| {
            let mut mia = fleet.joins("root", &agent).await;
            for (prompt, section, capability, kind) in [
                ("/plan", "plan", "plan", "PLAN_UPDATE"),
                ("/usage", "usage", "usage", "USAGE_UPDATE"),
                ("/commands", "commands", "commands", "COMMANDS_UPDATE"),
                ("/title A walk", "title", "", "TITLE_UPDATE"),
            ] {
                let before = mia.events.len();
                completes_prompt(&mut mia, &agent, prompt).await;
                let shown = types(&mia)[before..].contains(&kind);
                let ended = mia.events.last().unwrap()["payload"]["tokenUsage"].is_object();
                if kind == "USAGE_UPDATE" && !has_capability(&mia, capability) {
                    // Some report only the context left.
                } else if agent.supports(section)
                    && (capability.is_empty() || has_capability(&mia, capability))
                {
                    let shown = shown || (kind == "USAGE_UPDATE" && ended);
                    assert!(
                        shown,
                        "{} {prompt}: {:#?}",
                        agent.name,
                        &mia.events[before..]
                    );
                } else {
                    assert!(!shown, "{} {prompt}", agent.name);
                }
            }
            let before = mia.events.len();
            completes_prompt(&mut mia, &agent, "/think").await;
            let thought = |event: &Value| event["payload"]["channel"] == "thought";
            let thinks = agent.supports("thought");
            assert_eq!(
                mia.events[before..].iter().any(thought),
                thinks,
                "{}",
                agent.name
            );
            assert!(
                !thinks || has_capability(&mia, "thoughts"),
                "{}",
                agent.name
            );
        })
        .await;
    fleet.leaves_no_process().await;
}

async fn answers(member: &mut WsClient, allow: bool) -> Value {
    let asked = member.sees("QUESTION").await["payload"].clone();
    let mut answer = json!({ "questionId": asked["questionId"] });
    match asked["kind"].as_str().unwrap() {
        "permission" | "confirm" => answer["ok"] = allow.into(),
        "pick" => answer["ids"] = json!([asked["options"][usize::from(!allow)]["id"]]),
        // A protocol that cannot be approved: every answer is a denial with a reason.
        _ => answer["value"] = if allow { "yes" } else { "no" }.into(),
    }
    member.sends("ANSWER", answer).await;
    asked
}

#[tokio::test]
async fn a_tool_runs_only_if_a_user_allows_it() {
    let more = "question_timeout_secs = 1";
    let fleet = AgentFleet::with(more, Settings::new()).await;
    fleet
        .each(async |agent| {
            let mut mia = fleet.joins("root", &agent).await;
            assert!(
                !agent.supports("ask") || has_capability(&mia, "questions"),
                "{}",
                agent.name
            );
            if !agent.supports("ask") {
                let answer = completes_prompt(&mut mia, &agent, "/tool").await;
                assert!(!answer.contains("denied"), "{}: {answer}", agent.name);
                assert!(!types(&mia).contains(&"QUESTION"), "{}", agent.name);
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
                    agent.name
                );
                let reply = mia.text().split_off(before);
                let granted = allow && asked["kind"] != "prompt";
                let shown = if granted { "allowed" } else { "denied" };
                assert!(reply.contains(shown), "{} {allow}: {reply}", agent.name);
                let tool = mia
                    .events
                    .iter()
                    .rfind(|event| event["type"] == "TOOL_UPDATE");
                let status = tool.unwrap()["payload"]["status"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                let expected = match granted {
                    true => "completed",
                    // A dialog of an extension, which does not say for which tool it is.
                    false if agent.protocol == "pi" => "failed",
                    false => "denied",
                };
                assert_eq!(status, expected, "{} {allow}", agent.name);
            }
            // The question stays unanswered.
            let before = mia.text().len();
            mia.prompts("/tool").await;
            mia.sees("QUESTION").await;
            let resolved = mia.sees("QUESTION_RESOLVED").await;
            assert_eq!(
                resolved["payload"]["outcome"], "expired",
                "{}: {resolved}",
                agent.name
            );
            mia.sees_run_end().await;
            let reply = mia.text().split_off(before);
            assert!(!reply.contains("allowed"), "{}: {reply}", agent.name);
        })
        .await;
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn every_kind_of_question_can_be_answered() {
    let fleet = AgentFleet::start().await;
    fleet
        .each(async |agent| {
            let mut mia = fleet.joins("root", &agent).await;
            for (prompt, section) in [
                ("/confirm", "confirm"),
                ("/prompt", "prompt"),
                ("/pick", "pick"),
            ] {
                let before = mia.text().len();
                mia.prompts(prompt).await;
                if !agent.supports(section) || (agent.protocol == "acp") {
                    // In ACP only for clients that declare them.
                    assert_eq!(
                        mia.sees_run_end().await["status"],
                        "completed",
                        "{}",
                        agent.name
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
                assert_eq!(end["status"], "completed", "{} {prompt}: {end}", agent.name);
                let reply = mia.text().split_off(before);
                assert!(
                    !reply.contains("nothing"),
                    "{} {prompt}: {reply}",
                    agent.name
                );
            }
        })
        .await;
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn a_run_can_be_cancelled_before_during_and_after_its_work() {
    let fleet = AgentFleet::start().await;
    fleet
        .each(async |agent| {
            let mut mia = fleet.joins("root", &agent).await;
            // A run that cannot be cancelled continues to its end, and the next one waits.
            let long = if agent.supports("cancelled") {
                "/stream 100000 20"
            } else {
                "/stream 100 20"
            };
            // Before the agent is ready.
            mia.prompts(long).await;
            mia.sends("CANCEL_TASK", json!({})).await;
            assert_eq!(
                mia.sees_run_end().await["status"],
                "cancelled",
                "{}",
                agent.name
            );
            // During the run.
            mia.prompts(long).await;
            if agent.supports("cancelled") {
                mia.sees("TASK_OUTPUT_CHUNK").await;
            }
            mia.sends("CANCEL_TASK", json!({})).await;
            assert_eq!(
                mia.sees_run_end().await["status"],
                "cancelled",
                "{}",
                agent.name
            );
            // The agent answers again, and a cancel after the end changes nothing.
            if agent.supports("cancelled") {
                let answer = completes_prompt(&mut mia, &agent, "/echo again").await;
                assert!(answer.contains("again"), "{}: {answer}", agent.name);
                mia.sends("CANCEL_TASK", json!({})).await;
                mia.sends("HEARTBEAT", json!({})).await;
                mia.sees("HEARTBEAT").await;
                assert_eq!(mia.ends().last().unwrap(), "completed", "{}", agent.name);
            }
        })
        .await;
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn cancelling_an_agent_that_is_asking_leaves_no_question_open() {
    let fleet = AgentFleet::start().await;
    fleet
        .each(async |agent| {
            if !agent.supports("ask") {
                return;
            }
            let mut mia = fleet.joins("root", &agent).await;
            mia.prompts("/ask-cancelled").await;
            mia.sees("QUESTION").await;
            mia.sends("CANCEL_TASK", json!({})).await;
            assert_eq!(
                mia.sees_run_end().await["status"],
                "cancelled",
                "{}",
                agent.name
            );
            mia.sends("REQUEST_STATE", json!({ "includeHistory": false }))
                .await;
            let state = mia.sees("FULL_STATE").await;
            assert_eq!(state["payload"]["questions"], json!([]), "{}", agent.name);
        })
        .await;
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn a_steering_message_reaches_the_agent_in_the_same_run() {
    let fleet = AgentFleet::start().await;
    fleet
        .each(async |agent| {
            let mut mia = fleet.joins("root", &agent).await;
            mia.prompts("/stream 100 20").await;
            while mia.sees("TASK_STATUS_UPDATE").await["payload"]["status"] != "running" {}
            mia.sends("STEER", json!({ "text": "be brief" })).await;
            if has_capability(&mia, "steer") {
                assert_eq!(
                    mia.sees_run_end().await["status"],
                    "completed",
                    "{}",
                    agent.name
                );
                let reply = mia.text();
                assert!(
                    reply.contains("steered: be brief"),
                    "{}: {reply}",
                    agent.name
                );
                let ours = |event: &&Value| event["type"] == "MESSAGE";
                let message = mia.events.iter().find(ours).unwrap();
                assert_eq!(message["payload"]["content"], "be brief", "{}", agent.name);
            } else {
                // It is queued and becomes the next run.
                mia.sees("QUEUE_UPDATE").await;
                assert_eq!(
                    mia.sees_run_end().await["status"],
                    "completed",
                    "{}",
                    agent.name
                );
                assert_eq!(
                    mia.sees_run_end().await["status"],
                    "completed",
                    "{}",
                    agent.name
                );
                assert!(
                    mia.text().contains("be brief"),
                    "{}: {}",
                    agent.name,
                    mia.text()
                );
            }
        })
        .await;
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn files_and_images_reach_the_agent_or_are_refused_by_name() {
    let fleet = AgentFleet::start().await;
    fleet.each(async |agent| {
        let mut mia = fleet.joins("root", &agent).await;
        // An agent's capabilities are known once it is ready.
        completes_prompt(&mut mia, &agent, "/echo ready").await;
        let file = json!({ "name": "notes.txt", "type": "text/plain", "content": "walrus notes" });
        let prompt = json!({ "text": "/show", "mode": "act", "attachments": [file] });
        let before = mia.text().len();
        mia.sends("SUBMIT_PROMPT", prompt).await;
        let end = mia.sees_run_end().await;
        assert_eq!(end["status"], "completed", "{}: {end}", agent.name);
        let reply = mia.text().split_off(before);
        assert!(reply.contains("walrus notes"), "{}: {reply}", agent.name);
        let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
        let prompt = json!({ "text": "/show", "mode": "act", "images": [pixel] });
        let before = mia.text().len();
        mia.sends("SUBMIT_PROMPT", prompt).await;
        let end = mia.sees_run_end().await;
        let knows = fleet.joins("root", &agent).await;
        if has_capability(&knows, "images") {
            assert_eq!(end["status"], "completed", "{}: {end}", agent.name);
            let reply = mia.text().split_off(before);
            assert!(reply.contains("iVBORw0KGgo"), "{}: {reply}", agent.name);
        } else {
            assert_eq!(end["error"]["code"], "UNSUPPORTED", "{}: {end}", agent.name);
            let message = end["error"]["message"].as_str().unwrap();
            assert!(message.contains(&agent.name), "{message}");
        }
    })
    .await;
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn two_concurrent_sessions_see_only_their_own_events() {
    let fleet = AgentFleet::start().await;
    for name in ["mia", "ben"] {
        fleet.gateway.adds_user(name, "member");
    }
    fleet
        .each(async |agent| {
            let mut mia = fleet.joins("mia", &agent).await;
            let mut ben = fleet.joins("ben", &agent).await;
            for (member, word) in [(&mut mia, "walrus"), (&mut ben, "otter")] {
                member.prompts(&format!("/stream 100 5 {word}")).await;
            }
            for (member, word) in [(&mut mia, "walrus"), (&mut ben, "otter")] {
                assert_eq!(
                    member.sees_run_end().await["status"],
                    "completed",
                    "{}",
                    agent.name
                );
                let answer = completes_prompt(member, &agent, &format!("/echo {word}")).await;
                assert!(answer.contains(word), "{}: {answer}", agent.name);
            }
            for (member, foreign) in [(&mia, "otter"), (&ben, "walrus")] {
                for event in &member.events {
                    assert!(
                        !event.to_string().contains(foreign),
                        "{}: {event}",
                        agent.name
                    );
                }
            }
        })
        .await;
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn after_a_restart_a_conversation_resumes_or_is_reported_as_new() {
    let mut fleet = AgentFleet::start().await;
    let mut sessions = Vec::new();
    for agent in &fleet.agents {
        let mut mia = fleet.joins("root", agent).await;
        completes_prompt(&mut mia, agent, "/remember walrus").await;
        sessions.push(mia.session());
    }
    fleet.gateway.kill();
    fleet.gateway.restart();
    for (agent, session) in fleet.agents.iter().zip(sessions) {
        let mut mia = fleet
            .joins_with_query("root", &format!("?session={session}"))
            .await;
        let answer = completes_prompt(&mut mia, agent, "/recall").await;
        let fresh = |event: &Value| {
            let text = event["payload"]["text"].as_str().unwrap_or_default();
            event["type"] == "AGENT_NOTICE" && text.contains("fresh")
        };
        let is_fresh = mia.events.iter().any(fresh);
        // The agent's replay of its history is not journaled again.
        assert!(
            !mia.text().contains("/remember"),
            "{}: {}",
            agent.name,
            mia.text()
        );
        // Copilot keeps no conversation: the gateway sends it the history.
        if !has_capability(&mia, "resume") {
            assert!(is_fresh, "{}: {answer}", agent.name);
        } else if agent.name != "copilot" {
            assert_ne!(
                answer.contains("walrus"),
                is_fresh,
                "{}: {answer}",
                agent.name
            );
        }
    }
    fleet.leaves_no_process().await;
}
