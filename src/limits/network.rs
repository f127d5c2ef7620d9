//! Network: a range of addresses, as an operator writes it down.
//!
//! Around `ipnet`, which masks and compares. Ours are the texts for an operator who mistyped, and that
//! an IPv4 address mapped into IPv6 counts as the IPv4 address it is.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A range of addresses such as `10.0.0.0/8`, `2001:db8::/32` or the single `::1`.
///
/// A range of one family contains nothing of the other, except that IPv4 addresses mapped into
/// IPv6 count as the IPv4 addresses they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network(IpNet);

/// Why a text is no [`Network`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseNetworkError {
    /// The part before the slash is no IP address.
    #[error("`{0}` is not an IP address or a range like `10.0.0.0/8`")]
    Address(String),
    /// The part after the slash is no number of bits.
    #[error("`{text}`: the part after the slash must be a number from 0 to {longest}")]
    Prefix {
        /// What was written.
        text: String,
        /// The number of bits an address of this family has.
        longest: u8,
    },
    /// The address lies inside the range instead of at its start, which is often a typing error.
    #[error("`{text}` is not the start of its range, write `{network}`")]
    HostBits {
        /// What was written.
        text: String,
        /// The range the address lies in.
        network: Network,
    },
}

impl Network {
    /// Whether an address belongs to this range.
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.0.contains(&ip.to_canonical())
    }

    /// The range of which `net` is a part or all; mapped IPv4 addresses are unmapped.
    fn around(net: IpNet) -> Self {
        let net = net.trunc();
        let canonical = net.addr().to_canonical();
        // The bits in front of a mapped IPv4 address are not part of it.
        let unmapped = net
            .prefix_len()
            .checked_sub(net.max_prefix_len() - IpNet::from(canonical).max_prefix_len())
            .and_then(|prefix| IpNet::new(canonical, prefix).ok());
        Self(unmapped.unwrap_or(net))
    }
}

impl FromStr for Network {
    type Err = ParseNetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let ip: IpAddr = address
            .parse()
            .map_err(|_| ParseNetworkError::Address(text.to_owned()))?;
        let longest = IpNet::from(ip).max_prefix_len();
        let prefix = prefix.map_or(Some(longest), |prefix| prefix.parse().ok());
        let net = prefix.and_then(|prefix| IpNet::new(ip, prefix).ok());
        let net = net.ok_or_else(|| ParseNetworkError::Prefix {
            text: text.to_owned(),
            longest,
        })?;
        let network = Self::around(net);
        if net.network() != ip {
            let text = text.to_owned();
            return Err(ParseNetworkError::HostBits { text, network });
        }
        Ok(network)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.prefix_len() == self.0.max_prefix_len() {
            write!(formatter, "{}", self.0.addr())
        } else {
            write!(formatter, "{}", self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The proxies whose `X-Forwarded-For` entries are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct TrustedProxies(pub Vec<Network>);

impl TrustedProxies {
    /// Whether an address is one of these proxies.
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(ip))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    #[test]
    fn a_range_contains_its_first_and_last_address_and_no_neighbour() {
        let range = network("192.168.4.0/22");
        for inside in ["192.168.4.0", "192.168.7.255", "::ffff:192.168.5.1"] {
            assert!(range.contains(ip(inside)), "{inside}");
        }
        for outside in ["192.168.3.255", "192.168.8.0", "::1"] {
            assert!(!range.contains(ip(outside)), "{outside}");
        }
        assert!(network("2001:db8::/32").contains(ip("2001:db8:ffff::1")));
        assert!(!network("2001:db8::/32").contains(ip("2001:db9::")));
        assert!(network("0.0.0.0/0").contains(ip("255.255.255.255")));
        assert!(!network("::/0").contains(ip("1.2.3.4")));
    }

    #[test]
    fn a_range_prints_as_it_is_written() {
        for text in [
            "10.0.0.0/8",
            "0.0.0.0/0",
            "::/0",
            "::1",
            "1.2.3.4",
            "fd00::/8",
        ] {
            assert_eq!(network(text).to_string(), text);
        }
        assert_eq!(network("127.0.0.1/32").to_string(), "127.0.0.1");
        assert_eq!(network("::ffff:10.0.0.0/104"), network("10.0.0.0/8"));
    }

    #[test]
    fn a_mistyped_range_is_refused_with_the_reason() {
        let error = |text: &str| text.parse::<Network>().unwrap_err().to_string();
        assert!(error("10.0.0/8").contains("not an IP address"));
        assert!(error("10.0.0.0/33").contains("from 0 to 32"));
        assert!(error("::/129").contains("from 0 to 128"));
        assert!(error("10.0.0.0/").contains("from 0 to 32"));
        assert!(error("10.1.0.0/8").ends_with("write `10.0.0.0/8`"));
    }
}
