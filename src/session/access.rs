//! Who may do what in a session. Pure; the only place that decides it.

use crate::domain::account::Principal;
use crate::domain::id::{SessionId, UserId};

/// What somebody may do in a session; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    /// Everything, also ending it and deciding who else may come.
    Owner,
}

/// What a principal may do in a session; `None` if nothing, not even know of it.
pub(crate) fn access(principal: &Principal, session: SessionId, owner: UserId) -> Option<Access> {
    let bound_elsewhere = principal.session.is_some_and(|bound| bound != session);
    (owner == principal.user && !bound_elsewhere).then_some(Access::Owner)
}
