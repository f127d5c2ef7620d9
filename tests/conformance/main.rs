//! Conformance: RFC 6455 by the cases of the Autobahn suite, under its numbers, on a gateway with an echo
//! route (`--features conformance`).
//!
//! The chapters on compression are left out: it is never negotiated. Beyond 4 MiB, where the suite expects
//! an echo, we expect the documented close. `scripts/autobahn` also runs the suite's own client, where
//! Python 2.7 is installed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod autobahn_cases;
mod autobahn_client;
mod case;
mod gateway;
#[path = "../support/raw_websocket.rs"]
mod raw_websocket;
