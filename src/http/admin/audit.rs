//! `/api/admin/audit`: who did what.

use axum::Json as Answer;
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
use crate::http::extract::Query;
use crate::store::{ActFilter, AuditRow};

const PAGE: u32 = 100;
const LARGEST_PAGE: u32 = 1_000;
const DAY: &str = "2026-03-01";

/// Something that was done.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ActBody {
    /// Later acts have larger ones.
    id: i64,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// Who: a user's name as it was then, `(operator)` or `(gateway)`.
    actor: String,
    /// From where, if over the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    /// What.
    #[schema(example = "login.succeeded")]
    action: String,
    /// To whom or what: an id or a name.
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

/// Which acts to list; all conditions must hold.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct Which {
    /// By whom: a name, or the id of an account.
    actor: Option<String>,
    /// Which: `login.failed`, or `login.` for all that begin so.
    action: Option<String>,
    /// To whom or what.
    target: Option<String>,
    /// Not before this moment: `2026-03-01T08:00:00Z`, or `2026-03-01` for its beginning in UTC.
    since: Option<String>,
    /// Before this moment.
    until: Option<String>,
    /// What the page before gave as `next`.
    before: Option<i64>,
    /// How many, at most 1000.
    limit: Option<u32>,
}

/// What was done, the newest first.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ActsBody {
    acts: Vec<ActBody>,
    /// What to ask for next as `before`; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<i64>,
}

/// Reads the audit log.
#[utoipa::path(
    get, path = "/api/admin/audit", tag = "admin", security(("bearer" = [])), params(Which),
    responses(
        (status = 200, description = "What was done, the newest first", body = ActsBody),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: a bad time or number", body = Problem)
    )
)]
pub(in crate::http) async fn list(
    State(state): State<AppState>,
    _: Administrator,
    Query(which): Query<Which>,
) -> Result<Answer<ActsBody>, ApiError> {
    let limit = which.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    let filter = ActFilter {
        since: moment("since", which.since.as_deref())?,
        until: moment("until", which.until.as_deref())?,
        actor: which.actor,
        action: which.action,
        target: which.target,
        before: which.before,
    };
    let rows = state.store.acts(&filter, limit).await?;
    let full = rows.len() == limit as usize;
    let next = rows.last().filter(|_| full).map(|row| row.id);
    let acts = rows.into_iter().map(ActBody::from).collect();
    Ok(Answer(ActsBody { acts, next }))
}

/// A moment, or a day for its beginning.
fn moment(field: &str, text: Option<&str>) -> Result<Option<Timestamp>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let day = || {
        // A time without its zone would be read as a day, too.
        let day = Some(text).filter(|text| text.len() == DAY.len())?;
        let day = day.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok()?;
        Some(day.timestamp())
    };
    text.parse().ok().or_else(day).map(Some).ok_or_else(|| {
        let wanted = format!("a time like {DAY}T08:00:00Z or a day like {DAY}");
        ApiError::invalid(format!("`{field}` is not {wanted}."))
            .with_details(json!({ "field": field }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_its_beginning_in_utc() {
        let read = |text| moment("since", Some(text)).ok().flatten();
        let beginning: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        assert_eq!(read("2026-03-01"), Some(beginning));
        assert_eq!(read("2026-03-01T01:00:00+01:00"), Some(beginning));
        for bad in ["yesterday", "2026-02-30", "2026-03-01T08:00:00", "", "12"] {
            assert!(read(bad).is_none(), "{bad}");
        }
    }
}
