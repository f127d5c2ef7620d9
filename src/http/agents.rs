//! `/api/agents`: the agents that a session can use.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::AppState;
use super::caller::Authenticated;
use super::error::Problem;
use super::extract::Json;

/// The agents that a session can use.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentsBody {
    agents: Vec<AgentBody>,
    /// The agent of a session that names none.
    default_agent: String,
}

/// One agent.
#[derive(Serialize, ToSchema)]
pub(super) struct AgentBody {
    name: String,
    capabilities: Vec<&'static str>,
}

/// Lists the agents that can be started.
#[utoipa::path(
    get, path = "/api/agents", tag = "sessions", security(("bearer" = [])),
    responses(
        (status = 200, description = "The agents", body = AgentsBody),
        (status = 401, description = "AUTH_FAILED", body = Problem)
    )
)]
pub(super) async fn agents(State(state): State<AppState>, _: Authenticated) -> Json<AgentsBody> {
    let agent = |name: &str| AgentBody {
        name: name.to_owned(),
        capabilities: state.sessions.capabilities(name),
    };
    let agents = state.sessions.agents().map(agent).collect();
    Json(AgentsBody {
        agents,
        default_agent: state.sessions.default_agent().to_owned(),
    })
}
