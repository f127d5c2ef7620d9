//! `switchboard migrate`.

use std::process::ExitCode;

use super::output::Output;
use crate::clock::Clock;
use crate::config::Loaded;
use crate::domain::act::{Action, By};
use crate::store::{self, Store, StoreError};

#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Give every journal a new epoch, after the database was set back in a way that it cannot notice
    /// (a disk or a machine from a snapshot): clients that come back get the state
    #[arg(long)]
    new_epochs: bool,
}

/// Opening a database brings it up to date; this command only says so, for those who upgrade in steps.
pub(super) async fn run(
    loaded: Loaded,
    options: Options,
    mut out: Output,
) -> anyhow::Result<ExitCode> {
    let store = store::open(&loaded.config.data).await?;
    let (place, version) = (store.place().to_owned(), store.schema_version());
    let renewed = if options.new_epochs {
        Some(renew(store.as_ref()).await)
    } else {
        None
    };
    store.close().await;
    out.line(format!("{place} is at schema version {version}"))?;
    if let Some(renewed) = renewed {
        out.line(format!("{} journals have a new epoch", renewed?))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn renew(store: &dyn Store) -> Result<u64, StoreError> {
    let renewed = store.renew_epochs().await?;
    let by = By::operator(Clock::system().wall());
    let act = by.did(Action::EpochsRenewed, format!("{renewed} journals"));
    store.record(&act).await?;
    Ok(renewed)
}
