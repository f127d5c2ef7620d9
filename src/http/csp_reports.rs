//! `/api/csp-reports`: counts violations of the content security policy.
//!
//! The reports are not kept: they may quote the page.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;

use super::AppState;

/// Counts a browser's report about the content security policy.
#[utoipa::path(
    post, path = "/api/csp-reports", tag = "operation",
    request_body(content_type = "application/csp-report", description = "The report; not kept"),
    responses((status = 204, description = "Counted"))
)]
pub(super) async fn count(State(state): State<AppState>, _report: Bytes) -> StatusCode {
    let reports = state.metrics.policy_reports.inc() + 1;
    // Anyone can send reports: log the first, then each doubling.
    if reports.is_power_of_two() {
        tracing::warn!(
            reports,
            "browsers blocked content on a page: a bug in the page, or an attempt to run foreign code"
        );
    }
    StatusCode::NO_CONTENT
}
