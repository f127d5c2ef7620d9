//! What people see and do in the page, checked in a real Chromium against the real binary.
//!
//! Everybody has a browser of their own (`Visitor`), driven by chromedriver. What the page shows is held
//! against what the gateway's API says.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(
    clippy::print_stdout,
    reason = "what was measured, and what a page showed"
)]

mod actors;

/// The gateway, and people who talk to it without a page.
#[path = "../capabilities/actors"]
#[allow(
    dead_code,
    reason = "the capabilities need more of them than a page does"
)]
mod staff {
    mod browser;
    pub(crate) mod contract;
    mod gateway;
    mod wire;

    pub(crate) use browser::Browser;
    pub(crate) use gateway::{Gateway, PASSWORD, Settings};
    pub(crate) use wire::Wire;
}
#[path = "../support/ports.rs"]
mod ports;
#[path = "../support/postgres.rs"]
#[allow(dead_code, reason = "only a gateway that is told to stores there")]
mod postgres;
#[path = "../support/schema.rs"]
mod schema;

mod administration;
mod attaching;
mod base_path;
mod company;
mod conversation;
mod first_run;
mod hostile;
mod keyboard;
mod narrow;
mod plain;
mod reconnecting;
mod screenshots;
mod sizes;
mod speed;
