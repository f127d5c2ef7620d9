//! `switchboard agent`: what is configured, and whether it works.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::output::Output;
use crate::clock::Clock;
use crate::config::Loaded;
use crate::domain::command::{Inquiry, Mode, Prompt, Topic};
use crate::domain::event::Channel;
use crate::domain::id::{RunId, SessionId, UserId};
use crate::domain::question::Resolution;
use crate::domain::run::RunOutcome;
use crate::runtime::{Catalog, FromAgent, Link, Room, Start, ToAgent, Workshop, protocols};

/// How long an agent may take to be ready, and to answer.
const PATIENCE: Duration = Duration::from_mins(3);
/// Whose workspace it is in.
const TESTER: &str = "agent-test";
/// What is asked if nothing else is.
const HARMLESS: &str = "Reply with the single word: hello. Do not use any tools.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the agents that are configured
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the protocols that agents can speak
    Protocols {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Start an agent as a session would, say what works, and end it
    Test {
        /// Which
        name: String,
        /// Ask it something, too: this, or something harmless
        #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = HARMLESS)]
        prompt: Option<String>,
    },
}

pub(super) async fn run(
    loaded: Loaded,
    command: Command,
    mut out: Output,
) -> anyhow::Result<ExitCode> {
    match command {
        Command::List { json } => list(&catalog(&loaded)?, json, &mut out)?,
        Command::Protocols { json } => list_protocols(json, &mut out)?,
        Command::Test { name, prompt } => return test(&loaded, &name, prompt, &mut out).await,
    }
    Ok(ExitCode::SUCCESS)
}

fn catalog(loaded: &Loaded) -> anyhow::Result<Catalog> {
    let config = &loaded.config;
    crate::store::make_directory(&config.data)?;
    let workshop = Workshop::open(&config.data.dir, Some("/proc/self/exe".into()), None)?;
    let (agents, limits) = (&config.agents, &config.runtime);
    Ok(Catalog::new(agents, limits, workshop, Clock::system()))
}

fn list(catalog: &Catalog, json: bool, out: &mut Output) -> anyhow::Result<()> {
    let described = catalog.described();
    if json {
        let agent = |agent: &crate::runtime::Described| {
            json!({
                "name": agent.name,
                "protocol": agent.protocol,
                "enabled": agent.enabled,
                "capabilities": catalog.capabilities(&agent.name),
            })
        };
        let agents: Vec<Value> = described.iter().map(agent).collect();
        out.json(&agents)?;
        return Ok(());
    }
    let row = |agent: &crate::runtime::Described| {
        let state = if agent.enabled { "enabled" } else { "disabled" };
        let able = catalog.capabilities(&agent.name).join(" ");
        [
            agent.name.clone(),
            agent.protocol.clone(),
            state.into(),
            able,
        ]
    };
    let rows: Vec<_> = described.iter().map(row).collect();
    out.table(["NAME", "PROTOCOL", "STATE", "CAN AT BEST"], &rows)?;
    Ok(())
}

fn list_protocols(json: bool, out: &mut Output) -> anyhow::Result<()> {
    let protocols = protocols();
    if json {
        let protocol = |(name, about): &(&str, &str)| json!({ "name": name, "about": about });
        let protocols: Vec<Value> = protocols.iter().map(protocol).collect();
        out.json(&protocols)?;
        return Ok(());
    }
    let rows: Vec<_> = protocols
        .iter()
        .map(|(name, about)| [(*name).into(), (*about).into()])
        .collect();
    out.table(["PROTOCOL", "SPOKEN BY"], &rows)?;
    Ok(())
}

async fn test(
    loaded: &Loaded,
    name: &str,
    prompt: Option<String>,
    out: &mut Output,
) -> anyhow::Result<ExitCode> {
    let catalog = catalog(loaded)?;
    let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
    let (back, mut heard) = mpsc::channel(1_024);
    let session = SessionId::new();
    let start = Start {
        session,
        user: UserId::new(),
        user_name: TESTER.into(),
        thread: None,
        history: Vec::new(),
    };
    anyhow::ensure!(
        !catalog.listens(name),
        "`{name}` is not started here but connects to the gateway; start its program, and look at \
         /api/admin/agents"
    );
    out.line(format!("starting `{name}` …"))?;
    let link = catalog.start(name, start, back, &stop, &tracker)?;
    let tested = try_out(&catalog, name, &link, &mut heard, prompt, out).await;
    // The agent goes in its own way, and everything that it started with it.
    drop(link);
    drop(heard);
    tracker.close();
    tracker.wait().await;
    tidy(&loaded.config.data.dir, &session);
    let works = tested?;
    if works {
        out.line(format!("`{name}` works."))?;
        return Ok(ExitCode::SUCCESS);
    }
    let described = catalog.described();
    let words = described
        .iter()
        .find(|agent| agent.name == name)
        .map(|agent| &agent.last_words);
    for line in words.into_iter().flatten() {
        out.line(format!("  it wrote: {line}"))?;
    }
    Ok(ExitCode::FAILURE)
}

