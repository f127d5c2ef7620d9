//! `/api/admin/users`: accounts, for administrators.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::AppState;
use super::caller::Administrator;
use super::error::{ApiError, Problem};
use super::extract::{Json, Named, Query};
use crate::auth::Invitation;
use crate::domain::account::{Role, User, Username};
use crate::domain::id::UserId;

const PAGE: u32 = 100;
const LARGEST_PAGE: u32 = 1000;

/// An account, as administrators see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AccountBody {
    #[schema(value_type = String)]
    id: UserId,
    #[schema(value_type = String)]
    username: Username,
    #[schema(value_type = String, example = "member")]
    role: Role,
    disabled: bool,
    /// Has not accepted the invite yet.
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

/// A link with which somebody sets a password.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct InviteBody {
    /// To be given to that person and nobody else.
    url: String,
    /// When it stops working.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
}

impl InviteBody {
    fn new(state: &AppState, invitation: &Invitation) -> Self {
        Self {
            url: state.addresses.invite(invitation.secret.expose()),
            expires_at: invitation.expires_at,
        }
    }
}

/// Which accounts to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Page {
    /// List the names after this one.
    #[param(value_type = Option<String>)]
    after: Option<Username>,
    /// How many, at most 1000.
    limit: Option<u32>,
}

/// Accounts by name.
#[derive(Serialize, ToSchema)]
pub(super) struct AccountsBody {
    users: Vec<AccountBody>,
    /// What to ask for next as `after`; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Lists accounts.
#[utoipa::path(
    get, path = "/api/admin/users", tag = "admin", security(("bearer" = [])), params(Page),
    responses(
        (status = 200, description = "Accounts by name", body = AccountsBody),
        (status = 403, description = "FORBIDDEN", body = Problem)
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    _: Administrator,
    Query(page): Query<Page>,
) -> Result<Answer<AccountsBody>, ApiError> {
    let limit = page.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    let after = page.after.as_ref().map(Username::as_str);
    let users = state.auth.users(after, limit).await?;
    let full = users.len() == limit as usize;
    let next = users
        .last()
        .filter(|_| full)
        .map(|user| user.username.to_string());
    let users = users.into_iter().map(AccountBody::from).collect();
    Ok(Answer(AccountsBody { users, next }))
}

/// An account to be made.
#[derive(Deserialize, ToSchema)]
pub(super) struct NewAccount {
    #[schema(value_type = String)]
    username: Username,
    #[serde(default = "member")]
    #[schema(value_type = Option<String>, example = "member")]
    role: Role,
    /// Without one, the answer has an invite link.
    #[schema(format = Password)]
    password: Option<String>,
}

fn member() -> Role {
    Role::Member
}

/// An account that was made.
#[derive(Serialize, ToSchema)]
pub(super) struct CreatedBody {
    user: AccountBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    invite: Option<InviteBody>,
}

/// Makes an account.
#[utoipa::path(
    post, path = "/api/admin/users", tag = "admin", security(("bearer" = [])), request_body = NewAccount,
    responses(
        (status = 201, description = "Made", body = CreatedBody),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 409, description = "VALIDATION_ERROR: the name is taken", body = Problem),
        (status = 422, description = "VALIDATION_ERROR", body = Problem)
    )
)]
pub(super) async fn create(
    State(state): State<AppState>,
    Administrator(caller): Administrator,
    Json(new): Json<NewAccount>,
) -> Result<Response, ApiError> {
    let by = state.auth.by(&caller.principal, caller.address);
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
    Ok((StatusCode::CREATED, Answer(CreatedBody { user, invite })).into_response())
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
pub(super) async fn show(
    State(state): State<AppState>,
    _: Administrator,
    Named(id): Named<UserId>,
) -> Result<Answer<AccountBody>, ApiError> {
    Ok(Answer(state.auth.user(id).await?.into()))
}

/// What to change about an account.
#[derive(Deserialize, ToSchema)]
pub(super) struct Changes {
    #[schema(value_type = Option<String>, example = "admin")]
    role: Option<Role>,
    /// True shuts the user out at once, on every device.
    disabled: Option<bool>,
}

/// Changes the role of an account, disables or enables it.
#[utoipa::path(
    patch, path = "/api/admin/users/{id}", tag = "admin", security(("bearer" = [])), request_body = Changes,
    params(("id" = String, Path, description = "The account")),
    responses(
        (status = 200, description = "The account as it is now", body = AccountBody),
        (status = 404, description = "NOT_FOUND", body = Problem),
        (status = 409, description = "VALIDATION_ERROR: the last administrator", body = Problem)
    )
)]
pub(super) async fn change(
    State(state): State<AppState>,
    Administrator(caller): Administrator,
    Named(id): Named<UserId>,
    Json(changes): Json<Changes>,
) -> Result<Answer<AccountBody>, ApiError> {
    let user = state.auth.user(id).await?;
    let by = state.auth.by(&caller.principal, caller.address);
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
    Ok(Answer(state.auth.user(user.id).await?.into()))
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
pub(super) async fn remove(
    State(state): State<AppState>,
    Administrator(caller): Administrator,
    Named(id): Named<UserId>,
) -> Result<StatusCode, ApiError> {
    let user = state.auth.user(id).await?;
    let by = state.auth.by(&caller.principal, caller.address);
    state.auth.remove(&user, by).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes a link with which the user sets a (new) password; earlier links stop working.
#[utoipa::path(
    post, path = "/api/admin/users/{id}/invite", tag = "admin", security(("bearer" = [])),
    params(("id" = String, Path, description = "The account")),
    responses(
        (status = 200, description = "The link", body = InviteBody),
        (status = 404, description = "NOT_FOUND", body = Problem)
    )
)]
pub(super) async fn invite(
    State(state): State<AppState>,
    Administrator(caller): Administrator,
    Named(id): Named<UserId>,
) -> Result<Answer<InviteBody>, ApiError> {
    let user = state.auth.user(id).await?;
    let by = state.auth.by(&caller.principal, caller.address);
    let invitation = state.auth.invite(&user, by).await?;
    Ok(Answer(InviteBody::new(&state, &invitation)))
}
