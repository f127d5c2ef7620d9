//! `/api/csp-reports`: what browsers report when the pages break their own policy, counted.
//!
//! What is in a report is not kept: it may quote what somebody reads.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;

use super::AppState;

/// Counts a report of a browser about the content security policy.
#[utoipa::path(
    post, path = "/api/csp-reports", tag = "operation",
    request_body(content_type = "application/csp-report", description = "What the browser says; not kept"),
    responses((status = 204, description = "Counted"))
)]
pub(super) async fn count(State(state): State<AppState>, _report: Bytes) -> StatusCode {
    let reports = state.metrics.policy_reports.inc() + 1;
    // Anybody can send them: the first is worth a line, and then each time that they have doubled.
    if reports.is_power_of_two() {
        tracing::warn!(
            reports,
            "browsers have blocked something on a page: a fault of the page, or an attempt to run foreign code"
        );
    }
    StatusCode::NO_CONTENT
}
