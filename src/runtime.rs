//! The runtimes: the catalog of agents, and the link to each running one.
//!
//! A session starts an agent from the [`Catalog`], keeps its [`Link`], and hears it through a channel
//! of its own. [`ToAgent`] and [`FromAgent`] are all that the two say to each other: no protocol of
//! any agent is visible above this room. `dialect` has the protocols, each pure and in one file;
//! `demo` is the agent that needs nothing installed. Touches `store` and `domain` only.

mod catalog;
mod demo;
mod dialect;
mod jsonrpc;
mod link;
mod pending;
mod talk;

pub use catalog::Config;
pub(crate) use catalog::{Catalog, StartAgentError};
pub(crate) use link::Link;
pub(crate) use talk::{Declined, FromAgent, ToAgent};