/// Takes the usual workspace away again, unless the agent has put something there.
fn tidy(data: &Path, session: &SessionId) {
    let own = data.join("workspaces").join(TESTER);
    for empty in [own.join(session.to_string()), own] {
        std::fs::remove_dir(empty).ok();
    }
}

async fn try_out(
    catalog: &Catalog,
    name: &str,
    link: &Link,
    heard: &mut mpsc::Receiver<FromAgent>,
    prompt: Option<String>,
    out: &mut Output,
) -> anyhow::Result<bool> {
    let begun = Instant::now();
    // Whatever it answers, it answers when it is ready.
    let inquiry = Inquiry::Query {
        topic: Topic::Commands,
        params: json!({}),
    };
    link.send(ToAgent::Inquire { id: 1, inquiry }).await?;
    loop {
        match next(link, heard, begun).await {
            Ok(Some(FromAgent::Told {
                id: 1,
                answer: Err(declined),
            })) if !catalog.was_ready(name) => {
                out.line(format!("FAILED: {}", declined.message))?;
                return Ok(false);
            }
            Ok(Some(FromAgent::Told { id: 1, .. })) => break,
            Ok(Some(_)) => {}
            Ok(None) => {
                out.line("FAILED: it ended before it was ready.")?;
                return Ok(false);
            }
            Err(_) => {
                out.line(format!(
                    "FAILED: it was not ready within {} s.",
                    PATIENCE.as_secs()
                ))?;
                return Ok(false);
            }
        }
    }
    out.line(format!("ready after {} ms", begun.elapsed().as_millis()))?;
    out.line(format!("can: {}", catalog.capabilities(name).join(", ")))?;
    let lacks = catalog.lacks(name);
    if !lacks.is_empty() {
        out.line(format!(
            "cannot, although others with its protocol can: {}",
            lacks.join(", ")
        ))?;
    }
    match prompt {
        Some(prompt) => ask(link, heard, prompt, out).await,
        None => Ok(true),
    }
}

async fn ask(
    link: &Link,
    heard: &mut mpsc::Receiver<FromAgent>,
    prompt: String,
    out: &mut Output,
) -> anyhow::Result<bool> {
    let (run, begun) = (RunId::new(), Instant::now());
    out.line(format!("asking: {prompt}"))?;
    let prompt = Prompt::new(prompt, Mode::Act);
    link.send(ToAgent::Prompt { run, prompt }).await?;
    let mut answer = String::new();
    loop {
        match next(link, heard, begun).await {
            Ok(Some(FromAgent::Delta {
                channel: Channel::Text,
                text,
                ..
            })) => answer.push_str(&text),
            Ok(Some(FromAgent::Final {
                text: Some(text), ..
            })) if answer.is_empty() => answer = text,
            Ok(Some(FromAgent::Tool { tool, .. })) => {
                out.line(format!("tool: {} ({})", tool.title, tool.status))?;
            }
            Ok(Some(FromAgent::Asked {
                question, asked, ..
            })) => {
                out.line(format!("it asks, and is denied: {}", asked.title))?;
                let resolution = Resolution::Expired;
                link.send(ToAgent::Answer {
                    question,
                    resolution,
                })
                .await?;
            }
            Ok(Some(FromAgent::Ended { outcome, .. })) => {
                out.line(format!("answer: {}", answer.trim()))?;
                let after = begun.elapsed().as_millis();
                if let RunOutcome::Failed { message, .. } = outcome {
                    out.line(format!("FAILED after {after} ms: {message}"))?;
                    return Ok(false);
                }
                out.line(format!("done after {after} ms"))?;
                return Ok(true);
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => {
                out.line(format!(
                    "FAILED: there was no answer within {} s.",
                    PATIENCE.as_secs()
                ))?;
                return Ok(false);
            }
        }
    }
}

/// What the agent says next; taken in herewith.
async fn next(
    link: &Link,
    heard: &mut mpsc::Receiver<FromAgent>,
    begun: Instant,
) -> Result<Option<FromAgent>, tokio::time::error::Elapsed> {
    let said = timeout_at(begun + PATIENCE, heard.recv()).await?;
    if let (Some(room), Some(said)) = (link.room(), &said) {
        room.give_back(Room::taken_by(std::slice::from_ref(said)));
    }
    Ok(said)
}
