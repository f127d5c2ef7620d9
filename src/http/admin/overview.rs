//! `/api/admin/overview`: the key figures of the gateway.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::AppState;
use crate::http::caller::Administrator;
use crate::http::error::{ApiError, Problem};
use crate::http::extract::Json;

/// The key figures of the gateway.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct OverviewBody {
    /// The version of the gateway.
    version: &'static str,
    /// Seconds since this node started.
    uptime_seconds: u64,
    /// Number of accounts.
    users: u64,
    /// Sessions that have not ended.
    sessions: u64,
    /// Sessions with a run in progress.
    running_runs: u64,
    /// Live sessions on this node.
    awake_sessions: usize,
    /// Sockets and event streams of this node.
    connections: usize,
    /// The limits of this node that refused something, with the number of refusals.
    limits_hit: Vec<HitBody>,
}

/// A limit that refused something.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct HitBody {
    name: &'static str,
    refused: u64,
}

/// Shows the key figures of the gateway.
#[utoipa::path(
    get, path = "/api/admin/overview", tag = "admin", security(("bearer" = [])),
    responses(
        (status = 200, description = "The key figures", body = OverviewBody),
        (status = 403, description = "FORBIDDEN", body = Problem)
    )
)]
pub(in crate::http) async fn show(
    State(state): State<AppState>,
    _: Administrator,
) -> Result<Json<OverviewBody>, ApiError> {
    let counts = state.store.counts().await?;
    let limits = state.limits.report();
    let hit = limits.into_iter().filter(|limit| limit.refused > 0);
    let up = state.clock.monotonic().saturating_sub(state.started);
    Ok(Json(OverviewBody {
        version: env!("CARGO_PKG_VERSION"),
        uptime_seconds: up.as_secs(),
        users: counts.users,
        sessions: counts.sessions,
        running_runs: counts.running,
        awake_sessions: state.sessions.live_by_agent().values().sum(),
        connections: state.sessions.members().count(),
        limits_hit: hit
            .map(|limit| HitBody {
                name: limit.name,
                refused: limit.refused,
            })
            .collect(),
    }))
}
