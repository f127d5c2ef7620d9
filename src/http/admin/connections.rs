//! `/api/admin/connections`: lists the connections of this node and closes one.

use std::net::IpAddr;

use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::domain::account::Username;
use crate::domain::audit::Action;
use crate::domain::id::{ConnectionId, SessionId, UserId};
use crate::http::AppState;
use crate::http::caller::Administrator;
use crate::http::error::{ApiError, Problem};
use crate::http::extract::{Json, PathParam, Query};
use crate::session::ConnectionInfo;

const MAX_PAGE: usize = 1_000;

/// A connection, without its messages.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ConnectionBody {
    #[schema(value_type = String)]
    id: ConnectionId,
    #[schema(value_type = String)]
    session_id: SessionId,
    #[schema(value_type = String)]
    user_id: UserId,
    #[schema(value_type = String)]
    username: Username,
    #[schema(value_type = String)]
    address: IpAddr,
    #[schema(value_type = String, format = DateTime)]
    since: Timestamp,
}

impl From<ConnectionInfo> for ConnectionBody {
    fn from(member: ConnectionInfo) -> Self {
        Self {
            id: member.connection,
            session_id: member.session,
            user_id: member.user,
            username: member.username,
            address: member.address,
            since: member.since,
        }
    }
}

/// Which connections to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct ConnectionsQuery {
    /// Of this user, by name or id.
    user: Option<String>,
    /// In this session.
    #[param(value_type = Option<String>)]
    session: Option<SessionId>,
    /// `next` of the page before.
    #[param(value_type = Option<String>)]
    after: Option<ConnectionId>,
    /// Maximum number of connections, at most 1000.
    limit: Option<usize>,
}

impl ConnectionsQuery {
    fn includes(&self, member: &ConnectionInfo) -> bool {
        let of_user =
            |user: &String| *user == member.user.to_string() || user == member.username.as_str();
        self.after.is_none_or(|after| member.connection > after)
            && self.session.is_none_or(|session| session == member.session)
            && self.user.as_ref().is_none_or(of_user)
    }
}

/// The connections of this node, oldest first.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ConnectionsBody {
    connections: Vec<ConnectionBody>,
    /// `after` of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    next: Option<ConnectionId>,
}

/// Lists the connections of this node.
#[utoipa::path(
    get, path = "/api/admin/connections", tag = "admin", security(("bearer" = [])), params(ConnectionsQuery),
    responses(
        (status = 200, description = "The connections", body = ConnectionsBody),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 422, description = "VALIDATION_ERROR", body = Problem)
    )
)]
pub(in crate::http) async fn list(
    State(state): State<AppState>,
    _: Administrator,
    Query(query): Query<ConnectionsQuery>,
) -> Json<ConnectionsBody> {
    let limit = query.limit.unwrap_or(MAX_PAGE).clamp(1, MAX_PAGE);
    let mut members = state.sessions.members().list();
    members.retain(|member| query.includes(member));
    let more = members.len() > limit;
    members.truncate(limit);
    let next = members
        .last()
        .filter(|_| more)
        .map(|member| member.connection);
    let connections = members.into_iter().map(ConnectionBody::from).collect();
    Json(ConnectionsBody { connections, next })
}

/// Closes a connection; its client may reconnect.
#[utoipa::path(
    delete, path = "/api/admin/connections/{id}", tag = "admin", security(("bearer" = [])),
    params(("id" = String, Path, description = "The connection")),
    responses(
        (status = 204, description = "Asked to close"),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 404, description = "NOT_FOUND", body = Problem)
    )
)]
pub(in crate::http) async fn disconnect(
    State(state): State<AppState>,
    Administrator(caller): Administrator,
    PathParam(id): PathParam<ConnectionId>,
) -> Result<StatusCode, ApiError> {
    if !state.sessions.members().contains(id) {
        return Err(ApiError::not_found("There is no such connection."));
    }
    // Record first: no connection is closed without an entry in the audit log.
    let by = state.auth.audit_context(&caller.principal, caller.address);
    let record = by.did(Action::Disconnected, id.to_string());
    state.store.record(&record).await?;
    state.sessions.members().request_close(id);
    Ok(StatusCode::NO_CONTENT)
}
