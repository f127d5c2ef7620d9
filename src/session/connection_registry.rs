//! Connection registry: all connections of this node and the sessions they joined.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::live_sessions::LiveSessions;
use crate::domain::account::Username;
use crate::domain::id::{ConnectionId, SessionId, UserId};

/// A connection that joined a session; nothing of the conversation.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionInfo {
    pub(crate) connection: ConnectionId,
    pub(crate) session: SessionId,
    pub(crate) user: UserId,
    pub(crate) username: Username,
    pub(crate) address: IpAddr,
    pub(crate) since: Timestamp,
}

/// Registry of connections. Clones share it.
#[derive(Clone)]
pub(crate) struct Connections {
    open: Arc<Mutex<HashMap<ConnectionId, OpenConnection>>>,
    /// For the presence of the session that a connection joins or leaves.
    live: LiveSessions,
}

struct OpenConnection {
    info: ConnectionInfo,
    close: CancellationToken,
}

impl Connections {
    pub(super) fn new(live: LiveSessions) -> Self {
        Self {
            open: Arc::default(),
            live,
        }
    }

    /// Registers a connection until the registration is dropped.
    pub(crate) fn join(&self, info: ConnectionInfo) -> Registration {
        let registration = Registration {
            connections: self.clone(),
            connection: info.connection,
            session: info.session,
            close: CancellationToken::new(),
        };
        let open = OpenConnection {
            close: registration.close.clone(),
            info,
        };
        self.lock().insert(registration.connection, open);
        if let Some(session) = self.live.find(registration.session) {
            session.presence().enter(registration.connection);
        }
        registration
    }

    pub(crate) fn list(&self) -> Vec<ConnectionInfo> {
        let mut all: Vec<ConnectionInfo> =
            self.lock().values().map(|open| open.info.clone()).collect();
        all.sort_by_key(|info| info.connection);
        all
    }

    /// True if the connection is this user's and joined that session.
    pub(crate) fn has(&self, connection: ConnectionId, session: SessionId, user: UserId) -> bool {
        let open = self.lock();
        let info = open.get(&connection).map(|open| &open.info);
        info.is_some_and(|info| info.session == session && info.user == user)
    }

    /// The connections of a session, by id. Looked up one by one: the node may have many others.
    pub(crate) fn of(&self, session: &Session) -> Vec<ConnectionInfo> {
        let ids = session.presence().connections();
        let open = self.lock();
        let mut connections: Vec<ConnectionInfo> = ids
            .iter()
            .filter_map(|connection| open.get(connection))
            .map(|open| open.info.clone())
            .collect();
        connections.sort_by_key(|info| info.connection);
        connections
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn count_by_session(&self) -> HashMap<SessionId, usize> {
        let mut counts = HashMap::new();
        for open in self.lock().values() {
            *counts.entry(open.info.session).or_default() += 1;
        }
        counts
    }

    pub(crate) fn contains(&self, connection: ConnectionId) -> bool {
        self.lock().contains_key(&connection)
    }

    pub(crate) fn request_close(&self, connection: ConnectionId) {
        let found = self.lock().get(&connection).map(|open| open.close.clone());
        if let Some(close) = found {
            close.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConnectionId, OpenConnection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A registered connection, until dropped.
pub(crate) struct Registration {
    connections: Connections,
    connection: ConnectionId,
    session: SessionId,
    close: CancellationToken,
}

impl Registration {
    /// Cancelled when an administrator asked this connection to close.
    pub(crate) fn close_requested(&self) -> &CancellationToken {
        &self.close
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.connections.lock().remove(&self.connection);
        if let Some(session) = self.connections.live.find(self.session) {
            session.presence().leave(self.connection);
        }
    }
}
