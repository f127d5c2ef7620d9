//! Rights: what a member may see and do, checked when a frame comes, when it takes effect, and while
//! the connection is open.

use std::time::Duration;

use tokio::time::Instant;

use super::close_reason::{Close, CloseReason};
use super::frame_handler::FrameHandler;
use super::take_control::has_control;
use crate::auth::Auth;
use crate::domain::account::Principal;
use crate::domain::command::{AgentRequest, Command};
use crate::domain::error_code::ErrorCode;
use crate::domain::id::ConnectionId;
use crate::domain::shared_text::Text;
use crate::session::{Access, ControlError, Refused, Session, StartPolicy};
use crate::wire::inbound::{Inbound, Request};
use crate::wire::outbound;

/// How long before its token expires a client is warned.
const EXPIRY_WARNING: Duration = Duration::from_mins(1);

pub(super) struct Rights {
    pub(super) principal: Principal,
    /// Monotonic: a step of the wall clock does not move it.
    expires: Instant,
    has_warned: bool,
    /// A frame was withheld for lack of access. The client misses it, so the connection ends even if
    /// access returns.
    has_withheld: bool,
}

impl Rights {
    pub(super) fn new(handler: &FrameHandler, principal: Principal) -> Self {
        Self {
            expires: expiry(handler, &principal),
            principal,
            has_warned: false,
            has_withheld: false,
        }
    }

    pub(super) fn renew(&mut self, handler: &FrameHandler, principal: Principal) {
        self.expires = expiry(handler, &principal);
        self.principal = principal;
        self.has_warned = false;
    }

    /// Goes before every other reason to close: the sessions of a removed user end as well, and their
    /// page should say why.
    pub(super) fn close_if_logged_out(&self, handler: &FrameHandler) -> Result<(), Close> {
        if handler.shared.auth.is_valid(&self.principal) {
            Ok(())
        } else {
            Err(Close::unauthenticated(handler, ErrorCode::AuthFailed))
        }
    }

    pub(super) fn close_if_revoked(&self, handler: &FrameHandler) -> Result<(), Close> {
        if !self.has_withheld && handler.session.access(&self.principal).is_some() {
            return Ok(());
        }
        self.close_if_logged_out(handler)?;
        // The grants could not be read: they are read again when the client comes back.
        if !handler.session.presence().has_grants() {
            return Err(CloseReason::RESTART.into());
        }
        let message = "Your access to this session was taken away.";
        let reason = CloseReason::ACCESS_REVOKED;
        Err(Close::with_error(
            handler,
            ErrorCode::Forbidden,
            message,
            reason,
        ))
    }

    /// True if access is gone. Called after every wait whose result is then sent: a result is not for
    /// a user who lost access during the wait.
    pub(super) fn withhold(&mut self, handler: &FrameHandler) -> bool {
        self.has_withheld |= handler.session.access(&self.principal).is_none();
        self.has_withheld
    }

    /// When [`Rights::check_expiry`] is due next.
    pub(super) fn due(&self) -> Instant {
        if self.has_warned {
            return self.expires;
        }
        let warning = self.expires.checked_sub(EXPIRY_WARNING);
        warning.unwrap_or(self.expires)
    }

    /// The warning, once, shortly before the token expires.
    pub(super) fn check_expiry(
        &mut self,
        handler: &FrameHandler,
        now: Instant,
    ) -> Result<Option<Text>, Close> {
        if self.expires <= now {
            return Err(Close::unauthenticated(handler, ErrorCode::SessionExpired));
        }
        if self.has_warned || self.due() > now {
            return Ok(None);
        }
        self.has_warned = true;
        let (expires_at, wall) = (self.principal.expires_at, handler.shared.clock.wall());
        let warning = outbound::token_expiring(handler.session.id(), expires_at, wall);
        Ok(Some(warning))
    }
}

fn expiry(handler: &FrameHandler, principal: &Principal) -> Instant {
    let left = principal
        .expires_at
        .duration_since(handler.shared.clock.wall());
    Instant::now() + left.try_into().unwrap_or(Duration::ZERO)
}

/// The access that a request needs. Every request that may change something is for editors.
fn needed_access(request: &Request) -> Access {
    match request {
        Request::State { .. }
        | Request::Heartbeat
        | Request::RefreshAuth { .. }
        | Request::AgentRequest(AgentRequest::Query { .. }) => Access::Viewer,
        Request::Command(_)
        | Request::AgentRequest(AgentRequest::Extension { .. })
        | Request::TakeControl { .. }
        | Request::ReleaseControl => Access::Editor,
        Request::Branch { .. } => Access::Owner,
    }
}

