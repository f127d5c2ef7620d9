//! Runtimes: the catalog of agents, and the link to each running one.
//!
//! A session starts an agent from the [`Catalog`], holds its [`Link`], and receives its events through
//! a channel of its own. [`ToAgent`] and [`FromAgent`] are all that passes between the two: no agent's
//! protocol is visible above this module. `link` is the task between them, `dialect` has the protocols,
//! each pure, `transport` and `process` carry the bytes; `demo` is the built-in agent.
//! Touches `limits`, `store`, `domain` and `clock` only.

mod agent_directories;
mod agent_home;
mod agent_logins;
mod agent_readiness;
mod agent_settings;
mod agent_status;
mod agent_test;
mod catalog;
mod config;
mod demo;
mod dialect;
mod dialect_driver;
mod error;
mod event_truncation;
mod jsonrpc;
mod launch;
mod lines;
mod link;
mod link_failure;
mod messages;
mod metrics;
mod open_questions;
mod orphans;
mod pending_requests;
mod preflight;
mod process;
mod process_environment;
mod process_table;
mod prompt_content;
mod sandbox;
mod sandbox_test;
mod slots;
mod stderr_tail;
mod supervisor_process;
mod throttle;
mod transport;
mod workspace;

pub(crate) use agent_readiness::AgentReadiness;
pub(crate) use agent_test::{AgentTestError, HARMLESS};
pub(crate) use catalog::{Catalog, Described, Origin, Start, StartAgentError};
pub use config::{Config, Limits, SandboxMode};
pub(crate) use dialect::protocols;
pub(crate) use launch::{Launcher, LauncherConfig};
pub(crate) use link::Link;
pub(crate) use messages::{Declined, FromAgent, SessionQuestion, ToAgent};
pub(crate) use metrics::Agents;
pub(crate) use preflight::{AgentFinding, Preflight, preflight};
pub(crate) use prompt_content::PromptContent;
pub(crate) use sandbox::KernelSupport;
pub(crate) use sandbox::probe::{SUBCOMMAND as SANDBOX_PROBE, run as probe_sandbox};
pub(crate) use supervisor_process::{SUBCOMMAND as SUPERVISE, supervise};
