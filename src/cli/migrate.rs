//! `switchboard migrate`.

use std::process::ExitCode;

use super::output::Output;
use crate::config::Loaded;
use crate::store;

/// Opening a database brings it up to date; this command only says so, for those who upgrade in steps.
pub(super) async fn run(loaded: Loaded, mut out: Output) -> anyhow::Result<ExitCode> {
    let store = store::open(&loaded.config.data).await?;
    let (place, version) = (store.place().to_owned(), store.schema_version());
    store.close().await;
    out.line(format!("{place} is at schema version {version}"))?;
    Ok(ExitCode::SUCCESS)
}
