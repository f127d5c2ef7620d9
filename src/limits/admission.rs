//! A connection's place among those that are open, shared by whatever it becomes.

use prometheus_client::metrics::gauge::Gauge;

use super::connections::ConnectionPermit;

/// Holds the permit, and counts as open, until the last share is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    _permit: ConnectionPermit,
    open: Gauge,
}

impl Admission {
    pub(crate) fn new(permit: ConnectionPermit, open: Gauge) -> Self {
        open.inc();
        Self {
            _permit: permit,
            open,
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.open.dec();
    }
}
