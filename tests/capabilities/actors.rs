//! The people of the tests: a gateway, those who run it, and those who log in.

mod browser;
mod gateway;
mod member;
mod wire;

pub(crate) use browser::Browser;
pub(crate) use gateway::{Gateway, PASSWORD, Settings, program};
pub(crate) use member::{Member, next_json};
pub(crate) use wire::Wire;
