//! `switchboard session`: lists sessions and ends one. Shows nothing of their content.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use serde_json::json;

use super::context::CommandContext;
use super::output::Output;
use crate::config::Loaded;
use crate::domain::account::Username;
use crate::domain::audit::Action;
use crate::domain::id::SessionId;
use crate::store::{SessionFacts, SessionFilter, SessionRow};

const PAGE: u32 = 500;
/// Titles may have 200 characters; the table shows fewer.
const TITLE_CHARS: usize = 40;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the sessions that have not ended, most recently changed first
    List {
        /// Only sessions of this user
        #[arg(long, value_name = "NAME")]
        user: Option<Username>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// End a session for good: its run stops, its members are told
    End {
        /// The session's id, as in `session list`
        id: SessionId,
        /// Do not ask for confirmation; nor without a terminal on standard input
        #[arg(long)]
        yes: bool,
    },
}

struct Listed {
    facts: SessionFacts,
    title: Option<String>,
}

pub(super) async fn run(
    loaded: Loaded,
    command: Command,
    mut out: Output,
) -> anyhow::Result<ExitCode> {
    let context = CommandContext::open(loaded).await?;
    let done = match command {
        Command::List { user, json } => list(&context, user.as_ref(), json, &mut out).await,
        Command::End { id, yes } => end(&context, id, yes, &mut out).await,
    };
    context.close().await;
    done?;
    Ok(ExitCode::SUCCESS)
}

async fn list(
    context: &CommandContext,
    user: Option<&Username>,
    json: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    let mut filter = SessionFilter::default();
    if let Some(name) = user {
        filter.user = Some(context.user(name).await?.id.to_string());
    }
    let mut sessions: Vec<Listed> = Vec::new();
    loop {
        let page = context.store.all_sessions(&filter, PAGE).await?;
        let Some(last) = page.last() else { break };
        filter.before = Some((last.updated_at, last.id));
        for facts in page {
            // The administrators' view has no titles.
            let row = context.store.session(facts.id).await?;
            let title = row.and_then(|row| row.title);
            sessions.push(Listed { facts, title });
        }
    }
    if json {
        let described: Vec<_> = sessions.iter().map(described).collect();
        return Ok(out.json(&described)?);
    }
    let rows: Vec<_> = sessions.iter().map(row).collect();
    let names = [
        "ID", "OWNER", "AGENT", "STATUS", "MESSAGES", "CREATED", "LAST", "TITLE",
    ];
    Ok(out.table(names, &rows)?)
}

fn row(Listed { facts, title }: &Listed) -> [String; 8] {
    [
        facts.id.to_string(),
        facts.owner_name.to_string(),
        facts.agent.clone(),
        facts.status.as_str().to_owned(),
        facts.messages.to_string(),
        format!("{:.0}", facts.created_at),
        format!("{:.0}", facts.updated_at),
        shown(title.as_deref().unwrap_or_default()),
    ]
}

/// An agent may have chosen the title: control characters are removed.
fn shown(title: &str) -> String {
    let mut letters = title
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter });
    let mut text: String = letters.by_ref().take(TITLE_CHARS).collect();
    if letters.next().is_some() {
        text.push('…');
    }
    text
}

fn described(Listed { facts, title }: &Listed) -> serde_json::Value {
    json!({
        "id": facts.id,
        "owner": facts.owner_name,
        "agent": facts.agent,
        "title": title,
        "status": facts.status.as_str(),
        "messageCount": facts.messages,
        "createdAt": facts.created_at,
        "updatedAt": facts.updated_at,
    })
}

async fn end(
    context: &CommandContext,
    id: SessionId,
    yes: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    let Some(session) = context.store.session(id).await? else {
        bail!("there is no session {id}: `switchboard session list` shows those there are");
    };
    if let Some(at) = session.ended_at {
        bail!("session {id} has ended already, at {at:.0}");
    }
    if !yes && std::io::stdin().is_terminal() && !is_meant(&session)? {
        bail!("nothing was done");
    }
    let act = context
        .auth
        .operator()
        .did(Action::SessionEnded, id.to_string());
    if !context.store.end_session(id, session.owner, &act).await? {
        bail!("session {id} has ended already, a moment ago");
    }
    let owner = &session.owner_name;
    Ok(out.line(format!("{id} of {owner} has ended"))?)
}

fn is_meant(session: &SessionRow) -> anyhow::Result<bool> {
    let (owner, agent) = (&session.owner_name, &session.agent);
    let mut stderr = std::io::stderr();
    write!(
        stderr,
        "{owner} cannot open this session with {agent} again. End it? [y/N] "
    )?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_neither_controls_a_terminal_nor_breaks_its_line() {
        assert_eq!(shown("red \u{1b}[31m\nnext"), "red  [31m next");
        assert_eq!(shown(&"ä".repeat(40)), "ä".repeat(40));
        assert_eq!(shown(&"ä".repeat(41)), format!("{}…", "ä".repeat(40)));
    }
}
