//! What a message needs of its sender, and whether they have it.

use super::{Desk, Outcome, Way};
use crate::auth::Auth;
use crate::domain::account::Principal;
use crate::domain::code::Code;
use crate::domain::command::{Command, Inquiry};
use crate::domain::id::ConnectionId;
use crate::session::{Access, Asker, NotDriving, Refused, Session, Wake, Wish};
use crate::wire::inbound::{Inbound, Request};
use crate::wire::outbound::Done;

/// What somebody must be allowed to ask for this. Whatever may change something is for editors.
pub(super) fn needed(request: &Request) -> Access {
    match request {
        Request::State { .. }
        | Request::Heartbeat
        | Request::RefreshAuth { .. }
        | Request::Inquiry(Inquiry::Query { .. }) => Access::Viewer,
        Request::Command(_)
        | Request::Inquiry(Inquiry::Extension { .. })
        | Request::TakeControl { .. }
        | Request::ReleaseControl => Access::Editor,
        Request::Branch { .. } => Access::Owner,
    }
}

/// Is it for the one who drives, if there must be one? Control itself is handed over by its own rules,
/// a branch changes nothing here, and a suggestion is what the others have.
fn is_driving(request: &Request) -> bool {
    needed(request) > Access::Viewer
        && !matches!(
            request,
            Request::TakeControl { .. }
                | Request::ReleaseControl
                | Request::Branch { .. }
                | Request::Command(Command::Suggest { .. })
        )
}

/// Must its sender drive?
pub(super) fn wheel(request: &Request, fence: Option<u64>) -> Wheel {
    if is_driving(request) {
        Wheel::Theirs(fence)
    } else {
        Wheel::Free
    }
}

/// What somebody claims to be allowed. Checked when it is said, and when it takes effect.
pub(super) struct Claim {
    auth: Auth,
    session: Session,
    connection: ConnectionId,
    principal: Principal,
    needed: Access,
    wheel: Wheel,
}

/// Must somebody drive to be allowed this, in a session where one does?
#[derive(Clone, Copy)]
pub(super) enum Wheel {
    /// No.
    Free,
    /// Yes; with the number of their control, if they gave it.
    Theirs(Option<u64>),
}

impl Claim {
    pub(super) fn check(&self) -> Result<(), Refused> {
        if !self.auth.stands(&self.principal) {
            let message = "This login has ended; log in again.";
            return Err(Refused::new(Code::AuthFailed, message));
        }
        let forbidden = |message: &str| Err(Refused::new(Code::Forbidden, message));
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
        let Wheel::Theirs(fence) = self.wheel else {
            return Ok(());
        };
        match self.session.may_drive(self.connection, fence) {
            Ok(()) => Ok(()),
            Err(NotDriving::Other(who)) => {
                forbidden(&format!("{who} has control of this session."))
            }
            Err(NotDriving::Nobody) => {
                forbidden("Nobody has control of this session; send TAKE_CONTROL first.")
            }
            Err(NotDriving::Outdated) => forbidden(
                "`fence` is not the number of the present control of this session; nothing was done.",
            ),
        }
    }
}

impl Desk {
    /// Whoever only looks starts no process in the name of the owner.
    pub(super) fn wake(&self, principal: &Principal) -> Wake {
        match self.session.access(principal) {
            Some(Access::Owner | Access::Editor) => Wake::IfNeeded,
            Some(Access::Viewer) | None => Wake::Never,
        }
    }

    /// May this user ask for this, and still?
    pub(super) fn allows(&self, principal: &Principal, inbound: &Inbound) -> Result<(), Refused> {
        let request = &inbound.request;
        let wheel = wheel(request, inbound.fence);
        self.claim(principal, needed(request), wheel).check()
    }

    /// What somebody claims to be allowed.
    pub(super) fn claim(&self, principal: &Principal, needed: Access, wheel: Wheel) -> Claim {
        Claim {
            auth: self.reception.auth.clone(),
            session: self.session.clone(),
            connection: self.connection,
            principal: principal.clone(),
            needed,
            wheel,
        }
    }

    /// Hands control to the connection, if it is free or the asker may have it all the same.
    pub(super) fn take_control(
        &self,
        principal: &Principal,
        steal: bool,
        id: Option<&str>,
    ) -> Outcome {
        if let Way::Alone = self.way {
            return self.needs_connection(id);
        }
        let is_owner = self.session.access(principal) == Some(Access::Owner);
        let wish = if steal && is_owner {
            Wish::Steal
        } else {
            Wish::Polite
        };
        let asker = Asker {
            connection: self.connection,
            user: principal.user,
            username: principal.username.clone(),
        };
        match self.session.take_control(asker, wish) {
            Ok(driving) => {
                let now = self.reception.clock.wall();
                self.done(id, &Done::driving(&driving, now))
            }
            Err(who) => {
                let message = format!("{who} has control of this session.");
                self.refuse(Code::Busy, &message, id)
            }
        }
    }

    /// Gives control back.
    pub(super) fn release_control(&self, id: Option<&str>) -> Outcome {
        if let Way::Alone = self.way {
            return self.needs_connection(id);
        }
        match self.session.release_control(self.connection) {
            Ok(()) => self.done(id, &Done::default()),
            Err(who) => {
                let message = format!("{who} has control of this session.");
                self.refuse(Code::Forbidden, &message, id)
            }
        }
    }

    /// Control belongs to a connection and ends with it.
    fn needs_connection(&self, id: Option<&str>) -> Outcome {
        let message = "Control belongs to a connection: open the stream of this session and add \
                       `?connection=` with the `connectionId` of its CONNECTION_ACK.";
        self.refuse(Code::ValidationError, message, id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::command::SettingsChange;

    #[test]
    fn a_viewer_may_only_look() {
        let looks = [
            Request::Heartbeat,
            Request::State {
                include_history: true,
                include_settings: true,
            },
            Request::RefreshAuth {
                token: String::new(),
            },
        ];
        assert!(looks.iter().all(|look| needed(look) == Access::Viewer));
        let changes = [
            Request::Command(Command::Cancel { run: None }),
            Request::Command(Command::UpdateSettings(SettingsChange::default())),
            Request::TakeControl { steal: true },
            Request::ReleaseControl,
        ];
        assert!(
            changes
                .iter()
                .all(|change| needed(change) == Access::Editor)
        );
    }
}
