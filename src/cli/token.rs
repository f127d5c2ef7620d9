//! `switchboard token`: creates access tokens for programs.

use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::Subcommand;
use jiff::SignedDuration;
use serde_json::json;

use super::context::CommandContext;
use super::output::Output;
use crate::config::Loaded;
use crate::domain::account::Username;

/// Longest lifetime of a token, so that forgotten ones expire.
const MAX_LIFETIME: SignedDuration = SignedDuration::from_hours(24 * 366);

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Print an access token for a user
    Create {
        /// The user it acts as
        #[arg(long, value_name = "NAME")]
        user: Username,
        /// Lifetime: a number and s, m, h or d
        #[arg(long, default_value = "1h", value_parser = life)]
        ttl: SignedDuration,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(
    loaded: Loaded,
    command: Command,
    mut out: Output,
) -> anyhow::Result<ExitCode> {
    let Command::Create { user, ttl, json } = command;
    let context = CommandContext::open(loaded).await?;
    let account = context.user(&user).await?;
    ensure!(!account.disabled, "user {user} is disabled");
    let grant = context.auth.create_token(&account, ttl).await;
    context.close().await;
    let grant = grant.context("the token was not made")?;
    if json {
        out.json(&json!({ "token": grant.token, "expiresAt": grant.expires_at }))?;
    } else {
        out.line(grant.token)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn life(text: &str) -> anyhow::Result<SignedDuration> {
    let unit = text
        .char_indices()
        .next_back()
        .map_or(0, |(index, _)| index);
    let (number, unit) = text.split_at(unit);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => bail!("expected a number and s, m, h or d, like 12h"),
    };
    let number: i64 = number
        .parse()
        .context("expected a number and s, m, h or d, like 12h")?;
    let life = number
        .checked_mul(seconds)
        .map(SignedDuration::from_secs)
        .filter(|life| *life <= MAX_LIFETIME)
        .context("at most 366d")?;
    ensure!(life > SignedDuration::ZERO, "expected more than nothing");
    Ok(life)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_a_number_and_a_unit() {
        assert_eq!(life("90s").unwrap(), SignedDuration::from_secs(90));
        assert_eq!(life("12h").unwrap(), SignedDuration::from_hours(12));
        assert_eq!(life("30d").unwrap(), SignedDuration::from_hours(720));
        for text in [
            "",
            "h",
            "1",
            "0s",
            "-1h",
            "1w",
            "367d",
            "9223372036854775807d",
            "1ħ",
        ] {
            assert!(life(text).is_err(), "{text}");
        }
    }
}
