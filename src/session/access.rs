//! Access: who may do what in a session. Pure; the only place that decides it.

use crate::domain::account::Principal;
use crate::domain::grant::GrantRole;
use crate::domain::id::{SessionId, UserId};
use crate::store::SessionRow;

/// Access to a session; each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    /// Read.
    Viewer,
    /// Also prompt, answer, cancel and change settings.
    Editor,
    /// Also end and share it.
    Owner,
}

impl Access {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Owner => "owner",
        }
    }
}

impl From<GrantRole> for Access {
    fn from(role: GrantRole) -> Self {
        match role {
            GrantRole::Viewer => Self::Viewer,
            GrantRole::Editor => Self::Editor,
        }
    }
}

/// A principal's access; with `None` they may not even learn that the session exists. A token bound to
/// a session is good for no other.
pub(crate) fn access(
    principal: &Principal,
    session: SessionId,
    owner: UserId,
    granted: Option<GrantRole>,
) -> Option<Access> {
    let bound_elsewhere = principal.session.is_some_and(|bound| bound != session);
    access_of(principal.user, owner, granted).filter(|_| !bound_elsewhere)
}

/// A user's access, whatever token they hold.
pub(crate) fn access_of(user: UserId, owner: UserId, granted: Option<GrantRole>) -> Option<Access> {
    if user == owner {
        Some(Access::Owner)
    } else {
        granted.map(Access::from)
    }
}

/// True if the user may join the session; `row` was looked up for them.
pub(crate) fn may_join(user: UserId, row: &SessionRow) -> bool {
    row.ended_at.is_none() && access_of(user, row.owner, row.granted).is_some()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::account::Role;
    use crate::domain::id::LoginId;

    fn principal(session: Option<SessionId>) -> Principal {
        Principal {
            user: UserId::new(),
            username: "mia".parse().unwrap(),
            role: Role::Admin,
            login: LoginId::new(),
            generation: 1,
            session,
            expires_at: Timestamp::MAX,
        }
    }

    #[test]
    fn each_level_includes_the_ones_before_it() {
        assert!(Access::Viewer < Access::Editor && Access::Editor < Access::Owner);
    }

    #[test]
    fn without_a_grant_there_is_no_access_whatever_the_role() {
        let (mia, id) = (principal(None), SessionId::new());
        assert_eq!(access(&mia, id, UserId::new(), None), None);
        let granted = Some(GrantRole::Viewer);
        assert_eq!(
            access(&mia, id, UserId::new(), granted),
            Some(Access::Viewer)
        );
        assert_eq!(access(&mia, id, mia.user, granted), Some(Access::Owner));
    }

    #[test]
    fn a_bound_token_is_good_for_its_session_only() {
        let id = SessionId::new();
        let (here, elsewhere) = (principal(Some(id)), principal(Some(SessionId::new())));
        let granted = Some(GrantRole::Editor);
        assert_eq!(
            access(&here, id, UserId::new(), granted),
            Some(Access::Editor)
        );
        assert_eq!(access(&elsewhere, id, UserId::new(), granted), None);
        assert_eq!(access(&elsewhere, id, elsewhere.user, None), None);
    }
}
