//! How many connections are open, in all and per address.
//!
//! Asked at accept, before a byte is read. The total keeps the process within its descriptors and
//! applies to everyone. The cap per address keeps one client from taking all of them; trusted
//! proxies and exempt addresses are spared, since many clients stand behind the first. Addresses
//! are remembered only while they have a connection, so the total bounds the memory too.
//! Touches nothing else.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::registry::Registry;

use super::address::AddressBucket;
use super::metrics::Places;
use super::network::{Network, TrustedProxies};

/// The caps on open connections; clones share their counts.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionCaps {
    total: NonZeroU32,
    per_address: NonZeroU32,
    exempt: Arc<[Network]>,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    total: u32,
    by_address: HashMap<AddressBucket, u32>,
}

/// Which cap a connection would have exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CapReached {
    /// The gateway has as many connections as it may have.
    #[error("the gateway has as many open connections as it may have")]
    Total,
    /// This address has as many connections as one address may have.
    #[error("this address has as many open connections as one address may have")]
    Address,
}

/// The right to one open connection, given back on drop.
#[derive(Debug)]
#[must_use = "dropping the permit gives the connection's place away"]
pub(crate) struct ConnectionPermit {
    open: Arc<Mutex<Open>>,
    counted_under: Option<AddressBucket>,
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
            total,
            per_address,
            exempt: exempt.iter().chain(&proxies.0).copied().collect(),
            open: Arc::default(),
        }
    }

    /// A place for one more connection from this peer.
    pub(crate) fn try_enter(&self, ip: IpAddr) -> Result<ConnectionPermit, CapReached> {
        let exempt = self.exempt.iter().any(|network| network.contains(ip));
        let counted_under = (!exempt).then(|| AddressBucket::of(ip));
        let mut open = lock(&self.open);
        if open.total >= self.total.get() {
            return Err(CapReached::Total);
        }
        if let Some(bucket) = counted_under {
            open.enter_address(bucket, self.per_address)?;
        }
        open.total += 1;
        Ok(ConnectionPermit {
            open: Arc::clone(&self.open),
            counted_under,
        })
    }

    /// Puts its counts under their names.
    pub(crate) fn register_metrics(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(Places(self.clone())));
    }

    /// How many are taken, and how many there are.
    pub(super) fn places(&self) -> (u32, u32) {
        (lock(&self.open).total, self.total.get())
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        lock(&self.open).total as usize
    }
}

impl Open {
    fn enter_address(&mut self, bucket: AddressBucket, cap: NonZeroU32) -> Result<(), CapReached> {
        match self.by_address.entry(bucket) {
            Entry::Occupied(entry) if *entry.get() >= cap.get() => Err(CapReached::Address),
            Entry::Occupied(mut entry) => {
                *entry.get_mut() += 1;
                Ok(())
            }
            Entry::Vacant(entry) => {
                entry.insert(1);
                Ok(())
            }
        }
    }

    fn leave_address(&mut self, bucket: AddressBucket) {
        if let Entry::Occupied(mut entry) = self.by_address.entry(bucket) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        open.total -= 1;
        if let Some(bucket) = self.counted_under {
            open.leave_address(bucket);
        }
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(total: u32, per_address: u32) -> ConnectionCaps {
        let proxies = TrustedProxies(vec!["10.0.0.0/8".parse().unwrap()]);
        let [total, per_address] = [total, per_address].map(|cap| NonZeroU32::new(cap).unwrap());
        ConnectionCaps::new(total, per_address, &["::1".parse().unwrap()], &proxies)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_cannot_take_every_place() {
        let caps = caps(10, 2);
        let first = caps.try_enter(ip("2001:db8::1")).unwrap();
        let _second = caps.try_enter(ip("2001:db8::2")).unwrap();
        let third = caps.try_enter(ip("2001:db8::3"));
        assert_eq!(third.unwrap_err(), CapReached::Address);
        let _neighbour = caps.try_enter(ip("2001:db8:0:1::1")).unwrap();
        drop(first);
        let _again = caps.try_enter(ip("2001:db8::3")).unwrap();
        assert_eq!(caps.len(), 3);
    }

    #[test]
    fn the_total_applies_to_everyone() {
        let caps = caps(2, 1);
        let _loopback = caps.try_enter(ip("::1")).unwrap();
        let _proxy = caps.try_enter(ip("10.0.0.1")).unwrap();
        for peer in ["::1", "10.0.0.1", "192.0.2.1"] {
            let refused = caps.try_enter(ip(peer));
            assert_eq!(refused.unwrap_err(), CapReached::Total, "{peer}");
        }
    }

    #[test]
    fn exempt_addresses_and_trusted_proxies_have_no_cap_of_their_own() {
        let caps = caps(10, 1);
        let permits: Vec<_> = ["::1", "::1", "10.0.0.1", "10.0.0.1", "::ffff:10.0.0.1"]
            .map(|peer| caps.try_enter(ip(peer)).unwrap())
            .into();
        assert_eq!(caps.len(), permits.len());
    }

    #[test]
    fn nothing_is_remembered_of_closed_connections() {
        let caps = caps(1000, 1000);
        let permits: Vec<_> = (0..200)
            .map(|number| caps.try_enter(IpAddr::from([192, 0, 2, number])).unwrap())
            .collect();
        assert_eq!(caps.len(), 200);
        drop(permits);
        assert_eq!(caps.len(), 0);
        assert!(lock(&caps.open).by_address.is_empty());
    }
}
