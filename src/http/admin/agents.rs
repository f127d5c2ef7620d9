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
    let described = state.agents.described().into_iter();
    let agents = described
        .map(|agent| ConfiguredAgentBody {
            capabilities: state.sessions.capabilities(&agent.name).to_vec(),
            sessions: awake.get(&agent.name).copied().unwrap_or_default(),
            name: agent.name,
            protocol: agent.protocol,
            enabled: agent.enabled,
        })
        .collect();
    Answer(ConfiguredAgentsBody { agents })
}
