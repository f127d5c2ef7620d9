//! Dead peers: ends HTTP connections whose peer does not acknowledge anything any more.
//!
//! A stream has no pong, and a timeout in the kernel cannot tell a dead peer from one that reads slowly. But
//! the kernel knows whether its packets are acknowledged: it counts what it sends again, and probes of a
//! closed window that stay without an answer. Both are in `/proc/net/tcp`; one look at it serves all
//! connections. A slow reader acknowledges, and both numbers stay 0.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

const LOOK_INTERVAL: Duration = Duration::from_secs(4);
/// So long without an acknowledgement is dead. With the interval of looks and that of a stream's pings,
/// this stays below 35 seconds.
const SILENCE: Duration = Duration::from_secs(18);
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Open HTTP connections of one listener, by peer. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenPeers(Arc<Mutex<HashMap<SocketAddr, CancellationToken>>>);

/// Forgets the connection when dropped.
pub(super) struct PeerGuard {
    peers: OpenPeers,
    peer: SocketAddr,
}

impl OpenPeers {
    /// `abort` ends the connection.
    pub(super) fn add(&self, peer: SocketAddr, abort: CancellationToken) -> PeerGuard {
        self.lock().insert(peer, abort);
        PeerGuard {
            peers: self.clone(),
            peer,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SocketAddr, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for dead peers until `stop`.
    pub(super) async fn watch(self, port: u16, stop: CancellationToken) {
        let mut silent = SilentPeers::default();
        let mut ticks = tokio::time::interval(LOOK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            if self.lock().is_empty() {
                continue;
            }
            // A large table takes milliseconds.
            let looked = tokio::task::spawn_blocking(move || unacknowledged(port)).await;
            for peer in silent.update(&looked.unwrap_or_default(), Instant::now()) {
                if let Some(abort) = self.lock().get(&peer) {
                    tracing::debug!(%peer, "a peer acknowledges nothing any more; its connection is closed");
                    abort.cancel();
                }
            }
        }
    }
}

impl Drop for PeerGuard {
    fn drop(&mut self) {
        self.peers.lock().remove(&self.peer);
    }
}

/// Since when peers are silent.
#[derive(Default)]
struct SilentPeers(HashMap<SocketAddr, Instant>);

impl SilentPeers {
    /// Takes the peers that are silent now; returns those that have been for too long.
    fn update(&mut self, now_silent: &[SocketAddr], now: Instant) -> Vec<SocketAddr> {
        let before = std::mem::take(&mut self.0);
        let since = |peer: &SocketAddr| before.get(peer).copied().unwrap_or(now);
        self.0 = now_silent.iter().map(|peer| (*peer, since(peer))).collect();
        let dead = self.0.iter().filter(|(_, since)| now - **since >= SILENCE);
        dead.map(|(peer, _)| *peer).collect()
    }
}

/// Peers of established connections to this port that have not acknowledged what was sent again.
fn unacknowledged(port: u16) -> Vec<SocketAddr> {
    let tables = TABLES
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok());
    let mut peers = Vec::new();
    for table in tables {
        peers.extend(
            table
                .lines()
                .skip(1)
                .filter_map(|line| silent_peer(line, port)),
        );
    }
    peers
}

/// The peer of a line of the table, if it is a connection to this port with unanswered packets. The
/// columns: number, local, remote, state, queues, timer, retransmits, uid, probes, …
fn silent_peer(line: &str, port: u16) -> Option<SocketAddr> {
    let mut columns = line.split_ascii_whitespace();
    let (local, remote) = (columns.nth(1)?, columns.next()?);
    let state = columns.next()?;
    let retransmits: u32 = u32::from_str_radix(columns.nth(2)?, 16).ok()?;
    let probes: u32 = columns.nth(1)?.parse().ok()?;
    let is_ours = state == "01" && address(local)?.port() == port;
    (is_ours && (retransmits > 0 || probes > 0)).then(|| address(remote))?
}

/// `0100007F:1F90`: the address as words in the machine's order, the port in hexadecimal.
fn address(text: &str) -> Option<SocketAddr> {
    let (words, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut octets = Vec::with_capacity(16);
    for start in (0..words.len()).step_by(8) {
        let word = u32::from_str_radix(words.get(start..start + 8)?, 16).ok()?;
        octets.extend(word.to_ne_bytes());
    }
    let ip = match octets.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(octets).ok()?),
        16 => IpAddr::from(<[u8; 16]>::try_from(octets).ok()?),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    /// A line as the kernel writes it.
    fn line(retransmits: u32, probes: u32) -> String {
        let word = u32::from_ne_bytes(Ipv4Addr::LOCALHOST.octets());
        format!(
            "   1: {word:08X}:1E25 {word:08X}:C350 01 00000018:00000000 01:00000D6F {retransmits:08X}     0 \
             {probes:8} 31337 2 0000000000000000 3200 4 0 10 -1"
        )
    }

    #[test]
    fn a_connection_with_unanswered_packets_is_found() {
        let peer = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 50_000);
        assert_eq!(silent_peer(&line(3, 0), 7717), Some(peer));
        assert_eq!(silent_peer(&line(0, 2), 7717), Some(peer));
        assert_eq!(silent_peer(&line(0, 0), 7717), None, "all is acknowledged");
        assert_eq!(silent_peer(&line(3, 0), 80), None, "another port");
        assert_eq!(silent_peer("garbage", 7717), None);
    }

    #[test]
    fn addresses_of_both_kinds_are_read() {
        let words: Vec<String> = Ipv6Addr::LOCALHOST
            .octets()
            .chunks(4)
            .map(|word| format!("{:08X}", u32::from_ne_bytes(word.try_into().unwrap())))
            .collect();
        let expected = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 443);
        assert_eq!(address(&format!("{}:01BB", words.concat())), Some(expected));
        assert_eq!(address("0100:01BB"), None);
    }

    #[test]
    fn only_a_peer_that_stays_silent_is_dead() {
        let [dead, slow] = ["192.0.2.1:1", "192.0.2.2:2"].map(|text| text.parse().unwrap());
        let (mut silent, start) = (SilentPeers::default(), Instant::now());
        assert!(silent.update(&[dead, slow], start).is_empty());
        assert!(silent.update(&[dead], start + SILENCE / 2).is_empty());
        let later = start + SILENCE;
        assert_eq!(silent.update(&[dead, slow], later), [dead]);
    }
}
