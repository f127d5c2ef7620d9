//! Wire: the JSON of the client protocol, the same for WebSocket, SSE and POST.
//!
//! `inbound` reads and checks a client's message, `outbound` makes the frames of the gateway,
//! `server_envelope` wraps them, `enums` has their words, `error_details` the part of an error for programs;
//! `asyncapi` describes all of it, `markdown_export` exports a conversation. Pure: no I/O, no clock.
//! Touches `limits` (for nesting, and their names), `session`'s state and `domain` only.

pub(crate) mod asyncapi;
mod enums;
pub(crate) mod error_details;
pub(crate) mod inbound;
pub(crate) mod markdown_export;
pub(crate) mod outbound;
pub(crate) mod server_envelope;
