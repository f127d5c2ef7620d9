//! Sent presence: which version of the members and of control a connection was sent last.
//!
//! Nothing is queued: a slow reader is sent the present state once it reads, not each change.

use super::frame_handler::FrameHandler;
use super::outbox::Outgoing;
use crate::domain::grant::ControlMode;
use crate::wire::outbound::{self, MemberBody};

pub(super) struct SentPresence {
    /// Of everything below; `u64::MAX` if something is due.
    version: u64,
    /// `None`: never sent, and due.
    members: Option<u64>,
    control: Option<u64>,
}

impl SentPresence {
    /// A client that is alone in a session without a driver is sent nothing.
    pub(super) fn new(handler: &FrameHandler) -> Self {
        let (presence, status) = (handler.session.presence(), handler.session.control_status());
        let members = presence.members_version();
        let is_alone = presence.connections().len() <= 1;
        let is_open = status.mode == ControlMode::Open && status.driver.is_none();
        Self {
            version: if is_alone && is_open {
                presence.version()
            } else {
                u64::MAX
            },
            members: is_alone.then_some(members),
            control: is_open.then_some(status.version),
        }
    }

    /// Cheap: checked before everything that is sent.
    pub(super) fn is_behind(&self, handler: &FrameHandler) -> bool {
        handler.session.presence().version() != self.version
    }

    /// The frames for what has changed since the last call.
    pub(super) fn catch_up(
        &mut self,
        handler: &FrameHandler,
    ) -> impl Iterator<Item = Outgoing> + use<> {
        let (session, now) = (handler.session.id(), handler.shared.clock.wall());
        let presence = handler.session.presence();
        self.version = presence.version();
        let members = presence.members_version();
        let members = (self.members.replace(members) != Some(members))
            .then(|| outbound::presence(session, &member_bodies(handler), now));
        let status = handler.session.control_status();
        let control = (self.control.replace(status.version) != Some(status.version))
            .then(|| outbound::control_update(session, &status, now));
        [members, control].into_iter().flatten().map(Outgoing::from)
    }
}

/// Each user in the session once, with the number of their connections.
fn member_bodies(handler: &FrameHandler) -> Vec<MemberBody> {
    let mut bodies: Vec<MemberBody> = Vec::new();
    for other in handler.shared.sessions.members().of(&handler.session) {
        let known = bodies.iter_mut().find(|body| body.user_id == other.user);
        match (known, handler.session.access_of(other.user)) {
            (Some(body), _) => body.connections += 1,
            (None, Some(access)) => bodies.push(MemberBody {
                user_id: other.user,
                username: other.username,
                access: access.as_str(),
                connections: 1,
            }),
            // Access was revoked: that connection is about to be closed.
            (None, None) => {}
        }
    }
    bodies
}
