//! `switchboard restore`: puts a backup in place.

use std::path::PathBuf;
use std::process::ExitCode;

use super::output::{Output, warn};
use crate::clock::Clock;
use crate::config::Loaded;
use crate::domain::audit::{Action, AuditContext};
use crate::gateway::InstanceLock;
use crate::store::{self, Existing, Restored, attachments_beside, hex};

/// Missing files listed by name.
const MAX_LISTED_FILES: usize = 10;

#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// A file made by `switchboard backup`; its uploaded files are looked for in FILE.attachments
    file: PathBuf,
    /// Move what is there aside, into a directory `replaced-…` of the data directory
    #[arg(long)]
    replace: bool,
}

pub(super) async fn run(
    loaded: Loaded,
    options: Options,
    mut out: Output,
) -> anyhow::Result<ExitCode> {
    let config = loaded.config.data;
    store::make_directory(&config)?;
    // Held to the end: no gateway can start meanwhile.
    let _alone = InstanceLock::claim(&config.dir).await?;
    let existing = if options.replace {
        Existing::MoveAside
    } else {
        Existing::Refuse
    };
    let by = AuditContext::operator(Clock::system().wall());
    let act = by.did(Action::Restored, options.file.display().to_string());
    let restored = store::restore(&config, &options.file, existing, &act).await?;
    if let Some(error) = &restored.unrecorded {
        warn(format!(
            "the audit log does not tell of this restore: {error}"
        ));
    }
    tell(&restored, &options, &mut out)?;
    Ok(ExitCode::SUCCESS)
}

fn tell(restored: &Restored, options: &Options, out: &mut Output) -> anyhow::Result<()> {
    let until = restored.newest.map_or_else(
        || "nothing had happened in a session".to_owned(),
        |at| format!("the last event is of {at:.0}"),
    );
    out.line(format!(
        "{} is in place: {} users, {} sessions, {} uploaded files; {until}",
        options.file.display(),
        restored.users,
        restored.sessions,
        restored.files
    ))?;
    for aside in &restored.asides {
        out.line(format!("What was there is in {} now", aside.display()))?;
    }
    if !restored.missing.is_empty() {
        out.line(format!(
            "MISSING: {} uploaded files are not whole in {}; downloads of them will fail:",
            restored.missing.len(),
            attachments_beside(&options.file).display()
        ))?;
        for hash in restored.missing.iter().take(MAX_LISTED_FILES) {
            out.line(format!("  {}", hex(hash)))?;
        }
    }
    out.line(
        "Journals have a new epoch: clients that come back get the state, and go on from there",
    )?;
    out.line(
        "Before you start the gateway, look at what happened after the backup and is undone now:",
    )?;
    out.line(
        "  switchboard user list        accounts that were disabled, removed or had another role",
    )?;
    out.line("  switchboard key rotate --drop-old   if logins were ended because a token leaked")?;
    Ok(out.line("  switchboard doctor           is everything else well?")?)
}
