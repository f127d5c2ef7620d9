//! Presence frames: the members of a session and its driver. They tell the current state and are in
//! no journal.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::account::Username;
use crate::domain::grant::ControlMode;
use crate::domain::id::{ConnectionId, SessionId, UserId};
use crate::domain::shared_text::Text;
use crate::session::ControlStatus;
use crate::wire::enums;
use crate::wire::server_envelope::{Envelope, Moment};

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
    #[schema(schema_with = enums::access)]
    pub(crate) access: &'static str,
    /// How many connections they have.
    pub(crate) connections: usize,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Presence<'a> {
    members: &'a [MemberBody],
}

/// `PRESENCE`: everybody who is in the session now.
pub(crate) fn presence(session: SessionId, members: &[MemberBody], at: Timestamp) -> Text {
    Envelope::new("PRESENCE", Some(session), at, &Presence { members }).frame()
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Control<'a> {
    #[schema(schema_with = enums::control_mode)]
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
    pub(super) fn new(driving: &'a ControlStatus, at: Timestamp) -> Self {
        let driver = driving.driver.as_ref();
        Self {
            mode: driving.mode,
            fence: driving.fence,
            username: driver.map(|(driver, _)| &driver.identity.username),
            connection_id: driver.map(|(driver, _)| driver.identity.connection),
            expires_at: driver.map(|(_, left)| Moment(at + *left)),
        }
    }
}

/// `CONTROL_UPDATE`: who drives now, if anybody.
pub(crate) fn control_update(session: SessionId, driving: &ControlStatus, at: Timestamp) -> Text {
    let control = Control::new(driving, at);
    Envelope::new("CONTROL_UPDATE", Some(session), at, &control).frame()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn payload(frame: &Text) -> Value {
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
        let nobody = ControlStatus {
            version: 1,
            mode: ControlMode::Exclusive,
            fence: 7,
            driver: None,
        };
        let expected = json!({ "mode": "exclusive", "fence": 7 });
        assert_eq!(payload(&control_update(session, &nobody, at)), expected);
    }
}
