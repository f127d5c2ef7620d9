//! Replies: the one frame that answers a request, `ACK` for most of them.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::presence::Control;
use super::question::{Given, Resolved};
use crate::domain::id::{Epoch, QuestionId, RunId, SessionId, UserId};
use crate::domain::shared_text::Text;
use crate::session::state::ResolvedQuestion;
use crate::session::{BranchInfo, Reply};
use crate::wire::enums;
use crate::wire::enums::WireEnum as _;
use crate::wire::server_envelope::{Envelope, Moment};

/// The payload of an `ACK`: only the fields that apply to the request, often none.
// The schema keeps its published name: the TypeScript client exports it.
#[derive(Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Done)]
pub(super) struct AckBody<'a> {
    /// The task that it concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<RunId>,
    /// The task waits for its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    queued: Option<bool>,
    /// It was carried out earlier, under the same key.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated: Option<bool>,
    /// When the newer token expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    token_expires_at: Option<Moment>,
    /// What an agent said to an `EXTENSION`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    result: Option<&'a Value>,
    /// The session that was branched off, and where its journal stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<Epoch>,
    /// The question that was answered, and how it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    question_id: Option<QuestionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by_user_id: Option<UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = enums::outcome, required = false)]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Given<'a>>,
    /// Was it this answer that ended it?
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<bool>,
    /// Who drives now.
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<Control<'a>>,
}

impl<'a> AckBody<'a> {
    fn task(task: Option<RunId>) -> Self {
        Self {
            task_id: task,
            ..Self::default()
        }
    }

    fn branched(branch: &BranchInfo) -> Self {
        Self {
            session_id: Some(branch.session),
            offset: Some(branch.offset),
            epoch: Some(branch.epoch),
            ..Self::default()
        }
    }

    fn resolved(ended: &'a ResolvedQuestion, accepted: bool) -> Self {
        let Resolved {
            question_id,
            task_id: _,
            by,
            by_user_id,
            outcome,
            answer,
        } = Resolved::new(
            ended.question,
            None,
            &ended.by,
            ended.granted,
            &ended.resolution,
        );
        Self {
            question_id: Some(question_id),
            by: Some(by),
            by_user_id,
            outcome: Some(outcome),
            answer,
            accepted: Some(accepted),
            ..Self::default()
        }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct QueryResult<'a> {
    #[schema(schema_with = enums::topic)]
    kind: &'static str,
    #[schema(value_type = Value)]
    result: &'a Value,
}

/// The frame of a reply: `HEARTBEAT`, `QUERY_RESULT`, else `ACK`.
pub(crate) fn reply(
    session: SessionId,
    message_id: Option<&str>,
    reply: &Reply,
    at: Timestamp,
) -> Text {
    let body = match reply {
        Reply::Heartbeat => return frame("HEARTBEAT", session, message_id, &Map::new(), at),
        Reply::QueryResult(kind, result) => {
            let kind = kind.word();
            let body = QueryResult { kind, result };
            return frame("QUERY_RESULT", session, message_id, &body, at);
        }
        Reply::Done(task) => AckBody::task(*task),
        Reply::Started(task) => AckBody::task(Some(*task)),
        Reply::Queued(task) => AckBody {
            queued: Some(true),
            ..AckBody::task(Some(*task))
        },
        Reply::Repeated(task) => AckBody {
            repeated: Some(true),
            ..AckBody::task(*task)
        },
        Reply::Resolved { ended, accepted } => AckBody::resolved(ended, *accepted),
        Reply::Control(driving) => AckBody {
            control: Some(Control::new(driving, at)),
            ..AckBody::default()
        },
        Reply::Branched(branch) => AckBody::branched(branch),
        Reply::Extension(result) => AckBody {
            result: Some(result),
            ..AckBody::default()
        },
        Reply::TokenRefreshed(expires_at) => AckBody {
            token_expires_at: Some(Moment(*expires_at)),
            ..AckBody::default()
        },
    };
    frame("ACK", session, message_id, &body, at)
}

fn frame(
    kind: &'static str,
    session: SessionId,
    message_id: Option<&str>,
    body: &impl Serialize,
    at: Timestamp,
) -> Text {
    Envelope::new(kind, Some(session), at, body)
        .answering(message_id)
        .frame()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::event::Resolver;
    use crate::domain::grant::ControlMode;
    use crate::domain::question::{Answer, AnswerValue, Resolution};
    use crate::session::ControlStatus;

    #[test]
    fn a_reply_carries_only_the_fields_that_apply_to_it() {
        let (run, session, epoch) = (RunId::new(), SessionId::new(), Epoch::new());
        let (question, user) = (QuestionId::new(), UserId::new());
        let branch = BranchInfo {
            session,
            offset: 7,
            epoch,
        };
        let said = json!([1]);
        let ended = ResolvedQuestion {
            question,
            by: Resolver::User {
                id: user,
                name: "mia".to_owned(),
            },
            granted: true,
            resolution: Resolution::Answered(Answer {
                value: AnswerValue::Ok(true),
                remember: false,
                reason: None,
            }),
        };
        let free = ControlStatus {
            version: 1,
            mode: ControlMode::Open,
            fence: 3,
            driver: None,
        };
        let at = Timestamp::UNIX_EPOCH;
        for (answer, expected) in [
            (Reply::Done(None), json!({})),
            (Reply::Done(Some(run)), json!({ "taskId": run })),
            (Reply::Started(run), json!({ "taskId": run })),
            (Reply::Queued(run), json!({ "taskId": run, "queued": true })),
            (Reply::Repeated(None), json!({ "repeated": true })),
            (
                Reply::Repeated(Some(run)),
                json!({ "taskId": run, "repeated": true }),
            ),
            (
                Reply::TokenRefreshed(at),
                json!({ "tokenExpiresAt": "1970-01-01T00:00:00Z" }),
            ),
            (Reply::Extension(said), json!({ "result": [1] })),
            (Reply::Extension(Value::Null), json!({ "result": null })),
            (
                Reply::Branched(branch),
                json!({ "sessionId": session, "offset": 7, "epoch": epoch }),
            ),
            (
                Reply::Resolved {
                    ended,
                    accepted: false,
                },
                json!({
                    "questionId": question, "by": "mia", "byUserId": user, "outcome": "allowed",
                    "answer": { "ok": true }, "accepted": false,
                }),
            ),
            (
                Reply::Control(free),
                json!({ "control": { "mode": "open", "fence": 3 } }),
            ),
        ] {
            let frame = reply(session, Some("m"), &answer, at);
            let frame: Value = serde_json::from_str(&frame).unwrap();
            assert_eq!(frame["type"], "ACK");
            assert_eq!(frame["messageId"], "m");
            assert_eq!(frame["payload"], expected);
        }
    }
}
