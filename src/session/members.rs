//! Who is in which session at the moment, for those who run the gateway.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::live::Live;
use crate::domain::account::Username;
use crate::domain::id::{ConnectionId, SessionId, UserId};

/// A connection that joined a session. Says nothing about what is said there.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// The connection.
    pub(crate) connection: ConnectionId,
    /// The session it joined.
    pub(crate) session: SessionId,
    /// Whose it is.
    pub(crate) user: UserId,
    /// Their name.
    pub(crate) username: Username,
    /// Where they are.
    pub(crate) address: IpAddr,
    /// Since when.
    pub(crate) since: Timestamp,
}

/// All members on this node. Clones share it.
#[derive(Clone)]
pub(crate) struct Members {
    present: Arc<Mutex<HashMap<ConnectionId, Present>>>,
    /// Those who are in a session hear of each other there.
    live: Live,
}

struct Present {
    member: Member,
    leave: CancellationToken,
}

impl Members {
    pub(super) fn new(live: Live) -> Self {
        Self {
            present: Arc::default(),
            live,
        }
    }

    /// Notes that somebody joined; they leave when the membership is dropped.
    pub(crate) fn join(&self, member: Member) -> Membership {
        let membership = Membership {
            members: self.clone(),
            connection: member.connection,
            session: member.session,
            leave: CancellationToken::new(),
        };
        let present = Present {
            leave: membership.leave.clone(),
            member,
        };
        self.lock().insert(membership.connection, present);
        if let Some(session) = self.live.find(membership.session) {
            session.circle().enter(membership.connection);
        }
        membership
    }

    /// Everybody, by connection.
    pub(crate) fn list(&self) -> Vec<Member> {
        let mut all: Vec<Member> = self
            .lock()
            .values()
            .map(|present| present.member.clone())
            .collect();
        all.sort_by_key(|member| member.connection);
        all
    }

    /// Is this connection in that session, and this user's?
    pub(crate) fn has(&self, connection: ConnectionId, session: SessionId, user: UserId) -> bool {
        let present = self.lock();
        let member = present.get(&connection).map(|present| &present.member);
        member.is_some_and(|member| member.session == session && member.user == user)
    }

    /// Those of a session, by connection. Asks for each by its id: there may be many others here.
    pub(crate) fn of(&self, session: &Session) -> Vec<Member> {
        let seats = session.circle().connections();
        let present = self.lock();
        let mut members: Vec<Member> = seats
            .iter()
            .filter_map(|connection| present.get(connection))
            .map(|present| present.member.clone())
            .collect();
        members.sort_by_key(|member| member.connection);
        members
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// How many of them are in each session.
    pub(crate) fn count_by_session(&self) -> HashMap<SessionId, usize> {
        let mut counts = HashMap::new();
        for present in self.lock().values() {
            *counts.entry(present.member.session).or_default() += 1;
        }
        counts
    }

    /// Is there such a connection?
    pub(crate) fn contains(&self, connection: ConnectionId) -> bool {
        self.lock().contains_key(&connection)
    }

    /// Asks a connection to leave, if it is still there.
    pub(crate) fn ask_to_leave(&self, connection: ConnectionId) {
        let found = self
            .lock()
            .get(&connection)
            .map(|present| present.leave.clone());
        if let Some(leave) = found {
            leave.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConnectionId, Present>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Being in a session, until dropped.
pub(crate) struct Membership {
    members: Members,
    connection: ConnectionId,
    session: SessionId,
    leave: CancellationToken,
}

impl Membership {
    /// Cancelled when somebody asked this connection to leave.
    pub(crate) fn leave(&self) -> &CancellationToken {
        &self.leave
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.members.lock().remove(&self.connection);
        if let Some(session) = self.members.live.find(self.session) {
            session.circle().leave(self.connection);
        }
    }
}
