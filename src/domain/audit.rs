//! Audit entry: who did what to which target, written with every change.

use std::net::IpAddr;

use jiff::Timestamp;

use super::account::{Principal, Username};
use super::id::UserId;

/// The acting user, operator or gateway.
#[derive(Clone, Debug)]
pub enum Actor {
    /// An authenticated user.
    User(UserId, Username),
    /// An unauthenticated client, with the name it gave.
    Anonymous(String),
    /// The operator, on the gateway's machine.
    Operator,
    /// The gateway itself.
    Gateway,
}

impl Actor {
    /// The user id, if it is an account.
    pub fn user(&self) -> Option<UserId> {
        match self {
            Self::User(id, _) => Some(*id),
            _ => None,
        }
    }

    /// The name in the audit log.
    pub fn name(&self) -> &str {
        match self {
            Self::User(_, name) => name.as_str(),
            Self::Anonymous(name) => name,
            Self::Operator => "(operator)",
            Self::Gateway => "(gateway)",
        }
    }
}

impl From<&Principal> for Actor {
    fn from(principal: &Principal) -> Self {
        Self::User(principal.user, principal.username.clone())
    }
}

/// An audited action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A login started.
    LoginSucceeded,
    /// A login failed.
    LoginFailed,
    /// A user logged out.
    LoggedOut,
    /// A user ended another of their logins.
    LoginRevoked,
    /// A refresh token was used twice; its login ended.
    RefreshReused,
    /// The first administrator was created.
    SetUp,
    /// An account was created.
    UserCreated,
    /// An invitation or a password link was issued.
    LinkIssued,
    /// An invitation or a password link was used.
    LinkAccepted,
    /// A password was changed.
    PasswordChanged,
    /// A role was changed.
    RoleChanged,
    /// An account was disabled.
    UserDisabled,
    /// An account was enabled.
    UserEnabled,
    /// An account was removed.
    UserRemoved,
    /// A token was created on the command line.
    TokenCreated,
    /// The signing key was replaced.
    KeyRotated,
    /// A session was ended.
    SessionEnded,
    /// An unused session was removed with everything in it.
    SessionExpired,
    /// A session was shared with a user.
    SessionShared,
    /// A grant was revoked.
    SessionUnshared,
    /// A notice was sent to all connections.
    NoticeSent,
    /// An administrator closed a connection.
    Disconnected,
    /// An agent was started as a test.
    AgentTested,
    /// Limits were changed until the next start.
    LimitsChanged,
    /// An agent's question was answered, by a user or by a rule.
    QuestionAnswered,
    /// The gateway cancelled a run, or removed it from the queue, because its sender lost the right.
    RunCancelled,
    /// A backup was restored.
    Restored,
    /// All data was moved to another database.
    Moved,
    /// All journals got a new epoch.
    EpochsRenewed,
    /// Uploaded files were adopted by the database.
    FilesAdopted,
}

impl Action {
    /// The name in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LoginSucceeded => "login.succeeded",
            Self::LoginFailed => "login.failed",
            Self::LoggedOut => "login.ended",
            Self::LoginRevoked => "login.revoked",
            Self::RefreshReused => "login.refresh_reused",
            Self::SetUp => "gateway.set_up",
            Self::UserCreated => "user.created",
            Self::LinkIssued => "link.issued",
            Self::LinkAccepted => "link.accepted",
            Self::PasswordChanged => "user.password_changed",
            Self::RoleChanged => "user.role_changed",
            Self::UserDisabled => "user.disabled",
            Self::UserEnabled => "user.enabled",
            Self::UserRemoved => "user.removed",
            Self::TokenCreated => "token.created",
            Self::KeyRotated => "key.rotated",
            Self::SessionEnded => "session.ended",
            Self::SessionExpired => "session.expired",
            Self::SessionShared => "session.shared",
            Self::SessionUnshared => "session.unshared",
            Self::NoticeSent => "notice.sent",
            Self::Disconnected => "connection.closed",
            Self::AgentTested => "agent.tested",
            Self::LimitsChanged => "limits.changed",
            Self::QuestionAnswered => "question.answered",
            Self::RunCancelled => "run.cancelled",
            Self::Restored => "data.restored",
            Self::Moved => "data.moved",
            Self::EpochsRenewed => "data.epochs_renewed",
            Self::FilesAdopted => "data.files_adopted",
        }
    }
}

/// Actor, address and time of an [`AuditEntry`].
#[derive(Clone, Debug)]
pub struct AuditContext {
    /// Who.
    pub actor: Actor,
    /// From where, if over the network.
    pub address: Option<IpAddr>,
    /// When.
    pub at: Timestamp,
}

impl AuditContext {
    /// The operator, on the gateway's machine.
    pub fn operator(at: Timestamp) -> Self {
        Self {
            actor: Actor::Operator,
            address: None,
            at,
        }
    }

    /// The gateway itself.
    pub fn gateway(at: Timestamp) -> Self {
        Self {
            actor: Actor::Gateway,
            address: None,
            at,
        }
    }

    /// The entry for an action by this actor.
    pub fn did(self, action: Action, target: impl Into<String>) -> AuditEntry {
        AuditEntry {
            context: self,
            action,
            target: target.into(),
        }
    }
}

/// An audit entry, written in the transaction of the change it describes.
#[derive(Clone, Debug)]
pub struct AuditEntry {
    /// Who, from where and when.
    pub context: AuditContext,
    /// The action.
    pub action: Action,
    /// Id or name acted upon.
    pub target: String,
}
