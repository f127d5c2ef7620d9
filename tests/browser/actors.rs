//! The people of these tests, and what they work with.

mod beacon;
mod chat;
mod chromium;
mod driver;
mod journal;
mod nginx;
mod visitor;

pub(crate) use beacon::Beacon;
pub(crate) use chromium::Chromium;
pub(crate) use journal::Journal;
pub(crate) use nginx::Nginx;
pub(crate) use visitor::{Entry, Screen, Visitor};
