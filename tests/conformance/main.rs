//! RFC 6455, case by case: what the Autobahn suite asks of a server, under its numbers, on a gateway
//! with an echo route (`--features conformance`).
//!
//! Left out are the chapters on compression, which is never negotiated. Beyond 4 MiB, where the suite
//! wants an echo, ours is the close that the gateway promises. `scripts/autobahn` runs the suite's own
//! client as well, where there is a Python that is old enough for it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod case;
mod chapters;
mod fuzzing;
mod gateway;
#[path = "../support/raw.rs"]
mod raw;
