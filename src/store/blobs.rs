//! Blobs: bytes of uploaded files, each stored once under its hash as `attachments/ab/abcd…` in the
//! data directory.
//!
//! An upload is written to a temporary file and renamed when complete. A lock per first byte keeps the
//! sweep out between that rename and the insert of the row that refers to it. Unreferenced blobs are
//! deleted when old, or once the database released them, and only by the database that owns the files.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use aws_lc_rs::digest;
use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::RwLock;

use super::Store;
use super::attachments::{AddError, AttachmentRow, ContentHash, Quotas};
use super::error::{OpenError, StoreError};
use super::owning_database;
use crate::domain::id::AttachmentId;
use crate::domain::media_type::{MediaType, Sniffer};

pub(super) const DIRECTORY: &str = "attachments";
const UPLOAD_PREFIX: &str = "tmp-";
/// Younger blobs survive a sweep unless released: their row may still be inserted.
const ORPHAN_GRACE: Duration = Duration::from_hours(1);

/// The blobs of a data directory.
#[derive(Debug)]
pub struct Blobs {
    data: PathBuf,
    dir: PathBuf,
    /// By the first byte of the hash: shared by uploads, exclusive for deletion.
    shard_locks: [RwLock<()>; 256],
}

/// Why a blob was not stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreBlobError {
    /// The disk failed.
    #[error("the file cannot be stored: {0}")]
    Disk(#[from] io::Error),
    /// The row was refused.
    #[error(transparent)]
    Add(#[from] AddError),
}

/// Why a sweep failed.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] io::Error),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Blobs {
    /// Opens the blobs of a data directory and deletes unfinished uploads of the last gateway.
    pub fn open(data: &Path) -> Result<Self, OpenError> {
        let dir = data.join(DIRECTORY);
        let prepare = || {
            make_dir(&dir)?;
            for entry in fs::read_dir(&dir)? {
                let entry = entry?;
                if entry
                    .file_name()
                    .to_string_lossy()
                    .starts_with(UPLOAD_PREFIX)
                {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        prepare().map_err(|source| OpenError::Directory {
            path: dir.clone(),
            source,
        })?;
        let shard_locks = std::array::from_fn(|_| RwLock::new(()));
        Ok(Self {
            data: data.to_owned(),
            dir,
            shard_locks,
        })
    }

    /// Copies all blobs that the target lacks, as hard links where possible (a blob never changes).
    /// Skips unfinished uploads and blobs deleted meanwhile. Returns how many the target has.
    pub fn copy(data: &Path, target: &Path) -> io::Result<usize> {
        let (dir, mut count) = (data.join(DIRECTORY), 0);
        for folder in file_names(&dir)? {
            if folder.starts_with(UPLOAD_PREFIX) {
                continue;
            }
            let (from, to) = (dir.join(&folder), target.join(&folder));
            for file in file_names(&from)? {
                make_dir(&to)?;
                count += usize::from(copy_one(&from.join(&file), &to.join(&file))?);
            }
        }
        Ok(count)
    }

    /// Copies the needed blobs of a backup to the target, as [`copy`](Self::copy) does; returns
    /// those that are missing or do not match their hash.
    pub(super) fn restore_into(
        from: &Path,
        target: &Path,
        needed: &[ContentHash],
    ) -> io::Result<Vec<ContentHash>> {
        let mut missing = Vec::new();
        for hash in needed {
            let name = hex(hash);
            let (folder, file) = (&name[..2], &name);
            let source = from.join(folder).join(file);
            if !has_hash(&source, hash)? {
                missing.push(*hash);
                continue;
            }
            let dir = target.join(folder);
            make_dir(&dir)?;
            copy_one(&source, &dir.join(file))?;
            File::open(&dir)?.sync_all()?;
        }
        Ok(missing)
    }

    pub(super) fn is_empty(dir: &Path) -> io::Result<bool> {
        for folder in file_names(dir)? {
            if !folder.starts_with(UPLOAD_PREFIX) && !file_names(&dir.join(folder))?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Starts an upload; dropping it deletes the temporary file.
    pub async fn receive(&self) -> io::Result<Upload> {
        let path = self
            .dir
            .join(format!("{UPLOAD_PREFIX}{}", AttachmentId::new()));
        let file = blocking(move || {
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            Ok(Box::new(TempFile {
                file,
                path,
                digest: digest::Context::new(&digest::SHA256),
                sniffer: Sniffer::default(),
                size: 0,
            }))
        });
        Ok(Upload(Some(file.await?)))
    }

    /// Moves a finished upload into place and inserts its row, or does neither.
    pub async fn store(
        &self,
        blob: UploadedBlob,
        row: &AttachmentRow,
        quotas: Quotas,
        store: &dyn Store,
    ) -> Result<(), StoreBlobError> {
        let path = self.path_of(&blob.hash);
        let guard = self.shard_locks[usize::from(blob.hash[0])].read().await;
        // Replacing an existing blob is harmless: same hash, same bytes.
        blocking(move || blob.file.move_to(&path)).await?;
        let added = store.add_attachment(row, quotas).await;
        drop(guard);
        // After any other error the row may have been inserted all the same.
        if let Err(AddError::NoSession | AddError::OverQuota { .. }) = &added
            && let Err(error) = self.remove_unreferenced(row.hash, store).await
        {
            tracing::warn!(
                %error,
                session.id = %row.session,
                blob = hex(&row.hash),
                "cannot delete the blob of a refused upload; the next sweep retries"
            );
        }
        Ok(added?)
    }

    /// Opens a blob for reading; `None` if it is missing.
    pub async fn read(&self, hash: &ContentHash) -> io::Result<Option<File>> {
        let path = self.path_of(hash);
        blocking(move || match File::open(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
        .await
    }

    /// Deletes unreferenced blobs that are old or released; returns how many. `None`, and nothing
    /// deleted, if another database owns the files.
    pub async fn sweep(
        &self,
        store: &dyn Store,
        now: Timestamp,
    ) -> Result<Option<u64>, SweepError> {
        if !owning_database::owns_blobs(&self.data, store).await? {
            return Ok(None);
        }
        let old = SystemTime::from(now) - ORPHAN_GRACE;
        let mut removed = 0;
        for first in 0..=u8::MAX {
            removed += self.sweep_shard(first, store, old).await?;
        }
        Ok(Some(removed))
    }

    async fn sweep_shard(
        &self,
        first: u8,
        store: &dyn Store,
        old: SystemTime,
    ) -> Result<u64, SweepError> {
        let dir = self.dir.join(format!("{first:02x}"));
        let look = dir.clone();
        if blocking(move || file_names(&look)).await?.is_empty() {
            return Ok(0);
        }
        // No upload can finish under this lock: a blob without a row now will not get one.
        let _guard = self.shard_locks[usize::from(first)].write().await;
        let needed = store.referenced_hashes(first).await?;
        let needed: HashSet<String> = needed.iter().map(hex).collect();
        let released = store.released_hashes(first).await?;
        let released: HashSet<String> = released.iter().map(hex).collect();
        let removed = blocking(move || {
            let mut removed = 0;
            for name in file_names(&dir)? {
                let path = dir.join(&name);
                if !needed.contains(&name)
                    && (released.contains(&name) || path.metadata()?.modified()? < old)
                {
                    fs::remove_file(path)?;
                    removed += 1;
                }
            }
            Ok(removed)
        });
        Ok(removed.await?)
    }

    /// Deletes a blob unless a row refers to it or another database owns the files.
    async fn remove_unreferenced(
        &self,
        hash: ContentHash,
        store: &dyn Store,
    ) -> Result<(), SweepError> {
        if !owning_database::owns_blobs(&self.data, store).await? {
            return Ok(());
        }
        let _guard = self.shard_locks[usize::from(hash[0])].write().await;
        if store.referenced_hashes(hash[0]).await?.contains(&hash) {
            return Ok(());
        }
        let path = self.path_of(&hash);
        let removed = blocking(move || match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        });
        Ok(removed.await?)
    }

    fn path_of(&self, hash: &ContentHash) -> PathBuf {
        let name = hex(hash);
        self.dir.join(&name[..2]).join(name)
    }
}

/// An upload in progress.
#[derive(Debug)]
pub struct Upload(Option<Box<TempFile>>);

/// A finished upload, not yet stored.
#[derive(Debug)]
pub struct UploadedBlob {
    file: Box<TempFile>,
    /// SHA-256 of its bytes.
    pub hash: ContentHash,
    /// Sniffed from the bytes.
    pub media_type: MediaType,
    /// Size.
    pub size_bytes: u64,
}

impl Upload {
    /// Appends a chunk.
    pub async fn write(&mut self, chunk: Bytes) -> io::Result<()> {
        let mut file = self.0.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let file = blocking(move || file.write(&chunk).map(|()| file)).await?;
        self.0 = Some(file);
        Ok(())
    }

    /// Syncs the file and finishes the hash.
    pub async fn finish(mut self) -> io::Result<UploadedBlob> {
        let file = self.0.take().ok_or(io::ErrorKind::BrokenPipe)?;
        blocking(move || {
            file.file.sync_all()?;
            let mut hash = [0; 32];
            hash.copy_from_slice(file.digest.clone().finish().as_ref());
            Ok(UploadedBlob {
                hash,
                media_type: file.sniffer.media_type(),
                size_bytes: file.size,
                file,
            })
        })
        .await
    }
}

/// Deleted when dropped.
struct TempFile {
    file: File,
    path: PathBuf,
    digest: digest::Context,
    sniffer: Sniffer,
    size: u64,
}

impl TempFile {
    fn write(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.file.write_all(chunk)?;
        self.digest.update(chunk);
        self.sniffer.feed(chunk);
        self.size += chunk.len() as u64;
        Ok(())
    }

    /// Durable: renames into place and syncs the directory.
    fn move_to(&self, path: &Path) -> io::Result<()> {
        let dir = path.parent().ok_or(io::ErrorKind::NotFound)?;
        make_dir(dir)?;
        fs::rename(&self.path, path)?;
        File::open(dir)?.sync_all()
    }
}

impl std::fmt::Debug for TempFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("TempFile").field(&self.path).finish()
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let path = self.path.display();
                tracing::warn!(%error, %path, "cannot delete an unfinished upload");
            }
            _ => {}
        }
    }
}

/// Runs file I/O on a blocking thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn make_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// File names in a directory; empty if it does not exist.
pub(super) fn file_names(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into());
    entries.map(name).collect()
}

/// False if the source was deleted meanwhile.
fn copy_one(from: &Path, to: &Path) -> io::Result<bool> {
    if to.exists() || fs::hard_link(from, to).is_ok() {
        return Ok(true);
    }
    // Another disk, or no hard links.
    match fs::copy(from, to) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    }
    File::open(to)?.sync_all()?;
    Ok(true)
}

fn has_hash(path: &Path, hash: &ContentHash) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    let mut context = digest::Context::new(&digest::SHA256);
    let mut chunk = vec![0; 64 * 1024];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(context.finish().as_ref() == hash),
            read => context.update(&chunk[..read]),
        }
    }
}

/// A hash in hexadecimal.
pub fn hex(hash: &ContentHash) -> String {
    use std::fmt::Write as _;
    hash.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes it");
        text
    })
}
