//! Account leftovers: removes what a deleted account leaves outside of the database's rows: uploaded files, free pages,
//! workspaces.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use super::context::CommandContext;
use super::output::Output;
use crate::clock::Clock;
use crate::domain::account::Username;
use crate::gateway::InstanceLock;
use crate::store::{BlobOwner, Blobs, ScrubOutcome};

/// A running gateway notices a removal within a second, and stops that user's agents.
const AGENT_STOP_TIME: Duration = Duration::from_secs(2);
const TRIES: usize = 5;

/// Removes the leftovers and reports what stays.
pub(super) async fn clear(
    context: &CommandContext,
    name: &Username,
    workspaces: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    let data = &context.config.data.dir;
    // A running gateway removes the files itself: only it knows about uploads in progress.
    let alone = InstanceLock::claim(data).await;
    if alone.is_ok() {
        let contents = Blobs::open(data)?;
        let now = Clock::system().wall();
        contents.sweep(context.store.as_ref(), now).await?;
    }
    if let BlobOwner::Other { unknown: 1.. } = BlobOwner::find(data, context.store.as_ref()).await?
    {
        out.line(format!(
            "Their uploaded files stay in {}: `switchboard doctor` says why",
            data.join("attachments").display()
        ))?;
    }
    // Workspaces first: once the account is gone, the command cannot be repeated for it.
    clear_workspaces(data, name, workspaces, alone.is_ok(), out).await?;
    let scrubbed = context.store.scrub().await.context(
        "the rows are gone, but not yet overwritten; the gateway does that when it runs",
    )?;
    if scrubbed == ScrubOutcome::WalInUse {
        let finishes = match &alone {
            Ok(_) => "Whatever command is run here next does that, or the gateway",
            Err(_) => "The gateway that runs here does that by itself",
        };
        out.line(format!(
            "Words of {name} may still stand in {}-wal: another program reads the database (a backup?), \
             and only when it is done they can be written over. {finishes}",
            context.store.location()
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
        tokio::time::sleep(AGENT_STOP_TIME).await;
    }
    remove(&own)
        .await
        .with_context(|| format!("cannot remove {}", own.display()))?;
    Ok(out.line(format!("{} is removed", own.display()))?)
}

/// An agent that is being stopped may still write.
async fn remove(dir: &Path) -> std::io::Result<()> {
    for _ in 0..TRIES {
        if std::fs::remove_dir_all(dir).is_ok() {
            return Ok(());
        }
        tokio::time::sleep(AGENT_STOP_TIME / 4).await;
    }
    std::fs::remove_dir_all(dir)
}
