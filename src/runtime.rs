//! The runtimes: the catalog of agents, and the link (transport and dialect) to each running one.
//!
//! Room for the built-in demo agent and one pure dialect per protocol. Nothing lives here yet. May
//! touch `domain`.
