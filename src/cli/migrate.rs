//! `switchboard migrate`: brings the schema up to date.

use std::process::ExitCode;

use anyhow::bail;

use super::context;
use super::output::Output;
use crate::clock::Clock;
use crate::config::Loaded;
use crate::domain::audit::{Action, AuditContext};
use crate::store::{self, BlobOwner, Config, Store, StoreError};

#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Give every journal a new epoch, after the database was set back in a way that it cannot notice
    /// (a disk or a machine from a snapshot): clients that come back get the state
    #[arg(long)]
    new_epochs: bool,
    /// Say that the uploaded files in the data directory belong to this database, so that those it does
    /// not know are removed once they are older than an hour
    #[arg(long)]
    adopt_files: bool,
}

/// Opening a database migrates it; this command only reports it, for upgrades in steps.
pub(super) async fn run(
    loaded: Loaded,
    options: Options,
    mut out: Output,
) -> anyhow::Result<ExitCode> {
    let config = loaded.config.data;
    let store = context::open(&config).await?;
    let (place, version) = (store.location().to_owned(), store.schema_version());
    let renewed = if options.new_epochs {
        Some(renew(store.as_ref()).await)
    } else {
        None
    };
    let adopted = if options.adopt_files {
        Some(adopt(store.as_ref(), &config).await)
    } else {
        None
    };
    store.close().await;
    out.line(format!("{place} is at schema version {version}"))?;
    if let Some(renewed) = renewed {
        out.line(format!("{} journals have a new epoch", renewed?))?;
    }
    if let Some(adopted) = adopted {
        out.line(adopted?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the result.
async fn adopt(store: &dyn Store, config: &Config) -> anyhow::Result<String> {
    let dir = config.dir.display();
    let unknown = match BlobOwner::find(&config.dir, store).await? {
        BlobOwner::ThisDatabase => {
            return Ok(format!("The uploaded files in {dir} are this database's"));
        }
        BlobOwner::Other { unknown } => unknown,
    };
    if !store::adopt(&config.dir, store).await? {
        bail!(
            "this database was restored or moved, or a standby took over: start a gateway on it first, \
             or give --new-epochs as well"
        );
    }
    let by = AuditContext::operator(Clock::system().wall());
    let act = by.did(
        Action::FilesAdopted,
        format!("{unknown} unknown files in {dir}"),
    );
    store.record(&act).await?;
    Ok(format!(
        "The uploaded files in {dir} are this database's from now on: a gateway removes the {unknown} \
         that it does not know, once they are older than an hour"
    ))
}

async fn renew(store: &dyn Store) -> Result<u64, StoreError> {
    let renewed = store.renew_epochs().await?;
    let by = AuditContext::operator(Clock::system().wall());
    let act = by.did(Action::EpochsRenewed, format!("{renewed} journals"));
    store.record(&act).await?;
    Ok(renewed)
}
