//! Undelivered prompts: a prompt to an agent that has just ended reaches the next one, and only once.

use std::path::Path;
use std::process::Command;

use super::{AgentFleet, FakeAgent, completes_prompt, runs_prompt, wait_until};
use crate::actors::Settings;

/// Kills every process of the gateway's agents whose command line has this word, and waits for them.
async fn kills(fleet: &AgentFleet, word: &str) {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let command = |path: &Path| std::fs::read_to_string(path.join("cmdline")).unwrap_or_default();
    let pids: Vec<String> = entries
        .map(|entry| entry.path())
        .filter(|path| command(path).contains(word) && fleet.owns(path))
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert!(!pids.is_empty(), "no process has {word}");
    for pid in &pids {
        assert!(
            Command::new("kill")
                .args(["-9", pid])
                .status()
                .unwrap()
                .success()
        );
    }
    // A process whose main thread is a zombie may still have others, which hold its socket open.
    let ended = |pid: &String| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        status.is_empty() || status.contains("State:\tZ") && threads <= 1
    };
    wait_until("they have ended", || pids.iter().all(ended)).await;
}

#[tokio::test]
async fn a_prompt_to_an_agent_that_has_just_died_is_answered_by_the_next_one() {
    let fleet = AgentFleet::start().await;
    for agent in &fleet.agents {
        // A restart of copilot waits 5 s, by its own rule.
        if agent.name == "copilot" {
            continue;
        }
        let mut mia = fleet.joins("root", agent).await;
        completes_prompt(&mut mia, agent, "/echo ready").await;
        for word in ["one", "two"] {
            kills(&fleet, agent.path.to_str().unwrap()).await;
            let answer = completes_prompt(&mut mia, agent, &format!("/echo {word}")).await;
            assert!(answer.contains(word), "{}: {answer}", agent.name);
        }
    }
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn a_prompt_that_the_agent_may_have_received_is_not_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("lines.log");
    let agent = FakeAgent::named("acp");
    let granted = format!("write = ['{}']", dir.path().display());
    let file = agent.configuration(&granted).replacen(
        "command = [",
        &format!(
            "command = [\"sh\", \"-c\", {:?}, ",
            format!("exec \"$0\" \"$1\" --log {}", log.display())
        ),
        1,
    );
    let gateway = Settings::new().with_config_file(&file).start().await;
    let fleet = AgentFleet::of(vec![agent.clone()], gateway);
    let mut mia = fleet.joins("root", &agent).await;
    completes_prompt(&mut mia, &agent, "/echo ready").await;
    let (end, _) = runs_prompt(&mut mia, "/crash").await;
    assert_eq!(end["error"]["code"], "CONNECTION_LOST", "{end}");
    completes_prompt(&mut mia, &agent, "/echo again").await;
    let log = std::fs::read_to_string(&log).unwrap();
    let crashes = log
        .lines()
        .filter(|line| line.contains("session/prompt") && line.contains("/crash"));
    assert_eq!(crashes.count(), 1, "{log}");
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn an_agent_that_dies_again_ends_the_run_with_the_reason() {
    // It answers the first prompt, then ends as soon as it is idle, each time.
    let dir = tempfile::tempdir().unwrap();
    let agent = FakeAgent::named("acp").changed("mayfly", dir.path(), |book| {
        let rules = book["rules"].as_array_mut().unwrap();
        let resume = rules
            .iter_mut()
            .find(|rule| rule["match"]["method"] == "session/resume");
        resume.unwrap()["exit"] = true.into();
    });
    let gateway = Settings::new()
        .with_config_file(&agent.configuration(""))
        .start()
        .await;
    let fleet = AgentFleet::of(vec![agent.clone()], gateway);
    let mut mia = fleet.joins("root", &agent).await;
    completes_prompt(&mut mia, &agent, "/echo ready").await;
    kills(&fleet, agent.path.to_str().unwrap()).await;
    let (end, _) = runs_prompt(&mut mia, "/echo lost").await;
    assert_eq!(end["error"]["code"], "CONNECTION_LOST", "{end}");
    let message = end["error"]["message"].as_str().unwrap();
    assert!(message.contains("it ended"), "{end}");
    assert_eq!(mia.ends(), ["completed", "error"]);
    fleet.leaves_no_process().await;
}
