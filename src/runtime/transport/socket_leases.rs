//! Socket leases: sockets that serve one session at a time.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone, Debug, Default)]
pub(in crate::runtime) struct Leases(Arc<Mutex<HashSet<PathBuf>>>);

/// The exclusive use of a socket, until dropped.
#[derive(Debug)]
pub(in crate::runtime) struct Lease {
    path: PathBuf,
    leases: Leases,
}

impl Leases {
    /// Leases a socket; none if it is leased already.
    pub(in crate::runtime) fn take(&self, path: PathBuf) -> Option<Lease> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.insert(path.clone()).then(|| Lease {
            path,
            leases: self.clone(),
        })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut taken = self.leases.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.remove(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_leased_to_one_session_until_dropped() {
        let leases = Leases::default();
        let lease = leases.take("/run/a".into()).unwrap();
        assert!(leases.take("/run/a".into()).is_none());
        assert!(leases.take("/run/b".into()).is_some());
        drop(lease);
        assert!(leases.take("/run/a".into()).is_some());
    }
}
