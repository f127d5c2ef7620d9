//! `/api/admin/overview`: how the gateway is doing, in a few numbers.

use axum::Json as Answer;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::AppState;
use crate::http::caller::Administrator;
use crate::http::error::{ApiError, Problem};

/// How the gateway is doing.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct OverviewBody {
    /// The version of the gateway.
    version: &'static str,
    /// Since this node started.
    uptime_seconds: u64,
    /// Accounts.
    users: u64,
    /// Sessions that have not ended.
    sessions: u64,
    /// Those of them in which a run is under way.
    running_runs: u64,
    /// Sessions that are awake on this node.
    awake_sessions: usize,
    /// Sockets and streams of this node.
    connections: usize,
    /// How often each limit of this node refused something, those that did.
    limits_hit: Vec<HitBody>,
}

/// A limit that refused something.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct HitBody {
    name: &'static str,
    refused: u64,
}

/// Shows how the gateway is doing.
#[utoipa::path(
    get, path = "/api/admin/overview", tag = "admin", security(("bearer" = [])),
    responses(
        (status = 200, description = "A few numbers", body = OverviewBody),
        (status = 403, description = "FORBIDDEN", body = Problem)
    )
)]
pub(in crate::http) async fn show(
    State(state): State<AppState>,
    _: Administrator,
) -> Result<Answer<OverviewBody>, ApiError> {
    let counts = state.store.counts().await?;
    let limits = state.limits.in_force();
    let hit = limits.into_iter().filter(|limit| limit.refused > 0);
    let up = state.clock.monotonic().saturating_sub(state.started);
    Ok(Answer(OverviewBody {
        version: env!("CARGO_PKG_VERSION"),
        uptime_seconds: up.as_secs(),
        users: counts.users,
        sessions: counts.sessions,
        running_runs: counts.running,
        awake_sessions: state.sessions.awake_by_agent().values().sum(),
        connections: state.sessions.members().count(),
        limits_hit: hit
            .map(|limit| HitBody {
                name: limit.name,
                refused: limit.refused,
            })
            .collect(),
    }))
}
