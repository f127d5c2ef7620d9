//! Message schemas: every message of the gateway with the type of its payload.

use utoipa::ToSchema;

use super::error::Error;
use super::event::{
    AgentNotice, AgentState, Chunk, Commands, Plan, Raw, StateUpdate, TaskStatus, Title,
    ToolUpdate, Utterance,
};
use super::presence::{Control, Presence};
use super::question::{Question, Resolved};
use super::queue::Queue;
use super::reply::{AckBody, QueryResult};
use super::shared_objects::TokenUsage;
use super::state::FullState;
use super::{ConnectionAck, Expiring, Notice};
use crate::wire::asyncapi::{MessageSchema, Scope};
use crate::wire::inbound::message::Empty;

pub(in crate::wire) fn message_schemas() -> Vec<MessageSchema> {
    fn message<P: ToSchema>(
        kind: &'static str,
        scope: Scope,
        summary: &'static str,
    ) -> MessageSchema {
        MessageSchema::new::<P>(kind, scope, summary).without_nulls()
    }
    use Scope::{Gateway, Journal, OptionalSession, Session};
    vec![
        message::<ConnectionAck<'_>>(
            "CONNECTION_ACK",
            Session,
            "The first frame: the connection stands.",
        ),
        message::<TaskStatus<'_>>(
            "TASK_STATUS_UPDATE",
            Journal,
            "A task begins, goes on or has ended.",
        ),
        message::<Chunk<'_>>("TASK_OUTPUT_CHUNK", Journal, "A piece of an answer."),
        message::<Utterance<'_>>(
            "MESSAGE",
            Journal,
            "A whole utterance: of a person, or of an agent that says something about it.",
        ),
        message::<ToolUpdate<'_>>("TOOL_UPDATE", Journal, "A tool is used, or has been."),
        message::<Question<'_>>("QUESTION", Journal, "The agent asks a human, and waits."),
        message::<Resolved<'_>>("QUESTION_RESOLVED", Journal, "A question has its end."),
        message::<Queue<'_>>(
            "QUEUE_UPDATE",
            Journal,
            "What waits for its turn, all of it.",
        ),
        message::<Commands<'_>>(
            "COMMANDS_UPDATE",
            Journal,
            "The commands that the agent understands.",
        ),
        message::<Raw<'_>>(
            "RAW",
            Journal,
            "What an agent said that has no other message.",
        ),
        message::<QueryResult<'_>>("QUERY_RESULT", Session, "The answer to a query."),
        message::<AgentState>("AGENT_STATE", Journal, "What the agent does now."),
        message::<TokenUsage>("USAGE_UPDATE", Journal, "Tokens were used."),
        message::<Plan<'_>>("PLAN_UPDATE", Journal, "The agent's plan, all of it."),
        message::<StateUpdate<'_>>(
            "STATE_UPDATE",
            Journal,
            "Settings were chosen, or reported by the agent.",
        ),
        message::<Title<'_>>("TITLE_UPDATE", Journal, "The session has another title."),
        message::<AgentNotice<'_>>(
            "AGENT_NOTICE",
            Journal,
            "The agent wants something to be known.",
        ),
        message::<FullState<'_>>(
            "FULL_STATE",
            Session,
            "All that is needed to show the session.",
        ),
        message::<Error<'_>>(
            "ERROR_MESSAGE",
            OptionalSession,
            "Something was refused, or failed.",
        ),
        message::<AckBody<'_>>("ACK", Session, "A request was carried out."),
        message::<Empty>("HEARTBEAT", Session, "The answer to a heartbeat."),
        message::<Presence<'_>>("PRESENCE", Session, "Everybody who is in the session now."),
        message::<Control<'_>>("CONTROL_UPDATE", Session, "Who drives now, if anybody."),
        message::<Notice<'_>>("NOTICE", Gateway, "Something for everybody."),
        message::<Expiring>(
            "TOKEN_EXPIRING",
            Session,
            "Without a newer token this connection ends soon.",
        ),
    ]
}
