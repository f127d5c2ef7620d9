//! `/api/admin/limits`: the limits in force, and changing some of them for a while.

use std::num::NonZeroU32;

use axum::Json as Answer;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::domain::act::Action;
use crate::http::AppState;
use crate::http::caller::Administrator;
use crate::http::error::{ApiError, Problem};
use crate::http::extract::Json;
use crate::limits::{Adjustable, InForce};

/// Each admission is remembered for a minute: a limit is also a bound on memory.
const MOST: u32 = 100_000;
const SCOPE: &str = "On this node, until it restarts. The section [limits] of the configuration \
                     sets them for good.";

/// One limit.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct LimitBody {
    #[schema(example = "messagesPerMinute")]
    name: &'static str,
    /// What is allowed at most, now.
    value: u32,
    /// What the configuration says.
    configured: u32,
    /// Whether it can be changed here.
    adjustable: bool,
    /// How often it refused something since the gateway started.
    refused: u64,
}

impl From<InForce> for LimitBody {
    fn from(limit: InForce) -> Self {
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
    /// Where and for how long a change holds.
    scope: &'static str,
}

fn in_force(state: &AppState) -> Answer<LimitsBody> {
    let limits = state.limits.in_force().map(LimitBody::from).into();
    let scope = SCOPE;
    Answer(LimitsBody { limits, scope })
}

/// Shows the limits in force on this node, and how often each refused.
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
) -> Answer<LimitsBody> {
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
    /// What is asked for, if all of it is acceptable.
    fn checked(&self) -> Result<Vec<(Adjustable, NonZeroU32)>, ApiError> {
        let asked = [
            (Adjustable::Messages, self.messages_per_minute),
            (Adjustable::StateRequests, self.state_requests_per_minute),
            (Adjustable::Logins, self.logins_per_minute),
        ];
        let given = asked
            .into_iter()
            .filter_map(|(limit, value)| Some((limit, value?)));
        let check = |(limit, value): (Adjustable, u32)| {
            let good = NonZeroU32::new(value).filter(|value| value.get() <= MOST);
            good.map(|value| (limit, value)).ok_or_else(|| {
                let name = limit.name();
                ApiError::invalid(format!("`{name}` is a number from 1 to {MOST}."))
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

/// Changes limits of this node until it restarts. What was admitted before counts on.
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
) -> Result<Answer<LimitsBody>, ApiError> {
    let changes = changes.checked()?;
    // First the row, then the change: one that nobody can look up does not happen.
    let told: Vec<String> = changes
        .iter()
        .map(|(limit, value)| format!("{}={value}", limit.name()))
        .collect();
    let by = state.auth.by(&caller.principal, caller.address);
    let act = by.did(Action::LimitsChanged, told.join(" "));
    state.store.record(&act).await?;
    for (limit, value) in changes {
        state.limits.change(limit, value);
    }
    tracing::info!(
        limits = act.target,
        "limits were changed until the next start"
    );
    Ok(in_force(&state))
}
