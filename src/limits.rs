//! Limits: how much an address, an account, a session and the whole gateway may ask for.
//!
//! A limit that users were promised a number for is exact over any window of time
//! ([`SlidingWindow`]). A limit that only protects the gateway is coarse and cheap (`RequestRate`).
//! `Permits` cap what is held at the same time, `ByteBudget` caps its size. All memory is bounded by
//! configuration and given back by `Limits::sweep`, which the owner calls from time to time.
//!
//! Deliberately absent: no task, no I/O, no wall time. Touches `clock` and `domain` only.

mod address_layer;
mod byte_budget;
mod client_address;
mod concurrent_logins;
mod expiring_lru;
mod json_depth;
mod limit_exceeded;
mod login_backoff;
mod login_networks;
mod message_rate;
mod metrics;
mod network;
mod permits;
mod rate_limit_headers;
mod refusal_cap;
mod report_and_overrides;
mod request_rate;
mod sliding_window;
mod tcp_connection_caps;

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;

pub(crate) use address_layer::{AddressLimitLayer, QuotaHeaders, RefusalResponse};
pub(crate) use byte_budget::{ByteBudget, KeyedByteBudgets, SharedByteBudget};
pub(crate) use client_address::{AddressBucket, ClientAddress};
pub(crate) use concurrent_logins::{AttemptPermit, ConcurrentLogins};
pub(crate) use json_depth::nests_deeper_than;
pub(crate) use limit_exceeded::{Budget, LimitExceeded};
pub(crate) use login_backoff::LoginBackoff;
pub(crate) use login_networks::LoginNetworks;
pub(crate) use message_rate::{BudgetKey, FrameLimit, SessionBudgets};
pub use network::{Network, ParseNetworkError, TrustedProxies};
pub(crate) use permits::{CapReached, Permit, Permits};
pub use rate_limit_headers::{Quota, Refusal};
pub(crate) use refusal_cap::RefusalCap;
pub(crate) use report_and_overrides::{AdjustableLimit, LimitStatus};
pub(crate) use request_rate::RequestRate;
pub use sliding_window::SlidingWindow;
pub(crate) use tcp_connection_caps::{ConnectionCaps, ConnectionPermit};

const MINUTE: Duration = Duration::from_mins(1);

/// The `[limits]` section as far as addresses and accounts are concerned.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Login attempts (and, apart, password changes) of one address in any 60 seconds; no address
    /// is exempt.
    pub logins_per_minute: NonZeroU32,
    /// Messages to one session in any 60 seconds, over all its sockets.
    pub messages_per_minute: NonZeroU32,
    /// Messages of one user in any 60 seconds, over all sessions.
    pub user_messages_per_minute: NonZeroU32,
    /// Sessions of one user that have not ended.
    pub user_sessions: NonZeroU32,
    /// The journals of all sessions of one user, in bytes.
    pub user_journal_bytes: NonZeroU64,
    /// Free bytes on the disk of the data directory below which nothing new is accepted.
    pub min_free_bytes: u64,
    /// Requests for the state of one session in any 60 seconds.
    pub state_requests_per_minute: NonZeroU32,
    /// Heartbeats of one socket in any 60 seconds.
    pub heartbeats_per_minute: NonZeroU32,
    /// The largest message, in bytes of its whole frame.
    pub message_bytes: NonZeroU32,
    /// The longest prompt, in characters.
    pub prompt_chars: NonZeroU32,
    /// The largest uploaded file, in bytes.
    pub attachment_bytes: NonZeroU64,
    /// All uploaded files of one session, in bytes.
    pub session_attachment_bytes: NonZeroU64,
    /// All files that one user has uploaded, in bytes.
    pub user_attachment_bytes: NonZeroU64,
    /// Requests of one address in a minute, in the long run.
    pub requests_per_minute: NonZeroU32,
    /// Requests that one address may send at once.
    pub request_burst: NonZeroU32,
    /// Addresses and accounts remembered at the same time, per limit.
    pub tracked_addresses: NonZeroU32,
    /// Clients without a cap on requests and on connections per address.
    pub exempt_addresses: Vec<Network>,
}

/// The limits by address and by account of one gateway; clones share their counts.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Login attempts, exact.
    pub(crate) logins: Arc<SlidingWindow<AddressBucket>>,
    /// Login attempts of larger IPv6 networks.
    pub(crate) login_networks: Arc<LoginNetworks>,
    /// Password confirmations of logged-in users, exact.
    passwords: Arc<SlidingWindow<AddressBucket>>,
    /// Password confirmations of larger IPv6 networks.
    password_networks: Arc<LoginNetworks>,
    /// All requests, coarse.
    pub(crate) requests: Arc<RequestRate<AddressBucket>>,
    pub(crate) accounts: Arc<LoginBackoff>,
    /// Messages to sessions, exact.
    pub(crate) sessions: Arc<SessionBudgets>,
    /// As configured, beside what was changed since.
    config: Arc<Config>,
    exempt: Arc<[Network]>,
}

