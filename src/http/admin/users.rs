//! `/api/admin/users`: accounts and their invites.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::IssuedLink;
use crate::domain::account::{Role, User, Username};
use crate::domain::id::UserId;
use crate::http::AppState;
use crate::http::caller::Administrator;
use crate::http::error::{ApiError, Problem};
use crate::http::extract::{Json, PathParam, Query};
use crate::http::page_token::next_token;

const DEFAULT_PAGE: u32 = 100;
const MAX_PAGE: u32 = 1000;

/// An account, as administrators see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct AccountBody {
    #[schema(value_type = String)]
    id: UserId,
    #[schema(value_type = String)]
    username: Username,
    #[schema(value_type = String, example = "member")]
    role: Role,
    disabled: bool,
    /// Whether the invite is not accepted yet.
    invited: bool,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<User> for AccountBody {
    fn from(user: User) -> Self {
        Self {
            id: user.id,
            username: user.username,
            role: user.role,
            disabled: user.disabled,
            invited: user.invited,
            created_at: user.created_at,
        }
    }
}

/// A one-time link with which the user sets a password.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct InviteBody {
    /// The link, for that user only.
    url: String,
    /// When it expires.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
}

impl InviteBody {
    fn new(state: &AppState, invitation: &IssuedLink) -> Self {
        Self {
            url: state.urls.invite(invitation.secret.expose()),
            expires_at: invitation.expires_at,
        }
    }
}

/// Which accounts to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct UsersQuery {
    /// `next` of the page before: a name.
    #[param(value_type = Option<String>)]
    after: Option<Username>,
    /// Maximum number of accounts, at most 1000.
    limit: Option<u32>,
}

/// Accounts by name.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct AccountsBody {
    users: Vec<AccountBody>,
    /// `after` of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Lists accounts.
#[utoipa::path(
    get, path = "/api/admin/users", tag = "admin", security(("bearer" = [])), params(UsersQuery),
    responses(
        (status = 200, description = "Accounts by name", body = AccountsBody),
        (status = 403, description = "FORBIDDEN", body = Problem)
    )
)]
pub(in crate::http) async fn list(
    State(state): State<AppState>,
    _: Administrator,
    Query(query): Query<UsersQuery>,
) -> Result<Json<AccountsBody>, ApiError> {
    let limit = query.limit.unwrap_or(DEFAULT_PAGE).clamp(1, MAX_PAGE);
    let after = query.after.as_ref().map(Username::as_str);
    let users = state.auth.users(after, limit).await?;
    let next = next_token(&users, limit, |user| user.username.to_string());
    let users = users.into_iter().map(AccountBody::from).collect();
    Ok(Json(AccountsBody { users, next }))
}

/// The account to create.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewAccount {
    #[schema(value_type = String)]
    username: Username,
    #[serde(default = "member")]
    #[schema(value_type = Option<String>, example = "member")]
    role: Role,
    /// Without a password, the response has an invite link.
    #[schema(format = Password)]
    password: Option<String>,
}

fn member() -> Role {
    Role::Member
}

/// The created account.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct CreatedBody {
    user: AccountBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    invite: Option<InviteBody>,
}

/// Creates an account.
#[utoipa::path(
    post, path = "/api/admin/users", tag = "admin", security(("bearer" = [])), request_body = NewAccount,
    responses(
        (status = 201, description = "Created", body = CreatedBody),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 409, description = "VALIDATION_ERROR: the name is taken", body = Problem),
        (status = 422, description = "VALIDATION_ERROR", body = Problem)
    )
)]
pub(in crate::http) async fn create(
    State(state): State<AppState>,
    Administrator(caller): Administrator,
    Json(new): Json<NewAccount>,
) -> Result<Response, ApiError> {
    let by = state.auth.audit_context(&caller.principal, caller.address);
    let user = state
        .auth
        .create_user(new.username, new.role, new.password.as_deref(), by.clone())
        .await?;
    let invite = if user.invited {
        Some(InviteBody::new(
            &state,
            &state.auth.invite(&user, by).await?,
        ))
    } else {
        None
    };
    let user = AccountBody::from(user);
    Ok((StatusCode::CREATED, Json(CreatedBody { user, invite })).into_response())
}

