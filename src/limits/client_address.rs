//! Client address: the address that a request came from, behind trusted proxies.
//!
//! What a client writes into `X-Forwarded-For` is believed only as far as trusted proxies have vouched
//! for it: the list is read from the right, where the nearest proxy appends, and the first address that
//! is no trusted proxy is the client. Everything left of it is unproven. Limits count IPv6 by /64,
//! because that much is handed to a single household. Touches nothing else.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::Ipv6Net;

use super::network::TrustedProxies;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// No sane chain of proxies is longer, and a hostile header must not cost more than this.
const MAX_HOPS: usize = 32;

/// The address a request came from, proxies aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientAddress {
    /// Never an IPv4 address mapped into IPv6.
    pub(crate) ip: IpAddr,
}

impl ClientAddress {
    /// The peer, or the client that trusted proxies name.
    ///
    /// An entry that is no address ends the walk: the nearest hop known by then is the client.
    pub(crate) fn resolve(peer: IpAddr, headers: &HeaderMap, trusted: &TrustedProxies) -> Self {
        let mut ip = peer.to_canonical();
        let mut hops = entries_from_the_right(headers).take(MAX_HOPS);
        while trusted.contains(ip) {
            match hops.next().and_then(parse_entry) {
                Some(hop) => ip = hop,
                None => break,
            }
        }
        Self { ip }
    }

    pub(crate) fn bucket(&self) -> AddressBucket {
        AddressBucket::of(self.ip)
    }
}

/// Address bucket: the unit in which limits count, one IPv4 address or one IPv6 /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AddressBucket(IpAddr);

impl AddressBucket {
    /// The address, or the first one of the network.
    pub(super) fn ip(self) -> IpAddr {
        self.0
    }

    pub(crate) fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            v4 @ IpAddr::V4(_) => Self(v4),
            IpAddr::V6(v6) => Self(Ipv6Net::new_assert(v6, 64).network().into()),
        }
    }
}

fn entries_from_the_right(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(FORWARDED_FOR).iter().rev();
    lines.flat_map(|line| line.as_bytes().rsplit(|&byte| byte == b','))
}

fn parse_entry(entry: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(entry).ok()?.trim();
    let unbracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let ip = text
        .parse::<IpAddr>()
        .ok()
        .or_else(|| text.parse().ok().map(|socket: SocketAddr| socket.ip()))
        .or_else(|| unbracketed().map(IpAddr::V6))?;
    Some(ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const PROXY: &str = "10.0.0.1";

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn client(peer: &str, lines: &[&str]) -> IpAddr {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, HeaderValue::from_str(line).unwrap());
        }
        let trusted = TrustedProxies(vec!["10.0.0.0/8".parse().unwrap()]);
        ClientAddress::resolve(ip(peer), &headers, &trusted).ip
    }

    #[test]
    fn an_untrusted_peer_cannot_claim_another_address() {
        assert_eq!(client("203.0.113.9", &["198.51.100.1"]), ip("203.0.113.9"));
        assert_eq!(client("203.0.113.9", &["10.0.0.7"]), ip("203.0.113.9"));
    }

    #[test]
    fn behind_a_proxy_the_right_most_untrusted_entry_is_the_client() {
        let spoofed = "1.1.1.1, 203.0.113.9, 10.2.0.1";
        assert_eq!(client(PROXY, &[spoofed]), ip("203.0.113.9"));
        assert_eq!(
            client(PROXY, &["1.1.1.1", "203.0.113.9 ,10.2.0.1"]),
            ip("203.0.113.9")
        );
        assert_eq!(
            client(PROXY, &["203.0.113.9", "10.2.0.1"]),
            ip("203.0.113.9")
        );
    }

    #[test]
    fn without_a_usable_header_the_nearest_known_hop_is_the_client() {
        assert_eq!(client(PROXY, &[]), ip(PROXY));
        assert_eq!(client(PROXY, &[""]), ip(PROXY));
        assert_eq!(client(PROXY, &["10.3.0.1, 10.2.0.1"]), ip("10.3.0.1"));
        assert_eq!(
            client(PROXY, &["203.0.113.9, unknown, 10.2.0.1"]),
            ip("10.2.0.1")
        );
        assert_eq!(client(PROXY, &["203.0.113.9,"]), ip(PROXY));
        assert_eq!(client(PROXY, &["203.0.113.9, \u{fc}"]), ip(PROXY));
    }

    #[test]
    fn entries_may_carry_ports_brackets_and_spaces() {
        for (entry, expected) in [
            ("203.0.113.9:567", "203.0.113.9"),
            ("  203.0.113.9\t", "203.0.113.9"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("::ffff:203.0.113.9", "203.0.113.9"),
            ("[::ffff:203.0.113.9]:80", "203.0.113.9"),
        ] {
            assert_eq!(client(PROXY, &[entry]), ip(expected), "{entry}");
        }
    }

    #[test]
    fn a_mapped_peer_is_the_ipv4_peer_it_stands_for() {
        assert_eq!(
            client("::ffff:203.0.113.9", &["1.1.1.1"]),
            ip("203.0.113.9")
        );
        assert_eq!(client("::ffff:10.0.0.1", &["1.1.1.1"]), ip("1.1.1.1"));
    }

    #[test]
    fn no_more_than_the_last_entries_are_looked_at() {
        let near = |hops: usize| format!("203.0.113.9{}", ", 10.2.0.1".repeat(hops));
        assert_eq!(client(PROXY, &[&near(MAX_HOPS - 1)]), ip("203.0.113.9"));
        assert_eq!(client(PROXY, &[&near(MAX_HOPS)]), ip("10.2.0.1"));
    }

    #[test]
    fn one_household_is_one_bucket() {
        let bucket = |text: &str| AddressBucket::of(ip(text));
        assert_eq!(bucket("2001:db8:1:2::1"), bucket("2001:db8:1:2:ffff::9"));
        assert_ne!(bucket("2001:db8:1:2::1"), bucket("2001:db8:1:3::1"));
        assert_ne!(bucket("192.0.2.1"), bucket("192.0.2.2"));
        assert_eq!(bucket("192.0.2.1"), bucket("::ffff:192.0.2.1"));
    }
}
