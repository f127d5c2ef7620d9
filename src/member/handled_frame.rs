//! Handled frame: the result of one frame, as a frame for its sender.

use super::frame_handler::FrameHandler;
use crate::domain::account::Principal;
use crate::domain::error_code::ErrorCode;
use crate::domain::shared_text::Text;
use crate::limits::LimitExceeded;
use crate::session::{Refused, Reply};
use crate::wire::error_details::Details;
use crate::wire::inbound::Rejected;
use crate::wire::outbound;

/// The result of a frame, for the sender only.
pub(crate) enum Handled {
    Replied(Text),
    /// The run's first event has the same content; only a sender that reads no journal needs the frame.
    Started(Text),
    TokenRefreshed(Box<Principal>, Text),
    Refused {
        code: ErrorCode,
        overdrawn: Option<LimitExceeded>,
        frame: Text,
    },
}

impl FrameHandler {
    pub(super) fn reply(&self, reply: &Reply, id: Option<&str>) -> Handled {
        let frame = self.reply_frame(reply, id);
        match reply {
            Reply::Started(_) => Handled::Started(frame),
            _ => Handled::Replied(frame),
        }
    }

    pub(super) fn reply_frame(&self, reply: &Reply, id: Option<&str>) -> Text {
        outbound::reply(self.session.id(), id, reply, self.shared.clock.wall())
    }

    pub(super) fn refuse(&self, refused: &Refused, id: Option<&str>) -> Handled {
        let field = refused.field.as_deref().map(Details::field);
        let details = refused.quota.map(Details::over_quota).or(field);
        self.error(refused.code, &refused.message, details.as_ref(), id)
    }

    pub(super) fn reject(&self, rejected: &Rejected) -> Handled {
        let (id, details) = (rejected.message_id.as_deref(), rejected.details.as_deref());
        self.error(rejected.code, &rejected.message, details, id)
    }

    pub(super) fn rate_limited(&self, exceeded: LimitExceeded, id: Option<&str>) -> Handled {
        let details = Details::too_often(exceeded);
        let message = exceeded.to_string();
        let mut refused = self.error(ErrorCode::RateLimited, &message, Some(&details), id);
        if let Handled::Refused { overdrawn, .. } = &mut refused {
            *overdrawn = Some(exceeded);
        }
        refused
    }

    fn error(
        &self,
        code: ErrorCode,
        message: &str,
        details: Option<&Details>,
        id: Option<&str>,
    ) -> Handled {
        let (session, now) = (Some(self.session.id()), self.shared.clock.wall());
        Handled::Refused {
            code,
            overdrawn: None,
            frame: outbound::error(session, code, message, details, id, now),
        }
    }
}
