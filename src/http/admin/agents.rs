//! `/api/admin/agents`: what is configured, how much of it is in use, and whether it works.

use std::time::Instant;

use axum::Json as Answer;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::act::Action;
use crate::http::AppState;
use crate::http::caller::{Administrator, check_login};
use crate::http::error::{ApiError, Problem};
use crate::http::extract::Json;
use crate::session::Asking;

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

/// How to try an agent out.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct TestRequest {
    /// Ask it something harmless, too; that may cost something.
    #[serde(default)]
    #[schema(value_type = Option<bool>)]
    prompt: bool,
}

/// How a trial went.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct TestBody {
    /// Does it work?
    ok: bool,
    /// What was seen, line by line.
    lines: Vec<String>,
    /// How long it took.
    seconds: f64,
}

/// Starts an agent as a session would, says what works, and ends it. Takes as long as the agent does:
/// up to three minutes to be ready, and as long to answer.
#[utoipa::path(
    post, path = "/api/admin/agents/{name}/test", tag = "admin", security(("bearer" = [])),
    params(("name" = String, Path, description = "The agent")),
    request_body = TestRequest,
    responses(
        (status = 200, description = "It was tried out", body = TestBody),
        (status = 401, description = "AUTH_FAILED: also if the login or the role ended meanwhile", body = Problem),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 404, description = "NOT_FOUND: no such agent, or a disabled one", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: it is not started here, but connects", body = Problem),
        (status = 503, description = "BUSY: another trial, or no room for an agent", body = Problem)
    )
)]
pub(in crate::http) async fn test(
    State(state): State<AppState>,
    Administrator(caller): Administrator,
    Path(name): Path<String>,
    Json(request): Json<TestRequest>,
) -> Result<Answer<TestBody>, ApiError> {
    let described = state.sessions.described_agents();
    if !described
        .iter()
        .any(|agent| agent.name == name && agent.enabled)
    {
        return Err(ApiError::not_found(
            "There is no such agent, or it is disabled.",
        ));
    }
    let by = state.auth.by(&caller.principal, caller.address);
    state
        .store
        .record(&by.did(Action::AgentTested, &name))
        .await?;
    let asking = if request.prompt {
        Asking::Harmless
    } else {
        Asking::Nothing
    };
    let begun = Instant::now();
    let tried = state.sessions.try_agent(name, asking).await;
    // It took its time: what an agent says is not for somebody who is no administrator any more.
    check_login(&state, &caller.principal)?;
    let tried = tried?;
    Ok(Answer(TestBody {
        ok: tried.works,
        lines: tried.lines,
        seconds: begun.elapsed().as_secs_f64(),
    }))
}
