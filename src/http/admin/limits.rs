//! `/api/admin/limits`: the limits in force, and changing some of them until the restart.

use std::num::NonZeroU32;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::domain::audit::Action;
use crate::http::AppState;
use crate::http::caller::Administrator;
use crate::http::error::{ApiError, Problem};
use crate::http::extract::Json;
use crate::limits::{AdjustableLimit, LimitStatus};

/// A window remembers each admission for a minute, so the limit also bounds memory.
const MAX_PER_MINUTE: u32 = 100_000;
const SCOPE: &str = "On this node, until it restarts. The section [limits] of the configuration \
                     sets them for good.";

/// One limit.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct LimitBody {
    #[schema(example = "messagesPerMinute")]
    name: &'static str,
    /// The value in force.
    value: u32,
    /// The configured value.
    configured: u32,
    /// Whether it can be changed at run time.
    adjustable: bool,
    /// Number of refusals since the gateway started.
    refused: u64,
}

impl From<LimitStatus> for LimitBody {
    fn from(limit: LimitStatus) -> Self {
        Self {
            name: limit.name,
            value: limit.value,
            configured: limit.configured,
            adjustable: limit.adjustable,
            refused: limit.refused,
        }
    }
}

/// The limits in force.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct LimitsBody {
    limits: Vec<LimitBody>,
    /// Where and for how long a change applies.
    scope: &'static str,
}

fn in_force(state: &AppState) -> Json<LimitsBody> {
    let limits = state.limits.report().map(LimitBody::from).into();
    let scope = SCOPE;
    Json(LimitsBody { limits, scope })
}

/// Shows the limits in force on this node and their refusals.
#[utoipa::path(
    get, path = "/api/admin/limits", tag = "admin", security(("bearer" = [])),
    responses(
        (status = 200, description = "The limits", body = LimitsBody),
        (status = 403, description = "FORBIDDEN", body = Problem)
    )
)]
pub(in crate::http) async fn show(
    State(state): State<AppState>,
    _: Administrator,
) -> Json<LimitsBody> {
    in_force(&state)
}

/// Which limits to change.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the names that clients send")]
pub(in crate::http) struct LimitChanges {
    /// Messages to one session in any 60 seconds.
    #[schema(minimum = 1, maximum = 100_000)]
    messages_per_minute: Option<u32>,
    /// Requests for the state of one session in any 60 seconds.
    #[schema(minimum = 1, maximum = 100_000)]
    state_requests_per_minute: Option<u32>,
    /// Login attempts of one address in any 60 seconds, and as many password changes.
    #[schema(minimum = 1, maximum = 100_000)]
    logins_per_minute: Option<u32>,
}

impl LimitChanges {
    fn checked(&self) -> Result<Vec<(AdjustableLimit, NonZeroU32)>, ApiError> {
        let requested = [
            (AdjustableLimit::Messages, self.messages_per_minute),
            (
                AdjustableLimit::StateRequests,
                self.state_requests_per_minute,
            ),
            (AdjustableLimit::Logins, self.logins_per_minute),
        ];
        let given = requested
            .into_iter()
            .filter_map(|(limit, value)| Some((limit, value?)));
        let check = |(limit, value): (AdjustableLimit, u32)| {
            let valid = NonZeroU32::new(value).filter(|value| value.get() <= MAX_PER_MINUTE);
            valid.map(|value| (limit, value)).ok_or_else(|| {
                let name = limit.name();
                ApiError::invalid(format!("`{name}` is a number from 1 to {MAX_PER_MINUTE}."))
                    .with_details(json!({ "field": name }))
            })
        };
        let changes: Vec<_> = given.map(check).collect::<Result<_, _>>()?;
        if changes.is_empty() {
            return Err(ApiError::invalid("There is nothing to change."));
        }
        Ok(changes)
    }
}

/// Changes limits of this node until it restarts. Earlier admissions still count.
#[utoipa::path(
    patch, path = "/api/admin/limits", tag = "admin", security(("bearer" = [])),
    request_body = LimitChanges,
    responses(
        (status = 200, description = "The limits as they are now", body = LimitsBody),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 422, description = "VALIDATION_ERROR", body = Problem)
    )
)]
pub(in crate::http) async fn change(
    State(state): State<AppState>,
    Administrator(caller): Administrator,
    Json(changes): Json<LimitChanges>,
) -> Result<Json<LimitsBody>, ApiError> {
    let changes = changes.checked()?;
    // Record first: no change is made without an entry in the audit log.
    let values: Vec<String> = changes
        .iter()
        .map(|(limit, value)| format!("{}={value}", limit.name()))
        .collect();
    let by = state.auth.audit_context(&caller.principal, caller.address);
    let record = by.did(Action::LimitsChanged, values.join(" "));
    state.store.record(&record).await?;
    for (limit, value) in changes {
        state.limits.override_limit(limit, value);
    }
    tracing::info!(
        user.id = %caller.principal.user,
        limits = record.target,
        "limits changed until the next restart"
    );
    Ok(in_force(&state))
}
