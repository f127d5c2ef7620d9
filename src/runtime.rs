//! The runtimes: the catalog of agents, and the link to each running one.
//!
//! A session starts an agent from the [`Catalog`], keeps its [`Link`], and hears it through a channel
//! of its own. [`ToAgent`] and [`FromAgent`] are all that the two say to each other: no protocol of
//! any agent is visible above this room. `dialect` has the protocols, each pure and in one file;
//! `demo` is the agent that needs nothing installed. Touches `store`, `domain` and
//! `clock` only.

mod briefing;
mod catalog;
mod clip;
mod config;
mod demo;
mod dialect;
mod environment;
mod interpreter;
mod jsonrpc;
mod last_words;
mod launcher;
mod leftovers;
mod lines;
mod link;
mod memory;
mod metrics;
mod pace;
mod pending;
mod process;
mod record;
mod room;
mod seats;
mod shift;
mod talk;
mod transport;
mod trial;
mod trouble;
mod workshop;
mod workspace;

pub(crate) use catalog::{Catalog, Described, Start, StartAgentError};
pub use config::{Config, Limits};
pub(crate) use dialect::protocols;
pub(crate) use launcher::{SUBCOMMAND as LAUNCH, launch};
pub(crate) use link::Link;
pub(crate) use metrics::Agents;
pub(crate) use room::Room;
pub(crate) use talk::{Declined, FromAgent, ToAgent};
pub(crate) use trial::{HARMLESS, TrialError};
pub(crate) use workshop::Workshop;
