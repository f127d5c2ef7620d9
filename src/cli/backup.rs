//! `switchboard backup`: copies the database and the uploaded files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::context;
use super::output::Output;
use crate::config::Loaded;
use crate::store::{BackupError, Blobs, Store, attachments_beside};

pub(super) async fn run(
    loaded: Loaded,
    file: PathBuf,
    mut out: Output,
) -> anyhow::Result<ExitCode> {
    let store = context::open(&loaded.config.data).await?;
    let copied = copy(store.as_ref(), &loaded.config.data.dir, &file).await;
    store.close().await;
    let files = copied?;
    let bytes = std::fs::metadata(&file)?.len();
    out.line(format!(
        "{} holds a checked copy ({bytes} bytes)",
        file.display()
    ))?;
    if files > 0 {
        out.line(format!(
            "{} holds the uploaded files ({files})",
            attachments_beside(&file).display()
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Copies the database, and the uploaded files beside it; returns the number of files.
async fn copy(store: &dyn Store, data: &Path, file: &Path) -> anyhow::Result<usize> {
    let target = attachments_beside(file);
    if target.exists() {
        bail!(BackupError::Exists(target.display().to_string()));
    }
    let copy_files = || {
        Blobs::copy(data, &target)
            .with_context(|| format!("cannot copy the uploaded files to {}", target.display()))
    };
    // Before and after: a file referenced by the copy existed at one of the two moments.
    let copied = async {
        copy_files()?;
        store.backup(file).await?;
        copy_files()
    };
    let copied = copied.await;
    if copied.is_err() && target.exists() {
        std::fs::remove_dir_all(&target)?;
    }
    copied
}
