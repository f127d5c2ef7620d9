//! `/api/admin/agents`: the configured agents, their use, and a test of one.

use std::time::Instant;

use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::audit::Action;
use crate::http::AppState;
use crate::http::caller::{Administrator, check_login};
use crate::http::error::{ApiError, Problem};
use crate::http::extract::Json;
use crate::runtime::AgentReadiness;
use crate::session::TestPrompt;

/// A configured agent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ConfiguredAgentBody {
    name: String,
    /// The protocol it speaks.
    protocol: String,
    /// Whether sessions can use it.
    enabled: bool,
    /// Whether it could be started: `ready`, `untested`, `not_installed` or `failed`.
    setup: &'static str,
    capabilities: Vec<&'static str>,
    /// Live sessions with it on this node.
    sessions: usize,
    /// Running processes.
    live: usize,
    /// Processes started since the gateway started.
    starts: u64,
    /// How many of those crashed.
    crashes: u64,
    /// Misrouted messages, about another conversation than its session's; dropped.
    strays: u64,
    /// Unparseable lines; dropped.
    odd_lines: u64,
    /// The last error.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error_at: Option<jiff::Timestamp>,
    /// The stderr tail of the process that ended last.
    last_words: Vec<String>,
}

/// The configured agents.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ConfiguredAgentsBody {
    agents: Vec<ConfiguredAgentBody>,
}

/// Lists the configured agents, also the disabled ones.
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
) -> Json<ConfiguredAgentsBody> {
    let live_sessions = state.sessions.live_by_agent();
    let described = state.sessions.described_agents().into_iter();
    let agents = described
        .map(|agent| {
            let (last_error_at, last_error) = agent.last_error.unzip();
            ConfiguredAgentBody {
                capabilities: state.sessions.capabilities(&agent.name),
                sessions: live_sessions.get(&agent.name).copied().unwrap_or_default(),
                name: agent.name,
                protocol: agent.protocol,
                enabled: agent.enabled,
                setup: match agent.setup {
                    AgentReadiness::Ready => "ready",
                    AgentReadiness::Untested => "untested",
                    AgentReadiness::NotInstalled => "not_installed",
                    AgentReadiness::Failed => "failed",
                },
                live: agent.live,
                starts: agent.starts,
                crashes: agent.crashes,
                strays: agent.misrouted,
                odd_lines: agent.unexpected,
                last_error,
                last_error_at,
                last_words: agent.stderr_tail,
            }
        })
        .collect();
    Json(ConfiguredAgentsBody { agents })
}

/// How to test an agent.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct TestRequest {
    /// Also send a harmless prompt; the provider may charge for it.
    #[serde(default)]
    #[schema(value_type = Option<bool>)]
    prompt: bool,
}

/// The result of a test.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct TestBody {
    /// Whether it works.
    ok: bool,
    /// The findings, line by line.
    lines: Vec<String>,
    /// The duration of the test.
    seconds: f64,
}

/// Starts an agent as a session would, reports what works, and ends it. May take up to three minutes
/// until the agent is ready, and three more until it answers.
#[utoipa::path(
    post, path = "/api/admin/agents/{name}/test", tag = "admin", security(("bearer" = [])),
    params(("name" = String, Path, description = "The agent")),
    request_body = TestRequest,
    responses(
        (status = 200, description = "The test ran", body = TestBody),
        (status = 401, description = "AUTH_FAILED: also if the login or the role ended meanwhile", body = Problem),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 404, description = "NOT_FOUND: no such agent, or a disabled one", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: it is not started by the gateway, but connects to it", body = Problem),
        (status = 503, description = "BUSY: another test runs, or no slot for an agent", body = Problem)
    )
)]
pub(in crate::http) async fn test(
    State(state): State<AppState>,
    Administrator(caller): Administrator,
    Path(name): Path<String>,
    Json(request): Json<TestRequest>,
) -> Result<Json<TestBody>, ApiError> {
    let described = state.sessions.described_agents();
    if !described
        .iter()
        .any(|agent| agent.name == name && agent.enabled)
    {
        return Err(ApiError::not_found(
            "There is no such agent, or it is disabled.",
        ));
    }
    let by = state.auth.audit_context(&caller.principal, caller.address);
    state
        .store
        .record(&by.did(Action::AgentTested, &name))
        .await?;
    let asking = if request.prompt {
        TestPrompt::Harmless
    } else {
        TestPrompt::None
    };
    let started = Instant::now();
    let tested = state.sessions.test_agent(name, asking).await;
    // The test took minutes: the caller may have lost the login or the role.
    check_login(&state, &caller.principal)?;
    let tested = tested?;
    Ok(Json(TestBody {
        ok: tested.works,
        lines: tested.lines,
        seconds: started.elapsed().as_secs_f64(),
    }))
}
