//! Login networks: limits login attempts of IPv6 networks that one customer is given as a whole.
//!
//! A household or an office gets a /56 or a /48, thousands of the /64 that count as one address. Attempts
//! are counted by these too, with more of them allowed. Touches `clock` only.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;

use ipnet::Ipv6Net;

use super::MINUTE;
use super::address_layer::AddressLimiter;
use super::client_address::AddressBucket;
use super::rate_limit_headers::{Quota, Refusal};
use super::sliding_window::SlidingWindow;
use crate::clock::Clock;

/// Prefix lengths, and how many times the limit of one address each may use up.
const NETWORKS: [(u8, u32); 2] = [(56, 4), (48, 16)];

#[derive(Debug)]
pub(crate) struct LoginNetworks {
    windows: [SlidingWindow<Ipv6Addr>; 2],
}

impl LoginNetworks {
    pub(crate) fn new(per_address: NonZeroU32, max_keys: NonZeroU32, clock: &Clock) -> Self {
        Self {
            windows: NETWORKS.map(|(_, factor)| {
                let limit = limit(per_address, factor);
                SlidingWindow::new(limit, MINUTE, max_keys, clock.clone())
            }),
        }
    }

    pub(crate) fn set_limit(&self, per_address: NonZeroU32) {
        for (window, (_, factor)) in self.windows.iter().zip(NETWORKS) {
            window.set_limit(limit(per_address, factor));
        }
    }

    pub(crate) fn sweep(&self) {
        for window in &self.windows {
            window.sweep();
        }
    }
}

fn limit(per_address: NonZeroU32, factor: u32) -> NonZeroU32 {
    let factor = NonZeroU32::new(factor).unwrap_or(NonZeroU32::MIN);
    per_address.saturating_mul(factor)
}

impl AddressLimiter for LoginNetworks {
    fn admit(&self, bucket: AddressBucket) -> Result<Quota, Refusal> {
        let IpAddr::V6(address) = bucket.ip() else {
            // Not limited here: one IPv4 address is limited as such.
            return Ok(Quota {
                limit: u32::MAX,
                remaining: u32::MAX,
                reset_after: MINUTE,
                period: MINUTE,
            });
        };
        let networks = NETWORKS.map(|(prefix, _)| network(address, prefix));
        for (window, network) in self.windows.iter().zip(&networks) {
            window.check(network)?;
        }
        self.windows[1].admit(&networks[1])?;
        self.windows[0].admit(&networks[0])
    }
}

fn network(address: Ipv6Addr, prefix: u8) -> Ipv6Addr {
    Ipv6Net::new_assert(address, prefix).network()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn attempt(networks: &LoginNetworks, address: &str) -> bool {
        let bucket = AddressBucket::of(address.parse().unwrap());
        networks.admit(bucket).is_ok()
    }

    #[test]
    fn a_customers_networks_are_limited_as_a_whole() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let [per_address, keys] = [5, 100].map(|number| NonZeroU32::new(number).unwrap());
        let networks = LoginNetworks::new(per_address, keys, &clock);
        // Every attempt comes from another /64 of one /56.
        let from_one = (0..100).filter(|n| attempt(&networks, &format!("2001:db8:0:{n:x}::1")));
        assert_eq!(from_one.count(), 20);
        // Every attempt comes from another /56 of the same /48.
        let rest = (1..200).filter(|n| attempt(&networks, &format!("2001:db8:0:{n:x}00::1")));
        assert_eq!(rest.count(), 80 - 20);
        assert!(attempt(&networks, "2001:db8:1::1"));
        assert!((0..300).all(|_| attempt(&networks, "192.0.2.1")));
    }
}
