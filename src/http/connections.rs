//! `/api/admin/connections`: who is connected, and sending somebody away.

use std::net::IpAddr;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::AppState;
use super::caller::Administrator;
use super::error::{ApiError, Problem};
use super::extract::Named;
use crate::domain::account::Username;
use crate::domain::act::Action;
use crate::domain::id::{ConnectionId, SessionId, UserId};
use crate::session::Member;

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

/// Everybody who is connected to this node.
#[derive(Serialize, ToSchema)]
pub(super) struct ConnectionsBody {
    connections: Vec<ConnectionBody>,
}

/// Lists the sockets of this node.
#[utoipa::path(
    get, path = "/api/admin/connections", tag = "admin", security(("bearer" = [])),
    responses(
        (status = 200, description = "The sockets", body = ConnectionsBody),
        (status = 403, description = "FORBIDDEN", body = Problem)
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    _: Administrator,
) -> Answer<ConnectionsBody> {
    let members = state.sessions.members().list();
    let connections = members.into_iter().map(ConnectionBody::from).collect();
    Answer(ConnectionsBody { connections })
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
    let by = state.auth.by(&caller.principal, caller.address);
    if !state.sessions.members().ask_to_leave(id) {
        return Err(ApiError::not_found("There is no such connection."));
    }
    let act = by.did(Action::Disconnected, id.to_string());
    state.store.record(&act).await?;
    Ok(StatusCode::NO_CONTENT)
}
