//! The contents of uploaded files, each once, under its hash: `attachments/ab/abcd…` in the data
//! directory.
//!
//! A content arrives in a file of its own and takes its place only when all of it is there. Between
//! taking its place and being referred to by a row nobody sweeps: that is one turn. What no row refers to
//! goes when it is old, or when the database has given it up; and only if the files are this database's.

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
use super::belonging;
use super::error::{OpenError, StoreError};
use crate::domain::id::AttachmentId;
use crate::domain::media::{Media, Sniffer};

/// Where the contents are in a data directory.
pub(super) const DIRECTORY: &str = "attachments";
const ARRIVING: &str = "tmp-";
/// What is younger stays, unless the database has given it up: its row may still come.
const GRACE: Duration = Duration::from_hours(1);

/// Where the contents are.
#[derive(Debug)]
pub struct Contents {
    /// The data directory.
    data: PathBuf,
    dir: PathBuf,
    /// By the first byte of the hash: shared by those who bring something, alone for whoever takes
    /// something away.
    turns: [RwLock<()>; 256],
}

/// Why a content was not kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The disk does not take it.
    #[error("the file cannot be stored: {0}")]
    Disk(#[from] io::Error),
    /// It was refused.
    #[error(transparent)]
    Add(#[from] AddError),
}

/// Why there was no sweep.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The disk does not answer.
    #[error(transparent)]
    Disk(#[from] io::Error),
    /// Nobody knows what is needed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Contents {
    /// The contents in a data directory, without what was arriving when the last gateway ended.
    pub fn open(data: &Path) -> Result<Self, OpenError> {
        let dir = data.join(DIRECTORY);
        let prepare = || {
            make(&dir)?;
            for entry in fs::read_dir(&dir)? {
                let entry = entry?;
                if entry.file_name().to_string_lossy().starts_with(ARRIVING) {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        prepare().map_err(|source| OpenError::Directory {
            path: dir.clone(),
            source,
        })?;
        let turns = std::array::from_fn(|_| RwLock::new(()));
        Ok(Self {
            data: data.to_owned(),
            dir,
            turns,
        })
    }

    /// Copies what is in a data directory and not yet in the target, by a second name for the same
    /// file where that is possible: a content never changes. What goes away meanwhile is passed by,
    /// and what is arriving. Says how many there are in the target then.
    pub fn copy(data: &Path, target: &Path) -> io::Result<usize> {
        let (dir, mut count) = (data.join(DIRECTORY), 0);
        for folder in names(&dir)? {
            if folder.starts_with(ARRIVING) {
                continue;
            }
            let (from, to) = (dir.join(&folder), target.join(&folder));
            for file in names(&from)? {
                make(&to)?;
                count += usize::from(copy_one(&from.join(&file), &to.join(&file))?);
            }
        }
        Ok(count)
    }

    /// Brings the contents of a backup to a new place, as [`copy`](Self::copy) does; says which of those
    /// that are needed are not there, or not what their name says.
    pub(super) fn bring(
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
            make(&dir)?;
            copy_one(&source, &dir.join(file))?;
            File::open(&dir)?.sync_all()?;
        }
        Ok(missing)
    }

    /// Is there no content in a directory of contents?
    pub(super) fn is_empty(dir: &Path) -> io::Result<bool> {
        for folder in names(dir)? {
            if !folder.starts_with(ARRIVING) && !names(&dir.join(folder))?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Room for a content that is about to arrive. It is gone when dropped.
    pub async fn receive(&self) -> io::Result<Arriving> {
        let path = self.dir.join(format!("{ARRIVING}{}", AttachmentId::new()));
        let draft = aside(move || {
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            Ok(Box::new(Draft {
                file,
                path,
                digest: digest::Context::new(&digest::SHA256),
                sniffer: Sniffer::default(),
                size: 0,
            }))
        });
        Ok(Arriving(Some(draft.await?)))
    }

    /// Puts a content in its place and adds the row that refers to it, or neither.
    pub async fn keep(
        &self,
        content: Content,
        row: &AttachmentRow,
        quotas: Quotas,
        store: &dyn Store,
    ) -> Result<(), KeepError> {
        let place = self.place(&content.hash);
        let turn = self.turns[usize::from(content.hash[0])].read().await;
        // Over one that is there already: it is the same.
        aside(move || content.draft.settle(&place)).await?;
        let added = store.add_attachment(row, quotas).await;
        drop(turn);
        // What failed otherwise may have been added all the same.
        if let Err(AddError::NoSession | AddError::OverQuota { .. }) = &added
            && let Err(error) = self.forget(row.hash, store).await
        {
            tracing::warn!(%error, "a file that nobody needs stays until the next sweep");
        }
        Ok(added?)
    }

    /// A content to be read; `None` if it is not here.
    pub async fn read(&self, hash: &ContentHash) -> io::Result<Option<File>> {
        let place = self.place(hash);
        aside(move || match File::open(place) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
        .await
    }

    /// Removes every content that no row refers to and that is old or was given up; says how many.
    /// `None` if the files are not this database's: nothing is removed then.
    pub async fn sweep(
        &self,
        store: &dyn Store,
        now: Timestamp,
    ) -> Result<Option<u64>, SweepError> {
        if !belonging::is_at_home(&self.data, store).await? {
            return Ok(None);
        }
        let old = SystemTime::from(now) - GRACE;
        let mut removed = 0;
        for first in 0..=u8::MAX {
            removed += self.sweep_among(first, store, old).await?;
        }
        Ok(Some(removed))
    }

    async fn sweep_among(
        &self,
        first: u8,
        store: &dyn Store,
        old: SystemTime,
    ) -> Result<u64, SweepError> {
        let dir = self.dir.join(format!("{first:02x}"));
        let look = dir.clone();
        if aside(move || names(&look)).await?.is_empty() {
            return Ok(0);
        }
        // From here on nothing new takes its place, so what has no row now will have none.
        let _turn = self.turns[usize::from(first)].write().await;
        let needed = store.contents_with(first).await?;
        let needed: HashSet<String> = needed.iter().map(hex).collect();
        let released = store.released_with(first).await?;
        let released: HashSet<String> = released.iter().map(hex).collect();
        let removed = aside(move || {
            let mut removed = 0;
            for name in names(&dir)? {
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

    /// Removes a content, unless some row refers to it, or one of another database might.
    async fn forget(&self, hash: ContentHash, store: &dyn Store) -> Result<(), SweepError> {
        if !belonging::is_at_home(&self.data, store).await? {
            return Ok(());
        }
        let _turn = self.turns[usize::from(hash[0])].write().await;
        if store.contents_with(hash[0]).await?.contains(&hash) {
            return Ok(());
        }
        let place = self.place(&hash);
        let removed = aside(move || match fs::remove_file(place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        });
        Ok(removed.await?)
    }

    fn place(&self, hash: &ContentHash) -> PathBuf {
        let name = hex(hash);
        self.dir.join(&name[..2]).join(name)
    }
}

/// A content on its way.
#[derive(Debug)]
pub struct Arriving(Option<Box<Draft>>);

/// A content that has arrived and has no place yet.
#[derive(Debug)]
pub struct Content {
    draft: Box<Draft>,
    /// Its SHA-256.
    pub hash: ContentHash,
    /// What it is.
    pub media: Media,
    /// How large it is.
    pub size_bytes: u64,
}

impl Arriving {
    /// Takes the next piece.
    pub async fn write(&mut self, piece: Bytes) -> io::Result<()> {
        let mut draft = self.0.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let draft = aside(move || draft.write(&piece).map(|()| draft)).await?;
        self.0 = Some(draft);
        Ok(())
    }

    /// All of it is here.
    pub async fn finish(mut self) -> io::Result<Content> {
        let draft = self.0.take().ok_or(io::ErrorKind::BrokenPipe)?;
        aside(move || {
            draft.file.sync_all()?;
            let mut hash = [0; 32];
            hash.copy_from_slice(draft.digest.clone().finish().as_ref());
            Ok(Content {
                hash,
                media: draft.sniffer.media(),
                size_bytes: draft.size,
                draft,
            })
        })
        .await
    }
}

/// A file without a place: removed when dropped, wherever that happens.
struct Draft {
    file: File,
    path: PathBuf,
    digest: digest::Context,
    sniffer: Sniffer,
    size: u64,
}

impl Draft {
    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_all(piece)?;
        self.digest.update(piece);
        self.sniffer.look(piece);
        self.size += piece.len() as u64;
        Ok(())
    }

    /// Takes its place for good, also across a power cut.
    fn settle(&self, place: &Path) -> io::Result<()> {
        let dir = place.parent().ok_or(io::ErrorKind::NotFound)?;
        make(dir)?;
        fs::rename(&self.path, place)?;
        File::open(dir)?.sync_all()
    }
}

impl std::fmt::Debug for Draft {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Draft").field(&self.path).finish()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "a file that did not arrive cannot be removed");
            }
            _ => {}
        }
    }
}

/// Disks take their time: nobody else waits for them.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn make(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// The names in a directory; none if it is not there.
pub(super) fn names(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into());
    entries.map(name).collect()
}

/// False if it is not there any more.
fn copy_one(from: &Path, to: &Path) -> io::Result<bool> {
    if to.exists() || fs::hard_link(from, to).is_ok() {
        return Ok(true);
    }
    // Another disk, or one that knows no second names.
    match fs::copy(from, to) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    }
    File::open(to)?.sync_all()?;
    Ok(true)
}

/// Is it there, and is it what its name says?
fn has_hash(path: &Path, hash: &ContentHash) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    let mut context = digest::Context::new(&digest::SHA256);
    let mut piece = vec![0; 64 * 1024];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(context.finish().as_ref() == hash),
            read => context.update(&piece[..read]),
        }
    }
}

/// A hash as people write it.
pub fn hex(hash: &ContentHash) -> String {
    use std::fmt::Write as _;
    hash.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes it");
        text
    })
}
