//! Actors: visitors, their browsers, and the servers around them.

mod chromium;
mod forbidden_server;
mod journal;
mod layout;
mod nginx;
mod page_actions;
mod visitor;
mod webdriver;

pub(crate) use chromium::Chromium;
pub(crate) use forbidden_server::ForbiddenServer;
pub(crate) use journal::Journal;
pub(crate) use nginx::Nginx;
pub(crate) use visitor::{Entry, Screen, Visitor};
pub(crate) use webdriver::{ALT, ENTER, TAB};
