//! opencode: a real third-party agent, with a model server on this machine.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::actors::{Gateway, Settings, WsClient};
use crate::model_server::{HELLO, KEY, MODEL, ModelServer, WRITTEN};

/// Generous, for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A gateway with opencode, and its model server.
struct OpencodeGateway {
    gateway: Gateway,
    model: ModelServer,
    /// opencode's data. Every opencode process has this path in its environment.
    dir: TempDir,
}

impl OpencodeGateway {
    async fn start() -> Self {
        let (model, dir) = (ModelServer::start().await, tempfile::tempdir().unwrap());
        let settings = dir.path().join("opencode.json");
        std::fs::write(&settings, configuration(&model).to_string()).unwrap();
        let file = format!(
            r#"
            [agents.opencode]
            protocol = "acp"
            command = ['{program}', "acp"]
            workspace = "workspaces/{{user}}/{{session}}"

            [agents.opencode.env]
            HOME = '{homes}'
            OPENCODE_CONFIG = '{settings}'
            MODEL_KEY = '{KEY}'
            # It listens on a port of its own, where others could give it orders.
            OPENCODE_SERVER_PASSWORD = "a-password-of-its-own"
            # Nothing that a workspace contains may loosen the permissions.
            OPENCODE_DISABLE_PROJECT_CONFIG = "1"
            # It stays on this machine.
            OPENCODE_DISABLE_AUTOUPDATE = "1"
            OPENCODE_DISABLE_DEFAULT_PLUGINS = "1"
            OPENCODE_DISABLE_LSP_DOWNLOAD = "1"
            OPENCODE_DISABLE_MODELS_FETCH = "1"
            npm_config_offline = "true"
            "#,
            program = program().display(),
            homes = dir.path().join("homes/{user}").display(),
            settings = settings.display(),
        );
        Self {
            gateway: Settings::new().with_config_file(&file).start().await,
            model,
            dir,
        }
    }

    /// A client in a new session with opencode.
    async fn joins(&self, user: &str) -> WsClient {
        self.joins_with_query(user, "?agent=opencode").await
    }

    async fn joins_with_query(&self, user: &str, query: &str) -> WsClient {
        let browser = self.gateway.logged_in(user).await;
        WsClient::connects(self.gateway.address(), &browser.token.unwrap(), query).await
    }

    /// The command lines of live opencode processes and their children.
    fn processes(&self) -> Vec<String> {
        let home = format!("HOME={}/", self.dir.path().display());
        let is_ours = |process: &Path| {
            let read = std::fs::read(process.join("environ")).unwrap_or_default();
            let mut variables = read.split(|byte| *byte == 0);
            variables.any(|variable| variable.starts_with(home.as_bytes()))
        };
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let ours = entries
            .map(|entry| entry.path())
            .filter(|path| is_ours(path));
        let command = |path: PathBuf| std::fs::read_to_string(path.join("cmdline")).ok();
        let commands = ours.filter_map(command);
        commands.map(|command| command.replace('\0', " ")).collect()
    }

    /// Stops the gateway, and fails the test unless every process it started ends.
    async fn leaves_no_process(mut self) {
        assert!(!self.processes().is_empty(), "there was something to leave");
        self.gateway.signal("-TERM");
        assert_eq!(self.gateway.exit_code(), Some(0), "{}", self.gateway.log());
        // A killed process may take a moment to disappear.
        let moment = Duration::from_secs(2);
        wait_until("nothing is left", moment, || self.processes().is_empty()).await;
    }
}

