//! Owning database: records which database the uploaded files of a data directory belong to.
//!
//! The file `attachments.home` beside them names the database by its [`StoreId`]. Only that
//! database may delete files it does not know. A new, restored or wrong database has another id,
//! and nothing is deleted until an operator adopts the files. Several gateways on one Postgres each
//! have their own directory naming the same database.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::Store;
use super::blobs::{DIRECTORY, SweepError, blocking, file_names, hex};
use crate::domain::id::StoreId;

const FILE: &str = "attachments.home";

/// Owner of the uploaded files, as seen from one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobOwner {
    /// This database.
    ThisDatabase,
    /// Another database, or none recorded.
    Other {
        /// Files that this database does not know.
        unknown: u64,
    },
}

impl BlobOwner {
    /// Reads the recorded owner; changes nothing.
    pub async fn find(data: &Path, store: &dyn Store) -> Result<Self, SweepError> {
        if owns_blobs(data, store).await? {
            return Ok(Self::ThisDatabase);
        }
        let unknown = unknown(data, store).await?;
        Ok(Self::Other { unknown })
    }

    /// Called before the first upload. Adopts the files if this database knows all of them; otherwise
    /// clears the recorded owner, because the former owner will not know what is uploaded from now on.
    pub async fn claim(data: &Path, store: &dyn Store) -> Result<Self, SweepError> {
        let found = Self::find(data, store).await?;
        match found {
            Self::ThisDatabase => {}
            Self::Other { unknown: 0 } => {
                adopt(data, store).await?;
                return Ok(Self::ThisDatabase);
            }
            Self::Other { .. } => {
                let file = data.join(FILE);
                blocking(move || match fs::remove_file(file) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                    _ => Ok(()),
                })
                .await?;
            }
        }
        Ok(found)
    }
}

/// Records this database as the owner. False if the database has no identity yet.
pub async fn adopt(data: &Path, store: &dyn Store) -> Result<bool, SweepError> {
    let Some(identity) = store.identity().await? else {
        return Ok(false);
    };
    let data = data.to_owned();
    blocking(move || write(&data, identity)).await?;
    Ok(true)
}

pub(super) async fn owns_blobs(data: &Path, store: &dyn Store) -> Result<bool, SweepError> {
    let file = data.join(FILE);
    let recorded_owner = blocking(move || recorded_owner(&file)).await?;
    Ok(recorded_owner.is_some() && recorded_owner == store.identity().await?)
}

fn recorded_owner(file: &Path) -> io::Result<Option<StoreId>> {
    match fs::read_to_string(file) {
        // An unreadable id counts as no owner.
        Ok(text) => Ok(text.trim_end().parse().ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Atomic and durable: write, sync, rename, sync the directory.
fn write(data: &Path, identity: StoreId) -> io::Result<()> {
    let temporary: PathBuf = data.join(format!("{FILE}.new"));
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&temporary)?;
    writeln!(file, "{identity}")?;
    file.sync_all()?;
    fs::rename(temporary, data.join(FILE))?;
    File::open(data)?.sync_all()
}

/// Counts files that the database neither refers to nor released.
async fn unknown(data: &Path, store: &dyn Store) -> Result<u64, SweepError> {
    let mut unknown = 0;
    for first in 0..=u8::MAX {
        let dir = data.join(DIRECTORY).join(format!("{first:02x}"));
        let files = blocking(move || file_names(&dir)).await?;
        if files.is_empty() {
            continue;
        }
        let mut known: HashSet<String> = HashSet::new();
        known.extend(store.referenced_hashes(first).await?.iter().map(hex));
        known.extend(store.released_hashes(first).await?.iter().map(hex));
        unknown += files.iter().filter(|name| !known.contains(*name)).count() as u64;
    }
    Ok(unknown)
}
