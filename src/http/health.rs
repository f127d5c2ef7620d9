//! Health checks and the version.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;

use super::AppState;
use crate::store::StoreOperation;

/// Deadline for each component, so that the check itself answers in time.
const COMPONENT_TIMEOUT: Duration = Duration::from_secs(2);

/// A good result is used again for this long: the check takes a lock that logins need.
const MAX_AGE: Duration = Duration::from_millis(250);

/// The last check of the database. Callers that come during a check share its result.
#[derive(Default)]
pub(super) struct LastCheck(Mutex<Option<(Instant, &'static str)>>);

impl LastCheck {
    async fn database(&self, state: &AppState) -> &'static str {
        let arrived = Instant::now();
        let mut last = self.0.lock().await;
        if let Some((at, status)) = *last
            && (at >= arrived || (status == "ok" && at.elapsed() < MAX_AGE))
        {
            return status;
        }
        let status = check_database(state).await;
        *last = Some((Instant::now(), status));
        status
    }
}

async fn check_database(state: &AppState) -> &'static str {
    match tokio::time::timeout(COMPONENT_TIMEOUT, state.store.ping()).await {
        Ok(Ok(())) => return "ok",
        Ok(Err(error)) => tracing::warn!(%error, "the database fails the readiness check"),
        Err(_) => tracing::warn!("the database does not answer the readiness check in time"),
    }
    state.metrics.failures.count(StoreOperation::Probe);
    "failing"
}

/// The result of a health check.
#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`, `draining` or `failing`.
    status: &'static str,
    /// The status of each component.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    components: BTreeMap<&'static str, &'static str>,
}

/// Liveness: the process runs and answers.
#[utoipa::path(
    get, path = "/healthz", tag = "operation",
    responses((status = 200, description = "Alive", body = Health))
)]
pub(super) async fn healthz() -> Json<Health> {
    Json(Health {
        status: "ok",
        components: BTreeMap::new(),
    })
}

/// Readiness: can the gateway serve? Lists the status of each component.
#[utoipa::path(
    get, path = "/readyz", tag = "operation",
    responses(
        (status = 200, description = "Ready", body = Health),
        (status = 503, description = "Draining, or a component fails", body = Health)
    )
)]
pub(super) async fn readyz(State(state): State<AppState>) -> (StatusCode, Json<Health>) {
    let database = state.last_check.database(&state).await;
    let status = if state.draining.is_cancelled() {
        "draining"
    } else {
        database
    };
    let code = if status == "ok" {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let components = BTreeMap::from([("database", database)]);
    (code, Json(Health { status, components }))
}

/// Name and version of the gateway.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct About {
    name: &'static str,
    version: &'static str,
    /// The version of the database schema.
    schema_version: i64,
}

/// Shows the version of the gateway.
#[utoipa::path(
    get, path = "/version", tag = "operation",
    responses((status = 200, description = "The version", body = About))
)]
pub(super) async fn version(State(state): State<AppState>) -> Json<About> {
    Json(About {
        name: env!("CARGO_PKG_NAME"),
        version: env!("CARGO_PKG_VERSION"),
        schema_version: state.store.schema_version(),
    })
}
