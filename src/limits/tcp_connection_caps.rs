//! TCP connection caps: bound the open connections, in all and per address.
//!
//! Checked at accept, before a byte is read. The total keeps the process within its descriptors and
//! applies to everyone. The cap per address keeps one client from taking all of them; trusted proxies
//! and exempt addresses are spared, since many clients stand behind the former. Touches nothing else.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::client_address::AddressBucket;
use super::metrics::ConnectionsCollector;
use super::network::{Network, TrustedProxies};
use super::permits::{CapReached, Permit, Permits};

/// The caps on open connections; clones share their counts.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionCaps {
    permits: Permits<AddressBucket>,
    exempt: Arc<[Network]>,
}

/// The right to one open connection, counted as open until dropped. Shared by the HTTP connection and
/// the socket that it may become.
#[derive(Debug)]
#[must_use = "dropping the permit releases it"]
pub(crate) struct ConnectionPermit {
    _permit: Permit<AddressBucket>,
    open: Gauge,
}

impl ConnectionCaps {
    /// Caps with no connection open; `exempt` and `proxies` are free of the one per address.
    pub(crate) fn new(
        total: NonZeroU32,
        per_address: NonZeroU32,
        exempt: &[Network],
        proxies: &TrustedProxies,
    ) -> Self {
        Self {
            permits: Permits::new(total.get() as usize, per_address.get() as usize),
            exempt: exempt.iter().chain(&proxies.0).copied().collect(),
        }
    }

    /// A permit for one more connection from this peer, counted in `open`.
    pub(crate) fn try_acquire(
        &self,
        ip: IpAddr,
        open: &Gauge,
    ) -> Result<ConnectionPermit, CapReached> {
        let exempt = self.exempt.iter().any(|network| network.contains(ip));
        let permit = self
            .permits
            .try_acquire((!exempt).then(|| AddressBucket::of(ip)))?;
        open.inc();
        Ok(ConnectionPermit {
            _permit: permit,
            open: open.clone(),
        })
    }

    pub(crate) fn register_metrics(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(ConnectionsCollector(self.clone())));
    }

    /// How many are open, and how many may be.
    pub(super) fn usage(&self) -> (usize, usize) {
        self.permits.usage()
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.open.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(total: u32, per_address: u32) -> ConnectionCaps {
        let proxies = TrustedProxies(vec!["10.0.0.0/8".parse().unwrap()]);
        let [total, per_address] = [total, per_address].map(|cap| NonZeroU32::new(cap).unwrap());
        ConnectionCaps::new(total, per_address, &["::1".parse().unwrap()], &proxies)
    }

    fn acquire(caps: &ConnectionCaps, ip: IpAddr) -> Result<ConnectionPermit, CapReached> {
        caps.try_acquire(ip, &Gauge::default())
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_cannot_take_every_permit() {
        let caps = caps(10, 2);
        let first = acquire(&caps, ip("2001:db8::1")).unwrap();
        let _second = acquire(&caps, ip("2001:db8::2")).unwrap();
        let third = acquire(&caps, ip("2001:db8::3"));
        assert_eq!(third.unwrap_err(), CapReached::Key(2));
        let _neighbour = acquire(&caps, ip("2001:db8:0:1::1")).unwrap();
        drop(first);
        let _again = acquire(&caps, ip("2001:db8::3")).unwrap();
        assert_eq!(caps.usage().0, 3);
    }

    #[test]
    fn the_total_applies_to_everyone() {
        let caps = caps(2, 1);
        let _loopback = acquire(&caps, ip("::1")).unwrap();
        let _proxy = acquire(&caps, ip("10.0.0.1")).unwrap();
        for peer in ["::1", "10.0.0.1", "192.0.2.1"] {
            let refused = acquire(&caps, ip(peer));
            assert_eq!(refused.unwrap_err(), CapReached::Total(2), "{peer}");
        }
    }

    #[test]
    fn exempt_addresses_and_trusted_proxies_have_no_cap_of_their_own() {
        let caps = caps(10, 1);
        let permits: Vec<_> = ["::1", "::1", "10.0.0.1", "10.0.0.1", "::ffff:10.0.0.1"]
            .map(|peer| acquire(&caps, ip(peer)).unwrap())
            .into();
        assert_eq!(caps.usage().0, permits.len());
    }

    #[test]
    fn nothing_is_remembered_of_closed_connections() {
        let caps = caps(1000, 1000);
        let permits: Vec<_> = (0..200)
            .map(|number| acquire(&caps, IpAddr::from([192, 0, 2, number])).unwrap())
            .collect();
        assert_eq!(caps.usage().0, 200);
        drop(permits);
        assert_eq!(caps.usage().0, 0);
        assert_eq!(caps.permits.keys(), 0);
    }

    #[test]
    fn a_connection_counts_as_open_until_its_permit_is_dropped() {
        let (caps, open) = (caps(1, 1), Gauge::default());
        let permit = caps.try_acquire(ip("192.0.2.1"), &open).unwrap();
        caps.try_acquire(ip("192.0.2.2"), &open).unwrap_err();
        assert_eq!(open.get(), 1);
        drop(permit);
        assert_eq!(open.get(), 0);
    }
}
