//! `/api/admin/audit`: the audit log.

use axum::extract::State;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::http::AppState;
use crate::http::caller::Administrator;
use crate::http::error::{ApiError, Problem};
use crate::http::extract::{Json, Query};
use crate::http::page_token::next_token;
use crate::store::{AuditFilter, AuditRow};

const DEFAULT_PAGE: u32 = 100;
const MAX_PAGE: u32 = 1_000;
const EXAMPLE_DAY: &str = "2026-03-01";

/// An entry of the audit log.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ActBody {
    /// Increases with time.
    id: i64,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The user's name at that time, `(operator)` or `(gateway)`.
    actor: String,
    /// The client's address, if over the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[schema(example = "login.succeeded")]
    action: String,
    /// What was acted on: an id or a name.
    target: String,
}

impl From<AuditRow> for ActBody {
    fn from(row: AuditRow) -> Self {
        Self {
            id: row.id,
            at: row.at,
            actor: row.actor,
            address: row.address,
            action: row.action,
            target: row.target,
        }
    }
}

/// Which entries to list; all conditions must hold.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct AuditQuery {
    /// A user name, or the id of an account.
    actor: Option<String>,
    /// An action like `login.failed`, or a prefix like `login.`.
    action: Option<String>,
    /// What was acted on.
    target: Option<String>,
    /// From this time on: `2026-03-01T08:00:00Z`, or `2026-03-01` for the start of the day in UTC.
    since: Option<String>,
    /// Before this time.
    until: Option<String>,
    /// `next` of the page before.
    before: Option<i64>,
    /// Maximum number of entries, at most 1000.
    limit: Option<u32>,
}

/// Entries of the audit log, newest first.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ActsBody {
    acts: Vec<ActBody>,
    /// `before` of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<i64>,
}

/// Reads the audit log.
#[utoipa::path(
    get, path = "/api/admin/audit", tag = "admin", security(("bearer" = [])), params(AuditQuery),
    responses(
        (status = 200, description = "The entries, newest first", body = ActsBody),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: a bad time or number", body = Problem)
    )
)]
pub(in crate::http) async fn list(
    State(state): State<AppState>,
    _: Administrator,
    Query(query): Query<AuditQuery>,
) -> Result<Json<ActsBody>, ApiError> {
    let limit = query.limit.unwrap_or(DEFAULT_PAGE).clamp(1, MAX_PAGE);
    let filter = AuditFilter {
        since: parse_time("since", query.since.as_deref())?,
        until: parse_time("until", query.until.as_deref())?,
        actor: query.actor,
        action: query.action,
        target: query.target,
        before: query.before,
    };
    let rows = state.store.audit_entries(&filter, limit).await?;
    let next = next_token(&rows, limit, |row| row.id);
    let acts = rows.into_iter().map(ActBody::from).collect();
    Ok(Json(ActsBody { acts, next }))
}

/// A time, or a day for its start in UTC.
fn parse_time(field: &str, text: Option<&str>) -> Result<Option<Timestamp>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let day = || {
        // `Date` would also accept a time without a zone.
        let day = Some(text).filter(|text| text.len() == EXAMPLE_DAY.len())?;
        let day = day.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok()?;
        Some(day.timestamp())
    };
    text.parse().ok().or_else(day).map(Some).ok_or_else(|| {
        let wanted = format!("a time like {EXAMPLE_DAY}T08:00:00Z or a day like {EXAMPLE_DAY}");
        ApiError::invalid(format!("`{field}` is not {wanted}."))
            .with_details(json!({ "field": field }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_means_its_start_in_utc() {
        let read = |text| parse_time("since", Some(text)).ok().flatten();
        let start: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        assert_eq!(read("2026-03-01"), Some(start));
        assert_eq!(read("2026-03-01T01:00:00+01:00"), Some(start));
        for bad in ["yesterday", "2026-02-30", "2026-03-01T08:00:00", "", "12"] {
            assert!(read(bad).is_none(), "{bad}");
        }
    }
}