/// The program, as `./scripts/test` has installed it.
fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("SWITCHBOARD_TEST_OPENCODE").map(PathBuf::from) {
        let shown = path.display();
        assert!(path.exists(), "no {shown}; ./scripts/test installs it");
        return path;
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let cache = cache.unwrap_or_default().join("switchboard-test");
    let entries = std::fs::read_dir(&cache).into_iter().flatten().flatten();
    let program = |dir: PathBuf| dir.join("node_modules/.bin/opencode");
    let is_installed = |dir: &Path| {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("opencode-") && !name.ends_with(".new")
    };
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|dir| is_installed(dir))
        .map(program)
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| {
        let cache = cache.display();
        panic!("opencode is not in {cache}; ./scripts/test installs it")
    })
}

/// opencode's configuration: one model, and permission requests for every tool.
fn configuration(model: &ModelServer) -> Value {
    let models =
        json!({ MODEL: { "name": "Small", "limit": { "context": 32_000, "output": 4_000 } } });
    let options = json!({ "baseURL": model.url(), "apiKey": "{env:MODEL_KEY}" });
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "Local", "options": options, "models": models,
    });
    json!({
        "model": format!("local/{MODEL}"), "small_model": format!("local/{MODEL}"),
        "provider": { "local": provider }, "enabled_providers": ["local"],
        "permission": { "bash": "ask", "edit": "ask" },
        // Otherwise a denial ends the turn before the model sees it.
        "experimental": { "continue_loop_on_deny": true },
        "autoupdate": false, "share": "disabled",
    })
}

/// Sends a prompt and waits for the end of the run; returns its status and the answer.
async fn runs_prompt(member: &mut WsClient, text: &str) -> (String, String) {
    let before = member.text().len();
    member.prompts(text).await;
    let end = member.sees_run_end().await;
    let status = end["status"].as_str().unwrap().to_owned();
    (status, member.text().split_off(before))
}

fn answered(text: &str) -> (String, String) {
    ("completed".to_owned(), text.to_owned())
}

/// Sends a prompt that makes opencode ask for permission, and decides; returns the question and the
/// answer of the run.
async fn decides(member: &mut WsClient, text: &str, allow: bool) -> (Value, String) {
    let before = member.text().len();
    member.prompts(text).await;
    let asked = member.sees("QUESTION").await["payload"].clone();
    let answer = json!({ "questionId": asked["questionId"], "ok": allow });
    member.sends("ANSWER", answer).await;
    assert_eq!(member.sees_run_end().await["status"], "completed");
    (asked, member.text().split_off(before))
}

/// Finds a file by name in the workspaces, at any depth.
fn find(gateway: &Gateway, name: &str) -> Option<PathBuf> {
    let mut dirs = vec![gateway.sqlite_file().parent().unwrap().to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.ends_with(name) {
                return Some(path);
            }
            dirs.extend(Some(path).filter(|path| path.is_dir()));
        }
    }
    None
}

