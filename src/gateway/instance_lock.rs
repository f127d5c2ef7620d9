//! Instance lock: one gateway per data directory, and how commands find the running one.
//!
//! A file lock, which the operating system releases when the process ends in any way. The file names
//! its holder; that is valid only while it is locked.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

const FILE: &str = "gateway.lock";
const CLAIM_ATTEMPTS: usize = 5;
const CLAIM_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Why the data directory could not be claimed.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// Another gateway holds the lock.
    #[error("another gateway{} runs on the data directory {dir}: stop it, or use another --data-dir", .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    Taken {
        /// The data directory.
        dir: String,
        /// The other gateway's process.
        pid: Option<u32>,
    },
    /// The lock file cannot be used.
    #[error("cannot lock {dir}/{FILE}: {source}")]
    Lock {
        /// The data directory.
        dir: String,
        /// The system's error.
        source: std::io::Error,
    },
}

/// The gateway that runs on a data directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Running {
    /// Its process id.
    pub pid: u32,
    /// Its public base URL.
    pub base_url: String,
    /// Its bound address.
    pub listening: SocketAddr,
}

/// The lock on a data directory, held until dropped.
#[derive(Debug)]
pub struct InstanceLock {
    file: File,
}

impl InstanceLock {
    /// Locks the directory for this process.
    pub async fn claim(dir: &Path) -> Result<Self, InstanceError> {
        // A command that looks for a running gateway holds the lock for a moment.
        for _ in 0..CLAIM_ATTEMPTS {
            if let Ok(lock) = Self::try_claim(dir) {
                return Ok(lock);
            }
            tokio::time::sleep(CLAIM_RETRY_DELAY).await;
        }
        Self::try_claim(dir)
    }

    fn try_claim(dir: &Path) -> Result<Self, InstanceError> {
        let failed = |source| InstanceError::Lock {
            dir: dir.display().to_string(),
            source,
        };
        let file = open(dir).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(InstanceError::Taken {
                dir: dir.display().to_string(),
                pid: read(file).map(|running| running.pid),
            }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// Writes the gateway's addresses into the lock file, for commands. A failure is only logged.
    pub fn announce(&self, base_url: &str, listening: SocketAddr) {
        let running = Running {
            pid: std::process::id(),
            base_url: base_url.to_owned(),
            listening,
        };
        let mut file = &self.file;
        let written = serde_json::to_vec(&running)
            .map_err(std::io::Error::from)
            .and_then(|text| {
                file.set_len(0)?;
                file.rewind()?;
                file.write_all(&text)
            });
        if let Err(error) = written {
            tracing::warn!(%error, "cannot write the lock file: commands will not find this gateway by themselves");
        }
    }

    /// The gateway that runs on that directory now, if any.
    pub fn running(dir: &Path) -> Option<Running> {
        let file = OpenOptions::new().read(true).open(dir.join(FILE)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => read(file),
            _ => None,
        }
    }
}

fn open(dir: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(dir.join(FILE))
}

fn read(mut file: File) -> Option<Running> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}