/// Shows an account.
#[utoipa::path(
    get, path = "/api/admin/users/{id}", tag = "admin", security(("bearer" = [])),
    params(("id" = String, Path, description = "The account")),
    responses(
        (status = 200, description = "The account", body = AccountBody),
        (status = 404, description = "NOT_FOUND", body = Problem)
    )
)]
pub(in crate::http) async fn show(
    State(state): State<AppState>,
    _: Administrator,
    PathParam(id): PathParam<UserId>,
) -> Result<Json<AccountBody>, ApiError> {
    Ok(Json(state.auth.user(id).await?.into()))
}

/// The changes to an account.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Changes {
    #[schema(value_type = Option<String>, example = "admin")]
    role: Option<Role>,
    /// True ends the access of the user at once, on every device.
    disabled: Option<bool>,
}

/// Changes the role of an account, or disables or enables it.
#[utoipa::path(
    patch, path = "/api/admin/users/{id}", tag = "admin", security(("bearer" = [])), request_body = Changes,
    params(("id" = String, Path, description = "The account")),
    responses(
        (status = 200, description = "The account as it is now", body = AccountBody),
        (status = 404, description = "NOT_FOUND", body = Problem),
        (status = 409, description = "VALIDATION_ERROR: the last administrator", body = Problem)
    )
)]
pub(in crate::http) async fn change(
    State(state): State<AppState>,
    Administrator(caller): Administrator,
    PathParam(id): PathParam<UserId>,
    Json(changes): Json<Changes>,
) -> Result<Json<AccountBody>, ApiError> {
    let user = state.auth.user(id).await?;
    let by = state.auth.audit_context(&caller.principal, caller.address);
    if let Some(role) = changes.role.filter(|role| *role != user.role) {
        state.auth.set_role(&user, role, by.clone()).await?;
    }
    match changes
        .disabled
        .filter(|disabled| *disabled != user.disabled)
    {
        Some(true) => state.auth.disable(&user, by).await?,
        Some(false) => state.auth.enable(&user, by).await?,
        None => {}
    }
    Ok(Json(state.auth.user(user.id).await?.into()))
}

/// Removes an account and everything it owns.
#[utoipa::path(
    delete, path = "/api/admin/users/{id}", tag = "admin", security(("bearer" = [])),
    params(("id" = String, Path, description = "The account")),
    responses(
        (status = 204, description = "Removed"),
        (status = 404, description = "NOT_FOUND", body = Problem),
        (status = 409, description = "VALIDATION_ERROR: the last administrator", body = Problem)
    )
)]
pub(in crate::http) async fn remove(
    State(state): State<AppState>,
    Administrator(caller): Administrator,
    PathParam(id): PathParam<UserId>,
) -> Result<StatusCode, ApiError> {
    let user = state.auth.user(id).await?;
    let by = state.auth.audit_context(&caller.principal, caller.address);
    state.auth.remove(&user, by).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Creates a link with which the user sets a new password; earlier links stop working.
#[utoipa::path(
    post, path = "/api/admin/users/{id}/invite", tag = "admin", security(("bearer" = [])),
    params(("id" = String, Path, description = "The account")),
    responses(
        (status = 200, description = "The link", body = InviteBody),
        (status = 404, description = "NOT_FOUND", body = Problem)
    )
)]
pub(in crate::http) async fn invite(
    State(state): State<AppState>,
    Administrator(caller): Administrator,
    PathParam(id): PathParam<UserId>,
) -> Result<Json<InviteBody>, ApiError> {
    let user = state.auth.user(id).await?;
    let by = state.auth.audit_context(&caller.principal, caller.address);
    let invitation = state.auth.invite(&user, by).await?;
    Ok(Json(InviteBody::new(&state, &invitation)))
}