impl Limits {
    pub(crate) fn new(config: &Config, clock: &Clock) -> Self {
        let tracked = config.tracked_addresses;
        let attempts = || {
            let window =
                SlidingWindow::new(config.logins_per_minute, MINUTE, tracked, clock.clone());
            Arc::new(window)
        };
        let networks = || {
            let networks = LoginNetworks::new(config.logins_per_minute, tracked, clock);
            Arc::new(networks)
        };
        Self {
            logins: attempts(),
            login_networks: networks(),
            passwords: attempts(),
            password_networks: networks(),
            requests: Arc::new(RequestRate::new(
                config.requests_per_minute,
                config.request_burst,
                tracked,
                clock.clone(),
            )),
            accounts: Arc::new(LoginBackoff::new(tracked, clock.clone())),
            sessions: Arc::new(SessionBudgets::new(
                config.messages_per_minute,
                config.state_requests_per_minute,
                config.user_messages_per_minute,
                tracked,
                clock,
            )),
            config: Arc::new(config.clone()),
            exempt: config.exempt_addresses.as_slice().into(),
        }
    }

    /// The layer for the login route: no address is exempt, and every response says what is left.
    pub(crate) fn login_layer(&self, refuse: RefusalResponse) -> AddressLimitLayer {
        let limiter = Arc::clone(&self.logins);
        AddressLimitLayer::new(Budget::Logins, limiter, QuotaHeaders::Always, refuse)
    }

    /// The same for larger IPv6 networks; goes inside of the layer for addresses.
    pub(crate) fn login_network_layer(&self, refuse: RefusalResponse) -> AddressLimitLayer {
        let limiter = Arc::clone(&self.login_networks);
        AddressLimitLayer::new(Budget::Logins, limiter, QuotaHeaders::OnRefusal, refuse)
    }

    /// The layer for the route that changes a password: with a stolen token, guessing must not be
    /// faster there than at the login.
    pub(crate) fn password_layer(&self, refuse: RefusalResponse) -> AddressLimitLayer {
        let (limiter, headers) = (Arc::clone(&self.passwords), QuotaHeaders::OnRefusal);
        AddressLimitLayer::new(Budget::PasswordChanges, limiter, headers, refuse)
    }

    /// The same for larger IPv6 networks; goes inside of the layer for addresses.
    pub(crate) fn password_network_layer(&self, refuse: RefusalResponse) -> AddressLimitLayer {
        let limiter = Arc::clone(&self.password_networks);
        let headers = QuotaHeaders::OnRefusal;
        AddressLimitLayer::new(Budget::PasswordChanges, limiter, headers, refuse)
    }

    /// The layer for all routes: spares the exempt addresses, sends headers only when it refuses.
    pub(crate) fn request_layer(&self, refuse: RefusalResponse) -> AddressLimitLayer {
        AddressLimitLayer::new(
            Budget::Requests,
            Arc::clone(&self.requests),
            QuotaHeaders::OnRefusal,
            refuse,
        )
        .exempting(Arc::clone(&self.exempt))
    }

    pub(crate) fn register_metrics(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(metrics::LimitsCollector(self.clone())));
    }

    /// Gives back the memory of addresses, accounts and sessions that went quiet.
    pub(crate) fn sweep(&self) {
        self.logins.sweep();
        self.login_networks.sweep();
        self.passwords.sweep();
        self.password_networks.sweep();
        self.requests.sweep();
        self.accounts.sweep();
        self.sessions.sweep();
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use axum::http::HeaderMap;
    use jiff::Timestamp;

    use super::*;

    const DEFAULTS: &str = r#"{
        "logins_per_minute": 5,
        "messages_per_minute": 100, "user_messages_per_minute": 100, "user_sessions": 1, "user_journal_bytes": 1, "min_free_bytes": 0,
        "state_requests_per_minute": 10,
        "heartbeats_per_minute": 60,
        "message_bytes": 1048576,
        "prompt_chars": 100000,
        "attachment_bytes": 10485760,
        "session_attachment_bytes": 104857600,
        "user_attachment_bytes": 1073741824,
        "requests_per_minute": 12000,
        "request_burst": 2000,
        "tracked_addresses": 100000,
        "exempt_addresses": ["127.0.0.0/8", "::1"]
    }"#;

    fn bucket(last: u8) -> AddressBucket {
        let peer = IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
        ClientAddress::resolve(peer, &HeaderMap::new(), &TrustedProxies::default()).bucket()
    }

    #[test]
    fn the_configuration_reads_back_what_it_prints() {
        let config: Config = serde_json::from_str(DEFAULTS).unwrap();
        let printed = serde_json::to_string(&config).unwrap();
        assert!(printed.contains(r#"["127.0.0.0/8","::1"]"#), "{printed}");
        assert_eq!(serde_json::from_str::<Config>(&printed).unwrap(), config);
    }

    #[test]
    fn a_misspelt_key_and_a_limit_of_zero_are_refused() {
        let misspelt = DEFAULTS.replace("request_burst", "requests_burst");
        assert!(serde_json::from_str::<Config>(&misspelt).is_err());
        let zero = DEFAULTS.replace("\"logins_per_minute\": 5", "\"logins_per_minute\": 0");
        assert!(serde_json::from_str::<Config>(&zero).is_err());
    }

    #[test]
    fn a_sweep_forgets_addresses_and_accounts_that_went_quiet() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let limits = Limits::new(&serde_json::from_str(DEFAULTS).unwrap(), &clock);
        for last in 0..10 {
            limits.logins.admit(&bucket(last)).unwrap();
            limits.requests.admit(&bucket(last)).unwrap();
            limits.accounts.failed(&format!("account {last}"));
        }
        let sizes = || {
            (
                limits.logins.len(),
                limits.requests.len(),
                limits.accounts.len(),
            )
        };
        limits.sweep();
        assert_eq!(sizes(), (10, 10, 10));
        clock.advance(15 * MINUTE);
        limits.sweep();
        assert_eq!(sizes(), (0, 0, 0));
    }
}