/// Polls until a condition outside of the test holds.
async fn wait_until(what: &str, within: Duration, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + within;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn opencode_streams_its_answer_and_leaves_no_process_behind() {
    let stage = OpencodeGateway::start().await;
    let mut root = stage.joins("root").await;
    assert_eq!(runs_prompt(&mut root, "Hello?").await, answered(HELLO));
    let is_piece = |event: &&Value| event["type"] == "TASK_OUTPUT_CHUNK";
    let pieces = root.events.iter().filter(is_piece).count();
    assert!(pieces > 1, "all at once: {:?}", root.events);
    assert_eq!(
        runs_prompt(&mut root, "And once more?").await,
        answered(HELLO)
    );
    stage.leaves_no_process().await;
}

#[tokio::test]
async fn opencode_runs_a_command_only_if_a_user_allows_it() {
    let stage = OpencodeGateway::start().await;
    let mut root = stage.joins("root").await;
    for (allow, file, reported, status) in [
        (true, "was-allowed", "It worked: done", "completed"),
        (false, "was-denied", "I was not allowed to.", "denied"),
        (true, "was-allowed-later", "It worked: done", "completed"),
    ] {
        let command = format!("touch {file} && echo done");
        let prompt = format!("run: {command}");
        let (asked, text) = decides(&mut root, &prompt, allow).await;
        assert_eq!(asked["kind"], "permission", "{asked}");
        assert_ne!(asked["level"], "INFO", "{asked}");
        assert_eq!(asked["tool"]["args"]["command"], command, "{asked}");
        assert!(text.contains(reported), "{text}");
        let is_tool = |event: &&Value| event["type"] == "TOOL_UPDATE";
        let last = root.events.iter().rfind(is_tool).unwrap();
        // A protocol may have no status of its own for a denial.
        let ended = last["payload"]["status"].as_str().unwrap();
        assert!(ended == status || (!allow && ended == "failed"), "{last}");
        assert_eq!(find(&stage.gateway, file).is_some(), allow, "{file}");
    }
    stage.leaves_no_process().await;
}

/// opencode also asks its client to write the file, though ours declares no such capability.
#[tokio::test]
async fn opencode_writes_a_file_only_if_a_user_allows_it() {
    let stage = OpencodeGateway::start().await;
    let mut root = stage.joins("root").await;
    for (allow, file, reported) in [
        (true, "allowed.txt", "It worked: "),
        (false, "denied.txt", "I was not allowed to."),
    ] {
        let (asked, text) = decides(&mut root, &format!("write: {file}"), allow).await;
        assert_eq!(asked["kind"], "permission", "{asked}");
        assert!(asked.to_string().contains(WRITTEN.trim()), "{asked}");
        assert!(text.contains(reported), "{text}");
        let written = find(&stage.gateway, file).map(std::fs::read_to_string);
        let expected = allow.then(|| WRITTEN.to_owned());
        assert_eq!(written.map(Result::unwrap), expected, "{file}");
    }
    stage.leaves_no_process().await;
}

#[tokio::test]
async fn a_run_of_opencode_can_be_cancelled() {
    let stage = OpencodeGateway::start().await;
    let mut root = stage.joins("root").await;
    root.prompts("slow: 2000").await;
    root.sees("TASK_OUTPUT_CHUNK").await;
    let begun = Instant::now();
    root.sends("CANCEL_TASK", json!({})).await;
    assert_eq!(root.sees_run_end().await["status"], "cancelled");
    let waited = begun.elapsed();
    assert!(waited < Duration::from_secs(10), "{waited:?}");
    wait_until("the model is left alone", TIMEOUT, || {
        stage.model.abandoned() == 1
    })
    .await;

    // So can a run that waits for an answer, and one whose command runs.
    root.prompts("run: touch never").await;
    root.sees("QUESTION").await;
    root.sends("CANCEL_TASK", json!({})).await;
    assert_eq!(root.sees_run_end().await["status"], "cancelled");
    root.prompts("run: sleep 61").await;
    let asked = root.sees("QUESTION").await;
    let answer = json!({ "questionId": asked["payload"]["questionId"], "ok": true });
    root.sends("ANSWER", answer).await;
    let sleeps = || {
        let commands = stage.processes();
        commands
            .iter()
            .any(|command| command.starts_with("sleep 61"))
    };
    wait_until("it sleeps", TIMEOUT, sleeps).await;
    root.sends("CANCEL_TASK", json!({})).await;
    assert_eq!(root.sees_run_end().await["status"], "cancelled");
    wait_until("nobody sleeps", TIMEOUT, || !sleeps()).await;

    assert_eq!(
        runs_prompt(&mut root, "Still there?").await,
        answered(HELLO)
    );
    assert_eq!(find(&stage.gateway, "never"), None);
    stage.leaves_no_process().await;
}

#[tokio::test]
async fn opencode_resumes_its_conversation_after_a_restart() {
    let mut stage = OpencodeGateway::start().await;
    let mut root = stage.joins("root").await;
    let session = root.session();
    assert_eq!(
        runs_prompt(&mut root, "remember: walrus").await,
        answered(HELLO)
    );
    for signal in ["-TERM", "-KILL"] {
        stage.gateway.signal(signal);
        stage.gateway.exit_code();
        stage.gateway.restart();
        let mut back = stage
            .joins_with_query("root", &format!("?session={session}"))
            .await;
        let reported = runs_prompt(&mut back, "what was the word?").await;
        assert_eq!(reported, answered("The word was walrus."), "after {signal}");
        // opencode's replay of its history is not journaled again.
        let is_prompt = |event: &&Value| event["payload"]["status"] == "starting";
        let starts = back.events.iter().filter(is_prompt).count();
        assert_eq!(starts, 1, "{:?}", back.events);
    }
    stage.leaves_no_process().await;
}

#[tokio::test]
async fn two_concurrent_users_of_opencode_see_only_their_own_sessions() {
    let stage = OpencodeGateway::start().await;
    let people = [("mia", "walrus", "otter"), ("ben", "otter", "walrus")];
    for (name, ..) in people {
        stage.gateway.adds_user(name, "member");
    }
    let mut members = [stage.joins("mia").await, stage.joins("ben").await];
    for (member, (_, word, _)) in members.iter_mut().zip(people) {
        member.prompts(&format!("remember: {word}")).await;
    }
    for member in &mut members {
        assert_eq!(member.sees_run_end().await["status"], "completed");
    }
    for (member, (name, ..)) in members.iter_mut().zip(people) {
        let prompt = format!("run: echo of-{name}; pwd");
        member.prompts(&prompt).await;
    }
    // Each user answers their own: a question belongs to one session.
    for member in &mut members {
        let asked = member.sees("QUESTION").await;
        let answer = json!({ "questionId": asked["payload"]["questionId"], "ok": true });
        member.sends("ANSWER", answer).await;
        assert_eq!(member.sees_run_end().await["status"], "completed");
    }
    for (member, (name, word, foreign)) in members.iter_mut().zip(people) {
        let reported = runs_prompt(member, "what was the word?").await;
        assert_eq!(reported, answered(&format!("The word was {word}.")));
        let other = if name == "mia" { "of-ben" } else { "of-mia" };
        for event in &member.events {
            let event = event.to_string();
            assert!(
                !event.contains(foreign) && !event.contains(other),
                "{event}"
            );
        }
        let place = member.session();
        assert!(member.text().contains(&place), "{}", member.text());
    }
    for conversation in stage.model.conversations() {
        let text = conversation.to_string();
        assert!(
            !(text.contains("walrus") && text.contains("otter")),
            "{text}"
        );
    }
    stage.leaves_no_process().await;
}

/// opencode starts its commands in process groups of their own and does not clean up after them.
#[tokio::test]
async fn processes_left_by_opencode_commands_end_with_the_gateway() {
    let mut stage = OpencodeGateway::start().await;
    let mut root = stage.joins("root").await;
    let prompt = "run: nohup sleep 62 > /dev/null 2>&1 & echo started";
    let (_, text) = decides(&mut root, prompt, true).await;
    assert!(text.contains("It worked: started"), "{text}");
    let sleeps = |stage: &OpencodeGateway| {
        let commands = stage.processes();
        commands
            .iter()
            .any(|command| command.starts_with("sleep 62"))
    };
    assert!(sleeps(&stage), "{:?}", stage.processes());
    // A killed gateway cannot clean up: the next start does.
    stage.gateway.signal("-KILL");
    stage.gateway.exit_code();
    stage.gateway.restart();
    wait_until("nothing is left", TIMEOUT, || stage.processes().is_empty()).await;

    let session = root.session();
    let mut back = stage
        .joins_with_query("root", &format!("?session={session}"))
        .await;
    let (_, text) = decides(&mut back, prompt, true).await;
    assert!(text.contains("It worked: started"), "{text}");
    assert!(sleeps(&stage), "{:?}", stage.processes());
    stage.leaves_no_process().await;
}
