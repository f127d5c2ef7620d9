//! Permissions: what an answer covers, and how a denial is shown, with agents that act as real ones do.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{AgentFleet, FakeAgent, runs_prompt};
use crate::actors::{Settings, WsClient};

/// `agentInfo`, the options of a permission, the option that is stored in the home, and the lines
/// after a denial.
fn acts_as(
    dir: &Path,
    name: &str,
    info: &str,
    options: Value,
    stored: &str,
    denied: &Value,
) -> FakeAgent {
    FakeAgent::named("acp").changed(name, dir, |book| {
        let rules = book["rules"].as_array_mut().unwrap();
        rules[0]["say"][0]["result"]["agentInfo"]["name"] = info.into();
        let answer = rules.iter_mut().find(|rule| rule["answer"] == true);
        let answer = answer.unwrap();
        let ids: Vec<&Value> = options.as_array().unwrap().iter().collect();
        let allows = |option: &&&Value| option["kind"].as_str().unwrap().starts_with("allow");
        let granted: Vec<&Value> = ids
            .iter()
            .filter(allows)
            .map(|option| &option["optionId"])
            .collect();
        let pointer = "/result/outcome/optionId";
        answer["granted"] = json!([{ "pointer": pointer, "in": granted }]);
        answer["lasts"] = json!([{ "pointer": pointer, "in": [stored] }]);
        let run = &mut book["run"];
        run["ask"][0]["params"]["options"] = options;
        for (section, lines) in denied.as_object().unwrap() {
            run[section] = lines.clone();
        }
    })
}

/// codex-acp: an amendment of its policy is stored in its home, and a denial ends the turn.
fn codex(dir: &Path) -> FakeAgent {
    let options = json!([
        { "optionId": "allow_once", "kind": "allow_once", "name": "Yes, proceed" },
        { "optionId": "allow_for_session", "kind": "allow_always", "name": "Yes, and don't ask again for this command in this session" },
        { "optionId": "accept_execpolicy_amendment", "kind": "allow_always", "name": "Yes, and don't ask again for commands that start with `ls`" },
        { "optionId": "cancel", "kind": "reject_once", "name": "No, and tell Codex what to do differently" },
    ]);
    let denied = json!({
        "denied_end": [{ "jsonrpc": "2.0", "id": "$id", "result": { "stopReason": "cancelled" } }],
    });
    let info = "@agentclientprotocol/codex-acp";
    let stored = "accept_execpolicy_amendment";
    acts_as(dir, "codex", info, options, stored, &denied)
}

/// gemini-cli: says nothing more about a tool that was denied.
fn gemini(dir: &Path) -> FakeAgent {
    let options = json!([
        { "optionId": "proceed_always", "kind": "allow_always", "name": "Allow for this session" },
        { "optionId": "proceed_always_and_save", "kind": "allow_always", "name": "Allow this command for all future sessions" },
        { "optionId": "proceed_once", "kind": "allow_once", "name": "Allow" },
        { "optionId": "cancel", "kind": "reject_once", "name": "Reject" },
    ]);
    let denied = json!({ "tool_denied": [] });
    let stored = "proceed_always_and_save";
    acts_as(dir, "gemini", "gemini-cli", options, stored, &denied)
}

/// An agent that nobody knows here, with an option for good and no other yes.
fn unknown(dir: &Path) -> FakeAgent {
    let options = json!([
        { "optionId": "forever", "kind": "allow_always", "name": "Always" },
        { "optionId": "no", "kind": "reject_once", "name": "No" },
    ]);
    acts_as(dir, "unknown", "new-agent", options, "forever", &json!({}))
}

struct Team {
    fleet: AgentFleet,
    /// Holds the protocol files and the homes.
    dir: TempDir,
}

impl Team {
    /// mia and ben, with these agents; `home` is the agents' `HOME`, below the directory.
    async fn start(agents: fn(&Path) -> Vec<FakeAgent>, home: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let agents = agents(dir.path());
        for user in ["mia", "ben"] {
            std::fs::create_dir_all(dir.path().join("homes").join(user)).unwrap();
        }
        let home = dir.path().join(home);
        let more = format!("env = {{ HOME = '{}' }}", home.display());
        let file: String = agents
            .iter()
            .map(|agent| agent.configuration(&more))
            .collect();
        let gateway = Settings::new().with_config_file(&file).start().await;
        for user in ["mia", "ben"] {
            gateway.adds_user(user, "member");
        }
        let fleet = AgentFleet::of(agents, gateway);
        Self { fleet, dir }
    }

    async fn joins(&self, user: &str, agent: usize) -> WsClient {
        self.fleet.joins(user, &self.fleet.agents[agent]).await
    }
}

fn ids(question: &Value) -> Vec<&str> {
    let options = question["options"].as_array().unwrap();
    let ids = options.iter().map(|option| option["id"].as_str().unwrap());
    ids.collect()
}

async fn asks(member: &mut WsClient) -> Value {
    member.prompts("/tool").await;
    member.sees("QUESTION").await["payload"].clone()
}

