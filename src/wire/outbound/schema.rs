//! Every message of the gateway with the type that its payload is made from.

use utoipa::ToSchema;

use super::circle::{Control, Presence};
use super::done::Done;
use super::error::Error;
use super::event::{
    AgentNotice, AgentState, Chunk, Commands, Plan, Raw, StateUpdate, TaskStatus, Title,
    ToolUpdate, Utterance,
};
use super::question::{Question, Resolved};
use super::queue::Queue;
use super::state::FullState;
use super::words::TokenUsage;
use super::{ConnectionAck, Expiring, Notice, QueryResult};
use crate::wire::asyncapi::{Described, Place};
use crate::wire::inbound::shapes::Empty;

/// Every message of the gateway: one line each.
pub(in crate::wire) fn described() -> Vec<Described> {
    fn says<P: ToSchema>(kind: &'static str, place: Place, summary: &'static str) -> Described {
        Described::new::<P>(kind, place, summary).without_nulls()
    }
    use Place::{Anywhere, Journal, Nowhere, Session};
    vec![
        says::<ConnectionAck<'_>>(
            "CONNECTION_ACK",
            Session,
            "The first frame: the connection stands.",
        ),
        says::<TaskStatus<'_>>(
            "TASK_STATUS_UPDATE",
            Journal,
            "A task begins, goes on or has ended.",
        ),
        says::<Chunk<'_>>("TASK_OUTPUT_CHUNK", Journal, "A piece of an answer."),
        says::<Utterance<'_>>(
            "MESSAGE",
            Journal,
            "A whole utterance that is not an answer.",
        ),
        says::<ToolUpdate<'_>>("TOOL_UPDATE", Journal, "A tool is used, or has been."),
        says::<Question<'_>>("QUESTION", Journal, "The agent asks a human, and waits."),
        says::<Resolved<'_>>("QUESTION_RESOLVED", Journal, "A question has its end."),
        says::<Queue<'_>>(
            "QUEUE_UPDATE",
            Journal,
            "What waits for its turn, all of it.",
        ),
        says::<Commands<'_>>(
            "COMMANDS_UPDATE",
            Journal,
            "The commands that the agent understands.",
        ),
        says::<Raw<'_>>(
            "RAW",
            Journal,
            "What an agent said that has no other message.",
        ),
        says::<QueryResult<'_>>("QUERY_RESULT", Session, "The answer to a query."),
        says::<AgentState>("AGENT_STATE", Journal, "What the agent does now."),
        says::<TokenUsage>("USAGE_UPDATE", Journal, "Tokens were used."),
        says::<Plan<'_>>("PLAN_UPDATE", Journal, "The agent's plan, all of it."),
        says::<StateUpdate<'_>>("STATE_UPDATE", Journal, "Settings were changed."),
        says::<Title<'_>>("TITLE_UPDATE", Journal, "The session has another title."),
        says::<AgentNotice<'_>>(
            "AGENT_NOTICE",
            Journal,
            "The agent wants something to be known.",
        ),
        says::<FullState<'_>>(
            "FULL_STATE",
            Session,
            "All that is needed to show the session.",
        ),
        says::<Error<'_>>(
            "ERROR_MESSAGE",
            Anywhere,
            "Something was refused, or failed.",
        ),
        says::<Done<'_>>("ACK", Session, "A request was carried out."),
        says::<Empty>("HEARTBEAT", Session, "The answer to a heartbeat."),
        says::<Presence<'_>>("PRESENCE", Session, "Everybody who is in the session now."),
        says::<Control<'_>>("CONTROL_UPDATE", Session, "Who drives now, if anybody."),
        says::<Notice<'_>>("NOTICE", Nowhere, "Something for everybody."),
        says::<Expiring>(
            "TOKEN_EXPIRING",
            Session,
            "Without a newer token this connection ends soon.",
        ),
    ]
}
