//! `/api/admin/connections`: who is connected, and sending somebody away.

use std::net::IpAddr;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::AppState;
use super::caller::Administrator;
use super::error::{ApiError, Problem};
use super::extract::{Named, Query};
use crate::domain::account::Username;
use crate::domain::act::Action;
use crate::domain::id::{ConnectionId, SessionId, UserId};
use crate::session::Member;

const PAGE: usize = 1_000;

/// A connection, without anything of what is said over it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConnectionBody {
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

impl From<Member> for ConnectionBody {
    fn from(member: Member) -> Self {
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
pub(super) struct Which {
    /// Of this user, by name or id.
    user: Option<String>,
    /// In this session.
    #[param(value_type = Option<String>)]
    session: Option<SessionId>,
    /// What the page before gave as `next`.
    #[param(value_type = Option<String>)]
    after: Option<ConnectionId>,
    /// How many, at most 1000.
    limit: Option<usize>,
}

impl Which {
    fn includes(&self, member: &Member) -> bool {
        let of_user =
            |user: &String| *user == member.user.to_string() || user == member.username.as_str();
        self.after.is_none_or(|after| member.connection > after)
            && self.session.is_none_or(|session| session == member.session)
            && self.user.as_ref().is_none_or(of_user)
    }
}

/// Everybody who is connected to this node, those who came first before the others.
#[derive(Serialize, ToSchema)]
pub(super) struct ConnectionsBody {
    connections: Vec<ConnectionBody>,
    /// What to ask for next as `after`; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    next: Option<ConnectionId>,
}

/// Lists the sockets of this node.
#[utoipa::path(
    get, path = "/api/admin/connections", tag = "admin", security(("bearer" = [])), params(Which),
    responses(
        (status = 200, description = "The sockets", body = ConnectionsBody),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 422, description = "VALIDATION_ERROR", body = Problem)
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    _: Administrator,
    Query(which): Query<Which>,
) -> Answer<ConnectionsBody> {
    let limit = which.limit.unwrap_or(PAGE).clamp(1, PAGE);
    let mut members = state.sessions.members().list();
    members.retain(|member| which.includes(member));
    let more = members.len() > limit;
    members.truncate(limit);
    let next = members
        .last()
        .filter(|_| more)
        .map(|member| member.connection);
    let connections = members.into_iter().map(ConnectionBody::from).collect();
    Answer(ConnectionsBody { connections, next })
}

/// Closes a socket; its client may come back.
#[utoipa::path(
    delete, path = "/api/admin/connections/{id}", tag = "admin", security(("bearer" = [])),
    params(("id" = String, Path, description = "The connection")),
    responses(
        (status = 204, description = "Asked to leave"),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 404, description = "NOT_FOUND", body = Problem)
    )
)]
pub(super) async fn disconnect(
    State(state): State<AppState>,
    Administrator(caller): Administrator,
    Named(id): Named<ConnectionId>,
) -> Result<StatusCode, ApiError> {
    if !state.sessions.members().contains(id) {
        return Err(ApiError::not_found("There is no such connection."));
    }
    // First the row: nobody is sent away without one.
    let by = state.auth.by(&caller.principal, caller.address);
    let act = by.did(Action::Disconnected, id.to_string());
    state.store.record(&act).await?;
    state.sessions.members().ask_to_leave(id);
    Ok(StatusCode::NO_CONTENT)
}
