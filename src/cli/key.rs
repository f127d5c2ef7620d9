//! `switchboard key`.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use super::desk::Desk;
use super::output::Output;
use crate::config::Loaded;
use crate::store::StoredKey;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the keys that sign or still verify tokens
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Sign with a new key from now on; the old one verifies until its last token ends
    Rotate,
}

pub(super) async fn run(
    loaded: Loaded,
    command: Command,
    mut out: Output,
) -> anyhow::Result<ExitCode> {
    let desk = Desk::open(loaded).await?;
    match command {
        Command::List { json } => {
            let keys = desk.auth.keys().await?;
            desk.close().await;
            list(&keys, json, &mut out)?;
        }
        Command::Rotate => {
            let rotated = desk.auth.rotate_key(desk.auth.operator()).await;
            desk.close().await;
            out.line(format!("{} signs from now on", rotated?.id))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(keys: &[StoredKey], json: bool, out: &mut Output) -> std::io::Result<()> {
    if json {
        let described: Vec<_> = keys
            .iter()
            .map(|key| {
                json!({
                    "id": key.id,
                    "createdAt": key.created_at,
                    "retiredAt": key.retired_at,
                    "expiresAt": key.expires_at,
                })
            })
            .collect();
        return out.json(&described);
    }
    let rows: Vec<[String; 3]> = keys
        .iter()
        .map(|key| {
            let state = match key.expires_at {
                None => "signs".to_owned(),
                Some(end) => format!("verifies until {end:.0}"),
            };
            [key.id.to_string(), state, format!("{:.0}", key.created_at)]
        })
        .collect();
    out.table(["KEY", "STATE", "SINCE"], &rows)
}
