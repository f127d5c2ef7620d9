//! What somebody who was removed leaves outside of the database's rows: uploaded files, free pages,
//! workspaces.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use super::desk::Desk;
use super::output::Output;
use crate::clock::Clock;
use crate::domain::account::Username;
use crate::gateway::Instance;
use crate::store::{Belonging, Contents, Scrubbed};

/// A running gateway feels a removal within a second, and ends that user's agents.
const AGENTS_END: Duration = Duration::from_secs(2);
const TRIES: usize = 5;

/// Takes it away, and says what stays.
pub(super) async fn clear(
    desk: &Desk,
    name: &Username,
    workspaces: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    let data = &desk.config.data.dir;
    // A running gateway looks after the files itself: only it knows what is arriving.
    let alone = Instance::claim(data).await;
    if alone.is_ok() {
        let contents = Contents::open(data)?;
        let now = Clock::system().wall();
        contents.sweep(desk.store.as_ref(), now).await?;
    }
    if let Belonging::Strange { unknown: 1.. } = Belonging::of(data, desk.store.as_ref()).await? {
        out.line(format!(
            "Their uploaded files stay in {}: `switchboard doctor` says why",
            data.join("attachments").display()
        ))?;
    }
    // The workspaces first: once the account is gone nobody can ask for that again.
    clear_workspaces(data, name, workspaces, alone.is_ok(), out).await?;
    let scrubbed = desk.store.scrub().await.context(
        "the rows are gone, but not yet overwritten; the gateway does that when it runs",
    )?;
    if scrubbed == Scrubbed::LogIsRead {
        let finishes = match &alone {
            Ok(_) => "Whatever command is run here next does that, or the gateway",
            Err(_) => "The gateway that runs here does that by itself",
        };
        out.line(format!(
            "Words of {name} may still stand in {}-wal: another program reads the database (a backup?), \
             and only when it is done they can be written over. {finishes}",
            desk.store.place()
        ))?;
    }
    Ok(())
}

async fn clear_workspaces(
    data: &Path,
    name: &Username,
    wanted: bool,
    alone: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    let own = data.join("workspaces").join(name.as_str());
    if !own.exists() {
        return Ok(());
    }
    if !wanted {
        let place = own.display();
        out.line(format!(
            "What agents made stays in {place}: remove it if nobody needs it (next time: --workspaces)"
        ))?;
        return Ok(());
    }
    if !alone {
        tokio::time::sleep(AGENTS_END).await;
    }
    remove(&own)
        .await
        .with_context(|| format!("cannot remove {}", own.display()))?;
    Ok(out.line(format!("{} is removed", own.display()))?)
}

/// An agent that is being ended may still write.
async fn remove(dir: &Path) -> std::io::Result<()> {
    for _ in 0..TRIES {
        if std::fs::remove_dir_all(dir).is_ok() {
            return Ok(());
        }
        tokio::time::sleep(AGENTS_END / 4).await;
    }
    std::fs::remove_dir_all(dir)
}