async fn chooses(member: &mut WsClient, question: &Value, option: &str) {
    let answer = json!({ "questionId": question["questionId"], "optionId": option });
    member.sends("ANSWER", answer).await;
}

#[tokio::test]
async fn one_users_always_is_not_offered_where_it_would_answer_for_everybody() {
    let agents = |dir: &Path| vec![codex(dir), gemini(dir)];
    let team = Team::start(agents, "homes").await;
    for (agent, kept, stored) in [
        (0, "allow_for_session", "accept_execpolicy_amendment"),
        (1, "proceed_always", "proceed_always_and_save"),
    ] {
        let mut mia = team.joins("mia", agent).await;
        let asked = asks(&mut mia).await;
        assert!(!ids(&asked).contains(&stored), "{asked}");
        let options = asked["options"].as_array().unwrap();
        let lasting = options.iter().find(|option| option["id"] == kept).unwrap();
        let detail = lasting["detail"].as_str().unwrap();
        assert!(detail.contains("this session"), "{asked}");
        // It cannot be chosen either.
        chooses(&mut mia, &asked, stored).await;
        let refused = mia.sees("ERROR_MESSAGE").await;
        assert_eq!(refused["payload"]["code"], "VALIDATION_ERROR", "{refused}");
        // A yes to be remembered holds for the session.
        let answer = json!({ "questionId": asked["questionId"], "ok": true, "remember": true });
        mia.sends("ANSWER", answer).await;
        assert_eq!(mia.sees_run_end().await["status"], "completed");
        assert!(!team.dir.path().join("homes/.fake-rules").exists());
        let mut ben = team.joins("ben", agent).await;
        asks(&mut ben).await;
    }
}

#[tokio::test]
async fn where_each_user_has_a_home_always_is_offered_and_says_what_it_covers() {
    let team = Team::start(|dir| vec![codex(dir)], "homes/{user}").await;
    let mut mia = team.joins("mia", 0).await;
    let asked = asks(&mut mia).await;
    let stored = "accept_execpolicy_amendment";
    let options = asked["options"].as_array().unwrap();
    let option = options.iter().find(|option| option["id"] == stored);
    let detail = option.unwrap()["detail"].as_str().unwrap();
    assert!(detail.contains("every session"), "{asked}");
    chooses(&mut mia, &asked, stored).await;
    assert_eq!(mia.sees_run_end().await["status"], "completed");
    let mut again = team.joins("mia", 0).await;
    let (_, answer) = runs_prompt(&mut again, "/tool").await;
    assert!(answer.contains("ran"), "{answer}");
    let mut ben = team.joins("ben", 0).await;
    asks(&mut ben).await;
}

#[tokio::test]
async fn an_agent_that_only_offers_a_yes_for_good_cannot_be_allowed_and_says_why() {
    let team = Team::start(|dir| vec![unknown(dir)], "homes").await;
    let mut mia = team.joins("mia", 0).await;
    let asked = asks(&mut mia).await;
    assert_eq!(ids(&asked), ["no"], "{asked}");
    let message = asked["message"].as_str().unwrap();
    assert!(message.contains("share"), "{asked}");
    let answer = json!({ "questionId": asked["questionId"], "ok": true });
    mia.sends("ANSWER", answer).await;
    let notice = mia.sees("AGENT_NOTICE").await["payload"].clone();
    assert!(
        notice["text"].as_str().unwrap().contains("share"),
        "{notice}"
    );
    mia.sees_run_end().await;
    assert!(mia.text().contains("denied"), "{}", mia.text());
}

#[tokio::test]
async fn a_denied_tool_is_shown_as_denied_and_the_run_is_not_called_cancelled() {
    let agents = |dir: &Path| vec![codex(dir), gemini(dir), FakeAgent::named("acp")];
    let team = Team::start(agents, "homes").await;
    for agent in 0..3 {
        let name = &team.fleet.agents[agent].name;
        let mut mia = team.joins("mia", agent).await;
        let asked = asks(&mut mia).await;
        let answer = json!({ "questionId": asked["questionId"], "ok": false });
        mia.sends("ANSWER", answer).await;
        let end = mia.sees_run_end().await;
        assert_eq!(end["status"], "completed", "{name}: {end}");
        let tools: Vec<&Value> = mia
            .events
            .iter()
            .filter(|event| event["type"] == "TOOL_UPDATE")
            .collect();
        let status = &tools.last().unwrap()["payload"]["status"];
        assert_eq!(status, "denied", "{name}: {tools:?}");
        mia.sends("REQUEST_STATE", json!({})).await;
        let state = mia.sees("FULL_STATE").await;
        assert_eq!(state["payload"]["tools"][0]["status"], "denied", "{name}");
    }
    // A cancel is still a cancel.
    let mut mia = team.joins("mia", 0).await;
    asks(&mut mia).await;
    mia.sends("CANCEL_TASK", json!({})).await;
    assert_eq!(mia.sees_run_end().await["status"], "cancelled");
    let tool = mia
        .events
        .iter()
        .rfind(|event| event["type"] == "TOOL_UPDATE");
    assert_ne!(tool.unwrap()["payload"]["status"], "denied");
}
