//! Passwords: acceptance rules, and hashing with bounded load.
//!
//! Argon2id needs 19 MiB and some milliseconds per hash. It runs on blocking threads, at most one
//! per core; a bounded number of callers wait, the rest are refused as busy.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;

use crate::domain::account::Username;
use crate::domain::id::UserId;

/// Longest accepted password, in bytes.
pub const MAX_PASSWORD_BYTES: usize = 1024;

const MIN_PASSWORD_CHARS: usize = 8;
/// Callers that may wait for a core.
const MAX_WAITING: usize = 32;
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

const COMMON_PASSWORDS: [&str; 14] = [
    "password",
    "passw0rd",
    "12345678",
    "123456789",
    "1234567890",
    "changeme",
    "change-me",
    "change_me",
    "adminadmin",
    "letmein1",
    "qwertyui",
    "qwertyuiop",
    "switchboard",
    "iloveyou",
];

/// Compared for unknown names, so that they take as long as known ones. Must have the same
/// parameters as real hashes; a test compares them.
const DUMMY_HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$c3dpdGNoYm9hcmQtZHVtbXk$UUKAKIJVXvX3nqrU4wxBMPxQn2uFVXm2OxWzX2gwRm4";

/// Why a password is not acceptable.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadPassword {
    /// Too short.
    #[error("a password needs at least {MIN_PASSWORD_CHARS} characters")]
    TooShort,
    /// Too long.
    #[error("a password has at most {MAX_PASSWORD_BYTES} bytes")]
    TooLong,
    /// Too common.
    #[error("this password is among the first that anyone would try; choose another")]
    Common,
}

/// Checks a new password of that user.
pub fn check_password(password: &str, username: &Username) -> Result<(), BadPassword> {
    let folded = password.to_lowercase();
    if password.len() > MAX_PASSWORD_BYTES {
        Err(BadPassword::TooLong)
    } else if password.chars().count() < MIN_PASSWORD_CHARS {
        Err(BadPassword::TooShort)
    } else if folded == username.as_str() || COMMON_PASSWORDS.contains(&folded.as_str()) {
        Err(BadPassword::Common)
    } else {
        Ok(())
    }
}

/// Too many callers wait already.
#[derive(Debug, thiserror::Error)]
#[error("too many passwords are being checked at the moment")]
pub struct HasherBusy;

#[derive(Clone)]
pub(super) struct Hasher {
    /// One permit per caller, running or waiting. Full: the caller is refused.
    admission: Arc<Semaphore>,
    /// One per core.
    cores: Arc<Semaphore>,
}

impl Hasher {
    pub(super) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            admission: Arc::new(Semaphore::new(cores + MAX_WAITING)),
            cores: Arc::new(Semaphore::new(cores)),
        }
    }

    pub(super) async fn hash(&self, password: String) -> Result<String, HasherBusy> {
        self.run(move || {
            argon2()
                .hash_password(password.as_bytes())
                .expect("a bounded password and fixed parameters can be hashed")
                .to_string()
        })
        .await
    }

    /// Compares a password with a stored hash; takes as long, and fails, if there is none.
    pub(super) async fn verify(
        &self,
        password: String,
        stored: Option<(UserId, String)>,
    ) -> Result<bool, HasherBusy> {
        self.run(move || {
            let (user, hash) = stored.unzip();
            let matches = compare(&password, hash.as_deref().unwrap_or(DUMMY_HASH));
            match (user, matches) {
                (Some(user), Err(error)) => {
                    tracing::error!(user.id = %user, %error, "a stored password hash cannot be parsed");
                    false
                }
                (user, matches) => user.is_some() && matches.unwrap_or(false),
            }
        })
        .await
    }

    /// The blocking closure holds the permits: a caller that goes away frees them only when its
    /// hash is done.
    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, HasherBusy> {
        let place = Arc::clone(&self.admission)
            .try_acquire_owned()
            .map_err(|_| HasherBusy)?;
        let core = Arc::clone(&self.cores)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        let job = tokio::task::spawn_blocking(move || {
            let result = job();
            drop((core, place));
            result
        });
        Ok(job.await.expect("hashing does not panic"))
    }
}

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).expect("the parameters are in range");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

fn compare(password: &str, stored: &str) -> Result<bool, argon2::password_hash::phc::Error> {
    let hash = PasswordHash::new(stored)?;
    Ok(argon2().verify_password(password.as_bytes(), &hash).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mia() -> Username {
        "mia-mia-mia".parse().unwrap()
    }

    #[tokio::test]
    async fn a_password_is_recognised_and_another_is_not() {
        let hasher = Hasher::new();
        let hash = hasher.hash("correct horse".into()).await.unwrap();
        assert!(
            hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{hash}"
        );
        assert!(
            hasher
                .verify("correct horse".into(), Some((UserId::new(), hash.clone())))
                .await
                .unwrap()
        );
        assert!(
            !hasher
                .verify("wrong horse".into(), Some((UserId::new(), hash)))
                .await
                .unwrap()
        );
    }

    #[tokio::test]
    async fn the_dummy_hash_matches_no_password() {
        assert!(!Hasher::new().verify("anything".into(), None).await.unwrap());
        let parsed = PasswordHash::new(DUMMY_HASH).unwrap();
        assert_eq!(parsed.params.to_string(), "m=19456,t=2,p=1");
        assert_eq!(parsed.hash.unwrap().as_bytes().len(), 32);
    }

    #[tokio::test]
    async fn excess_callers_are_refused_as_busy() {
        let hasher = Hasher::new();
        let cores = hasher.cores.available_permits();
        let held = hasher
            .cores
            .clone()
            .acquire_many_owned(u32::try_from(cores).unwrap())
            .await;
        let mut waiting: tokio::task::JoinSet<_> = (0..cores + MAX_WAITING)
            .map(|_| {
                let hasher = hasher.clone();
                async move { hasher.run(|| ()).await }
            })
            .collect();
        while hasher.admission.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(hasher.run(|| ()).await.is_err());
        drop(held);
        while let Some(done) = waiting.join_next().await {
            done.unwrap().unwrap();
        }
        assert!(hasher.run(|| ()).await.is_ok());
    }

    #[test]
    fn weak_passwords_are_refused() {
        assert_eq!(
            check_password("seven77", &mia()),
            Err(BadPassword::TooShort)
        );
        assert_eq!(check_password("ChangeMe", &mia()), Err(BadPassword::Common));
        assert_eq!(
            check_password("MIA-mia-mia", &mia()),
            Err(BadPassword::Common)
        );
        assert_eq!(
            check_password(&"x".repeat(1025), &mia()),
            Err(BadPassword::TooLong)
        );
        assert_eq!(check_password("größerer Fuß", &mia()), Ok(()));
    }
}
