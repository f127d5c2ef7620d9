//! Browser tests: the page in a real Chromium, against the real binary.
//!
//! Each `Visitor` has a browser of their own, driven by chromedriver. What the page shows is compared with
//! the gateway's API.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(
    clippy::print_stdout,
    reason = "what was measured, and what a page showed"
)]

mod actors;

/// The gateway, and clients of its API.
#[path = "../capabilities/actors"]
#[allow(
    dead_code,
    reason = "the capabilities need more of them than a page does"
)]
mod api_actors {
    pub(crate) mod asyncapi;
    mod gateway;
    mod http_client;
    mod raw_tcp;

    pub(crate) use gateway::{Gateway, PASSWORD, Settings};
    pub(crate) use http_client::HttpClient;
    pub(crate) use raw_tcp::RawTcp;
}
#[path = "../support/ports.rs"]
mod ports;
#[path = "../support/postgres.rs"]
#[allow(dead_code, reason = "only a gateway that is told to stores there")]
mod postgres;
#[path = "../support/schema.rs"]
mod schema;

mod access;
mod administration;
mod attachments;
mod base_path;
mod conversation;
mod fallback_pages;
mod first_run;
mod highlighting;
mod hostile_content;
mod keyboard;
mod layout;
mod page_weight;
mod phone;
mod questions;
mod reconnecting;
mod responsiveness;
mod runs;
mod screenshots;
mod search;
mod session_list;
mod users_and_tabs;
