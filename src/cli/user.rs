//! `switchboard user`: manages accounts.

use std::process::ExitCode;

use clap::Subcommand;
use jiff::Timestamp;
use serde_json::json;

use super::account_leftovers;
use super::context::{CommandContext, read_password};
use super::output::Output;
use crate::config::Loaded;
use crate::domain::account::{Role, User, Username};

const PAGE: u32 = 500;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create an account and print an invite link, or set its password at once
    Add {
        /// The name to log in with
        name: Username,
        /// The account's role
        #[arg(long, default_value = "member", value_name = "admin|member")]
        role: Role,
        /// Read the password from standard input instead of printing an invite link
        #[arg(long)]
        password_stdin: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List all accounts
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a link for setting a new password, or set it at once
    Passwd {
        /// The user
        name: Username,
        /// Read the password from standard input; ends all logins of the user
        #[arg(long)]
        password_stdin: bool,
    },
    /// Change the role of an account
    Role {
        /// The user
        name: Username,
        /// The new role
        #[arg(value_name = "admin|member")]
        role: Role,
    },
    /// Lock a user out at once, on every device
    Disable {
        /// The user
        name: Username,
    },
    /// Let a user log in again
    Enable {
        /// The user
        name: Username,
    },
    /// Remove an account and everything it owns
    Remove {
        /// The user
        name: Username,
        /// Also delete the user's agent workspaces in the data directory
        #[arg(long)]
        workspaces: bool,
    },
}

pub(super) async fn run(
    loaded: Loaded,
    command: Command,
    mut out: Output,
) -> anyhow::Result<ExitCode> {
    let context = CommandContext::open(loaded).await?;
    let done = carry_out(&context, command, &mut out).await;
    context.close().await;
    done?;
    Ok(ExitCode::SUCCESS)
}

async fn carry_out(
    context: &CommandContext,
    command: Command,
    out: &mut Output,
) -> anyhow::Result<()> {
    let by = context.auth.operator();
    match command {
        Command::Add {
            name,
            role,
            password_stdin,
            json,
        } => {
            let password = password_stdin.then(read_password).transpose()?;
            let user = context
                .auth
                .create_user(name, role, password.as_deref(), by)
                .await?;
            tell_added(context, &user, json, out).await
        }
        Command::List { json } => list(context, json, out).await,
        Command::Passwd {
            name,
            password_stdin,
        } => {
            let user = context.user(&name).await?;
            if password_stdin {
                context
                    .auth
                    .set_password(&user, &read_password()?, by)
                    .await?;
                Ok(out.line(format!(
                    "{name} has a new password; all their logins have ended"
                ))?)
            } else {
                let link = context.auth.invite(&user, by).await?;
                let url = context.urls().invite(link.secret.expose());
                tell_link(
                    out,
                    &format!("{name} sets a new password with this link"),
                    &url,
                    link.expires_at,
                )
            }
        }
        Command::Role { name, role } => {
            context
                .auth
                .set_role(&context.user(&name).await?, role, by)
                .await?;
            Ok(out.line(format!("{name} is {role} now"))?)
        }
        Command::Disable { name } => {
            context
                .auth
                .disable(&context.user(&name).await?, by)
                .await?;
            Ok(out.line(format!("{name} is disabled and out on every device"))?)
        }
        Command::Enable { name } => {
            context.auth.enable(&context.user(&name).await?, by).await?;
            Ok(out.line(format!("{name} can log in again"))?)
        }
        Command::Remove { name, workspaces } => {
            context.auth.remove(&context.user(&name).await?, by).await?;
            out.line(format!("{name} is removed"))?;
            account_leftovers::clear(context, &name, workspaces, out).await
        }
    }
}

async fn tell_added(
    context: &CommandContext,
    user: &User,
    json: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    let link = if user.invited {
        Some(context.auth.invite(user, context.auth.operator()).await?)
    } else {
        None
    };
    let url = link
        .as_ref()
        .map(|link| context.urls().invite(link.secret.expose()));
    if json {
        let expires_at = link.as_ref().map(|link| link.expires_at);
        let invite = url.map(|url| json!({ "url": url, "expiresAt": expires_at }));
        return Ok(out.json(&json!({ "user": described(user), "invite": invite }))?);
    }
    match (url, link) {
        (Some(url), Some(link)) => tell_link(
            out,
            &format!(
                "{} ({}) sets a password with this link",
                user.username, user.role
            ),
            &url,
            link.expires_at,
        ),
        _ => Ok(out.line(format!("{} ({}) can log in", user.username, user.role))?),
    }
}

fn tell_link(out: &mut Output, what: &str, url: &str, expires_at: Timestamp) -> anyhow::Result<()> {
    out.line(format!("{what}; it works once, until {expires_at:.0}:"))?;
    Ok(out.line(url)?)
}

async fn list(context: &CommandContext, json: bool, out: &mut Output) -> anyhow::Result<()> {
    let mut users: Vec<User> = Vec::new();
    loop {
        let after = users.last().map(|user| user.username.to_string());
        let page = context.auth.users(after.as_deref(), PAGE).await?;
        if page.is_empty() {
            break;
        }
        users.extend(page);
    }
    if json {
        let described: Vec<_> = users.iter().map(described).collect();
        return Ok(out.json(&described)?);
    }
    let rows: Vec<[String; 4]> = users
        .iter()
        .map(|user| {
            [
                user.username.to_string(),
                user.role.to_string(),
                state(user).to_owned(),
                format!("{:.0}", user.created_at),
            ]
        })
        .collect();
    Ok(out.table(["NAME", "ROLE", "STATE", "SINCE"], &rows)?)
}

fn state(user: &User) -> &'static str {
    match (user.disabled, user.invited) {
        (true, _) => "disabled",
        (false, true) => "invited",
        (false, false) => "active",
    }
}

fn described(user: &User) -> serde_json::Value {
    json!({
        "id": user.id,
        "username": user.username,
        "role": user.role,
        "disabled": user.disabled,
        "invited": user.invited,
        "createdAt": user.created_at,
    })
}
