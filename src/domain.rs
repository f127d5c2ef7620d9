//! The words everything else is said in: ids, users, commands, events, runs, questions, the queue, error codes, acts.
//!
//! No I/O, no clock, no wire format of any door. Touches std, serde, `serde_json`, thiserror, secrecy, uuid and jiff only.

pub mod account;
pub mod act;
pub mod code;
pub mod command;
pub mod event;
pub mod grant;
pub mod id;
pub mod media;
pub mod name;
pub mod question;
pub mod queue;
pub mod run;
pub mod search;
pub mod secret;
pub(crate) mod surrogate;
pub mod tool;
