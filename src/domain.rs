//! Domain: ids, users, commands, events, runs, questions, the queue, error codes, audit entries.
//!
//! No I/O, no clock, no client or agent wire format. Touches std, serde, `serde_json`, thiserror,
//! secrecy, bytes, uuid and jiff only.

pub mod account;
pub mod audit;
pub mod command;
pub mod error_code;
pub mod event;
pub mod file_name;
pub mod grant;
pub mod id;
pub mod idempotency;
pub(crate) mod lone_surrogates;
pub mod media_type;
pub mod question;
pub mod queue;
pub mod run;
pub mod search_query;
pub mod secret;
pub mod shared_text;
pub mod tool;
