//! `ACK`: what a request came to, for every kind of request.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use utoipa::ToSchema;

use super::circle::Control;
use super::question::{Given, Resolved};
use crate::domain::id::{Epoch, QuestionId, RunId, SessionId, UserId};
use crate::session::state::Ended;
use crate::session::{Branched, Driving};
use crate::wire::envelope::{Envelope, Moment};
use crate::wire::words;

/// What a request came to. What does not apply to it is absent; of many there is nothing to say.
#[derive(Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Done<'a> {
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
    #[schema(schema_with = words::outcome, required = false)]
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

impl<'a> Done<'a> {
    /// Something was done, perhaps to a task.
    pub(crate) fn to(task: Option<RunId>) -> Self {
        Self {
            task_id: task,
            ..Self::default()
        }
    }

    /// A task waits for its turn.
    pub(crate) fn queued(task: RunId) -> Self {
        Self {
            queued: Some(true),
            ..Self::to(Some(task))
        }
    }

    /// It was done earlier, perhaps to a task.
    pub(crate) fn repeated(task: Option<RunId>) -> Self {
        Self {
            repeated: Some(true),
            ..Self::to(task)
        }
    }

    /// A newer token is in force until then.
    pub(crate) fn renewed(expires_at: Timestamp) -> Self {
        Self {
            token_expires_at: Some(Moment(expires_at)),
            ..Self::default()
        }
    }

    /// An agent said this to an `EXTENSION`.
    pub(crate) fn told(result: &'a Value) -> Self {
        Self {
            result: Some(result),
            ..Self::default()
        }
    }

    /// A branch was made.
    pub(crate) fn branched(branch: Branched) -> Self {
        Self {
            session_id: Some(branch.session),
            offset: Some(branch.offset),
            epoch: Some(branch.epoch),
            ..Self::default()
        }
    }

    /// A question has its end; was it this answer that ended it?
    pub(crate) fn answered(ended: &'a Ended, accepted: bool) -> Self {
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

    /// Somebody drives.
    pub(crate) fn driving(driving: &'a Driving, at: Timestamp) -> Self {
        Self {
            control: Some(Control::new(driving, at)),
            ..Self::default()
        }
    }
}

/// `ACK`: a request was carried out.
pub(crate) fn ack(
    session: SessionId,
    message_id: Option<&str>,
    done: &Done<'_>,
    at: Timestamp,
) -> Utf8Bytes {
    Envelope::new("ACK", Some(session), at, done)
        .answering(message_id)
        .frame()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::event::Resolver;
    use crate::domain::grant::ControlMode;
    use crate::domain::question::{Answer, Resolution, Said};

    #[test]
    fn each_answer_says_what_belongs_to_it_and_nothing_else() {
        let (run, session, epoch) = (RunId::new(), SessionId::new(), Epoch::new());
        let (question, user) = (QuestionId::new(), UserId::new());
        let branch = Branched {
            session,
            offset: 7,
            epoch,
        };
        let said = json!([1]);
        let ended = Ended {
            question,
            by: Resolver::User {
                id: user,
                name: "mia".to_owned(),
            },
            granted: true,
            resolution: Resolution::Answered(Answer {
                said: Said::Ok(true),
                remember: false,
                reason: None,
            }),
        };
        let free = Driving {
            version: 1,
            mode: ControlMode::Open,
            fence: 3,
            holder: None,
        };
        let at = Timestamp::UNIX_EPOCH;
        for (done, expected) in [
            (Done::to(None), json!({})),
            (Done::to(Some(run)), json!({ "taskId": run })),
            (Done::queued(run), json!({ "taskId": run, "queued": true })),
            (Done::repeated(None), json!({ "repeated": true })),
            (
                Done::repeated(Some(run)),
                json!({ "taskId": run, "repeated": true }),
            ),
            (
                Done::renewed(at),
                json!({ "tokenExpiresAt": "1970-01-01T00:00:00Z" }),
            ),
            (Done::told(&said), json!({ "result": [1] })),
            (Done::told(&Value::Null), json!({ "result": null })),
            (
                Done::branched(branch),
                json!({ "sessionId": session, "offset": 7, "epoch": epoch }),
            ),
            (
                Done::answered(&ended, false),
                json!({
                    "questionId": question, "by": "mia", "byUserId": user, "outcome": "allowed",
                    "answer": { "ok": true }, "accepted": false,
                }),
            ),
            (
                Done::driving(&free, at),
                json!({ "control": { "mode": "open", "fence": 3 } }),
            ),
        ] {
            let frame: Value = serde_json::from_str(&ack(session, Some("m"), &done, at)).unwrap();
            assert_eq!(frame["type"], "ACK");
            assert_eq!(frame["messageId"], "m");
            assert_eq!(frame["payload"], expected);
        }
    }
}
