//! What a connection was told of the people around its session, and what is new since.
//!
//! Nothing waits here: whoever is slow is told how things are once it listens, not how they came to
//! be so.

use std::collections::VecDeque;

use super::Desk;
use super::cursor::Outgoing;
use crate::domain::grant::ControlMode;
use crate::wire::outbound::{self, MemberBody};

/// What was told.
pub(crate) struct Told {
    /// How often the bell had rung by then.
    rings: u64,
    /// `None`: nothing yet, and there is something to tell.
    presence: Option<u64>,
    control: Option<u64>,
}

impl Told {
    /// At the beginning. Who comes into an empty session where nobody drives is told nothing.
    pub(crate) fn new(desk: &Desk) -> Self {
        let (circle, driving) = (desk.session.circle(), desk.session.driving());
        let presence = circle.presence();
        let alone = circle.connections().len() <= 1;
        let plain = driving.mode == ControlMode::Open && driving.holder.is_none();
        Self {
            rings: if alone && plain {
                circle.rings()
            } else {
                u64::MAX
            },
            presence: alone.then_some(presence),
            control: plain.then_some(driving.version),
        }
    }

    /// Is there something new?
    pub(crate) fn is_behind(&self, desk: &Desk) -> bool {
        desk.session.circle().rings() != self.rings
    }

    /// Adds what is new. Quick if nothing is, as it is asked before everything that is sent.
    pub(crate) fn catch_up(&mut self, desk: &Desk, frames: &mut VecDeque<Outgoing>) {
        if !self.is_behind(desk) {
            return;
        }
        let circle = desk.session.circle();
        self.rings = circle.rings();
        let now = desk.reception.clock.wall();
        let presence = circle.presence();
        if self.presence.replace(presence) != Some(presence) {
            let presence = outbound::presence(desk.session.id(), &members(desk), now);
            frames.push_back(presence.into());
        }
        let driving = desk.session.driving();
        if self.control.replace(driving.version) != Some(driving.version) {
            let update = outbound::control_update(desk.session.id(), &driving, now);
            frames.push_back(update.into());
        }
    }
}

/// Everybody in the session, each once, with how many connections they have.
fn members(desk: &Desk) -> Vec<MemberBody> {
    let mut bodies: Vec<MemberBody> = Vec::new();
    for member in desk.reception.sessions.members().of(&desk.session) {
        let known = bodies.iter_mut().find(|body| body.user_id == member.user);
        // Whoever lost their access is about to leave.
        let access = desk.session.access_of(member.user);
        match (known, access) {
            (Some(body), _) => body.connections += 1,
            (None, Some(access)) => bodies.push(MemberBody {
                user_id: member.user,
                username: member.username,
                access: access.as_str(),
                connections: 1,
            }),
            (None, None) => {}
        }
    }
    bodies
}
