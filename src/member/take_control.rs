//! Control of a session: takes and releases the right to drive a session. It belongs to a connection and ends
//! with it.

use super::frame_handler::{FrameHandler, Via};
use crate::domain::account::{Principal, Username};
use crate::domain::error_code::ErrorCode;
use crate::session::{Access, DriverIdentity, Refused, Reply, Takeover};

impl FrameHandler {
    /// The owner may take control from another driver.
    pub(super) fn take_control(
        &self,
        principal: &Principal,
        steal: bool,
    ) -> Result<Reply, Refused> {
        self.require_connection()?;
        let is_owner = self.session.access(principal) == Some(Access::Owner);
        let wish = if steal && is_owner {
            Takeover::Force
        } else {
            Takeover::IfFree
        };
        let asker = DriverIdentity {
            connection: self.connection,
            user: principal.user,
            username: principal.username.clone(),
        };
        let taken = self.session.take_control(asker, wish);
        taken
            .map(Reply::Control)
            .map_err(|driver| has_control(ErrorCode::Busy, &driver))
    }

    pub(super) fn release_control(&self) -> Result<Reply, Refused> {
        self.require_connection()?;
        let released = self.session.release_control(self.connection);
        released
            .map(|()| Reply::Done(None))
            .map_err(|driver| has_control(ErrorCode::Forbidden, &driver))
    }

    fn require_connection(&self) -> Result<(), Refused> {
        if !matches!(self.via, Via::Http) {
            return Ok(());
        }
        let message = "Control belongs to a connection: open the stream of this session and add \
                       `?connection=` with the `connectionId` of its CONNECTION_ACK.";
        Err(Refused::new(ErrorCode::ValidationError, message))
    }
}

pub(super) fn has_control(code: ErrorCode, driver: &Username) -> Refused {
    Refused::new(code, format!("{driver} has control of this session."))
}
