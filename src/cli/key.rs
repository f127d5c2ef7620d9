//! `switchboard key`: lists and rotates signing keys.

use std::process::ExitCode;

use clap::Subcommand;
use jiff::Timestamp;
use serde_json::json;

use super::context;
use super::output::{Output, OutputError};
use crate::auth;
use crate::config::Loaded;
use crate::domain::audit::AuditContext;
use crate::store::{OldKeys, StoredKey};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the keys that sign or still verify tokens
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Sign with a new key from now on; the old one verifies until its last token expires
    Rotate {
        /// The old key was stolen: its tokens become invalid at once (logins continue with new tokens)
        #[arg(long)]
        drop_old: bool,
    },
}

pub(super) async fn run(
    loaded: Loaded,
    command: Command,
    mut out: Output,
) -> anyhow::Result<ExitCode> {
    let config = loaded.config;
    let store = context::open(&config.data).await?;
    let now = Timestamp::now();
    match command {
        Command::List { json } => {
            let keys = store.keys(now).await;
            store.close().await;
            list(&keys?, json, &mut out)?;
        }
        Command::Rotate { drop_old } => {
            let old = if drop_old {
                OldKeys::Drop
            } else {
                OldKeys::Verify
            };
            let by = AuditContext::operator(now);
            let rotated = auth::rotate_key(store.as_ref(), &config.auth, old, by).await;
            store.close().await;
            out.line(format!("{} signs from now on", rotated?))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(keys: &[StoredKey], json: bool, out: &mut Output) -> Result<(), OutputError> {
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
                None if key.private_key.is_empty() => {
                    "signs (given by auth.signing_key)".to_owned()
                }
                None => "signs".to_owned(),
                Some(end) => format!("verifies until {end:.0}"),
            };
            [key.id.to_string(), state, format!("{:.0}", key.created_at)]
        })
        .collect();
    out.table(["KEY", "STATE", "SINCE"], &rows)
}
