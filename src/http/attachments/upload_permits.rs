//! Upload permits: cap the uploads under way, for each user and in all.

use crate::domain::id::UserId;
use crate::http::error::ApiError;
use crate::limits::{CapReached, Permit, Permits};

const MAX_PER_USER: usize = 2;
const MAX_TOTAL: usize = 32;

/// The permits; clones share them. When all are held, the caller is told to come back.
#[derive(Clone, Debug)]
pub(in crate::http) struct UploadPermits(Permits<UserId>);

impl Default for UploadPermits {
    fn default() -> Self {
        Self(Permits::new(MAX_TOTAL, MAX_PER_USER))
    }
}

impl UploadPermits {
    pub(in crate::http) fn acquire(&self, user: UserId) -> Result<Permit<UserId>, ApiError> {
        self.0.try_acquire(user).map_err(|reached| match reached {
            CapReached::Total(_) => {
                ApiError::busy("Too many files are being uploaded at the moment; try again.")
            }
            CapReached::Key(max) => ApiError::busy(format!(
                "You are uploading {max} files already; try again after one."
            )),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_cannot_take_every_upload_permit() {
        let (permits, mia) = (UploadPermits::default(), UserId::new());
        let (first, second) = (permits.acquire(mia).unwrap(), permits.acquire(mia).unwrap());
        assert!(permits.acquire(mia).is_err());
        drop(first);
        let third = permits.acquire(mia).unwrap();
        let others: Vec<_> = (0..MAX_TOTAL - 2)
            .map(|_| permits.acquire(UserId::new()).unwrap())
            .collect();
        assert!(permits.acquire(UserId::new()).is_err());
        drop((second, third, others));
        assert_eq!(permits.0.usage(), (0, MAX_TOTAL));
    }
}
