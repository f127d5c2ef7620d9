//! Switchboard puts a team's coding agents behind a login.
//!
//! The rooms, from the door to the ground. Imports point down this list; data flows both ways.
//!
//! - [`cli`]: arguments and sub-commands
//! - [`gateway`]: builds the rooms, binds the doors, owns the order of shutdown
//! - [`config`]: puts together the section that each room owns
//! - [`shutdown`], [`telemetry`], [`clock`]: stopping, logs and metrics, time
//! - doors: [`http`] (routes, layers, accept loop), `ws` (sockets), `web` (pages)
//! - behind both: `desk` (one connection's part in its session), `wire` (the JSON)
//! - who, and how much: [`auth`] (users, logins, tokens), [`limits`] (windows, rates, addresses)
//! - the session: `session` (journal, router, state), `bus` (what crosses nodes)
//! - the runtimes: `runtime` (agents, links, dialects)
//! - ground: [`store`] (all SQL), [`domain`] (the words)

pub mod auth;
mod bus;
pub mod cli;
pub mod clock;
pub mod config;
mod desk;
pub mod domain;
pub mod gateway;
pub mod http;
pub mod limits;
pub mod runtime;
pub mod session;
pub mod shutdown;
pub mod store;
pub mod telemetry;
mod web;
mod wire;
mod ws;
