//! What users were promised, checked from outside: the real binary, real sockets, a real database.
//!
//! Runs on SQLite; with `SWITCHBOARD_TEST_DATABASE=postgres` the same sentences on Postgres.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod actors;
#[path = "../support/model_server.rs"]
mod model_server;
#[path = "../support/ports.rs"]
mod ports;
#[path = "../support/postgres.rs"]
mod postgres;
#[path = "../support/raw.rs"]
mod raw;
#[path = "../support/schema.rs"]
mod schema;

mod accounts;
mod addresses;
mod admin;
mod agents;
mod attachments;
mod bad_input;
mod commands;
mod configuration;
mod conformance;
mod control;
mod data;
mod deadlines;
mod discretion;
mod doctor;
mod documents;
mod faults;
mod first_run;
mod foreign_clients;
mod history;
mod limits;
mod logins;
mod observability;
mod opencode;
mod operation;
mod pages;
mod papers;
mod presence;
mod proxies;
mod questions;
mod queueing;
mod resuming;
mod service;
mod sharing;
mod slow_readers;
mod sockets;
mod steering;
mod streams;
mod terminal;
mod tokens;
mod traces;
mod uploads;
