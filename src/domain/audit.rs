//! Who did what: the row that every change leaves in the audit log.

use std::net::IpAddr;

use jiff::Timestamp;

use super::account::{Principal, Username};
use super::id::UserId;

/// The one who acts.
#[derive(Clone, Debug)]
pub enum Actor {
    /// An authenticated user.
    User(UserId, Username),
    /// Somebody who has not proved who they are, under the name they gave.
    Anonymous(String),
    /// Whoever runs commands on the gateway's machine.
    Operator,
    /// The gateway itself.
    Gateway,
}

impl Actor {
    /// The id, where there is an account behind it.
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

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Somebody logged in.
    LoginSucceeded,
    /// Somebody tried to log in and failed.
    LoginFailed,
    /// A login ended because its owner said so.
    LoggedOut,
    /// A login was ended from another one.
    LoginRevoked,
    /// A refresh token was used twice, and its login ended.
    RefreshReused,
    /// The first administrator was made.
    SetUp,
    /// An account was made.
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
    /// A token was made on the command line.
    TokenCreated,
    /// The signing key was replaced.
    KeyRotated,
    /// A session was ended for good.
    SessionEnded,
    /// A session that nobody had used for long was removed with everything in it.
    SessionExpired,
    /// Somebody was let into a session.
    SessionShared,
    /// Somebody was shut out of a session again.
    SessionUnshared,
    /// A notice was sent to everybody.
    NoticeSent,
    /// A socket was closed by an administrator.
    Disconnected,
    /// An agent was started to see whether it works.
    AgentTested,
    /// Limits were changed until the next start.
    LimitsChanged,
    /// A question of an agent was decided, by a human or by a rule.
    QuestionAnswered,
    /// A backup was put in place of what was there.
    Restored,
    /// Everything was moved to another database.
    Moved,
    /// Journals got a new epoch.
    EpochsRenewed,
    /// Uploaded files were said to belong to the database.
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
            Self::Restored => "data.restored",
            Self::Moved => "data.moved",
            Self::EpochsRenewed => "data.epochs_renewed",
            Self::FilesAdopted => "data.files_adopted",
        }
    }
}

/// Who acts, from where and when: the first half of an [`Act`].
#[derive(Clone, Debug)]
pub struct By {
    /// Who.
    pub actor: Actor,
    /// From where, if over the network.
    pub address: Option<IpAddr>,
    /// When.
    pub at: Timestamp,
}

impl By {
    /// Whoever runs commands on the gateway's machine.
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

    /// The row for what was done.
    pub fn did(self, action: Action, target: impl Into<String>) -> Act {
        Act {
            by: self,
            action,
            target: target.into(),
        }
    }
}

/// One row of the audit log, written in the transaction of the change it tells of.
#[derive(Clone, Debug)]
pub struct Act {
    /// Who, from where and when.
    pub by: By,
    /// What.
    pub action: Action,
    /// To whom or what: an id or a name.
    pub target: String,
}
