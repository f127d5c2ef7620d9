//! Agent faults: crashes, hangs, floods, foreign ids and orphaned processes.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{AgentFleet, FakeAgent, completes_prompt, has_capability, runs_prompt, wait_until};
use crate::actors::{Gateway, Settings, Storage, WsClient};

/// A gateway with ACP agents and these extra settings.
async fn acp(more: &str, settings: Settings) -> AgentFleet {
    let agents: Vec<FakeAgent> = FakeAgent::all()
        .into_iter()
        .filter(|agent| agent.name == "acp")
        .collect();
    let file = agents[0].configuration(more);
    let settings = settings.with("LIMITS__MESSAGES_PER_MINUTE", "100000");
    AgentFleet::of(agents, settings.with_config_file(&file).start().await)
}

fn number(name: &str, usual: usize) -> usize {
    let given = std::env::var(name).ok();
    given.map_or(usual, |text| text.parse().unwrap())
}

/// The gateway's open file descriptors.
fn descriptors(gateway: &Gateway) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", gateway.pid()))
        .unwrap()
        .count()
}

/// The gateway's resident memory in MiB.
fn memory(gateway: &Gateway) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.pid())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        / 1024
}

#[tokio::test]
async fn a_crash_ends_its_run_at_once_and_the_next_prompt_is_answered() {
    let fleet = AgentFleet::start().await;
    fleet
        .each(async |agent| {
            let mut mia = fleet.joins("root", &agent).await;
            completes_prompt(&mut mia, &agent, "/echo ready").await;
            let begun = Instant::now();
            let (end, _) = runs_prompt(&mut mia, "/crash").await;
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(2), "{}: {took:?}", agent.name);
            assert_eq!(end["status"], "error", "{}: {end}", agent.name);
            assert_eq!(
                end["error"]["code"], "CONNECTION_LOST",
                "{}: {end}",
                agent.name
            );
            let message = end["error"]["message"].as_str().unwrap();
            assert!(
                message.contains("exit status 3"),
                "{}: {message}",
                agent.name
            );
            assert!(message.contains("last words"), "{}: {message}", agent.name);
            // Copilot's retry rule waits 5 s.
            let answer = completes_prompt(&mut mia, &agent, "/echo again").await;
            assert!(answer.contains("again"), "{}: {answer}", agent.name);
        })
        .await;
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn a_hanging_run_ends_at_its_deadline() {
    let fleet = AgentFleet::with("timeout_secs = 2", Settings::new()).await;
    fleet
        .each(async |agent| {
            let mut mia = fleet.joins("root", &agent).await;
            completes_prompt(&mut mia, &agent, "/echo ready").await;
            for prompt in ["/hang", "/hang deaf"] {
                let begun = Instant::now();
                let (end, _) = runs_prompt(&mut mia, prompt).await;
                let took = begun.elapsed();
                assert_eq!(end["error"]["code"], "TASK_FAILED", "{}: {end}", agent.name);
                let range = Duration::from_secs(2)..Duration::from_secs(10);
                assert!(range.contains(&took), "{} {prompt}: {took:?}", agent.name);
            }
        })
        .await;
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn unparseable_lines_are_skipped() {
    let fleet = AgentFleet::start().await;
    fleet
        .each(async |agent| {
            let mut mia = fleet.joins("root", &agent).await;
            for prompt in ["/garbage", "/odd", "/stderr 3000"] {
                let (end, _) = runs_prompt(&mut mia, prompt).await;
                assert_eq!(end["status"], "completed", "{} {prompt}: {end}", agent.name);
            }
            let answer = completes_prompt(&mut mia, &agent, "/echo well").await;
            assert!(answer.contains("well"), "{}: {answer}", agent.name);
            let seen = fleet.admin_view(&agent.name).await;
            assert_ne!(seen["oddLines"], 0, "{}: {seen}", agent.name);
        })
        .await;
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn agent_output_under_foreign_ids_is_dropped_and_counted() {
    let fleet = AgentFleet::start().await;
    fleet
        .each(async |agent| {
            if !agent.supports("lie") {
                return;
            }
            let mut mia = fleet.joins("root", &agent).await;
            let mut ben = fleet.joins("root", &agent).await;
            completes_prompt(&mut ben, &agent, "/echo ready").await;
            let seen = ben.events.len();
            let (end, reply) = runs_prompt(&mut mia, "/lie").await;
            assert_eq!(end["status"], "completed", "{}: {end}", agent.name);
            assert!(!reply.contains("lie"), "{}: {reply}", agent.name);
            for event in &mia.events {
                assert!(
                    !event.to_string().contains("foreign"),
                    "{}: {event}",
                    agent.name
                );
            }
            ben.sees_nothing().await;
            assert_eq!(ben.events.len(), seen, "{}", agent.name);
            let seen = fleet.admin_view(&agent.name).await;
            let counted = seen["strays"].as_u64().unwrap() + seen["oddLines"].as_u64().unwrap();
            assert_ne!(counted, 0, "{}: {seen}", agent.name);
        })
        .await;
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn child_processes_of_an_agent_end_with_it_even_if_they_detached() {
    let fleet = AgentFleet::start().await;
    fleet
        .each(async |agent| {
            let mut mia = fleet.joins("root", &agent).await;
            let answer = completes_prompt(&mut mia, &agent, "/fork").await;
            assert!(answer.contains("children"), "{}: {answer}", agent.name);
            let begun = Instant::now();
            let (end, _) = runs_prompt(&mut mia, "/fork-crash").await;
            assert_eq!(
                end["error"]["code"], "CONNECTION_LOST",
                "{}: {end}",
                agent.name
            );
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(2), "{}: {took:?}", agent.name);
        })
        .await;
    // Two from before the restart and two from after it.
    wait_until("nothing is left", || fleet.processes().is_empty()).await;
    fleet.leaves_no_process().await;
}

/// The processes between the gateway and its agents.
fn supervisors(gateway: &Gateway) -> Vec<String> {
    let parent = format!("PPid:\t{}", gateway.pid());
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let is_ours = |path: &std::path::PathBuf| {
        let status = std::fs::read_to_string(path.join("status")).unwrap_or_default();
        let command = std::fs::read_to_string(path.join("cmdline")).unwrap_or_default();
        status.lines().any(|line| line == parent) && command.contains("supervise")
    };
    let ours = entries.map(|entry| entry.path()).filter(is_ours);
    let id = |path: std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    ours.map(id).collect()
}

fn signals(signal: &str, processes: &[String]) {
    let mut kill = std::process::Command::new("kill");
    assert!(kill.arg(signal).args(processes).status().unwrap().success());
}

#[tokio::test]
async fn everything_an_agent_started_ends_with_a_killed_gateway() {
    let mut fleet = acp("", Settings::new()).await;
    let agent = fleet.agents[0].clone();
    let mut mia = fleet.joins("root", &agent).await;
    completes_prompt(&mut mia, &agent, "/fork").await;
    assert_eq!(fleet.processes().len(), 3, "{:?}", fleet.processes());
    fleet.gateway.kill();
    wait_until("nothing is left", || fleet.processes().is_empty()).await;
}

#[tokio::test]
async fn orphaned_agent_processes_are_killed_at_the_next_start() {
    let mut fleet = acp("", Settings::new()).await;
    let agent = fleet.agents[0].clone();
    let mut mia = fleet.joins("root", &agent).await;
    completes_prompt(&mut mia, &agent, "/fork").await;
    // Gateway and supervisor are killed at the same moment: nobody is left to clean up.
    let supervisors = supervisors(&fleet.gateway);
    signals("-STOP", &supervisors);
    fleet.gateway.kill();
    signals("-KILL", &supervisors);
    assert!(!fleet.processes().is_empty());
    fleet.gateway.restart();
    wait_until("nothing is left", || fleet.processes().is_empty()).await;
    fleet.leaves_no_process().await;
}

/// An agent does not outlive its supervisor, and its run has an end.
#[tokio::test]
async fn a_killed_supervisor_ends_its_run_and_leaves_no_process() {
    let fleet = acp("", Settings::new()).await;
    let agent = fleet.agents[0].clone();
    let mut mia = fleet.joins("root", &agent).await;
    completes_prompt(&mut mia, &agent, "/fork").await;
    mia.prompts("/hang").await;
    while mia.sees("TASK_STATUS_UPDATE").await["payload"]["status"] != "running" {}
    signals("-KILL", &supervisors(&fleet.gateway));
    let end = mia.sees_run_end().await;
    assert_eq!(end["error"]["code"], "CONNECTION_LOST", "{end}");
    wait_until("nothing is left", || fleet.processes().is_empty()).await;
    completes_prompt(&mut mia, &agent, "/echo again").await;
    fleet.leaves_no_process().await;
}

/// The mark of the processes travels with a copy, which must not end the agents of the original.
#[tokio::test]
async fn a_gateway_on_a_copied_data_directory_leaves_the_originals_agents_alone() {
    let settings = Settings::new().with_storage(Storage::Sqlite(None));
    let fleet = acp("", settings).await;
    let agent = fleet.agents[0].clone();
    let mut mia = fleet.joins("root", &agent).await;
    completes_prompt(&mut mia, &agent, "/fork").await;
    let before = fleet.processes();
    let (data, dir) = (fleet.gateway.sqlite_file(), tempfile::tempdir().unwrap());
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([data.parent().unwrap(), dir.path()])
        .status();
    assert!(copied.unwrap().success());
    let storage = Storage::Sqlite(Some(dir.path().join("data")));
    let copy = Settings::new().with_storage(storage).start().await;
    assert!(!copy.log().contains("orphaned"), "{}", copy.log());
    assert_eq!(fleet.processes(), before);
    let starts = fleet.admin_view("acp").await["starts"].clone();
    completes_prompt(&mut mia, &agent, "/echo still here").await;
    assert_eq!(fleet.admin_view("acp").await["starts"], starts);
    fleet.leaves_no_process().await;
}

/// `SWITCHBOARD_TEST_CRASHES=1000` runs as many as were promised.
#[tokio::test]
async fn many_crashes_leak_nothing_and_disturb_no_other_session() {
    let (sessions, crashes) = (10, number("SWITCHBOARD_TEST_CRASHES", 60));
    let settings = Settings::new().with("RUNTIME__MAX_AGENTS_PER_USER", "64");
    let fleet = acp("max_crashes = 100000", settings).await;
    let agent = fleet.agents[0].clone();
    let mut bystander = fleet.joins("root", &agent).await;
    completes_prompt(&mut bystander, &agent, "/echo ready").await;
    let before = descriptors(&fleet.gateway);
    bystander.prompts("/stream 1000000 10").await;
    // Another session streams all the while.
    let mut last = Instant::now();
    let mut longest = Duration::ZERO;
    let crashed = {
        let crashing = join_all((0..sessions).map(async |_| {
            let mut mia = fleet.joins("root", &agent).await;
            for _ in 0..crashes / sessions {
                mia.prompts("/crash").await;
                mia.sees("TASK_OUTPUT_CHUNK").await;
                let begun = Instant::now();
                let end = mia.sees_run_end().await;
                let took = begun.elapsed();
                assert!(took < Duration::from_secs(2), "told after {took:?}");
                assert_eq!(end["error"]["code"], "CONNECTION_LOST", "{end}");
            }
            assert_eq!(mia.ends(), vec!["error"; crashes / sessions]);
            mia.session()
        }));
        let mut crashing = std::pin::pin!(crashing);
        loop {
            tokio::select! {
                crashed = &mut crashing => break crashed,
                frame = bystander.receives() => {
                    assert_ne!(frame.unwrap()["type"], "ERROR_MESSAGE");
                    longest = longest.max(last.elapsed());
                    last = Instant::now();
                }
            }
        }
    };
    assert!(longest < Duration::from_secs(2), "a silence of {longest:?}");
    let root = fleet.gateway.logged_in("root").await;
    for session in crashed {
        root.sends("DELETE", &format!("/api/sessions/{session}"), None)
            .await
            .is(204);
    }
    bystander.sends("CANCEL_TASK", json!({})).await;
    assert_eq!(bystander.sees_run_end().await["status"], "cancelled");
    assert_eq!(fleet.processes().len(), 1, "{:?}", fleet.processes());
    let seen = fleet.admin_view("acp").await;
    assert_eq!(seen["crashes"], crashes / sessions * sessions, "{seen}");
    assert_eq!(seen["live"], 1, "{seen}");
    // The test's own connections vary; no agent pipe may stay open.
    wait_until("no descriptor is left", || {
        descriptors(&fleet.gateway) <= before + 6
    })
    .await;
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn an_output_flood_takes_no_memory_and_slows_no_other_session() {
    // The journal tail stays in memory, up to its limit.
    let settings = Settings::new().with("JOURNAL__TAIL_BYTES", "1000000");
    let fleet = acp("max_run_bytes = 100000000", settings).await;
    let agent = fleet.agents[0].clone();
    let mut calm = fleet.joins("root", &agent).await;
    completes_prompt(&mut calm, &agent, "/echo ready").await;
    let mut flooded = fleet.joins("root", &agent).await;
    completes_prompt(&mut flooded, &agent, "/echo ready").await;
    let before = memory(&fleet.gateway);
    flooded.prompts("/flood 0").await;
    let (mut most, mut slowest) = (0, Duration::ZERO);
    for _ in 0..30 {
        let begun = Instant::now();
        completes_prompt(&mut calm, &agent, "/stream 10").await;
        slowest = slowest.max(begun.elapsed());
        most = most.max(memory(&fleet.gateway));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The database cache takes 64 MiB; the flood itself takes nothing.
    assert!(
        most < before + 128,
        "{before} MiB before, {most} MiB under the flood"
    );
    assert!(
        slowest < Duration::from_secs(2),
        "an answer took {slowest:?}"
    );
    flooded.sends("CANCEL_TASK", json!({})).await;
    assert_eq!(flooded.sees_run_end().await["status"], "cancelled");
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn a_run_over_its_output_limit_is_ended() {
    let fleet = acp("max_run_bytes = 1000000", Settings::new()).await;
    let agent = fleet.agents[0].clone();
    let mut mia = fleet.joins("root", &agent).await;
    let (end, _) = runs_prompt(&mut mia, "/flood 0").await;
    assert_eq!(end["error"]["code"], "TASK_FAILED", "{end}");
    assert!(
        end["error"]["message"].as_str().unwrap().contains("MiB"),
        "{end}"
    );
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn one_agent_over_the_limit_is_refused_as_busy() {
    let settings = Settings::new()
        .with("RUNTIME__MAX_AGENTS", "3")
        .with("RUNTIME__MAX_AGENTS_PER_USER", "2");
    let fleet = acp("", settings).await;
    fleet.gateway.adds_user("mia", "member");
    fleet.gateway.adds_user("ben", "member");
    let agent = fleet.agents[0].clone();
    let mut seated = Vec::new();
    for name in ["mia", "mia", "ben"] {
        let mut member = fleet.joins(name, &agent).await;
        completes_prompt(&mut member, &agent, "/echo here").await;
        seated.push(member);
    }
    for (name, part_of_it) in [
        ("mia", "agents run already"),
        ("ben", "3 agents run already"),
    ] {
        let mut late = fleet.joins(name, &agent).await;
        late.prompts("/echo me too").await;
        let refused = late.sees("ERROR_MESSAGE").await["payload"].clone();
        assert_eq!(refused["code"], "BUSY", "{refused}");
        assert_eq!(refused["recoverable"], true, "{refused}");
        assert!(
            refused["message"].as_str().unwrap().contains(part_of_it),
            "{refused}"
        );
    }
    // A slot is free again when its session has ended.
    let root = fleet.gateway.logged_in("mia").await;
    let gone = seated.remove(0).session();
    root.sends("DELETE", &format!("/api/sessions/{gone}"), None)
        .await
        .is(204);
    let mut next = fleet.joins("mia", &agent).await;
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        next.prompts("/echo at last").await;
        let frame = next.receives().await.unwrap();
        if frame["type"] != "ERROR_MESSAGE" {
            break;
        }
        assert!(Instant::now() < deadline, "{frame}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(next.sees_run_end().await["status"], "completed");
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn an_agent_that_crashes_too_often_is_not_restarted_for_a_while() {
    let fleet = acp("max_crashes = 3", Settings::new()).await;
    let agent = fleet.agents[0].clone();
    let mut mia = fleet.joins("root", &agent).await;
    for _ in 0..3 {
        let (end, _) = runs_prompt(&mut mia, "/crash").await;
        assert!(
            end["error"]["message"]
                .as_str()
                .unwrap()
                .contains("exit status 3"),
            "{end}"
        );
    }
    let (end, _) = runs_prompt(&mut mia, "/echo hello").await;
    let message = end["error"]["message"].as_str().unwrap();
    assert!(message.contains("crashed too often"), "{message}");
    // Other sessions are not affected.
    let mut other = fleet.joins("root", &agent).await;
    completes_prompt(&mut other, &agent, "/echo hello").await;
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn an_agent_gets_only_its_configured_environment_and_its_own_workspace() {
    let more = "umask = \"027\"\nenv = { COLOUR = \"blue\", PLACE = \"{workspace}\" }\n\
                env_files = { SECRET = \"/etc/hostname\" }\npass_env = [\"CARGO_MANIFEST_DIR\"]";
    let fleet = acp(more, Settings::new()).await;
    let agent = fleet.agents[0].clone();
    let mut mia = fleet.joins("root", &agent).await;
    let answer = completes_prompt(&mut mia, &agent, "/env").await;
    for name in ["COLOUR", "PLACE", "SECRET", "PATH", "CARGO_MANIFEST_DIR"] {
        assert!(answer.contains(name), "{name}: {answer}");
    }
    for name in ["SWITCHBOARD__", "ADMIN", "CARGO_PKG_NAME"] {
        assert!(!answer.contains(name), "{name}: {answer}");
    }
    let place = format!("workspaces/root/{}", mia.session());
    assert!(answer.contains(&place), "{answer}");
    assert!(answer.contains("27"), "{answer}");
    fleet.leaves_no_process().await;
}

/// The error of a prompt to an agent that cannot start.
async fn failed_prompt(fleet: &AgentFleet, name: &str) -> Value {
    let mut mia = fleet
        .joins_with_query("root", &format!("?agent={name}"))
        .await;
    let (end, _) = runs_prompt(&mut mia, "/echo hello").await;
    assert_eq!(end["status"], "error", "{name}: {end}");
    end["error"].clone()
}

#[tokio::test]
async fn an_agent_that_cannot_start_reports_the_cause_and_the_fix() {
    let agent = FakeAgent::all()
        .into_iter()
        .find(|agent| agent.name == "acp")
        .unwrap();
    let named = |name: &str, more: &str| {
        agent
            .configuration(more)
            .replace("[agents.acp]", &format!("[agents.{name}]"))
    };
    let command = |name: &str, command: &str| {
        format!("[agents.{name}]\nprotocol = \"acp\"\ncommand = [{command}]\n")
    };
    let file = [
        command("missing", "\"no-such-program\""),
        command("barred", "\"/etc/passwd\""),
        command(
            "noisy",
            "\"sh\", \"-c\", \"echo Welcome to your agent; exit 4\"",
        ),
        named("crashing", "env = { FAKE_CRASH_AT_START = \"1\" }"),
        named("wrong", "env = { FAKE_HANDSHAKE = \"wrong-version\" }"),
        named("loggedout", "env = { FAKE_HANDSHAKE = \"needs-login\" }"),
        named("chatty", "env = { FAKE_HANDSHAKE = \"garbage-first\" }"),
        named("unreadable", "env_files = { KEY = \"/no/such/file\" }"),
    ]
    .concat();
    let gateway = Settings::new().with_config_file(&file).start().await;
    let fleet = AgentFleet::of(Vec::new(), gateway);
    for (name, wanted) in [
        ("missing", "`no-such-program` was not found: install it"),
        ("barred", "is not executable: `chmod +x` it"),
        ("noisy", "Welcome to your agent"),
        ("crashing", "exit status 3"),
        ("wrong", "version"),
        ("loggedout", "log in"),
        ("unreadable", "correct `env_files"),
    ] {
        let error = failed_prompt(&fleet, name).await;
        let message = error["message"].as_str().unwrap();
        assert!(
            message.to_lowercase().contains(&wanted.to_lowercase()),
            "{name}: {message}"
        );
        let tested = fleet.gateway.runs(&["agent", "test", name]);
        let reply = String::from_utf8(tested.stdout).unwrap();
        assert_eq!(tested.status.code(), Some(1), "{name}: {reply}");
        assert!(
            reply.to_lowercase().contains(&wanted.to_lowercase()),
            "{name}: {reply}"
        );
        let seen = fleet.admin_view(name).await;
        assert!(seen["lastError"].is_string(), "{seen}");
    }
    // Output before the handshake is no error.
    let mut mia = fleet.joins_with_query("root", "?agent=chatty").await;
    assert_eq!(
        runs_prompt(&mut mia, "/echo hello").await.0["status"],
        "completed"
    );
    let reply = fleet
        .gateway
        .prints(&["agent", "test", "chatty", "--prompt", "/echo hello"]);
    assert!(
        reply.contains("answer: hello") && reply.contains("works"),
        "{reply}"
    );
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn prompts_waiting_for_a_hanging_handshake_can_be_cancelled() {
    let fleet = acp("env = { FAKE_HANDSHAKE = \"hang\" }", Settings::new()).await;
    let agent = fleet.agents[0].clone();
    let mut mia: WsClient = fleet.joins("root", &agent).await;
    mia.prompts("/echo hello").await;
    mia.sees("TASK_STATUS_UPDATE").await;
    let begun = Instant::now();
    mia.sends("CANCEL_TASK", json!({})).await;
    assert_eq!(mia.sees_run_end().await["status"], "cancelled");
    assert!(begun.elapsed() < Duration::from_secs(2));
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn an_idle_agent_is_stopped_and_restarted_on_the_next_prompt() {
    let fleet = AgentFleet::with("idle_secs = 1", Settings::new()).await;
    fleet
        .each(async |agent| {
            let mut mia = fleet.joins("root", &agent).await;
            completes_prompt(&mut mia, &agent, "/remember walrus").await;
            let name = &agent.name;
            // An agent that cannot resume is not stopped.
            let knows = fleet.joins("root", &agent).await;
            if !has_capability(&knows, "resume") {
                return;
            }
            let mut waited = 0;
            while fleet.admin_view(name).await["live"] != 0 {
                waited += 1;
                assert!(waited < 200, "{name} does not rest");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let before = mia.events.len();
            let answer = completes_prompt(&mut mia, &agent, "/recall").await;
            let fresh = |event: &Value| event.to_string().contains("fresh");
            let is_fresh = mia.events[before..].iter().any(fresh);
            // Copilot keeps no conversation: the gateway sends it the history.
            assert!(
                answer.contains("walrus") != is_fresh || name == "copilot",
                "{name}: {answer}"
            );
            assert_eq!(fleet.admin_view(name).await["crashes"], 0, "{name}");
        })
        .await;
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn an_agent_may_run_as_another_user() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let place = dir.path().join("{session}");
    let more = format!("user = \"nobody\"\nworkspace = {place:?}");
    let fleet = acp(&more, Settings::new()).await;
    let agent = fleet.agents[0].clone();
    let mut mia = fleet.joins("root", &agent).await;
    let (end, answer) = runs_prompt(&mut mia, "/env").await;
    let own = std::fs::metadata("/proc/self").unwrap().uid();
    if own != 0 {
        // Only root may change the user of a process.
        assert_eq!(end["error"]["code"], "CONNECTION_LOST", "{end}");
        return;
    }
    assert!(answer.contains(&mia.session()), "{answer}");
    let made = std::fs::metadata(dir.path().join(mia.session())).unwrap();
    assert_ne!(made.uid(), 0);
    let theirs = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            let command = std::fs::read_to_string(entry.path().join("cmdline"));
            command.is_ok_and(|command| command.contains("fake-runtime"))
                && entry
                    .metadata()
                    .is_ok_and(|about| about.uid() == made.uid())
        });
    assert_ne!(theirs.count(), 0);
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn an_agent_restarts_only_after_its_old_process_is_gone() {
    // The agent ignores both cancel and SIGTERM.
    let agent = FakeAgent::all()
        .into_iter()
        .find(|agent| agent.name == "acp")
        .unwrap();
    let file = agent.configuration("").replace(
        "command = [",
        "command = [\"sh\", \"-c\", \"trap '' TERM; exec \\\"$0\\\" \\\"$@\\\"\", ",
    );
    let gateway = Settings::new().with_config_file(&file).start().await;
    let fleet = AgentFleet::of(vec![agent.clone()], gateway);
    let mut mia = fleet.joins("root", &agent).await;
    mia.prompts("/hang deaf").await;
    while mia.sees("TASK_STATUS_UPDATE").await["payload"]["status"] != "running" {}
    mia.sends("CANCEL_TASK", json!({})).await;
    assert_eq!(mia.sees_run_end().await["status"], "cancelled");
    assert_eq!(fleet.processes().len(), 1, "it is still there");
    let answer = completes_prompt(&mut mia, &agent, "/echo again").await;
    assert!(answer.contains("again"), "{answer}");
    assert_eq!(fleet.processes().len(), 1, "{:?}", fleet.processes());
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn an_output_flood_can_be_cancelled_in_every_protocol() {
    let settings = Settings::new().with("JOURNAL__TAIL_BYTES", "1000000");
    let fleet = AgentFleet::with("", settings).await;
    let before = memory(&fleet.gateway);
    fleet
        .each(async |agent| {
            let mut mia = fleet.joins("root", &agent).await;
            mia.prompts("/flood 0").await;
            while mia.sees("TASK_STATUS_UPDATE").await["payload"]["status"] != "running" {}
            // A protocol without streaming sends nothing before the end, which never comes.
            if agent.name != "openstarry-document" {
                mia.sees("TASK_OUTPUT_CHUNK").await;
            }
            mia.sends("CANCEL_TASK", json!({})).await;
            let end = mia.sees_run_end().await;
            assert_eq!(end["status"], "cancelled", "{}: {end}", agent.name);
        })
        .await;
    let after = memory(&fleet.gateway);
    assert!(
        after < before + 256,
        "{before} MiB before, {after} MiB after"
    );
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn a_slow_run_that_keeps_sending_is_not_timed_out() {
    let fleet = acp("timeout_secs = 2", Settings::new()).await;
    let agent = fleet.agents[0].clone();
    let mut mia = fleet.joins("root", &agent).await;
    // Each chunk arrives within the deadline; all together take longer.
    let answer = completes_prompt(&mut mia, &agent, "/stream 4 1300").await;
    let words: Vec<&str> = answer.split_whitespace().collect();
    assert_eq!(words, ["1", "2", "3", "4"]);
    fleet.leaves_no_process().await;
}
