//! `switchboard backup`.

use std::path::PathBuf;
use std::process::ExitCode;

use super::output::Output;
use crate::config::Loaded;
use crate::store;

pub(super) async fn run(
    loaded: Loaded,
    file: PathBuf,
    mut out: Output,
) -> anyhow::Result<ExitCode> {
    let store = store::open(&loaded.config.data).await?;
    let copied = store.backup(&file).await;
    store.close().await;
    copied?;
    let bytes = std::fs::metadata(&file)?.len();
    out.line(format!(
        "{} holds a checked copy ({bytes} bytes)",
        file.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
