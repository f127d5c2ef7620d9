//! What crosses nodes: events after their commit, commands to the owner of a session.
//!
//! Room for the in-process bus and the one over NATS. Nothing lives here yet. May touch `domain`.
