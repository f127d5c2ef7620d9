//! Is it alive, is it ready, what is it.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::AppState;
use crate::store::Wanted;

/// A probe must hear soon, whatever the component does.
const PATIENCE: Duration = Duration::from_secs(2);

/// The answer of a probe.
#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`, `draining` or `failing`.
    status: &'static str,
    /// The same for each component.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    components: BTreeMap<&'static str, &'static str>,
}

/// The process lives and answers.
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

/// Can it serve? Each component says for itself.
#[utoipa::path(
    get, path = "/readyz", tag = "operation",
    responses(
        (status = 200, description = "Ready", body = Health),
        (status = 503, description = "Draining, or a component fails", body = Health)
    )
)]
pub(super) async fn readyz(State(state): State<AppState>) -> (StatusCode, Json<Health>) {
    let database = match tokio::time::timeout(PATIENCE, state.store.ping()).await {
        Ok(Ok(())) => "ok",
        Ok(Err(error)) => {
            state.metrics.failures.count(Wanted::Probe);
            tracing::warn!(%error, "the database does not answer a probe");
            "failing"
        }
        Err(_) => {
            state.metrics.failures.count(Wanted::Probe);
            tracing::warn!("the database does not answer a probe in time");
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

/// Which program this is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct About {
    /// Its name.
    name: &'static str,
    /// Its version.
    version: &'static str,
    /// The version of the database's schema.
    schema_version: i64,
}

/// Which version of the gateway answers.
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
