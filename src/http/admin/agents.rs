//! `/api/admin/agents`: what is configured, and how much of it is in use.

use axum::Json as Answer;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::AppState;
use crate::http::caller::Administrator;
use crate::http::error::Problem;

/// An agent that is configured.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ConfiguredAgentBody {
    name: String,
    /// What it speaks.
    protocol: String,
    /// Whether sessions can talk to it.
    enabled: bool,
    capabilities: Vec<&'static str>,
    /// Sessions with it that are awake on this node.
    sessions: usize,
    /// How many of it run.
    live: usize,
    /// How many were started since the gateway was.
    starts: u64,
    /// How many of those ended without being told to.
    crashes: u64,
    /// What it said about conversations that were not its session's; dropped.
    strays: u64,
    /// What it said that made no sense; dropped.
    odd_lines: u64,
    /// What was wrong last.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error_at: Option<jiff::Timestamp>,
    /// What the last one that ended wrote to its standard error.
    last_words: Vec<String>,
}

/// All agents that are configured.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ConfiguredAgentsBody {
    agents: Vec<ConfiguredAgentBody>,
}

/// Lists the agents that are configured, the disabled ones too.
#[utoipa::path(
    get, path = "/api/admin/agents", tag = "admin", security(("bearer" = [])),
    responses(
        (status = 200, description = "The agents by name", body = ConfiguredAgentsBody),
        (status = 403, description = "FORBIDDEN", body = Problem)
    )
)]
pub(in crate::http) async fn list(
    State(state): State<AppState>,
    _: Administrator,
) -> Answer<ConfiguredAgentsBody> {
    let awake = state.sessions.awake_by_agent();
    let described = state.sessions.described_agents().into_iter();
    let agents = described
        .map(|agent| {
            let (last_error_at, last_error) = agent.last_error.unzip();
            ConfiguredAgentBody {
                capabilities: state.sessions.capabilities(&agent.name),
                sessions: awake.get(&agent.name).copied().unwrap_or_default(),
                name: agent.name,
                protocol: agent.protocol,
                enabled: agent.enabled,
                live: agent.live,
                starts: agent.starts,
                crashes: agent.crashes,
                strays: agent.strays,
                odd_lines: agent.odd,
                last_error,
                last_error_at,
                last_words: agent.last_words,
            }
        })
        .collect();
    Answer(ConfiguredAgentsBody { agents })
}
