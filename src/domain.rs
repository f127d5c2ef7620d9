//! The words everything else is said in: ids, users, principals, error codes, acts.
//!
//! No I/O, no clock, no wire format of any door. Touches std, serde, thiserror, secrecy, uuid and jiff only.

pub mod account;
pub mod act;
pub mod code;
pub mod id;
pub mod secret;
