//! Health checks and the version.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::AppState;
use crate::store::StoreOperation;

/// Deadline for each component, so that the check itself answers in time.
const COMPONENT_TIMEOUT: Duration = Duration::from_secs(2);

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
    let database = match tokio::time::timeout(COMPONENT_TIMEOUT, state.store.ping()).await {
        Ok(Ok(())) => "ok",
        Ok(Err(error)) => {
            state.metrics.failures.count(StoreOperation::Probe);
            tracing::warn!(%error, "the database fails the readiness check");
            "failing"
        }
        Err(_) => {
            state.metrics.failures.count(StoreOperation::Probe);
            tracing::warn!("the database does not answer the readiness check in time");
            "failing"
        }
    };
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
