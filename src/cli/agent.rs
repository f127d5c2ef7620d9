//! `switchboard agent`: lists and tests the configured agents.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::output::Output;
use crate::clock::Clock;
use crate::config::Loaded;
use crate::runtime::{Catalog, HARMLESS, Launcher, LauncherConfig, protocols};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the configured agents
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the known agent protocols
    Protocols {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Start an agent as a session would, report what works, and stop it
    Test {
        /// The agent's name
        name: String,
        /// Also send a prompt: this text, or a harmless default
        #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = HARMLESS)]
        prompt: Option<String>,
        /// Try its sandbox from inside instead, and print what can be reached
        #[arg(long, conflicts_with = "prompt")]
        sandbox: bool,
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
        Command::Test {
            name,
            sandbox: true,
            ..
        } => return test_sandbox(&loaded, &name, &mut out).await,
        Command::Test { name, prompt, .. } => {
            return test(&loaded, &name, prompt, &mut out).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn catalog(loaded: &Loaded) -> anyhow::Result<Catalog> {
    let config = &loaded.config;
    crate::store::make_directory(&config.data)?;
    let launcher = Launcher::open(LauncherConfig {
        data: &config.data.dir,
        binary: "/proc/self/exe".into(),
        blobs: None,
        sandbox: config.runtime.sandbox,
        protected: config.protected_files.clone(),
    })?;
    let (agents, limits) = (&config.agents, &config.runtime);
    Ok(Catalog::new(agents, limits, launcher, Clock::system()))
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
    let stop = CancellationToken::new();
    let mut unsaid = None;
    let mut tell = |line: String| unsaid = unsaid.take().or(out.line(line).err());
    let works = catalog.try_out(name, prompt, &stop, &mut tell).await?;
    unsaid.map_or(Ok(()), Err)?;
    Ok(exit_code(works))
}

async fn test_sandbox(loaded: &Loaded, name: &str, out: &mut Output) -> anyhow::Result<ExitCode> {
    let catalog = catalog(loaded)?;
    let mut unsaid = None;
    let mut tell = |line: String| unsaid = unsaid.take().or(out.line(line).err());
    let binary = std::env::current_exe()?;
    let holds = catalog.try_sandbox(name, binary, &mut tell).await?;
    unsaid.map_or(Ok(()), Err)?;
    Ok(exit_code(holds))
}

fn exit_code(is_good: bool) -> ExitCode {
    if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
