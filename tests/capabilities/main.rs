//! Capabilities: every promise to users, checked from outside with the real binary, sockets and database.
//!
//! Runs on SQLite; with `SWITCHBOARD_TEST_DATABASE=postgres` the same tests run on Postgres.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod actors;
#[path = "../support/model_server.rs"]
mod model_server;
#[path = "../support/ports.rs"]
mod ports;
#[path = "../support/postgres.rs"]
mod postgres;
#[path = "../support/raw_websocket.rs"]
mod raw_websocket;
#[path = "../support/schema.rs"]
mod schema;

mod accounts;
mod admin;
mod agents;
mod api_docs;
mod attachments;
mod bad_input;
mod base_path;
mod cancel_and_settings;
mod command_line;
mod configuration;
mod control;
mod data;
mod doctor;
mod documentation;
mod fairness;
mod faults;
mod first_run;
mod health_and_shutdown;
mod history;
mod limits;
mod logins;
mod logs;
mod lost_rights;
mod observability;
mod opencode;
mod presence;
mod proxies;
mod questions;
mod queueing;
mod quotas;
mod reconnecting;
mod redaction;
mod service_manager;
mod sharing;
mod shell_examples;
mod slow_readers;
mod slow_requests;
mod sse_sessions;
mod third_party_clients;
mod tokens;
mod traces;
mod uploads;
mod web_pages;
mod websocket_frames;
mod websocket_sessions;
