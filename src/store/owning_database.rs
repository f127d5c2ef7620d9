//! Which database the uploaded files of a data directory belong to.
//!
//! A file beside them, `attachments.home`, says by its identity which one: only that one may have files
//! removed that it does not know. A database that is new, restored or simply the wrong one is another,
//! and nothing is removed until somebody says that they belong together. Of several gateways on one
//! Postgres each has a directory of its own that names the same database.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::Store;
use super::contents::{DIRECTORY, SweepError, aside, hex, names};
use crate::domain::id::StoreId;

const FILE: &str = "attachments.home";

/// How a directory and a database stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belonging {
    /// The directory belongs to the database.
    AtHome,
    /// It does not, or nobody knows.
    Strange {
        /// So many files the database does not know.
        unknown: u64,
    },
}

impl Belonging {
    /// Looks, and changes nothing.
    pub async fn of(data: &Path, store: &dyn Store) -> Result<Self, SweepError> {
        if is_at_home(data, store).await? {
            return Ok(Self::AtHome);
        }
        let unknown = unknown(data, store).await?;
        Ok(Self::Strange { unknown })
    }

    /// Before anybody uploads something: a directory in which the database knows everything belongs to
    /// it. One with other files belongs to nobody from now on, because what arrives now is unknown to
    /// the database that it belonged to.
    pub async fn settle(data: &Path, store: &dyn Store) -> Result<Self, SweepError> {
        let found = Self::of(data, store).await?;
        match found {
            Self::AtHome => {}
            Self::Strange { unknown: 0 } => {
                adopt(data, store).await?;
                return Ok(Self::AtHome);
            }
            Self::Strange { .. } => {
                let file = data.join(FILE);
                aside(move || match fs::remove_file(file) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                    _ => Ok(()),
                })
                .await?;
            }
        }
        Ok(found)
    }
}

/// From now on the directory belongs to this database, because somebody says so. False if the database
/// does not know yet what it is.
pub async fn adopt(data: &Path, store: &dyn Store) -> Result<bool, SweepError> {
    let Some(identity) = store.identity().await? else {
        return Ok(false);
    };
    let data = data.to_owned();
    aside(move || write(&data, identity)).await?;
    Ok(true)
}

pub(super) async fn is_at_home(data: &Path, store: &dyn Store) -> Result<bool, SweepError> {
    let file = data.join(FILE);
    let named = aside(move || named(&file)).await?;
    Ok(named.is_some() && named == store.identity().await?)
}

/// The one that a directory belongs to.
fn named(file: &Path) -> io::Result<Option<StoreId>> {
    match fs::read_to_string(file) {
        // What is not an identity names nobody.
        Ok(text) => Ok(text.trim_end().parse().ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// All of it or nothing, also across a power cut.
fn write(data: &Path, identity: StoreId) -> io::Result<()> {
    let ready: PathBuf = data.join(format!("{FILE}.new"));
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&ready)?;
    writeln!(file, "{identity}")?;
    file.sync_all()?;
    fs::rename(ready, data.join(FILE))?;
    File::open(data)?.sync_all()
}

/// How many files there are that the database neither needs nor has given up.
async fn unknown(data: &Path, store: &dyn Store) -> Result<u64, SweepError> {
    let mut unknown = 0;
    for first in 0..=u8::MAX {
        let dir = data.join(DIRECTORY).join(format!("{first:02x}"));
        let files = aside(move || names(&dir)).await?;
        if files.is_empty() {
            continue;
        }
        let mut known: HashSet<String> = HashSet::new();
        known.extend(store.contents_with(first).await?.iter().map(hex));
        known.extend(store.released_with(first).await?.iter().map(hex));
        unknown += files.iter().filter(|name| !known.contains(*name)).count() as u64;
    }
    Ok(unknown)
}
