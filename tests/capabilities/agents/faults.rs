//! Agents that crash, hang, flood, lie and leave things behind.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{Cast, Part, able, asks, comes_true, tells};
use crate::actors::{Gateway, Member, Settings};

/// A gateway with ACP agents, configured like this.
async fn acp(more: &str, settings: Settings) -> Cast {
    let parts: Vec<Part> = Part::all()
        .into_iter()
        .filter(|part| part.name == "acp")
        .collect();
    let file = parts[0].configuration(more);
    let settings = settings.with("LIMITS__MESSAGES_PER_MINUTE", "100000");
    Cast::of(parts, settings.configured(&file).start().await)
}

fn number(name: &str, usual: usize) -> usize {
    let given = std::env::var(name).ok();
    given.map_or(usual, |text| text.parse().unwrap())
}

/// The open descriptors of the gateway.
fn descriptors(gateway: &Gateway) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", gateway.pid()))
        .unwrap()
        .count()
}

/// The memory of the gateway, in MiB.
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
    let cast = Cast::start().await;
    cast.each(async |part| {
        let mut mia = cast.joins("root", &part).await;
        asks(&mut mia, &part, "/echo ready").await;
        let begun = Instant::now();
        let (end, _) = tells(&mut mia, "/crash").await;
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(2), "{}: {took:?}", part.name);
        assert_eq!(end["status"], "error", "{}: {end}", part.name);
        assert_eq!(
            end["error"]["code"], "CONNECTION_LOST",
            "{}: {end}",
            part.name
        );
        let message = end["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("exit status 3"),
            "{}: {message}",
            part.name
        );
        assert!(message.contains("last words"), "{}: {message}", part.name);
        // Copilot's own rule is to wait 5 s.
        let answer = asks(&mut mia, &part, "/echo again").await;
        assert!(answer.contains("again"), "{}: {answer}", part.name);
    })
    .await;
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn a_run_that_hangs_ends_at_its_deadline() {
    let cast = Cast::with("timeout_secs = 2", Settings::new()).await;
    cast.each(async |part| {
        let mut mia = cast.joins("root", &part).await;
        asks(&mut mia, &part, "/echo ready").await;
        for prompt in ["/hang", "/hang deaf"] {
            let begun = Instant::now();
            let (end, _) = tells(&mut mia, prompt).await;
            let took = begun.elapsed();
            assert_eq!(end["error"]["code"], "TASK_FAILED", "{}: {end}", part.name);
            let range = Duration::from_secs(2)..Duration::from_secs(10);
            assert!(range.contains(&took), "{} {prompt}: {took:?}", part.name);
        }
    })
    .await;
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn lines_that_make_no_sense_are_passed_by() {
    let cast = Cast::start().await;
    cast.each(async |part| {
        let mut mia = cast.joins("root", &part).await;
        for prompt in ["/garbage", "/odd", "/stderr 3000"] {
            let (end, _) = tells(&mut mia, prompt).await;
            assert_eq!(end["status"], "completed", "{} {prompt}: {end}", part.name);
        }
        let answer = asks(&mut mia, &part, "/echo well").await;
        assert!(answer.contains("well"), "{}: {answer}", part.name);
        let seen = cast.seen(&part.name).await;
        assert_ne!(seen["oddLines"], 0, "{}: {seen}", part.name);
    })
    .await;
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn what_an_agent_says_under_foreign_ids_reaches_nobody_and_is_counted() {
    let cast = Cast::start().await;
    cast.each(async |part| {
        if !part.can_say("lie") {
            return;
        }
        let mut mia = cast.joins("root", &part).await;
        let mut ben = cast.joins("root", &part).await;
        asks(&mut ben, &part, "/echo ready").await;
        let seen = ben.events.len();
        let (end, said) = tells(&mut mia, "/lie").await;
        assert_eq!(end["status"], "completed", "{}: {end}", part.name);
        assert!(!said.contains("lie"), "{}: {said}", part.name);
        for event in &mia.events {
            assert!(
                !event.to_string().contains("foreign"),
                "{}: {event}",
                part.name
            );
        }
        ben.sees_nothing().await;
        assert_eq!(ben.events.len(), seen, "{}", part.name);
        let seen = cast.seen(&part.name).await;
        let counted = seen["strays"].as_u64().unwrap() + seen["oddLines"].as_u64().unwrap();
        assert_ne!(counted, 0, "{}: {seen}", part.name);
    })
    .await;
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn what_an_agent_started_ends_with_it_wherever_it_went() {
    let cast = Cast::start().await;
    cast.each(async |part| {
        let mut mia = cast.joins("root", &part).await;
        let answer = asks(&mut mia, &part, "/fork").await;
        assert!(answer.contains("children"), "{}: {answer}", part.name);
        let begun = Instant::now();
        let (end, _) = tells(&mut mia, "/fork-crash").await;
        assert_eq!(
            end["error"]["code"], "CONNECTION_LOST",
            "{}: {end}",
            part.name
        );
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(2), "{}: {took:?}", part.name);
    })
    .await;
    // The two that it left in its first life, and the two of its second.
    comes_true("nothing is left", || cast.processes().is_empty()).await;
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn what_a_former_life_left_behind_is_ended_at_the_next_start() {
    let mut cast = acp("", Settings::new()).await;
    let part = cast.parts[0].clone();
    let mut mia = cast.joins("root", &part).await;
    asks(&mut mia, &part, "/fork").await;
    assert!(!cast.processes().is_empty());
    cast.gateway.kill();
    // The agent itself dies with the gateway; what it started does not.
    assert!(!cast.processes().is_empty());
    cast.gateway.restart();
    comes_true("nothing is left", || cast.processes().is_empty()).await;
    cast.leaves_nothing().await;
}

/// `SWITCHBOARD_TEST_CRASHES=1000` for all that were promised.
#[tokio::test]
async fn many_crashes_leave_nothing_and_disturb_nobody() {
    let (sessions, crashes) = (10, number("SWITCHBOARD_TEST_CRASHES", 60));
    let settings = Settings::new().with("RUNTIME__MAX_AGENTS_PER_USER", "64");
    let cast = acp("max_crashes = 100000", settings).await;
    let part = cast.parts[0].clone();
    let mut bystander = cast.joins("root", &part).await;
    asks(&mut bystander, &part, "/echo ready").await;
    let before = descriptors(&cast.gateway);
    bystander.prompts("/stream 1000000 10").await;
    // The stream of the other one goes on all the while.
    let mut last = Instant::now();
    let mut longest = Duration::ZERO;
    let crashed = {
        let crashing = join_all((0..sessions).map(async |_| {
            let mut mia = cast.joins("root", &part).await;
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
    let root = cast.gateway.browser("root").await;
    for session in crashed {
        root.sends("DELETE", &format!("/api/sessions/{session}"), None)
            .await
            .is(204);
    }
    bystander.sends("CANCEL_TASK", json!({})).await;
    assert_eq!(bystander.sees_run_end().await["status"], "cancelled");
    assert_eq!(cast.processes().len(), 1, "{:?}", cast.processes());
    let seen = cast.seen("acp").await;
    assert_eq!(seen["crashes"], crashes / sessions * sessions, "{seen}");
    assert_eq!(seen["live"], 1, "{seen}");
    // Connections of this test come and go; none of the agents' pipes stay.
    comes_true("no descriptor is left", || {
        descriptors(&cast.gateway) <= before + 6
    })
    .await;
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn a_flood_takes_no_memory_and_slows_nobody_down() {
    // What is read again soon is kept in memory, as much as the operator allows.
    let settings = Settings::new().with("JOURNAL__TAIL_BYTES", "1000000");
    let cast = acp("max_run_bytes = 100000000", settings).await;
    let part = cast.parts[0].clone();
    let mut calm = cast.joins("root", &part).await;
    asks(&mut calm, &part, "/echo ready").await;
    let mut flooded = cast.joins("root", &part).await;
    asks(&mut flooded, &part, "/echo ready").await;
    let before = memory(&cast.gateway);
    flooded.prompts("/flood 0").await;
    let (mut most, mut slowest) = (0, Duration::ZERO);
    for _ in 0..30 {
        let begun = Instant::now();
        asks(&mut calm, &part, "/stream 10").await;
        slowest = slowest.max(begun.elapsed());
        most = most.max(memory(&cast.gateway));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The database's cache takes its 64 MiB; the flood itself nothing.
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
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn a_run_that_says_too_much_is_ended() {
    let cast = acp("max_run_bytes = 1000000", Settings::new()).await;
    let part = cast.parts[0].clone();
    let mut mia = cast.joins("root", &part).await;
    let (end, _) = tells(&mut mia, "/flood 0").await;
    assert_eq!(end["error"]["code"], "TASK_FAILED", "{end}");
    assert!(
        end["error"]["message"].as_str().unwrap().contains("MiB"),
        "{end}"
    );
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn an_agent_more_than_there_is_room_for_is_refused_as_busy() {
    let settings = Settings::new()
        .with("RUNTIME__MAX_AGENTS", "3")
        .with("RUNTIME__MAX_AGENTS_PER_USER", "2");
    let cast = acp("", settings).await;
    cast.gateway.has_user("mia", "member");
    cast.gateway.has_user("ben", "member");
    let part = cast.parts[0].clone();
    let mut seated = Vec::new();
    for name in ["mia", "mia", "ben"] {
        let mut member = cast.joins(name, &part).await;
        asks(&mut member, &part, "/echo here").await;
        seated.push(member);
    }
    for (name, part_of_it) in [
        ("mia", "agents run already"),
        ("ben", "3 agents run already"),
    ] {
        let mut late = cast.joins(name, &part).await;
        late.prompts("/echo me too").await;
        let refused = late.sees("ERROR_MESSAGE").await["payload"].clone();
        assert_eq!(refused["code"], "BUSY", "{refused}");
        assert_eq!(refused["recoverable"], true, "{refused}");
        assert!(
            refused["message"].as_str().unwrap().contains(part_of_it),
            "{refused}"
        );
    }
    // A seat is free again when its session has ended.
    let root = cast.gateway.browser("mia").await;
    let gone = seated.remove(0).session();
    root.sends("DELETE", &format!("/api/sessions/{gone}"), None)
        .await
        .is(204);
    let mut next = cast.joins("mia", &part).await;
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
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn an_agent_that_crashes_too_often_is_left_alone_for_a_while() {
    let cast = acp("max_crashes = 3", Settings::new()).await;
    let part = cast.parts[0].clone();
    let mut mia = cast.joins("root", &part).await;
    for _ in 0..3 {
        let (end, _) = tells(&mut mia, "/crash").await;
        assert!(
            end["error"]["message"]
                .as_str()
                .unwrap()
                .contains("exit status 3"),
            "{end}"
        );
    }
    let (end, _) = tells(&mut mia, "/echo hello").await;
    let message = end["error"]["message"].as_str().unwrap();
    assert!(message.contains("crashed too often"), "{message}");
    // That is this session's trouble alone.
    let mut other = cast.joins("root", &part).await;
    asks(&mut other, &part, "/echo hello").await;
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn an_agent_sees_only_the_variables_that_it_is_given_and_works_in_its_own_directory() {
    let more = "umask = \"027\"\nenv = { COLOUR = \"blue\", PLACE = \"{workspace}\" }\n\
                env_files = { SECRET = \"/etc/hostname\" }\npass_env = [\"CARGO_MANIFEST_DIR\"]";
    let cast = acp(more, Settings::new()).await;
    let part = cast.parts[0].clone();
    let mut mia = cast.joins("root", &part).await;
    let answer = asks(&mut mia, &part, "/env").await;
    for name in ["COLOUR", "PLACE", "SECRET", "PATH", "CARGO_MANIFEST_DIR"] {
        assert!(answer.contains(name), "{name}: {answer}");
    }
    for name in ["SWITCHBOARD__", "ADMIN", "CARGO_PKG_NAME"] {
        assert!(!answer.contains(name), "{name}: {answer}");
    }
    let place = format!("workspaces/root/{}", mia.session());
    assert!(answer.contains(&place), "{answer}");
    assert!(answer.contains("27"), "{answer}");
    cast.leaves_nothing().await;
}

/// What a prompt to an agent in bad shape comes to.
async fn trouble(cast: &Cast, name: &str) -> Value {
    let mut mia = cast.comes("root", &format!("?agent={name}")).await;
    let (end, _) = tells(&mut mia, "/echo hello").await;
    assert_eq!(end["status"], "error", "{name}: {end}");
    end["error"].clone()
}

#[tokio::test]
async fn an_agent_that_cannot_be_started_says_why_and_what_to_do() {
    let part = Part::all()
        .into_iter()
        .find(|part| part.name == "acp")
        .unwrap();
    let named = |name: &str, more: &str| {
        part.configuration(more)
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
    let gateway = Settings::new().configured(&file).start().await;
    let cast = Cast::of(Vec::new(), gateway);
    for (name, wanted) in [
        ("missing", "`no-such-program` was not found: install it"),
        ("barred", "is not executable: `chmod +x` it"),
        ("noisy", "Welcome to your agent"),
        ("crashing", "exit status 3"),
        ("wrong", "version"),
        ("loggedout", "log in"),
        ("unreadable", "correct `env_files`"),
    ] {
        let error = trouble(&cast, name).await;
        let message = error["message"].as_str().unwrap();
        assert!(
            message.to_lowercase().contains(&wanted.to_lowercase()),
            "{name}: {message}"
        );
        let tested = cast.gateway.runs(&["agent", "test", name]);
        let said = String::from_utf8(tested.stdout).unwrap();
        assert_eq!(tested.status.code(), Some(1), "{name}: {said}");
        assert!(
            said.to_lowercase().contains(&wanted.to_lowercase()),
            "{name}: {said}"
        );
        let seen = cast.seen(name).await;
        assert!(seen["lastError"].is_string(), "{seen}");
    }
    // One that only greets its user first is no trouble.
    let mut mia = cast.comes("root", "?agent=chatty").await;
    assert_eq!(
        tells(&mut mia, "/echo hello").await.0["status"],
        "completed"
    );
    let said = cast
        .gateway
        .says(&["agent", "test", "chatty", "--prompt", "/echo hello"]);
    assert!(
        said.contains("answer: hello") && said.contains("works"),
        "{said}"
    );
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn prompts_that_wait_for_an_agent_that_hangs_in_its_handshake_can_be_cancelled() {
    let cast = acp("env = { FAKE_HANDSHAKE = \"hang\" }", Settings::new()).await;
    let part = cast.parts[0].clone();
    let mut mia: Member = cast.joins("root", &part).await;
    mia.prompts("/echo hello").await;
    mia.sees("TASK_STATUS_UPDATE").await;
    let begun = Instant::now();
    mia.sends("CANCEL_TASK", json!({})).await;
    assert_eq!(mia.sees_run_end().await["status"], "cancelled");
    assert!(begun.elapsed() < Duration::from_secs(2));
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn an_idle_agent_is_put_to_rest_and_goes_on_when_it_is_needed() {
    let cast = Cast::with("idle_secs = 1", Settings::new()).await;
    cast.each(async |part| {
        let mut mia = cast.joins("root", &part).await;
        asks(&mut mia, &part, "/remember walrus").await;
        let name = &part.name;
        // One that could not go on is not put to rest.
        let knows = cast.joins("root", &part).await;
        if !able(&knows, "resume") {
            return;
        }
        let mut waited = 0;
        while cast.seen(name).await["live"] != 0 {
            waited += 1;
            assert!(waited < 200, "{name} does not rest");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let before = mia.events.len();
        let answer = asks(&mut mia, &part, "/recall").await;
        let fresh = |event: &Value| event.to_string().contains("fresh");
        let is_fresh = mia.events[before..].iter().any(fresh);
        // Copilot has no conversation: the gateway tells it what was said.
        assert!(
            answer.contains("walrus") != is_fresh || name == "copilot",
            "{name}: {answer}"
        );
        assert_eq!(cast.seen(name).await["crashes"], 0, "{name}");
    })
    .await;
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn an_agent_may_run_as_another_user() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let place = dir.path().join("{session}");
    let more = format!("user = \"nobody\"\nworkspace = {place:?}");
    let cast = acp(&more, Settings::new()).await;
    let part = cast.parts[0].clone();
    let mut mia = cast.joins("root", &part).await;
    let (end, answer) = tells(&mut mia, "/env").await;
    let own = std::fs::metadata("/proc/self").unwrap().uid();
    if own != 0 {
        // Only root may give processes to others.
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
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn the_next_life_of_an_agent_begins_when_the_last_one_is_gone() {
    // One that neither hears a cancel nor goes when it is told to.
    let part = Part::all()
        .into_iter()
        .find(|part| part.name == "acp")
        .unwrap();
    let file = part.configuration("").replace(
        "command = [",
        "command = [\"sh\", \"-c\", \"trap '' TERM; exec \\\"$0\\\" \\\"$@\\\"\", ",
    );
    let gateway = Settings::new().configured(&file).start().await;
    let cast = Cast::of(vec![part.clone()], gateway);
    let mut mia = cast.joins("root", &part).await;
    mia.prompts("/hang deaf").await;
    while mia.sees("TASK_STATUS_UPDATE").await["payload"]["status"] != "running" {}
    mia.sends("CANCEL_TASK", json!({})).await;
    assert_eq!(mia.sees_run_end().await["status"], "cancelled");
    assert_eq!(cast.processes().len(), 1, "it is still there");
    let answer = asks(&mut mia, &part, "/echo again").await;
    assert!(answer.contains("again"), "{answer}");
    assert_eq!(cast.processes().len(), 1, "{:?}", cast.processes());
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn a_flood_can_be_stopped_in_every_protocol() {
    let settings = Settings::new().with("JOURNAL__TAIL_BYTES", "1000000");
    let cast = Cast::with("", settings).await;
    let before = memory(&cast.gateway);
    cast.each(async |part| {
        let mut mia = cast.joins("root", &part).await;
        mia.prompts("/flood 0").await;
        while mia.sees("TASK_STATUS_UPDATE").await["payload"]["status"] != "running" {}
        // A protocol without streaming says nothing before the end, and there is none.
        if part.name != "openstarry-document" {
            mia.sees("TASK_OUTPUT_CHUNK").await;
        }
        mia.sends("CANCEL_TASK", json!({})).await;
        let end = mia.sees_run_end().await;
        assert_eq!(end["status"], "cancelled", "{}: {end}", part.name);
    })
    .await;
    let after = memory(&cast.gateway);
    assert!(
        after < before + 256,
        "{before} MiB before, {after} MiB after"
    );
    cast.leaves_nothing().await;
}

#[tokio::test]
async fn a_run_that_is_slow_and_not_silent_goes_on() {
    let cast = acp("timeout_secs = 2", Settings::new()).await;
    let part = cast.parts[0].clone();
    let mut mia = cast.joins("root", &part).await;
    // Each piece comes within the deadline; all of them take longer than that.
    let answer = asks(&mut mia, &part, "/stream 4 1300").await;
    let words: Vec<&str> = answer.split_whitespace().collect();
    assert_eq!(words, ["1", "2", "3", "4"]);
    cast.leaves_nothing().await;
}