/// Whether the sender must be the driver, in a session that has one.
#[derive(Clone, Copy)]
pub(super) enum DriverCheck {
    NotNeeded,
    /// With the fence of the sender's control, if the sender gave it.
    Needed(Option<u64>),
}

impl DriverCheck {
    /// Control is handed over by its own rules, a branch changes nothing here, and a suggestion is
    /// meant for those who do not drive.
    pub(super) fn of(request: &Request, fence: Option<u64>) -> Self {
        let is_exempt = matches!(
            request,
            Request::TakeControl { .. }
                | Request::ReleaseControl
                | Request::Branch { .. }
                | Request::Command(Command::Suggest { .. })
        );
        if is_exempt || needed_access(request) == Access::Viewer {
            Self::NotNeeded
        } else {
            Self::Needed(fence)
        }
    }
}

/// What a request needs of its sender. Checked when the frame comes and again right before the
/// command takes effect, by the same code.
pub(super) struct Permission {
    auth: Auth,
    session: Session,
    connection: ConnectionId,
    principal: Principal,
    needed: Access,
    driver: DriverCheck,
}

impl Permission {
    pub(super) fn check(&self) -> Result<(), Refused> {
        if !self.auth.is_valid(&self.principal) {
            let message = "This login has ended; log in again.";
            return Err(Refused::new(ErrorCode::AuthFailed, message));
        }
        let forbidden = |message: &str| Err(Refused::new(ErrorCode::Forbidden, message));
        match self.session.access(&self.principal) {
            None => return forbidden("You may not be in this session any more."),
            Some(access) if access < self.needed => {
                return forbidden(match self.needed {
                    Access::Owner => "Only the owner of a session may do that.",
                    _ => "You may look at this session, not change it.",
                });
            }
            Some(_) => {}
        }
        let DriverCheck::Needed(fence) = self.driver else {
            return Ok(());
        };
        match self.session.check_control(self.connection, fence) {
            Ok(()) => Ok(()),
            Err(ControlError::HeldByOther(driver)) => {
                Err(has_control(ErrorCode::Forbidden, &driver))
            }
            Err(ControlError::NotHeld) => {
                forbidden("Nobody has control of this session; send TAKE_CONTROL first.")
            }
            Err(ControlError::StaleFence) => forbidden(
                "`fence` is not the number of the present control of this session; nothing was done.",
            ),
        }
    }
}

impl FrameHandler {
    /// A viewer's query does not start an agent in the owner's name.
    pub(super) fn wake(&self, principal: &Principal) -> StartPolicy {
        match self.session.access(principal) {
            Some(Access::Owner | Access::Editor) => StartPolicy::IfNeeded,
            Some(Access::Viewer) | None => StartPolicy::Never,
        }
    }

    pub(super) fn authorise(
        &self,
        principal: &Principal,
        inbound: &Inbound,
    ) -> Result<(), Refused> {
        let request = &inbound.request;
        let driver = DriverCheck::of(request, inbound.fence);
        self.permission(principal, needed_access(request), driver)
            .check()
    }

    pub(super) fn permission(
        &self,
        principal: &Principal,
        needed: Access,
        driver: DriverCheck,
    ) -> Permission {
        Permission {
            auth: self.shared.auth.clone(),
            session: self.session.clone(),
            connection: self.connection,
            principal: principal.clone(),
            needed,
            driver,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::command::SettingsChange;

    #[test]
    fn a_viewer_may_only_read() {
        let reads = [
            Request::Heartbeat,
            Request::State {
                include_history: true,
                include_settings: true,
            },
            Request::RefreshAuth {
                token: String::new(),
            },
        ];
        assert!(
            reads
                .iter()
                .all(|read| needed_access(read) == Access::Viewer)
        );
        let changes = [
            Request::Command(Command::Cancel { run: None }),
            Request::Command(Command::UpdateSettings(SettingsChange::default())),
            Request::TakeControl { steal: true },
            Request::ReleaseControl,
        ];
        assert!(
            changes
                .iter()
                .all(|change| needed_access(change) == Access::Editor)
        );
    }
}
