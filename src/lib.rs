//! Switchboard puts a team's coding agents behind a login.
//!
//! The modules, from the entrances down. Imports point down this list.
//!
//! - [`cli`]: arguments and sub-commands
//! - [`gateway`]: composition root: builds the modules, binds the listeners, owns the order of shutdown
//! - [`config`]: puts together the section that each module owns
//! - [`shutdown`], [`telemetry`], [`clock`]: signals, logs, traces and metrics, time
//! - entrances: [`http`] (routes, layers, accept loop), `ws` (WebSocket upgrade and connection task),
//!   `web` (embedded pages)
//! - `member`: a connection's membership in its session, for WebSocket, SSE and POST alike
//! - `wire`: the JSON of the client contract
//! - [`auth`]: accounts, logins, tokens, keys, revocation
//! - [`session`]: registry of live sessions; per session a router, a journal and the folded state
//! - [`limits`] (rate limits, permits, budgets), [`runtime`] (agents, links, dialects), `bus` (notices)
//! - [`store`]: all SQL
//! - [`domain`]: ids, accounts, commands, events, error codes

pub mod auth;
mod bus;
pub mod cli;
pub mod clock;
pub mod config;
pub mod domain;
pub mod gateway;
pub mod http;
pub mod limits;
mod member;
pub mod runtime;
pub mod session;
pub mod shutdown;
pub mod store;
pub mod telemetry;
mod web;
mod wire;
mod ws;
