//! Frames about the people around a session: who is in it, who drives. They say how things are now
//! and stand in no journal.

use jiff::Timestamp;
use serde::Serialize;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use utoipa::ToSchema;

use crate::domain::account::Username;
use crate::domain::grant::ControlMode;
use crate::domain::id::{ConnectionId, SessionId, UserId};
use crate::session::Driving;
use crate::wire::envelope::{Envelope, Moment};
use crate::wire::words;

/// Somebody in a session.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemberBody {
    /// Who.
    pub(crate) user_id: UserId,
    /// Their name.
    #[schema(value_type = String)]
    pub(crate) username: Username,
    /// What they may do.
    #[schema(schema_with = words::access)]
    pub(crate) access: &'static str,
    /// How many connections they have.
    pub(crate) connections: usize,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Presence<'a> {
    members: &'a [MemberBody],
}

/// `PRESENCE`: everybody who is in the session now.
pub(crate) fn presence(session: SessionId, members: &[MemberBody], at: Timestamp) -> Utf8Bytes {
    Envelope::new("PRESENCE", Some(session), at, &Presence { members }).frame()
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Control<'a> {
    #[schema(schema_with = words::control_mode)]
    mode: ControlMode,
    fence: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    username: Option<&'a Username>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection_id: Option<ConnectionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Moment>,
}

impl<'a> Control<'a> {
    pub(super) fn new(driving: &'a Driving, at: Timestamp) -> Self {
        let holder = driving.holder.as_ref();
        Self {
            mode: driving.mode,
            fence: driving.fence,
            username: holder.map(|(holder, _)| &holder.who.username),
            connection_id: holder.map(|(holder, _)| holder.who.connection),
            expires_at: holder.map(|(_, left)| Moment(at + *left)),
        }
    }
}

/// `CONTROL_UPDATE`: who drives now, if anybody.
pub(crate) fn control_update(session: SessionId, driving: &Driving, at: Timestamp) -> Utf8Bytes {
    let control = Control::new(driving, at);
    Envelope::new("CONTROL_UPDATE", Some(session), at, &control).frame()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn payload(frame: &Utf8Bytes) -> Value {
        let frame: Value = serde_json::from_str(frame).unwrap();
        assert!(frame["offset"].is_null(), "not of the journal");
        frame["payload"].clone()
    }

    #[test]
    fn members_and_the_one_who_drives_have_their_names_on_the_wire() {
        let (session, user, at) = (SessionId::new(), UserId::new(), Timestamp::UNIX_EPOCH);
        let mia = MemberBody {
            user_id: user,
            username: "mia".parse().unwrap(),
            access: "owner",
            connections: 2,
        };
        let expected = json!({ "members": [
            { "userId": user, "username": "mia", "access": "owner", "connections": 2 },
        ] });
        assert_eq!(payload(&presence(session, &[mia], at)), expected);
        let nobody = Driving {
            version: 1,
            mode: ControlMode::Exclusive,
            fence: 7,
            holder: None,
        };
        let expected = json!({ "mode": "exclusive", "fence": 7 });
        assert_eq!(payload(&control_update(session, &nobody, at)), expected);
    }
}
