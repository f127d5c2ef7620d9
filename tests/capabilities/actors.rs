//! The people of the tests: a gateway, those who run it, and those who log in.

mod authority;
mod browser;
mod collector;
pub(crate) mod contract;
mod gateway;
mod listener;
mod member;
mod proxy;
mod wire;

pub(crate) use authority::Authority;
pub(crate) use browser::{Answer, Browser};
pub(crate) use collector::{Collector, spans};
pub(crate) use gateway::{Gateway, PASSWORD, Settings, Storage, program};
pub(crate) use listener::{Heard, Listener};
pub(crate) use member::{Member, next_json};
pub(crate) use proxy::{Caddy, Nginx, Ports};
pub(crate) use wire::Wire;

/// How much of something a test does: more than the default where a variable asks for it.
pub(crate) fn wanted(variable: &str, default: usize) -> usize {
    match std::env::var(variable) {
        Ok(number) => number.parse().expect("a number"),
        Err(_) => default,
    }
}
