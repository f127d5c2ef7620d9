//! The contract's JSON: what clients send and what they are sent, on whichever door.
//!
//! `inbound` reads and judges a client's message, `outbound` makes the frames, `envelope` is the
//! wrapper of both, `details` what errors tell programs; `asyncapi` describes them, `markdown` is what people read. Pure: no I/O, no clock.
//! Touches `limits` (for nesting, and how they are named), `session`'s state and `domain` only.

pub(crate) mod asyncapi;
pub(crate) mod details;
pub(crate) mod envelope;
pub(crate) mod inbound;
pub(crate) mod markdown;
pub(crate) mod outbound;
mod words;
